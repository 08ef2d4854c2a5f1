"""Gradients of functions and of random programs against JAX, where it is installed."""

import numpy as np
import pytest
from tensor_gradients.cases import CASES
from tensor_gradients.random_programs import Random
from tensor_gradients.words import OURS, one_number

import aerogel as ti

pytest.importorskip("jax")

from tensor_gradients import jax_words  # noqa: E402


@pytest.fixture(autouse=True, scope="module")
def _start():
    ti.init(arch="interp", log_level="error")
    yield
    ti.reset()


@pytest.mark.parametrize("case", [c for c in CASES.values() if c.in_jax], ids=lambda c: c.name)
def test_functions(case):
    arrays = case.arrays()
    made = ti.grad(one_number(case.function), tuple(range(len(arrays))))(*arrays)
    for got, want in zip(made, jax_words.gradients(case.function, arrays)):
        assert np.allclose(got.numpy(), want, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_random_programs(seed):
    r = Random(seed)
    of = tuple(range(len(r.arrays)))
    made = ti.grad(lambda *x: r(OURS, *x), of)(*r.arrays)
    wanted = jax_words.jax.grad(lambda *x: r(jax_words.JAX, *x), of)(*map(jax_words.jnp.asarray, r.arrays))
    for got, want in zip(made, wanted):
        assert np.allclose(got.numpy(), want, rtol=1e-8, atol=1e-8)
