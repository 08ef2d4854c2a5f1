"""Checkpoints: the state of a running program in a file, from which a later run continues with the same numbers."""

from __future__ import annotations

import os
from typing import Any

from aerogel import _native


def checkpoint(path: str | os.PathLike[str], state: Any, step: int = 0) -> None:
    """Writes the state of a program to a file, with that of Aerogel's random numbers.

    >>> state = {"x": x, "v": v}  # doctest: +SKIP
    >>> for step in range(ti.tools.resume("run.checkpoint", state), 1000):  # doctest: +SKIP
    ...     substep()
    ...     ti.tools.checkpoint("run.checkpoint", state, step + 1)

    Args:
        path: The file. It changes only when all is on the disk.
        state: Whatever ``ti.save`` takes: fields, arrays, modules and numbers in a dictionary or a dataclass.
        step: The step with which ``resume`` continues.

    Raises:
        TypeError, ValueError: As ``ti.save``; or the step is no integer, or is negative.
        OSError: If the file cannot be written.
    """
    from aerogel._saving import save

    if not hasattr(step, "__index__"):
        raise TypeError(f"`checkpoint`: a step is an integer, not {step!r}")
    if not 0 <= step.__index__() < 1 << 64:
        raise ValueError(f"`checkpoint`: a step is an integer from 0 to 2^64 - 1, not {step!r}")
    save(path, {"state": state, "step": step.__index__(), "random": _random_state()})


def resume(path: str | os.PathLike[str], state: Any) -> int:
    """Continues from a file of ``checkpoint``, if it exists.

    Everything is checked before anything changes. Random numbers of kernels and of ``ti.tensor.random`` continue as
    they would have; those of NumPy and of other packages do not.

    Args:
        path: The file.
        state: The same structure as was written; it is filled as by ``ti.load(path, into=state)``.

    Returns:
        The step that was given to ``checkpoint``; 0 if there is no file, and then nothing changes.

    Raises:
        ValueError, TypeError: If the file is damaged, is no checkpoint, or does not fit ``state``.
        OSError: If it cannot be read.
    """
    from aerogel._restoring import restore
    from aerogel._saving import Rebuilt, opened

    if not os.path.exists(path):
        return 0
    path, tensors, plan, _ = opened(path)
    saved = Rebuilt(path, tensors).of(plan)
    whole: dict[str, Any] = {"state": state, "step": 0, "random": dict.fromkeys(_RANDOM, 0)}
    if isinstance(saved, dict) and saved.keys() == whole.keys() and isinstance(saved["random"], dict):
        numbers = [saved["step"], *saved["random"].values()]
        if not all(type(n) is int and 0 <= n < 1 << 64 for n in numbers):
            raise ValueError(f"{path} is damaged: its step or its random numbers are not integers from 0 to 2^64 - 1")
    restore(path, plan, tensors, whole)
    own = [whole["random"][name] for name in _RANDOM]
    from aerogel.tensor import random

    _native.set_random_state(own[0], own[1])
    random.default._seed, random.default._drawn = own[2], own[3]
    return whole["step"]


_RANDOM = ("seed", "launches", "tensors", "drawn")


def _random_state() -> dict[str, int]:
    """What later random numbers depend on: of kernels, and of tensors."""
    from aerogel.tensor import random

    seed, launches = _native.random_state()
    return {"seed": seed, "launches": launches, "tensors": random.default._seed, "drawn": random.default._drawn}
