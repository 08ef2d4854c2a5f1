"""Type checkers see the signatures of kernels: pyright flags the wrong calls of typed/calls.py, and no others."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import aerogel as ti

PROGRAM = Path(__file__).parent / "typed" / "calls.py"
PYRIGHT = Path(sys.executable).parent / "pyright"


@pytest.mark.skipif(not PYRIGHT.exists(), reason="pyright is not installed")
def test_wrong_calls_are_flagged(tmp_path):
    (tmp_path / "calls.py").write_text(PROGRAM.read_text())
    settings = {"extraPaths": [str(Path(ti.__file__).parents[1])], "reportInvalidTypeForm": False}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    done = subprocess.run(
        [PYRIGHT, "--outputjson", "--pythonpath", sys.executable, "-p", tmp_path], capture_output=True, text=True
    )
    report = json.loads(done.stdout)
    flagged = {
        found["range"]["start"]["line"] + 1: found["message"]
        for found in report["generalDiagnostics"]
        if found["severity"] == "error"
    }
    lines = PROGRAM.read_text().splitlines()
    wrong = {number for number, line in enumerate(lines, 1) if line.endswith("# wrong")}
    assert report["summary"]["filesAnalyzed"] == 1 and len(wrong) > 10
    assert set(flagged) == wrong, {lines[k - 1]: flagged.get(k) for k in set(flagged) ^ wrong}
