"""A map of mountains with its contours: marching squares in parallel, over twenty levels at once.

Lorensen and Cline, Marching Cubes, SIGGRAPH 1987, one dimension less. A closed contour enters a cell as often as it
leaves it, so every end of a piece is the end of exactly one other.
"""

import numpy as np
from common import halve, palette, run

import aerogel as ti
from aerogel.math import vec2


@ti.data_oriented
class Contours:
    """The pieces of all contours, and the level of each."""

    def __init__(self, capacity):
        self.begin, self.end = ti.Vector.field(2, float, capacity), ti.Vector.field(2, float, capacity)
        self.level, self.count = ti.field(int, capacity), ti.field(int, ())

    @ti.func
    def crossing(self, p, a, q, b, level):
        """Where the height is `level` between the points p, of height a, and q, of height b."""
        return p + (level - a) / (b - a) * (q - p)

    @ti.kernel
    def march(self, z: ti.types.ndarray(float, ndim=2), levels: int):
        """Contours of heights from 0 to 1."""
        for i, j, n in ti.ndrange(z.shape[0] - 1, z.shape[1] - 1, levels):
            level = (n + 0.5) / levels
            # Corners counterclockwise, and the crossings of the edges after each of them.
            corner = [vec2(i, j), vec2(i + 1, j), vec2(i + 1, j + 1), vec2(i, j + 1)]
            height = [z[i, j], z[i + 1, j], z[i + 1, j + 1], z[i, j + 1]]
            ends = ti.Matrix.zero(float, 4, 2)
            found = 0
            for k in ti.static(range(4)):
                a, b = height[k], height[(k + 1) % 4]
                if (a < level) != (b < level):
                    x = self.crossing(corner[k], a, corner[(k + 1) % 4], b, level)
                    ends[found, 0], ends[found, 1] = x.x, x.y
                    found += 1
            # Of four crossings the middle's height says which two belong together.
            above = (height[0] + height[1] + height[2] + height[3]) / 4 >= level
            shift = 1 if found == 4 and above != (height[0] >= level) else 0
            for k in range(found // 2):
                at, a, b = ti.atomic_add(self.count[None], 1), (2 * k + 3 * shift) % 4, (2 * k + 1 + 3 * shift) % 4
                if at < self.begin.shape[0]:
                    self.begin[at], self.end[at] = [ends[a, 0], ends[a, 1]], [ends[b, 0], ends[b, 1]]
                    self.level[at] = n

    def pieces(self):
        """Begins, ends and levels of all pieces."""
        n = self.count[None]
        assert n <= self.begin.shape[0], "more pieces than there is room for"
        return [field.to_numpy()[:n] for field in (self.begin, self.end, self.level)]


def lengths(n):
    """The length of a circle's contour by 2 pi r, and how many ends do not meet exactly one other."""
    x, y = np.mgrid[:n, :n] - (n - 1) / 2
    contours = Contours(16 * n)
    contours.march((np.hypot(x, y) / (0.8 * n)).astype(np.float32), 1)
    begin, end, _ = contours.pieces()
    _, meet = np.unique(np.concatenate([begin, end]).round(3), axis=0, return_counts=True)
    return np.linalg.norm(end - begin, axis=1).sum(dtype=np.float64) / (2 * np.pi * 0.4 * n), int((meet != 2).sum())


def mountains(width, height, rng):
    """Heights from 0 to 1, of waves that are the steeper the longer they are."""
    kx, ky = np.meshgrid(np.fft.fftfreq(width) * width, np.fft.fftfreq(height) * width, indexing="ij")
    waves = rng.normal(size=kx.shape) * np.exp(2j * np.pi * rng.random(kx.shape)) / (1 + kx**2 + ky**2) ** 1.25
    z = np.real(np.fft.ifft2(waves * np.exp(-((kx**2 + ky**2) / 60**2))))
    return ((z - z.min()) / (z.max() - z.min())).astype(np.float32)


def main(small=False):
    ti.init(arch=ti.cpu)
    width, height = (160, 100) if small else (640, 400)
    z = mountains(width, height, np.random.default_rng(11))
    contours = Contours(40 * (width + height) * 10)
    contours.march(z, 20)
    begin, end, level = contours.pieces()
    slope = np.stack(np.gradient(-z * 0.45 * width), -1)
    light = (slope @ [-0.6, 0.6] + 1) / np.sqrt((slope**2).sum(-1) + 1)
    colors = palette(z**0.9, "16324f 2a6f97 61a5c2 cfe0c3 9ebd7a 6f9a4f c2a878 8c6d4f e8e4dd ffffff")
    image = np.kron(np.clip(colors * (0.35 + 0.68 * light[..., None]), 0, 1), np.ones((2, 2, 1)))
    for part in np.linspace(0, 1, 6)[:, None]:  # Pieces are shorter than two cells, so six points make a line.
        at = ((begin + part * (end - begin) + 0.5) * 2).astype(int)
        image[tuple(at.T)] *= 0.45
    ratio, loose = lengths(101)
    return halve(np.clip(image, 0, 1)), {"pieces": len(level), "length of a circle": ratio, "loose ends": loose}


if __name__ == "__main__":
    run(main)
