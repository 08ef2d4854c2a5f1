"""Colour maps, by matplotlib's names: numbers as colours."""

from __future__ import annotations

import base64
import functools
from typing import Any

import numpy as np

#: Colours between which the others lie on straight lines: base64 of bytes (number from 0 to 255, red, green, blue).
#: They are within 2 of 255 of matplotlib's tables: viridis, magma, plasma, inferno (S. van der Walt, N. Smith; CC0),
#: cividis (J. Nuñez; CC0), turbo (A. Mikhailov; Apache 2.0), coolwarm (K. Moreland), RdBu and Spectral (C. Brewer;
#: Apache 2.0), twilight (B. Bechtold; CC0).
_TABLES = {
    "viridis": "AEQBVBpIJXY0QEWIXC5vjogfmIuZIqiEqDK2erpSxWnRhtVJ7tLiG/bn5Bn//ecl",
    "magma": "AAAABAgDAxIhHhFJMDYQazxKEHlRax2BcqAvf5HSQm+l7Fhgs/dwXMP8jmTa/rl//Pz3uf/8/b8=",
    "plasma": "AA0IhwomBZElVQKkPXoCqEuODKRnsiuPkNpaarz3kETc/r4q7vncJPzx9Cb/8Pkh",
    "inferno": "AAAABA8KByIhIwxMLDYJYTtPDWxbgiBsd64wXJLUSEKu8G8gwvqSB8r8oQjV+7Ya5PfTQO/y6GX59PiO//z/pA==",
    "cividis": "AAAiThQAMHAXATJxHhY3cC0uQW1cXmJuiYWCebWwpXHY1cJe8vLaRPz+5DT//ug4",
    "turbo": "ADASOwo7L4ATQkmxHkZm3ShGgPYxQZb/PC+y9Eoa0tJVGuS2Xizwnmxd/G95j/9Jgqn7OY3G"
    "8DSe69M5q/u4OLr+kCnM8FsS2N8/COm8IAL5jgoB/3oEAw==",
    "coolwarm": "ADtMwBpaeOQze5/5S529/2O80vd82dzhiOXY0aD1xKy+9Zx91uZyWe/LPjj4viQu/7QEJg==",
    "RdBu": "AGcAHxqzGSw12GVRT/WqiWf93MmA9vf3m8zi77SNwtzNQpHC5x9jqP8FMGE=",
    "Spectral": "AJ4BQhvXQU409HBEUP21Z2n+5JGA//++muT0mLai2aTNZMCm5jOHvP9eT6I=",
    "twilight": "AOLZ4hTS1ds5nbrIVXuhwnBnhr6SX2C0sV07n8lVIIHfRRNc8jYRQv8vFDY=",
    "hsv": "AP8AACn+8QAt9P8AVQj/AFoA/xaBAP/8hADw/6oAEP+uCAD/1/gA/dz/AOf//wAY",
    "jet": "AAAAgBwAAP8gAAD/VwDc/loC6PRgFv/ho+7/Cab49QCp/+oA4/8TAOjoAAD/gAAA",
    "hot": "AAsAAF3/AAC+//4A/////w==",
    "bwr": "AAAA/4D//v7//wAA",
    "seismic": "AAAATEABAf9//f3/gf/5+b//AQH/gAAA",
    "gray": "AAAAAP////8=",
}
#: The colour of what is not a number.
NAN = (255, 0, 200)


@functools.lru_cache
def table(name: str) -> np.ndarray:
    """The 256 colours of a map, of shape (256, 3) and dtype uint8; ``_r`` at the end of a name turns them around.

    Raises:
        ValueError: There is no such map here, nor in matplotlib.
    """
    if not isinstance(name, str):
        raise TypeError(f"a colour map is a name, such as 'viridis', not {name!r}")
    own = _TABLES.get(name.removesuffix("_r"))
    if own is None:
        return _of_matplotlib(name)
    at, *channels = np.frombuffer(base64.b64decode(own), np.uint8).reshape(-1, 4).T.astype(np.float64)
    out = np.stack([np.interp(np.arange(256), at, channel) for channel in channels], -1)
    out = (out + 0.5).astype(np.uint8)
    return out[::-1] if name.endswith("_r") else out


def _of_matplotlib(name: str) -> np.ndarray:
    known = ", ".join(_TABLES)
    try:
        from matplotlib import colormaps
    except ImportError:
        raise ValueError(f"there is no colour map {name!r} without matplotlib; there are {known}") from None
    if name not in colormaps:
        raise ValueError(f"there is no colour map {name!r}, nor in matplotlib; there are {known}")
    return (colormaps[name](np.linspace(0, 1, 256))[:, :3] * 255 + 0.5).astype(np.uint8)


def maybe(img: Any, name: str | None, low: Any, high: Any, wanted_by: str) -> Any:
    """An image as it is, or if a map is named, in its colours.

    Raises:
        ValueError: As ``colored``, or a range is given and no map.
    """
    if name is not None:
        return colored(img, name, low, high, wanted_by)
    if low is not None or high is not None:
        raise ValueError(f"{wanted_by}: vmin= and vmax= are the range of cmap=, which is not given")
    return img


def colored(values: Any, name: str, low: Any = None, high: Any = None, wanted_by: str = "a colour map") -> np.ndarray:
    """Numbers as colours: bytes of shape (width, height, 3). NaN is magenta.

    Args:
        values: A field, array or NumPy array with two axes.
        name: The name of the map.
        low: The number of the first colour; the smallest that is finite if left out.
        high: The number of the last colour; the largest that is finite if left out.
        wanted_by: What the error message calls the function.

    Raises:
        ValueError: There are other than two axes, or no such map.
    """
    array = values.to_numpy() if hasattr(values, "to_numpy") else np.asarray(values)
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[..., 0]
    if array.ndim != 2 or not array.size or array.dtype.kind not in "fiub":
        raise ValueError(f"{wanted_by}: cmap= takes numbers along two axes; this is {array.dtype}{array.shape}")
    colors = table(name)
    array = array.astype(np.float64)
    finite = array[np.isfinite(array)]
    low = float(finite.min(initial=np.inf) if low is None else low) if finite.size else 0.0
    high = float(finite.max(initial=-np.inf) if high is None else high) if finite.size else 1.0
    with np.errstate(all="ignore"):
        part = (array - low) / (high - low if high != low else 1.0)
    at = np.nan_to_num(part * 256, nan=0.0, posinf=255.0, neginf=0.0)
    out = colors[np.clip(at, 0, 255).astype(np.uint8)]
    out[np.isnan(array)] = NAN
    return out
