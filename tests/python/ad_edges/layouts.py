"""Layouts of fields, sparse ones too."""

import numpy as np
from ad_edges.programs import either, made, right

import aerogel as ti


@right
def sparse_fields():
    a = ti.field(ti.f64, needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    block = ti.root.pointer(ti.i, 8)
    block.dense(ti.i, 4).place(a, a.grad)

    for i in (1, 9, 10, 30):
        a[i] = 0.1 * i

    @ti.kernel
    def k():
        for i in a:
            loss[None] += a[i] ** 2 * (i + 1) + a[(i + 7) % 32]

    return k, loss, a, dict(most=0)


@right
def dynamic_lists():
    a = ti.field(ti.f64, needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    ti.root.dynamic(ti.i, 32, 4).place(a, a.grad)

    for i in range(5):
        a[i] = 0.3 * i

    @ti.kernel
    def k():
        for i in a:
            loss[None] += a[i] ** 3

    return k, loss, a, dict(most=0)


@right
def parts_of_a_field():
    v = ti.Vector.field(3, ti.f64, shape=4, needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    v.from_numpy(np.linspace(0.1, 1.2, 12).reshape(4, 3))

    @ti.kernel
    def k():
        for i in v:
            v[i].y = v[i].x * v[i].z
            v[i][2] += v[i].x

    @ti.kernel
    def total():
        for i in v:
            loss[None] += v[i].dot(v[i])

    return lambda: (total(), k(), total()), loss, v


@either("overwrites it")
def structs_of_fields():
    s = ti.Struct.field({"x": ti.f64, "v": ti.types.vector(2, ti.f64)}, shape=3, needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    s.x.from_numpy(np.array([0.4, 0.5, 0.6]))
    s.v.from_numpy(np.linspace(0, 1, 6).reshape(3, 2))

    @ti.kernel
    def k():
        for i in s:
            s[i].v = s[i].v * s[i].x
            loss[None] += s[i].v.norm_sqr()

    return k, loss, [s.x, s.v]


@right
def cells_that_become_active_between_kernels():
    (a, loss) = made(8)
    x = ti.field(ti.f64, name="x", needs_grad=True)
    ti.root.pointer(ti.i, 4).bitmasked(ti.i, 2).place(x, x.grad)

    @ti.kernel
    def put(at: int):
        x[at] = a[at] ** 2

    @ti.kernel
    def total():
        for i in x:
            loss[None] += ti.sin(x[i]) * a[i]

    def run():
        ti.root.deactivate_all()
        for at in (1, 4, 7):
            put(at)
            total()

    return run, loss, a


@either("which cells are active")
def cells_that_a_loop_makes_beside_its_own():
    (a, loss) = made(8)
    x = ti.field(ti.f64, name="x", needs_grad=True)
    ti.root.hash(ti.i, 8).place(x, x.grad)

    @ti.kernel
    def spread():
        x[0] = a[0]
        for i in x:
            if i < 7:
                x[i + 1] += a[i]
        for i in x:
            loss[None] += x[i] ** 2

    def run():
        ti.root.deactivate_all()
        spread()

    return run, loss, a
