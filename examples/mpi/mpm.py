"""A block of jelly and water fall into a tank: the material point method, with particles that move between processes.

python -m aerogel mpi -n 4 examples/mpi/mpm.py

Grids hold sums in fixed point, whose order does not matter: the same bits on every number of ranks.
"""

import argparse

import numpy as np

import aerogel as ti

# Sums are integers of this unit.
UNIT = 2.0**-32


def run(n: int, n_particles: int, steps: int, speed: float = 3.0):
    """The positions after so many steps, and how often a particle went to another process."""
    dx, dt = 1 / n, 0.1 / (n * 16)
    volume = (dx * 0.5) ** 2
    every = 8
    # Particles read and add to cells up to two away, and move by less than one between migrations.
    grid = ti.mpi.grid((n, n), halo=3)
    moved = ti.Vector.field(3, ti.i64, shape=grid)
    velocity = ti.Vector.field(2, ti.f32, shape=grid)
    random = np.random.default_rng(1)
    start = random.random((n_particles, 2)) * [0.3, 0.5] + [0.15, 0.3]
    particles = ti.mpi.Particles(
        grid, n_particles, spacing=dx, x=ti.math.vec2, v=ti.math.vec2, C=ti.types.matrix(2, 2, ti.f32), J=ti.f32
    )
    particles.add(x=start, v=np.full((n_particles, 2), [speed, -1.0]), J=np.ones(n_particles))
    x, v, C, J, alive = particles.x, particles.v, particles.C, particles.J, particles.alive

    @ti.func
    def weights(p):
        """The lowest of the cells around a particle, and the weights of three along each axis."""
        at = x[p] * n
        base = ti.floor(at - 0.5, ti.i32)
        fx = at - base
        return base, [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1) ** 2, 0.5 * (fx - 0.5) ** 2]

    @ti.kernel
    def to_grid():
        for i, j in moved:
            moved[i, j] = [0, 0, 0]
        for p in x:
            if alive[p]:
                base, w = weights(p)
                stress = -dt * 4 * 400.0 * volume * (J[p] - 1) * n * n
                affine = ti.Matrix([[stress, 0], [0, stress]]) + volume * C[p]
                for i, j in ti.static(ti.ndrange(3, 3)):
                    weight = w[i].x * w[j].y
                    apart = (ti.Vector([i, j]) + base) * dx - x[p]
                    momentum = weight * (volume * v[p] + affine @ apart) / volume
                    moved[base + ti.Vector([i, j])] += ti.cast(
                        ti.Vector([momentum.x, momentum.y, weight]) * (1 / UNIT), ti.i64
                    )

    @ti.kernel
    def on_grid():
        for i, j in moved:
            mass = moved[i, j][2]
            if mass > 0:
                u = ti.Vector([moved[i, j][0] / mass, moved[i, j][1] / mass])
                u.y -= dt * 9.8
                if (i < 3 and u.x < 0) or (i > n - 3 and u.x > 0):
                    u.x = 0
                if (j < 3 and u.y < 0) or (j > n - 3 and u.y > 0):
                    u.y = 0
                velocity[i, j] = u

    @ti.kernel
    def to_particles():
        for p in x:
            if alive[p]:
                base, w = weights(p)
                new_v, new_C = ti.Vector([0.0, 0.0]), ti.Matrix([[0.0, 0.0], [0.0, 0.0]])
                for i, j in ti.static(ti.ndrange(3, 3)):
                    weight = w[i].x * w[j].y
                    apart = (ti.Vector([i, j]) + base) * dx - x[p]
                    there = velocity[base + ti.Vector([i, j])]
                    new_v += weight * there
                    new_C += 4 * weight * there.outer_product(apart) * n * n
                v[p], C[p] = new_v, new_C
                x[p] += dt * new_v
                J[p] *= 1 + dt * new_C.trace()

    n_moves = 0
    for step in range(steps):
        to_grid()
        on_grid()
        to_particles()
        if step % every == every - 1:
            n_moves += particles.migrate()
    return particles.to_numpy("x"), n_moves


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--particles", type=int, default=8192)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--out")
    args = parser.parse_args()
    ti.init(arch=ti.cpu, deterministic=True)
    x, n_moves = run(args.size, args.particles, args.steps)
    print(
        f"{ti.mpi.size()} ranks: {len(x)} particles, {n_moves} moves between ranks, the highest at {x[:, 1].max():.6f}"
    )
    if args.out and ti.mpi.rank() == 0:
        np.save(args.out, x)


if __name__ == "__main__":
    main()
