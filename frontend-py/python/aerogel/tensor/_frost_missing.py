"""Names of TensorFrost's that cannot be used here: what uses one is told so."""

from __future__ import annotations

from typing import Any

LEARNING = "there are no gradients, modules and optimizers of tensor programs"
WINDOW = "programs of tensors have no window; `ti.GUI` and `ti.ui.Window` show arrays"


class NotHere:
    """A name that raises when it is called, or a class is made of it; so do the names in it."""

    def __init__(self, name: str, why: str) -> None:
        self._name = name
        self._why = why

    def __getattr__(self, name: str) -> NotHere:
        if name.startswith("__"):
            raise AttributeError(name)
        return NotHere(f"{self._name}.{name}", self._why)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"TensorFrost's `{self._name}` is not here: {self._why}")

    def __mro_entries__(self, bases: Any) -> Any:
        return self()
