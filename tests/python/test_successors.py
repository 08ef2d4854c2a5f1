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


def test_the_order_of_the_axes_of_ndrange():
    """The loops are nested as `axes=` says; the indices stay those of the axes."""
    ti.init(arch=ti.cpu, log_level="error")
    order = ti.field(int, shape=(3, 12))
    n = ti.field(int, shape=3)

    @ti.kernel
    def visit(last: int):
        ti.loop_config(serialize=True)
        for i, j in ti.ndrange(2, (1, last), axes=(1, 0)):
            order[0, n[0]] = 10 * i + j
            n[0] += 1
        for _ in range(1):
            for I in ti.grouped(ti.ndrange(2, (1, last), axes=(1, 0))):
                order[1, n[1]] = 10 * I[0] + I[1]
                n[1] += 1
                if n[1] == 5:
                    break
            for i, j, k in ti.static(ti.ndrange(2, 2, 2, axes=(2, 0, 1))):
                order[2, n[2]] = 100 * i + 10 * j + k
                n[2] += 1

    visit(4)
    at = order.to_numpy()
    expected = [10 * i + j for i, j in ti.ndrange(2, (1, 4), axes=(1, 0))]
    assert expected == [1, 11, 2, 12, 3, 13]
    assert at[0, :6].tolist() == expected
    assert at[1, :6].tolist() == [*expected[:5], 0]
    assert at[2, :8].tolist() == [0, 10, 100, 110, 1, 11, 101, 111]

    out = ti.field(int, shape=(4, 5))

    @ti.kernel
    def number():
        for i, j in ti.ndrange(4, 5, axes=(1, 0)):
            out[i, j] = 10 * i + j

    number()
    np.testing.assert_array_equal(out.to_numpy(), np.arange(4)[:, None] * 10 + np.arange(5))


@pytest.mark.parametrize("axes", [(0,), (0, 0), (0, 2), (0, 1, 1), (-1, 0)])
def test_axes_that_are_no_order(axes):
    ti.init(arch=ti.cpu, log_level="error")

    @ti.kernel
    def visit():
        for _, _ in ti.ndrange(2, 3, axes=axes):
            pass

    with pytest.raises(ti.TaichiSyntaxError, match=r"names each of its 2 axes once.*\n.*\n.*\n.*axes=axes"):
        visit()
    with pytest.raises(ValueError, match="each of the 2 axes once"):
        ti.ndrange(2, 3, axes=axes)
