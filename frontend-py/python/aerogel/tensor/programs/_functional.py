"""Loops and branches as functions of functions, under JAX's names.

They are written with the blocks of programs; outside of programs they are Python's loops and branches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aerogel.tensor import _shapes
from aerogel.tensor._complex import ComplexTensor, is_complex
from aerogel.tensor._creation import zeros
from aerogel.tensor._searching import where
from aerogel.tensor._tensor import Tensor, asarray, tracing
from aerogel.tensor._unknown import demand
from aerogel.tensor.programs import _trees
from aerogel.tensor.programs._blocks import break_loop, here, if_cond, loop
from aerogel.tensor.programs._values import const

if TYPE_CHECKING:
    from collections.abc import Callable

#: More iterations are not counted.
_MOST = 2**31 - 1


def _copied(value: Any) -> Any:
    """A value of its own, which a block may set."""
    value = asarray(value) if not isinstance(value, (Tensor, ComplexTensor)) else value
    if isinstance(value, ComplexTensor):
        return ComplexTensor(const(value.real), const(value.imag))
    return const(value)


def _ranks(tree: Any) -> list[int]:
    """How many axes the leaves of a tree have, as the program is traced."""
    planes = (p for leaf in _trees.leaves(tree) for p in ([leaf.real, leaf.imag] if is_complex(leaf) else [leaf]))
    return [len(plane._native.shape) for plane in planes]


def _set_all(carried: Any, ranks: list[int], new: Any, called: str) -> None:
    """Gives the leaves of a tree other values, all at once; ``ranks`` are the axes that they had at first.

    Raises:
        TypeError: If the structures differ, or a leaf cannot keep a value.
        ValueError: If a value has more axes.
    """
    if _trees.structure(new) != _trees.structure(carried):
        raise TypeError(
            f"{called} returns {_trees.text(new)} for {_trees.text(carried)}: both need the same structure ({here()})"
        )
    values = [asarray(value) for value in _trees.leaves(new)]
    pairs = [pair for old, value in zip(_trees.leaves(carried), values) for pair in _planes(old, value, called)]
    # Each new value may be made of all old ones.
    for rank, (old, value) in zip(ranks, [(old, value.copy()) for old, value in pairs]):
        own = len(value._native.shape)
        if own > rank:
            raise ValueError(
                f"{called} returns a tensor with {own} axes for one with {rank}: loop-carried values keep "
                f"its shape ({here()})"
            )
        old.set(value)


def _planes(old: Any, new: Any, called: str) -> list[tuple[Tensor, Tensor]]:
    """The real tensors of both."""
    if not isinstance(old, ComplexTensor):
        if isinstance(new, ComplexTensor):
            raise TypeError(f"{called} returns a complex tensor for a real one")
        return [(old, new)]
    if not isinstance(new, ComplexTensor):
        return [(old.real, new), (old.imag, new * 0)]
    return [(old.real, new.real), (old.imag, new.imag)]


def fori_loop(lower: Any, upper: Any, body: Callable[[Any, Any], Any], init: Any) -> Any:
    """Applies ``body(k, carried)`` to ``init``, for each ``k`` from ``lower`` to ``upper - 1``.

    Args:
        lower: The first number.
        upper: The number before which the loop ends.
        body: Takes the number and a tree of tensors, and returns a tree of the same structure and shapes.
        init: The first tree.

    Raises:
        TypeError: If ``body`` gives another structure than it is given.
    """
    if tracing.program is None:
        carried = _trees.mapped(init, asarray)
        for k in range(int(lower), int(upper)):
            carried = body(k, carried)
        return carried
    carried = _trees.mapped(init, _copied)
    ranks = _ranks(carried)
    with loop(lower, upper) as k:
        _set_all(carried, ranks, body(k, carried), "the body of `fori_loop`")
    return carried


def while_loop(condition: Callable[[Any], Any], body: Callable[[Any], Any], init: Any) -> Any:
    """Applies ``body(carried)`` to ``init`` while ``condition(carried)`` is true.

    Args:
        condition: Takes a tree of tensors, and returns one boolean, or one for each point.
        body: Takes the tree, and returns one of the same structure and shapes.
        init: The first tree.

    Raises:
        TypeError: If ``body`` gives another structure than it is given.
    """
    if tracing.program is None:
        carried = _trees.mapped(init, asarray)
        while bool(condition(carried)):
            carried = body(carried)
        return carried
    carried = _trees.mapped(init, _copied)
    ranks = _ranks(carried)
    with loop(_MOST):
        with if_cond(asarray(condition(carried)) == 0):
            break_loop()
        _set_all(carried, ranks, body(carried), "the body of `while_loop`")
    return carried


def cond(condition: Any, if_true: Callable[..., Any], if_false: Callable[..., Any], *operands: Any) -> Any:
    """The result of ``if_true(*operands)`` where a condition is true, and of ``if_false(*operands)`` elsewhere.

    Only one of the functions is computed if the condition is one number.

    Raises:
        TypeError: If both give trees of other structures.
    """
    if tracing.program is None and not (isinstance(condition, Tensor) and condition._native.is_one_of_many()):
        return if_true(*operands) if bool(condition) else if_false(*operands)
    if tracing.program is None:
        return _chosen(condition, if_true(*operands), if_false(*operands))
    holds = asarray(condition) != 0
    with if_cond(holds):
        given = if_true(*operands)
        results = _trees.mapped(given, _block_output)
        ranks = _ranks(results)
        _set_all(results, ranks, given, "`if_true` of `cond`")
    with if_cond(holds == 0):
        _set_all(results, ranks, if_false(*operands), "`if_false` of `cond`")
    return results


def _chosen(condition: Tensor, if_true: Any, if_false: Any) -> Any:
    """One of two trees for each of many, under ``vmap`` outside of a program."""
    if _trees.structure(if_true) != _trees.structure(if_false):
        raise TypeError(
            f"`if_false` of `cond` returns {_trees.text(if_false)}, `if_true` {_trees.text(if_true)}: both are of "
            "one structure"
        )
    others = iter(_trees.leaves(if_false))

    def leaf(value: Any) -> Any:
        own, other = asarray(value), asarray(next(others))
        if own.ndim != other.ndim:
            raise ValueError(
                f"`if_false` of `cond` returns a tensor with {other.ndim} axes, and `if_true` one with {own.ndim}"
            )
        return where(condition, own, other)

    return _trees.mapped(if_true, leaf)


def scan(body: Callable[[Any, Any], Any], init: Any, xs: Any, length: int | None = None) -> tuple[Any, Any]:
    """Carries ``init`` along the first axis of ``xs``: ``carried, y = body(carried, x)`` for each part ``x``.

    Args:
        body: Takes the carried values and the current part of ``xs``, and returns the carried values and a tree of
            results.
        init: The initial carried values.
        xs: A tree of tensors with equally many parts, or ``None``.
        length: How many parts there are, without ``xs``.

    Returns:
        The final carried values, and the results of each part along a first axis.

    Raises:
        TypeError: If ``body`` returns no pair, or carried values of another structure.
        ValueError: If there are neither ``xs`` nor a ``length``.
    """
    xs = None if xs is None else _trees.mapped(xs, asarray)
    parts = [] if xs is None else _trees.leaves(xs)
    if not parts and length is None:
        raise ValueError("`scan` iterates over the first axis of `xs`, or takes a `length`")
    n = length if length is not None else parts[0].shape[0]
    for part in parts:
        own = part.shape[0]
        if isinstance(n, int) and isinstance(own, int):
            if own != n:
                raise ValueError(f"`scan` has {n} iterations, and the first axis of a tensor of `xs` has size {own}")
        elif part is not parts[0] or length is not None:
            demand(part.real if isinstance(part, ComplexTensor) else part, 0, n)
    if tracing.program is None:
        return _scanned(body, init, xs, n)
    carried = _trees.mapped(init, _copied)
    ranks = _ranks(carried)
    with loop(n) as k:
        x = None if xs is None else _trees.mapped(xs, lambda all_: all_[k])
        made = body(carried, x)
        new, y = _pair(made)
        results = None if y is None else _trees.mapped(y, lambda value: _block_output(value, n))
        if y is not None:
            for all_, value in zip(_trees.leaves(results), _trees.leaves(y)):
                _store_part(all_, k, asarray(value))
        _set_all(carried, ranks, new, "the body of `scan`")
    return carried, results


def _pair(made: Any) -> Any:
    if not isinstance(made, tuple) or len(made) != 2:
        raise TypeError(f"the body of `scan` returns the carried values and the results, not {_trees.text(made)}")
    return made


def _scanned(body: Callable[[Any, Any], Any], init: Any, xs: Any, n: Any) -> tuple[Any, Any]:
    carried, rows = _trees.mapped(init, asarray), []
    for k in range(int(n)):
        x = None if xs is None else _trees.mapped(xs, lambda all_, k=k: all_[k])
        carried, y = _pair(body(carried, x))
        rows.append(y)
    if not rows:
        return carried, _no_rows(body, carried, xs)
    if rows[0] is None:
        return carried, None
    columns = zip(*map(_trees.leaves, rows))
    stacked = iter([_shapes.stack([asarray(value) for value in column]) for column in columns])
    return carried, _trees.mapped(rows[0], lambda _: next(stacked))


def _no_rows(body: Callable[[Any, Any], Any], carried: Any, xs: Any) -> Any:
    """The results of no part: the body says their shapes and dtypes, given zeros for a part."""
    part = None if xs is None else _trees.mapped(xs, lambda all_: zeros(all_.shape[1:], all_.dtype))
    _, y = _pair(body(_trees.mapped(carried, lambda value: value.copy()), part))
    return None if y is None else _trees.mapped(y, lambda value: _shapes.stack([asarray(value)])[:0])


def _block_output(value: Any, many: Any = None) -> Any:
    """Memory for a value of a block, or for so many of them, that is there behind it."""
    value = asarray(value)
    if isinstance(value, ComplexTensor):
        return ComplexTensor(_block_output(value.real, many), _block_output(value.imag, many))
    trace = tracing.program
    out = Tensor.__new__(Tensor)
    size = None if many is None else trace.extents([many])[0]
    out._native, out._outside, out._made = trace.native.block_output(value._native, size), "error", None
    return out


def _store_part(all_: Any, k: Tensor, value: Any) -> None:
    if isinstance(all_, ComplexTensor):
        _store_part(all_.real, k, value.real)
        _store_part(all_.imag, k, value.imag)
        return
    all_[(k, ...)] = value
