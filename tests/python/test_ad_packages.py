"""Gradients through kernels in PyTorch and JAX."""

import numpy as np
import pytest

import aerogel as ti


@ti.kernel
def squares(x: ti.types.ndarray(), k: ti.f32, y: ti.types.ndarray()):
    for i in x:
        y[i] = k * x[i] ** 2


@ti.kernel
def product(a: ti.types.ndarray(), b: ti.types.ndarray(), c: ti.types.ndarray()):
    for i, j in c:
        for k in range(a.shape[1]):
            c[i, j] += a[i, k] * b[k, j]


def test_tensors_are_arguments(arch):
    torch = pytest.importorskip("torch")
    x = torch.tensor([1.0, 2, 3], requires_grad=True)
    y = torch.zeros(3, requires_grad=True)
    squares(x, 2, y)
    y.grad = torch.ones(3)
    squares.grad(x, 2, y)
    assert x.grad.tolist() == [4, 8, 12]
    loss = torch.zeros(1, requires_grad=True)

    @ti.kernel
    def total(x: ti.types.ndarray(), loss: ti.types.ndarray()):
        for i in x:
            loss[0] += x[i] ** 2

    x.grad = None
    with ti.ad.Tape(loss):
        total(x, loss)
    assert x.grad.tolist() == [2, 4, 6]


def test_tensors_that_change(arch):
    torch = pytest.importorskip("torch")
    x = torch.tensor([1.0, 2, 3], requires_grad=True)
    loss = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def total(x: ti.types.ndarray()):
        for i in x:
            loss[None] += x[i] ** 2

    with pytest.raises(RuntimeError, match="a tensor that was passed to kernel `total` has been modified"):
        with ti.ad.Tape(loss):
            total(x)
            with torch.no_grad():
                x += 1
    with pytest.raises(RuntimeError, match="a tensor that was passed to kernel `total` has been modified"):
        with ti.ad.Tape(loss):
            total(x)
            x.data = torch.zeros(3)


def test_functions_of_torch(arch):
    torch = pytest.importorskip("torch")
    squares_of = ti.ad.torch_function(squares)
    x = torch.tensor([1.0, 2, 3], requires_grad=True)
    y = squares_of(x, 3)
    assert y.tolist() == [3, 12, 27]
    (y * torch.tensor([1.0, 0, 2])).sum().backward()
    assert x.grad.tolist() == [6, 0, 36]
    multiply = ti.ad.torch_function(product, shape=lambda a, b: (a.shape[0], b.shape[1]))
    a, b = torch.randn(3, 4, dtype=torch.float64), torch.randn(4, 2, dtype=torch.float64)
    assert torch.allclose(multiply(a, b), a @ b)
    a.requires_grad_()
    assert torch.autograd.gradcheck(multiply, (a, b))
    b.requires_grad_()
    assert torch.autograd.gradcheck(multiply, (a, b))
    # Transposed gradients and tensors in other orders are as good.
    assert torch.autograd.gradcheck(
        lambda a, b: multiply(a, b).t().contiguous(), (a.detach().t().contiguous().t().requires_grad_(), b)
    )
    with pytest.raises(TypeError, match="takes a tensor"):
        squares_of(3, 3)


def test_functions_of_jax(arch):
    jax = pytest.importorskip("jax")
    multiply = ti.ad.jax_function(product, shape=lambda a, b: (a.shape[0], b.shape[1]))
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(3, 4)).astype(np.float32), rng.normal(size=(4, 2)).astype(np.float32)
    assert np.allclose(multiply(a, b), a @ b, atol=1e-5)
    weights = rng.normal(size=(3, 2)).astype(np.float32)
    ours = jax.grad(lambda a, b: (multiply(a, b) * weights).sum(), argnums=(0, 1))(a, b)
    theirs = jax.jit(jax.grad(lambda a, b: ((a @ b) * weights).sum(), argnums=(0, 1)))(a, b)
    for x, y in zip(ours, theirs):
        assert np.allclose(x, y, atol=1e-5)
    assert np.allclose(jax.jit(multiply)(a, b), a @ b, atol=1e-5)


def test_gradients_of_tensors_that_are_no_leaves(arch):
    torch = pytest.importorskip("torch")

    class Squares(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = torch.empty_like(x)
            squares(x, 1, y)
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx, dy):
            x, y = ctx.saved_tensors
            x.grad, y.grad = torch.zeros_like(x), dy.contiguous()
            squares.grad(x, 1, y)
            return x.grad

    x = torch.tensor([1.0, 2, 3], requires_grad=True)
    (g,) = torch.autograd.grad(Squares.apply(x * 1).sum(), x)
    assert g.tolist() == [2, 4, 6]
    base = torch.tensor([1.0, 2, 3, 4], requires_grad=True)
    loss = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def cubes(x: ti.types.ndarray()):
        for i in x:
            loss[None] += x[i] ** 3

    for x in (base[::2], base * 1, base.view(2, 2)[0]):
        with ti.ad.Tape(loss):
            cubes(x)
        assert torch.allclose(x.grad, 3 * x.detach() ** 2)


def test_gradients_of_tensors_that_cannot_be_used(arch):
    torch = pytest.importorskip("torch")

    def given(**grads):
        x, y = torch.tensor([1.0, 2, 3], requires_grad=True), torch.zeros(3, requires_grad=True)
        x.grad, y.grad = grads.get("x"), grads.get("y", torch.ones(3))
        return x, y

    x, y = given(x=torch.zeros(3).to_sparse())
    with pytest.raises(TypeError, match="the gradient `x.grad` is sparse"):
        squares.grad(x, 1, y)
    x, y = given(y=torch.ones(1).expand(3))
    with pytest.raises(ValueError, match="elements of the array for argument `y.grad` share memory"):
        squares.grad(x, 1, y)
    x, y = given()
    with pytest.raises(
        ValueError, match=r"argument `y` .* has a `grad`, which is not used since it does not require one"
    ):
        squares.grad(x, 1, y.requires_grad_(False))
    x, y = given()
    x.grad = y.grad
    with pytest.raises(RuntimeError, match="`x.grad` and `y.grad` of kernel `squares` share memory"):
        squares.grad(x, 1, y)
    assert y.grad.tolist() == [1, 1, 1]


def test_gradients_that_compute_nothing(arch, capfd):
    torch = pytest.importorskip("torch")
    ti.init(arch=arch, log_level="warn")
    x, y = torch.tensor([1.0, 2, 3], requires_grad=True), torch.zeros(3)
    for _ in range(2):
        squares.grad(x, 1, y)
    assert x.grad.tolist() == [0, 0, 0]
    told = "".join(capfd.readouterr())
    assert told.count("`squares.grad` computes nothing") == 1
    y.requires_grad_()
    y.grad = torch.ones(3)
    squares.grad(x, 1, y)
    assert x.grad.tolist() == [2, 4, 6] and not "".join(capfd.readouterr())


def test_one_leaf_for_two_arguments(arch):
    torch = pytest.importorskip("torch")

    @ti.kernel
    def f(a: ti.types.ndarray(), b: ti.types.ndarray(), loss: ti.types.ndarray()):
        for i, j in a:
            loss[0] += a[i, j] * a[i, j] * b[i, j]

    for x in (torch.full((2, 3), 2.0), torch.full((3, 2), 2.0).t()):
        x.requires_grad_()
        loss = torch.zeros(1, requires_grad=True)
        with ti.ad.Tape(loss):
            f(x, x, loss)
        assert (x.grad == 12).all()
    a, b = (torch.full((2, 3), 2.0, requires_grad=True) for _ in range(2))
    a.grad = b.grad = torch.zeros(2, 3)
    with pytest.raises(RuntimeError, match="`a.grad` and `b.grad` of kernel `f` share memory"):
        with ti.ad.Tape(torch.zeros(1, requires_grad=True)) as tape:
            f(a, b, tape.losses[0])


def test_copies_of_tensors_under_a_tape(arch):
    torch = pytest.importorskip("torch")
    n = 2
    f, g, h = (ti.field(ti.f32, n, name=name, needs_grad=name != "g") for name in "fgh")
    m = ti.Vector.field(2, ti.f32, n, needs_grad=True)
    s = ti.types.struct(a=ti.f32, b=ti.types.vector(2, ti.f32)).field(shape=n, needs_grad=True)
    own = ti.ndarray(ti.f32, n, needs_grad=True)
    loss = ti.field(ti.f32, (), needs_grad=True)

    @ti.kernel
    def total(x: ti.template()):
        for i in x:
            loss[None] += x[i] ** 2

    @ti.kernel
    def total_of_vectors():
        for i in m:
            loss[None] += m[i].norm_sqr()

    @ti.kernel
    def total_of_structs():
        for i in s:
            loss[None] += s[i].a ** 2 + s[i].b.norm_sqr()

    @ti.kernel
    def total_of_array(x: ti.types.ndarray()):
        for i in x:
            loss[None] += x[i] ** 2

    def leaf(*shape, dtype=torch.float32):
        return torch.full(shape, 3, dtype=dtype, requires_grad=True)

    def gradient(x, *steps, **options):
        with ti.ad.Tape(loss, **options):
            for step in steps:
                step()
        return x.grad

    x = leaf(n)
    assert gradient(x, lambda: f.from_torch(x), lambda: total(f)).tolist() == [6, 6]
    assert gradient(x, lambda: f.from_torch(x), lambda: total(f)).tolist() == [12, 12]
    x = leaf(n, dtype=torch.float64) * 1
    assert gradient(x, lambda: f.from_torch(x), lambda: f.from_torch(x), lambda: total(f)).tolist() == [6, 6]
    x = leaf(n, 2)
    assert (gradient(x, lambda: m.from_torch(x), total_of_vectors) == 6).all()
    x, y = leaf(n), leaf(n, 2)
    assert (gradient(y, lambda: s.from_torch({"a": x, "b": y}), total_of_structs) == 6).all() and (x.grad == 6).all()
    x = leaf(n)
    assert (gradient(x, lambda: own.from_torch(x), lambda: total_of_array(own)) == 6).all()
    x = leaf(n)
    assert (gradient(x, lambda: own.from_numpy(x), lambda: total_of_array(own)) == 6).all()
    x = leaf(n)
    assert (gradient(x, lambda: f.from_numpy(x), lambda: total(f)) == 6).all()
    x = leaf(n)
    copies = [lambda: f.from_torch(x), lambda: h.copy_from(f), lambda: f.fill(0)]
    assert gradient(x, *copies, lambda: total(h), validation=True).tolist() == [6, 6]
    x = leaf(n)
    with pytest.raises(
        RuntimeError, match="kernel `total` reads `g`, which `from_torch` has computed from data with a gradi"
    ):
        gradient(x, lambda: g.from_torch(x), lambda: total(g), validation=True)
    with pytest.raises(
        RuntimeError, match="kernel `total` reads `g`, which `copy_from` has computed from data with a gradie"
    ):
        gradient(x, lambda: f.from_torch(x), lambda: g.copy_from(f), lambda: total(g), validation=True)
    assert gradient(x, lambda: g.from_torch(x), lambda: g.fill(1), lambda: total(g), validation=True) is None

    def step(t):
        f.from_torch(x)
        total(f)

    x = leaf(n)
    assert gradient(x, lambda: ti.ad.checkpoint(step, steps=4, snapshots=2)).tolist() == [24, 24]


@pytest.mark.parametrize("kind", ["torch", "numpy", "strided", "ndarray"])
def test_arrays_without_gradients_between_kernels(arch, kind):
    x, loss = ti.ndarray(ti.f32, 2, needs_grad=True), ti.ndarray(ti.f32, 1, needs_grad=True)
    x.fill(3)

    @ti.kernel
    def square(x: ti.types.ndarray(), y: ti.types.ndarray()):
        for i in x:
            y[i] += x[i] ** 2

    @ti.kernel
    def last(y: ti.types.ndarray(), loss: ti.types.ndarray()):
        for i in y:
            loss[0] += y[i]

    def between():
        if kind == "torch":
            return pytest.importorskip("torch").zeros(2)
        return {"numpy": np.zeros(2, "f4"), "strided": np.zeros(4, "f4")[::2], "ndarray": ti.ndarray(ti.f32, 2)}[kind]

    y = between()
    with pytest.raises(
        RuntimeError, match="kernel `last` reads `y`, which kernel `square` has computed from data with a"
    ):
        with ti.ad.Tape(loss, validation=True):
            square(x, y)
            last(y, loss)
    ti.init(arch=arch, log_level="warn")
    x, loss = ti.ndarray(ti.f32, 2, needs_grad=True), ti.ndarray(ti.f32, 1, needs_grad=True)
    y = between()
    with ti.ad.Tape(loss):
        square(x, y)
        last(y, loss)
    assert x.grad.to_numpy().tolist() == [0, 0]


def test_arrays_that_are_not_contiguous_and_overwritten(arch):
    loss = ti.field(ti.f32, (), needs_grad=True)

    @ti.kernel
    def total(x: ti.types.ndarray(), y: ti.types.ndarray()):
        for i in x:
            loss[None] += x[i] * y[i]

    @ti.kernel
    def clear(x: ti.types.ndarray()):
        for i in x:
            x[i] = 0

    x, y = ti.ndarray(ti.f32, 2, needs_grad=True), np.ones(4, "f4")[::2]
    with ti.ad.Tape(loss):
        clear(y)
        total(x, y)
    with pytest.raises(
        ValueError, match="the array `x` is not C-contiguous, and gradients would have to restore its values"
    ):
        with ti.ad.Tape(loss):
            total(x, y)
            clear(y)


def test_versions_of_tensors_that_kernels_write(arch, monkeypatch):
    torch = pytest.importorskip("torch")
    loss = ti.field(ti.f32, (), needs_grad=True)

    @ti.kernel
    def step(x: ti.types.ndarray()):
        for i in x:
            x[i] = x[i] * x[i]

    @ti.kernel
    def total(x: ti.types.ndarray()):
        for i in x:
            loss[None] += x[i]

    launch = type(step)._launch

    def counted(self, args, kwargs, *rest):
        result = launch(self, args, kwargs, *rest)
        for arg in args:
            torch.autograd.graph.increment_version(arg)
        return result

    monkeypatch.setattr(type(step), "_launch", counted)
    x = torch.full((2,), 2.0).requires_grad_()
    with ti.ad.Tape(loss):
        step(x)
        step(x)
        total(x)
    assert x.grad.tolist() == [32, 32]
    x = torch.full((2,), 2.0).requires_grad_()
    with ti.ad.Tape(loss):
        ti.ad.checkpoint(lambda t: step(x), steps=2, snapshots=1)
        total(x)
    assert x.grad.tolist() == [32, 32]
    with pytest.raises(RuntimeError, match="a tensor that was passed to kernel `total` has been modified since"):
        with ti.ad.Tape(loss):
            total(x)
            with torch.no_grad():
                x.add_(1)
            step(x)
