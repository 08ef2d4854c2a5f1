"""Fields from Python: layouts, elements, copies."""

import gc

import numpy as np
import pytest

import aerogel as ti

TYPES = [ti.u1, ti.i8, ti.i16, ti.i32, ti.i64, ti.u8, ti.u16, ti.u32, ti.u64, ti.f16, ti.f32, ti.f64]


def place(layout, x):
    """The same 6 by 8 field in many layouts."""
    if layout == "plain":
        ti.root.dense(ti.ij, (6, 8)).place(x)
    elif layout == "nested":
        ti.root.dense(ti.i, 6).dense(ti.j, 8).place(x)
    elif layout == "column":
        ti.root.dense(ti.j, 8).dense(ti.i, 6).place(x)
    elif layout == "blocked":
        ti.root.dense(ti.ij, (3, 2)).dense(ti.ij, (2, 4)).place(x)
    elif layout == "deep":
        ti.root.dense(ti.i, 3).dense(ti.j, 2).dense(ti.ij, (2, 2)).dense(ti.j, 2).place(x)
    elif layout == "interleaved":
        y = ti.field(ti.f64)
        ti.root.dense(ti.ij, (6, 8)).place(x, y)
    elif layout == "offset":
        ti.root.dense(ti.ij, (6, 8)).place(x, offset=(-3, 5))


LAYOUTS = ["plain", "nested", "column", "blocked", "deep", "interleaved", "offset"]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [ti.f32, ti.i16], ids=str)
def test_copies_keep_the_order_of_indices(cpu, rng, layout, dtype):
    x = ti.field(dtype)
    place(layout, x)
    a = rng.integers(-100, 100, (6, 8)).astype(x.to_numpy().dtype)
    x.from_numpy(a)
    assert x.shape == (6, 8)
    assert (x.to_numpy() == a).all()
    first = (-3, 5) if layout == "offset" else (0, 0)
    assert x[first[0] + 4, first[1] + 7] == a[4, 7]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_kernel_runs_on_any_layout(arch, layout):
    x = ti.field(ti.i32)
    place(layout, x)

    @ti.kernel
    def number():
        for i, j in x:
            x[i, j] = 100 * i + j

    number()
    lo_i, lo_j = (-3, 5) if layout == "offset" else (0, 0)
    i, j = np.meshgrid(np.arange(6) + lo_i, np.arange(8) + lo_j, indexing="ij")
    assert (x.to_numpy() == 100 * i + j).all()


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_every_scalar_type(cpu, dtype):
    x = ti.field(dtype, 5)
    x[2] = 1
    assert x[2] == 1 and x[1] == 0
    assert x.to_numpy().sum() == 1
    x.fill(1)
    assert (x.to_numpy() == 1).all()
    assert x.dtype is dtype


def test_extremes_survive(cpu):
    for dtype, value in [(ti.i64, -(2**63)), (ti.u64, 2**64 - 1), (ti.i8, -128), (ti.f64, 1e300), (ti.f32, 0.5)]:
        x = ti.field(dtype, ())
        x[None] = value
        assert x[None] == value


@pytest.mark.parametrize("layout", [ti.Layout.AOS, ti.Layout.SOA], ids=str)
def test_matrix_fields(arch, rng, layout):
    m = ti.Matrix.field(2, 3, ti.f32, (4, 5), layout=layout)
    a = rng.random((4, 5, 2, 3)).astype(np.float32)
    m.from_numpy(a)
    assert (m.to_numpy() == a).all()
    assert m[3, 4][1, 2] == a[3, 4, 1, 2]

    @ti.kernel
    def double():
        for I in ti.grouped(m):
            m[I] = 2 * m[I]

    double()
    assert np.allclose(m.to_numpy(), 2 * a)


def test_elements_write_through(cpu):
    v = ti.Vector.field(3, ti.f32, 4)
    v[1] = [1, 2, 3]
    v[1].y = 7
    v[1][2] = 9
    v[2].xz = [4, 5]
    assert v[1].to_list() == [1, 7, 9]
    assert v[2].to_list() == [4, 0, 5]
    assert isinstance(v[1], ti.Vector)
    v.fill(2)
    assert (v.to_numpy() == 2).all()
    v.fill(ti.Vector([1, 2, 3]))
    assert v[3].to_list() == [1, 2, 3]


def test_order(cpu, rng):
    a = rng.random((3, 5)).astype(np.float32)
    x = ti.field(ti.f32, (3, 5), order="ji")
    x.from_numpy(a)
    assert (x.to_numpy() == a).all()
    for order, message in [("ik", "Invalid axis k"), ("ii", "must be different"), ("i", "must be the same")]:
        with pytest.raises(ti.TaichiSyntaxError, match=message):
            ti.field(ti.f32, (3, 5), order=order)


def test_scalar_field_of_a_component(cpu):
    v = ti.Vector.field(2, ti.f32, 3)
    y = v.get_scalar_field(1)
    y[2] = 5
    assert v[2].to_list() == [0, 5]


def test_fields_after_kernels(arch):
    x = ti.field(ti.i32, 4)

    @ti.kernel
    def one():
        for i in x:
            x[i] = i

    one()
    y = ti.field(ti.i32)
    ti.root.dense(ti.i, 4).place(y)

    @ti.kernel
    def two():
        for i in y:
            y[i] = x[i] + 1

    two()
    assert y.to_numpy().tolist() == [1, 2, 3, 4]


def test_copy_from(cpu):
    x, y = ti.field(ti.f32, (2, 3)), ti.field(ti.f32, (2, 3), order="ji")
    y.from_numpy(np.arange(6, dtype=np.float32).reshape(2, 3))
    x.copy_from(y)
    assert (x.to_numpy() == y.to_numpy()).all()


@pytest.mark.parametrize("index", [(6, 0), (0, 8), (-1, 0), (0, -1)])
def test_out_of_range(cpu, index):
    x = ti.field(ti.f32, (6, 8))
    with pytest.raises(ti.TaichiIndexError, match="out of range"):
        x[index]
    with pytest.raises(IndexError, match="out of range"):
        x[index] = 1


def test_wrong_indices(cpu):
    x = ti.field(ti.f32, (6, 8))
    with pytest.raises(IndexError, match="1 index"):
        x[1]
    with pytest.raises(TypeError, match="slicing"):
        x[1:2, 0]
    with pytest.raises(TypeError):
        x[1.5, 0]


def test_not_placed(cpu):
    x = ti.field(ti.f32)
    with pytest.raises(RuntimeError, match="not placed"):
        x[0]
    ti.root.dense(ti.i, 2).place(x)
    assert x[0] == 0
    with pytest.raises(RuntimeError, match="placed already"):
        ti.root.dense(ti.i, 2).place(x)


def test_reset_ends_fields(cpu):
    x = ti.field(ti.f32, 4)

    @ti.kernel
    def touch():
        x[0] = 1

    touch()
    ti.reset()
    for use in (lambda: x[0], x.to_numpy, lambda: x.fill(1), lambda: x.from_numpy(np.zeros(4, np.float32))):
        with pytest.raises(ti.TaichiRuntimeError, match="no longer exists"):
            use()
    with pytest.raises(ti.TaichiRuntimeError, match="init"):
        touch()
    ti.init(arch=ti.cpu, log_level="error")
    with pytest.raises(RuntimeError, match="no longer exists"):
        touch()


def test_destroy(cpu):
    builder = ti.FieldsBuilder()
    x = ti.field(ti.f32)
    builder.dense(ti.i, 4).place(x)
    tree = builder.finalize()
    x[1] = 2
    tree.destroy()
    with pytest.raises(RuntimeError, match="no longer exists"):
        x[1]


def test_before_init():
    ti.reset()
    with pytest.raises(ti.TaichiRuntimeError, match="ti.init"):
        ti.field(ti.f32, 4)


def test_memory_is_given_back(cpu):
    from aerogel import _native

    gc.collect()
    before = _native.live_bytes()
    for _ in range(200):
        x = ti.field(ti.f32, 10_000)
        x[0] = 1
    del x
    gc.collect()
    assert _native.live_bytes() == before


def test_too_large(cpu):
    x = ti.field(ti.f32, 4)
    x[1] = 3
    with pytest.raises(MemoryError):
        ti.field(ti.f64, (1 << 20, 1 << 20))
    assert x[1] == 3
    with pytest.raises(ValueError):
        ti.field(ti.f32, (0, 3))


def test_shapes_that_do_not_fit(cpu):
    x = ti.field(ti.f32, (2, 3))
    with pytest.raises(ValueError, match="does not match"):
        x.from_numpy(np.zeros((3, 3)))
    v = ti.Vector.field(2, ti.f32, 3)
    with pytest.raises(ValueError, match="components"):
        v[0] = [1, 2, 3]
    with pytest.raises(ti.TaichiSyntaxError):
        ti.field(ti.f32, 3, offset=(1, 2))


@pytest.mark.parametrize("shape", [(3,), (5,), (3, 3), (2, 3)])
def test_sums_into_vectors_lose_nothing(arch, shape):
    """Where vectors lie one behind the other, every other one begins in the middle of a word."""
    x = ti.field(ti.types.vector(*shape, ti.f32) if len(shape) == 1 else ti.types.matrix(*shape, ti.f32), shape=9)
    count = 40000 if arch == ti.cpu else 400

    @ti.kernel
    def scatter():
        zero = x[0] * 0
        for p in range(count):
            value = zero
            for k in ti.static(ti.grouped(ti.ndrange(*shape))):
                value[k] = k.sum() + 1
            x[p % 9] += value

    scatter()
    turns = np.bincount(np.arange(count) % 9, minlength=9)
    expected = 1.0 + np.indices(shape).sum(axis=0)
    assert (x.to_numpy() == turns.reshape(9, *[1] * len(shape)) * expected).all()


def test_a_gradient_is_placed_beside_its_field(arch):
    x, v = ti.field(ti.f32), ti.Vector.field(2, ti.f64)
    ti.root.dense(ti.i, 4).place(x, x.grad)
    ti.root.dense(ti.i, 4).place(v, v.dual)

    @ti.kernel
    def write():
        for i in x:
            x.grad[i] = i
            v.dual[i].y = 2

    write()
    assert x.grad.to_numpy().tolist() == [0, 1, 2, 3] and x.to_numpy().sum() == 0
    assert v.dual[3].to_list() == [0, 2]
    assert (x.dual, v.grad, x.grad.grad) == (None, None, None)


def test_a_gradient_that_is_looked_at_and_not_placed(arch):
    x, n = ti.field(ti.f32, name="x"), ti.field(ti.i32)
    gradient = x.grad
    assert n.grad is None and not gradient._is_placed()
    ti.root.dense(ti.i, 4).place(x, n)
    x[2] = 1
    assert x[2] == 1
    with pytest.raises(
        ti.TaichiRuntimeError, match=r"the field `x.grad` is not placed: make the field with needs_grad"
    ):
        gradient[0]


def test_the_text_of_a_field_that_is_gone(arch):
    x, s = ti.field(ti.f32, 4), ti.Struct.field({"a": ti.f32}, shape=4)
    ti.reset()
    assert str(x) == "<ti.field: its layout is gone>" and "gone" in str(s)
    ti.init(arch=arch, log_level="error")


def test_a_shape_that_is_a_field(arch):
    y = ti.field(ti.f32, 4)
    with pytest.raises(TypeError, match="a shape is an integer or a tuple of integers"):
        ti.field(float, y)


def test_what_is_no_type_and_no_shape(cpu):
    for make in (lambda: ti.field(3, 4), lambda: ti.field("abc", 4), lambda: ti.Vector.field(3, 3, 4)):
        # Taichi raises ValueError; of what is no type it is a TypeError as well.
        for kind in (ValueError, TypeError):
            with pytest.raises(kind, match="is not a scalar type"):
                make()
    for shape in ("ab", (2.5,), (-1,)):
        with pytest.raises(ti.TaichiRuntimeError, match="is not a valid shape for ndarray"):
            ti.ndarray(ti.f32, shape)


@pytest.mark.parametrize("make", [ti.field, ti.ndarray])
def test_an_integer_element_takes_no_float_from_python(cpu, make):
    x, u = make(ti.i32, 3), make(ti.u1, 3)
    for wrong in (2.9, np.float64(2.5), float("nan"), 2**70):
        with pytest.raises(TypeError):
            x[0] = wrong
        with pytest.raises(TypeError):
            u[0] = wrong
    for right in (7, np.uint8(7), np.array(7), np.int64(7), np.float32(7.9), np.array(7.5)):
        x[0] = right
        assert x[0] == 7
        x[0] = 0
    for right in (True, np.bool_(True), 1):
        u[0] = right
        assert u[0] == 1
        u[0] = 0
    with pytest.raises(TypeError):
        x[1] = 2**33 + 5


def test_an_integer_vector_takes_no_float_from_python(cpu):
    for x in (ti.Vector.field(2, ti.i32, 3), ti.Vector.ndarray(2, ti.i32, 3)):
        with pytest.raises(TypeError, match="takes an integer, not 1.5"):
            x[0] = [1.5, 2]
        with pytest.raises(TypeError):
            x[0] = ti.math.vec2(1, 2)
        with pytest.raises(TypeError):
            x[0][1] = 1.5
        with pytest.raises(TypeError):
            x[0].y = 1.5
        assert x[0].to_list() == [0, 0]
        x[0] = np.array([1, 2], np.uint8)
        assert x[0].to_list() == [1, 2]


def test_extents_that_a_layout_cannot_have(cpu):
    for wrong in (
        lambda: ti.field(ti.f32, 0),
        lambda: ti.field(ti.f32, -1),
        lambda: ti.field(ti.f32, (3, 0)),
        lambda: ti.field(ti.f32, (1,) * 13),
        lambda: ti.root.dense(ti.i, 0),
        lambda: ti.root.dense(ti.i, -3),
        lambda: ti.root.dense(ti.i, (4, 2)),
        lambda: ti.Vector.field(-1, ti.f32, 3),
        lambda: ti.Matrix.field(2, 0, ti.f32, 3),
    ):
        for kind in (ti.TaichiRuntimeError, ValueError):
            with pytest.raises(kind):
                wrong()
    with pytest.raises(TypeError):
        ti.Vector.field(2.5, ti.f32, 3)


def test_a_type_for_each_component(cpu):
    v = ti.Vector.field(2, [ti.i32, ti.i32], 4)
    v[1] = [3, 4]
    assert v.dtype == ti.i32 and v[1].to_list() == [3, 4]
    m = ti.Matrix.field(2, 2, [[ti.f64, ti.f64], [ti.f64, ti.f64]], 4)
    assert m.dtype == ti.f64
    with pytest.raises(ti.TaichiRuntimeError, match="need one dtype for computations"):
        ti.Vector.field(2, [ti.i32, ti.f32], 4)
    with pytest.raises(ValueError, match="2 components need as many types, got 1"):
        ti.Vector.field(2, [ti.i32], 4)


def test_matrices_of_one_column_are_as_vectors_in_arrays(arch):
    x = ti.Matrix.field(2, 1, ti.f32, shape=3)
    for shape in ((3, 2), (3, 2, 1)):
        values = np.random.default_rng(1).integers(0, 100, shape).astype(np.float32)
        x.from_numpy(values)
        assert x.to_numpy().shape == (3, 2) and (x.to_numpy() == values.reshape(3, 2)).all()
        assert x.to_numpy(keep_dims=True).shape == (3, 2, 1)
        assert x[1][1, 0] == values.reshape(3, 2)[1, 1]
    with pytest.raises(ValueError, match="does not match"):
        x.from_numpy(np.zeros((2, 3), np.float32))
    assert ti.Matrix.field(1, 2, ti.f32, shape=3).to_numpy().shape == (3, 1, 2)


LAYOUTS = {
    "dense": lambda: [
        ti.root.dense(ti.i, 3).dense(ti.i, 4),
        ti.root.dense(ti.i, 12),
        ti.root.dense(ti.i, 2).dense(ti.i, 6),
    ],
    "sparse": lambda: [ti.root.pointer(ti.i, 3).dense(ti.i, 4), ti.root.pointer(ti.i, 12), ti.root.dense(ti.i, 12)],
    "mixed": lambda: [ti.root.dense(ti.i, 12), ti.root.bitmasked(ti.i, 4).dense(ti.i, 3), ti.root.dense(ti.i, 12)],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_components_in_nodes_of_different_shapes(arch, layout):
    v = ti.Vector.field(3, ti.i64)
    for k, node in enumerate(LAYOUTS[layout]()):
        node.place(v.get_scalar_field(k))

    @ti.kernel
    def add():
        for i in range(12):
            v[i] += ti.Vector([i, 10 * i, 100 * i])
            v[i][i % 3] += 1

    add()
    want = np.arange(12)[:, None] * [1, 10, 100]
    want[np.arange(12), np.arange(12) % 3] += 1
    assert (v.to_numpy() == want).all()


@pytest.mark.parametrize("n_threads", [1, 2, 4])
@pytest.mark.parametrize("layout", [ti.Layout.AOS, ti.Layout.SOA])
def test_what_threads_share_in_copying_is_whole(layout, n_threads):
    ti.init(arch=ti.cpu, cpu_max_num_threads=n_threads)
    n = (317, 211)
    x = ti.Vector.field(3, ti.f32, n, layout=layout)
    wide = ti.field(ti.f64)
    ti.root.dense(ti.j, n[1]).dense(ti.i, n[0]).place(wide)

    @ti.kernel
    def touch():
        for i, j in wide:
            wide[i, j] += 1

    touch()
    numbers = np.random.default_rng(3).normal(size=(*n, 3)).astype(np.float32)
    x.from_numpy(numbers)
    assert np.array_equal(x.to_numpy(), numbers)
    wide.from_numpy(numbers[..., 1].astype(np.float64))
    assert np.array_equal(wide.to_numpy(), numbers[..., 1])
    x.fill([1.5, -2.0, 7.0])
    assert np.array_equal(x.to_numpy(), np.broadcast_to(np.float32([1.5, -2.0, 7.0]), (*n, 3)))
    wide.fill(-0.1)
    assert np.all(wide.to_numpy() == -0.1)
    array = ti.Vector.ndarray(3, ti.f32, n)
    array.fill(2.5)
    assert np.all(array.to_numpy() == 2.5)
    array.from_numpy(numbers)
    assert np.array_equal(array.to_numpy(), numbers)


@pytest.mark.parametrize(
    "dtype, value", [(ti.f32, 1.5), (ti.f64, -2.25), (ti.i32, 0x01020304), (ti.u8, 7), (ti.i16, 0)]
)
def test_large_fields_are_filled(dtype, value):
    ti.init(arch=ti.cpu)
    n = 3_000_001
    x, v = ti.field(dtype, shape=n), ti.Vector.field(3, dtype, shape=n)
    a = ti.ndarray(dtype, shape=n)
    for target in (x, a):
        target.fill(value)
        assert (target.to_numpy() == value).all()
    v.fill(ti.Vector([value, 1, 2]))
    assert (v.to_numpy() == [value, 1, 2]).all()
    # What lies beside it in the same tree stays.
    left, right = ti.field(dtype), ti.field(dtype)
    builder = ti.FieldsBuilder()
    for one in (left, x := ti.field(dtype), right):
        builder.dense(ti.i, n).place(one)
    builder.finalize()
    x.fill(value)
    assert (x.to_numpy() == value).all() and not left.to_numpy().any() and not right.to_numpy().any()
