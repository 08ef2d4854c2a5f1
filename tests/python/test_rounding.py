"""Float expressions are rounded as they are written by default; accumulations alone may be regrouped."""

import aerogel as ti
import numpy as np
import pytest

F32 = ti.types.ndarray(ti.f32, 1)
LO, INV, DX = 0.1, 3.0, 3.0


@pytest.fixture(autouse=True)
def default_settings():
    ti.init(arch=ti.cpu, log_level="error")


def test_a_constant_is_not_multiplied_into_a_difference():
    @ti.kernel
    def decide(x: ti.f32) -> ti.types.vector(4, ti.f32):
        return ti.Vector(
            [
                ti.floor((x - LO) * INV),
                ti.floor((x - LO) / DX),
                ti.sqrt((x - LO) * INV),
                ti.sqrt(2.0 * 9.81 * (x - LO)),
            ]
        )

    assert decide(0.1).to_list() == [0, 0, 0, 0]


def test_products_are_not_fused_into_differences():
    @ti.kernel
    def roots(a: F32, b: F32, c: F32, out: F32):
        for i in a:
            out[i] = ti.sqrt(b[i] * b[i] - 4 * a[i] * c[i])

    k = np.arange(1, 200, dtype=np.float32) * np.float32(0.1)
    out = np.ones_like(k)
    roots(k, 2 * k, k, out)
    assert (out == 0).all()

    @ti.kernel
    def parallel(x: F32, out: F32):
        for i in out:
            u = ti.math.vec3(x[i], x[i] + 0.3, x[out.shape[0] - 1 - i])
            out[i] = ti.abs(u.cross(4 * u)).max()

    x = np.random.default_rng(1).uniform(0.1, 3, 500).astype(np.float32)
    out = np.ones_like(x)
    parallel(x, out)
    assert (out == 0).all()


def test_products_are_not_fused_into_sums():
    @ti.kernel
    def nearest(x: ti.f32, d: ti.f32) -> ti.i32:
        return int(ti.floor(x * d + 0.5))

    assert nearest(-5.0, 0.1) == 0

    @ti.kernel
    def wrapped(x: F32, out: F32, box: ti.f32):
        for i in x:
            y = x[i] - ti.floor(x[i] / box) * box
            out[i] = ti.floor(y * 8.0 / box)

    x = np.arange(200, dtype=np.float32) * np.float32(0.3)
    out = np.zeros_like(x)
    wrapped(x, out, 0.3)
    assert (out >= 0).all()


def test_factors_keep_their_order():
    @ti.kernel
    def written(a: ti.f32, r: ti.f32) -> ti.f32:
        return a * r * r * r

    @ti.kernel
    def in_a_loop(a: ti.f32, r: ti.f32, n: ti.i32) -> ti.f32:
        product = a
        for _ in range(n):
            product *= r
        return product

    a, r = np.float32(1e-30), np.float32(1e13)
    right = a * r * r * r
    assert written(1e-30, 1e13) == right
    assert in_a_loop(1e-30, 1e13, 3) == right


def test_a_sum_of_squares_beside_the_square_of_a_sum():
    @ti.kernel
    def deviations(a: ti.types.ndarray(ti.f32, 2), out: F32):
        for i in out:
            m = 0.0
            q = 0.0
            for j in range(4):
                m += a[i, j]
                q += a[i, j] * a[i, j]
            out[i] = ti.sqrt(q / 4 - (m / 4) * (m / 4))

    x = np.repeat(np.random.default_rng(1).uniform(0.1, 3, (2000, 1)).astype(np.float32), 4, 1)
    out = np.ones(2000, np.float32)
    deviations(x, out)
    assert not np.isnan(out).any()


@pytest.mark.parametrize("divisor", ["argument", "constant", "loaded"])
@pytest.mark.parametrize(("dtype", "kind"), [(ti.f32, np.float32), (ti.f64, np.float64), (ti.f16, np.float16)])
def test_quotients_are_rounded_once(dtype, kind, divisor):
    arrays = ti.types.ndarray(dtype, 1)

    @ti.kernel
    def by_argument(x: arrays, out: arrays, c: dtype):
        for i in x:
            out[i] = x[i] / c

    @ti.kernel
    def by_constant(x: arrays, out: arrays, c: ti.template()):
        for i in x:
            out[i] = x[i] / c

    @ti.kernel
    def by_first(x: arrays, out: arrays, c: arrays):
        for i in x:
            out[i] = x[i] / c[0]

    n = 1000 if kind is np.float16 else 20000
    # A constant of the kernel is an `f32` beside a number of another type.
    for c in (3.0, 7.0, 49.0) if divisor == "constant" else (3.0, 7.0, 49.0, 0.1):
        x = (np.arange(n).astype(kind) * kind(c)).astype(kind)
        out = np.zeros_like(x)
        if divisor == "argument":
            by_argument(x, out, c)
        elif divisor == "constant":
            by_constant(x, out, c)
        else:
            by_first(x, out, np.full(1, c, kind))
        np.testing.assert_array_equal(out, x / kind(c))


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16])
def test_remainders_are_pythons(arch, kind):
    dtype = {np.float32: ti.f32, np.float64: ti.f64, np.float16: ti.f16}[kind]
    one, two = ti.types.ndarray(dtype, 1), ti.types.ndarray(dtype, 2)

    @ti.kernel
    def divide(x: one, y: one, out: two):
        for i in x:
            out[0, i] = x[i] % y[i]
            out[1, i] = x[i] // y[i]
            out[2, i] = ti.math.mod(x[i], y[i])

    info = np.finfo(kind)
    ends = [0, -0.0, 1, -1, 0.1, np.inf, -np.inf, np.nan, info.tiny, info.smallest_subnormal, info.max, -3.5]
    x, y = (a.ravel() for a in np.meshgrid(np.array(ends, kind), np.array(ends, kind)))
    rng = np.random.default_rng(3)
    divisors = rng.uniform(-9, 9, 300).astype(kind)
    x = np.concatenate([x, (rng.integers(-900, 900, 300).astype(kind) * divisors).astype(kind)])
    y = np.concatenate([y, divisors])
    out = np.zeros((3, len(x)), kind)
    divide(x, y, out)
    with np.errstate(all="ignore"):
        right = np.stack([x % y, x // y, x % y])
    np.testing.assert_array_equal(out, right)
    numbers = ~np.isnan(right)
    np.testing.assert_array_equal(np.signbit(out)[numbers], np.signbit(right)[numbers])


@pytest.mark.parametrize("exponent", [0.5, -0.5, 1.5, -1.5, 2.5, -2.5])
def test_powers_of_halves_at_the_ends(exponent):
    @ti.kernel
    def power(x: ti.f64) -> ti.f64:
        return x**exponent

    small, large = (0.0, np.inf) if exponent > 0 else (np.inf, 0.0)
    for x, right in ((0.0, small), (-0.0, small), (np.inf, large), (-np.inf, large)):
        found = power(x)
        assert found == right and not np.signbit(found), (x, found)
    assert np.isnan(power(-1.0)) and np.isnan(power(np.nan))
    np.testing.assert_allclose(power(2.0), 2.0**exponent, rtol=1e-15)


def test_tensors_follow_the_same_rule():
    x = ti.tensor.asarray(np.array([1.0, 2.0], np.float32))
    assert ((x + 1e8) - 1e8).tolist() == [0, 0]
    a = np.arange(20000, dtype=np.float32)
    found = ti.tensor.floor(ti.tensor.asarray(a) / 49.0).numpy()
    np.testing.assert_array_equal(found, np.floor(a / np.float32(49)))


def test_a_loop_with_a_level_of_its_own():
    @ti.kernel
    def quotients(x: F32, fast: F32, written: F32):
        ti.loop_config(fast_math="full")
        for i in x:
            fast[i] = x[i] / 49.0
        for i in x:
            written[i] = x[i] / 49.0

    x = np.random.default_rng(4).uniform(0, 9, 2000).astype(np.float32)
    fast, written = np.zeros_like(x), np.zeros_like(x)
    quotients(x, fast, written)
    np.testing.assert_array_equal(written, x / np.float32(49))
    assert (fast != written).any()
    np.testing.assert_allclose(fast, written, rtol=3e-7)


def test_a_loop_in_order():
    """Without regrouping, a serial sum is that of the program."""

    @ti.kernel
    def total(x: F32, out: F32):
        ti.loop_config(fast_math=False)
        for i in out:
            s = 0.0
            for j in range(x.shape[0]):
                s += x[j]
            out[i] = s

    x = np.random.default_rng(2).uniform(0, 1, 3000).astype(np.float32)
    out = np.zeros(3, np.float32)
    total(x, out)
    right = np.float32(0)
    for value in x:
        right += value
    assert (out == right).all()


def test_levels_that_there_are_not():
    with pytest.raises(ValueError, match="fast_math is True, False or \"full\", not 'fast'"):
        ti.init(arch=ti.cpu, fast_math="fast")
    ti.init(arch=ti.cpu, log_level="error")

    @ti.kernel
    def wrong(x: F32):
        ti.loop_config(fast_math="fast")
        for i in x:
            x[i] = 0.0

    with pytest.raises(
        ti.AerogelTypeError, match='`fast_math` of `ti.loop_config` is `True`, `False` or "full", not "fast"'
    ):
        wrong(np.zeros(3, np.float32))


def test_the_level_comes_from_the_environment(monkeypatch):
    for text, level in (("full", "full"), ("0", False), ("TRUE", True)):
        monkeypatch.setenv("AEROGEL_FAST_MATH", text)
        ti.init(arch=ti.cpu, log_level="error")
        assert ti.cfg.fast_math == level
    monkeypatch.setenv("AEROGEL_FAST_MATH", "fast")
    with pytest.raises(ValueError, match="True, False or"):
        ti.init(arch=ti.cpu, log_level="error")
    with pytest.raises(ValueError, match="AEROGEL_FAST_MATH is True, False or \"full\", not 'Quick'"):
        monkeypatch.setenv("AEROGEL_FAST_MATH", "Quick")
        ti.init(arch=ti.cpu, log_level="error")


@pytest.mark.parametrize("value", [None, 2, -1, 1.0, [], np.float32(1)])
def test_values_that_are_no_level(value):
    with pytest.raises(TypeError, match='fast_math is True, False or "full", not '):
        ti.init(arch=ti.cpu, fast_math=value)


@pytest.mark.parametrize("value", [True, False, "full", 0, 1, np.bool_(True), np.bool_(False), np.int64(1)])
def test_values_that_are_a_level(value):
    ti.init(arch=ti.cpu, log_level="error", fast_math=value)
    assert ti.cfg.fast_math == value and type(ti.cfg.fast_math) in (bool, str)


@pytest.mark.parametrize(("value", "given"), [("fast", '"fast"'), (2, "`2`"), (1.0, "`1.0`")])
def test_a_loop_with_no_such_level(value, given):
    @ti.kernel
    def wrong(x: F32):
        ti.loop_config(fast_math=value)
        for i in x:
            x[i] = 0.0

    message = f'`fast_math` of `ti.loop_config` is `True`, `False` or "full", not {given}'
    with pytest.raises(ti.AerogelTypeError, match=message):
        wrong(np.zeros(3, np.float32))


def test_a_loop_with_the_level_around():
    @ti.kernel
    def fill(x: F32):
        ti.loop_config(fast_math=None)
        for i in x:
            for _ in range(2):
                x[i] += 1.0
        ti.loop_config(fast_math=None)

    x = np.zeros(3, np.float32)
    fill(x)
    assert (x == 2).all()


FLAG = False


@ti.kernel
def before_an_inner_loop(x: F32):
    for i in x:
        ti.loop_config(fast_math="full")
        for j in range(3):
            x[i] += x[j]


@ti.kernel
def before_an_unrolled_loop(x: F32):
    ti.loop_config(fast_math="full")
    for i in ti.static(range(3)):
        x[i] = 0.0


@ti.kernel
def before_a_while(x: F32):
    ti.loop_config(fast_math="full")
    while x[0] < 1:
        x[0] += 1
    for i in x:
        x[i] = 0.0


@ti.kernel
def before_a_statement(x: F32):
    ti.loop_config(fast_math="full")
    x[0] = 1.0
    for i in x:
        x[i] = 0.0


@ti.kernel
def at_the_end_of_a_branch(x: F32):
    if x[0] > 0:
        ti.loop_config(fast_math="full")
    for i in x:
        x[i] = 0.0


@ti.kernel
def in_a_branch(x: F32):
    if x[0] > 0:
        ti.loop_config(fast_math="full")
        for i in x:
            x[i] = 0.0


@ti.kernel
def at_the_end(x: F32):
    x[0] = 0.0
    ti.loop_config(fast_math="full")


@pytest.mark.parametrize(
    ("kernel", "why"),
    [
        (before_an_inner_loop, "the loop that follows runs inside another"),
        (before_an_unrolled_loop, "the loop that follows is unrolled"),
        (before_a_while, "the next statement is not a `for` loop"),
        (before_a_statement, "the next statement is not a `for` loop"),
        (at_the_end_of_a_branch, "no loop follows it in its block"),
        (in_a_branch, "the loop that follows is inside a branch"),
        (at_the_end, "no loop follows it in its block"),
    ],
)
def test_a_level_that_no_parallel_loop_has(kernel, why):
    with pytest.raises(ti.AerogelTypeError) as caught:
        kernel(np.zeros(3, np.float32))
    text = str(caught.value)
    assert f"E0222]: `fast_math` of `ti.loop_config` is for parallel loops; {why}\n" in text
    assert 'ti.loop_config(fast_math="full")' in text


def test_settings_pass_over_what_does_nothing():
    @ti.kernel
    def count(x: F32, out: F32):
        ti.loop_config(serialize=True)
        "What comes next runs in order."
        ti.loop_config(fast_math=False)
        ti.static_assert(not FLAG)
        if ti.static(not FLAG):
            for i in x:
                out[0] += 1
                if i == 1:
                    break
        ti.loop_config(fast_math="full")
        if ti.static(FLAG):
            for i in x:
                out[0] = x[i]

    out = np.zeros(1, np.float32)
    count(np.zeros(3, np.float32), out)
    assert out[0] == 2
