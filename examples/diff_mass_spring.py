"""A table of springs learns to walk: gradient descent through all steps finds when each spring should pull.

The robot of masses and springs of Hu et al., DiffTaichi, ICLR 2020: springs whose lengths a
small network sets, from periodic signals and from what the robot feels. The ground is a stiff and smooth one, so that
the loss has a slope everywhere. Above what it does at first, below what it has learnt; and the loss.
"""

import numpy as np
from common import curve, learn, run, slope_error_of

import aerogel as ti

CELLS = [(0, 0), (2, 0), (0, 1), (1, 1), (2, 1)]  # Two legs, and a body over them.
SIDE, GROUND, DT = 0.1, 0.1, 0.004
STIFFNESS, DAMPING, PULL, DRAG = 8000.0, 40.0, 0.12, 8.0
GRAVITY, HARDNESS, FRICTION, CREEP = 4.8, 1e4, 1.0, 0.1
WAVES, OMEGA = 10, 10.0
GOAL = 1.0


def robot():
    """The positions of the masses, and the springs: the sides and diagonals of all cells."""
    corners = sorted({(i + a, j + b) for i, j in CELLS for a in (0, 1) for b in (0, 1)})
    springs = set()
    for i, j in CELLS:
        cell = [corners.index((i + a, j + b)) for a in (0, 1) for b in (0, 1)]
        springs |= {tuple(sorted((a, b))) for a in cell for b in cell if a != b}
    return np.array(corners) * SIDE + [0.1, GROUND], np.array(sorted(springs))


@ti.data_oriented
class Walker:
    """Positions and velocities at all times."""

    def __init__(self, steps):
        masses, springs = robot()
        self.steps, self.n, self.m = steps, len(masses), len(springs)
        self.inputs, self.goal = WAVES + 4 * self.n, masses[:, 0].mean() + GOAL
        self.x = ti.Vector.field(2, ti.f64, (steps + 1, self.n), needs_grad=True)
        self.v = ti.Vector.field(2, ti.f64, (steps + 1, self.n), needs_grad=True)
        self.force = ti.Vector.field(2, ti.f64, (steps, self.n), needs_grad=True)
        self.feels = ti.field(ti.f64, (steps, self.inputs), needs_grad=True)
        self.weights = ti.field(ti.f64, (self.m, self.inputs), needs_grad=True)
        self.loss = ti.field(ti.f64, (), needs_grad=True)
        self.ends, self.rest = ti.Vector.field(2, ti.i32, self.m), ti.field(ti.f64, self.m)
        self.start = ti.Vector.field(2, ti.f64, self.n)
        self.ends.from_numpy(springs.astype(np.int32))
        self.rest.from_numpy(np.linalg.norm(masses[springs[:, 0]] - masses[springs[:, 1]], axis=1))
        self.start.from_numpy(masses)
        self.weights.from_numpy(np.random.default_rng(1).normal(0, 0.02, (self.m, self.inputs)))

    @ti.kernel
    def begin(self):
        for i in self.start:
            self.x[0, i] = self.start[i]
            self.v[0, i] = ti.Vector([0.0, 0.0])
        for t, i in self.force:
            self.force[t, i] = ti.Vector([0.0, -GRAVITY])

    @ti.kernel
    def feel(self, t: ti.i32):
        """Waves of all phases; the way of each mass from the mean one, and its velocity."""
        for _ in range(1):
            middle = ti.Vector([0.0, 0.0], ti.f64)
            for i in range(self.n):
                middle += self.x[t, i] / self.n
            for k in range(WAVES):
                self.feels[t, k] = ti.sin(OMEGA * DT * t + 2 * np.pi / WAVES * k)
            for i in range(self.n):
                for axis in ti.static(range(2)):
                    self.feels[t, WAVES + 4 * i + axis] = (self.x[t, i][axis] - middle[axis]) / SIDE
                    self.feels[t, WAVES + 4 * i + 2 + axis] = 0.1 * self.v[t, i][axis]

    @ti.kernel
    def pull(self, t: ti.i32):
        for s in self.rest:
            thought = ti.cast(0.0, ti.f64)
            for k in range(self.inputs):
                thought += self.weights[s, k] * self.feels[t, k]
            a, b = self.ends[s][0], self.ends[s][1]
            way = self.x[t, a] - self.x[t, b]
            length = way.norm()
            speed = (self.v[t, a] - self.v[t, b]).dot(way) / length
            wanted = self.rest[s] * (1 + PULL * ti.tanh(thought))
            f = (STIFFNESS * (wanted - length) - DAMPING * speed) / length * way
            self.force[t, a] += f
            self.force[t, b] -= f

    @ti.kernel
    def move(self, t: ti.i32):
        for i in self.start:
            x, v = self.x[t, i], self.v[t, i]
            push = HARDNESS * ti.max(GROUND - x.y, 0.0)
            drag = -FRICTION * push * v.x / ti.sqrt(v.x**2 + CREEP**2)
            damped = push * (1 - ti.tanh(2 * v.y))
            v += DT * (self.force[t, i] + ti.Vector([drag, damped]) - DRAG * v)
            self.v[t + 1, i] = v
            self.x[t + 1, i] = x + DT * v

    @ti.kernel
    def compare(self):
        """The square of how far the middle is from the goal."""
        for _ in range(1):
            middle = ti.cast(0.0, ti.f64)
            for i in range(self.n):
                middle += self.x[self.steps, i].x / self.n
            self.loss[None] += (self.goal - middle) ** 2

    def simulate(self):
        self.begin()
        for t in range(self.steps):
            self.feel(t)
            self.pull(t)
            self.move(t)
        self.compare()

    def picture(self, width, height):
        """The robot at some times, the later the darker."""
        gui = ti.GUI("walker", res=(2 * width, 2 * height), background_color=0xFAF7F0, show_gui=False)
        size, springs = 1.6, self.ends.to_numpy()
        x = self.x.to_numpy() / [size, size * height / width]
        gui.line((0, GROUND / size * width / height), (1, GROUND / size * width / height), radius=3, color=0x8A8578)
        for part, color in zip((0, 1 / 3, 2 / 3, 1), (0xD9C9B4, 0xC3A98A, 0x7F9DB3, 0x1F4E79)):
            now = x[round(part * self.steps)]
            gui.lines(now[springs[:, 0]], now[springs[:, 1]], radius=3, color=color)
        return gui.get_image()[..., :3]


def main(small=False, iterations=0):
    ti.init(arch=ti.cpu)
    walker = Walker(200 if small else 682)
    walker.simulate()
    before = walker.picture(480, 240)
    error = slope_error_of(walker.simulate, walker.loss, walker.weights, 1e-5)
    losses = learn(walker.simulate, walker.loss, walker.weights, iterations or (20 if small else 150), 0.004)
    numbers = {"loss at first": losses[0], "loss at last": losses[-1], "error of the slope": error}
    both = np.concatenate([walker.picture(480, 240), before], axis=1)
    return np.concatenate([both[::2, ::2], curve(losses, 240, 480)]), numbers


if __name__ == "__main__":
    run(main)
