"""The memory manager's names: what tensors and fields take, and a log of it."""

from __future__ import annotations

import sys
from typing import Any, TextIO

from aerogel import _native
from aerogel.backends import _registry


class _Log:
    stream: TextIO | None = None
    is_enabled = False
    interval = 1
    lines: tuple[str, ...] = ()


_log = _Log()


def getMemMgrInfo() -> str:
    """How many bytes live tensors and fields take, and the counts of the current back end, as text."""
    lines = [f"bytes in memory of the host: {_native.live_bytes()}"]
    backend = _registry.entry(_registry.current()).backend
    if backend is not None:
        lines += [f"{backend.name}: {name}: {n}" for name, n in sorted(backend.memory_info().items())]
    return "\n".join(lines)


def setMemMgrLogStream(stream: Any) -> None:
    """Has the log written to a file that is open; the standard error at first."""
    _flush()
    _log.stream = stream


def setMemMgrLoggingEnabled(enabled: bool) -> None:
    """Begins or ends the log: a line for each call of `eval`, `host` and `device`."""
    if not enabled:
        _flush()
    _log.is_enabled = bool(enabled)


def setMemMgrFlushInterval(interval: int) -> None:
    """Has the log written after so many lines.

    Raises:
        ValueError: It is not above 0.
    """
    if interval < 1:
        raise ValueError(f"the log is written after 1 line or more, not after {interval}")
    _log.interval = interval
    _flush()


def note(what: str) -> None:
    """A line of the log."""
    if _log.is_enabled:
        _log.lines = (*_log.lines, f"{what}: {_native.live_bytes()} bytes")
        if len(_log.lines) >= _log.interval:
            _flush()


def _flush() -> None:
    stream = _log.stream or sys.stderr
    for line in _log.lines:
        stream.write(line + "\n")
    _log.lines = ()
