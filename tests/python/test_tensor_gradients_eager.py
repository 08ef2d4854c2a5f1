"""``backward``: what evaluating, sharing, storing and detaching do to gradients, and what is kept in memory."""

import copy
import gc
import pickle
import threading

import numpy as np
import pytest

import aerogel as ti
from aerogel import _native
from aerogel import tensor as t

X = np.array([1.0, 2.0, 3.0])


@pytest.fixture(autouse=True, scope="module", params=["interp", "cpu"])
def _start(request):
    ti.init(arch=request.param, log_level="error")
    yield request.param
    ti.reset()


def f64(x):
    return t.asarray(np.asarray(x, dtype="float64"))


def leaf(x=X, dtype="f64"):
    return t.asarray(np.asarray(x, dtype="float64"), dtype=dtype).requires_grad_()


def is_close(got, want):
    return got.shape == np.shape(want) and np.allclose(got.detach().numpy(), want, rtol=1e-12)


def evaluated(y):
    str(y), y.sum().item(), y.tolist(), t.realize(y), bool(y.sum() > 0), y.detach().numpy()
    return y


#: A function of a leaf `x` and its gradient at [1, 2, 3].
FUNCTIONS = {
    "evaluated in between": (lambda x: (evaluated(evaluated(x * x) * evaluated(x)) * x).sum(), 4 * X**3),
    "the same written twice": (lambda x: ((x * 2) * (x * 2)).sum(), 8 * X),
    "by parts": (lambda x: sum(k * k for k in x), 2 * X),
    "a part that was dropped": (lambda x: ((x * x).realize() + 0).realize().sum(), 2 * X),
    "mask": (lambda x: (x[x > 1.5] ** 2).sum(), [0, 4, 6]),
    "unique": (lambda x: (t.unique_values(t.concat([x, x])) ** 2).sum(), 2 * X),
    "through an integer": (lambda x: (x.astype("i32") * x).sum(), X),
    "copy": (lambda x: (x.copy() * t.asarray(x, copy=True)).sum(), 2 * X),
    "another type": (lambda x: (x.astype("f32") * 2).sum(), 2 + 0 * X),
    "detached": (lambda x: (x.detach() * x).sum(), X),
    "data": (lambda x: (x.data * x).sum(), X),
    "a choice of Python": (lambda x: x[0] * 5 if x[0].item() > 0 else x[0], [5, 0, 0]),
    "operators of NumPy": (lambda x: (np.ones(3) * x + np.float64(2) * x).sum(), 3 + 0 * X),
    "store": (lambda x: (stored(x * x, 1, 5.0) ** 2).sum(), [4, 0, 108]),
    "store of parts": (lambda x: (lambda y: (y * 2 * stored(y, 1, x[0] * x[2])).sum())(x * x), [8 + 24, 24, 216 + 8]),
    "linspace": (lambda x: (t.linspace(0.0, x.sum(), 3) ** 2).sum(), 15 + 0 * X),
    "full, pad": (lambda x: t.full((2,), x[0], dtype="f64").sum() + t.pad(x, 1, value=x[1]).sum(), [3, 3, 1]),
}


def stored(y, key, value):
    y[key] = value
    return y


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_a_leaf(name):
    function, wanted = FUNCTIONS[name]
    x = leaf()
    function(x).backward()
    assert is_close(x.grad, wanted)
    assert is_close(ti.grad(function)(f64(X)), wanted)


def test_gradients_add_up():
    x = leaf()
    z = (x**3).sum()
    z.backward()
    first = x.grad
    z.item()
    z.backward()
    assert is_close(first, 3 * X**2) and is_close(x.grad, 6 * X**2)
    x.grad = None
    (x * 3).sum().backward()
    assert is_close(x.grad, 3 + 0 * X) and is_close(first, 3 * X**2)
    x.grad = f64([1, 1, 1])
    (x * 3).sum().backward()
    assert is_close(x.grad, 4 + 0 * X)


def test_seeds_and_inputs():
    x, y = leaf(), leaf([1, 1, 1])
    (x * x).backward(f64([1, 10, 100]))
    assert is_close(x.grad, [2, 40, 600]) and y.grad is None
    (x * y).sum().backward(inputs=[y])
    assert is_close(x.grad, [2, 40, 600]) and is_close(y.grad, X)
    x.grad = None
    x.backward(f64(X))
    assert is_close(x.grad, X)


def test_no_grad():
    x = leaf()
    before = x * 2
    with ti.no_grad():
        with ti.enable_grad():
            inside = x * 3
        with ti.no_grad():
            nested = x * 4
        off, again = x * 5, x * 2
    on = x * 5
    assert [y.requires_grad for y in (before, inside, nested, off, again, on)] == [
        True,
        True,
        False,
        False,
        False,
        True,
    ]
    (before * again + off * on).sum().backward()
    assert is_close(x.grad, 4 * X + 25 * X)

    @ti.no_grad()
    def function(x):
        return x * 2

    assert not function(x).requires_grad and (x * 2).requires_grad


def test_what_is_the_same_before_and_after():
    x = f64(X)
    y = x * 2
    x.requires_grad_()
    z = x * 2
    assert (y.requires_grad, z.requires_grad) == (False, True)
    (y * z).sum().backward()
    assert is_close(x.grad, 4 * X)
    x.requires_grad_(False)
    assert not x.requires_grad and not (x * 2).requires_grad and x.grad is None


def test_retained_gradients():
    x = leaf()
    y = x * x
    other = x + 1
    y.retain_grad()
    other.retain_grad()
    (y * y).sum().backward()
    assert is_close(y.grad, 2 * X**2) and is_close(x.grad, 4 * X**3) and other.grad is None
    assert (x.is_leaf, y.is_leaf, (x * 1).is_leaf, f64(X).is_leaf) == (True, False, False, True)
    y[0] = 7.0
    y.grad = None
    (y * y).sum().backward()
    assert is_close(y.grad, [14, 8, 18]) and is_close(x.grad, 4 * X**3 + [0, 32, 108])


def test_stores_to_a_leaf():
    x = leaf()
    for store in (lambda: stored(x, 1, 5.0), lambda: x.fill(0.0), lambda: stored(x, x > 2, 0.0)):
        with pytest.raises(RuntimeError, match="no_grad"):
            store()
    old = (x * x).sum()
    with ti.no_grad():
        x[1] = 5.0
    assert x.requires_grad and x.is_leaf
    (x * x).sum().backward()
    assert is_close(x.grad, [2, 10, 6])
    old.backward()
    assert is_close(x.grad, [4, 14, 12])
    x *= 2
    assert x.requires_grad and not x.is_leaf


def test_a_parameter_changes_between_loss_and_backward():
    x = leaf()
    loss = (x * x).sum()
    loss.item()
    x.data = f64([10, 20, 30])
    loss.backward()
    assert is_close(x.grad, 2 * X)
    (x * x).sum().backward()
    assert is_close(x.grad, 2 * X + [20, 40, 60])


def test_leaves_that_are_dropped():
    x, w = leaf(), leaf()
    y = (x * x * w).sum()
    del x
    gc.collect()
    y.backward()
    assert is_close(w.grad, X**2)


def test_gradients_by_tensors():
    x = leaf()
    y = evaluated(x * x)
    z = (y * y).sum()
    z.item()
    assert is_close(ti.grad(z, y), 2 * X**2)
    both = ti.grad(z, {"x": x, "y": y})
    assert is_close(both["x"], 4 * X**3) and x.grad is None
    w = ((y + x) * y).sum()
    by = ti.grad(w, [y, x])
    assert is_close(by[0], 2 * X**2 + X) and is_close(by[1], 4 * X**3 + 3 * X**2)
    assert is_close(ti.grad(z, leaf([1, 1])), [0, 0])


def test_gradients_of_gradients():
    x = leaf()
    (x**3).sum().backward(create_graph=True)
    g, x.grad = x.grad, None
    (g * g).sum().backward()
    assert g.requires_grad and is_close(x.grad, 36 * X**3)
    x.grad = None
    g = ti.grad(lambda a: (a * a * x).sum())(x)
    g.sum().backward()
    # By the `x` that the function closes over, and by that at which its gradient is taken.
    assert is_close(g, 2 * X**2) and is_close(x.grad, 4 * X)


def test_transforms_of_transforms():
    def f(x):
        return (x**3 * x[0]).sum()

    x = f64(X)
    h = ti.hessian(f)(x).numpy()
    rows = np.stack([ti.grad(lambda x, k=k: ti.grad(f)(x)[k])(x).numpy() for k in range(3)])
    np.testing.assert_allclose(h, rows, rtol=1e-12)
    np.testing.assert_allclose(h, h.T)
    many = f64([X, X + 1])
    each = ti.vmap(ti.grad(f))(many).numpy()
    np.testing.assert_allclose(each, [ti.grad(f)(row).numpy() for row in many], rtol=1e-12)
    np.testing.assert_allclose(ti.grad(lambda m: ti.vmap(f)(m).sum())(many).numpy(), each, rtol=1e-12)
    np.testing.assert_allclose(ti.vmap(ti.hessian(f))(many).numpy()[0], h, rtol=1e-12)
    np.testing.assert_allclose(ti.jacobian(lambda m: ti.vmap(f)(m))(many).numpy()[1, 1], each[1], rtol=1e-12)
    y, back = ti.vjp(lambda a, b: (a * b, {"k": a.sum()}), x, x)
    by = back((f64([1, 2, 3]), {"k": f64(10)}))
    assert is_close(by[0], X * [1, 2, 3] + 10) and is_close(by[1], X * [1, 2, 3])
    assert is_close(back((f64([0, 0, 0]), {"k": f64(1)}))[0], 1 + 0 * X)


@pytest.mark.parametrize(
    "change", [lambda y: stored(y, 0, 5.0), lambda y: t.scatter(y, t.asarray([0]), f64([3.0]), how="add")]
)
def test_second_derivatives_of_what_has_been_evaluated(change):
    wanted = np.diag([0.0 if change(f64(X))[0].item() == 5 else 24.0, 12.0, 18.0])
    assert is_close(ti.hessian(lambda x: (change(x * 1).realize() ** 3).sum())(f64(X)), wanted)


def test_structures():
    args = {"w": f64(X), "b": [f64(1), f64([2, 2])]}
    value, made = ti.value_and_grad(lambda p, n: ((p["w"] ** n).sum() * p["b"][0] + p["b"][1].sum(), n), has_aux=True)(
        args, 2
    )
    assert value[1] == 2 and value[0].item() == 18
    assert is_close(made["w"], 2 * X) and is_close(made["b"][0], 14.0) and is_close(made["b"][1], [1, 1])
    by = ti.grad(lambda a, b, c: (a * b).sum(), argnums=(0, -1))(f64(X), f64(X), f64(X))
    assert is_close(by[0], X) and is_close(by[1], 0 * X)


def test_types_of_gradients():
    a, b, h = leaf(X, "f32"), leaf(X), leaf(X, "f16")
    (a * b + h).sum().backward()
    assert [str(x.grad.dtype) for x in (a, b, h)] == ["f32", "f64", "f16"]
    assert is_close(a.grad, X) and is_close(b.grad, X) and is_close(h.grad, 1 + 0 * X)


def test_copies_of_parameters():
    x = leaf()
    for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert y.requires_grad and y.is_leaf
        (x * y).sum().backward()
        assert is_close(y.grad, X)
    assert not pickle.loads(pickle.dumps(x * 2)).requires_grad


def train(n, update, after=lambda k, loss, all: None):
    rng = np.random.default_rng(0)
    x, y = (t.asarray(rng.normal(size=s), dtype="f32") for s in ((16, 4), (16, 1)))
    all = [leaf(rng.normal(size=s), "f32") for s in ((4, 6), (6,), (6, 1))]
    counts = []
    for k in range(n):
        loss = ((t.tanh(x @ all[0] + all[1]) @ all[2] - y) ** 2).mean()
        loss.backward()
        update(all)
        for w in all:
            w.grad = None
        after(k, loss, all)
        counts.append(_native.tensor_counts())
    return loss.item(), counts


def by_data(all):
    for w in all:
        w.data = w.data - 0.05 * w.grad


def by_store(all):
    with ti.no_grad():
        for w in all:
            w[...] = w - 0.05 * w.grad


@pytest.mark.parametrize("update, evaluate", [(by_data, "each"), (by_store, "some"), (by_data, "parameters")])
def test_training(_start, update, evaluate):
    if _start == "interp":
        pytest.skip("there are no plans to count")

    def after(k, loss, all):
        if evaluate == "each" or evaluate == "some" and k % 10 == 9:
            loss.item()
        elif evaluate == "parameters":
            t.realize(*all)

    loss, counts = train(200, update, after)
    assert np.isclose(loss, train(200, by_data)[0], rtol=1e-4)
    plans = [c[3] for c in counts]
    # A few for where each tensor lies, and for statements that are computed on the way.
    assert plans[199] - plans[60] <= 3 and plans[199] - plans[0] <= 12
    assert max(c[0] for c in counts) < 12_000 and max(c[2] for c in counts[10:]) <= counts[10][2] + 3


def test_training_by_functions():
    rng = np.random.default_rng(0)
    x, y = (t.asarray(rng.normal(size=s), dtype="f32") for s in ((16, 4), (16, 1)))
    all = [t.asarray(rng.normal(size=s), dtype="f32") for s in ((4, 6), (6,), (6, 1))]
    step = ti.value_and_grad(lambda p: ((t.tanh(x @ p[0] + p[1]) @ p[2] - y) ** 2).mean())
    plans = []
    for k in range(60):
        loss, made = step(all)
        all = [w - 0.05 * g for w, g in zip(all, made)]
        if k % 3 == 2:
            loss.item()
        plans.append(_native.tensor_counts()[3])
    assert plans[-1] - plans[10] <= 2


def test_threads():
    failures = []

    def work(seed):
        try:
            rng = np.random.default_rng(seed)
            a, v = rng.normal(size=(2, 4, 3))
            for _ in range(10):
                assert is_close(ti.grad(lambda x: (x * x * v).sum())(f64(a)), 2 * a * v)
                w = leaf(a)
                ((w * v) ** 2).sum().backward()
                with ti.no_grad():
                    assert not (w * 2).requires_grad
                assert is_close(w.grad, 2 * a * v * v)
        except BaseException as e:
            failures.append(e)

    all = [threading.Thread(target=work, args=(s,)) for s in range(4)]
    [one.start() for one in all]
    [one.join() for one in all]
    assert not failures


def test_no_grad_is_of_one_thread():
    begun, done = threading.Event(), threading.Event()

    def off():
        with ti.no_grad():
            begun.set()
            done.wait(20)

    one = threading.Thread(target=off)
    one.start()
    begun.wait(20)
    try:
        assert (leaf() * 2).requires_grad
    finally:
        done.set()
        one.join()


Z = np.array([0.5 + 1.0j, -1.2 + 0.3j, 2.0 - 0.7j])
#: Functions and their derivatives.
HOLOMORPHIC = {
    "exp": (t.exp, np.exp),
    "sin": (t.sin, np.cos),
    "log": (t.log, lambda z: 1 / z),
    "sqrt": (t.sqrt, lambda z: 0.5 / np.sqrt(z)),
    "cube": (lambda z: z**3, lambda z: 3 * z**2),
    "quotient": (lambda z: 1 / z, lambda z: -1 / z**2),
    "product": (lambda z: z * z * 2j, lambda z: 4j * z),
}


@pytest.mark.parametrize("name", HOLOMORPHIC)
def test_complex_tensors(name):
    """The gradient is that by the real part plus `i` times that by the imaginary part, as in PyTorch."""
    f, slope = HOLOMORPHIC[name]
    w = np.array([1.0 + 2.0j, -0.5j, 3.0])

    def loss(z):
        return (f(z) * t.asarray(w.conj())).real.sum()

    wanted = w * slope(Z).conj()
    assert np.allclose(ti.grad(loss)(t.asarray(Z)).numpy(), wanted, rtol=1e-10)
    parts = leaf(Z.real), leaf(Z.imag)
    loss(t.ComplexTensor(*parts)).backward()
    assert np.allclose(parts[0].grad.numpy() + 1j * parts[1].grad.numpy(), wanted, rtol=1e-10)


def test_complex_tensors_that_are_not_holomorphic():
    z = t.asarray(Z)
    assert np.allclose(ti.grad(lambda z: abs(z).sum())(z).numpy(), Z / abs(Z), rtol=1e-10)
    assert np.allclose(ti.grad(lambda z: (z * z.conj()).real.sum())(z).numpy(), 2 * Z, rtol=1e-10)
    assert np.allclose(ti.grad(lambda z: t.angle(z).sum())(z).numpy(), 1j * Z / abs(Z) ** 2, rtol=1e-10)
    with pytest.raises((TypeError, ValueError)):
        ti.grad(lambda z: z.sum())(z)


def test_complex_tensors_with_requires_grad():
    numbers = np.array([1.0 + 2.0j, -0.5 + 0.25j])
    z = t.asarray(numbers)
    assert not z.requires_grad and z.grad is None
    z.requires_grad_()
    loss = t.real(z * t.conj(z)).sum() + t.imag(z * z).sum()
    loss.backward()
    # d|z|^2 = 2 z; of imag(z^2) = 2 x y it is 2 y + 2 i x.
    wanted = 2 * numbers + 2 * (numbers.imag + 1j * numbers.real)
    assert np.allclose(z.grad.numpy(), wanted, rtol=1e-12)
    z.grad = None
    assert z.grad is None
    assert not z.detach().requires_grad
    real = t.asarray(np.array([1.0, 2.0]))
    made = t.real(real) + 0j * real
    made.requires_grad_()
    assert not real.requires_grad
