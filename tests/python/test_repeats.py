"""Results repeat to the bit by default: how fast the machine was decides how work is divided, and not what is computed."""

import hashlib
from collections.abc import Callable

import numpy as np
import pytest

import aerogel as ti

# Rows of no full lanes, some shorter and some longer than a batch of them.
SIZES = [67, 513, 1021]


def _digest(numbers: np.ndarray) -> str:
    return hashlib.sha1(np.ascontiguousarray(numbers).tobytes()).hexdigest()


def _tensors(n: int) -> Callable[[], np.ndarray]:
    x = np.random.default_rng(n).random(n).astype(np.float32)

    def run() -> np.ndarray:
        t = ti.tensor.asarray(x)
        near = abs(t[:, None] - t[None, :]).sum(axis=1)
        waves = ti.tensor.exp(-((t[:, None, None] - t[None, :8, None]) ** 2) * t[None, None, :31]).sum(axis=2)
        return np.concatenate([near.numpy(), waves.numpy().ravel()])

    return run


def _row_sums(n: int) -> Callable[[], np.ndarray]:
    a = np.random.default_rng(n).random((n, n)).astype(np.float32)
    out = np.zeros((n, 7), np.float32)

    @ti.kernel
    def sums(a: ti.types.ndarray(), out: ti.types.ndarray()):
        for i, k in ti.ndrange(a.shape[0], 7):
            s = 0.0
            for j in range(a.shape[1]):
                s += a[i, j] * a[k, j]
            out[i, k] = s

    def run() -> np.ndarray:
        sums(a, out)
        return out

    return run


def _pairs(n: int) -> Callable[[], np.ndarray]:
    x = ti.Vector.field(2, ti.f32, n)
    force = ti.Vector.field(2, ti.f32, n)
    x.from_numpy(np.random.default_rng(n).random((n, 2)).astype(np.float32))

    @ti.kernel
    def pairs():
        for i in x:
            f = ti.Vector([0.0, 0.0])
            for j in range(n):
                r = x[j] - x[i]
                f += r / (r.norm_sqr() + 1e-3)
            force[i] = f

    def run() -> np.ndarray:
        pairs()
        return force.to_numpy()

    return run


def _fixed(n: int) -> Callable[[], np.ndarray]:
    """A body that is written out: 16 terms of a sum for each of several cells."""
    a = ti.field(ti.f32, (3, n + 16))
    out = ti.field(ti.f32, (3, n))
    a.from_numpy(np.random.default_rng(n).random((3, n + 16)).astype(np.float32))

    @ti.kernel
    def smooth():
        for i, j in out:
            s = 0.0
            for k in ti.static(range(16)):
                s += a[i, j + k] * (1.0 / (k + 1))
            out[i, j] = s

    def run() -> np.ndarray:
        smooth()
        return out.to_numpy()

    return run


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("make", [_tensors, _row_sums, _pairs, _fixed])
def test_results_do_not_depend_on_how_work_is_divided(make: Callable[[int], Callable[[], np.ndarray]], n: int):
    found = []
    for threads in (1, 2, 3):
        ti.init(arch=ti.cpu, cpu_max_num_threads=threads, log_level="error")
        run = make(n)
        found += [_digest(run()) for _ in range(20)]
    assert len(set(found)) == 1
