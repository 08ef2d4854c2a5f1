"""Two substances react and diffuse; their spots divide and grow into stripes: the Gray-Scott model.

The kill rate is highest in the middle of the picture: holes become mazes, worms, and spots. Pearson, Complex Patterns
in a Simple System, Science 261, 1993.
"""

import numpy as np
from common import palette, run

import aerogel as ti


@ti.data_oriented
class GrayScott:
    """Amounts of two substances on a torus; the kill rate is `kill`, and `more` than that in the middle."""

    def __init__(self, width, height, feed, kill, more=0.0):
        self.shape, self.feed, self.kill, self.more = (width, height), feed, kill, more
        self.now, self.next = ti.Vector.field(2, float, self.shape), ti.Vector.field(2, float, self.shape)
        self.now.fill(ti.Vector([1.0, 0.0]))

    @ti.kernel
    def react(self, now: ti.template(), new: ti.template()):
        for i, j in now:
            w, h = self.shape
            left, right, down, up = (i + w - 1) % w, (i + 1) % w, (j + h - 1) % h, (j + 1) % h
            near = now[left, j] + now[right, j] + now[i, down] + now[i, up]
            far = now[left, down] + now[left, up] + now[right, down] + now[right, up]
            a = now[i, j]
            spread = (0.2 * near + 0.05 * far - a) * ti.Vector([1.0, 0.5])
            rate = a.x * a.y * a.y
            kill = self.kill + self.more * (0.5 - 0.5 * ti.cos(2 * ti.math.pi * i / w))
            new[i, j] = a + spread + ti.Vector([self.feed * (1 - a.x) - rate, rate - (self.feed + kill) * a.y])

    def step(self):
        self.react(self.now, self.next)
        self.now, self.next = self.next, self.now

    def seed(self, squares, size, rng):
        """Puts the second substance into squares at random places."""
        amounts = self.now.to_numpy()
        for x, y in rng.uniform(0, [n - size for n in self.shape], (squares, 2)).astype(int):
            amounts[x : x + size, y : y + size] = 0.5, 0.25
        self.now.from_numpy(amounts)

    def mass(self):
        return self.now.to_numpy().sum(dtype=np.float64)


def main(small=False):
    ti.init(arch=ti.cpu)
    rng = np.random.default_rng(3)
    closed = GrayScott(64, 48, 0.0, 0.0)
    closed.seed(8, 8, rng)
    before = closed.mass()
    for _ in range(200):
        closed.step()
    gray_scott = GrayScott(*((96, 60) if small else (640, 400)), 0.038, 0.0585, 0.0062)
    gray_scott.seed(12 if small else 160, 10, rng)
    for _ in range(500 if small else 6000):
        gray_scott.step()
    v = gray_scott.now.to_numpy()[..., 1]
    light = 0.5 + 6 * (v - np.roll(v, (1, -1), (0, 1)))
    image = palette(v / 0.38, "fdf6e3 f4d9a8 e98a5b b5395d 5a1a5e 24104f")
    image = np.clip(image * (0.75 + 0.5 * np.clip(light, 0, 1))[..., None], 0, 1)
    return image, {"drift of the closed mass": closed.mass() / before - 1, "highest": v.max(), "lowest": v.min()}


if __name__ == "__main__":
    run(main)
