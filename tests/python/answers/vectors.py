"""Vectors and matrices."""

# ruff: noqa
import numpy as np

from answers.cases import run, test, ti, tm, vec2, vec3


@test
def vectors():
    @ti.kernel
    def k() -> (ti.f32, ti.f32, ti.f32, ti.f32, ti.f32, vec3, vec3):
        a = ti.Vector([1.0, 2.0, 3.0])
        b = vec3(4, 5, 6)
        a.x += 10
        a.yz = b.xy
        return a.norm(), a.dot(b), a.max(), b.min(), (a * b).sum(), a.cross(b), a.normalized()

    return run(k)


@test
def matrices():
    m22 = ti.types.matrix(2, 2, ti.f32)

    @ti.kernel
    def k() -> (m22, m22, ti.f32, ti.f32, m22, vec2, m22):
        A = ti.Matrix([[1.0, 2.0], [3.0, 4.0]])
        B = ti.Matrix([[0.5, 1.5], [2.5, 3.5]])
        return (
            A @ B,
            A.inverse(),
            A.trace(),
            A.determinant(),
            A.transpose() * B,
            A @ ti.Vector([1.0, -1.0]),
            ti.Vector([1.0, 2.0]).outer_product(ti.Vector([3.0, 4.0])),
        )

    return run(k)


@test
def mat3():
    m33 = ti.types.matrix(3, 3, ti.f32)

    @ti.kernel
    def k() -> (m33, ti.f32, m33):
        A = ti.Matrix([[2.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.1, 0.4, 4.0]])
        return A.inverse(), A.determinant(), ti.Matrix.identity(float, 3) + ti.Matrix.zero(float, 3, 3)

    return run(k)


@test
def dynidx():
    @ti.kernel
    def k(i: ti.i32) -> (ti.f32, ti.f32, ti.f32):
        a = ti.Vector([1.0, 2.0, 3.0])
        a[i] = 10
        A = ti.Matrix([[1.0, 2.0], [3.0, 4.0]])
        A[i, i - 1] += 5
        return a[i] + a[i - 1], A[i, 0], A.sum()

    return run(k, 1)


@test
def slices():
    @ti.kernel
    def k() -> (vec2, ti.f32, vec2):
        A = ti.Matrix([[1.0, 2.0], [3.0, 4.0]])
        A[0, :] = ti.Vector([7.0, 8.0])
        w = ti.Vector([1.0, 2.0, 3.0])
        return A[:, 0], A.sum(), w[1:3]

    return run(k)


@test
def vecint():
    @ti.kernel
    def k(a: vec2) -> (ti.i32, ti.i32, vec2, vec2):
        b = int(a)
        c = a.cast(int)
        return b.x, c.y, a - b, a % 1.0

    return run(k, vec2(2.7, -3.2))


@test
def mathv():
    @ti.kernel
    def k() -> (vec3, ti.f32, ti.f32, vec3, vec2, vec2, ti.f32, vec2, vec3):
        a = vec3(1, 2, 3)
        b = vec3(0.5)
        return (
            tm.mix(a, b, 0.25),
            tm.length(a),
            tm.dot(a, b),
            tm.clamp(a, 0.0, 2.0),
            tm.cmul(vec2(1, 2), vec2(3, 4)),
            tm.csqrt(vec2(-3, 4)),
            tm.smoothstep(0.0, 1.0, 0.3),
            tm.refract(vec2(0.6, -0.8), vec2(0, 1), 0.7),
            tm.sign(vec3(-2, 0, 3)),
        )

    return run(k)


@test
def rots():
    @ti.kernel
    def k() -> (tm.mat4, tm.mat4, tm.mat2):
        return tm.rot_by_axis(vec3(1, 2, 3), 0.4), tm.rotation3d(0.1, 0.2, 0.3), tm.rotation2d(0.3)

    return run(k)


@test
def svd2():
    m22 = ti.types.matrix(2, 2, ti.f32)

    @ti.kernel
    def k(A: m22) -> (m22, m22, m22):
        U, s, V = ti.svd(A)
        return U, s, V

    return [
        run(k, m22(A))
        for A in ([[1, 2], [3, 4]], [[2, 1], [-1, 3]], [[1, 0], [0, 2]], [[3, 0], [0, 2]], [[-1, 0.2], [0.1, -2]])
    ]


@test
def polar():
    m33 = ti.types.matrix(3, 3, ti.f32)
    m22 = ti.types.matrix(2, 2, ti.f32)

    @ti.kernel
    def k(A: m33) -> (m33, m33):
        R, S = ti.polar_decompose(A)
        return R, S

    @ti.kernel
    def k2(A: m22) -> (m22, m22):
        R, S = ti.polar_decompose(A)
        return R, S

    return run(k, m33([[1, 2, 3], [4, 5, 6], [7, 8, 10]])), run(k2, m22([[1, 2], [3, 4]]))


@test
def vecfield():
    @ti.kernel
    def k() -> (ti.f32, ti.f32):
        for i in range(3):
            M[i] = ti.Matrix([[i, 1], [2, 3]])
            M[i][0, 1] += 5
            M[i] *= 2
        v.fill(1.5)
        for i in v:
            v[i] += [1, 2, 3]
            v[i].z = v[i][0] * 2
        return M[1].sum(), v[2].sum()

    return run(k)


@test
def vec_args():
    @ti.kernel
    def k(
        a: ti.types.vector(3, ti.i32), m: ti.types.matrix(2, 2, ti.f32)
    ) -> (ti.i32, ti.f32, ti.types.vector(3, ti.i32)):
        return a.sum(), m[1, 0] + m.trace(), a * 2

    return run(k, ti.Vector([1, 2, 3]), ti.Matrix([[1.0, 2.0], [3.0, 4.0]]))


@test
def vec_ops():
    @ti.kernel
    def k() -> (vec3, vec3, vec3, vec3, ti.i32, vec3, vec2, vec3):
        a = vec3(1.5, -2.5, 3.5)
        b = ti.Vector([1, 2, 3])
        return (
            ti.abs(a),
            ti.max(a, 0),
            ti.floor(a),
            a / b,
            (a > 0).any() and not (a > 0).all(),
            a**2,
            a.xy + a.zx,
            ti.select(a > 0, a, b),
        )

    return run(k)


@test
def mat_ops():
    m22 = ti.types.matrix(2, 2, ti.f32)

    @ti.kernel
    def k() -> (m22, m22, m22, m22, vec2, ti.f32):
        A = ti.Matrix([[1.0, 2.0], [3.0, 4.0]])
        B = A
        B[0, 0] = 100
        C = 2 * A - 1
        return (
            A,
            C,
            ti.Matrix.cols([vec2(1, 2), vec2(3, 4)]),
            ti.Matrix.rows([vec2(1, 2), vec2(3, 4)]),
            A[1, :],
            A.norm(),
        )

    return run(k)


@test
def swz():
    @ti.kernel
    def k() -> (vec3, vec3, ti.f32):
        a = vec3(1, 2, 3)
        a.zx = a.xz * 2
        b = a.rgb
        b.g += 10
        a.xy += b.yx
        return a, b, a.xyz.norm_sqr()

    return run(k)


@test
def field_vec_index():
    @ti.kernel
    def k() -> (ti.f32, ti.f32):
        I = ti.Vector([1, 2])
        x[I] = 7
        x[I + 1] = 8
        idx = I[0]
        return x[1, 2] + x[2, 3], x[idx, I.y]

    return run(k)
