"""``ti.ad.FwdMode``: derivatives along a direction, computed together with what a program does."""

from __future__ import annotations

from typing import Any

from aerogel import _native
from aerogel.ad import _recorder
from aerogel.ad._gradients import (
    clear,
    clear_all_gradients,
    derivative_of,
    expect_differentiable,
    fields_with_gradients,
    gradient_of,
    seed,
    set_numbers,
)
from aerogel.errors import AerogelRuntimeError


class FwdMode(_recorder.Recorder):
    """Lets kernels compute tangents: ``loss.dual`` becomes the derivative of the loss along the seed.

    Args:
        loss: A field with ``needs_dual=True``, or a list of several.
        param: The field, or the list of fields, by which is derived.
        seed: The direction: numbers of the shape of ``param``; nothing where that has one number.
        clear_gradients: Whether the tangents of all fields are set to zero first.

    Raises:
        AerogelRuntimeError: A field has no tangent, or the seed is not of its shape.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> x, y = (ti.field(float, shape=(), needs_dual=True) for _ in range(2))
    >>> @ti.kernel
    ... def square():
    ...     y[None] = x[None] ** 2
    >>> x[None] = 3
    >>> with ti.ad.FwdMode(loss=y, param=x):
    ...     square()
    >>> y.dual[None]
    6.0
    """

    called = "forward mode"

    def __init__(self, loss: Any, param: Any, seed: Any = None, clear_gradients: bool = True) -> None:
        self.losses: list[Any] = list(loss) if isinstance(loss, (list, tuple)) else [loss]
        several = isinstance(param, (list, tuple))
        self.params: list[Any] = list(param) if several else [param]
        self.seeds: list[Any] = list(seed) if several and seed is not None else [seed] * len(self.params)
        self.clear_gradients = clear_gradients

    def __enter__(self) -> FwdMode:
        _native.check_initialized()
        if not self.params or not self.losses or len(self.seeds) != len(self.params):
            raise AerogelRuntimeError("forward mode needs a loss, a parameter, and a seed for each parameter")
        for param in self.params:
            expect_differentiable(param, "dual", "the parameter of forward mode")
        for loss in self.losses:
            expect_differentiable(loss, "dual", "the loss of forward mode")
        what = "the parameter of forward mode"
        directions = [seed(param, "dual", given, what) for param, given in zip(self.params, self.seeds)]
        _recorder.begin(self)
        try:
            with _recorder.unrecorded():
                if self.clear_gradients:
                    clear_all_gradients("dual")
                for param, direction in zip(self.params, directions):
                    set_numbers(gradient_of(param, "dual"), direction)
        except BaseException:
            _recorder.end()
            raise
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        _recorder.end()
        for param in self.params:
            gradient_of(param, "dual").fill(0)

    def launch(self, kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
        """Launches the kernel that computes tangents as well."""
        with _recorder.unrecorded():
            return kernel._launch(args, kwargs, None if self.constant else "dual", None)

    def gradient(self, kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Launches a kernel's gradient with its tangents."""
        with _recorder.unrecorded():
            return kernel._launch(args, kwargs, "grad" if self.constant else "grad_dual", None)

    def write(self, target: Any, key: Any, component: int | None = None) -> None:
        """Values written by Python do not depend on the parameter, unless they are copies of values that do."""
        if not any(derivative_of(target, "dual") is param.dual for param in self.params):
            with _recorder.unrecorded():
                write_tangent(target, key, component, self.source)

    def deactivate(self, node: Any) -> None:
        """Reads of deactivated cells return zero, and so is their tangent."""
        with _recorder.unrecorded():
            clear_tangents_in(node)


def clear_tangents_in(node: Any) -> None:
    """Zeroes the tangents of what lies in the cells of a node, wherever they lie themselves."""
    for field in _native.fields_in_cells(node, fields_with_gradients("dual")):
        field.dual.fill(0)


def write_tangent(target: Any, key: Any, component: int | None, source: Any) -> None:
    """Sets the tangent after a write from Python: that of the source of a copy, or zero."""
    tangent = derivative_of(target, "dual")
    if tangent is None:
        return
    copied = derivative_of(source, "dual")
    if copied is not None:
        tangent.copy_from(copied)
    else:
        clear(tangent, key, component)


__all__ = ["FwdMode"]
