"""Decompositions of small matrices, against LAPACK; ``docs/linalg-accuracy.md`` has larger numbers of them."""

import sys
from pathlib import Path

import numpy as np
import pytest

import aerogel as ti

sys.path.insert(0, str(Path(__file__).parent.parent / "oracle"))
import linalg  # noqa: E402

#: The largest errors allowed, in units in the last place.
LIMITS = {"svd": 16, "polar_decompose": 20, "sym_eig": 20, "eig": 16, "solve": 4, "inverse": 12, "determinant": 8}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_errors(cpu, n, dtype):
    seen = set()
    for name, family, errors in linalg.measure(n, dtype, linalg.FUNCTIONS, 5000, 500, seed=7):
        seen.add(name)
        for what, error in errors.items():
            assert error <= LIMITS[name], (name, family, what)
    assert seen == {name for name, sizes in linalg.FUNCTIONS.items() if n in sizes}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_errors_in_the_interpreter():
    ti.init(arch="interp", log_level="error")
    for name, family, errors in linalg.measure(3, np.float32, ["svd", "sym_eig", "solve"], 20, 5):
        assert max(errors.values()) <= LIMITS[name], (name, family)


def test_integers_are_taken_as_numbers(cpu):
    @ti.kernel
    def solution() -> ti.types.vector(2, ti.f32):
        return ti.solve(ti.Matrix([[2, 1], [1, 3]]), ti.Vector([1, 1]))

    @ti.kernel
    def values() -> ti.types.vector(2, ti.f32):
        w, v = ti.sym_eig(ti.Matrix([[2, 1], [1, 3]]))
        return w

    np.testing.assert_allclose(solution().to_numpy(), [0.4, 0.2], rtol=1e-6)
    np.testing.assert_allclose(values().to_numpy(), np.linalg.eigvalsh([[2, 1], [1, 3]])[::-1], rtol=1e-6)


def test_a_singular_matrix_is_told_of():
    ti.init(arch=ti.cpu, debug=True, log_level="error")

    @ti.kernel
    def solve(scale: ti.f32) -> ti.types.vector(2, ti.f32):
        return ti.solve(scale * ti.Matrix([[1.0, 2.0], [2.0, 4.0]]), ti.Vector([1.0, 1.0]))

    @ti.kernel
    def small(scale: ti.f32) -> ti.types.vector(2, ti.f32):
        return ti.solve(scale * ti.Matrix([[1.0, 0.0], [0.0, 1.0]]), ti.Vector([1.0, 1.0]))

    with pytest.raises(ti.TaichiAssertionError, match="the matrix is singular"):
        solve(1.0)
    # Its determinant is below the smallest number.
    np.testing.assert_allclose(small(1e-30).to_numpy(), [1e30, 1e30], rtol=1e-6)


@pytest.mark.parametrize("defaults", [{"default_ip": ti.i64}, {"default_fp": ti.f64}])
def test_other_default_types(defaults, capsys):
    """The library says itself of which types its constants are, and nobody is warned of what it does."""
    ti.init(arch=ti.cpu, log_level="warn", **defaults)
    A = np.array([[2, 1, 0], [1, 3, 1], [0, 1, 4]])
    for dtype in (ti.f32, ti.f64):
        m, out = ti.Matrix.field(3, 3, dtype, ()), ti.Matrix.field(3, 3, dtype, 3)
        m.from_numpy(A)

        @ti.kernel
        def run():
            U, S, V = ti.svd(m[None])
            out[0] = U @ S @ V.transpose()
            R, P = ti.polar_decompose(m[None])
            out[1] = R @ P
            values, vectors = ti.sym_eig(m[None])
            D = m[None] * 0
            for i in ti.static(range(3)):
                D[i, i] = values[i]
            out[2] = vectors @ D @ vectors.transpose()

        run()
        np.testing.assert_allclose(out.to_numpy(), np.stack([A] * 3), atol=1e-5)
    keys = ti.field(ti.f32, 1000)
    keys.from_numpy(np.arange(1000, 0, -1))
    ti.algorithms.parallel_sort(keys)
    assert (np.diff(keys.to_numpy()) > 0).all()
    ti.set_logging_level("error")
    assert "warning" not in capsys.readouterr().err


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("scale", [1.0, 1e-3, 300.0])
def test_derivatives_of_polar_decompositions(cpu, n, scale):
    """Against central differences: the scaling that keeps squares in range is no part of them."""
    m = ti.Matrix.field(n, n, ti.f64, (), needs_grad=True)
    loss = ti.field(ti.f64, (), needs_grad=True)
    weights = ti.Matrix([[(3 * i + j) % 5 - 1.5 for j in range(n)] for i in range(n)])
    start = scale * np.array([[1.0, 0.5, 0.2], [0.3, 1.2, -0.4], [0.1, 0.7, 0.9]])[:n, :n]

    @ti.kernel
    def run():
        r, s = ti.polar_decompose(m[None])
        loss[None] = (r * weights).sum() + (s * weights).sum()

    def at(x):
        m.from_numpy(x)
        run()
        return loss[None]

    m.from_numpy(start)
    with ti.ad.Tape(loss):
        run()
    found = m.grad.to_numpy()
    step = 1e-6 * scale
    for i, j in np.ndindex(n, n):
        e = np.zeros((n, n))
        e[i, j] = step
        expected = (at(start + e) - at(start - e)) / (2 * step)
        assert abs(found[i, j] - expected) <= 1e-5 * max(1, abs(expected))
