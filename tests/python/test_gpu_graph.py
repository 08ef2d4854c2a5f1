"""``ti.graph`` on a GPU: the launches of a run are one, where the host has nothing to do between them."""

import numpy as np
import pytest

import aerogel as ti
from aerogel.graph import Arg, ArgKind, GraphBuilder


@pytest.fixture
def machine(monkeypatch):
    monkeypatch.setenv("AEROGEL_CUDA", "machine")
    ti.init(arch=ti.cuda, check_out_of_bound=True, log_level="error", random_seed=3)
    yield
    ti.reset()


def graph_of(*calls):
    builder = GraphBuilder()
    for kernel, *args in calls:
        builder.dispatch(kernel, *args)
    return builder.compile()


ARRAY = Arg(ArgKind.NDARRAY, "x", dtype=ti.f32, ndim=1)
NUMBER = Arg(ArgKind.SCALAR, "s", ti.f32)


@ti.kernel
def add(x: ti.types.ndarray(dtype=ti.f32, ndim=1), s: ti.f32):
    for i in x:
        x[i] += s


@ti.kernel
def halve(x: ti.types.ndarray(dtype=ti.f32, ndim=1)):
    for i in x:
        x[i] *= 0.5


def test_what_is_given_may_change_each_time(machine):
    graph = graph_of((add, ARRAY, NUMBER), (halve, ARRAY), (add, ARRAY, NUMBER))
    arrays = [ti.ndarray(ti.f32, n) for n in (5, 300)]
    expected = [0.0, 0.0]
    for turn in range(6):
        which = turn % 2
        graph.run({"x": arrays[which], "s": turn})
        expected[which] = (expected[which] + turn) / 2 + turn
        if turn == 3:
            arrays[0][2] = 7
    assert (arrays[1].to_numpy() == expected[1]).all()
    first = arrays[0].to_numpy()
    assert (np.delete(first, 2) == expected[0]).all() and first[2] == (7 + 4) / 2 + 4


def test_a_host_that_is_needed_is_there(machine, capsys):
    s = ti.field(ti.f32, ())

    @ti.kernel
    def say(x: ti.types.ndarray(dtype=ti.f32, ndim=1)):
        print("first", x[0])

    @ti.kernel
    def keep():
        s[None] += 1

    graph = graph_of((add, ARRAY, NUMBER), (keep,), (say, ARRAY), (add, ARRAY, NUMBER), (keep,))
    x = ti.ndarray(ti.f32, 4)
    for _ in range(3):
        graph.run({"x": x, "s": 1})
    ti.sync()
    assert capsys.readouterr().out == "first 1.000000\nfirst 3.000000\nfirst 5.000000\n"
    assert s[None] == 6 and x[3] == 6


def test_cells_become_active(machine):
    y = ti.field(ti.i32)
    ti.root.pointer(ti.i, 16).dense(ti.i, 4).place(y)
    at = Arg(ArgKind.SCALAR, "at", ti.i32)

    @ti.kernel
    def touch(at: ti.i32):
        y[at] += 1

    @ti.kernel
    def all_of_them():
        for i in y:
            y[i] += 10

    graph = graph_of((touch, at), (all_of_them,), (touch, at))
    for n in (3, 40, 41, 3):
        graph.run({"at": n})
    found = y.to_numpy()
    assert found[3] == 44 and found[40] == 32 and found[41] == 32 and found[63] == 0 and found[8:40].max() == 0


def test_random_numbers_are_new_each_time(machine):
    @ti.kernel
    def draw(x: ti.types.ndarray(dtype=ti.f32, ndim=1)):
        for i in x:
            x[i] = ti.random()

    graph = graph_of((draw, ARRAY), (halve, ARRAY))
    x = ti.ndarray(ti.f32, 8)
    seen = set()
    for _ in range(4):
        graph.run({"x": x})
        seen.update(x.to_numpy().tolist())
    assert len(seen) == 32


def test_a_failure_is_told_once(machine):
    at = Arg(ArgKind.SCALAR, "at", ti.i32)

    @ti.kernel
    def put(x: ti.types.ndarray(dtype=ti.f32, ndim=1), at: ti.i32):
        for i in range(1):
            x[at + i] = 1

    graph = graph_of((put, ARRAY, at), (add, ARRAY, NUMBER))
    x = ti.ndarray(ti.f32, 4)
    for n in (0, 1, 2, 9, 3):
        graph.run({"x": x, "s": 1, "at": n})
    with pytest.raises(AssertionError, match=r"9") as raised:
        ti.sync()
    assert "x[at + i] = 1" in str(raised.value)
    # What stood behind it has done nothing.
    assert x.to_numpy().tolist() == [4, 3, 2, 3]
    graph.run({"x": x, "s": 1, "at": 3})
    assert x.to_numpy().tolist() == [5, 4, 3, 2]


def test_a_graph_outlives_what_it_ran_on(machine):
    graph = graph_of((add, ARRAY, NUMBER), (add, ARRAY, NUMBER))
    for arch in (ti.cuda, ti.cpu, ti.cuda):
        ti.init(arch=arch, log_level="error")
        x = ti.ndarray(ti.f32, 4)
        for _ in range(3):
            graph.run({"x": x, "s": 2})
        assert (x.to_numpy() == 12).all()
