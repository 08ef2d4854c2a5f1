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

    with pytest.raises(RuntimeError, match="a tensor that kernel `total` was launched with has been changed"):
        with ti.ad.Tape(loss):
            total(x)
            with torch.no_grad():
                x += 1


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
