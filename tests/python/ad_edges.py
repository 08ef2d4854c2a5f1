"""Programs at the edge of what has a gradient: aliases, odd types, odd control flow, state that goes away.

Each makes its fields and gives what is run, the loss, and the inputs by which is derived.
"""

import numpy as np

import aerogel as ti

#: Each program, and how it ends: nothing for a right gradient, or what the error says.
PROGRAMS = {}


def right(fn):
    PROGRAMS[fn.__name__] = (fn, None)
    return fn


def error(message):
    def add(fn):
        PROGRAMS[fn.__name__] = (fn, message)
        return fn

    return add


def either(message):
    """Right, or an error that says this."""

    def add(fn):
        PROGRAMS[fn.__name__] = (fn, ("", message))
        return fn

    return add


def made(*shapes, dtype=ti.f64, **kwargs):
    """Fields with numbers in them, and a loss."""
    fields = []
    for k, shape in enumerate(shapes):
        field = ti.field(dtype, shape=shape, name="abcdef"[k], needs_grad=True, **kwargs)
        n = int(np.prod(shape, dtype=int))
        field.from_numpy((0.4 + 0.37 * np.sin(np.arange(n) * (k + 1.3))).reshape(shape).astype(field.to_numpy().dtype))
        fields.append(field)
    return (*fields, ti.field(dtype, shape=(), name="loss", needs_grad=True))


# What is passed and how.


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


# Types.


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


# Shapes.


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


# Memory that is used more than once.


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


# Python in between.


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


# Layouts.


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


# What has no gradient.


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


# More of the language.


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
