"""Kernels that write an element more than once, or read it before and after: a right gradient, or an error of a race."""

import numpy as np
import pytest

import aerogel as ti

N = 6


def fields():
    x, y = (ti.field(ti.f64, shape=N, needs_grad=True) for _ in range(2))
    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    x.from_numpy(np.linspace(0.5, 1.3, N))
    y.from_numpy(np.linspace(1.2, 0.7, N))
    return x, y, loss


@ti.kernel
def in_order(x: ti.template(), y: ti.template(), loss: ti.template()):
    ti.loop_config(serialize=True)
    for i in range(1, N):
        x[i] = x[i] * x[i - 1] + y[i]


@ti.kernel
def in_two_loops(x: ti.template(), y: ti.template(), loss: ti.template()):
    for i in x:
        y[i] = x[i] * x[i]
    for i in x:
        x[i] = y[i] + 1
    for i in x:
        loss[None] += x[i] ** 3


@ti.kernel
def in_one_iteration(x: ti.template(), y: ti.template(), loss: ti.template()):
    for i in x:
        y[i] = x[i] * x[i]
        x[i] = ti.sin(x[i])
        loss[None] += x[i] * y[i]


@ti.kernel
def in_time(x: ti.template(), y: ti.template(), loss: ti.template()):
    ti.loop_config(serialize=True)
    for _ in range(5):
        for i in range(N):
            y[i] += 0.1 * ti.sin(x[i]) * x[(i + 1) % N]
        for i in range(N):
            x[i] = x[i] + 0.1 * y[i] * x[i]
        loss[None] += x[2] * y[3]


@ti.kernel
def in_one_turn(x: ti.template(), y: ti.template(), loss: ti.template()):
    for _ in range(1):
        t = 0
        while t < 20:
            i = t % N
            x[i] = ti.sin(x[i]) * y[(i + 2) % N]
            if x[i] > 0.4:
                y[i] *= x[i]
            t += 1
        loss[None] += x[1] * x[4]


@ti.kernel
def counted(x: ti.template(), y: ti.template(), loss: ti.template()):
    ti.loop_config(serialize=True)
    for i in range(N):
        old = ti.atomic_add(y[(i * i) % N], x[i] * x[i])
        last = ti.atomic_max(x[(i + 3) % N], old * x[i])
        y[i] = y[i] * old + ti.cos(last)
    for i in x:
        loss[None] += x[i] * y[i]


@ti.kernel
def backwards_in_order(x: ti.template(), y: ti.template(), loss: ti.template()):
    ti.loop_config(serialize=True)
    for i in range(N - 1):
        x[i] = x[i] * x[i + 1]
    for i in y:
        y[i] = y[i] * 2


@ti.kernel
def twice(x: ti.template(), y: ti.template(), loss: ti.template()):
    for i in range(1, N - 1):
        y[i] = ti.sin(x[i - 1])
        y[i] = x[i - 1] * x[i + 1]


@ti.kernel
def scaled(x: ti.template(), y: ti.template(), loss: ti.template()):
    for i in range(1, N - 1):
        y[i] = x[i - 1] * x[i + 1]
        y[i] *= 2.0


@ti.kernel
def added(x: ti.template(), y: ti.template(), loss: ti.template()):
    for i in range(1, N - 1):
        y[i] = x[i - 1] + x[i + 1] ** 2
        y[i] += x[i]


@ti.kernel
def in_a_branch(x: ti.template(), y: ti.template(), loss: ti.template()):
    for i in range(1, N - 1):
        y[i] = x[i - 1] * x[i + 1]
        if i % 2 == 0:
            y[i] = 0.0


@ti.kernel
def in_place(x: ti.template(), y: ti.template(), loss: ti.template()):
    for i in range(1, N - 1):
        y[i] = y[i] * 0.5 + x[i - 1] * x[i + 1]


@ti.kernel
def product_then_sum(x: ti.template(), y: ti.template(), loss: ti.template()):
    for i in x:
        ti.atomic_mul(y[i], x[i])
        ti.atomic_add(y[i], x[i])


@ti.kernel
def product_of_what_is_stored(x: ti.template(), y: ti.template(), loss: ti.template()):
    for i in x:
        y[i] = x[i]
        ti.atomic_mul(y[i], x[i])


@ti.kernel
def extremum_then_sum(x: ti.template(), y: ti.template(), loss: ti.template()):
    for i in x:
        ti.atomic_max(y[i], x[i])
        y[i] += x[i]


@ti.kernel
def extrema_of_both_kinds(x: ti.template(), y: ti.template(), loss: ti.template()):
    for i in x:
        ti.atomic_max(y[i], x[i])
    for i in x:
        ti.atomic_min(y[i], 1.05)


@ti.kernel
def clamped(x: ti.template(), y: ti.template(), loss: ti.template()):
    for i in x:
        ti.atomic_max(y[i], 0.95)
        loss[None] += x[i]


@ti.kernel
def products_with_zeros(x: ti.template(), y: ti.template(), loss: ti.template()):
    loss[None] = 0.5
    for i in x:
        if i % 2 == 0:
            ti.atomic_mul(loss[None], x[i])
        ti.atomic_mul(y[i // 3], x[i] - x[4 * (i % 2)])


@ti.kernel
def shared_extrema(x: ti.template(), y: ti.template(), loss: ti.template()):
    for i in x:
        ti.atomic_max(loss[None], x[i] * x[5 - i])
        ti.atomic_min(y[i // 2], x[i])


PROGRAMS = [
    in_order,
    in_two_loops,
    in_one_iteration,
    in_time,
    in_one_turn,
    counted,
    backwards_in_order,
    twice,
    scaled,
    added,
    in_a_branch,
    in_place,
    product_then_sum,
    product_of_what_is_stored,
    extremum_then_sum,
    extrema_of_both_kinds,
    clamped,
    products_with_zeros,
    shared_extrema,
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_element_written_more_than_once(arch, program):
    """The gradient is what differences say, and the backward pass leaves the fields as they were."""
    x, y, loss = fields()

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i] * x[i] * y[i] + y[i] * y[i]

    def run():
        program(x, y, loss)
        total()

    def of(x0, y0):
        x.from_numpy(x0)
        y.from_numpy(y0)
        loss[None] = 0
        run()
        return loss[None]

    start = x.to_numpy(), y.to_numpy()
    of(*start)
    end = x.to_numpy(), y.to_numpy()
    x.from_numpy(start[0])
    y.from_numpy(start[1])
    loss[None] = 0
    with ti.ad.Tape(loss):
        run()
    assert (x.to_numpy() == end[0]).all()
    assert (y.to_numpy() == end[1]).all()
    for k, grad in enumerate((x.grad.to_numpy(), y.grad.to_numpy())):
        for i in range(N):
            moved = []
            for by in (1e-6, -1e-6):
                at = [a.copy() for a in start]
                at[k][i] += by
                moved.append(of(*at))
            assert grad[i] == pytest.approx((moved[0] - moved[1]) / 2e-6, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("value", [0.0, 2.0])
def test_ties_of_extrema(arch, value):
    """Of equal ones the last iteration has the gradient, whatever thread it is on; else what was there."""
    n = 1000
    x = ti.field(ti.f64, shape=n, needs_grad=True)
    most = ti.field(ti.f64, shape=(), needs_grad=True)
    each = ti.field(ti.f64, shape=4, needs_grad=True)
    x.fill(1.0)
    most[None] = value
    each.fill(value)

    @ti.kernel
    def reduce():
        for i in x:
            ti.atomic_max(most[None], x[i])

    @ti.kernel
    def reduce_each():
        for i in x:
            ti.atomic_max(each[i % 4], x[i])
        for i in range(4):
            loss[None] += 10 * each[i]

    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    reduce()
    most.grad[None] = 1.0
    reduce.grad()
    expected = np.zeros(n)
    if value < 1:
        expected[-1] = 1.0
    np.testing.assert_array_equal(x.grad.to_numpy(), expected)
    assert most.grad[None] == (0.0 if value < 1 else 1.0)
    with ti.ad.Tape(loss):
        reduce_each()
    expected = np.zeros(n)
    if value < 1:
        expected[-4:] = 10.0
    np.testing.assert_array_equal(x.grad.to_numpy(), expected)


@pytest.mark.parametrize("value", [1.0, 0.0])
def test_tangents_of_shared_extrema(arch, value):
    x = ti.field(ti.f64, shape=N, needs_dual=True)
    y = ti.field(ti.f64, shape=(), needs_dual=True)
    z = ti.field(ti.f64, shape=(), needs_dual=True)
    x.from_numpy(np.array([0.1, 0.7, 0.3, 0.7, 0.2, value]))
    y[None] = 0.0
    z[None] = 2.0

    @ti.kernel
    def reduce():
        for i in x:
            ti.atomic_max(y[None], x[i])
        for i in x:
            ti.atomic_mul(z[None], x[i])

    with ti.ad.FwdMode(loss=y, param=x, seed=[1, 2, 3, 4, 5, 6]):
        reduce()
    assert y.dual[None] == (6.0 if value else 4.0)
    others = 2 * 0.1 * 0.7 * 0.3 * 0.7 * 0.2
    rest = 0 if value == 0 else others * (1 / 0.1 + 2 / 0.7 + 3 / 0.3 + 4 / 0.7 + 5 / 0.2)
    assert z.dual[None] == pytest.approx(6 * others + rest)


def test_loops_that_draw_and_overwrite(arch):
    """Loops that must run in order backwards draw what they drew when they were parallel."""
    x, y, loss = fields()
    u, v = (ti.field(ti.f64, shape=N) for _ in range(2))

    @ti.kernel
    def drawn():
        for i in range(N):
            a = ti.random(ti.f64)
            u[i] = a
            y[i] = x[i] * x[i] * a
        for i in range(1, N):
            b = ti.random(ti.f64) + ti.random(ti.f64)
            v[i] = b
            x[i] = ti.sin(y[i]) * b
        for i in range(N):
            loss[None] += x[i] ** 2

    at = x.to_numpy()
    with ti.ad.Tape(loss):
        drawn()
    inner = at**2 * u.to_numpy()
    expected = 2 * np.sin(inner) * np.cos(inner) * v.to_numpy() ** 2 * 2 * at * u.to_numpy()
    expected[0] = 2 * at[0]
    np.testing.assert_allclose(x.grad.to_numpy(), expected, rtol=1e-12)


@ti.kernel
def raced(x: ti.template()):
    for i in range(1, N):
        x[i] = ti.sin(x[i - 1])


def test_what_iterations_race_for(arch):
    """Which comes first is not known."""
    x, _, loss = fields()
    with pytest.raises(ti.AerogelCompilationError, match="other iterations"), ti.ad.Tape(loss):
        raced(x)
    assert not x.grad.to_numpy().any()


def test_what_is_replayed_needs_a_tape(arch):
    """Without one, the memory that the kernel found is gone."""
    x, y, loss = fields()
    in_time(x, y, loss)
    with pytest.raises(ti.AerogelCompilationError, match=r"ti\.ad\.Tape"):
        in_time.grad(x, y, loss)


@pytest.mark.parametrize("arch", ["interp", "cpu"])
def test_what_is_replayed_takes_memory(arch):
    """A log of what is overwritten grows up to `ad_memory`."""
    ti.init(arch=arch, ad_memory=1 << 16, log_level="error")
    x = ti.field(ti.f64, shape=N, needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    x.fill(0.5)

    @ti.kernel
    def steps(n: ti.i32):
        ti.loop_config(serialize=True)
        for t in range(n):
            x[t % N] = ti.sin(x[t % N]) + 0.5 * x[(t + 1) % N]
        loss[None] += x[0]

    with ti.ad.Tape(loss):
        steps(100)
    assert x.grad.to_numpy().any()
    x.fill(0.5)
    with pytest.raises(MemoryError), ti.ad.Tape(loss):
        steps(10_000)


def check(leaves, loss, run):
    """The gradient by each leaf is what differences say, whatever the leaves hold now."""
    starts = [leaf.to_numpy() for leaf in leaves]

    def of(arrays):
        for leaf, array in zip(leaves, arrays, strict=True):
            leaf.from_numpy(array)
        loss[None] = 0
        run()
        return loss[None]

    with ti.ad.Tape(loss):
        run()
    grads = [leaf.grad.to_numpy() for leaf in leaves]
    for k, grad in enumerate(grads):
        for at in np.ndindex(grad.shape):
            moved = []
            for by in (1e-6, -1e-6):
                arrays = [start.copy() for start in starts]
                arrays[k][at] += by
                moved.append(of(arrays))
            assert grad[at] == pytest.approx((moved[0] - moved[1]) / 2e-6, rel=1e-6, abs=1e-7), (k, at)


def test_steps_of_vectors(arch):
    """Components of vectors, and elements by two indices, have logs of their own."""
    x = ti.Vector.field(2, ti.f64, shape=(2, 3), needs_grad=True)
    m = ti.Matrix.field(2, 2, ti.f64, shape=2, needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    x.from_numpy(np.linspace(0.2, 1.1, 12).reshape(2, 3, 2))
    m.from_numpy(np.linspace(0.9, 0.3, 8).reshape(2, 2, 2))

    @ti.kernel
    def steps():
        for _ in range(1):
            for t in range(4):
                for i, j in ti.ndrange(2, 3):
                    x[i, j] = m[i] @ x[1 - i, j] * x[i, j].yx
                    x[i, (j + t) % 3].y += ti.sin(x[i, j].x)
                m[t % 2] = m[1 - t % 2] * x[0, t % 3].x
        for i, j in x:
            loss[None] += x[i, j].norm_sqr()

    check([x, m], loss, steps)


def test_steps_of_arrays(arch):
    x, v = (ti.ndarray(ti.f64, shape=N, needs_grad=True) for _ in range(2))
    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    x.from_numpy(np.linspace(0.2, 0.9, N))
    v.from_numpy(np.linspace(0.7, 0.4, N))

    @ti.kernel
    def steps(x: ti.types.ndarray(), v: ti.types.ndarray()):
        ti.loop_config(serialize=True)
        for t in range(12):
            i = t % N
            v[i] -= 0.3 * ti.sin(x[i]) * x[(i + 1) % N]
            x[i] += 0.3 * v[i] * x[i]
        for i in range(N):
            loss[None] += x[i] * v[i]

    check([x, v], loss, lambda: steps(x, v))


def test_steps_of_sparse_fields(arch):
    """Cells that the backward pass writes again are those that the kernel wrote; no other becomes active."""
    x = ti.field(ti.f64)
    y = ti.field(ti.f64)
    blocks = ti.root.pointer(ti.i, 4)
    blocks.dense(ti.i, 4).place(x, y)
    ti.root.lazy_grad()
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def steps():
        for i in x:
            y[i] = x[i] * x[i]
            x[i] = ti.sin(y[i]) * x[i]
            y[i] *= x[i]
        for i in x:
            loss[None] += x[i] * y[i]

    @ti.kernel
    def count() -> int:
        n = 0
        for _ in x:
            n += 1
        return n

    start = np.zeros(16)
    start[4:8] = [0.3, 0.5, 0.7, 0.9]
    for i in range(4, 8):
        x[i] = start[i]
    with ti.ad.Tape(loss):
        steps()
    assert count() == 4

    def of(a):
        b = np.sin(a * a) * a
        return (b * a * a * b).sum()

    for i in range(4, 8):
        moved = [of(start + by * (np.arange(16) == i)) for by in (1e-6, -1e-6)]
        assert x.grad[i] == pytest.approx((moved[0] - moved[1]) / 2e-6, rel=1e-6)


def test_a_long_gradient(arch):
    """What is written again in nested loops twice makes so many loops that only few passes run."""
    x, _, loss = fields()

    @ti.func
    def change(i, by):
        x[i] = x[i] * by
        for t in range(4):
            x[i] = ti.sin(x[i]) + 0.4
            if x[i] > 1.1:
                break
            if t == 2:
                continue
            x[i] *= x[(i + 1) % N]
        return x[i] * by

    @ti.kernel
    def change_all():
        for _ in range(1):
            a = ti.f64(1.0)
            for i in range(N):
                a = change(i, a)
                if a < 0.1:
                    a = change((i + 1) % N, a + 1.0)
            loss[None] += a
            for i in range(N):
                loss[None] += x[i] * (i + 1)

    start = x.to_numpy()

    def of(values):
        x.from_numpy(values)
        loss[None] = 0
        change_all()
        return loss[None]

    moved = [[of(start + by * (np.arange(N) == i)) for by in (1e-6, -1e-6)] for i in range(N)]
    x.from_numpy(start)
    loss[None] = 0
    with ti.ad.Tape(loss):
        change_all()
    assert x.grad.to_numpy() == pytest.approx([(a - b) / 2e-6 for a, b in moved], rel=1e-6, abs=1e-6)


class Scribbles:
    """Two fields that kernels and Python overwrite in parts, and the same in NumPy."""

    shape = (4, 3)

    def __init__(self):
        self.start_q, self.q = (ti.Vector.field(2, ti.f64, self.shape, needs_grad=True) for _ in range(2))
        self.start_r, self.r = (ti.field(ti.f64, self.shape, needs_grad=True) for _ in range(2))
        self.out = ti.field(ti.f64, 2, needs_grad=True)
        q, r, out, start_q, start_r = self.q, self.r, self.out, self.start_q, self.start_r

        @ti.kernel
        def begin():
            for i, j in r:
                q[i, j], r[i, j] = start_q[i, j], start_r[i, j]

        @ti.kernel
        def twist(a: int, b: int, c: int, d: int):
            for i, j in ti.ndrange((a, b), (c, d)):
                v = q[i, j]
                q[i, j] = ti.Vector([v.x * v.y, v.x + 0.5 * v.y**2])

        @ti.kernel
        def grow(a: int, b: int, c: int, d: int):
            for i, j in ti.ndrange((a, b), (c, d)):
                r[i, j] += ti.sin(q[i, j].x) * r[i, j]

        @ti.kernel
        def second(a: int, b: int, c: int, d: int):
            for i, j in ti.ndrange((a, b), (c, d)):
                q[i, j].y = r[i, j] * q[i, j].x

        @ti.kernel
        def scatter(a: int, b: int, c: int, d: int):
            for i, j in ti.ndrange((a, b), (c, d)):
                r[3 - i, j] += 0.25 * q[i, j].y

        @ti.kernel
        def read(to: int):
            for i, j in r:
                out[to] += r[i, j] ** 2 * q[i, j].x

        self.begin, self.read = begin, read
        self.kernels = {"twist": twist, "grow": grow, "second": second, "scatter": scatter}

    def run(self, program):
        self.begin()
        for name, *given in program:
            if name == "poke":
                self.q[given[0], given[1]] = [0.5, -0.25]
            elif name == "part":
                self.q[given[0], given[1]][1] = 0.75
            elif name == "fill":
                self.r.fill(0.3)
            elif name == "read":
                self.read(given[0])
            else:
                self.kernels[name](*given)

    @staticmethod
    def in_numpy(program, q, r):
        q, r, out = q.copy(), r.copy(), np.zeros(2, complex)
        for name, *given in program:
            at = (slice(given[0], given[1]), slice(given[2], given[3])) if len(given) == 4 else None
            if name == "twist":
                x, y = q[at][..., 0].copy(), q[at][..., 1].copy()
                q[at] = np.stack([x * y, x + 0.5 * y**2], -1)
            elif name == "grow":
                r[at] += np.sin(q[at][..., 0]) * r[at]
            elif name == "second":
                q[at][..., 1] = r[at] * q[at][..., 0]
            elif name == "scatter":
                a, b, c, d = given
                r[4 - b : 4 - a, c:d] += 0.25 * q[a:b, c:d, 1][::-1]
            elif name == "poke":
                q[given[0], given[1]] = [0.5, -0.25]
            elif name == "part":
                q[given[0], given[1], 1] = 0.75
            elif name == "fill":
                r[:] = 0.3
            else:
                out[given[0]] += (r**2 * q[..., 0]).sum()
        return out


def scribbling(rng):
    """A random program for them."""
    program = []
    for _ in range(rng.integers(4, 14)):
        name = rng.choice(
            ["twist", "grow", "second", "scatter", "poke", "part", "fill", "read"], p=[0.2] * 4 + [0.05] * 4
        )
        if name in ("poke", "part"):
            program.append((name, int(rng.integers(4)), int(rng.integers(3))))
        elif name == "fill":
            program.append((name,))
        elif name == "read":
            program.append((name, int(rng.integers(2))))
        else:
            a, c = int(rng.integers(4)), int(rng.integers(3))
            program.append((name, a, int(rng.integers(a, 4)) + 1, c, int(rng.integers(c, 3)) + 1))
    return [*program, ("read", 0), ("twist", 0, 4, 0, 3), ("read", 1)]


def test_parts_overwritten_at_random(arch):
    s = Scribbles()
    rng = np.random.default_rng(3)
    for _ in range(40):
        program = scribbling(rng)
        q, r = rng.uniform(-0.9, 0.9, (*s.shape, 2)), rng.uniform(-0.9, 0.9, s.shape)
        s.start_q.from_numpy(q)
        s.start_r.from_numpy(r)
        s.out.fill(0)
        s.run(program)
        after = [f.to_numpy() for f in (s.q, s.r, s.out)]
        s.out.fill(0)
        got = ti.ad.vjp(lambda: s.run(program), s.out, [s.start_q, s.start_r], seeds=[[1, 0], [0, 1], [2, -1]])
        for held, field in zip(after, (s.q, s.r, s.out)):
            assert held.tobytes() == field.to_numpy().tobytes(), program
        each = []
        for flat in np.ndindex(*s.shape, 3):
            dq, dr = q.astype(complex), r.astype(complex)
            if flat[2] < 2:
                dq[flat] += 1e-30j
            else:
                dr[flat[:2]] += 1e-30j
            each.append(s.in_numpy(program, dq, dr).imag * 1e30)
        expected = np.array(each).reshape(*s.shape, 3, 2) @ np.array([[1, 0, 2], [0, 1, -1]])
        of_q, of_r = (np.moveaxis(np.array(list(found)), 0, -1) for found in got)
        np.testing.assert_allclose(of_q, expected[..., :2, :], rtol=1e-9, atol=1e-12, err_msg=str(program))
        np.testing.assert_allclose(of_r, expected[..., 2, :], rtol=1e-9, atol=1e-12, err_msg=str(program))


def gradients_of_a_launch(kernel, given, out, seed):
    """Launches a kernel, then its gradient without a tape."""
    kernel()
    out.grad.from_numpy(np.full(out.to_numpy().shape, seed))
    kernel.grad()
    return [x.grad.to_numpy() for x in given]


def test_a_quotient_by_a_sum_that_one_kernel_makes(arch):
    """The gradient finds `c` and `m` as the kernel leaves them: `c / m` has a gradient by its result."""
    p, w = (ti.field(ti.f64, N, needs_grad=True) for _ in range(2))
    m, c = (ti.field(ti.f64, (), needs_grad=True) for _ in range(2))

    @ti.kernel
    def mean():
        for _ in range(1):
            m[None] = 0.0
            for i in range(N):
                m[None] = m[None] + w[i]
                c[None] = c[None] + w[i] * p[i]
            c[None] = c[None] / m[None]

    places, weights = np.linspace(1, 4, N), np.linspace(1, 2.5, N)
    p.from_numpy(places), w.from_numpy(weights)
    dp, dw = gradients_of_a_launch(mean, [p, w], c, 1.0)
    total = weights.sum()
    np.testing.assert_allclose(dp, weights / total)
    np.testing.assert_allclose(dw, (places * total - (places * weights).sum()) / total**2, atol=1e-12)


def test_results_that_are_read_where_they_are_stored(arch):
    x, s = ti.Vector.field(2, ti.f64, N, needs_grad=True), ti.field(ti.f64, N, needs_grad=True)

    @ti.kernel
    def quotients():
        for i in x:
            x[i] = x[i] / s[i]

    @ti.kernel
    def powers():
        for i in s:
            s[i] = ti.exp(s[i])

    values, by = np.linspace(1, 3, 2 * N).reshape(N, 2), np.linspace(0.5, 2, N)
    x.from_numpy(values), s.from_numpy(by)
    dx, ds = gradients_of_a_launch(quotients, [x, s], x, 2.0)
    np.testing.assert_allclose(dx, np.repeat(2.0 / by[:, None], 2, 1))
    np.testing.assert_allclose(ds, (-2.0 * values / by[:, None] ** 2).sum(1))
    s.grad.fill(0)
    (ds,) = gradients_of_a_launch(powers, [s], s, 1.0)
    np.testing.assert_allclose(ds, np.exp(by))


def test_results_that_are_overwritten_are_not_read_back(arch):
    c, m = (ti.field(ti.f64, (), needs_grad=True) for _ in range(2))
    x, s = (ti.field(ti.f64, N, needs_grad=True) for _ in range(2))

    @ti.kernel
    def in_turns():
        for _ in range(1):
            for i in range(3):
                c[None] = c[None] / m[None]

    @ti.kernel
    def later():
        for i in x:
            x[i] = x[i] / s[i]
        for i in x:
            x[i] = x[i] * 2

    @ti.kernel
    def at_another_element(k: ti.i32):
        for i in range(N - 1):
            x[i] = x[i] / s[i]
        x[k] = 3.0

    for kernel, arguments in ((in_turns, ()), (later, ()), (at_another_element, (2,))):
        c.fill(1), m.fill(2), x.fill(1), s.fill(2)
        kernel(*arguments)
        with pytest.raises(ti.AerogelCompilationError, match="E0603"):
            kernel.grad(*arguments)
