"""Noise that becomes a spiral: a diffusion model of points in the plane.

A network learns to tell the noise in points to which noise was added; taken away in small steps, it leaves points that
look like the data (Ho, Jain and Abbeel, Denoising diffusion probabilistic models, 2020).
"""

import common
import numpy as np

import aerogel as ti
from aerogel import nn, optim

STEPS = 100
# What is left of the points, and how much noise there is, after each step: a quarter of a cosine, as in Nichol and
# Dhariwal, Improved denoising diffusion probabilistic models, 2021.
LEFT = np.cos((np.arange(STEPS + 1) / STEPS + 0.008) / 1.008 * np.pi / 2) ** 2


def spiral(along: np.ndarray) -> np.ndarray:
    """Points of a spiral of two turns, for numbers from 0 to 1, of variance about 1."""
    radius, angle = 0.4 + 1.8 * along, 4 * np.pi * along
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)


def points(n: int, rng) -> np.ndarray:
    """Points near the spiral, evenly along it."""
    along = np.sqrt(rng.random(n))
    return (spiral(along) + 0.03 * rng.standard_normal((n, 2))).astype(np.float32)


def distance(places: np.ndarray) -> float:
    """The median of the distances of points from the spiral."""
    curve = spiral(np.linspace(0, 1, 1000))
    return float(np.median([np.hypot(*(curve - place).T).min() for place in places]))


class Network(nn.Module):
    """The noise in points, each after its own number of steps."""

    def __init__(self, width: int):
        self.places, self.times = nn.Linear(2, width), nn.Embedding(STEPS, width)
        self.hidden = nn.Sequential(nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU())
        self.out = nn.Linear(width, 2)

    def forward(self, x, step):
        return self.out(self.hidden(self.places(x) + self.times(step)))


@ti.program
def train(net, optimizer, x, noise, step, left):
    """An iteration: the loss, its gradient and the new parameters, in one program."""
    noisy = ti.tensor.sqrt(left) * x + ti.tensor.sqrt(1 - left) * noise
    loss, gradient = ti.value_and_grad(lambda net: ((net(noisy, step) - noise) ** 2).mean())(net)
    optimizer.apply(gradient)
    return loss


def learned(net: Network, n_iterations: int, batch: int, lr: float, rng) -> list[float]:
    """Trains a network; the losses."""
    optimizer, losses = optim.AdamW(net, lr=lr), []
    schedule = optim.CosineAnnealingLR(optimizer, T_max=n_iterations)
    for _ in range(n_iterations):
        step = rng.integers(0, STEPS, batch).astype(np.int32)
        left = LEFT[step + 1, None].astype(np.float32)
        noise = rng.standard_normal((batch, 2)).astype(np.float32)
        losses.append(train(net, optimizer, *map(ti.tensor.asarray, (points(batch, rng), noise, step, left))).item())
        schedule.step()
    return losses


def made(net: Network, n: int, rng) -> list[np.ndarray]:
    """Points that become less and less noisy, after each step."""
    noise_in = ti.program(lambda net, x, step: net(x, step))
    x = rng.standard_normal((n, 2))
    shown = [x]
    for k in reversed(range(STEPS)):
        share = max(LEFT[k + 1] / LEFT[k], 1e-3)
        step = ti.tensor.asarray(np.full(n, k, np.int32))
        noise = noise_in(net, ti.tensor.asarray(x.astype(np.float32)), step).numpy()
        x = (x - (1 - share) / np.sqrt(1 - LEFT[k + 1]) * noise) / np.sqrt(share)
        if k:
            x = x + np.sqrt((1 - share) * (1 - LEFT[k]) / (1 - LEFT[k + 1])) * rng.standard_normal((n, 2))
        shown.append(x)
    return shown


def picture(places: np.ndarray, size: int) -> np.ndarray:
    """Points in the plane from -3 to 3."""
    gui = ti.GUI("points", (size, size), background_color=0x0B1026, show_gui=False)
    gui.circles((places / 6 + 0.5).astype(np.float32), radius=max(size / 240, 1.2), color=0xE8B54A)
    return gui.get_image()[..., :3]


def main(small=False):
    """Runs it: pictures of points, and how far they are from the spiral."""
    ti.init(arch=ti.cpu)
    ti.tensor.random.seed(1)
    rng, net = np.random.default_rng(2), Network(64 if small else 128)
    losses = learned(net, *((3000, 128, 1e-2) if small else (6000, 256, 3e-3)), rng)
    steps = made(net, 500 if small else 2000, rng)
    frames = [*steps[: -STEPS // 2 : 5], *steps[-STEPS // 2 :: 3], steps[-1]]
    image = np.stack([picture(x, 160 if small else 360) for x in frames])
    places = {"noise": steps[0], "points at last": steps[-1], "the data": points(500, rng)}
    return image, {"loss": float(np.mean(losses[-100:]))} | {f"distance of {n}": distance(x) for n, x in places.items()}


if __name__ == "__main__":
    common.run(main)
