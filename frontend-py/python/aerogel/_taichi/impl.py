"""``ti.lang.impl``: the package's names, and the configuration in the form that Taichi's own modules read."""

from __future__ import annotations

from typing import Any

import aerogel
from aerogel import _config, _native
from aerogel.data import snode


def current_cfg() -> Any:
    """The configuration in use, which is ``ti.cfg``."""
    return aerogel.cfg


class _Program:
    """The program from one ``ti.init`` to the next, in the form that Taichi's modules read."""

    def config(self) -> Any:
        """The configuration in use, which is ``ti.cfg``."""
        return aerogel.cfg

    def synchronize(self) -> None:
        """Waits for all kernels."""
        aerogel.sync()


def _setting(name: str) -> Any:
    """A setting as an attribute that can be set."""
    return property(lambda self: getattr(aerogel.cfg, name), lambda self, value: _config.change(name, value))


class PyTaichi:
    """The state that ``get_runtime()`` answers."""

    default_fp = _setting("default_fp")
    default_ip = _setting("default_ip")
    default_up = property(lambda self: aerogel.cfg.default_up)
    short_circuit_operators = _setting("short_circuit_operators")
    print_full_traceback = _setting("print_full_traceback")
    unrolling_limit = _setting("unrolling_limit")
    #: Python code never runs inside a kernel.
    inside_kernel = False

    def set_default_fp(self, fp: Any) -> None:
        """Changes what ``float`` means from now on."""
        _config.change("default_fp", fp)

    def set_default_ip(self, ip: Any) -> None:
        """Changes what ``int`` means from now on."""
        _config.change("default_ip", ip)

    @property
    def prog(self) -> _Program | None:
        """The program, or ``None`` before ``ti.init``."""
        try:
            _native.check_initialized()
        except aerogel.TaichiRuntimeError:
            return None
        return _PROGRAM

    def materialize(self) -> None:
        """Lays out the fields placed so far, as the first kernel would."""
        snode._materialize()

    def sync(self) -> None:
        """Waits for all kernels."""
        aerogel.sync()


_PROGRAM = _Program()
pytaichi = PyTaichi()


def get_runtime() -> PyTaichi:
    """The state of the package: the program and the default types."""
    return pytaichi


def inside_kernel() -> bool:
    """Whether this is called while a kernel is compiled; Python code never is."""
    return False


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(aerogel, name)
