"""Writes the coefficients of `frontend-py/python/aerogel/tensor/_special_tables.py`; it needs `mpmath`.

    python scripts/derive_special.py > frontend-py/python/aerogel/tensor/_special_tables.py

Each table is a polynomial in `t` from -1 to 1: the Chebyshev interpolant of a smooth function, computed with 40 digits,
cut off where its terms fall below the rounding of the type, and written in powers of `t`, lowest first. Chebyshev terms
fall off fast enough here that powers lose no digits.
"""

from __future__ import annotations

from typing import Any

import mpmath as m

m.mp.dps = 40

#: Where the terms of a series end, relative to its largest.
SINGLE, DOUBLE = 4e-9, 3e-18


def chebyshev(f: Any, n: int = 48) -> list[Any]:
    """The coefficients of the interpolant of a function on -1 to 1."""
    at = [m.cos(m.pi * (k + m.mpf(1) / 2) / n) for k in range(n)]
    values = [f(t) for t in at]
    out = []
    for j in range(n):
        c = sum(v * m.cos(m.pi * j * (k + m.mpf(1) / 2) / n) for k, v in enumerate(values))
        out.append(c * (2 if j else 1) / n)
    return out


def powers(c: list[Any]) -> list[Any]:
    """The same polynomial in powers of its variable."""
    before, at, out = [m.mpf(1)], [m.mpf(0), m.mpf(1)], [m.mpf(0)] * len(c)
    for j, factor in enumerate(c):
        row = before if j == 0 else at
        for k, n in enumerate(row):
            out[k] += factor * n
        if j:
            following = [m.mpf(0), *(2 * n for n in at)]
            for k, n in enumerate(before):
                following[k] -= n
            before, at = at, following
    return out


def cut(c: list[Any], least: float) -> list[Any]:
    """The terms up to the last one that counts."""
    largest = max(map(abs, c))
    return c[: max(k for k, x in enumerate(c) if abs(x) > least * largest) + 1]


def scaled_erfc(t: Any) -> Any:
    """`(1 + 2x) exp(x^2) erfc(x)` with `t = (x - 3.75) / (x + 3.75)` (Shepherd and Laframboise, 1981)."""
    return (lambda x: (1 + 2 * x) * erfcx(x))(m.mpf(3.75) * (1 + t) / (1 - t))


def erfcx(x: Any) -> Any:
    """`exp(x^2) erfc(x)`."""
    if x > 50:
        return 2 * x / m.pi * m.quad(lambda t: m.exp(-t * t) / (x * x + t * t), [0, 1, 2, 5, 10])
    return m.exp(x * x) * m.erfc(x)


def erfcinv(s: Any) -> Any:
    """The number whose `erfc` is `exp(-s^2)`, by Newton's steps."""
    y = s if s < 1 else s - m.log(s * m.sqrt(m.pi)) / (2 * s)
    for _ in range(60):
        e = erfcx(y)
        step = (s * s - y * y + m.log(e)) * e * m.sqrt(m.pi) / 2
        y += step
        if abs(step) < m.mpf(10) ** -36:
            break
    return y


#: The root of the digamma function between 1 and 2.
ROOT = m.findroot(m.digamma, 1.46)
#: The ends of `log(s)` in the tail of the inverse error function.
LOW = m.log(m.sqrt(-m.log(1 - m.mpf("0.8"))))
HIGH = m.log(m.mpf(28))

TABLES = {
    "ERFCX": ("`(1 + 2x) exp(x^2) erfc(x)`, `t = (x - 3.75) / (x + 3.75)`.", scaled_erfc),
    "ERFINV_NEAR": (
        "`erfinv(x) / x` for `abs(x) <= 0.8`, `t = x^2 / 0.32 - 1`.",
        lambda t: (lambda x: m.erfinv(x) / x)(m.mpf("0.8") * m.sqrt((1 + t) / 2)),
    ),
    "ERFINV_FAR": (
        "`erfcinv(exp(-s^2)) - s`, `t` linear in `log(s)` from FAR[0] to FAR[1].",
        lambda t: (lambda s: erfcinv(s) - s)(m.exp((LOW + HIGH) / 2 + (HIGH - LOW) / 2 * t)),
    ),
    "GAMMALN_NEAR": ("`gammaln(2 + p) / p`, `t = 2p`.", lambda t: m.loggamma(2 + t / 2) / (t / 2)),
    "GAMMALN_FAR": (
        "`x (gammaln(x) - (x - 1/2) log(x) + x - log(2 pi) / 2)`, `t = 2 (7.5 / x)^2 - 1`.",
        lambda t: (lambda x: (m.loggamma(x) - (x - m.mpf(0.5)) * m.log(x) + x - m.log(2 * m.pi) / 2) * x)(
            m.mpf(7.5) / m.sqrt((1 + t) / 2)
        ),
    ),
    "DIGAMMA_NEAR": (
        "`digamma(x) / (x - root)` for `x` from 1 to 2, `t = 2x - 3`.",
        lambda t: (lambda x: m.digamma(x) / (x - ROOT))(m.mpf(1.5) + t / 2),
    ),
    "DIGAMMA_FAR": (
        "`x^2 (digamma(x) - log(x) + 1 / (2x))`, `t = 2 (6 / x)^2 - 1`.",
        lambda t: (lambda x: (m.digamma(x) - m.log(x) + 1 / (2 * x)) * x * x)(6 / m.sqrt((1 + t) / 2)),
    ),
}


def main() -> None:
    """Prints the module."""
    print('"""Coefficients of `_special.py`, lowest power first; made by `scripts/derive_special.py`."""\n')
    print("from __future__ import annotations\n")
    first = m.mpf(int(ROOT * 2**23)) / 2**23
    second = m.mpf(float(ROOT - first))
    print("#: The root of the digamma function between 1 and 2, in three parts whose first has 24 bits.")
    print(f"DIGAMMA_ROOT = ({float(first)!r}, {float(second)!r}, {float(ROOT - first - second)!r})")
    print("#: The ends of `log(s)` in the tail of the inverse error function.")
    print(f"FAR = ({float(LOW)!r}, {float(HIGH)!r})")
    for name, (says, f) in TABLES.items():
        c = chebyshev(f)
        print(f"\n#: {says}")
        for suffix, least in (("", DOUBLE), ("_SINGLE", SINGLE)):
            print(f"{name}{suffix} = (")
            for value in powers(cut(c, least)):
                print(f"    {float(value)!r},")
            print(")")


if __name__ == "__main__":
    main()
