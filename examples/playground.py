"""Water, jelly and snow in a window (`--show`) with sliders for stiffness and gravity; the left button pulls.

The material point method with affine momentum (Jiang et al. 2015, Hu et al. 2018) on a grid of 128 x 128.
"""

import numpy as np
from common import run

import aerogel as ti
from aerogel.math import vec2

GRID, DT = 128, 1e-4
COLORS = np.array([(0.26, 0.55, 0.85), (0.93, 0.33, 0.23), (0.93, 0.93, 0.96)], np.float32)


@ti.data_oriented
class Matter:
    """Particles of three materials, and the grid that they meet on."""

    def __init__(self, n):
        self.n, self.mass = n, 0.75 / n
        self.x, self.v = (ti.Vector.field(2, float, n) for _ in range(2))
        self.c, self.f = (ti.Matrix.field(2, 2, float, n) for _ in range(2))
        self.packed = ti.field(float, n)
        self.color = ti.Vector.field(3, float, n)
        self.momentum, self.weight = ti.Vector.field(2, float, (GRID, GRID)), ti.field(float, (GRID, GRID))
        self.fill()

    def fill(self):
        """Three squares above each other."""
        rng, kind = np.random.default_rng(1), np.arange(self.n) * 3 // self.n
        corner = np.array([(0.08, 0.05), (0.30, 0.36), (0.42, 0.67)])[kind]
        self.x.from_numpy((corner + 0.26 * rng.random((self.n, 2))).astype("f4"))
        self.v.fill(0)
        self.c.fill(0)
        self.f.from_numpy(np.tile(np.eye(2, dtype="f4"), (self.n, 1, 1)))
        self.packed.fill(1)
        self.color.from_numpy(COLORS[kind])

    @ti.func
    def weights(self, x):
        """The first of the 3 x 3 nodes around a point, where the point is from there, and how near it is to each."""
        base = ti.floor(x * GRID - 0.5, int)
        at = x * GRID - base
        return base, at, [0.5 * (1.5 - at) ** 2, 0.75 - (at - 1) ** 2, 0.5 * (at - 0.5) ** 2]

    @ti.kernel
    def step(self, stiffness: float, hardening: float, gravity: float, pull: vec2, strength: float):
        for i in ti.grouped(self.weight):
            self.weight[i], self.momentum[i] = 0, vec2(0.0)
        for p in self.x:
            kind, volume = p * 3 // self.n, 0.75 / self.n
            f = self.f[p] + DT * self.c[p] @ self.f[p]
            h = 0.3 if kind == 1 else ti.exp(hardening * ti.min(1 - self.packed[p], 0.5))
            shear, bulk = (0.0 if kind == 0 else 0.4 * stiffness * h), 0.3 * stiffness * (1.0 if kind == 0 else h)
            u, s, v = ti.svd(f)
            if kind == 2:
                # Snow yields: what is stretched or pressed too much stays so.
                for d in ti.static(range(2)):
                    kept = ti.math.clamp(s[d, d], 0.975, 1.0045)
                    self.packed[p] *= s[d, d] / kept
                    s[d, d] = kept
                f = u @ s @ v.transpose()
            j = s[0, 0] * s[1, 1]
            if kind == 0:
                f = ti.Matrix.identity(float, 2) * ti.sqrt(j)
            self.f[p] = f
            turned = u @ v.transpose()
            stress = 2 * shear * (f - turned) @ f.transpose() + ti.Matrix.identity(float, 2) * bulk * j * (j - 1)
            affine = self.mass * self.c[p] - DT * volume * 4 * GRID**2 * stress
            base, at, w = self.weights(self.x[p])
            for k, l in ti.static(ti.ndrange(3, 3)):
                weight, way = w[k].x * w[l].y, (vec2(k, l) - at) / GRID
                self.momentum[base + ti.Vector([k, l])] += weight * (self.mass * self.v[p] + affine @ way)
                self.weight[base + ti.Vector([k, l])] += weight * self.mass
        for i, j in self.weight:
            if self.weight[i, j] > 0:
                v = self.momentum[i, j] / self.weight[i, j]
                way = pull - vec2(i, j) / GRID
                v += DT * (vec2(0, -gravity) + strength * way / (0.01 + way.norm()))
                v.x = ti.math.clamp(v.x, 0.0 if i < 3 else -1e3, 0.0 if i > GRID - 3 else 1e3)
                v.y = ti.math.clamp(v.y, 0.0 if j < 3 else -1e3, 0.0 if j > GRID - 3 else 1e3)
                self.momentum[i, j] = v
        for p in self.x:
            base, at, w = self.weights(self.x[p])
            v, c = vec2(0.0), ti.Matrix.zero(float, 2, 2)
            for k, l in ti.static(ti.ndrange(3, 3)):
                node = w[k].x * w[l].y * self.momentum[base + ti.Vector([k, l])]
                v += node
                c += 4 * GRID * node.outer_product(vec2(k, l) - at)
            self.v[p], self.c[p], self.x[p] = v, c, self.x[p] + DT * v


def main(small=False, show=False, frames=70):
    ti.init(arch=ti.cpu)
    matter = Matter(3000 if small else 27000)
    window = ti.ui.Window("playground", (200, 200) if small else (800, 800), show_window=show)
    canvas, gui = window.get_canvas(), window.get_gui()
    canvas.set_background_color((0.07, 0.10, 0.14))
    stiffness, hardening, gravity, shown, weight = 1000.0, 10.0, 20.0, 0, 0.0
    while window.running and (show or shown < (12 if small else frames)):
        with gui.sub_window("Matter", 0.02, 0.02, 0.40, 0.20) as box:
            stiffness = box.slider_float("stiffness", stiffness, 100, 3000)
            hardening = box.slider_float("hardening", hardening, 0, 15)
            gravity = box.slider_float("gravity", gravity, -20, 40)
            if box.button("again"):
                matter.fill()
        strength = 60.0 if window.is_pressed(ti.ui.LMB) else 0.0
        for _ in range(15 if small else 30):
            matter.step(stiffness, hardening, gravity, vec2(*window.get_cursor_pos()), strength)
        weight = matter.weight.to_numpy().sum()
        canvas.circles(matter.x, radius=0.004 if small else 0.0022, per_vertex_color=matter.color)
        window.show()
        shown += 1
    x = matter.x.to_numpy()
    numbers = {"mass": weight, "lowest": x.min(), "highest": x.max(), "fallen": 0.49 - x[:, 1].mean()}
    return window.get_image_buffer_as_numpy()[..., :3], numbers


if __name__ == "__main__":
    run(main)
