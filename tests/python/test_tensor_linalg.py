"""Linear algebra of tensors, by what holds of its results and beside NumPy."""

import aerogel as ti
import numpy as np
import pytest
from aerogel import xp
from aerogel.tensor import programs as p

T = None


@pytest.fixture(autouse=True)
def started():
    global T
    ti.init(arch=ti.cpu)
    T = ti.tensor


SHAPES = [(1, 1), (2, 2), (5, 5), (3, 4, 4), (2, 1, 3, 3), (0, 3, 3), (0, 0), (2, 0, 0)]
WIDE = [(2, 5), (5, 2), (3, 4, 2), (2, 2, 4), (0, 3), (3, 0), (1, 4)]


def matrices(shape, dtype=np.float64, seed=0):
    a = np.random.default_rng(seed).normal(size=shape).astype(dtype)
    if shape[-1] == shape[-2]:
        a = a + 3 * np.eye(shape[-1], dtype=dtype)
    return a


def close(found, expected, tol=1e-10):
    found = found.numpy() if hasattr(found, "numpy") else found
    assert found.shape == np.shape(expected)
    assert np.allclose(found, expected, rtol=tol, atol=tol)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_square_matrices(shape, dtype):
    tol = 2e-3 if dtype is np.float32 else 1e-9
    a = matrices(shape, dtype)
    t = T.asarray(a)
    sym = a + np.swapaxes(a, -1, -2)
    pos = a @ np.swapaxes(a, -1, -2) + np.eye(shape[-1], dtype=dtype)
    L = T.linalg
    assert L.inv(t).dtype is T.asarray(a).dtype
    close(L.inv(t), np.linalg.inv(a), tol)
    close(L.det(t), np.linalg.det(a), tol)
    for found, expected in zip(L.slogdet(t), np.linalg.slogdet(a)):
        close(found, expected, tol)
    close(L.cholesky(T.asarray(pos)), np.linalg.cholesky(pos), tol)
    close(L.cholesky(T.asarray(pos), upper=True), np.swapaxes(np.linalg.cholesky(pos), -1, -2), tol)
    close(L.eigvalsh(T.asarray(sym)), np.linalg.eigvalsh(sym), tol)
    values, vectors = L.eigh(T.asarray(sym))
    close(vectors @ (values.unsqueeze(-1) * vectors.mT), sym, tol)
    lower, upper, perm = L.lu(t)
    close(lower @ upper, np.take_along_axis(a, perm.numpy()[..., None], -2), tol)
    b = matrices((shape[-1], 2), dtype, seed=1)
    close(L.solve(t, T.asarray(b)), np.linalg.solve(a, b), tol)
    close(L.solve(t, T.asarray(b[:, 0])), np.linalg.solve(a, b[:, :1])[..., 0], tol)
    values, vectors = L.eig(t)
    close(t @ vectors, (vectors * values.unsqueeze(-2)).numpy(), tol)
    found = np.sort_complex(L.eigvals(t).numpy().astype(complex))
    assert np.allclose(found, np.sort_complex(np.linalg.eigvals(a).astype(complex)), atol=tol * 10)
    for n in (-2, 0, 1, 5):
        close(L.matrix_power(t, n), np.linalg.matrix_power(a, n), tol * 100)
    if a.size:
        close(L.cond(t), np.linalg.cond(a), tol)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
def test_the_condition_of_singular_matrices(dtype):
    """Infinite for zeros, as in NumPy."""
    regular = np.array([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 4.0]])
    x = T.asarray(np.stack([np.zeros((3, 3)), regular]).astype(dtype))
    for order in (2, -2):
        found = T.linalg.cond(x, p=order).numpy()
        assert found[0] == np.linalg.cond(np.zeros((3, 3)), order) == np.inf
        assert np.isclose(found[1], np.linalg.cond(regular, order))
    for order in (1, "fro"):
        with pytest.raises(ValueError, match="singular"):
            T.linalg.cond(x, p=order).numpy()
    with pytest.raises(ValueError, match="no elements"):
        T.linalg.cond(T.zeros((0, 0))).numpy()


@pytest.mark.parametrize("shape", SHAPES + WIDE)
def test_matrices_of_any_extents(shape):
    a = matrices(shape)
    t, L = T.asarray(a), T.linalg
    n, m = shape[-2:]
    for mode in ("reduced", "complete"):
        q, r = L.qr(t, mode=mode)
        k = n if mode == "complete" else min(n, m)
        assert q.shape == (*shape[:-2], n, k) and r.shape == (*shape[:-2], k, m)
        close(q @ r, a)
        close(q.mT @ q, np.broadcast_to(np.eye(k), (*shape[:-2], k, k)))
        assert np.array_equal(np.triu(r.numpy()), r.numpy())
    close(L.svdvals(t), np.linalg.svd(a, compute_uv=False))
    for full in (True, False):
        found, expected = L.svd(t, full_matrices=full), np.linalg.svd(a, full_matrices=full)
        assert [f.shape for f in found] == [e.shape for e in expected]
        k = min(n, m)
        u, s, vh = found
        close((u[..., :k] * s.unsqueeze(-2)) @ vh[..., :k, :], a)
        close(u.mT @ u, np.broadcast_to(np.eye(u.shape[-1]), (*shape[:-2], u.shape[-1], u.shape[-1])))
    close(L.pinv(t), np.linalg.pinv(a))
    if a.size:
        assert np.array_equal(L.matrix_rank(t).numpy(), np.linalg.matrix_rank(a))
        for order in ("fro", "nuc", 2, -2, 1, -1, np.inf, -np.inf):
            close(L.matrix_norm(t, ord=order), np.linalg.norm(a, ord=order, axis=(-2, -1)))
            close(L.matrix_norm(t, ord=order, keepdims=True), np.linalg.norm(a, order, (-2, -1), keepdims=True))


def test_ranks_of_what_is_not_full():
    a = np.outer([1.0, 2, 3], [4.0, 5, 6])
    assert T.linalg.matrix_rank(T.asarray(a)).item() == 1
    close(T.linalg.pinv(T.asarray(a)), np.linalg.pinv(a))
    assert T.linalg.det(T.asarray([[1.0, 2.0], [2.0, 4.0]])).item() == 0


@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (5, 5), (3, 7, 2), (1, 1)])
@pytest.mark.parametrize("is_complex", [False, True])
def test_least_squares(shape, is_complex):
    a = matrices(shape) + (1j * matrices(shape)[..., ::-1] if is_complex else 0)
    b = matrices((shape[-2], 3))
    for right in (b, b[:, 0]):
        found = T.linalg.lstsq(T.asarray(a), T.asarray(right))
        each = [np.linalg.lstsq(one, right, rcond=None) for one in a.reshape(-1, *shape[-2:])]
        batch = shape[:-2]
        close(found.x, np.stack([e[0] for e in each]).reshape(*batch, shape[-1], *right.shape[1:]))
        close(found.s, np.stack([e[3] for e in each]).reshape(*batch, -1))
        assert np.array_equal(found.rank.numpy(), np.array([e[2] for e in each]).reshape(batch))
        made = np.einsum("...nm,...mk->...nk", a, found.x.numpy().reshape(*batch, shape[-1], -1))
        left = (abs(made - right.reshape(shape[-2], -1)) ** 2).sum(axis=-2)
        close(found.residuals, left.reshape((*batch, *right.shape[1:])))


def test_least_squares_of_what_is_not_full():
    a, b = np.outer([1.0, 2, 3], [4.0, 5, 6]), np.array([1.0, 0, 2])
    x, _, rank, _ = T.linalg.lstsq(T.asarray(a), T.asarray(b))
    close(x, np.linalg.lstsq(a, b, rcond=None)[0])
    assert rank.item() == 1
    with pytest.raises(ValueError, match=r"`lstsq`: matrices of shape \(3, 3\) for right sides of shape \(2,\)"):
        T.linalg.lstsq(T.asarray(a), T.asarray(b[:2]))


def test_messages_name_what_was_called():
    for name in ("svd", "qr"):
        with pytest.raises(ValueError, match=f"`{name}` takes matrices"):
            getattr(T.linalg, name)(T.asarray([1.0, 2.0]), **({"mode": "complete"} if name == "qr" else {}))


def test_other_types_of_numbers():
    whole = T.asarray([[2, 1], [1, 3]])
    assert T.linalg.inv(whole).dtype is ti.f32
    assert T.linalg.inv(whole.astype(ti.f16)).dtype is ti.f32
    a = T.asarray(matrices((2, 2)))
    assert T.linalg.solve(a, whole).dtype is ti.f64


def test_strides_and_stretched_right_sides():
    a, b = matrices((4, 3, 3)), matrices((3, 2), seed=3)
    close(T.linalg.solve(T.asarray(a).mT[::2], T.asarray(b)), np.linalg.solve(np.swapaxes(a, -1, -2)[::2], b))


def test_in_programs_of_any_extents():
    @p.program
    def least_squares():
        a = p.input([-1, -1], ti.f64)
        b = p.input([a.shape[0], 1], ti.f64)
        q, r = T.linalg.qr(a)
        return T.linalg.solve(a.T @ a, a.T @ b), q @ r, T.linalg.eigvals(a.T @ a)

    for n, m in ((5, 2), (7, 3)):
        a, b = matrices((n, m)), matrices((n, 1), seed=2)
        x, product, values = least_squares(a, b)
        close(x, np.linalg.lstsq(a, b, rcond=None)[0])
        close(product, a)
        assert np.allclose(np.sort(values.real.numpy()), np.linalg.eigvalsh(a.T @ a))


def test_threads_of_large_matrices():
    a = matrices((300, 300))
    close(T.linalg.solve(T.asarray(a), T.asarray(a)), np.eye(300), 1e-7)


MISTAKES = {
    "vector": (lambda L: L.inv([1.0]), ValueError, r"`inv` takes matrices.*\(1,\)"),
    "square": (lambda L: L.det(T.zeros((2, 3))), ValueError, r"`det` takes square matrices: the shape is \(2, 3\)"),
    "sides": (lambda L: L.solve(T.zeros((2, 2)), T.zeros((3, 1))), ValueError, r"\(2, 2\).*\(3, 1\)"),
    "singular": (lambda L: L.inv([[1.0, 2.0], [2.0, 4.0]]).numpy(), ValueError, "`inv`: the matrix is singular"),
    "many": (
        lambda L: L.solve(T.stack([T.eye(2), T.zeros((2, 2))]), T.ones((2, 1))).numpy(),
        ValueError,
        "singular .number 1 of 2",
    ),
    "negative": (lambda L: L.cholesky([[1.0, 2.0], [2.0, 1.0]]).numpy(), ValueError, "not positive definite"),
    "nan": (lambda L: L.svdvals([[float("nan")]]).numpy(), ValueError, "not finite"),
    "mode": (lambda L: L.qr([[1.0]], mode="r"), ValueError, "'reduced' or 'complete'"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name):
    f, kind, message = MISTAKES[name]
    with pytest.raises(kind, match=message):
        f(T.linalg)


def test_the_standards_names():
    names = """cholesky cross det diagonal eig eigh eigvals eigvalsh inv matmul matrix_norm matrix_power matrix_rank
    matrix_transpose outer pinv qr slogdet solve svd svdvals tensordot trace vecdot vector_norm"""
    assert sorted(names.split()) == sorted(xp.linalg.__all__)
