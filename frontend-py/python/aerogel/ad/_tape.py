"""``ti.ad.Tape``: gradients of a program in a ``with`` block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aerogel import _log, _native
from aerogel.ad import _recorder
from aerogel.ad._entries import Launch, Write
from aerogel.ad._gradients import (
    clear_all_gradients,
    expect_differentiable,
    grad_of_tensor,
    gradient_of,
    gradients,
    is_tensor,
    listed,
    name_of,
    numbers_of,
    seed,
    set_numbers,
    shape_of,
)
from aerogel.ad._record import Record
from aerogel.ad._retained import Retained
from aerogel.ad._tensors import seed_tensor
from aerogel.data.field import NumericField
from aerogel.data.ndarray import Ndarray
from aerogel.errors import AerogelRuntimeError, AerogelRuntimeTypeError

#: In place of a loss that `grad` is given.
_LATER = object()


class Tape(Record):
    """Records kernels, and computes the gradient of the loss by all that they read when it ends.

    Values that later kernels, or Python, overwrite and earlier gradients need are saved, and restored meanwhile;
    afterwards every field has the values that it had before.

    Args:
        loss: A field of floats without axes, or an array or tensor of one number; its gradient becomes 1. With a
            ``seed``, a field or array of any shape, or a list of several. Without one, ``tape.grad(loss)`` computes the
            gradients when the ``with`` has ended, also of a tensor of ``ti.tensor``.
        clear_gradients: Whether the gradients of all fields are set to zero first. Gradients of arrays always grow.
        validation: Whether NumPy arrays are looked at for changes that happened outside of kernels, values that go
            through fields without gradient are errors, not warnings, and a warning says how often a gradient met the
            square root, or the norm, of zero.
        grad_check: Fields whose gradients are compared with differences afterwards; ``True`` for all that have one.
        seed: The initial gradient of the loss: numbers of its shape, one for each loss of a list.
        retain_grad: Fields whose gradients are retained although kernels overwrite the fields: for each element the
            gradient by its last value; ``True`` for all that have one.

    Raises:
        AerogelRuntimeError: The loss is not such a field, another tape is active, or a gradient needs values that
            have been changed in a way that cannot be undone.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> x, loss = (ti.field(float, shape=(), needs_grad=True) for _ in range(2))
    >>> @ti.kernel
    ... def square():
    ...     loss[None] += x[None] ** 2
    >>> x[None] = 3
    >>> with ti.ad.Tape(loss):
    ...     square()
    >>> x.grad[None]
    6.0
    """

    called = "a tape"

    def __init__(
        self,
        loss: Any = _LATER,
        clear_gradients: bool = True,
        validation: bool = False,
        grad_check: Any = None,
        *,
        seed: Any = None,
        retain_grad: Any = None,
    ) -> None:
        super().__init__(validation)
        #: Without a loss, ``grad`` is given one.
        self.losses, self._several = ([], True) if loss is _LATER else listed(loss)
        self.seeds = self._for_each(seed)
        self.retained = Retained(retain_grad)
        self.clear_gradients = clear_gradients
        self.grad_check = grad_check
        self._is_done = False
        #: Tensors that are losses, each with its seed.
        self._loss_tensors: list[tuple[Any, Any]] = []

    def __enter__(self) -> Tape:
        _native.check_initialized()
        if self.losses:
            expect_losses(self.losses, self.seeds)
        for loss, given in zip(self.losses, self.seeds):
            seed(loss, "grad", given, "the loss of a tape")
        self._checked = _fields_to_check(self.grad_check)
        self.retained.begin()
        self.keeps_written = bool(self._checked)
        _recorder.begin(self)
        try:
            with _recorder.unrecorded():
                self._at_start = [(field, field.to_numpy()) for field in self._checked and _all_with_numbers()]
                if self.clear_gradients:
                    clear_all_gradients()
                for loss in self.losses:
                    zero(loss)
        except BaseException:
            _recorder.end()
            raise
        self.clear()
        self._is_done = False
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        _recorder.end()
        if kind is not None:
            self.clear()
            return
        self.finish()
        if self.losses:
            self.grad()

    def grad(self, loss: Any = None, *, seed: Any = None) -> None:
        """Computes the gradients; the end of the ``with`` block calls it for a tape with a loss.

        Args:
            loss: Of a tape without one: a tensor of one number, or of any shape with a ``seed``; or a field or array,
                as a tape takes it.
            seed: The initial gradient of the loss.
        """
        self.grad_by([] if loss is None else [(loss, seed)], [])

    def grad_by(self, losses: list[tuple[Any, Any]], variables: list[Any], is_again: bool = False) -> list[Any]:
        """Computes the gradients of losses, each with its seed, as ``grad``.

        Args:
            losses: Tensors, fields and arrays.
            variables: Variables of tensors.
            is_again: Whether gradients may have been computed before; those of fields are cleared then.

        Returns:
            The gradient by each variable; None for those that nothing depends on.
        """
        from aerogel.tensor._nodes import Gradients

        self.gradients = Gradients(variables, of_leaves=True)
        if losses:
            self._loss_tensors = [pair for pair in losses if hasattr(type(pair[0]), "_aerogel_tensor")]
            others = [pair for pair in losses if not hasattr(type(pair[0]), "_aerogel_tensor")]
            self.losses, self.seeds, self._several = [y for y, _ in others], [seed for _, seed in others], True
            if others:
                expect_losses(self.losses, self.seeds)
        if not self.losses and not self._loss_tensors:
            raise AerogelRuntimeError("a tape needs a loss: `tape.grad(loss)`, a tensor or a field of one float")
        if self._is_done and is_again:
            with _recorder.unrecorded():
                clear_all_gradients()
        elif self._is_done:
            raise AerogelRuntimeError("the gradients of a tape can be computed only once: record a new tape")
        if _recorder.current() is self:
            _recorder.end()
        self.expect_whole()
        self._is_done = True
        with _recorder.unrecorded():
            before = self._gradients_before()
            try:
                self._go_back()
            except BaseException:
                for gradient, numbers in before:
                    if numbers is None:
                        gradient.fill(0)
                    else:
                        set_numbers(gradient, numbers)
                raise
            if self._checked:
                self._compare()
        return self.gradients.by_variable  # type: ignore[no-any-return]

    def again(self, given: Any) -> None:
        """Computes the gradients once more, from another seed; those of fields are cleared first.

        The kernels are not launched again. Memory must still have the values that they read: nothing has been
        launched since.
        """
        if not self._is_done:
            raise AerogelRuntimeError("a tape can recompute gradients only after it has computed them once")
        self.expect_whole()
        self.seeds = self._for_each(given)
        from aerogel.tensor._nodes import Gradients

        self.gradients = Gradients([], of_leaves=True)
        with _recorder.unrecorded():
            clear_all_gradients()
            self.retained.begin()
            self._go_back()

    def _go_back(self) -> None:
        for loss, given in zip(self.losses, self.seeds):
            set_numbers(gradient_of(loss), seed(loss, "grad", given, "the loss of a tape"))
        from aerogel.tensor._backward import no_grad

        with no_grad():
            for loss, given in self._loss_tensors:
                seed_tensor(self, loss, given)
            self.entries.back_and_forth(self.retained)
            self.gradients.to_leaves()
        self.retained.end()
        for text, n in (self.kinks or {}).items():
            _log.warn(f"{text}\n   = note: gradients passed here {n} time{'s' if n > 1 else ''}")
        if self.kinks:
            self.kinks.clear()

    def _for_each(self, given: Any) -> list[Any]:
        """The seed of each loss."""
        return list(given) if self._several and given is not None else [given] * len(self.losses)

    def _gradients_before(self) -> list[tuple[Any, Any]]:
        """All gradients, with what they hold if that is not zero."""
        fields = gradients()
        arrays: dict[int, Any] = {}
        sources: list[Any] = []
        for entry in self.entries.all:
            if isinstance(entry, Launch):
                sources.extend(entry.objects())
            elif isinstance(entry, Write) and entry.source is not None:
                sources.append(entry.source)
        for arg in sources:
            gradient = grad_of_tensor(arg) if is_tensor(arg) else arg.grad if isinstance(arg, Ndarray) else None
            if gradient is not None:
                arrays[id(gradient)] = gradient
        held = [(gradient, numbers_of(gradient)) for gradient in arrays.values()]
        if self.clear_gradients:
            return [*((field, None) for field in fields), *held]
        return [*((field, field.to_numpy()) for field in fields), *held]

    def _compare(self) -> None:
        from aerogel.ad._check import compare_on_tape

        compare_on_tape(self, self._checked, self._at_start)


def expect_losses(losses: Sequence[Any], seeds: Sequence[Any]) -> None:
    """Checks that one or several objects are losses of a tape, each with its seed."""
    if not losses:
        raise AerogelRuntimeError("a tape needs a loss: a field of floats without axes")
    if len(losses) != len(seeds):
        raise AerogelRuntimeError(f"{len(losses)} losses need as many seeds, got {len(seeds)}")
    for loss, given in zip(losses, seeds):
        if not (isinstance(loss, (NumericField, Ndarray)) or is_tensor(loss)):
            what = "nothing" if loss is None else type(loss).__name__
            raise AerogelRuntimeTypeError(
                f"the loss of a tape is a field of floats without axes, or an array of one number, not {what}"
            )
        shape = shape_of(loss)
        if given is None and isinstance(loss, NumericField) and shape != ():
            raise AerogelRuntimeError(
                f"the loss of a tape must be a 0-D field, i.e. a scalar; {name_of(loss)} has shape {shape}: add up "
                "what is meant, or give a `seed` of that shape"
            )
        if given is None and any(n != 1 for n in shape):
            raise AerogelRuntimeError(
                f"the loss of a tape must be an array with only one element, this one has shape {shape}: add up what "
                "is meant, or give a `seed` of that shape"
            )
        expect_differentiable(loss, "grad", "the loss of a tape")


def zero(loss: Any) -> None:
    """Lets a loss begin as zero."""
    if is_tensor(loss):
        loss.detach().zero_()
    else:
        loss.fill(0)


def _fields_to_check(given: Any) -> list[Any]:
    if given is None or given is False:
        return []
    if given is True:
        return [field for field in _all_with_numbers() if field.grad is not None and field.grad._is_placed()]
    fields = list(given) if isinstance(given, (list, tuple)) else [given]
    for field in fields:
        if not isinstance(field, NumericField):
            raise AerogelRuntimeTypeError(
                f"grad_check takes fields, not {type(field).__name__}: ti.ad.check_grad checks gradients by arrays and "
                "tensors"
            )
        expect_differentiable(field, "grad", "a field of grad_check")
    return fields


def _all_with_numbers() -> list[Any]:
    from aerogel.ad._gradients import all_fields

    held = {id(gradient) for gradient in [*gradients(), *gradients("dual")]}
    return [field for field in all_fields() if id(field) not in held]


__all__ = ["Tape"]
