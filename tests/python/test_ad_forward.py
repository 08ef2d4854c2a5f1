"""Forward mode: tangents beside values."""

import numpy as np
import pytest

import aerogel as ti


def duals(n=3):
    x = ti.field(ti.f64, shape=n, name="x", needs_dual=True)
    y = ti.field(ti.f64, shape=n, name="y", needs_dual=True)
    loss = ti.field(ti.f64, shape=(), name="loss", needs_dual=True)

    @ti.kernel
    def square():
        for i in x:
            y[i] = x[i] * x[i]

    @ti.kernel
    def total():
        for i in y:
            loss[None] += y[i]

    return x, y, loss, square, total


def test_a_direction(arch):
    x, y, loss, square, total = duals()
    x.from_numpy(np.array([1.0, 2, 3]))
    y.dual[1] = 9
    with ti.ad.FwdMode(loss=loss, param=x, seed=[1, 0, 2]):
        assert x.dual.to_numpy().tolist() == [1, 0, 2]
        assert y.dual[1] == 0
        square()
        total()
    assert (loss[None], loss.dual[None]) == (14, 14)
    assert y.dual.to_numpy().tolist() == [2, 0, 12]
    # What it began with is zero again.
    assert x.dual.to_numpy().tolist() == [0, 0, 0]


def test_one_number_needs_no_seed(arch):
    a = ti.field(ti.f64, shape=(), needs_dual=True)
    b = ti.field(ti.f64, shape=(), needs_dual=True)

    @ti.kernel
    def triple():
        b[None] = 3 * a[None]

    with ti.ad.FwdMode(loss=b, param=a):
        triple()
    assert b.dual[None] == 3
    with ti.ad.FwdMode(loss=[b, a], param=a, seed=[2], clear_gradients=False):
        triple()
    assert b.dual[None] == 6


def test_vectors_and_several_parameters(arch):
    v = ti.Vector.field(2, ti.f64, shape=2, needs_dual=True)
    s = ti.field(ti.f64, shape=(), needs_dual=True)
    out = ti.field(ti.f64, shape=(), needs_dual=True)

    @ti.kernel
    def total():
        for i in v:
            out[None] += s[None] * v[i].sum()

    v.fill(1)
    s[None] = 3
    with ti.ad.FwdMode(loss=out, param=[v, s], seed=[[[1, 0], [0, 2]], 1]):
        total()
    assert out.dual[None] == 3 * 3 + 4


def test_writes_of_python(arch):
    x, y, loss, square, total = duals()
    x.fill(2)
    with ti.ad.FwdMode(loss=loss, param=x, seed=[1, 1, 1]):
        square()
        y[0] = 5
        total()
    assert loss.dual[None] == 8
    loss.fill(0)
    with ti.ad.FwdMode(loss=loss, param=x, seed=[1, 1, 1]):
        y.copy_from(x)
        total()
    assert loss.dual[None] == 3


def test_kernels_that_return_values(arch):
    x, y, loss, square, total = duals()
    x.fill(2)

    @ti.kernel
    def first() -> ti.f64:
        return x[0] * 3

    with ti.ad.FwdMode(loss=loss, param=x, seed=[1, 0, 0]):
        assert first() == 6


def test_constant_functions(arch):
    x, y, loss, square, total = duals()
    x.fill(2)
    with ti.ad.FwdMode(loss=loss, param=x, seed=[1, 1, 1]):
        ti.ad.no_grad(square)()
        total()
    assert (loss[None], loss.dual[None]) == (12, 0)


def test_products_with_vectors(arch):
    x, y, loss, square, total = duals()
    x.fill(2)
    assert ti.ad.jvp(square, x, [1, 0, 2], y).tolist() == [4, 0, 8]
    assert [a.tolist() for a in ti.ad.jvp(square, [x], [[1, 0, 2]], [y])] == [[4, 0, 8]]


def test_mistakes(arch):
    x, y, loss, square, total = duals()
    plain = ti.field(ti.f64, shape=(), name="plain")
    wrong = {
        "pass a `seed` of that shape": dict(loss=loss, param=x),
        "has shape .2,., not .3,.": dict(loss=loss, param=x, seed=[1, 2]),
        "the parameter of forward mode, `plain`, has no tangent": dict(loss=loss, param=plain),
        "the loss of forward mode, `plain`, has no tangent": dict(loss=plain, param=x, seed=[1, 1, 1]),
        "not str": dict(loss=loss, param="x"),
        "is made of numbers": dict(loss=loss, param=x, seed=["a", "b", "c"]),
        "needs a loss": dict(loss=[], param=x),
    }
    x.dual.fill(7)
    for message, arguments in wrong.items():
        with pytest.raises(RuntimeError, match=message), ti.ad.FwdMode(**arguments):
            raise AssertionError("it began")
    assert x.dual[0] == 7
    with pytest.raises(RuntimeError, match="cannot begin inside forward mode"):
        with ti.ad.FwdMode(loss=loss, param=x, seed=[1, 0, 0]), ti.ad.FwdMode(loss=loss, param=x, seed=[1, 0, 0]):
            pass
    with pytest.raises(KeyError):
        with ti.ad.FwdMode(loss=loss, param=x, seed=[1, 0, 0]):
            raise KeyError("mine")
    assert ti.ad.jvp(square, x, [1, 0, 2], y).tolist() == [0, 0, 0]
