"""Programs without a race, most of them like one that has one."""

import numpy as np

import aerogel as ti

from races.listed import clean, ints, triangle


@clean
def a_smoothing_with_a_double_buffer():
    x, y = ti.field(ti.f32, shape=8), ti.field(ti.f32, shape=8)

    @ti.kernel
    def run():
        for i in range(1, 7):
            y[i] = (x[i - 1] + x[i + 1]) / 2 + i
        for i in y:
            x[i] = y[i]

    run()


@clean
def gauss_seidel_in_two_colours():
    x = ti.field(ti.f64, shape=(6, 6))

    @ti.kernel
    def run():
        for colour in ti.static(range(2)):
            for i, j in ti.ndrange((1, 5), (1, 5)):
                if (i + j) % 2 == colour:
                    x[i, j] = (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1]) / 4 + 1

    run()


@clean
def a_permutation():
    where, y = ints(4), ints(4)
    where.from_numpy(np.array([0, 3, 2, 1], np.int32))

    @ti.kernel
    def run():
        for i in where:
            y[where[i]] = i

    run()


@clean
def two_loops():
    x, y = ints(8), ints(8)

    @ti.kernel
    def run():
        for i in x:
            x[i] = i
        for i in y:
            y[i] = x[(i + 1) % 8]

    run()


@clean
def a_reversal_of_half():
    x = ints(8)
    x.from_numpy(np.arange(8, dtype=np.int32))

    @ti.kernel
    def run():
        for i in range(4):
            x[i], x[7 - i] = x[7 - i], x[i]

    run()


@clean
def an_atomic_histogram():
    bins = ints(3)

    @ti.kernel
    def run():
        for i in range(30):
            bins[i % 3] += 1

    run()


@clean
def an_atomic_sum():
    x, total = ti.field(ti.f32, shape=8), ti.field(ti.f32, shape=())

    @ti.kernel
    def run():
        for i in x:
            total[None] += x[i]

    run()


@clean
def other_members():
    p = ti.Struct.field({"at": ti.f32, "mass": ti.f32}, shape=4)

    @ti.kernel
    def run():
        for i in range(8):
            if i % 2 == 0:
                p[i // 2].at = i
            else:
                p[i // 2].mass = i

    run()


@clean
def disjoint_components():
    m, v = ti.Matrix.field(2, 2, ti.f32, shape=2), ti.Vector.field(3, ti.i32, shape=4)

    @ti.kernel
    def run():
        for i in range(8):
            m[i // 4][i // 2 % 2, i % 2] = i
        for i, k in ti.ndrange(4, 3):
            v[i][k] = v[i][k] + k
        for i in v:
            v[i][0] = v[(i + 1) % 4][1] + v[i].z

    run()


@clean
def cells_that_become_active():
    x, y = ti.field(ti.i32), ti.field(ti.i32)
    block = ti.root.pointer(ti.i, 8)
    block.dense(ti.i, 4).place(x)
    ti.root.hash(ti.i, 1024).place(y)

    @ti.kernel
    def run():
        for i in range(32):
            x[i] = i
            ti.activate(block, i // 4)
            y[i * 31] = x[i]
        for i in x:
            x[i] += y[i * 31]

    run()


@clean
def lists():
    x = ti.field(ti.i32)
    lists = ti.root.dense(ti.i, 2)
    lists.dynamic(ti.j, 16).place(x)
    y = ints(2)

    @ti.kernel
    def run():
        for i in range(8):
            x[i % 2].append(i)
        for i in y:
            for j in range(x[i].length()):
                y[i] += x[i, j]

    run()


@clean
def two_arrays():
    @ti.kernel
    def run(a: ti.types.ndarray(), b: ti.types.ndarray()):
        for i in range(7):
            a[i] = b[i + 1] + i + 1

    run(np.zeros(8, np.float32), np.zeros(8, np.float32))
    x = np.zeros(16, np.float32)
    run(x[:8], x[8:])


@clean
def a_real_function_outside_of_loops():
    x = ints(4)

    @ti.real_func
    def put(i: ti.i32, value: ti.i32) -> ti.i32:
        x[i] = x[i] + value
        return x[i]

    @ti.kernel
    def run() -> ti.i32:
        put(1, 3)
        put(1, 4)
        for i in range(4):
            put(i, i)
        return put(1, 1)

    assert run() == 9


@clean
def rows():
    y = ints(4, 8)

    @ti.kernel
    def run():
        for i in range(4):
            for j in range(1, 8):
                y[i, j] = y[i, j - 1] + i

    run()


@clean
def an_unrolled_loop_over_pairs():
    x = ints(16)

    @ti.kernel
    def run():
        for i in range(8):
            for k in ti.static(range(2)):
                x[2 * i + k] = i

    run()


@clean
def a_counter():
    n, x = ints(), ints(8)

    @ti.kernel
    def run():
        for i in x:
            x[ti.atomic_add(n[None], 1)] = i

    run()


@clean
def gradients_of_a_gather():
    x = ti.field(ti.f32, shape=8, needs_grad=True)
    y = ti.field(ti.f32, shape=8, needs_grad=True)
    loss = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def gather():
        for i in range(1, 7):
            y[i] = x[i - 1] * x[i + 1] * x[i]
        for i in y:
            loss[None] += y[i] ** 2

    with ti.ad.Tape(loss):
        gather()


@clean
def quantised_members_of_one_word():
    p, q = (ti.field(ti.types.quant.int(8)) for _ in range(2))
    word = ti.BitpackedFields(max_num_bits=32)
    word.place(p, q)
    ti.root.dense(ti.i, 4).place(word)

    @ti.kernel
    def run():
        for i in range(8):
            if i % 2 == 0:
                p[i // 2] = i
            else:
                q[i // 2] = i

    run()


@clean
def a_mesh_that_gathers():
    mesh = triangle()

    @ti.kernel
    def run():
        for v in mesh.verts:
            for u in v.verts:
                v.area += u.mass

    run()


@clean
def a_loop_in_order():
    x = ints(8)

    @ti.kernel
    def run():
        ti.loop_config(serialize=True)
        for i in range(7):
            x[i + 1] = x[i] + 1

    run()
    assert x[7] == 7


@clean
def a_flag():
    """Iterations that write the same value."""
    x, flag = ints(8), ints()

    @ti.kernel
    def run():
        for i in x:
            if i % 3 == 0:
                flag[None] = 1
            x[i // 4] = 7

    run()


@clean
def variables():
    x = ints(8)

    @ti.kernel
    def run():
        for i in x:
            a = ti.Vector([0, 0, 0])
            for k in range(3):
                a[k] = a[(k + 1) % 3] + ti.random(ti.i32) % 5
            x[i] = a.sum()

    run()


@clean
def cells_outside():
    """Without `debug=True` nobody looks at indices; what lies outside of a field is none of its cells."""
    x, y = ti.field(ti.i32), ints(8)
    ti.root.pointer(ti.i, 4).place(x)

    @ti.kernel
    def run():
        for i in range(8):
            if i < 4:
                x[i] = i
            y[i] = x[i + 4]

    run()


@clean
def an_atomic_maximum():
    x, best = ints(8), ints()

    @ti.func
    def raise_to(value):
        ti.atomic_max(best[None], value)

    @ti.kernel
    def run() -> ti.i32:
        most = 0
        for i in x:
            raise_to(x[i])
            ti.atomic_max(most, x[i])
        return most

    run()


@clean
def own_cells_of_arrays():
    @ti.kernel
    def run(a: ti.types.ndarray(), b: ti.types.ndarray(ti.types.vector(2, ti.f32), ndim=1)):
        for i, j in a:
            a[i, j] = a[i, j] + b[i][0] + b[j][1]
        for i in b:
            b[i] = b[i] + a[i, 0]

    run(np.zeros((4, 4), np.float32), ti.Vector.ndarray(2, ti.f32, 4))


@clean
def methods():
    @ti.data_oriented
    class Line:
        def __init__(self):
            self.x, self.y = ints(8), ints(8)

        @ti.func
        def add(self, i):
            self.y[i] = self.y[i] + self.x[7 - i]

        @ti.kernel
        def run(self):
            for i in self.x:
                self.add(i)

    Line().run()


@clean
def gradients_of_a_sum_of_products():
    x = ti.field(ti.f32, shape=8, needs_grad=True)
    loss = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def run():
        for i, j in ti.ndrange(8, 8):
            loss[None] += x[i] * x[j] * (i + 1)

    with ti.ad.Tape(loss):
        run()


@clean
def a_lock():
    lock, total = ints(), ints()

    @ti.func
    def take():
        while ti.atomic_cas(lock[None], 0, 1) == 1:
            pass

    @ti.kernel
    def run():
        for _ in range(8):
            take()
            total[None] = total[None] + 1
            ti.atomic_exchange(lock[None], 0)

    run()
    assert total[None] == 8
