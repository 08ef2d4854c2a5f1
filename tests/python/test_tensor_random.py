"""Made-up programs of tensors beside the same ones of NumPy: what is pending, held, shared and overwritten in any order.

Numbers are small and whole, so that both agree in every digit. `AEROGEL_N_PROGRAMS` and `AEROGEL_FIRST_SEED` choose which.
"""

import os
import random

import numpy as np
import pytest

import aerogel as ti

t = ti.tensor
N_PROGRAMS = int(os.environ.get("AEROGEL_N_PROGRAMS", "60"))
FIRST = int(os.environ.get("AEROGEL_FIRST_SEED", "0"))


@ti.kernel
def bump(a: ti.types.ndarray(), by: int):
    for I in ti.grouped(a):
        a[I] += by


@ti.kernel
def mix(a: ti.types.ndarray(), b: ti.types.ndarray()):
    for i, j in a:
        a[i, j] = a[i, j] - b[i, j]


@ti.kernel
def total(a: ti.types.ndarray()) -> ti.i64:
    s = ti.i64(0)
    for I in ti.grouped(a):
        s += ti.cast(a[I], ti.i64)
    return s


class Both:
    """Variables of a program: each a tensor and what it should be."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.vars = []
        self.watched = []
        self.said = []
        for _ in range(3):
            self.new(self.numbers(self.shape()))

    def shape(self):
        n = self.random.choice([0, 1, 1, 2, 2, 2, 3])
        return tuple(self.random.choice([1, 2, 3, 4, 5]) for _ in range(n))

    def numbers(self, shape):
        dtype = self.random.choice([np.float64, np.float64, np.int32, np.int64])
        return np.array([self.random.randint(-4, 4) for _ in range(int(np.prod(shape)))], dtype).reshape(shape)

    def new(self, array):
        self.vars.append([t.asarray(array), array.copy()])

    def say(self, text):
        self.said.append(text)

    def pick(self, condition=lambda x: True):
        found = [k for k, (_, x) in enumerate(self.vars) if condition(x)]
        return self.random.choice(found) if found else None

    def push(self, x, expected):
        expected = np.asarray(expected)
        if expected.size > 400 or x.shape != expected.shape:
            assert x.shape == expected.shape
            return
        if expected.dtype != bool and np.abs(expected).max(initial=0) > 1000:
            x, expected = x % 7, expected % 7
        if expected.dtype == bool:
            x, expected = t.astype(x, ti.i32), expected.astype(np.int32)
        if len(self.vars) > 7:
            self.vars.pop(self.random.randrange(len(self.vars)))
        self.vars.append([x, expected.copy()])

    def same(self, other):
        """A variable with the shape and the type of another one."""
        return self.pick(lambda x: x.shape == other.shape and x.dtype == other.dtype)

    # Steps.

    def binary(self):
        a = self.pick()
        x = self.vars[a][1]
        b = self.pick(lambda y: y.dtype == x.dtype and compatible(x.shape, y.shape))
        op = self.random.choice(["+", "-", "*", "maximum", "minimum", "<", "=="])
        self.say(f"v{a} {op} v{b}")
        (p, x), (q, y) = self.vars[a], self.vars[b]
        if op in ("maximum", "minimum"):
            return self.push(getattr(t, op)(p, q), getattr(np, op)(x, y))
        code = f"p {op} q"
        self.push(eval(code), eval(code, {"p": x, "q": y}))

    def number(self):
        a = self.pick()
        p, x = self.vars[a]
        n = self.random.choice([0, 1, 2, -3])
        op = self.random.choice(["p + n", "n - p", "p * n", "abs(p)", "-p", "p * p"])
        self.say(f"{op} of v{a}, n = {n}")
        self.push(eval(op), eval(op, {"p": x, "n": x.dtype.type(n)}))

    def reduce(self):
        a = self.pick(lambda x: x.ndim and x.size)
        if a is None:
            return
        p, x = self.vars[a]
        axis = self.random.choice([None, *range(-x.ndim, x.ndim)])
        how = self.random.choice(["sum", "max", "min", "any", "argmax"])
        keeps = self.random.random() < 0.3
        self.say(f"{how} of v{a} along {axis}, {keeps}")
        got = getattr(t, how)(p, axis=axis, keepdims=keeps)
        expected = getattr(np, how)(x, axis=axis, keepdims=keeps)
        if how in ("argmax", "any"):
            got, expected = t.astype(got, ti.i32), expected.astype(np.int32)
        elif how == "sum":
            got, expected = t.astype(got, ti.f64), expected.astype(np.float64)
        self.push(got, expected)

    def part(self, shape):
        out = []
        for n in shape[: self.random.randint(0, len(shape))]:
            if n and self.random.random() < 0.3:
                out.append(self.random.randrange(-n, n))
            else:
                lo, hi = self.random.randint(-n, n), self.random.randint(-n, n)
                out.append(
                    slice(
                        self.random.choice([None, lo]),
                        self.random.choice([None, hi]),
                        self.random.choice([None, 1, 2, -1]),
                    )
                )
        return tuple(out)

    def view(self):
        a = self.pick()
        p, x = self.vars[a]
        part = self.part(x.shape)
        self.say(f"v{a}{part}")
        self.push(p[part], x[part])

    def store(self):
        a = self.pick()
        p, x = self.vars[a]
        part = self.part(x.shape)
        wanted = x[part].shape
        b = self.pick(lambda y: y.dtype == x.dtype and y.ndim <= len(wanted) and stretches(y.shape, wanted))
        x = self.vars[a][1] = x.copy()
        if b is None or self.random.random() < 0.3:
            n = self.random.randint(-5, 5)
            self.say(f"v{a}{part} = {n}")
            p[part] = n
            x[part] = n
        else:
            self.say(f"v{a}{part} = v{b}")
            values = self.vars[b][1].copy()
            p[part] = self.vars[b][0]
            x[part] = values

    def mask(self):
        a = self.pick(lambda x: x.ndim)
        if a is None:
            return
        p, x = self.vars[a]
        self.say(f"v{a}[v{a} > 0] = 2")
        x = self.vars[a][1] = x.copy()
        p[p > 0] = 2
        x[x > 0] = 2

    def indices(self):
        a = self.pick(lambda x: x.ndim and x.shape[0])
        if a is None:
            return
        p, x = self.vars[a]
        order = np.array([self.random.randrange(x.shape[0]) for _ in range(self.random.randint(1, 4))])
        if self.random.random() < 0.5:
            self.say(f"v{a}[{list(order)}]")
            return self.push(p[t.asarray(order)], x[order])
        self.say(f"v{a}[{list(order)}] = 3")
        x = self.vars[a][1] = x.copy()
        p[t.asarray(order)] = 3
        x[order] = 3

    def move(self):
        a = self.pick(lambda x: x.ndim)
        if a is None:
            return
        p, x = self.vars[a]
        how = self.random.choice(
            ["roll", "flip", "T", "reshape", "cumsum", "sort", "concat", "stack", "repeat", "where", "broadcast"]
        )
        axis = self.random.randrange(x.ndim)
        self.say(f"{how} of v{a} {x.shape} along {axis}")
        if how == "roll":
            self.push(t.roll(p, 2, axis), np.roll(x, 2, axis))
        elif how == "flip":
            self.push(t.flip(p, axis=axis), np.flip(x, axis))
        elif how == "T":
            self.push(t.permute_dims(p, tuple(range(x.ndim))[::-1]), x.T)
        elif how == "reshape":
            self.push(t.reshape(p, (-1,)), x.reshape(-1))
        elif how == "cumsum":
            self.push(t.astype(t.cumulative_sum(p, axis=axis), ti.f64), np.cumsum(x, axis).astype(np.float64))
        elif how == "sort":
            self.push(t.sort(p, axis=axis), np.sort(x, axis))
        elif how == "concat":
            self.push(t.concat([p, p + 1], axis=axis), np.concatenate([x, x + x.dtype.type(1)], axis))
        elif how == "stack":
            self.push(t.stack([p, -p], axis=axis), np.stack([x, -x], axis))
        elif how == "repeat":
            self.push(t.repeat(p, 2, axis=axis), np.repeat(x, 2, axis))
        elif how == "where":
            self.push(t.where(p > 1, p, -p), np.where(x > 1, x, -x))
        else:
            self.push(t.broadcast_to(p, (2, *x.shape)), np.broadcast_to(x, (2, *x.shape)))

    def product(self):
        a = self.pick(lambda x: x.ndim == 2)
        if a is None:
            return
        p, x = self.vars[a]
        self.say(f"v{a} @ v{a}.T")
        got, expected = p @ t.permute_dims(p, (1, 0)), x @ x.T
        self.push(got % 5, expected % 5)

    def grow(self):
        a = self.pick()
        p, x = self.vars[a]
        b = self.same(x)
        q, y = self.vars[b]
        self.say(f"v{a} += v{b}")
        p += q
        self.vars[a] = [p, np.asarray(x + y)]

    def kernel(self):
        a = self.pick(lambda x: x.ndim)
        if a is None:
            return
        p, x = self.vars[a]
        b = self.pick(lambda y: x.ndim == 2 and y.shape == x.shape and y.dtype == x.dtype)
        how = self.random.choice(["bump", "mix", "total"])
        if how == "mix" and b is not None and b != a:
            self.say(f"mix v{a}, v{b}")
            mix(p, self.vars[b][0])
            self.vars[a][1] = np.asarray(x - self.vars[b][1])
        elif how == "total":
            self.say(f"total of v{a}")
            assert total(p) == int(x.sum())
        else:
            self.say(f"bump v{a}")
            bump(p, 2)
            self.vars[a][1] = np.asarray(x + x.dtype.type(2))

    def name(self):
        a = self.pick()
        p, x = self.vars[a]
        if self.random.random() < 0.5:
            self.say(f"copy of v{a}")
            return self.push(p.copy(), x)
        self.say(f"watch v{a}")
        self.watched = [*self.watched[-3:], (np.asarray(p), x.copy())]

    def constant(self):
        shape = self.shape()
        n = self.random.choice([0, 1])
        self.say(f"full {shape} {n}")
        self.push(t.full(shape, n, dtype=ti.f64), np.full(shape, n, np.float64))

    def look(self):
        a = self.pick()
        p, x = self.vars[a]
        self.say(f"look at v{a}")
        self.equal(p, x)

    def equal(self, p, x):
        got = p.numpy() if self.random.random() < 0.7 else np.asarray(p.realize())
        assert got.shape == x.shape
        assert np.array_equal(got, x), f"{got} is not {x}"

    STEPS = (
        [binary] * 4 + [number] * 3 + [reduce] * 2 + [view] * 2 + [store] * 4 + [mask, indices, product, grow, constant]
    )
    STEPS += [move] * 3 + [kernel] * 2 + [name, name, look, look]

    def run(self, n):
        for _ in range(n):
            self.random.choice(self.STEPS)(self)
            for shown, x in self.watched:
                assert np.array_equal(shown, x), "memory that is shown has changed"
        for k, (p, x) in enumerate(self.vars):
            self.say(f"at the end, v{k}")
            self.equal(p, x)


def compatible(a, b):
    return all(n == m or 1 in (n, m) for n, m in zip(a[::-1], b[::-1]))


def stretches(a, b):
    return all(n in (1, m) for n, m in zip(a[::-1], b[::-1]))


@pytest.mark.parametrize("seed", range(FIRST, FIRST + N_PROGRAMS))
def test_tensors_are_what_arrays_are(seed):
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    both = Both(seed)
    try:
        both.run(30)
    except Exception as e:
        raise AssertionError("\n".join(both.said)) from e


@pytest.mark.parametrize(
    "low, high, dtype",
    [
        (2**63, 2**63 + 5, ti.u64),
        (2**64 - 5, 2**64, ti.u64),
        (-(2**63), -(2**63) + 3, ti.i64),
        (2**40, 2**40 + 7, ti.i64),
        (-3, 7, ti.i8),
        (250, 256, ti.u8),
    ],
)
def test_whole_numbers_at_the_ends_of_a_type(low, high, dtype):
    drawn = ti.tensor.random.integers(low, high, shape=200, dtype=dtype)
    assert drawn.dtype is dtype and set(drawn.tolist()) == set(range(low, high))
