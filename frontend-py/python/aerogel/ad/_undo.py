"""Gradients that are written by hand may launch what they like: what that changes of a tape's memory is put back."""

from __future__ import annotations

from typing import Any

from aerogel import _native
from aerogel.ad import _recorder
from aerogel.ad._gradients import all_fields, gradients
from aerogel.ad._put_back import put_back


class Undo(_recorder.Recorder):
    """Launches and writes of a gradient that is written by hand.

    What no kernel on the tape has used, and gradients, keep what is written.
    """

    called = "a gradient that is written by hand"
    may_hold_a_tape = True

    def __init__(self, recording: Any, arrays: dict[int, Any]) -> None:
        self._recording, self._arrays = recording, arrays
        self._made: Any = None

    @property
    def _native(self) -> Any:
        # Created when the backward pass begins, when all arrays are known.
        if self._made is None:
            of_arrays = [array.grad for array in self._arrays.values() if array.grad is not None]
            derivatives = [*gradients("grad"), *gradients("dual"), *of_arrays]
            self._made = _native.NativeUndo(self._recording, derivatives)
        return self._made

    def launch(self, kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
        """Launches a kernel."""
        with _recorder.unrecorded():
            self.before_launch(kernel, args, kwargs)
            return kernel._launch(args, kwargs, None, None)

    def before_launch(self, kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> None:
        """Keeps what a launch is about to write."""
        self._native.before_launch(kernel, args, kwargs)

    def write(self, target: Any, key: Any, component: int | None = None) -> None:
        """Keeps what Python is about to write."""
        with _recorder.unrecorded():
            self._native.before_write(target, key)

    def deactivate(self, node: Any) -> None:
        """Keeps what cells hold that Python is about to make inactive."""
        with _recorder.unrecorded():
            for field in _native.fields_in_cells(node, all_fields()):
                self._native.before_write(field)

    def undo(self) -> None:
        """Puts back what has been written."""
        with _recorder.unrecorded():
            self._native.undo()
        put_back()


__all__ = ["Undo"]
