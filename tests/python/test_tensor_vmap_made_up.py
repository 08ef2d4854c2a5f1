"""Functions that are made up step by step, mapped by ``vmap``, beside a loop of Python's over NumPy."""

import os
import random

import numpy as np
import pytest
from test_tensor_vmap import loop

import aerogel as ti
from aerogel.tensor import programs as p

t = ti.tensor
N_PROGRAMS = int(os.environ.get("AEROGEL_N_PROGRAMS", "60"))
FIRST = int(os.environ.get("AEROGEL_FIRST_SEED", "0"))


@pytest.fixture(autouse=True)
def start():
    ti.init(arch=ti.cpu, log_level="error", fast_math=False)


class Maker:
    """A function that is made up step by step, the same for tensors and for NumPy's arrays."""

    STEPS = ("x + y", "x * 2 - y", "m.where(x > y, x, y)", "m.maximum(x, y)", "x % 3", "m.abs(x)", "m.floor(x / 2)")
    SHAPES = (
        "m.sum(x, axis=0)",
        "m.max(x, axis=0)",
        "x[0]",
        "x[::-1]",
        "x[1:]",
        "x.T",
        "m.flip(x, axis=0)",
        "m.roll(x, 1, axis=0)",
        "m.argmax(x, axis=0) * 1.0",
        "m.sort(x, axis=0)",
        "m.stack([x, x], axis=0)",
        "x @ x.T",
        "x[:, None] if x.ndim == 1 else x[0]",
        "m.take(x, at, axis=0)",
        "inner(x)",
        "stored(x)",
    )

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.steps = []
        for _ in range(self.random.randint(2, 7)):
            kind = self.random.choice([self.STEPS, self.SHAPES])
            self.steps.append((self.random.choice(kind), self.random.random(), self.random.random()))

    def __call__(self, m, *given):
        at = np.array([0, 0], np.int32) if m is np else t.asarray([0, 0])
        values = list(given)

        def inner(x):
            double = lambda row: row * 2 + row.sum()  # noqa: E731
            if m is np:
                return np.stack([np.asarray(double(row)) for row in x]) if len(x) else x
            return ti.vmap(double)(x)

        def stored(x):
            x = x.copy() if m is np else x * 1
            x[0] = x[-1] + 1
            return x

        for code, a, b in self.steps:
            x = values[int(a * len(values))]
            near = [y for y in values if y.shape in ((), x.shape)]
            y = near[int(b * len(near))]
            if code in self.SHAPES and (x.ndim == 0 or 0 in x.shape) or code == "x @ x.T" and x.ndim > 2:
                continue
            scope = {"m": m, "x": x, "y": y, "at": at, "inner": inner, "stored": stored}
            out = eval(code, scope)
            if m is np:
                out = np.asarray(out)
            values.append(out % 1000 if code == "x @ x.T" else out)
        return values[-1]


@pytest.mark.parametrize("seed", range(FIRST, FIRST + N_PROGRAMS))
def test_made_up_functions(seed):
    f = Maker(seed)
    rng = np.random.default_rng(seed)
    n, n_args = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    args, axes = [], []
    for k in range(n_args):
        shape = [int(e) for e in rng.integers(1, 5, rng.integers(0, 3))]
        is_mapped = k == 0 or rng.random() < 0.7
        axis = int(rng.integers(0, len(shape) + 1)) if is_mapped else None
        if is_mapped:
            shape.insert(axis, n)
        args.append(rng.integers(-4, 5, shape).astype(float))
        axes.append(axis)
    try:
        expected = loop(lambda *a: f(np, *a), args, axes)
    except (ValueError, IndexError):
        with pytest.raises((ValueError, IndexError)):
            ti.vmap(lambda *a: f(t, *a), in_axes=tuple(axes))(*args).numpy()
        return
    got = ti.vmap(lambda *a: f(t, *a), in_axes=tuple(axes))(*args)
    assert got.shape == expected.shape, f.steps
    assert np.array_equal(got.numpy(), expected), f.steps

    @p.program
    def whole():
        given = [p.input(list(x.shape), ti.f64) for x in args]
        return ti.vmap(lambda *a: f(t, *a), in_axes=tuple(axes))(*given)

    if not any("stored" in step[0] or "take" in step[0] for step in f.steps):
        assert np.array_equal(whole(*args).numpy(), expected), f.steps
