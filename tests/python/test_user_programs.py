"""What programs in the wild are made of, each as a small program whose numbers Taichi 1.7.4 gives too."""

import dataclasses

import numpy as np
import pytest

import aerogel as ti

vec3 = ti.types.vector(3, float)
MATRIX = ti.Matrix([[1.0, 2.0], [3.0, 4.0]])
NAMED = {"a": 1, "b": 2}


def test_methods_of_vectors_by_their_classes(arch):
    @ti.kernel
    def run() -> ti.f32:
        a, b = ti.Vector([1.0, 2.0, 3.0]), ti.Vector([4.0, 5.0, 6.0])
        m = ti.Matrix([[1.0, 2.0], [3.0, 4.0]])
        first = ti.Vector.dot(a, b) + ti.Matrix.trace(m) + ti.Matrix.determinant(m)
        second = ti.Vector.cross(a, b).sum() + ti.Matrix.transpose(m)[0, 1] + ti.Matrix.inverse(m)[0, 0]
        return first + second + ti.Matrix.norm(ti.Vector([3.0, 4.0]))

    assert run() == pytest.approx(32 + 5 - 2 + 0 + 3 - 2 + 5)


def test_a_method_by_its_class_needs_what_it_is_of(cpu):
    @ti.kernel
    def run() -> ti.f32:
        return ti.Vector.dot()

    with pytest.raises(ti.TaichiCompilationError, match="`Vector.dot` needs a vector or a matrix"):
        run()


@ti.data_oriented
class Ray:
    epsilon = 0.5

    def __init__(self, origin, direction, time=0.25):
        self.origin = origin
        self.direction: ti.f32 = direction
        self.time = time

    @ti.func
    def at(self, t):
        return self.origin + t * self.direction

    @ti.func
    def shifted(self):
        return self.at(self.epsilon)

    @ti.func
    def advance(self, t):
        self.origin += t * self.direction
        self.time += t

    @ti.func
    def __getitem__(self, k):
        return self.at(k)

    @ti.func
    def __setitem__(self, k, value):
        self.origin[k] = value

    @ti.func
    def __add__(self, other):
        return Ray(self.origin + other.origin, self.direction + other.direction)

    @ti.func
    def __mul__(self, k):
        return Ray(self.origin * k, self.direction * k)

    @ti.func
    def __rmul__(self, k):
        return self * k

    @ti.func
    def __neg__(self):
        return Ray(-self.origin, -self.direction)

    @ti.func
    def __lt__(self, other):
        return self.time < other.time

    @ti.func
    def __call__(self, t):
        return self.at(t)


@ti.func
def make(x):
    return Ray(ti.Vector([x, 0.0, 0.0]), ti.Vector([1.0, 1.0, 1.0]))


def test_objects_are_made_inside_kernels(arch):
    @ti.kernel
    def run(x: ti.f32) -> ti.f32:
        total = 0.0
        for i in range(4):
            r = Ray(ti.Vector([x, 0.0, i]), ti.Vector([1.0, 1.0, 1.0]))
            total += r.at(2.0).sum() + r.time
        return total

    assert run(2.0) == 38 + 4 * 0.25


def test_objects_have_methods_and_what_their_class_has(arch):
    @ti.kernel
    def run(x: ti.f32) -> vec3:
        r = Ray(ti.Vector([x, 0.0, 0.0]), direction=ti.Vector([1.0, 2.0, 3.0]), time=x)
        r.advance(2.0)
        moved = r.shifted()
        return ti.Vector([moved[0], moved[2], r.time])

    assert run(1.0).to_list() == [3.5, 7.5, 3.0]


def test_objects_have_operators(arch):
    @ti.kernel
    def run(x: ti.f32) -> vec3:
        r = make(x)
        q = r + make(2.0 * x)
        z = -(q * 2.0)
        z += make(1.0)
        z[0] = z.origin[0] + 100
        assert not r < q
        return z[1.0] + (2.0 * r)(0.0)

    # Taichi: z = -2 * (3x, ...) + 1.
    assert run(2.0).to_list() == [-12 + 1 + 100 - 3 + 4, -3, -3]


def test_objects_are_assigned_and_chosen_as_structs_are(arch):
    @ti.kernel
    def run(n: ti.i32) -> vec3:
        r = make(1.0)
        for i in range(n):
            if i % 2 == 0:
                r = Ray(r.at(1.0), r.direction * 2.0, r.time)
        q = make(100.0) if n > 50 else r
        return q.origin

    assert run(3).to_list() == [4.0, 3.0, 3.0]
    assert run(51).to_list() == [100.0, 0.0, 0.0]


def test_an_object_that_python_has_takes_part(arch):
    known = Ray(ti.Vector([1.0, 1.0, 1.0]), ti.Vector([0.0, 0.0, 1.0]))

    @ti.kernel
    def run(x: ti.f32) -> vec3:
        return (known + make(x)).origin + known[x]

    assert run(2.0).to_list() == [4.0, 2.0, 4.0]


def test_the_members_of_an_object_are_made_by_functions_too(arch):
    class Hit:
        def __init__(self, t):
            self.set(t)
            self.n = 3

        def set(self, t):
            self.t = t
            self.twice = 2 * t

    @ti.kernel
    def run(t: ti.f32) -> ti.f32:
        hit = Hit(t)
        return hit.t + 10 * hit.twice + 100 * hit.n

    assert run(1.0) == 321


def test_members_are_not_made_in_branches(cpu):
    class Hit:
        def __init__(self, t):
            if t > 0:
                self.t = t

    @ti.kernel
    def run(t: ti.f32):
        Hit(t)

    with pytest.raises(ti.TaichiSyntaxError, match="the member `t` is first assigned inside an `if` or a loop"):
        run(1.0)


def test_dataclasses_of_python_are_made_inside_kernels(arch):
    @dataclasses.dataclass
    class Hit:
        t: float
        n: int = 7

        def late(self, t):
            return self.t > t

    @ti.kernel
    def run(t: ti.f32) -> ti.f32:
        hit, other = Hit(t), Hit(n=1, t=2 * t)
        hit.t += 1
        return hit.t + hit.n + 10 * other.n + 100 * other.t + 1000 * hit.late(0.5)

    assert run(1.0) == 2 + 7 + 10 + 200 + 1000


def test_what_python_does_besides_init_is_refused(cpu):
    """Without a word the object would be another than Python makes."""

    @dataclasses.dataclass
    class After:
        a: float
        b: float = 0.0

        def __post_init__(self):
            self.b = 2 * self.a

    class Other:
        def __new__(cls, a):
            return 2 * a

        def __init__(self, a):
            self.a = a

    class Setting:
        def __init__(self, a):
            self.a = a

        def __setattr__(self, name, value):
            object.__setattr__(self, name, 2 * value)

    @dataclasses.dataclass
    class Fixed:
        b: float = dataclasses.field(default=1.0, init=False)
        a: float = 2.0

    def made_by(cls):
        @ti.kernel
        def run(x: ti.f32) -> ti.f32:
            return cls(x).a

        return run(3.0)

    for cls, why in [
        (After, "__post_init__"),
        (Other, "__new__"),
        (Setting, "__setattr__"),
        (Fixed, "`b` is no parameter"),
    ]:
        with pytest.raises(ti.TaichiTypeError, match=why):
            made_by(cls)

    @dataclasses.dataclass(frozen=True)
    class Frozen:
        b: float = dataclasses.field(default=1.0, kw_only=True)
        a: float = 2.0

    assert made_by(Frozen) == 3


@pytest.mark.parametrize(
    "call, message",
    [
        ("Hit(t, 2, 3)", "`Hit` has 2 members, but 3 values are given"),
        ("Hit(n=t)", "`Hit` needs a value for `t`"),
        ("Hit(t, m=2)", "`Hit` has no member `m`"),
        ("Hit(t, t=2)", "the member `t` is given twice"),
    ],
)
def test_dataclasses_take_their_fields(cpu, tmp_path, call, message):
    import runpy

    path = tmp_path / "program.py"
    path.write_text(
        "import dataclasses\nimport aerogel as ti\n@dataclasses.dataclass\nclass Hit:\n    t: float\n    n: int = 7\n"
        f"@ti.kernel\ndef run(t: ti.f32):\n    {call}\nrun(1.0)\n"
    )
    with pytest.raises(ti.TaichiCompilationError, match=message):
        runpy.run_path(str(path))


@ti.dataclass
class Pair:
    a: vec3
    b: vec3

    @ti.func
    def __add__(self, other):
        return Pair(self.a + other.a, self.b + other.b)

    @ti.func
    def __getitem__(self, k):
        return self.a[k]


def test_structs_have_operators(arch):
    @ti.kernel
    def run(x: ti.f32) -> ti.f32:
        p = Pair(vec3(x, 0, 1), vec3(1, 1, 1))
        p += p
        return (p + p)[0] + p[2]

    assert run(2.0) == 10


def test_a_scalar_type_of_a_variable_is_that_of_the_elements(arch):
    @ti.kernel
    def run() -> ti.f32:
        v = ti.Vector([1.5, 2.5])
        a: ti.f32 = v
        b: ti.i32 = v
        return a[0] + a[1] + b[1]

    assert run() == 6


def test_components_are_placed_in_words_one_by_one(arch):
    q = ti.types.quant.fixed(13, max_value=8.0)
    v, u = ti.Vector.field(3, dtype=q), ti.field(q)
    m = ti.Matrix.field(2, 2, dtype=q)
    words = [ti.BitpackedFields(max_num_bits=32) for _ in range(4)]
    words[0].place(v.get_scalar_field(0), v.get_scalar_field(1))
    words[1].place(v.get_scalar_field(2), u)
    words[2].place(m.get_scalar_field(0, 0), m.get_scalar_field(0, 1))
    words[3].place(m.get_scalar_field(1, 0), m.get_scalar_field(1, 1))
    block = ti.root.dense(ti.i, 4)
    block.place(words[0])
    ti.root.dense(ti.i, 4).place(words[1])
    block.place(words[2], words[3])

    @ti.kernel
    def run():
        for i in v:
            v[i] = ti.Vector([0.5 * i, 1.0, 3.0])
            u[i] = 2.0
            m[i] = ti.Matrix([[1.0, 2.0], [3.0, i]])

    run()
    assert v.to_numpy()[3].tolist() == v[3].to_list() == [1.5, 1.0, 3.0]
    assert u[2] == 2 and m[3].to_list() == [[1.0, 2.0], [3.0, 3.0]]


def test_components_have_quantised_types_of_their_own(arch):
    small, large = ti.types.quant.int(5), ti.types.quant.int(10)
    m = ti.Matrix.field(2, 2, dtype=[[small, large], [large, small]])
    word = ti.BitpackedFields(max_num_bits=32)
    word.place(m)
    ti.root.dense(ti.i, 3).place(word)
    m[0] = ti.Matrix([[1, 2], [3, 4]])
    m[1] = ti.Matrix([[20, 2], [300, 20]])
    assert m[0].to_list() == [[1, 2], [3, 4]] and m[1].to_list() == [[-12, 2], [300, -12]]
    with pytest.raises(RuntimeError, match="need one dtype for computations"):
        ti.Vector.field(2, dtype=[ti.f32, ti.i32], shape=3)


def test_components_under_unlike_nodes(arch):
    v, u = ti.Vector.field(2, ti.f32), ti.field(ti.f32)
    ti.root.dense(ti.i, 4).place(v.get_scalar_field(0), u)
    ti.root.dense(ti.i, 4).place(v.get_scalar_field(1))

    @ti.kernel
    def run():
        for i in v:
            v[i] = [i, 10 + i]

    run()
    assert v[3].to_list() == [3, 13] and v.to_numpy().tolist() == [[i, 10 + i] for i in range(4)]
    v.fill(3)
    v.get_scalar_field(1)[2] = 5
    assert v[2].to_list() == [3, 5] and v.to_numpy()[3].tolist() == [3, 3]
    v.from_numpy(np.arange(8).reshape(4, 2))
    assert v[3].to_list() == [6, 7] and u[3] == 0


def test_what_is_not_there_can_be_looked_up(cpu):
    sync, shared = ti.simt.block.sync, ti.simt.block.SharedArray
    assert callable(sync)

    @ti.kernel
    def run(on_gpu: ti.template()) -> ti.i32:
        for _ in range(3):
            if ti.static(on_gpu):
                ti.simt.block.sync()
        return 3

    assert run(False) == 3
    with pytest.raises(RuntimeError, match="ti.simt.block.SharedArray can be used inside kernels"):
        shared(ti.f32, 4)
    with pytest.raises(NotImplementedError, match="`ti.simt.block.sync` is not supported on the CPU"):
        run(True)


def test_matrices_of_any_size_as_annotations(arch):
    @ti.func
    def corner(a: ti.types.matrix(), v: ti.types.vector()):
        return a[0, 0] + v[0]

    @ti.kernel
    def run(x: ti.types.ndarray(dtype=ti.types.matrix(), ndim=1)) -> ti.f32:
        return corner(x[1], ti.Vector([5.0])) + corner(ti.Matrix([[1.0]]), ti.Vector([1.0, 2.0]))

    x = ti.Matrix.ndarray(2, 3, ti.f32, 2)
    x[1] = ti.Matrix([[7.0, 0, 0], [0, 0, 0]])
    assert run(x) == 14
    with pytest.raises(
        ti.TaichiSyntaxError, match=r"`a` of kernel `sizes` .* needs its sizes, for instance `a: ti.types"
    ):

        @ti.kernel
        def sizes(a: ti.types.matrix()):
            pass


@pytest.mark.parametrize("shape", [(4, 1), (1, 4), (4,), (1, 4, 1)])
def test_axes_of_one_come_and_go(cpu, shape):
    given = np.arange(4, dtype=np.float32).reshape(shape)
    x, y, z = ti.field(ti.f32, 4), ti.ndarray(ti.f32, 4), ti.Vector.field(4, ti.f32, ())
    for taker in (x, y, z):
        taker.from_numpy(given)
        assert taker.to_numpy().tolist() == [0, 1, 2, 3]
        with pytest.raises(ValueError):
            taker.from_numpy(given.reshape(2, 2))
    rows = ti.Matrix.field(1, 3, ti.f32, 2)
    rows.from_numpy(np.arange(6.0).reshape(2, 3))
    assert rows.to_numpy().tolist() == [[[0, 1, 2]], [[3, 4, 5]]]


def test_a_dictionary_is_unpacked(arch):
    @ti.func
    def both(a, b):
        return a * 10 + b

    @ti.kernel
    def run(x: ti.i32) -> ti.i32:
        d = {"a": x, "b": 3}
        return both(**NAMED) * 100 + both(**d)

    assert run(3) == 1233


def test_arrays_of_vectors_are_clamped_by_their_own_index(arch):
    @ti.kernel
    def run(a: ti.types.ndarray(dtype=ti.math.vec3, ndim=2, boundary="clamp")) -> ti.f32:
        total = 0.0
        for I in ti.grouped(ti.ndrange((-1, 4), (-1, 4))):
            total += a[I].sum() + a[I][1]
        for i, j in ti.ndrange((-1, 4), (-1, 4)):
            for k in range(3):
                total += a[i, j][k]
        return total

    given = np.arange(27, dtype=np.float32).reshape(3, 3, 3)
    padded = np.pad(given, ((1, 1), (1, 1), (0, 0)), "edge")
    assert run(given) == 2 * padded.sum() + padded[..., 1].sum()
    x = ti.Vector.ndarray(3, ti.f32, (3, 3))
    x.from_numpy(given)
    assert run(x) == run(given)


def test_the_rows_of_a_matrix_are_gone_through(arch):
    @ti.kernel
    def run() -> ti.f32:
        m = ti.Matrix([[1.0, 2.0], [3.0, 4.0]])
        sums = [r[0] + r[1] for r in m]
        doubled = ti.Matrix([[x * 2 for x in r] for r in m])
        norms = ti.Vector([ti.Vector(r).norm_sqr() for r in MATRIX])
        total = 0.0
        for r in ti.static(MATRIX):
            total += r[1]
        return sums[0] * 10 + sums[1] + doubled[1, 1] * 100 + norms[1] * 1000 + total

    assert run() == 30 + 7 + 800 + 25000 + 6


def test_the_picture_of_a_gui_is_an_array(cpu):
    gui = ti.GUI("x", (4, 4), show_gui=False)
    assert gui.img.shape == (4, 4, 4) and gui.img.dtype == np.float32
    gui.set_image(np.full((4, 4, 3), 0.5, np.float32))
    assert gui.img[0, 0].tolist() == [0.5, 0.5, 0.5, 0]
    gui.set_image(np.full((4, 4), 0.5, np.float32))
    assert gui.img[0, 0].tolist() == [0.5] * 4
    gui.img[1, 2] = 1.0
    gui.set_image(gui.img)
    assert gui.get_image()[1, 2].tolist() == [1, 1, 1, 1]
    gui.img = np.zeros((4, 4, 3), np.float32)
    assert gui.get_image()[1, 2].tolist() == [0, 0, 0, 1]


def test_settings_are_read_and_changed(cpu):
    assert ti.cfg.device_memory_GB == 1.0 and ti.cfg.flatten_if is False and "opt_level" in dir(ti.cfg)

    @ti.kernel
    def third() -> ti.f64:
        return 1 / 3

    assert third() != 1 / 3
    runtime = ti.lang.impl.get_runtime()
    runtime.default_fp = ti.f64
    assert ti.cfg.default_fp == ti.f64 and third() == 1 / 3
    runtime.set_default_fp(ti.f32)
    runtime.set_default_ip(ti.i64)
    assert third() != 1 / 3 and runtime.default_ip == ti.i64 and runtime.default_up == ti.u64
    ti.lang.impl.current_cfg().debug = True

    @ti.kernel
    def fails():
        assert 1 > 2, "checked"

    with pytest.raises(AssertionError, match="checked"):
        fails()
    with pytest.raises(AttributeError, match="there is no setting 'debg'"):
        ti.cfg.debg = True
    with pytest.raises(ValueError, match="default_fp must be a floating-point type"):
        ti.cfg.default_fp = ti.i32


def test_a_vector_takes_the_type_of_the_matrix(cpu):
    builder = ti.linalg.SparseMatrixBuilder(3, 3, max_num_triplets=10, dtype=ti.f64)

    @ti.kernel
    def fill(A: ti.types.sparse_matrix_builder()):
        for i in range(3):
            A[i, i] += 2.0

    fill(builder)
    matrix = builder.build()
    x, y = ti.field(ti.f32, 3), ti.ndarray(ti.f32, 3)
    x.fill(1.5)
    y.fill(1.5)
    assert (matrix @ x).tolist() == [3, 3, 3] and (matrix @ y).to_numpy().tolist() == [3, 3, 3]


@pytest.mark.parametrize("dtype", [ti.u16, ti.u32], ids=str)
def test_wide_pictures_are_written_as_bytes(cpu, tmp_path, dtype):
    kind = ti.lang.util.to_numpy_type(dtype)
    largest = np.iinfo(kind).max
    x = ti.field(dtype, (4, 3))
    x.from_numpy((np.arange(12, dtype=np.uint64) * (largest // 12)).reshape(4, 3).astype(kind))
    x[3, 2] = largest
    path = str(tmp_path / "x.png")
    ti.tools.imwrite(x, path)
    found = ti.tools.imread(path)
    # Taichi's own numbers but for the last, which is 1 or 0 there: it wraps.
    wanted = {ti.u16: [0, 21, 42, 64, 85, 107, 128, 149, 171, 192, 214, 255]}
    assert found.dtype == np.uint8 and found[..., 0].ravel().tolist() == wanted.get(
        dtype, [0, 21, 42, 64, 85, 106, 128, 149, 170, 192, 213, 255]
    )


def test_places_of_both_kinds(arch, capfd):
    @ti.kernel
    def run(a: ti.i32, b: ti.i32, c: ti.i32):
        print("{} {1}".format(a, b))
        print("{} {1} {}".format(a, b))
        print("{} {2} {}".format(a, b, c))
        print("{1} {}".format(a, b))
        print("{} {0}".format(a))
        print("{} {} {0} {1}".format(a, b))
        print("{} {name} {}".format(a, b, name=c))

    run(7, 8, 9)
    ti.sync()
    assert capfd.readouterr().out.split("\n")[:-1] == ["7 8", "7 8 8", "7 9 8", "8 7", "7 7", "7 8 7 8", "7 9 8"]


def test_a_value_without_a_place_is_refused(cpu):
    @ti.kernel
    def run(x: ti.i32):
        print("{} {0}".format(x, 3))

    with pytest.raises(
        ti.TaichiCompilationError, match="the format string has placeholders for 1 values, but 2 are given"
    ):
        run(1)


@ti.data_oriented
class Holder:
    def __init__(self, array):
        self.array = array

    @ti.kernel
    def double(self):
        for i in self.array:
            self.array[i] *= 2


def test_arrays_are_captured(arch):
    a, v = ti.ndarray(ti.f32, 4), ti.Vector.ndarray(2, ti.f32, 4)
    x = ti.field(ti.f32, 4)

    @ti.func
    def three(of: ti.template(), i):
        of[i] += 3

    @ti.kernel
    def run(b: ti.types.ndarray(ti.f32, 1), t: ti.template(), n: int):
        for i in range(a.shape[0]):
            a[i] += n
            v[i] = [b[i], a[i]]
            three(a, i)
        for i in t:
            x[i] = t[i] + a[i]

    given = np.arange(4, dtype=np.float32)
    run(given, a, 1)
    run(given, a, 1)
    assert a.to_numpy().tolist() == [8] * 4 and v[3].to_list() == [3, 5] and x[2] == 16
    other = ti.ndarray(ti.f32, 4)
    other.fill(5)
    run(given, other, 0)
    assert x[1] == 5 + a[1]
    Holder(other).double()
    assert other.to_numpy().tolist() == [10] * 4
    fixed = np.zeros(4, np.float32)
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        Holder(ti.from_dlpack(fixed)).double()


def test_a_real_function_is_given_its_arrays(cpu):
    a = ti.ndarray(ti.f32, 4)

    @ti.real_func
    def first() -> ti.f32:
        return a[0]

    @ti.kernel
    def run() -> ti.f32:
        return first()

    with pytest.raises(ti.TaichiCompilationError, match="a real function can only use arrays that are passed to it"):
        run()


class Base:
    def __init__(self, origin):
        self.origin = origin
        self.made_by = 1

    def scaled(self, k):
        return self.origin * k


class Named(Base):
    def __init__(self, origin, time):
        Base.__init__(self, origin)
        self.time = time


class Above(Base):
    def __init__(self, origin, time):
        super().__init__(origin)
        self.time = time

    def scaled(self, k):
        return super().scaled(k) + 1


@pytest.mark.parametrize("cls, more", [(Named, 0), (Above, 1)])
def test_classes_inherit(arch, cls, more):
    @ti.kernel
    def run(x: ti.f32) -> ti.f32:
        thing = cls(x, 2 * x)
        is_one = isinstance(thing, Base) and not isinstance(thing, Ray)
        return thing.scaled(10.0) + thing.time + 100 * thing.made_by + 1000 * is_one

    assert run(3.0) == 30 + more + 6 + 100 + 1000


def test_objects_of_two_classes_are_two_things(cpu):
    class Sphere:
        def __init__(self, size):
            self.size = size

        def volume(self):
            return 4.0 * self.size**3

    class Cube:
        def __init__(self, size):
            self.size = size

        def volume(self):
            return self.size**3

    @ti.kernel
    def assigned(x: ti.f32) -> ti.f32:
        thing = Sphere(x)
        thing = Cube(x)
        return thing.volume()

    @ti.kernel
    def chosen(x: ti.f32) -> ti.f32:
        thing = Sphere(x) if x > 0 else Cube(x)
        return thing.volume()

    for kernel in (assigned, chosen):
        with pytest.raises(ti.TaichiCompilationError, match="as the object of `Sphere`: their classes differ"):
            kernel(1.0)
