"""Gradients of functions of tensors: ``grad`` and related functions."""

from __future__ import annotations

import contextlib
import functools
import importlib
from typing import TYPE_CHECKING, Any

from aerogel import _native
from aerogel._config import debug
from aerogel.errors import AerogelArithmeticError
from aerogel.tensor._backward import RETAINED, enable_grad, leaf_of, no_grad
from aerogel.tensor._complex import ComplexTensor
from aerogel.tensor._nodes import Gradients, end, first_node, has_shape, newest
from aerogel.tensor._tensor import Tensor, asarray, tracing
from aerogel.tensor.programs import _trees

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


def stop_gradient(x: Any) -> Any:
    """The same values, through which no gradient passes; of a tensor, or of tuples, lists and dictionaries of them."""
    return _trees.mapped(x, lambda leaf: leaf.detach() if hasattr(leaf, "detach") else leaf)


def is_differentiable(x: Any) -> bool:
    """Whether a tensor may have a gradient: it is of floats."""
    return isinstance(x, Tensor) and x.dtype.is_float


def backward(x: Any, grad: Any, create_graph: bool, inputs: Any) -> None:
    """Adds the gradients of a tensor to ``grad`` of all with ``requires_grad``; see ``Tensor.backward``."""
    seed = seed_of(x, grad, "backward")
    retained = [t for t in list(RETAINED.values()) if leaf_of(t) is not None]
    only = None if inputs is None else {id(leaf_of(t)) for t in ([inputs] if isinstance(inputs, Tensor) else inputs)}
    with enable_grad() if create_graph else no_grad():
        made = Gradients([t._native for t in retained], of_leaves=True)
        made.add([(x, seed)])
        if not made.by_number:
            raise ValueError("`backward`: the tensor does not depend on any tensor with `requires_grad`")
        made.to_leaves(lambda leaf: only is None or id(leaf) in only)
        for t, gradient in zip(retained, made.by_variable):
            leaf = leaf_of(t)
            if gradient is not None and leaf is not None and (only is None or id(leaf) in only):
                leaf.grad = gradient if leaf.grad is None else leaf.grad + gradient


def seed_of(x: Tensor, seed: Any, who: str, advice: str = "take its sum, or pass a seed of that shape") -> Tensor:
    """What the gradient of each element counts. ``advice`` is for a result that needs a seed and has none."""
    from aerogel.tensor._creation import ones

    if not is_differentiable(x):
        raise TypeError(f"`{who}`: gradients are of floats, not of {x.dtype}")
    if tracing.program is None and debug() and not x._native.is_one_of_many():
        _expect_no_nan(x, who)
    if seed is None:
        if x.ndim != 0 and (tracing.program is not None or x.size != 1):
            raise ValueError(
                f"`{who}` differentiates a scalar, and the result has the shape {x._native.shape_text()}: {advice}"
            )
        return ones(x.shape, dtype=x.dtype)
    seed = asarray(seed, dtype=x.dtype)
    if not has_shape(seed, x, f"`{who}`: the seed"):
        raise ValueError(
            f"`{who}`: the seed has the shape {seed._native.shape_text()}, the result {x._native.shape_text()}"
        )
    return seed


def _expect_no_nan(x: Tensor, who: str) -> None:
    """Refuses a tensor with NaN, and names the statement that made the first one."""
    import numpy as np

    if not np.isnan(x._copied()).any():
        return
    for native, place in _native.tensor_made_of(x._native):
        if np.isnan(Tensor(native)._copied()).any():
            raise AerogelArithmeticError(f"`{who}` of a tensor that is NaN; the first NaN comes from here:{place}")


class _Variables:
    """The variables of a function that is differentiated."""

    def __init__(self, who: str) -> None:
        self._who = who
        self._natives: list[Any] = []
        self._first = first_node()
        self._after = newest()
        #: What has noted the kernels, if there are fields or arrays among the variables; and these, by their places.
        self.tape: Any = None
        self.fields: dict[int, Any] = {}
        self.tensors: list[Tensor] = []

    def of(self, tree: Any, name: str) -> Any:
        """The same tree with variables for tensors."""

        def leaf(value: Any) -> Any:
            # The gradient by a module is not one of its parameters' own, on which `backward` would depend.
            is_parameter = getattr(type(value), "_is_parameter", False)
            return self._variable(value.detach() if is_parameter else value, name)

        return _trees.mapped(tree, leaf, is_trained=True)

    def _variable(self, value: Any, name: str) -> Any:
        if isinstance(value, (_native.NativeField, _native.NativeNdarray)):
            return self._field(value, name)
        x = asarray(float(value) if isinstance(value, int) and not isinstance(value, bool) else value)
        if isinstance(x, ComplexTensor):
            # The gradient is dL/d(re) + i dL/d(im).
            return ComplexTensor(self._variable(x.real, name), self._variable(x.imag, name))
        if not is_differentiable(x):
            raise TypeError(f"`{self._who}`: {name} is of {x.dtype}, and only floats have gradients")
        native, _ = _native.variable_of_tensor(x._native, False)
        self._natives.append(native)
        made = Tensor(native, x._outside)
        self.tensors.append(made)
        return made

    def _field(self, value: Any, name: str) -> Any:
        """A field or an array that the function uses itself, in kernels or as a tensor."""
        from aerogel.ad._gradients import expect_differentiable

        if tracing.program is not None:
            raise TypeError(
                f"`{self._who}`: {name} is a field or an array: take the gradient by it outside of programs"
            )
        expect_differentiable(value, "grad", name)
        if self.tape is None:
            # By its name: tapes know of tensors themselves.
            self.tape = importlib.import_module("aerogel.ad").Tape()
        self.fields[len(self.tensors)] = value
        self.tensors.append(value)
        return value

    def _by_tape(self, seeds: list[tuple[Any, Any]]) -> list[Tensor]:
        from aerogel.ad._gradients import numbers_of

        made = iter(self.tape.grad_by(seeds, self._natives, is_again=True))
        return [
            asarray(numbers_of(self.fields[k].grad)) if k in self.fields else next(made)
            for k in range(len(self.tensors))
        ]

    def gradients(self, seeds: list[tuple[Any, Any]]) -> list[Tensor]:
        """The gradients by the variables, zeros where nothing depends on one."""
        from aerogel.tensor._creation import zeros_like

        if self.tape is not None:
            return [zeros_like(x) if g is None else g for g, x in zip(self._by_tape(seeds), self.tensors)]
        made = Gradients(self._natives, self._first)
        made.add(seeds)
        made.through_nodes()
        return [zeros_like(x) if g is None else g for g, x in zip(made.by_variable, self.tensors)]

    def __del__(self) -> None:
        end(self._natives, self._after)


def _parts(tree: Any, gradients: Iterator[Tensor]) -> Any:
    """The gradients by the tensors of a tree, in its structure."""

    def part(x: Any) -> Any:
        made = next(gradients)
        return ComplexTensor(made, next(gradients)) if isinstance(x, ComplexTensor) else made

    return _trees.mapped(tree, part, is_trained=True)


def _positions(argnums: Any, n: int, who: str) -> tuple[int, ...]:
    positions = argnums if isinstance(argnums, (tuple, list)) else (argnums,)
    for k in positions:
        if not isinstance(k, int) or not -n <= k < n:
            raise ValueError(f"`{who}`: there is no argument {k!r}, the function has {n}")
    return tuple(k % n for k in positions)


def _called(
    function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], argnums: Any, who: str
) -> tuple[_Variables, list[Any], Any]:
    """Calls a function with variables in place of some arguments."""
    variables = _Variables(who)
    given = list(args)
    positions = _positions(argnums, len(given), who)
    with enable_grad():
        for k in positions:
            given[k] = variables.of(given[k], f"argument {k}")
        # The function may change modules, which are copies: what it changes is that of those which were given.
        nodes = [_trees.nodes(given[k]) for k in positions]
        before = [[_trees.parts_of(node) for node in own] for own in nodes]
        structures = [_trees.mapped(given[k], lambda x: x) if own else given[k] for k, own in zip(positions, nodes)]
        with variables.tape or contextlib.nullcontext():
            result = function(*given, **kwargs)
        for k, own, was in zip(positions, nodes, before):
            for node, copied, parts in zip(_trees.nodes(args[k]), own, was):
                for name, part in _trees.changed(copied, parts):
                    node._tree_set(name, part)
        return variables, structures, result


def _transformed(function: Any, transform: Callable[[Any], Any], who: str) -> Any:
    """The same for a program."""
    from aerogel.tensor.programs import Program

    if isinstance(function, Program):
        return function.transformed(transform)
    if not callable(function):
        raise TypeError(f"`{who}` takes a function, not {type(function).__name__}")
    return None


def grad(function: Any, argnums: Any = 0, has_aux: bool = False, seed: Any = None) -> Any:
    """A function that computes the gradient of a function of tensors; or the gradient of a tensor by others.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> ti.grad(lambda x: (x * x).sum())(ti.tensor.asarray([1.0, 2.0, 3.0]))
    tensor([2., 4., 6.], dtype=f32)

    Args:
        function: It returns one number, or a tensor with a ``seed``. Programs are taken too. A tensor ``y``: then
            ``argnums`` has the tensor, or the tensors, by which its gradient is taken.
        argnums: Which arguments the gradient is taken by: a number or several. An argument may be a tuple, list,
            dictionary or dataclass of tensors, and so is its gradient.
        has_aux: Whether the function returns a pair, of which only the first is differentiated.
        seed: The weight of each element of the result.

    Returns:
        A function that returns the gradient, with ``has_aux`` the gradient and the second of the pair.

    Raises:
        TypeError: If an argument or the result is not of floats.
        ValueError: If the result is not one number and there is no seed, or depends on an argument by an operation that
            has no derivative.
    """
    if isinstance(function, Tensor):
        return _by_tensors(function, argnums, seed)
    program = _transformed(function, lambda own: grad(own, argnums, has_aux, seed), "grad")
    if program is not None:
        return program
    both = value_and_grad(function, argnums, has_aux, seed)

    @functools.wraps(function)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        out, made = both(*args, **kwargs)
        return (made, out[1]) if has_aux else made

    return gradient


def value_and_grad(function: Any, argnums: Any = 0, has_aux: bool = False, seed: Any = None) -> Any:
    """As ``grad``, but the returned function returns the result and the gradient."""
    program = _transformed(function, lambda own: value_and_grad(own, argnums, has_aux, seed), "value_and_grad")
    if program is not None:
        return program

    @functools.wraps(function)
    def both(*args: Any, **kwargs: Any) -> Any:
        variables, given, result = _called(function, args, kwargs, argnums, "grad")
        out, aux = result if has_aux else (result, None)
        if variables.tape is None:
            out = asarray(out)
            seed_or_ones = seed_of(out, seed, "grad")
        else:
            seed_or_ones = seed
        parts = iter(variables.gradients([(out, seed_or_ones)]))
        made = [_parts(tree, parts) for tree in given]
        gradients = tuple(made) if isinstance(argnums, (tuple, list)) else made[0]
        return ((out, aux), gradients) if has_aux else (out, gradients)

    return both


def _by_tensors(y: Tensor, by: Any, seed: Any) -> Any:
    """The gradient of a tensor by others."""
    from aerogel.tensor._creation import zeros_like

    wanted = _trees.leaves(by)
    for x in wanted:
        if not is_differentiable(x):
            raise TypeError("`grad` of a tensor takes the float tensors to differentiate by")
        if tracing.program is None and not x.requires_grad:
            raise ValueError("`grad`: a tensor to differentiate by needs `requires_grad`")
    made = Gradients([x._native for x in wanted])
    made.add([(y, seed_of(y, seed, "grad"))])
    made.through_nodes()
    each = iter([zeros_like(x) if g is None else g for g, x in zip(made.by_variable, wanted)])
    return _trees.mapped(by, lambda _: next(each))


def vjp(function: Any, *primals: Any, has_aux: bool = False) -> Any:
    """The result of a function, and a function that maps a seed of the result's structure to the gradient.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> y, back = ti.vjp(lambda x: x * x, ti.tensor.asarray([1.0, 2.0]))
    >>> back(ti.tensor.asarray([1.0, 10.0]))
    (tensor([ 2., 40.], dtype=f32),)
    """
    variables, given, result = _called(function, primals, {}, tuple(range(len(primals))), "vjp")
    out, aux = result if has_aux else (result, None)
    results = [asarray(y) for y in _trees.leaves(out)]

    def pullback(seeds: Any) -> tuple[Any, ...]:
        own = _trees.leaves(seeds)
        if _trees.structure(seeds) != _trees.structure(out):
            raise ValueError(f"`vjp`: the seed is {_trees.text(seeds)}, the result {_trees.text(out)}")
        made = iter(variables.gradients([(y, seed_of(y, seed, "vjp")) for y, seed in zip(results, own)]))
        return tuple(_parts(tree, made) for tree in given)

    return (out, pullback, aux) if has_aux else (out, pullback)


def jvp(function: Any, primals: Any, tangents: Any) -> Any:
    """The result of a function, and its directional derivative along tangents of the arguments.

    The gradient is linear in its seed, and its own gradient by the seed is the change (Christianson 1992; Radul et al.,
    "You only linearize once", 2022).
    """
    from aerogel.tensor._creation import ones_like

    if len(primals) != len(tangents):
        raise ValueError(f"`jvp`: {len(primals)} arguments, {len(tangents)} tangents")
    variables, _, out = _called(function, primals, {}, tuple(range(len(primals))), "jvp")
    results = [asarray(y) for y in _trees.leaves(out)]
    seeds = _Variables("jvp")
    with enable_grad():
        own = [seeds.of(ones_like(y), "a result") for y in results]
        gradients = variables.gradients(list(zip(results, own)))
        changes = [t for tree in tangents for t in _trees.leaves(tree)]
        pairs = [(g, seed_of(g, t, "jvp")) for g, t in zip(gradients, changes)]
        made = iter(seeds.gradients(pairs))
    return out, _trees.mapped(out, lambda _: next(made))


def jacobian(function: Any, argnums: Any = 0) -> Any:
    """A function that computes the Jacobian: the derivative of each element of the result by each of an argument.

    Its shape is the result's and then the argument's. If the result is a tuple, list or dictionary of tensors, so is
    the result of the function, and if an argument is one, there is a derivative by each of its tensors. By several
    arguments it is a tuple.
    """

    program = _transformed(function, lambda own: jacobian(own, argnums), "jacobian")
    if program is not None:
        return program

    @functools.wraps(function)
    def derivatives(*args: Any, **kwargs: Any) -> Any:
        from aerogel.tensor._creation import eye, zeros
        from aerogel.tensor._kernels import NotBatched
        from aerogel.tensor._shapes import stack
        from aerogel.tensor._vmap import vmap

        variables, given, out = _called(function, args, kwargs, argnums, "jacobian")

        def by_arguments(y: Any) -> Any:
            y = asarray(y)
            seeds = eye(y.size, dtype=y.dtype).reshape((y.size, *y.shape))

            def by_element(seed: Any) -> list[Any]:
                return variables.gradients([(y, seed)])

            try:
                made = iter(vmap(by_element)(seeds))
            except NotBatched:
                rows = zip(*map(by_element, seeds))
                nothing = (zeros((0, *x.shape), dtype=x.dtype) for x in _trees.leaves(given))
                made = (stack(row) for row in rows) if y.size else nothing
            shaped = [_trees.mapped(tree, lambda x: next(made).reshape((*y.shape, *x.shape))) for tree in given]
            return tuple(shaped) if isinstance(argnums, (tuple, list)) else shaped[0]

        return _trees.mapped(out, by_arguments)

    return derivatives


def hessian(function: Any, argnums: Any = 0) -> Any:
    """A function that computes the Hessian: the second derivatives of a scalar by each pair of elements of an argument.

    By several arguments: ``hessian(f, argnums=(0, 1))(x, y)[i][j]`` has those by arguments ``i`` and ``j``.
    """
    return jacobian(grad(function, argnums), argnums)


def hvp(function: Any, primals: Any, tangents: Any) -> Any:
    """The product of the second derivatives of a number with tangents, without the matrix of them.

    The matrix is symmetric, so the product is the gradient of the gradient along the tangents.
    """
    if len(primals) != len(tangents):
        raise ValueError(f"`hvp`: {len(primals)} arguments, {len(tangents)} tangents")
    _, pullback = vjp(grad(function, tuple(range(len(primals)))), *primals)
    return pullback(tuple(tangents))


def check_grad(function: Any, *args: Any, step: float = 1e-6, tolerance: float = 1e-5) -> float:
    """The largest relative difference between gradients and central differences, along a random direction.

    The arguments are of ``f64``.

    Raises:
        AssertionError: If the difference is larger than ``tolerance``.
    """
    import numpy as np

    arrays = [np.asarray(a, dtype=np.float64) for a in args]
    rng = np.random.default_rng(0)
    worst = 0.0
    made = grad(function, tuple(range(len(arrays))))(*arrays)
    for k, (array, gradient) in enumerate(zip(arrays, made)):
        direction = rng.standard_normal(array.shape)
        ends = [
            float(function(*[a + sign * step * direction if j == k else a for j, a in enumerate(map(asarray, arrays))]))
            for sign in (1.0, -1.0)
        ]
        difference = (ends[0] - ends[1]) / (2 * step)
        slope = float((gradient.numpy() * direction).sum())
        size = max(abs(slope), abs(difference), 1e-3)
        worst = max(worst, abs(slope - difference) / size)
        if not worst <= tolerance:
            raise AssertionError(f"argument {k}: the gradient is {slope}, finite differences are {difference}")
    return worst


__all__ = [
    "check_grad",
    "enable_grad",
    "grad",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "no_grad",
    "stop_gradient",
    "value_and_grad",
    "vjp",
]
