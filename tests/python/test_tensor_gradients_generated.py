"""Gradients of random functions against central differences and forward mode."""

import numpy as np
import pytest
from tensor_gradients.generated import N_PARTS, along, directions, has, made, numbers, seeds
from tensor_gradients.numpy_words import NUMPY

import aerogel as ti


@pytest.fixture(autouse=True, scope="module")
def _start():
    ti.init(arch="interp", log_level="error")
    yield
    ti.reset()


def expect_differences(r, gradient, direction):
    """Central differences, where those to both sides are the same: there is no kink between."""
    step, tolerance = (2e-3, 3e-2) if has(r, "f32") else (1e-6, 1e-4)
    above, here, below = (float(r(NUMPY, *[a + h * d for a, d in zip(r.arrays, direction)])) for h in (step, 0, -step))
    slope = along(gradient, direction)
    tolerance *= 1 + abs(slope)
    is_smooth = abs(above - 2 * here + below) / step < tolerance
    assert not is_smooth or abs((above - below) / (2 * step) - slope) < tolerance, r.steps
    return is_smooth


@pytest.mark.parametrize("part", range(N_PARTS))
def test_differences_and_forward_mode(part):
    n_smooth = 0
    for seed in seeds(part):
        r, f, of = made(seed)
        value, gradient = ti.value_and_grad(f, of)(*r.arrays)
        gradient = numbers(gradient)
        exact = 1e-5 if has(r, "f32") else 1e-9
        assert np.isclose(value.item(), r.value, rtol=exact, atol=exact), r.steps
        direction = directions(r, seed)
        if not has(r, "stop"):
            n_smooth += expect_differences(r, gradient, direction)
        if seed % 2 == 0:
            _, change = ti.jvp(f, tuple(r.arrays), tuple(direction))
            assert np.isclose(change.item(), along(gradient, direction), rtol=exact, atol=exact), r.steps
    assert n_smooth > 0.5 * len(seeds(part)) - 3
