"""The window: it shows frames that programs return. Without a display it is a picture, as those of `ti.ui` are."""

from __future__ import annotations

import string
from typing import Any

import numpy as np

MOUSE_BUTTON_0, MOUSE_BUTTON_1, MOUSE_BUTTON_2 = range(3)
KEY_SPACE, KEY_APOSTROPHE, KEY_COMMA, KEY_MINUS, KEY_PERIOD = map(ord, " ',-.")
globals().update({f"KEY_{letter}": ord(letter) for letter in string.ascii_uppercase})

_BUTTONS = ("LMB", "RMB", "MMB")


class _Shown:
    """The one window, if it is shown, and what is drawn over the next frame."""

    window: Any = None
    #: Texts, places and colours, and curves: drawn over the next frame.
    overlays: list[Any] = []  # noqa: RUF012
    #: How many panels have begun since the last frame.
    n_panels = 0
    is_panel_open = False


_shown = _Shown()


def opened() -> Any:
    """The window.

    Raises:
        RuntimeError: It is not shown.
    """
    if _shown.window is None:
        raise RuntimeError("there is no window: call `tf.window.show(width, height, title)` first")
    return _shown.window


def show(width: int, height: int, title: str) -> None:
    """Shows the window, in place of one that is shown.

    Raises:
        ValueError: The width or the height is not a number of pixels.
    """
    from aerogel.ui.window import Window

    hide()
    _shown.window = Window(str(title), (int(width), int(height)))


def hide() -> None:
    """Closes the window."""
    if _shown.window is not None:
        _shown.window.destroy()
    _shown.window = None
    _next_frame()


def should_close() -> bool:
    """Whether the user has closed the window, or there is none; after AEROGEL_GUI_FRAMES frames, if that is set."""
    return _shown.window is None or not _shown.window.running


def get_size() -> tuple[int, int]:
    """Width and height in pixels."""
    return opened().get_window_shape()


get_window_size = get_size


def get_mouse_position() -> tuple[float, float]:
    """Where the mouse is, in pixels from the upper left corner."""
    (x, y), (width, height) = opened().get_cursor_pos(), get_size()
    return x * width, (1 - y) * height


def is_mouse_button_pressed(button: int) -> bool:
    """Whether a button is down: ``MOUSE_BUTTON_0``, the left one, 1, the right one, or 2.

    Raises:
        ValueError: There is no such button.
    """
    if button not in range(len(_BUTTONS)):
        raise ValueError(f"a button is 0, 1 or 2, not {button!r}")
    return opened().is_pressed(_BUTTONS[button])


def is_key_pressed(key: int) -> bool:
    """Whether a key is down, ``KEY_W`` for example.

    Raises:
        ValueError: There is no such key.
    """
    if not 0 < key < 128:
        raise ValueError(f"a key is one of `tf.window.KEY_...`, not {key!r}")
    return opened().is_pressed(chr(key).lower())


def render_frame(image: Any = None) -> None:
    """Ends the frame and shows an image, scaled to the window; without one the background.

    Args:
        image: A tensor or array of shape (height, width) or (height, width, 3), the first row on top. Floats go from 0
            to 1, integers to 255.

    Raises:
        ValueError: The shape is another one.
    """
    window = opened()
    size = get_size()
    if image is not None or _shown.overlays:
        pixels = _stretched(_colors(image), size) if image is not None else np.zeros((*size[::-1], 3), np.float32)
        pixels = _painted(pixels, size) if _shown.overlays else pixels.swapaxes(0, 1)[:, ::-1]
        window.get_canvas().set_image(np.ascontiguousarray(pixels))
    window.show()
    _next_frame()


def _next_frame() -> None:
    _shown.overlays, _shown.n_panels, _shown.is_panel_open = [], 0, False


def _colors(image: Any) -> np.ndarray:
    """An image as floats of shape (height, width, 3)."""
    values = image.numpy if hasattr(image, "_aerogel_tensor") else image
    values = np.asarray(values() if callable(values) else values)
    if values.ndim == 2:
        values = values[..., None]
    if values.ndim != 3 or values.shape[2] not in (1, 3) or not values.size:
        raise ValueError(f"a frame has the shape (height, width, 3) or (height, width), not {values.shape}")
    values = values.astype(np.float32) if values.dtype.kind in "fb" else values.astype(np.float32) / np.float32(255)
    return np.broadcast_to(np.clip(np.nan_to_num(values), 0, 1), (*values.shape[:2], 3))


def _stretched(image: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """An image of the window's size: each pixel is the nearest one of the image."""
    rows, columns = (((np.arange(n) + 0.5) * m / n).astype(int) for n, m in zip(size[::-1], image.shape))
    return image[rows][:, columns]


def _painted(image: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """The image with texts and curves over it: bytes of shape (width, height, 4), the second axis upwards."""
    from aerogel import _native
    from aerogel._gui_arrays import picture

    canvas = _native.Canvas(*size)
    shades = (image * 255 + 0.5).astype(np.uint8).swapaxes(0, 1)[:, ::-1]
    canvas.set_image(np.ascontiguousarray(shades))
    for draw in _shown.overlays:
        draw(canvas, size)
    return picture(canvas, size)
