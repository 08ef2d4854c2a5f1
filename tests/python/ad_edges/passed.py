"""What is passed to kernels and functions, and how."""

import numpy as np
from ad_edges.programs import error, made, right

import aerogel as ti


@right
def the_same_field_twice_as_an_argument():
    a, b, loss = made(4, 4)

    @ti.kernel
    def k(x: ti.template(), y: ti.template(), z: ti.template()):
        for i in x:
            z[i] = x[i] * y[i]

    @ti.kernel
    def total():
        for i in b:
            loss[None] += b[i] ** 2

    return lambda: (k(a, a, b), total()), loss, a


@right
def the_same_field_is_input_and_output():
    a, loss = made(4)

    @ti.kernel
    def k(x: ti.template(), y: ti.template()):
        for i in x:
            y[i] = x[i] * x[i] + 0.1

    @ti.kernel
    def total(x: ti.template()):
        for i in x:
            loss[None] += ti.sin(x[i])

    return lambda: (k(a, a), k(a, a), total(a)), loss, a


@error("share memory")
def the_same_array_twice():
    (loss,) = made()
    a = ti.ndarray(ti.f64, 4, needs_grad=True)
    a.fill(0.7)

    @ti.kernel
    def k(x: ti.types.ndarray(), y: ti.types.ndarray()):
        for i in x:
            y[i] = x[i] * 2
            loss[None] += x[i] ** 2

    return lambda: k(a, a), loss, a


@right
def the_same_array_read_twice():
    (loss,) = made()
    a = ti.ndarray(ti.f64, 4, needs_grad=True)
    a.from_numpy(np.array([0.5, 1.0, 1.5, 2.0]))

    @ti.kernel
    def k(x: ti.types.ndarray(), y: ti.types.ndarray()):
        for i in x:
            loss[None] += x[i] * ti.sin(y[i])

    return lambda: k(a, a), loss, a


@right
def templates_with_values():
    a, loss = made(6)

    @ti.kernel
    def k(n: ti.template(), x: ti.template(), scale: ti.f64):
        for i in range(n):
            for j in ti.static(range(n)):
                loss[None] += scale * x[i] * x[j]

    return lambda: (k(2, a, 0.5), k(3, a, 1.5)), loss, a


@right
def data_oriented_classes_share_a_kernel():
    a, b, loss = made(3, 3)

    @ti.data_oriented
    class Spring:
        def __init__(self, x, stiffness):
            self.x, self.stiffness = x, stiffness

        @ti.func
        def energy(self, i):
            return 0.5 * self.stiffness * self.x[i] ** 2

        @ti.kernel
        def add(self):
            for i in self.x:
                loss[None] += self.energy(i)

    one, two = Spring(a, 2.0), Spring(b, 3.0)
    return lambda: (one.add(), two.add(), one.add()), loss, [a, b]


@right
def static_branches():
    a, loss = made(4)

    @ti.kernel
    def k(which: ti.template()):
        for i in a:
            if ti.static(which == 0):
                loss[None] += a[i] ** 2
            elif ti.static(which == 1):
                loss[None] += ti.exp(a[i])
            else:
                a[i] = 0.0

    return lambda: (k(0), k(1), k(2), k(0)), loss, a


@right
def functions_in_functions():
    a, loss = made(4)

    @ti.func
    def inner(x, n: ti.template()):
        r = x
        for _ in ti.static(range(n)):
            r = r * x + 1.0
        return r

    @ti.func
    def outer(x):
        y = inner(x, 2)
        if y > 1.2:
            y = inner(y, 1) - y
        return y

    @ti.kernel
    def k():
        for i in a:
            loss[None] += outer(a[i]) * inner(a[i], 3)

    return k, loss, a


@right
def functions_that_change_what_they_are_given():
    a, loss = made(4)

    @ti.func
    def scale(x: ti.template(), by):
        x = x * by
        x += by * by

    @ti.kernel
    def k():
        for i in a:
            y = a[i]
            scale(y, a[(i + 1) % 4])
            loss[None] += y**2

    return k, loss, a


@right
def early_return_inside_loops():
    a, loss = made(5)

    @ti.func
    def first_beyond(x):
        r = x
        for k in range(10):
            r = r * 1.2 + 0.1
            if r > 1.0:
                return r * x
        return r + x

    @ti.kernel
    def k():
        for i in a:
            loss[None] += first_beyond(a[i])

    return k, loss, a


@right
def breaks_and_continues_in_nested_loops():
    a, b, loss = made(5, 5)

    @ti.kernel
    def k():
        for i in a:
            acc = 0.0
            for j in range(6):
                if (i + j) % 3 == 1:
                    continue
                for n in range(4):
                    if acc > 1.5:
                        break
                    acc += a[i] * b[(j + n) % 5] ** 2
                if acc > 2.0:
                    break
                acc *= 1.1 + a[i]
            loss[None] += acc

    return k, loss, [a, b]


@right
def a_loop_that_never_turns():
    a, loss = made(3)
    n = ti.field(ti.i32, shape=())

    @ti.kernel
    def k():
        for i in a:
            r = a[i]
            for _ in range(n[None]):
                r = r * r
            while r < -100.0:
                r = r * r
            loss[None] += r * 3

    return k, loss, a


@right
def a_loop_of_many_turns():
    a, loss = made(2)

    @ti.kernel
    def k():
        for i in a:
            r = a[i]
            for _ in range(3000):
                r = r + 0.001 * ti.sin(r * a[i])
            loss[None] += r

    return k, loss, a


@right
def recursion_by_templates():
    a, loss = made(3)

    @ti.func
    def power(x, n: ti.template()):
        r = x
        if ti.static(n > 1):
            r = x * power(x, n - 1)
        return r

    @ti.kernel
    def k():
        for i in a:
            loss[None] += power(a[i], 5)

    return k, loss, a
