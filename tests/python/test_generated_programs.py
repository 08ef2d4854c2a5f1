"""Generated programs, which read and write with odd indices, widths and containers, against a model in plain Python.

``AEROGEL_N_PYTHON_PROGRAMS=20000`` runs more of them, ``AEROGEL_FIRST_PYTHON_SEED`` others.
"""

import os
import random

import pytest
from odd_values import Program

import aerogel as ti

N = int(os.environ.get("AEROGEL_N_PYTHON_PROGRAMS", "2000"))
FIRST = int(os.environ.get("AEROGEL_FIRST_PYTHON_SEED", "0"))
# As many as one kernel holds, and programs that are cheap.
TOGETHER = 25


@pytest.mark.parametrize("arch", ["interp", "cpu"])
def test_programs_do_what_the_model_does(arch):
    wrong = []
    for first in range(FIRST, FIRST + N // 2, TOGETHER):
        ti.init(arch=arch, log_level="error")
        for seed in range(first, first + TOGETHER):
            program = Program(random.Random(f"{arch} {seed}"))
            found = program.problem()
            if found:
                wrong.append(f"seed {seed}:\n{program.text}\n{found}")
        if len(wrong) > 5:
            break
    ti.reset()
    assert not wrong, "\n\n".join(wrong)
