"""Solvers for systems with a sparse matrix."""

from __future__ import annotations

import warnings
from typing import Any

import aerogel as ti
from aerogel import _native
from aerogel._config import n_threads
from aerogel.errors import AerogelRuntimeError, AerogelTypeError
from aerogel.linalg._matrix import SparseMatrix, like, numpy_dtype, vector_of

_TYPES = ["LLT", "LDLT", "LU"]
_ORDERINGS = ["AMD", "COLAMD"]
_EPSILON: dict[Any, float] = {ti.f32: 2.0**-23, ti.f64: 2.0**-52}
# Elements across the diagonal may differ by this, in units of the largest, in a symmetric matrix.
_ASYMMETRY: dict[Any, float] = {ti.f32: 1e-4, ti.f64: 1e-10}


class SparseSolver:
    """Solves ``A @ x = b`` by a factorisation of ``A``.

    Args:
        dtype: ``ti.f32`` or ``ti.f64``, the matrix's.
        solver_type: ``"LLT"`` for symmetric positive definite matrices, ``"LDLT"`` for symmetric ones, ``"LU"`` for
            others. The first two read the lower triangle only.
        ordering: ``"AMD"`` or ``"COLAMD"``. Accepted for compatibility: LLT and LDLT use AMD, LU uses COLAMD.

    Raises:
        AerogelRuntimeError: If there is no such solver.
        AerogelTypeError: If ``dtype`` is another type.
    """

    def __init__(self, dtype: Any = ti.f32, solver_type: str = "LLT", ordering: str = "AMD") -> None:
        numpy_dtype(dtype)
        if solver_type not in _TYPES or ordering not in _ORDERINGS:
            raise AerogelRuntimeError(
                f"The solver type {solver_type} with {ordering} is not supported. "
                f"Only {_TYPES} with {_ORDERINGS} are supported."
            )
        self.dtype = dtype
        self.solver_type = solver_type
        self.ordering = ordering
        self._native: _native.NativeSparseSolver | None = None
        self._shape = (0, 0)
        self._failure = "no matrix has been factorised"

    def _check(self, sparse_matrix: Any) -> SparseMatrix:
        if not isinstance(sparse_matrix, SparseMatrix):
            raise AerogelTypeError(
                f"The parameter type: {type(sparse_matrix).__name__} is not supported: "
                "a SparseSolver takes a ti.linalg.SparseMatrix"
            )
        if sparse_matrix.dtype != self.dtype:
            raise AerogelRuntimeError(
                f"The SparseSolver's dtype {self.dtype} is not consistent with the SparseMatrix's dtype "
                f"{sparse_matrix.dtype}."
            )
        return sparse_matrix

    def compute(self, sparse_matrix: SparseMatrix) -> None:
        """:meth:`analyze_pattern` and :meth:`factorize`."""
        self.analyze_pattern(sparse_matrix)
        self.factorize(sparse_matrix)

    def analyze_pattern(self, sparse_matrix: SparseMatrix) -> None:
        """Finds the order of elimination; enough once for matrices with entries at the same places.

        Raises:
            AerogelRuntimeError: If the matrix is not square, or of another element type.
            AerogelTypeError: If it is no SparseMatrix.
        """
        matrix = self._check(sparse_matrix)
        self._native = None
        self._failure = "the matrix has been analysed, but not factorised"
        self._native = _native.NativeSparseSolver.analyze(matrix._native, self.solver_type)
        self._shape = matrix.shape

    def factorize(self, sparse_matrix: SparseMatrix) -> None:
        """Computes the factors; analyses the matrix first if that has not been done.

        A matrix that cannot be factorised makes :meth:`info` False, and :meth:`solve` raise the reason. A matrix
        that is singular up to rounding is factorised by LU, with a warning.

        Raises:
            AerogelRuntimeError: If the matrix is of another element type.
            AerogelTypeError: If it is no SparseMatrix.
        """
        matrix = self._check(sparse_matrix)
        if self._native is None:
            self.analyze_pattern(matrix)
        assert self._native is not None
        if self.solver_type != "LU":
            place = matrix._native.asymmetry(_ASYMMETRY[self.dtype])
            if place is not None:
                i, j = place
                warnings.warn(
                    f"{self.solver_type} needs a symmetric matrix and reads its lower triangle only, but A[{i}, {j}] "
                    f"= {matrix[i, j]:g} and A[{j}, {i}] = {matrix[j, i]:g}; for such a matrix use LU",
                    stacklevel=2,
                )
        self._failure = ""
        try:
            condition = self._native.factorize(matrix._native, n_threads())
        except AerogelRuntimeError as e:
            self._failure = str(e)
            return
        if condition * _EPSILON[self.dtype] > 1:
            warnings.warn(
                f"in {self.dtype} the matrix is close to a singular one: its condition number is {condition:.1e} or "
                "more; unless its rows or columns differ greatly in scale, no digit of a solution is reliable",
                stacklevel=2,
            )

    def solve(self, b: Any) -> Any:
        """The solution ``x`` of ``A @ x = b``.

        Args:
            b: A field, ``ti.ndarray`` or NumPy array with one axis, as long as the matrix has rows.

        Returns:
            A ``ti.ndarray`` if ``b`` is one, else a NumPy array.

        Raises:
            AerogelRuntimeError: If there is no factorisation; the message says why.
            AerogelAssertionError: If ``b`` has another length.
        """
        import numpy as np

        if self._native is None or self._failure:
            raise AerogelRuntimeError(f"the system cannot be solved: {self._failure}")
        numbers = vector_of(b, self._shape[0], self.dtype, "the right-hand side")
        x = np.frombuffer(self._native.solve(numbers.tobytes(), n_threads()), numbers.dtype)
        return like(b, x, self.dtype)

    def info(self) -> bool:
        """Whether the latest factorisation succeeded."""
        return self._native is not None and not self._failure


class SparseCG:
    """Solves ``A @ x = b`` with a symmetric positive definite matrix by conjugate gradients.

    Args:
        A: The matrix.
        b: The right-hand side: a field, ``ti.ndarray`` or NumPy array with one axis.
        x0: Where to begin, like ``b``; at zero if it is not given.
        max_iter: How many steps are done at most; 50 as in Taichi, which is few for matrices of partial differential
            equations: :meth:`solve` says whether they were enough.
        atol: The length of the residual at which to stop, in units of the length of ``b``.

    Raises:
        AerogelAssertionError: If the matrix is not square or the lengths do not fit.
        AerogelTypeError: If ``A`` is no SparseMatrix.
    """

    def __init__(self, A: SparseMatrix, b: Any, x0: Any = None, max_iter: int = 50, atol: float = 1e-6) -> None:
        import numpy as np

        if not isinstance(A, SparseMatrix):
            raise AerogelTypeError(f"SparseCG takes a ti.linalg.SparseMatrix, not {type(A).__name__}")
        if A.n != A.m:
            raise AerogelRuntimeError(f"the matrix is not square: {A.n} rows, {A.m} columns")
        self.matrix = A
        self._given = b
        self.b = vector_of(b, A.n, A.dtype, "the right-hand side")
        self.x0 = np.zeros_like(self.b) if x0 is None else vector_of(x0, A.n, A.dtype, "the beginning")
        self.max_iter = int(max_iter)
        self.atol = float(atol)

    def solve(self) -> tuple[Any, bool]:
        """The solution, a ``ti.ndarray`` if ``b`` is one, else a NumPy array; and whether it is good enough."""
        import numpy as np

        x, _, error = self.matrix._native.conjugate_gradient(
            self.b.tobytes(), self.x0.tobytes(), self.atol, self.max_iter, n_threads()
        )
        numbers = np.frombuffer(x, self.b.dtype)
        return like(self._given, numbers, self.matrix.dtype), bool(error <= self.atol)
