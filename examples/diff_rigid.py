"""A table of boxes learns to walk: gradient descent through impacts and friction finds how its springs should pull.

The rigid bodies of Hu et al., DiffTaichi, ICLR 2020: boxes that springs hold together, whose corners hit the ground by
impulses, within a step and not at its end. A small network sets the lengths of the legs' muscles, from periodic
signals and from how the boxes move. Above what it does at first, below what it has learnt; and the loss.
"""

import numpy as np
from common import curve, learn, run, slope_error_of

import aerogel as ti

DT, GRAVITY, GROUND = 1 / 512, 10.0, 0.1
DENSITY, STIFFNESS, DAMPING, DRAG = 25.0, 400.0, 4.0, 0.5
FRICTION, BOUNCE, LIFT, WAVES, OMEGA, PULL = 0.8, 0.1, 20.0, 8, 12.0, 0.3
LEGS, TORSO, LEG, GAP, GOAL = (-0.2, 0.0, 0.2), (0.3, 0.04), (0.03, 0.08), 0.03, 1.0  # Half of widths and heights.


def robot():
    """Middles and half sizes of the boxes; the springs: two boxes, a point of each, and whether it is a muscle."""
    middles = [(0.5, GROUND + 2 * LEG[1] + GAP + TORSO[1])] + [(0.5 + x, GROUND + LEG[1]) for x in LEGS]
    springs = []
    for b, x in enumerate(LEGS, 1):
        for corner in (-LEG[0], LEG[0]):
            springs += [(0, b, x + end, -TORSO[1], corner, LEG[1], 0) for end in (-corner, corner)]
            springs += [(0, b, x + 3 * corner, -TORSO[1], corner, -LEG[1], 1)]
    return np.array(middles), np.array([TORSO] + [LEG] * len(LEGS)), np.array(springs)


@ti.func
def turned(angle, r):
    c, s = ti.cos(angle), ti.sin(angle)
    return ti.Vector([c * r.x - s * r.y, s * r.x + c * r.y])


@ti.data_oriented
class Walker:
    """Places (x, y, angle) of the boxes at all times, and velocities."""

    def __init__(self, steps):
        middles, halves, springs = robot()
        self.steps, self.n, self.m = steps, len(middles), len(springs)
        self.x, self.v = (ti.Vector.field(3, float, (steps + 1, self.n), needs_grad=True) for _ in range(2))
        self.force = ti.Vector.field(3, float, (steps, self.n), needs_grad=True)
        self.weights = ti.field(float, (self.m, WAVES + 3 * self.n), needs_grad=True)
        self.loss = ti.field(float, (), needs_grad=True)
        self.start, self.half = ti.Vector.field(2, float, self.n), ti.Vector.field(2, float, self.n)
        self.inverse = ti.Vector.field(3, float, self.n)  # One over the mass, twice, and over the inertia.
        self.springs, self.rest = ti.Vector.field(7, float, self.m), ti.field(float, self.m)
        mass = 4 * DENSITY * halves.prod(1)
        at = middles[springs[:, :2].astype(int)] + springs[:, 2:6].reshape(-1, 2, 2)
        self.start.from_numpy(middles)
        self.half.from_numpy(halves)
        self.inverse.from_numpy(1 / np.stack([mass, mass, mass * (halves**2).sum(1) / 3], 1))
        self.springs.from_numpy(springs)
        self.rest.from_numpy(np.linalg.norm(at[:, 0] - at[:, 1], axis=1))
        self.weights.from_numpy(np.random.default_rng(1).normal(0, 0.05, self.weights.shape))

    @ti.kernel
    def begin(self):
        for b in self.start:
            self.x[0, b], self.v[0, b] = ti.Vector([self.start[b].x, self.start[b].y, 0.0]), ti.Vector([0.0, 0.0, 0.0])
        for t, b in self.force:
            self.force[t, b] = ti.Vector([0.0, -GRAVITY / self.inverse[b].x, 0.0])

    @ti.func
    def think(self, s, t):
        signal = 0.0
        for k in range(WAVES):
            signal += self.weights[s, k] * ti.sin(OMEGA * DT * t + 2 * np.pi / WAVES * k)
        for b in range(self.n):
            felt = ti.Vector([self.x[t, b].z, self.v[t, b].x, self.v[t, b].y])
            for k in ti.static(range(3)):
                signal += self.weights[s, WAVES + 3 * b + k] * felt[k]
        return ti.tanh(signal)

    @ti.kernel
    def pull(self, t: int):
        for s in self.rest:
            spring = self.springs[s]
            a, b = int(spring[0]), int(spring[1])
            xa, xb, va, vb = self.x[t, a], self.x[t, b], self.v[t, a], self.v[t, b]
            ra, rb = turned(xa.z, spring[2:4]), turned(xb.z, spring[4:6])
            way = xa.xy + ra - xb.xy - rb
            speed = va.xy - vb.xy + va.z * ti.Vector([-ra.y, ra.x]) - vb.z * ti.Vector([-rb.y, rb.x])
            length = way.norm()
            wanted = self.rest[s] * (1 + PULL * spring[6] * self.think(s, t))
            f = (STIFFNESS * (wanted - length) - DAMPING * speed.dot(way) / length) / length * way
            self.force[t, a] += ti.Vector([f.x, f.y, ra.cross(f)])
            self.force[t, b] -= ti.Vector([f.x, f.y, rb.cross(f)])

    @ti.kernel
    def move(self, t: int):
        """Corners hit the ground one after the other; what an impulse changes begins at the time of its impact."""
        for b in self.start:
            x, inverse = self.x[t, b], self.inverse[b]
            v = (1 - DRAG * DT) * self.v[t, b] + DT * inverse * self.force[t, b]
            late = ti.Vector([0.0, 0.0, 0.0])
            for corner in ti.static(((-1, -1), (1, -1), (-1, 1), (1, 1))):
                r = turned(x.z, self.half[b] * ti.Vector(corner))
                height, u = x.y + r.y - GROUND, v.xy + v.z * ti.Vector([-r.y, r.x])
                if u.y < 0 and height + DT * u.y < 0:
                    up = (LIFT * ti.max(-height, 0) - (1 + BOUNCE) * u.y) / (inverse.y + inverse.z * r.x**2)
                    along = ti.math.clamp(-u.x / (inverse.x + inverse.z * r.y**2), -FRICTION * up, FRICTION * up)
                    change = inverse * ti.Vector([along, up, r.x * up - r.y * along])
                    v += change
                    late += ti.max(height / -u.y, 0) * change
            self.v[t + 1, b], self.x[t + 1, b] = v, x + DT * v - late

    @ti.kernel
    def compare(self):
        for _ in range(1):
            self.loss[None] += (self.x[self.steps, 0].x - self.start[0].x - GOAL) ** 2

    def simulate(self):
        self.begin()
        for t in range(self.steps):
            self.pull(t)
            self.move(t)
        self.compare()

    def picture(self, width, height):
        """The robot at some times, the later the darker."""
        size = np.array([2.2, 2.2 * height / width])
        gui = ti.GUI("walker", res=(2 * width, 2 * height), background_color=0xFAF7F0, show_gui=False)
        gui.line(np.array([0, GROUND]) / size, (1, GROUND / size[1]), radius=3, color=0x8A8578)
        for part, color in zip((0, 1 / 3, 2 / 3, 1), (0xD9C9B4, 0xC3A98A, 0x7F9DB3, 0x1F4E79)):
            for (px, py, angle), (w, h) in zip(self.x.to_numpy()[round(part * self.steps)], self.half.to_numpy()):
                turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
                corners = (np.array([(-w, -h), (w, -h), (w, h), (-w, h)]) @ turn + [px, py]) / size
                gui.triangles(corners[[0, 0]], corners[1:3], corners[2:], color=color)
        return gui.get_image()[::2, ::2, :3]


def main(small=False, iterations=0):
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    walker = Walker(512 if small else 2048)
    walker.simulate()
    before = walker.picture(480, 240)
    error = slope_error_of(walker.simulate, walker.loss, walker.weights, 1e-7)
    losses = learn(walker.simulate, walker.loss, walker.weights, iterations or (15 if small else 100), 0.01)
    numbers = {"loss at first": losses[0], "loss at last": losses[-1], "error of the slope": error}
    return np.concatenate(
        [np.concatenate([walker.picture(480, 240), before], axis=1), curve(losses, 240, 480)]
    ), numbers


if __name__ == "__main__":
    run(main)
