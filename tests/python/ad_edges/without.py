"""What has no gradient."""

from ad_edges.programs import error, made

import aerogel as ti


@error("atomic_exchange")
def exchanging():
    a, b, loss = made(3, 3)

    @ti.kernel
    def k():
        for i in a:
            ti.atomic_exchange(b[0], a[i])

    return k, loss, a


@error("bits of a float")
def the_bits_of_a_float():
    a, _ = made(3, dtype=ti.f32)
    loss = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def k():
        for i in a:
            bits = ti.bit_cast(a[i], ti.i32)
            loss[None] += ti.bit_cast(bits, ti.f32)

    return k, loss, a


@error("overwrites it|other iterations")
def racing_neighbours():
    a, loss = made(6)

    @ti.kernel
    def k():
        for i in range(5):
            a[i + 1] = a[i] * a[i]

    return k, loss, a


@error("the old value of an atomic operation")
def indices_that_threads_decide():
    a, b, loss = made(4, 4)
    n = ti.field(ti.i32, shape=())

    @ti.kernel
    def k():
        for i in a:
            at = ti.atomic_add(n[None], 1)
            b[at] = a[i] ** 2

    return k, loss, a


@error("overwrites it")
def products_that_race():
    a, b, loss = made(5, ())

    @ti.kernel
    def k():
        for i in a:
            b[None] *= a[i] + 1.0

    return lambda: (k(),), b, a
