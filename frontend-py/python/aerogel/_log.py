"""Messages to the user: ``[Aerogel] ...`` on standard error or output, filtered by level."""

from __future__ import annotations

import os
import sys

TRACE, DEBUG, INFO, WARN, ERROR, CRITICAL = "trace", "debug", "info", "warn", "error", "critical"
_LEVELS = [TRACE, DEBUG, INFO, WARN, ERROR, CRITICAL]
_asked = (os.environ.get("AEROGEL_LOG_LEVEL") or os.environ.get("TI_LOG_LEVEL") or INFO).lower()
# What is none, ti.init says.
_level = _LEVELS.index(_asked if _asked in _LEVELS else INFO)


def set_logging_level(level: str) -> None:
    """Shows messages of this level and above: one of trace, debug, info, warn, error, critical."""
    global _level
    if str(level).lower() not in _LEVELS:
        raise ValueError(f"there is no logging level {level!r}; choose from {', '.join(_LEVELS)}")
    _level = _LEVELS.index(str(level).lower())


def is_logging_effective(level: str) -> bool:
    """Whether messages of this level are shown."""
    return _LEVELS.index(str(level).lower()) >= _level


def _write(level: str, message: str) -> None:
    if is_logging_effective(level):
        (sys.stdout if level == INFO else sys.stderr).write(f"[Aerogel] {message}\n")


def trace(message: str) -> None:
    """A message about every step."""
    _write(TRACE, message)


def debug(message: str) -> None:
    """Logs a message about Aerogel's internal state."""
    _write(DEBUG, message)


def info(message: str) -> None:
    """A message about the ordinary course of things."""
    _write(INFO, message)


def warn(message: str) -> None:
    """A message about something that is probably not as the user wants it."""
    _write(WARN, message)


def error(message: str) -> None:
    """A message about something that went wrong."""
    _write(ERROR, message)
