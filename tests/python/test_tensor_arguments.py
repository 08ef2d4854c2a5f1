"""What programs take and give: tensors, arrays, numbers, fields, and tuples, lists, dictionaries and dataclasses of them."""

import dataclasses
import typing

import aerogel as ti
import aerogel.tensor as T
import numpy as np
import pytest
from aerogel.tensor import programs as p

X = np.array([1.0, 2.0, 3.0], np.float32)


@pytest.fixture(autouse=True)
def started():
    ti.init(arch=ti.cpu, log_level="error")


def test_numbers_are_inputs_and_annotated_ones_are_known():
    @ti.program
    def step(u, v, dt=0.1, *, n: int):
        for _ in range(n):
            u, v = u + dt * v, v - dt * u
        return u, v

    def expected(u, v, dt, n):
        for _ in range(n):
            u, v = u + np.float32(dt) * v, v - np.float32(dt) * u
        return u, v

    for dt in (0.1, 0.25, 3):
        got = step(X, X + 1, dt, n=2)
        assert all(np.allclose(a.numpy(), b) for a, b in zip(got, expected(X, X + 1, dt, 2)))
    assert step.trace_count == 2, "0.1 and 0.25 are one kind of argument, 3 another"
    step(X, X, n=2)
    assert step.trace_count == 2
    step(X, X, n=3)
    assert step.trace_count == 3
    step(np.ones(100, np.float32), np.ones(100, np.float32), n=3)
    assert step.trace_count == 3, "other sizes are the same program"
    step(np.ones((2, 5), np.float32), np.ones((2, 5), np.float32), n=3)
    assert step.trace_count == 4, "other axes are another program"
    step(X.astype(np.float64), X.astype(np.float64), n=3)
    assert step.trace_count == 5, "other types are another program"


def test_captured_numbers_are_constants():
    factor = 2

    @ti.program
    def scaled(x, by):
        return x * factor * by

    assert scaled(X, 1).tolist() == [2, 4, 6]
    factor = 3
    assert scaled(X, 1).tolist() == [2, 4, 6] and scaled(X, 5).tolist() == [10, 20, 30] and scaled.trace_count == 1


def test_static_parameters():
    @ti.program(static=["how", "m"])
    def reduce(x, how, m=1):
        return how(x) * m + m

    assert reduce(X, T.sum).item() == 7 and reduce(X, T.max, 2).item() == 8 and reduce(X, T.sum, m=1.0).item() == 7
    assert reduce.trace_count == 3, "1 and 1.0 are two values"
    with pytest.raises(
        TypeError, match=r"argument `m` of `reduce` is part of the program and must be hashable, which ndarray is not"
    ):
        reduce(X, T.sum, np.ones(3))
    with pytest.raises(TypeError, match="`f` has no parameter `n`, which `static` names"):

        def f(x):
            return x

        ti.program(f, static=["n"])


@dataclasses.dataclass
class State:
    position: typing.Any
    velocity: typing.Any
    steps: int = 1


class Pair(typing.NamedTuple):
    first: typing.Any
    second: typing.Any


def test_trees_go_in_and_come_out():
    @ti.program
    def move(state, forces, dt):
        position = state.position + dt * state.velocity * state.steps
        velocity = state.velocity + dt * (forces["gravity"] + sum(forces["others"]))
        return dataclasses.replace(state, position=position, velocity=velocity), {"moved": [position - state.position]}

    state = State(T.asarray(X), X * 2, 2)
    forces = {"gravity": -9.0, "others": [X, X * 3]}
    for _ in range(3):
        state, more = move(state, forces, 0.5)
    assert isinstance(state, State) and state.steps == 2 and isinstance(more["moved"], list)
    x, v = X.copy(), X * 2
    for _ in range(3):
        x, v = x + 0.5 * v * 2, v + 0.5 * (-9 + X * 4)
    assert np.allclose(state.position.numpy(), x) and np.allclose(state.velocity.numpy(), v)
    assert move.trace_count == 1
    move(state, {"gravity": -9.0, "others": [X]}, 0.5)
    assert move.trace_count == 2


def test_named_tuples():
    @ti.program
    def swap(pair):
        return Pair(pair.second, first_plus(pair))

    def first_plus(pair):
        return pair.first + 1

    out = swap(Pair(X, 2.0))
    assert isinstance(out, Pair) and out.first.item() == 2 and out.second.tolist() == [2, 3, 4]


def test_axes_of_one_element_are_stretched():
    @ti.program
    def add(a, b):
        return a + b

    for shapes in [((2, 3), (2, 3)), ((2, 3), (1, 3)), ((1, 3), (2, 3)), ((2, 1), (1, 3)), ((4, 3), (1, 3))]:
        a, b = (np.random.default_rng(1).random(shape, np.float32) for shape in shapes)
        assert np.allclose(add(a, b).numpy(), a + b)
    assert add.trace_count == 4
    with pytest.raises(ValueError, match="3 elements.*4|4 elements.*3|axis"):
        add(np.ones(3, np.float32), np.ones(4, np.float32))


def test_programs_call_programs():
    @ti.program
    def smooth(u):
        return (T.roll(u, 1) + u + T.roll(u, -1)) / 3

    @ti.program
    def twice(u, *, n: int = 2):
        out = u + 0
        with p.loop(n):
            out.val = smooth(out)
        return smooth(u), out

    one, two = twice(X)
    assert np.allclose(one.numpy(), 2) and np.allclose(two.numpy(), 2)
    assert smooth.trace_count == 0 and smooth(X).tolist() == one.tolist()

    @p.program
    def inputs():
        return p.input([-1], ti.f32) + 1

    @ti.program
    def calls(x):
        return inputs(x)

    with pytest.raises(RuntimeError, match="`inputs` creates its inputs with `input`"):
        calls(X)


def test_programs_are_mapped():
    @ti.program
    def dot(a, b):
        return (a * b).sum()

    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert ti.vmap(dot, in_axes=(0, None))(a, X).tolist() == (a @ X).tolist()

    @ti.program
    def rows(a, b):
        return ti.vmap(dot, in_axes=(0, None))(a, b)

    assert rows(a, X).tolist() == (a @ X).tolist()


def test_fields_arrays_and_complex_numbers():
    field = ti.field(ti.f32, shape=3)
    field.from_numpy(X)
    array = ti.ndarray(ti.f32, shape=3)
    array.from_numpy(X * 2)

    @ti.program
    def mixed(f, a, z, factor):
        (i,) = p.indices(f)
        f[i] = f[i] + 1
        return a * factor, z * 1j

    a, z = mixed(field, array, T.asarray([1 + 2j]), 3)
    assert a.tolist() == (X * 6).tolist() and z.tolist() == [-2 + 1j]
    assert field.to_numpy().tolist() == (X + 1).tolist()
    other = ti.field(ti.f32, shape=3)
    mixed(other, array, T.asarray([1 + 2j]), 3)
    assert other.to_numpy().tolist() == [1, 1, 1] and field.to_numpy().tolist() == (X + 1).tolist()


def test_lower_and_explain():
    @ti.program
    def norm(x, *, keep: int = 0):
        return T.sqrt((x * x).sum())

    with pytest.raises(TypeError, match="`norm` has not been called"):
        norm.explain()
    lowered = norm.lower(X)
    assert "sqrt" in lowered.text and "kernel 0" in lowered.explain() and norm.trace_count == 1
    assert norm(X).item() == pytest.approx(14**0.5) and norm.trace_count == 1
    assert norm.explain() == lowered.explain() == norm.explain(X)
    assert norm.__name__ == "norm"


class Solver:
    def __init__(self, scale):
        self.scale = scale

    @ti.program
    def apply(self, x):
        return x * self.scale


def test_methods():
    a, b = Solver(2), Solver(3)
    assert a.apply(X).tolist() == (X * 2).tolist() and b.apply(X).tolist() == (X * 3).tolist()
    assert a.apply(X).tolist() == (X * 2).tolist() and Solver.apply.trace_count == 2


@pytest.mark.parametrize(
    "result, says",
    [
        (lambda x: [x, None], "not NoneType in one"),
        (lambda x: {"a": "text"}, "not str in one"),
        (lambda x: {x}, "not set"),
        (lambda x: T.sum, "not function"),
    ],
)
def test_results_that_are_no_trees(result, says):
    @ti.program
    def wrong(x):
        return result(x)

    with pytest.raises(TypeError, match=says):
        wrong(X)


def test_arguments_that_do_not_fit():
    @ti.program
    def f(x, y=1.0):
        return x + y

    with pytest.raises(TypeError, match="`f`: missing a required argument: 'x'"):
        f()
    with pytest.raises(TypeError, match="`f`: got an unexpected keyword argument 'z'"):
        f(X, z=1)
    assert f(X, y=2).tolist() == (X + 2).tolist()


def test_init_makes_programs_anew():
    @ti.program
    def half(n):
        return n / 2

    assert half(3).dtype is ti.f32
    ti.init(arch=ti.cpu, default_fp=ti.f64, log_level="error")
    assert half(3).dtype is ti.f64 and half.trace_count == 2


def test_numbers_take_the_type_of_what_is_beside_them():
    @ti.program
    def scaled(x, dt=0.1):
        return x * dt

    for dtype in (np.float64, np.float32, np.float16, np.uint8, np.int64):
        x = np.array([1, 100, 3], dtype)
        for dt in (0.1, 2, True):
            eager = T.asarray(x) * dt
            got = scaled(x, dt)
            assert got.dtype is eager.dtype and (got.numpy() == eager.numpy()).all(), (dtype, dt)
    x = T.asarray(X, ti.f64)
    assert (scaled(x).numpy() == X.astype(np.float64) * 0.1).all()

    @ti.program
    def alone(a, b):
        return a, a + b, a.dtype is ti.f32

    a, both, is_float = alone(0.5, 2)
    assert a.dtype is ti.f32 and both.item() == 2.5 and both.dtype is ti.f32 and bool(is_float.item())


def test_static_values_are_told_apart():
    @ti.program(static=["s"])
    def inverse(x, s):
        return x / s

    assert inverse(X, 0.0).tolist() == [np.inf] * 3 and inverse(X, -0.0).tolist() == [-np.inf] * 3
    for _ in range(3):
        assert np.isnan(inverse(X, float("nan")).numpy()).all()
    assert inverse.trace_count == 3
    with pytest.raises(
        TypeError, match="argument `s` of `inverse` is static, and a tensor has no value .* remove it from `static`"
    ):
        inverse(X, T.ones(1))

    @ti.program
    def flagged(x, flag: bool):
        return x + 1 if flag else x - 1

    assert flagged(X, True).tolist() == (X + 1).tolist() and flagged(X, False).tolist() == (X - 1).tolist()

    @ti.program
    def forgot(x, flag):
        return x + 1 if flag else x

    with pytest.raises(Exception, match="annotated `int` or `bool`, or named in `static`"):
        forgot(X, True)


def test_inputs_are_all_made_first():
    @ti.program
    def summed(s, x):
        s = p.const(s)
        with p.loop(3):
            s.val += x
        return s

    assert summed(1.0, X).tolist() == (1 + 3 * X).tolist()


def test_what_an_index_outside_means_is_kept():
    @ti.program
    def third(x, k):
        return x[k]

    k = np.array([0, 5], np.int32)
    assert third(T.asarray(X).outside("zero"), k).tolist() == [1, 0]
    assert third(T.asarray(X).outside("clamp"), k).tolist() == [1, 3]
    with pytest.raises(IndexError):
        third(T.asarray(X), k).tolist()


def test_a_program_is_made_while_another_is_traced():
    @ti.program
    def inner(x):
        return x * 2

    given = T.asarray(X)

    @ti.program
    def outer(x):
        assert "mul" in inner.lower(given).text
        return x + 1

    assert outer(X).tolist() == (X + 1).tolist()

    @p.program
    def constant():
        return T.asarray([1.0, 2.0])

    @ti.program
    def uses(x):
        return x.sum() + constant()

    assert uses(X).tolist() == [7, 8]


def test_threads_trace_once():
    import threading

    @ti.program
    def slow(x):
        for _ in range(20):
            x = x * 1.5 + 1
        return x

    results = []
    threads = [threading.Thread(target=lambda: results.append(slow(X).tolist())) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert slow.trace_count == 1 and all(r == results[0] for r in results) and len(results) == 6
