"""Launches on a GPU return before they have ended: what comes when, and that nothing is lost."""

from pathlib import Path

import numpy as np
import pytest
from test_gpu import run

import aerogel as ti


@pytest.fixture
def machine(monkeypatch):
    monkeypatch.setenv("AEROGEL_CUDA", "machine")
    ti.init(arch=ti.cuda, check_out_of_bound=True, log_level="error")
    yield
    ti.reset()


def test_prints_come_when_somebody_waits(machine, capsys):
    x = ti.field(ti.i32, 4)

    @ti.kernel
    def say(n: int):
        x[n] = n
        print("said", n)

    say(1)
    assert capsys.readouterr().out == ""
    ti.sync()
    assert capsys.readouterr().out == "said 1\n"
    # Launches that print share a log: the second waits for the first.
    say(2)
    say(3)
    assert capsys.readouterr().out == "said 2\n"
    assert x[3] == 3
    assert capsys.readouterr().out == "said 3\n"
    say(0)
    ti.reset()
    assert capsys.readouterr().out == "said 0\n"


def failing():
    x = ti.field(ti.i32, 8)

    @ti.kernel
    def count(by: int):
        for i in x:
            x[i] += by

    @ti.kernel
    def look(at: int):
        for i in range(1):
            x[at + i] += 0

    return x, count, look


def test_a_failed_launch_stops_those_behind_it(machine):
    x, count, look = failing()
    count(5)
    look(8)
    count(100)
    count(1000)
    with pytest.raises(AssertionError) as raised:
        ti.sync()
    text = str(raised.value)
    assert "8" in text and "in kernel `look`" in text and "x[at + i] += 0" in text, text
    # As if the host had heard of it at once.
    assert (x.to_numpy() == 5).all()
    count(1)
    ti.sync()
    assert (x.to_numpy() == 6).all()


@pytest.mark.parametrize("access", ["field", "numpy", "result", "ndarray", "array", "torn"])
def test_whoever_reads_is_told(machine, access):
    x, count, look = failing()
    y = ti.ndarray(ti.i32, 3)

    @ti.kernel
    def first() -> ti.i32:
        return x[0]

    @ti.kernel
    def take(a: ti.types.ndarray()):
        for i in a:
            a[i] = 7

    ways = {
        "field": lambda: x[0],
        "numpy": lambda: x.to_numpy(),
        "result": first,
        "ndarray": lambda: y.to_numpy(),
        "array": lambda: take(np.zeros(3, np.int32)),
        "torn": ti.reset,
    }
    take(y)
    count(9)
    look(77)
    with pytest.raises(AssertionError, match="77"):
        ways[access]()
    if access != "torn":
        assert x[0] == 9 and y[2] == 7 and first() == 9


def test_arrays_of_numpy_are_there_when_the_call_returns(machine):
    @ti.kernel
    def double(a: ti.types.ndarray()):
        for i in a:
            a[i] *= 2

    a = np.arange(5)
    double(a)
    assert a.tolist() == [0, 2, 4, 6, 8]


def test_debug_waits_for_each(machine):
    ti.init(arch=ti.cuda, debug=True, log_level="error")
    _, count, look = failing()
    count(3)
    with pytest.raises(AssertionError, match="33"):
        look(33)


def test_many_launches(machine):
    x, count, _ = failing()
    for _ in range(1000):
        count(1)
    assert (x.to_numpy() == 1000).all()


def test_the_first_of_two_failures(machine):
    x, count, look = failing()
    look(88)
    count(1)
    look(99)
    with pytest.raises(AssertionError, match="88"):
        ti.sync()
    ti.sync()
    assert x[0] == 0


def test_sparse_trees_are_in_order_afterwards(machine):
    x = ti.field(ti.i32)
    block = ti.root.pointer(ti.i, 64)
    block.dense(ti.i, 8).place(x)
    few = ti.field(ti.i32, 3)

    @ti.kernel
    def activate(lo: int, hi: int, at: int):
        for i in range(lo, hi):
            x[i * 8] = i
        for i in range(1):
            few[at] = i
        for i in range(lo, hi):
            x[i * 8 + 1] = -i

    @ti.kernel
    def total() -> int:
        s = 0
        for i in x:
            s += x[i]
        return s

    activate(0, 16, 1)
    activate(16, 32, 3)
    # It looks how much room the tree has, and so waits.
    with pytest.raises(AssertionError, match=r"few\[at\]"):
        activate(32, 64, 1)
    assert total() == sum(range(16, 32))
    activate(32, 40, 1)
    assert total() == sum(range(16, 32))
    block.deactivate_all()
    assert total() == 0


def test_times_come_later(machine):
    ti.init(arch=ti.cuda, kernel_profiler=True, log_level="error")
    _, count, _ = failing()
    for _ in range(3):
        count(1)
    found = ti.profiler.query_kernel_profiler_info("count")
    assert found.counter == 3 and found.min > 0


HEAD = """
import aerogel as ti
ti.init(arch=ti.cuda, check_out_of_bound=True, log_level="error")
x = ti.field(ti.i32, 4)

@ti.kernel
def say(n: int):
    for i in range(1):
        print("said", n)
        x[n] = i
"""


def test_nothing_is_lost_at_the_end():
    code, out, _ = run(HEAD + "say(1)", AEROGEL_CUDA="machine")
    assert (code, out) == (0, "said 1\n")
    _, out, err = run(HEAD + "say(4)", AEROGEL_CUDA="machine")
    assert out == "said 4\n" and "AssertionError" in err and "in kernel `say`" in err


def test_a_fork_has_nothing_to_wait_for():
    program = (
        HEAD
        + """
import os
say(2)
if os.fork() == 0:
    try:
        x[0]
    except RuntimeError as e:
        assert "fork" in str(e)
    raise SystemExit
os.wait()
"""
    )
    code, out, err = run(program, AEROGEL_CUDA="machine")
    assert (code, out, err) == (0, "said 2\n", "")


def test_ctrl_c_ends_an_endless_launch():
    program = (
        HEAD
        + """
import os, signal, threading, time

@ti.kernel
def forever():
    while x[0] == 0:
        pass

forever()
print("returned", flush=True)
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    ti.sync()
except KeyboardInterrupt:
    print("ended")
x[0] = 1
forever()
assert x[0] == 1
"""
    )
    code, out, err = run(program, AEROGEL_CUDA="machine")
    assert (code, out) == (0, "returned\nended\n"), err


def test_a_fault_names_the_kernel():
    program = """
import aerogel as ti
ti.init(arch=ti.cuda, log_level="error")

@ti.kernel
def stray(a: ti.types.ndarray(dtype=ti.i32, ndim=1), at: int):
    a[at] = 1

a = ti.ndarray(ti.i32, 4)
stray(a, 1)
stray(a, 1 << 28)
try:
    ti.sync()
except RuntimeError as e:
    assert "belong to no allocation" in str(e) and "kernel `stray`" in str(e), e
else:
    raise SystemExit("no error")
ti.sync()
stray(a, 2)
assert a[1] == a[2] == 1
"""
    code, _, err = run(program, AEROGEL_CUDA="machine")
    assert code == 0, err


def test_a_program_whose_last_launch_fails_ends_with_a_status_that_says_so():
    program = """
import aerogel as ti
ti.init(arch=ti.cuda, check_out_of_bound=True, log_level="error")
x = ti.field(ti.i32, 4)
written = open("written", "w")
written.write("all")

@ti.kernel
def put(at: int):
    x[at] = 1

put(int(__import__("os").environ["AT"]))
print("the end")
"""
    code, out, err = run(program, AEROGEL_CUDA="machine", AT="7")
    assert code == 1 and out == "the end\n" and "index (7) is out of bounds for field `x`" in err
    assert Path("written").read_text() == "all"
    assert run(program, AEROGEL_CUDA="machine", AT="3") == (0, "the end\n", "")
