"""Second derivatives, and forward mode of arrays."""

import numpy as np
import pytest

import aerogel as ti

BOTH = dict(needs_grad=True, needs_dual=True)


def make(n=4):
    x, y = (ti.field(ti.f64, shape=n, name=name, **BOTH) for name in "xy")
    loss = ti.field(ti.f64, shape=(), name="loss", **BOTH)
    return x, y, loss


def by_differences(run, loss, x, along, h=1e-5):
    """How the gradient by `x` changes along a direction; `run` begins with `x` as it is."""
    start, found = x.to_numpy(), []
    for sign in (1, -1):
        x.from_numpy(start + sign * h * along)
        with ti.ad.Tape(loss):
            run()
        found.append(x.grad.to_numpy())
    x.from_numpy(start)
    return (found[0] - found[1]) / (2 * h)


def check(run, loss, x, rtol=1e-6):
    rng = np.random.default_rng(3)
    along = rng.normal(size=x.to_numpy().shape)
    start = x.to_numpy()
    want = by_differences(run, loss, x, along)
    x.from_numpy(start)
    found = ti.ad.hvp(run, loss, x, along)
    assert np.abs(want).max() > 1e-3
    assert np.allclose(found, want, rtol=rtol, atol=1e-7)
    product = x.grad.to_numpy()
    x.from_numpy(start)
    with ti.ad.Tape(loss):
        run()
    assert np.allclose(x.grad.to_numpy(), product, rtol=1e-12)
    assert not x.dual.to_numpy().any()


def test_loops_and_branches(arch):
    x, y, loss = make()

    @ti.kernel
    def energy():
        for i in x:
            a = x[i]
            k = 0
            while a * a < 9.0 and k < 6:
                a = a * 1.3 + ti.sin(x[(i + 1) % 4])
                if a > 2.0:
                    a *= x[i]
                k += 1
            loss[None] += a * ti.exp(x[i]) * y[i]

    x.from_numpy(np.array([0.4, 0.9, -0.3, 1.2]))
    y.fill(0.7)
    check(energy, loss, x)


def test_what_later_kernels_overwrite(arch):
    """The tangents of what is kept are kept as well."""
    x, y, loss = make()

    @ti.kernel
    def step(k: ti.f64):
        for i in x:
            x[i] = x[i] * (1.5 - k * x[i]) + y[i] * y[i]

    @ti.kernel
    def copy():
        for i in x:
            y[i] = x[i] ** 3 + ti.cos(y[i])

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i] * y[(i + 1) % 4]

    start = np.array([0.3, 0.5, 0.2, 0.6])

    def run():
        y.fill(0.4)
        for k in range(3):
            step(0.5 + k)
            copy()
        x[1] = 0.5
        step(0.1)
        total()

    x.from_numpy(start)

    def from_start():
        run()

    rng = np.random.default_rng(3)
    along = rng.normal(size=4)
    found = []
    for sign in (1, -1):
        x.from_numpy(start + sign * 1e-5 * along)
        with ti.ad.Tape(loss):
            run()
        found.append(x.grad.to_numpy())
    want = (found[0] - found[1]) / 2e-5
    x.from_numpy(start)
    assert np.allclose(ti.ad.hvp(from_start, loss, x, along), want, rtol=1e-6)
    after = x.to_numpy(), y.to_numpy()
    x.from_numpy(start)
    run()
    assert (x.to_numpy() == after[0]).all() and (y.to_numpy() == after[1]).all()


def test_copies(arch):
    x, y, loss = make()

    @ti.kernel
    def total():
        for i in y:
            loss[None] += y[i] ** 3

    def run():
        y.copy_from(x)
        y[2] = 9
        total()

    x.from_numpy(np.array([1.0, 2, 3, 4]))
    assert np.allclose(ti.ad.hvp(run, loss, x, [1, 1, 1, 0.5]), [6, 12, 0, 12])


def test_several_inputs_and_gathers(arch):
    x, y, loss = make(8)

    @ti.kernel
    def energy():
        for i in range(1, 7):
            loss[None] += (x[i - 1] - 2 * x[i] + x[i + 1]) ** 2 * y[i]

    rng = np.random.default_rng(0)
    x.from_numpy(rng.normal(size=8))
    y.from_numpy(rng.normal(size=8))
    u, v = rng.normal(size=8), rng.normal(size=8)
    by_x, by_y = ti.ad.hvp(energy, loss, [x, y], [u, v])
    x0, y0 = x.to_numpy(), y.to_numpy()
    ends = []
    for h in (1e-5, -1e-5):
        x.from_numpy(x0 + h * u)
        y.from_numpy(y0 + h * v)
        with ti.ad.Tape(loss):
            energy()
        ends.append((x.grad.to_numpy(), y.grad.to_numpy()))
    assert np.allclose(by_x, (ends[0][0] - ends[1][0]) / 2e-5, rtol=1e-6, atol=1e-8)
    assert np.allclose(by_y, (ends[0][1] - ends[1][1]) / 2e-5, rtol=1e-6, atol=1e-8)


def test_what_is_constant_stays_so(arch):
    x, y, loss = make()

    @ti.kernel
    def energy():
        for i in x:
            loss[None] += x[i] ** 2 * ti.stop_grad(x[i])

    x.fill(3)
    # The gradient is 2 x s, with s constant.
    assert ti.ad.hvp(energy, loss, x, [1, 0, 0, 2]).tolist() == [6, 0, 0, 12]


def test_arrays(arch):
    @ti.kernel
    def energy(a: ti.types.ndarray(), b: ti.types.ndarray(), out: ti.types.ndarray()):
        for i in a:
            out[0] += a[i] ** 3 * b[i]

    a, b, out = (ti.ndarray(ti.f64, n, **BOTH) for n in (3, 3, 1))
    a.from_numpy(np.array([1.0, 2, 3]))
    b.fill(2)
    assert np.allclose(ti.ad.hvp(lambda: energy(a, b, out), out, a, [1, 1, 0]), [12, 24, 0])
    by_a, by_b = ti.ad.hvp(lambda: energy(a, b, out), out, [a, b], [[0, 0, 0], [1, 0, 1]])
    assert np.allclose(by_a, [3, 0, 27]) and np.allclose(by_b, 0)
    plain = ti.ndarray(ti.f64, 3, needs_grad=True)
    with pytest.raises(ValueError, match="it has a gradient and no tangents"):
        ti.ad.hvp(lambda: energy(a, plain, out), out, a, [1, 1, 0])

    @ti.kernel
    def captured():
        for i in range(3):
            out[0] += plain[i] * a[i]

    with pytest.raises(ValueError, match="it has a gradient and no tangents"):
        ti.ad.hvp(captured, out, a, [1, 1, 0])


def test_forward_mode_of_arrays(arch):
    @ti.kernel
    def square(a: ti.types.ndarray(), b: ti.types.ndarray()):
        for i in a:
            b[i] = a[i] ** 2

    a, b = (ti.ndarray(ti.f64, 3, needs_dual=True) for _ in range(2))
    v, w = (ti.Vector.ndarray(2, ti.f64, 2, needs_dual=True) for _ in range(2))
    a.from_numpy(np.array([1.0, 2, 3]))
    with ti.ad.FwdMode(loss=b, param=a, seed=[1, 0, 2]):
        square(a, b)
    assert b.dual.to_numpy().tolist() == [2, 0, 12]
    v.from_numpy(np.array([[1.0, 2], [3, 4]]))
    assert ti.ad.jvp(lambda: square(v, w), v, [[1, 0], [0, 1]], w).tolist() == [[2, 0], [0, 8]]
    assert a.grad is None

    @ti.kernel
    def captured():
        for i in range(3):
            b[i] = 3 * a[i]

    assert ti.ad.jvp(captured, a, [1, 0, 2], b).tolist() == [3, 0, 6]


def test_forward_mode_over_a_gradient(arch):
    x, y, loss = make(2)

    @ti.kernel
    def product():
        loss[None] += x[0] ** 2 * x[1]

    x.from_numpy(np.array([3.0, 5]))
    product()
    ti.ad.clear_all_gradients()
    loss.grad[None] = 1
    with ti.ad.FwdMode(loss=x.grad, param=x, seed=[1, 0]):
        product.grad()
    assert x.grad.to_numpy().tolist() == [30, 9]
    assert x.grad.dual.to_numpy().tolist() == [10, 6]


def test_layouts_by_hand(arch):
    x = ti.field(ti.f64, name="x")
    loss = ti.field(ti.f64, shape=(), **BOTH)
    ti.root.dense(ti.i, 3).place(x)
    ti.root.lazy_grad()
    ti.root.lazy_dual()

    @ti.kernel
    def energy():
        for i in x:
            loss[None] += x[i] ** 3

    x.fill(2)
    assert ti.ad.hvp(energy, loss, x, [1, 0, 1]).tolist() == [12, 0, 12]
    z = ti.field(ti.f64, name="z")
    ti.root.pointer(ti.i, 4).dense(ti.i, 2).place(z, z.grad)
    ti.root.pointer(ti.i, 4).dense(ti.i, 2).place(z.dual, z.grad.dual)

    @ti.kernel
    def of_sparse():
        for i in z:
            loss[None] += z[i] ** 3

    @ti.kernel
    def activate():
        for i in range(2, 4):
            z[i] = 2
            z.dual[i] = 0

    activate()
    assert ti.ad.hvp(of_sparse, loss, z, np.arange(8)).tolist() == [0, 0, 24, 36, 0, 0, 0, 0]


def test_mistakes(arch):
    x, y, loss = make()
    half = ti.field(ti.f64, shape=4, name="half", needs_grad=True)

    @ti.kernel
    def energy():
        for i in x:
            loss[None] += x[i] ** 2 * half[i]

    x.fill(1)
    with pytest.raises(RuntimeError, match="`half` has a gradient and no tangents"):
        ti.ad.hvp(energy, loss, x, [1, 0, 0, 0])
    with pytest.raises(RuntimeError, match="an input, `half`, has no tangent"):
        ti.ad.hvp(energy, loss, half, [1, 0, 0, 0])
    with pytest.raises(RuntimeError, match="must be a 0-D field"):
        ti.ad.hvp(energy, x, x, [1, 0, 0, 0])
    with pytest.raises(RuntimeError, match="has shape .2,., not .4,."):
        ti.ad.hvp(energy, loss, x, [1, 0])
    with pytest.raises(RuntimeError, match="2 inputs need as many vectors"):
        ti.ad.hvp(energy, loss, [x, y], [[1, 0, 0, 0]])

    @ti.ad.grad_replaced
    def forward():
        energy()

    @ti.ad.grad_for(forward)
    def backward():
        pass

    with pytest.raises(RuntimeError, match="functions with @ti.ad.grad_replaced have no second derivatives"):
        ti.ad.hvp(forward, loss, x, [1, 0, 0, 0])
    with pytest.raises(RuntimeError, match="cannot begin inside a tape"), ti.ad.Tape(loss):
        ti.ad.hvp(energy, loss, x, [1, 0, 0, 0])
    assert not x.dual.to_numpy().any()


def test_where_a_gradient_is_zero_its_derivative_may_not_be(arch):
    x, _, loss = make()

    @ti.kernel
    def quotients():
        for i in x:
            y = x[i] / 3.0
            z = ti.exp(y) - 1.0
            loss[None] += y * y + z * z / (1.0 + x[i] * x[i])

    x.fill(0)
    found = ti.ad.hvp(quotients, loss, x, np.ones(4))
    assert np.allclose(found, 2 / 9 + 2 / 9, rtol=1e-12)
