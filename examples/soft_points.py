"""Code that the differentiable soft bodies in 3D share: particles, muscles, a grid, and the network that is trained.

The material point method as in `diff_mpm.py`, for neo-Hookean bodies.
"""

from typing import Any

import numpy as np
from common import curve, halve, learn, nearby, rotation, slope_error_of

import aerogel as ti

WALL, DT, GRAVITY, SHEAR, BULK, FRICTION = 3, 2e-3, 3.8, 8.0, 8.0, 0.5
MUSCLES, WAVES, OMEGA = 8, 4, 30.0
IDENTITY, ZERO = ti.Matrix(np.eye(3).tolist()), ti.Vector([0.0, 0.0, 0.0])
COLORS = np.array([0xC0392B, 0x2E86C1, 0xE59866, 0x7FB3D5] * 2 + [0xCFE3EE, 0xB8AE9C])  # Of muscles, liquid, the rest.


def points(count, low, high):
    """Points that fill a box evenly: Roberts' sequence."""
    return low + (np.arange(count)[:, None] * 1.22074408 ** -np.arange(1.0, 4) + 0.5) % 1 * np.subtract(high, low)


@ti.data_oriented
class SoftPoints:
    """Particles and a grid, at one time. A particle belongs to a muscle, or has -1; that of a liquid has -2.

    What they are made of says a subclass: its function `stress(p, t)` gives the Kirchhoff stress of a particle.
    """

    stress: Any

    def __init__(self, x, muscle, volume, n, steps, goal, room=((0, 0, 0), (1, 1, 1))):
        self.particles, self.soft, self.volume = len(x), int((muscle >= -1).sum()), volume
        self.n, self.steps, self.goal = n, steps, goal
        low, high = (np.array(room) * n).astype(int).tolist()
        self.walls = [(axis, max(low[axis] + 1, WALL), min(high[axis], n - WALL)) for axis in (0, 2)]
        self.start, self.muscle = ti.Vector.field(3, float, len(x)), ti.field(int, len(x))
        self.start.from_numpy(x + [0.0, WALL / n, 0.0])
        self.muscle.from_numpy(muscle.astype(np.int32))
        self.x, self.v = (ti.Vector.field(3, float, len(x), needs_grad=True) for _ in range(2))
        self.C, self.F = (ti.Matrix.field(3, 3, float, len(x), needs_grad=True) for _ in range(2))
        self.mass = ti.field(float, (n, n, n), needs_grad=True)
        self.momentum, self.velocity = (ti.Vector.field(3, float, (n, n, n), needs_grad=True) for _ in range(2))
        self.weights = ti.field(float, (MUSCLES, WAVES + 1), needs_grad=True)
        self.loss = ti.field(float, (), needs_grad=True)
        self.weights.from_numpy(np.random.default_rng(2).normal(0, 0.01, (MUSCLES, WAVES + 1)))

    @ti.kernel
    def begin(self):
        for p in self.x:
            self.x[p], self.v[p], self.C[p], self.F[p] = self.start[p], ZERO, 0 * IDENTITY, IDENTITY

    @ti.func
    def elastic(self, p, t, axis, strength):
        """The stress of a neo-Hookean body, and what its muscles add, which pull along an axis."""
        F, muscle = self.F[p], self.muscle[p]
        stress = SHEAR * (F @ F.transpose() - IDENTITY) + IDENTITY * BULK * ti.log(F.determinant())
        if muscle >= 0:
            signal = self.weights[muscle, WAVES]
            for k in ti.static(range(WAVES)):
                signal += self.weights[muscle, k] * ti.sin(OMEGA * DT * t + 2 * np.pi / WAVES * k)
            along = ti.Vector([F[row, axis] for row in range(3)])
            stress += strength * ti.tanh(signal) * along.outer_product(along)
        return stress

    @ti.kernel
    def scatter(self, t: int):
        """Mass and momentum, and what stress adds to it, to the nodes around each particle."""
        for p in self.x:
            affine = self.C[p] - DT * 4 * self.n**2 * self.stress(p, t)
            base, f, w = nearby(self.x[p] * self.n)
            for i, j, k in ti.static(ti.ndrange(3, 3, 3)):
                node, weight = base + ti.Vector([i, j, k]), self.volume * w[i].x * w[j].y * w[k].z
                self.mass[node] += weight
                self.momentum[node] += weight * (self.v[p] + affine @ (ti.Vector([i, j, k]) - f) / self.n)

    @ti.kernel
    def push(self):
        """Gravity, and the ground, on which nothing slides that is pressed down enough; the walls hold."""
        for node in ti.grouped(self.mass):
            if self.mass[node] > 0:
                v = self.momentum[node] / self.mass[node] - ti.Vector([0, DT * GRAVITY, 0])
                if node.y < WALL and v.y < 0:
                    slow = ti.max(1 + FRICTION * v.y / (ti.sqrt(v.x**2 + v.z**2) + 1e-6), 0)
                    v = ti.Vector([slow * v.x, 0, slow * v.z])
                for axis, low, high in ti.static(self.walls):
                    if (node[axis] < low and v[axis] < 0) or (node[axis] > high and v[axis] > 0):
                        v[axis] = 0
                self.velocity[node] = v

    @ti.kernel
    def gather(self):
        for p in self.x:
            base, f, w = nearby(self.x[p] * self.n)
            v, C = ZERO, 0 * IDENTITY
            for i, j, k in ti.static(ti.ndrange(3, 3, 3)):
                here = w[i].x * w[j].y * w[k].z * self.velocity[base + ti.Vector([i, j, k])]
                v += here
                C += 4 * self.n * here.outer_product(ti.Vector([i, j, k]) - f)
            self.v[p], self.C[p], self.F[p] = v, C, (IDENTITY + DT * C) @ self.F[p]
            self.x[p] += DT * v

    @ti.kernel
    def compare(self):
        for _ in range(1):
            way = 0.0
            for p in range(self.soft):
                way += (self.x[p].x - self.start[p].x) / self.soft
            self.loss[None] += (way / self.goal - 1) ** 2

    def step(self, t):
        self.mass.fill(0)
        self.momentum.fill(0)
        self.scatter(t)
        self.push()
        self.gather()

    def simulate(self):
        self.begin()
        ti.ad.checkpoint(self.step, steps=self.steps, memory="512MB", state=[self.x, self.v, self.C, self.F])
        self.compare()

    def picture(self, width, height):
        """Three times, the first at the top."""
        views, turn, muscle = [], rotation(0, 0.35) @ rotation(1, 0.45), self.muscle.to_numpy()
        self.begin()
        for t in range(self.steps + 1):
            if t * 2 % self.steps < 2:
                gui = ti.GUI("soft", res=(2 * width, 2 * height), background_color=0xFAF7F0, show_gui=False)
                x = (self.x.to_numpy() - [0.4, WALL / self.n, 0.5]) @ turn.T * [1.2, 1.2 * width / height, 1]
                order = np.lexsort((x[:, 2], muscle >= -1))  # Liquid behind, then from afar to near.
                gui.circles(x[order, :2] + [0.5, 0.3], radius=700 / self.particles**0.5, color=COLORS[muscle[order]])
                views.append(halve(gui.get_image()[..., :3]))
            self.step(min(t, self.steps - 1))
        return np.concatenate(views[::-1], axis=1)

    def learnt(self, iterations, rate):
        """The picture of what a soft body learns, and numbers about it."""
        error = slope_error_of(self.simulate, self.loss, self.weights, 1e-6)
        losses = learn(self.simulate, self.loss, self.weights, iterations, rate)
        numbers = {"loss at first": losses[0], "loss at last": losses[-1], "error of the slope": error}
        return np.concatenate([self.picture(400, 160), curve(losses, 240, 480)]), numbers
