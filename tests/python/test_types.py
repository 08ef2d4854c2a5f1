"""Type checkers see names and signatures: pyright and mypy flag the wrong lines of typed/*.py, and no others."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import aerogel as ti
from aerogel import _config

PROGRAMS = sorted((Path(__file__).parent / "typed").glob("*.py"))
PACKAGE = Path(ti.__file__).parents[1]


def flagged_by_pyright(folder, program):
    settings = {"extraPaths": [str(PACKAGE)], "reportInvalidTypeForm": False}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    tool = Path(sys.executable).parent / "pyright"
    done = subprocess.run(
        [tool, "--outputjson", "--pythonpath", sys.executable, "-p", folder], capture_output=True, text=True
    )
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == 1
    return {
        found["range"]["start"]["line"] + 1: found["message"]
        for found in report["generalDiagnostics"]
        if found["severity"] == "error"
    }


def flagged_by_mypy(folder, program):
    settings = f"[mypy]\nmypy_path = {PACKAGE}\ndisable_error_code = valid-type\nfollow_imports = silent\n"
    (folder / "mypy.ini").write_text(settings + "ignore_missing_imports = true\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", folder / "cache", program],
        capture_output=True,
        text=True,
        cwd=folder,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return {int(k): text for k, text in re.findall(rf"^{program.name}:(\d+): error: (.*)$", done.stdout, re.MULTILINE)}


CHECKERS = {"pyright": flagged_by_pyright, "mypy": flagged_by_mypy}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
@pytest.mark.parametrize("checker", CHECKERS)
def test_wrong_lines_are_flagged(tmp_path, checker, program):
    if not (Path(sys.executable).parent / checker).exists():
        pytest.skip(f"{checker} is not installed")
    lines = program.read_text().splitlines()
    (tmp_path / program.name).write_text(program.read_text())
    flagged = CHECKERS[checker](tmp_path, tmp_path / program.name)
    wrong = {number for number, line in enumerate(lines, 1) if line.endswith("# wrong")}
    assert len(wrong) >= 10
    assert set(flagged) == wrong, {lines[k - 1]: flagged.get(k) for k in set(flagged) ^ wrong}


def test_checkers_know_every_setting():
    stub = (PACKAGE / "aerogel" / "_annotations.pyi").read_text()
    settings = set(re.findall(r"^    (\w+): ", stub.partition("class Settings")[2], re.MULTILINE))
    assert settings == {*_config._DEFAULTS, *_config._OLDER}
