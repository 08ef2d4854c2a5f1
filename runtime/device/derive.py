"""Derives the coefficients of math.air and writes it: `python3 derive.py > math.air` (needs mpmath).

Every function is written once, for f32 and f64, in the language of air.py. Polynomials are Chebyshev
fits in 60 digits, rounded to the type; each degree is the lowest whose error stays below a quarter of
a unit in the last place.
"""

import sys

import mpmath as mp
from air import F32, F64, Func, Value

mp.mp.dps = 60

HEADER = """\
; Polynomial maths, compiled into kernels that use it. Made by derive.py; do not edit.
;
; All functions are free of branches, so that loops over them vectorise. They use the identities of
; Cody and Waite, "Software Manual for the Elementary Functions" (1980), for reducing arguments.
; NaN goes through, infinities and zeros give what C's libm gives.
; Largest errors, measured against libm (docs/math-accuracy.md): 2 ulp; 3.5 ulp for tan, sinh and tanh;
; 2.5 ulp for asin.
;
; sin, cos and tan hold for magnitudes up to `far_f32` and `far_f64`. The code generator puts a rarely
; taken branch behind them, which calls `far_sin_f32` and so on for larger arguments.
"""


def fit(function, lo, hi, bits):
    """Coefficients, lowest first, of the shortest polynomial within `2^-bits` of `function`."""
    for n in range(2, 30):
        coefficients, error = mp.chebyfit(function, [lo, hi], n, error=True)
        if error < mp.mpf(2) ** -bits:
            return list(reversed(coefficients))
    raise ValueError("no polynomial is good enough")


def near(function, limit):
    """`function`, whose limit at 0 is `limit`, without its cancellation there."""

    def safe(x):
        if abs(x) < mp.mpf(10) ** -15:
            return mp.mpf(limit)
        with mp.workdps(100):
            return function(x)

    return safe


# The parts that functions share.


def power_of_two(f, t, n):
    return ((n + t.bias) << t.mant).bitcast(t.name)


def scale(f, t, value, n):
    """`value * 2^n`, in two steps, since neither 2^128 nor 2^-150 is a number of f32."""
    half = n >> 1
    return value * power_of_two(f, t, half) * power_of_two(f, t, n - half)


def clamp(f, x, lo, hi):
    """NaN stays NaN."""
    x = f.select(x > hi, hi, x)
    return f.select(x < lo, lo, x)


def nearest(f, t, x, factor):
    """`x * factor` to the nearest integer: as a number, and as the low bits of an integer."""
    shifted = f.fma(x, factor, t.magic)
    return shifted - t.magic, shifted.bitcast(t.int)


def expm1_parts(f, t, x):
    """`e^x = 2^n (1 + p)`"""
    n, bits = nearest(f, t, x, 1 / mp.log(2))
    l1, l2 = t.parts(mp.log(2), 2)
    r = f.fma(n, -l2, f.fma(n, -l1, x))
    bound = mp.log(2) / 2 * mp.mpf("1.01")
    c = fit(near(lambda v: (mp.expm1(v) - v) / v**2, 0.5), -bound, bound, t.mant + 2)
    return f.fma(r * r, f.poly(r, c), r), bits - t.magic_bits


def with_sign_of(f, t, value, x):
    """`value`, which is not negative, with the sign of `x`."""
    sign = x.bitcast(t.int) & -(1 << (t.bits - 1))
    return (value.bitcast(t.int) | sign).bitcast(t.name)


def log_parts(f, t, x):
    """`x = 2^e (1 + u)` with `1 + u` between sqrt(1/2) and sqrt(2)."""
    tiny = x < t.min_normal
    normal = f.select(tiny, x * mp.mpf(2) ** (t.mant + 1), x)
    bits = normal.bitcast(t.int)
    root = int(mp.floor(mp.sqrt(0.5) * mp.mpf(2) ** (t.mant + 1))) - (1 << t.mant)
    root += (t.bias - 1) << t.mant
    e = (bits - root) >> t.mant
    m = (bits - (e << t.mant)).bitcast(t.name)
    number = e.cast(t.name)
    return f.select(tiny, number - (t.mant + 1), number), m


def log1p_tail(f, t, u):
    """`log(1 + u) - u + u^2 / 2`, and `u^2 / 2`."""
    square = u * u
    if t is F32:
        lo, hi = mp.sqrt(0.5) - 1, mp.sqrt(2) - 1
        series = lambda v: (mp.log1p(v) - v + v * v / 2) / v**3
        c = fit(near(series, mp.mpf(1) / 3), lo, hi, t.mant + 1)
        return u * square * f.poly(u, c), square * 0.5
    # With s = u / (2 + u), log(1 + u) = log(1 + s) - log(1 - s), an odd function of s.
    s = u / (u + 2)
    z = s * s
    bound = (3 - 2 * mp.sqrt(2)) ** 2

    def series(v):
        r = mp.sqrt(v)
        return (mp.log((1 + r) / (1 - r)) - 2 * r) / (r * v)

    c = fit(near(series, mp.mpf(2) / 3), mp.mpf(0), bound * mp.mpf("1.001"), t.mant + 2)
    half = square * 0.5
    # s (u^2 / 2 + z P(z)): since log(1 + u) = u - u^2 / 2 + s (u^2 / 2 + z P(z)).
    return s * f.fma(z, f.poly(z, c), half), half


def log_specials(f, t, x, result):
    regular = (x > 0) & (x < mp.inf)
    special = f.select(x > 0, x, mp.nan)
    special = f.select(x.eq(0), -mp.inf, special)
    return f.select(regular, result, special)


# The largest remainder: pi/4, and what the rounded factor 2/pi adds for the largest arguments.
QUARTER = mp.pi / 4 * mp.mpf("1.17")

# Up to these magnitudes `quarter_turns` is accurate.
FAR = {"f32": mp.mpf(2) ** 21, "f64": mp.mpf(2) ** 50}


def quarter_turns(f, t, size):
    """`size = n pi/2 + r + rest`: r, the rest, and n's low bits as an integer of the type's width.

    The first product cancels exactly, so only the second rounds `r`. Where `r` is so small that the
    third matters, it is exact. (Cody and Waite, with fused multiplications.)
    """
    n, bits = nearest(f, t, size, 2 / mp.pi)
    p1, p2, p3 = t.parts(mp.pi / 2, 3)
    return f.fma(n, -p2, f.fma(n, -p1, size)), n * -p3, bits


def high_product(a, b):
    """The high 64 bits of `a * b`, both `u64`, of which `b` is below 2^53."""
    low = (1 << 32) - 1
    a0, a1, b0, b1 = a & low, a >> 32, b & low, b >> 32
    middle = a0 * b1 + ((a0 * b0) >> 32)
    other = a1 * b0 + (middle & low)
    return a1 * b1 + (middle >> 32) + (other >> 32)


def far_turns(f, t, x):
    """As `quarter_turns` for `x >= FAR`, given in f64: r in f64, and n as `u64`, both modulo 4 turns.

    M. Payne and R. Hanek, "Radian reduction for trigonometric functions" (1983): of 2/pi only those
    bits matter whose product with the argument is neither a multiple of 4 nor negligible. These are
    192 bits from `position` on in a table that begins with 64 zeros.
    """
    bits = x.bitcast("u64")
    digits = (bits & ((1 << 52) - 1)) | (1 << 52)
    position = (bits >> 52) - (1023 - 10)
    largest = t.bias + 1 + 10
    n_words = (largest >> 6) + 4
    with mp.workdps(600):
        table = int(mp.floor(2 / mp.pi * mp.mpf(2) ** (64 * (n_words - 1))))
    words = [(table >> (64 * (n_words - 1 - k))) & ((1 << 64) - 1) for k in range(n_words)]
    index, shift = position >> 6, position & 63
    for k in reversed(range((largest >> 6).bit_length())):
        chosen = (index & (1 << k)).ne(0)
        # What the lower bits of the index still choose from.
        kept = min(4 + (1 << k) - 1, len(words))
        beyond = [*words[1 << k :], *[0] * kept]
        words = [f.select(chosen, beyond[i], words[i], "u64") for i in range(kept)]
    window = [(words[k] << shift) | ((words[k + 1] >> 1) >> (shift ^ 63)) for k in range(3)]
    # The product's upper 128 bits, modulo 2^192: two bits before the point, the others behind it.
    middle = window[1] * digits
    low = middle + high_product(window[2], digits)
    carry = f.select(low < middle, 1, 0, "u64")
    high = window[0] * digits + high_product(window[1], digits) + carry
    n = (high + (1 << 61)) >> 62
    high, low = ((high << 2) | (low >> 62)).bitcast("i64"), low << 2
    # The fraction, from -1/2 to 1/2, times 2^64, as a sum of two numbers.
    first = high.cast("f64")
    second = f.fma((low >> 1).cast("f64"), mp.mpf(2) ** -63, (high - first.cast("i64")).cast("f64"))
    whole = first + second
    lost = second - (whole - first)
    p1, p2 = F64.parts(mp.pi / 2 * mp.mpf(2) ** -64, 2)
    product = whole * p1
    r = product + f.fma(whole, p2, f.fma(lost, p1, f.fma(whole, p1, -product)))
    # An infinity has no angle.
    return r + (x - x), n


def polynomials(t):
    """Of the square of the remainder: sine and cosine without their first terms."""
    bound = QUARTER**2
    sine = lambda v: (mp.sin(mp.sqrt(v)) / mp.sqrt(v) - 1) / v
    cosine = lambda v: (mp.cos(mp.sqrt(v)) - 1 + v / 2) / v**2
    s = fit(near(sine, -mp.mpf(1) / 6), mp.mpf(0), bound, t.mant + 2)
    c = fit(near(cosine, mp.mpf(1) / 24), mp.mpf(0), bound, t.mant + 2)
    return s, c


def careful_cosine(f, z, c):
    half = z * 0.5
    first = 1 - half
    # What `first` has lost.
    lost = (1 - first) - half
    return first + f.fma(z * z, f.poly(z, c), lost)


def sin_cos(f, t, r, rest, careful=False):
    """Sine and cosine of `r + rest`, where the rest is too small for the cosine to notice."""
    z = r * r
    s, c = polynomials(t)
    sin = r + f.fma(r * z, f.poly(z, s), rest)
    if careful:
        return sin, careful_cosine(f, z, c)
    return sin, f.fma(z, f.fma(z, f.poly(z, c), -0.5), 1)


def atan_ratio(f, t, num, den):
    """The arc tangent of `num / den`, which lies between 0 and 1."""
    split = num > den * (mp.sqrt(2) - 1)
    u = f.select(split, num - den, num) / f.select(split, num + den, den)
    z = u * u
    bound = (mp.sqrt(2) - 1) ** 2 * mp.mpf("1.001")
    series = lambda v: (mp.atan(mp.sqrt(v)) / mp.sqrt(v) - 1) / v
    c = fit(near(series, -mp.mpf(1) / 3), mp.mpf(0), bound, t.mant + 2)
    small = u * z * f.poly(z, c)
    hi, lo = t.parts(mp.pi / 4, 2)
    turned = hi + (u + (small + lo))
    return f.select(split, turned, u + small)


def asin_parts(f, t, size):
    """For `size = |x|`: whether it is above 1/2, and then asin of sqrt((1 - size) / 2), else its own."""
    big = size > 0.5
    z = f.select(big, (1 - size) * 0.5, size * size)
    s = f.select(big, z.unary("sqrt"), size)
    series = lambda v: (mp.asin(mp.sqrt(v)) / mp.sqrt(v) - 1) / v
    c = fit(near(series, mp.mpf(1) / 6), mp.mpf(0), mp.mpf("0.25"), t.mant + 2)
    return big, f.fma(s * z, f.poly(z, c), s)


# The functions.


def exp(f, t, x):
    hi = mp.log(2) * (t.bias + 2)
    lo = -mp.log(2) * (t.bias + t.mant + 3)
    p, n = expm1_parts(f, t, clamp(f, x, lo, hi))
    return scale(f, t, p + 1, n)


def exp2(f, t, x):
    x = clamp(f, x, -(t.bias + t.mant + 3), t.bias + 2)
    n, bits = nearest(f, t, x, 1)
    r = x - n
    c = fit(near(lambda v: mp.expm1(v * mp.log(2)) / v, mp.log(2)), -0.5, mp.mpf("0.5"), t.mant + 3)
    return scale(f, t, f.fma(r, f.poly(r, c), 1), bits - t.magic_bits)


def log(f, t, x):
    e, m = log_parts(f, t, x)
    u = m - 1
    tail, half = log1p_tail(f, t, u)
    l1, l2 = t.parts(mp.log(2), 2)
    rest = f.fma(e, l2, tail) - half
    return log_specials(f, t, x, f.fma(e, l1, u + rest))


def log2(f, t, x):
    e, m = log_parts(f, t, x)
    u = m - 1
    tail, half = log1p_tail(f, t, u)
    # u - half + tail, times log2(e), in two parts of each.
    rest = tail - half
    whole = u + rest
    lost = (u - whole) + rest
    c1, c2 = t.parts(1 / mp.log(2), 2)
    small = f.fma(whole, c2, lost * c1)
    return log_specials(f, t, x, e + f.fma(whole, c1, small))


def near_turns(f, t, x):
    return quarter_turns(f, t, abs(x))


def far_turns_of(f, t, x):
    """As `near_turns`, by a call of `far_turns`."""
    size = abs(x)
    wide = size if t is F64 else size.cast("f64")
    r, n = f.call(f"far_turns_{t.name}", wide, ["f64", "u64"])
    return r if t is F64 else r.cast("f32"), 0, n.cast(t.int)


def signed(f, t, value, sign):
    """The value, negated if the uppermost bit of an integer is set."""
    sign = sign & -(1 << (t.bits - 1))
    return (value.bitcast(t.int) ^ sign).bitcast(t.name)


def sin(f, t, x, turns=near_turns):
    r, rest, n = turns(f, t, x)
    s, c = sin_cos(f, t, r, rest)
    value = f.select((n & 1).ne(0), c, s)
    return signed(f, t, value, (n << (t.bits - 2)) ^ x.bitcast(t.int))


def cos(f, t, x, turns=near_turns):
    r, rest, n = turns(f, t, x)
    s, c = sin_cos(f, t, r, rest)
    value = f.select((n & 1).ne(0), s, c)
    return signed(f, t, value, (n + 1) << (t.bits - 2))


def tan(f, t, x, turns=near_turns):
    r, rest, n = turns(f, t, x)
    s, c = sin_cos(f, t, r, rest, careful=True)
    odd = (n & 1).ne(0)
    value = f.select(odd, c, s) / f.select(odd, s, c)
    return signed(f, t, value, (n << (t.bits - 1)) ^ x.bitcast(t.int))


def asin(f, t, x):
    big, p = asin_parts(f, t, abs(x))
    hi, lo = t.parts(mp.pi / 2, 2)
    return with_sign_of(f, t, f.select(big, hi - (p + p - lo), p), x)


def acos(f, t, x):
    big, p = asin_parts(f, t, abs(x))
    hi, lo = t.parts(mp.pi / 2, 2)
    negative = x < 0
    middle = hi - (f.select(negative, -p, p) - lo)
    twice = p + p
    outer = f.select(negative, 2 * hi - (twice - 2 * lo), twice)
    return f.select(big, outer, middle)


def atan(f, t, x):
    size = abs(x)
    large = size > 1
    num, den = f.select(large, 1, size), f.select(large, size, 1)
    angle = atan_ratio(f, t, num, den)
    hi, lo = t.parts(mp.pi / 2, 2)
    return with_sign_of(f, t, f.select(large, hi - (angle - lo), angle), x)


def atan2(f, t, y, x):
    ax, ay = abs(x), abs(y)
    steep = ay > ax
    den, num = f.select(steep, ay, ax), f.select(steep, ax, ay)
    # Both infinite count as equal, both zero as a positive x; large ones must have a sum.
    same = (num.eq(mp.inf)) & (den.eq(mp.inf))
    factor = f.select(den > mp.mpf(2) ** (t.bias - 1), 0.25, 1, t.name)
    num = f.select(same, 1, num * factor)
    den = f.select(same, 1, f.select(den.eq(0), 1, den * factor))
    angle = atan_ratio(f, t, num, den)
    hi, lo = t.parts(mp.pi / 2, 2)
    angle = f.select(steep, hi - (angle - lo), angle)
    left = x.bitcast(t.int) < 0
    angle = f.select(left, 2 * hi - (angle - 2 * lo), angle)
    angle = with_sign_of(f, t, angle, y)
    return f.select((x.ne(x)) | (y.ne(y)), x + y, angle)


def quarter_expm1(f, t, size):
    """`(e^size - 1) / 4` for `size >= 0`, which is finite where sinh is."""
    p, n = expm1_parts(f, t, size)
    quarter = power_of_two(f, t, n - 2)
    return f.fma(quarter, p, quarter - 0.25)


def sinh(f, t, x):
    limit = mp.log(2) * (t.bias + 1) + mp.log(2)
    size = abs(x)
    capped = f.select(size > limit, limit, size)
    q = quarter_expm1(f, t, capped)
    # With E = e^|x| - 1 = 4 q: sinh = (E + E / (E + 1)) / 2.
    value = (q + q) + q / f.fma(q, 2, 0.5)
    value = f.select(size > t.round(limit), mp.inf, value)
    return with_sign_of(f, t, value, x)


def cosh(f, t, x):
    limit = mp.log(2) * (t.bias + 2) + mp.log(2)
    size = abs(x)
    capped = f.select(size > limit, limit, size)
    p, n = expm1_parts(f, t, capped)
    half = scale(f, t, p + 1, n - 1)
    return half + 0.25 / half


def tanh(f, t, x):
    limit = mp.mpf(10) if t is F32 else mp.mpf(20)
    size = abs(x)
    capped = f.select(size > limit, limit, size)
    q = quarter_expm1(f, t, capped + capped)
    return with_sign_of(f, t, q / (q + 0.5), x)


def pow_specials(f, t, x, y, size):
    """`size = |x|^|...|` with the sign and the exceptions of `x^y`."""
    whole = y.unary("floor").eq(y)
    half = y * 0.5
    odd = whole & (half.unary("floor").ne(half))
    sign = x.bitcast(t.int) & -(1 << (t.bits - 1))
    sign = f.select(odd, sign, 0)
    result = (size.bitcast(t.int) | sign).bitcast(t.name)
    undefined = (x < 0) & (x > -mp.inf) & (whole.f.emit("u1", f"not {whole.name}"))
    result = f.select(undefined, mp.nan, result)
    return f.select((y.eq(0)) | (x.eq(1)), 1, result)


def log2_specials(f, t, size, result):
    """For `size >= 0` or NaN."""
    regular = (size > 0) & (size < mp.inf)
    return f.select(regular, result, f.select(size.eq(0), -mp.inf, size))


def pow_f32(f, t, x, y):
    """In f64, where a plain logarithm is exact enough."""
    size = abs(x).cast("f64")
    bits = size.bitcast("i64")
    root = (1022 << 52) + int(mp.floor(mp.sqrt(0.5) * mp.mpf(2) ** 53)) - (1 << 52)
    e = (bits - root) >> 52
    u = (bits - (e << 52)).bitcast("f64") - 1
    lo, hi = mp.sqrt(0.5) - 1, mp.sqrt(2) - 1
    c = fit(near(lambda v: mp.log1p(v) / mp.log(2) / v, 1 / mp.log(2)), lo, hi, 36)
    number = e.cast("i32").cast("f64")
    exponent = log2_specials(f, F64, size, f.fma(u, f.poly(u, c), number))
    product = exponent * y.cast("f64")
    product = f.select(exponent.eq(0), 0, product)
    product = clamp(f, product, -200, 200)
    n, low = nearest(f, F64, product, 1)
    r = product - n
    c = fit(near(lambda v: mp.expm1(v * mp.log(2)) / v, mp.log(2)), -0.5, mp.mpf("0.5"), 31)
    p = f.fma(r, f.poly(r, c), 1)
    power = (p.bitcast("i64") + (low << 52)).bitcast("f64")
    # Adding to the bits of a NaN may give a number.
    power = f.select(product.eq(product), power, product)
    return pow_specials(f, t, x, y, power.cast("f32"))


def pow_f64(f, t, x, y):
    """With the logarithm as a sum of two numbers (Dekker 1971)."""
    size = abs(x)
    e, m = log_parts(f, t, size)
    u = m - 1
    g = m + 1
    g_lo = m - (g - 1)
    inverse = 1 / g
    s = u * inverse
    s_lo = (f.fma(-s, g, u) - s * g_lo) * inverse
    # log(1 + u) = 2 s (1 + w) with w = z / 3 + z^2 / 5 + ..
    z = s * s
    z_lo = f.fma(s, s, -z) + 2 * s * s_lo
    t1, t2 = t.parts(mp.mpf(1) / 3, 2)
    a = z * t1
    a_lo = f.fma(z, t1, -a) + f.fma(z, t2, z_lo * t1)

    def series(v):
        r = mp.sqrt(v)
        return (mp.atanh(r) / r - 1 - v / 3) / v**2

    bound = (3 - 2 * mp.sqrt(2)) ** 2 * mp.mpf("1.001")
    c = fit(near(series, mp.mpf(1) / 5), mp.mpf(0), bound, t.mant + 2)
    b = z * z * f.poly(z, c)
    w = a + b
    w_lo = ((a - w) + b) + a_lo
    v = s * w
    v_lo = f.fma(s, w, -v) + f.fma(s, w_lo, s_lo * w)
    l = s + v
    l_lo = ((s - l) + v) + (v_lo + s_lo)
    c1, c2 = t.parts(2 / mp.log(2), 2)
    p = l * c1
    p_lo = f.fma(l, c1, -p) + f.fma(l, c2, l_lo * c1)
    hi = e + p
    lo = ((e - hi) + p) + p_lo
    total = hi + lo
    rest = (hi - total) + lo
    total = log2_specials(f, t, size, total)
    product = y * total
    product = f.select(total.eq(0), 0, product)
    product_lo = f.fma(y, total, -product) + y * rest
    # Not for infinities, nor for powers of 1 and -1.
    inside = (abs(product) < 2000) & (total.ne(0))
    product_lo = f.select(inside, product_lo, 0)
    product = clamp(f, product, -2000, 2000)
    n, bits = nearest(f, t, product, 1)
    r = (product - n) + product_lo
    c = fit(near(lambda v: mp.expm1(v * mp.log(2)) / v, mp.log(2)), mp.mpf("-0.51"), mp.mpf("0.51"), t.mant + 3)
    power = f.fma(r, f.poly(r, c), 1)
    return pow_specials(f, t, x, y, scale(f, t, power, bits - t.magic_bits))


def main():
    out = [HEADER]
    for t in (F32, F64):
        for function in (exp, exp2, log, log2, sin, cos, tan, asin, acos, atan, sinh, cosh, tanh):
            f = Func(f"{function.__name__}_{t.name}", [("x", t.name)], t.name)
            out.append(f.text(function(f, t, Value(f, "x", t.name))))
        f = Func(f"atan2_{t.name}", [("y", t.name), ("x", t.name)], t.name)
        out.append(f.text(atan2(f, t, Value(f, "y", t.name), Value(f, "x", t.name))))
        f = Func(f"pow_{t.name}", [("x", t.name), ("y", t.name)], t.name)
        power = pow_f32 if t is F32 else pow_f64
        out.append(f.text(power(f, t, Value(f, "x", t.name), Value(f, "y", t.name))))
    for t in (F32, F64):
        f = Func(f"far_{t.name}", [], t.name)
        out.append(f.text(f.value(FAR[t.name], t.name)))
        f = Func(f"far_turns_{t.name}", [("x", "f64")], "f64, u64")
        out.append(f.text(*far_turns(f, t, Value(f, "x", "f64"))))
        for function in (sin, cos, tan):
            f = Func(f"far_{function.__name__}_{t.name}", [("x", t.name)], t.name)
            out.append(f.text(function(f, t, Value(f, "x", t.name), far_turns_of)))
    sys.stdout.write("\n".join(out))


main()
