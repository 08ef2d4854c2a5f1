"""A cellular automaton that grows a picture from one cell, by a rule that a network learned.

Mordvintsev and others, Growing neural cellular automata, 2020: each cell has 12 numbers, sees its own and the slopes
and the curvature around it, and changes them by a small network, the same for all. Half of the cells change in a step.
The gradient goes through all steps of a loop. The pictures go on after the step where the picture was to be there.
"""

import common
import numpy as np

import aerogel as ti
from aerogel import nn, optim
from aerogel.tensor import programs as p

CHANNELS, STEPS = 12, 24


class Rule(nn.Module):
    """How the numbers of a cell change."""

    def __init__(self, width: int):
        self.hidden, self.out = nn.Linear(4 * CHANNELS, width), nn.Linear(width, CHANNELS, bias=False)
        # At first nothing changes.
        nn.init.zeros_(self.out.weight)

    def forward(self, cells):
        return self.out(nn.functional.relu(self.hidden(seen(cells))))


def seen(cells):
    """What cells of shape (width, height, channels) see: themselves, two slopes, and the curvature."""

    def moved(i, j):
        return ti.tensor.roll(cells, (i, j), axis=(0, 1))

    across = sum(w * (moved(1, j) - moved(-1, j)) for j, w in ((-1, 0.125), (0, 0.25), (1, 0.125)))
    along = sum(w * (moved(i, 1) - moved(i, -1)) for i, w in ((-1, 0.125), (0, 0.25), (1, 0.125)))
    around = moved(1, 0) + moved(-1, 0) + moved(0, 1) + moved(0, -1) - 4 * cells
    return ti.tensor.concat([cells, across, along, around], axis=-1)


def step(rule, cells, key):
    """The cells after a step, in which about half of them change; none becomes large."""
    changes = ti.tensor.random.uniform(key, cells.shape[:2]) < 0.5
    return ti.tensor.clip(cells + ti.tensor.where(changes.unsqueeze(-1), rule(cells), 0.0), -2.0, 2.0)


@ti.program
def train(rule, optimizer, cells, wanted, key):
    """A step: the loss after all steps of the automaton, its gradient and the new rule."""

    def loss_of(rule):
        grown = p.fori_loop(0, STEPS, lambda k, cells: step(rule, cells, key + k.astype("u32")), cells)
        return ((grown[..., :3] - wanted) ** 2).mean()

    loss, gradient = ti.value_and_grad(loss_of)(rule)
    optimizer.apply(gradient)
    return loss


@ti.program
def grow(rule, cells, key):
    """One step."""
    return step(rule, cells, key)


def seed(size: int) -> np.ndarray:
    """Cells of zeros, and one in the middle."""
    cells = np.zeros((size, size, CHANNELS), np.float32)
    cells[size // 2, size // 2] = 1
    return cells


def target(size: int) -> np.ndarray:
    """What is to grow: a flower."""
    x, y = np.meshgrid(*[np.linspace(-1, 1, size)] * 2, indexing="ij")
    radius, angle = np.hypot(x, y), np.arctan2(y, x)
    petals = radius < 0.5 + 0.3 * np.cos(5 * angle)
    image = np.where(petals[..., None], [0.85, 0.25, 0.35], [0.05, 0.08, 0.15])
    return np.where(radius[..., None] < 0.2, [0.95, 0.8, 0.25], image).astype(np.float32)


def main(small=False):
    """Runs it: pictures of the growth, and the mean squared error of the colours."""
    ti.init(arch=ti.cpu)
    ti.tensor.random.seed(1)
    draw = ti.tensor.random.Generator(2)
    size, n_iterations = (16, 250) if small else (28, 800)
    rule, wanted, begin = Rule(32 if small else 64), target(size), ti.tensor.asarray(seed(size))
    optimizer, losses = optim.Adam(rule, lr=4e-3), []
    schedule = optim.CosineAnnealingLR(optimizer, T_max=n_iterations)
    for _ in range(n_iterations):
        losses.append(train(rule, optimizer, begin, ti.tensor.asarray(wanted), draw.key()).item())
        schedule.step()
    cells, frames = begin, [begin.numpy()[..., :3]]
    for _ in range(STEPS + 6):
        cells = grow(rule, cells, draw.key())
        frames.append(cells.numpy()[..., :3])
    image = np.kron(np.clip(np.stack(frames), 0, 1), np.ones((1, 10, 10, 1)))
    numbers = {"loss at first": losses[0], "loss at last": float(np.mean(losses[-10:]))}
    return image, numbers | {"loss of another growth": float(((frames[STEPS] - wanted) ** 2).mean())}


if __name__ == "__main__":
    common.run(main)
