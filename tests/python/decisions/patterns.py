"""The table of patterns: float expressions over `x`, `y`, `d` and `w`, by topic, and the decisions that end them.

`x` is a coordinate, `y` an offset, `d` a divisor or a period, `w` a weight or the reciprocal of `d`.
"""

import functools

# The last float of a pattern; every one is joined with every decision that its topic names.
EXPRESSIONS = {
    "cells": """
        (x - y) / d;  (x - y) * w;  (x + y) / d;  (x + y) * w;  x / d;  x * w;  x / d - 0.5;  x * w - 0.5;  x / d + 0.5
        x * w + 0.5;  (x - y) / d - 0.5;  (x - y) * w + 0.5;  (x - 0.1) / 3.0;  (x - 0.1) * 3.0;  (x - y) / d * w
        (x - y) * (1.0 / d);  (x - y) * 2.0 / d;  x * 8.0 / d;  (x - d) / d;  (x / d - y) * w;  x * d + y;  x * d - y
        y - x * d;  x / d + y;  x / d - y;  x / d * w + y;  (x - y * d) / d;  (x - y * d) * w;  (x - 3.0 * d) / d
        (x - y) / (2.0 * d);  x / (d * w);  x / (d + w);  (x + 0.5 * d) / d;  (x - 0.5 * d) * w
    """,
    "quotients": """
        x / d / w;  x / w / d;  x / d + y / d;  x / d - y / d;  (x / d) * (y / d);  x / d * d;  x / d * d - x;  x * d / d
        x * d / d - x;  d / x;  1.0 / x;  1.0 / (x - y);  1 / (x / d);  x * (1.0 / d);  x * (w / d);  x / (d / w);  x / x
        (x - y) / (d - y);  (x - y) / (x - y);  (x + y) / (x + d);  x / (y / (d / w));  x / 3.0;  x / 3;  x / 10.0;  x / 49
        7.0 / x;  x / 0.1;  x / 0.1 / 0.3;  x * 0.1 / 0.3;  x / (y * y);  x / sqrt(d);  x / abs(d);  x / d / d;  x / 3 / y
    """,
    "products": """
        x * y * d;  x * (y * d);  x * y * d * w;  d * x * x * x;  x * x * x - d;  x * 0.1 * 0.3;  2.0 * 9.81 * (x - y)
        0.1 * x * 3.0;  2 * x * 0.5;  x * y - d * w;  x * w - d * y;  d * w - x * y;  x * x - y * y;  (x - y) * (x + y)
        x * d - y * d;  (x - y) * d;  x * 0.1 - y * 0.1;  d * x + d * y;  d * (x + y);  x * d + y * d - (x + y) * d;  x * x
        x * d * w - x;  x * (d * w);  x * (d * w) - x;  x * (d - w);  x * (d + w);  (x * y) * (d * w);  x * y + d;  x * y - d
        d - x * y;  -(x * y) - d;  x * y + x * d;  x * w + x * y;  x * 2.0 + y;  x * 4 - y * 4;  -x * y + d * w
    """,
    "differences": """
        x + y - x;  (x + y) - y;  x - y;  x - y - d;  x - (y + d);  x - (y - d);  x + y + d;  (x + d) - (y + d)
        (x + 1e8) - 1e8;  x + 0.1 + 0.2;  x + (0.1 + 0.2);  0.3 - x - 0.1;  x - 0.1 + 0.1;  x - x;  y - x - (y - x);  x + d + w
        (x - y) - (x - d);  x + d - d - x;  (x - y) + (y - x);  x - 0.0;  x + 0.0;  0.0 - x;  -x + y;  1 - x;  1.0 - (1.0 - x)
    """,
    "polynomials": """
        (y * x + d) * x + w;  y * x * x + d * x + w;  ((x * y + d) * x + w) * x - d;  x * x * x - 2 * x * x + d * x - w
        ((x - 3) * x + 3) * x - 1;  x * x * x - 3 * x * x + 3 * x - 1;  x * x - 2 * x * y + y * y;  (x - y) * (x - y)
        x * x - 2.0 * x + 1.0;  (x - 2.0) * x + 1.0;  0.1 * x * x - 0.3 * x + d;  (0.1 * x - 0.3) * x + d
        x * x * (3.0 - 2.0 * x);  x * (1.0 - x) - d;  w * x * (1.0 - x);  x * (x - y) - d;  y + x * d + 0.5 * w * x * x
    """,
    "roots": """
        y * y - 4 * x * d;  y * y - 4.0 * (x * d);  y * y - x * d * 4;  y * y * 0.25 - x * d;  y * y / 4 - x * d;  x * x - y * y
        x * x + y * y - d * d;  x * x + y * y - d;  d - x * x - y * y;  1.0 - x * x;  1 - x / d * (x / d);  d * d - x * x
        x * x / d - (x / d) * (x / d);  x / 4 - (y / 4) * (y / 4);  2.0 * 9.81 * (x - y);  19.62 * (x - 0.3);  (x - y) * w
        x * w - y;  (x - y) / d;  x * y - y * x;  x * d - d * x;  x * w - d * y;  (x - d) * (x - d) - (y - w) * (y - w)
        w * w - (1.0 - x * x);  1.0 - w * w * (1.0 - x * x);  x - y * (x / y)
    """,
    "lengths": """
        sqrt(x * x + y * y) - d;  sqrt(x * x + y * y + d * d) - w;  x * x + y * y - d * d;  sqrt((x - y) * (x - y)) - abs(x - y)
        sqrt(x * x + y * y) / d;  x / sqrt(x * x + y * y);  x * rsqrt(x * x + y * y);  sqrt(x) * sqrt(x) - x;  sqrt(x * x) - x
        sqrt(x / d);  sqrt(x) / sqrt(d);  sqrt(x) - y;  rsqrt(x) * d;  1.0 / sqrt(x) - w;  x / sqrt(x);  sqrt(x * d)
        sqrt((x - d) * (x - d) + (y - w) * (y - w)) - d;  sqrt(sqrt(x * x));  sqrt(x) * w;  (x - y) / sqrt(d * d + w * w)
    """,
    "wraps": """
        x - floor(x / d) * d;  x - d * floor(x * w);  (x - floor(x / d) * d) * 8.0 / d;  (x - floor(x / d) * d) / d
        x - round(x / d) * d;  x - d * round(x * w);  x % d;  x % 0.1;  x % 3;  (x % d) / d;  (x - y) % d;  x // d;  x // 0.3
        x // d * d;  x // d * d + x % d - x;  mod(x, d);  mod(x, 0.1);  mod(x - y, d);  fract(x);  fract(x / d);  fract(x * w)
        fract(x / d) * d;  (x + d) % d;  (x % d + d) % d;  x - y - d * round((x - y) / d);  x % d % w;  (x * w) % 1.0
        x * w - floor(x * w);  x / d - floor(x / d);  ceil(x / d) * d - x;  d * floor(x / d + 0.5) - x
    """,
    "pieces": """
        abs(x - y) - d;  abs(x) / d;  abs(x / d);  abs(x * w) - abs(x) * w;  min(x, y) / d;  max(x, y) / d;  max(x - y, 0.0) * w
        min(x / d, y / d);  max(x * d, y * d) - w;  min(x * d, y * d) - d * min(x, y);  clamp(x, y, d);  clamp(x / d, 0.0, 1.0)
        clamp((x - y) / d, 0.0, 1.0) * w;  mix(x, y, d);  mix(x, y, 0.1);  mix(y, d, x);  x + (y - x) * d;  x + (y - x) * 0.3
        x * (1 - d) + y * d;  (1.0 - w) * x + w * y;  select(x < y, x - y, y - x) / d;  select(x < d, x, x - d) * w
        max(abs(x) - d, 0.0);  min(max(x, y), d) - x;  sign(x - y) * d;  select(x / d < y, x, y);  abs(abs(x) - abs(y)) - d
        max(x, y) - min(x, y) - abs(x - y);  1.0 - abs(x - y) / d;  max(1.0 - abs(x / d - y), 0.0)
    """,
    "vectors": """
        cross(x, y, d, w);  cross(x, 4 * x, d, 4.0 * d);  cross(x - y, w, d, x);  det(x, y, d, w);  det(x - d, y, y, x - w)
        over(x, y, d);  over(x - y, x, d);  over(x, y, d) * w;  over(x, y, d) - over(y, x, d);  times(y, x, w) - d
        times(y, x, d) + y;  over(1.0, y, x);  over(x, y, d * w);  over(x, d, d) * d;  times(d, x, w) * y;  over(x, y, 3)
    """,
}

# How a loop carries `x` on; decisions are taken of every value on the way.
UPDATES = [
    "x + d",
    "x + y * d",
    "x * d",
    "x / d",
    "x * w + y",
    "(x + y) * d",
    "x - d * x",
    "x % d + y",
    "w * x * (1.0 - x)",
]
UPDATES += ["y - x", "x + d * (y - x)", "x * x + y", "abs(x - y)", "(x + d / x) * 0.5", "x - (x * x - d) / (2.0 * x)"]
UPDATES += ["x * w - d * y", "mix(x, y, w)", "x + d + w", "x - d", "y + d * x", "fract(x * w)", "max(x - d, y)"]

DECISIONS = {
    "floor": "int(floor({v}))",
    "ceil": "int(ceil({v}))",
    "round": "int(round({v}))",
    "int": "int({v})",
    "negative": "{v} < 0",
    "zero": "{v} == 0",
    "positive": "0.0 < {v}",
    "at most zero": "{v} <= 0.0",
    "below": "{v} < y",
    "equal": "{v} == x",
    "root": "isnan(sqrt({v}))",
    "cell of the root": "int(floor(sqrt({v})))",
    "remainder": "({v}) % d < 0",
    "cell": "int(floor({v} * 8.0))",
    "above": "{v} > w",
    "not equal": "{v} != d",
    "at least": "{v} >= 0.1",
    "one": "{v} <= 1.0",
}
BY_TOPIC = {
    "cells": ("floor", "ceil", "round", "int", "negative", "zero", "root", "remainder", "at most zero"),
    "quotients": ("floor", "ceil", "int", "equal", "zero", "one", "remainder", "above"),
    "products": ("floor", "negative", "zero", "root", "below", "equal", "not equal", "int"),
    "differences": ("negative", "zero", "equal", "floor", "at least", "at most zero", "root"),
    "polynomials": ("negative", "zero", "positive", "root", "floor", "below"),
    "roots": ("root", "negative", "zero", "at most zero", "cell of the root"),
    "lengths": ("negative", "zero", "equal", "floor", "one", "int", "above"),
    "wraps": ("negative", "zero", "floor", "cell", "one", "equal", "positive", "root"),
    "pieces": ("negative", "zero", "floor", "equal", "below", "one", "int", "root"),
    "vectors": ("negative", "zero", "floor", "int", "root", "below", "at most zero"),
}


@functools.cache
def expressions():
    """All float expressions, each once, with their topic."""
    found = {}
    for topic, text in EXPRESSIONS.items():
        for part in text.replace("\n", ";").split(";"):
            if part.strip():
                found.setdefault(part.strip(), topic)
    return found


@functools.cache
def patterns():
    """All patterns: topic, expression, and the decision's text, in which `{v}` is the expression."""
    return [(topic, text, DECISIONS[name]) for text, topic in expressions().items() for name in BY_TOPIC[topic]]


def whole(text, decision):
    """The text of a pattern."""
    return decision.replace("{v}", f"({text})")


def drawn(rng, n):
    """Some patterns for one kernel: half of them of one topic, and some expressions with several decisions."""
    everything = patterns()
    topic = list(EXPRESSIONS)[rng.integers(len(EXPRESSIONS))]
    near = [p for p in everything if p[0] == topic]
    found = [near[i] for i in rng.integers(len(near), size=(n + 1) // 2)]
    found += [everything[i] for i in rng.integers(len(everything), size=n - len(found))]
    return list(dict.fromkeys(found))
