"""Small kernels, each with its results: what the language means, in Aerogel and in Taichi.

`tests/oracle/ask.py` runs them on Taichi and keeps what it answers.
"""

# ruff: noqa
import importlib
import math
import os

import numpy as np

ti = importlib.import_module(os.environ.get("LANGUAGE_MODULE", "aerogel"))
tm = ti.math
vec2, vec3 = tm.vec2, tm.vec3
CASES = {}


def fields():
    """Makes the fields that the kernels use, after each `ti.init`."""
    global x, n, v, M, fi, f64
    x = ti.field(ti.f32, (4, 6))
    n = ti.field(ti.i32, ())
    v = ti.Vector.field(3, ti.f32, 5)
    M = ti.Matrix.field(2, 2, ti.f32, 3)
    fi = ti.field(ti.i32, 8)
    f64 = ti.field(ti.f64, 3)


def test(f):
    CASES[f.__name__] = f
    return f


def run(kernel, *args):
    """What a kernel returns, as lists of rounded numbers; the kind of exception if it raises one."""
    try:
        result = kernel(*args)
    except Exception as e:
        names = [c.__name__.replace("Aerogel", "Taichi") for c in type(e).__mro__]
        return next((name for name in names if name.startswith("Taichi")), "?")
    return plain(result)


def plain(result):
    if hasattr(result, "to_numpy"):
        return np.round(result.to_numpy().astype(float), 4).tolist()
    if isinstance(result, (list, tuple)):
        return [plain(part) for part in result]
    return None if result is None else round(float(result), 4)


@test
def promotion():
    @ti.kernel
    def k(a: ti.i32, b: ti.f32, c: ti.i8, d: ti.u8) -> (ti.f64, ti.f64, ti.f64, ti.f64, ti.f64, ti.f64, ti.f64, ti.f64):
        return a / 2, a // 2, a % 3, -a // 2, c * d, b // 2, -b % 3, a**3

    return run(k, 7, 7.5, 100, 200)


@test
def intpow():
    @ti.kernel
    def k(a: ti.i32, b: ti.f32, e: ti.i32) -> (ti.f64, ti.f64, ti.f64, ti.f64, ti.f64):
        return a**e, b**e, b**-2, b**0.5, a**1.5

    return run(k, 3, 2.5, 4)


@test
def varkeep():
    @ti.kernel
    def k() -> ti.f32:
        a = 1
        a += 2.7
        a = 2.9 + a
        a *= 1.5
        return a

    return run(k)


@test
def shifts():
    @ti.kernel
    def k(a: ti.i32, b: ti.u32) -> (ti.i32, ti.i32, ti.i32, ti.i32, ti.i32):
        return a >> 1, a << 3, ti.bit_shr(a, 28), ~a, (a & 5) | 8 ^ 3

    return run(k, -7, 9)


@test
def casts():
    @ti.kernel
    def k(a: ti.f32) -> (ti.i32, ti.i32, ti.f32, ti.i32, ti.i32):
        return int(a), ti.cast(a, ti.u8), float(int(a)), ti.cast(-a, ti.u8), ti.i8(a)

    return run(k, 300.7)


@test
def rounding():
    @ti.kernel
    def k(a: ti.f32) -> (ti.f32, ti.f32, ti.f32, ti.i32, ti.f32, ti.f32):
        return ti.round(a), ti.floor(a), ti.ceil(a), ti.round(a, ti.i32), ti.round(-a), ti.abs(-a)

    return run(k, 2.5)


@test
def boolops():
    @ti.kernel
    def k(a: ti.i32, b: ti.i32) -> (ti.i32, ti.i32, ti.i32, ti.i32, ti.i32):
        return a and b, a or b, not a, 1 < a < 5, a > 1 and b > 5

    return run(k, 2, 4)


@test
def ternary():
    @ti.kernel
    def k(a: ti.i32) -> (ti.f32, ti.f32, ti.f32):
        return (1 if a > 2 else 2.5), (a if a < 0 else -a), ti.select(a > 2, 5, 6.5)

    return run(k, 3)


@test
def loops():
    @ti.kernel
    def k(m: ti.i32) -> ti.i32:
        s = 0
        for i in range(m):
            if i == 3:
                continue
            s += i
        if True:
            for i in range(2, 20):
                if i > 7:
                    break
                for j in range(i):
                    if j == 5:
                        break
                    s += 1
            w = 0
            while True:
                w += 1
                if w > 10:
                    break
                if w % 2 == 0:
                    continue
                s += w
        return s

    return run(k, 10)


@test
def ndr():
    @ti.kernel
    def k() -> ti.i32:
        s = 0
        for i, j in ti.ndrange(3, (1, 4)):
            s += i * 10 + j
        for I in ti.grouped(ti.ndrange(2, 3, 2)):
            s += I[0] * 100 + I.y + I[2]
        for t in range(1):
            for i, j in ti.ndrange(3, 3):
                if i == 1 and j == 1:
                    break
                s += 1000
        return s

    return run(k)


@test
def structfor():
    @ti.kernel
    def k() -> ti.f32:
        for i, j in x:
            x[i, j] = i * 10 + j
        for I in ti.grouped(v):
            v[I] = ti.Vector([I[0], 1, 2])
        s = 0.0
        for i, j in x:
            s += x[i, j]
        for i in v:
            s += v[i].sum() + v[i].x
        return s

    return run(k)


@test
def staticfor():
    @ti.kernel
    def k() -> ti.i32:
        s = 0
        for i in ti.static(range(5)):
            if ti.static(i == 2):
                continue
            if ti.static(i == 4):
                break
            s += i
        for i, j in ti.static(ti.ndrange(2, (1, 3))):
            s += 10 * i + j
        for a, b in ti.static(zip([1, 2], [3, 4])):
            s += a * b
        for k_, a in ti.static(enumerate((5, 6))):
            s += k_ * a
        for I in ti.static(ti.grouped(ti.ndrange(2, 2))):
            s += I[0] * 2 + I[1]
        return s

    return run(k)


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
def atomics():
    @ti.kernel
    def k() -> (ti.i32, ti.i32, ti.i32, ti.i32):
        n[None] = 5
        o = ti.atomic_add(n[None], 3)
        p = ti.atomic_max(n[None], 20)
        q = ti.atomic_sub(n[None], 1)
        return o, p, q, n[None]

    return run(k)


@test
def parallelsum():
    @ti.kernel
    def k() -> (ti.i32, ti.f32, ti.i32):
        s = 0
        t = 0.0
        m = -100
        for i in range(1000):
            s += i
            t += 0.5
            ti.atomic_max(m, i)
        return s, t, m

    return run(k)


@ti.func
def affine(a, b=2, c=3):
    a += 1
    return a * b + c


@ti.func
def f2(a: ti.template()):
    a += 5


@ti.func
def f3(v_):
    v_ += 1
    return v_, v_.sum()


@ti.func
def fib(n_: ti.template()):
    r = n_
    if ti.static(n_ > 1):
        r = fib(n_ - 1) + fib(n_ - 2)
    return r


@test
def funcs():
    @ti.kernel
    def k() -> (ti.i32, ti.i32, ti.i32, ti.f32, ti.i32):
        a = 4
        r = affine(a)
        r2 = affine(a, c=1)
        f2(a)
        w, s = f3(ti.Vector([1.0, 2.0]))
        return r, r2, a, s + w[0], fib(7)

    return run(k)


@test
def swap():
    @ti.kernel
    def k() -> (ti.i32, ti.f32, ti.i32, ti.i32):
        a, b = 1, 2.5
        a, b = b, a
        p, q = ti.Vector([3, 4])
        p, q = q, p
        return a, b, p, q

    return run(k)


@test
def comp():
    @ti.kernel
    def k() -> (ti.f32, vec3):
        w = [ti.Vector([1.0, 2.0]), ti.Vector([3.0, 4.0])]
        u = ti.Vector([i * 2.0 for i in range(3)])
        w[1].x = 9.0
        return w[0].y + w[1][0], u

    return run(k)


@test
def mathf():
    @ti.kernel
    def k(a: ti.f32) -> (ti.f32, ti.f32, ti.f32, ti.f32, ti.f32, ti.f32, ti.f32, ti.f32, ti.f32, ti.f32):
        return (
            ti.sin(a),
            ti.exp(a),
            ti.log(a),
            ti.atan2(a, 2),
            ti.tanh(a),
            ti.pow(a, 2.5),
            ti.sqrt(a),
            ti.rsqrt(a),
            ti.max(a, 1, 2.5),
            min(a, 3),
        )

    return run(k, 0.7)


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
def nested_func_loop():
    @ti.func
    def fill(f: ti.template(), val):
        for i in f:
            f[i] = val + i

    @ti.kernel
    def k() -> ti.f32:
        g = 2.0
        fill(f64, g)
        s = 0.0
        for i in f64:
            s += f64[i]
        return s

    return run(k)


@test
def arrays():
    @ti.kernel
    def k(a: ti.types.ndarray(dtype=ti.f32, ndim=2), b: ti.types.ndarray(dtype=vec2, ndim=1)) -> ti.f32:
        s = 0.0
        for i, j in a:
            a[i, j] = i + j * 10
            s += a[i, j]
        for I in ti.grouped(b):
            b[I] += vec2(1, 2)
            s += b[I].y
        return s + a.shape[0] * 1000 + b.shape[0]

    A = np.zeros((3, 4), np.float32)
    B = np.ones((5, 2), np.float32)
    return run(k, A, B), A.tolist(), B.tolist()


@ti.data_oriented
class Obj:
    def __init__(self):
        self.c = 3
        self.f = ti.field(ti.f32, 4)

    @ti.func
    def helper(self, i):
        return self.c * i

    @staticmethod
    @ti.func
    def st(a, b):
        return a - b

    @ti.kernel
    def go(self, t: ti.f32) -> ti.f32:
        s = 0.0
        for i in self.f:
            self.f[i] = self.helper(i) + t
        for i in range(4):
            s += self.st(self.f[i], 1)
        return s


@test
def oriented():
    o = Obj()
    return run(o.go, 0.5)


@test
def scoping():
    @ti.kernel
    def k(c: ti.i32) -> ti.i32:
        if c > 0:
            q = 1
        return q

    @ti.kernel
    def k2() -> ti.i32:
        s = 0
        for i in range(3):
            s += i
        for i in range(3):
            s += i
        return s

    return run(k, 1), run(k2)


@test
def fieldattrs():
    @ti.kernel
    def k() -> (ti.i32, ti.i32, ti.i32, ti.i32):
        return x.shape[0], x.shape[1], v.n, M.m

    return run(k)


@test
def unsigned():
    @ti.kernel
    def k(a: ti.u32, b: ti.i32) -> (ti.u32, ti.u32, ti.i32, ti.f32, ti.i32):
        return a + b, a // 3, a > b, a / 2, ti.cast(a, ti.i32)

    return run(k, 4000000000, -1)


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
def loopcfg():
    @ti.kernel
    def k() -> ti.i32:
        s = 0
        ti.loop_config(serialize=True)
        for i in range(10):
            if i == 5:
                break
            s += i
        return s

    return run(k)


@test
def bitcast():
    @ti.kernel
    def k(a: ti.f32) -> (ti.i32, ti.f32):
        b = ti.bit_cast(a, ti.i32)
        return b, ti.bit_cast(b, ti.f32)

    return run(k, 1.5)


@test
def unary_ints():
    @ti.kernel
    def k(a: ti.i32) -> (ti.f32, ti.f32, ti.f32, ti.i32, ti.i32):
        return ti.sqrt(a), ti.exp(a), ti.log(a), abs(-a), -a

    @ti.kernel
    def k2(a: ti.i32) -> ti.f32:
        return ti.floor(a)

    @ti.kernel
    def k3(a: ti.i32) -> ti.f32:
        return ti.tanh(a)

    return run(k, 3), run(k2, 3), run(k3, 3)


@test
def mixed_types():
    @ti.kernel
    def k(a: ti.i64, b: ti.f32, c: ti.u8, d: ti.f64) -> (ti.f64, ti.f64, ti.f64, ti.f64, ti.f64):
        return a + b, a * c, b + d, c - 201, a // c

    return run(k, 2**40, 0.1, 200, 0.1)


@test
def aug_all():
    @ti.kernel
    def k() -> (ti.i32, ti.i32, ti.f32, ti.i32, ti.i32):
        a = 100
        a -= 30
        a //= 4
        a <<= 2
        a |= 1
        a ^= 8
        a %= 50
        a **= 2
        b = 7
        b *= 3
        b >>= 1
        b &= 14
        c = 3.0
        c /= 2
        c -= 0.25
        c **= 2
        d = 5
        d /= 2
        e = 3
        e *= 1.5
        return a, b, c, d, e

    return run(k)


@test
def fieldaug():
    @ti.kernel
    def k() -> ti.i32:
        for i in fi:
            fi[i] = i
        for i in fi:
            fi[i] *= 3
            fi[i] -= 1
            fi[i] //= 2
            fi[i] |= 16
            fi[(i + 1) % 8] += 0
        s = 0
        for i in range(8):
            s += fi[i]
        return s

    return run(k)


@test
def while_complex():
    @ti.kernel
    def k(m: ti.i32) -> (ti.i32, ti.i32):
        a = m
        steps = 0
        c = 0
        while a != 1 and steps < 1000:
            if a % 2 == 0:
                a //= 2
            else:
                a = 3 * a + 1
                if a > 5000:
                    c += 1
                    continue
            steps += 1
        return steps, c

    return run(k, 27)


@test
def nested_if():
    @ti.kernel
    def k(a: ti.i32) -> ti.i32:
        r = 0
        if a < 0:
            r = -1
        elif a == 0:
            r = 0
        elif a < 10:
            if a % 2:
                r = 1
            else:
                r = 2
        else:
            r = 3
        return r

    return [run(k, i) for i in (-3, 0, 3, 4, 30)]


@test
def serial_struct():
    @ti.kernel
    def k() -> ti.f32:
        s = 0.0
        for i, j in x:
            x[i, j] = 1.0
        for i in range(2):
            for j in range(3):
                s += x[i, j]
        return s

    return run(k)


@test
def closures():
    c = 5

    def make(m):
        @ti.kernel
        def k() -> ti.i32:
            return m * c

        return k

    return run(make(2)), run(make(3))


@test
def early_return():
    @ti.func
    def f(a):
        r = 0
        if a > 3:
            r = 1
        else:
            r = 2
        return r

    @ti.kernel
    def k(a: ti.i32) -> ti.i32:
        return f(a)

    return run(k, 5), run(k, 1)


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
def list_mut():
    @ti.kernel
    def k() -> ti.i32:
        s = 0
        for i in ti.static([0, 2, 5]):
            s += i
        for f in ti.static((fi, n)):
            s += 1
        return s

    return run(k)


@test
def pyfuncs():
    @ti.kernel
    def k() -> ti.f32:
        return math.sin(0.5) + max(1, 2.5) + len([1, 2]) + pow(2, 3) + sum([1, 2, 3])

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
def grouped_nd():
    @ti.kernel
    def k() -> (ti.i32, ti.i32):
        s = 0
        c = 0
        for I in ti.grouped(ti.ndrange((1, 3), (2, 5))):
            s += I[0] * I[1]
            c += (I > 2).any()
        return s, c

    return run(k)


@test
def ndrange_mixed():
    @ti.kernel
    def k(m: ti.i32) -> ti.i32:
        s = 0
        for i, j in ti.ndrange((0, m), m + 1):
            s += i * j
        for i in range(m):
            for j, l in ti.ndrange((i, m), 2):
                s += j + l
        return s

    return run(k, 4)


@test
def funcs_kw():
    @ti.func
    def g(a, b: ti.template(), c: float = 2.5):
        b += a
        return a * c

    @ti.kernel
    def k() -> (ti.f32, ti.f32):
        q = 1.0
        r = g(2, q, c=4.0)
        r += g(b=q, a=3)
        return r, q

    return run(k)


@test
def tuple_ret():
    @ti.func
    def g(a):
        return a + 1, ti.Vector([a, a]), (a, 2.5)

    @ti.kernel
    def k() -> (ti.i32, ti.i32, ti.f32):
        p, q, r = g(3)
        p += 1
        return p, q.sum(), r[1] + r[0]

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


@test
def f16s():
    h = ti.field(ti.f16, 3)

    @ti.kernel
    def k() -> (ti.f32, ti.f32):
        h[0] = 0.1
        h[1] = h[0] * 3
        a = ti.cast(2.3, ti.f16)
        return h[1], a * a

    return run(k)
