"""What happens around launches of kernels while a program is viewed, and only then.

The class of kernels gets a call of its own; nothing else knows of it, so a program that is not viewed pays nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from aerogel.data.field import NumericField
from aerogel.data.ndarray import Ndarray
from aerogel.kernel import Kernel


class Watcher(Protocol):
    """Who is told."""

    def before(self, kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A kernel is about to run."""

    def after(self, kernel: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """It ran."""

    def wrote(self, field: Any) -> None:
        """Python writes into a field."""


#: What Python writes fields and arrays by: all, an element, a component of one (`x[3].y = 1`), or from elsewhere.
_WRITES = ("_fill", "__setitem__", "_set_component", "_copy_from", "copy_from", "from_numpy", "set_cells")


class Hooks:
    """Puts the calls in place, and takes them away again.

    Args:
        watcher: Who is told of launches; of those that other launches make, nobody is.
    """

    def __init__(self, watcher: Watcher) -> None:
        self._watcher, self._is_inside = watcher, False
        self._kept: list[tuple[type, str, Any, bool]] = []

    def __enter__(self) -> Hooks:
        call, launch = Kernel.__call__, Kernel._launch

        def called(kernel: Any, *args: Any, **kwargs: Any) -> Any:
            return self._told(kernel, "", args, kwargs, lambda: call(kernel, *args, **kwargs))

        def launched(kernel: Any, args: Any, kwargs: Any = None, how: Any = None, *rest: Any, **more: Any) -> Any:
            def run() -> Any:
                return launch(kernel, args, kwargs, how, *rest, **more)

            return self._told(kernel, how or more.get("derivative") or "", tuple(args), dict(kwargs or {}), run)

        self._set(Kernel, "__call__", called)
        self._set(Kernel, "_launch", launched)
        for cls in (NumericField, Ndarray):
            for name in _WRITES:
                if hasattr(cls, name):
                    self._set(cls, name, self._writing(getattr(cls, name)))
        return self

    def __exit__(self, *exc: Any) -> None:
        for cls, name, was, is_own in reversed(self._kept):
            if is_own:
                setattr(cls, name, was)
            else:
                delattr(cls, name)
        self._kept.clear()

    def _set(self, cls: type, name: str, new: Any) -> None:
        self._kept.append((cls, name, cls.__dict__.get(name), name in cls.__dict__))
        setattr(cls, name, new)

    def _writing(self, write: Callable[..., Any]) -> Callable[..., Any]:
        def writing(field: Any, *args: Any, **kwargs: Any) -> Any:
            self._watcher.wrote(field)
            return write(field, *args, **kwargs)

        return writing

    def _told(self, kernel: Any, derivative: str, args: tuple, kwargs: dict, run: Callable[[], Any]) -> Any:
        if self._is_inside:
            return run()
        self._is_inside = True
        name = kernel.__name__ + (f".{derivative}" if derivative else "")
        try:
            self._watcher.before(kernel, args, kwargs)
            out = run()
            self._watcher.after(kernel, name, args, kwargs)
        finally:
            self._is_inside = False
        return out
