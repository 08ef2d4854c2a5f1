"""Programs with large inputs: round sizes are constants of the code, others share it, and results depend on neither."""

import numpy as np
import pytest

import aerogel as ti

xp = ti.tensor


@pytest.fixture(autouse=True)
def start():
    ti.init(arch=ti.cpu, log_level="error")


def points(n, *more):
    return np.random.default_rng(n).standard_normal((n, *more)).astype(np.float32)


def squared_distances(x):
    d = x[None, :, :] - x[:, None, :]
    return (d * d).sum(axis=-1)


def test_calls_with_other_short_axes():
    """One trace; each number of components, and small inputs after large ones, give what they give alone."""
    program = ti.program(squared_distances)
    for shape in [(600, 3), (600, 2), (5, 3), (600, 3), (300, 4), (3, 600), (0, 3), (600, 1), (1100, 1)]:
        x = points(*shape)
        d = x[None].astype(float) - x[:, None]
        np.testing.assert_allclose(program(xp.asarray(x)).numpy(), (d * d).sum(-1), rtol=2e-5, atol=1e-5)
        np.testing.assert_array_equal(program(x).numpy(), program(xp.asarray(x)).numpy())
    # An axis of one element may be repeated, so it is traced anew.
    assert program.trace_count == 2


def test_round_sizes_are_constants():
    program = ti.program(squared_distances)
    explained = {n: program.lower(points(n, 3)).explain() for n in (5, 600, 613, 1187, 2613)}
    assert "added by passes" not in explained[5]
    # The coordinates are arrays of their own.
    assert "kernel 0 over [600]: t" in explained[600]
    assert "kernel 0 over [x.shape[0]]: t" in explained[613] == explained[1187]


def test_results_do_not_depend_on_earlier_calls():
    def normalised(x):
        x = x - x.mean(axis=0)
        return x / xp.sqrt((x * x).mean(axis=0))

    used = ti.program(normalised)
    for n in (1000, 613, 700, 640, 1187, 613, 2613, 999):
        x = points(n, 40)
        np.testing.assert_array_equal(used(x).numpy(), ti.program(normalised)(x).numpy())
        np.testing.assert_allclose(used(x).numpy(), (x - x.mean(0)) / x.std(0), rtol=1e-4, atol=1e-5)


def test_every_length_in_turn():
    """More lengths than plans, and than shapes, are kept."""
    program = ti.program(lambda x, w: (x * w[:, None]).sum(axis=0))
    assert all(
        float(program(np.full((n, 3), 2, np.float32), np.ones(n, np.float32))[1]) == 2 * n for n in range(340, 1500)
    )
    assert program.trace_count == 1


def test_inputs_that_do_not_agree():
    program = ti.program(lambda x, y: x + y)
    for good, bad in [((2000,), (1000,)), ((613,), (614,)), ((64,), (2048,))]:
        program(points(*good), points(*good))
        with pytest.raises(ValueError, match=f"{good[0]} and {bad[0]}"):
            program(points(*good), points(*bad))


def test_more_shapes_than_are_kept():
    program = ti.program(lambda x, y: (x * y.sum(axis=0)).sum(axis=1))
    for a in (1, 2, 3, 4, 7):
        for b in (1, 2, 3, 4, 7):
            if a == b or b == 1:
                x, y = points(1200, a), points(1300, b)
                np.testing.assert_allclose(program(x, y).numpy(), (x * y.sum(0)).sum(1), rtol=1e-3, atol=1e-3)
    for n in (2, 3):
        with pytest.raises(ValueError, match="4"):
            program(points(1200, n), points(1300, 4))


def test_gradients():
    def energy(x):
        a = (x[None, :, :] - x[:, None, :]) / (squared_distances(x) + 0.1)[..., None]
        return (a.sum(axis=1) ** 2).sum()

    program = ti.program(ti.grad(energy))
    for shape in [(400, 3), (7, 3), (600, 2)]:
        x = points(*shape)
        expected = ti.grad(energy)(xp.asarray(x)).numpy()
        np.testing.assert_allclose(program(x).numpy(), expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())


def test_loops_and_values_that_change():
    @ti.program
    def moved(x, v, steps: int):
        def step(_, state):
            x, v = state
            v = v - 0.1 * x
            return x + 0.1 * v, v

        return xp.programs.fori_loop(0, steps, step, (x, v))

    for shape in [(500, 3), (2, 3), (700, 2)]:
        x, v = points(*shape), points(*shape)[::-1].copy()
        got = [t.numpy() for t in moved(xp.asarray(x), xp.asarray(v), 5)]
        for _ in range(5):
            v = v - np.float32(0.1) * x
            x = x + np.float32(0.1) * v
        np.testing.assert_allclose(got[0], x, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(got[1], v, rtol=1e-5, atol=1e-5)


def test_stated_shapes_are_constants():
    """`assert_tensor` returns a tensor whose sizes are known while the program is traced."""

    @ti.program
    def blurred(x, w):
        w = xp.programs.assert_tensor(w, (4, 1, 5, 5))
        assert w.shape == (4, 1, 5, 5)
        return ti.nn.functional.conv2d(x, w, padding=2)

    x, w = points(2, 1, 8, 8), points(4, 1, 5, 5)
    np.testing.assert_allclose(
        blurred(x, w).numpy(), ti.nn.functional.conv2d(x, w, padding=2).numpy(), rtol=1e-4, atol=1e-5
    )
    with pytest.raises(ValueError, match="asserted"):
        blurred(x, points(4, 1, 3, 3))
