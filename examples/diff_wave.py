"""A pond that shows a sign: gradient descent finds the heights whose waves meet in it some hundred steps later.

The wave equation, differentiated through all of its steps: the wave simulator of Hu et al., DiffTaichi, ICLR 2020,
section D. From left to right the heights at the start, half-way and at the end, and the loss.
"""

import numpy as np
from common import curve, palette, run, slope_error

import aerogel as ti

SPEED2 = 1 / 3  # The square of the cells that a wave passes in a step.


@ti.data_oriented
class Pond:
    """Heights at all times, on a square whose rim is still."""

    def __init__(self, n, steps, real=ti.f32):
        self.n, self.steps = n, steps
        self.height = ti.field(real, (steps, n, n), needs_grad=True)
        self.start = ti.field(real, (n, n), needs_grad=True)
        self.target = ti.field(real, (n, n))
        self.loss = ti.field(real, (), needs_grad=True)

    @ti.func
    def curvature(self, t, i, j):
        """The sum over four neighbours, less four times the height: the Laplacian."""
        across = self.height[t, i - 1, j] + self.height[t, i + 1, j]
        along = self.height[t, i, j - 1] + self.height[t, i, j + 1]
        return across + along - 4 * self.height[t, i, j]

    @ti.kernel
    def begin(self):
        for i, j in self.start:
            self.height[0, i, j] = self.start[i, j]
            self.height[1, i, j] = self.start[i, j]

    @ti.kernel
    def advance(self, t: ti.i32):
        for i, j in ti.ndrange((1, self.n - 1), (1, self.n - 1)):
            now, before = self.height[t - 1, i, j], self.height[t - 2, i, j]
            self.height[t, i, j] = 2 * now - before + SPEED2 * self.curvature(t - 1, i, j)

    @ti.kernel
    def compare(self):
        for i, j in self.target:
            self.loss[None] += (self.height[self.steps - 1, i, j] - self.target[i, j]) ** 2 / self.n**2

    def simulate(self):
        self.begin()
        for t in range(2, self.steps):
            self.advance(t)
        self.compare()

    def loss_of(self, start):
        self.start.from_numpy(start.astype(np.float32))
        self.loss[None] = 0
        self.simulate()
        return self.loss[None]

    def descend(self, iterations, rate):
        """Gradient descent on the heights at the start; the losses."""
        losses, start = [], self.start.to_numpy()
        for _ in range(iterations):
            with ti.ad.Tape(self.loss):
                self.simulate()
            losses.append(self.loss[None])
            start -= rate * self.n**2 * self.start.grad.to_numpy()
            self.start.from_numpy(start)
        return losses


def sign(n):
    """A disc of two halves that flow into each other, with an eye in each."""
    y, x = (np.mgrid[:n, :n] + 0.5) / n * 2 - 1
    r = np.hypot(x, y)
    upper, lower = np.hypot(x, y - 0.35), np.hypot(x, y + 0.35)
    white = ((x > 0) | (upper < 0.35)) & (lower >= 0.35)
    value = np.where(upper < 0.1, -1.0, np.where(lower < 0.1, 1.0, np.where(white, 1.0, -1.0)))
    return np.where(r < 0.7, value, 0) * 0.1


def main(small=False, iterations=0):
    ti.init(arch=ti.cpu)
    n, steps = (64, 64) if small else (256, 256)
    pond = Pond(n, steps)
    pond.target.from_numpy(sign(n).astype(np.float32))
    losses = pond.descend(iterations or (20 if small else 100), 0.2)
    start = pond.start.to_numpy()
    with ti.ad.Tape(pond.loss):
        pond.simulate()
    error = slope_error(pond.loss_of, start, pond.start.grad.to_numpy(), 0.05)
    heights = [pond.height.to_numpy()[t] for t in (0, steps // 2, steps - 1)]
    views = [palette(0.5 + 4 * h, "08306b 4292c6 f7fbff f4a582 b2182b") for h in heights]
    image = np.concatenate([*views, curve(losses, n, n)])
    return image, {"loss at first": losses[0], "loss at last": losses[-1], "error of the slope": error}


if __name__ == "__main__":
    run(main)
