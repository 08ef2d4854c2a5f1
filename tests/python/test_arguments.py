"""Arguments and return values of kernels, right and wrong."""

import numpy as np
import pytest

import aerogel as ti


def test_scalars(arch):
    @ti.kernel
    def f(a: ti.i32, b: ti.f32, c: int, d: float) -> ti.f32:
        return a + b + c + d

    assert f(1, 2.5, 3, 4) == 10.5
    assert f(d=4, c=3, b=2.5, a=1) == 10.5
    assert f(np.int64(1), np.float64(2.5), np.uint8(3), np.float32(4)) == 10.5
    assert f(True, 1, 0, 0) == 2


@pytest.mark.parametrize(
    "dtype,low,high", [(ti.i8, -128, 127), (ti.u8, 0, 255), (ti.i32, -(2**31), 2**31 - 1), (ti.u64, 0, 2**64 - 1)]
)
def test_ranges(cpu, dtype, low, high):
    @ti.kernel
    def same(a: dtype) -> dtype:
        return a

    assert same(low) == low and same(high) == high
    for value in (low - 1, high + 1, 2**70):
        with pytest.raises(ti.TaichiRuntimeTypeError, match="does not fit"):
            same(value)


def test_wrong_types(cpu):
    @ti.kernel
    def f(a: ti.i32) -> ti.i32:
        return a

    for value in (1.5, "1", None, [1], np.float32(2), object()):
        with pytest.raises(ti.TaichiRuntimeTypeError, match="`a`"):
            f(value)
        with pytest.raises(TypeError):
            f(value)
    assert f(3) == 3

    @ti.kernel
    def g(a: ti.f32) -> ti.f32:
        return a

    for value in ("1", None, [1.0]):
        with pytest.raises(ti.TaichiRuntimeTypeError):
            g(value)


def test_wrong_counts(cpu):
    @ti.kernel
    def f(a: ti.i32, b: ti.i32) -> ti.i32:
        return a + b

    with pytest.raises(ti.TaichiSyntaxError, match="missing.*`b`"):
        f(1)
    with pytest.raises(ti.TaichiSyntaxError, match="too many"):
        f(1, 2, 3)
    with pytest.raises(ti.TaichiSyntaxError, match="unexpected argument `c`"):
        f(1, c=2)
    with pytest.raises(ti.TaichiSyntaxError, match="twice"):
        f(1, 2, a=3)


def test_vectors_and_matrices(arch):
    vec2 = ti.types.vector(2, ti.f32)
    mat2 = ti.types.matrix(2, 2, ti.f32)

    @ti.kernel
    def f(m: mat2, v: vec2) -> vec2:
        return m @ v

    out = f([[1, 2], [3, 4]], ti.Vector([1, 1]))
    assert isinstance(out, ti.Vector) and out.to_list() == [3, 7]
    assert f(ti.Matrix([[1, 0], [0, 1]]), np.array([5.0, 6.0])).to_list() == [5, 6]
    with pytest.raises(ti.TaichiRuntimeTypeError, match="2 components, got 3"):
        f([[1, 2], [3, 4]], [1, 2, 3])

    @ti.kernel
    def g() -> mat2:
        return ti.Matrix([[1.0, 2.0], [3.0, 4.0]])

    assert g().to_list() == [[1, 2], [3, 4]]


def test_several_values(arch):
    @ti.kernel
    def f(a: ti.i32) -> (ti.i32, ti.f32, ti.types.vector(2, ti.i32)):
        return a + 1, a * 0.5, ti.Vector([a, -a])

    a, b, c = f(3)
    assert (a, b, c.to_list()) == (4, 1.5, [3, -3])


def test_numpy_in_place(arch):
    @ti.kernel
    def add(a: ti.types.ndarray(), b: ti.types.ndarray(dtype=ti.f32, ndim=2), s: ti.f32):
        for i, j in a:
            a[i, j] += s * b[i, j]

    a, b = np.ones((3, 4), np.float32), np.arange(12, dtype=np.float32).reshape(3, 4)
    address = a.ctypes.data
    add(a, b, 2)
    assert a.ctypes.data == address
    assert np.allclose(a, 1 + 2 * b)
    # Another type is another instance.
    c = np.ones((3, 4), np.float64)
    add(c, b, 2)
    assert np.allclose(c, 1 + 2 * b)


def test_vector_elements(arch):
    @ti.kernel
    def norms(a: ti.types.ndarray(dtype=ti.math.vec3, ndim=1), out: ti.types.ndarray(dtype=ti.f32, ndim=1)):
        for i in out:
            out[i] = a[i].norm()

    a, out = np.arange(12, dtype=np.float32).reshape(4, 3), np.zeros(4, np.float32)
    norms(a, out)
    assert np.allclose(out, np.linalg.norm(a, axis=1))
    v, w = ti.Vector.ndarray(3, ti.f32, 4), ti.ndarray(ti.f32, 4)
    v.from_numpy(a)
    norms(v, w)
    assert np.allclose(w.to_numpy(), out)
    with pytest.raises(ValueError, match="last axes"):
        norms(np.zeros((4, 2), np.float32), out)


def test_wrong_arrays(cpu):
    @ti.kernel
    def f(a: ti.types.ndarray(ti.f32, 1)):
        a[0] = 1

    good = np.zeros(4, np.float32)
    for bad, error, words in [
        (np.zeros(4), ValueError, "array of f32 is required"),
        (np.zeros((2, 2), np.float32), ValueError, "1 axes"),
        (ti.ndarray(ti.i32, 4), TypeError, "array of f32 is required"),
        (np.zeros(4, ">f4"), TypeError, "dtype"),
        (np.array([None]), TypeError, "dtype"),
        ([1.0], ti.TaichiRuntimeTypeError, "NumPy array"),
        (5, ti.TaichiRuntimeTypeError, "NumPy array"),
    ]:
        with pytest.raises(error, match=words):
            f(bad)
    misaligned = np.zeros(17, np.uint8)[1:].view(np.float32)
    f(misaligned)
    assert misaligned[0] == 1
    f(good)
    assert good[0] == 1


def test_read_only(arch):
    @ti.kernel
    def total(a: ti.types.ndarray()) -> ti.f32:
        s = 0.0
        for i in a:
            s += a[i]
        return s

    @ti.kernel
    def clear(a: ti.types.ndarray()):
        for i in a:
            a[i] = 0

    a = np.ones(10, np.float32)
    a.flags.writeable = False
    assert total(a) == 10
    with pytest.raises(ValueError, match="read-only"):
        clear(a)
    assert a.sum() == 10


def test_extents_beyond_i32(arch):
    @ti.kernel
    def clear(a: ti.types.ndarray()):
        for i in a:
            a[i] = 0

    # The memory is reserved and never touched.
    with pytest.raises(ValueError, match="2147483648 elements, more than an `i32` can index"):
        clear(np.empty(2**31, np.uint8))


def test_ndarray(arch, rng):
    a = ti.ndarray(ti.f32, (3, 4))
    a[1, 2] = 5
    assert a[1, 2] == 5 and a.shape == (3, 4) and a.dtype is ti.f32

    @ti.kernel
    def double(x: ti.types.ndarray()):
        for I in ti.grouped(x):
            x[I] = 2 * x[I]

    double(a)
    assert a.to_numpy()[1, 2] == 10
    b = rng.random((3, 4)).astype(np.float32)
    a.from_numpy(b)
    assert (a.to_numpy() == b).all()
    a.fill(3)
    assert (np.asarray(a) == 3).all()
    with pytest.raises(IndexError):
        a[3, 0]
    with pytest.raises(ValueError):
        a.from_numpy(np.zeros(3))


def test_templates(arch):
    x, y = ti.field(ti.i32, 3), ti.field(ti.i32, (2, 2))

    @ti.kernel
    def fill(f: ti.template(), value: ti.template()):
        for I in ti.grouped(f):
            f[I] = value

    fill(x, 3)
    fill(y, 4)
    fill(x, 5)
    assert x.to_numpy().tolist() == [5, 5, 5]
    assert y.to_numpy().tolist() == [[4, 4], [4, 4]]


def test_template_fields_are_not_kept(cpu):
    import gc

    from aerogel import _native

    @ti.kernel
    def fill(f: ti.template()):
        for i in f:
            f[i] = 1

    gc.collect()
    before = _native.live_bytes()
    for _ in range(5):
        x = ti.field(ti.i32, 1000)
        fill(x)
        assert x[999] == 1
    del x
    gc.collect()
    assert _native.live_bytes() == before


def test_data_oriented(arch):
    @ti.data_oriented
    class Counter:
        def __init__(self, n, step):
            self.x = ti.field(ti.i32, n)
            self.step = step

        @ti.func
        def twice(self, a):
            return 2 * a * self.step

        @ti.kernel
        def run(self, base: ti.i32):
            for i in self.x:
                self.x[i] = base + self.twice(i)

    a, b = Counter(3, 1), Counter(2, 10)
    a.run(100)
    b.run(200)
    assert a.x.to_numpy().tolist() == [100, 102, 104]
    assert b.x.to_numpy().tolist() == [200, 220]


def test_method_needs_data_oriented(cpu):
    class Plain:
        @ti.kernel
        def run(self):
            pass

    with pytest.raises(ti.TaichiSyntaxError, match="data_oriented"):
        Plain().run()


def test_captured_by_value_at_first_call(cpu):
    c = 1

    @ti.kernel
    def k() -> ti.i32:
        return c

    assert k() == 1
    c = 2
    assert k() == 1


def test_bad_signatures(cpu):
    with pytest.raises(ti.TaichiSyntaxError, match="annotation"):

        @ti.kernel
        def a(x):
            pass

    with pytest.raises(ti.TaichiSyntaxError, match="not a type"):

        @ti.kernel
        def b(x: str):
            pass

    with pytest.raises(ti.TaichiSyntaxError, match=r"\*args"):

        @ti.kernel
        def d(*x: ti.i32):
            pass

    with pytest.raises(ti.TaichiSyntaxError, match="keyword-only"):

        @ti.kernel
        def e(*, x: ti.i32):
            pass


def test_default_values(arch):
    @ti.kernel
    def run(a: ti.i32, b: ti.f32 = 2.5, c: ti.template() = (1, 2)) -> ti.f32:
        return a * b + c[0] * 10 + c[1] * 100

    assert run(2) == 215
    assert run(2, 3) == 216
    assert run(b=1.5, a=4, c=(0, 1)) == 106
    with pytest.raises(ti.TaichiSyntaxError, match="the parameter `a` of kernel `run"):
        run(b=1.0)


def test_packs(arch):
    Camera = ti.types.argpack(view=ti.math.mat2, at=ti.math.vec3, n=ti.i32)
    Scene = ti.types.argpack(camera=Camera, points=ti.types.ndarray(dtype=ti.f32, ndim=1), scale=float)

    @ti.kernel
    def run(scene: Scene, more: ti.f32) -> ti.f32:
        for i in scene.points:
            scene.points[i] *= scene.scale
        c = scene.camera
        return scene.points[1] + c.view[1, 0] + c.at.y * c.n + more

    points = ti.ndarray(ti.f32, 3)
    points.fill(2)
    scene = Scene(camera=Camera([[1, 2], [3, 4]], [5, 6, 7], 2), points=points, scale=0.5)
    assert run(scene, 100) == 1 + 3 + 12 + 100
    scene.camera.n = 3
    scene.points = np.full(4, 8, dtype=np.float32)
    assert run(scene, 0) == 4 + 3 + 18
    assert (Camera(n=1).n, Camera(n=1).at.to_list()) == (1, [0, 0, 0])
    assert repr(Camera) == "ti.types.argpack(view=ti.types.matrix(2, 2, f32), at=ti.types.vector(3, f32), n=i32)"
    assert repr(ti.types.argpack(x=ti.f32)(x=1)) == "{'x': 1.0}"
    assert isinstance(scene, ti.ArgPack)

    @ti.kernel
    def assigns(scene: Scene):
        scene.scale = 2.0

    with pytest.raises(ti.TaichiSyntaxError, match="cannot be assigned to"):
        assigns(scene)
    with pytest.raises(TypeError, match="is a int without the member `camera`"):
        run(3, 1)
    with pytest.raises(TypeError, match="is an array and must be given"):
        Scene(scale=2)
    with pytest.raises(TypeError, match="has no member `size`"):
        Camera(size=2)
    with pytest.raises(AttributeError, match="has no member `size`"):
        scene.size = 3


def test_func_outside_kernels(cpu):
    @ti.func
    def f(a):
        return a

    @ti.pyfunc
    def g(a):
        return a + 1

    with pytest.raises(ti.TaichiSyntaxError, match="inside kernels"):
        f(1)
    assert g(1) == 2

    @ti.kernel
    def k() -> ti.i32:
        return g(f(3))

    assert k() == 4


def test_kernel_without_source(cpu):
    scope = {"ti": ti}
    exec("def f():\n    pass\n", scope)
    k = ti.kernel(scope["f"])
    with pytest.raises(Exception, match="source"):
        k()


def test_defaults_of_init():
    ti.init(arch=ti.cpu, default_fp=ti.f64, default_ip=ti.i64, log_level="error")

    @ti.kernel
    def f(a: float, b: int) -> float:
        return a + b

    assert f(0.1, 2**40) == 0.1 + 2**40
    assert ti.field(float, 1).dtype is ti.f64 and ti.field(int, 1).dtype is ti.i64
    ti.reset()


def test_threads(cpu):
    from concurrent.futures import ThreadPoolExecutor

    x = ti.field(ti.i64, 1000)

    @ti.kernel
    def total(a: ti.i64) -> ti.i64:
        s = ti.i64(0)
        for i in x:
            s += a + i
        return s

    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(total, range(400)))
    assert got == [1000 * a + 499500 for a in range(400)]


def test_notebook_cells(cpu):
    """Source that lives in `linecache` alone, as a notebook's does."""
    import linecache

    source = "@ti.kernel\ndef cell(a: ti.i32) -> ti.i32:\n    return a + missing\n"
    name = "<cell 1>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    scope = {"ti": ti, "missing": 2}
    exec(compile(source, name, "exec"), scope)
    assert scope["cell"](1) == 3


def test_string_annotations(cpu):
    """As `from __future__ import annotations` makes them."""

    @ti.kernel
    def k(a: "ti.i32", x: "ti.types.ndarray()") -> "ti.i32":
        for i in x:
            x[i] = a
        return a

    a = np.zeros(3, np.int32)
    assert k(4, a) == 4 and a.tolist() == [4, 4, 4]


def test_objects_of_methods_are_not_kept(cpu):
    import gc

    from aerogel import _native

    @ti.data_oriented
    class Holder:
        def __init__(self):
            self.x = ti.field(ti.i32, 1000)

        @ti.kernel
        def fill(self, a: ti.i32):
            for i in self.x:
                self.x[i] = a

    def make(a):
        holder = Holder()
        holder.fill(a)
        assert holder.x[999] == a

    before = _native.live_bytes()
    for a in range(5):
        make(a)
        gc.collect()
        # The last instance of the kernel stays until the next is compiled.
        assert _native.live_bytes() - before <= 4000


def test_a_matrix_of_another_shape_is_no_argument(cpu):
    """With the same number of elements it would be a matrix nobody meant."""
    tall = np.array([[1, 2], [3, 4], [5, 6]], np.float32)

    @ti.kernel
    def first(m: ti.types.matrix(2, 3, ti.f32)) -> ti.types.vector(2, ti.f32):
        return m @ ti.Vector([1.0, 0.0, 0.0])

    @ti.kernel
    def second(v: ti.types.vector(4, ti.f32)) -> ti.f32:
        return v[1]

    field, fields = ti.Matrix.field(2, 3, ti.f32, 2), ti.Vector.field(4, ti.f32, 2)
    array = ti.Matrix.ndarray(2, 3, ti.f32, 2)
    for wrong in (tall, tall.tolist(), ti.Matrix(tall.tolist()), [ti.Vector(row) for row in tall.tolist()]):
        with pytest.raises(ti.TaichiRuntimeTypeError, match="`m`.* is a matrix of 2x3, got a matrix of 3x2"):
            first(wrong)
        for target in (field, array):
            with pytest.raises(ValueError, match="is a matrix of 2x3, got a matrix of 3x2"):
                target[0] = wrong
    for wrong in (tall, tall.tolist(), ti.Matrix(tall.tolist())):
        with pytest.raises(ValueError, match="is a matrix of 2x3, got a matrix of 3x2"):
            field.fill(wrong)
    assert not field.to_numpy().any() and not array.to_numpy().any()
    with pytest.raises(ti.TaichiRuntimeTypeError, match="`v`.* is a vector of 4, got a matrix of 2x2"):
        second(ti.Matrix([[1, 2], [3, 4]]))
    with pytest.raises(ValueError, match="is a vector of 4, got a matrix of 2x2"):
        fields[0] = [[1, 2], [3, 4]]
    right = tall.T.copy()
    for value in (right, right.tolist(), ti.Matrix(right.tolist()), [ti.Vector(row) for row in right.tolist()]):
        assert list(first(value)) == [1, 2]
        field[0] = value
        array[0] = value
        assert np.array_equal(field.to_numpy()[0], right) and np.array_equal(array.to_numpy()[0], right)
    assert second(ti.Matrix([[1], [2], [3], [4]])) == 2
    assert second(np.arange(4)) == 1
