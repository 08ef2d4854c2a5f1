"""A landscape painted with fifteen hundred soft spots, whose places, sizes and colours gradient descent finds.

The gradient is written by hand, for each spot over the pixels it reaches, so no two threads meet. Left what is to be
painted, right the painting. The steps are those of Kingma and Ba, Adam, ICLR 2015.
"""

import numpy as np
from common import palette, run

import aerogel as ti
from aerogel.math import vec2, vec3

vec6 = ti.types.vector(6, float)
REACH = 3.5  # A spot ends where it has faded to 0.002.


@ti.data_oriented
class Spots:
    """Spots are x, y, the logarithm of the size, and a colour each; lengths are in heights of the picture."""

    def __init__(self, spots, target):
        self.spots, self.gradient, self.mean, self.square = (ti.Vector.field(6, float, len(spots)) for _ in range(4))
        self.spots.from_numpy(spots.astype(np.float32))
        self.target, self.painted = (ti.Vector.field(3, float, target.shape[:2]) for _ in range(2))
        self.target.from_numpy(target.astype(np.float32))

    @ti.func
    def box(self, spot, height, shape):
        """The pixels that a spot reaches."""
        r = REACH * ti.exp(spot[2])
        low = ti.cast(ti.max((vec2(spot[0], spot[1]) - r) * height, 0), int)
        high = ti.cast(ti.min((vec2(spot[0], spot[1]) + r) * height + 1, vec2(shape[0], shape[1])), int)
        return low, high

    @ti.kernel
    def paint(self, out: ti.template()):
        for i, j in out:
            out[i, j] = vec3(0.5)
        for s in self.spots:
            spot, height = self.spots[s], out.shape[1]
            low, high = self.box(spot, height, out.shape)
            for i, j in ti.ndrange((low.x, high.x), (low.y, high.y)):
                d = (vec2(i, j) + 0.5) / height - vec2(spot[0], spot[1])
                out[i, j] += ti.exp(-0.5 * d.norm_sqr() * ti.exp(-2 * spot[2])) * vec3(spot[3], spot[4], spot[5])

    @ti.kernel
    def loss(self) -> ti.f64:
        """The mean square of what is wrong."""
        total = ti.cast(0.0, ti.f64)
        for p in ti.grouped(self.target):
            total += (self.painted[p] - self.target[p]).norm_sqr()
        return total / (self.target.shape[0] * self.target.shape[1])

    @ti.kernel
    def differentiate(self):
        for s in self.spots:
            spot, height, g = self.spots[s], self.target.shape[1], vec6(0.0)
            low, high = self.box(spot, height, self.target.shape)
            for i, j in ti.ndrange((low.x, high.x), (low.y, high.y)):
                d = ((vec2(i, j) + 0.5) / height - vec2(spot[0], spot[1])) * ti.exp(-spot[2])
                weight = ti.exp(-0.5 * d.norm_sqr())
                wrong = 2 * (self.painted[i, j] - self.target[i, j]) * weight
                fade = wrong.dot(vec3(spot[3], spot[4], spot[5]))
                g += vec6(fade * d * ti.exp(-spot[2]), fade * d.norm_sqr(), wrong)
            self.gradient[s] = g / (self.target.shape[0] * self.target.shape[1])

    @ti.kernel
    def descend(self, n: int, rate: float):
        for s in self.spots:
            g = self.gradient[s]
            self.mean[s] = 0.9 * self.mean[s] + 0.1 * g
            self.square[s] = 0.99 * self.square[s] + 0.01 * g * g
            size = ti.sqrt(self.square[s] / (1 - 0.99**n)) + 1e-10
            self.spots[s] -= rate * self.mean[s] / (1 - 0.9**n) / size

    def step(self, n, rate):
        """The loss before the step."""
        self.paint(self.painted)
        loss = self.loss()
        self.differentiate()
        self.descend(n, rate)
        return loss


def landscape(width, height):
    """A sun, and mountains one behind the other."""
    x, y = (np.mgrid[:width, :height] + 0.5) / height
    image = palette(1 - y, "24305e 6a4c93 d96c75 f9b872 fde2a7 fde2a7")
    sun = np.hypot(x - 0.52, y - 0.52)
    image += 0.5 * np.exp(-((sun / 0.28) ** 2))[..., None] * [1, 0.8, 0.4]
    image = np.where((sun < 0.13)[..., None], [1.0, 0.95, 0.78], image)
    for k, color in enumerate(palette(np.linspace(0, 1, 5), "c9737f 8b4a78 54356d 2b2450 120f2b")):
        ridge = (
            0.46 - 0.095 * k + 0.05 * np.sin(5.3 * x + 2.1 * k) + 0.03 * np.sin(13 * x + 4 * k) + 0.012 * np.sin(41 * x)
        )
        image = np.where((y < ridge)[..., None], color, image)
    return np.clip(image, 0, 1)


def main(small=False):
    ti.init(arch=ti.cpu)
    rng, n, height = np.random.default_rng(2), 60 if small else 1500, 40 if small else 100
    spots = rng.uniform([0, 0, -3.6, -0.1, -0.1, -0.1], [1, 1, -3.0, 0.1, 0.1, 0.1], (n, 6))
    fit = Spots(spots, landscape(height, height))
    losses = [fit.step(k + 1, 0.012 if k < 300 else 0.004) for k in range(60 if small else 500)]
    out = ti.Vector.field(3, float, (320, 320))
    fit.paint(out)
    image = np.concatenate([landscape(320, 320), np.clip(out.to_numpy(), 0, 1)])
    return image, {"loss before": losses[0], "loss after": losses[-1]}


if __name__ == "__main__":
    run(main)
