"""Gradients of kernels over split fields: on ranks against the same program in one process."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_mpi import needs_mpi

PROGRAM = str(Path(__file__).with_name("split_gradients.py"))


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    file = tmp_path_factory.mktemp("alone") / "found"
    subprocess.run([sys.executable, PROGRAM, str(file)], check=True, timeout=120)
    return np.load(f"{file}.0.npz")


@needs_mpi
@pytest.mark.parametrize("n", [2, 3])
def test_gradients_on_ranks_are_those_of_one_process(n, alone, tmp_path):
    command = [sys.executable, "-m", "aerogel", "mpi", "-n", str(n), PROGRAM, str(tmp_path / "found")]
    subprocess.run(command, check=True, timeout=120)
    for rank in range(n):
        several = np.load(tmp_path / f"found.{rank}.npz")
        assert set(several) == set(alone)
        for name in alone:
            scale = np.abs(alone[name]).max()
            assert scale > 0, name
            np.testing.assert_allclose(several[name], alone[name], rtol=0, atol=1e-13 * scale, err_msg=name)
