"""Data races by the shape of the loop, and of what stands in it."""

import numpy as np

import aerogel as ti

from races.listed import ints, race


@race("x[0]", "iteration 0 writes it, and iteration 1 reads it")
def a_smoothing_in_place():
    x = ti.field(ti.f32, shape=8, name="x")

    @ti.kernel
    def run():
        for i in range(7):
            left = x[i - 1] if i > 0 else 0.0  # race
            x[i] = (left + x[i + 1]) / 2 + i + 1  # race

    run()


@race("x[1, 2]", "iteration (1, 1) reads it, and iteration (1, 2) writes it")
def gauss_seidel():
    x = ti.field(ti.f64, shape=(5, 5), name="x")

    @ti.kernel
    def run():
        for i, j in ti.ndrange((1, 4), (1, 4)):
            x[i, j] = (  # race
                x[i, j + 1]  # race
                + 1.0
            )

    run()


@race("x[3, 2]", "iteration (2, 2) reads it, and iteration (3, 2) writes it")
def a_struct_for_in_place():
    x = ti.field(ti.f32, shape=(4, 4), name="x")

    @ti.kernel
    def run():
        for i, j in x:
            if i == 2 and j == 2:
                x[i, j] += x[i + 1, j]  # race
            else:
                x[i, j] = i + j  # race

    run()


@race("y[1]", "iterations 1 and 3 both write it")
def a_scatter():
    where, y = ints(4, name="where"), ints(4, name="y")
    where.from_numpy(np.array([0, 1, 2, 1], np.int32))

    @ti.kernel
    def run():
        for i in where:
            y[where[i]] = i  # race

    run()


@race("x[1]", "iterations 0 and 1 both write it")
def a_write_to_the_neighbour():
    x = ints(9)

    @ti.kernel
    def run():
        for i in range(8):
            x[i] = i  # race
            x[i + 1] = -1 - i  # race

    run()


@race("x[1]", "iteration 0 reads it, and iteration 1 writes it")
def a_read_of_what_another_iteration_writes():
    x, y = ints(8), ints(8, name="y")

    @ti.kernel
    def run():
        for i in x:
            x[i] = i  # race
            y[i] = x[(i + 1) % 8]  # race

    run()


@race("x[3]", "iteration 3 writes it, and iteration 4 reads it")
def a_reversal():
    x = ints(8)
    x.from_numpy(np.arange(8, dtype=np.int32))

    @ti.kernel
    def run():
        for i in x:
            x[i], x[7 - i] = x[7 - i], x[i]  # race

    run()


@race("bins[0]", "iteration 0 writes it, and iteration 3 reads it")
def a_histogram():
    bins = ints(3, name="bins")

    @ti.kernel
    def run():
        for i in range(30):
            bins[i % 3] = bins[i % 3] + 1  # race

    run()


@race("total[None]", "iteration 0 writes it, and iteration 1 reads it")
def a_sum():
    x, total = ti.field(ti.f32, shape=8), ti.field(ti.f32, shape=(), name="total")
    x.fill(1)

    @ti.kernel
    def run():
        for i in x:
            total[None] = total[None] + x[i]  # race

    run()


@race("best[None]", "iteration 0 reads it, and iteration 1 writes it")
def a_maximum():
    x, best = ints(8), ints(name="best")
    x.from_numpy(np.arange(8, dtype=np.int32))

    @ti.kernel
    def run():
        for i in x:
            if x[i] > best[None]:  # race
                best[None] = x[i]  # race

    run()


@race("x[2]", "iterations 4 and 5 both write it")
def a_function():
    x = ints(4)

    @ti.func
    def put(i):
        x[i // 2] = i  # race

    @ti.kernel
    def run():
        for i in range(4, 8):
            put(i)

    run()


@race("x[2]", "iterations 4 and 5 both write it")
def a_real_function():
    x = ints(4)

    @ti.real_func
    def put(i: ti.i32) -> ti.i32:
        x[i // 2] = i  # race
        return i

    @ti.kernel
    def run():
        for i in range(4, 8):
            put(i)

    run()


@race("x[0]", "iteration 0 writes it, and iteration 1 reads it")
def a_method():
    @ti.data_oriented
    class Line:
        def __init__(self):
            self.x = ti.field(ti.f32, shape=8, name="x")

        @ti.func
        def add(self, i, value):
            self.x[i] = value + i + 1  # race

        @ti.kernel
        def run(self):
            for i in range(8):
                self.add(i, self.x[0])  # race

    Line().run()


@race("y[3]", "iterations 0 and 1 both write it")
def ranges_inside():
    y = ints(8, name="y")

    @ti.kernel
    def run():
        for i in range(4):
            for j in range(3, 6):
                y[j] = i  # race

    run()


@race("x[0]", "iterations 0 and 5 both write it")
def computed_indices():
    x = ints(5)

    @ti.kernel
    def run():
        for i in range(9):
            x[i * 7 % 5] = i  # race

    run()


@race("x[1]", "iterations 0 and 1 both write it")
def an_unrolled_loop():
    x = ints(9)

    @ti.kernel
    def run():
        for i in range(8):
            for k in ti.static(range(2)):
                x[i + k] = i  # race

    run()


@race("x[5]", "iteration 1 writes it, and iteration 4 reads it")
def a_loop_with_while():
    x = ints(8)

    @ti.kernel
    def run():
        for i in range(8):
            k = 0
            while k < i:
                k += 1
                if i == 1:
                    x[5] = 3  # race
            if i == 4:
                x[i] = x[k + 1]  # race

    run()


@race("n[None]", "iteration 0 reads it, and iteration 1 changes it atomically")
def a_read_of_a_counter():
    n, x = ints(name="n"), ints(8)

    @ti.kernel
    def run():
        for i in x:
            n[None] += 1  # race
            x[i] = n[None]  # race

    run()


@race("bins[0]", "iteration 0 writes it, and iteration 4 changes it atomically")
def a_plain_write_and_atomic_ones():
    bins = ints(4, name="bins")

    @ti.kernel
    def run():
        for i in range(8):
            if i == 0:
                bins[i] = 1  # race
            else:
                bins[i % 4] += 1  # race

    run()


@race("lock[1]", "iteration 1 changes it atomically, and iteration 3 writes it")
def an_unlocking_write():
    lock = ints(2, name="lock")

    @ti.kernel
    def run():
        for i in range(4):
            if i == 1:
                ti.atomic_exchange(lock[i % 2], 1)  # race
            elif i == 3:
                lock[i % 2] = 0  # race

    run()


@race("x[0]", "iteration (0, 0, 0) writes it, and iteration (0, 0, 1) reads it")
def three_axes():
    x = ints(8)

    @ti.kernel
    def run(n: ti.i32):
        for I in ti.grouped(ti.ndrange(n, (0, n), 2)):
            x[I.sum()] = x[0] + I[2]  # race

    run(2)


@race("x[1]", "iteration 1 writes it, and iteration 2 reads it")
def an_element_handed_to_a_function():
    x = ints(8)

    @ti.func
    def double(value: ti.template()):
        value = 2 * value + 1  # race

    @ti.kernel
    def run():
        for i in range(1, 7):
            x[i] = i  # race
            if i == 2:
                double(x[i - 1])

    run()


@race("a variable of the kernel", "iteration 0 writes it, and iteration 1 reads it")
def a_variable_of_the_kernel():
    x = ints(8)

    @ti.kernel
    def run() -> ti.i32:
        total = 1
        for i in x:
            total = total * 2 + i  # race
        return total

    run()


@race("x[3]", "iteration 0 reads it, and iteration 3 writes it")
def a_branch():
    x, y = ints(8), ints(8, name="y")

    @ti.kernel
    def run():
        for i in range(8):
            if i == 3:
                x[i] = 1  # race
            else:
                y[i] = x[3]  # race

    run()


@race("y[0]", "iterations 0 and 1 both write it")
def the_second_loop():
    x, y = ints(8), ints(8, name="y")

    @ti.kernel
    def run():
        for i in x:
            x[i] = i
        for i in range(2):
            y[0] = x[i]  # race

    run()
