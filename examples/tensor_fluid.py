"""Two layers of a fluid that slide past each other and roll up, written with tensors: no loop over cells anywhere.

The vorticity is carried along by the flow, looked up where each cell's fluid came from; the stream function is what
a few hundred sweeps of relaxation make of it.
"""

import common
import numpy as np

import aerogel as ti


def laplace_of(vorticity, stream, n_sweeps):
    """Sweeps towards the stream function whose Laplacian is minus the vorticity, on cells of size 1."""
    t = ti.tensor
    for _ in range(n_sweeps):
        around = (
            t.roll(stream, 1, axis=0)
            + t.roll(stream, -1, axis=0)
            + t.roll(stream, 1, axis=1)
            + t.roll(stream, -1, axis=1)
        )
        stream = (around + vorticity) * 0.25
    return stream - stream.mean()


def velocity(stream):
    """The flow along the stream function's lines."""
    t = ti.tensor
    u = (t.roll(stream, -1, axis=1) - t.roll(stream, 1, axis=1)) * 0.5
    v = (t.roll(stream, 1, axis=0) - t.roll(stream, -1, axis=0)) * 0.5
    return u, v


def carried(field, u, v, dt):
    """A field after a step: each cell has what was where its fluid came from, between four cells."""
    t = ti.tensor
    n, m = field.shape
    x = t.iota((n, m), 0, dtype=ti.f32) - u * dt
    y = t.iota((n, m), 1, dtype=ti.f32) - v * dt
    i, j = t.floor(x), t.floor(y)
    fx, fy = x - i, y - j
    i, j = i.astype(ti.i32), j.astype(ti.i32)
    wrapped = field.outside("wrap")
    near = t.gather(wrapped, i, j) * (1 - fy) + t.gather(wrapped, i, j + 1) * fy
    far = t.gather(wrapped, i + 1, j) * (1 - fy) + t.gather(wrapped, i + 1, j + 1) * fy
    return near * (1 - fx) + far * fx


def main(small=False):
    """Runs it: a picture of the dye, and what is conserved."""
    ti.init(arch=ti.cpu)
    t = ti.tensor
    n = 48 if small else 192
    n_steps, n_sweeps = (20, 10) if small else (260, 12)
    y = t.iota((n, n), 1, dtype=ti.f32) / n
    x = t.iota((n, n), 0, dtype=ti.f32) / n
    wave = 0.5 + 0.02 * t.sin(4 * np.pi * x)
    sheet = t.exp(-(((y - wave) * 40) ** 2))
    vorticity = sheet - sheet.mean()
    dye = (y > wave).astype(ti.f32)
    stream = t.zeros((n, n))
    for _ in range(4 if small else 60):
        stream = laplace_of(vorticity, stream, n_sweeps).realize()
    for _ in range(n_steps):
        stream = laplace_of(vorticity, stream, n_sweeps)
        u, v = velocity(stream)
        vorticity, dye = carried(vorticity, u, v, 0.5), carried(dye, u, v, 0.5)
        vorticity = vorticity - vorticity.mean()
        t.realize(stream, vorticity, dye)
    spin = t.clip(vorticity, 0, 1)
    image = t.stack([dye * 0.9, spin * 0.8 + dye * 0.2, 1 - dye * 0.7 - spin * 0.3], axis=-1).numpy()
    numbers = {"vorticity": vorticity.mean().item(), "least dye": dye.min().item(), "most dye": dye.max().item()}
    return np.kron(np.clip(image, 0, 1), np.ones((3, 3, 1))), numbers


if __name__ == "__main__":
    common.run(main)
