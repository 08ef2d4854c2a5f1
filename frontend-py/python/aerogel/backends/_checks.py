"""What each method of a back end has to return, looked at when it returns."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from aerogel._dtypes import ALL, DataType, numpy_dtype, u1

if TYPE_CHECKING:
    from collections.abc import Callable

#: What a result is like: its dtype and its shape.
Like = tuple[DataType, tuple[int, ...]]

i32 = ALL["i32"]

_NAMES = {
    **{f"{kind}{bits}": f"{kind[0]}{bits}" for kind in ("float", "int", "uint") for bits in (8, 16, 32, 64)},
    "bool": "u1",
    "bool_": "u1",
    "bfloat16": "bf16",
}


def dtype_like(dtype: Any) -> DataType:
    """The dtype of Aerogel's that one of NumPy's, PyTorch's or another package's is.

    Raises:
        TypeError: If there is none.
    """
    if isinstance(dtype, DataType):
        return dtype
    name = str(getattr(dtype, "name", dtype)).rpartition(".")[2]
    if _NAMES.get(name) not in ALL:
        raise TypeError(f"{dtype!r} is not a dtype of Aerogel: define `describe(x)` in the back end")
    return ALL[_NAMES[name]]


def _same(backend: Any, x: Any, *_: Any) -> Like:
    return backend.describe(x)


def _reduced(backend: Any, accum: str, x: Any, axes: Any) -> Like:
    dtype, shape = backend.describe(x)
    return dtype, tuple(n for axis, n in enumerate(shape) if axis not in axes)


def _sliced(backend: Any, x: Any, starts: Any, stops: Any, steps: Any) -> Like:
    dtype, _ = backend.describe(x)
    return dtype, tuple(len(range(*part)) for part in zip(starts, stops, steps, strict=True))


def _permuted(backend: Any, x: Any, axes: Any) -> Like:
    dtype, shape = backend.describe(x)
    return dtype, tuple(shape[axis] for axis in axes)


def _gathered(backend: Any, x: Any, indices: Any, outside: str) -> Like:
    return backend.describe(x)[0], backend.describe(indices[0])[1]


def _multiplied(backend: Any, a: Any, b: Any) -> Like:
    dtype, shape = backend.describe(a)
    return dtype, (*shape[:-1], backend.describe(b)[1][-1])


def _sorted(backend: Any, x: Any, descending: bool) -> list[Like]:
    dtype, shape = backend.describe(x)
    return [(dtype, shape), (i32, shape)]


def _results(backend: Any, program: Any, inputs: Any) -> list[Like]:
    return [(program.buffers[b].dtype, program.buffers[b].shape) for b in program.results]


#: By method: what it is to return for these arguments.
LIKE: dict[str, Callable[..., Any]] = {
    "from_host": lambda backend, array, dtype: (dtype, tuple(array.shape)),
    "full": lambda backend, shape, value, dtype: (dtype, tuple(shape)),
    "iota": lambda backend, n, dtype: (dtype, (n,)),
    "unary": lambda backend, op, x: backend.describe(x),
    "binary": lambda backend, op, a, b: backend.describe(a),
    "compare": lambda backend, op, a, b: (u1, backend.describe(a)[1]),
    "select": lambda backend, cond, a, b: backend.describe(a),
    "cast": lambda backend, x, dtype: (dtype, backend.describe(x)[1]),
    "gather": _gathered,
    "scatter": _same,
    "reduce": _reduced,
    "copy": _same,
    "bitcast": lambda backend, x, dtype: (dtype, backend.describe(x)[1]),
    "reshape": lambda backend, x, shape: (backend.describe(x)[0], tuple(shape)),
    "permute": _permuted,
    "expand": lambda backend, x, shape: (backend.describe(x)[0], tuple(shape)),
    "slice": _sliced,
    "scan": lambda backend, accum, x: backend.describe(x),
    "sort": _sorted,
    "matmul": _multiplied,
    "run": _results,
}


def shown(like: Like) -> str:
    """A dtype and a shape as text, as in ``f32[2, 3]``."""
    return f"{like[0]}{list(like[1])}"


class WrongResult(TypeError):
    """A method of a back end returned something of another dtype or shape than it has to."""


def _look(backend: Any, what: str, made: Any, wanted: Like) -> None:
    try:
        found = backend.describe(made)
    except (TypeError, AttributeError) as e:
        raise WrongResult(
            f"back end `{backend.name}`: {what} has to be {shown(wanted)}, and is "
            f"{type(made).__name__}, which has no dtype and shape: {e}"
        ) from None
    if found != wanted:
        raise WrongResult(f"back end `{backend.name}`: {what} has to be {shown(wanted)}, and is {shown(found)}")


def checked(method: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a back end that looks at what it returns."""
    like = LIKE[method]

    @functools.wraps(function)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        wanted = like(self, *args, **kwargs)
        made = function(self, *args, **kwargs)
        if isinstance(wanted, tuple):
            _look(self, f"the result of `{method}`", made, wanted)
            return made
        if not isinstance(made, (list, tuple)) or len(made) != len(wanted):
            kind = f"{len(made)} values" if isinstance(made, (list, tuple)) else type(made).__name__
            raise WrongResult(f"back end `{self.name}`: `{method}` has to return {len(wanted)} values, not {kind}")
        for k, (one, own) in enumerate(zip(made, wanted, strict=True)):
            _look(self, f"value {k} of what `{method}` returns", one, own)
        return made

    return call


def checked_to_host(function: Callable[..., Any]) -> Callable[..., Any]:
    """``to_host`` of a back end, which has to return an array of NumPy's like the storage."""

    @functools.wraps(function)
    def call(self: Any, x: Any) -> Any:
        import numpy as np

        dtype, shape = self.describe(x)
        made = function(self, x)
        wanted = numpy_dtype(dtype)
        if not isinstance(made, np.ndarray) or made.shape != tuple(shape) or made.dtype != wanted:
            found = f"{made.dtype}{list(made.shape)}" if isinstance(made, np.ndarray) else type(made).__name__
            raise WrongResult(
                f"back end `{self.name}`: `to_host` has to return an array of NumPy's, {wanted}{list(shape)}, and "
                f"returned {found}"
            )
        return made

    return call


def expect(backend: Any, what: str, made: Any, wanted: Any) -> None:
    """That values of an extension have these dtypes and shapes.

    Raises:
        WrongResult: One has not, or there are more or fewer.
    """
    if not isinstance(made, (list, tuple)) or len(made) != len(wanted):
        raise WrongResult(f"back end `{backend.name}`: `{what}` has to return a list of {len(wanted)} values")
    for k, (one, like) in enumerate(zip(made, wanted, strict=True)):
        _look(backend, f"value {k} of what `{what}` returns", one, like)
