"""Functions of tensors in JAX's graph, and functions of JAX's among tensors."""

import aerogel as ti
import numpy as np
import pytest

jax = pytest.importorskip("jax")
A = np.array([1.0, 2.0, 3.0], dtype=np.float32)


@pytest.fixture(autouse=True)
def _init():
    ti.init(arch=ti.cpu, log_level="error")


def close(got, wanted):
    np.testing.assert_allclose(np.asarray(got), wanted, rtol=2e-6, atol=1e-6)


def test_a_function_of_tensors_in_jax():
    f = ti.ad.jax_function(lambda x, y: ti.xp.sin(x) * y)
    loss = lambda x: f(x, x).sum()  # noqa: E731
    at = jax.numpy.asarray(A)
    close(jax.grad(loss)(at), np.sin(A) + A * np.cos(A))
    close(jax.jit(jax.grad(loss))(at), np.sin(A) + A * np.cos(A))
    close(jax.vmap(jax.grad(lambda x: f(x, x)))(at), np.sin(A) + A * np.cos(A))
    close(jax.numpy.diag(jax.jacrev(jax.grad(loss))(at)), 2 * np.cos(A) - A * np.sin(A))


def test_results_that_are_no_floats():
    f = ti.ad.jax_function(lambda x: (x * x, ti.xp.argmax(x)))
    found, at = jax.vjp(f, jax.numpy.asarray(A))[0]
    close(found, A * A)
    assert int(at) == 2
    close(jax.grad(lambda x: f(x)[0].sum())(jax.numpy.asarray(A)), 2 * A)


def test_parameters_that_a_function_in_jax_uses_are_refused():
    w = ti.tensor.asarray(2.0).requires_grad_()
    with pytest.raises(ValueError, match="make it an argument"):
        ti.ad.jax_function(lambda x: x * w)(jax.numpy.asarray(A))


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_a_function_of_jaxs_among_tensors(wrap):
    f = ti.ad.from_jax(wrap(lambda x, y: jax.numpy.sin(x) * y))
    at = ti.tensor.asarray(A)
    twice = lambda x: f(x, x).sum()  # noqa: E731
    close(f(at, at).numpy(), np.sin(A) * A)
    close(ti.grad(twice)(at).numpy(), np.sin(A) + A * np.cos(A))
    second = ti.grad(lambda x: ti.grad(twice)(x).sum())
    close(second(at).numpy(), 2 * np.cos(A) - A * np.sin(A))
    x = ti.tensor.asarray(A).requires_grad_()
    (f(x * 1, x) ** 2).sum().backward()
    close(x.grad.numpy(), 2 * np.sin(A) * A * (np.sin(A) + A * np.cos(A)))
