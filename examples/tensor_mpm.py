"""A block of water falls into a basin, written twice: on the left with tensors, on the right with kernels.

Moving least squares material points (Hu et al., 2018). With tensors all steps are one program, in which particles give
by `scatter_add` and take by indices; with kernels a step is two loops over particles and one over the grid.
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
    """Some steps of so many particles as are given: columns of position, velocity, its gradient, and volume."""
    dx = 1.0 / cells

    @p.program
    def steps():
        state = p.input([-1, 9], ti.f32)
        n_steps = p.input([], ti.i32)
        (at,) = p.indices([state.shape[0]])
        x, y, u, v, ux, uy, vx, vy, j = columns = [p.const(0.0) for _ in range(9)]
        for k, column in enumerate(columns):
            column.val = state[at, k]
        with p.loop(n_steps):
            stress = -DT * 4 * STIFFNESS * volume * (j - 1.0) / dx**2
            bx, fx, wx = weights(x, dx)
            by, fy, wy = weights(y, dx)
            mass, along, up = (p.buffer([cells, cells]) for _ in range(3))
            nodes = [(a, b, wx[a] * wy[b], (a - fx) * dx, (b - fy) * dx) for a in range(3) for b in range(3)]
            for a, b, w, rx, ry in nodes:
                p.scatter_add(mass, (bx + a, by + b), w * volume)
                for to, g, gx, gy, r in ((along, u, ux, uy, rx), (up, v, vx, vy, ry)):
                    p.scatter_add(to, (bx + a, by + b), w * (volume * (g + gx * rx + gy * ry) + stress * r))
            i, k = p.indices([cells, cells])
            whole = ti.tensor.where(mass[i, k] > 0, mass[i, k], 1.0)
            gu, gv = along[i, k] / whole, up[i, k] / whole - DT * GRAVITY
            gu = ti.tensor.where(((i < WALL) & (gu < 0)) | ((i > cells - WALL) & (gu > 0)), 0.0, gu)
            gv = ti.tensor.where(((k < WALL) & (gv < 0)) | ((k > cells - WALL) & (gv > 0)), 0.0, gv)
            parts = [(w, gu[bx + a, by + b], gv[bx + a, by + b], rx, ry) for a, b, w, rx, ry in nodes]
            for to, g in ((u, 1), (v, 2)):
                to.val = sum(part[0] * part[g] for part in parts)
            for to, g, r in ((ux, 1, 3), (uy, 1, 4), (vx, 2, 3), (vy, 2, 4)):
                to.val = sum(4 / dx**2 * part[0] * part[g] * part[r] for part in parts)
            x.val = x + DT * u
            y.val = y + DT * v
            j.val = j * (1.0 + DT * (ux + vy))
        return ti.tensor.stack(columns, axis=-1)

    return steps


def kernel_steps(state, cells, volume):
    """The same in kernels: what does some steps more, and gives the positions."""
    n, dx = len(state), 1.0 / cells
    x, v = (ti.Vector.field(2, ti.f32, n) for _ in range(2))
    C, J = ti.Matrix.field(2, 2, ti.f32, n), ti.field(ti.f32, n)
    mass, momentum = ti.field(ti.f32, (cells, cells)), ti.Vector.field(2, ti.f32, (cells, cells))
    x.from_numpy(state[:, :2])
    J.fill(1.0)

    @ti.func
    def around(q):
        base = ti.cast(x[q] / dx - 0.5, ti.i32)
        fx = x[q] / dx - base
        return base, fx, ti.Matrix.cols([0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1.0) ** 2, 0.5 * (fx - 0.5) ** 2])

    @ti.kernel
    def give():
        for q in x:
            base, fx, w = around(q)
            stress = -DT * 4 * STIFFNESS * volume * (J[q] - 1.0) / dx**2
            affine = volume * C[q] + stress * ti.Matrix.identity(ti.f32, 2)
            for a, b in ti.static(ti.ndrange(3, 3)):
                at, weight = base + ti.Vector([a, b]), w[0, a] * w[1, b]
                momentum[at] += weight * (volume * v[q] + affine @ ((ti.Vector([a, b]) - fx) * dx))
                mass[at] += weight * volume

    @ti.kernel
    def move():
        for at in ti.grouped(mass):
            g = momentum[at] / ti.select(mass[at] > 0, mass[at], 1.0) - DT * ti.Vector([0.0, GRAVITY])
            for c in ti.static(range(2)):
                if at[c] < WALL and g[c] < 0 or at[c] > cells - WALL and g[c] > 0:
                    g[c] = 0
            momentum[at] = g

    @ti.kernel
    def take():
        for q in x:
            base, fx, w = around(q)
            v[q], C[q] = ti.Vector.zero(ti.f32, 2), ti.Matrix.zero(ti.f32, 2, 2)
            for a, b in ti.static(ti.ndrange(3, 3)):
                g = w[0, a] * w[1, b] * momentum[base + ti.Vector([a, b])]
                v[q] += g
                C[q] += 4 / dx**2 * g.outer_product((ti.Vector([a, b]) - fx) * dx)
            x[q] += DT * v[q]
            J[q] *= 1.0 + DT * C[q].trace()

    def steps(n):
        for _ in range(n):
            mass.fill(0)
            momentum.fill(0)
            for stage in (give, move, take):
                stage()
        return x.to_numpy()

    return steps


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
    kernels, program = kernel_steps(state, cells, volume), tensor_step(cells, volume)
    early, other_early = program(ti.tensor.asarray(state), 10).numpy(), kernels(10)
    water, other = program(ti.tensor.asarray(state), n_steps).numpy(), kernels(n_steps - 10)
    numbers = {
        "apart after 10 steps": float(np.abs(early[:, :2] - other_early).max()),
        "centres apart": float(np.abs(water[:, :2].mean(0) - other.mean(0)).max()),
        "lowest": float(water[:, 1].min()),
        "rightmost": float(water[:, 0].max()),
    }
    return np.repeat(np.repeat(np.concatenate([drawn(w, pixels) for w in (water, other)]), 2, 0), 2, 1), numbers


if __name__ == "__main__":
    common.run(main)
