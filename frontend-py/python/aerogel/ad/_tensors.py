"""Tensors on a tape: made of a field or an array, stored to one, or given to a kernel.

Between these, gradients go through the statements of tensors (``aerogel.tensor._nodes``). A tensor that is made on a
tape is a leaf for them, and where the tape comes to the entry on its way back, all gradients by it are there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aerogel.ad import _recorder
from aerogel.ad._entries import Entry, Write
from aerogel.ad._gradients import clear, derivative_of, numbers_of, set_numbers
from aerogel.errors import AerogelRuntimeError

if TYPE_CHECKING:
    from aerogel.ad._record import Record

_NOTHING: list[Any] = []


def has_history(value: Any) -> bool:
    """Whether something is a tensor through which gradients are taken."""
    return hasattr(type(value), "_aerogel_tensor") and getattr(value, "requires_grad", False)


def _cannot_run_again() -> None:
    raise AerogelRuntimeError(
        "grad_check runs the kernels of a tape again, and this tape has tensors, which it cannot compute again: use "
        "ti.ad.check_grad(run, x, loss)"
    )


class Read(Entry):
    """A tensor is made of a field or an array."""

    __slots__ = ("kept", "number", "source", "tape", "written")

    def __init__(self, tape: Record, source: Any, number: int) -> None:
        self.tape, self.source, self.number = tape, source, number
        self.kept = self.written = _NOTHING

    def run_again(self) -> None:
        _cannot_run_again()

    def back(self, present: Any) -> None:
        by_tensor = self.tape.gradients.taken(self.number)
        gradient = derivative_of(self.source, "grad")
        if by_tensor is not None and gradient is not None:
            own = numbers_of(gradient)
            set_numbers(gradient, own + by_tensor.detach().numpy().reshape(own.shape))


class Given(Entry):
    """An array is made of a tensor, for a kernel that is given the tensor."""

    __slots__ = ("array", "kept", "tape", "tensor", "written")

    def __init__(self, tape: Record, tensor: Any, array: Any) -> None:
        self.tape, self.tensor, self.array = tape, tensor, array
        self.kept = self.written = _NOTHING

    def run_again(self) -> None:
        _cannot_run_again()

    def back(self, present: Any) -> None:
        _go_on(self.tape, self.tensor, self.array.grad)
        self.array.grad.fill(0)


class Stored(Write):
    """A field or an array is set to a tensor."""

    __slots__ = ("tape", "tensor")

    def __init__(self, tape: Record, target: Any, kept: list[Any], tensor: Any) -> None:
        super().__init__(target, (None, None), kept)
        self.tape, self.tensor = tape, tensor._as_it_is()

    def run_again(self) -> None:
        _cannot_run_again()

    def back(self, present: Any) -> None:
        gradient = derivative_of(self.target, "grad")
        if gradient is not None:
            _go_on(self.tape, self.tensor, gradient)
            clear(gradient, None, None)
        for snapshot in self.kept:
            snapshot.back(present)


def _go_on(tape: Record, tensor: Any, gradient: Any) -> None:
    """Gives a tensor the gradient of what was made of it."""
    from aerogel.tensor._tensor import asarray

    seed = asarray(numbers_of(gradient), dtype=tensor.dtype)
    tape.gradients.add([(tensor, seed.reshape(tensor.shape))])


def read(tape: Record, source: Any) -> Any:
    """A tensor of a field or an array, as it is now, with a gradient if that has one."""
    from aerogel.tensor._nodes import leaf_of_tape
    from aerogel.tensor._tensor import asarray

    with _recorder.unrecorded():
        numbers = asarray(source.to_numpy())
    if derivative_of(source, "grad") is None or tape.constant or tape.replaced_within:
        return numbers
    made, number = leaf_of_tape(numbers)
    tape.add(Read(tape, source, number))
    return made


def launch(tape: Record, kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
    """Launches a kernel with tensors through which gradients are taken, by arrays in place of them."""
    from aerogel.tensor._backward import expect_free, no_grad
    from aerogel.tensor._kernels import Arguments

    with _recorder.unrecorded(), no_grad():
        given = Arguments(kernel, args, kwargs)
        given.expect_arrays()
    for k in given.written:
        expect_free(given.given[k])
    with _recorder.unrecorded(), no_grad():
        arrays = given.arrays(given.written)
    for k in given.floats:
        tape.entries.all.append(Given(tape, given.tensors[k], arrays[k]))
    result = tape.launch(kernel, (*given.function.bound, *arrays), None)
    if any(isinstance(part, float) for part in (result if isinstance(result, (tuple, list)) else [result])):
        raise AerogelRuntimeError(
            f"kernel `{kernel.__name__}` returns a float, and the tape would lose its gradient: store it to an array "
            "of one element, or to a field"
        )
    for k in given.written:
        made = read(tape, arrays[k])
        given.given[k]._native = made.reshape(given.tensors[k].shape)._native
    return result


def seed_tensor(tape: Record, loss: Any, seed: Any) -> None:
    """Starts the backward pass at a tensor."""
    from aerogel.tensor._gradients import seed_of

    tape.gradients.add([(loss, seed_of(loss, seed, "grad"))])


__all__ = ["Given", "Read", "Stored", "has_history", "launch", "read", "seed_tensor"]
