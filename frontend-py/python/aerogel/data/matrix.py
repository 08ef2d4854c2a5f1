"""``ti.Matrix`` and ``ti.Vector``: small dense tensors of Python numbers.

Inside a kernel the same names make values of the kernel language; the frontend recognises the
classes by ``__aerogel_builtin__``. Here they hold plain Python numbers, so that importing Aerogel
does not import NumPy.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from numbers import Number
from typing import TYPE_CHECKING, Any

from aerogel import _native
from aerogel._dtypes import DataType, convert, dtype_of, numpy_dtype
from aerogel._outside import outside_kernels
from aerogel.errors import AerogelShapeError, AerogelTypeError

if TYPE_CHECKING:
    from typing_extensions import Self

    from aerogel.data.field import MatrixField
    from aerogel.data.ndarray import MatrixNdarray, VectorNdarray


def _within(k: int, size: int) -> int:
    """The index that ``k`` means, where negative ones count from the end."""
    if -size <= k < size:
        return k % size
    raise IndexError(f"index {k} is out of range for a size of {size}")


def _promoted(numbers: list) -> list:
    """The numbers in one type, as NumPy would choose it: floats if one is, else integers if one is."""
    kinds = set(map(type, numbers))
    for kind in kinds:
        if not issubclass(kind, Number):
            raise AerogelTypeError(f"the components of a matrix are numbers, not {kind.__name__}")
    if len(kinds) > 1 and kinds <= {int, float, bool}:
        return list(map(float if float in kinds else int, numbers))
    return numbers


_GROUPS = ("xyzw", "rgba", "stpq")


def _swizzle(name: str, n: int) -> list[int] | None:
    """The component numbers that a name like ``xy`` means for a vector of ``n`` components."""
    if len(name) <= 4:
        for group in _GROUPS:
            picked = [group.find(c) for c in name]
            if all(0 <= k < n for k in picked):
                return picked
    return None


def _plain(value: Any) -> Any:
    """A Python number for a Python or NumPy number."""
    if isinstance(value, (int, float)):
        return value
    item = getattr(value, "item", None)
    return item() if item is not None and getattr(value, "ndim", 0) == 0 else value


class _Rotation2d:
    """``ti.Matrix.rotation2d`` of older versions of Taichi, in kernels and outside."""

    def __get__(self, instance: Any, owner: Any = None) -> Callable[[Any], Any]:
        from aerogel._taichi import older

        older.warn("ti.Matrix.rotation2d", "ti.math.rotation2d")
        return older.rotation2d


class Matrix(_native.NativeElement):
    """A small matrix or vector of numbers.

    Args:
        arr: Rows of numbers, a flat list for a column, or a NumPy array.
        dt: The scalar type; by default integers stay integers and floats floats.

    >>> m = Matrix([[1, 2], [3, 4]])
    >>> m @ m
    [[ 7 10]
     [15 22]]
    """

    __aerogel_builtin__ = "Matrix"
    _aerogel_matrix = True
    __slots__ = ()
    __array_priority__ = 100.0
    rotation2d = _Rotation2d()

    def __new__(cls, arr: Any = None, *args: Any, **kwargs: Any) -> Self:  # noqa: D102
        # As Taichi made fields before 1.0.
        if isinstance(arr, int) or "shape" in kwargs:
            from aerogel._taichi import older

            return older.matrix(cls, arr, *args, **kwargs)
        made = _native.traced_call(cls, (arr, *args), kwargs)
        return _native.NativeElement.__new__(cls) if made is NotImplemented else made

    # For a type checker this is what `ti.math.vec3` is, which takes components.
    def __init__(self, arr: Any = None, *args: Any, **kwargs: Any) -> None:
        arr, dt = _given(arr, *args, **kwargs)
        if isinstance(arr, Matrix):
            arr = arr.to_list()
        elif hasattr(arr, "tolist"):
            arr = arr.tolist()
        if not isinstance(arr, (list, tuple)) or not arr:
            raise AerogelTypeError("a matrix is made from a list of numbers, or from a list of rows")
        rows = [r.to_list() if isinstance(r, Matrix) else (r.tolist() if hasattr(r, "tolist") else r) for r in arr]
        width, ndim = 1, 1
        if isinstance(rows[0], (list, tuple)):
            width, ndim = len(rows[0]), 2
            if any(not isinstance(r, (list, tuple)) or len(r) != width for r in rows):
                raise AerogelShapeError("the rows of a matrix must have the same length")
            data = [x for r in rows for x in r]
        else:
            if any(isinstance(r, (list, tuple)) for r in rows):
                raise AerogelShapeError("the rows of a matrix must have the same length")
            data = rows
        data = _promoted([_plain(x) for x in data])
        if dt is None:
            self._init(data, len(rows), width, ndim)
        else:
            dtype = dtype_of(dt)
            self._init([convert(dtype, x) for x in data], len(rows), width, ndim, dtype._aerogel_dtype)

    # Access.

    def _at(self, key: Any) -> int:
        if not isinstance(key, tuple):
            key = (key,)
        if len(key) != self.ndim:
            raise IndexError(f"expected {self.ndim} indices, got {len(key)}")
        at = 0
        for k, extent in zip(key, (self.n, self.m)):
            at = at * extent + _within(operator.index(k), extent)
        return at

    def _item(self, key: Any) -> Any:
        """What ``self[key]`` is for other keys than the integers of one number, which the base class finds."""
        keys = key if isinstance(key, tuple) else (key,)
        if any(isinstance(k, slice) for k in keys):
            return self._slice(keys)
        return self._data[self._at(key)]

    def _slice(self, keys: tuple) -> Any:
        if len(keys) != self.ndim:
            raise IndexError(f"expected {self.ndim} indices, got {len(keys)}")
        picked = [
            list(range(extent))[k] if isinstance(k, slice) else _within(operator.index(k), extent)
            for k, extent in zip(keys, (self.n, self.m))
        ]
        rows, cols = picked[0], picked[-1]
        if isinstance(rows, int):
            return Vector([self._data[rows * self.m + j] for j in cols]) if isinstance(cols, list) else self[keys]
        if self.ndim == 1:
            return Vector([self._data[i] for i in rows])
        if isinstance(cols, int):
            return Vector([self._data[i * self.m + cols] for i in rows])
        return Matrix([[self._data[i * self.m + j] for j in cols] for i in rows])

    def _set_item(self, key: Any, value: Any) -> None:
        """``self[key] = value`` for what the base class leaves: slices, and numbers that are not Python's own."""
        keys = key if isinstance(key, tuple) else (key,)
        if any(isinstance(k, slice) for k in keys):
            ranges = [
                range(e)[k] if isinstance(k, slice) else [_within(operator.index(k), e)]
                for k, e in zip(keys, (self.n, self.m))
            ]
            places = (
                [i for i in ranges[0]] if self.ndim == 1 else [i * self.m + j for i in ranges[0] for j in ranges[1]]
            )
            values = (
                value._data
                if isinstance(value, Matrix)
                else list(value)
                if hasattr(value, "__iter__")
                else [value] * len(places)
            )
            for at, v in zip(places, values):
                self._store(at, _plain(v))
            return
        self._store(self._at(key), _plain(value))

    def _attribute(self, name: str) -> Any:
        """What is no attribute, nor one component: several components, ``v.xy``."""
        if self.ndim == 1 and name[:1] != "_":
            picked = _swizzle(name, self.n)
            if picked is not None:
                return self._data[picked[0]] if len(picked) == 1 else Vector([self._data[k] for k in picked])
        if name == "T":
            from aerogel._taichi import older

            older.warn("A.T()", "A.transpose()")
            return self.transpose
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _set_attribute(self, name: str, value: Any) -> None:
        """``self.name = value`` for what the base class leaves."""
        picked = _swizzle(name, self.n) if self.ndim == 1 and name not in ("n", "m") else None
        if picked is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if len(picked) == 1:
            self._store(picked[0], _plain(value))
            return
        if len(set(picked)) < len(picked):
            raise AttributeError(f"{name!r} chooses a component twice: it cannot be assigned to")
        values = list(value)
        if len(values) != len(picked):
            raise ValueError(f"{name!r} takes {len(picked)} values, got {len(values)}")
        for at, v in zip(picked, values):
            self._store(at, _plain(v))

    def __len__(self) -> int:
        return self.n

    def __iter__(self) -> Iterator[Any]:
        return iter(self._data) if self.ndim == 1 else iter([Vector(r) for r in self.to_list()])

    def get_shape(self) -> tuple[int, ...]:
        """The shape: ``(n,)`` for a vector, ``(n, m)`` for a matrix."""
        return (self.n,) if self.ndim == 1 else (self.n, self.m)

    @property
    def entries(self) -> Any:
        """The components as a NumPy array."""
        return self.to_numpy()

    def to_list(self) -> list:
        """The components as a list, or as a list of rows."""
        if self.ndim == 1:
            return list(self._data)
        return [self._data[i * self.m : (i + 1) * self.m] for i in range(self.n)]

    def to_numpy(self, keep_dims: bool = False) -> Any:
        """The components as a new NumPy array."""
        import numpy as np

        dtype = numpy_dtype(dtype_of(self._aerogel_matrix_dtype)) if self._aerogel_matrix_dtype else None
        array = np.array(self.to_list(), dtype=dtype)
        return array.reshape(self.n, 1) if keep_dims and self.ndim == 1 else array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if copy is False:
            raise ValueError("the components of a matrix are copied for NumPy; leave out copy=False")
        array = self.to_numpy()
        return array if dtype is None else array.astype(dtype)

    def __str__(self) -> str:
        return str(self.to_numpy())

    __repr__ = __str__

    def __reduce__(self) -> tuple:
        return (type(self), (self.to_list(), self._aerogel_matrix_dtype))

    def __copy__(self) -> Matrix:
        return self._like(list(self._data))

    def __deepcopy__(self, memo: Any) -> Matrix:
        return self._like(list(self._data))

    # Operators.

    def _like(self, data: list) -> Matrix:
        return _make(data, self.n, self.m, self.ndim)

    def _map(self, f: Callable[[Any], Any]) -> Matrix:
        return self._like([f(x) for x in self._data])

    def _zip(self, other: Any, f: Callable[[Any, Any], Any]) -> Any:
        if isinstance(other, (int, float)):
            return self._like([f(x, other) for x in self._data])
        if not isinstance(other, Matrix):
            if isinstance(other, (list, tuple)):
                other = Matrix(other)
            elif getattr(other, "ndim", None) == 0:
                return self._zip(other.item(), f)
            elif hasattr(other, "tolist"):
                other = Matrix(other)
            else:
                return NotImplemented
        if (other.n, other.m) != (self.n, self.m):
            raise ValueError(f"the shapes {self.get_shape()} and {other.get_shape()} do not match")
        return self._like([f(x, y) for x, y in zip(self._data, other._data)])

    def __add__(self, other: Any) -> Any:
        return self._zip(other, operator.add)

    def __radd__(self, other: Any) -> Any:
        return self._zip(other, lambda x, y: y + x)

    def __sub__(self, other: Any) -> Any:
        return self._zip(other, operator.sub)

    def __rsub__(self, other: Any) -> Any:
        return self._zip(other, lambda x, y: y - x)

    def __mul__(self, other: Any) -> Any:
        return self._zip(other, operator.mul)

    def __rmul__(self, other: Any) -> Any:
        return self._zip(other, lambda x, y: y * x)

    def __truediv__(self, other: Any) -> Any:
        return self._zip(other, _divide)

    def __rtruediv__(self, other: Any) -> Any:
        return self._zip(other, lambda x, y: _divide(y, x))

    def __floordiv__(self, other: Any) -> Any:
        return self._zip(other, operator.floordiv)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._zip(other, lambda x, y: y // x)

    def __mod__(self, other: Any) -> Any:
        return self._zip(other, operator.mod)

    def __rmod__(self, other: Any) -> Any:
        return self._zip(other, lambda x, y: y % x)

    def __pow__(self, other: Any) -> Any:
        return self._zip(other, operator.pow)

    def __rpow__(self, other: Any) -> Any:
        return self._zip(other, lambda x, y: y**x)

    def __and__(self, other: Any) -> Any:
        return self._zip(other, operator.and_)

    __rand__ = __and__

    def __or__(self, other: Any) -> Any:
        return self._zip(other, operator.or_)

    __ror__ = __or__

    def __xor__(self, other: Any) -> Any:
        return self._zip(other, operator.xor)

    __rxor__ = __xor__

    def __lshift__(self, other: Any) -> Any:
        return self._zip(other, operator.lshift)

    def __rshift__(self, other: Any) -> Any:
        return self._zip(other, operator.rshift)

    def __neg__(self) -> Matrix:
        return self._map(operator.neg)

    def __pos__(self) -> Matrix:
        return self._map(operator.pos)

    def __abs__(self) -> Matrix:
        return self._map(abs)

    def __invert__(self) -> Matrix:
        return self._map(operator.invert)

    def __lt__(self, other: Any) -> Any:
        return self._zip(other, operator.lt)

    def __le__(self, other: Any) -> Any:
        return self._zip(other, operator.le)

    def __gt__(self, other: Any) -> Any:
        return self._zip(other, operator.gt)

    def __ge__(self, other: Any) -> Any:
        return self._zip(other, operator.ge)

    def __eq__(self, other: object) -> Any:  # type: ignore[override]
        return self._zip(other, operator.eq)

    def __ne__(self, other: object) -> Any:  # type: ignore[override]
        return self._zip(other, operator.ne)

    __hash__ = object.__hash__

    def __matmul__(self, other: Any) -> Any:
        other = other if isinstance(other, Matrix) else Matrix(other)
        # A vector on the left is a row.
        n, inner = (1, self.n) if self.ndim == 1 else (self.n, self.m)
        if inner != other.n:
            raise AerogelShapeError(f"cannot multiply the shapes {self.get_shape()} and {other.get_shape()}")
        data = [
            sum(self._data[i * inner + k] * other._data[k * other.m + j] for k in range(inner))
            for i in range(n)
            for j in range(other.m)
        ]
        if self.ndim == 1:
            return data[0] if other.ndim == 1 else Vector(data)
        return _make(data, n, other.m, other.ndim)

    # Methods.

    def cast(self, dtype: Any) -> Matrix:
        """The components converted to a scalar type."""
        dtype = dtype_of(dtype)
        data = [convert(dtype, x) for x in self._data]
        return _make(data, self.n, self.m, self.ndim, dtype._aerogel_dtype)

    def fill(self, val: Any) -> None:
        """Sets every component to a number."""
        for at in range(len(self._data)):
            self._store(at, _plain(val))

    def sum(self) -> Any:
        """The sum of the components."""
        return sum(self._data)

    def max(self) -> Any:
        """The largest component."""
        return max(self._data)

    def min(self) -> Any:
        """The smallest component."""
        return min(self._data)

    def any(self) -> bool:
        """Whether some component is not zero."""
        return any(self._data)

    def all(self) -> bool:
        """Whether no component is zero."""
        return all(self._data)

    def norm_sqr(self) -> Any:
        """The sum of the squares of the components."""
        return sum(x * x for x in self._data)

    def norm(self, eps: float = 0) -> float:
        """The square root of the sum of the squares and ``eps``."""
        return math.sqrt(self.norm_sqr() + eps)

    def norm_inv(self, eps: float = 0) -> float:
        """One over :meth:`norm`."""
        return 1.0 / self.norm(eps)

    def normalized(self, eps: float = 0) -> Matrix:
        """The components divided by ``norm() + eps``."""
        length = self.norm() + eps
        return self._map(lambda x: _divide(x, length))

    def dot(self, other: Any) -> Any:
        """The inner product of two vectors."""
        other = other if isinstance(other, Matrix) else Vector(other)
        if self.ndim != 1 or other.get_shape() != self.get_shape():
            raise AerogelShapeError("dot needs two vectors of the same length")
        return sum(x * y for x, y in zip(self._data, other._data))

    def cross(self, other: Any) -> Any:
        """The cross product of two vectors of 3, or of 2, components."""
        other = other if isinstance(other, Matrix) else Vector(other)
        a, b = self._data, other._data
        if self.ndim != 1 or other.ndim != 1:
            raise AerogelShapeError("cross needs two vectors, not matrices")
        if self.n == other.n == 3:
            return Vector([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])
        if self.n == other.n == 2:
            return a[0] * b[1] - a[1] * b[0]
        raise AerogelShapeError("cross needs two vectors of 2 or 3 components")

    def outer_product(self, other: Any) -> Matrix:
        """The matrix of all products of a component of this vector and one of the other."""
        other = other if isinstance(other, Matrix) else Vector(other)
        if self.ndim != 1 or other.ndim != 1:
            raise AerogelShapeError("outer_product needs two vectors")
        return Matrix([[x * y for y in other._data] for x in self._data])

    def transpose(self) -> Matrix:
        """The matrix with rows and columns exchanged."""
        if self.ndim == 1:
            return Matrix([list(self._data)])
        return Matrix([list(c) for c in zip(*self.to_list())])

    def trace(self) -> Any:
        """The sum of the diagonal."""
        self._square("trace")
        return sum(self._data[i * self.m + i] for i in range(self.n))

    def determinant(self) -> Any:
        """The determinant of a square matrix."""
        self._square("determinant")
        return _determinant(self.to_list())

    def inverse(self) -> Matrix:
        """The inverse of a square matrix."""
        self._square("inverse")
        rows = self.to_list()
        n = self.n
        det = _determinant(rows)
        cofactors = [
            [
                (-1) ** (i + j) * _determinant([r[:j] + r[j + 1 :] for k, r in enumerate(rows) if k != i])
                for i in range(n)
            ]
            for j in range(n)
        ]
        return Matrix([[_divide(c, det) for c in r] for r in cofactors])

    def _square(self, what: str) -> None:
        if self.ndim != 2 or self.n != self.m:
            raise AerogelShapeError(f"{what} needs a square matrix, not the shape {self.get_shape()}")

    # Makers.

    @staticmethod
    def zero(dt: Any, n: int, m: int | None = None) -> Matrix:
        """A vector of ``n`` or an ``n`` by ``m`` matrix of zeros."""
        return _filled(dt, 0, n, m)

    @staticmethod
    def one(dt: Any, n: int, m: int | None = None) -> Matrix:
        """A vector of ``n`` or an ``n`` by ``m`` matrix of ones."""
        return _filled(dt, 1, n, m)

    @staticmethod
    def unit(n: int, i: int, dt: Any = None) -> Matrix:
        """The ``i``-th basis vector of ``n`` components."""
        return Vector([int(k == i) for k in range(n)], dt if dt is not None else int)

    @staticmethod
    def identity(dt: Any, n: int) -> Matrix:
        """The ``n`` by ``n`` identity."""
        return Matrix([[int(i == j) for j in range(n)] for i in range(n)], dt)

    @staticmethod
    def diag(dim: int, val: Any) -> Matrix:
        """The ``dim`` by ``dim`` matrix with ``val`` on its diagonal."""
        return Matrix([[val if i == j else 0 for j in range(dim)] for i in range(dim)])

    @staticmethod
    def rows(rows: Sequence[Any]) -> Matrix:
        """The matrix with these rows."""
        return Matrix([list(r) for r in rows])

    @staticmethod
    def cols(cols: Sequence[Any]) -> Matrix:
        """The matrix with these columns."""
        return Matrix([list(c) for c in cols]).transpose()

    @staticmethod
    @outside_kernels
    def field(
        n: int, m: int, dtype: Any = None, shape: Any = None, *, ndim: int | None = None, **kwargs: Any
    ) -> MatrixField:
        """A field of ``n`` by ``m`` matrices, or with ``ndim=1`` and ``m=1`` of vectors; see :func:`aerogel.field`.

        Raises:
            ValueError: ``ndim`` is neither 1 nor 2, or 1 for matrices of several columns.
        """
        from aerogel.data.field import matrix_field

        if dtype is None:
            from aerogel._taichi import older

            dtype = older.dtype_named_dt("Matrix", dtype, kwargs)
        if ndim not in (None, 1, 2) or ndim == 1 and m != 1:
            raise ValueError(
                f"the elements of a field are vectors (ndim=1, m=1) or matrices (ndim=2), not ndim={ndim}, m={m}"
            )
        return matrix_field(n, m, ndim or 2, dtype, shape, **kwargs)

    if not TYPE_CHECKING:

        @staticmethod
        @outside_kernels
        def var(n: int, m: int, dt: Any, shape: Any = None, **kwargs: Any) -> Any:
            """A field, as versions of Taichi before 0.7 made it."""
            from aerogel._taichi import older

            return older.matrix_var(Matrix, (n, m), dt, shape, **kwargs)

        @staticmethod
        @outside_kernels
        def tensor(n: int, m: int, dtype: Any, shape: Any, *, backend: Any = 1, **kwargs: Any) -> Any:
            """A field or an array, as Quadrants makes it."""
            from aerogel._taichi.storage import allocate

            return allocate(Matrix, (n, m, dtype), shape, backend, None, **kwargs)

    @staticmethod
    @outside_kernels
    def ndarray(
        n: int, m: int, dtype: Any, shape: Any, needs_grad: bool = False, needs_dual: bool = False
    ) -> MatrixNdarray:
        """An array of ``n`` by ``m`` matrices; see :func:`aerogel.ndarray`."""
        from aerogel.data.ndarray import matrix_ndarray

        return matrix_ndarray(n, m, 2, dtype, shape, needs_grad, needs_dual)


class Vector(Matrix):
    """A small vector of numbers.

    >>> v = Vector([3.0, 4.0])
    >>> v.norm(), v.yx
    (5.0, [4. 3.])
    """

    __aerogel_builtin__ = "Vector"
    __slots__ = ()

    def __init__(self, arr: Any = None, *args: Any, **kwargs: Any) -> None:
        super().__init__(arr, *args, **{key: kwargs[key] for key in ("dt", "rows", "cols") if key in kwargs})
        if self.ndim != 1:
            if self.m != 1:
                raise AerogelShapeError("a vector is made from a flat list of numbers")
            self._init(self._data, self.n, 1, 1, self._aerogel_matrix_dtype)

    @staticmethod
    @outside_kernels
    def field(n: int, dtype: Any = None, shape: Any = None, **kwargs: Any) -> MatrixField:  # type: ignore[override]
        """A field of vectors of ``n`` components; see :func:`aerogel.field`."""
        from aerogel.data.field import matrix_field

        if dtype is None:
            from aerogel._taichi import older

            dtype = older.dtype_named_dt("Vector", dtype, kwargs)
        return matrix_field(n, 1, 1, dtype, shape, **kwargs)

    if not TYPE_CHECKING:

        @staticmethod
        @outside_kernels
        def var(n: int, dt: Any, shape: Any = None, **kwargs: Any) -> Any:
            """A field, as versions of Taichi before 0.7 made it."""
            from aerogel._taichi import older

            return older.matrix_var(Vector, (n,), dt, shape, **kwargs)

        @staticmethod
        @outside_kernels
        def tensor(n: int, dtype: Any, shape: Any, *, backend: Any = 1, **kwargs: Any) -> Any:
            """A field or an array, as Quadrants makes it."""
            from aerogel._taichi.storage import allocate

            return allocate(Vector, (n, dtype), shape, backend, None, **kwargs)

    @staticmethod
    @outside_kernels
    def ndarray(  # type: ignore[override]
        n: int, dtype: Any, shape: Any, needs_grad: bool = False, needs_dual: bool = False
    ) -> VectorNdarray:
        """An array of vectors of ``n`` components; see :func:`aerogel.ndarray`."""
        from aerogel.data.ndarray import matrix_ndarray

        return matrix_ndarray(n, 1, 1, dtype, shape, needs_grad, needs_dual)


def _given(arr: Any, dt: Any = None, *, rows: Any = None, cols: Any = None) -> tuple[Any, Any]:
    """The numbers and the type that a matrix is made from."""
    if rows is not None or cols is not None:
        from aerogel._taichi import older

        arr = older.rows_of(rows, cols)
    return arr, dt


def _make(data: list, n: int, m: int, ndim: int, dtype: str | None = None) -> Matrix:
    """A matrix of plain Python numbers."""
    out = _native.NativeElement.__new__(Vector if ndim == 1 else Matrix)
    out._init(data, n, m, ndim, dtype)
    return out


_native.set_element_classes(Matrix, Vector)


def _divide(x: Any, y: Any) -> Any:
    """True division with the IEEE answer where Python raises."""
    try:
        return x / y
    except ZeroDivisionError:
        return math.nan if x == 0 or x != x else math.copysign(math.inf, x) * math.copysign(1.0, y)


def _determinant(rows: list[list]) -> Any:
    if not rows:
        return 1
    if len(rows) == 1:
        return rows[0][0]
    return sum((-1) ** j * rows[0][j] * _determinant([r[:j] + r[j + 1 :] for r in rows[1:]]) for j in range(len(rows)))


def _filled(dt: DataType | Any, value: int, n: int, m: int | None) -> Matrix:
    return Vector([value] * n, dt) if m is None else Matrix([[value] * m for _ in range(n)], dt)
