"""Gradients of each function of tensors: against central differences and JAX, of all types and layouts, in both modes and twice."""

import json
from pathlib import Path

import numpy as np
import pytest
from tensor_gradients.cases import CASES
from tensor_gradients.words import one_number

import aerogel as ti
from aerogel import tensor as t

#: Mostly linear: their second derivatives are those of a square.
LINEAR = ("x[", "fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "accum", "einsum", "pad", "roll", "concat", "stack")
STORED = json.loads((Path(__file__).parent / "tensor_gradients" / "jax.json").read_text())


@pytest.fixture(autouse=True, scope="module")
def _start():
    ti.init(arch="interp", log_level="error")
    yield
    ti.reset()


def cases(but=()):
    all = [case for name, case in CASES.items() if not but or not name.startswith(but)]
    return pytest.mark.parametrize("case", all, ids=lambda case: case.name)


#: For tests of many functions each.
N_PARTS = 12
parts = pytest.mark.parametrize("part", range(N_PARTS))


def own(part, each=1):
    return list(CASES.values())[part :: each * N_PARTS]


def gradients(f, arrays):
    return [g.numpy() for g in ti.grad(f, tuple(range(len(arrays))))(*arrays)]


def directions(arrays, seed=1):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=a.shape) for a in arrays]


def along(parts, others):
    return sum(float((a * b).sum()) for a, b in zip(parts, others))


def slope(f, arrays, direction, h=1e-6):
    ends = [float(f(*[t.asarray(a + s * d) for a, d in zip(arrays, direction)])) for s in (h, -h)]
    return (ends[0] - ends[1]) / (2 * h)


@cases()
def test_differences_and_forward_mode(case):
    f, arrays = one_number(case.function), case.arrays()
    direction = directions(arrays)
    made = gradients(f, arrays)
    assert [g.shape for g in made] == [a.shape for a in arrays]
    assert np.isclose(along(made, direction), slope(f, arrays, direction), rtol=1e-6, atol=1e-6)
    _, change = ti.jvp(f, tuple(arrays), tuple(direction))
    assert np.isclose(float(change), along(made, direction), rtol=1e-12, atol=1e-12)
    if case.name in STORED:
        assert np.isclose(along(made, direction), STORED[case.name], rtol=1e-9, atol=1e-9)


@cases(but=LINEAR)
def test_second_derivatives(case):
    f, arrays = one_number(case.function), case.arrays()
    of, direction = tuple(range(len(arrays))), tuple(directions(arrays))
    made = ti.hvp(f, tuple(arrays), direction)
    g, h = ti.grad(f, of), 1e-6
    ends = [g(*[t.asarray(a + s * d) for a, d in zip(arrays, direction)]) for s in (h, -h)]
    for got, up, down in zip(made, *ends):
        want = (up.numpy() - down.numpy()) / (2 * h)
        assert np.allclose(got.numpy(), want, rtol=2e-4, atol=2e-4)


#: What there is not for halves, or is too large or too near to others for them.
NO_HALVES = ("fft", "ifft", "irfft", "hfft", "complex svdvals", "pow -2", "special logit, tails")


@parts
def test_smaller_floats(part):
    for k, case in enumerate(own(part, each=2)):
        dtype, tolerance = ("float32", 2e-4) if k % 2 or case.name.startswith(NO_HALVES) else ("float16", 3e-2)
        arrays = case.arrays(dtype)
        f = one_number(case.function)
        made = gradients(f, arrays)
        wanted = gradients(f, [a.astype("float64") for a in arrays])
        for got, want in zip(made, wanted):
            assert str(got.dtype) == dtype, case.name
            largest = np.abs(want).max(initial=0)
            close = np.allclose(got.astype("float64"), want, rtol=tolerance, atol=tolerance * (1 + largest))
            assert close, (case.name, got, want)


LAYOUTS = {
    "transposed": lambda x: x.T.permute(*reversed(range(x.ndim))),
    "sliced": lambda x: t.pad(x, [(1, 2)] * x.ndim)[tuple(slice(1, -2) for _ in x.shape)],
    "turned": lambda x: x[(slice(None, None, -1),) * x.ndim][(slice(None, None, -1),) * x.ndim],
    "broadcast": lambda x: t.broadcast_to(x, (2, *x.shape))[1],
    "interleaved": lambda x: t.stack([x, x * 3], axis=-1).reshape(-1)[::2].reshape(x.shape),
    "gathered": lambda x: x.reshape(-1)[np.arange(x.size, dtype=np.int32)].reshape(x.shape),
    "stored": lambda x: stored(x),
    "evaluated": lambda x: (x * 1.0).realize() * 1.0,
}


def stored(x):
    y = t.zeros_like(x)
    y[...] = x
    return y


@parts
def test_layouts(part):
    for case in own(part, each=2):
        f, arrays = one_number(case.function), case.arrays()
        names = [name for name in LAYOUTS if name != "transposed" or all(a.ndim > 1 for a in arrays)]
        name = names[sum(case.name.encode()) % len(names)]
        made = gradients(lambda *x: f(*map(LAYOUTS[name], x)), arrays)
        for got, want in zip(made, gradients(f, arrays)):
            assert np.allclose(got, want, rtol=1e-11, atol=1e-11), (case.name, name)


@parts
def test_compiled_as_interpreted(part):
    """Gradients of many functions in one plan, as their adjoints are fused with each other there."""

    def all_of():
        made = [
            g
            for c in own(part, each=8)
            for g in ti.grad(one_number(c.function), tuple(range(len(c.arrays()))))(*c.arrays())
        ]
        t.realize(*made)
        return [g.numpy() for g in made]

    wanted = all_of()
    try:
        ti.init(arch="cpu", log_level="error")
        for got, want in zip(all_of(), wanted):
            assert np.allclose(got, want, rtol=1e-9, atol=1e-9)
    finally:
        ti.init(arch="interp", log_level="error")
