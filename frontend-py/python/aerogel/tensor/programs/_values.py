"""What stands for values in a program: inputs, memory, indices; and what is looked at when it runs."""

from __future__ import annotations

from typing import Any

from aerogel import _native
from aerogel._dtypes import ALL, dtype_of
from aerogel.errors import AerogelAssertionError
from aerogel.tensor import _types
from aerogel.tensor._complex import complex_type, is_complex
from aerogel.tensor._tensor import Tensor, asarray, constant, is_number, tracing
from aerogel.tensor.programs._blocks import here, indices_at, trace_of
from aerogel.tensor.programs._trace import Trace


def _type_of(dtype: Any, word: str) -> Any:
    """The dtype of an input or memory."""
    if dtype is None:
        return _types.default_float()
    if isinstance(dtype, (int, list, tuple)):
        raise TypeError(f"`{word}` takes the shape first and then the type, as in `{word}([-1, 3], ti.f32)`")
    if complex_type(dtype) is not None:
        raise TypeError(f"`{word}` takes real dtypes, not `{complex_type(dtype)}`: make one for each of its parts")
    return dtype_of(dtype)


def _wanted(trace: Trace, shape: Any, called: str) -> list[Any]:
    """The requested shape: -1 for sizes that may be any."""
    given = [shape] if isinstance(shape, Tensor) or hasattr(shape, "__index__") else list(shape)
    is_open = [isinstance(n, int) and n == -1 for n in given]
    _types.counts([n for n, free in zip(given, is_open) if not free], called, "shape")
    return [None if free else trace.extents([n])[0] for n, free in zip(given, is_open)]


def input(shape: Any, dtype: Any = None) -> Tensor:  # noqa: A001
    """What comes from outside: the next argument of the program.

    Args:
        shape: The size of each axis: a number, -1 for a size known when the program runs, or a size of another input.
        dtype: The dtype of the elements.
    """
    trace = trace_of("input")
    kind = _type_of(dtype, "input")
    wanted = _wanted(trace, shape, "input")
    if trace.called:
        raise RuntimeError(
            f"`{trace.called[-1]}` creates its inputs with `input` and is called by another program: give its "
            "function parameters"
        )
    return Tensor(trace.input(f"input {len(trace.inputs)}", kind._aerogel_dtype, wanted))


def assert_tensor(tensor: Tensor, shape: Any, dtype: Any = None) -> Tensor:
    """The tensor, which has this shape and type: else an error, when the program is traced or when it runs."""
    trace = trace_of("assert_tensor")
    if dtype is not None and tensor.dtype is not dtype_of(dtype):
        raise TypeError(f"a tensor of `{dtype_of(dtype)}` is asserted, not of `{tensor.dtype}`")
    wanted = _wanted(trace, shape, "assert_tensor")
    message = "a tensor has an axis of size {}, asserted is {}"
    stated = trace.native.assert_shape(tensor._native, wanted, message)
    if stated is None:
        raise ValueError(f"a tensor of {len(wanted)} axes with other sizes is asserted; it has {tensor._native.shape}")
    return Tensor(stated)


def indices(shape: Any) -> Any:
    """The index along each axis, at every point of a shape, or at every active cell of a field.

    Element-wise results of the indices of a field's cells have values on these cells only; sums and other
    reductions run over them. A store that activates other cells invalidates the indices: call ``indices`` again.
    """
    return indices_at(trace_of("indices"), shape, "indices")


def dense(x: Any) -> Tensor:
    """A tensor with the values that one has at the active cells of a field, and zeros elsewhere."""
    x = x if isinstance(x, Tensor) else asarray(x)
    return Tensor(trace_of("dense").native.dense(x._native), x._outside)


def buffer(shape: Any, dtype: Any = None) -> Tensor:
    """Memory of the program's own, zeros at first."""
    trace = trace_of("buffer")
    kind = _type_of(dtype, "buffer")
    _types.counts(shape, "buffer", "shape")
    native = _native.NativeTensor.full(trace.extents(shape), kind._aerogel_dtype, 0, tracing.trace)
    out = Tensor(native)
    trace.native.keep(out._native)
    return out


def const(value: Any, dtype: Any = None) -> Tensor:
    """A value that may be set: of a number, a list, an array or another tensor."""
    if is_complex(value):
        raise TypeError("a value that may be set is real: make one of the real part, and one of the imaginary part")
    if not is_number(value):
        return asarray(value, dtype, copy=True)
    kind = dtype_of(dtype) if dtype is not None else _types.of_number(value, None)
    return constant(value, kind)


def print_value(name: str, value: Any) -> None:
    """Prints a value, in each iteration of a loop; in a block that runs for some points only, its value at these."""
    trace = trace_of("print_value")
    value = value if isinstance(value, Tensor) else asarray(value)

    def show(numbers: Tensor, where: Any = None) -> None:
        import numpy as np

        array = numbers.numpy()
        if where is not None:
            both = np.broadcast_arrays(array, where.numpy())
            if not both[1].any():
                return
            array = both[0][both[1]]
        print(f"{name}: {array}")

    trace.watch(show, "print_value", value)


def assert_value(name: str, condition: Any) -> None:
    """Ends the program with an error of this name if a condition is false, at some point if there are several."""
    trace = trace_of("assert_value")
    condition = condition if isinstance(condition, Tensor) else asarray(condition)
    if condition.dtype is not ALL["u1"]:
        condition = condition.astype("u1")
    place = here()

    def look(holds: Tensor, where: Any = None) -> None:
        import numpy as np

        fails = ~holds.numpy()
        if where is not None:
            fails = fails & where.numpy()
        if fails.any():
            first = tuple(int(k) for k in np.argwhere(fails)[0])
            more = np.count_nonzero(fails) - 1
            others = f", as at {more} other point{'s' if more > 1 else ''}" if more else ""
            at = f" at {first}{others}" if fails.ndim else ""
            raise AerogelAssertionError(f"{name}: the condition is false{at} ({place})")

    trace.watch(look, "assert_value", condition)


def scatter_add(target: Tensor, key: Any, value: Any) -> None:
    """Adds values to memory at computed indices."""
    trace_of("scatter_add").store(target, key, value, "add")


def scatter_min(target: Tensor, key: Any, value: Any) -> None:
    """Keeps the smaller of memory and values at computed indices."""
    trace_of("scatter_min").store(target, key, value, "min")


def scatter_max(target: Tensor, key: Any, value: Any) -> None:
    """Keeps the larger of memory and values at computed indices."""
    trace_of("scatter_max").store(target, key, value, "max")


def scatter_add_previous(target: Tensor, key: Any, value: Any) -> Tensor:
    """Adds values to memory at computed indices, one point after the other: the previous value for each point."""
    return trace_of("scatter_add_previous").store_with_previous(target, key, value, "add")
