"""Memory that is used more than once."""

from ad_edges.programs import error, made, right

import aerogel as ti


@error("other iterations")
def a_field_is_shifted_by_a_parallel_loop():
    a, loss = made(5)

    @ti.kernel
    def shift():
        for i in range(1, 5):
            a[i - 1] = a[i] * 0.5

    @ti.kernel
    def total():
        for i in a:
            loss[None] += a[i] ** 3

    return lambda: (total(), shift(), total()), loss, a


@right
def a_field_is_shifted_in_order():
    a, loss = made(5)

    @ti.kernel
    def shift():
        ti.loop_config(serialize=True)
        for i in range(1, 5):
            a[i - 1] = a[i] * 0.5

    @ti.kernel
    def total():
        for i in a:
            loss[None] += a[i] ** 3

    return lambda: (total(), shift(), total()), loss, a


@right
def red_and_black():
    a, loss = made(6)

    @ti.kernel
    def relax(parity: ti.i32):
        for i in range(1, 5):
            if i % 2 == parity:
                a[i] = 0.5 * (a[i - 1] + a[i + 1])

    @ti.kernel
    def total():
        for i in a:
            loss[None] += a[i] ** 3

    return lambda: (relax(0), relax(1), relax(0), total()), loss, a


@right
def swapping_by_hand():
    a, b, loss = made(4, 4)

    @ti.kernel
    def swap():
        for i in a:
            t = a[i]
            a[i] = b[i]
            b[i] = t

    @ti.kernel
    def total():
        for i in a:
            loss[None] += a[i] ** 2 * ti.exp(b[i])

    return lambda: (swap(), total(), swap(), total()), loss, [a, b]


@right
def a_loss_that_is_read():
    a, loss = made(4)

    @ti.kernel
    def k():
        for i in a:
            loss[None] += a[i]

    @ti.kernel
    def square():
        loss[None] = loss[None] * loss[None]

    return lambda: (k(), square()), loss, a


@right
def a_loss_that_is_overwritten():
    a, loss = made(4)

    @ti.kernel
    def k():
        for i in a:
            loss[None] += a[i] ** 2

    @ti.kernel
    def again():
        loss[None] = a[0] * 3

    return lambda: (k(), again()), loss, a


@right
def written_and_read_through_other_indices():
    a, b, loss = made(6, 6)

    @ti.kernel
    def scatter():
        for i in a:
            b[(i * 5) % 6] = a[i] ** 2

    @ti.kernel
    def gather():
        for i in a:
            loss[None] += b[(i * 5 + 1) % 6] * a[i]

    return lambda: (scatter(), gather()), loss, a


@right
def sums_into_one_element():
    a, b, loss = made(16, 3)

    @ti.kernel
    def k():
        for i in a:
            b[i % 3] += a[i] ** 2

    @ti.kernel
    def total():
        for i in b:
            loss[None] += b[i] ** 2

    return lambda: (k(), total()), loss, a


@right
def extrema():
    a, b, loss = made(8, ())

    @ti.kernel
    def begin():
        b[None] = -10.0

    @ti.kernel
    def largest():
        for i in a:
            ti.atomic_max(b[None], ti.sin(a[i] * 3))

    @ti.kernel
    def total():
        loss[None] += b[None] ** 2

    return lambda: (begin(), largest(), total()), loss, a


@right
def products():
    a, b, loss = made(5, ())

    @ti.kernel
    def begin():
        b[None] = 2.0

    @ti.kernel
    def multiply():
        for i in a:
            ti.atomic_mul(b[None], a[i] + 1.0)

    @ti.kernel
    def total():
        loss[None] += b[None]

    return lambda: (begin(), multiply(), total()), loss, a
