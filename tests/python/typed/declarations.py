"""Names and declarations as a type checker sees them: lines marked `# wrong` are the ones it must flag."""

import numpy as np

import aerogel as ti

ti.init(arch=ti.cpu, debug=True, default_fp=ti.f64, cpu_max_num_threads=2, dynamic_index=True)

x = ti.field(ti.f32, shape=(4, 4))
v = ti.Vector.field(3, dtype=ti.f32, shape=8)
w = ti.field(ti.math.vec3, shape=8)
a = ti.ndarray(ti.i32, shape=8)


@ti.dataclass
class Ray:
    origin: ti.math.vec3
    direction: ti.math.vec3
    time: ti.f32

    @ti.func
    def at(self, t: ti.f32) -> ti.math.vec3:
        return self.origin + t * self.direction


@ti.func
def length(p: ti.math.vec3, scale: ti.f32) -> ti.f32:
    return p.norm() * scale + p.xy.sum()


@ti.kernel
def run(
    field: ti.template(),
    grid: ti.types.ndarray(dtype=ti.f32, ndim=2),
    at: ti.math.vec3,
    n: ti.i32,
    flag: ti.u1,
    wide: ti.float64,
) -> ti.f32:
    total = ti.f32(0)
    for i, j in x:
        x[i, j] += grid[i, j] * wide
    for i in v:
        v[i] = at * 2.0 + w[i].normalized()
        v[i].x = 1.0
        a[i] += n
    for I in ti.grouped(field):
        total += field[I]
    for p in range(n):
        ray = Ray(at, ti.math.vec3(0, 0, p), 1.0)
        total += ray.at(2.0).x + length(ray.origin, 2) + ray.time
    if flag:
        total = ti.cast(n, ti.f32)
    return total + ti.math.pi


run(x, np.zeros((4, 4), np.float32), ti.Vector([1.0, 2.0, 3.0]), 3, True, 2.0)
run(x, np.zeros((4, 4), np.float32), ti.math.vec3(1, 2, 3), n=3, flag=1, wide=2)
Ray(ti.math.vec3(0), direction=ti.math.vec3(1, 2, 3), time=0.5)
x.fill(1)
x.to_numpy().sum()
v.to_numpy()[0]
v.get_scalar_field(0)[1] = x.shape[0]
w.from_numpy(np.zeros((8, 3)))
a.fill(2)
m = ti.Matrix([[1, 2], [3, 4]], dt=ti.f32)
print(m @ m, m.inverse()[0, 0], m.to_numpy(), ti.cfg.debug)
ti.root.dense(ti.i, 4).place(ti.field(ti.f32))
ti.tools.imwrite(x, "x.png")
ti.linalg.SparseMatrixBuilder(3, 3, dtype=ti.f64)

ti.fild(ti.f32, shape=3)  # wrong
x.to_nump()  # wrong
v.to_nump()  # wrong
a.to_nump()  # wrong
ti.init(debg=True)  # wrong
ti.init(debug="yes")  # wrong
ti.f23  # wrong
ti.math.vec5(1)  # wrong
run(x, np.zeros((4, 4)), ti.math.vec3(1), "3", True, 2.0)  # wrong
length(2.0, 1)  # wrong
