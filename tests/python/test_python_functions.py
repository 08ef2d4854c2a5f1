"""Functions without a decorator, called in kernels."""

import json
import textwrap
from functools import partial

import numpy as np
import pytest

import aerogel as ti


def _halved(v):
    if v > 3:
        return v / 2
    return v * 1.0


class _Scale:
    def __init__(self, by):
        self.by = by

    def apply(self, v):
        return v * self.by


def test_python_functions_are_lowered_with_a_warning(arch, capsys):
    """One without `@ti.func` that Python cannot run is part of the kernel; other calls are made once."""
    scale = _Scale(3)

    @ti.kernel
    def run(x: ti.f32) -> ti.f32:
        return scale.apply(_halved(x)) + _halved(8)

    ti.set_logging_level("warn")
    assert run(10.0) == 19.0
    ti.set_logging_level("error")
    said = capsys.readouterr().err
    assert said.count("`_halved` is a Python function: it is compiled into the kernel as if it were decorated") == 1
    assert "`apply`" not in said
    assert run(2.0) == 10.0


_SHIFT = 2.0
_first, _second = (lambda v: v + 1), (lambda v: v + _SHIFT)


def test_lambdas_are_lowered_too(arch):
    by = 3.0
    scaled = lambda v, factor=2.0: v * factor + by  # noqa: E731
    sign = lambda v: (  # noqa: E731
        -1.0 if v < 0 else 1.0
    )

    @ti.kernel
    def run(x: ti.f32) -> ti.types.vector(4, ti.f32):
        return ti.Vector([scaled(x), scaled(x, 10), sign(x), _first(x) * 10 + _second(x)])

    assert run(4.0).to_list() == [11.0, 43.0, 1.0, 56.0]
    assert run(-1.0).to_list()[2] == -1.0


@ti.data_oriented
class _Curve:
    def __init__(self, slope):
        self.slope = slope
        self.base = ti.field(ti.f32, ())

    @ti.func
    def __call__(self, v):
        return v * self.slope + self.base[None]


class _Plain(_Scale):
    def __call__(self, v, plus=0):
        return v * self.by + plus


def test_objects_that_can_be_called(arch):
    curve, plain = _Curve(5), _Plain(2)
    curve.base[None] = 100

    @ti.func
    def join(a, b, c=1):
        return a * 100 + b * 10 + c

    first, last, both = partial(join, 7), partial(join, c=3), partial(partial(plain, plus=1), plus=4)

    @ti.kernel
    def run(v: ti.i32) -> ti.types.vector(7, ti.f32):
        return ti.Vector(
            [curve(v), curve(2) + curve.slope, plain(v, 1), plain(3), first(v), last(v, 2), both(v) + last(1, 2, c=v)]
        )

    assert run(4).to_list() == [120, 115, 9, 6, 741, 423, 12 + 124]


def test_a_mistake_in_a_lambda_is_shown_where_it_is(cpu):
    wrong = lambda v: v.nothing  # noqa: E731

    @ti.kernel
    def run(x: ti.f32) -> ti.f32:
        return wrong(x)

    with pytest.raises(ti.TaichiCompilationError, match="nothing") as caught:
        run(1.0)
    assert f"test_python_functions.py:{wrong.__code__.co_firstlineno}:23" in str(caught.value)


def test_functions_of_libraries_take_constants_only(arch):
    @ti.kernel
    def by_library(x: ti.i32) -> ti.i32:
        return textwrap.dedent(x)

    with pytest.raises(ti.TaichiTypeError, match="cannot take a value that is computed when the kernel runs"):
        by_library(1)


def _scaled(a, k=None):
    if k is None:
        k = 3.0
    return a * k


def _summed(a):
    found = None
    for k in (1, 2, 3):
        found = a * k if found is None else found + a * k
    return found


def _packed(*parts, **named):
    return ti.Vector([*parts, *named.values()])


def _filled(n, x):
    return ti.Vector([x for _ in range(n)])


def _safe(v):
    try:
        return v.no_such_name
    except AttributeError:
        return v + 1


def _twice(a):
    def inner(b):
        return b * 2

    return inner(a)


def _power(x, n):
    return x if n == 0 else x * _power(x, n - 1)


def _random():
    return ti.random()


@ti.func
def _sign(x):
    result = 1.0
    if x < 0:
        result = -1.0
    return result


def _mixed(x, matrix):
    columns = [matrix @ ti.Vector([x, 1.0]), ti.math.vec2(x, 2.0)]
    return columns[0].dot(columns[1]) + ti.sin(x) + ti.max(x, 0.25) + _sign(-x) + abs(-x) + np.float32(0.5) * x


def test_python_functions_run_while_compiling(arch):
    """Python runs them with what stands for the kernel's values; constants stay constants."""
    matrix = ti.Matrix([[1.0, 2.0], [3.0, 4.0]])
    lam = lambda *parts: ti.Vector(parts)  # noqa: E731

    @ti.kernel
    def run(x: ti.f32) -> ti.types.vector(9, ti.f32):
        return ti.Vector(
            [
                _scaled(x),
                _summed(x),
                _packed(x, 5.0, z=x).sum(),
                lam(x, 5.0).sum(),
                _filled(3, x).sum(),
                _safe(x),
                _twice(x),
                _power(x, 3),
                _mixed(x, matrix),
            ]
        )

    x = 2.0
    # The first seven as Taichi 1.7.4 gives them.
    want = [6, 12, 9, 7, 6, 3, 4, 16]
    mixed = x * (x + 2) + 2 * (3 * x + 4) + np.sin(x) + x - 1 + x + 0.5 * x
    assert run(x).to_list() == pytest.approx([*want, mixed])


def test_random_numbers_of_python_functions(arch):
    """A call without arguments gives an expression, too, which each iteration evaluates."""
    seen = ti.field(ti.f32, 64)

    @ti.kernel
    def run():
        for i in seen:
            seen[i] = _random()

    run()
    assert len(set(seen.to_numpy().tolist())) > 50


class _Ray:
    def __init__(self, origin, direction):
        self.origin, self.direction = origin, direction

    def at(self, t):
        return self.origin + t * self.direction


def _rays(x, y):
    return {"first": _Ray(x, y), "second": [y, (x, 1)]}


def test_objects_that_python_functions_return(arch):
    @ti.kernel
    def run(x: ti.f32) -> ti.f32:
        made = _rays(x, x + 1)
        return made["first"].at(10.0) + made["second"][1][0] * made["second"][1][1] + made["second"][0]

    assert run(2.0) == 2 + 30 + 2 + 3


def test_what_needs_a_number_is_lowered(arch):
    """Branches, loops, elements of fields: as if the function were a `ti.func`, at the time when the kernel runs."""
    field = ti.field(ti.f32, 4)
    field.from_numpy(np.arange(4, dtype=np.float32))

    def summed(n, start):
        total = start
        for i in range(n):
            if field[i] > 1:
                total += field[i]
        field[0] = total
        return total

    @ti.kernel
    def run(n: ti.i32) -> ti.f32:
        total = 0.0
        for _ in range(1):
            total = summed(n, 0.5)
        return total

    assert run(4) == 5.5 and field[0] == 5.5
    field[2] = 20
    assert run(4) == 29


def test_elements_are_read_when_the_kernel_runs(arch):
    """Not once, while it is compiled, also where the index is a constant."""
    field, array = ti.field(ti.f32, 2), ti.ndarray(ti.f32, 2)

    def shifted(a):
        return a + field[0]

    def scaled(a):
        return a * array[1]

    @ti.kernel
    def run(a: ti.f32) -> ti.f32:
        return shifted(a) * 100 + scaled(a)

    for value in (1.0, 2.0):
        field[0], array[1] = value, 2 * value
        assert run(1.0) == (1 + value) * 100 + 2 * value


def test_atomics_of_python_functions_change_the_callers_variable(cpu):
    def counted(a):
        return ti.atomic_add(a, 1.0)

    @ti.kernel
    def run() -> ti.f32:
        a = 1.0
        old = counted(a)
        return a * 10 + old

    # Taichi 1.7.4: 21.
    assert run() == 21


def test_numbers_that_fit_no_type_are_refused(cpu):
    def large(a, n):
        return a * 2**n

    @ti.kernel
    def run(a: ti.f32) -> ti.f32:
        return large(a, 40)

    with pytest.raises(ti.TaichiTypeError, match="1099511627776 is out of the range of `i32`"):
        run(1.0)


def test_exceptions_of_python_functions(cpu):
    """Python's own are told with the line that raised them, and the call in the kernel."""

    def checked(a, kind):
        if kind not in ("linear", "cubic"):
            raise ValueError(f"there is no {kind}")
        return a

    @ti.kernel
    def run(a: ti.f32) -> ti.f32:
        return checked(a, "square")

    with pytest.raises(ti.TaichiCompilationError) as caught:
        run(1.0)
    line = checked.__code__.co_firstlineno + 2
    told = str(caught.value)
    assert f"ValueError: there is no square, raised at {__file__}:{line}" in told
    assert 'return checked(a, "square")' in told and "^" in told


def test_values_do_not_outlive_their_branch(cpu):
    kept = []

    def keep(a):
        kept.append(a)
        return a

    def recall():
        return kept[-1]

    @ti.kernel
    def run(a: ti.f32) -> ti.f32:
        for i in range(3):
            keep(a + i)
        return recall()

    with pytest.raises(ti.TaichiCompilationError, match="belongs to a branch or a loop that has ended"):
        run(1.0)
    with pytest.raises(ti.TaichiRuntimeError, match="used after that kernel was compiled"):
        kept[-1] + 1


def test_gradients_through_python_functions(cpu):
    x, y = ti.field(ti.f32, (), needs_grad=True), ti.field(ti.f32, (), needs_grad=True)

    def cubed(a, n=3):
        result = 1.0
        for _ in range(n):
            result = result * a
        return result

    @ti.kernel
    def run():
        y[None] = cubed(x[None])

    x[None] = 2.0
    with ti.ad.Tape(y):
        run()
    assert y[None] == 8 and x.grad[None] == 12


def test_texts_become_numbers(arch):
    """As Python has it; Taichi 1.7.4 gives 1, 1 and 12."""

    @ti.kernel
    def run() -> ti.types.vector(4, ti.f64):
        best = float("inf")
        for i in range(5):
            best = ti.min(best, i + 1.0)
        sign = ti.select(float("-inf") < 0, 1.0, 0.0)
        return ti.Vector([best, sign, int("12"), int("ff", 16)], dt=ti.f64)

    assert run().to_list() == [1, 1, 12, 255]

    @ti.kernel
    def wrong() -> ti.f64:
        return float("one")

    with pytest.raises(ti.TaichiCompilationError, match="ValueError: could not convert string to float: 'one'"):
        wrong()


def test_any_call_under_static(arch):
    settings, table = {"EPS": "0.25"}, {"a": [1, 2, 3]}

    @ti.kernel
    def run() -> ti.f32:
        eps = ti.static(float(settings["EPS"]))
        n = ti.static(int("7"))
        length = ti.static(len(json.dumps(table)))
        return eps + n + length + ti.static(sorted(table["a"], reverse=True)[0])

    assert run() == 0.25 + 7 + len(json.dumps(table)) + 3


def test_a_tuple_whatever_the_annotation_says(arch):
    """Taichi does not look at the annotation of an inlined function (3, 7)."""
    vec2 = ti.types.vector(2, ti.f32)
    disc = ti.types.struct(at=vec2, size=vec2, weight=ti.f32)

    @ti.func
    def split(v) -> disc:
        return v[0:2], v[2:4], v[4]

    @ti.kernel
    def run() -> vec2:
        at, size, _ = split(ti.Vector([1.0, 2.0, 3.0, 4.0, 5.0]))
        return vec2(at.sum(), size.sum())

    assert run().to_list() == [3, 7]


def test_long_loops_over_constants_stay_loops(arch):
    def steps(x, n):
        for i in range(n):
            x = x * 0.5 + i
        return x

    @ti.kernel
    def short(v: float) -> float:
        return steps(v, 3)

    @ti.kernel
    def long(v: float) -> float:
        return steps(v, 100_000)

    assert short(8.0) == steps(8.0, 3)
    assert long(8.0) == pytest.approx(steps(8.0, 100_000))
    lines = str(long.inspect()).count("\n")
    assert lines < 5_000
