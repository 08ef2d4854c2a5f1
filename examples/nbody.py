"""Two galaxies pass each other and form tails: every body attracts every other one.

Leapfrog in time, softened gravity. Momentum is conserved up to rounding, energy up to the square of the step.
"""

import numpy as np
from common import bloom, halve, rotation, run

import aerogel as ti
from aerogel.math import vec3

SOFTENING = 0.06


@ti.data_oriented
class Bodies:
    """Positions, velocities and masses; the constant of gravity is 1."""

    def __init__(self, x, v, m):
        self.x, self.v, self.a = (ti.Vector.field(3, float, len(x)) for _ in range(3))
        self.m = ti.field(float, len(x))
        for field, values in ((self.x, x), (self.v, v), (self.m, m)):
            field.from_numpy(values.astype(np.float32))
        self.attract()

    @ti.kernel
    def attract(self):
        for i in self.x:
            x, a = self.x[i], vec3(0.0)
            for j in range(self.x.shape[0]):
                away = self.x[j] - x
                r2 = away.norm_sqr() + SOFTENING**2
                a += self.m[j] / (r2 * ti.sqrt(r2)) * away
            self.a[i] = a

    @ti.kernel
    def kick(self, dt: float, drift: float):
        for i in self.x:
            self.v[i] += dt * self.a[i]
            self.x[i] += drift * self.v[i]

    def step(self, dt):
        self.kick(dt / 2, dt)
        self.attract()
        self.kick(dt / 2, 0.0)

    @ti.kernel
    def energy(self) -> ti.f64:
        total = ti.cast(0.0, ti.f64)
        for i in self.x:
            total += 0.5 * self.m[i] * self.v[i].norm_sqr()
            for j in range(i):
                total -= self.m[i] * self.m[j] / ti.sqrt((self.x[j] - self.x[i]).norm_sqr() + SOFTENING**2)
        return total

    def momentum(self):
        """The length of the sum of all momenta, relative to the sum of their lengths."""
        p = self.v.to_numpy().astype(np.float64) * self.m.to_numpy()[:, None]
        return np.linalg.norm(p.sum(0)) / np.linalg.norm(p, axis=1).sum()


def galaxy(n, mass, radius, tilt, rng):
    """A heavy core with a disc around it, that turns as its mass demands."""
    r = radius * np.sqrt(rng.uniform(0.02, 1, n))
    angle = rng.uniform(0, 2 * np.pi, n)
    inside = mass * (0.9 + 0.1 * (r / radius) ** 2)
    speed = np.sqrt(inside * r**2 / (r**2 + SOFTENING**2) ** 1.5)
    x = np.stack([r * np.cos(angle), r * np.sin(angle), 0.03 * radius * rng.normal(size=n)], 1)
    v = np.stack([-speed * np.sin(angle), speed * np.cos(angle), 0 * r], 1)
    m = np.full(n, 0.1 * mass / (n - 1))
    m[0], x[0], v[0] = 0.9 * mass, 0, 0
    turn = rotation(0, tilt).T
    return x @ turn, v @ turn, m


def main(small=False):
    ti.init(arch=ti.cpu)
    n, rng = 400 if small else 10000, np.random.default_rng(5)
    x1, v1, m1 = galaxy(n // 2, 1.0, 1.0, 0.5, rng)
    x2, v2, m2 = galaxy(n // 2, 1.0, 1.0, -0.9, rng)
    apart, v = np.array([1.5, 0.8, 0.1]), np.array([-0.5, -0.06, 0.0])
    m = np.append(m1, m2)
    v = np.concatenate([v1 + v, v2 - v])
    bodies = Bodies(np.concatenate([x1 + apart, x2 - apart]), v - m @ v / m.sum(), m)
    before = bodies.energy()
    for _ in range(60 if small else 330):
        bodies.step(0.005 if small else 0.011)
    numbers = {"change of energy": bodies.energy() / before - 1, "momentum": bodies.momentum()}
    x, size = bodies.x.to_numpy()[:, :2], np.array([160, 100] if small else [1280, 800])
    image, window = np.zeros((*size, 3)), np.median(x, 0)[:, None] + np.outer([3.2, 2], [-1, 1])
    for part, color in ((slice(0, n // 2), [0.55, 0.75, 1.0]), (slice(n // 2, n), [1.0, 0.72, 0.45])):
        light, _, _ = np.histogram2d(x[part, 0], x[part, 1], size.tolist(), window.tolist())
        image += bloom(light)[..., None] * color
    image = 1 - np.exp(-0.45 * image * size[0] / 1280)
    return halve(image + [0.016, 0.020, 0.051]), numbers


if __name__ == "__main__":
    run(main)
