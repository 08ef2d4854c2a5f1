"""A block of water falls into a basin, written twice: on the left with tensors, on the right with kernels.

Moving least squares material points (Hu et al., 2018). With tensors steps are one program: particles give to the
grid by `scatter_add`, the grid is moved, and particles take from it by indices; with kernels a step is two loops over
particles and one over the grid.
"""

import common
import numpy as np

import aerogel as ti
from aerogel.tensor import programs as p

DT, STIFFNESS, GRAVITY, WALL = 2e-4, 400.0, 9.8, 3


def weights(x, dx):
    """The node below each particle along an axis, how far it is, and the weights of the three nodes around."""
    base = (x / dx - 0.5).astype(ti.i32)
    fx = x / dx - base.astype(ti.f32)
    return base, fx, [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1.0) ** 2, 0.5 * (fx - 0.5) ** 2]


def tensor_step(cells, volume):
    """A program that does some steps of so many particles as it is given: columns of position, velocity, its gradient,
    and the change of volume."""
    dx = 1.0 / cells

    @p.program
    def steps():
        state = p.input([-1, 9], ti.f32)
        n_steps = p.input([], ti.i32)
        (at,) = p.indices([state.shape[0]])
        columns = [p.const(0.0) for _ in range(9)]
        for k, column in enumerate(columns):
            column.val = state[at, k]
        x, y, u, v, ux, uy, vx, vy, j = columns
        with p.loop(n_steps):
            stress = -DT * 4 * STIFFNESS * volume * (j - 1.0) / dx**2
            bx, fx, wx = weights(x, dx)
            by, fy, wy = weights(y, dx)
            mass, along, up = (p.buffer([cells, cells]) for _ in range(3))
            nodes = [(a, b, wx[a] * wy[b], (a - fx) * dx, (b - fy) * dx) for a in range(3) for b in range(3)]
            for a, b, w, rx, ry in nodes:
                at = (bx + a, by + b)
                p.scatter_add(mass, at, w * volume)
                p.scatter_add(along, at, w * (volume * (u + ux * rx + uy * ry) + stress * rx))
                p.scatter_add(up, at, w * (volume * (v + vx * rx + vy * ry) + stress * ry))
            i, k = p.indices([cells, cells])
            full = mass[i, k] > 0
            whole = ti.tensor.where(full, mass[i, k], 1.0)
            gu, gv = along[i, k] / whole, up[i, k] / whole - DT * GRAVITY
            gu = ti.tensor.where(((i < WALL) & (gu < 0)) | ((i > cells - WALL) & (gu > 0)), 0.0, gu)
            gv = ti.tensor.where(((k < WALL) & (gv < 0)) | ((k > cells - WALL) & (gv > 0)), 0.0, gv)
            parts = [(w, gu[bx + a, by + b], gv[bx + a, by + b], rx, ry) for a, b, w, rx, ry in nodes]
            scale = 4 / dx**2
            u.val = sum(w * gu for w, gu, _, _, _ in parts)
            v.val = sum(w * gv for w, _, gv, _, _ in parts)
            ux.val = sum(scale * w * gu * rx for w, gu, _, rx, _ in parts)
            uy.val = sum(scale * w * gu * ry for w, gu, _, _, ry in parts)
            vx.val = sum(scale * w * gv * rx for w, _, gv, rx, _ in parts)
            vy.val = sum(scale * w * gv * ry for w, _, gv, _, ry in parts)
            x.val = x + DT * u
            y.val = y + DT * v
            j.val = j * (1.0 + DT * (ux + vy))
        return ti.tensor.stack(columns, axis=-1)

    return steps


@ti.data_oriented
class Kernels:
    """The same in kernels."""

    def __init__(self, state, cells, volume):
        n = len(state)
        self.cells, self.dx, self.volume = cells, 1.0 / cells, volume
        self.x, self.v = (ti.Vector.field(2, ti.f32, n) for _ in range(2))
        self.C, self.J = ti.Matrix.field(2, 2, ti.f32, n), ti.field(ti.f32, n)
        self.mass, self.momentum = ti.field(ti.f32, (cells, cells)), ti.Vector.field(2, ti.f32, (cells, cells))
        self.x.from_numpy(state[:, :2])
        self.J.fill(1.0)

    @ti.kernel
    def give(self):
        for q in self.x:
            base = ti.cast(self.x[q] / self.dx - 0.5, ti.i32)
            fx = self.x[q] / self.dx - base
            w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1.0) ** 2, 0.5 * (fx - 0.5) ** 2]
            stress = -DT * 4 * STIFFNESS * self.volume * (self.J[q] - 1.0) / self.dx**2
            affine = self.volume * self.C[q] + stress * ti.Matrix.identity(ti.f32, 2)
            for a, b in ti.static(ti.ndrange(3, 3)):
                r = (ti.Vector([a, b]) - fx) * self.dx
                weight = w[a][0] * w[b][1]
                self.momentum[base + ti.Vector([a, b])] += weight * (self.volume * self.v[q] + affine @ r)
                self.mass[base + ti.Vector([a, b])] += weight * self.volume

    @ti.kernel
    def move(self):
        for i, k in self.mass:
            v = self.momentum[i, k] / ti.select(self.mass[i, k] > 0, self.mass[i, k], 1.0) - DT * ti.Vector(
                [0.0, GRAVITY]
            )
            if i < WALL and v[0] < 0 or i > self.cells - WALL and v[0] > 0:
                v[0] = 0
            if k < WALL and v[1] < 0 or k > self.cells - WALL and v[1] > 0:
                v[1] = 0
            self.momentum[i, k] = v

    @ti.kernel
    def take(self):
        for q in self.x:
            base = ti.cast(self.x[q] / self.dx - 0.5, ti.i32)
            fx = self.x[q] / self.dx - base
            w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1.0) ** 2, 0.5 * (fx - 0.5) ** 2]
            v, C = ti.Vector.zero(ti.f32, 2), ti.Matrix.zero(ti.f32, 2, 2)
            for a, b in ti.static(ti.ndrange(3, 3)):
                r = (ti.Vector([a, b]) - fx) * self.dx
                weight, g = w[a][0] * w[b][1], self.momentum[base + ti.Vector([a, b])]
                v += weight * g
                C += 4 / self.dx**2 * weight * g.outer_product(r)
            self.v[q], self.C[q] = v, C
            self.x[q] += DT * v
            self.J[q] *= 1.0 + DT * C.trace()

    def steps(self, n):
        """So many steps."""
        for _ in range(n):
            self.mass.fill(0)
            self.momentum.fill(0)
            for stage in (self.give, self.move, self.take):
                stage()


def drawn(points, n):
    """Water over dark, by how many particles lie in each square."""
    count, _, _ = np.histogram2d(points[:, 0], points[:, 1], bins=n, range=[[0, 1], [0, 1]])
    return common.palette(np.clip(count * (n * n / len(points)) / 6, 0, 1), "10202c 1f6fb2 3a9bd9 edf2f4")


def main(small=False):
    """Runs both: their pictures side by side, and how far apart they are."""
    ti.init(arch=ti.cpu)
    cells, n, n_steps, pixels = (32, 900, 60, 48) if small else (128, 40000, 2600, 240)
    rng = np.random.default_rng(5)
    state = np.zeros((n, 9), np.float32)
    state[:, 0], state[:, 1], state[:, 8] = 0.15 + 0.4 * rng.random(n), 0.25 + 0.5 * rng.random(n), 1
    volume = float(np.float32(0.2 / n))
    kernels = Kernels(state, cells, volume)
    kernels.steps(n_steps)
    program = tensor_step(cells, volume)
    early = program(ti.tensor.asarray(state), 10).numpy()
    water = program(ti.tensor.asarray(state), n_steps).numpy()
    again = Kernels(state, cells, volume)
    again.steps(10)
    numbers = {
        "apart after 10 steps": float(np.abs(early[:, :2] - again.x.to_numpy()).max()),
        "centres apart": float(np.abs(water[:, :2].mean(0) - kernels.x.to_numpy().mean(0)).max()),
        "lowest": float(water[:, 1].min()),
        "rightmost": float(water[:, 0].max()),
    }
    image = np.concatenate([drawn(water, pixels), drawn(kernels.x.to_numpy(), pixels)], axis=0)
    return np.kron(image, np.ones((2, 2, 1))), numbers


if __name__ == "__main__":
    common.run(main)
