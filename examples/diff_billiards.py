"""A shot at billiards: gradient descent finds where the white ball stands and how it is struck to pocket another one.

The billiards of Hu et al., DiffTaichi, ICLR 2020: a collision begins within a step, at a time of impact, and only the
rest of the step has the velocity after it. Were it put off to the end of the step, positions would jump, and gradients
would be wrong even where steps are very short. Above the first shot, below the last; and the loss.
"""

import numpy as np
from common import curve, learn, run, slope_error_of

import aerogel as ti

RADIUS, ELASTICITY, DRAG = 0.03, 0.95, 0.25
ROWS, TIME = 4, 3.0
GOAL = (0.95, 0.65)


def rack():
    """A triangle of balls that all but touch."""
    apart = 2 * RADIUS + 0.005
    return np.array(
        [(0.5 + 3**0.5 / 2 * apart * i, 0.4 + apart * (j - i / 2)) for i in range(ROWS) for j in range(i + 1)]
    )


@ti.data_oriented
class Billiards:
    """Positions and velocities of all balls at all times; ball 0 is the white one."""

    def __init__(self, steps):
        self.steps, self.dt, self.n = steps, TIME / steps, 1 + ROWS * (ROWS + 1) // 2
        self.x = ti.Vector.field(2, ti.f64, (steps + 1, self.n), needs_grad=True)
        self.v = ti.Vector.field(2, ti.f64, (steps + 1, self.n), needs_grad=True)
        self.shot = ti.field(ti.f64, 4, needs_grad=True)  # Where the white ball stands, and its velocity.
        self.loss = ti.field(ti.f64, (), needs_grad=True)
        self.rack = ti.Vector.field(2, ti.f64, self.n - 1)
        self.rack.from_numpy(rack())
        self.shot.from_numpy(np.array([0.1, 0.39, 1.0, 0.0]))

    @ti.kernel
    def begin(self):
        for i in range(self.n):
            self.v[0, i] = ti.Vector([self.shot[2], self.shot[3]]) if i == 0 else ti.Vector([0.0, 0.0])
            self.x[0, i] = ti.Vector([self.shot[0], self.shot[1]]) if i == 0 else self.rack[ti.max(i - 1, 0)]

    @ti.func
    def hit(self, way, speed):
        """By what a ball's velocity jumps that is at ``way`` from another one and moves by ``speed`` to it, and when.

        Balls touch when their distance is a diameter, which is a quadratic equation for the time.
        """
        jump, time = ti.Vector([0.0, 0.0], ti.f64), ti.cast(0.0, ti.f64)
        nearing, fast = way.dot(speed), speed.norm_sqr()
        rest = nearing**2 - fast * (way.norm_sqr() - 4 * RADIUS**2)
        if nearing < 0 and rest > 0:
            impact = (-nearing - ti.sqrt(rest)) / fast
            if impact < self.dt:
                time = ti.max(impact, 0)
                normal = (way + time * speed).normalized()
                jump = -(1 + ELASTICITY) / 2 * speed.dot(normal) * normal
        return jump, time

    @ti.kernel
    def move(self, t: ti.i32):
        for i in range(self.n):
            x, v = self.x[t, i], self.v[t, i]
            change, push = ti.Vector([0.0, 0.0], ti.f64), ti.Vector([0.0, 0.0], ti.f64)
            for j in range(self.n):
                if i != j:
                    jump, time = self.hit(x - self.x[t, j], v - self.v[t, j])
                    change += jump
                    push += (self.dt - time) * jump
            self.v[t + 1, i] = (v + change) * (1 - DRAG * self.dt)
            self.x[t + 1, i] = x + self.dt * v + push

    @ti.kernel
    def compare(self):
        """The square of how far the ball at an end of the last row is from the pocket."""
        for _ in range(1):
            self.loss[None] += (self.x[self.steps, self.n - 1] - ti.Vector(GOAL)).norm_sqr()

    def simulate(self):
        self.begin()
        for t in range(self.steps):
            self.move(t)
        self.compare()

    def picture(self, width, height):
        """The ways of all balls, and where they stop."""
        gui = ti.GUI("billiards", res=(2 * width, 2 * height), background_color=0x2E6B4F, show_gui=False)
        size, radius = np.array([1.3, 1.3 * height / width]), 2 * width * RADIUS / 1.3
        x, goal, colors = (self.x.to_numpy() - [0, 0.1]) / size, (np.array(GOAL) - [0, 0.1]) / size, [0xE8B44C] * self.n
        colors[0], colors[-1] = 0xFFFFFF, 0xC0392B
        gui.circle(goal, radius=1.4 * radius, color=0x14301F)
        gui.circles(x[0], radius=radius, color=0x3D8463)
        for i in range(self.n):
            gui.lines(x[:-1, i], x[1:, i], radius=2, color=colors[i])
            gui.circle(x[-1, i], radius=radius, color=colors[i])
        return gui.get_image()[::2, ::2, :3]


def main(small=False, iterations=0):
    ti.init(arch=ti.cpu)
    table = Billiards(256 if small else 1024)
    table.simulate()
    before = table.picture(480, 240)
    error = slope_error_of(table.simulate, table.loss, table.shot, 1e-7)
    losses = []
    for rate in (1e-3, 1e-4):
        losses += learn(table.simulate, table.loss, table.shot, iterations or (30 if small else 60), rate)
    numbers = {"loss at first": losses[0], "loss at last": losses[-1], "error of the slope": error}
    both = np.concatenate([table.picture(480, 240), before], axis=1)
    return np.concatenate([both, curve(losses, 240, 480)]), numbers


if __name__ == "__main__":
    run(main)
