"""Two shear layers that roll up: the lattice Boltzmann method (D2Q9) on as many processes as run it.

python -m aerogel mpi -n 4 examples/mpi/lattice_boltzmann.py --out vorticity.png
"""

import argparse
import math

import aerogel as ti

# The velocities, and the weights of their populations at rest.
VELOCITIES = ((0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1))
WEIGHTS = (4 / 9,) + (1 / 9,) * 4 + (1 / 36,) * 4


def run(shape: tuple[int, int], steps: int, speed: float = 0.05, rate: float = 1.9):
    """The velocities after so many steps, on every process."""
    nx, ny = shape
    grid = ti.mpi.grid(shape, periodic=True)
    old, new = ti.Vector.field(9, ti.f32, shape=grid), ti.Vector.field(9, ti.f32, shape=grid)
    flow = ti.Vector.field(2, ti.f32, shape=grid)

    @ti.func
    def at_rest(density, u, q: ti.template()):
        along = ti.static(VELOCITIES[q][0]) * u[0] + ti.static(VELOCITIES[q][1]) * u[1]
        return ti.static(WEIGHTS[q]) * density * (1 + 3 * along + 4.5 * along * along - 1.5 * u.dot(u))

    @ti.kernel
    def begin():
        for i, j in old:
            y = (j + 0.5) / ny
            u = ti.Vector([speed * ti.tanh(40 * (0.25 - abs(y - 0.5))), 0.05 * speed * ti.sin(2 * math.pi * i / nx)])
            for q in ti.static(range(9)):
                old[i, j][q] = at_rest(1.0, u, q)

    @ti.kernel
    def step(a: ti.template(), b: ti.template()):
        for i, j in b:
            arrived = ti.Vector([0.0] * 9)
            for q in ti.static(range(9)):
                arrived[q] = a[(i - VELOCITIES[q][0]) % nx, (j - VELOCITIES[q][1]) % ny][q]
            density = arrived.sum()
            u = ti.Vector([0.0, 0.0])
            for q in ti.static(range(9)):
                u += arrived[q] * ti.Vector(VELOCITIES[q])
            u /= density
            flow[i, j] = u
            for q in ti.static(range(9)):
                b[i, j][q] = (1 - rate) * arrived[q] + rate * at_rest(density, u, q)

    begin()
    for _ in range(steps):
        step(old, new)
        old, new = new, old
    return flow.to_numpy()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--out")
    args = parser.parse_args()
    ti.init(arch=ti.cpu)
    flow = run((args.size, args.size), args.steps)
    print(f"{ti.mpi.size()} ranks: the largest speed is {abs(flow).max():.4f}")
    if args.out and ti.mpi.rank() == 0:
        import numpy as np

        curl = np.gradient(flow[..., 1], axis=0) - np.gradient(flow[..., 0], axis=1)
        ti.tools.imwrite((0.5 + curl / (2 * abs(curl).max())).astype(np.float32), args.out)


if __name__ == "__main__":
    main()
