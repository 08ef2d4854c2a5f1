"""Parameters: tensors that are trained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aerogel._dtypes import dtype_of
from aerogel.tensor import _types
from aerogel.tensor._backward import renew
from aerogel.tensor._tensor import Tensor, asarray, tracing

if TYPE_CHECKING:
    from collections.abc import Callable


class Parameter(Tensor):
    """A tensor that requires a gradient: which optimizers change.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> ti.nn.Parameter([1.0, 2.0])
    Parameter([1., 2.], dtype=f32)
    >>> w = ti.nn.Parameter(shape=(-1, 3), init=ti.nn.init.zeros)
    >>> w.infer(2, 3).shape
    (2, 3)

    Args:
        data: Its values: a tensor, an array or a list of floats.
        requires_grad: Whether gradients are taken.
        shape: Instead of ``data``, the size of each axis. Sizes of -1 are inferred when the module is called first
            (``infer``), and the parameter has no values before that.
        init: A function of ``nn.init`` without an underscore, or any function of a shape and a keyword ``dtype`` that
            returns a tensor. Needed with ``shape``.
        dtype: The dtype; without one that of ``data``, or the default float.

    Raises:
        TypeError: If the dtype is no float type, or if neither ``data`` nor ``shape`` and ``init`` are given.
    """

    _is_parameter = True

    def __new__(cls, data: Any = None, *args: Any, shape: Any = None, **kwargs: Any) -> Any:
        """A parameter, or one that waits for its shape."""
        is_open = shape is not None and any(isinstance(n, int) and n == -1 for n in shape)
        kind: Any = LazyParameter if is_open and cls is Parameter else cls
        return super().__new__(kind)

    def __init__(
        self,
        data: Any = None,
        requires_grad: bool = True,
        *,
        shape: Any = None,
        init: Callable[..., Tensor] | None = None,
        dtype: Any = None,
    ) -> None:
        if data is None:
            if shape is None or init is None:
                raise TypeError("`Parameter` takes values, or a `shape` and a function `init` that computes them")
            data = init(tuple(shape), dtype=_types.default_float() if dtype is None else dtype)
        elif shape is not None:
            raise TypeError("`Parameter` takes values or a `shape`, not both")
        data = asarray(data, dtype)
        if not data.dtype.is_float:
            raise TypeError(f"`Parameter` takes floats, not `{data.dtype}`: gradients are floats; pass a `dtype`")
        data = data_of(data)
        super().__init__(data._native, data._outside)
        if tracing.program is None:
            self.requires_grad = bool(requires_grad)

    def infer(self, *shape: Any) -> Parameter:
        """The parameter itself, whose shape must agree with these sizes (``None`` agrees with any).

        Layers call it with the shape that follows from their input: a parameter with axes of -1 gets its values then.

        Raises:
            ValueError: If a size differs.
        """
        own = self.shape
        if len(own) != len(shape) or any(
            isinstance(n, int) and isinstance(m, int) and n != m for n, m in zip(own, shape)
        ):
            raise ValueError(f"a parameter has the shape {own}, and the input needs {_open_text(shape)}")
        return self

    def __repr__(self) -> str:
        text = super().__repr__()
        return "Parameter" + text[len("tensor") :] if text.startswith("tensor(") else text

    def __deepcopy__(self, memo: Any) -> Parameter:
        made = memo[id(self)] = Parameter(self, self.requires_grad)
        return made

    def __reduce__(self) -> Any:
        return (_restored, (data_of(self), self.requires_grad))


class LazyParameter(Parameter):
    """A parameter some of whose sizes are inferred at the first call of its module; it has no values before that."""

    def __init__(
        self,
        data: Any = None,
        requires_grad: bool = True,
        *,
        shape: Any = None,
        init: Callable[..., Tensor] | None = None,
        dtype: Any = None,
    ) -> None:
        if data is not None or shape is None or init is None:
            raise TypeError("`Parameter` with sizes of -1 takes a function `init` for its values, and no values")
        self._wanted = tuple(int(n) for n in shape)
        self._init, self._dtype = init, dtype_of(dtype) if dtype is not None else _types.default_float()
        self._outside, self._made = "error", None
        self._requires = bool(requires_grad)

    @property
    def _native(self) -> Any:  # type: ignore[override]
        raise ValueError(
            f"a parameter of shape {self._wanted} has no values yet: sizes of -1 are inferred from the first input of "
            "its module. Call the module once, outside of programs, or pass all sizes"
        )

    @property
    def shape(self) -> tuple[Any, ...]:
        """The sizes; -1 for those that are not known yet."""
        return self._wanted

    @property
    def requires_grad(self) -> bool:  # type: ignore[override]
        """Whether gradients will be taken."""
        return self._requires

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._requires = bool(value)

    def requires_grad_(self, value: bool = True) -> Parameter:
        """Sets whether gradients will be taken. Returns the parameter."""
        self._requires = bool(value)
        return self

    @property
    def grad(self) -> None:  # type: ignore[override]
        """None: there are no values yet."""
        return None

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return self._dtype

    @dtype.setter
    def dtype(self, dtype: Any) -> None:
        self._dtype = dtype_of(dtype)

    def infer(self, *shape: Any) -> Parameter:
        """The parameter with values, of these sizes where its own are -1.

        Raises:
            ValueError: If a size that is known differs, or one is not known outside of a running program.
        """
        if len(shape) != len(self._wanted) or any(
            n not in (-1, m) for n, m in zip(self._wanted, shape) if m is not None
        ):
            raise ValueError(f"a parameter has the shape {self._wanted}, and the input needs {_open_text(shape)}")
        sizes = tuple(m if n == -1 else n for n, m in zip(self._wanted, shape))
        if tracing.program is not None or not all(isinstance(n, int) for n in sizes):
            raise ValueError(
                f"a parameter of shape {self._wanted} has no values yet, and the sizes of a program's inputs are not "
                "known while it is traced: call the module once outside of programs"
            )
        self.become(self._init(sizes, dtype=self._dtype))
        return self

    def become(self, values: Tensor) -> None:
        """Gives the parameter its values."""
        requires, values = self._requires, data_of(values)
        for name in ("_wanted", "_init", "_dtype", "_requires"):
            del self.__dict__[name]
        self.__class__ = Parameter  # type: ignore[assignment]
        self._native = values._native  # type: ignore[misc]
        self.requires_grad = requires

    def __repr__(self) -> str:
        return f"Parameter(shape={self._wanted}, dtype={self._dtype}, without values)"

    def __deepcopy__(self, memo: Any) -> Parameter:
        made = memo[id(self)] = Parameter(
            requires_grad=self._requires, shape=self._wanted, init=self._init, dtype=self._dtype
        )
        return made

    def __reduce__(self) -> Any:
        return (_lazy, (self._wanted, self._init, self._dtype._aerogel_dtype, self._requires))


def _lazy(shape: Any, init: Any, dtype: str, requires_grad: bool) -> Parameter:
    return Parameter(requires_grad=requires_grad, shape=shape, init=init, dtype=dtype)


def _open_text(shape: Any) -> str:
    return "(" + ", ".join("any" if n is None else str(n) for n in shape) + ")"


def is_lazy(x: Any) -> bool:
    """Whether a parameter has no values yet."""
    return type(x) is LazyParameter


def draw_by(x: Any, init: Callable[..., Tensor]) -> None:
    """Lets a parameter that has no values yet be made by another function."""
    if is_lazy(x):
        x._init = init


def data_of(x: Any) -> Any:
    """The values of a tensor, apart from how they were computed."""
    return x.detach()


def set_data(x: Any, values: Any) -> None:
    """Gives a tensor other values of its shape, without a trace of how they were computed; the dtype may be another."""
    if is_lazy(x):
        x.become(values)
        return
    values = data_of(values)
    if x.dtype is not values.dtype:
        x.grad = None
    x._native = values._native
    renew(x)


def _restored(values: Tensor, requires_grad: bool) -> Parameter:
    return Parameter(values, requires_grad)
