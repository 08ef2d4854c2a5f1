"""Programs of odd values, with what a model in plain Python says of them. Tests run them."""

import itertools
import linecache
import math

import numpy as np

import aerogel as ti

INTS = {"i8": (-(2**7), 2**7), "u8": (0, 2**8), "i16": (-(2**15), 2**15), "u16": (0, 2**16), "i32": (-(2**31), 2**31)}
INTS |= {"u32": (0, 2**32), "i64": (-(2**63), 2**63), "u64": (0, 2**64), "u1": (0, 2)}
FLOATS = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
COUNT = itertools.count()
# What a program may raise that is told in words.
REFUSALS = (TypeError, ValueError, IndexError, OverflowError, ti.TaichiCompilationError, ti.TaichiRuntimeError)


class Refused(Exception):
    """The model refuses a value."""


class Opaque:
    """An object that is nothing to the package."""

    def __repr__(self):
        return "Opaque()"


def kernel_of(text, names):
    """The kernel `k` of a text that is in no file."""
    path = f"/generated/{next(COUNT)}.py"
    linecache.cache[path] = (len(text), None, text.splitlines(True), path)
    scope = {"ti": ti, **names}
    exec(compile(text, path, "exec"), scope)  # noqa: S102
    return scope["k"]


class Program:
    """One program and its model; `text` shows it."""

    def __init__(self, rng):
        self.rng, self.lines = rng, []
        self.kind = rng.choice([self.writes, self.writes, self.folding, self.slices])

    @property
    def text(self):
        return "\n".join(self.lines)

    def problem(self):
        """What is not as the model has it; nothing if all is."""
        return self.kind()

    # Elements written from Python.

    def writes(self):
        rng = self.rng
        name = rng.choice([*INTS, *FLOATS])
        shape = rng.choice([(), (1,), (3,), (2, 3), (1, 1, 2)])
        element = rng.choice([(), (), (), (1,), (3,), (2, 2), (1, 3)])
        is_field = rng.random() < 0.6 or shape == ()
        offset = tuple(rng.randrange(-2, 3) for _ in shape) if is_field and shape and rng.random() < 0.3 else ()
        target = self.make(name, shape, element, is_field, offset)
        self.lines.append(f"x = {'field' if is_field else 'ndarray'}({name}, {shape}, {element}, offset={offset})")
        first = offset or (0,) * len(shape)
        model = {at: [0] * math.prod(element) for at in itertools.product(*map(range, shape))}
        for _ in range(rng.randrange(1, 7)):
            key, value = self.key(shape, first), self.value(element)
            self.lines.append(f"x[{key!r}] = {value!r}")
            try:
                at = model_index(key, shape, first, is_field)
                numbers = model_element(value, name, element)
            except Refused as why:
                try:
                    target[key] = value
                except REFUSALS:
                    pass
                else:
                    return f"accepted, but the model says: {why}"
            else:
                try:
                    target[key] = value
                except REFUSALS as error:
                    return f"raised {error!r}, but the model accepts it"
                model[at] = numbers
            for at, wanted in model.items():
                found = target[tuple(i + lo for i, lo in zip(at, first)) or None]
                found = list(flat(found.to_list())) if element else [found]
                if not all(same(a, b) for a, b in zip(found, wanted, strict=True)):
                    return f"{at} holds {found}, not {wanted}"
        return None

    def make(self, name, shape, element, is_field, offset):
        dtype = getattr(ti, name)
        keywords = {"offset": offset} if offset else {}
        if not is_field:
            kind = {0: ti.ndarray, 1: ti.Vector.ndarray, 2: ti.Matrix.ndarray}[len(element)]
        else:
            kind = {0: ti.field, 1: ti.Vector.field, 2: ti.Matrix.field}[len(element)]
        return kind(*element, dtype, shape, **keywords)

    def key(self, shape, first):
        rng = self.rng
        within = [rng.randrange(n) + lo for n, lo in zip(shape, first)]
        if rng.random() < 0.5:
            return tuple(within) if len(within) != 1 else within[0]
        odd = [
            -1,
            0,
            1,
            5,
            True,
            None,
            1.0,
            "0",
            2**31,
            -(2**63),
            2**64,
            10**30,
            np.int8(1),
            np.uint64(0),
            np.float32(1),
        ]
        odd += [np.array(0), np.array([0]), slice(None), ..., Opaque(), [], (), [0], (0, 0), float("nan"), b"0"]
        keys = [rng.choice(odd), tuple(rng.choice([*within, *odd]) for _ in within), within, tuple(within) + (None,)]
        keys += [tuple(map(np.int64, within)), ti.Vector(within) if within else None, tuple(within) + (0,)]
        return rng.choice(keys)

    def number(self):
        rng = self.rng
        edges = [2**k + d for k in (7, 8, 15, 16, 31, 32, 63, 64, 100) for d in (-1, 0, 1)]
        pick = rng.random()
        if pick < 0.45:
            return rng.randrange(-3, 4)
        if pick < 0.65:
            return rng.choice(edges) * rng.choice([1, -1])
        plain = [0.0, -0.0, 2.5, 1e30, -1e300, float("inf"), float("nan"), True, False]
        numpy = [
            np.int8(-5),
            np.uint8(200),
            np.int64(2**40),
            np.uint64(2**63),
            np.float32(2.75),
            np.array(7),
            np.bool_(True),
        ]
        return rng.choice([*plain, *numpy, 10**400, "1", None, b"1", 1j, Opaque(), {}])

    def value(self, element):
        rng = self.rng
        if not element:
            return self.number() if rng.random() < 0.9 else rng.choice([[], [1], (1,), [[1]]])
        n, m = (*element, 1)[:2]
        numbers = [self.number() if rng.random() < 0.3 else rng.randrange(-3, 4) for _ in range(n * m)]
        rows = [numbers[i * m : (i + 1) * m] for i in range(n)]
        shaped = rows if len(element) == 2 else numbers
        odd = [numbers, tuple(numbers), rows, [numbers], numbers[:-1], [*numbers, 1], [], [[]], rng.randrange(3)]
        odd += [None, "abc", [*rows[:-1], 1], [tuple(row) for row in rows]]
        return shaped if rng.random() < 0.6 else rng.choice(odd)

    # What Python computes while a kernel is compiled.

    def folding(self):
        names = {
            "a": [3, 1, 2],
            "t": (4, (5, 6), [7]),
            "e": [],
            "n": 2**31,
            "w": -7,
            "q": 2.5,
            "s": "abc",
            "d": {1: 2, "k": 3},
        }
        expression = self.expression(self.rng.randrange(1, 5))
        self.lines.append(f"out = {expression}")
        try:
            wanted = eval(expression, {}, {**names, "min": extremum(min), "max": extremum(max)})  # noqa: S307
        except Exception as error:  # noqa: BLE001
            wanted = error
        told = str(wanted) if isinstance(wanted, Exception) else ""
        if any(part in told for part in ("bad operand type for", "argument must be a string", "numbers are compared")):
            # Lists are vectors to operators: `-[1, 2]`, `int([1.5])`.
            return None
        is_float = isinstance(wanted, float)
        field = ti.field(ti.f32 if is_float else ti.i64, 1)
        fits = is_float or (isinstance(wanted, int) and -(2**63) <= wanted < 2**63)
        text = f"@ti.kernel\ndef k():\n    out[0] = {expression}\n"
        try:
            kernel_of(text, {"out": field, **names})()
        except REFUSALS as error:
            if "at most 65536 bits" in str(error) or "the float has no integer value" in str(error):
                return None
            if "--> " not in str(error):
                return f"the error has no place: {error!r}"
            return f"raised {error!r}, but Python gives {wanted!r}" if fits else None
        if not fits:
            return f"gives {field[0]}, but Python {wanted!r}"
        if is_float:
            with np.errstate(over="ignore"):
                wanted = float(np.float32(wanted))
        return None if same(field[0], wanted) else f"gives {field[0]}, but Python {wanted!r}"

    def expression(self, depth):
        rng = self.rng
        if depth == 0 or rng.random() < 0.1:
            leaves = [
                "0",
                "1",
                "-1",
                "2",
                "7",
                "2**31",
                "2**62",
                "True",
                "None",
                "0.5",
                "1e300",
                "a",
                "t",
                "e",
                "n",
                "w",
                "q",
            ]
            return rng.choice([*leaves, "s", "[]", "()", "d", "[1, 2]", "(3,)", "a[0]", "t[1]", "undefined"])
        x, y, z = (self.expression(depth - 1) for _ in range(3))
        binary = rng.choice(
            ["+", "-", "//", "%", "/", "&", "|", "^", "==", "!=", "<", ">=", "and", "or", "in", "not in"]
        )
        # What is multiplied is small, also where Python does it.
        factors = ["0", "-1", "7", "w", "q", "True", "a[0]", "2**31", "None", "len(a)", "t[1][0]"]
        forms = [f"({x} {binary} {y})"] * 8 + [f"({rng.choice(factors)} * {rng.choice(factors)})"]
        forms += [f"({rng.choice(['a', 't', '()', '[1, 2]', 's'])} * {rng.randrange(-1, 4)})"]
        forms += [
            f"({x} ** {rng.randrange(-2, 4)})",
            f"({x} << {rng.randrange(-1, 70)})",
            f"({x} >> {rng.randrange(70)})",
        ]
        forms += [f"(-{x})", f"(~{x})", f"(not {x})", f"({x} if {y} else {z})", f"{x}[{y}]", f"a[{x}]", f"t[{x}]"]
        forms += [
            f"len({x})",
            f"abs({x})",
            f"min({x}, {y})",
            f"max({x})",
            f"sum({x})",
            f"int({x})",
            f"float({x})",
            f"bool({x})",
        ]
        forms += [f"({x} < {y} < {z})", f"[i for i in {x}][{y}]", f"sum([i * 2 for i in {x} if i])", f"({x}, {y})[{z}]"]
        forms += [
            f"{x}[{rng.choice(['', '0', '-1', '1', '9'])}:{rng.choice(['', '2', '-1', '-9'])}:{rng.choice(['', '2', '-1'])}]"
        ]
        return rng.choice(forms)

    # Containers in a kernel that runs.

    def slices(self):
        rng = self.rng
        items = [rng.randrange(-9, 10) for _ in range(rng.randrange(1, 7))]
        bound = lambda: rng.choice(["", *map(str, range(-8, 9))])  # noqa: E731
        cut = f"{bound()}:{bound()}:{rng.choice(['', '', '1', '2', '-1', '-2', '3'])}"
        form = rng.choice(["items", "list(items)", "ti.Vector(items)", "tuple(items)"])
        wanted = eval(f"items[{cut}]", {"items": items})  # noqa: S307
        at, last = rng.randrange(len(items)), rng.randrange(-9, 9)
        text = (
            "@ti.kernel\ndef k(at: ti.i32):\n"
            f"    v = {form}\n"
            "    out[0] = v[at]\n"
            f"    out[1] = v[{last}]\n"
            f"    for k in ti.static(range({len(wanted)})):\n"
            f"        out[2 + k] = v[{cut}][k]\n"
        )
        self.lines += [f"items = {items}", text]
        out = ti.field(ti.i32, 2 + len(items))
        is_right = -len(items) <= last < len(items)
        try:
            kernel_of(text, {"out": out, "items": items})(at)
        except REFUSALS as error:
            return f"raised {error!r}" if is_right else None
        if not is_right:
            return "accepted an index that is out of range"
        found = [out[i] for i in range(2 + len(wanted))]
        wanted = [items[at], items[last], *wanted]
        return None if found == wanted else f"gives {found}, not {wanted}"


def extremum(function):
    """The smallest or the largest as kernels have it: of the type of all, and of one number that number."""

    def chosen(*numbers):
        if len(numbers) == 1 and isinstance(numbers[0], (int, float)):
            return numbers[0]
        numbers = numbers if len(numbers) > 1 else list(numbers[0])
        if not all(isinstance(i, (int, float)) for i in numbers):
            raise TypeError("numbers are compared")
        number = function(numbers)
        return float(number) if any(isinstance(i, float) for i in numbers) else number

    return chosen


def flat(values):
    for value in values:
        yield from flat(value) if isinstance(value, list) else [value]


def same(a, b):
    return a == b or (a != a and b != b)


def whole(value):
    """The integer that a value is as an index."""
    if isinstance(value, (bool, int, np.integer)) or (isinstance(value, np.ndarray) and value.ndim == 0):
        return int(value)
    raise Refused(f"{value!r} is no index")


def model_index(key, shape, first, is_field):
    if isinstance(key, ti.Matrix):
        key = key.to_list()
    parts = [i for i in key if i is not None] if isinstance(key, tuple) else key
    parts = [] if parts is None else parts if isinstance(parts, list) else [parts]
    at = [whole(i) for i in parts]
    if is_field and shape == () and at == [0]:
        return ()
    if len(at) != len(shape):
        raise Refused("another number of indices")
    at = tuple(i - lo for i, lo in zip(at, first))
    if not all(0 <= i < n for i, n in zip(at, shape)):
        raise Refused("out of range")
    return at


def model_scalar(value, name):
    if name in FLOATS:
        if isinstance(value, (bool, int, float, np.number, np.bool_)) or (
            isinstance(value, np.ndarray) and value.ndim == 0
        ):
            with np.errstate(over="ignore"):
                try:
                    return float(FLOATS[name](float(value)))
                except OverflowError:
                    pass
        raise Refused(f"{value!r} is no number")
    if isinstance(value, (np.float32, np.bool_)):
        value = int(value)
    number = whole(value)
    lo, hi = INTS["i64"] if name == "u1" else INTS[name]
    if not lo <= number < hi:
        raise Refused(f"{number} does not fit")
    return int(number != 0) if name == "u1" else number


def model_element(value, name, element):
    is_list = lambda v: isinstance(v, (list, tuple))  # noqa: E731
    if not element:
        if is_list(value):
            raise Refused("a list for a number")
        return [model_scalar(value, name)]
    n, m = (*element, 1)[:2]
    numbers, given = [value], None
    if is_list(value):
        rows = [tuple(row) if is_list(row) else None for row in value]
        if any(row is not None for row in rows):
            if any(row is None or len(row) != len(rows[0] or ()) for row in rows):
                raise Refused("rows of different lengths")
            numbers, given = [i for row in rows for i in row], (len(rows), len(rows[0]))
        else:
            numbers = list(value)
    if len(numbers) != n * m or (given is not None and given != (n, m)):
        raise Refused("another shape")
    return [model_scalar(i, name) for i in numbers]
