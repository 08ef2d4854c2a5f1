"""Names of Taichi's interface that Aerogel does not have: each can be imported, and says so where it is used."""

from __future__ import annotations

from typing import Any

from aerogel.errors import AerogelNotSupportedError


class Absent:
    """A name that is not there, and what there is instead."""

    #: In kernels it is called with whatever arguments, to say that it is not there.
    __aerogel_absent__ = True

    def __init__(self, name: str, instead: str) -> None:
        self.__name__ = name
        self.__doc__ = f"{name} is not supported: {instead}."
        self._instead = instead

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise AerogelNotSupportedError(f"{self.__name__} is not supported: {self._instead}")

    def __getattr__(self, name: str) -> Any:
        # It may be looked up, as programs do for machines that have it; what is done with it says that it is not there.
        if name.startswith("_"):
            raise AttributeError(name)
        return Absent(f"{self.__name__}.{name}", self._instead)

    def __instancecheck__(self, instance: object) -> bool:
        return False

    def __mro_entries__(self, bases: tuple) -> tuple:
        return self()

    def __repr__(self) -> str:
        return f"<{self.__name__}, not supported>"
