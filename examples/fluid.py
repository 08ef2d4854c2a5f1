"""Code that the fluids of the gallery share: velocities in the cells of a box, in any dimension, and the pressure.

The method: Stam, Stable Fluids, SIGGRAPH 1999.
"""

from common import at

import aerogel as ti


@ti.data_oriented
class Fluid:
    """A box of cells of width 1 in walls; velocities lie in the middle of cells."""

    def __init__(self, *shape):
        self.shape, self.axes = shape, range(len(shape))
        self.v, self.new_v = (ti.Vector.field(len(shape), float, shape) for _ in range(2))
        self.p, self.new_p, self.div = (ti.field(float, shape) for _ in range(3))

    @ti.kernel
    def divergence(self) -> float:
        """Notes the divergence of each cell, and gives its root mean square."""
        total, n = 0.0, 1
        for c in ti.grouped(self.v):
            d = 0.0
            for axis, way in ti.static([(axis, way) for axis in self.axes for way in (-1, 1)]):
                beside = c + way * ti.Vector.unit(len(self.shape), axis, int)
                # Behind a wall lies the mirror image.
                mirror = 1 if 0 <= beside[axis] and beside[axis] < self.shape[axis] else -1
                d += 0.5 * way * mirror * at(self.v, beside)[axis]
            self.div[c] = d
            total += d * d
        for axis in ti.static(self.axes):
            n *= self.shape[axis]
        return ti.sqrt(total / n)

    @ti.kernel
    def jacobi(self, p: ti.template(), new_p: ti.template()):
        for c in ti.grouped(p):
            around = -self.div[c]
            for axis in ti.static(self.axes):
                e = ti.Vector.unit(len(self.shape), axis, int)
                around += at(p, c + e) + at(p, c - e)
            new_p[c] = around / (2 * len(self.shape))

    @ti.kernel
    def subtract_gradient(self):
        for c in ti.grouped(self.v):
            for axis in ti.static(self.axes):
                e = ti.Vector.unit(len(self.shape), axis, int)
                self.v[c][axis] -= 0.5 * (at(self.p, c + e) - at(self.p, c - e))

    def project(self, sweeps=40):
        """Lets pressure act; gives the divergence before and after."""
        before = self.divergence()
        for _ in range(sweeps // 2):
            self.jacobi(self.p, self.new_p)
            self.jacobi(self.new_p, self.p)
        self.subtract_gradient()
        return before, self.divergence()
