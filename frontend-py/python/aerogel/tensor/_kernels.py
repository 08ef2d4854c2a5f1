"""Gradients of tensors through kernels: calls with such tensors, and the gradients of kernels in programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aerogel.ad._function import KernelFunction
from aerogel.data.ndarray import MatrixNdarray, ScalarNdarray, VectorNdarray, _make
from aerogel.errors import AerogelRuntimeError
from aerogel.kernel import returned_types
from aerogel.tensor._backward import expect_free, no_grad
from aerogel.tensor._nodes import attached, by_inputs, is_needed
from aerogel.tensor._tensor import Tensor, asarray

if TYPE_CHECKING:
    from collections.abc import Sequence


class Arguments:
    """The arguments of a kernel, with arrays that have gradients in place of tensors."""

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

    def arrays(self, written: Sequence[int], is_filled: bool = True) -> list[Any]:
        """The arguments for a launch: arrays of their own at some positions, with numbers if ``is_filled``."""
        out = list(self.given)
        for k, x in self._plain.items():
            if not self._is_array[k]:
                out[k] = x.item()
            elif k in written:
                out[k] = self._array(k, x, None)
                if is_filled:
                    out[k].from_numpy(x._copied())
            else:
                out[k] = self._array(k, x.realize(), x._native)
        return out

    def expect_arrays(self) -> None:
        """Refuses tensors for numbers, by which a tape computes no gradients."""
        for k in self.floats:
            if not self._is_array[k]:
                raise AerogelRuntimeError(
                    f"argument `{self._names[k]}` of kernel `{self.function.name}` is a number, and the tape would "
                    "lose the gradient of the tensor: let the kernel take an array of one element"
                )

    def _array(self, k: int, x: Tensor, over: Any) -> Any:
        element = self.function.kernel._element_of(self._names[k]) or []
        shape = list(x.shape)
        n = len(shape) - len(element)
        if shape[n:] != list(element):
            raise TypeError(
                f"argument `{self._names[k]}` of kernel `{self.function.name}` has elements of shape {tuple(element)}, "
                f"not the last axes of {tuple(shape)}"
            )
        kind = (ScalarNdarray, VectorNdarray, MatrixNdarray)[len(element)]
        array = _make(kind, x.dtype, shape[:n], element, over=over)
        if x.dtype.is_float:
            array.grad = _make(kind, x.dtype, shape[:n], element)
        return array

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
        numbers = [float(x) for seed in seeds for x in seed._copied().reshape(-1)]
        by_numbers = self.function.pull_back(args, (saved, self.apart), numbers)
        out = {}
        for k in self.floats:
            if self._is_array[k]:
                out[k] = asarray(args[k].grad)
                if out[k].shape != self.tensors[k].shape:
                    out[k] = out[k].reshape(self.tensors[k].shape)
            else:
                own = asarray(by_numbers[k][0], dtype=self.tensors[k].dtype)
                out[k] = own + adjoints[k] if k in adjoints else own
        return out


def call(kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
    """Calls a kernel with tensors through which gradients go: they go on through what it writes and returns.

    Floats that it returns are tensors then.
    """
    with no_grad():
        given = Arguments(kernel, args, kwargs)
    function, own = given.function, given.given
    what = f"kernel `{function.name}`"
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

    def no_second(_: list[Tensor]) -> Any:
        raise AerogelRuntimeError(
            f"{what} has first derivatives only: second derivatives of kernels are those of `ti.ad.hvp`"
        )

    def rule(gradients: list[Tensor]) -> list[tuple[Tensor, Tensor]]:
        seeds = dict(zip(floats, gradients[len(smooth) :]))
        with no_grad():
            by_results = [seeds[n] if n in seeds else asarray(y._copied() * 0) for n, y in enumerate(results)]
            made = given.pulled_back(saved, dict(zip(smooth, gradients)), by_results)
        by_tensor = [made[k] for k in given.floats]
        if is_needed([*inputs, *gradients]):
            by_tensor = attached(what, by_tensor, no_second, [*inputs, *gradients])
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
        given = Arguments(kernel, own, None)
        saved = function.saved_for(given.arrays(given.written), given.apart)
        by_place = {k: adjoints[floats.index(array_at[k])] for k in given.floats}
        made = given.pulled_back(saved, by_place, seeds)
        of_array = {array_at[k]: made[k] for k in given.floats}
    return [of_array[k] for k in floats]


__all__ = ["Arguments", "call", "pulled_back"]
