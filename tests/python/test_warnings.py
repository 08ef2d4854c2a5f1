"""Warnings about kernels: the message, the line, the caret."""

import re

import numpy as np

import aerogel as ti


def warnings_of(kernel, *args, capsys):
    """The message, the line and the marked text of each warning that compiling a kernel gives."""
    ti.set_logging_level("warn")
    kernel(*args)
    ti.set_logging_level("error")
    shown = capsys.readouterr().err
    found = re.findall(r"warning: (.*)\n +--> .*test_warnings.py:\d+:\d+\n +\|\n *\d+ \| (.*)\n +\| ( *\^+)", shown)
    assert len(found) == shown.count("warning:"), shown
    return [(message, line.strip(), line[marked.index("^") : len(marked)]) for message, line, marked in found]


def test_what_may_lose_precision_is_warned_of(cpu, capsys):
    x, y = ti.field(ti.i32, 3), ti.field(ti.f32, 3)

    @ti.kernel
    def k(a: ti.f32, b: ti.f64, c: ti.i64, u: ti.u32):
        i = 3
        i = a
        x[0] = 2.7
        y[0] = b
        i = u
        w = ti.i8(3)
        w = i
        v = ti.Vector([1, 2])
        v = ti.Vector([a, 2.5])
        for j in range(3):
            x[2] += a
        i *= 1.5

    said = "assignment may lose precision: "
    assert warnings_of(k, 1.5, 2.5, 3, 4, capsys=capsys) == [
        (said + "i32 <- f32", "i = a", "a"),
        (said + "i32 <- f32", "x[0] = 2.7", "2.7"),
        (said + "f32 <- f64", "y[0] = b", "b"),
        (said + "i32 <- u32", "i = u", "u"),
        (said + "i8 <- i32", "w = i", "i"),
        (said + "i32 <- f32", "v = ti.Vector([a, 2.5])", "ti.Vector([a, 2.5])"),
        ("augmented " + said + "i32 <- f32", "x[2] += a", "x[2] += a"),
        ("augmented " + said + "i32 <- f32", "i *= 1.5", "i *= 1.5"),
    ]


def test_what_loses_nothing_is_not_warned_of(cpu, capsys):
    x, y, d = ti.field(ti.i64, 3), ti.field(ti.f32, 3), ti.field(ti.f64, 3)

    @ti.kernel
    def k(a: ti.f32, i: ti.i32, c: ti.i64, u: ti.u32):
        x[0] = i
        x[1] += u
        y[0] = c
        y[1] = 2.7
        d[0] = a
        d[1] += 3
        z = u
        z = i
        n = i
        n = ti.cast(a, ti.i32)
        n += 1
        v = ti.Vector([1.5, 2.5])
        v = ti.Vector([i, 2])

    assert warnings_of(k, 1.5, 2, 3, 4, capsys=capsys) == []


def test_a_loss_in_an_unrolled_loop_or_a_function_is_told_once(cpu, capsys):
    x = ti.field(ti.i32, 8)

    @ti.func
    def put(i, value):
        x[i] = value

    @ti.kernel
    def k(a: ti.f32):
        for i in ti.static(range(4)):
            put(i, a)
        put(5, a)
        for i in range(a):
            pass

    assert warnings_of(k, 1.5, capsys=capsys) == [
        ("assignment may lose precision: i32 <- f32", "x[i] = value", "value"),
        ("a bound of this loop is truncated: i32 <- f32", "for i in range(a):", "range(a)"),
    ]


def test_atomic_functions_that_may_lose_precision_are_warned_of(cpu, capsys):
    x, y = ti.field(ti.i32, 3), ti.field(ti.f32, 3)

    @ti.kernel
    def k(a: ti.f32, c: ti.i64):
        ti.atomic_add(x[0], a)
        ti.atomic_sub(x[0], 2.7)
        y[0] = ti.atomic_max(x[1], c)
        ti.atomic_min(y[0], a)
        ti.atomic_add(y[1], 3)
        ti.atomic_or(x[2], 3)

    assert warnings_of(k, 1.5, 3, capsys=capsys) == [
        ("`atomic_add` may lose precision: i32 <- f32", *["ti.atomic_add(x[0], a)"] * 2),
        ("`atomic_sub` may lose precision: i32 <- f32", *["ti.atomic_sub(x[0], 2.7)"] * 2),
        ("`atomic_max` may lose precision: i32 <- i64", "y[0] = ti.atomic_max(x[1], c)", "ti.atomic_max(x[1], c)"),
    ]


def test_constants_that_do_not_fit_are_warned_of(cpu, capsys):
    x, u, h = ti.field(ti.i8, 4), ti.field(ti.u8, 4), ti.field(ti.f16, 4)
    v = ti.Vector.field(2, ti.i8, 4)
    limit, corner = 200, ti.Vector([3, 400])

    @ti.kernel
    def k():
        x[0] = 300
        x[1] = limit
        x[2] += 129
        u[0] = -1
        h[0] = 1e6
        v[0] = corner
        ti.atomic_add(u[1], 256)
        x[3] = -128
        x[3] += 127
        u[2] = 255
        h[1] = 0.1
        for i in ti.static(range(126, 129)):
            x[i % 4] = i

    said = "assignment may lose precision: "
    assert warnings_of(k, capsys=capsys) == [
        (said + "300 is out of the range of `i8`", "x[0] = 300", "300"),
        (said + "200 is out of the range of `i8`", "x[1] = limit", "limit"),
        ("augmented " + said + "129 is out of the range of `i8`", "x[2] += 129", "x[2] += 129"),
        (said + "-1 is out of the range of `u8`", "u[0] = -1", "-1"),
        (said + "1000000.0 is out of the range of `f16`", "h[0] = 1e6", "1e6"),
        (said + "400 is out of the range of `i8`", "v[0] = corner", "corner"),
        ("`atomic_add` may lose precision: 256 is out of the range of `u8`", *["ti.atomic_add(u[1], 256)"] * 2),
        (said + "128 is out of the range of `i8`", "x[i % 4] = i", "i"),
    ]
    assert [x[1], x[3], u[0], u[1], u[2]] == [limit - 256, 127, 255, 0, 255]


def test_dense_cells_are_neither_activated_nor_deactivated(cpu, capsys):
    """As in Taichi it does nothing; here it is said."""
    block = ti.root.pointer(ti.i, 4)
    inner = block.dense(ti.i, 4)
    x, y = ti.field(ti.i32), ti.field(ti.i32)
    inner.place(x)
    ti.root.dense(ti.i, 8).place(y)
    y.fill(7)

    @ti.kernel
    def k() -> ti.i32:
        ti.activate(inner, 5)
        ti.deactivate(y.parent(), 1)
        return ti.is_active(block, 1)

    ti.set_logging_level("warn")
    assert k() == 0
    ti.set_logging_level("error")
    assert y.to_numpy().tolist() == [7] * 8
    said = capsys.readouterr().err
    assert "`activate` does nothing: cells of a dense node are active" in said
    assert "`deactivate` does nothing" in said


def test_values_that_python_computes_once(cpu, capfd):
    """What gives something else each time, or is the user's, is a constant of the kernel: that is said."""
    import random
    import time

    def own():
        return 3

    @ti.kernel
    def k() -> ti.f64:
        return random.random() + time.time() + own() + ti.static(own()) + abs(-1) + np.sin(1.0)

    ti.init(arch=ti.cpu, log_level="warn")
    k()
    said = capfd.readouterr().err
    for name in ("Random.random", "time", "own"):
        assert said.count(f"{name}` is a Python function: it is called once") == 1, said
    assert said.count("called once") == 3, said


def test_returns_of_a_narrower_type_first(cpu, capfd):
    @ti.func
    def relu(a):
        if a < 0:
            return 0
        return a

    @ti.func
    def first(a):
        for i in range(3):
            if i > 1:
                return 1
        return a

    @ti.kernel
    def k(a: float) -> float:
        return relu(a)

    @ti.kernel
    def other(a: float) -> float:
        return first(a)

    ti.init(arch=ti.cpu, log_level="warn")
    assert k(2.75) == 2
    assert "the value of the second arm may lose precision: i32 <- f32" in capfd.readouterr().err
    assert other(2.75) == 1
    assert "`return` may lose precision: i32 <- f32" in capfd.readouterr().err
