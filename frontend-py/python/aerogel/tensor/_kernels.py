"""Gradients of tensors through kernels: calls with such tensors, and the gradients of kernels in programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from aerogel.ad._function import FIRST_SEED, KernelFunction
from aerogel.data.ndarray import MatrixNdarray, ScalarNdarray, VectorNdarray, _make
from aerogel.errors import AerogelRuntimeError
from aerogel.kernel import defined_at, returned_types
from aerogel.tensor._backward import expect_free, no_grad
from aerogel.tensor._nodes import attached, by_inputs, is_needed
from aerogel.tensor._tensor import Tensor, asarray, tracing
from aerogel.tensor.programs._blocks import here

if TYPE_CHECKING:
    from collections.abc import Sequence


class Arguments:
    """The arguments of a kernel, with arrays that have gradients in place of tensors."""

    #: Where the user has called the kernel, for messages.
    called_at = ""

    def __init__(self, kernel: Any, args: Sequence[Any], kwargs: dict[str, Any] | None) -> None:
        self.function = function = KernelFunction(kernel)
        #: By the positions of the parameters.
        self.given = args = function.arguments(tuple(args), kwargs or {})
        #: The tensors, as they are now, by the positions of the parameters.
        self.tensors = {k: x._as_it_is() for k, x in enumerate(args) if isinstance(x, Tensor)}
        self._plain = {k: x.detach() for k, x in self.tensors.items()}
        self._names = [name for name, _ in function.inputs]
        self._is_array = [kind == "array" for _, kind in function.inputs]
        for k, x in self.tensors.items():
            if not self._is_array[k] and x.ndim:
                raise TypeError(f"argument `{self._names[k]}` of kernel `{function.name}` is one number, not {x.shape}")
        #: The positions of tensors of floats.
        self.floats = [k for k, x in self.tensors.items() if x.dtype.is_float]
        written = function.written(self.arrays(()))
        #: The positions of those that the kernel writes.
        self.written = [k for k in self.tensors if self._names[k] in written]
        for k in self.written:
            for j in self.tensors:
                if j != k and args[j] is args[k]:
                    raise ValueError(
                        f"arguments `{self._names[j]}` and `{self._names[k]}` of kernel `{function.name}` are one "
                        f"tensor, to which it writes, and there is no gradient: pass a copy for `{self._names[j]}`"
                    )
        #: The parameters whose arrays stay as they are.
        self.apart = [name for k, name in enumerate(self._names) if k in self.tensors and k not in self.written]

    def arrays(self, written: Sequence[int], is_filled: bool = True, has_tangents: bool = False) -> list[Any]:
        """The arguments for a launch.

        Args:
            written: The positions of tensors that are copied.
            is_filled: Whether the copies have the elements of the tensors.
            has_tangents: Whether arrays have tangents beside their gradients, and so have their gradients.
        """
        out = list(self.given)
        for k, x in self._plain.items():
            if not self._is_array[k]:
                out[k] = x.item()
            elif k in written:
                out[k] = self._array(k, x, None, has_tangents)
                if is_filled:
                    out[k].from_numpy(x._copied())
            else:
                out[k] = self._array(k, x.realize(), x._native, has_tangents)
        return out

    def expect_arrays(self) -> None:
        """Refuses tensors for numbers, by which a tape computes no gradients."""
        for k in self.floats:
            if not self._is_array[k]:
                raise AerogelRuntimeError(
                    f"argument `{self._names[k]}` of kernel `{self.function.name}` is a number, and the tape would "
                    "lose the gradient of the tensor: let the kernel take an array of one element"
                )

    def _array(self, k: int, x: Tensor, over: Any, has_tangents: bool) -> Any:
        element = self.function.kernel._element_of(self._names[k]) or []
        shape = list(x.shape)
        n = len(shape) - len(element)
        if shape[n:] != list(element):
            raise TypeError(
                f"argument `{self._names[k]}` of kernel `{self.function.name}` has elements of shape {tuple(element)}, "
                f"not the last axes of {tuple(shape)}"
            )
        kind = (ScalarNdarray, VectorNdarray, MatrixNdarray)[len(element)]
        is_float = x.dtype.is_float
        return _make(kind, x.dtype, shape[:n], element, is_float, is_float and has_tangents, over)

    def pulled_back(self, saved: bytes, adjoints: dict[int, Tensor], seeds: Sequence[Tensor]) -> dict[int, Tensor]:
        """The adjoints of all tensors of floats before the launch, of those after it.

        Args:
            saved: What the launch has saved.
            adjoints: By the positions of tensors; zero where there is none.
            seeds: The adjoint of each number that the kernel returns, 0 of integers.
        """
        args = self.arrays(self.written, is_filled=False)
        for k, adjoint in adjoints.items():
            if self._is_array[k]:
                args[k].grad.from_numpy(adjoint._copied())
        by_numbers = self.function.pull_back(args, (saved, self.apart), _numbers(seeds))
        out = {}
        for k in self.floats:
            if self._is_array[k]:
                out[k] = self._tensor(k, args[k].grad)
            else:
                own = asarray(by_numbers[k][0], dtype=self.tensors[k].dtype)
                out[k] = own + adjoints[k] if k in adjoints else own
        return out

    def _tensor(self, k: int, array: Any) -> Tensor:
        found, shape = asarray(array), self.tensors[k].shape
        return found if found.shape == shape else found.reshape(shape)

    def second(self, seed: bytes, ends: tuple[dict[int, Tensor], Sequence[Tensor]], along: dict[int, Tensor]) -> Second:
        """The adjoints of what ``pulled_back`` takes, of those of what it returns.

        ``pulled_back`` is linear in the adjoints that it takes: those of them are the tangents of what the kernel
        writes and returns. Those of the tensors are the tangents of what it returns (Hessians are symmetric), so all
        are found by forward mode, over the kernel and over its gradient.

        Args:
            seed: Of the random numbers of the launch.
            ends: The adjoints and seeds that ``pulled_back`` was given.
            along: By the positions of tensors of floats, the adjoints of what it returned.

        Raises:
            AerogelRuntimeError: The kernel takes a tensor as a number, or uses fields.
        """
        self._expect_second()
        adjoints, seeds = ends
        args = self.arrays(self.written, has_tangents=True)
        for k, tangent in along.items():
            args[k].dual.from_numpy(tangent._copied())
        for k, adjoint in adjoints.items():
            args[k].grad.from_numpy(adjoint._copied())
        saved = self.function.forward_with_tangents(args, self.apart, seed)
        of_adjoints = {k: self._tensor(k, args[k].dual) for k in adjoints}
        self.function.pull_back(args, (saved, self.apart), _numbers(seeds), "grad_dual")
        of_tensors = {k: self._tensor(k, args[k].grad.dual) for k in self.floats}
        return Second(of_tensors, of_adjoints, self._tangents_of_results(seed, seeds, along))

    def _tangents_of_results(self, seed: bytes, seeds: Sequence[Tensor], along: dict[int, Tensor]) -> list[Tensor]:
        """The tangent of each number that the kernel returns: its gradient, times the tangents of the arguments."""
        if not seeds:
            return []
        saved = self.function.saved_for(self.arrays(self.written), self.apart, seed)
        flat = [0.0] * sum(x.size for x in seeds)
        for n in range(len(flat)):
            args = self.arrays(self.written, is_filled=False)
            one = [float(n == k) for k in range(len(flat))]
            self.function.pull_back(args, (saved, self.apart), one)
            flat[n] = sum(float((self._tensor(k, args[k].grad) * tangent).sum()) for k, tangent in along.items())
        out = []
        for x in seeds:
            own, flat = flat[: x.size], flat[x.size :]
            out.append(asarray(own, dtype=x.dtype).reshape(x.shape))
        return out

    def expect_no_third(self, _: list[Tensor]) -> Any:
        """The rule of what ``second`` returns: there is none."""
        raise AerogelRuntimeError(f"{self._described()} has first and second derivatives only")

    def _described(self) -> str:
        return f"kernel `{self.function.name}` ({defined_at(self.function.kernel.__wrapped__)}){self.called_at}"

    def _expect_second(self) -> None:
        numbers = [self._names[k] for k in self.floats if not self._is_array[k]]
        what = self._described()
        if numbers:
            raise AerogelRuntimeError(
                f"{what} has no second derivatives by its argument `{numbers[0]}`, which is a number: let it take an "
                "array of one element"
            )
        if not self.function.is_pure(self.arrays(())):
            raise AerogelRuntimeError(
                f"{what} uses fields or arrays that are no arguments, and has first derivatives only: make them "
                "arguments, or compute second derivatives by `ti.ad.hvp`"
            )


class NotBatched(ValueError):
    """The gradient of a kernel that runs outside of programs was to be taken for a batch of seeds."""


class Second(NamedTuple):
    """The adjoints of what ``Arguments.pulled_back`` takes."""

    of_tensors: dict[int, Tensor]
    of_adjoints: dict[int, Tensor]
    of_seeds: list[Tensor]


def _numbers(seeds: Sequence[Tensor]) -> list[float]:
    return [float(x) for seed in seeds for x in seed._copied().reshape(-1)]


def call(kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
    """Calls a kernel with tensors that require gradients: gradients pass through the arrays it writes and its result.

    Floats that it returns are tensors then.
    """
    with no_grad():
        given = Arguments(kernel, args, kwargs)
    function, own = given.function, given.given
    what = f"kernel `{function.name}`"
    given.called_at = f", called at {here()},"
    for k in given.written:
        expect_free(own[k])
    with no_grad():
        arrays = given.arrays(given.written)
        saved, returned = function.run(arrays, given.apart)
        parts = list(returned) if isinstance(returned, (tuple, list)) else [] if returned is None else [returned]
        results = [
            asarray(part.to_list() if hasattr(part, "to_list") else part, dtype=getattr(kind, "dtype", kind))
            for part, kind in zip(parts, returned_types(kernel))
        ]
        written = [asarray(arrays[k]).reshape(given.tensors[k].shape) for k in given.written]

    smooth = [k for k in given.written if k in given.floats]
    inputs = [given.tensors[k] for k in given.floats]
    floats = [n for n, y in enumerate(results) if y.dtype.is_float]

    def rule(gradients: list[Tensor]) -> list[tuple[Tensor, Tensor]]:
        if tracing.mapped is not None:
            raise NotBatched(f"`vmap`: the gradient of {what} cannot be batched here: make the function a `ti.program`")
        seeds = dict(zip(floats, gradients[len(smooth) :]))
        with no_grad():
            by_results = [seeds[n] if n in seeds else asarray(y._copied() * 0) for n, y in enumerate(results)]
            ends = (dict(zip(smooth, gradients)), by_results)
            made = given.pulled_back(saved, *ends)
        by_tensor = [made[k] for k in given.floats]
        if is_needed([*inputs, *gradients]):

            def second(along: list[Tensor]) -> list[tuple[Tensor, Tensor]]:
                if tracing.mapped is not None:
                    raise NotBatched(f"`vmap`: second derivatives of {what} cannot be batched here: use `ti.program`")
                with no_grad():
                    of = given.second(saved, ends, dict(zip(given.floats, along)))
                of_gradients = [*of.of_adjoints.values(), *(of.of_seeds[n] for n in floats)]
                found = [*of.of_tensors.values(), *of_gradients]
                if is_needed([*inputs, *gradients, *along]):
                    found = attached(what, found, given.expect_no_third, [*inputs, *gradients, *along])
                return by_inputs(what, [*inputs, *gradients], found)

            by_tensor = attached(what, by_tensor, second, [*inputs, *gradients])
        return by_inputs(what, inputs, by_tensor)

    of_written = dict(zip(given.written, written))
    made = attached(what, [*(of_written[k] for k in smooth), *(results[n] for n in floats)], rule, inputs)
    of_written.update(zip(smooth, made))
    for k, x in of_written.items():
        own[k]._native = x._native
    for n, x in zip(floats, made[len(smooth) :]):
        parts[n] = x
    return parts if isinstance(returned, (tuple, list)) else parts[0] if parts else None


def pulled_back(call: Any, adjoints: list[Tensor], seeds: list[Tensor]) -> list[Tensor]:
    """The gradient of a kernel in a program, as its statement runs it.

    Args:
        call: The kernel, its arguments with tensors as they were before it ran, which array of the statement stands at
            which argument, and which of these arrays are of floats.
        adjoints: Of those arrays, after the kernel.
        seeds: Of the floats that it returns.

    Returns:
        The adjoints before the kernel.
    """
    given, array_at = _arguments(call, adjoints)
    floats = call[-1]
    with no_grad():
        saved = given.function.saved_for(given.arrays(given.written), given.apart)
        by_place = {k: adjoints[floats.index(array_at[k])] for k in given.floats}
        made = given.pulled_back(saved, by_place, seeds)
        of_array = {array_at[k]: made[k] for k in given.floats}
    return [of_array[k] for k in floats]


def pulled_back_twice(
    call: Any, ends: tuple[list[Tensor], list[Tensor]], along: tuple[list[Tensor], list[Tensor], list[Tensor]]
) -> list[Tensor]:
    """The gradient of ``pulled_back`` in a program, as its statement runs it.

    Args:
        call: As that takes it.
        ends: The adjoints and seeds that it took.
        along: The adjoints, so far, of the arrays of floats, of the adjoints that it returned, and of the seeds.

    Returns:
        The adjoints of all these before its statement.
    """
    adjoints, seeds = ends
    given, array_at = _arguments(call, adjoints)
    floats = call[-1]
    of_arrays, of_results, of_seeds = along
    places = {array_at[k]: k for k in given.floats}
    with no_grad():
        by_place = {k: adjoints[floats.index(array_at[k])] for k in given.floats}
        tangents = {k: of_results[floats.index(array_at[k])] for k in given.floats}
        of = given.second(FIRST_SEED, (by_place, seeds), tangents)
        return [
            *(x + of.of_tensors[places[k]] for x, k in zip(of_arrays, floats)),
            *(of.of_adjoints[places[k]] for k in floats),
            *(x + y for x, y in zip(of_seeds, of.of_seeds)),
        ]


def _arguments(call: Any, adjoints: list[Tensor]) -> tuple[Arguments, dict[int, int]]:
    """The arguments of a kernel in a program, and which array of the statement stands at each position."""
    kernel, args, kwargs, at, floats = call
    function = KernelFunction(kernel)
    names = [name for name, _ in function.inputs]
    # Two arguments in one array the launch refuses.
    array_at = {key if isinstance(key, int) else names.index(key): k for key, k in at}
    own = function.arguments(args, kwargs)
    with no_grad():
        for k, number in array_at.items():
            if not isinstance(own[k], Tensor):
                dtype = adjoints[floats.index(number)].dtype if number in floats else None
                own[k] = asarray(own[k], dtype=dtype)
        return Arguments(kernel, own, None), array_at


__all__ = ["Arguments", "NotBatched", "call", "pulled_back", "pulled_back_twice"]
