"""`docs/successors.md`: the names that it says are there can be used, and the others cannot."""

import re
from pathlib import Path

import numpy as np
import pytest

import aerogel as ti

PAGE = Path(__file__).parents[2] / "docs" / "successors.md"


def listed(number):
    """The names in the first column of a table."""
    tables = re.findall(r"^\|.*\|\n\|[-|]+\|\n(?:\|.*\|\n)+", PAGE.read_text(), re.MULTILINE)
    cells = [row.split("|")[1] for row in tables[number].splitlines()[2:]]
    names = [name for cell in cells for name in re.findall(r"`([\w.]+)(?:\(.*?\))?`", cell)]
    assert len(names) > 10
    return names


def has(name):
    found = ti
    for part in name.split("."):
        if not hasattr(found, part):
            return False
        found = getattr(found, part)
    return True


@pytest.mark.skipif(not PAGE.exists(), reason="the documents are not here")
def test_the_tables():
    assert [name for name in listed(0) if not has(name)] == []
    # The reduction by keys has no dot in front of it on the page.
    absent = [
        f"algorithms.{name}" if name in ("reduce_by_key_add", "exclusive_scan_add") else name for name in listed(1)
    ]
    assert [name for name in absent if has(name)] == []


def test_exceptions(cpu):
    assert ti.QuadrantsCompilationError is ti.TaichiCompilationError
    with pytest.raises(AttributeError):
        _ = ti.QuadrantsOtherError


@pytest.mark.parametrize("n", [2, 3])
def test_the_nearest_definite_matrix(cpu, n):
    @ti.kernel
    def nearest(m: ti.types.matrix(n, n, ti.f64)) -> ti.types.matrix(n, n, ti.f64):
        return ti.make_spd(m)

    rng = np.random.default_rng(n)
    for _ in range(10):
        a = rng.standard_normal((n, n))
        a += a.T
        values, vectors = np.linalg.eigh(a)
        right = vectors @ np.diag(np.maximum(values, 0)) @ vectors.T
        assert np.allclose(nearest(ti.Matrix(a.tolist(), dt=ti.f64)).to_numpy(), right, atol=1e-9)


def test_streams_and_events(cpu):
    with ti.create_stream() as stream, ti.create_event() as event:
        event.record(stream)
        event.wait(stream)
        stream.synchronize()
