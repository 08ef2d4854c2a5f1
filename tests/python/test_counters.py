"""Running offsets and lists by ``ti.atomic_add`` to a counter: each iteration has a range of its own."""

import numpy as np
import pytest

import aerogel as ti

SIZES = (0, 1, 255, 257, 5000)


def sizes_of(n):
    return np.random.default_rng(n).integers(0, 4, n).astype(np.int32)


def is_partition(starts, sizes, first=0):
    """Whether ranges follow each other without gaps, in any order."""
    order = np.lexsort((sizes, starts))
    ends = first + np.cumsum(sizes[order])
    return (starts[order] == np.concatenate([[first], ends[:-1]])[: len(starts)]).all()


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("counter", ("field", "element", "component", "array", "local"))
def test_offsets(arch, n, counter):
    ti.init(arch=arch, log_level="error")
    size, start = ti.field(ti.i32, max(n, 1)), ti.field(ti.i32, max(n, 1))
    field = {
        "field": lambda: ti.field(ti.i32, ()),
        "element": lambda: ti.field(ti.i32, 4),
        "component": lambda: ti.Vector.field(3, ti.i32, ()),
        "array": lambda: ti.ndarray(ti.i32, 4),
        "local": lambda: None,
    }[counter]()
    after = ti.field(ti.i32, ())

    @ti.kernel
    def by_field():
        for i in range(n):
            start[i] = ti.atomic_add(field[None], size[i])

    @ti.kernel
    def by_element():
        for i in range(n):
            start[i] = ti.atomic_add(field[2], size[i])

    @ti.kernel
    def by_component():
        for i in range(n):
            start[i] = ti.atomic_add(field[None][1], size[i])

    @ti.kernel
    def by_array(count: ti.types.ndarray()):
        for i in range(n):
            start[i] = ti.atomic_add(count[2], size[i])

    @ti.kernel
    def by_local():
        count = 7
        for i in range(n):
            start[i] = ti.atomic_add(count, size[i])
        after[None] = count

    sizes = sizes_of(n)
    size.from_numpy(np.resize(sizes, max(n, 1)))
    if counter == "local":
        by_local()
        total = after[None]
    elif counter == "array":
        field[2] = 7
        by_array(field)
        total = field[2]
    else:
        key = 2 if counter == "element" else None
        if counter == "component":
            field[None][1] = 7
        else:
            field[key] = 7
        {"field": by_field, "element": by_element, "component": by_component}[counter]()
        total = field[None][1] if counter == "component" else field[key]
    assert total == 7 + sizes.sum()
    assert is_partition(start.to_numpy()[:n], sizes, 7)


@pytest.mark.parametrize("n", SIZES)
def test_lists(arch, n):
    ti.init(arch=arch, log_level="error")
    x, found, others = (ti.field(ti.i32, max(n, 1)) for _ in range(3))
    count = ti.field(ti.i64, 2)

    @ti.kernel
    def split():
        for i in range(n):
            if x[i] == 3:
                continue
            if x[i] > 1:
                at = ti.atomic_add(count[0], 1)
                found[at] = i
            else:
                at = ti.atomic_sub(count[1], 1)
                others[-at] = i

    values = sizes_of(n)
    x.from_numpy(np.resize(values, max(n, 1)))
    split()
    assert count.to_numpy().tolist() == [(values == 2).sum(), -(values < 2).sum()]
    assert sorted(found.to_numpy()[: count[0]]) == np.flatnonzero(values == 2).tolist()
    assert sorted(others.to_numpy()[: -count[1]]) == np.flatnonzero(values < 2).tolist()


def test_cells_of_a_field_with_two_axes(arch):
    ti.init(arch=arch, log_level="error")
    x, start = (ti.field(ti.i32, (37, 29)) for _ in range(2))
    count = ti.field(ti.i32, ())

    @ti.kernel
    def run():
        for i, j in x:
            start[i, j] = ti.atomic_add(count[None], x[i, j])

    sizes = sizes_of(37 * 29)
    x.from_numpy(sizes.reshape(37, 29))
    run()
    assert is_partition(start.to_numpy().ravel(), sizes)


def test_counts_that_depend_on_what_the_loop_writes(arch):
    ti.init(arch=arch, log_level="error")
    n = 1000
    x, start = (ti.field(ti.i32, n) for _ in range(2))
    count = ti.field(ti.i32, 2)

    @ti.kernel
    def run():
        for i in range(n):
            x[i] += 1
            at = ti.atomic_add(count[0], x[i])
            start[i] = at
            x[i] = ti.atomic_add(count[1], at % 3)

    sizes = sizes_of(n)
    x.from_numpy(sizes)
    run()
    starts = start.to_numpy()
    assert is_partition(starts, sizes + 1)
    assert is_partition(x.to_numpy(), starts % 3)
    assert count[1] == (starts % 3).sum()


def test_a_counter_that_no_iteration_reaches(arch):
    ti.init(arch=arch, log_level="error")
    count, out = ti.ndarray(ti.i32, 1), ti.field(ti.i32, 10)

    @ti.kernel
    def run(count: ti.types.ndarray(), least: ti.i32):
        for i in range(10):
            if i >= least:
                out[i] = ti.atomic_add(count[0], 1) + 1

    run(count, 20)
    assert count[0] == 0
    run(count, 7)
    assert count[0] == 3
    assert sorted(out.to_numpy()) == [0] * 7 + [1, 2, 3]
