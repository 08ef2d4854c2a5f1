"""Data races by where the data lie: structs, matrices, sparse nodes, arrays, meshes."""

import numpy as np

import aerogel as ti

from races.listed import ints, race, triangle


@race("p_at[0]", "iterations 0 and 1 both write it")
def members_of_structs():
    p = ti.Struct.field({"at": ti.f32, "mass": ti.f32}, shape=4, name="p")

    @ti.kernel
    def run():
        for i in range(8):
            p[i // 2].at = i  # race

    run()


@race("m[1][0, 1]", "iterations 2 and 3 both write it")
def components_of_matrices():
    m = ti.Matrix.field(2, 2, ti.f32, shape=2, name="m")

    @ti.kernel
    def run():
        for i in range(4):
            if i > 1:
                m[i // 2][0, 1] = i  # race

    run()


@race("v[1][0]", "iteration 1 writes it, and iteration 2 reads it")
def vectors():
    v = ti.Vector.field(3, ti.f32, shape=4, name="v")

    @ti.kernel
    def run():
        for i in range(1, 4):
            v[i] = 2 * v[i - 1] + i  # race

    run()


@race("v[0][1]", "iterations 1 and 3 both write it")
def a_component_by_its_number():
    v = ti.Vector.field(2, ti.i32, shape=1, name="v")

    @ti.kernel
    def run():
        for i in range(4):
            if i % 2 == 1:
                v[0][i % 2] = i  # race

    run()


@race("m[0][9, 3]", "iterations 3 and 7 both write it")
def a_large_matrix():
    m = ti.Matrix.field(10, 10, ti.i32, shape=1, name="m")

    @ti.kernel
    def run():
        for i in range(8):
            if i % 4 == 3:
                m[0][9, i % 4] = i  # race

    run()


@race("x[0]", "iterations 0 and 1 both write it")
def pointer_nodes():
    x = ti.field(ti.i32, name="x")
    ti.root.pointer(ti.i, 8).dense(ti.i, 4).place(x)

    @ti.kernel
    def run():
        for i in range(16):
            x[i // 2] = i  # race

    run()


@race("x[4]", "iteration 4 writes it, and iteration 5 reads it")
def a_loop_over_active_cells():
    x = ti.field(ti.i32, name="x")
    ti.root.pointer(ti.i, 8).bitmasked(ti.i, 4).place(x)
    for i in (4, 5, 17):
        x[i] = i

    @ti.kernel
    def run():
        for i in x:
            x[i] = x[i ^ 1] + i  # race

    run()


@race("x[1007]", "iterations 7 and 17 both write it")
def hash_nodes():
    x = ti.field(ti.i32, name="x")
    ti.root.hash(ti.i, 1 << 20).place(x)

    @ti.kernel
    def run():
        for i in range(20):
            if i % 10 == 7:
                x[1000 + i % 10] = i  # race

    run()


@race("x[0]", "iterations 0 and 1 both write it")
def an_element_of_a_list():
    x = ti.field(ti.i32, name="x")
    ti.root.dynamic(ti.i, 64).place(x)

    @ti.kernel
    def run():
        for i in range(8):
            x[0] = i  # race

    run()


@race("x[1, 0]", "iteration 0 writes it, and iteration 3 reads it")
def a_list_that_grows():
    x = ti.field(ti.i32, name="x")
    lists = ti.root.dense(ti.i, 2)
    lists.dynamic(ti.j, 16).place(x)
    y = ints(4, name="y")

    @ti.kernel
    def run():
        for i in range(4):
            if i == 0:
                x[1].append(7)  # race
            elif i == 3:
                y[i] = x[1, 0]  # race

    run()


@race("a[5]", "iteration 4 reads it, and iteration 5 writes it")
def ndarrays():
    @ti.kernel
    def run(a: ti.types.ndarray(ti.f32, ndim=1)):
        for i in range(4, a.shape[0] - 1):
            a[i] = a[i + 1] + i + 1  # race

    run(ti.ndarray(ti.f32, 8))


@race("a[0, 1][1]", "iterations (0, 1) and (1, 1) both write it")
def ndarrays_of_vectors():
    @ti.kernel
    def run(a: ti.types.ndarray(ti.types.vector(2, ti.f32), ndim=2)):
        for i, j in ti.ndrange(a.shape[0], (1, 2)):
            a[0, j][1] = i  # race

    run(ti.Vector.ndarray(2, ti.f32, (3, 4)))


@race("a[2]", "iterations 0 and 1 both write it")
def numpy_arrays():
    @ti.kernel
    def run(a: ti.types.ndarray(), where: ti.types.ndarray()):
        for i in range(where.shape[0]):
            a[where[i]] = i  # race

    run(np.zeros(4, np.float32), np.array([2, 2, 1], np.int32))


@race("a[1]", "iteration 0 reads it, and iteration 1 writes it")
def one_array_twice():
    @ti.kernel
    def run(a: ti.types.ndarray(), b: ti.types.ndarray()):
        for i in range(7):
            a[i] = b[i + 1] + i + 1  # race

    x = np.zeros(8, np.float32)
    run(x, x)


@race("x_grad[0]", "iterations 0 and 1 both write it")
def gradients_as_fields():
    x = ti.field(ti.f32, shape=4, needs_grad=True, name="x")

    @ti.kernel
    def run():
        for i in range(8):
            x.grad[i // 2] = i + 1  # race

    run()


@race("x[2]", "iterations 2 and 6 both write it")
def steps_of_two():
    x = ti.field(ti.u8, shape=4, name="x")

    @ti.kernel
    def run(n: ti.i32):
        for i in range(n):
            if i % 2 == 0:
                if i % 4 == 2:
                    x[i % 4] = i  # race

    run(8)


@race("x[-2]", "iteration 0 reads it, and iteration 1 writes it")
def offsets():
    x = ti.field(ti.f16, shape=4, offset=-3, name="x")

    @ti.kernel
    def run():
        for i in range(3):
            x[i - 3] = x[i - 2] + i + 1  # race

    run()


@race("q[1]", "iterations 2 and 3 both write it")
def quantised_fields():
    q = ti.field(ti.types.quant.int(4), name="q")
    word = ti.BitpackedFields(max_num_bits=32)
    word.place(q)
    ti.root.dense(ti.i, 4).place(word)

    @ti.kernel
    def run():
        for i in range(2, 4):
            q[i // 2] = i  # race

    run()


@race(None, "iterations 0 and 1 both write it")
def a_mesh():
    mesh = triangle()

    @ti.kernel
    def run():
        for v in mesh.verts:
            for u in v.verts:
                u.area = v.id + 1.0  # race

    run()
