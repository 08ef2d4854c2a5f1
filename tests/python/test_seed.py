"""The programs of the slides from which the design grew, and what the compiler makes of them."""

import math

import numpy as np
import pytest

import aerogel as ti


def final(kernel):
    """The IR that the code generator gets, without the numbers of repeated passes."""
    stages = kernel.inspect()["stages"]
    return stages[list(stages)[-1]]


def stage(kernel, name):
    return kernel.inspect()["stages"][name]


def test_madhava_series_is_one_constant(cpu):
    @ti.kernel
    def calc_pi() -> ti.f32:
        s = 0.0
        c = 1.0
        for i in ti.static(range(10)):
            s += c / (i * 2 + 1)
            c *= -1 / 3
        return s * ti.sqrt(12.0)

    assert calc_pi() == pytest.approx(math.pi, abs=1e-5)
    lines = [line.strip() for line in final(calc_pi).splitlines()]
    work = [line for line in lines if line and not line.startswith(("kernel", "task", "}", "yield", "{"))]
    assert work == ["v0: f32 = const 3.1415904", "return [v0]"]


def test_a_sum_becomes_three_tasks(arch, capfd):
    @ti.kernel
    def bar():
        a = 0
        for i in range(10):
            a += i
        print(a)

    bar()
    assert capfd.readouterr().out == "45\n"
    if arch == "cpu":
        offloaded = stage(bar, "offload")
        assert [line.split()[1] for line in offloaded.splitlines() if "task" in line] == ["serial", "range", "serial"]
        loop = final(bar).split("each")[1].split("}")[0]
        assert "atomic" not in loop and "atomic_add" in final(bar)


def test_without_thread_local_storage_the_atomic_stays():
    ti.init(arch=ti.cpu, make_thread_local=False, log_level="error")

    @ti.kernel
    def total(n: ti.i32) -> ti.i32:
        a = 0
        for i in range(n):
            a += i
        return a

    assert total(1000) == 499500
    assert "atomic_add" in final(total).split("each")[1].split("}")[0]
    ti.reset()


def test_only_even_numbers_are_printed(arch, capfd):
    @ti.kernel
    def foo():
        for _ in range(1):
            for i in range(10):
                if i % 2 == 0:
                    print(i)

    foo()
    ti.sync()
    assert capfd.readouterr().out == "0\n2\n4\n6\n8\n"


def test_julia_set(arch):
    n = 8
    pixels = ti.field(dtype=float, shape=(n * 2, n))

    @ti.func
    def complex_sqr(z):
        return ti.Vector([z[0] ** 2 - z[1] ** 2, z[1] * z[0] * 2])

    @ti.kernel
    def paint(t: float):
        for i, j in pixels:
            c = ti.Vector([-0.8, ti.cos(t) * 0.2])
            z = ti.Vector([i / n - 1, j / n - 0.5]) * 2
            iterations = 0
            while z.norm() < 20 and iterations < 50:
                z = complex_sqr(z) + c
                iterations += 1
            pixels[i, j] = 1 - iterations * 0.02

    paint(0.03)
    found = pixels.to_numpy()
    for i in range(2 * n):
        for j in range(n):
            z, c, k = complex(i / n - 1, j / n - 0.5) * 2, complex(-0.8, math.cos(0.03) * 0.2), 0
            while abs(z) < 20 and k < 50:
                z, k = z * z + c, k + 1
            # Points near the set's edge may leave it one step earlier or later.
            assert abs(found[i, j] - (1 - 0.02 * k)) < 0.05


@pytest.mark.parametrize("layout", ["flat", "blocked", "columns"])
def test_laplace_over_layouts(arch, layout, rng):
    x, y = ti.field(ti.f32), ti.field(ti.f32)
    if layout == "flat":
        ti.root.dense(ti.ij, 16).place(x, y)
    elif layout == "blocked":
        ti.root.dense(ti.ij, 4).dense(ti.ij, 4).place(x)
        ti.root.dense(ti.ij, 2).dense(ti.ij, 8).place(y)
    else:
        ti.root.dense(ti.j, 16).dense(ti.i, 16).place(x)
        ti.root.dense(ti.i, 16).dense(ti.j, 16).place(y)

    @ti.kernel
    def laplace():
        for i, j in x:
            if 0 < i < 15 and 0 < j < 15:
                y[i, j] = 4.0 * x[i, j] - x[i - 1, j] - x[i + 1, j] - x[i, j - 1] - x[i, j + 1]

    a = rng.random((16, 16)).astype(np.float32)
    x.from_numpy(a)
    laplace()
    expected = np.zeros_like(a)
    expected[1:-1, 1:-1] = 4 * a[1:-1, 1:-1] - a[:-2, 1:-1] - a[2:, 1:-1] - a[1:-1, :-2] - a[1:-1, 2:]
    np.testing.assert_allclose(y.to_numpy(), expected, atol=1e-6)


def test_neighbouring_accesses_share_their_lookups(cpu):
    x, y = ti.field(ti.f32), ti.field(ti.f32)
    ti.root.dense(ti.i, 8).dense(ti.j, 8).place(x, y)

    @ti.kernel
    def shift():
        for i in range(8):
            for j in range(7):
                y[i, j] = x[i, j + 1] + x[i, j]

    shift()
    text = final(shift)
    # One root, one look-up of the outer level, and one cell for each of the two columns.
    assert text.count("= root") == 1
    assert text.count("= lookup") == 3


def test_the_sum_of_many_ones_is_their_number(cpu):
    n = 1 << 26
    x = ti.field(ti.f32, n)
    x.fill(1.0)

    @ti.kernel
    def total() -> ti.f32:
        s = 0.0
        for i in x:
            s += x[i]
        return s

    assert total() == n
