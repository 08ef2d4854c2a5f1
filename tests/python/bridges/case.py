"""One array of a kind, what it holds, and how the library that made it reads it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass
class Case:
    """An array and what is known of it."""

    #: What a kernel is given.
    value: Any
    #: The elements as NumPy has them; `None` if there are none to see, so that only an error is right.
    data: np.ndarray | None
    #: The elements that the array holds now, by its own library.
    read: Callable[[], Any]
    #: Whether writing must be refused: the memory is read-only or a copy, or elements share it.
    is_read_only: bool = False
    #: The gradient that the array's own library holds, where it can hold one.
    gradient: Callable[[], Any] | None = None
    #: The gradient of the sum of weighted squares by `ti.ad.torch_function` or `ti.ad.jax_function`, given the weights.
    function: Callable[[np.ndarray], Any] | None = None
    #: Which method of fields copies from it.
    copies: str = "from_numpy"


#: A kind hands its case to a function, since some arrays exist only inside of a transformation.
Kind = Callable[[Callable[[Case], None]], None]

#: The types that NumPy and kernels both have.
TYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()

KINDS: dict[str, Kind] = {}
#: Kinds of which making one is slow or takes memory for ever, whatever kernels do with it.
NOT_REPEATED: set[str] = set()


def kind(name: str, *, is_repeated: bool = True) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a function that makes a case; or, if it has a parameter, hands cases to that."""

    def register(make: Callable[..., Any]) -> Callable[..., Any]:
        KINDS[name] = make if make.__code__.co_argcount else lambda act: act(make())
        if not is_repeated:
            NOT_REPEATED.add(name)
        return make

    return register


def numbers(dtype: Any = np.float32, shape: tuple[int, ...] = (2, 3)) -> np.ndarray:
    """Small whole numbers, which every type of numbers has: sums of them are exact."""
    return (np.arange(np.prod(shape, dtype=int)) % 5 + 1).reshape(shape).astype(dtype)


#: The libraries whose arrays there are, and the modules that make them.
LIBRARIES = {
    "numpy": "bridges.of_numpy",
    "python": "bridges.of_python",
    "aerogel": "bridges.of_aerogel",
    "torch": "bridges.of_torch",
    "jax": "bridges.of_jax",
    "pandas": "bridges.of_tables",
    "pyarrow": "bridges.of_tables",
    "PIL": "bridges.of_tables",
}


def register(libraries: list[str]) -> list[str]:
    """Registers the kinds of libraries; returns those of them that are not installed."""
    missing = []
    for library in libraries:
        try:
            if library != "python":
                importlib.import_module(library)
        except ImportError:
            missing.append(library)
            continue
        importlib.import_module(LIBRARIES[library])
    return missing
