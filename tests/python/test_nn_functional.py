"""`aerogel.nn.functional`: values against formulas and JAX, at the edges, for every dtype and in programs."""

import math

import numpy as np
import pytest

import aerogel as ti
from aerogel import tensor as t
from aerogel.nn import functional as F

NAN, INF = math.nan, math.inf


@pytest.fixture(autouse=True)
def _start():
    ti.init(arch=ti.cpu, log_level="error")


X = np.concatenate([np.linspace(-30, 30, 241), [0.0, -0.0, 1, -1, 3, -3, 6, -6]])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


ERF = np.vectorize(math.erf)
FORMULAS = {
    "celu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "gelu": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "hard_sigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "hard_silu": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    "identity": lambda x: x,
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "log_sigmoid": lambda x: -np.logaddexp(0, -x),
    "mish": lambda x: x * np.tanh(np.logaddexp(0, x)),
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0))),
    "sigmoid": sigmoid,
    "silu": lambda x: x * sigmoid(x),
    "soft_sign": lambda x: x / (1 + np.abs(x)),
    "softplus": lambda x: np.logaddexp(0, x),
    "sparse_plus": lambda x: np.where(x >= 1, x, np.where(x <= -1, 0, (x + 1) ** 2 / 4)),
    "sparse_sigmoid": lambda x: np.clip((x + 1) / 2, 0, 1),
    "squareplus": lambda x: (x + np.sqrt(x * x + 4)) / 2,
    "tanh": np.tanh,
}


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas(name):
    f, wanted = getattr(F, name), FORMULAS[name](X)
    for made in (f(t.asarray(X)), ti.program(f)(t.asarray(X))):
        np.testing.assert_allclose(made.numpy(), wanted, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(f(t.asarray(X.astype("f4"))).numpy(), wanted, rtol=1e-5, atol=1e-6)
    half = f(t.asarray(X.astype("f2")))
    assert half.dtype is ti.f16 and math.isnan(f(NAN).item())
    np.testing.assert_allclose(half.numpy(), wanted, rtol=3e-3, atol=2e-3)
    assert f(t.asarray([0, 2])).tolist() == pytest.approx(FORMULAS[name](np.array([0.0, 2.0])), rel=1e-6)
    assert f(t.zeros((0, 2))).shape == (0, 2)


def test_values():
    assert F.swish is F.silu and F.hard_swish is F.hard_silu
    np.testing.assert_allclose(
        F.gelu(t.asarray(X), approximate=False).numpy(), 0.5 * X * (1 + ERF(X / 2**0.5)), atol=1e-15
    )
    np.testing.assert_allclose(F.gelu(X, approximate="none").numpy(), F.gelu(X, approximate=False).numpy())
    with pytest.raises(ValueError, match="'none' or 'tanh', not 'fast'"):
        F.gelu(X, approximate="fast")
    x = np.array([-2.0, 0.5])
    np.testing.assert_allclose(F.elu(x, 2.0).numpy(), [2 * math.expm1(-2), 0.5])
    np.testing.assert_allclose(F.celu(x, 2.0).numpy(), [2 * math.expm1(-1), 0.5])
    np.testing.assert_allclose(F.leaky_relu(x, 0.5).numpy(), [-1, 0.5])
    np.testing.assert_allclose(F.squareplus(x, 0.0).numpy(), [0, 0.5])
    np.testing.assert_allclose(
        F.log1mexp(np.array([1e-10, 1.0, 50.0])).numpy(), [math.log(1e-10), math.log(-math.expm1(-1)), -math.exp(-50)]
    )
    assert F.log1mexp(0.0).item() == -INF and F.relu6([-1, 3, 9]).dtype is ti.i32


def test_along_axes():
    x = np.random.default_rng(0).normal(size=(4, 6, 8))
    made = t.asarray(x)
    for axis in (-1, 0, 1):
        a, b = np.split(x, 2, axis)
        np.testing.assert_allclose(F.glu(made, axis).numpy(), a * sigmoid(b), rtol=1e-13)
        np.testing.assert_allclose(ti.program(lambda x: F.glu(x, axis))(made).numpy(), a * sigmoid(b), rtol=1e-13)
    for axis in (-1, (0, 2)):
        e = np.exp(x)
        np.testing.assert_allclose(F.softmax(made, axis).numpy(), e / e.sum(axis, keepdims=True), rtol=1e-12)
        np.testing.assert_allclose(
            F.log_softmax(made, axis).numpy(), x - np.log(e.sum(axis, keepdims=True)), rtol=1e-12
        )
        np.testing.assert_allclose(F.logmeanexp(made, axis).numpy(), np.log(e.mean(axis)), rtol=1e-12)
        wanted = (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + 1e-5)
        np.testing.assert_allclose(F.standardize(made, axis).numpy(), wanted, rtol=1e-11, atol=1e-13)
    with pytest.raises(ValueError, match="`glu` halves axis 0, which has 3 elements"):
        F.glu([1.0, 2.0, 3.0])
    with pytest.raises(IndexError, match="`glu`: there is no axis 1"):
        F.glu([1.0, 2.0], 1)


def test_one_hot():
    i = np.array([[0, 3, -1], [2, 9, 1]])
    wanted = (i[..., None] == np.arange(4)).astype("f4")
    for axis in (-1, 0, 1, 2):
        for dtype in ("i1", "i4", "i8", "u1"):
            index = i.astype(dtype)
            want = np.moveaxis((index[..., None] == np.arange(4)).astype("f4"), -1, axis)
            for made in (
                F.one_hot(t.asarray(index), 4, axis=axis),
                ti.program(lambda i: F.one_hot(i, 4, axis=axis))(t.asarray(index)),
            ):
                assert made.dtype is ti.f32
                assert np.array_equal(made.numpy(), want)
    assert F.one_hot(1, 3, dtype=ti.u1).tolist() == [False, True, False] and F.one_hot([0], 0).shape == (1, 0)
    assert F.one_hot(t.asarray([200], ti.u8), 300).numpy().argmax() == 200
    made = ti.program(lambda i, x: F.one_hot(i, x.shape[0]))(t.asarray([1, 2]), t.zeros(3))
    assert made.tolist() == [[0, 1, 0], [0, 0, 1]]
    with pytest.raises(TypeError, match="`one_hot` takes indices, which are integers, not `f32`"):
        F.one_hot([0.5], 3)
    with pytest.raises(ValueError, match="`num_classes` is -1, below zero"):
        F.one_hot([0], -1)


def test_like_jax():
    jax = pytest.importorskip("jax")
    x = np.linspace(-20, 20, 101, dtype=np.float32)
    missing = set()
    for name in dir(jax.nn):
        if name in FORMULAS:
            np.testing.assert_allclose(getattr(F, name)(x).numpy(), getattr(jax.nn, name)(x), rtol=2e-6, atol=1e-6)
        elif not hasattr(F, name) and not name.startswith("_"):
            missing.add(name)
    assert missing <= {
        "dot_product_attention",
        "get_scaled_dot_general_config",
        "initializers",
        "scaled_dot_general",
        "scaled_matmul",
    }


def test_batch_norm_takes_the_arguments_of_pytorch():
    x = np.random.default_rng(0).uniform(-1, 1, (5, 3, 2))
    centre, spread = x.mean((0, 2)), x.var((0, 2))
    means, variances = ti.tensor.asarray(np.zeros(3)), ti.tensor.asarray(np.ones(3))
    made = ti.nn.functional.batch_norm(x, means, variances, None, None, True, 0.25)
    shown = (x - centre[:, None]) / np.sqrt(spread + 1e-5)[:, None]
    np.testing.assert_allclose(made.numpy(), shown, rtol=1e-6)
    np.testing.assert_allclose(means.numpy(), 0.25 * centre, rtol=1e-6)
    np.testing.assert_allclose(variances.numpy(), 0.75 + 0.25 * x.var((0, 2), ddof=1), rtol=1e-6)
    again = ti.nn.functional.batch_norm(x, means, variances, None, None, False)
    kept = (x - means.numpy()[:, None]) / np.sqrt(variances.numpy() + 1e-5)[:, None]
    np.testing.assert_allclose(again.numpy(), kept, rtol=1e-6)
    np.testing.assert_allclose(ti.nn.functional.batch_norm(x, training=True).numpy(), shown, rtol=1e-6)
    with pytest.raises(ValueError, match="needs `running_mean` and `running_var` outside of training"):
        ti.nn.functional.batch_norm(x)
    with pytest.raises(TypeError, match="they must be tensors"):
        ti.nn.functional.batch_norm(x, np.zeros(3), np.ones(3), training=True)
    with pytest.raises(ValueError, match="more than one element for each channel"):
        ti.nn.functional.batch_norm(np.zeros((1, 3)), training=True)


def test_arguments_that_other_packages_have_in_another_order_are_named():
    """By position, each would mean something else than in NumPy or PyTorch, without a word."""
    x = t.asarray([[3.0, 1.0, 2.0]])
    for call in (
        lambda: t.argsort(x, -1, "stable"),
        lambda: t.sort(x, -1, "stable"),
        lambda: ti.xp.nan_to_num(x, True, 5.0),
        lambda: ti.xp.cross(x, x, -1),
        lambda: t.all(x, 0, None),
        lambda: F.instance_norm(x, None, None),
        lambda: ti.nn.MaxPool2d(3, 1, 0, 1, True),
        lambda: ti.nn.InstanceNorm1d(3, 1e-5, 0.1),
        lambda: ti.nn.MultiheadAttention(4, 2, 0.0, True, True),
    ):
        with pytest.raises(TypeError, match="positional argument"):
            call()
    np.testing.assert_array_equal(ti.xp.identity(2, np.float64).numpy(), np.eye(2))
