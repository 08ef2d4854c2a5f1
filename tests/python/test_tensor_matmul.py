"""Products of matrices of every size: small ones are kernels, large ones a library's."""

import aerogel as ti
import numpy as np
import pytest
from aerogel.tensor import programs as p

T = None


@pytest.fixture(autouse=True)
def started():
    global T
    ti.init(arch=ti.cpu)
    T = ti.tensor


SHAPES = [
    ((3, 4), (4, 5)),
    ((100, 70), (70, 90)),
    ((64, 64), (64, 64)),
    ((3, 80, 70), (70, 60)),
    ((3, 80, 70), (3, 70, 60)),
    ((2, 1, 80, 70), (3, 70, 60)),
    ((80, 70), (3, 70, 60)),
    ((600,), (600, 500)),
    ((500, 600), (600,)),
    ((1, 2000), (2000, 200)),
    ((0, 100), (100, 100)),
    ((100, 0), (0, 100)),
    ((0, 80, 70), (70, 60)),
]


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64", "i32"])
@pytest.mark.parametrize("shapes", SHAPES)
def test_products(shapes, dtype):
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-2, 3, s).astype({"f16": "e", "f32": "f", "f64": "d", "i32": "i"}[dtype]) for s in shapes)
    found = (T.asarray(a) @ T.asarray(b)).numpy()
    # Whole numbers: sums are the same in any order.
    expected = (a.astype("d") @ b.astype("d")).astype(a.dtype)
    assert found.dtype == a.dtype and np.array_equal(found, expected)


def test_what_is_done_to_products_and_operands():
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-2, 3, (100, 100)).astype("f") for _ in range(2))
    s, t = T.asarray(a), T.asarray(b)
    found = T.maximum((s.T + 1) @ t[::-1] * 2 - s, 0).numpy()
    assert np.array_equal(found, np.maximum((a.T + 1) @ b[::-1] * 2 - a, 0))
    assert "product of matrices" in T.explain(s @ t)
    assert "product of matrices" not in T.explain(s[:4] @ t)
    with pytest.raises(ValueError, match="`matmul`"):
        s @ t[:50]


def test_in_programs():
    @p.program
    def layers():
        x = p.input([-1, 64], ti.f32)
        w = p.input([64, 64], ti.f32)
        return (x @ w) @ (w @ w)

    rng = np.random.default_rng(0)
    w = rng.integers(-1, 2, (64, 64)).astype("f")
    for n in (0, 1, 100):
        x = rng.integers(-1, 2, (n, 64)).astype("f")
        assert np.array_equal(layers(x, w).numpy(), x @ w @ w @ w)
