"""Numbers of type `bf16`: the high halves of `f32`s."""

import math
import struct

import numpy as np
import pytest

import aerogel as ti

ml_dtypes = pytest.importorskip("ml_dtypes")
bf16 = ml_dtypes.bfloat16

ODD = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    1.00390625,
    1.01171875,
    3.0e38,
    3.39e38,
    -3.4e38,
    1e-40,
    9e-41,
    math.inf,
    -math.inf,
    0.1,
    257.0,
]


def every() -> np.ndarray:
    """All numbers of the type."""
    return np.arange(1 << 16, dtype=np.uint16).view(bf16)


def test_a_number_is_rounded_once():
    for x in ODD:
        expected = float(np.float64(x).astype(np.float32).astype(bf16))
        assert ti.bf16(x) == expected, x
    # Rounded to 24 bits first, it would lie in the middle.
    assert ti.bf16(1 + 2**-8 + 2**-40) == 1 + 2**-7
    assert ti.bf16(1 + 3 * 2**-8 - 2**-40) == 1 + 2**-7
    assert math.isnan(ti.bf16(math.nan))


def test_fields_and_arrays_keep_every_number():
    ti.init(arch=ti.cpu)
    x, y = ti.field(ti.bf16, shape=1 << 16), ti.ndarray(ti.bf16, 1 << 16)
    x.from_numpy(every())
    y.from_numpy(every())
    for got in (x.to_numpy(), y.to_numpy()):
        assert got.dtype == bf16
        same = got.view(np.uint16) == every().view(np.uint16)
        assert (same | np.isnan(every().astype(np.float32))).all()
    x[3] = 0.1
    assert x[3] == 0.10009765625
    assert str(x.dtype) == "bf16"


@pytest.mark.parametrize("fast_math", [False, True])
def test_kernels_compute_what_is_rounded_after_each_step(fast_math):
    ti.init(arch=ti.cpu, fast_math=fast_math)
    rng = np.random.default_rng(1)
    n = 4096
    a, b = (
        (rng.standard_normal(n) * 2.0 ** rng.integers(-20, 20, n)).astype(np.float32).astype(bf16) for _ in range(2)
    )
    outs = [np.zeros(n, bf16) for _ in range(8)]

    @ti.kernel
    def compute(
        a: ti.types.ndarray(ti.bf16),
        b: ti.types.ndarray(ti.bf16),
        add: ti.types.ndarray(),
        sub: ti.types.ndarray(),
        mul: ti.types.ndarray(),
        div: ti.types.ndarray(),
        root: ti.types.ndarray(),
        least: ti.types.ndarray(),
        down: ti.types.ndarray(),
        less: ti.types.ndarray(),
    ):
        for i in a:
            x, y = a[i], b[i]
            add[i] = x + y
            sub[i] = x - y
            mul[i] = x * y
            div[i] = x / y
            root[i] = ti.sqrt(abs(x))
            least[i] = min(x, y)
            down[i] = ti.floor(x)
            less[i] = ti.select(x < y, x, ti.bf16(1))

    compute(a, b, *outs)
    f, g = a.astype(np.float32), b.astype(np.float32)
    expected = [f + g, f - g, f * g, f / g, np.sqrt(abs(f)), np.minimum(f, g), np.floor(f), np.where(f < g, f, 1)]
    for got, wanted in zip(outs, expected):
        np.testing.assert_array_equal(got.astype(np.float32), wanted.astype(bf16).astype(np.float32))


def test_conversions():
    ti.init(arch=ti.cpu)
    x = ti.field(ti.bf16, shape=())

    @ti.kernel
    def convert(v: ti.f64) -> ti.types.vector(4, ti.f64):
        x[None] = v
        half = ti.cast(x[None], ti.f16)
        return ti.Vector(
            [
                ti.cast(x[None], ti.f64),
                ti.cast(half, ti.f64),
                ti.cast(ti.cast(x[None], ti.i32), ti.f64),
                ti.cast(ti.cast(ti.cast(v, ti.i64), ti.bf16), ti.f64),
            ]
        )

    assert list(convert(1 + 2**-8 + 2**-40)) == [1 + 2**-7, 1 + 2**-7, 1, 1]
    assert list(convert(1000.0)) == [1000, 1000, 1000, 1000]
    assert list(convert(-70000.0)) == [-70144.0, -math.inf, -70144, -70144]


def test_types_that_meet():
    ti.init(arch=ti.cpu)

    @ti.kernel
    def types(a: ti.bf16, b: ti.f16, n: ti.i64) -> ti.types.vector(3, ti.f64):
        # 1/3 has 8 digits in `bf16`, 24 in `f32`, which the two halves meet at.
        third = a / ti.bf16(3)
        return ti.Vector([ti.cast(third, ti.f64), ti.cast((a + b * 0) / 3, ti.f64), ti.cast(a + n, ti.f64)])

    got = types(1.0, 1.0, 1)
    assert got[0] == float(np.float32(1 / 3).astype(bf16))
    assert got[1] == float(np.float32(1) / np.float32(3))
    assert got[2] == 2


def test_sums_of_threads():
    ti.init(arch=ti.cpu)
    total, most = ti.field(ti.bf16, shape=()), ti.field(ti.bf16, shape=4)

    @ti.kernel
    def add(n: int):
        for i in range(n):
            total[None] += 1
            ti.atomic_max(most[i % 4], ti.cast(i, ti.bf16))

    add(200)
    assert total[None] == 200
    assert list(most.to_numpy().astype(float)) == [196, 197, 198, 199]


def test_sparse_fields_prints_and_what_is_kept(capfd):
    ti.init(arch=ti.cpu)
    x = ti.field(ti.bf16)
    ti.root.pointer(ti.i, 8).dense(ti.i, 8).place(x)

    @ti.kernel
    def write():
        x[9] = 0.1
        print("x", x[9])

    write()
    ti.sync()
    assert "x 0.100098" in capfd.readouterr().out
    assert x[9] == 0.10009765625 and x[10] == 0


def test_gradients():
    ti.init(arch=ti.cpu)
    x, y = ti.field(ti.bf16, shape=3, needs_grad=True), ti.field(ti.bf16, shape=(), needs_grad=True)

    @ti.kernel
    def square():
        for i in x:
            y[None] += x[i] * x[i]

    x.from_numpy(np.array([1, 2, 3], np.float32))
    with ti.ad.Tape(y):
        square()
    assert y[None] == 14
    assert list(x.grad.to_numpy().astype(float)) == [2, 4, 6]


def test_random_numbers_lie_in_the_interval():
    ti.init(arch=ti.cpu)
    x = ti.field(ti.bf16, shape=4096)

    @ti.kernel
    def draw():
        for i in x:
            x[i] = ti.random(ti.bf16)

    draw()
    numbers = x.to_numpy().astype(float)
    assert numbers.min() >= 0 and numbers.max() < 1 and abs(numbers.mean() - 0.5) < 0.02


@pytest.mark.parametrize("fill", [70000, np.inf])
def test_too_large_numbers_are_refused_where_those_of_others_are(fill):
    ti.init(arch=ti.cpu)
    x = ti.field(ti.bf16, shape=2)
    x.from_numpy(np.full(2, fill, np.float64))
    assert float(x.to_numpy()[0]) == float(np.float32(fill).astype(bf16))
    with pytest.raises(TypeError, match="does not fit an element of type bf16"):
        x.from_numpy(np.full(2, 1e300))


# Tensors.


def test_tensors_are_made_and_shown():
    ti.init(arch=ti.cpu)
    x = ti.tensor.asarray([1.0, 0.1, 3.0], dtype=ti.bf16)
    assert x.dtype is ti.bf16
    assert x.tolist() == [1.0, 0.10009765625, 3.0]
    assert repr(ti.tensor.asarray([1.0, 2.5], dtype=ti.bf16)) == "tensor([1. , 2.5], dtype=bf16)"
    assert x.numpy().dtype == bf16
    assert ti.tensor.asarray(x.numpy()).dtype is ti.bf16
    assert ti.tensor.ones(2, dtype="bf16").sum().item() == 2
    assert x[1].item() == 0.10009765625


def test_tensors_round_after_each_operation():
    ti.init(arch=ti.cpu)
    rng = np.random.default_rng(2)
    a, b = (rng.standard_normal((64, 9)).astype(np.float32).astype(bf16) for _ in range(2))
    x, y = ti.tensor.asarray(a), ti.tensor.asarray(b)
    got = ((x * y + x) / (y * y + 1)).numpy()
    one = np.float32(1).astype(bf16)
    np.testing.assert_array_equal(got.view(np.uint16), ((a * b + a) / (b * b + one)).view(np.uint16))


def test_sums_of_many_are_taken_in_f32():
    ti.init(arch=ti.cpu)
    x = ti.tensor.ones((1000,), dtype=ti.bf16)
    assert x.sum().item() == 1000
    assert x.mean().item() == 1
    assert ti.tensor.cumulative_sum(x)[999].item() == 1000
    assert (x.reshape(10, 100) @ x.reshape(100, 10))[0, 0].item() == 100
    a = np.random.default_rng(3).standard_normal((40, 64)).astype(np.float32).astype(bf16)
    got = (ti.tensor.asarray(a) @ ti.tensor.asarray(a.T.copy())).numpy().astype(np.float32)
    exact = a.astype(np.float64) @ a.astype(np.float64).T
    np.testing.assert_allclose(got, exact, rtol=2**-8, atol=1e-3)


def test_types_of_tensors_that_meet():
    ti.init(arch=ti.cpu)
    x = ti.tensor.ones(2, dtype=ti.bf16)
    assert (x + ti.tensor.ones(2, dtype=ti.f16)).dtype is ti.f32
    assert (x + ti.tensor.ones(2, dtype=ti.f32)).dtype is ti.f32
    assert (x + 1).dtype is ti.bf16 and (x * 1.5).dtype is ti.bf16
    assert (x + ti.tensor.ones(2, dtype=ti.i64)).dtype is ti.bf16
    info = ti.xp.finfo(ti.bf16)
    assert (info.bits, info.eps) == (16, 2.0**-7)
    assert struct.pack("f", info.max).hex() == "00007f7f"
    assert ti.xp.isdtype(ti.bf16, "real floating")


@pytest.mark.parametrize(
    "name", ["exp", "log", "sin", "tanh", "sqrt", "sigmoid", "erf", "log1p", "asinh", "floor", "square"]
)
def test_functions_of_tensors(name):
    ti.init(arch=ti.cpu)
    a = np.linspace(0.1, 3, 50).astype(np.float32).astype(bf16)
    function = getattr(ti.tensor, name)
    got, single = function(ti.tensor.asarray(a)), function(ti.tensor.asarray(a.astype(np.float32)))
    assert got.dtype is ti.bf16
    np.testing.assert_allclose(got.numpy().astype(float), single.numpy(), rtol=2**-6, atol=2**-7)


def test_sorted_searched_and_reshaped():
    ti.init(arch=ti.cpu)
    a = np.array([3, -1, 2, np.inf, 0.5, -7], np.float32).astype(bf16)
    x = ti.tensor.asarray(a)
    assert ti.tensor.sort(x).tolist() == sorted(a.astype(float))
    assert ti.tensor.argmax(x).item() == 3 and ti.tensor.min(x).item() == -7
    assert x.reshape(2, 3).T.tolist() == a.reshape(2, 3).T.astype(float).tolist()
    assert ti.tensor.linalg.det(ti.tensor.asarray([[2.0, 0], [0, 3]], dtype=ti.bf16)).item() == pytest.approx(6)


def test_programs_take_them():
    from aerogel.tensor import programs as p

    ti.init(arch=ti.cpu)

    @p.program
    def scaled():
        x = p.input([-1], ti.bf16)
        y = p.buffer(x.shape, ti.bf16)
        i = p.indices(x.shape)[0]
        y[i] = x[i] * 3
        return y, y.sum()

    y, total = scaled(ti.tensor.asarray([1.0, 2.0], dtype=ti.bf16))
    assert y.tolist() == [3, 6] and total.item() == 9
