"""Operands near the points where decisions change: multiples, ties, equal operands, double roots, ends of ranges."""

import numpy as np

from decisions.formats import DIGITS, any_bits, from_double, nudged, rounded, specials

# What programs write as constants. The last ones are at the ends of ranges, and drawn seldom.
STEPS = [
    0.1,
    0.3,
    3.0,
    7.0,
    49.0,
    0.7,
    1 / 3,
    9.81,
    1e-3,
    60.0,
    0.02,
    2.0,
    0.5,
    0.0625,
    6.0,
    10,
    5,
    255.0,
    1.7,
    0.01,
    3,
    100.0,
]
STEPS += [-0.1, -3.0, 0.15, 0.6, 1.1, 1.3, 41, 0.05]
ENDS = [1e-5, 1e6, 1e-30, 1e30, 3e-39, 1e-41, 3e38, 65504.0, 5.5e-6, 1e-310, 1e300]
OFFSETS = [0.1, 0.0, -1.0, 0.3, 0.5, 1.0, -0.5, 0.7, 2, 1e-3, 1 / 3, 12.3]


def constant(kind, rng, slot, step):
    """A number of Python's for an operand that is the same in a whole kernel; `step` is that of `d`."""
    if slot == "d":
        pool = ENDS if rng.random() < 0.12 else STEPS
        fitting = [c for c in pool if np.isfinite(v := from_double(kind, c)) and v != 0]
        return fitting[rng.integers(len(fitting))]
    if slot == "y":
        pool = [*OFFSETS, step, 2 * step, 5 * step]
    else:
        pool = [1 / step, 1 / step, 0.5, 8.0, 128.0, 1.0, 0.25, step, 3, 0.1]
    chosen = pool[rng.integers(len(pool))]
    return chosen if np.isfinite(from_double(kind, chosen)) else 0.5


def operands(kind, rng, n, fixed):
    """Values of `x`, `y`, `d` and `w` in `n` rows; those in `fixed` are arrays already."""
    maker = _Rows(kind, rng, n)
    with np.errstate(all="ignore"):
        rows = dict(fixed)
        for slot in ("d", "w", "y", "x"):
            if slot not in rows:
                rows[slot] = getattr(maker, slot)(rows)
    return rows


class _Rows:
    def __init__(self, kind, rng, n):
        self.kind, self.rng, self.n = kind, rng, n

    def near(self, values):
        """Doubles, or results of the kind's own operations, rounded; some are moved by a unit or two."""
        values = from_double(self.kind, values) if np.asarray(values).dtype == np.float64 else values
        ulps = self.rng.choice([0, 0, 0, 0, 1, -1, 2, -2], self.n)
        return nudged(self.kind, rounded(self.kind, values), ulps)

    def whole(self):
        """Integers, small ones mostly."""
        small = self.rng.integers(-60, 200, self.n)
        large = self.rng.integers(0, 2 ** min(DIGITS[self.kind], 30), self.n)
        return from_double(self.kind, np.where(self.rng.random(self.n) < 0.8, small, large))

    def plain(self):
        sizes = 10.0 ** self.rng.integers(-3, 3, self.n)
        return from_double(self.kind, self.rng.uniform(-1, 1, self.n) * sizes)

    def powers(self):
        reach = {"f16": 14, "bf16": 120, "f32": 120, "f64": 1000}[self.kind]
        return self.near(2.0 ** self.rng.integers(-reach, reach, self.n).astype(np.float64))

    def special(self):
        return self.rng.choice(specials(self.kind), self.n)

    def bits(self):
        return any_bits(self.kind, self.rng, self.n)

    def of(self, numbers):
        found = from_double(self.kind, np.asarray(numbers, np.float64))
        return self.rng.choice(found[np.isfinite(found)], self.n)

    def mixed(self, makers):
        """Each row by one of some makers."""
        made = np.stack([np.broadcast_to(make(), self.n) for make in makers])
        return made[self.rng.integers(len(makers), size=self.n), np.arange(self.n)]

    def d(self, rows):
        steps = lambda: self.of(STEPS)  # noqa: E731
        return self.mixed(
            [steps] * 6 + [self.plain, self.bits, self.special, self.powers, lambda: self.near(self.of(STEPS))]
        )

    def w(self, rows):
        d = rows["d"]
        inverse = lambda: 1 / d  # noqa: E731
        return self.mixed(
            [
                lambda: rounded(self.kind, inverse()),
                lambda: self.near(inverse()),
                lambda: self.of([0.5, 8, 1, 0.25, 0.1]),
                lambda: d,
                lambda: self.near(self.whole() * d),
                self.plain,
                self.special,
                self.bits,
            ]
        )

    def y(self, rows):
        d, w = rows["d"], rows["w"]
        return self.mixed(
            [
                lambda: self.of(OFFSETS),
                lambda: self.near(self.whole() * d),
                lambda: self.near(self.whole() * w),
                lambda: self.near(2 * d * self.whole()),
                lambda: d,
                self.plain,
                self.plain,
                self.special,
                self.bits,
            ]
        )

    def x(self, rows):
        d, w, y, kind = rows["d"], rows["w"], rows["y"], self.kind
        k = self.whole()
        half = rounded(kind, k + k.dtype.type(0.5))
        root = rounded(kind, y / (2 * d))
        # Where `x` equals another operand it is not moved by a unit.
        return self.mixed(
            [
                lambda: self.near(k * d),
                lambda: rounded(kind, k * d),
                lambda: self.near(y + rounded(kind, k * d)),
                lambda: rounded(kind, y + rounded(kind, k * d)),
                lambda: y,
                lambda: d,
                lambda: self.near(y),
                lambda: self.near(half * d),
                lambda: self.near(y + rounded(kind, half * d)),
                lambda: self.near(k / w),
                lambda: self.near(half / w),
                lambda: self.near(d * rounded(kind, root * root)),
                lambda: rounded(kind, d * rounded(kind, root * root)),
                lambda: self.near(rounded(kind, d * w) / y),
                lambda: self.near(rounded(kind, d * y) / w),
                lambda: k,
                lambda: half,
                self.plain,
                self.plain,
                self.powers,
                self.special,
                self.bits,
            ]
        )
