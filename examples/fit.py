"""A landscape painted with fifteen hundred soft spots, whose positions, sizes and colours gradient descent finds.

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
        at, r = vec2(spot[0], spot[1]), REACH * ti.exp(spot[2])
        high = ti.min((at + r) * height + 1, vec2(shape[0], shape[1]))
        return ti.cast(ti.max((at - r) * height, 0), int), ti.cast(high, int)

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

    def loss(self):
        """The mean square of what is wrong."""
        return ((self.painted.to_numpy() - self.target.to_numpy()).astype(np.float64) ** 2).sum(-1).mean()

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
            self.mean[s] = 0.9 * self.mean[s] + 0.1 * self.gradient[s]
            self.square[s] = 0.99 * self.square[s] + 0.01 * self.gradient[s] ** 2
            size = ti.sqrt(self.square[s] / (1 - 0.99**n)) + 1e-10
            self.spots[s] -= rate * self.mean[s] / (1 - 0.9**n) / size


def landscape(width, height):
    """A sun, and mountains one behind the other."""
    x, y = (np.mgrid[:width, :height] + 0.5) / height
    sky, sun = palette(1 - y, "24305e 6a4c93 d96c75 f9b872 fde2a7 fde2a7"), np.hypot(x - 0.52, y - 0.52)[..., None]
    image = np.where(sun < 0.13, [1.0, 0.95, 0.78], sky + 0.5 * np.exp(-((sun / 0.28) ** 2)) * [1, 0.8, 0.4])
    for k, color in enumerate(palette(np.linspace(0, 1, 5), "c9737f 8b4a78 54356d 2b2450 120f2b")):
        ridge = 0.05 * np.sin(5.3 * x + 2.1 * k) + 0.03 * np.sin(13 * x + 4 * k) + 0.012 * np.sin(41 * x)
        image = np.where((y < 0.46 - 0.095 * k + ridge)[..., None], color, image)
    return np.clip(image, 0, 1)


def main(small=False):
    ti.init(arch=ti.cpu)
    n, height = (60, 40) if small else (1500, 100)
    spots = [0, 0, -3.6, -0.1, -0.1, -0.1] + np.random.default_rng(2).random((n, 6)) * [1, 1, 0.6, 0.2, 0.2, 0.2]
    fit = Spots(spots, landscape(height, height))
    fit.paint(fit.painted)
    before = fit.loss()
    for k in range(60 if small else 500):
        fit.differentiate()
        fit.descend(k + 1, 0.012 if k < 300 else 0.004)
        fit.paint(fit.painted)
    fit.paint(out := ti.Vector.field(3, float, (320, 320)))
    image = np.concatenate([landscape(320, 320), np.clip(out.to_numpy(), 0, 1)])
    return image, {"loss before": before, "loss after": fit.loss()}


if __name__ == "__main__":
    run(main)
