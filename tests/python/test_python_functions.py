"""Functions without a decorator, called in kernels."""

import textwrap
from functools import partial

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
    """One without `@ti.func` is part of the kernel if it takes what is computed there; other calls are made once."""
    scale = _Scale(3)

    @ti.kernel
    def run(x: ti.f32) -> ti.f32:
        return scale.apply(_halved(x)) + _halved(8)

    ti.set_logging_level("warn")
    assert run(10.0) == 19.0
    ti.set_logging_level("error")
    said = capsys.readouterr().err
    for name in ("_halved", "apply"):
        assert said.count(f"`{name}` is a Python function: it is compiled into the kernel as if it were decorated") == 1
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
