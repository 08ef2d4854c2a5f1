"""What the examples of the gallery share: their command line, colours, and smooth edges."""

import argparse
import inspect
import os
import time
from collections.abc import Callable

import numpy as np

import aerogel as ti


def run(main: Callable[[bool], tuple[np.ndarray, dict]]) -> None:
    """The command line of an example, whose ``main(small)`` gives a picture and numbers about it."""
    path = inspect.getsourcefile(main) or "picture"
    parser = argparse.ArgumentParser(
        description=inspect.getdoc(inspect.getmodule(main)), formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", action="store_true", help="a small run, done in a second or two")
    parser.add_argument("--out", default=f"out/{os.path.splitext(os.path.basename(path))[0]}.png")
    args = parser.parse_args()
    begin = time.perf_counter()
    image, numbers = main(args.small)
    os.makedirs(os.path.dirname(args.out) or ".", exist_ok=True)
    ti.tools.imwrite(image, args.out)
    for name, value in numbers.items():
        print(f"{name}: {value:.6g}")
    print(f"the picture is {os.path.abspath(args.out)}, after {time.perf_counter() - begin:.1f} s")


def palette(values: np.ndarray, colors: str) -> np.ndarray:
    """Colours for values from 0 to 1, evenly between those of a list such as ``"10202c 3a9bd9 edf2f4"``."""
    stops = np.array([[int(color[k : k + 2], 16) / 255 for k in (0, 2, 4)] for color in colors.split()])
    at = np.clip(np.nan_to_num(values), 0, 1) * (len(stops) - 1)
    low = np.minimum(at.astype(int), len(stops) - 2)
    part = (at - low)[..., None]
    return stops[low] * (1 - part) + stops[low + 1] * part


def halve(image: np.ndarray) -> np.ndarray:
    """Each pixel the mean of four: what is drawn at twice its size gets smooth edges."""
    return (image[::2, ::2] + image[1::2, ::2] + image[::2, 1::2] + image[1::2, 1::2]) / 4
