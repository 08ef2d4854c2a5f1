"""Hash nodes: a few active cells in spaces of any size."""

import threading

import numpy as np
import pytest

import aerogel as ti

WIDE = 1 << 30


def scattered(n, seed=0):
    """Indices all over a space of WIDE x WIDE, without repetition."""
    at = np.random.default_rng(seed).integers(0, WIDE, (n, 2), dtype=np.int32)
    return at[np.lexsort(at.T[::-1])]


def test_a_huge_space(arch):
    x = ti.field(ti.f32, name="x")
    node = ti.root.hash(ti.ij, (WIDE, 2 * WIDE - 1))
    node.place(x)
    assert x.shape == node.shape == (WIDE, 2 * WIDE - 1) and x[5, 6] == 0
    corners = [(0, 0), (0, 2 * WIDE - 2), (WIDE - 1, 0), (WIDE - 1, 2 * WIDE - 2)]

    @ti.kernel
    def write(at: ti.types.ndarray(dtype=ti.i32), first: ti.f32):
        for k in range(at.shape[0]):
            x[at[k, 0], at[k, 1]] += first + k

    write(np.array(corners, np.int32), 1)
    write(scattered(300), 10)
    indices, values = x.active_cells()
    expected = {**{tuple(at): 10.0 + k for k, at in enumerate(scattered(300).tolist())}}
    expected.update({at: 1.0 + k for k, at in enumerate(corners)})
    found = [(tuple(at), v) for at, v in zip(indices.tolist(), values.tolist())]
    assert found == sorted(expected.items())  # In the order of the indices.
    assert node.stats()[0]["cells"] == 304 and node.stats()[0]["used_bytes"] < 304 * 1200
    assert [x[at] for at in corners] == [1, 2, 3, 4] and x[1, 1] == 0

    @ti.kernel
    def in_order(out: ti.types.ndarray(dtype=ti.i32)) -> ti.i32:
        n = 0
        ti.loop_config(serialize=True)
        for i, j in x:
            out[n, 0], out[n, 1] = i, j
            n += 1
        return n

    out = np.zeros((304, 2), np.int32)
    assert in_order(out) == 304 and (out == indices).all()
    x.fill(2)
    assert (x.active_cells()[1] == 2).all()
    for at in [(WIDE, 0), (0, 2 * WIDE - 1), (-1, 0)]:
        with pytest.raises(IndexError):
            x[at] = 1
    assert "hash [1073741824, 2147483647]: 304 of" in shown(node) and "hash" in repr(node)
    assert node.occupancy(4).sum() > 0


def shown(node):
    from aerogel.data import _sparsity

    return _sparsity.text(node, 16, None, 2)


def test_activation_by_hand(arch):
    x = ti.field(ti.i32)
    node = ti.root.hash(ti.ijk, 1 << 20)
    block = node.dense(ti.ijk, 4)
    block.place(x)

    @ti.kernel
    def change(what: ti.i32, i: ti.i32, j: ti.i32, k: ti.i32) -> ti.i32:
        if what == 1:
            ti.activate(node, [i, j, k])
        if what == 2:
            ti.deactivate(node, [i, j, k])
        return ti.is_active(node, [i, j, k])

    at = (1 << 19, 3, (1 << 20) - 1)
    assert change(0, *at) == 0 and change(1, *at) == 1 and change(0, *at) == 1
    assert change(0, at[0], 3, at[2] - 1) == 0
    assert node.active_cells().tolist() == [list(at)]
    inside = tuple(4 * k + 1 for k in at)
    x[inside] = 7
    assert x[inside] == 7 and len(x.active_cells()[0]) == 64
    change(2, *at)
    assert change(0, *at) == 0 and x[inside] == 0 and node.stats()[0]["used_bytes"] == 0
    x[inside] = 1
    assert x.active_cells()[1].sum() == 1  # What is used again is zero.
    node.deactivate_all()
    assert node.stats()[0]["cells"] == 0 and x[inside] == 0
    node.activate_cells([at, (0, 0, 0)])
    assert node.active_cells().tolist() == [[0, 0, 0], list(at)]


NESTED = {
    "under pointer": lambda: ti.root.pointer(ti.ij, 4).hash(ti.ij, 1 << 18),
    "under dense": lambda: ti.root.dense(ti.i, 4).hash(ti.ij, (1 << 18, 1 << 20)),
    "under bitmasked": lambda: ti.root.bitmasked(ti.j, 4).hash(ti.ij, (1 << 20, 1 << 18)),
    "under hash": lambda: ti.root.hash(ti.ij, 1 << 10).hash(ti.ij, 1 << 10),
    "over pointer": lambda: ti.root.hash(ti.ij, 1 << 17).pointer(ti.ij, 8),
    "over bitmasked": lambda: ti.root.hash(ti.ij, 1 << 17).bitmasked(ti.ij, 8),
    "over dynamic": lambda: ti.root.hash(ti.i, 1 << 20).dynamic(ti.j, 1 << 20, 4),
    "over dense over hash": lambda: ti.root.hash(ti.i, 1 << 18).dense(ti.i, 4).hash(ti.j, 1 << 20),
}


@pytest.mark.parametrize("nested", NESTED)
def test_nesting(arch, nested):
    x = ti.field(ti.i32)
    node = NESTED[nested]()
    node.place(x)
    outer = node.path_from_root()[1]
    assert x.shape == (1 << 20, 1 << 20)
    at = np.unique(scattered(400) >> 10, axis=0)
    if nested == "over dynamic":
        at[:, 1] >>= 12  # Lists are as long as the index says.

    @ti.kernel
    def write(at: ti.types.ndarray(dtype=ti.i32)):
        for k in range(at.shape[0]):
            x[at[k, 0], at[k, 1]] = k + 1

    @ti.kernel
    def sums() -> ti.types.vector(3, ti.i64):
        s = ti.Vector([0, 0, 0], ti.i64)
        for i, j in x:
            if x[i, j] > 0:
                s += ti.Vector([1, i, j])
        return s

    @ti.kernel
    def clear():
        for I in ti.grouped(outer):
            ti.deactivate(outer, I)

    at = np.unique(at, axis=0)
    for _ in range(2):
        write(at)
        assert sums().to_list() == [len(at), *at.sum(0)]
        assert [x[i, j] for i, j in at[:20].tolist()] == list(range(1, 21))
        if outer._kind in ("pointer", "bitmasked", "hash"):
            clear()
        else:
            outer.deactivate_all()
        assert sums().to_list() == [0, 0, 0]
        assert all(s["cells"] == 0 for s in outer.stats()), outer.stats()
        assert all(s["used_bytes"] == 0 for s in outer.stats())


def test_threads_activate_the_same_cells(cpu):
    x, n = ti.field(ti.i32), 1 << 18
    node = ti.root.hash(ti.ij, 1 << 20)
    node.place(x)

    @ti.kernel
    def count():
        for k in range(n):
            at = k % 5000
            x[at * 200 % 1048573, at * 31337 % 1048573] += 1

    for rounds in range(1, 4):
        count()
        assert node.stats()[0]["cells"] == 5000
        values = x.active_cells()[1]
        assert values.sum() == rounds * n and np.ptp(values) <= rounds


def test_python_threads(arch):
    x = ti.field(ti.i32)
    node = ti.root.hash(ti.i, WIDE)
    node.place(x)
    x[0] = 0
    at = np.unique(scattered(800)[:, 0])

    def write(first):
        for k in range(first, len(at), 4):
            x[int(at[k])] = k

    threads = [threading.Thread(target=write, args=(k,)) for k in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert (x.active_cells()[1][-len(at) :] == np.arange(len(at))).all()


def test_memory_comes_back(cpu):
    """A front of cells moves through the space."""
    x = ti.field(ti.i32)
    node = ti.root.hash(ti.ij, WIDE)
    node.place(x)

    @ti.kernel
    def move(step: ti.i32):
        for k in range(1000):
            x[(k * 7919 + step * 104729) % 1048576 * 1000, k * 1000003 % WIDE] = step

    @ti.kernel
    def forget(step: ti.i32):
        for i, j in x:
            if x[i, j] < step:
                ti.deactivate(node, [i, j])

    for step in range(60):
        move(step)
        forget(step)
        assert node.stats()[0]["cells"] == 1000
        if step == 3:
            held = node.stats()[0]["held_bytes"]
    assert node.stats()[0]["held_bytes"] <= 2 * held
    node.deactivate_all()
    assert node.stats()[0]["used_bytes"] == 0


def test_files(arch, tmp_path):
    def make(node):
        x = ti.field(ti.f32, name="x")
        node.place(x)
        return x

    x = make(ti.root.hash(ti.ij, (WIDE, WIDE)))
    x.set_cells(scattered(500), np.arange(500))
    ti.tools.save_sparse(tmp_path / "x.agl", x)
    y = make(ti.root.hash(ti.ij, 1 << 10).hash(ti.ij, 1 << 20))
    ti.tools.load_sparse(tmp_path / "x.agl", y)
    for a, b in zip(x.active_cells(), y.active_cells()):
        assert len(a) == len(b) == 500
        order = [np.lexsort(c.active_cells()[0].T) for c in (x, y)]
        assert (a[order[0]] == b[order[1]]).all()


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: ti.root.hash(ti.ij, 1 << 31), "2\\^62 cells"),
        (lambda: ti.root.hash(ti.i, (1 << 31) + 1), "more than 2\\^31 cells"),
        (lambda: ti.root.hash(ti.i, 1 << 70), "less than 2\\^32"),
        (lambda: ti.root.hash(ti.i, 1 << 20).dense(ti.i, 1 << 12), "more than 2\\^31 cells"),
        (lambda: ti.root.hash(ti.ij, (0, 4)), "at least 1"),
        (lambda: ti.root.dynamic(ti.i, 4).hash(ti.j, 4), "below a dynamic node"),
    ],
)
def test_too_large(cpu, make, message):
    with pytest.raises(ValueError, match=message):
        make().place(ti.field(ti.i32))
        ti.root.stats()


def test_dense_copies_of_huge_fields_are_refused(cpu):
    x = ti.field(ti.i32)
    ti.root.hash(ti.ij, 1 << 30).place(x)
    x[1, 2] = 3
    with pytest.raises((MemoryError, ValueError)):
        x.to_numpy()
    assert x[1, 2] == 3
