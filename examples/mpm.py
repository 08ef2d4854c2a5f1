"""Water, jelly and snow fall into a box: the moving least squares material point method in two dimensions.

    python examples/mpm.py --frames 66 --out out/mpm.png

The method: Hu et al., A Moving Least Squares Material Point Method with Displacement Discontinuity and Two-Way Rigid
Body Coupling, ACM Transactions on Graphics 37(4), 2018.
"""

import argparse
import os
import time

import numpy as np

import aerogel as ti

ti.init(arch=ti.cpu, random_seed=1)

GRID, PARTICLES = 192, 30_000
DX, DT = 1.0 / GRID, 6e-5
VOLUME = (0.5 * DX) ** 2
MASS = VOLUME * 1.0
YOUNG, POISSON = 1500.0, 0.2
MU, LAMBDA = YOUNG / (2 * (1 + POISSON)), YOUNG * POISSON / ((1 + POISSON) * (1 - 2 * POISSON))
WATER, JELLY, SNOW = 0, 1, 2
COLORS = np.array([0x3A9BD9, 0xF2A541, 0xEDF2F4])

position = ti.Vector.field(2, float, PARTICLES)
velocity = ti.Vector.field(2, float, PARTICLES)
affine = ti.Matrix.field(2, 2, float, PARTICLES)
deformation = ti.Matrix.field(2, 2, float, PARTICLES)
plastic = ti.field(float, PARTICLES)
material = ti.field(int, PARTICLES)
grid_velocity = ti.Vector.field(2, float, (GRID, GRID))
grid_mass = ti.field(float, (GRID, GRID))


@ti.func
def weights(fx):
    """Quadratic B-spline weights of the three nearest nodes along each axis."""
    return [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1) ** 2, 0.5 * (fx - 0.5) ** 2]


@ti.func
def stress(p):
    """Updates the deformation of a particle, and gives its Cauchy stress times its volume."""
    F = (ti.Matrix.identity(float, 2) + DT * affine[p]) @ deformation[p]
    hardening = ti.max(0.1, ti.min(5.0, ti.exp(10 * (1.0 - plastic[p]))))
    mu, la = MU * hardening, LAMBDA * hardening
    if material[p] == JELLY:
        mu, la = 0.3 * MU, 0.3 * LAMBDA
    elif material[p] == WATER:
        mu, la = 0.0, LAMBDA
    U, sigma, V = ti.svd(F)
    J = 1.0
    for d in ti.static(range(2)):
        s = sigma[d, d]
        if material[p] == SNOW:
            s = ti.min(ti.max(s, 1 - 2.5e-2), 1 + 4.5e-3)
            plastic[p] *= sigma[d, d] / s
        sigma[d, d] = s
        J *= s
    if material[p] == WATER:
        F = ti.Matrix.identity(float, 2) * ti.sqrt(J)
    elif material[p] == SNOW:
        F = U @ sigma @ V.transpose()
    deformation[p] = F
    return 2 * mu * (F - U @ V.transpose()) @ F.transpose() + ti.Matrix.identity(float, 2) * la * J * (J - 1)


@ti.kernel
def step():
    for i, j in grid_mass:
        grid_velocity[i, j] = [0, 0]
        grid_mass[i, j] = 0
    for p in position:
        x = position[p] * GRID
        base = int(x - 0.5)
        fx = x - base
        w = weights(fx)
        momentum = -DT * VOLUME * 4 * GRID * GRID * stress(p) + MASS * affine[p]
        for offset in ti.static(ti.grouped(ti.ndrange(3, 3))):
            weight = w[offset[0]].x * w[offset[1]].y
            away = (offset - fx) * DX
            grid_velocity[base + offset] += weight * (MASS * velocity[p] + momentum @ away)
            grid_mass[base + offset] += weight * MASS
    for i, j in grid_mass:
        if grid_mass[i, j] > 0:
            v = grid_velocity[i, j] / grid_mass[i, j]
            v.y -= DT * 40
            if (i < 3 and v.x < 0) or (i > GRID - 3 and v.x > 0):
                v.x = 0
            if (j < 3 and v.y < 0) or (j > GRID - 3 and v.y > 0):
                v.y = 0
            grid_velocity[i, j] = v
    for p in position:
        x = position[p] * GRID
        base = int(x - 0.5)
        fx = x - base
        w = weights(fx)
        v, C = ti.Vector.zero(float, 2), ti.Matrix.zero(float, 2, 2)
        for offset in ti.static(ti.grouped(ti.ndrange(3, 3))):
            weight = w[offset[0]].x * w[offset[1]].y
            g = grid_velocity[base + offset]
            v += weight * g
            C += 4 * GRID * weight * g.outer_product(offset - fx)
        velocity[p], affine[p] = v, C
        position[p] += DT * v


@ti.kernel
def drop():
    """Three blocks, one of each material."""
    for p in position:
        kind = p * 3 // PARTICLES
        material[p] = kind
        corner = ti.Vector([0.06 + 0.3 * kind, 0.12 + 0.22 * kind])
        position[p] = corner + ti.Vector([ti.random(), ti.random()]) * 0.24
        velocity[p] = [1.5 - 1.5 * kind, -2.0]
        deformation[p] = ti.Matrix.identity(float, 2)
        plastic[p] = 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=66)
    parser.add_argument("--small", action="store_true", help="two frames")
    parser.add_argument("--out", default="out/mpm.png")
    args = parser.parse_args()
    frames = 2 if args.small else args.frames

    drop()
    gui = ti.GUI("water, jelly, snow", res=768, background_color=0x10202C)
    begin = time.perf_counter()
    for _ in range(frames):
        for _ in range(40):
            step()
    seconds = time.perf_counter() - begin
    gui.circles(position.to_numpy(), radius=1.6, color=COLORS[material.to_numpy()])
    os.makedirs(os.path.dirname(args.out) or ".", exist_ok=True)
    gui.show(args.out)
    print(f"{frames * 40} steps of {PARTICLES} particles in {seconds:.1f} s")
    print(f"the picture is {os.path.abspath(args.out)}")


if __name__ == "__main__":
    main()
