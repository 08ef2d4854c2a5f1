"""Kernels that programs of tensors call: statements among others, against NumPy."""

import threading

import aerogel as ti
import numpy as np
import pytest
from aerogel.tensor import programs as p


@pytest.fixture(autouse=True)
def _start():
    ti.init(arch=ti.cpu, log_level="error")


@ti.kernel
def add_to(a: ti.types.ndarray(), b: ti.types.ndarray(), factor: float):
    for i, j in a:
        a[i, j] += factor * b[i, j]


def floats(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def close(got, want):
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-5)


def test_a_kernel_is_a_statement_among_others():
    @p.program
    def mixed():
        x = p.input([-1, -1], ti.f32)
        y = ti.tensor.exp(x)
        z = y * 2
        add_to(y, x, 0.5)
        return y, z, y.sum(axis=0) - z.sum(axis=0), x

    for shape in [(3, 4), (1, 7), (0, 3)]:
        x = floats(*shape)
        y, z, sums, same = mixed(x)
        close(z, 2 * np.exp(x))
        close(y, np.exp(x) + 0.5 * x)
        close(sums, (np.exp(x) + 0.5 * x - 2 * np.exp(x)).sum(axis=0))
        close(same, x)
    assert "run r0() = " in mixed.text
    assert "kernel `add_to`" in mixed.explain()


def test_what_others_hold_is_copied():
    @p.program
    def change():
        x = p.input([-1, -1], ti.f32)
        before = x + 0
        add_to(x, before, 1.0)
        return x, before

    given = ti.tensor.asarray(floats(3, 3))
    x, before = change(given)
    close(x, 2 * given.numpy())
    close(before, given.numpy())
    close(given, floats(3, 3))


def test_arguments_that_are_one_tensor_are_one_memory():
    @p.program
    def double():
        x = p.input([-1, -1], ti.f32) * 1
        add_to(x, x, 1.0)
        add_to(b=x, a=x, factor=1.0)
        return x

    x = floats(2, 3)
    close(double(x), 4 * x)


def test_numbers_of_the_program_are_arguments_and_returned():
    @ti.kernel
    def weighed(a: ti.types.ndarray(), n: int, w: ti.f64) -> ti.f64:
        s = ti.cast(0, ti.f64)
        for i in range(n):
            s += a[i] * w
        return s

    @p.program
    def total():
        x, w = p.input([-1], ti.f64), p.input([], ti.f64)
        s = weighed(x, x.shape[0], w * 2)
        return s + 1, x * s

    x = np.arange(5.0)
    s, scaled = total(x, np.float64(3))
    assert s.item() == 61
    close(scaled, 60 * x)


def test_loops_of_the_host_call_kernels():
    @ti.kernel
    def step(a: ti.types.ndarray(), k: int):
        for i in a:
            a[i] = a[i] * 2 + k

    @p.program
    def steps():
        x, n = p.input([-1], ti.i32), p.input([], ti.i32)
        y = x * 1
        with p.loop(n) as k:
            step(y, k)
            with p.if_cond(k == 2):
                step(y, 100)
            y.val = y + x
        return y

    for n in (0, 1, 5):
        x = np.arange(4, dtype=np.int32)
        want = x.copy()
        for k in range(n):
            want = want * 2 + k
            want = want * 2 + 100 if k == 2 else want
            want = want + x
        assert (steps(x, np.int32(n)).numpy() == want).all()


def test_fields_between_kernels_and_statements():
    x, n_calls = ti.field(ti.f32), ti.field(ti.i32, shape=())
    ti.root.pointer(ti.ij, 4).bitmasked(ti.ij, 4).place(x)

    @ti.kernel
    def begin(field: ti.template(), values: ti.types.ndarray()):
        n_calls[None] += 1
        for i, j in values:
            if values[i, j] > 0:
                field[i, j] = values[i, j]

    @p.program
    def rounds():
        values = p.input([-1, -1], ti.f32)
        begin(x, values)
        i, j = p.indices(x)
        first = x[i, j].sum()
        begin(x, values + 1)
        i, j = p.indices(x)
        x[i, j] = x[i, j] * 10
        return first, x[i, j].sum(), n_calls[None]

    values = np.zeros((16, 16), np.float32)
    values[3, 4], values[5, 6], values[7, 7] = 2, 3, -4
    first, second, n = (r.item() for r in rounds(values))
    held = np.where(values + 1 > 0, values + 1, values)
    assert first == 5
    assert n == 2
    assert second == pytest.approx(10 * np.where(values + 1 > 0, held, 0).sum())
    assert (x.to_numpy() == np.where(values + 1 > 0, 10 * held, 0)).all()

    def stale():
        i, j = p.indices(x)
        begin(x, p.input([-1, -1], ti.f32))
        return x[i, j]

    with pytest.raises(ValueError, match="since its indices were read"):
        p.program(stale).compile()


def test_vectors_classes_and_what_is_captured():
    outside = ti.ndarray(ti.f32, shape=3)

    @ti.data_oriented
    class Body:
        def __init__(self):
            self.gravity = 2.0

        @ti.kernel
        def fall(self, v: ti.types.ndarray(ti.math.vec3, ndim=1), seen: ti.types.ndarray()):
            for i in v:
                v[i] -= ti.math.vec3(0, self.gravity, 0)
            for k in range(3):
                seen[k] += v[0][k]

    body = Body()

    @p.program
    def falls():
        v = p.input([-1, 3], ti.f32) + 0
        body.fall(v, outside)
        return v

    v = floats(5, 3)
    close(falls(v), v - np.array([0, 2, 0], np.float32))
    falls(v)
    np.testing.assert_allclose(outside.to_numpy(), 2 * (v[0] - np.array([0, 2, 0])), rtol=1e-5)


def test_values_at_cells_are_dense_arrays():
    x, seen = ti.field(ti.i32), ti.field(ti.i32, shape=())
    ti.root.bitmasked(ti.ij, 8).place(x)
    x[2, 3], x[4, 4] = 5, 6

    @ti.kernel
    def look(a: ti.types.ndarray()):
        for i, j in a:
            seen[None] += a[i, j]

    @p.program
    def told():
        i, j = p.indices(x)
        look(x[i, j] + 1)

    told()
    assert seen[None] == 13


def refused(function, error, match):
    with pytest.raises(error, match=match):
        p.program(function).compile()


def test_what_is_refused():
    @ti.kernel
    def known(n: ti.template()):
        for _ in range(n):
            pass

    refused(lambda: add_to(p.input([-1], ti.f32), p.input([-1, -1], ti.f32), 1.0), Exception, "a|axes|index")
    refused(
        lambda: add_to(p.input([-1, -1], ti.f32), p.input([-1, -1], ti.f32), p.input([-1], ti.f32)),
        TypeError,
        "argument `factor` of kernel `add_to` is one number, not a tensor with 1 axes",
    )
    refused(lambda: known(p.input([], ti.i32)), TypeError, "argument `n` of kernel `known` must be known")

    def masked():
        x = p.input([4, 4], ti.f32)
        with p.if_cond(x > 0):
            add_to(x, x, 1.0)

    refused(masked, RuntimeError, "runs for some points only")
    refused(lambda: add_to(p.input([-1, -1], ti.f32)), Exception, "factor|missing|argument")


def test_a_kernel_that_fails_says_so():
    ti.init(arch=ti.cpu, log_level="error", debug=True)

    @ti.kernel
    def far(a: ti.types.ndarray(), at: int):
        a[at] = 1

    @p.program
    def store():
        x, at = p.input([-1], ti.f32) * 1, p.input([], ti.i32)
        far(x, at)
        return x

    assert store(np.zeros(3, np.float32), np.int32(1)).tolist() == [0, 1, 0]
    with pytest.raises(Exception, match="far|range|bounds"):
        store(np.zeros(3, np.float32), np.int32(7))
    assert store(np.zeros(3, np.float32), np.int32(2)).tolist() == [0, 0, 1]


def test_kernels_outside_of_programs_are_called_at_once():
    x = ti.ndarray(ti.f32, shape=(2, 2))
    y = ti.ndarray(ti.f32, shape=(2, 2))
    y.fill(2)
    add_to(x, y, 3.0)
    assert (x.to_numpy() == 6).all()


# What kernels return.


@ti.kernel
def turned(a: ti.types.ndarray(ti.f32, 1), angle: float) -> ti.math.vec2:
    return ti.Vector([a[0] * ti.cos(angle), a[0] * ti.sin(angle)])


@ti.kernel
def squares(a: ti.types.ndarray(ti.f32, 1)) -> ti.types.matrix(2, 3, ti.f64):
    return ti.Matrix([[a[0], a[1], 3.0], [4.0, 5.0, a[0] * a[1]]])


@ti.kernel
def several(a: ti.types.ndarray(ti.f32, 1)) -> (int, ti.math.vec3, float):
    return a.shape[0], ti.Vector([a[0], a[1], 7.0]), 0.5


def test_vectors_and_matrices_that_kernels_return():
    @p.program
    def program():
        x = p.input([-1], ti.f32)
        total = p.buffer([2])
        with p.loop(3) as k:
            total.val += turned(x, k * 0.5)
        n, v, half = several(x)
        return total, squares(x), squares(x).sum(axis=0), n * 2, v * half, v[None] + x[:, None]

    for x in (np.array([2.0, 3.0, 5.0], np.float32), np.array([1.0, -1.0], np.float32)):
        angles = np.arange(3) * 0.5
        m = np.array([[x[0], x[1], 3], [4, 5, x[0] * x[1]]])
        v = np.array([x[0], x[1], 7.0])
        total = x[0] * np.array([np.cos(angles).sum(), np.sin(angles).sum()])
        for got, want in zip(program(x), [total, m, m.sum(0), 2 * len(x), v / 2, v[None] + x[:, None]]):
            close(got, want)


def test_structs_that_kernels_return():
    pair = ti.types.struct(a=ti.f32, b=ti.f32)

    @ti.kernel
    def makes() -> pair:
        return pair(a=1.0, b=2.0)

    with pytest.raises(
        TypeError, match="^kernel `makes` returns a struct: a program of tensors takes numbers, vectors and matrices$"
    ):
        p.program(lambda: makes())()


# Runs at the same time.


def test_what_a_kernel_raises_is_that_of_its_run():
    @ti.kernel
    def is_small(a: ti.types.ndarray(ti.i32, 1), n: int):
        assert a[0] < 5, f"{a[0]} is not small"
        a[0] += n

    ti.init(arch=ti.cpu, log_level="error", debug=True)

    @p.program
    def program():
        x = p.input([1], ti.i32) * 1
        with p.loop(20):
            is_small(x, 0)
        return x

    program(np.array([0], np.int32))
    wrong = []

    def runs(k):
        for turn in range(25):
            n = (k + turn) % 10
            try:
                if program(np.array([n], np.int32)).item() != n or n >= 5:
                    wrong.append(n)
            except AssertionError as e:
                if n < 5 or f"{n} is not small" not in str(e):
                    wrong.append((n, str(e)))

    threads = [threading.Thread(target=runs, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
