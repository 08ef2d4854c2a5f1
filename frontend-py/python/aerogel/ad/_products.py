"""Products of the Jacobian with vectors: from the left backwards, from the right forwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aerogel.ad._forward import FwdMode
from aerogel.ad._gradients import expect_differentiable, gradient_of, is_tensor, numbers_of
from aerogel.ad._tape import Tape
from aerogel.data.ndarray import Ndarray


def _listed(given: Any) -> tuple[list[Any], bool]:
    return (list(given), True) if isinstance(given, (list, tuple)) else ([given], False)


def vjp(run: Callable[[], Any], outputs: Any, inputs: Any, seed: Any = None) -> Any:
    """The gradient of the outputs, weighted by ``seed``, by the inputs: ``seed @ J``.

    Args:
        run: What launches the kernels.
        outputs: A field or array with a gradient, or a list of several.
        inputs: The fields or arrays by which is derived, or one.
        seed: For each output numbers of its shape; nothing where that has one number.

    Returns:
        A NumPy array of the shape of the input; a list of them for a list.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> x, y = (ti.field(float, shape=3, needs_grad=True) for _ in range(2))
    >>> @ti.kernel
    ... def double():
    ...     for i in x:
    ...         y[i] = 2 * x[i]
    >>> vjp(double, y, x, seed=[1, 0, 3]).tolist()
    [2.0, 0.0, 6.0]
    """
    params, several = _listed(inputs)
    for param in params:
        expect_differentiable(param, "grad", "an input")
        # The gradients of fields are cleared by the tape.
        if is_tensor(param):
            gradient_of(param).zero_()
        elif isinstance(param, Ndarray):
            gradient_of(param).fill(0)
    with Tape(outputs, seed=seed):
        run()
    found = [numbers_of(gradient_of(param)) for param in params]
    return found if several else found[0]


def jvp(run: Callable[[], Any], inputs: Any, tangents: Any, outputs: Any) -> Any:
    """The derivative of the outputs along a direction of the inputs: ``J @ tangents``.

    Args:
        run: What launches the kernels.
        inputs: The field by which is derived, or a list of several; with ``needs_dual=True``.
        tangents: For each input numbers of its shape.
        outputs: A field with ``needs_dual=True``, or a list of several.

    Returns:
        A NumPy array of the shape of the output; a list of them for a list.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> x, y = (ti.field(float, shape=3, needs_dual=True) for _ in range(2))
    >>> @ti.kernel
    ... def double():
    ...     for i in x:
    ...         y[i] = 2 * x[i]
    >>> jvp(double, x, [1, 0, 3], y).tolist()
    [2.0, 0.0, 6.0]
    """
    results, several = _listed(outputs)
    with FwdMode(loss=results, param=inputs, seed=tangents):
        run()
    found = [numbers_of(gradient_of(result, "dual")) for result in results]
    return found if several else found[0]


__all__ = ["jvp", "vjp"]
