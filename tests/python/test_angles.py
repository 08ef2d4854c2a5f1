"""Sines, cosines and tangents of angles of any size; the values are those of compiler/llvm/tests/angles.py."""

import pathlib

import numpy as np
import pytest

import aerogel as ti

TABLE = pathlib.Path(__file__).parents[2] / "compiler" / "llvm" / "tests" / "angles.txt"
TYPES = {"f32": (np.float32, np.uint32), "f64": (np.float64, np.uint64)}


def table(ty):
    """Angles of a type, and their sines, cosines and tangents as f64."""
    lines = [line.split()[1:] for line in TABLE.read_text().splitlines() if line.startswith(ty)]
    number, word = TYPES[ty]
    angles = np.array([int(line[0], 16) for line in lines], word).view(number)
    values = np.array([[int(v, 16) for v in line[1:]] for line in lines], np.uint64).view(np.float64)
    return angles, values.T


def assert_close(found, expected, ulps, interpreted=False):
    """Within some units in the last place; the interpreter's C library has fewer digits near zeros of a function."""
    expected = np.asarray(expected)
    rounded = expected.astype(found.dtype)
    tolerance = ulps * np.spacing(np.abs(rounded)).astype(np.float64)
    if interpreted:
        tolerance = np.maximum(tolerance, 1e-14 * np.maximum(1, expected**2))
    wrong = np.abs(found.astype(np.float64) - expected) > tolerance
    assert not wrong.any(), (np.flatnonzero(wrong)[:5], found[wrong][:5], expected[wrong][:5])


@pytest.mark.parametrize("ty", TYPES)
def test_fields(arch, ty):
    """In loops over fields, which become vectors."""
    angles, expected = table(ty)
    dtype = getattr(ti, ty)
    x = ti.field(dtype, len(angles))
    results = ti.Vector.field(3, dtype, len(angles))
    x.from_numpy(angles)

    @ti.kernel
    def fill():
        for i in x:
            results[i] = ti.Vector([ti.sin(x[i]), ti.cos(x[i]), ti.tan(x[i])])

    fill()
    for k, ulps in enumerate([2, 2, 4]):
        assert_close(results.to_numpy()[:, k], expected[k], ulps, arch == "interp")


def test_scalars(arch):
    """One at a time, and under a condition."""
    angles, (sines, cosines, _) = table("f64")

    @ti.kernel
    def either(x: ti.f64, of_sine: bool) -> ti.f64:
        result = ti.cast(0, ti.f64)
        if of_sine:
            result = ti.sin(x)
        else:
            result = ti.cos(x)
        return result

    some = slice(None, None, 40)
    found = np.array([[either(x, True), either(x, False)] for x in angles[some]])
    assert_close(found[:, 0], sines[some], 2, arch == "interp")
    assert_close(found[:, 1], cosines[some], 2, arch == "interp")


@pytest.mark.parametrize("ty", TYPES)
def test_divergent_loops(arch, ty):
    """In loops of different lengths, which run in the lanes of vectors."""
    angles, (sines, _, _) = table(ty)
    dtype = getattr(ti, ty)
    x, y = ti.field(dtype, len(angles)), ti.field(dtype, len(angles))
    x.from_numpy(angles)

    @ti.kernel
    def fill():
        for i in x:
            n, last = 0, ti.cast(0, dtype)
            while n < i % 7 + 1:
                last = ti.sin(x[i])
                n += 1
            y[i] = last

    fill()
    assert_close(y.to_numpy(), sines, 2, arch == "interp")


@pytest.mark.parametrize("ty", TYPES)
def test_tensors(ty):
    angles, (sines, cosines, _) = table(ty)
    ti.init(arch=ti.cpu)
    x = ti.tensor.asarray(angles)
    assert_close(ti.tensor.sin(x).numpy(), sines, 2)
    assert_close(ti.tensor.cos(x).numpy(), cosines, 2)


def test_complex_exponentials():
    angles, (sines, cosines, _) = table("f64")
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    found = ti.tensor.exp(ti.tensor.asarray(1j * angles)).numpy()
    assert_close(found.real, cosines, 2)
    assert_close(found.imag, sines, 2)

    z = ti.Vector.field(2, ti.f64, len(angles))
    x = ti.field(ti.f64, len(angles))
    x.from_numpy(angles)

    @ti.kernel
    def fill():
        for i in x:
            z[i] = ti.math.cexp(ti.Vector([ti.cast(0, ti.f64), x[i]]))

    fill()
    assert_close(z.to_numpy()[:, 0], cosines, 2)
    assert_close(z.to_numpy()[:, 1], sines, 2)


def test_halves(arch):
    """All of them are computed in f32."""
    angles = np.arange(0, 0x7C00, dtype=np.uint16).view(np.float16)
    x, y = ti.field(ti.f16, len(angles)), ti.field(ti.f16, len(angles))
    x.from_numpy(angles)

    @ti.kernel
    def fill():
        for i in x:
            y[i] = ti.sin(x[i])

    fill()
    assert_close(y.to_numpy(), np.sin(angles.astype(np.float64)), 0.51)


def test_derivatives(arch):
    x = ti.field(ti.f64, (), needs_grad=True)
    y = ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def square():
        y[None] = ti.sin(x[None])

    x[None], y.grad[None] = 1e22, 1.0
    square()
    square.grad()
    assert y[None] == pytest.approx(-0.8522008497671888, rel=1e-15)
    assert x.grad[None] == pytest.approx(0.5232147853951389, rel=1e-15)


def test_infinities(arch):
    x = ti.field(ti.f32, 5)
    y = ti.field(ti.f32, 5)
    x.from_numpy(np.array([0.0, -0.0, np.inf, -np.inf, np.nan], np.float32))

    @ti.kernel
    def fill():
        for i in x:
            y[i] = ti.sin(x[i])

    fill()
    found = y.to_numpy()
    assert np.isnan(found[2:]).all()
    assert list(np.signbit(found[:2])) == [False, True]
