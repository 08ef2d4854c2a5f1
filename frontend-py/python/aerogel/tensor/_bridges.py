"""Functions of tensors inside of PyTorch's and JAX's graphs, and functions of theirs among tensors.

Each way, the gradient of a function is a function of the arguments and the seeds, which crosses the same way when its
own gradient is taken.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from aerogel import _native
from aerogel._dtypes import numpy_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class _Called:
    """A call of a function of tensors with arrays of another package: its results, and the gradients by the arrays."""

    def __init__(self, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], is_own: Any) -> None:
        from aerogel.tensor._gradients import _Variables, is_differentiable
        from aerogel.tensor._rules import expect_real
        from aerogel.tensor._tensor import Tensor, asarray
        from aerogel.tensor.programs import _trees

        self.variables = _Variables("the function of another package")
        #: Which of the arrays have a gradient.
        self.is_smooth: list[bool] = []

        def tensor(value: Any) -> Any:
            if not is_own(value):
                return value
            x = asarray(value)
            expect_real(x)
            self.is_smooth.append(is_differentiable(x))
            return self.variables.of(x, "an argument") if self.is_smooth[-1] else x

        given, named = _trees.mapped([list(args), kwargs], tensor)
        out = function(*given, **named)
        self.out = _trees.mapped(out, lambda y: y if isinstance(y, Tensor) else asarray(y))
        for y in _trees.leaves(self.out):
            expect_real(y)
        self.results: list[Any] = _trees.leaves(self.out)
        self.smooth = [y for y in self.results if is_differentiable(y)]

    def captured(self) -> bool:
        """Whether gradients would go to other tensors than the arguments."""
        through = [x._native for x in self.variables.tensors]
        return bool(_native.roots_behind([y._native for y in self.smooth], through))

    def back(self, seeds: Sequence[Any]) -> list[Any]:
        """The gradients by the arrays of floats; those by captured tensors are added to their ``grad``."""
        from aerogel.tensor._creation import zeros_like
        from aerogel.tensor._nodes import Gradients

        made = Gradients([x._native for x in self.variables.tensors], of_leaves=True)
        made.add([(y, seed) for y, seed in zip(self.smooth, seeds) if seed is not None])
        made.to_leaves()
        return [zeros_like(x) if g is None else g for g, x in zip(made.by_variable, self.variables.tensors)]


def gradient_of(function: Callable[..., Any], n_seeds: int) -> Callable[..., Any]:
    """The gradients of a function of tensors: its last ``n_seeds`` arguments are those by its results of floats."""

    def gradient(*args: Any, **kwargs: Any) -> Any:
        from aerogel.tensor._tensor import Tensor

        n = len(args) - n_seeds
        call = _Called(function, args[:n], kwargs, lambda x: isinstance(x, Tensor))
        return tuple(call.back(args[n:]))

    return gradient


# PyTorch.


def torch_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of tensors as one of PyTorch's; see ``torch_function``."""
    import torch

    from aerogel.tensor._backward import enable_grad, no_grad
    from aerogel.tensor._tensor import asarray
    from aerogel.tensor.programs import _trees

    def is_own(value: Any) -> bool:
        return isinstance(value, torch.Tensor)

    def of_tensor(x: Any) -> Any:
        return torch.as_tensor(x.detach().numpy())

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, tree: list[Any], holder: list[Any], *tensors: Any) -> Any:
            each = iter(tensors)
            args, kwargs = _trees.mapped(tree, lambda hole: next(each) if hole is _HOLE else hole)
            with enable_grad():
                plain = _trees.mapped([args, kwargs], _detached)
                ctx.call = call = _Called(function, plain[0], plain[1], is_own)
            ctx.tree = tree
            ctx.save_for_backward(*tensors)
            holder.append(_trees.mapped(call.out, lambda _: _HOLE))
            results = tuple(map(of_tensor, call.results))
            ctx.mark_non_differentiable(*(y for y in results if not y.is_floating_point()))
            return results

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            call = ctx.call
            seeds = [g for g, y in zip(gradients, call.results) if y.dtype.is_float]
            if torch.is_grad_enabled():
                each = iter(ctx.saved_tensors)
                args, kwargs = _trees.mapped(ctx.tree, lambda hole: next(each) if hole is _HOLE else hole)
                seeds = [torch.zeros_like(of_tensor(y)) if g is None else g for g, y in zip(seeds, call.smooth)]
                made = torch_of(gradient_of(function, len(seeds)))(*args, *seeds, **kwargs)
            else:
                with no_grad():
                    made = call.back([None if g is None else asarray(g.detach()) for g in seeds])
                    made = [of_tensor(g) for g in made]
            each = iter(made)
            return None, None, *(next(each) if is_smooth else None for is_smooth in call.is_smooth)

    def call(*args: Any, **kwargs: Any) -> Any:
        tensors = [x for x in _trees.leaves([list(args), kwargs]) if is_own(x)]
        tree = _trees.mapped([list(args), kwargs], lambda x: _HOLE if is_own(x) else x)
        holder: list[Any] = []
        results = iter(Function.apply(tree, holder, *tensors))
        return _trees.mapped(holder[0], lambda _: next(results))

    return _named(call, function)


class _Hole:
    """Where a tensor stands."""


_HOLE = _Hole()


def _detached(value: Any) -> Any:
    return value.detach() if _native.is_torch_tensor(value) else value


def _named(call: Callable[..., Any], function: Any) -> Callable[..., Any]:
    call.__name__ = getattr(function, "__name__", "function")
    call.__doc__ = getattr(function, "__doc__", None)
    return call


class _Torch:
    """A call of a function of PyTorch's."""

    name = "PyTorch"

    def __init__(self, function: Callable[..., Any], tree: Any, tensors: Sequence[Any], is_needed: bool) -> None:
        import torch

        self._torch = torch
        self.inputs = [self.array(x) for x in tensors]
        if is_needed:
            self.inputs = [x.requires_grad_() if x.is_floating_point() else x for x in self.inputs]
        with torch.set_grad_enabled(not _native.are_gradients_off()):
            self.out = function(*_filled(tree, self.inputs)[0], **_filled(tree, self.inputs)[1])

    @staticmethod
    def array(x: Any) -> Any:
        import torch

        return torch.tensor(x.detach().numpy())

    @staticmethod
    def is_source(leaves: Sequence[Any]) -> bool:
        """Whether gradients go to what the function uses besides its arguments, or may."""
        return any(getattr(y, "requires_grad", False) for y in leaves)

    @staticmethod
    def tensor(y: Any) -> Any:
        from aerogel.tensor._tensor import asarray

        return asarray(_detached(y))

    def back(self, results: Sequence[Any], seeds: Sequence[Any]) -> list[Any]:
        """The gradients by the inputs."""
        for x in self.inputs:
            x.grad = None
        pairs = [(y, self.array(g)) for y, g in zip(results, seeds) if y.requires_grad]
        if pairs:
            self._torch.autograd.backward([y for y, _ in pairs], [g for _, g in pairs], retain_graph=True)
        return [None if x.grad is None else self.tensor(x.grad) for x in self.inputs]

    @staticmethod
    def gradient(function: Callable[..., Any], tree: Any, n: int) -> Callable[..., Any]:
        """The gradients by the inputs as a function of PyTorch's: of ``n`` inputs and the seeds."""
        import torch

        def gradient(*tensors: Any) -> Any:
            # Copies, so that the gradient by an input is the same whoever takes it.
            inputs = [
                x.clone() if x.requires_grad else x.detach().requires_grad_(x.is_floating_point()) for x in tensors[:n]
            ]
            with torch.enable_grad():
                args, kwargs = _filled(tree, inputs)
                results = [y for y in _leaves(function(*args, **kwargs)) if y.is_floating_point()]
            pairs = [(y, g) for y, g in zip(results, tensors[n:]) if y.requires_grad]
            smooth = [x for x in inputs if x.is_floating_point()]
            made = torch.autograd.grad(
                [y for y, _ in pairs], smooth, [g for _, g in pairs], create_graph=True, allow_unused=True
            )
            each = iter(made)
            made = [next(each) if x.is_floating_point() else None for x in inputs]
            return tuple(torch.zeros_like(x) if g is None else g for g, x in zip(made, inputs))

        return gradient


# JAX.


def jax_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of tensors as one of JAX's; see ``jax_function``."""
    import jax
    import numpy as np

    from aerogel.tensor._backward import enable_grad, no_grad
    from aerogel.tensor.programs import _trees

    def is_own(value: Any) -> bool:
        return isinstance(value, (jax.Array, np.ndarray))

    def call(*args: Any, **kwargs: Any) -> Any:
        tree = _trees.mapped([list(args), kwargs], lambda x: _HOLE if is_own(x) else x)
        arrays = tuple(jax.numpy.asarray(x) for x in _trees.leaves([list(args), kwargs]) if is_own(x))

        def called(arrays: Sequence[Any]) -> _Called:
            with enable_grad():
                filled = _filled(tree, [np.asarray(x) for x in arrays])
                own = _Called(function, filled[0], filled[1], is_own)
            if own.captured():
                raise ValueError(
                    "a function of JAX uses a tensor with `requires_grad` that is not an argument: make it an argument"
                )
            return own

        # Nothing is computed: shapes and dtypes are known when statements are recorded.
        like = called([np.zeros(x.shape, x.dtype) for x in arrays])
        kinds = tuple(jax.ShapeDtypeStruct(y.shape, numpy_dtype(y.dtype)) for y in like.results)

        def run(*arrays: Any) -> Any:
            with no_grad():
                return tuple(y.detach().numpy() for y in called(arrays).results)

        @jax.custom_vjp
        def own(*arrays: Any) -> Any:
            return jax.pure_callback(run, kinds, *arrays, vmap_method="sequential")

        def backward(arrays: Any, gradients: Any) -> Any:
            seeds = [g for g, y in zip(gradients, like.results) if y.dtype.is_float]
            args, kwargs = _filled(tree, arrays)
            made = iter(jax_of(gradient_of(function, len(seeds)))(*args, *seeds, **kwargs))
            return tuple(next(made) if is_smooth else None for is_smooth in like.is_smooth)

        own.defvjp(lambda *arrays: (own(*arrays), arrays), backward)
        results = iter(own(*arrays))
        return _trees.mapped(like.out, lambda _: next(results))

    return _named(call, function)


class _Jax:
    """A call of a function of JAX's."""

    name = "JAX"

    def __init__(self, function: Callable[..., Any], tree: Any, tensors: Sequence[Any], is_needed: bool) -> None:
        import jax

        self._inputs = [self.array(x) for x in tensors]

        def smooth_parts(*inputs: Any) -> Any:
            args, kwargs = _filled(tree, inputs)
            return function(*args, **kwargs)

        if is_needed:
            self.out, self._pull = jax.vjp(smooth_parts, *self._inputs)
        else:
            self.out = smooth_parts(*self._inputs)

    @staticmethod
    def array(x: Any) -> Any:
        import jax

        return jax.numpy.asarray(x.detach().numpy())

    @staticmethod
    def is_source(leaves: Sequence[Any]) -> bool:
        return False

    @staticmethod
    def tensor(y: Any) -> Any:
        import numpy as np

        from aerogel.tensor._tensor import asarray

        return asarray(np.asarray(y))

    def back(self, results: Sequence[Any], seeds: Sequence[Any]) -> list[Any]:
        import jax
        import numpy as np

        each = iter(seeds)

        def seed(y: Any) -> Any:
            if jax.numpy.issubdtype(y.dtype, jax.numpy.floating):
                return self.array(next(each)).astype(y.dtype)
            return np.zeros(y.shape, jax.dtypes.float0)

        made = self._pull(jax.tree.map(seed, self.out))
        return [None if g.dtype == jax.dtypes.float0 else self.tensor(g) for g in made]

    @staticmethod
    def gradient(function: Callable[..., Any], tree: Any, n: int) -> Callable[..., Any]:
        import jax
        import numpy as np

        def gradient(*arrays: Any) -> Any:
            def of_inputs(*inputs: Any) -> Any:
                args, kwargs = _filled(tree, inputs)
                return function(*args, **kwargs)

            out, pull = jax.vjp(of_inputs, *arrays[:n])
            each = iter(arrays[n:])
            seeds = jax.tree.map(
                lambda y: (
                    next(each).astype(y.dtype)
                    if jax.numpy.issubdtype(y.dtype, jax.numpy.floating)
                    else np.zeros(y.shape, jax.dtypes.float0)
                ),
                out,
            )
            made = pull(seeds)
            return tuple(
                jax.numpy.zeros(x.shape, x.dtype) if g.dtype == jax.dtypes.float0 else g
                for g, x in zip(made, arrays[:n])
            )

        return gradient


# Both.


def _filled(tree: Any, values: Sequence[Any]) -> Any:
    """The arguments with values in place of the tensors."""
    from aerogel.tensor.programs import _trees

    each = iter(values)
    return _trees.mapped(tree, lambda x: next(each) if x is _HOLE else x)


def _leaves(out: Any) -> list[Any]:
    from aerogel.tensor.programs import _trees

    return _trees.leaves(out)


def _among_tensors(package: Any, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls a function of another package with tensors."""
    from aerogel.tensor._gradients import is_differentiable
    from aerogel.tensor._nodes import is_needed
    from aerogel.tensor._rules import expect_real
    from aerogel.tensor._tensor import Tensor, tracing
    from aerogel.tensor.programs import _trees

    what = f"`{getattr(function, '__name__', 'function')}` of {package.name}"
    if tracing.program is not None:
        raise RuntimeError(f"{what} needs values, and a traced program has none: call it outside of the program")
    given = [list(args), kwargs]
    # As they are now: the gradient is taken later.
    tensors = [x._as_it_is() for x in _trees.leaves(given) if isinstance(x, Tensor)]
    tree = _trees.mapped(given, lambda x: _HOLE if isinstance(x, Tensor) else x)
    call = package(function, tree, tensors, is_needed(tensors))
    leaves = _trees.leaves(call.out)
    results = [package.tensor(y) for y in leaves]
    smooth = [y for y, made in zip(leaves, results) if is_differentiable(made)]
    is_source = not _native.are_gradients_off() and package.is_source(leaves)
    if is_source or is_needed(tensors):
        for y in results:
            expect_real(y)
        crossing = _Crossing(package, what, function, tree)
        results = crossing.attached(tensors, results, lambda seeds: call.back(smooth, seeds), is_source)
    each = iter(results)
    return _trees.mapped(call.out, lambda _: next(each))


class _Crossing:
    """A function of another package that has been called with tensors."""

    def __init__(self, package: Any, what: str, function: Callable[..., Any], tree: Any) -> None:
        self._package, self._what, self._function, self._tree = package, what, function, tree

    def attached(self, tensors: Sequence[Any], results: Sequence[Any], back: Any, is_source: bool) -> list[Any]:
        """The results, with gradients that ``back`` gives by each of the tensors."""
        from aerogel.tensor._gradients import is_differentiable
        from aerogel.tensor._nodes import attached, by_inputs, is_needed

        inputs = [x for x in tensors if is_differentiable(x)]

        def rule(gradients: list[Any]) -> list[tuple[Any, Any]]:
            pairs = zip(tensors, back(gradients))
            made = [_zeros_or(g, x) for x, g in pairs if is_differentiable(x)]
            if is_needed([*gradients, *tensors]):
                made = self._gradient(tensors, gradients, made)
            return by_inputs(self._what, inputs, made)

        own = iter(attached(self._what, [y for y in results if is_differentiable(y)], rule, inputs, is_source))
        return [next(own) if is_differentiable(y) else y for y in results]

    def _gradient(self, tensors: Sequence[Any], seeds: list[Any], made: list[Any]) -> list[Any]:
        """The gradients again, with gradients of their own: it is called once more for these."""
        from aerogel.tensor._gradients import is_differentiable

        whole = self._package.gradient(self._function, self._tree, len(tensors))
        inputs = [*tensors, *seeds]
        tree = [[_HOLE] * len(inputs), {}]

        def back(gradients: Sequence[Any]) -> list[Any]:
            call = self._package(whole, tree, inputs, True)
            is_smooth = map(is_differentiable, tensors)
            return call.back([y for y, smooth in zip(_leaves(call.out), is_smooth) if smooth], gradients)

        return _Crossing(self._package, self._what, whole, tree).attached(inputs, made, back, False)


def _zeros_or(g: Any, x: Any) -> Any:
    from aerogel.tensor._creation import zeros_like

    return zeros_like(x) if g is None else g.astype(x.dtype)


def from_torch(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of PyTorch's as one of tensors; see ``ti.ad.from_torch``."""
    return _named(functools.partial(_among_tensors, _Torch, function), function)


def from_jax(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of JAX's as one of tensors; see ``ti.ad.from_jax``."""
    return _named(functools.partial(_among_tensors, _Jax, function), function)


__all__ = ["from_jax", "from_torch", "jax_of", "torch_of"]
