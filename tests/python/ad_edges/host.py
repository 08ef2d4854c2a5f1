"""What Python does between kernels."""

from ad_edges.programs import made, right

import aerogel as ti


@right
def python_reads_are_constants():
    a, b, loss = made(3, 3)

    @ti.kernel
    def k(scale: ti.f64):
        for i in a:
            loss[None] += scale * a[i] ** 2

    def run():
        k(float(int(b[0] * 0)) + 2.0)

    return run, loss, a


@right
def python_writes_in_between():
    a, b, loss = made(3, 3)

    @ti.kernel
    def k():
        for i in a:
            b[i] = a[i] ** 2

    @ti.kernel
    def total():
        for i in b:
            loss[None] += b[i] * a[i]

    def run():
        k()
        b[1] = 4.0
        total()
        a[2] = 0.3
        total()

    return run, loss, a


@right
def branches_in_python():
    a, loss = made(3)

    @ti.kernel
    def k(n: ti.i32):
        for i in a:
            loss[None] += a[i] ** n

    def run():
        for n in (2, 3):
            if a[0] > -100:
                k(n)

    return run, loss, a


@right
def a_kernel_inside_of_a_python_function_that_fails_and_is_caught():
    a, loss = made(3)

    @ti.kernel
    def k():
        for i in a:
            loss[None] += a[i] ** 2

    def run():
        k()
        try:
            raise ValueError
        except ValueError:
            k()

    return run, loss, a


@right
def printing():
    a, loss = made(2)

    @ti.kernel
    def k():
        for i in a:
            if a[i] > 100:
                print("large", a[i])
            loss[None] += a[i] ** 2

    return k, loss, a


@right
def appending():
    a, loss = made(4)
    listed = ti.field(ti.i32)
    ti.root.dynamic(ti.i, 64, 8).place(listed)

    @ti.kernel
    def k():
        for i in a:
            listed.append(i)
            loss[None] += a[i] ** 2

    return k, loss, a


@right
def asserting():
    a, loss = made(4)

    @ti.kernel
    def k():
        for i in a:
            assert a[i] < 100, "too large"
            loss[None] += a[i] ** 2

    return k, loss, a


@right
def random_numbers():
    a, b, loss = made(8, 8)

    @ti.kernel
    def k():
        for i in a:
            r = a[i]
            for _ in range(3):
                if ti.random() < 0.5:
                    r *= 1.0 + ti.random(ti.f64)
            b[i] = r

    @ti.kernel
    def total():
        for i in a:
            loss[None] += b[i] ** 2

    return lambda: (k(), k(), total()), loss, a


@right
def stopped():
    a, loss = made(4)

    @ti.kernel
    def k():
        for i in a:
            c = ti.stop_grad(a[i])
            loss[None] += a[i] ** 2 + 0.0 * c

    return k, loss, a


@right
def a_function_without_gradient():
    a, b, loss = made(3, 3)
    count = ti.field(ti.i32, shape=())

    @ti.kernel
    def show():
        for i in a:
            count[None] += 1

    @ti.kernel
    def k():
        for i in a:
            loss[None] += a[i] ** 2

    return lambda: (ti.ad.no_grad(show)(), k()), loss, a
