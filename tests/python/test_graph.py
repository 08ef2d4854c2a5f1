"""Graphs: calls described once, run with one call."""

import numpy as np
import pytest

import aerogel as ti
from aerogel.graph import Arg, ArgKind, GraphBuilder


@ti.kernel
def add(a: ti.types.ndarray(dtype=ti.f32, ndim=1), s: ti.f32, v: ti.types.vector(2, ti.f32)):
    for i in a:
        a[i] += s + v[0] * v[1]


@ti.kernel
def double(a: ti.types.ndarray(dtype=ti.math.vec2, ndim=2)):
    for i, j in a:
        a[i, j] *= 2


def arguments():
    return (
        Arg(ArgKind.NDARRAY, "a", dtype=ti.f32, ndim=1),
        Arg(ArgKind.SCALAR, "s", ti.f32),
        Arg(ArgKind.MATRIX, "v", ti.types.vector(2, ti.f32)),
    )


def test_calls_come_in_order(arch):
    a, s, v = arguments()
    grid = Arg(ArgKind.NDARRAY, "grid", dtype=ti.math.vec2, ndim=2)
    builder = GraphBuilder()
    sequence = builder.create_sequential()
    for _ in range(3):
        sequence.dispatch(add, a, s, v)
    sequence.dispatch(double, grid)
    builder.append(sequence)
    builder.dispatch(add, a, s, v)
    builder.append(sequence)
    graph = builder.compile()
    x, y = ti.ndarray(ti.f32, 4), ti.Vector.ndarray(2, ti.f32, (2, 3))
    y.fill(1)
    for turn in (1, 2):
        graph.run({"a": x, "s": 1.5, "v": ti.Vector([1.0, 2.0]), "grid": y})
        assert (x.to_numpy() == 7 * 3.5 * turn).all()
        assert (y.to_numpy() == 4**turn).all()
    # An integer will do for a float, and what is not asked for does no harm.
    graph.run({"a": x, "s": 1, "v": ti.Vector([0.0, 2.0]), "grid": y, "more": None})
    assert (x.to_numpy() == 49 + 7).all()


@pytest.mark.parametrize(
    "change, message",
    [
        ({"s": None}, "Only python int, float, ti.Matrix, ti.Ndarray and ti.Texture are supported"),
        ({"a": np.zeros(4, np.float32)}, "but got <class 'numpy.ndarray'>"),
        ({"a": 3}, "`a` is a NDARRAY, not a int"),
        ({"a": ("f64", (4,))}, "ndarray of f32, not of f64"),
        ({"a": ("f32", (4, 4))}, "`a` has 1 axes, the ndarray given has 2"),
        ({"v": [1.0, 2.0, 3.0]}, "not one of shape"),
        ({"s": [1.0, 2.0]}, "`s` is a SCALAR"),
        ({"s": "missing"}, "the graph's argument `s` is missing"),
    ],
)
def test_arguments_that_do_not_fit(arch, change, message):
    a, s, v = arguments()
    builder = GraphBuilder()
    builder.dispatch(add, a, s, v)
    graph = builder.compile()
    x = ti.ndarray(ti.f32, 4)
    given = {"a": x, "s": 1.0, "v": ti.Vector([1.0, 2.0])}
    for name, value in change.items():
        if isinstance(value, str):
            del given[name]
        elif isinstance(value, tuple):
            given[name] = ti.ndarray(getattr(ti, value[0]), value[1])
        else:
            given[name] = ti.Vector(value) if isinstance(value, list) else value
    with pytest.raises(ti.TaichiRuntimeError, match=message):
        graph.run(given)
    assert (x.to_numpy() == 0).all()


def test_descriptions_that_make_no_sense(cpu):
    a, s, v = arguments()
    builder = GraphBuilder()
    for make, error, message in [
        (lambda: Arg(ArgKind.NDARRAY, "a", dtype=ti.f32), KeyError, "ndim"),
        (lambda: Arg(ArgKind.SCALAR, "a"), KeyError, "dtype"),
        (lambda: Arg(ArgKind.SCALAR, "a", ti.math.vec2), ti.TaichiRuntimeError, "must specify a scalar type"),
        (lambda: Arg(ArgKind.MATRIX, "a", ti.f32), ti.TaichiRuntimeError, "must specify matrix type"),
        (lambda: Arg("SCALAR", "a", ti.f32), TypeError, "ArgKind"),
        (lambda: builder.dispatch(add, a, s), IndexError, "takes 3 arguments, got 2"),
        (lambda: builder.dispatch(add, a, 1.0, v), TypeError, "not float"),
        (lambda: builder.dispatch(len, a), TypeError, "calls of kernels"),
        (lambda: builder.append(builder), TypeError, "create_sequential"),
    ]:
        with pytest.raises(error, match=message):
            make()
    builder.dispatch(add, a, s, v)
    for other in (builder, builder.create_sequential()):
        with pytest.raises(ti.TaichiRuntimeError, match="two arguments that differ have the name `a`"):
            other.dispatch(double, Arg(ArgKind.NDARRAY, "a", dtype=ti.math.vec2, ndim=2))


@pytest.mark.parametrize(
    ("kernel", "wrong", "error", "message"),
    [
        (add, ("a", ArgKind.NDARRAY, ti.f64, 1), ti.TaichiCompilationError, "`a` of kernel `add` is of f32"),
        (add, ("a", ArgKind.NDARRAY, ti.math.vec2, 1), ti.TaichiCompilationError, "`a` of kernel `add` is of f32"),
        (add, ("a", ArgKind.NDARRAY, ti.f32, 2), ti.TaichiCompilationError, "has 1 axes, argument `a` 2"),
        (add, ("a", ArgKind.SCALAR, ti.f32), ti.TaichiCompilationError, "is a NDARRAY, argument `a` a SCALAR"),
        (add, ("s", ArgKind.SCALAR, ti.i32), ti.TaichiCompilationError, "`s` of kernel `add` is of f32"),
        (add, ("v", ArgKind.MATRIX, ti.math.vec3), ti.TaichiRuntimeError, "argument `v` is a .*vector\\(3"),
        (double, ("a", ArgKind.NDARRAY, ti.math.vec3, 2), ti.TaichiCompilationError, "is of .*vector\\(2"),
    ],
)
def test_arguments_that_a_kernel_cannot_take(cpu, kernel, wrong, error, message):
    wrong = Arg(wrong[1], wrong[0], *wrong[2:])
    given = (wrong,) if kernel is double else tuple(wrong if a.name == wrong.name else a for a in arguments())
    with pytest.raises(error, match=message):
        GraphBuilder().dispatch(kernel, *given)


def test_kernels_without_a_type_of_elements_take_any(cpu):
    @ti.kernel
    def clear(x: ti.types.ndarray()):
        for i in ti.grouped(x):
            x[i] *= 0

    @ti.kernel
    def chosen(x: ti.template()):
        pass

    builder = GraphBuilder()
    for k, arg in enumerate([(ti.f32, 2), (ti.math.vec3, 1), (ti.i64, 3)]):
        builder.dispatch(clear, Arg(ArgKind.NDARRAY, f"x{k}", *arg))
    with pytest.raises(ValueError, match="a graph has scalars"):
        builder.dispatch(chosen, Arg(ArgKind.SCALAR, "x", ti.f32))
