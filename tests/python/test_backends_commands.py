"""``python -m aerogel backends``."""

import os
import subprocess
import sys

MODULE = '''
import aerogel as ti
from aerogel.backends._numpy import NumPy


class Wrong(NumPy):
    """NumPy with a mistake."""

    name = "wrong"

    def reduce(self, accum, x, axes):
        made = super().reduce(accum, x, axes)
        return made + 1 if accum == "add" and made.dtype.kind == "f" else made


ti.backends.register(Wrong())
'''


def called(*arguments, cwd=None):
    done = subprocess.run(
        [sys.executable, "-m", "aerogel", "backends", *arguments], capture_output=True, text=True, cwd=cwd, timeout=600
    )
    return done.returncode, done.stdout, done.stderr


def test_list(tmp_path):
    code, out, _ = called("list")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines() if "by default" not in line] == [
        "blas",
        "interp",
        "native",
        "numpy",
    ]
    assert "by default: describe, copy" in out


def test_test(tmp_path):
    code, out, _ = called("test", "numpy")
    assert code == 0, out
    assert "numpy: " in out
    assert "checks passed" in out
    (tmp_path / "mine.py").write_text(MODULE)
    code, out, _ = called("test", "wrong", "--import", "mine", cwd=tmp_path)
    assert code == 1
    assert "FAILED method `reduce`" in out
    assert "FAILED sum of an axis" in out
    code, _, error = called("test", "nothing")
    assert code == 1
    assert "no back end 'nothing'" in error
    code, _, error = called("test")
    assert code == 1
    assert "needs the name" in error


def test_bench():
    environment = dict(os.environ)
    assert "AEROGEL_BACKEND" not in environment
    code, out, error = called("bench", "numpy")
    assert code == 0, error
    rows = [line for line in out.splitlines() if " numpy " in line]
    assert len(rows) == 3
