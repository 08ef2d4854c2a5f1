"""Code that the examples of the gallery share: their command line, colours, light, and small pieces of numerics."""

import argparse
import inspect
import os
import time
from collections.abc import Callable

import numpy as np

import aerogel as ti


def run(main: Callable[..., tuple[np.ndarray, dict]]) -> None:
    """The command line of an example, whose ``main(small)`` gives a picture, or several, and numbers about it.

    Each further parameter of ``main`` becomes an option. A package that is missing is named, with the line of the
    program's own text that installs it.
    """
    parser = argparse.ArgumentParser(
        description=inspect.getdoc(inspect.getmodule(main)), formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, parameter in inspect.signature(main).parameters.items():
        default = parameter.default
        if name == "small":
            parser.add_argument("--small", action="store_true", help="a small run, done in a second or two")
        elif isinstance(default, bool):
            parser.add_argument(f"--{name}", action="store_true")
        else:
            parser.add_argument(f"--{name}", type=type(default), default=default, help="(%(default)s)")
    path = inspect.getsourcefile(main) or "picture"
    parser.add_argument("--out", default=f"out/{os.path.splitext(os.path.basename(path))[0]}.png")
    options = vars(parser.parse_args())
    out = options.pop("out")
    begin = time.perf_counter()
    try:
        image, numbers = main(**options)
    except ModuleNotFoundError as e:
        lines = (parser.description or "").splitlines()
        install = next((line for line in lines if line.startswith("pip install ")), f"pip install {e.name}")
        raise SystemExit(f"this example needs {e.name}: {install.partition('#')[0].strip()}") from None
    os.makedirs(os.path.dirname(out) or ".", exist_ok=True)
    write(image, out)
    for name, value in numbers.items():
        print(f"{name}: {value:.6g}")
    print(f"the picture is {os.path.abspath(out)}, after {time.perf_counter() - begin:.1f} s")


def write(image: np.ndarray, out: str) -> None:
    """Writes a picture; several, of shape (pictures, width, height, 3), as one that moves, by Pillow."""
    if image.ndim == 3:
        ti.tools.imwrite(image, out)
        return
    from PIL import Image

    rows = (np.clip(image, 0, 1)[:, :, ::-1].swapaxes(1, 2) * 255 + 0.5).astype(np.uint8)
    first, *others = (Image.fromarray(np.ascontiguousarray(picture)) for picture in rows)
    # The last one stays for a while.
    shown = [80] * len(others) + [2000]
    first.save(out, save_all=True, append_images=others, duration=shown, loop=0)


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


def lit(height: np.ndarray, way: tuple[float, float, float]) -> np.ndarray:
    """How bright each point of a relief is, with the light in direction ``way``; heights are in pixels."""
    across, along = np.gradient(height)
    return (way[2] - way[0] * across - way[1] * along) / np.sqrt(across**2 + along**2 + 1)


def bloom(light: np.ndarray) -> np.ndarray:
    """The halo of bright light: the sum of wider and wider blurs."""
    glow = light
    for reach in (1, 2, 4, 8):
        for axis in (0, 1):
            light = (np.roll(light, reach, axis) + 2 * light + np.roll(light, -reach, axis)) / 4
        glow = glow + 1.6 * reach * light
    return glow


def curve(losses: list[float], width: int, height: int) -> np.ndarray:
    """The picture of a falling loss: iterations to the right, the logarithm of the loss upwards."""
    values = np.log(np.maximum(losses, 1e-30))
    low, high = values.min(), max(values.max(), values.min() + 1e-6)
    x = np.linspace(0, len(values) - 1, 2 * width)
    y = np.interp(x, np.arange(len(values)), (values - low) / (high - low)) * 1.6 * height + 0.2 * height
    rows = np.arange(2 * height) + 0.5
    line = np.clip(2.5 - np.abs(rows - y[:, None]) / np.sqrt(1 + np.gradient(y)[:, None] ** 2), 0, 1)
    below = (rows < y[:, None]) * 0.25
    paper, ink = np.array([0.98, 0.97, 0.94]), np.array([0.75, 0.22, 0.17])
    shade = np.maximum(line, below)[..., None]
    return halve(paper * (1 - shade) + ink * shade)


def slope_error(loss_of: Callable[[np.ndarray], float], at: np.ndarray, gradient: np.ndarray, step: float) -> float:
    """How far a gradient is from what the loss does along it: the relative error of a central difference."""
    direction = gradient / np.linalg.norm(gradient)
    difference = (loss_of(at + step * direction) - loss_of(at - step * direction)) / (2 * step)
    return float(abs(difference / np.linalg.norm(gradient) - 1))


def learn(simulate: Callable[[], None], loss, parameters, iterations: int, rate: float) -> list[float]:
    """Changes the values of a field such that the loss of a simulation falls, by the method Adam; the losses.

    Kingma and Ba, Adam: a method for stochastic optimization, ICLR 2015.
    """
    losses, values, mean, square = [], parameters.to_numpy(), 0, 0
    for k in range(1, iterations + 1):
        with ti.ad.Tape(loss):
            simulate()
        losses.append(loss[None])
        gradient = parameters.grad.to_numpy()
        mean, square = 0.9 * mean + 0.1 * gradient, 0.99 * square + 0.01 * gradient**2
        values -= rate * mean / (1 - 0.9**k) / (np.sqrt(square / (1 - 0.99**k)) + 1e-12)
        parameters.from_numpy(values)
    return losses


def slope_error_of(simulate: Callable[[], None], loss, parameters, step: float) -> float:
    """The error of the slope of a simulation's loss by a field, at the values that the field has, and keeps."""

    def loss_of(values):
        parameters.from_numpy(values.astype(here.dtype))
        loss[None] = 0
        simulate()
        return loss[None]

    here = parameters.to_numpy()
    with ti.ad.Tape(loss):
        simulate()
    error = slope_error(loss_of, here, parameters.grad.to_numpy(), step)
    loss_of(here)
    return error


def rotation(axis: int, angle: float) -> np.ndarray:
    """Turns by an angle about an axis, counter-clockwise for who looks against it."""
    matrix, j, k = np.eye(3), (axis + 1) % 3, (axis + 2) % 3
    matrix[j, j] = matrix[k, k] = np.cos(angle)
    matrix[k, j], matrix[j, k] = np.sin(angle), -np.sin(angle)
    return matrix


@ti.func
def nearby(x):
    """The lowest of the nodes near ``x``, three along each axis, where ``x`` lies from there, and their weights.

    The weights are those of quadratic B-splines.
    """
    base = int(x - 0.5)
    f = x - base
    return base, f, [0.5 * (1.5 - f) ** 2, 0.75 - (f - 1) ** 2, 0.5 * (f - 0.5) ** 2]


@ti.func
def at(field: ti.template(), cell):
    """The value of a cell; beyond an edge, that of the nearest cell."""
    return field[ti.math.clamp(cell, 0, ti.Vector(field.shape) - 1)]


@ti.func
def sample(field: ti.template(), x):
    """Linear interpolation between the cells around ``x``, whose middles have whole coordinates."""
    low, f, total = ti.cast(ti.floor(x), int), x - ti.floor(x), 0 * field[int(0 * x)]
    for offset in ti.static(ti.grouped(ti.ndrange(*(2,) * x.n))):
        weight = 1.0
        for axis in ti.static(range(x.n)):
            weight *= f[axis] if offset[axis] else 1 - f[axis]
        total += weight * at(field, low + offset)
    return total


def written(lines: list[str], colors: list[np.ndarray], width: int) -> np.ndarray:
    """A picture of lines of text, all of one length in characters, each character in its own colour of shape (3,)."""
    step = width / (len(lines[0]) + 2)
    height = int(1.9 * step * (len(lines) + 1))
    gui = ti.GUI("text", (width, height), background_color=0xFAF8F0, show_gui=False)
    for row, (line, inks) in enumerate(zip(lines, colors)):
        for column, (letter, ink) in enumerate(zip(line, inks)):
            place = ((column + 1) * step / width, 1 - 1.9 * step * (row + 0.4) / height)
            red, green, blue = (int(255 * min(max(part, 0), 1)) for part in ink)
            gui.text(letter, place, font_size=round(1.7 * step), color=red << 16 | green << 8 | blue)
    return gui.get_image()[..., :3]
