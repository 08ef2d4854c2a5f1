"""`ti.ndarray`, what annotations ask of arrays, and memory that other packages share."""

import copy

import numpy as np
import pytest

import aerogel as ti


def test_python_side(arch):
    x = ti.ndarray(ti.i32, (2, 3))
    x.fill(4)
    y = copy.deepcopy(x)
    y[1, 2] = 7
    same = copy.copy(y)
    same[0, 0] = 1
    assert x.to_numpy().tolist() == [[4] * 3] * 2
    assert y.to_numpy().tolist() == [[1, 4, 4], [4, 4, 7]]
    x.copy_from(y)
    assert x.to_numpy().tolist() == y.to_numpy().tolist()
    x.from_numpy(np.full((2, 3), 1.7))
    assert x.to_numpy().tolist() == [[1] * 3] * 2
    assert (x.shape, x.element_shape, x.dtype, x.element_type, repr(x)) == ((2, 3), (), ti.i32, ti.i32, "<ti.ndarray>")
    z = ti.ndarray(ti.f32, ())
    z[None] = 2.5
    assert (z[None], z.shape) == (2.5, ())


def test_elements_of_vectors_and_matrices(arch):
    v = ti.Vector.ndarray(3, ti.f32, (2,))
    v[1] = [1, 2, 3]
    v[0].x = 5
    assert v.to_numpy().tolist() == [[5, 0, 0], [1, 2, 3]]
    with pytest.raises(TypeError):
        ti.Vector.ndarray(2, ti.i32, 0.0)
    assert (v.n, v.element_shape, repr(v)) == (3, (3,), "<3 Layout.AOS ti.Vector.ndarray>")
    v.fill(2)
    assert v[0].to_list() == [2, 2, 2]
    v.fill([3, 4, 5])
    assert v.to_numpy().tolist() == [[3, 4, 5]] * 2
    m = ti.Matrix.ndarray(2, 3, ti.i64, 4)
    m[3][1, 2] = 9
    m[2] = [[1, 2, 3], [4, 5, 6]]
    assert (m.n, m.m, m[3][1, 2], m[2].to_list()) == (2, 3, 9, [[1, 2, 3], [4, 5, 6]])


def test_elements_of_another_shape_are_refused(arch):
    array, field = ti.Matrix.ndarray(2, 3, ti.i32, 2), ti.Matrix.field(2, 3, ti.i32, 2)
    for x in (array, field):
        x.fill(1)
        with pytest.raises(ValueError, match="an element is a matrix of 2x3, got a matrix of 3x2"):
            x.fill([[1, 2], [3, 4], [5, 6]])
        with pytest.raises(ValueError, match="an element has 6 components, got 2"):
            x.fill([1, 2])
        assert (x.to_numpy() == 1).all()
        x.fill(ti.Matrix([[1, 2, 3], [4, 5, 6]]))
        assert x.to_numpy().tolist() == [[[1, 2, 3], [4, 5, 6]]] * 2


def test_what_arrays_refuse(arch):
    x = ti.ndarray(ti.i32, (2, 3))
    with pytest.raises(TypeError, match="copy_from takes a ti.ndarray"):
        x.copy_from(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="Mismatch shape"):
        x.from_numpy(np.zeros((3, 2)))
    with pytest.raises(ti.TaichiRuntimeError, match="not a valid shape"):
        ti.ndarray(ti.i32, (0, 3))
    for dtype in (ti.types.struct(a=ti.f32), "what", ti.types.quant.int(5)):
        with pytest.raises(ti.TaichiRuntimeError, match="is not supported as ndarray element type"):
            ti.ndarray(dtype, 3)
    with pytest.raises(IndexError):
        x[1]
    with pytest.raises(IndexError):
        x[2, 0]


def clamped(ndim):
    @ti.kernel
    def read(a: ti.types.ndarray(ti.i32, ndim, boundary="clamp"), out: ti.types.ndarray(ti.i32, 1), by: ti.i64):
        for k in range(9):
            if ti.static(ndim == 1):
                out[k] = a[k - 4] + a[k * by]
            else:
                out[k] = a[k - 4, k]

    return read


def test_indices_outside_are_clamped(arch):
    a = np.arange(1, 4, dtype=np.int32)
    out = np.zeros(9, np.int32)
    clamped(1)(a, out, 10**9)
    assert out.tolist() == [2, 4, 4, 4, 4, 5, 6, 6, 6]
    b = np.arange(6, dtype=np.int32).reshape(2, 3)
    clamped(2)(b, out, 0)
    assert out.tolist() == [0, 1, 2, 2, 2, 5, 5, 5, 5]

    @ti.kernel
    def write(a: ti.types.ndarray(ti.types.vector(2, ti.i32), 1, boundary="clamp"), far: ti.i32):
        a[far] = [1, 2]
        a[-far].y += 3
        for i in range(-2, 8):
            a[i].x += 1

    v = ti.Vector.ndarray(2, ti.i32, 4)
    write(v, 100)
    assert v.to_numpy().tolist() == [[3, 3], [1, 0], [1, 0], [6, 2]]


def test_clamping_in_debug_mode(debug):
    a = np.arange(1, 4, dtype=np.int32)
    out = np.zeros(9, np.int32)
    clamped(1)(a, out, 1)
    assert out[0] == 2


def take(*args, **kwargs):
    @ti.kernel
    def k(a: ti.types.ndarray(*args, **kwargs)):
        pass

    return k


MISMATCHES = [
    (lambda: take(ti.f32, 1)(np.zeros(3)), ValueError, "an array of f32 is required, this one has f64"),
    (lambda: take(ti.f32, 1)(ti.ndarray(ti.i32, 3)), TypeError, "an array of f32 is required, this one has i32"),
    (lambda: take(ti.f32, 1)(np.zeros((2, 2), np.float32)), ValueError, "1 axes are required, the array has 2"),
    (lambda: take(ti.types.vector(3, ti.f32), 1)(np.zeros((4, 2), np.float32)), ValueError, r"\[3\].*\[4, 2\]"),
    (
        lambda: take(ti.types.vector(3, ti.f32), 1)(ti.Vector.ndarray(2, ti.f32, 4)),
        ValueError,
        r"\[3\].*these have \[2\]",
    ),
    (lambda: take(ti.f32, 1)(ti.Vector.ndarray(2, ti.f32, 4)), ValueError, r"of shape \[\] are required"),
    (
        lambda: take(element_dim=2)(ti.Vector.ndarray(2, ti.f32, 4)),
        ValueError,
        "with 2 axes are required, these have 1",
    ),
    (lambda: take(element_dim=2)(np.zeros(4)), ValueError, "the last 2 axes must be those of an element"),
    (lambda: take(element_shape=(3,))(ti.Vector.ndarray(2, ti.f32, 4)), ValueError, r"\[3\].*these have \[2\]"),
    (lambda: take(element_dim=1, element_shape=(2, 2)), ValueError, "2!=1"),
    (lambda: take(ti.types.vector(3, ti.f32), element_shape=(2,)), TypeError, "at the same time"),
    (lambda: take(field_dim=1), ValueError, "deprecated"),
    (lambda: take(element_dim=3), ValueError, "0, 1 or 2 axes"),
    (lambda: take(ndim=-1), ValueError, "from 0 to 12, not -1"),
    (lambda: take("what"), TypeError, "not a scalar type"),
    (lambda: take(ti.types.struct(a=ti.f32)), TypeError, "not a scalar type"),
    (lambda: take(ti.f32, 1, boundary="wrap"), ValueError, "Invalid boundary argument: wrap"),
    (lambda: take()(np.zeros(3, [("a", "i4"), ("b", "f4")])), TypeError, r"pass its members, such as array\['a'\]"),
    (lambda: take()(np.zeros(3, complex)), TypeError, "the dtype complex128, which kernels do not support"),
    (lambda: take()(np.zeros(3, ">f4")), TypeError, "the dtype >f4"),
    (lambda: take()(np.array(["a"])), TypeError, "the dtype <U1"),
    (lambda: take()([1, 2]), ti.TaichiRuntimeTypeError, "not a list"),
]


@pytest.mark.parametrize("case", range(len(MISMATCHES)))
def test_arrays_that_do_not_match_the_annotation(arch, case):
    call, error, message = MISMATCHES[case]
    with pytest.raises(error, match=message):
        call()


def test_an_annotation_of_axes_alone(arch):
    @ti.kernel
    def sum(a: ti.types.ndarray(element_dim=1)) -> ti.f32:
        total = 0.0
        for i in range(a.shape[0]):
            total += a[i].sum()
        return total

    assert sum(np.ones((4, 3), np.float32)) == 12
    assert sum(ti.Vector.ndarray(2, ti.f32, 4)) == 0


@pytest.mark.parametrize("array", [np.zeros(3, complex), np.array(["1", "2", "3"]), np.array([1, None, 2])], ids=str)
def test_what_is_copied_are_real_numbers(arch, array):
    for x in (ti.field(ti.f32, shape=3), ti.ndarray(ti.f32, 3)):
        with pytest.raises(TypeError, match="an array of real numbers is needed"):
            x.from_numpy(array)


@pytest.mark.parametrize("dtype", ["bool", ">i4", ">f8", "f2", "u8", "i1"])
def test_arrays_of_any_type_and_stride_are_copied(arch, dtype):
    array = np.array([[1, 0, 1, 0], [0, 1, 1, 1]], dtype)[:, ::-2]
    for x in (ti.field(ti.i16, shape=(2, 2)), ti.ndarray(ti.f32, (2, 2))):
        x.from_numpy(array)
        assert x.to_numpy().tolist() == array.tolist()


def test_column_major_arrays_are_copied_there_and_back(arch):
    a = np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3))

    @ti.kernel
    def double(a: ti.types.ndarray(ti.f32, 2), b: ti.types.ndarray(ti.f32, 2)):
        for i, j in a:
            a[i, j] = b[i, j] * 2

    out = np.zeros((2, 3), np.float32, order="F")
    double(out, a)
    assert out.tolist() == [[0, 2, 4], [6, 8, 10]]
    assert a.tolist() == [[0, 1, 2], [3, 4, 5]]
    a.setflags(write=False)
    double(out, a)
    with pytest.raises(ValueError, match="read-only"):
        double(a, out)


def test_column_major_arrays_that_share_memory(arch):
    @ti.kernel
    def two(a: ti.types.ndarray(ti.f32, 2), b: ti.types.ndarray(ti.f32, 2)):
        for i in range(3):
            a[i, 0] += 1.0
        for i in range(3):
            b[i, 1] += a[i, 0]

    once = np.zeros((3, 3), np.float32, order="F")
    two(once, once)
    assert once.tolist() == [[1, 1, 0]] * 3
    for a in (once, np.zeros((3, 3), np.float32)):
        before = a.copy()
        with pytest.raises(ValueError, match="`a` and `b` of kernel `two` share memory"):
            two(a, a.T)
        assert a.tolist() == before.tolist()

    @ti.kernel
    def read(a: ti.types.ndarray(ti.f32, 2), b: ti.types.ndarray(ti.f32, 2)) -> ti.f32:
        return a[0, 1] + b[0, 1]

    assert read(once, once.T) == 2


def test_dlpack_shares_memory_both_ways(arch):
    x = ti.ndarray(ti.f32, (2, 3))
    # What lies on a GPU comes home for NumPy first (test_gpu_exchange.py).
    there = np.from_dlpack(x) if x.__dlpack_device__() == (1, 0) else np.asarray(x)
    x[1, 2] = 7
    assert there[1, 2] == 7
    there = np.zeros((4, 3), np.float32)
    here = ti.from_dlpack(there)
    vectors = ti.from_dlpack(there, element_dim=1)

    @ti.kernel
    def write(a: ti.types.ndarray(ti.f32, 2), v: ti.types.ndarray(ti.types.vector(3, ti.f32), 1)):
        a[1, 0] = 5
        v[2] = [1, 2, 3]

    write(here, vectors)
    assert there.tolist() == [[0, 0, 0], [5, 0, 0], [1, 2, 3], [0, 0, 0]]
    assert (here.shape, vectors.shape, vectors.element_shape) == ((4, 3), (4,), (3,))
    there[3] = 9
    assert here[3, 1] == vectors[3][1] == 9
    del there
    assert here[3, 1] == 9
    assert x.__dlpack_device__() == (1, 0)


class Foreign:
    """An array of a package that speaks DLPack and nothing else."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **kwargs):
        return self._array.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


def test_arrays_of_other_packages(arch):
    array = np.arange(3, dtype=np.float64)

    @ti.kernel
    def total(a: ti.types.ndarray(ti.f64, 1)) -> ti.f64:
        sum = ti.f64(0)
        for i in a:
            sum += a[i]
        return sum

    assert total(Foreign(array)) == 3
    x = ti.field(ti.f64, shape=3)
    x.from_numpy(np.from_dlpack(Foreign(array)))
    assert np.asarray(x).tolist() == [0, 1, 2]


def test_what_cannot_be_shared(arch):
    with pytest.raises(TypeError, match="supports DLPack, not list"):
        ti.from_dlpack([1, 2])
    with pytest.raises(ValueError, match="C-contiguous"):
        ti.from_dlpack(np.zeros((4, 4))[:, 1])
    with pytest.raises(ti.TaichiRuntimeError, match="complex"):
        ti.from_dlpack(np.zeros(4, complex))
    with pytest.raises(ValueError, match="the array only 1"):
        ti.from_dlpack(np.zeros(4), element_dim=2)


def test_more_elements_than_32_bits_count(arch):
    rows, columns = 60_000, 50_000
    x = ti.field(ti.u8, shape=(rows, columns))

    @ti.kernel
    def write(i: ti.i32, j: ti.i32, n: ti.i64) -> ti.i64:
        x[i, j] = 7
        x[n // columns, n % columns] += 3
        return ti.cast(x[i, j], ti.i64)

    assert write(rows - 1, columns - 1, 2**31 + 5) == 7
    assert x[rows - 1, columns - 1] == 7
    i, j = divmod(2**31 + 5, columns)
    assert x[i, j] == 3
    long = ti.field(ti.u8, shape=3_000_000_000)
    long[2_999_999_999] = 9

    @ti.kernel
    def read(n: ti.i64) -> ti.i32:
        return ti.cast(long[n], ti.i32)

    assert read(2_999_999_999) == 9


@ti.kernel
def count_up(a: ti.types.ndarray(ti.f32, 1)):
    for i in a:
        a[i] += i + 1


VIEWS = {
    "step": lambda a: a[::3],
    "backwards": lambda a: a[::-1],
    "backwards with a step": lambda a: a[20:2:-4],
    "a column": lambda a: a.reshape(4, 6)[:, 2],
    "the diagonal": lambda a: a.reshape(4, 6)[:4, :4].diagonal(),
    "a member": lambda a: a.view([("x", "f4"), ("y", "f4"), ("z", "f4")])["y"],
    "empty": lambda a: a[5:5:2],
    "one": lambda a: a[5:6:2],
    "not aligned": lambda a: a.view(np.uint8)[1:9].view(np.float32),
}


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_is_changed_where_it_lies(arch, view):
    base, wanted = np.arange(24, dtype=np.float32), np.arange(24, dtype=np.float32)
    if view == "not aligned":
        base[:], wanted[:] = 0, 0
    a, b = VIEWS[view](base), VIEWS[view](wanted)
    if not a.flags.writeable:
        with pytest.raises(ValueError, match="read-only"):
            count_up(a)
        a.setflags(write=True)
        b.setflags(write=True)
    count_up(a)
    b += np.arange(len(b), dtype=np.float32) + 1
    assert base.tobytes() == wanted.tobytes()


def test_views_of_several_axes(arch):
    @ti.kernel
    def number(a: ti.types.ndarray(ti.i32, 3)):
        for i, j, k in a:
            a[i, j, k] = i * 100 + j * 10 + k

    base = np.zeros((4, 6, 8), np.int32)
    view = base.transpose(2, 0, 1)[::2, ::-1, 1:5:3]
    number(view)
    i, j, k = np.indices(view.shape)
    assert (view == i * 100 + j * 10 + k).all()
    assert np.count_nonzero(base) == view.size - 1

    @ti.kernel
    def norm(a: ti.types.ndarray(ti.types.vector(2, ti.f32), 1)) -> ti.f32:
        total = 0.0
        for i in range(a.shape[0]):
            total += a[i].norm()
        return total

    assert norm(np.arange(24, dtype=np.float32).reshape(4, 6)[:, ::3]) == pytest.approx(
        np.hypot([0, 6, 12, 18], [3, 9, 15, 21]).sum()
    )


def test_elements_that_share_memory_are_read_only(arch):
    @ti.kernel
    def total(a: ti.types.ndarray(ti.f32, 2)) -> ti.f32:
        s = 0.0
        for i, j in ti.ndrange(a.shape[0], a.shape[1]):
            s += a[i, j]
        return s

    @ti.kernel
    def clear(a: ti.types.ndarray(ti.f32, 2)):
        for i, j in a:
            a[i, j] = 0

    row = np.array([1, 2, 3], np.float32)
    wide = np.broadcast_to(row, (4, 3))
    assert total(wide) == 24
    with pytest.raises(ValueError, match="read-only"):
        clear(wide)
    for repeated in (
        np.lib.stride_tricks.as_strided(row, (4, 3), (0, 4)),
        np.lib.stride_tricks.as_strided(row, (2, 2), (4, 4)),
    ):
        total(repeated)
        with pytest.raises(ValueError, match="elements of the array for argument `a` share memory"):
            clear(repeated)
    assert row.tolist() == [1, 2, 3]


def test_views_of_one_array_that_do_not_meet(arch):
    @ti.kernel
    def add(a: ti.types.ndarray(ti.f32, 1), b: ti.types.ndarray(ti.f32, 1)):
        for i in a:
            a[i] += b[i]

    points = np.arange(12, dtype=np.float32).reshape(4, 3)
    add(points[:, 0], points[:, 1])
    assert points[:, 0].tolist() == [1, 7, 13, 19]
    halves = np.arange(16, dtype=np.float32).reshape(4, 4)
    add(halves[:, :2].reshape(-1)[::2], halves[:, 3])
    with pytest.raises(ValueError, match="`a` and `b` of kernel `add` share memory"):
        add(points[:, 0], points[::-1, 0])
    with pytest.raises(ValueError, match="share memory"):
        add(points[:, 0], points.reshape(-1))


def test_arrays_of_no_vectors(arch):
    @ti.kernel
    def count(x: ti.types.ndarray()) -> ti.i32:
        n = 0
        for I in ti.grouped(x):
            n += 1
        return n

    for x, shape in (
        (ti.Vector.ndarray(3, ti.f32, 0), (0, 3)),
        (ti.Matrix.ndarray(2, 3, ti.f32, (0, 2)), (0, 2, 2, 3)),
        (ti.Vector.ndarray(2, ti.f32, (4, 0), needs_grad=True), (4, 0, 2)),
    ):
        x.fill(1)
        x.from_numpy(np.zeros(shape, np.float32))
        assert x.to_numpy().shape == shape and count(x) == 0
    assert ti.Vector.ndarray(3, ti.f32, np.array([2, 4])).shape == (2, 4)
    for shape in (-1, (2, -3)):
        with pytest.raises(ti.TaichiRuntimeError, match="not a valid shape"):
            ti.Vector.ndarray(3, ti.f32, shape)


def test_arrays_that_may_not_be_written(arch):
    array = np.arange(4, dtype=np.float32)
    array.flags.writeable = False
    x = ti.from_dlpack(array)

    @ti.kernel
    def total(a: ti.types.ndarray(ti.f32, 1)) -> ti.f32:
        s = 0.0
        for i in a:
            s += a[i]
        return s

    @ti.kernel
    def fill(a: ti.types.ndarray(ti.f32, 1)):
        for i in a:
            a[i] = 1

    assert total(array) == total(x) == 6 and x[2] == 2
    for write in (lambda: fill(array), lambda: fill(x), lambda: x.__setitem__(0, 1), lambda: x.fill(1)):
        with pytest.raises(ValueError, match="read-only"):
            write()
    with pytest.raises(ValueError, match="read-only"):
        x.from_numpy(np.ones(4, np.float32))
    assert array.tolist() == [0, 1, 2, 3]


def test_arrays_of_jax(cpu):
    jnp = pytest.importorskip("jax.numpy")
    given = jnp.arange(4.0)

    @ti.kernel
    def total(a: ti.types.ndarray(ti.f32, 1)) -> ti.f32:
        s = 0.0
        for i in a:
            s += a[i]
        return s

    x, y = ti.field(ti.f32, 4), ti.ndarray(ti.f32, 4)
    x.from_numpy(given)
    y.from_numpy(given)
    assert total(given) == total(ti.from_dlpack(given)) == 6
    assert jnp.from_dlpack(x).tolist() == jnp.asarray(x).tolist() == jnp.from_dlpack(y).tolist() == [0, 1, 2, 3]


def test_arrays_of_vectors_keep_their_type(arch):
    """As Taichi 1.7.4: of the annotation `vec3` only the shape binds the arrays of others, not the type."""

    @ti.kernel
    def run(x: ti.types.ndarray(dtype=ti.math.vec3), y: ti.types.ndarray()):
        for i in range(x.shape[0]):
            y[i] = x[i].sum()

    y = np.zeros(2)
    run(np.array([[1.0, 2, 3], [1, 1e-12, 0]]), y)
    assert y.tolist() == [6, 1 + 1e-12]
    run(np.array([[2**40, 2, 3], [4, 5, 6]]), y)
    assert y.tolist() == [2**40 + 5, 15]
    with pytest.raises(ValueError, match=r"\[3\]"):
        run(np.zeros((2, 4)), y)
    array = ti.Vector.ndarray(3, ti.f64, 2)
    with pytest.raises(TypeError, match="an array of f32 is required, this one has f64"):
        run(array, y)
