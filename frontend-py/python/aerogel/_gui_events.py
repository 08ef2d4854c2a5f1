"""What the user of a ``ti.GUI`` did."""

from __future__ import annotations

from typing import Any

#: What the window's names of keys are here.
KEYS = {"CapsLock": "Caps_Lock", "PageUp": "Prior", "PageDown": "Next", "KP_Return": "KP_Enter"}
#: Keys of which there are two, a left and a right one.
_TWICE = ("Shift", "Control", "Alt")
#: What a wheel goes by at once.
STEP = 120


class Event:
    """Something that the user did.

    Attributes:
        type: PRESS, RELEASE or MOTION.
        key: The key or button that was pressed or released; MOVE or WHEEL of MOTION; EXIT when the window was closed.
        pos: Where the mouse was.
        modifier: Which of SHIFT, CTRL and ALT were down.
        delta: How far the wheel went sidewards and upwards, 120 for each notch.
    """

    def __init__(self, type: str = "", key: str = "", pos: tuple[float, float] = (0.0, 0.0)) -> None:
        self.type, self.key, self.pos = type, key, pos
        self.modifier: list[str] = []
        self.delta: tuple[int, int] = (0, 0)

    def __repr__(self) -> str:
        return f"<{self.type} {self.key!r} at {self.pos}>"


class EventFilter:
    """Events of the given types, keys, (type, key, ...) tuples, or those for which a function says yes."""

    def __init__(self, *e_filter: Any) -> None:
        self.filter = e_filter

    def match(self, e: Event) -> bool:
        """Whether an event passes: every one does if nothing is named."""
        return not self.filter or any(_matches(wanted, e) for wanted in self.filter)


def _matches(wanted: Any, event: Event) -> bool:
    if callable(wanted):
        return bool(wanted(event))
    if isinstance(wanted, (tuple, list)):
        return wanted[0] == event.type and any(_is_key(key, event.key) for key in wanted[1:])
    return wanted == event.type or _is_key(wanted, event.key)


def _is_key(wanted: str, key: str) -> bool:
    return wanted == key or (wanted in _TWICE and key in (f"{wanted}_L", f"{wanted}_R"))


def is_down(wanted: str, down: set[str]) -> bool:
    """Whether a key is among those that are down; of two with one name, either."""
    return wanted in down or any(_is_key(wanted, key) for key in down)


def modifiers(down: set[str]) -> list[str]:
    """Which of Shift, Control and Alt are down."""
    return [name for name in _TWICE if is_down(name, down)]
