"""Data races are found by the numbers of iterations, on every arch: seeded ones, and none in programs like them."""

import inspect
import re

import pytest

import races.clean  # noqa: F401  They list their programs.
import races.racing_loops  # noqa: F401
import races.racing_storage  # noqa: F401
from races.listed import CLEAN, RACES

import aerogel as ti


@pytest.fixture
def looks_for_races(arch):
    ti.init(arch=arch, debug_races=True, log_level="error", offline_cache=False)
    yield arch
    ti.reset()


def marked(program):
    """The numbers of the lines of a program that end in ``# race``."""
    lines, first = inspect.getsourcelines(program)
    return {first + k for k, line in enumerate(lines) if line.rstrip().endswith("# race")}


def test_there_are_enough():
    assert len(RACES) >= 40 and len(CLEAN) >= 25


@pytest.mark.parametrize(("program", "cell", "says"), RACES, ids=[case[0].__name__ for case in RACES])
def test_seeded(looks_for_races, program, cell, says):
    with pytest.raises(ti.AerogelRaceError) as caught:
        program()
    message = str(caught.value)
    found = re.fullmatch("data race on `(.*)`: (.*)", message.splitlines()[0])
    # Attributes of meshes have no names.
    assert found[1] == (cell or found[1]) and found[2] == says
    named = re.findall(r"--> .*/races/racing_\w+\.py:(\d+):\d+", message)
    assert len(named) == 2 and {int(line) for line in named} == marked(program)


@pytest.mark.parametrize("program", CLEAN, ids=[program.__name__ for program in CLEAN])
def test_clean(looks_for_races, program):
    program()


def test_axes_in_another_order(looks_for_races):
    """Iterations are named and compared as the axes are written."""
    x = ti.field(ti.i32, shape=16, name="x")

    @ti.kernel
    def rows():
        for i, j in ti.ndrange(4, 8, axes=(1, 0)):
            x[i] = j

    with pytest.raises(ti.AerogelRaceError, match=r"`x\[0\]`: iterations \(0, 0\) and \(0, 1\)"):
        rows()
