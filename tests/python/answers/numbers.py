"""Numbers: types, casts, operators, functions."""

# ruff: noqa
import numpy as np

from answers.cases import run, test, ti, tm, vec2, vec3


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
def unsigned():
    @ti.kernel
    def k(a: ti.u32, b: ti.i32) -> (ti.u32, ti.u32, ti.i32, ti.f32, ti.i32):
        return a + b, a // 3, a > b, a / 2, ti.cast(a, ti.i32)

    return run(k, 4000000000, -1)


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
        for i in fi:
            fi[(i + 1) % 8] += 0
        s = 0
        for i in range(8):
            s += fi[i]
        return s

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
