"""A soft animal learns to walk: gradient descent through the material point method finds how its muscles should pull.

The two-dimensional elastic robot of Hu et al., DiffTaichi, ICLR 2020, with its settings: legs of two muscles each,
which periodic signals contract. From top to bottom the animal at four times; and the loss.
"""

import numpy as np
from common import curve, halve, learn, nearby, run, slope_error_of

import aerogel as ti

GROUND, DT, GRAVITY, STIFFNESS, STRENGTH, FRICTION = 3, 1e-3, 3.8, 10.0, 4.0, 0.5
COLORS = np.array([0xC0392B, 0x2E86C1, 0xE59866, 0x7FB3D5, 0xB8AE9C])  # Of the muscles, and of what is none.
MUSCLES, WAVES, OMEGA, IDENTITY = 4, 4, 40.0, ti.Matrix([[1.0, 0.0], [0.0, 1.0]])


def animal(particles):
    """The positions of particles in two legs and the body above them, and the muscle that each belongs to, or -1."""
    points = (np.arange(particles)[:, None] * [0.7548776662466927, 0.5698402909980532] + 0.5) % 1
    whole = particles * 5 // 9
    body = points[:whole] * [0.3, 0.1] + [0, 0.1]
    legs = points[whole:] * [0.2, 0.1]
    legs[:, 0] += (legs[:, 0] >= 0.1) * 0.1
    muscle = (legs[:, 0] >= 0.15) * 2 + (legs[:, 0] % 0.2 >= 0.05)
    return np.concatenate([body, legs]), np.concatenate([np.full(whole, -1), muscle]).astype(np.int32)


@ti.data_oriented
class Animal:
    """Particles and a grid, at one time."""

    def __init__(self, particles, n, steps, goal):
        self.particles, self.n, self.steps, self.goal, self.dx = particles, n, steps, goal, 1 / n
        x, muscle = animal(particles)
        self.volume = 0.05 / particles
        self.start, self.muscle = ti.Vector.field(2, ti.f64, particles), ti.field(ti.i32, particles)
        self.start.from_numpy(x + [0.1, GROUND / n])
        self.muscle.from_numpy(muscle)
        self.x, self.v = (ti.Vector.field(2, ti.f64, particles, needs_grad=True) for _ in range(2))
        self.C, self.F = (ti.Matrix.field(2, 2, ti.f64, particles, needs_grad=True) for _ in range(2))
        self.mass = ti.field(ti.f64, (n, n), needs_grad=True)
        self.momentum, self.velocity = (ti.Vector.field(2, ti.f64, (n, n), needs_grad=True) for _ in range(2))
        self.weights = ti.field(ti.f64, (MUSCLES, WAVES + 1), needs_grad=True)
        self.loss = ti.field(ti.f64, (), needs_grad=True)
        self.weights.from_numpy(np.random.default_rng(2).normal(0, 0.01, (MUSCLES, WAVES + 1)))

    @ti.kernel
    def begin(self):
        for p in self.x:
            self.x[p], self.v[p] = self.start[p], ti.Vector([0.0, 0.0])
            self.C[p], self.F[p] = 0 * IDENTITY, IDENTITY

    @ti.func
    def pull(self, muscle, t):
        signal = self.weights[muscle, WAVES]
        for k in ti.static(range(WAVES)):
            signal += self.weights[muscle, k] * ti.sin(OMEGA * DT * t + 2 * np.pi / WAVES * k)
        return STRENGTH * ti.tanh(signal)

    @ti.kernel
    def scatter(self, t: ti.i32):
        """Mass and momentum, and what stress adds to it, to the nodes around each particle."""
        for p in self.x:
            F = self.F[p]
            turn = ti.Vector([F[0, 0] + F[1, 1], F[1, 0] - F[0, 1]]).normalized()
            R = ti.Matrix([[turn.x, -turn.y], [turn.y, turn.x]])
            stress = (
                2 * STIFFNESS * (F - R) @ F.transpose() + IDENTITY * STIFFNESS * (F.determinant() - 1) * F.determinant()
            )
            if self.muscle[p] >= 0:
                stress += F @ ti.Matrix([[0, 0], [0, self.pull(self.muscle[p], t)]]) @ F.transpose()
            affine = self.C[p] - DT * 4 * self.n**2 * stress
            base, f, w = nearby(self.x[p] * self.n)
            for i, j in ti.static(ti.ndrange(3, 3)):
                node, weight = base + ti.Vector([i, j]), self.volume * w[i].x * w[j].y
                self.mass[node] += weight
                self.momentum[node] += weight * (self.v[p] + affine @ (ti.Vector([i, j]) - f) * self.dx)

    @ti.kernel
    def push(self):
        """Gravity, and the ground, on which nothing slides that is pressed down enough; the other rims hold."""
        for i, j in self.mass:
            if self.mass[i, j] > 0:
                v = self.momentum[i, j] / self.mass[i, j] - ti.Vector([0, DT * GRAVITY])
                if j < GROUND and v.y < 0:
                    v = ti.Vector([v.x * ti.max(1 + FRICTION * v.y / (ti.abs(v.x) + 1e-6), 0), 0])
                if i < GROUND or i > self.n - GROUND:
                    v.x = 0
                self.velocity[i, j] = v

    @ti.kernel
    def gather(self):
        for p in self.x:
            base, f, w = nearby(self.x[p] * self.n)
            v, C = ti.Vector([0.0, 0.0]), 0 * IDENTITY
            for i, j in ti.static(ti.ndrange(3, 3)):
                here = w[i].x * w[j].y * self.velocity[base + ti.Vector([i, j])]
                v += here
                C += 4 * self.n * here.outer_product(ti.Vector([i, j]) - f)
            self.v[p], self.C[p] = v, C
            self.F[p] = (IDENTITY + DT * C) @ self.F[p]
            self.x[p] += DT * v

    @ti.kernel
    def compare(self):
        for _ in range(1):
            way = 0.0
            for p in range(self.particles):
                way += (self.x[p].x - self.start[p].x) / self.particles
            self.loss[None] += (way / self.goal - 1) ** 2  # The part of the way that is left, squared.

    def step(self, t):
        self.mass.fill(0)
        self.momentum.fill(0)
        self.scatter(t)
        self.push()
        self.gather()

    def simulate(self):
        self.begin()
        ti.ad.checkpoint(self.step, steps=self.steps, memory="64MB")
        self.compare()

    def picture(self, width, height):
        """The animal at four times, the first at the top."""
        views = []
        self.begin()
        for t in range(self.steps + 1):
            if t * 3 % self.steps < 3:
                gui = ti.GUI("animal", res=(2 * width, 2 * height), background_color=0xFAF7F0, show_gui=False)
                x = (self.x.to_numpy() - [0, GROUND / self.n]) * [1.25, 1.25 * width / height] + [0, 0.1]
                gui.circles(x, radius=200 / self.particles**0.5, color=COLORS[self.muscle.to_numpy()])
                gui.line((0, 0.09), (1, 0.09), radius=2, color=0x8A8578)
                views.append(halve(gui.get_image()[..., :3]))
            self.step(min(t, self.steps - 1))
        return np.concatenate(views[::-1], axis=1)


def main(small=False, iterations=0):
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    soft = Animal(1024, 48, 240, 0.02) if small else Animal(8192, 128, 1024, 0.25)
    error = slope_error_of(soft.simulate, soft.loss, soft.weights, 1e-5)
    losses = learn(soft.simulate, soft.loss, soft.weights, iterations or (5 if small else 8), 0.2)
    numbers = {"loss at first": losses[0], "loss at last": losses[-1], "error of the slope": error}
    return np.concatenate([soft.picture(400, 120), curve(losses, 240, 480)]), numbers


if __name__ == "__main__":
    run(main)
