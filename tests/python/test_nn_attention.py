"""Attention by blocks of keys: beside the plain formula and PyTorch's, and the memory that it needs."""

import subprocess
import sys

import numpy as np
import pytest

import aerogel as ti
from aerogel.nn import functional as F

t = ti.tensor
ATTEND = F.scaled_dot_product_attention


@pytest.fixture(autouse=True)
def _start():
    ti.init(arch=ti.cpu, log_level="error")
    yield
    ti.reset()


def drawn(*shapes):
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape) for shape in shapes]


def masks():
    rows, row, column = drawn((40, 50), (3, 1, 50), (2, 1, 40, 1))
    booleans = np.random.default_rng(1).random((40, 50)) < 0.8
    return {
        "none": None,
        "causal": None,
        "booleans": booleans,
        "floats": rows,
        "a row of floats": row,
        "a column of floats": column,
    }


def attended(name, mask, block_size):
    """A function of the operands, and of a mask of floats."""

    def call(q, k, v, *rest):
        own = rest[0] if rest else mask
        return ATTEND(q, k, v, attn_mask=own, is_causal=name == "causal", block_size=block_size)

    return call


def slopes(call, weights, operands):
    return ti.grad(lambda *a: (call(*a) * weights).sum(), tuple(range(len(operands))))(*operands)


@pytest.mark.parametrize(("name", "size"), [*((name, 16) for name in masks()), ("causal", 25), ("none", 49)])
def test_blocks_and_the_plain_formula(name, size):
    """The last block has some of its keys, all, or one of them."""
    mask = masks()[name]
    q, k, v, weights = map(t.asarray, drawn((2, 3, 40, 6), (2, 3, 50, 6), (2, 1, 50, 7), (2, 3, 40, 7)))
    operands = [q, k, v] + ([t.asarray(mask)] if mask is not None and mask.dtype != bool else [])
    plain, blocks = (attended(name, mask, n) for n in (50, size))
    np.testing.assert_allclose(blocks(*operands).numpy(), plain(*operands).numpy(), rtol=1e-12, atol=1e-12)
    wanted = slopes(plain, weights, operands)
    in_program = ti.program(lambda *operands: slopes(blocks, weights, operands))(*operands)
    for made in (slopes(blocks, weights, operands), in_program):
        for one, other in zip(made, wanted, strict=True):
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", masks())
def test_blocks_and_torch(name):
    torch = pytest.importorskip("torch")
    mask = masks()[name]
    q, k, v, weights = drawn((2, 3, 40, 6), (2, 3, 50, 6), (2, 3, 50, 7), (2, 3, 40, 7))
    given = [q, k, v] + ([mask] if mask is not None and mask.dtype != bool else [])
    theirs = [torch.tensor(x, requires_grad=True) for x in given]
    own = theirs[3] if len(theirs) > 3 else None if mask is None else torch.tensor(mask)
    wanted = torch.nn.functional.scaled_dot_product_attention(*theirs[:3], attn_mask=own, is_causal=name == "causal")
    wanted.backward(torch.tensor(weights))
    operands, call = [t.asarray(x) for x in given], attended(name, mask, 16)
    np.testing.assert_allclose(call(*operands).numpy(), wanted.detach().numpy(), rtol=1e-12, atol=1e-12)
    for one, other in zip(slopes(call, t.asarray(weights), operands), theirs, strict=True):
        np.testing.assert_allclose(one.numpy(), other.grad.numpy(), rtol=1e-11, atol=1e-12)


def test_rows_that_see_no_key():
    """They are NaN as in the plain formula; rows that see keys of a later block only are not."""
    q, k, v = map(t.asarray, drawn((3, 4), (12, 4), (12, 2)))
    mask = np.zeros((3, 12), bool)
    mask[1, 9], mask[2, 0] = True, True
    out = ATTEND(q, k, v, attn_mask=mask, block_size=4).numpy()
    assert np.isnan(out[0]).all()
    np.testing.assert_allclose(out[1:], v.numpy()[[9, 0]], rtol=1e-12)


def test_rows_that_see_no_key_and_gradients():
    """Only their own gradients are NaN, as with the plain formula, and a block of hidden keys changes nothing."""
    q, k, v, along = map(t.asarray, drawn((2, 3, 4), (2, 12, 4), (2, 12, 2), (2, 3, 4)))
    mask = np.random.default_rng(1).random((3, 12)) < 0.7
    mask[0], mask[1, :4] = False, False

    def of(size):
        loss = lambda q, k, v: (ATTEND(q, k, v, attn_mask=mask, block_size=size)[:, 1:] ** 3).sum()  # noqa: E731
        first = ti.grad(loss, (0, 1, 2))(q, k, v)
        return *first, *ti.grad(lambda q, k: (ti.grad(loss)(q, k, v) * along).sum(), (0, 1))(q, k)

    blocks, plain = ([x.detach().numpy() for x in of(size)] for size in (4, 12))
    for one, other in zip(blocks, plain, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)
    assert np.isfinite(blocks[0]).all() and np.isfinite(blocks[1]).all()


def test_many_keys_are_in_blocks_by_themselves():
    q, k, v = (t.asarray(x.astype(np.float32)) for x in drawn((5, 8), (1500, 8), (1500, 3)))
    own, plain = (ATTEND(q, k, v, block_size=n).numpy() for n in (None, 1500))
    np.testing.assert_allclose(own, plain, rtol=1e-5, atol=1e-6)
    assert (own != plain).any()
    half = ATTEND(q.astype(ti.f16), k.astype(ti.f16), v.astype(ti.f16))
    assert half.dtype is ti.f16 and abs(half.astype(ti.f32).numpy() - plain).max() < 5e-3


def test_second_derivatives_and_batches():
    q, k, v, along = map(t.asarray, drawn((7, 3), (9, 3), (9, 2), (7, 3)))

    def of(size):
        loss = lambda q, k: (ATTEND(q, k, v, block_size=size) ** 3).sum()  # noqa: E731
        return ti.grad(lambda q, k: (ti.grad(loss)(q, k) * along).sum(), (0, 1))(q, k)

    for one, other in zip(of(4), of(9)):
        np.testing.assert_allclose(one.detach().numpy(), other.numpy(), rtol=1e-11, atol=1e-12)
    many = [t.asarray(x) for x in drawn((5, 7, 3), (5, 9, 3), (5, 9, 2))]
    both = [ti.vmap(lambda *a, n=n: ATTEND(*a, is_causal=True, block_size=n))(*many).numpy() for n in (4, 9)]
    np.testing.assert_allclose(*both, rtol=1e-12, atol=1e-12)


def test_dtypes_of_blocks_and_of_the_plain_formula():
    q, k, v, mask = drawn((3, 4), (12, 4), (12, 2), (3, 12))
    f16, f32, f64 = ti.f16, ti.f32, ti.f64
    for dtypes in [(f32, f32, f32, f64), (f32, f64, f32, f32), (f32, f32, f64, f16), (f16, f32, f16, f16)]:
        operands = [t.asarray(x).astype(dtype) for x, dtype in zip((q, k, v, mask), dtypes)]
        wanted = f64 if f64 in dtypes else f32
        plain, blocks = (ATTEND(*operands, block_size=n) for n in (12, 5))
        assert plain.dtype is wanted and blocks.dtype is wanted, dtypes
        np.testing.assert_allclose(blocks.numpy(), plain.numpy(), rtol=1e-5 if wanted is f32 else 1e-12)
        gradients = ti.grad(lambda *a: ATTEND(*a, block_size=5).sum(), (0, 1, 2, 3))(*operands)
        assert tuple(g.dtype for g in gradients) == dtypes


@pytest.mark.parametrize("size", [2, 12])
@pytest.mark.parametrize("shape", [(3, 20), (3, 5), (2, 12), (20,), (2, 3, 11)])
def test_masks_of_other_shapes(shape, size):
    q, k, v = map(t.asarray, drawn((3, 4), (12, 4), (12, 2)))
    for mask in (np.ones(shape, bool), np.ones(shape)):
        with pytest.raises(ValueError, match="there are 3 queries and 12 keys, and the shape of the mask is"):
            ATTEND(q, k, v, mask, block_size=size)


def test_what_is_refused():
    q, k, v = map(t.asarray, drawn((3, 4), (12, 4), (12, 2)))
    with pytest.raises(ValueError, match="a block has at least one key, not 0"):
        ATTEND(q, k, v, block_size=0)
    with pytest.raises(ValueError, match="dropout needs all weights at once"):
        ATTEND(q, k, v, dropout_p=0.5, block_size=4)


MEMORY = """
import resource
import numpy as np
import aerogel as ti
from aerogel.nn import functional as F

ti.init(arch=ti.cpu, log_level="error")
attend = lambda *a: F.scaled_dot_product_attention(*a, is_causal=True)
slopes = lambda *a: [x.numpy() for x in ti.grad(lambda *a: attend(*a).sum(), (0, 1, 2))(*a)]
operands = [ti.tensor.asarray(np.random.default_rng(k).standard_normal((16384, 32)).astype(np.float32)) for k in range(3)]
few = [x[:1280] for x in operands]
attend(*few).numpy(), slopes(*few)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
attend(*operands).numpy(), slopes(*operands)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kilobytes on Linux")
def test_memory():
    """The scores of 16,384 queries and as many keys are a gigabyte; result and gradient need a quarter of that."""
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 256
