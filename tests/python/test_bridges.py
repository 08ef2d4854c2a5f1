"""Arrays of NumPy, of Python and of Aerogel in kernels: what comes of them is right or an error. `scripts/bridges.py` has more."""

import pytest
from bridges import run
from bridges.case import KINDS, TYPES, register

LIBRARIES = ["numpy", "python", "aerogel"]
register(LIBRARIES)
#: Kinds of other libraries may have been registered by then.
OURS = [name for name in KINDS if name.startswith(("numpy", "python", "object", "ti."))]
VIEWS = [
    "plain view",
    "strided",
    "negative steps",
    "transposed",
    "Fortran",
    "axes in another order",
    "column",
    "member",
]
OTHERS = ["0-d", "empty", "empty strided", "unaligned", "matrix", "subclass", "memmap", "member of a packed struct"]


@pytest.mark.parametrize("action", run.ACTIONS)
def test_nothing_is_silent(arch, action):
    kinds = [kind for kind in OURS if arch == "cpu" or "large" not in kind]
    found = [run.outcome_of(kind, action) for kind in kinds]
    silent = [cell for cell in found if cell.outcome == "SILENT"]
    assert not silent, silent


@pytest.mark.parametrize("action", ["read", "write", "accumulate"])
def test_arrays_of_numpy(arch, action):
    for name in TYPES + VIEWS + OTHERS:
        cell = run.outcome_of(f"numpy {name}", action)
        assert cell.outcome == ("-" if (name, action) == ("bool", "accumulate") else "right"), cell


def test_read_only_arrays_are_read_only(arch):
    for name in ("broadcast", "overlapping", "read-only", "read-only strided", "of bytes", "memmap, read-only"):
        outcomes = [run.outcome_of(f"numpy {name}", action).outcome for action in ("read", "write", "accumulate")]
        assert outcomes == ["right", "error", "error"], name


def test_the_table():
    """A process that ends in a cell is started anew for the next."""
    kinds = ["numpy float32", "no such kind", "numpy float64"]
    found = list(run.cells(kinds, ["read"], "cpu"))
    assert [cell.outcome for cell in found] == ["right", "CRASH", "right"]
    text = run.table(found, ["read"])
    assert text.splitlines()[:4] == [
        "               read",
        "numpy float32  right",
        "no such kind   CRASH",
        "numpy float64  right",
    ]
    flat = list(run.cells(["numpy strided"], ["write"], "cpu", 50))
    assert [cell.outcome for cell in flat] == ["flat"]
