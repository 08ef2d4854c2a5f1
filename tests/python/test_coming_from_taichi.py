"""The programs of docs/coming-from-taichi.md give what the page says.

`TAICHI_PYTHON`, a Python with `taichi==1.7.4`, has Taichi's answers compared too; `AEROGEL_BLESS=1` writes the answers
anew, Taichi's only if that is set.
"""

import os
import operator
import re
import subprocess
import sys
from pathlib import Path

import pytest

import aerogel as ti

PAGE = Path(__file__).parents[2] / "docs" / "coming-from-taichi.md"
PART = re.compile(r"```python\n(.*?)```\n(?:\n```text\nTaichi:  (.*?)\nAerogel: (.*?)\n```\n)?", re.DOTALL)
TAICHI = os.environ.get("TAICHI_PYTHON")
RUN = """
import sys
import {module} as ti
import numpy as np
ti.init(arch=ti.cpu, log_level="error", offline_cache=False)
with open(sys.argv[1]) as file:
    code = compile(file.read(), sys.argv[1], "exec")
try:
    exec(code, {{"ti": ti, "np": np, "__name__": "program"}})
except Exception as e:
    lines = [line.strip() for line in str(e).splitlines() if line.strip()]
    # Both show the source; Taichi before the message, Aerogel after it.
    line = lines[{line}]
    name = type(e).__name__
    print(line if line.startswith(name) else name + ": " + line)
"""

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="the page is not here")


def programs():
    return PART.findall(PAGE.read_text()) if PAGE.exists() else []


def answer(python, module, line, program, tmp_path):
    """What a program prints, or its exception, in one line."""
    (tmp_path / "run.py").write_text(RUN.format(module=module, line=line))
    (tmp_path / "program.py").write_text(program)
    env = dict(os.environ)
    if module == "aerogel":
        env["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
    done = subprocess.run(
        [python, "run.py", "program.py"], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60
    )
    if done.returncode < 0:
        return f"the process ends with signal {-done.returncode}"
    text = ", ".join(line for line in done.stdout.splitlines() if line and not line.startswith("[Taichi]"))
    return text if len(text) <= 100 else text[:97] + "..."


@pytest.mark.parametrize("number", range(len(programs())))
def test_the_answers(number, tmp_path):
    program, taichis, ours = programs()[number]
    bless = os.environ.get("AEROGEL_BLESS")
    found = answer(sys.executable, "aerogel", 0, program, tmp_path)
    theirs = answer(TAICHI, "taichi", -1, program, tmp_path) if TAICHI else taichis
    assert found != theirs, "there is no difference"
    if bless:
        text = PAGE.read_text()
        old = list(PART.finditer(text))[number][0]
        new = f"```python\n{program}```\n\n```text\nTaichi:  {theirs}\nAerogel: {found}\n```\n"
        PAGE.write_text(text.replace(old, new))
    else:
        assert (theirs, found) == (taichis, ours)


def test_unsupported_names(cpu):
    table = PAGE.read_text().partition("## Unsupported names")[2]
    names = re.findall(r"`ti\.([\w.]+)`", table)
    assert names
    for name in names:
        if name != "GUI":
            with pytest.raises(NotImplementedError, match=f"ti.{name} is not supported: "):
                operator.attrgetter(name)(ti)()
