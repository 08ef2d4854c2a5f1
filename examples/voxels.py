"""A tower of voxels: a path tracer that refines its picture in a window (`--show`); drag with the left button.

A ray steps from voxel to voxel (Amanatides and Woo 1987), and is reflected at random; each frame adds one ray a pixel.
"""

import numpy as np
from common import run

import aerogel as ti
from aerogel.math import vec3

N, BOUNCES, FAR = 48, 6, 1e9


@ti.data_oriented
class Voxels:
    """Colours of voxels, black where there is none, lamps above 1; and the light that each pixel has got so far."""

    def __init__(self, res, in_furnace=False):
        self.in_furnace = in_furnace
        self.color = ti.Vector.field(3, float, (N, N, N))
        self.total, self.image = (ti.Vector.field(3, float, res) for _ in range(2))
        self.frames, self.turn, self.rise, self.held = 0, 0.6, 0.35, None
        self.build()

    @ti.kernel
    def build(self):
        """Hills with meadows and snow, a lake, a tower with lamps."""
        for i, j, k in self.color:
            x, y = (i - N / 2) / N, (k - N / 2) / N
            hills = 0.09 * ti.sin(7 * x + 1) * ti.cos(8 * y) + 0.12 * x * x + 0.1 * ti.sin(5 * y + 4 * x)
            height = int(N * (0.16 + hills))
            color = vec3(0.0)
            if j < height:
                color = vec3(0.30, 0.55, 0.16) if j < 0.24 * N else vec3(0.92)
                if j < height - 1:
                    color = vec3(0.45, 0.32, 0.22)
            elif j < 0.1 * N:
                color = vec3(0.15, 0.35, 0.62)
            across, along = ti.abs(i - N // 2), ti.abs(k - N // 2)
            wall = ti.max(across, along)
            if j < 0.62 * N and wall <= 5:
                color = vec3(0.72, 0.66, 0.58)
                if j % 8 == 5 and ti.min(across, along) <= 1:
                    color = vec3(9, 5.5, 2.2)
            elif 0.58 * N < j < 0.62 * N + 8 - wall and wall < 8:
                color = vec3(0.70, 0.18, 0.14)
            self.color[i, j, k] = color

    @ti.func
    def hit(self, start, way):
        """How far a ray goes, the normal of what it meets, and its voxel; infinitely far if it meets none."""
        near, far, normal = 0.0, FAR, vec3(0.0)
        for axis in ti.static(range(3)):
            # Not quite along a face, so that no step is infinite.
            if ti.abs(way[axis]) < 1e-6:
                way[axis] = 1e-6
            a, b = -start[axis] / way[axis], (N - start[axis]) / way[axis]
            if ti.min(a, b) > near:
                near, normal = ti.min(a, b), -ti.Vector.unit(3, axis, float) * ti.math.sign(way[axis])
            far = ti.min(far, ti.max(a, b))
        cell = ti.math.clamp(ti.floor(start + near * way, int), 0, N - 1)
        step = ti.cast(ti.math.sign(way), int)
        each = 1 / ti.abs(way)
        reach = (cell + (step + 1) / 2 - start) / way
        found = FAR
        for _ in range(3 * N):
            if near >= far or self.color[cell].max() > 0:
                found = FAR if near >= far else near
                break
            near = reach.min()
            axis = 0 if reach.x == near else (1 if reach.y == near else 2)
            cell[axis] += step[axis]
            normal = vec3(0.0)
            normal[axis] = -step[axis]
            reach[axis] += each[axis]
            if cell[axis] < 0 or cell[axis] >= N:
                break
        return found, normal, cell

    @ti.func
    def light(self, start, way):
        """What comes along a ray: the sky and the lamps, over all that throws light on."""
        light, kept = vec3(0.0), vec3(1.0)
        for _ in range(64 if ti.static(self.in_furnace) else BOUNCES):
            far, normal, cell = self.hit(start, way)
            if far == FAR:
                sky = ti.math.mix(vec3(0.62, 0.42, 0.30), vec3(0.10, 0.20, 0.45), ti.max(way.y, 0.0) ** 0.5)
                light += kept * (vec3(1.0) if ti.static(self.in_furnace) else sky)
                break
            color = vec3(1.0) if ti.static(self.in_furnace) else self.color[cell]
            if color.max() > 1:
                light += kept * color
                break
            kept *= color
            start += far * way + 1e-3 * normal
            # By the cosine with the normal: a point of a sphere that touches the wall.
            u, z = 2 * ti.math.pi * ti.random(), 2 * ti.random() - 1
            way = (normal * 1.0001 + vec3(ti.sqrt(1 - z * z) * ti.Vector([ti.cos(u), ti.sin(u)]), z)).normalized()
        return light

    @ti.kernel
    def add(self, eye: vec3, frames: int):
        """One ray more for each pixel, and the picture of all so far."""
        width, height = self.total.shape[0], self.total.shape[1]
        ahead = (vec3(N / 2, 0.3 * N, N / 2) - eye).normalized()
        right = ahead.cross(vec3(0, 1, 0)).normalized()
        for i, j in self.total:
            across, up = (i + ti.random() - width / 2) / height, (j + ti.random() - height / 2) / height
            way = (ahead + 1.1 * (across * right + up * right.cross(ahead))).normalized()
            self.total[i, j] = self.light(eye, way) + (self.total[i, j] if frames > 0 else vec3(0.0))
            mean = self.total[i, j] / (frames + 1)
            self.image[i, j] = ti.sqrt(mean / (1 + 0.3 * mean)) if ti.static(not self.in_furnace) else mean

    def step(self):
        eye = np.array(
            [np.cos(self.turn) * np.cos(self.rise), np.sin(self.rise), np.sin(self.turn) * np.cos(self.rise)]
        )
        self.add(vec3(*(np.array([0.5, 0.3, 0.5]) * N + 1.4 * N * eye)), self.frames)
        self.frames += 1

    def drag(self, window):
        """Turns with the mouse; the picture begins anew."""
        at = np.array(window.get_cursor_pos()) if window.is_pressed(ti.ui.LMB) else None
        if at is not None and self.held is not None and (at != self.held).any():
            self.turn += 3 * (at - self.held)[0]
            self.rise = float(np.clip(self.rise - 2 * (at - self.held)[1], 0.05, 1.4))
            self.frames = 0
        self.held = at


def main(small=False, show=False, frames=160):
    ti.init(arch=ti.cpu)
    res = (120, 90) if small else (640, 480)
    voxels = Voxels(res)
    window = ti.ui.Window("voxels", res, show_window=show)
    while window.running and (show or voxels.frames < (12 if small else frames)):
        voxels.drag(window)
        voxels.step()
        window.get_canvas().set_image(voxels.image)
        window.show()
    furnace = Voxels((60, 45), in_furnace=True)
    for _ in range(8):
        furnace.step()
    return window.get_image_buffer_as_numpy()[..., :3], {"furnace": furnace.image.to_numpy().mean()}


if __name__ == "__main__":
    run(main)
