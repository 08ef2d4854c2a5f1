"""``ti.linalg``: sparse matrices, solvers for them, and solvers that need no matrix.

Matrices are built from entries that kernels add (:class:`SparseMatrixBuilder`) and factorised by ``faer``
(:class:`SparseSolver`); :class:`SparseCG`, :func:`MatrixFreeCG` and :func:`MatrixFreeBICGSTAB` iterate.
"""

from __future__ import annotations

from aerogel.linalg._matrix import SparseMatrix, SparseMatrixBuilder
from aerogel.linalg._matrix_free import LinearOperator, MatrixFreeBICGSTAB, MatrixFreeCG
from aerogel.linalg._solvers import SparseCG, SparseSolver

__all__ = [
    "LinearOperator",
    "MatrixFreeBICGSTAB",
    "MatrixFreeCG",
    "SparseCG",
    "SparseMatrix",
    "SparseMatrixBuilder",
    "SparseSolver",
]
