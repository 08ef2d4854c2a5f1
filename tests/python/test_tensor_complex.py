"""Complex tensors and Fourier transforms, beside NumPy."""

import pickle

import aerogel as ti
import numpy as np
import pytest
from aerogel import xp
from aerogel.tensor import programs as p

T = None


@pytest.fixture(autouse=True)
def started():
    global T
    ti.init(arch=ti.cpu)
    T = ti.tensor


def numbers(*shape, dtype=np.complex128, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)


def close(found, expected, tol=1e-12):
    found = found.numpy()
    assert found.shape == np.shape(expected) and found.dtype == np.asarray(expected).dtype
    assert np.allclose(found, expected, rtol=tol, atol=tol, equal_nan=True)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("shape", [(), (1,), (3, 2), (2, 0, 3), (1, 4)])
def test_numbers_come_and_go(shape, dtype):
    z = numbers(*shape, dtype=dtype)
    t = T.asarray(z)
    assert np.array_equal(t.numpy(), z) and t.numpy().dtype == dtype and t.dtype.name == np.dtype(dtype).name
    assert np.array_equal(np.asarray(t), z)
    assert np.array_equal(pickle.loads(pickle.dumps(t)).numpy(), z)
    assert np.array_equal(t.real.numpy(), z.real) and np.array_equal(t.imag.numpy(), z.imag)
    if z.ndim:
        strided = z[::-1]
        assert np.array_equal(T.asarray(strided).numpy(), strided)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_arithmetic(dtype):
    tol = 1e-5 if dtype is np.complex64 else 1e-12
    a, b = numbers(3, 4, dtype=dtype), numbers(4, dtype=dtype, seed=1)
    s, t = T.asarray(a), T.asarray(b)
    r = b.real.copy()
    for f in (
        lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, lambda x, y: x / y, lambda x, y: y - x,
        lambda x, y: 2 - x, lambda x, y: 1j * y, lambda x, y: 2 / y, lambda x, y: (1 + 2j) / y, lambda x, y: x**3,
        lambda x, y: x**-2, lambda x, y: y**0.5, lambda x, y: 2.0**y, lambda x, y: -x, lambda x, y: abs(x),
        lambda x, y: x == y, lambda x, y: x != x, lambda x, y: x[1:, ::2], lambda x, y: x.T, lambda x, y: x @ y,
        lambda x, y: x.sum(0), lambda x, y: x.mean(), lambda x, y: x.conj(), lambda x, y: x.reshape(2, 6),
    ):  # fmt: skip
        close(f(s, t), f(a, b), tol)
    close(s * T.asarray(r), a * r, tol)
    close(T.asarray(r) * s, r * a, tol)
    close(T.asarray(r) + 1j, r + dtype(1j), tol)
    close(1j * T.asarray(r), dtype(1j) * r, tol)
    close(T.asarray(r) @ t, r @ b, tol)


def test_precision_of_pythons_numbers():
    z = T.asarray(numbers(3))
    assert (0.1 + z - z - 0.1).numpy().max() < 1e-15
    close(z + (0.1 + 0.7j), numbers(3) + (0.1 + 0.7j), 1e-16)
    close(z**0.3, numbers(3) ** 0.3)


@pytest.mark.parametrize(
    "name", "exp log sqrt sin cos tan sinh cosh tanh square reciprocal log2 log10 log1p expm1 sign".split()
)
def test_functions(name):
    z = numbers(7)
    close(getattr(T, name)(T.asarray(z)), getattr(np, name)(z), 1e-10)


def test_functions_to_real_numbers():
    z = numbers(7)
    t = T.asarray(z)
    close(T.abs(t), np.abs(z))
    close(T.angle(t), np.angle(z))
    close(T.angle(T.asarray([-1.0, 0.0, 2.0])), np.angle(np.float32([-1.0, 0.0, 2.0])), 1e-6)
    assert T.isnan(T.asarray([complex("nan+1j"), 1j])).tolist() == [True, False]
    assert T.isfinite(T.asarray([complex("inf+1j"), 1j])).tolist() == [False, True]
    close(xp.imag(T.asarray(np.ones(2))), np.zeros(2))
    close(xp.conj(T.asarray(np.ones(2))), np.ones(2))


def test_roots_lie_on_the_right():
    z = np.array([-4, -4j, 0, 4, -1e-30 + 1j, complex(-4, -0.0)])
    close(T.sqrt(T.asarray(z)), np.sqrt(z))


def test_quotients_do_not_overflow():
    z = np.array([1e200 + 1e200j, 1e-200 + 1e-200j])
    close(T.asarray(z) / T.asarray(z), z / z)


def test_shapes():
    z = numbers(2, 1, 3)
    t = T.asarray(z)
    close(T.concat([t, t], 0), np.concatenate([z, z], 0))
    close(T.stack([t, T.asarray(z.real)]), np.stack([z, z.real + 0j]))
    close(T.squeeze(t, 1), z[:, 0])
    close(T.moveaxis(t, 0, 2), np.moveaxis(z, 0, 2))
    close(T.flip(t), np.flip(z))
    close(T.where(t.real > 0, t, 0), np.where(z.real > 0, z, 0))
    close(T.sum(t, axis=2), z.sum(2))
    close(T.zeros((2, 3), "complex128"), np.zeros((2, 3), complex))
    close(T.full(2, 1 + 2j, "complex64"), np.full(2, 1 + 2j, np.complex64))
    close(T.asarray(np.arange(3)).astype("complex64"), np.arange(3).astype(np.complex64))
    t[0] = 1 + 1j
    z[0] = 1 + 1j
    close(t, z)


def test_types():
    assert T.asarray([1j]).dtype is T.complex64 and T.asarray(1j).dtype is xp.complex64
    assert xp.result_type(xp.complex64, xp.float64) is xp.complex128
    assert xp.result_type(xp.float32, 1j) is xp.complex64 and xp.result_type(xp.complex64, 1.0) is xp.complex64
    assert xp.isdtype(xp.complex64, "complex floating") and not xp.isdtype(xp.float32, "complex floating")
    assert xp.isdtype(xp.complex64, "numeric") and xp.isdtype(xp.complex64, xp.complex64)
    assert xp.can_cast(xp.float32, xp.complex64) and not xp.can_cast(xp.complex64, xp.float64)
    assert xp.finfo(xp.complex128).dtype is xp.float64
    for f, message in (
        (lambda z: z.astype(ti.f32), "x.real"),
        (lambda z: float(z[0]), "is not a float"),
        (lambda z: T.floor(z), "`floor` takes real"),
        (lambda z: T.maximum(z, 1), "real numbers"),
        (lambda z: T.sort(z), "real numbers|no attribute|complex"),
    ):
        with pytest.raises((TypeError, AttributeError), match=message):
            f(T.asarray([1j]))


def test_in_programs():
    @p.program
    def spectrum():
        x = p.input([-1, 8], ti.f64)
        z = T.fft.fft(x)
        return z * z.conj(), T.fft.irfft(T.fft.rfft(x))

    x = np.random.default_rng(0).normal(size=(3, 8))
    power, back = spectrum(x)
    close(power.real, np.abs(np.fft.fft(x)) ** 2)
    close(back, x)


ROWS = [1, 2, 3, 4, 5, 8, 12, 17, 30]


@pytest.mark.parametrize("n", ROWS)
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_transforms(n, norm):
    z, x, F = numbers(3, n), numbers(3, n).real.copy(), np.fft
    t, u = T.asarray(z), T.asarray(x)
    close(T.fft.fft(t, norm=norm), F.fft(z, norm=norm))
    close(T.fft.ifft(t, norm=norm), F.ifft(z, norm=norm))
    close(T.fft.fft(u, norm=norm), F.fft(x, norm=norm))
    close(T.fft.rfft(u, norm=norm), F.rfft(x, norm=norm))
    close(T.fft.ihfft(u, norm=norm), F.ihfft(x, norm=norm))
    close(T.fft.irfft(t, n=n, norm=norm), F.irfft(z, n=n, norm=norm))
    close(T.fft.hfft(t, n=n, norm=norm), F.hfft(z, n=n, norm=norm))
    if n > 1:
        close(T.fft.irfft(t, norm=norm), F.irfft(z, norm=norm))
        close(T.fft.hfft(t, norm=norm), F.hfft(z, norm=norm))
    close(T.fft.fftfreq(n, d=0.5, dtype=ti.f64), F.fftfreq(n, 0.5))
    close(T.fft.rfftfreq(n, d=0.5, dtype=ti.f64), F.rfftfreq(n, 0.5))
    close(T.fft.fftshift(u), F.fftshift(x))
    close(T.fft.ifftshift(t, axes=1), F.ifftshift(z, axes=1))


@pytest.mark.parametrize("n", [3, 8])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_lengths_and_axes(n, axis):
    z = numbers(4, 5, 6)
    t = T.asarray(z)
    for name in ("fft", "ifft", "irfft", "hfft"):
        close(getattr(T.fft, name)(t, n=n, axis=axis), getattr(np.fft, name)(z, n=n, axis=axis))
    for name in ("rfft", "ihfft"):
        close(getattr(T.fft, name)(t.real, n=n, axis=axis), getattr(np.fft, name)(z.real, n=n, axis=axis))


def test_several_axes():
    z = numbers(4, 3, 6)
    t, F = T.asarray(z), np.fft
    close(T.fft.fftn(t), F.fftn(z))
    close(T.fft.ifftn(t, axes=(0, 2)), F.ifftn(z, axes=(0, 2)))
    close(T.fft.fft2(t, s=(5, 4)), F.fft2(z, s=(5, 4)))
    close(T.fft.rfftn(t.real), F.rfftn(z.real))
    close(T.fft.irfftn(t), F.irfftn(z))
    close(T.fft.irfft2(T.fft.rfft2(t.real)), z.real)


def test_single_precision_and_other_types():
    x = np.arange(8)
    close(T.fft.fft(T.asarray(np.float32(x))), np.fft.fft(x).astype(np.complex64), 1e-5)
    assert T.fft.rfft(T.asarray(x)).dtype is T.complex64


MISTAKES = {
    "empty": (lambda F: F.fft(T.zeros((2, 0))), ValueError, "`fft` of 0 elements"),
    "axis": (lambda F: F.fft([1.0], axis=3), IndexError, "no axis 3"),
    "norm": (lambda F: F.fft([1.0], norm="half"), ValueError, "'backward', 'ortho' or 'forward'"),
    "complex": (lambda F: F.rfft([1j]), TypeError, "`rfft` takes real"),
    "twice": (lambda F: F.fftn(T.zeros((2, 2)), axes=(0, 0)), ValueError, "named twice"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name):
    f, kind, message = MISTAKES[name]
    with pytest.raises(kind, match=message):
        f(T.fft)


def _complex_numbers(*shape, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(-3, 4, shape) + 1j * rng.integers(-3, 4, shape)


SUMS = ["ij,jk->ik", "ij,kj->", "ij->ji", "ii->i", "ij,jk,kl->il", "bij,bjk->bik", "...i,i->..."]


@pytest.mark.parametrize("equation", SUMS)
@pytest.mark.parametrize("real", [None, 0, -1])
def test_einsum_of_complex_tensors(equation, real):
    terms = equation.partition("->")[0].split(",")
    given = [_complex_numbers(*[3] * len(term.replace("...", "x")), seed=k) for k, term in enumerate(terms)]
    if real is not None and len(given) > 1:
        given[real] = given[real].real
    got = ti.tensor.einsum(equation, *given)
    assert np.array_equal(got.numpy(), np.einsum(equation, *given))


def test_other_products_of_complex_tensors():
    a, b, v = _complex_numbers(2, 3, 4), _complex_numbers(4, 3, seed=1), _complex_numbers(3, seed=2)
    t = ti.tensor
    assert np.array_equal(t.tensordot(a, b, axes=1).numpy(), np.tensordot(a, b, 1))
    assert np.array_equal(
        t.tensordot(a, b.real, axes=([1, 2], [1, 0])).numpy(), np.tensordot(a, b.real, ([1, 2], [1, 0]))
    )
    assert np.array_equal(t.outer(v, v.real).numpy(), np.outer(v, v.real))
    for axis in (None, 0, 1, -1, (0, 2), (0, 1, 2)):
        for keepdims in (False, True):
            got = t.prod(t.asarray(a), axis=axis, keepdims=keepdims)
            expected = np.prod(a, axis=axis, keepdims=keepdims)
            assert got.shape == expected.shape
            np.testing.assert_allclose(got.numpy(), expected, rtol=1e-12)
    assert np.array_equal(t.prod(t.asarray(a[:, :0]), axis=1).numpy(), np.ones((2, 4)))


def test_equations_of_complex_matrices():
    a = _complex_numbers(2, 4, 4) + 5 * np.eye(4)
    b, v = _complex_numbers(2, 4, 3, seed=1), _complex_numbers(4, seed=2)
    linalg = ti.tensor.linalg
    np.testing.assert_allclose(linalg.solve(a, b).numpy(), np.linalg.solve(a, b), rtol=1e-10)
    np.testing.assert_allclose(linalg.solve(a[0], v).numpy(), np.linalg.solve(a[0], v), rtol=1e-10)
    np.testing.assert_allclose(linalg.solve(a.real, b).numpy(), np.linalg.solve(a.real, b), rtol=1e-10)
    np.testing.assert_allclose(linalg.solve(a, b.real).numpy(), np.linalg.solve(a, b.real), rtol=1e-10)
    np.testing.assert_allclose(linalg.inv(a).numpy(), np.linalg.inv(a), rtol=1e-10)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_functions_of_large_and_small_numbers(dtype):
    large = np.array([200 + 1j, -200 - 2j, 50 + 3j, 0.3 - 0.2j, 1.5j, -0.7, 0], dtype)
    small = np.array([1e-20 + 1e-20j, 1e-5 + 1e-5j, -1e-3 + 2e-3j, 0.4 - 0.3j, 2 + 3j, -0.999 + 0j, 0], dtype)
    tolerance = 5e-6 if dtype == np.complex64 else 1e-13
    for name, of, wide in (
        ("tanh", large, large),
        ("tan", large * 1j, large * 1j),
        ("expm1", small, small),
        ("log1p", small, small),
    ):
        wide = wide.astype(np.complex128)
        want = getattr(np, name)(wide)
        if name == "log1p":
            # NumPy's own has no digits of small ones.
            x, y = (part.astype(np.longdouble) for part in (wide.real, wide.imag))
            want.real = np.where(abs(wide) < 0.5, np.log1p(x * (x + 2) + y * y) / 2, np.log(abs(wide + 1)))
        got = getattr(ti.tensor, name)(ti.tensor.asarray(of)).numpy()
        for part in ("real", "imag"):
            a, b = getattr(got, part), getattr(want, part)
            assert np.allclose(a, b, rtol=tolerance, atol=1e-30 if name in ("expm1", "log1p") else 1e-12), (
                name,
                part,
                a,
                b,
            )


INVERSES = {
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh,
}  # fmt: skip


def _of_all_sizes(n, most=30, least=-30):
    """Numbers with parts of all sizes and signs, and numbers close to where roots and logarithms have their branches."""
    rng = np.random.default_rng(n)
    re, im = 10 ** rng.uniform(least, most, (2, n)) * rng.choice([-1, 1], (2, n))
    near = rng.choice([1, -1, 1j, -1j], n) * (
        1 + 10 ** rng.uniform(-16, 0, n) * np.exp(2j * np.pi * rng.uniform(size=n))
    )
    return np.concatenate([re + 1j * im, near, re + 0j, 1j * im])


@pytest.mark.parametrize("fast_math", [True, False])
@pytest.mark.parametrize("name", INVERSES)
def test_inverse_functions_have_all_digits(name, fast_math):
    ti.init(arch=ti.cpu, fast_math=fast_math)
    z = _of_all_sizes(1000)
    got, want = getattr(xp, name)(xp.asarray(z)).numpy(), INVERSES[name](z)
    assert (abs(got - want) <= 8 * np.finfo(float).eps * abs(want)).all()
    # As those in double precision, rounded.
    z = z.astype(np.complex64)
    got, want = getattr(T, name)(T.asarray(z)).numpy(), INVERSES[name](z.astype(complex))
    assert got.dtype == np.complex64
    assert (abs(got - want) <= np.finfo(np.float32).eps * abs(want)).all()
    z = _of_all_sizes(1000, 307, -300)
    got, want = getattr(T, name)(T.asarray(z)).numpy(), INVERSES[name](z)
    assert (abs(got - want) <= 8 * np.finfo(float).eps * abs(want)).all()


@pytest.mark.parametrize("fast_math", [True, False])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("name", INVERSES)
def test_branches_of_inverse_functions(name, dtype, fast_math):
    ti.init(arch=ti.cpu, fast_math=fast_math)
    values = [0.0, 0.5, 1.0, 2.0, 1e30, np.inf, np.nan]
    values = np.array(values + [-v for v in values])
    z = np.empty((len(values),) * 2, dtype)
    z.real, z.imag = values[:, None], values
    got = getattr(T, name)(T.asarray(z)).numpy()
    with np.errstate(all="ignore"):
        want = INVERSES[name](z.astype(complex)).astype(dtype)
    for a, b in ((got.real, want.real), (got.imag, want.imag)):
        np.testing.assert_allclose(abs(a), abs(b), rtol=4 * np.finfo(dtype).eps)
        # C does not say which sign a part beside NaN has.
        known = ~np.isnan(z.real) & ~np.isnan(z.imag)
        assert np.array_equal(np.signbit(a)[known], np.signbit(b)[known])


def test_inverse_functions_of_one_of_many_and_in_programs():
    z = numbers(3, 4)

    @p.program
    def angles():
        x = p.input([-1, 4], ti.f64)
        return T.asin(T.fft.fft(x))

    close(ti.vmap(T.acosh)(T.asarray(z)), np.arccosh(z))
    close(angles(z.real.copy()), np.arcsin(np.fft.fft(z.real)))


SOME = np.array([
    [1 + 2j, complex(-0.0, 2), 1j, 1 + 2j, complex(-0.0, -0.0), 0, complex(np.nan, 1)],
    [complex(1, np.nan), complex(np.nan, np.nan), complex(np.nan, 1), 1 - 2j, complex(0, np.nan), np.inf, -np.inf],
])  # fmt: skip


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("of", [SOME, SOME[:, :0], SOME[0, 0], SOME[:, 4:6]], ids=["all", "none", "one", "zeros"])
def test_truth_and_order(of, dtype):
    z = of.astype(dtype)
    t = T.asarray(z)
    for name in ("any", "all", "count_nonzero"):
        assert np.array_equal(getattr(T, name)(t).numpy(), getattr(np, name)(z))
        if z.ndim:
            got, want = (getattr(m, name)(v, axis=1, keepdims=True) for m, v in ((T, t), (np, z)))
            assert np.array_equal(got.numpy(), want)
    if z.ndim:
        for places in (xp.nonzero(t), t.nonzero()):
            assert [i.tolist() for i in places] == [i.tolist() for i in np.nonzero(z)]
        assert np.array_equal(T.argwhere(t).numpy(), np.argwhere(z))
    all_, want = xp.unique_all(t), np.unique_all(z)
    assert np.array_equal(all_.values.numpy(), want.values, equal_nan=True)
    for field in ("indices", "inverse_indices", "counts"):
        assert np.array_equal(getattr(all_, field).numpy(), getattr(want, field)), field
    assert all_.values.dtype is t.dtype
    assert np.array_equal(xp.unique_values(t).numpy(), want.values, equal_nan=True)
    assert np.array_equal(xp.unique_counts(t).counts.numpy(), want.counts)
    assert np.array_equal(xp.unique_inverse(t).inverse_indices.numpy(), want.inverse_indices)


def test_rounding():
    z = np.array([0.5 - 1.5j, 2.5 + 3.5j, complex(-0.2, -0.0), complex(np.nan, np.inf), 12.345 - 6.789j])
    got = xp.round(xp.asarray(z)).numpy()
    assert np.array_equal(got, np.round(z), equal_nan=True)
    assert np.array_equal(np.signbit(got.real), np.signbit(np.round(z).real))
    close(T.asarray(z).round(1), np.round(z, 1))


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_powers_of_zero(dtype):
    exponents = np.array([0, 1, 2, 0.5, 1 + 2j, -1, 1j], dtype)
    zeros = np.zeros(7, dtype)
    with np.errstate(all="ignore"):
        expected = zeros**exponents
    out = (T.asarray(zeros) ** T.asarray(exponents)).numpy()
    assert out.dtype == dtype
    # Where there is no power, one part at least is NaN.
    assert (np.isnan(out) == np.isnan(expected)).all() and (out[:5] == expected[:5]).all()
    assert (T.asarray(zeros) ** 0.5).tolist() == [0] * 7 and (0 ** T.asarray(exponents[1:5])).tolist() == [0] * 4


def test_methods_that_are_functions_of_tensors():
    a = np.array([[1j, 2.0], [3, 4 - 1j]])
    z = ti.tensor.asarray(a)
    for made, expected in [
        (z.prod(), a.prod()),
        (z.prod(axis=0), a.prod(axis=0)),
        (z.trace(), a.trace()),
        (z.diagonal(), a.diagonal()),
        (z.repeat(2), a.repeat(2)),
        (z.take([1], axis=0), a.take([1], axis=0)),
        (z.norm(), np.linalg.norm(a)),
        (z.dot(z), a @ a),
    ]:
        np.testing.assert_allclose(made.numpy(), expected)


@pytest.mark.parametrize("equal_nan", [False, True])
def test_close_numbers(equal_nan):
    a = np.array([1j, 2.0, 3, np.nan, np.inf])
    b = np.array([1j + 1e-7, 2.1, 3, np.nan, np.inf])
    made = ti.tensor.isclose(ti.tensor.asarray(a), ti.tensor.asarray(b), equal_nan=equal_nan)
    assert made.tolist() == np.isclose(a, b, equal_nan=equal_nan).tolist()
    assert ti.tensor.isclose(ti.tensor.asarray(a), 2.0).tolist() == np.isclose(a, 2.0).tolist()
    assert ti.tensor.allclose(ti.tensor.asarray(a[:3]), a[:3])
