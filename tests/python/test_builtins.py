"""Builtins and small forms of the language, in kernels and in Python."""

import importlib.util
import math

import numpy as np
import pytest

import aerogel as ti

NUMBERS = [0.0, -0.0, 1.0, -1.0, 10.5, -0.3, 1e-40, -3e-45, 1.5e300, 5e-324, math.inf, -math.inf]


def test_frexp(arch):
    @ti.kernel
    def narrow(x: ti.f32) -> (ti.f32, ti.i32):
        m, e = ti.frexp(x)
        return m, e

    @ti.kernel
    def wide(x: ti.f64) -> (ti.f64, ti.i32):
        return ti.frexp(x)

    @ti.kernel
    def vectors(x: ti.math.vec2) -> (ti.math.vec2, ti.math.ivec2):
        parts = ti.frexp(x)
        return parts[0], parts[1]

    @ti.kernel
    def half(x: ti.f16) -> (ti.f16, ti.i32):
        return ti.frexp(x)

    for x in NUMBERS:
        assert tuple(wide(x)) == math.frexp(x)
        single = float(np.float32(x)) if abs(x) < 1e38 or math.isinf(x) else 1.0
        assert tuple(narrow(single)) == math.frexp(single)
        assert math.copysign(1, wide(x)[0]) == math.copysign(1, x)
    m, e = wide(math.nan)
    assert math.isnan(m) and e == 0
    m, e = vectors([10.5, -0.25])
    assert (m.to_list(), e.to_list()) == ([0.65625, -0.5], [4, -1])
    assert half(6e-8) == [0.5, -23]
    assert ti.frexp(10.0) == (0.625, 4)
    m, e = ti.frexp(ti.Vector([10.0, 3.0]))
    assert (m.to_list(), e.to_list()) == ([0.625, 0.75], [4, 2])

    @ti.kernel
    def whole(x: ti.i32) -> ti.i32:
        _, e = ti.frexp(x)
        return e

    with pytest.raises(ti.TaichiTypeError, match="`frexp` needs a float, not `i32`"):
        whole(3)


def test_hints_are_accepted(arch):
    x = ti.field(ti.f32, 8)

    @ti.kernel
    def run():
        ti.block_local(x)
        ti.mesh_local(x)
        ti.cache_read_only(x)
        ti.loop_config(block_dim=64, serialize=False, parallelize=2, block_dim_adaptive=True, bit_vectorize=False)
        for i in x:
            ti.stop_grad(x)
            x[i] = i + 1

    run()
    assert x[7] == 8


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("64", "takes its settings by name"),
        ("block_dim=0", "`block_dim` of `ti.loop_config` is a power of two"),
        ("block_dim=48", "`block_dim` of `ti.loop_config` is a power of two"),
        ("block_dim='a'", "`block_dim` of `ti.loop_config` is a power of two"),
        ("parallelize=-1", "`parallelize` of `ti.loop_config` is a number of threads"),
        ("blocks=3", "`ti.loop_config` does not have `blocks`"),
        ("block_dim=x[0]", "`block_dim` of `ti.loop_config` must be known while compiling"),
    ],
)
def test_settings_of_loops_are_checked(cpu, tmp_path, settings, message):
    path = tmp_path / "program.py"
    path.write_text(
        "import aerogel as ti\n"
        "x = ti.field(ti.i32, 8)\n"
        "@ti.kernel\n"
        "def run():\n"
        f"    ti.loop_config({settings})\n"
        "    for i in x:\n"
        "        x[i] = 1\n"
    )
    names = {"__name__": "program"}
    exec(compile(path.read_text(), str(path), "exec"), names)
    with pytest.raises(ti.TaichiTypeError, match=message):
        names["run"]()


def test_indices_from_the_end(arch):
    @ti.kernel
    def run() -> ti.i32:
        v = ti.Vector([1, 2, 3])
        m = ti.Matrix([[1, 2, 3], [4, 5, 6]])
        v[-1] = 7
        m[-1, 0] += 10
        return v[-1] * 1000 + m[-1, -3] * 10 + m[0, -1] + v[-2:].sum() * 100000

    assert run() == 7 * 1000 + 140 + 3 + 900000

    @ti.kernel
    def outside() -> ti.i32:
        return ti.Vector([1, 2, 3])[-4]

    with pytest.raises(ti.TaichiIndexError, match="index -4 is out of range"):
        outside()


def test_formats(arch, capfd):
    name = "drop"

    @ti.kernel
    def run(a: ti.i32, b: ti.f32):
        v = ti.Vector([b, 2 * b])
        print("{x} {0}|{x:04d}".format(a, x=a + 1))  # noqa: UP030, UP032
        print("{1:.2f} {0:5d}|".format(a, b))  # noqa: UP030, UP032
        print("{v:.1f} and {{}}".format(v=v))  # noqa: UP032
        print(f"{a=} {b = :.1f} {v:.2f} {a:x} {b:e}")
        print(f"{a!r} {b!s:.1f} {v!a} {name!r}")
        print("{x!r} {0!s:>4} {0!a}|".format(a, x=v))  # noqa: UP030, UP032

    run(30, 2.5)
    ti.sync()
    assert capfd.readouterr().out.splitlines() == [
        "31 30|0031",
        "2.50    30|",
        "[2.5, 5.0] and {}",
        "a=30 b = 2.5 [2.50, 5.00] 1e 2.500000e+00",
        "30 2.5 [2.500000, 5.000000] drop",
        "[2.500000, 5.000000]   30 30|",
    ]


def test_wrong_formats(arch):
    @ti.kernel
    def whole(x: ti.f32):
        print(f"{x:d}")

    @ti.kernel
    def missing(x: ti.f32):
        print("{} {}".format(x))  # noqa: F524

    @ti.kernel
    def unnamed(x: ti.f32):
        print("{x} {y}".format(x=x))  # noqa: F524

    @ti.kernel
    def mixed(x: ti.f32):
        print("{0} {}".format(x, x))  # noqa: F523, F525

    @ti.kernel
    def converted(x: ti.f32):
        print("{!q}".format(x))

    with pytest.raises(ti.TaichiSyntaxError, match="`!q` is not a conversion"):
        converted(1)
    with pytest.raises(ti.TaichiIndexError, match="has placeholders for 1 values, but 2 are given"):
        mixed(1)
    with pytest.raises(ti.TaichiTypeError, match="the format `d` is for integers, not `f32`"):
        whole(1)
    with pytest.raises(ti.TaichiIndexError, match="more placeholders than there are arguments"):
        missing(1)
    with pytest.raises(ti.TaichiIndexError, match="names `y`, which is not an argument"):
        unnamed(1)


def test_dataclasses_inherit(arch):
    @ti.dataclass
    class Body:
        at: ti.math.vec2
        mass: ti.f32

        @ti.func
        def momentum(self, v):
            return self.mass * v

        @ti.func
        def name(self):
            return 1

    @ti.dataclass
    class Ball(Body):
        radius: ti.f32

        @ti.func
        def name(self):
            return 2

        @ti.func
        def move(self, by):
            self.at += by * self.mass

    @ti.kernel
    def run() -> ti.f32:
        ball = Ball(ti.math.vec2(1, 2), 3.0, 0.5)
        ball.move(2.0)
        return ball.at.x + 10 * ball.momentum(2.0) + 100 * ball.name() + ball.radius

    assert run() == 7 + 60 + 200 + 0.5
    ball = Ball([1, 2], 3, 4)
    assert ball.keys == ["at", "mass", "radius"]
    assert list(ball.entries) == ball.keys
    assert sorted(ball.methods) == ["momentum", "move", "name"]

    with pytest.raises(ti.TaichiTypeError, match="not made from a class"):

        class Wrong(ti.types.struct(a=ti.i32)):
            pass


def test_components_keep_their_type_in_python(cpu):
    v = ti.math.vec3(1, 2, 3)
    v.xy = [7, 8]
    v[2] = 9
    assert repr([v.x, v.y, v.z]) == "[7.0, 8.0, 9.0]"
    w = ti.math.ivec2(1, 2)
    w.x = 3.7
    assert w.to_list() == [3, 2]


def test_dictionaries(arch):
    @ti.kernel
    def run(n: ti.i32) -> ti.i32:
        squares = {i: n * i * i for i in range(4)}
        names = {"a": 1, "b": n}
        mixed = {"a": 1, 2: 3, (0, 1): 4}
        squares[3] += 1
        total = 0
        for key, value in ti.static(squares.items()):
            total += key * value
        for key in ti.static(squares):
            total += 1000 * key
        if ti.static(7 not in squares and (0, 1) in mixed):
            total += 10**5
        return total + names["b"] * 10**6 + mixed[0, 1] + len(mixed) + squares.get(9, 7)

    assert run(2) == (1 * 2 + 2 * 8 + 3 * 19) + 6000 + 10**5 + 2 * 10**6 + 4 + 3 + 7


def test_truth_of_vectors_goes_by_element(arch):
    @ti.kernel
    def run() -> (ti.math.ivec3, ti.math.ivec3, ti.math.ivec3):
        v = ti.Vector([4, 0, 6])
        w = ti.Vector([2, 1, 0])
        return v and w, v or w, not v

    assert [v.to_list() for v in run()] == [[1, 0, 0], [1, 1, 1], [0, 1, 0]]


def test_extrema_have_the_promoted_type(arch, capfd):
    @ti.kernel
    def run():
        print(ti.min(1, 2.5, 3), ti.max(3, 2.5), ti.min(2, 1))

    run()
    ti.sync()
    assert capfd.readouterr().out == "1.000000 3.000000 1\n"


def test_half_floats_have_atomics(arch):
    x = ti.field(ti.f16, 3)

    @ti.kernel
    def run():
        for i in range(1, 6):
            ti.atomic_max(x[0], ti.f16(i))
            ti.atomic_min(x[1], -ti.f16(i))
            ti.atomic_add(x[2], ti.f16(i))

    run()
    assert list(x.to_numpy()) == [5, -5, 15]


@pytest.mark.parametrize("step", ["0.5", "s"])
def test_steps_are_integers(arch, tmp_path, step):
    source = f"import aerogel as ti\n@ti.kernel\ndef run(s: float):\n    for i in range(1, 4, {step}):\n        pass\n"
    (tmp_path / "steps.py").write_text(source)
    spec = importlib.util.spec_from_file_location("steps", tmp_path / "steps.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with pytest.raises(ti.TaichiTypeError, match="the step of a range must be an integer, not `f32`"):
        module.run(1.0)


def test_products_of_vectors_take_vectors(arch):
    v = ti.Vector([1.0, 2.0, 3.0])

    @ti.kernel
    def dot() -> float:
        return ti.Vector([1.0, 2.0, 3.0]).dot(2.0)

    @ti.kernel
    def cross() -> ti.math.vec3:
        return v.cross(2.0)

    for kernel in (dot, cross):
        with pytest.raises(ti.TaichiTypeError, match="needs two vectors"):
            kernel()


def test_places_inside_small_real_functions(debug):
    x = ti.field(float, 4)

    @ti.real_func
    def leaf(i: ti.i32) -> ti.f32:
        a = 1.0
        a += x[i]
        return a

    @ti.kernel
    def run() -> ti.f32:
        return leaf(9)

    with pytest.raises(ti.TaichiRuntimeError, match=r"a \+= x\[i\]"):
        run()


def test_shapes_of_elements(arch):
    @ti.kernel
    def run(a: ti.types.ndarray(ndim=1)) -> int:
        result = 0
        if ti.static(a.element_shape() == [3]):
            result = 3
        elif ti.static(a.element_shape() == [2, 2]):
            result = 4
        else:
            ti.static_assert(a.element_shape() == [])
        return result

    assert run(ti.ndarray(float, 2)) == 0
    assert run(ti.Vector.ndarray(3, float, 2)) == 3
    assert run(ti.Matrix.ndarray(2, 2, float, 2)) == 4


def test_loop_config_waits_for_its_loop(arch):
    x = ti.field(ti.i32, 1000)
    y = ti.field(ti.i32, ())

    @ti.kernel
    def run(n: int):
        ti.loop_config(serialize=True)
        last = 0
        if n > 0:
            last = 1
        for i in range(n):
            # Only one after the other gives the sums.
            last += i
            x[i] = last
        y[None] = last

    run(1000)
    assert (x.to_numpy() == 1 + np.cumsum(np.arange(1000))).all()
    assert y[None] == 1 + 999 * 500


def test_rounding_of_constants(arch):
    @ti.kernel
    def run(x: ti.f32) -> ti.math.vec4:
        return ti.math.vec4(ti.round(2.5), ti.math.round(x), round(2.5), round(x))

    assert run(2.5).to_list() == [3, 3, 2, 3]


def test_the_maximum_of_one_operand(arch):
    """It goes by components: a number or a vector is its own. Lists are gone through, as in Python."""
    x = ti.field(ti.f32, ())

    @ti.kernel
    def numbers(a: ti.i32) -> ti.math.vec4:
        x[None] = a
        return ti.math.vec4(ti.max(a), min(x[None]), ti.max(2.5), ti.min(ti.i8(a)))

    @ti.kernel
    def vectors(a: ti.i32) -> ti.math.ivec3:
        v = ti.Vector([a, 1, 2])
        w = ti.max(v)
        v[0] = 0
        return w + min(ti.Vector([10, 20, 30]))

    @ti.kernel
    def lists(a: ti.i32) -> ti.i32:
        return max([a, 1, 2]) * 10 + min([3, 4])

    assert numbers(7).to_list() == [7, 7, 2.5, 7]
    assert vectors(7).to_list() == [17, 21, 32]
    assert lists(7) == 73
    assert [ti.max(3), ti.min(2.5), ti.max(ti.Vector([3, 1])).to_list()] == [3, 2.5, [3, 1]]
