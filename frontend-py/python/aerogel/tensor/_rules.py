"""Functions of tensors with a gradient of their own: ``custom_vjp``, ``custom_jvp``, ``checkpoint``."""

from __future__ import annotations

import contextlib
import functools
import inspect
import threading
import types
from typing import TYPE_CHECKING, Any

from aerogel import _native
from aerogel.tensor import _opaque
from aerogel.tensor._backward import enable_grad, no_grad
from aerogel.tensor._complex import ComplexTensor
from aerogel.tensor._gradients import is_differentiable, vjp
from aerogel.tensor._nodes import attached, by_inputs, is_needed
from aerogel.tensor._tensor import Tensor, asarray
from aerogel.tensor.programs import _trees
from aerogel.tensor.random import _draws

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


def expect_real(x: Any) -> None:
    """Refuses complex tensors, which rules do not take."""
    if isinstance(x, ComplexTensor):
        raise TypeError("a function with a custom gradient takes and returns real tensors: pass `z.real` and `z.imag`")


class _Arguments:
    """The arguments of a call, and the tensors of floats in them, by which there are gradients."""

    def __init__(
        self,
        args: Sequence[Any],
        constant: Sequence[int],
        takes_modules: bool = True,
        is_wanted: Sequence[bool] | None = None,
    ) -> None:
        self.args = list(args)
        self._takes_modules = takes_modules
        #: Of each leaf, whether it is one of the tensors; those of floats if nothing is said.
        self.is_wanted: list[bool] = [] if is_wanted is None else list(is_wanted)
        self._is_said = is_wanted is not None
        self._n_leaves = 0
        self._constant = {k % len(args) for k in constant} if args else set()
        self.tensors: list[Tensor] = []
        for k, arg in enumerate(self.args):
            if k not in self._constant:
                self.args[k] = self._mapped(arg, self._noted)

    def _noted(self, leaf: Any) -> Any:
        expect_real(leaf)
        self._n_leaves += 1
        if not self._is_said:
            self.is_wanted.append(is_differentiable(leaf))
        if not isinstance(leaf, Tensor):
            return leaf
        # The rule is called later, when another value may have been stored to the tensor.
        kept = leaf._as_it_is()
        if self.is_wanted[self._n_leaves - 1]:
            self.tensors.append(kept)
        return kept

    def given(self, tensors: Sequence[Tensor]) -> list[Any]:
        """The arguments with other tensors in place of those."""
        each, wanted = iter(tensors), iter(self.is_wanted)
        return [
            arg if k in self._constant else self._mapped(arg, lambda x: next(each) if next(wanted) else x)
            for k, arg in enumerate(self.args)
        ]

    def _mapped(self, tree: Any, leaf: Callable[[Any], Any]) -> Any:
        if self._takes_modules or not _trees.nodes(tree):
            return _trees.mapped(tree, leaf, is_trained=True)
        if isinstance(tree, (tuple, list)):
            return _trees.rebuilt(type(tree), [self._mapped(part, leaf) for part in tree])
        if isinstance(tree, dict):
            return {key: self._mapped(part, leaf) for key, part in tree.items()}
        return tree

    def varying(self) -> list[Any]:
        """The arguments by which there are gradients."""
        return [arg for k, arg in enumerate(self.args) if k not in self._constant]

    def constants(self) -> list[Any]:
        """The other arguments."""
        return [arg for k, arg in enumerate(self.args) if k in self._constant]

    def gradients(self, given: Any, what: str) -> list[tuple[Tensor, Tensor]]:
        """The tensors, each with its part of what a rule gives for the arguments."""
        varying = self.varying()
        given = tuple(given) if isinstance(given, (tuple, list)) else (given,)
        if len(given) != len(varying):
            raise ValueError(f"{what}: the rule returns {len(given)} gradients for {len(varying)} arguments")
        out: list[Tensor | None] = []
        for arg, gradient in zip(varying, given):
            leaves = [x for x in _trees.leaves(arg) if is_differentiable(x)]
            if gradient is None:
                out += [None] * len(leaves)
                continue
            parts = _trees.leaves(gradient)
            if len(parts) == len(_trees.leaves(arg)):
                parts = [g for g, x in zip(parts, _trees.leaves(arg)) if is_differentiable(x)]
            if len(parts) != len(leaves):
                raise ValueError(
                    f"{what}: the rule returns {_trees.text(gradient)} as the gradient by an argument that is "
                    f"{_trees.text(arg)}"
                )
            out += [None if g is None else asarray(g, dtype=x.dtype) for g, x in zip(parts, leaves)]
        return by_inputs(what, self.tensors, out)


def _positional(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments of a call by their positions."""
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    if bound.kwargs:
        raise TypeError(f"`{next(iter(bound.kwargs))}` is keyword-only, and a rule takes arguments by position")
    return bound.args


def _called(what: str, function: Callable[..., Any]) -> str:
    return f"`{getattr(function, '__name__', type(function).__name__)}` ({what})"


def _with_rule(
    what: str, out: Any, rule: Callable[[Any], list[tuple[Tensor, Tensor]]], inputs: Sequence[Tensor] | None = None
) -> Any:
    """A result whose tensors of floats have gradients by a rule, which is given those in the result's structure."""
    smooth = [y for y in _trees.leaves(out) if is_differentiable(y)]
    kinds = _trees.mapped(out, is_differentiable)

    def of_tensors(gradients: list[Tensor]) -> list[tuple[Tensor, Tensor]]:
        each = iter(gradients)
        return rule(_trees.mapped(kinds, lambda is_smooth: next(each) if is_smooth else None))

    made = iter(attached(what, smooth, of_tensors, inputs))
    return _trees.mapped(out, lambda y: next(made) if is_differentiable(y) else y)


def _without_derivatives(what: str, found: list[tuple[Tensor, Tensor]], inputs: Any) -> list[tuple[Tensor, Tensor]]:
    """Gradients that have none themselves: to take one is an error, and not zero."""

    def refused(_: Any) -> list[tuple[Tensor, Tensor]]:
        raise NotImplementedError(
            f"{what} computes its gradient with storages of a back end (`ti.backends.storage`), so that there are no "
            "second derivatives and no forward mode through it"
        )

    tensors = [x for x in inputs if is_differentiable(x)]
    made = _with_rule(what, [gradient for _, gradient in found], refused, tensors)
    return [(tensor, gradient) for (tensor, _), gradient in zip(found, made)]


def _as_tensors(out: Any) -> Any:
    """The result of a function with numbers and arrays as tensors."""

    def leaf(y: Any) -> Any:
        made = y if isinstance(y, Tensor) else asarray(y)
        expect_real(made)
        return made

    return _trees.mapped(out, leaf)


class _Within(threading.local):
    """Whether a thread is in ``fwd`` of a function."""

    is_on = False


class custom_vjp:  # noqa: N801
    """A function of tensors whose gradient two other functions compute, which ``defvjp`` names.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> @ti.custom_vjp
    ... def clipped(x, low, high):
    ...     return ti.xp.clip(x, low, high)
    >>> clipped.defvjp(lambda x, low, high: (ti.xp.clip(x, low, high), None), lambda _, g: (g, None, None))
    >>> ti.grad(lambda x: clipped(x, -1.0, 1.0).sum())(ti.tensor.asarray([0.5, 3.0]))
    tensor([1., 1.], dtype=f32)

    Args:
        function: It takes and returns tensors, or tuples, lists and dictionaries of them.
        nondiff_argnums: The positions of arguments that are no tensors, or by which no gradient is taken.
    """

    def __init__(self, function: Callable[..., Any], nondiff_argnums: Sequence[int] = ()) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._constant = tuple(nondiff_argnums)
        self._rules: tuple[Callable[..., Any], Callable[..., Any]] | None = None
        self._within = _Within()

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Names the functions that compute the gradient.

        Args:
            fwd: It is called with the function's arguments in place of it, and returns the result and the values
                that ``bwd`` needs.
            bwd: It is called with the ``nondiff_argnums``, with that, and with the gradient by the result (in its
                structure), and returns a tuple: for each other argument its gradient, or ``None`` for zero.
        """
        self._rules = fwd, bwd

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            args = _positional(self._function, args, kwargs)
        what = _called("custom_vjp", self._function)
        if self._rules is None:
            raise AttributeError(f"{what} has no rule yet: call `defvjp`")
        given = _Arguments(args, self._constant)
        if self._within.is_on or not is_needed(given.tensors):
            return self._function(*args)
        fwd, bwd = self._rules
        # The function itself, if `fwd` calls it.
        self._within.is_on = True
        try:
            with _opaque.Rule() as forward:
                out, kept = fwd(*given.args)
        finally:
            self._within.is_on = False

        def rule(gradients: Any) -> list[tuple[Tensor, Tensor]]:
            with _opaque.Rule() as backward:
                made = bwd(*given.constants(), kept, gradients)
            found = given.gradients(made, what)
            if forward.is_opaque or backward.is_opaque:
                return _without_derivatives(what, found, [*given.tensors, *_trees.leaves(gradients)])
            return found

        return _with_rule(what, _as_tensors(out), rule, given.tensors)


class custom_jvp:  # noqa: N801
    """A function of tensors whose derivative along a direction another function computes, which ``defjvp`` names.

    Gradients come from it by transposition: its result is linear in the directions.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> @ti.custom_jvp
    ... def cube(x):
    ...     return x * x * x
    >>> rule = cube.defjvp(lambda primals, tangents: (cube(*primals), 3 * primals[0] ** 2 * tangents[0]))
    >>> ti.grad(cube)(2.0)
    tensor(12., dtype=f32)

    Args:
        function: As of ``custom_vjp``.
        nondiff_argnums: As of ``custom_vjp``.
    """

    def __init__(self, function: Callable[..., Any], nondiff_argnums: Sequence[int] = ()) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._constant = tuple(nondiff_argnums)
        self._rule: Callable[..., Any] | None = None

    def defjvp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Names the function that computes the derivative.

        Args:
            rule: It takes the ``nondiff_argnums``, a tuple of the other arguments and a tuple of their directions,
                and returns the result and its change.
        """
        self._rule = rule
        return rule

    def defjvps(self, *rules: Callable[..., Any] | None) -> None:
        """Names a function for each argument: of its direction, the result and the arguments it returns the change."""
        function = self._function

        def rule(primals: Any, tangents: Any) -> Any:
            out = function(*primals)
            parts = [part(t, out, *primals) for part, t in zip(rules, tangents) if part is not None]
            return out, functools.reduce(lambda x, y: x + y, parts)

        self._rule = rule

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            args = _positional(self._function, args, kwargs)
        what = _called("custom_jvp", self._function)
        if self._rule is None:
            raise AttributeError(f"{what} has no rule yet: call `defjvp`")
        derivative = self._rule
        given = _Arguments(args, self._constant)
        if not is_needed(given.tensors):
            return self._function(*args)
        out = self._function(*args)

        def rule(gradients: Any) -> Any:
            from aerogel.tensor._creation import zeros_like

            constants, primals = given.constants(), tuple(given.varying())

            def change(tangents: Any) -> Any:
                return derivative(*constants, primals, tangents)[1]

            # Linear: its gradient is the same at any directions.
            at = _trees.mapped(primals, lambda x: zeros_like(x) if is_differentiable(x) else x)
            _, transposed = vjp(change, _only_smooth(at))
            return given.gradients(transposed(gradients)[0], what)

        return _with_rule(what, _as_tensors(out), rule, given.tensors)


def _only_smooth(tree: Any) -> Any:
    for leaf in _trees.leaves(tree):
        if not is_differentiable(leaf):
            raise TypeError(
                "`custom_jvp`: an argument is not a float tensor, and has no tangent: name it in `nondiff_argnums`"
            )
    return tree


def checkpoint(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, of which only the arguments are saved for gradients: the backward pass recomputes the rest.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> ti.grad(lambda x: ti.checkpoint(ti.xp.sin)(x).sum())(ti.tensor.asarray([0.0]))
    tensor([1.], dtype=f32)

    Args:
        function: It takes and returns tensors, or tuples, lists, dictionaries and modules of them.
    """
    if not callable(function):
        raise TypeError(f"`checkpoint` takes a function, not {function!r}")

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = _Arguments([args, kwargs], ())
        keys: list[Tensor] = []
        buffers = _buffers([given.args, _captured(function)])
        with _draws.kept_in(keys):
            out = function(*args, **kwargs)
        if not is_needed(_trees.leaves(out)):
            return out

        def rule(gradients: Any) -> list[tuple[Tensor, Tensor]]:
            with enable_grad(), _draws.kept_in(keys, again=True), _installed(buffers):
                # Copies, so that no statement is one of those that have made the result.
                own, named = given.given([_copy(x) for x in given.tensors])
                made = _as_tensors(function(*own, **named))
            pairs = zip(_trees.leaves(made), _trees.leaves(gradients))
            return [(y, g) for y, g in pairs if g is not None]

        return _with_rule(what, _as_tensors(out), rule)

    what = _called("checkpoint", function)
    return call


def _captured(function: Any) -> list[Any]:
    """A function, and the values that it uses from outside: modules may be among them."""
    own = getattr(function, "__func__", function)
    code = getattr(own, "__code__", None)
    if code is None:
        return [function]
    known = [own.__globals__[name] for name in code.co_names if name in own.__globals__]
    cells = [cell.cell_contents for cell in own.__closure__ or () if cell != types.CellType()]
    return [function, getattr(function, "__self__", None), *known, *cells]


def _buffers(tree: Any) -> list[tuple[Any, str, Tensor]]:
    """The buffers of the modules in a tree as they are now: the module, the name and the values of each."""
    modules = {id(node): node for node in _trees.nodes(tree) if hasattr(node, "named_buffers")}
    return [
        (node, name, own._as_it_is())
        for node in modules.values()
        for name, own in node.named_buffers()
        if isinstance(own, Tensor)
    ]


@contextlib.contextmanager
def _installed(buffers: list[tuple[Any, str, Tensor]]) -> Iterator[None]:
    """Gives modules earlier values of their buffers in a block, which may change them, and the present ones after."""
    now = [(node, name, dict(node.named_buffers())[name]) for node, name, _ in buffers]
    for node, name, was in buffers:
        node._tree_set(name, was._as_it_is())
    try:
        yield
    finally:
        for node, name, own in now:
            node._tree_set(name, own)


def pulled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that gives the gradients of a function by tensors among the leaves of its arguments.

    It takes the same arguments, and by names of its own (``added``) whether each leaf is one of these tensors, and the
    gradients by the tensors of floats in the result.
    """
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    added = (f"_wanted_{len(parameters)}", f"_gradients_{len(parameters)}")
    own = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in added]
    n = len(parameters) - any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)

    def call(*args: Any, **kwargs: Any) -> Any:
        is_wanted, gradients = (kwargs.pop(name) for name in added)
        given = _Arguments([args, kwargs], (), takes_modules=False, is_wanted=is_wanted)

        def again(*tensors: Tensor) -> Any:
            args, kwargs = given.given(tensors)
            out = _as_tensors(function(*args, **kwargs))
            return tuple(y for y in _trees.leaves(out) if is_differentiable(y))

        return vjp(again, *given.tensors)[1](tuple(gradients))

    call.added = added  # type: ignore[attr-defined]
    call.__name__ = f"gradient of {getattr(function, '__name__', 'program')}"
    call.__signature__ = signature.replace(parameters=[*parameters[:n], *own, *parameters[n:]])  # type: ignore[attr-defined]
    return call


def run_with_gradient(program: Any, gradient: Any, args: Any, kwargs: Any) -> Any:
    """Calls a program with tensors through which gradients are taken: ``gradient`` is the program of ``pulled``."""
    bound = program._signature.bind(*args, **kwargs)
    bound.apply_defaults()
    # The leaves in the order in which the program has them.
    given = _Arguments([bound.args, bound.kwargs], (), takes_modules=False)
    with no_grad():
        out = _as_tensors(program(*args, **kwargs))

    def rule(gradients: Any) -> list[tuple[Tensor, Tensor]]:
        smooth = tuple(g for g in _trees.leaves(gradients) if g is not None)
        # A batched tensor has no values to call a program with: its function is recorded instead.
        pull = gradient._function if any(g._native.is_one_of_many() for g in smooth) else gradient
        own, named = given.args
        # Numbers and arrays of the caller's are tensors of the program's, too.
        made = pull(*own, **named, **dict(zip(gradient._function.added, (tuple(given.is_wanted), smooth))))
        return by_inputs(what, given.tensors, made)

    what = _called("program", program)
    return _with_rule(what, out, rule, given.tensors)


def _copy(x: Tensor) -> Tensor:
    """The same numbers in a statement that is not shared with others."""
    native, _ = _native.variable_of_tensor(x._native, False)
    _native.end_variables([native])
    return Tensor(native, x._outside)


__all__ = ["checkpoint", "custom_jvp", "custom_vjp"]
