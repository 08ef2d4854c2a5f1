"""Functions without a decorator, called in kernels."""

import textwrap

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
        assert said.count(f"`{name}` is a Python function: the kernel has it as if it were decorated") == 1
    assert run(2.0) == 10.0


def test_lambdas_and_functions_of_libraries_take_constants_only(arch):
    twice = lambda v: v * 2  # noqa: E731

    @ti.kernel
    def by_lambda(x: ti.f32) -> ti.f32:
        return twice(x)

    @ti.kernel
    def by_library(x: ti.i32) -> ti.i32:
        return textwrap.dedent(x)

    for kernel in (by_lambda, by_library):
        with pytest.raises(ti.TaichiTypeError, match="cannot take a value that is computed when the kernel runs"):
            kernel(1)
