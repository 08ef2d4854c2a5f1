"""More of the language."""

import numpy as np
from ad_edges.programs import made, right

import aerogel as ti


@right
def real_functions():
    a, loss = made(4)

    @ti.real_func
    def smooth(x: ti.f64, n: ti.i32) -> ti.f64:
        r = x
        for _ in range(n):
            r = r * r * (3 - 2 * r)
            if r > 0.9:
                return r * 2
        return r

    @ti.kernel
    def k():
        for i in a:
            loss[None] += smooth(a[i], i)

    return k, loss, a


@right
def indices_in_groups():
    a = ti.field(ti.f64, shape=(4, 5), needs_grad=True)
    b, loss = made(2)
    a.from_numpy(np.sin(np.arange(20.0)).reshape(4, 5))

    @ti.kernel
    def k():
        for I in ti.grouped(ti.ndrange((1, 3), (1, 4))):
            for offset in ti.static(ti.grouped(ti.ndrange((-1, 2), 2))):
                loss[None] += a[I] * a[I + offset] * b[offset[1]]

    return k, loss, [a, b]


@right
def words_of_the_language():
    a, loss = made(6)

    @ti.kernel
    def k():
        for i in a:
            x = a[i]
            y = x if x > 0.5 else 2 * x
            if 0.1 < x < 10.0 and (i != 2 or x > 5.0) and not i == 4:
                y -= ti.max(x, 0.3, y) * ti.min(x, 2.0)
            y /= 1.5
            y **= 2
            z = ti.select(i > 2, y, -x) + ti.abs(x - 0.2) + x % 0.9
            loss[None] += z - ti.atan2(y, x) + ti.tanh(z) * ti.log(x + 2)

    return k, loss, a


@right
def true_until_a_break():
    a, loss = made(4)

    @ti.kernel
    def k():
        for i in a:
            r, n = a[i], 0
            while True:
                r = 0.5 * (r + 2 / r)
                n += 1
                if n > i + 1:
                    break
            loss[None] += r

    return k, loss, a


@right
def several_loops_and_what_stands_between():
    a, b, loss = made(4, 4)

    @ti.kernel
    def k(scale: ti.f64):
        first = a[0] * scale
        for i in a:
            b[i] = a[i] * first
        second = b[1] + b[2] ** 2
        if second > 0:
            for i in range(4):
                loss[None] += b[i] * second
        loss[None] += first * second

    return lambda: k(1.5), loss, a


@right
def a_shared_number_of_a_kernel():
    a, loss = made(9)

    @ti.kernel
    def k():
        total = 0.0
        for i in a:
            total += a[i] ** 2
        for i in a:
            loss[None] += a[i] * total

    return k, loss, a


@right
def atomics_that_subtract_and_their_old_values():
    a, b, loss = made(4, 4)

    @ti.kernel
    def k():
        for i in a:
            ti.atomic_sub(b[(i + 1) % 4], a[i] * 2)

    @ti.kernel
    def total():
        for i in b:
            loss[None] += b[i] ** 2

    return lambda: (k(), total()), loss, [a, b]


@right
def atomics_of_variables():
    a, loss = made(4)

    @ti.kernel
    def k():
        for i in a:
            best = -1.0
            product = 1.0
            for j in range(4):
                ti.atomic_max(best, a[j] * (1 + (i * j) % 3))
                ti.atomic_mul(product, a[j])
            loss[None] += best * a[i] + product

    return k, loss, a


@right
def local_matrices_in_loops():
    a, loss = made(4)

    @ti.kernel
    def k():
        for i in a:
            m = ti.Matrix([[a[i], 0.2], [0.1, 1.0]])
            r = ti.Matrix.identity(ti.f64, 2)
            for _ in range(i + 2):
                r = m @ r + m.transpose() * 0.1
            u = ti.Vector([1.0, 2.0])
            u.xy = r @ u.yx
            loss[None] += u.normalized()[0] + r.trace()

    return k, loss, a


@right
def indices_read_from_fields_of_bytes():
    a, loss = made(6)
    to = ti.field(ti.u8, shape=6)
    to.from_numpy(np.array([5, 3, 3, 1, 0, 2], np.uint8))

    @ti.kernel
    def k():
        for i in a:
            loss[None] += a[to[i]] ** 2 * a[i]

    return k, loss, a


@right
def arguments_are_vectors():
    a, loss = made(3)

    @ti.kernel
    def k(v: ti.types.vector(3, ti.f64), m: ti.types.matrix(3, 3, ti.f64)):
        for i in a:
            loss[None] += a[i] * (m @ v)[i] ** 2

    return lambda: k([1, 2, 3], np.eye(3) + 0.5), loss, a


@right
def fields_in_lists():
    a, b, loss = made(3, 3)
    all_of_them = [a, b]

    @ti.kernel
    def k():
        for i in range(3):
            for n in ti.static(range(2)):
                loss[None] += all_of_them[n][i] ** (n + 2)

    return k, loss, [a, b]


@right
def structure_of_arrays():
    v = ti.Vector.field(2, ti.f64, shape=4, layout=ti.Layout.SOA, needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    v.from_numpy(np.linspace(0.3, 1.2, 8).reshape(4, 2))

    @ti.kernel
    def k():
        for i in v:
            v[i] = ti.Vector([v[i][1], v[i][0] * v[i][1]])

    @ti.kernel
    def total():
        for i in v:
            loss[None] += v[i].norm()

    return lambda: (k(), total(), k(), total()), loss, v


@right
def gradients_as_numbers_of_the_program():
    """A descent whose step is a kernel that reads `x.grad`, outside of the tape."""
    a, loss = made(3)

    @ti.kernel
    def energy():
        for i in a:
            loss[None] += (a[i] - 1) ** 2

    @ti.kernel
    def descend():
        for i in a:
            a[i] -= 0.1 * a.grad[i]

    with ti.ad.Tape(loss):
        energy()
    descend()
    return energy, loss, a
