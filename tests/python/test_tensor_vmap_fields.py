"""`vmap` of functions that read fields: what is the same for all goes over cells, what differs wants all elements."""

import aerogel as ti
import numpy as np
import pytest
from aerogel.tensor import programs as p

W = np.arange(3, dtype=np.float32)


@pytest.fixture
def x():
    ti.init(arch=ti.cpu, log_level="error")
    x = ti.field(ti.f32, name="x")
    ti.root.pointer(ti.ij, 4).dense(ti.ij, 4).place(x)
    for k in range(5):
        x[k, k + 1] = k + 1
    return x


def mapped(function, values=W):
    """What a function says of each row."""

    @p.program
    def program():
        return ti.vmap(function)(p.input(list(values.shape), ti.f32))

    return program(values).numpy()


def test_what_is_the_same_for_all_goes_over_cells(x):
    # Three blocks of 16 cells.
    assert mapped(lambda s: (p.indices(x)[0] * 0 + 1).sum() + s).tolist() == [48, 49, 50]


def test_dense_values_differ_for_each(x):
    def weighed(s):
        i, j = p.indices(x)
        return (p.dense(x[i, j]) * s).sum()

    assert mapped(weighed).tolist() == [0, 15, 30]


def test_values_at_cells_do_not(x):
    def weighed(s):
        i, j = p.indices(x)
        return (x[i, j] * s).sum()

    with pytest.raises(ValueError, match="value on the cells of `x` varies over the batch: take `dense`"):
        mapped(weighed)


def test_values_at_cells_are_no_rows(x):
    @p.program
    def rows():
        return ti.vmap(lambda row: row.sum())(x[p.indices(x)])

    with pytest.raises(ValueError, match="needs all elements of a tensor"):
        rows()


def test_fields_and_what_kernels_write_are_inside_of_the_function(x):
    @ti.kernel
    def double(a: ti.types.ndarray()):
        for i in a:
            a[i] *= 2

    outside = ti.tensor.ones(4)

    def stores(s):
        x[0, 0] = s
        return s

    def calls(row):
        double(outside)
        return row

    with pytest.raises(ValueError, match="`vmap`: the function stores to a field"):
        mapped(stores)
    with pytest.raises(ValueError, match="a tensor from outside is a constant of the program"):
        mapped(calls, np.ones((3, 4), np.float32))
    # Nothing of it is left behind.
    assert mapped(lambda s: s * 2).tolist() == [0, 2, 4]
