"""Types and shapes of numbers, and of what holds them."""

import numpy as np
from ad_edges.programs import error, made, right

import aerogel as ti


@right
def integers_have_no_gradient():
    a, loss = made(4)
    n = ti.field(ti.i32, shape=4)

    @ti.kernel
    def count():
        for i in a:
            n[i] = ti.cast(a[i] * 10 + 0.5, ti.i32)

    @ti.kernel
    def total():
        for i in a:
            loss[None] += a[i] * n[i]

    return lambda: (count(), total()), loss, a


@error("only floats have derivatives")
def a_loss_of_bytes():
    a, _ = made(4)
    loss = ti.field(ti.u8, shape=(), name="loss")

    @ti.kernel
    def k():
        for i in a:
            loss[None] += ti.cast(a[i], ti.u8)

    return k, loss, a


@error("must be a 0-D field")
def a_loss_of_many_numbers():
    a, b, _ = made(4, 4)

    @ti.kernel
    def k():
        for i in a:
            b[i] = a[i]

    return k, b, a


@error("has no gradient: make it with needs_grad=True")
def a_loss_without_gradient():
    a, _ = made(4)
    loss = ti.field(ti.f64, shape=(), name="loss")

    @ti.kernel
    def k():
        for i in a:
            loss[None] += a[i]

    return k, loss, a


@right
def half_precision():
    a, _ = made(4, dtype=ti.f16)
    loss = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def k():
        for i in a:
            loss[None] += ti.cast(a[i], ti.f32) ** 2 * 3

    return k, loss, a, dict(eps=0.05, tolerance=0.02)


@right
def mixed_precision():
    a, loss = made(4)
    b = ti.field(ti.f32, shape=4, needs_grad=True)
    b.fill(0.75)

    @ti.kernel
    def k():
        for i in a:
            c = ti.cast(a[i], ti.f32) * b[i]
            loss[None] += ti.cast(c, ti.f64) * a[i] + ti.cast(a[i] * b[i], ti.f32)

    return k, loss, [a, b], dict(eps=1e-2, tolerance=1e-2)


@right
def matrices_and_structs():
    v = ti.Vector.field(3, ti.f64, shape=2, needs_grad=True)
    m = ti.Matrix.field(3, 3, ti.f64, shape=2, needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    v.from_numpy(np.linspace(0.2, 1.4, 6).reshape(2, 3))
    m.from_numpy(np.linspace(-1, 1, 18).reshape(2, 3, 3) + np.eye(3))
    pair = ti.types.struct(x=ti.types.vector(3, ti.f64), w=ti.f64)

    @ti.kernel
    def k():
        for i in v:
            p = pair(x=m[i] @ v[i], w=m[i].determinant())
            q = m[i].inverse() @ p.x
            p.x = q.cross(p.x)
            loss[None] += p.x.dot(v[i] + 1.0) * p.w + p.x.norm()

    return k, loss, [v, m]


@right
def vectors_indexed_at_run_time():
    a, loss = made(4)

    @ti.kernel
    def k():
        for i in a:
            v = ti.Vector([a[i], a[i] * a[i], 1.0, 0.5])
            for j in range(4):
                v[(i + j) % 4] = v[j] * v[(i * 2) % 4] + 0.1
            loss[None] += v[0] + 2 * v[1] + 3 * v[2] + 4 * v[3]

    return k, loss, a


@right
def offsets():
    a, loss = made(6, offset=-3)

    @ti.kernel
    def k():
        for i in range(-2, 2):
            loss[None] += a[i - 1] * a[i + 1] ** 2

    return k, loss, a


@right
def negative_steps():
    a, loss = made(6)

    @ti.kernel
    def k():
        for _ in range(1):
            r = 1.0
            for i in range(5, -1, -2):
                r = r * a[i] + a[5 - i]
            loss[None] += r

    return k, loss, a


@right
def empty_ranges():
    a, loss = made(3)

    @ti.kernel
    def k(lo: ti.i32, hi: ti.i32):
        for i in range(lo, hi):
            loss[None] += a[i] ** 2

    return lambda: (k(2, 2), k(2, 0), k(0, 3)), loss, a


@right
def arrays_without_elements():
    a, loss = made(3)
    nothing = ti.Vector.ndarray(2, ti.f64, 0, needs_grad=True)

    @ti.kernel
    def k(x: ti.types.ndarray()):
        for i in x:
            loss[None] += x[i][0]
        for i in a:
            loss[None] += a[i] ** 2

    return lambda: k(nothing), loss, a


@right
def one_of_two_arrays_has_a_gradient():
    (loss,) = made()
    a, b = ti.ndarray(ti.f64, 3, needs_grad=True), ti.ndarray(ti.f64, 3)
    a.fill(0.5)
    b.fill(2)

    @ti.kernel
    def k(x: ti.types.ndarray(), y: ti.types.ndarray()):
        for i in x:
            loss[None] += x[i] ** 2 * y[i]

    return lambda: (k(a, b), k(b, a)), loss, a


@right
def numpy_arrays_in_part():
    a, loss = made(4)
    view = np.arange(16.0).reshape(4, 4)[::2, 1]

    @ti.kernel
    def k(x: ti.types.ndarray()):
        for i in x:
            loss[None] += a[i] ** 2 * x[i]

    return lambda: k(view), loss, a


@right
def columns_and_rows():
    a = ti.field(ti.f64, shape=(3, 4), order="ji", needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    a.from_numpy(np.linspace(0, 1, 12).reshape(3, 4))

    @ti.kernel
    def k():
        for i, j in a:
            loss[None] += a[i, j] * a[2 - i, 3 - j] ** 2

    return k, loss, a
