"""Second derivatives: forward mode over what a tape does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aerogel import _native
from aerogel.ad import _recorder
from aerogel.ad._forward import clear_tangents_in, write_tangent
from aerogel.ad._gradients import (
    clear_all_gradients,
    derivative_of,
    expect_differentiable,
    gradient_of,
    listed,
    numbers_of,
    seed,
    set_numbers,
)
from aerogel.ad._record import Record
from aerogel.ad._tape import expect_losses, zero
from aerogel.data.ndarray import Ndarray
from aerogel.errors import AerogelRuntimeError


class Second(Record):
    """A tape that launches kernels with their tangents; its backward pass computes the tangents of gradients."""

    called = "a product with a Hessian"
    primal = "dual"
    derivative = "grad_dual"

    def write(self, target: Any, key: Any, component: int | None = None) -> None:
        """Keeps what Python is about to overwrite, and the tangents of that."""
        source = self.source
        tangent = derivative_of(target, "dual")
        with _recorder.unrecorded():
            kept = [] if tangent is None else self.recording.before_write(tangent, key)
        super().write(target, key, component)
        entry = self.entries.all[-1]
        entry.kept.extend(kept)
        self.entries.nbytes += sum(snapshot.nbytes for snapshot in kept)
        with _recorder.unrecorded():
            write_tangent(target, key, component, source)

    def deactivate(self, node: Any) -> None:
        """The same, with their tangents."""
        super().deactivate(node)
        with _recorder.unrecorded():
            clear_tangents_in(node)

    def replaced(self, gradient: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A gradient that is written by hand has no tangents."""
        raise AerogelRuntimeError(
            "functions with @ti.ad.grad_replaced have no second derivatives: their gradient is hand-written"
        )


def hvp(run: Callable[[], Any], loss: Any, inputs: Any, vectors: Any) -> Any:
    """The product of the Hessian of a loss with a vector: how the gradient changes along it.

    Forward mode over reverse mode: about twice the work of a gradient, whatever the size of the Hessian. The fields and
    arrays that have gradients need tangents as well: ``needs_grad=True, needs_dual=True``. The gradient itself is in
    ``x.grad`` afterwards.

    Args:
        run: A function that launches the kernels that compute the loss.
        loss: A field of floats without axes.
        inputs: The field or array by which is derived, or a list of several.
        vectors: For each input numbers of its shape.

    Returns:
        A NumPy array of the shape of the input; a list of them for a list.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> x = ti.field(float, shape=2, needs_grad=True, needs_dual=True)
    >>> loss = ti.field(float, shape=(), needs_grad=True, needs_dual=True)
    >>> @ti.kernel
    ... def product():
    ...     loss[None] += x[0] ** 2 * x[1]
    >>> x.from_numpy([3, 5])
    >>> hvp(product, loss, x, [1, 0]).tolist()
    [10.0, 6.0]
    """
    _native.check_initialized()
    params, several = listed(inputs)
    given = list(vectors) if several else [vectors]
    if len(params) != len(given):
        raise AerogelRuntimeError(f"{len(params)} inputs need as many vectors, got {len(given)}")
    expect_losses([loss], [None])
    for param in [*params, loss]:
        expect_differentiable(param, "grad", "an input")
        expect_differentiable(param, "dual", "an input")
        expect_differentiable(param.grad, "dual", "the gradient of an input")
    directions = [seed(param, "dual", along, "an input") for param, along in zip(params, given)]
    record = Second()
    _recorder.begin(record)
    try:
        with _recorder.unrecorded():
            clear_all_gradients("dual")
            clear_all_gradients("grad")
            zero(loss)
            _clear_arrays([*params, loss])
            for param, direction in zip(params, directions):
                set_numbers(param.dual, direction)
        run()
        record.finish()
        record.expect_whole()
        with _recorder.unrecorded():
            set_numbers(gradient_of(loss), seed(loss, "grad", None, "the loss"))
            record.entries.back_and_forth()
            found = [numbers_of(param.grad.dual) for param in params]
    finally:
        _recorder.end()
        for param in params:
            param.dual.fill(0)
    return found if several else found[0]


def _clear_arrays(arrays: list[Any]) -> None:
    """The derivatives of arrays, which nobody else clears."""
    for array in arrays:
        if isinstance(array, Ndarray):
            for derivative in (array.grad, array.dual, array.grad.dual):
                derivative.fill(0)


__all__ = ["Second", "hvp"]
