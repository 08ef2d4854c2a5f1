"""Sparse matrices and their builder."""

from __future__ import annotations

import os
from typing import Any

import aerogel as ti
from aerogel import _native
from aerogel._config import n_threads
from aerogel._dtypes import DataType
from aerogel.errors import AerogelAssertionError, AerogelRuntimeError, AerogelTypeError
from aerogel.tools._files import write_whole

# A matrix with more elements than this is not printed element by element.
_MOST_PRINTED = 4096


def numpy_dtype(dtype: DataType) -> Any:
    """The dtype of the elements, for NumPy.

    Raises:
        AerogelTypeError: If it is neither f32 nor f64.
    """
    import numpy as np

    if dtype == ti.f32:
        return np.float32
    if dtype == ti.f64:
        return np.float64
    raise AerogelTypeError(f"the elements of a sparse matrix are f32 or f64, not {dtype}")


def _real(numbers: Any, dtype: DataType, what: str) -> Any:
    """Numbers as an array of the element type ``dtype``.

    Raises:
        AerogelTypeError: If they are complex: an imaginary part would be lost.
    """
    import numpy as np

    numbers = np.asarray(numbers)
    if numbers.dtype.kind == "c":
        raise AerogelTypeError(f"{what} has elements of {dtype}, not complex ones")
    return np.ascontiguousarray(numbers, numpy_dtype(dtype))


def vector_of(x: Any, length: int, dtype: DataType, what: str) -> Any:
    """The numbers of a field, array or NumPy array with one axis, as a NumPy array.

    Raises:
        AerogelAssertionError: If it has not ``length`` elements.
        AerogelTypeError: If it is none of these, or of another element type, or complex.
    """
    import numpy as np

    if isinstance(x, np.ndarray):
        numbers = x
    elif isinstance(x, (ti.ScalarField, ti.ScalarNdarray)):
        if x.dtype != dtype:
            raise AerogelTypeError(f"{what} has elements of {x.dtype}, the matrix of {dtype}")
        numbers = x.to_numpy()
    else:
        raise AerogelTypeError(f"{what} must be a field, a ti.ndarray or a NumPy array, not {type(x).__name__}")
    if numbers.shape != (length,):
        raise AerogelAssertionError(
            f"Dimension mismatch: {what} has the shape {tuple(numbers.shape)}, but ({length},) is needed"
        )
    return _real(numbers, dtype, what)


def like(x: Any, numbers: Any, dtype: DataType) -> Any:
    """A vector for the caller: a ``ti.ndarray`` if ``x`` is one, else a NumPy array."""
    if not isinstance(x, ti.ScalarNdarray):
        return numbers
    made = ti.ndarray(dtype, numbers.shape)
    made.from_numpy(numbers)
    return made


class SparseMatrixBuilder:
    """Collects the entries of a sparse matrix, most of all from kernels.

    >>> builder = SparseMatrixBuilder(4, 4, max_num_triplets=16)  # doctest: +SKIP
    >>> fill(builder)  # a kernel with ``A[i, j] += v``          # doctest: +SKIP
    >>> A = builder.build()                                       # doctest: +SKIP

    Args:
        num_rows: How many rows.
        num_cols: How many columns; the number of rows by default.
        max_num_triplets: How many entries can be added before :meth:`build`.
        dtype: ``ti.f32`` or ``ti.f64``.
        storage_format: ``"col_major"`` or ``"row_major"``; for compatibility, matrices are stored by columns.

    Raises:
        AerogelTypeError: If ``dtype`` is another type.
        ValueError: If a size is missing or negative.
    """

    def __init__(
        self,
        num_rows: int | None = None,
        num_cols: int | None = None,
        max_num_triplets: int = 0,
        dtype: Any = ti.f32,
        storage_format: str = "col_major",
    ) -> None:
        _check_format(storage_format)
        numpy_dtype(dtype)
        if num_rows is None:
            raise ValueError("a SparseMatrixBuilder needs the number of rows")
        self.num_rows = int(num_rows)
        self.num_cols = self.num_rows if num_cols is None else int(num_cols)
        self.max_num_triplets = int(max_num_triplets)
        if min(self.num_rows, self.num_cols, self.max_num_triplets) < 0:
            raise ValueError("sizes and the number of triplets cannot be negative")
        self.dtype = dtype
        _native.check_initialized()
        room = max(self.max_num_triplets, 1)
        self.count = ti.ndarray(ti.i64, 1)
        self.rows = ti.ndarray(ti.i64, room)
        self.cols = ti.ndarray(ti.i64, room)
        self.values = ti.ndarray(dtype, room)

    def _triplets(self) -> tuple[Any, Any, Any]:
        """The entries so far.

        Raises:
            AerogelRuntimeError: If there are more than there is room for.
        """
        n = int(self.count[0])
        if n > self.max_num_triplets:
            raise AerogelRuntimeError(
                f"{n} triplets were added to a SparseMatrixBuilder with space for {self.max_num_triplets}: "
                f"make it with max_num_triplets={n}"
            )
        return tuple(array.to_numpy()[:n] for array in (self.rows, self.cols, self.values))  # type: ignore[return-value]

    def print_triplets(self) -> None:
        """Prints the entries in the order in which they were added."""
        rows, cols, values = self._triplets()
        lines = [f"n={self.num_rows}, m={self.num_cols}, num_triplets={len(rows)} (max={self.max_num_triplets})"]
        lines += [f"[{i}, {j}] = {v:g}" for i, j, v in zip(rows, cols, values)]
        print("\n".join(lines))

    def build(self, dtype: Any = None, _format: str = "CSR") -> SparseMatrix:
        """The matrix of the entries, those of one place added up; the builder is empty afterwards.

        Args:
            dtype: The dtype of the elements; the builder's if it is not given.

        Raises:
            AerogelRuntimeError: If more entries were added than there is room for.
            IndexError: If an entry is outside the matrix.
        """
        rows, cols, values = self._triplets()
        dtype = self.dtype if dtype is None else dtype
        made = _of_triplets((self.num_rows, self.num_cols), dtype, rows, cols, values)
        self.count[0] = 0
        return made


def _check_format(storage_format: str) -> None:
    if storage_format not in ("col_major", "row_major"):
        raise ValueError(f"the storage format is col_major or row_major, not {storage_format!r}")


def _of_triplets(shape: tuple[int, int], dtype: DataType, rows: Any, cols: Any, values: Any) -> SparseMatrix:
    import numpy as np

    parts = [np.ascontiguousarray(part, np.int64).tobytes() for part in (rows, cols)]
    parts.append(_real(values, dtype, "a sparse matrix").tobytes())
    try:
        native = _native.NativeSparseMatrix.of_triplets(shape, dtype == ti.f64, *parts)
    except ValueError as e:
        raise IndexError(f"{e} a matrix of {shape[0]}x{shape[1]}") from None
    return SparseMatrix._wrap(native, shape, dtype)


class SparseMatrix:
    """A sparse matrix of f32 or f64.

    ``A + B``, ``A - B``, ``A * B`` (element by element), ``2 * A``, ``A @ B``, ``A @ x`` and ``A[i, j]`` do what they
    say; ``A[i, j] = v`` is fast only where there is an entry.

    Args:
        n: How many rows.
        m: How many columns; the number of rows by default.
        sm: A sparse matrix of SciPy's or another of ours, or a NumPy array with two axes, to copy.
        dtype: ``ti.f32`` or ``ti.f64``.
        storage_format: For compatibility.

    Raises:
        AerogelTypeError: If ``dtype`` is another type.
        ValueError: If there is no shape.
    """

    # NumPy leaves `array * matrix` to the matrix.
    __array_ufunc__ = None

    _native: _native.NativeSparseMatrix
    n: int
    m: int
    dtype: DataType

    def __init__(
        self,
        n: int | None = None,
        m: int | None = None,
        sm: Any = None,
        dtype: Any = ti.f32,
        storage_format: str = "col_major",
    ) -> None:
        import numpy as np

        _check_format(storage_format)
        if sm is None:
            if n is None:
                raise ValueError("a SparseMatrix needs the number of rows, or a matrix to copy")
            shape = (int(n), int(n if m is None else m))
            if min(shape) < 0:
                raise ValueError("sizes cannot be negative")
            none = np.zeros(0)
            made = _of_triplets(shape, dtype, none, none, none)
        elif isinstance(sm, SparseMatrix):
            made = sm.scaled(1.0)
        else:
            made = SparseMatrix.from_scipy(sm, dtype) if hasattr(sm, "tocsc") else SparseMatrix.from_numpy(sm, dtype)
        self._native, self.n, self.m, self.dtype = made._native, made.n, made.m, made.dtype

    @classmethod
    def _wrap(cls, native: _native.NativeSparseMatrix, shape: tuple[int, int], dtype: DataType) -> SparseMatrix:
        made = cls.__new__(cls)
        made._native, (made.n, made.m), made.dtype = native, shape, dtype
        return made

    @classmethod
    def from_scipy(cls, matrix: Any, dtype: Any = None) -> SparseMatrix:
        """A copy of a sparse matrix of SciPy's, in any of its formats.

        Args:
            dtype: The dtype of the elements; if it is not given, f32 for a matrix of float32 and f64 for others.

        Raises:
            AerogelTypeError: If its elements are complex.
        """
        import numpy as np

        columns = matrix.tocsc()
        if dtype is None:
            dtype = ti.f32 if columns.dtype == np.float32 else ti.f64
        parts = [np.ascontiguousarray(part, np.int64).tobytes() for part in (columns.indptr, columns.indices)]
        parts.append(_real(columns.data, dtype, "a sparse matrix").tobytes())
        shape = (int(columns.shape[0]), int(columns.shape[1]))
        return cls._wrap(_native.NativeSparseMatrix.of_columns(shape, dtype == ti.f64, *parts), shape, dtype)

    @classmethod
    def from_numpy(cls, array: Any, dtype: Any = None) -> SparseMatrix:
        """The elements of a NumPy array with two axes that are not zero.

        Raises:
            AerogelTypeError: If its elements are complex.
            ValueError: If it has another number of axes.
        """
        import numpy as np

        array = np.asarray(array)
        if array.ndim != 2:
            raise ValueError(f"a matrix has two axes, not {array.ndim}")
        if dtype is None:
            dtype = ti.f32 if array.dtype == np.float32 else ti.f64
        rows, cols = np.nonzero(array)
        return _of_triplets(array.shape, dtype, rows, cols, array[rows, cols])

    def _columns(self) -> tuple[Any, Any, Any]:
        import numpy as np

        types = (np.int64, np.int64, numpy_dtype(self.dtype))
        return tuple(np.frombuffer(part, ty) for part, ty in zip(self._native.columns(), types))  # type: ignore[return-value]

    def to_scipy(self) -> Any:
        """The matrix as a ``scipy.sparse.csc_matrix``.

        Raises:
            ImportError: If SciPy is not installed.
        """
        from scipy.sparse import csc_matrix

        pointers, indices, values = self._columns()
        return csc_matrix((values, indices, pointers), shape=self.shape)

    def to_numpy(self) -> Any:
        """All elements, those without entry as zeros, as a NumPy array of the shape (n, m)."""
        import numpy as np

        pointers, rows, values = self._columns()
        array = np.zeros(self.shape, numpy_dtype(self.dtype))
        array[rows, np.repeat(np.arange(self.m), np.diff(pointers))] = values
        return array

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return (self.n, self.m)

    @property
    def num_entries(self) -> int:
        """How many elements are stored."""
        return self._native.n_entries()

    def scaled(self, factor: float) -> SparseMatrix:
        """The matrix times a number."""
        return SparseMatrix._wrap(self._native.scaled(float(factor)), self.shape, self.dtype)

    def _same(self, other: Any) -> None:
        if self.shape != other.shape:
            raise AerogelAssertionError(f"Dimension mismatch between sparse matrices {self.shape} and {other.shape}")
        self._same_type(other)

    def _same_type(self, other: Any) -> None:
        if self.dtype != other.dtype:
            raise AerogelTypeError(f"the matrices have elements of {self.dtype} and {other.dtype}")

    def __add__(self, other: Any) -> SparseMatrix:
        if not isinstance(other, SparseMatrix):
            return NotImplemented
        self._same(other)
        return SparseMatrix._wrap(self._native.add(other._native), self.shape, self.dtype)

    def __iadd__(self, other: Any) -> SparseMatrix:
        self._native = (self + other)._native
        return self

    def __sub__(self, other: Any) -> SparseMatrix:
        if not isinstance(other, SparseMatrix):
            return NotImplemented
        self._same(other)
        return SparseMatrix._wrap(self._native.sub(other._native), self.shape, self.dtype)

    def __isub__(self, other: Any) -> SparseMatrix:
        self._native = (self - other)._native
        return self

    def __mul__(self, other: Any) -> SparseMatrix:
        if isinstance(other, SparseMatrix):
            self._same(other)
            return SparseMatrix._wrap(self._native.hadamard(other._native), self.shape, self.dtype)
        try:
            return self.scaled(float(other))
        except (TypeError, ValueError):
            return NotImplemented

    __rmul__ = __mul__

    def __neg__(self) -> SparseMatrix:
        return self.scaled(-1.0)

    def transpose(self) -> SparseMatrix:
        """Rows and columns exchanged."""
        return SparseMatrix._wrap(self._native.transposed(), (self.m, self.n), self.dtype)

    def __matmul__(self, other: Any) -> Any:
        import numpy as np

        if isinstance(other, SparseMatrix):
            if self.m != other.n:
                raise AerogelAssertionError(
                    f"Dimension mismatch between sparse matrices {self.shape} and {other.shape}"
                )
            self._same_type(other)
            native = self._native.matmul(other._native, n_threads())
            return SparseMatrix._wrap(native, (self.n, other.m), self.dtype)
        if isinstance(other, (ti.ScalarField, ti.ScalarNdarray)) and other.dtype.is_float:
            # As with NumPy's arrays, the vector takes the matrix's type.
            x = vector_of(other.to_numpy(), self.m, self.dtype, "the vector")
        else:
            x = vector_of(other, self.m, self.dtype, "the vector")
        product = np.frombuffer(self._native.apply(x.tobytes(), n_threads()), x.dtype)
        return like(other, product, self.dtype)

    def _place(self, indices: Any) -> tuple[int, int]:
        if not (isinstance(indices, tuple) and len(indices) == 2):
            raise IndexError("an element of a sparse matrix has two indices: A[i, j]")
        for at, n in zip(indices, self.shape):
            if not 0 <= at < n:
                raise IndexError(f"[{indices[0]}, {indices[1]}] is outside a matrix of {self.n}x{self.m}")
        return (int(indices[0]), int(indices[1]))

    def __getitem__(self, indices: tuple[int, int]) -> float:
        return self._native.get(*self._place(indices))

    def __setitem__(self, indices: tuple[int, int], value: float) -> None:
        self._native.set(*self._place(indices), float(value))

    def build_from_ndarray(self, ndarray: Any) -> None:
        """Replaces all elements by entries given as vectors of row, column and value; those of one place add up.

        Args:
            ndarray: A ``ti.Vector.ndarray(3, dtype, n)``.

        Raises:
            AerogelTypeError: If it is something else.
            IndexError: If an entry is outside the matrix.
        """
        if not (isinstance(ndarray, ti.VectorNdarray) and ndarray.n == 3 and len(ndarray.shape) == 1):
            raise AerogelTypeError("build_from_ndarray takes a ti.Vector.ndarray(3, dtype, n) of row, column and value")
        entries = ndarray.to_numpy()
        self._native = _of_triplets(self.shape, self.dtype, entries[:, 0], entries[:, 1], entries[:, 2])._native

    def mmwrite(self, filename: str | os.PathLike[str]) -> None:
        """Writes the matrix to a file in Matrix Market's coordinate format.

        Raises:
            OSError: If it cannot be written; there is no part of a file then.
        """
        import numpy as np

        pointers, rows, values = self._columns()
        cols = np.repeat(np.arange(self.m), np.diff(pointers))
        digits = 9 if self.dtype == ti.f32 else 17
        lines = ["%%MatrixMarket matrix coordinate real general", "%", f"{self.n} {self.m} {len(values)}"]
        lines += [f"{i + 1} {j + 1} {v:.{digits}g}" for i, j, v in zip(rows.tolist(), cols.tolist(), values.tolist())]
        write_whole(filename, ("\n".join(lines) + "\n").encode())

    @classmethod
    def mmread(cls, filename: str | os.PathLike[str], dtype: Any = ti.f32) -> SparseMatrix:
        """Reads a matrix from a file in Matrix Market's format.

        Raises:
            ImportError: If SciPy, which reads it, is not installed.
            ValueError: If the file is not in this format, or ends too early.
        """
        try:
            from scipy.io import mmread
        except ImportError as e:
            raise ImportError("reading Matrix Market files needs SciPy: pip install scipy") from e
        from scipy.sparse import csc_matrix

        name = os.fspath(filename)
        try:
            return cls.from_scipy(csc_matrix(mmread(name)), dtype)
        except (ValueError, TypeError, OverflowError) as e:
            raise ValueError(f"{name!r} is not a Matrix Market file of real numbers: {e}") from e

    def __str__(self) -> str:
        if self.n * self.m > _MOST_PRINTED:
            return f"SparseMatrix({self.n}x{self.m}, {self.num_entries} entries, {self.dtype})"
        cells = [[f"{v:g}" for v in row] for row in self.to_numpy()]
        width = max((len(cell) for row in cells for cell in row), default=0)
        return "\n".join("[" + ", ".join(cell.rjust(width) for cell in row) + "]" for row in cells)

    __repr__ = __str__
