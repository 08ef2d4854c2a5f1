"""Linear algebra of complex matrices, by what holds of its results and beside NumPy."""

import aerogel as ti
import numpy as np
import pytest
from aerogel import xp
from aerogel.tensor import programs as p
from aerogel.tensor._complex import ComplexTensor
from test_tensor_linalg import SHAPES as SQUARE
from test_tensor_linalg import WIDE as OTHERS

T = ti.tensor


@pytest.fixture(autouse=True)
def started():
    ti.init(arch=ti.cpu)


TYPES = [np.complex64, np.complex128]


def matrices(shape, dtype=np.complex128, seed=0):
    rng = np.random.default_rng(seed)
    a = (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
    if shape[-1] == shape[-2]:
        a = a + 3 * np.eye(shape[-1], dtype=dtype)
    return a


def adjoint(x):
    return np.swapaxes(x, -1, -2).conj()


def close(found, expected, tol=1e-10):
    found, expected = found.numpy(), np.asarray(expected)
    assert found.shape == expected.shape and found.dtype == expected.dtype
    assert np.allclose(found, expected, rtol=tol, atol=tol)


def tolerance(dtype):
    return 2e-3 if dtype is np.complex64 else 1e-10


@pytest.mark.parametrize("shape", SQUARE)
@pytest.mark.parametrize("dtype", TYPES)
def test_square_matrices(shape, dtype):
    tol, L = tolerance(dtype), T.linalg
    a = matrices(shape, dtype)
    t = T.asarray(a)
    close(L.inv(t), np.linalg.inv(a), tol)
    close(L.det(t), np.linalg.det(a), tol)
    for found, expected in zip(L.slogdet(t), np.linalg.slogdet(a)):
        close(found, expected, tol)
    lower, upper, perm = L.lu(t)
    assert perm.dtype is ti.i32
    close(lower @ upper, np.take_along_axis(a, perm.numpy()[..., None], -2), tol)
    assert np.array_equal(np.tril(lower.numpy()), lower.numpy()) and np.array_equal(
        np.triu(upper.numpy()), upper.numpy()
    )
    b = matrices((shape[-1], 2), dtype, seed=1)
    close(L.solve(t, T.asarray(b)), np.linalg.solve(a, b), tol)
    close(L.solve(t, T.asarray(b[:, 0])), np.linalg.solve(a, b[:, :1])[..., 0], tol)
    values, vectors = L.eig(t)
    close(t @ vectors, (vectors * values.unsqueeze(-2)).numpy(), tol)
    close(T.linalg.vector_norm(vectors, axis=-2), np.ones(shape[:-1], a.real.dtype), tol)
    found, expected = L.eigvals(t).numpy(), np.linalg.eigvals(a)
    assert found.dtype == dtype and np.allclose(np.sort_complex(found), np.sort_complex(expected), atol=tol * 10)
    for n in (-2, 0, 1, 5):
        close(L.matrix_power(t, n), np.linalg.matrix_power(a, n), tol * 100)
    if a.size:
        for order in (2, -2, 1, np.inf, "fro"):
            close(L.cond(t, p=order), np.linalg.cond(a, order), tol)


@pytest.mark.parametrize("shape", SQUARE)
@pytest.mark.parametrize("dtype", TYPES)
def test_hermitian_matrices(shape, dtype):
    tol, L = tolerance(dtype), T.linalg
    a = matrices(shape, dtype)
    her, pos = a + adjoint(a), a @ adjoint(a) + np.eye(shape[-1], dtype=dtype)
    # What is above the diagonal does not count, nor do imaginary parts on it.
    spoilt = np.tril(her) + 1j * np.eye(shape[-1], dtype=dtype)
    for given in (her, spoilt):
        close(L.eigvalsh(T.asarray(given)), np.linalg.eigvalsh(her), tol)
        values, vectors = L.eigh(T.asarray(given))
        close(values, np.linalg.eigvalsh(her), tol)
        close((vectors * values.unsqueeze(-2)) @ vectors.mT.conj(), her, tol)
        close(vectors.mT.conj() @ vectors, np.broadcast_to(np.eye(shape[-1], dtype=dtype), shape), tol)
    lower = np.linalg.cholesky(pos)
    close(L.cholesky(T.asarray(pos)), lower, tol)
    close(L.cholesky(T.asarray(np.tril(pos))), lower, tol)
    close(L.cholesky(T.asarray(pos), upper=True), adjoint(lower), tol)
    close(L.cholesky(T.asarray(np.triu(pos)), upper=True), adjoint(lower), tol)


@pytest.mark.parametrize("shape", SQUARE + OTHERS)
@pytest.mark.parametrize("dtype", TYPES)
def test_matrices_of_any_extents(shape, dtype):
    tol, L = tolerance(dtype), T.linalg
    a = matrices(shape, dtype)
    t, (n, m) = T.asarray(a), shape[-2:]
    k = min(n, m)

    def unitary(x):
        close(
            x.mT.conj() @ x, np.broadcast_to(np.eye(x.shape[-1], dtype=dtype), (*shape[:-2], *[x.shape[-1]] * 2)), tol
        )

    for mode in ("reduced", "complete"):
        q, r = L.qr(t, mode=mode)
        columns = n if mode == "complete" else k
        assert q.shape == (*shape[:-2], n, columns) and r.shape == (*shape[:-2], columns, m)
        close(q @ r, a, tol)
        unitary(q)
        assert np.array_equal(np.triu(r.numpy()), r.numpy())
    s = np.linalg.svd(a, compute_uv=False)
    close(L.svdvals(t), s, tol)
    for full in (True, False):
        found, expected = L.svd(t, full_matrices=full), np.linalg.svd(a, full_matrices=full)
        assert [f.shape for f in found] == [e.shape for e in expected]
        close(found.S, s, tol)
        close((found.U[..., :k] * found.S.unsqueeze(-2)) @ found.Vh[..., :k, :], a, tol)
        unitary(found.U)
        unitary(found.Vh.mT.conj())
    close(L.pinv(t), np.linalg.pinv(a), tol)
    if a.size:
        assert np.array_equal(L.matrix_rank(t).numpy(), np.linalg.matrix_rank(a))
        for order in ("fro", "nuc", 2, -2, 1, -1, np.inf, -np.inf):
            close(L.matrix_norm(t, ord=order), np.linalg.norm(a, order, (-2, -1)), tol)
            close(L.matrix_norm(t, ord=order, keepdims=True), np.linalg.norm(a, order, (-2, -1), keepdims=True), tol)


def test_singular_matrices():
    a = np.outer([1.0, 2j, 3], [4.0, 5, 6j])
    t, L = T.asarray(a), T.linalg
    assert L.matrix_rank(t).item() == 1
    close(L.pinv(t), np.linalg.pinv(a))
    sign, log = L.slogdet(T.asarray([[1j, 2j], [2j, 4j]]))
    assert sign.item() == 0 and log.item() == -np.inf
    assert L.det(T.asarray([[1j, 2j], [2j, 4j]])).item() == 0


def test_real_and_complex_together():
    a, b = matrices((2, 4, 4)), matrices((4, 3), seed=1)
    close(T.linalg.solve(a.real.copy(), b), np.linalg.solve(a.real, b))
    close(T.linalg.solve(a, b.real.copy()), np.linalg.solve(a, b.real))
    assert T.linalg.solve(T.asarray(a).astype("complex64"), T.asarray(b.real.copy())).dtype is T.complex128
    assert T.linalg.solve(T.asarray(a).astype("complex64"), [[1], [2], [3], [4]]).dtype is T.complex64


def test_products_and_norms_that_no_library_has_a_part_in():
    a, b = matrices((3, 3)), matrices((3, 3), seed=1)
    L = T.linalg
    close(L.cross(a, b), np.cross(a, b))
    close(L.cross(a, b.real.copy(), axis=0), np.cross(a, b.real, axis=0))
    close(L.dot(a, b), a @ b)
    close(L.dot(a[0], b[0]), np.dot(a[0], b[0]))
    close(L.dot(matrices((2, 4, 3)), b), np.dot(matrices((2, 4, 3)), b))
    close(L.multi_dot([a, b, a]), a @ b @ a)
    close(L.vecdot(a, b), np.sum(a.conj() * b, -1))
    for order in (1, 2, 3, np.inf):
        close(L.norm(a, axis=1, ord=order), np.linalg.norm(a, axis=1, ord=order))
        close(L.vector_norm(a, axis=1, ord=order), np.linalg.norm(a, axis=1, ord=order))


def test_determinants_of_large_numbers():
    a = np.diag([1e200 + 1e200j, 1e200j, -2e200])
    sign, log = T.linalg.slogdet(T.asarray(a))
    close(sign, np.linalg.slogdet(a).sign)
    close(log, np.linalg.slogdet(a).logabsdet)


def test_in_programs_of_any_extents():
    @p.program
    def program():
        z = p.input([-1, -1], ti.f64) + 1j * p.input([-1, -1], ti.f64)
        her = z @ z.mT.conj()
        L = T.linalg
        results = (
            L.svdvals(z),
            L.qr(z).R,
            L.pinv(z),
            L.eigvalsh(her),
            L.cholesky(her + T.eye(her.shape[0], dtype=ti.f64)),
        )
        regular = her + 1j * T.eye(her.shape[0], dtype=ti.f64)
        return [*results, L.det(regular), L.solve(regular, z), L.eig(regular).eigenvectors, L.matrix_rank(z)]

    def as_numbers(found):
        return found.numpy()

    for n, m in ((3, 3), (2, 4), (4, 2)):
        z = matrices((n, m))
        s, r, inverse, values, lower, det, x, vectors, rank = map(as_numbers, program(z.real.copy(), z.imag.copy()))
        her, one = z @ adjoint(z), np.eye(n)
        assert np.allclose(s, np.linalg.svd(z, compute_uv=False))
        assert r.shape == (min(n, m), m) and np.allclose(adjoint(r) @ r, adjoint(z) @ z)
        assert np.allclose(inverse, np.linalg.pinv(z)) and np.allclose(values, np.linalg.eigvalsh(her))
        assert np.allclose(lower, np.linalg.cholesky(her + one))
        assert np.allclose(det, np.linalg.det(her + 1j * one))
        assert np.allclose(x, np.linalg.solve(her + 1j * one, z)) and rank == min(n, m)
        scaled = np.linalg.solve(vectors, (her + 1j * one) @ vectors)
        assert np.allclose(scaled, np.diag(np.diag(scaled)), atol=1e-8)


def test_one_for_many():
    """In a branch, those who leave it out have matrices that the library refuses."""
    a = matrices((4, 3, 3))
    found = ti.vmap(lambda m: T.linalg.svdvals(m + 1j * m.mT))(a.real.copy())
    close(found, np.linalg.svd(a.real + 1j * np.swapaxes(a.real, 1, 2), compute_uv=False))

    def body(m):
        total = p.const(0.0, ti.f64)
        with p.if_cond(m[0, 0] > 0):
            lower = T.linalg.cholesky(m + 1j * (T.tril(m, -1) - T.triu(m.mT, 1)))
            total.val = lower.imag.sum()
        return total

    given = np.array([[[4.0, 1], [1, 9]], [[-1, 0], [0, -1]], [[2, 0.5], [0.5, 25]]])
    program = p.program(lambda: ti.vmap(body)(p.input([-1, 2, 2], ti.f64)))
    want = [
        np.linalg.cholesky(m + 1j * (np.tril(m, -1) - np.triu(m.T, 1))).imag.sum() if m[0, 0] > 0 else 0 for m in given
    ]
    assert want[0] != 0 and np.allclose(program(given).numpy(), want)


def test_planes_of_other_extents_are_refused():
    @p.program
    def program():
        return T.linalg.svdvals(ComplexTensor(p.input([-1, 2], ti.f64), p.input([-1, 2], ti.f64)))

    close(program(np.ones((3, 2)), np.zeros((3, 2))), np.linalg.svd(np.ones((3, 2)))[1])
    with pytest.raises(ValueError, match="3.*4|4.*3"):
        program(np.ones((3, 2)), np.zeros((4, 2)))


NAN = complex("nan")
MISTAKES = {
    "vector": (lambda L: L.inv([1j]), r"`inv` takes matrices.*\(1,\)"),
    "square": (lambda L: L.det(T.zeros((2, 3), "complex64")), r"`det` takes square matrices: the shape is \(2, 3\)"),
    "sides": (lambda L: L.solve(T.zeros((2, 2), "complex64"), T.zeros((3, 1))), r"\(2, 2\).*\(3, 1\)"),
    "singular": (lambda L: L.inv([[1j, 2j], [2j, 4j]]).numpy(), "`inv`: the matrix is singular"),
    "many": (
        lambda L: L.solve(T.stack([T.eye(2) * 1j, T.zeros((2, 2), "complex64")]), T.ones((2, 1))).numpy(),
        "singular .number 1 of 2",
    ),
    "negative": (
        lambda L: L.cholesky([[1.0, 2j], [2j, 1.0]]).numpy(),
        "`cholesky`: the matrix is not positive definite",
    ),
    "nan": (lambda L: L.svdvals([[NAN]]).numpy(), "`svdvals`: .* not finite"),
    "infinite": (lambda L: L.eig([[complex(0, float("inf"))]]).eigenvalues.numpy(), "`eig`: .* not finite"),
    "eigh": (lambda L: L.eigvalsh([[1.0, 0], [complex(0, float("nan")), 1]]).numpy(), "`eigvalsh`: .* not finite"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name):
    f, message = MISTAKES[name]
    with pytest.raises(ValueError, match=message):
        f(T.linalg)


def test_what_the_library_refuses_is_shown_where_it_is_written():
    x = T.zeros((2, 2), "complex128")
    y = T.linalg.cholesky(x)
    with pytest.raises(ValueError, match=r"-->[\s\S]*y = T\.linalg\.cholesky\(x\)"):
        y.numpy()


def test_the_standards_namespace():
    z = xp.asarray(matrices((3, 3)))
    for name in ("svd", "qr", "eigh", "eig", "slogdet"):
        assert all(r.dtype in (xp.complex128, xp.float64) for r in getattr(xp.linalg, name)(z))
    assert xp.linalg.svdvals(z).dtype is xp.float64 and xp.linalg.det(z).dtype is xp.complex128
