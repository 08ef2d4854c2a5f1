"""Gradients in programs and of programs: sizes that only the run knows, values that change, blocks, and what is refused."""

import numpy as np
import pytest

import aerogel as ti
from aerogel import tensor as t
from aerogel.tensor import programs as p

X = np.array([1.0, 2.0, 3.0])
M = np.array([[1.0, 2.0], [3.0, 4.0]])
V = np.array([0.5, 1.3, -0.7])


@pytest.fixture(autouse=True, scope="module", params=["interp", "cpu"])
def _start(request):
    ti.init(arch=request.param, log_level="error")
    yield
    ti.reset()


def f64(x):
    return t.asarray(np.asarray(x, dtype="float64"))


def is_close(got, want):
    return got.shape == np.shape(want) and np.allclose(got.numpy(), want, rtol=1e-11)


def stored(x, key, value):
    x[key] = value
    return x


def changed(x):
    y = x * 1
    y.val = y * y
    y[1] = 5.0
    return (y * x).sum()


def kernel_block(x):
    y = x.copy()
    with p.kernel(x.shape) as i:
        p.scatter_add(y, (2 - i,), x[i] * x[i])
    return (y * y).sum()


def masked(x):
    y = x * 2
    with p.if_cond(x > 1.5):
        y.val = y * 3
    return (y * y).sum()


def printed(x):
    p.assert_value("positive", x.sum() > 0)
    return (x * x).sum()


Y = X + X[::-1] ** 2
#: Functions of one tensor, an argument, and the gradient.
TABLE = {
    "powers": (lambda x: (x**3).sum(), X, 3 * X**2),
    "another size": (lambda x: (x**3).sum(), X[:2], 3 * X[:2] ** 2),
    "changed values": (changed, X, [3, 5, 27]),
    "store after a read": (lambda x: (lambda a: (stored(x, 0, 5.0) ** 2).sum() + a * a)(x[0] * 1), X, [2, 4, 6]),
    "halves": (lambda x: (x[: x.shape[0] // 2] * t.arange(x.shape[0] // 2)).sum(), np.ones(5), [0, 1, 0, 0, 0]),
    "joined": (lambda x: t.concat([x, x * x]).reshape(2, -1)[1].sum(), X, 2 * X),
    "product": (lambda x: ((x @ x) ** 2).sum(), M, 2 * (M @ M) @ M.T + 2 * M.T @ (M @ M)),
    "mean": (lambda x: (x.mean() * x).sum(), X, 4 + 0 * X),
    "linspace": (lambda x: (t.linspace(0.0, x.sum(), 3) ** 2).sum(), X, 15 + 0 * X),
    "kernel block": (kernel_block, X, 2 * Y + 2 * Y[::-1] * 2 * X),
    "a mask": (masked, X, 2 * X * [4, 36, 36]),
    "a check": (printed, X, 2 * X),
    "vmap": (lambda x: ti.vmap(lambda r: (r * r).sum() * r[0])(x).sum(), M, 2 * M * M[:, :1] + [[5, 0], [25, 0]]),
    "stop_gradient": (lambda x: (ti.stop_gradient(x * x) * x).sum(), X, X**2),
    "random numbers": (
        lambda x: (x * t.random.uniform(t.asarray([1, 2], dtype="u32"), (3,), dtype="f64")).sum(),
        X,
        None,
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_table(name):
    function, x, wanted = TABLE[name]
    program = ti.program(function)
    if wanted is None:
        wanted = ti.grad(function)(f64(x)).numpy()
    assert is_close(ti.grad(program)(f64(x)), wanted)
    inside = ti.program(lambda x: (ti.grad(function)(x), function(x)))(f64(x))
    assert is_close(inside[0], wanted) and np.isclose(inside[1].item(), program(f64(x)).item())
    value, gradient = ti.value_and_grad(program)(f64(x))
    assert is_close(gradient, wanted) and value.item() == inside[1].item()


def test_several_gradients_and_sizes():
    @ti.program
    def f(x, w):
        y = x * x
        return (
            ti.grad(lambda a: (a * w).sum())(x),
            ti.grad(lambda b: (x * b * b).sum())(w),
            ti.grad((y * y).sum(), [y, x]),
        )

    for n in (1, 3, 7):
        x, w = np.arange(1.0, n + 1), np.arange(n) - 0.5
        a, b, (c, d) = f(f64(x), f64(w))
        assert is_close(a, w) and is_close(b, 2 * x * w) and is_close(c, 2 * x**2) and is_close(d, 4 * x**3)
    assert f.trace_count == 2


def test_numbers_of_python_and_static_ones():
    @ti.program
    def f(x, s, n: int):
        return (x[:n] ** 2 * s).sum()

    by = ti.grad(f, (0, 1))(f64(X), 2.0, 2)
    assert is_close(by[0], [4, 8, 0]) and np.isclose(by[1].item(), 5)


def test_transforms():
    def cubes(x):
        return (x**3).sum()

    x = f64(X)
    assert is_close(ti.hessian(ti.program(cubes))(x), np.diag(6 * X))
    assert is_close(ti.program(lambda x: ti.hessian(cubes)(x))(x), np.diag(6 * X))
    assert is_close(ti.jacobian(ti.program(lambda x: x * x))(x), np.diag(2 * X))
    assert is_close(ti.program(ti.grad(cubes))(x), 3 * X**2)
    assert is_close(ti.grad(ti.grad(ti.program(lambda x: x**4)))(f64(2.0)), 48.0)
    assert is_close(ti.program(lambda m: ti.vmap(ti.grad(cubes))(m))(f64(M)), 3 * M**2)
    assert is_close(ti.program(lambda m: ti.vmap(ti.hessian(cubes))(m))(f64(M)), [np.diag(6 * r) for r in M])
    a, b, c = ti.program(lambda x: (
        ti.jvp(lambda a: a * a, (x,), (x,))[1], ti.vjp(lambda a: a * a, x)[1](x)[0], ti.hvp(cubes, (x,), (x,))[0]
    ))(x)  # fmt: skip
    assert is_close(a, 2 * X**2) and is_close(b, 2 * X**2) and is_close(c, 6 * X**2)


def test_descent_in_blocks():
    @ti.program
    def f(x):
        with p.loop(3):
            x.val = x - 0.1 * ti.grad(lambda a: (a * a).sum())(x)
        with p.if_cond(x.sum() > 0):
            x.val = x - 0.1 * ti.grad(lambda a: (a * a).sum())(x)
        return x

    assert is_close(f(f64(X)), X * 0.8**4)
    assert is_close(ti.grad(ti.program(lambda x: f(x).sum()))(f64(X)), 0.8**4 + 0 * X)


# Loops, against differences.


def loop(body, n=3):
    def f(x):
        y = x * 1
        with p.loop(n) as k:
            y.val = body(x, y, k)
        return (y * x).sum()

    return f


def stepped(x):
    y = x * 1
    with p.loop(5, 0, -2) as k:
        y.val = y * x * k
    return y.sum()


def by_counter(x):
    s = p.const(0.0, "f64")
    with p.loop(x.shape[0]) as k:
        s.val = s + x[k] * x[k] * s + x[k]
    return s


def left_and_skipped(x):
    s, n = p.const(0.0, "f64"), p.const(0)
    with p.loop(100) as k:
        with p.if_cond(k % 3 == 1):
            p.continue_loop()
        s.val = s + x.sum() * x[0]
        n.val += 1
        with p.if_cond(s > 3.0):
            p.break_loop()
    return s * n


def nested(x):
    y = x * 1
    with p.loop(2):
        with p.loop(3):
            with p.if_cond(y.sum() > 2):
                p.break_loop()
            y.val = y * y + x
        y.val = t.tanh(y)
    return y.sum()


def exchanged(x):
    y, z = x * 1, x * 2
    with p.loop(3):
        w = y + z
        z.val = y * w
        y.val = w * 0.5
    return (y * z).sum()


def stores(x):
    y = t.zeros(4, dtype="f64") + x.sum()
    with p.loop(3) as k:
        y[k + 1] = y[k] * x[k]
        y[0] = y[k + 1]
    return (y * y).sum()


def scattered(x):
    y = x * 1
    with p.loop(2):
        with p.kernel(x.shape) as i:
            p.scatter_add(y, (2 - i,), x[i] * y[i])
    return (y * y).sum()


def in_a_branch(x):
    y = x * 1
    with p.if_cond(x.sum() > 0):
        with p.loop(2):
            y.val = y * x
    return y.sum()


def choices(x):
    y = x * 1
    with p.loop(4):
        with p.if_cond(y > 0.3):
            y.val = y * x * 0.9
        with p.if_cond(y <= 0.3):
            y.val = y + x * x
    return (y * y).sum()


def descent(x):
    y = x * 1
    with p.loop(3):
        y.val = y - 0.1 * ti.grad(lambda a: (a**4).sum())(y)
    return (y * y).sum()


def solved(x):
    m, y = x.reshape(3, 1) * x.reshape(1, 3) + t.eye(3, dtype="f64") * 2, x * 1
    with p.loop(2):
        y.val = t.linalg.solve(m, y)
    return (y * y).sum()


def looked_at(x):
    y = x * 1
    with p.loop(2):
        p.assert_value("small", y.sum() < 100)
        y.val = y * x
    return y.sum()


LOOPS = {
    "counter": loop(lambda x, y, k: t.sin(y) * x + k),
    "turns": loop(lambda x, y, k: t.cumsum(t.sort(y) * x)),
    "no turns": loop(lambda x, y, k: y * x, 0),
    "product": loop(lambda x, y, k: t.tanh((x.reshape(3, 1) * x.reshape(1, 3)) @ y)),
    "heat": loop(lambda x, y, k: y + 0.01 * (t.roll(y, 1) - 2 * y + t.roll(y, -1)), 100),
    "exp by sum": loop(lambda x, y, k: (lambda e: e / e.sum())(t.exp(y * x))),
    "while": lambda x: p.while_loop(lambda s: s[0].sum() < 10, lambda s: (s[0] * 1.5 + x * x, s[1] + s[0].sum()),
                                    (x * x, x.sum()))[1],
    "scan": lambda x: p.scan(lambda c, r: (c * r + 1.0, c * r), x[0] * 1, x)[1].sum(),
    "cond": lambda x: p.cond(x.sum() > 0, lambda a: (a * a).sum(), lambda a: a.sum(), x),
    "step": stepped, "index": by_counter, "break, continue": left_and_skipped, "nested": nested, "exchange": exchanged,
    "stores": stores, "scatter": scattered, "branch": in_a_branch, "choices": choices, "descent": descent,
    "solve": solved,
}  # fmt: skip
LOOPS |= {
    "softmax of a product": loop(lambda x, y, k: t.softmax((x.reshape(3, 1) * x.reshape(1, 3)) @ y)),
    "softmax": loop(lambda x, y, k: t.softmax(y * x)),
    "max": loop(lambda x, y, k: y - t.max(y) + x),
    "check": looked_at,
    "stop_gradient": loop(lambda x, y, k: y * x + ti.stop_gradient(x) * 0),
}


@pytest.mark.parametrize("function", LOOPS.values(), ids=LOOPS)
def test_blocks(function):
    program = ti.program(function)
    for x in (V, -V * 0.9):
        found = ti.grad(program)(f64(x)).numpy()
        for k, step in enumerate(np.eye(3) * 1e-6):
            want = (program(f64(x + step)).item() - program(f64(x - step)).item()) / 2e-6
            assert np.isclose(found[k], want, rtol=1e-5, atol=1e-6)


# What is refused.


@ti.kernel
def doubled(a: ti.types.ndarray()):
    for i in a:
        a[i] = a[i] * 2


@ti.kernel
def total(a: ti.types.ndarray()) -> ti.f64:
    s = 0.0
    for i in a:
        s += a[i]
    return s


def with_field(x):
    field = ti.field(ti.f64, shape=3)

    def f(x):
        (i,) = p.indices(field)
        field[i] = x * x
        return (field[i] * field[i]).sum()

    return ti.grad(ti.program(f))(x)


def leaf(x=X):
    return f64(x).requires_grad_()


#: Name, what is done, the exception, and a part of its message.
REFUSED = {
    "several numbers": (lambda: ti.grad(lambda x: x * x)(f64(X)), ValueError, "`grad` differentiates a scalar"),
    "several numbers, backward": (lambda: (leaf() * 2).backward(), ValueError, "sum"),
    "several numbers, program": (lambda: ti.grad(ti.program(lambda x: x * x))(f64(X)), ValueError, "`grad` differentiates a scalar"),
    "a seed of another shape": (lambda: (leaf() * 2).backward(f64([1, 2])), ValueError, r"\(2,\)"),
    "a seed of another structure": (lambda: ti.vjp(lambda x: (x, x), f64(X))[1](f64(X)), ValueError, "seed"),
    "an integer": (lambda: ti.grad(lambda x: x.sum())(t.arange(3)), TypeError, "float"),
    "an integer, leaf": (lambda: t.arange(3).requires_grad_(), TypeError, "float"),
    "a boolean": (lambda: t.asarray([True]).requires_grad_(), TypeError, "float"),
    "an integer result": (lambda: ti.grad(lambda x: x.astype("i32").sum())(f64(X)), TypeError, "float"),
    "an integer, backward": (lambda: leaf().astype("i32").sum().backward(), TypeError, "float"),
    "no such argument": (lambda: ti.grad(lambda x: x.sum(), 1)(f64(X)), ValueError, "argument"),
    "no function": (lambda: ti.grad(3.0), TypeError, "function"),
    "no leaf": (lambda: f64(X).sum().backward(), ValueError, "requires_grad"),
    "no variable": (lambda: ti.grad(f64(X).sum(), f64(X)), ValueError, "requires_grad"),
    "tangents": (lambda: ti.jvp(lambda x: x, (f64(X),), ()), ValueError, "tangent"),
    "a gradient of another shape": (lambda: setattr(leaf(), "grad", f64([1.0])), ValueError, "shape"),
    "a gradient of another type": (lambda: setattr(leaf(), "grad", t.ones(3)), TypeError, "dtype"),
    "data of another shape": (lambda: setattr(leaf(), "data", f64([1.0])), ValueError, "shape"),
    "off for what is computed": (lambda: (leaf() * 2).requires_grad_(False), RuntimeError, "detach"),
    "retained without a gradient": (lambda: f64(X).retain_grad(), RuntimeError, "gradient"),
    "numbers of a leaf": (lambda: leaf().numpy(), RuntimeError, "detach"),
    "a field in a program": (lambda: with_field(f64(X)), ValueError, "active cells"),
    "a leaf in a program": (lambda: ti.program(lambda x: x.requires_grad_())(f64(X)), RuntimeError, "ti.grad"),
    "lu": (lambda: ti.grad(lambda x: t.linalg.lu(x)[1].sum())(f64(M)), ValueError, "lu"),
    "eig": (lambda: ti.grad(lambda x: t.linalg.eigvals(x).real.sum())(f64(M)), ValueError, "eigvals"),
    "full svd": (lambda: ti.grad(lambda x: t.linalg.svd(x)[0].sum())(f64([[1, 2], [3, 4], [5, 6]])), ValueError, "svd"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    what, kind, message = REFUSED[name]
    with pytest.raises(kind, match=message):
        what()


def test_without_gradients_all_is_allowed():
    x = leaf()
    with ti.no_grad():
        assert total(x) == 6 and ti.program(lambda x: x * 2)(x).tolist() == [2, 4, 6]
        np.testing.assert_array_equal(x.numpy(), X)
        doubled(x)
    assert x.requires_grad and x.is_leaf
    (x * x).sum().backward()
    assert is_close(x.grad, 4 * X)
    assert total(x.detach()) == 12 and (x > 2).numpy().any() and x.argmax().numpy() == 2
