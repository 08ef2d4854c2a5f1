"""Electrodes learn to lead a charged ball: gradient descent finds the network that sets their charges.

The electric field of Hu et al., DiffTaichi, ICLR 2020: Coulomb's forces of eight electrodes, whose charges a network of
two layers sets at each step from where the ball and its goal are, and how they move. A whole chase, with all steps and
all neurons, is one kernel. Above the ways of balls (red) that follow paths (blue) after learning, and the electrodes
at the end, large where they repel; below the same before it, and the loss.
"""

import numpy as np
from common import curve, learn, run, slope_error_of

import aerogel as ti

DT, STEPS, HIDDEN = 0.01, 512, 32
COULOMB, SOFT, DRAG = 0.4, 0.1, 2.0
ELECTRODES = np.array([(i, j) for i in (0.2, 0.5, 0.8) for j in (0.2, 0.5, 0.8) if (i, j) != (0.5, 0.5)])
SEEN, N = 8, len(ELECTRODES)


def paths(count, steps):
    """Where goals are at each step, and how fast: each coordinate a sine of its own."""
    random = np.random.default_rng(3)
    speed, phase = random.uniform(0.7, 1.5, (count, 1, 2)), random.uniform(0, 2 * np.pi, (count, 1, 2))
    angle = speed * DT * np.arange(steps)[:, None] + phase
    return np.concatenate([0.5 + 0.2 * np.sin(angle), 0.2 * speed * np.cos(angle)], axis=2)


@ti.data_oriented
class Chase:
    """Balls that follow goals, each for itself, and the network that they share."""

    def __init__(self, count, steps):
        self.count, self.steps = count, steps
        self.electrodes, self.goal = ti.Vector.field(2, float, N), ti.Vector.field(4, float, (count, steps))
        self.trail, self.charge = ti.Vector.field(2, float, (count, steps)), ti.Vector.field(N, float, count)
        self.weights = ti.field(float, (HIDDEN, SEEN + 1 + N), needs_grad=True)
        self.loss = ti.field(float, (), needs_grad=True)
        self.electrodes.from_numpy(ELECTRODES)
        self.goal.from_numpy(paths(count, steps))
        self.weights.from_numpy(np.random.default_rng(1).normal(0, 0.05, (HIDDEN, SEEN + 1 + N)))

    @ti.func
    def think(self, x, v, goal):
        """The charges that the network wants."""
        seen = ti.Vector([x.x - 0.5, x.y - 0.5, v.x, v.y, goal[0] - 0.5, goal[1] - 0.5, goal[2], goal[3]])
        wanted = ti.Vector.zero(float, N)
        for h in range(HIDDEN):
            signal = self.weights[h, SEEN]
            for k in ti.static(range(SEEN)):
                signal += 4 * self.weights[h, k] * seen[k]
            neuron = ti.tanh(signal)
            for e in ti.static(range(N)):
                wanted[e] += self.weights[h, SEEN + 1 + e] * neuron
        return ti.tanh(wanted)

    @ti.kernel
    def simulate(self):
        for b in range(self.count):
            x, v, far = ti.Vector([0.5, 0.5]), ti.Vector([0.0, 0.0]), 0.0
            for t in range(self.steps):
                charge = self.think(x, v, self.goal[b, t])
                force = -DRAG * v
                for e in ti.static(range(N)):
                    way = x - self.electrodes[e]
                    force += COULOMB * charge[e] * way / (way.norm_sqr() + SOFT**2) ** 1.5
                v += DT * force
                x += DT * v
                far += (x - self.goal[b, t][:2]).norm_sqr()
                self.trail[b, t], self.charge[b] = ti.stop_grad(x), ti.stop_grad(charge)
            self.loss[None] += far / (self.count * self.steps)

    def picture(self, size):
        """Three of the chases."""
        views, trails, charges = [], self.trail.to_numpy(), self.charge.to_numpy()
        for b in range(3):
            gui = ti.GUI("chase", res=(2 * size, 2 * size), background_color=0xFAF7F0, show_gui=False)
            for way, color in ((self.goal.to_numpy()[b, :, :2], 0x2E86C1), (trails[b], 0xC0392B)):
                gui.lines(way[:-1], way[1:], radius=3, color=color)
                gui.circle(way[-1], radius=14, color=color)
            for place, charge in zip(ELECTRODES, charges[b]):
                gui.circle(place, radius=16 + 10 * charge, color=0x7D6B57)
            views.append(gui.get_image()[::2, ::2, :3])
        return np.concatenate(views)


def main(small=False, iterations=0):
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    chase = Chase(4, 128) if small else Chase(16, STEPS)
    chase.simulate()
    before = chase.picture(240)
    error = slope_error_of(chase.simulate, chase.loss, chase.weights, 1e-5)
    losses = learn(chase.simulate, chase.loss, chase.weights, iterations or (40 if small else 150), 0.01)
    numbers = {"loss at first": losses[0], "loss at last": losses[-1], "error of the slope": error}
    both = np.concatenate([before, chase.picture(240)], axis=1)
    return np.concatenate([both, curve(losses, 240, 480)]), numbers


if __name__ == "__main__":
    run(main)
