"""Functions of whole arrays that programs call: sorting, linear algebra, transforms, and values saved for gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aerogel import _native

if TYPE_CHECKING:
    from aerogel.backends._execute import Execution


def call(run: Execution, name: str, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> None:
    """Calls a function; each output is another buffer."""
    from aerogel.backends import _extensions

    if name in ("push", "pop"):
        _history(run, name, inputs, outputs)
        return
    given = [run.memory_of(b) for b in inputs]
    if name == "matmul":
        run.set_memory(outputs[0], run.b.matmul(*given))
        return
    if name in ("sort", "sort_down"):
        made = _sorted(run, given[0], name == "sort_down", outputs)
    else:
        made = _extensions.library(run.b, name, given, [_like(run, b) for b in outputs])
    for buffer, storage in zip(outputs, made or _on_host(run, name, given, outputs), strict=True):
        run.set_memory(buffer, storage)


def _like(run: Execution, buffer: int) -> Any:
    own = run.program.buffers[buffer]
    return own.dtype, own.shape


def _sorted(run: Execution, x: Any, descending: bool, outputs: tuple[int, ...]) -> list[Any]:
    """Values and their order, or as many of the first ones as there is room for."""
    made = []
    for buffer, storage in zip(outputs, run.b.sort(x, descending), strict=False):
        shape = run.program.buffers[buffer].shape
        if run.b.describe(storage)[1] != shape:
            storage = run.b.slice(storage, [0] * len(shape), shape, [1] * len(shape))
        made.append(storage)
    return made


def _on_host(run: Execution, name: str, given: list[Any], outputs: tuple[int, ...]) -> list[Any]:
    """The native function, on copies."""
    import numpy as np

    arrays = [np.ascontiguousarray(run.b.to_host(x)) for x in given]
    likes = [_like(run, b) for b in outputs]
    made = _native.call_library(name, arrays, [(str(dtype), shape) for dtype, shape in likes])
    return [run.b.from_host(np.asarray(m), dtype) for m, (dtype, _) in zip(made, likes, strict=True)]


class _Pile:
    """Values put aside; with a mask, each lane has as many as it has put there."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.depths: Any = None

    def push(self, value: Any, mask: Any) -> None:
        """Puts the lanes of a value for which the mask is true on top of theirs."""
        import numpy as np

        if self.depths is None:
            self.depths = np.zeros(mask.shape, np.int64)
        for depth in np.unique(self.depths[mask]):
            if depth == len(self.values):
                self.values.append(np.zeros_like(value))
            lanes = mask & (self.depths == depth)
            self.values[depth][lanes] = value[lanes]
        self.depths[mask] += 1

    def pop(self, like: Any, mask: Any) -> Any:
        """Takes what is on top for the lanes for which the mask is true; zeros for the others."""
        import numpy as np

        out = np.zeros_like(like)
        self.depths[mask] -= 1
        for depth in np.unique(self.depths[mask]):
            lanes = mask & (self.depths == depth)
            out[lanes] = self.values[depth][lanes]
        return out


def _history(run: Execution, name: str, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> None:
    history = outputs[-1]
    value = inputs[0] if name == "push" else outputs[0]
    masked = len(inputs) == (3 if name == "push" else 2)
    pile = run.histories.setdefault(history, _Pile() if masked else [])
    if not masked:
        # Storages are never changed, so that no copy is needed.
        if name == "push":
            pile.append(run.memory_of(value))
        else:
            run.set_memory(value, pile.pop())
        return
    mask = run.b.to_host(run.memory_of(inputs[1] if name == "push" else inputs[0]))
    own = run.b.to_host(run.memory_of(value)).copy()
    if name == "push":
        pile.push(own, mask)
    else:
        run.set_memory(value, run.b.from_host(pile.pop(own, mask), run.program.buffers[value].dtype))
