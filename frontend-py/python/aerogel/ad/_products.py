"""Products of the Jacobian with vectors: from the left backwards, from the right forwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aerogel.ad._forward import FwdMode
from aerogel.ad._gradients import expect_differentiable, gradient_of, is_tensor, listed, numbers_of
from aerogel.ad._tape import Tape
from aerogel.data.ndarray import Ndarray
from aerogel.errors import AerogelRuntimeError


def vjp(run: Callable[[], Any], outputs: Any, inputs: Any, seed: Any = None, *, seeds: Any = None) -> Any:
    """The gradient of the outputs, weighted by ``seed``, by the inputs: ``seed @ J``.

    With ``seeds``, several of them: the kernels run once, and the backward pass runs once for each seed.

    Args:
        run: A function that launches the kernels.
        outputs: A field or array with a gradient, or a list of several.
        inputs: The fields or arrays by which is derived, or one.
        seed: For each output numbers of its shape; nothing where that has one number.
        seeds: A list of such seeds.

    Returns:
        A NumPy array of the shape of the input, with ``seeds`` one of such arrays for each; a list of them for a list.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> x, y = (ti.field(float, shape=3, needs_grad=True) for _ in range(2))
    >>> @ti.kernel
    ... def double():
    ...     for i in x:
    ...         y[i] = 2 * x[i]
    >>> vjp(double, y, x, seed=[1, 0, 3]).tolist()
    [2.0, 0.0, 6.0]
    >>> vjp(double, y, x, seeds=[[1, 0, 3], [0, 1, 0]]).tolist()
    [[2.0, 0.0, 6.0], [0.0, 2.0, 0.0]]
    """
    import numpy as np

    params, several = listed(inputs)
    for param in params:
        expect_differentiable(param, "grad", "an input")
    if seeds is not None and seed is not None:
        raise AerogelRuntimeError("vjp takes `seed`, or `seeds`, of which there are several")
    given = [seed] if seeds is None else list(seeds)
    if not given:
        raise AerogelRuntimeError("vjp needs at least one seed")
    tape = Tape(outputs, seed=given[0])
    rows: list[list[Any]] = []
    for at, one in enumerate(given):
        _clear_arrays(params)
        if at == 0:
            with tape:
                run()
        else:
            tape.again(one)
        rows.append([numbers_of(gradient_of(param)) for param in params])
    found = rows[0] if seeds is None else [np.stack(row) for row in zip(*rows)]
    return found if several else found[0]


def _clear_arrays(params: list[Any]) -> None:
    """Clears the gradients of arrays; those of fields the tape clears."""
    for param in params:
        if is_tensor(param):
            gradient_of(param).zero_()
        elif isinstance(param, Ndarray):
            gradient_of(param).fill(0)


def jvp(run: Callable[[], Any], inputs: Any, tangents: Any, outputs: Any) -> Any:
    """The derivative of the outputs along a direction of the inputs: ``J @ tangents``.

    Args:
        run: A function that launches the kernels.
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
    results, several = listed(outputs)
    with FwdMode(loss=results, param=inputs, seed=tangents):
        run()
    found = [numbers_of(gradient_of(result, "dual")) for result in results]
    return found if several else found[0]


__all__ = ["jvp", "vjp"]
