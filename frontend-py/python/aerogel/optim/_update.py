"""A loss and its gradient as one program with named parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aerogel.profiler import region

if TYPE_CHECKING:
    from collections.abc import Callable


def grad_update(loss: Callable[..., Any]) -> Any:
    """A program that computes a loss and its gradient, in the regions ``forward`` and ``backward``.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> update = ti.optim.grad_update(lambda w, x: ((w * x).sum() - 1) ** 2)
    >>> w, x = ti.tensor.asarray([1.0, 2.0]), ti.tensor.asarray([3.0, 4.0])
    >>> update(w, x)
    (tensor(100., dtype=f32), tensor([60., 80.], dtype=f32))
    >>> [line for line in update.lower(w, x).text.splitlines() if line.startswith(";")]
    ['; forward', '; backward', '; results']

    Gradients are made whole by the statements that compute them: there is nothing to be set to zero before.

    Args:
        loss: A function whose first argument is a tensor, a module, or a tuple, list or dictionary of tensors. It
            returns one number. Arguments are given by position.

    Returns:
        A ``ti.program`` that returns the loss, and the gradient by the first argument in its structure.

    Raises:
        TypeError: If ``loss`` is not a function.
        ValueError: When called, if the loss is not one number.
    """
    from aerogel.tensor._creation import ones_like
    from aerogel.tensor._gradients import seed_of, vjp
    from aerogel.tensor._tensor import asarray
    from aerogel.tensor.programs import program

    if not callable(loss):
        raise TypeError(f"`grad_update` takes a function, not {type(loss).__name__}")

    @program
    def update(parameters: Any, *given: Any) -> Any:
        with region("forward"):
            out, pull = vjp(lambda own: asarray(loss(own, *given)), parameters)
            seed_of(out, None, "grad_update", "return its sum")
        with region("backward"):
            (gradient,) = pull(ones_like(out))
        return out, gradient

    return update


__all__ = ["grad_update"]
