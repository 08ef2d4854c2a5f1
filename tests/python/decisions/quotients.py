"""Quotients over the whole range of exponents, which are correctly rounded whatever the divisor's source.

`f16`, `bf16` and `f32`: the quotient of doubles, rounded once more, is the rounded quotient (f64 has more than twice the
bits). `f64`: the processor's division by NumPy, itself compared with the quotient of Python's integers on a sample.
"""

import linecache
from fractions import Fraction

import numpy as np

import aerogel as ti
from decisions.formats import WORK, any_bits, bits_of, from_bits, from_double, nudged, specials, stored
from decisions.programs import COUNT, Failure

PER_LAUNCH, PER_ROW = 1 << 14, 61
# The share of each source; a launch or a kernel of a few rows costs as much as thousands of quotients.
SHARES = {"varying": 0.35, "serial": 0.1, "invariant": 0.25, "argument": 0.2, "constant": 0.1}


def rounded_quotient(kind, x, d):
    """The quotients, each rounded once to the kind."""
    with np.errstate(all="ignore"):
        if kind == "f64":
            return x / d
        return from_double(kind, x.astype(np.float64) / d.astype(np.float64))


def exact_quotient(x, d):
    """The quotient of two finite doubles by integers, rounded once; the divisor is not zero."""
    exact = abs(Fraction(x) / Fraction(d))
    try:
        size = exact.numerator / exact.denominator
    except OverflowError:
        size = float("inf")
    return np.copysign(size, np.copysign(1.0, x) * np.copysign(1.0, d))


def hard(kind, rng, n, d=None):
    """Dividends and divisors: any bits, ends of ranges, and quotients near the middle between two values."""
    with np.errstate(all="ignore"):
        if d is None:
            simple = from_double(kind, rng.integers(1, 200, n) * 10.0 ** -rng.integers(0, 3, n))
            pick = rng.random(n)
            d = np.where(pick < 0.7, any_bits(kind, rng, n), simple)
            d = np.where(pick > 0.97, rng.choice(specials(kind), n), d)
        whole = from_double(kind, rng.integers(0, 1 << 11, n))
        middle = from_bits(kind, bits_of(kind, any_bits(kind, rng, n)))
        wide = np.float64 if kind != "f64" else np.longdouble
        between = (middle.astype(wide) + nudged(kind, middle, 1).astype(wide)) / 2
        made = [any_bits(kind, rng, n), any_bits(kind, rng, n), whole * d, (between * d).astype(np.float64)]
        made += [
            (middle.astype(wide) * d).astype(np.float64),
            rng.choice(specials(kind), n),
            d,
            (between * d).astype(np.float64),
        ]
        made = np.stack([from_double(kind, np.asarray(v, np.float64)) for v in made])
        x = made[rng.integers(len(made), size=n), np.arange(n)]
        return nudged(kind, x, rng.choice([0, 0, 0, 1, -1], n)), d


def kernel(kind, source, constant=None):
    """The kernel of one source of divisors: two quotients by it, and its reciprocal."""
    array = f"ti.types.ndarray(ti.{kind}, {2 if source == 'invariant' else 1})"
    params = [f"X: {array}", f"Y: {array}"]
    if source in ("varying", "serial", "invariant"):
        params.append(f"D: ti.types.ndarray(ti.{kind}, 1)")
    elif source == "argument":
        params.append(f"d: ti.{kind}")
    params += [f"{name}: {array}" for name in "PQR"]
    d, place = {"argument": "d", "constant": repr(constant)}.get(source, "D[i]"), "[i]"
    body = ["for i in range(X.shape[0]):"]
    if source == "serial":
        body.insert(0, "ti.loop_config(serialize=True)")
    indent = " " * 4
    if source == "invariant":
        body += [indent + f"d = {d}", indent + "for j in range(X.shape[1]):"]
        indent, d, place = indent * 2, "d", "[i, j]"
    body += [f"{indent}{out}{place} = {x} / {d}" for out, x in (("P", f"X{place}"), ("Q", f"Y{place}"), ("R", "1.0"))]
    text = "\n".join(["@ti.kernel", f"def k({', '.join(params)}):", *("    " + line for line in body)]) + "\n"
    path = f"/generated/quotients{next(COUNT)}.py"
    linecache.cache[path] = (len(text), None, text.splitlines(True), path)
    scope = {"ti": ti}
    exec(compile(text, path, "exec"), scope)  # noqa: S102
    return scope["k"], text


def check(kind, rng, n):
    """How many quotients were computed, about `n`, and those that are wrong. `default_fp` is the kind."""
    done, failures = 0, []
    for source, share in SHARES.items():
        left, made = int(n * share), None
        while left > 0:
            rows = min(PER_LAUNCH + 3, max(left // 3, 1))
            uniform = source in ("argument", "constant")
            if uniform:
                rows = min(rows, 997 if source == "argument" else 40_003)
            d = None
            if uniform:
                # Divisors that programs write, and any.
                x, d = hard(kind, rng, rows)
                number = float(d[0]) if source == "argument" or np.isfinite(d[0]) else 0.1
                d = np.full(rows, number, WORK[kind])
            elif source == "invariant":
                _, d = hard(kind, rng, -(-rows // PER_ROW))
                d = np.repeat(d, PER_ROW)
                rows = d.size
            x, d = hard(kind, rng, rows, d)
            y, _ = hard(kind, rng, rows, d)
            if made is None or source == "constant":
                made = kernel(kind, source, number if uniform else None)
            shape = (-1, PER_ROW) if source == "invariant" else (-1,)
            outs = [stored(kind, np.zeros(rows)).reshape(shape) for _ in range(3)]
            given = [stored(kind, v).reshape(shape) for v in (x, y)]
            if source == "argument":
                given.append(number)
            elif source != "constant":
                given.append(stored(kind, d[::PER_ROW] if source == "invariant" else d))
            made[0](*given, *outs)
            for name, dividend, out in zip(("x / d", "y / d", "1 / d"), (x, y, np.ones(rows, WORK[kind])), outs):
                failures += compared(kind, source, name, dividend, d, out.reshape(-1), made[1])
            done += 3 * rows
            left -= 3 * rows
    return done, failures


def compared(kind, source, name, dividend, d, out, text):
    """The first quotient that is not rounded correctly, if there is one."""
    got, right = out.astype(WORK[kind]), rounded_quotient(kind, dividend, d)
    wrong = np.nonzero(bits_of(kind, got) != bits_of(kind, right))[0]
    if not wrong.size:
        return []
    at = wrong[0]
    values = {"x": float(dividend[at]), "d": float(d[at])}
    shape = f"quotient, {wrong.size} of {out.size}"
    return [Failure(name, kind, shape, {"x": "array", "d": source}, values, got[at], right[at], text)]


def sample(rng, n):
    """Quotients of doubles for which NumPy and Python's integers disagree: there should be none."""
    x, d = hard("f64", rng, n)
    fine = np.isfinite(x) & np.isfinite(d) & (d != 0)
    x, d = x[fine], d[fine]
    right = np.array([exact_quotient(a, b) for a, b in zip(x, d)])
    return np.nonzero(bits_of("f64", rounded_quotient("f64", x, d)) != bits_of("f64", right))[0]
