"""``vmap``: functions of one example, vectorised over a batch."""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any

from aerogel import _native
from aerogel.tensor._complex import ComplexTensor, is_complex
from aerogel.tensor._tensor import Tensor, asarray, is_number, tracing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def vmap(function: Any, in_axes: Any = 0, out_axes: Any = 0) -> Any:
    """Vectorises a function over a batch axis, as one program; or a block over the indices of a shape.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> x = ti.tensor.arange(6).reshape(2, 3)
    >>> ti.vmap(lambda row, w: (row * w).sum(), in_axes=(0, None))(x, ti.tensor.asarray([1, 0, 2]))
    tensor([ 4, 13], dtype=i32)

    The function is called once, with symbolic tensors for one example, which have no values. It may use the same
    operations as a program: reductions, products, gathers, ``vmap``, stores to its own tensors and, in a program, to
    elements of tensors from outside that it does not read. Random numbers are the same for all.

    With a shape, in a program, it is a block that runs at every index of the shape. The indices are single numbers in
    it. Its results are stored to elements of tensors from outside, which it does not read. Each statement of the block
    runs at all indices before the next one. If two indices store to one element, either value may stay.

    >>> @ti.program
    ... def distances(x):
    ...     out = ti.tensor.zeros((3, 3))
    ...     with ti.vmap((3, 3)) as (i, j):
    ...         out[i, j] = ti.tensor.sqrt(((x[i] - x[j]) ** 2).sum())
    ...     return out
    >>> distances(ti.tensor.asarray([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]])).tolist()[0]
    [0.0, 5.0, 1.0]

    Args:
        function: Of tensors, or of tuples, lists and dictionaries of them, which it may give too. Or a shape: a number
            or several.
        in_axes: The batch axis of each argument: ``None`` if it is the same for all. One number applies to all
            arguments; tuples, lists and dictionaries for the parts of one. Keyword arguments are batched along their
            first axes.
        out_axes: The batch axes of the results, likewise.
    """

    from aerogel.tensor.programs import Program

    if isinstance(function, Program):
        return function.transformed(lambda own: vmap(own, in_axes, out_axes))
    if hasattr(function, "__index__") or isinstance(function, (tuple, list, Tensor)):
        return _at_indices(function)
    if not callable(function):
        raise TypeError(f"`vmap` takes a function or a shape, not {type(function).__name__}")

    @functools.wraps(function)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        axes = in_axes if isinstance(in_axes, (tuple, list)) else (in_axes,) * len(args)
        if len(axes) != len(args):
            raise ValueError(f"`vmap`: `in_axes` has {len(axes)} axes for {len(args)} arguments")
        mapping = _Mapping()
        try:
            ones = [_each(x, axis, mapping.one, f"argument {k}") for k, (x, axis) in enumerate(zip(args, axes))]
            named = {k: _each(x, 0, mapping.one, f"argument `{k}`") for k, x in kwargs.items()}
            if not mapping.pairs:
                raise ValueError("`vmap`: no argument is mapped: all of `in_axes` are None")
            results = _each(function(*ones, **named), out_axes, mapping.result, "the result")
        except BaseException:
            mapping.drop()
            raise
        mapping.end()
        return _each(results, out_axes, mapping.for_all, "the result")

    return mapped


@contextlib.contextmanager
def _at_indices(shape: Any) -> Iterator[Any]:
    """A block that is run at every index of a shape: a ``vmap`` for each axis, in each other."""
    from aerogel.tensor.programs._blocks import One, indices_at, trace_of

    trace = trace_of("vmap")
    sizes = list(shape) if isinstance(shape, (tuple, list)) else [shape]
    if not sizes:
        raise ValueError("`vmap`: the shape has no axes")
    along = [indices_at(trace, [n], "vmap") for n in sizes]
    mappings, ones = [], []
    try:
        for k, own in enumerate(along):
            mappings.append(_Mapping())
            ones.append(mappings[-1].one(own, 0, f"axis {k} of the shape"))
        yield One(ones[0]._native) if len(ones) == 1 else tuple(ones)
    except BaseException:
        for mapping in reversed(mappings):
            mapping.drop()
        raise
    for mapping in reversed(mappings):
        mapping.end()


def _each(tree: Any, axes: Any, leaf: Callable[[Any, Any, str], Any], name: str) -> Any:
    """What ``leaf`` makes of the tensors in tuples, lists and dictionaries, each with its axis."""
    if isinstance(tree, dict):
        of = axes if isinstance(axes, dict) else dict.fromkeys(tree, axes)
        if of.keys() != tree.keys():
            raise ValueError(f"`vmap`: {name} has the parts {list(tree)}, its axes are {list(of)}")
        return {k: _each(part, of[k], leaf, f"{name}[{k!r}]") for k, part in tree.items()}
    if isinstance(tree, (tuple, list)) and not _is_array(tree):
        of = axes if isinstance(axes, (tuple, list)) else [axes] * len(tree)
        if len(of) != len(tree):
            raise ValueError(f"`vmap`: {name} has {len(tree)} parts, there are {len(of)} axes for it")
        parts = [_each(part, axis, leaf, f"{name}[{k}]") for k, (part, axis) in enumerate(zip(tree, of))]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    if axes is not None and not hasattr(axes, "__index__"):
        raise TypeError(f"`vmap`: the axis of {name} is an integer or None, not {axes!r}")
    return leaf(tree, None if axes is None else axes.__index__(), name)


def _is_array(tree: Any) -> bool:
    """Whether this is numbers in lists."""
    return len(tree) > 0 and all(
        is_number(x) or isinstance(x, complex) or isinstance(x, (tuple, list)) and _is_array(x) for x in tree
    )


class _Mapping:
    """The symbolic tensors while a function is called, and the batched results."""

    def __init__(self) -> None:
        #: What stands for one, all, the axis along which they lie, and what all are called.
        self.pairs: list[tuple[Any, Any, int, str]] = []
        #: What the function gives of one, and then of all, and along which axis.
        self._planes: list[Any] = []
        self._made: Iterator[Any] = iter(())
        self._program = tracing.program
        #: In a program the function has a block of its own.
        self._n_open = 0
        if self._program is not None:
            self._n_open = len(self._program.open)
            self._program.native.begin_vmap()
        self._around = tracing.mapped
        tracing.mapped = object() if self._program is None else None

    def drop(self) -> None:
        """Drops what was said."""
        tracing.mapped = self._around
        if self._program is not None:
            self._program.native.drop_vmap()

    def end(self) -> None:
        """Makes the results for all."""
        tracing.mapped = self._around
        trace = None
        if self._program is not None:
            self._program.expect_ended(self._n_open)
            trace = self._program.native
        self._made = iter(_native.vmap_tensors(self.pairs, self._planes, trace))

    def one(self, value: Any, axis: int | None, name: str) -> Any:
        """The symbolic tensor for one example of a batched argument."""
        if axis is None:
            return value
        x: Any = _tensor(value, name)
        rank = x.ndim
        if not -rank <= axis < rank:
            has = "is one number" if rank == 0 else f"has axes 0 to {rank - 1}"
            raise ValueError(
                f"`vmap`: {name} {has}, there is no axis {axis}: `in_axes` is None for arguments that are not mapped"
            )
        if isinstance(x, ComplexTensor):
            return ComplexTensor(self._one(x.real, axis, name), self._one(x.imag, axis, name))
        return self._one(x, axis, name)

    def _one(self, x: Tensor, axis: int, name: str) -> Tensor:
        one, at = _native.one_of_tensor(x._native, axis)
        self.pairs.append((one, x._native, at, name))
        return Tensor(one, x._outside)

    def result(self, value: Any, axis: int | None, name: str) -> Any:
        """A result of one."""
        planes = _planes(value, name)
        self._planes.extend(p._native for p in planes)
        return ComplexTensor(*planes) if len(planes) == 2 else planes[0]

    def for_all(self, value: Any, axis: int | None, name: str) -> Any:
        """The result of all."""
        planes = [self._for_all(p, next(self._made), axis, name) for p in _planes(value, name)]
        return ComplexTensor(*planes) if len(planes) == 2 else planes[0]

    def _for_all(self, one: Tensor, place: Any, axis: int | None, name: str) -> Tensor:
        native, at = place
        if axis is None:
            if at is not None:
                raise ValueError(f"`vmap`: {name} varies over the batch: it needs an axis in `out_axes`")
            return Tensor(native, one._outside)
        rank = len(native.shape) + (at is None)
        if not -rank <= axis < rank:
            raise ValueError(f"`vmap`: {name} has {rank} axes including the batch axis, there is no axis {axis}")
        if at is None:
            _, all_, along, _ = self.pairs[0]
            native, at = native.broadcast_to([all_.shape[along], *native.shape]), 0
        order = [k for k in range(rank) if k != at]
        order.insert(axis % rank, at)
        return Tensor(native if order == list(range(rank)) else native.permute(order), one._outside)


def _tensor(value: Any, name: str) -> Any:
    """A tensor of an argument or a result."""
    if value is None:
        forgot = ": does it `return`?" if name == "the result" else ""
        raise TypeError(f"`vmap`: {name} is None, and must be a tensor{forgot}")
    try:
        return asarray(value)
    except (TypeError, ValueError) as e:
        raise TypeError(
            f"`vmap`: {name} is neither a tensor nor numbers, nor a tuple, list or dictionary of such: {e}"
        ) from None


def _planes(value: Any, name: str) -> list[Tensor]:
    value = _tensor(value, name)
    return [value.real, value.imag] if is_complex(value) else [value]
