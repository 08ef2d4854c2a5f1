"""Waves that deceive an eye: gradient descent through network, light and water makes a disc look like a square.

The water renderer of Hu et al., DiffTaichi, ICLR 2020: the pond of `diff_wave.py`, a ground that is seen by refracted
light, and a network of convolutions that looks at it. It learns first, to tell a disc, a square and a cross.
From left to right what it sees through the still water, the heights at the start, what it sees at the end; the loss.
"""

import numpy as np
from common import curve, learn, palette, run, sample, slope_error_of
from diff_wave import Pond

import aerogel as ti

SIDE, CHANNELS = 32, (1, 8, 16, 3)  # The last are a disc, a square and a cross.
DISC, SQUARE, CERTAINTY = 0, 1, 5.0
REFRACTION, LIGHT = 40.0, 1.5


def shape(kind, n, x, y, radius, angle):
    """A picture of a bright shape on dark ground."""
    turn = np.exp(-1j * angle) * ((np.arange(n)[:, None] + 0.5) / n - x + 1j * ((np.arange(n) + 0.5) / n - y)) / radius
    a, b = np.abs(turn.real), np.abs(turn.imag)
    far = (np.abs(turn), np.maximum(a, b) * 1.1, np.maximum(np.minimum(a, b) * 3, np.maximum(a, b)))[kind]
    return 0.2 + 0.7 * np.clip((1 - far) * radius * n / 2 + 0.5, 0, 1)


def examples(count):
    """Pictures of all shapes, in many places and sizes."""
    random, kinds = np.random.default_rng(5), np.arange(count) % CHANNELS[-1]
    draw = random.uniform((0.4, 0.4, 0.2, 0), (0.6, 0.6, 0.35, np.pi), (count, 4))
    pictures = np.stack([shape(kind, SIDE, *where) for kind, where in zip(kinds, draw)])
    return pictures + random.normal(0, 0.03, pictures.shape), kinds.astype(np.int32)


@ti.data_oriented
class Eye:
    """Three layers of convolutions, whose windows are five wide and two apart; the last sees all there is."""

    def __init__(self, count):
        self.count, sides = count, (SIDE, 14, 5, 1)
        self.layers = [ti.field(float, (count, c, n, n), needs_grad=True) for c, n in zip(CHANNELS, sides)]
        self.weights = ti.field(float, (sum(CHANNELS[1:]), 25 * CHANNELS[2] + 1), needs_grad=True)
        self.kind, self.loss = ti.field(int, count), ti.field(float, (), needs_grad=True)

    @ti.kernel
    def convolve(self, first: int, x: ti.template(), y: ti.template()):
        for b, c, i, j in y:
            signal = self.weights[first + c, 0]
            for before in range(x.shape[1]):
                for k, l in ti.static(ti.ndrange(5, 5)):
                    signal += self.weights[first + c, 1 + 25 * before + 5 * k + l] * x[b, before, 2 * i + k, 2 * j + l]
            y[b, c, i, j] = ti.tanh(signal)

    @ti.kernel
    def judge(self):
        """How surprised it is by what it should see: the cross entropy."""
        for b in range(self.count):
            total = 0.0
            for c in ti.static(range(CHANNELS[-1])):
                total += ti.exp(CERTAINTY * self.layers[3][b, c, 0, 0])
            self.loss[None] += (ti.log(total) - CERTAINTY * self.layers[3][b, self.kind[b], 0, 0]) / self.count

    def look(self):
        for k in range(3):
            self.convolve(sum(CHANNELS[1 : k + 1]), self.layers[k], self.layers[k + 1])
        self.judge()


def trained(count, iterations):
    """The weights of a network that has seen many shapes, and how many of them it knows."""
    eye, (pictures, kinds) = Eye(count), examples(count)
    eye.layers[0].from_numpy(pictures[:, None])
    eye.kind.from_numpy(kinds)
    eye.weights.from_numpy(np.random.default_rng(1).normal(0, 0.05, eye.weights.shape))
    learn(eye.look, eye.loss, eye.weights, iterations, 0.01)
    return eye.weights, (eye.layers[3].to_numpy()[:, :, 0, 0].argmax(1) == kinds).mean()


@ti.data_oriented
class Water:
    """A pond over a picture of a disc, and an eye above it that should see a square."""

    def __init__(self, n, steps, weights):
        self.n, self.pond, self.eye = n, Pond(n, steps, float), Eye(1)
        self.eye.weights.copy_from(weights)
        self.eye.kind.fill(SQUARE)
        self.ground, self.seen = ti.field(float, (n, n)), ti.field(float, (n, n), needs_grad=True)
        self.ground.from_numpy(shape(DISC, n, 0.5, 0.5, 0.28, 0))

    @ti.kernel
    def render(self):
        """A ray is bent to where the surface falls; and light comes from one side."""
        height, last = ti.static(self.pond.height, self.pond.steps - 1)
        for i, j in ti.ndrange((1, self.n - 1), (1, self.n - 1)):
            across = height[last, i + 1, j] - height[last, i - 1, j]
            along = height[last, i, j + 1] - height[last, i, j - 1]
            below = ti.Vector([i, j]) - REFRACTION * ti.Vector([across, along])
            self.seen[i, j] = sample(self.ground, below) + LIGHT * (across + along)

    @ti.kernel
    def shrink(self):
        for i, j in self.seen:
            cells = self.n // SIDE
            self.eye.layers[0][0, 0, i // cells, j // cells] += self.seen[i, j] / cells**2

    def simulate(self):
        self.pond.begin()
        for t in range(2, self.pond.steps):
            self.pond.advance(t)
        self.render()
        self.eye.layers[0].fill(0)
        self.shrink()
        self.eye.look()


def main(small=False, iterations=0):
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    weights, known = trained(48, 50) if small else trained(96, 100)
    water = Water(*((64, 64) if small else (256, 256)), weights)
    start, loss = water.pond.start, water.eye.loss
    start.from_numpy(np.random.default_rng(2).normal(0, 1e-4, start.shape))
    error = slope_error_of(water.simulate, loss, start, 1e-7)
    views = [palette(water.seen.to_numpy(), "10202c 3a9bd9 edf2f4")]
    losses = learn(water.simulate, loss, start, iterations or (20 if small else 80), 5e-4)
    views += [palette(0.5 + 40 * start.to_numpy(), "08306b 4292c6 f7fbff f4a582 b2182b")]
    views += [palette(water.seen.to_numpy(), "10202c 3a9bd9 edf2f4"), curve(losses, water.n, water.n)]
    numbers = {
        "loss at first": losses[0],
        "loss at last": losses[-1],
        "error of the slope": error,
        "shapes known": known,
    }
    return np.concatenate(views), numbers


if __name__ == "__main__":
    run(main)
