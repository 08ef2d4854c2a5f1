"""A level set fitted to scattered points: gradient descent moves its zero line until it passes through them.

Its grid starts as the distance to a circle around all points. What is made small: how far the points are from the zero
line, how far the slope is from 1, which is that of a distance (Gropp and others, Implicit geometric regularization,
2020), and the length of the line.
"""

import common
import numpy as np

import aerogel as ti
from aerogel import optim


def at_points(grid, points):
    """The values of a grid at points, in cells, between four nodes."""
    t = ti.tensor
    low = t.floor(points)
    i, j = low[:, 0].astype(ti.i32), low[:, 1].astype(ti.i32)
    fx, fy = (points - low)[:, 0], (points - low)[:, 1]
    near = t.gather(grid, i, j) * (1 - fy) + t.gather(grid, i, j + 1) * fy
    far = t.gather(grid, i + 1, j) * (1 - fy) + t.gather(grid, i + 1, j + 1) * fy
    return near * (1 - fx) + far * fx


@ti.program
def loss_and_gradient(grid, points):
    """What is made small, and its gradient by the values of the grid."""
    t = ti.tensor

    def loss(grid):
        misses = at_points(grid, points)
        across, along = grid[1:, 1:] - grid[:-1, 1:], grid[1:, 1:] - grid[1:, :-1]
        slope = t.sqrt(across * across + along * along + 1e-6)
        # One within a cell of the zero line, and less beyond.
        line = 1 / (1 + grid[1:, 1:] ** 2)
        bend = grid[2:, 1:-1] + grid[:-2, 1:-1] + grid[1:-1, 2:] + grid[1:-1, :-2] - 4 * grid[1:-1, 1:-1]
        return (
            (misses * misses / (1 + 0.02 * misses * misses)).mean()
            + 0.2 * ((slope - 1) ** 2).mean()
            + 0.3 * (line * slope).mean()
            + 0.02 * (bend * bend).mean()
            + sum((t.minimum(edge - 4, 0) ** 2).mean() for edge in (grid[0], grid[-1], grid[:, 0], grid[:, -1]))
        )

    return ti.value_and_grad(loss)(grid)


def flower(n: int, size: int, seed: int) -> np.ndarray:
    """Points of shape (n, 2) on a flower of five leaves, in cells of a grid."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, n)
    radius = 0.28 + 0.11 * np.cos(5 * angle) + 0.004 * rng.standard_normal(n)
    return (0.5 + radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], -1)).astype(np.float32) * size


def picture(grid: np.ndarray, points: np.ndarray, scale: int) -> np.ndarray:
    """The level lines, the zero line among them, and the points."""
    size = grid.shape[0] * scale
    x = (np.arange(size) + 0.5) / scale - 0.5
    columns = np.stack([np.interp(x, np.arange(len(grid)), row) for row in grid])
    values = np.stack([np.interp(x, np.arange(len(grid)), row) for row in columns.T]).T
    bands = 0.5 + 0.5 * np.cos(values * 2 * np.pi / 4)
    image = common.palette(0.5 + values / len(grid), "17365d 2f6aa8 9cc3e6 f7f3ea f3c9a0 d77b3c 7d2f12")
    image = image * (1 - 0.18 * bands[..., None] ** 8)
    image = image * np.clip(np.abs(values) / 0.9 - 0.2, 0, 1)[..., None]
    gui = ti.GUI("level set", (size, size), show_gui=False)
    gui.set_image(image.astype(np.float32))
    gui.circles(points / grid.shape[0] + 0.5 / grid.shape[0], radius=2, color=0xFFFFFF)
    return gui.get_image()[..., :3]


def main(small=False):
    """Runs it: pictures of the level lines as they move, and how far points are from the zero line, in cells."""
    ti.init(arch=ti.cpu)
    size, n, iterations, n_frames = (32, 60, 60, 4) if small else (80, 260, 900, 28)
    points = flower(n, size, 0)
    x, y = np.mgrid[:size, :size] - size / 2
    grid = ti.tensor.asarray((np.hypot(x, y) - 0.44 * size).astype(np.float32)).requires_grad_()
    adam, losses, frames, given = optim.Adam([grid], lr=0.1), [], [], ti.tensor.asarray(points)
    before = abs(at_points(grid.detach(), given).numpy()).mean()
    shown = {int((iterations - 1) * (k / (n_frames - 1)) ** 1.5) for k in range(n_frames)}
    for k in range(iterations):
        if k in shown:
            frames.append(picture(grid.detach().numpy(), points, 4))
        loss, gradient = loss_and_gradient(grid.detach(), given)
        adam.apply([gradient])
        losses.append(loss.item())
    numbers = {"distance before": before, "distance after": abs(at_points(grid.detach(), given).numpy()).mean()}
    values = grid.detach().numpy()
    slope = np.hypot(*np.gradient(values))[np.abs(values) < 3]
    return np.stack(frames), {**numbers, "loss": losses[-1], "slope near the line": slope.mean()}


if __name__ == "__main__":
    common.run(main)
