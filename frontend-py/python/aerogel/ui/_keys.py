"""The names of keys, buttons and events."""

SHIFT = "Shift"
ALT = "Alt"
CTRL = "Control"
ESCAPE = "Escape"
RETURN = "Return"
TAB = "Tab"
BACKSPACE = "BackSpace"
SPACE = " "
UP = "Up"
DOWN = "Down"
LEFT = "Left"
RIGHT = "Right"
CAPSLOCK = "CapsLock"
LMB = "LMB"
MMB = "MMB"
RMB = "RMB"

PRESS = "Press"
RELEASE = "Release"

#: What the window's names of keys are here, where a left key and a right one, or one of the number pad, are the same.
_SAME = {f"{key}_{side}": key for key in (SHIFT, ALT, CTRL, "Super") for side in "LR"}


def name_of(key: str) -> str:
    """The name of a key that the window names."""
    return _SAME.get(key, key.removeprefix("KP_"))
