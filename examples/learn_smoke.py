"""Smoke that is blown into the shape of a letter by velocities that gradient descent finds through the simulation.

Each step carries smoke and velocity along the flow, and makes the velocity free of divergence by the Fourier transform.
The whole simulation is one program; the gradient goes back through its steps.
"""

import common
import numpy as np

import aerogel as ti
from aerogel import optim
from aerogel.tensor import programs

STRENGTH = 2.0


def carried(field, u, v):
    """A field after a step: each cell has what was where its fluid came from, between four cells."""
    t = ti.tensor
    n = field.shape[0]
    x, y = t.iota((n, n), 0, dtype=ti.f32) - u, t.iota((n, n), 1, dtype=ti.f32) - v
    i, j = t.floor(x), t.floor(y)
    fx, fy = x - i, y - j
    i, j = i.astype(ti.i32), j.astype(ti.i32)
    wrapped = field.outside("wrap")
    near = t.gather(wrapped, i, j) * (1 - fy) + t.gather(wrapped, i, j + 1) * fy
    far = t.gather(wrapped, i + 1, j) * (1 - fy) + t.gather(wrapped, i + 1, j + 1) * fy
    return near * (1 - fx) + far * fx


def free_of_divergence(u, v, kx, ky):
    """The part of a velocity that has no divergence; ``kx`` and ``ky`` are unit vectors along the waves."""
    fft = ti.tensor.fft
    fu, fv = fft.fftn(u), fft.fftn(v)
    along = fu * kx + fv * ky
    return fft.ifftn(fu - along * kx).real, fft.ifftn(fv - along * ky).real


def waves(n):
    """Unit vectors along the waves of a transform."""
    kx, ky = np.meshgrid(np.fft.fftfreq(n), np.fft.fftfreq(n), indexing="ij")
    size = np.hypot(kx, ky)
    size[0, 0] = 1
    return tuple((k / size).astype(np.float32) for k in (kx, ky))


def blown(smoke, velocity, waves, n_steps):
    """The smoke after some steps."""
    smoke, u, v = smoke + 0.0, *(part * STRENGTH for part in velocity)
    with programs.loop(n_steps):
        free = free_of_divergence(u, v, *waves)
        after = [carried(field, *free) for field in (smoke, *free)]
        for field, value in zip((smoke, u, v), after):
            field.val = value
    return smoke


@ti.program
def loss_and_gradient(velocity, smoke, waves, target, n_steps: int):
    """The mean square by which the smoke misses the target, and its gradient by the first velocities."""

    def loss(velocity):
        return ((blown(smoke, velocity, waves, n_steps) - target) ** 2).mean()

    return ti.value_and_grad(loss)(velocity)


@ti.program
def simulate(velocity, smoke, waves, n_steps: int):
    """The smoke after some steps."""
    return blown(smoke, velocity, waves, n_steps)


def letter(n: int) -> np.ndarray:
    """A letter with soft edges, of values from 0 to 1."""
    gui = ti.GUI("letter", (4 * n, 4 * n), background_color=0, show_gui=False)
    gui.text("A", (0.24, 0.86), font_size=3 * n, color=0xFFFFFF)
    shape: np.ndarray = gui.get_image()[..., 0].reshape(n, 4, n, 4).mean((1, 3))
    for axis in (0, 1):
        for reach in range(1, max(n // 32, 1) + 1):
            shape = np.maximum(shape, np.maximum(np.roll(shape, reach, axis), np.roll(shape, -reach, axis)))
    for _ in range(2):
        shape = np.mean([np.roll(shape, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1)], axis=0)
    return shape.astype(np.float32)


def main(small=False):
    """Runs it: pictures of the smoke over time, the loss, and how far its slope is from central differences."""
    ti.init(arch=ti.cpu)
    t = ti.tensor
    n, n_steps, iterations = (24, 8, 30) if small else (96, 32, 300)
    target = letter(n)
    x, y = (np.mgrid[:n, :n] + 0.5) / n - 0.5
    disc = 1 / (1 + np.exp((np.hypot(x, y) - 0.27) * n / 1.5))
    smoke = t.asarray((disc * target.sum() / disc.sum()).astype(np.float32))
    constants = (smoke, tuple(map(t.asarray, waves(n))), t.asarray(target))
    parameters = [t.asarray(np.zeros((n, n), np.float32)).requires_grad_() for _ in range(2)]
    adam, losses = optim.Adam(parameters, lr=0.04), []
    for _ in range(iterations):
        loss, gradient = loss_and_gradient([p.detach() for p in parameters], *constants, n_steps)
        adam.apply(gradient)
        losses.append(loss.item())
    found = [p.detach() for p in parameters]

    def loss_of(values):
        return loss_and_gradient([t.asarray(v) for v in values.astype(np.float32)], *constants, n_steps)[0].item()

    gradient = np.stack([g.numpy() for g in loss_and_gradient(found, *constants, n_steps)[1]])
    error = common.slope_error(loss_of, np.stack([p.numpy() for p in found]), gradient, 0.02)
    times = [*range(n_steps + 1), *[n_steps] * 5]
    frames = [simulate(found, *constants[:2], k).numpy() for k in times]
    images = [common.palette(np.kron(f, np.ones((4, 4))), "10141f 2d4373 7a6fa8 e59a7a fdf0d5") for f in frames]
    return np.stack(images), {"loss before": losses[0], "loss after": losses[-1], "error of the slope": error}


if __name__ == "__main__":
    common.run(main)
