"""Sparse layouts seen from Python: elements, whole fields, deactivation, memory."""

import gc
import threading

import numpy as np
import pytest

import aerogel as ti

LAYOUTS = {
    "dense": lambda: ti.root.dense(ti.i, 24),
    "pointer": lambda: ti.root.pointer(ti.i, 6).dense(ti.i, 4),
    "bitmasked": lambda: ti.root.bitmasked(ti.i, 24),
    "pointer pointer": lambda: ti.root.pointer(ti.i, 3).pointer(ti.i, 2).dense(ti.i, 4),
    "dense bitmasked": lambda: ti.root.dense(ti.i, 2).bitmasked(ti.i, 12),
    "pointer bitmasked": lambda: ti.root.pointer(ti.i, 2).bitmasked(ti.i, 12),
    "dynamic": lambda: ti.root.dynamic(ti.i, 24, chunk_size=3),
    "hash": lambda: ti.root.hash(ti.i, 24),
    "hash dense": lambda: ti.root.hash(ti.i, 6).dense(ti.i, 4),
    "pointer hash": lambda: ti.root.pointer(ti.i, 2).hash(ti.i, 12),
    "hash pointer": lambda: ti.root.hash(ti.i, 3).pointer(ti.i, 8),
}


@pytest.fixture(params=LAYOUTS)
def layout(request):
    return LAYOUTS[request.param]


def cells(tree):
    return [s["cells"] for s in tree.stats()]


def test_elements(arch, layout):
    x = ti.field(ti.i32)
    layout().place(x)
    assert [x[k] for k in range(24)] == [0] * 24
    model = np.zeros(24, np.int32)
    for k in (5, 23, 0, 6, 5):
        x[k] = model[k] = 100 + k
    assert [x[k] for k in range(24)] == model.tolist()
    assert (x.to_numpy() == model).all()
    for k in (24, -1):
        with pytest.raises(IndexError):
            x[k]
        with pytest.raises(IndexError):
            x[k] = 1


def test_reading_activates_nothing(arch):
    x, y = ti.field(ti.f32), ti.field(ti.f32)
    block = ti.root.pointer(ti.ij, (4, 2))
    block.bitmasked(ti.ij, 8).place(x)
    ti.root.dynamic(ti.i, 10, 2).place(y)
    assert x[31, 15] == 0 and y[9] == 0 and x.to_numpy().sum() == 0 and str(y)
    assert cells(ti.root if not ti.root.finalized else block) == [0, 0]
    x[31, 15] = 1
    x[30, 15] = 2
    assert cells(block) == [1, 2]
    y[6] = 3
    assert cells(y.parent()) == [7]
    assert y.to_numpy().tolist() == [0] * 6 + [3, 0, 0, 0]


def test_two_axes_and_several_fields(arch):
    x, y, z = ti.field(ti.f64), ti.field(ti.i8), ti.field(ti.i32)
    block = ti.root.pointer(ti.ij, 4)
    inner = block.dense(ti.ij, (2, 3))
    inner.place(x, y)
    block.place(z)
    assert x.shape == (8, 12) and z.shape == (4, 4) and inner.shape == (8, 12)
    a = np.zeros((8, 12))
    for i, j in [(0, 0), (7, 11), (3, 5), (3, 6)]:
        x[i, j] = a[i, j] = i + j / 8
        y[i, j] = i
    assert (x.to_numpy() == a).all()
    assert y[3, 6] == 3 and z[1, 2] == 0
    assert cells(block) == [4]
    z[1, 2] = 5  # The cell that holds x[3, 6].
    assert cells(block) == [4] and z.to_numpy().sum() == 5


def test_vectors_and_offsets(arch):
    v = ti.Vector.field(2, ti.f32)
    block = ti.root.pointer(ti.i, 8)
    block.dense(ti.i, 2).place(v, offset=-4)
    v[-3] = [1, 2]
    v[5][1] = 3
    assert v[-3].to_list() == [1, 2] and v[5].to_list() == [0, 3] and v[11].to_list() == [0, 0]
    assert cells(block) == [2]
    a = np.zeros((16, 2), np.float32)
    a[1], a[9] = [1, 2], [0, 3]
    assert (v.to_numpy() == a).all()
    # Only what is active is set: elements 0 and 1, 8 and 9.
    v.from_numpy(np.arange(32, dtype=np.float32).reshape(16, 2))
    a = np.zeros((16, 2), np.float32)
    a[:2], a[8:10] = [[0, 1], [2, 3]], [[16, 17], [18, 19]]
    assert (v.to_numpy() == a).all()
    v.fill(6)
    assert (v.to_numpy() == 6 * (a.sum(1, keepdims=True) > 0)).all()
    v.fill([1, 2])
    assert v[-4].to_list() == [1, 2] and v[0].to_list() == [0, 0]
    with pytest.raises(IndexError):
        v[12]

    m = ti.Matrix.field(2, 2, ti.i32)
    ti.root.bitmasked(ti.j, 3).bitmasked(ti.i, 2).place(m)
    m[1, 2] = [[1, 2], [3, 4]]
    assert m.to_numpy()[1, 2].tolist() == [[1, 2], [3, 4]] and m.to_numpy().sum() == 10
    assert m.get_scalar_field(1, 0)[1, 2] == 3


def test_whole_fields(arch):
    n = 12
    ones = {"pointer": [4, 5, 6, 7], "bitmasked": [5], "dynamic": [0, 1, 2, 3, 4, 5]}
    makers = {
        "pointer": lambda: ti.root.pointer(ti.i, 3).dense(ti.i, 4),
        "bitmasked": lambda: ti.root.bitmasked(ti.i, n),
        "dynamic": lambda: ti.root.dynamic(ti.i, n, 1),
    }
    for kind, make in makers.items():
        x = ti.field(ti.i32)
        make().place(x)
        x[5] = 1
        x.fill(7)
        expected = np.zeros(n, np.int32)
        expected[ones[kind]] = 7
        assert (x.to_numpy() == expected).all(), kind
        x.from_numpy(np.arange(1, n + 1))
        expected[ones[kind]] = np.arange(1, n + 1)[ones[kind]]
        assert (x.to_numpy() == expected).all(), kind
        # A copy of a whole field makes all elements active.
        y = ti.field(ti.f32, shape=n)
        y.from_numpy(np.arange(n) * 2)
        x.copy_from(y)
        assert (x.to_numpy() == np.arange(n) * 2).all(), kind
        x.fill(3)
        assert (x.to_numpy() == 3).all(), kind
        y.copy_from(x)
        assert (y.to_numpy() == 3).all()


def test_deactivate_all(arch):
    x, y, z = (ti.field(ti.i32) for _ in range(3))
    outer = ti.root.pointer(ti.i, 4)
    inner = outer.bitmasked(ti.i, 8)
    inner.place(x)
    rows = ti.root.dense(ti.i, 3)
    lists = rows.dynamic(ti.j, 20, 4)
    lists.place(y)
    rows.place(z)

    def write():
        for k in range(32):
            x[k] = k + 1
        for k in range(3):
            y[k, 10 * k % 20] = z[k] = 1

    write()
    assert cells(outer) == [4, 32] and cells(lists) == [1 + 11 + 1]
    # Cell 10 lies in the second chunk, and the cells of the first one are active too.
    assert (outer._num_dynamically_allocated, lists._num_dynamically_allocated) == (4, 4)
    inner.deactivate_all()
    assert cells(outer) == [4, 0] and x.to_numpy().sum() == 0
    write()
    outer.deactivate_all()
    assert cells(outer) == [0, 0] and x.to_numpy().sum() == 0 and cells(lists) == [13]
    write()
    # A dense node passes it on to what is below, and keeps its own.
    rows.deactivate_all()
    assert cells(lists) == [0] and y.to_numpy().sum() == 0 and z.to_numpy().sum() == 3
    assert cells(outer) == [4, 32]
    for deactivate in (ti.root.deactivate_all, ti.deactivate_all_snodes):
        write()
        deactivate()
        assert cells(outer) == [0, 0] and cells(lists) == [0]
        assert x.to_numpy().sum() == 0 and z.to_numpy().sum() == 3
    # What is used again is zero.
    x[9] = 5
    assert x.to_numpy().sum() == 5


def test_builders(arch):
    builder = ti.FieldsBuilder()
    x, y = ti.field(ti.i32), ti.field(ti.i32)
    builder.pointer(ti.i, 4).dense(ti.i, 4).place(x)
    builder.dynamic(ti.i, 8, 2).place(y)
    tree = builder.finalize()
    x[5], y[3] = 1, 2
    assert [s["kind"] for s in tree.stats()] == ["pointer", "dynamic"]
    assert cells(tree) == [1, 4]
    builder.deactivate_all()
    assert cells(tree) == [0, 0] and x[5] == 0 and y[3] == 0


def test_nodes_describe_themselves(arch):
    x = ti.field(ti.f32)
    outer = ti.root.pointer(ti.i, 4)
    inner = outer.bitmasked(ti.ij, (2, 3))
    inner.place(x)
    assert str(outer) == "ti.root => pointer [4]" and repr(outer).startswith("<ti.SNode of type pointer>")
    assert str(x.snode) == "ti.root => pointer [4] => bitmasked [8, 3] => place [8, 3]"
    assert x.snode.parent() is inner and x.parent(2) is outer and outer.parent(2) is None
    assert outer.shape == (4,) and inner.num_dims == 2 and x.snode.shape == (8, 3)
    x[0, 0] = 1
    (stats, _) = outer.stats()
    assert stats["cells"] == 1 and stats["used_bytes"] == outer._cell_size_bytes
    assert stats["held_bytes"] >= stats["used_bytes"]


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda: ti.root.pointer(ti.i, 0), "at least 1"),
        (lambda: ti.root.bitmasked(ti.ijk, (4, 4)), "3 axes need 3"),
        (lambda: ti.root.pointer(ti.i, 2.5), "integer"),
        (lambda: ti.root.dynamic(ti.ij, (4, 4)), "one axis"),
        (lambda: ti.root.dynamic(ti.i, 8, 0), "a chunk must be at least 1"),
        (lambda: ti.root.dense(ti.i, 4).dynamic(ti.i, 4), "divides already"),
        (lambda: ti.root.dynamic(ti.i, 4).pointer(ti.j, 4), "below a dynamic node"),
    ],
)
def test_wrong_nodes(cpu, make, error):
    with pytest.raises((ValueError, TypeError), match=error):
        make()


def test_threads_make_the_same_cells(arch):
    x = ti.field(ti.i32)
    outer = ti.root.pointer(ti.i, 16)
    outer.pointer(ti.i, 8).dense(ti.i, 8).place(x)
    x[0] = 0

    def write(first):
        for k in range(first, 1024, 4):
            x[k] = k

    threads = [threading.Thread(target=write, args=(k,)) for k in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert (x.to_numpy() == np.arange(1024)).all()
    assert cells(outer) == [16, 128]


def test_a_destroyed_tree(arch):
    def mapped():
        with open("/proc/self/statm") as f:
            return int(f.read().split()[0]) * 4096

    before, live = None, None
    for k in range(500):
        builder = ti.FieldsBuilder()
        x, y = ti.field(ti.i32), ti.field(ti.i32)
        node = builder.pointer(ti.ij, 64)
        node.dense(ti.ij, 16).place(x)
        builder.dynamic(ti.i, 1 << 20, 32).place(y)
        tree = builder.finalize()
        x[1000, 3], y[100] = k, k
        assert x[1000, 3] == k and y[100] == k
        tree.destroy()
        for use in (
            lambda: x[1000, 3],
            lambda: x.fill(1),
            lambda: x.to_numpy(),
            lambda: node.deactivate_all(),
            lambda: tree.stats(),
        ):
            with pytest.raises(ti.AerogelRuntimeError, match="no longer exists"):
                use()
        with pytest.raises(ti.AerogelRuntimeError, match="no longer exists"):
            y[0] = 1
        if k == 5:
            gc.collect()
            before, live = mapped(), ti._native.live_bytes()
    gc.collect()
    # One tree has gigabytes of addresses.
    assert mapped() < before + (1 << 30) and ti._native.live_bytes() == live


def test_too_much_memory(arch):
    x = ti.field(ti.u8)
    node = ti.root.pointer(ti.i, 8)
    node.dense(ti.ij, (1 << 14, 1 << 31)).place(x)
    assert x[5, 7] == 0
    with pytest.raises(MemoryError):
        x[5, 7] = 1
    assert x[5, 7] == 0 and cells(node) == [0]


def test_a_swap_that_fails_activates_as_well(arch):
    x = ti.field(ti.i32)
    block = ti.root.bitmasked(ti.i, 8)
    block.place(x)

    @ti.kernel
    def swap() -> ti.i32:
        return ti.atomic_cas(x[3], 5, 9)

    @ti.kernel
    def active(i: ti.i32) -> ti.i32:
        return ti.is_active(block, [i])

    assert swap() == 0
    assert [active(i) for i in range(8)] == [0, 0, 0, 1, 0, 0, 0, 0]
    assert x[3] == 0


def test_components_are_placed_one_by_one(arch):
    v = ti.Vector.field(2, ti.f32)
    m = ti.Matrix.field(2, 2, ti.i32)
    ti.root.dense(ti.i, 4).place(v.get_scalar_field(1))
    ti.root.pointer(ti.i, 4).place(v.get_scalar_field(0))
    block = ti.root.pointer(ti.i, 4)
    parts = [m.get_scalar_field(k, l) for k in range(2) for l in range(2)]
    for part in parts:
        block.dense(ti.i, 2).place(part, offset=-3)

    @ti.kernel
    def double():
        for i in m:
            m[i] = 2 * m[i]

    v[1] = [1.0, 2.0]
    m[-3] = [[1, 2], [3, 4]]
    double()
    assert v.to_numpy().tolist() == [[0, 0], [1, 2], [0, 0], [0, 0]]
    assert m.shape == (8,) and m[-3].to_list() == [[2, 4], [6, 8]]
    assert [part[-3] for part in parts] == [2, 4, 6, 8]
    parts[2][4] = 5
    assert m[4].to_list() == [[0, 0], [5, 0]]


def test_components_that_do_not_make_a_field(arch):
    v, w = ti.Vector.field(2, ti.f32), ti.Vector.field(2, ti.f32)
    part = v.get_scalar_field(0)
    assert v.get_scalar_field(0) is part
    with pytest.raises(ValueError, match="no such component"):
        v.get_scalar_field(2)
    ti.root.dense(ti.i, 4).place(part)
    with pytest.raises(RuntimeError, match="placed already"):
        ti.root.dense(ti.i, 4).place(part)
    with pytest.raises(RuntimeError, match="placed already"):
        ti.root.dense(ti.i, 4).place(v)
    with pytest.raises(RuntimeError, match="not placed"):
        v[0] = [1.0, 2.0]
    builder = ti.FieldsBuilder()
    builder.dense(ti.i, 4).place(w.get_scalar_field(0))
    builder.dense(ti.i, 5).place(w.get_scalar_field(1))
    with pytest.raises(ValueError, match="different shapes"):
        builder.finalize()


def test_functions_of_nodes_take_the_indices_of_a_field(arch):
    x = ti.field(float)
    cells = ti.root.bitmasked(ti.i, 64)
    cells.place(x, offset=-32)

    @ti.kernel
    def k() -> ti.types.vector(4, int):
        x[0] = 1
        ti.activate(x, [5])
        ti.activate(x, [-32])
        ti.deactivate(x, [-32])
        return ti.Vector(
            [ti.is_active(x, [0]), ti.is_active(x, [5]), ti.is_active(x, [-32]), ti.is_active(cells, [37])]
        )

    assert k().to_list() == [1, 1, 0, 1]
    assert sorted(int(i) for (i,) in x.active_cells()[0]) == [0, 5]


def test_the_text_of_a_field_larger_than_memory(cpu):
    x = ti.field(float)
    ti.root.pointer(ti.ijk, 512).dense(ti.ijk, 8).place(x)
    x[1, 2, 3] = 4
    assert str(x) == "<ti.field of shape (4096, 4096, 4096): too large to be shown whole>"
