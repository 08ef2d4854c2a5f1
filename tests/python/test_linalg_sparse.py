"""Sparse matrices and the solvers of ``ti.linalg``, against NumPy and SciPy."""

import errno
import warnings

import numpy as np
import pytest

import aerogel as ti
from limits import small_files

DTYPES = [ti.f32, ti.f64]


@pytest.fixture(autouse=True)
def fresh():
    ti.init(arch=ti.cpu)


@ti.kernel
def fill_chain(A: ti.types.sparse_matrix_builder(), n: int):
    """The second difference, with something added and taken away again."""
    for i in range(n):
        A[i, i] += 2.0
        if i > 0:
            A[i, i - 1] -= 1
        if i < n - 1:
            A[i, i + 1] -= 1.0
        A[i, i] += i
        A[i, i] -= ti.cast(i, ti.f32)


@ti.func
def add_twice(A: ti.template(), i, v):
    A[i, i] += v
    A[i, i] += v


def chain(n, dtype=ti.f32):
    builder = ti.linalg.SparseMatrixBuilder(n, n, max_num_triplets=6 * n, dtype=dtype)
    fill_chain(builder, n)
    return builder.build()


def dense_chain(n):
    return 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)


def random_matrix(shape, seed, dtype=ti.f64):
    rng = np.random.default_rng(seed)
    array = rng.standard_normal(shape) * (rng.random(shape) < 0.3)
    return array, ti.linalg.SparseMatrix(sm=array, dtype=dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_kernels_fill_a_builder(dtype):
    A = chain(50, dtype)
    assert A.shape == (50, 50) and (A.n, A.m) == (50, 50) and A.dtype == dtype
    assert np.allclose(A.to_numpy(), dense_chain(50), atol=1e-5)
    assert A.num_entries == 148


def test_unsigned_values_are_subtracted():
    @ti.kernel
    def fill(A: ti.types.sparse_matrix_builder(), v: ti.u32, w: ti.u8):
        A[0, 0] -= v
        A[1, 1] -= w
        A[0, 1] += v

    K = ti.linalg.SparseMatrixBuilder(2, 2, max_num_triplets=3)
    fill(K, 3, 4)
    np.testing.assert_array_equal(K.build().to_numpy(), [[-3, 3], [0, -4]])


def test_a_builder_is_empty_once_built():
    builder = ti.linalg.SparseMatrixBuilder(3, max_num_triplets=30)
    fill_chain(builder, 3)
    first = builder.build()
    assert np.array_equal(builder.build().to_numpy(), np.zeros((3, 3)))
    fill_chain(builder, 3)
    assert np.array_equal(builder.build().to_numpy(), first.to_numpy())


def test_functions_take_builders():
    @ti.kernel
    def fill(A: ti.types.sparse_matrix_builder(), B: ti.types.sparse_matrix_builder()):
        for i in range(4):
            add_twice(A, i, 1.5)
            B[i, 3 - i] += A.values.shape[0]

    A = ti.linalg.SparseMatrixBuilder(4, 4, 8)
    B = ti.linalg.SparseMatrixBuilder(4, 5, 4, dtype=ti.f64)
    fill(A, B)
    assert np.array_equal(A.build().to_numpy(), 3 * np.eye(4))
    assert np.array_equal(B.build().to_numpy(), 8 * np.eye(4, 5)[::-1])


def test_triplets_are_printed(capsys):
    @ti.kernel
    def fill(A: ti.types.sparse_matrix_builder()):
        A[0, 1] += 2.5
        A[1, 0] -= 1

    builder = ti.linalg.SparseMatrixBuilder(2, 2, max_num_triplets=5)
    fill(builder)
    builder.print_triplets()
    assert capsys.readouterr().out == "n=2, m=2, num_triplets=2 (max=5)\n[0, 1] = 2.5\n[1, 0] = -1\n"


def test_matrices_print_as_tables():
    A = ti.linalg.SparseMatrix(sm=np.array([[1.0, 0.0], [-2.5, 10.0]]))
    assert str(A) == "[   1,    0]\n[-2.5,   10]"
    assert str(ti.linalg.SparseMatrix(1000)) == "SparseMatrix(1000x1000, 0 entries, f32)"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", range(5))
def test_operators_agree_with_numpy(dtype, seed):
    tolerance = 1e-5 if dtype == ti.f32 else 1e-13
    a, A = random_matrix((13, 17), seed, dtype)
    b, B = random_matrix((13, 17), seed + 100, dtype)
    c, C = random_matrix((17, 5), seed + 200, dtype)

    def same(M, m):
        assert M.dtype == dtype and M.shape == m.shape
        assert np.allclose(M.to_numpy(), m, atol=tolerance)

    same(A + B, a + b)
    same(A - B, a - b)
    same(A * B, a * b)
    same(2 * A, 2 * a)
    same(A * -0.5, -0.5 * a)
    same(-A, -a)
    same(A.transpose(), a.T)
    same(A @ C, a @ c)
    same(ti.linalg.SparseMatrix(sm=A), a)
    B += A
    same(B, a + b)
    B -= A
    same(B, b)


@pytest.mark.parametrize("dtype", DTYPES)
def test_products_with_vectors(dtype):
    a, A = random_matrix((6, 9), 1, dtype)
    x = np.arange(9, dtype=np.float32 if dtype == ti.f32 else np.float64)
    field, array = ti.field(dtype, 9), ti.ndarray(dtype, 9)
    field.from_numpy(x)
    array.from_numpy(x)
    for product in (A @ x, A @ field, (A @ array).to_numpy()):
        assert np.allclose(product, a @ x, atol=1e-4)
    assert isinstance(A @ field, np.ndarray) and isinstance(A @ array, ti.ScalarNdarray)


def test_elements():
    A = chain(4)
    assert A[0, 0] == 2.0 and A[0, 1] == -1.0 and A[0, 3] == 0.0
    A[0, 0] = 9
    A[0, 3] = -4
    expected = dense_chain(4)
    expected[0, [0, 3]] = [9, -4]
    assert np.array_equal(A.to_numpy(), expected)
    for place in ((4, 0), (0, 4), (-1, 0), (0, -1)):
        with pytest.raises(IndexError, match=rf"\[{place[0]}, {place[1]}\] is outside a matrix of 4x4"):
            A[place]
        with pytest.raises(IndexError):
            A[place] = 1.0
    with pytest.raises(IndexError, match="two indices"):
        A[3]


def test_scipy_and_numpy_in_and_out():
    sparse = pytest.importorskip("scipy.sparse")
    for kind in ("csr", "csc", "coo", "lil"):
        original = sparse.random(20, 30, 0.2, format=kind, random_state=3)
        A = ti.linalg.SparseMatrix.from_scipy(original)
        assert A.dtype == ti.f64
        assert abs(A.to_scipy() - original.tocsc()).max() == 0
    single = sparse.random(5, 5, 0.5, dtype=np.float32, random_state=1)
    assert ti.linalg.SparseMatrix.from_scipy(single).dtype == ti.f32
    with pytest.raises(TypeError, match="not complex"):
        ti.linalg.SparseMatrix.from_scipy(sparse.csc_matrix(np.eye(2) * 1j), ti.f32)
    with pytest.raises(ValueError, match="two axes, not 1"):
        ti.linalg.SparseMatrix.from_numpy(np.zeros(3))


def test_entries_from_an_array():
    A = ti.linalg.SparseMatrix(3, 3)
    entries = ti.Vector.ndarray(3, ti.f32, 4)
    entries.from_numpy(np.array([[0, 0, 1], [1, 1, 2], [1, 1, 3], [0, 2, 5]], np.float32))
    A.build_from_ndarray(entries)
    assert np.array_equal(A.to_numpy(), [[1, 0, 5], [0, 5, 0], [0, 0, 0]])
    with pytest.raises(TypeError, match="build_from_ndarray takes"):
        A.build_from_ndarray(np.zeros((4, 3)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", ["LLT", "LDLT", "LU"])
@pytest.mark.parametrize("ordering", ["AMD", "COLAMD"])
def test_solvers(dtype, method, ordering):
    A = chain(100, dtype)
    b = np.random.default_rng(1).standard_normal(100)
    expected = np.linalg.solve(dense_chain(100), b)
    solver = ti.linalg.SparseSolver(dtype=dtype, solver_type=method, ordering=ordering)
    solver.analyze_pattern(A)
    assert not solver.info()
    solver.factorize(A)
    assert solver.info()
    x = solver.solve(b)
    assert isinstance(x, np.ndarray)
    error = np.abs(x - expected).max() / np.abs(expected).max()
    assert error < (1e-3 if dtype == ti.f32 else 1e-12)
    array = ti.ndarray(dtype, 100)
    array.from_numpy(b.astype(x.dtype))
    assert np.allclose(solver.solve(array).to_numpy(), x)
    # The pattern serves for other numbers.
    solver.factorize(2 * A)
    assert np.allclose(solver.solve(b), x / 2, rtol=1e-3)
    solver.compute(A)
    assert np.allclose(solver.solve(b), x)


@pytest.mark.parametrize("name, method", [("airfoil", "LU"), ("bar", "LLT"), ("bar", "LDLT"), ("recirc_flow", "LU")])
def test_matrices_of_a_collection(name, method):
    """Matrices of PyAMG's gallery, against SciPy's solver."""
    gallery = pytest.importorskip("pyamg.gallery")
    spsolve = pytest.importorskip("scipy.sparse.linalg").spsolve
    matrix = gallery.load_example(name)["A"].tocsc()
    b = np.random.default_rng(2).standard_normal(matrix.shape[0])
    A = ti.linalg.SparseMatrix.from_scipy(matrix)
    solver = ti.linalg.SparseSolver(dtype=ti.f64, solver_type=method)
    solver.compute(A)
    assert solver.info()
    x, expected = solver.solve(b), spsolve(matrix, b)
    assert np.abs(x - expected).max() < 1e-8 * np.abs(expected).max()
    assert np.abs(matrix @ x - b).max() < 1e-9 * np.abs(b).max() + 1e-9


def test_what_has_no_solution_says_why():
    indefinite = ti.linalg.SparseMatrix(sm=np.diag([1.0, -2.0, 3.0]).astype(np.float32))
    solver = ti.linalg.SparseSolver(solver_type="LLT")
    solver.compute(indefinite)
    assert not solver.info()
    with pytest.raises(ti.TaichiRuntimeError, match="not positive definite: the pivot of row 1"):
        solver.solve(np.ones(3))
    for method in ("LDLT", "LU"):
        singular = ti.linalg.SparseMatrix(sm=np.diag([1.0, 0.0, 3.0]).astype(np.float32))
        singular[1, 1] = 0.0
        solver = ti.linalg.SparseSolver(solver_type=method)
        solver.compute(singular)
        assert not solver.info()
        with pytest.raises(ti.TaichiRuntimeError, match="singular"):
            solver.solve(np.ones(3))
        solver.compute(chain(3))
        assert solver.info()
        assert np.allclose(solver.solve(np.ones(3)), [1.5, 2.0, 1.5])
    with pytest.raises(ti.TaichiRuntimeError, match="no matrix has been factorised"):
        ti.linalg.SparseSolver().solve(np.ones(3))
    with pytest.raises(ti.TaichiRuntimeError, match="not square: 2 rows, 3 columns"):
        ti.linalg.SparseSolver().compute(ti.linalg.SparseMatrix(2, 3))
    infinite = ti.linalg.SparseMatrix(sm=np.diag([1.0, np.inf]).astype(np.float32))
    solver = ti.linalg.SparseSolver(solver_type="LU")
    solver.compute(infinite)
    with pytest.raises(ti.TaichiRuntimeError, match="not finite"):
        solver.solve(np.ones(2))


def test_an_asymmetric_matrix_is_warned_of():
    A = chain(4)
    A[3, 0] = 1.0
    with pytest.warns(UserWarning, match=r"A\[3, 0\] = 1 and A\[0, 3\] = 0; for such a matrix use LU"):
        ti.linalg.SparseSolver(solver_type="LLT").compute(A)
    lower = ti.linalg.SparseMatrix(sm=np.tril(dense_chain(4)).astype(np.float32))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solver = ti.linalg.SparseSolver(solver_type="LLT")
        solver.compute(lower)
    assert np.allclose(dense_chain(4) @ solver.solve(np.ones(4)), 1, atol=1e-5)


def test_misuse():
    L = ti.linalg
    with pytest.raises(ti.TaichiRuntimeError, match=r"8 triplets were added .* space for 5: .*max_num_triplets=8"):
        builder = L.SparseMatrixBuilder(2, 2, max_num_triplets=5)
        fill_chain(builder, 2)
        builder.build()
    with pytest.raises(IndexError, match=r"\[(1, 2|2, \d)\] is outside a matrix of 2x2"):
        builder = L.SparseMatrixBuilder(2, 2, max_num_triplets=50)
        fill_chain(builder, 3)
        builder.build()
    with pytest.raises(TypeError, match="f32 or f64, not i32"):
        L.SparseMatrixBuilder(2, 2, 5, dtype=ti.i32)
    with pytest.raises(ValueError, match="number of rows"):
        L.SparseMatrixBuilder()
    with pytest.raises(ValueError, match="col_major or row_major"):
        L.SparseMatrixBuilder(2, 2, 5, storage_format="diagonal")
    with pytest.raises(ti.TaichiRuntimeError, match="solver type FOO"):
        L.SparseSolver(solver_type="FOO")
    with pytest.raises(ti.TaichiRuntimeError, match="f64 is not consistent with the SparseMatrix's dtype f32"):
        L.SparseSolver(dtype=ti.f64).compute(chain(3))
    with pytest.raises(TypeError, match="not supported"):
        L.SparseSolver().compute(np.eye(3))
    solver = L.SparseSolver()
    solver.compute(chain(3))
    with pytest.raises(AssertionError, match=r"shape \(4,\), but \(3,\) is needed"):
        solver.solve(np.ones(4))
    with pytest.raises(TypeError, match="must be a field"):
        solver.solve("b")
    with pytest.raises(AssertionError, match="Dimension mismatch"):
        chain(3) + chain(4)
    with pytest.raises(AssertionError, match="Dimension mismatch"):
        chain(3) @ chain(4)
    with pytest.raises(TypeError, match="f32 and f64"):
        chain(3) + chain(3, ti.f64)
    for lose in (
        lambda: L.SparseMatrix.from_numpy(np.eye(2) * 1j),
        lambda: chain(3) @ (np.ones(3) * 1j),
    ):
        with pytest.raises(TypeError, match="not complex"):
            lose()
    with pytest.raises(MemoryError):
        L.SparseMatrix(2**45, 1) @ np.ones(1)
    with pytest.raises(MemoryError):
        L.SparseMatrix(1, 2**45)
    with pytest.raises(TypeError):
        chain(3) + 1
    with pytest.raises(TypeError):
        chain(3) * "a"


def test_builders_have_two_indices():
    @ti.kernel
    def one(A: ti.types.sparse_matrix_builder()):
        A[0] += 1.0

    @ti.kernel
    def three(A: ti.types.sparse_matrix_builder()):
        A[0, 1, 2] -= 1.0

    K = ti.linalg.SparseMatrixBuilder(2, 2, max_num_triplets=3)
    for kernel, n in ((one, 1), (three, 3)):
        with pytest.raises(ti.TaichiTypeError, match=f"takes 2 indices, got {n}"):
            kernel(K)


def test_kernels_cannot_read_or_set_a_builder():
    @ti.kernel
    def reads(A: ti.types.sparse_matrix_builder()):
        print(A[0, 0])

    @ti.kernel
    def sets(A: ti.types.sparse_matrix_builder()):
        A[0, 0] = 1.0

    @ti.kernel
    def scales(A: ti.types.sparse_matrix_builder()):
        A[0, 0] *= 2.0

    builder = ti.linalg.SparseMatrixBuilder(2, 2, 5)
    for kernel in (reads, sets):
        with pytest.raises(ti.TaichiTypeError, match=r"neither read nor set[\s\S]*add to them: `A\[i, j\] \+= v`"):
            kernel(builder)
    with pytest.raises(ti.TaichiSyntaxError, match=r"by `\+=` and `-=`"):
        scales(builder)
    with pytest.raises(ti.TaichiRuntimeTypeError, match="without the member `count`"):
        fill_chain(1.0, 2)


def test_matrix_market_files(tmp_path):
    pytest.importorskip("scipy")
    for dtype in DTYPES:
        a, A = random_matrix((7, 9), 5, dtype)
        A.mmwrite(tmp_path / "a.mtx")
        again = ti.linalg.SparseMatrix.mmread(tmp_path / "a.mtx", dtype)
        assert np.array_equal(again.to_numpy(), A.to_numpy())
    text = (tmp_path / "a.mtx").read_text()
    assert text.startswith("%%MatrixMarket matrix coordinate real general\n%\n7 9 ")
    for wrong in (text[: len(text) // 2].rsplit("\n", 1)[0] + "\n", "nonsense\n", text.replace("real", "strange")):
        (tmp_path / "wrong.mtx").write_text(wrong)
        with pytest.raises(ValueError, match="wrong.mtx"):
            ti.linalg.SparseMatrix.mmread(tmp_path / "wrong.mtx")
    with pytest.raises(FileNotFoundError):
        ti.linalg.SparseMatrix.mmread(tmp_path / "absent.mtx")


def test_a_file_that_does_not_fit_is_not_left_behind(tmp_path):
    A = chain(2000)
    with pytest.raises(OSError) as raised, small_files():
        A.mmwrite(tmp_path / "large.mtx")
    assert raised.value.errno in (errno.EFBIG, errno.ENOSPC)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("dtype", DTYPES)
def test_conjugate_gradients(dtype):
    A = chain(60, dtype)
    b = np.random.default_rng(4).standard_normal(60)
    expected = np.linalg.solve(dense_chain(60), b)
    x, converged = ti.linalg.SparseCG(A, b, max_iter=200, atol=1e-5).solve()
    assert converged and np.allclose(x, expected, rtol=1e-2, atol=1e-2)
    _, converged = ti.linalg.SparseCG(A, b, max_iter=3, atol=1e-5).solve()
    assert not converged
    array = ti.ndarray(dtype, 60)
    array.from_numpy(b.astype(x.dtype))
    y, converged = ti.linalg.SparseCG(A, array, x0=array, max_iter=200, atol=1e-5).solve()
    assert converged and isinstance(y, ti.ScalarNdarray)
    with pytest.raises(ti.TaichiRuntimeError, match="not square"):
        ti.linalg.SparseCG(ti.linalg.SparseMatrix(2, 3), np.zeros(2))


SHAPES = [(40,), (9, 8), (5, 6, 4)]


def laplacian(shape, skew):
    """A map of a field: a positive definite Laplacian, with transport along the last axis."""

    @ti.kernel
    def apply(x: ti.template(), Ax: ti.template()):
        for I in ti.grouped(x):
            total = 8.0 * x[I]
            for d in ti.static(range(len(shape))):
                e = ti.Vector.unit(len(shape), d)
                if I[d] > 0:
                    total -= x[I - e]
                if I[d] < shape[d] - 1:
                    total -= x[I + e] * (1.0 - skew)
            Ax[I] = total

    return apply


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("solve, skew", [("MatrixFreeCG", 0.0), ("MatrixFreeBICGSTAB", 0.5)])
def test_matrix_free_solvers(dtype, shape, solve, skew):
    apply = laplacian(shape, skew)
    b, x, Ax = (ti.field(dtype, shape) for _ in range(3))
    right = np.random.default_rng(6).standard_normal(shape)
    b.from_numpy(right)
    operator = ti.linalg.LinearOperator(apply)
    tolerance = 1e-4 if dtype == ti.f32 else 1e-10
    assert getattr(ti.linalg, solve)(operator, b, x, tol=tolerance, maxiter=500) is True
    operator.matvec(x, Ax)
    assert np.linalg.norm(Ax.to_numpy() - right) < 20 * tolerance
    assert getattr(ti.linalg, solve)(operator, b, x, tol=tolerance, maxiter=2) is False
    b.fill(0)
    assert getattr(ti.linalg, solve)(operator, b, x) is True
    assert not x.to_numpy().any()


def test_matrix_free_solvers_tell_and_refuse(capsys):
    operator = ti.linalg.LinearOperator(laplacian((8,), 0.0))
    b, x = ti.field(ti.f32, 8), ti.field(ti.f32, 8)
    b.fill(1)
    assert ti.linalg.MatrixFreeCG(operator, b, x, tol=1e-4, quiet=False)
    out = capsys.readouterr().out
    assert ">>> Initial residual" in out and ">>> Conjugate Gradient method converged." in out
    assert not ti.linalg.MatrixFreeBICGSTAB(operator, b, x, tol=1e-4, maxiter=1, quiet=False)
    assert "failed to converge in 1 iterations" in capsys.readouterr().out
    for solve in (ti.linalg.MatrixFreeCG, ti.linalg.MatrixFreeBICGSTAB):
        with pytest.raises(TypeError, match="Dtype mismatch"):
            solve(operator, b, ti.field(ti.f64, 8))
        with pytest.raises(TypeError, match="Not supported dtype: i32"):
            solve(operator, ti.field(ti.i32, 8), ti.field(ti.i32, 8))
        with pytest.raises(ti.TaichiRuntimeError, match="Dimension mismatch"):
            solve(operator, b, ti.field(ti.f32, 9))
        with pytest.raises(ti.TaichiRuntimeError, match=r"b begins at \(0,\), x at \(3,\)"):
            solve(operator, b, ti.field(ti.f32, 8, offset=3))
        with pytest.raises(ti.TaichiRuntimeError, match="4-D"):
            solve(operator, *(ti.field(ti.f32, (2, 2, 2, 2)) for _ in range(2)))
    with pytest.raises(ti.TaichiRuntimeError, match="Dimension mismatch"):
        operator.matvec(b, ti.field(ti.f32, 9))


def test_indices_beyond_32_bits_are_outside_too():
    @ti.kernel
    def far(A: ti.types.sparse_matrix_builder()):
        A[ti.cast(1, ti.i64) << 32, 0] += 1.0

    builder = ti.linalg.SparseMatrixBuilder(2, 2, 4)
    far(builder)
    with pytest.raises(IndexError, match=r"\[4294967296, 0\] is outside"):
        builder.build()


def test_numpy_arrays_do_not_take_matrices_apart():
    with pytest.raises(TypeError):
        np.ones(3) * chain(3)
    with pytest.raises(TypeError):
        chain(3) * np.ones(3)


def test_a_matrix_that_is_singular_but_for_rounding():
    """LU goes on, as SciPy's solvers do, with a warning as theirs."""
    near = 0.1 * np.arange(1, 10).reshape(3, 3)
    for dtype in (ti.f32, ti.f64):
        matrix = ti.linalg.SparseMatrix(3, 3, dtype=dtype)
        for i, j in np.ndindex(3, 3):
            matrix[i, j] = near[i, j]
        solver = ti.linalg.SparseSolver(dtype, "LU")
        with pytest.warns(UserWarning, match="in f.* the matrix is close to a singular one: its condition number is"):
            solver.compute(matrix)
        assert solver.info()
        matrix[2, 2] = 5.0
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            solver.compute(matrix)


@pytest.mark.parametrize("solve", [ti.linalg.MatrixFreeCG, ti.linalg.MatrixFreeBICGSTAB])
def test_a_kernel_is_no_linear_operator(solve):
    @ti.kernel
    def twice(x: ti.template(), Ax: ti.template()):
        for i in x:
            Ax[i] = 2 * x[i]

    b, x = ti.field(ti.f32, 4), ti.field(ti.f32, 4)
    b.fill(1)
    with pytest.raises(
        ti.TaichiTypeError, match=r"takes a ti.linalg.LinearOperator, not Kernel: .*LinearOperator\(kernel\)"
    ):
        solve(twice, b, x)
    with pytest.raises(ti.TaichiTypeError, match="takes a ti.linalg.LinearOperator, not list$"):
        solve([[2]], b, x)
    assert solve(ti.linalg.LinearOperator(twice), b, x) and np.allclose(x.to_numpy(), 0.5)
