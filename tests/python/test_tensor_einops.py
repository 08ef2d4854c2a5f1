"""Tensors in einops, which finds them by itself."""

import subprocess
import sys

import numpy as np
import pytest

import aerogel as ti

einops = pytest.importorskip("einops")
T = ti.tensor


@pytest.fixture(autouse=True)
def started():
    ti.init(arch=ti.cpu)


X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

CALLS = [
    lambda x: einops.rearrange(x, "a b c -> c (a b)"),
    lambda x: einops.rearrange(x, "a b (c d) -> d a c b 1", d=2),
    lambda x: einops.rearrange([x, x + 1], "n a b c -> a n (b c)"),
    lambda x: einops.reduce(x, "a b c -> a c", "mean"),
    lambda x: einops.reduce(x, "a (b k) c -> a b", "max", k=3),
    lambda x: einops.reduce(x, "a b c ->", "prod"),
    lambda x: einops.reduce(x > 3, "a b c -> b", "any"),
    lambda x: einops.repeat(x, "a b c -> a (b k) c n", k=2, n=3),
    lambda x: einops.einsum(x, x, "a b c, a d c -> b d"),
    lambda x: einops.pack([x, x[..., 0]], "a b *")[0],
    lambda x: einops.rearrange(x + 1j * x, "a b c -> (c b) a"),
    lambda x: einops.reduce(x + 1j * x, "a b c -> b", "sum"),
]


@pytest.mark.parametrize("call", CALLS)
def test_as_in_numpy(call):
    found, expected = call(T.asarray(X)), call(X)
    assert isinstance(found, (T.Tensor, T.ComplexTensor))
    np.testing.assert_allclose(found.numpy(), expected)


def test_what_is_unknown_is_an_error_of_einops():
    with pytest.raises(einops.EinopsError):
        einops.rearrange(T.asarray(X), "a b -> b a")
    assert einops.parse_shape(T.asarray(X), "a _ c") == {"a": 2, "c": 4}


@pytest.mark.parametrize("first", ["aerogel.tensor", "einops"])
def test_in_either_order_of_imports(first):
    second = {"aerogel.tensor": "einops", "einops": "aerogel.tensor"}[first]
    program = f"""
import {first}
import {second}
from aerogel import xp
print(einops.rearrange(xp.ones((2, 3)), "a b -> b a").shape)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert done.stdout == "(3, 2)\n", done.stderr
