"""Loops, branches, functions, and what is known while compiling."""

# ruff: noqa
import math

import numpy as np

from answers.cases import run, test, ti, tm, vec2, vec3


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
