"""Products of matrices of every size: small ones are loops, large ones tiles, or a library's."""

import aerogel as ti
import re

import numpy as np
import pytest
from aerogel.tensor import programs as p

T = None


@pytest.fixture(autouse=True, params=["tiles", "library"])
def products(request):
    global T
    ti.init(arch=ti.cpu, tensor_products=request.param)
    T = ti.tensor
    return request.param


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


def test_what_is_done_to_products_and_operands(products):
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-2, 3, (100, 100)).astype("f") for _ in range(2))
    s, t = T.asarray(a), T.asarray(b)
    found = T.maximum((s.T + 1) @ t[::-1] * 2 - s, 0).numpy()
    assert np.array_equal(found, np.maximum((a.T + 1) @ b[::-1] * 2 - a, 0))
    assert {"tiles": "in tiles", "library": "by a library"}[products] in T.explain(s @ t)
    assert "so small that plain loops are as fast" in T.explain(s[:4, :8] @ t[:8])
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


def whole(*shape):
    return np.random.default_rng(len(shape)).integers(-3, 4, shape).astype("f")


FORMS = {
    "broadcast": (lambda a, b: (a[:, None, :] * b[None]).sum(axis=-1), "ik,jk->ij", (90, 70), (80, 70)),
    "first axis": (lambda a, b: (a[:, :, None] * b[:, None, :]).sum(axis=0), "ki,kj->ij", (70, 90), (70, 80)),
    "einsum": (lambda a, b: T.einsum("kib,bkj->jbi", a, b), "kib,bkj->jbi", (70, 40, 3), (3, 70, 50)),
    "two inner": (lambda a, b: T.einsum("ikl,jlk->ij", a, b), "ikl,jlk->ij", (90, 10, 9), (80, 9, 10)),
    "two rows": (lambda a, b: T.einsum("ikm,kj->mji", a, b), "ikm,kj->mji", (9, 70, 10), (70, 80)),
    "accum": (lambda a, b: T.accum("b|i; i->o => b|o", a, b), "bi,oi->bo", (90, 70), (80, 70)),
    "tensordot": (lambda a, b: T.tensordot(a, b, axes=([0, 2], [1, 0])), "kil,lkj->ij", (10, 90, 9), (9, 10, 80)),
    "scaled": (lambda a, b: (2 * a[:, None, :] * (b[None] - 1)).sum(axis=-1), None, (90, 70), (80, 70)),
}


@pytest.mark.parametrize("form", FORMS)
def test_sums_of_products_are_products(form, products):
    function, spec, *shapes = FORMS[form]
    a, b = (whole(*s) for s in shapes)
    made = function(T.asarray(a), T.asarray(b))
    expected = np.einsum(spec, a, b) if spec else 2 * a @ (b - 1).T
    assert {"tiles": "in tiles", "library": "by a library"}[products] in T.explain(made)
    assert np.array_equal(made.numpy(), expected)


def test_what_is_computed_of_a_product_is_computed_with_it(products):
    a, b, c = whole(90, 70), whole(70, 85), whole(85)
    s, t, u = map(T.asarray, (a, b, c))
    made = T.maximum((s @ t).T * 2 + u[:, None], 0)
    text = T.explain(made)
    assert np.array_equal(made.numpy(), np.maximum((a @ b).T * 2 + c[:, None], 0))
    if products == "tiles":
        # The factors in the order of tiles, and the result.
        assert "in tiles, with the statements that read it" in text and "3 kernels" in text, text
    # A product that is asked for, or that is read elsewhere too, is there.
    product = s @ t
    both = product + 1, product.sum(axis=0)
    for found, expected in zip(both, (a @ b + 1, (a @ b).sum(axis=0))):
        assert np.array_equal(found.numpy(), expected)
    assert np.array_equal(product.numpy(), a @ b)


def test_what_is_computed_of_many_rows(products):
    """A library makes some rows at a time, which are all that lies in memory of them."""

    @p.program
    def layer():
        x, w, bias = p.input([-1, -1], ti.f32), p.input([-1, -1], ti.f32), p.input([-1], ti.f32)
        return T.maximum(x @ w + bias, 0)

    for shapes in ((1300, 20, 30), (512, 20, 30), (513, 9, 8), (3, 20, 30), (0, 20, 30), (600, 20, 0), (600, 0, 30)):
        n, k, m = shapes
        x, w, bias = whole(n, k), whole(k, m), whole(m)
        assert np.array_equal(layer(x, w, bias).numpy(), np.maximum(x @ w + bias, 0))
    assert ("in blocks of rows" in layer.explain()) == (products == "library")
    # Batches, in another order, of rows of two axes.
    a, b, c = whole(3, 40, 20, 16), whole(16, 3, 90), whole(90, 3)
    made = T.einsum("bijk,kbm->mbij", a, b) - T.asarray(c)[:, :, None, None] * 2
    expected = np.einsum("bijk,kbm->mbij", a, b) - c[:, :, None, None] * 2
    assert np.array_equal(made.numpy(), expected)


def test_who_makes_products_is_one_of_two():
    with pytest.raises(ValueError, match="tensor_products is 'tiles' or 'library', not 'hands'"):
        ti.init(arch=ti.cpu, tensor_products="hands")


def test_sums_of_few_digits_are_made_with_more():
    a = ti.tensor.ones((16, 3000), dtype=ti.f16)
    b = ti.tensor.permute_dims(a, (1, 0))
    expected = np.full((16, 16), 3000, np.float16)
    for product in (a @ b, ti.tensor.einsum("ij,jk->ik", a, b), ti.tensor.tensordot(a, b, axes=1)):
        assert np.array_equal(product.numpy(), expected)
    assert np.array_equal(ti.tensor.einsum("ij->i", a).numpy(), np.full(16, 3000, np.float16))


def test_long_sums_lose_no_digits():
    rng = np.random.default_rng(5)
    for n, m, k in [(16, 16, 100_000), (9, 40, 4096), (12, 8, 9001)]:
        a, b = (rng.random(s).astype(np.float32) for s in [(k, n), (k, m)])
        made = (T.asarray(a).T @ T.asarray(b)).numpy()
        exact = a.T.astype(float) @ b.astype(float)
        assert abs(made / exact - 1).max() < 2e-6


def test_windows_are_no_products_with_large_copies():
    x, w = (ti.tensor.ones(s).realize() for s in [(4, 3, 224, 224), (8, 3, 7, 7)])
    y = ti.tensor.accum("b,c,i+k,j+l; o,c,k,l => b,o,i,j", x, w, padding="same")
    kept = re.findall(r"f32\[([\d, ]+)\], kept", ti.tensor.explain(y))
    assert all(np.prod([int(n) for n in shape.split(",")]) < 2 * 4 * 8 * 230 * 240 for shape in kept)
    assert y.numpy()[0, 0, 112, 112] == 3 * 49
    y = ti.tensor.accum("b,c,i+k,j+l; o,c,k,l => b,o,i,j", x[:, :, :16, :16], w, padding="same")
    assert y.numpy()[0, 0, 8, 8] == 3 * 49


@pytest.mark.parametrize(
    "spec",
    [
        "ij,jk,kl->il", "ij,jk,kl->", "...i,ij,...j", "ij,ij,ij->ij", "ii,jk,ij->k", "ab,cd,ef->af", "ij,kl,jk,il->", "ij,ji,kk->k",
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["f4", "i4", "f2"])
def test_sums_of_several_products(spec, dtype):
    rng = np.random.default_rng(0)
    given = [rng.integers(-3, 4, (9, 9)).astype(dtype) for _ in range(spec.count(",") + 1)]
    found = ti.tensor.einsum(spec, *map(ti.tensor.asarray, given)).numpy()
    expected = np.einsum(spec, *(x.astype("f8") for x in given))
    assert np.array_equal(found, expected.astype(dtype))


def test_matrices_of_several_are_multiplied_two_at_a_time():
    a = ti.tensor.ones((200, 200))
    # All at once this would be 1.6e9 steps for each element of a row.
    chain = ti.tensor.einsum("ab,bc,cd,de,ef->af", a, a, a, a, a)
    assert np.array_equal(chain.numpy(), np.full((200, 200), 200.0**4, "f"))
