"""Complex tensors: two float tensors, real and imaginary parts, with the interface of tensors.

>>> import aerogel as ti
>>> ti.init(arch=ti.cpu, log_level="error")
>>> z = ti.tensor.asarray([3 + 4j, 1j])
>>> z.dtype, ti.tensor.abs(z).tolist(), (z * z.conj()).real.tolist()
(complex64, [5.0, 1.0], [25.0, 1.0])
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any, TypeVar

from aerogel import _native
from aerogel._dtypes import DataType, dtype_of, f32, f64, u1
from aerogel.tensor import _types

if TYPE_CHECKING:
    from collections.abc import Callable

    from aerogel.tensor._tensor import Tensor

Function = TypeVar("Function", bound="Callable[..., Any]")


class ComplexType:
    """A complex dtype: the dtype of its real and imaginary parts."""

    is_float = False
    kind = "c"

    def __init__(self, name: str, part: DataType) -> None:
        self.name = name
        self.part = part

    @property
    def __numpy_dtype__(self) -> Any:
        import numpy as np

        return np.dtype(self.name)

    @property
    def itemsize(self) -> int:
        """How many bytes an element takes."""
        return 2 * self.part.itemsize

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> str:
        return self.name


complex64 = ComplexType("complex64", f32)
complex128 = ComplexType("complex128", f64)


def complex_type(dtype: Any) -> ComplexType | None:
    """The type of complex numbers that this names, if it names one."""
    if isinstance(dtype, ComplexType):
        return dtype
    if dtype is complex:
        return of_part(_types.default_float())
    name = dtype if isinstance(dtype, str) else getattr(dtype, "name", None) or getattr(dtype, "__name__", None)
    return {"complex64": complex64, "complex128": complex128}.get(name) if isinstance(name, str) else None


def of_part(part: DataType) -> ComplexType:
    """The type of complex numbers whose parts hold these floats."""
    return complex128 if part is f64 else complex64


def is_complex(value: Any) -> bool:
    """Whether this is a complex number, or tensor, or array of such."""
    if getattr(type(value), "_aerogel_tensor", False):
        return isinstance(value, ComplexTensor)
    return isinstance(value, complex) or getattr(getattr(value, "dtype", None), "kind", "") == "c"


def _planes(value: Any) -> tuple[Any, Any]:
    """The parts of an operand; those of Python's numbers stay numbers."""
    from aerogel.tensor._tensor import asarray, is_number

    if isinstance(value, ComplexTensor):
        return value.real, value.imag
    if is_number(value):
        return float(value), 0.0
    if isinstance(value, complex) and not hasattr(value, "dtype"):
        return value.real, value.imag
    out = asarray(value)
    return _planes(out) if isinstance(out, ComplexTensor) else (_part(out), 0.0)


def _part(x: Tensor) -> Tensor:
    """A real tensor as a part of complex numbers."""
    return x if x.dtype in (f32, f64) else x.astype(f32 if x.dtype.is_float else _types.default_float())


def joined(real: Any, imag: Any) -> ComplexTensor:
    """A complex tensor of two parts, broadcast to one shape."""
    from aerogel.tensor._tensor import Tensor, constant, operands

    real, imag = operands(real, imag, to_float=True)
    if real.dtype not in (f32, f64):
        real, imag = real.astype(f32), imag.astype(f32)
    if real._native.shape != imag._native.shape:
        # `where` broadcasts both, whether sizes are known or not.
        yes = constant(True, u1)._native
        real, imag = (Tensor(yes.select(a._native, b._native)) for a, b in ((real, imag), (imag, real)))
    return ComplexTensor(real, imag)


def by_planes(function: Function) -> Function:
    """A function that does the same with both parts of complex numbers."""

    @functools.wraps(function)
    def either(x: Any, *args: Any, **kwargs: Any) -> Any:
        # Most are real tensors, which is seen fastest so.
        if isinstance(x, ComplexTensor) or (not hasattr(x, "_native") and is_complex(x)):
            real, imag = _planes(x)
            return ComplexTensor(function(real, *args, **kwargs), function(imag, *args, **kwargs))
        return function(x, *args, **kwargs)

    return either  # type: ignore[return-value]


def of_lists(function: Function) -> Function:
    """The same for a function of several tensors in a list."""

    @functools.wraps(function)
    def either(arrays: Any, *args: Any, **kwargs: Any) -> Any:
        given = list(arrays)
        if any(is_complex(a) for a in given):
            parts = [joined(*_planes(a)) for a in given]
            planes = ([p.real for p in parts], [p.imag for p in parts])
            return ComplexTensor(*(function(plane, *args, **kwargs) for plane in planes))
        return function(given, *args, **kwargs)

    return either  # type: ignore[return-value]


class ComplexTensor:
    """An n-dimensional array of complex numbers: two float tensors, evaluated lazily."""

    _aerogel_tensor = True
    __slots__ = ("_imag", "_real", "__weakref__")
    __array_priority__ = 1001

    def __init__(self, real: Tensor, imag: Tensor) -> None:
        self._real = real
        self._imag = imag

    @property
    def _native(self) -> Any:
        """The native side of a real tensor; a function that reads it does not support complex tensors."""
        name = sys._getframe(1).f_code.co_name
        what = "this" if name.startswith(("_", "<")) else f"`{name}`"
        raise TypeError(f"{what} takes real numbers, not `{self.dtype}`")

    @property
    def real(self) -> Tensor:
        """The real parts."""
        return self._real

    @property
    def imag(self) -> Tensor:
        """The imaginary parts."""
        return self._imag

    # Gradients: of a real loss, dL/d(re) + i dL/d(im).

    @property
    def requires_grad(self) -> bool:
        """Whether the tensor has a gradient, or passes gradients to other tensors; may be set."""
        return self._real.requires_grad or self._imag.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, value: bool = True) -> ComplexTensor:
        """Sets whether ``backward`` computes the gradient by this tensor; returns the tensor."""
        if value and not self.requires_grad:
            # Nobody else holds these.
            self._real, self._imag = self._real._as_it_is(), self._imag._as_it_is()
        self._real.requires_grad_(value)
        self._imag.requires_grad_(value)
        return self

    @property
    def grad(self) -> ComplexTensor | None:
        """The sum of the gradients that ``backward`` has computed; ``None`` before. May be set."""
        from aerogel.tensor._creation import zeros_like

        real, imag = self._real.grad, self._imag.grad
        if real is None and imag is None:
            return None
        zeros = zeros_like(self._real)
        return ComplexTensor(zeros if real is None else real, zeros if imag is None else imag)

    @grad.setter
    def grad(self, value: Any) -> None:
        real, imag = (None, None) if value is None else _planes(value)
        self._real.grad, self._imag.grad = real, imag

    def detach(self) -> ComplexTensor:
        """A tensor with the same values, through which no gradient passes."""
        return ComplexTensor(self._real.detach(), self._imag.detach())

    @property
    def dtype(self) -> ComplexType:
        """The dtype: ``complex64`` or ``complex128``."""
        return of_part(self._real.dtype)

    @property
    def shape(self) -> tuple[Any, ...]:
        """The size of each axis."""
        return self._real.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._real.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._real.size

    @property
    def device(self) -> str:
        """The device of the values."""
        return "cpu"

    def to_device(self, device: Any, /, *, stream: Any = None) -> ComplexTensor:
        """The tensor on a device; the only device is ``"cpu"``."""
        self._real.to_device(device)
        return self

    @property
    def T(self) -> ComplexTensor:
        """The transpose: the axes in reverse order."""
        return self._each(lambda x: x.T)

    @property
    def mT(self) -> ComplexTensor:
        """The tensor with the last two axes exchanged."""
        return self._each(lambda x: x.mT)

    def _each(self, f: Callable[[Tensor], Tensor]) -> ComplexTensor:
        return ComplexTensor(f(self._real), f(self._imag))

    # Numbers.

    def realize(self) -> ComplexTensor:
        """Evaluates the tensor, unless its values are cached."""
        _native.realise_tensors([self._real._native, self._imag._native])
        return self

    def numpy(self) -> Any:
        """A copy of the values as a NumPy array."""
        self._real._has_numbers("`numpy` takes")
        self._imag._has_numbers("`numpy` takes")
        return self._copied()

    def _copied(self) -> Any:
        import numpy as np

        self.realize()
        out = np.empty(self.shape, self.dtype.name)
        out.real, out.imag = self._real._copied(), self._imag._copied()
        return out

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if copy is False:
            raise ValueError("real and imaginary parts are separate, and copied for NumPy; leave out copy=False")
        return self.numpy() if dtype is None else self.numpy().astype(dtype, copy=False)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """The values for another package, copied: real and imaginary parts lie apart."""
        if copy is False:
            raise BufferError("real and imaginary parts are separate, and copied for DLPack; leave out copy=False")
        return self.numpy().__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __array_namespace__(self, /, *, api_version: str | None = None) -> Any:
        return self._real.__array_namespace__(api_version=api_version)

    def item(self) -> complex:
        """The value of a tensor with one element, as a Python number."""
        return complex(self._real.item(), self._imag.item())

    def tolist(self) -> Any:
        """The values as nested lists."""
        return self._copied().tolist()

    def __complex__(self) -> complex:
        return self.item()

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError(f"`bool` of a tensor of shape {self.shape} is ambiguous: use `any` or `all`")
        return self.item() != 0

    def __float__(self) -> float:
        raise TypeError("a complex number is not a float: take `x.real` or `abs(x)`")

    def __repr__(self) -> str:
        if not self._real.is_numbers:
            return f"<tensor of shape {self.shape}, dtype={self.dtype}>"
        import numpy as np

        return f"tensor({np.array2string(self._copied(), separator=', ', prefix='tensor(')}, dtype={self.dtype})"

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec and self.size == 1 else format(str(self), spec)

    def __reduce__(self) -> Any:
        return (ComplexTensor, (self._real, self._imag))

    def __len__(self) -> int:
        return len(self._real)

    def __iter__(self) -> Any:
        return (self[k] for k in range(len(self)))

    __hash__ = object.__hash__

    # Other forms.

    def conj(self) -> ComplexTensor:
        """With the other sign of the imaginary parts."""
        return ComplexTensor(self._real, -self._imag)

    def astype(self, dtype: Any, *, copy: bool = True) -> ComplexTensor:
        """The elements in another type of complex numbers."""
        wanted = complex_type(dtype)
        if wanted is None:
            raise TypeError(f"complex numbers do not convert to `{dtype_of(dtype)}`: take `x.real` or `abs(x)`")
        return self._each(lambda x: x.astype(wanted.part))

    def copy(self) -> ComplexTensor:
        """A copy of the tensor."""
        return self._each(lambda x: x.copy())

    def reshape(self, *shape: Any) -> ComplexTensor:
        """The elements, in row-major order, in another shape; one size may be -1."""
        return self._each(lambda x: x.reshape(*shape))

    def permute(self, *axes: Any) -> ComplexTensor:
        """The axes in another order."""
        return self._each(lambda x: x.permute(*axes))

    def transpose(self, *axes: Any) -> ComplexTensor:
        """The axes in another order; without one in the opposite order."""
        return self._each(lambda x: x.transpose(*axes))

    def flatten(self) -> ComplexTensor:
        """The elements row by row along one axis."""
        return self.reshape(-1)

    def unsqueeze(self, axis: int = -1) -> ComplexTensor:
        """With a new axis of size 1."""
        return self._each(lambda x: x.unsqueeze(axis))

    def squeeze(self, axis: Any = None) -> ComplexTensor:
        """Without axes of size 1."""
        return self._each(lambda x: x.squeeze(axis))

    def any(self, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        """Whether any element is nonzero."""
        return (self != 0).any(axis, keepdims=keepdims)

    def all(self, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        """Whether all elements are nonzero."""
        return (self != 0).all(axis, keepdims=keepdims)

    def nonzero(self) -> tuple[Tensor, ...]:
        """The indices of the nonzero elements, one tensor for each axis."""
        return (self != 0).nonzero()

    def round(self, decimals: int = 0) -> ComplexTensor:
        """Both parts rounded to the nearest, halves to the even one; ``decimals`` behind the point."""
        return self._each(lambda x: x.round(decimals))

    def __getitem__(self, key: Any) -> ComplexTensor:
        return self._each(lambda x: x[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        real, imag = _planes(value)
        self._real, self._imag = self._real.copy(), self._imag.copy()
        self._real[key], self._imag[key] = real, imag

    # Arithmetic.

    def __neg__(self) -> ComplexTensor:
        return self._each(lambda x: -x)

    def __pos__(self) -> ComplexTensor:
        return self.copy()

    def __add__(self, other: Any) -> ComplexTensor:
        re, im = _planes(other)
        return joined(self._real + re, self._imag + im)

    __radd__ = __iadd__ = __add__

    def __sub__(self, other: Any) -> ComplexTensor:
        re, im = _planes(other)
        return joined(self._real - re, self._imag - im)

    __isub__ = __sub__

    def __rsub__(self, other: Any) -> ComplexTensor:
        re, im = _planes(other)
        return joined(re - self._real, im - self._imag)

    def __mul__(self, other: Any) -> ComplexTensor:
        re, im = _planes(other)
        if is_complex(other):
            return joined(self._real * re - self._imag * im, self._real * im + self._imag * re)
        return joined(self._real * re, self._imag * re)

    __rmul__ = __imul__ = __mul__

    def __eq__(self, other: Any) -> Tensor:  # type: ignore[override]
        re, im = _planes(other)
        return (self._real == re) & (self._imag == im)

    def __ne__(self, other: Any) -> Tensor:  # type: ignore[override]
        return ~(self == other)

    if TYPE_CHECKING:
        # Written in `_complex_arithmetic`.
        def __abs__(self) -> Tensor: ...
        def __truediv__(self, other: Any) -> ComplexTensor: ...
        def __rtruediv__(self, other: Any) -> ComplexTensor: ...
        def __pow__(self, other: Any) -> ComplexTensor: ...
        def __rpow__(self, other: Any) -> ComplexTensor: ...
        def __matmul__(self, other: Any) -> ComplexTensor: ...
        def __rmatmul__(self, other: Any) -> ComplexTensor: ...


#: Functions of one complex number, by the names under which operations are recorded (`_complex_arithmetic`).
UNARY: dict[str, Any] = {}
#: Functions of two, of which one at least is complex.
BINARY: dict[str, Any] = {}


def unary(name: str, z: ComplexTensor) -> Any:
    """A function of complex numbers."""
    if name not in UNARY:
        raise TypeError(f"`{name}` takes real numbers, not `{z.dtype}`")
    return UNARY[name](z)


def binary(name: str, a: Any, b: Any) -> Any:
    """A function of two operands, one of them of complex numbers."""
    if name not in BINARY:
        raise TypeError(f"`{name}` takes real numbers, not complex ones")
    a, b = (joined(*_planes(x)) if is_complex(x) and hasattr(x, "dtype") else x for x in (a, b))
    if not isinstance(a, ComplexTensor) and not isinstance(b, ComplexTensor):
        # A tensor and a number of Python's.
        a = joined(*_planes(a)) if hasattr(a, "shape") else a
        b = joined(*_planes(b)) if hasattr(b, "shape") else b
    return BINARY[name](a, b)


def real(x: Any, /) -> Tensor:
    """The real parts."""
    from aerogel.tensor._tensor import asarray

    return asarray(x).real


def imag(x: Any, /) -> Tensor:
    """The imaginary parts; zeros of real numbers."""
    from aerogel.tensor._tensor import asarray

    return asarray(x).imag


def conj(x: Any, /) -> Any:
    """With the other sign of the imaginary parts."""
    from aerogel.tensor._tensor import asarray

    return asarray(x).conj()


def of_numpy(array: Any, dtype: Any) -> ComplexTensor:
    """The numbers of an array of complex numbers, copied."""
    import numpy as np

    from aerogel.tensor._tensor import asarray

    kind = complex_type(dtype) if dtype is not None else complex64 if array.dtype.itemsize <= 8 else complex128
    if kind is None:
        raise TypeError(f"complex numbers do not convert to `{dtype_of(dtype)}`")
    parts = (np.ascontiguousarray(p).reshape(array.shape) for p in (array.real, array.imag))
    return ComplexTensor(*(asarray(p, dtype=kind.part) for p in parts))
