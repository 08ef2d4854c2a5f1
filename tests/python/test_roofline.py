"""The ladder of benches/roofline.py: each rung computes the product, and the table has a row for it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(not (ROOT / "benches").exists(), reason="the benchmarks are not here")
def test_the_ladder():
    """The script asserts that results are those of NumPy."""
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(p for p in sys.path if p))
    command = [sys.executable, ROOT / "benches/roofline.py", "--size", "64", "--size-of-lists", "16", "--repeat", "1"]
    done = subprocess.run([*command, "--plot", ""], env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines() if line.startswith("|")
    ]
    page = (ROOT / "docs/roofline.md").read_text()
    assert len(rows) == 9 and all(float(row[1]) > 0 for row in rows[2:])
    assert all(f"| {row[0]} |" in page for row in rows[2:]), "the page explains each rung"
