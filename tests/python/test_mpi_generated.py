"""Made-up kernels over split fields: what they and their gradients compute on ranks is what they compute in one process.

``AEROGEL_N_PROGRAMS`` and ``AEROGEL_FIRST_SEED`` choose how many, and which.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from split_programs import Maker
from test_mpi import needs_mpi

PROGRAM = str(Path(__file__).with_name("split_programs.py"))
FIRST = int(os.environ.get("AEROGEL_FIRST_SEED", "0"))
N = min(int(os.environ.get("AEROGEL_N_PROGRAMS", "14")), 1000)


def run(command, first, end, file):
    """What the programs from a seed to another one compute."""
    arguments = [sys.executable, *command, PROGRAM, str(first), str(end), str(file)]
    subprocess.run(arguments, check=True, timeout=60 + 5 * (end - first))
    return np.load(file)


@needs_mpi
def test_ranks_compute_what_one_process_does(tmp_path):
    one = run([], FIRST, FIRST + N, tmp_path / "1.npz")
    # Half of them on two ranks, the others on three.
    half = FIRST + N // 2
    many = {}
    for n_ranks, first, end in ((2, FIRST, half), (3, half, FIRST + N)):
        many |= run(["-m", "aerogel", "mpi", "-n", str(n_ranks)], first, end, tmp_path / f"{n_ranks}.npz")
    assert set(one) == set(many) and len(one.files) >= 5 * N
    for name in one:
        np.testing.assert_array_equal(many[name], one[name], err_msg=Maker(int(name.split(".")[0])).source())
    assert sum(np.any(one[f"{FIRST + k}.{3}"] != 0) for k in range(N)) > N // 10
    gradients = [[one[f"{FIRST + k}.{at}"] for at in (5, 6, 7) if f"{FIRST + k}.{at}" in one] for k in range(N)]
    assert sum(any(np.any(each > 0) for each in own) for own in gradients) > N // 5
