"""Functions of tensors in PyTorch's graph, and functions of PyTorch's among tensors."""

import aerogel as ti
import numpy as np
import pytest

torch = pytest.importorskip("torch")
A = np.array([1.0, 2.0, 3.0])


@pytest.fixture(autouse=True)
def _init():
    ti.init(arch=ti.cpu, log_level="error")


def tensor(numbers):
    return ti.tensor.asarray(np.asarray(numbers, dtype=np.float64))


def of_torch(numbers):
    return torch.tensor(np.asarray(numbers, dtype=np.float64), requires_grad=True)


def test_a_function_of_tensors_in_pytorch():
    f = ti.ad.torch_function(lambda x, y: {"product": ti.xp.sin(x) * y, "largest": ti.xp.argmax(x)})
    x, y = of_torch(A), of_torch(2 * A)
    out = f(x, y)
    assert out["largest"].item() == 2 and not out["largest"].requires_grad
    out["product"].sum().backward()
    np.testing.assert_allclose(x.grad, np.cos(A) * 2 * A)
    np.testing.assert_allclose(y.grad, np.sin(A))


@pytest.mark.parametrize("wrap", [lambda f: f, ti.program])
def test_second_derivatives_in_pytorch(wrap):
    f = ti.ad.torch_function(wrap(lambda x, y: ti.xp.sin(x) * y))
    args = (of_torch(A), of_torch(2 * A))
    assert torch.autograd.gradcheck(f, args)
    assert torch.autograd.gradgradcheck(f, args)


def test_parameters_that_a_function_in_pytorch_uses():
    w = tensor(2.0).requires_grad_()
    x = of_torch(A)
    ti.ad.torch_function(lambda x: ti.xp.exp(x * w))(x).sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), (A * np.exp(2 * A)).sum())
    np.testing.assert_allclose(x.grad, 2 * np.exp(2 * A))


def test_a_function_of_pytorchs_among_tensors():
    f = ti.ad.from_torch(lambda x, y: torch.sin(x) * y)
    at = tensor(A)
    twice = lambda x: f(x, x).sum()  # noqa: E731
    np.testing.assert_allclose(f(at, at).numpy(), np.sin(A) * A)
    np.testing.assert_allclose(ti.grad(twice)(at).numpy(), np.sin(A) + A * np.cos(A))
    second = ti.grad(lambda x: ti.grad(twice)(x).sum())
    np.testing.assert_allclose(second(at).numpy(), 2 * np.cos(A) - A * np.sin(A))
    third = ti.grad(lambda x: second(x).sum())(at)
    np.testing.assert_allclose(third.numpy(), -3 * np.sin(A) - A * np.cos(A))


def test_a_module_of_pytorchs_among_tensors():
    module = torch.nn.Linear(3, 2, dtype=torch.float64)
    f = ti.ad.from_torch(lambda x: torch.tanh(module(x)))
    x = tensor(A).requires_grad_()
    (f(x * 1) ** 2).sum().backward()
    by_ours = module.weight.grad.clone()
    module.zero_grad()
    own = of_torch(A)
    (torch.tanh(module(own)) ** 2).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), own.grad)
    np.testing.assert_allclose(by_ours, module.weight.grad)
    # Also where no tensor of ours has a gradient.
    module.zero_grad()
    (f(tensor(A)) ** 2).sum().backward()
    np.testing.assert_allclose(module.weight.grad, by_ours)


def test_a_tensor_of_pytorchs_with_a_gradient():
    x = of_torch(A)
    (ti.tensor.asarray(x * 2) ** 2).sum().backward()
    np.testing.assert_allclose(x.grad, 8 * A)
    with ti.no_grad():
        assert not ti.tensor.asarray(x).requires_grad
    assert not ti.tensor.asarray(x.detach()).requires_grad


def test_pytorch_in_a_program_is_refused():
    f = ti.ad.from_torch(torch.sin)
    with pytest.raises(RuntimeError, match="needs values"):
        ti.program(lambda x: f(x))(tensor(A))


def test_no_gradient():
    x = tensor(A).requires_grad_()
    with ti.no_grad():
        assert not ti.ad.from_torch(torch.sin)(x).requires_grad
    assert not ti.ad.torch_function(ti.xp.sin)(torch.tensor(A)).requires_grad


def test_complex_tensors_that_would_lose_a_gradient():
    with pytest.raises(TypeError, match="real tensors"):
        ti.tensor.asarray(torch.tensor([1j, 2.0], requires_grad=True))
    with pytest.raises(TypeError, match="real tensors"):
        ti.ad.torch_function(lambda x: x + 1j)(of_torch(A))


def test_a_tensor_that_is_stored_to_after_the_call():
    leaf = tensor(A).requires_grad_()
    x = leaf * 1
    made = ti.ad.from_torch(torch.sin)(x)
    x[0] = 7.0
    made.sum().backward()
    np.testing.assert_allclose(leaf.grad.numpy(), np.cos(A))
