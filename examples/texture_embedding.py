"""A compressed picture: a small texture of embeddings, and a network that turns them into colours.

The embeddings around a point are interpolated smoothly, once as they lie and once moved by half a texel (Müller and
others, Instant neural graphics primitives, 2022, appendix A). By default the picture is one of this repository;
``--photo`` names another.
"""

from pathlib import Path

import common
import numpy as np

import aerogel as ti
from aerogel import nn, optim
from aerogel.nn import functional as F

PICTURE = Path(__file__).parents[1] / "docs" / "gallery" / "path_tracer.png"


class Picture(nn.Module):
    """The colours at points whose coordinates are from 0 to 1."""

    def __init__(self, size: int, channels: int, width: int):
        self.size = size
        self.texture = nn.Parameter(0.1 * ti.tensor.random.randn(size + 2, size + 2, channels))
        self.layers = nn.Sequential(
            nn.Linear(2 * channels, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 3)
        )

    def sampled(self, points):
        """The embeddings at points in texels, between the four around each."""
        low = ti.tensor.floor(points)
        part, corner = points - low, low.astype(ti.i32)
        # Without a kink at the texels.
        part = part * part * (3 - 2 * part)
        x, y, f, g = corner[:, 0], corner[:, 1], part[:, 0, None], part[:, 1, None]
        rows = [self.texture[x + k, y] * (1 - g) + self.texture[x + k, y + 1] * g for k in (0, 1)]
        return rows[0] * (1 - f) + rows[1] * f

    def forward(self, points):
        places = points * (self.size - 0.001)
        both = ti.tensor.concat([self.sampled(places), self.sampled(places + 0.5)], axis=-1)
        return F.sigmoid(self.layers(both))


@ti.program
def train(net, optimizer, points, colors):
    """A step: the loss, its gradient and the new parameters, in one program."""
    loss, gradient = ti.value_and_grad(lambda net: ((net(points) - colors) ** 2).mean())(net)
    optimizer.apply(gradient)
    return loss


def grid(width: int, height: int) -> np.ndarray:
    """The middles of pixels."""
    x, y = np.meshgrid((np.arange(width) + 0.5) / width, (np.arange(height) + 0.5) / height, indexing="ij")
    return np.stack([x, y], axis=-1).reshape(-1, 2).astype(np.float32)


@ti.no_grad()
def painted(net: Picture, width: int, height: int) -> np.ndarray:
    """The picture that a network has learned, in any size."""
    return net(ti.tensor.asarray(grid(width, height))).numpy().reshape(width, height, 3)


def main(small=False, photo=str(PICTURE)):
    """Runs it: the picture, the texture and what was learned, and the error in decibels."""
    ti.init(arch=ti.cpu)
    ti.tensor.random.seed(1)
    rng = np.random.default_rng(2)
    wanted = ti.tools.imread(photo)[..., :3].astype(np.float32) / 255
    if small:
        wanted = wanted[::5, ::5]
    width, height, _ = wanted.shape
    net = Picture(16, 4, 32) if small else Picture(48, 6, 48)
    n_steps, batch = (300, 1024) if small else (2500, 4096)
    optimizer = optim.Adam(net, lr=1e-2)
    schedule = optim.CosineAnnealingLR(optimizer, T_max=n_steps)
    points, colors = grid(width, height), wanted.reshape(-1, 3)
    for _ in range(n_steps):
        chosen = rng.integers(0, len(points), batch)
        train(net, optimizer, ti.tensor.asarray(points[chosen]), ti.tensor.asarray(colors[chosen]))
        schedule.step()
    made = painted(net, width, height)
    error = np.mean((made - wanted) ** 2)
    numbers = {"decibels": error, "decibels of one colour": wanted.var(axis=(0, 1)).mean()}
    numbers = {name: -10 * np.log10(value) for name, value in numbers.items()}
    numbers["of the picture's numbers"] = sum(p.size for p in net.parameters()) / wanted.size
    return np.concatenate([wanted, made]), numbers


if __name__ == "__main__":
    common.run(main)
