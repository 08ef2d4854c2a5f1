"""A 3-D Poisson problem with 46^3 = 97336 unknowns: sparse Cholesky (analysis, factorisation, solution), in f64.
numpy = SciPy's SuperLU; cholmod = CHOLMOD with its own choice of ordering, from cvxopt."""
from common import *
M = size(46, 12)
N = M ** 3
CASES = {"llt": dict(bytes=N * 8, tol=1e-8)}


def poisson():
    import scipy.sparse as sp
    one = sp.diags([-np.ones(M - 1), 2 * np.ones(M), -np.ones(M - 1)], [-1, 0, 1])
    eye = sp.identity(M)
    return (sp.kron(sp.kron(one, eye), eye) + sp.kron(sp.kron(eye, one), eye) + sp.kron(sp.kron(eye, eye), one)).tocsc()


B = rng(23).random(N)


@impl("numpy")
def _(case):
    from scipy.sparse.linalg import splu
    A, r = poisson(), []

    def run():
        r[:] = [splu(A, permc_spec="MMD_AT_PLUS_A", options=dict(SymmetricMode=True), diag_pivot_thresh=0.0).solve(B)]
    return run, lambda: r[0]


@impl("cholmod")
def _(case):
    from cvxopt import cholmod, matrix, spmatrix
    A = poisson().tocoo()
    K = spmatrix(A.data.tolist(), A.row.tolist(), A.col.tolist(), A.shape)
    r = []

    def run():
        x = matrix(B)
        F = cholmod.symbolic(K)
        cholmod.numeric(K, F)
        cholmod.solve(F, x)
        r[:] = [np.array(x).ravel()]
    return run, lambda: r[0]


@impl("ti")
def _(ti, case):
    import scipy.sparse as sp
    A = poisson().tocoo()
    builder = ti.linalg.SparseMatrixBuilder(N, N, max_num_triplets=A.nnz, dtype=ti.f64)

    @ti.kernel
    def fill(K: ti.types.sparse_matrix_builder(), rows: ti.types.ndarray(), cols: ti.types.ndarray(), v: ti.types.ndarray()):
        for k in range(rows.shape[0]):
            K[rows[k], cols[k]] += v[k]
    fill(builder, A.row.astype(np.int32), A.col.astype(np.int32), A.data)
    K, r = builder.build(), []

    def run():
        solver = ti.linalg.SparseSolver(dtype=ti.f64, solver_type="LLT")
        solver.compute(K)
        r[:] = [solver.solve(B)]
    return run, lambda: r[0]
