"""Promises that hold for any number of launches, threads, forks and fields. `docs/promises.md` has the numbers of a full run.

`AEROGEL_N_FAILURES`, `AEROGEL_N_LAUNCHES`, `AEROGEL_N_FORKS`, `AEROGEL_N_FIELDS` and `AEROGEL_N_ROUNDS` set the sizes.
"""

import contextlib
import gc
import linecache
import os
import subprocess
import sys
import threading
import warnings
from typing import Any

import numpy as np
import pytest

import aerogel as ti


def size(name: str, default: int) -> int:
    """A number of the environment."""
    return int(os.environ.get(f"AEROGEL_N_{name}", str(default)))


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def test_failing_launches_among_good_ones():
    """R7: each failure is an exception, the launch after it is right, and nothing piles up."""
    ti.init(arch=ti.cpu, debug=True, log_level="error")
    n = size("FAILURES", 300)
    x = ti.field(ti.i32, 16, name="x")

    @ti.kernel
    def put(at: int, value: int):
        x[at] = value

    @ti.kernel
    def total() -> int:
        s = 0
        for i in x:
            s += x[i]
        return s

    before = 0
    for k in range(n):
        with pytest.raises(ti.AerogelAssertionError, match="out of bounds for field `x`"):
            put(16 + k, 1)
        put(k % 16, k)
        assert total() == x.to_numpy().sum()
        if k == n // 10:
            before = resident()
    assert resident() < before + (5 << 20)


def test_threads_launch_and_compile():
    """R12: threads that launch the same kernels and compile others, at once, get what one thread gets."""
    n, n_threads = size("LAUNCHES", 100), 8
    ti.init(arch=ti.cpu, log_level="error", offline_cache=False)
    source = "".join(
        f"@ti.kernel\ndef k{k}(x: ti.types.ndarray(ti.i32, 1)) -> ti.i64:\n"
        f"    s = ti.i64(0)\n    for i in x:\n        s += x[i] * {k + 1}\n    return s\n"
        for k in range(16)
    )
    name = "<threads>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    made: dict[str, Any] = {"ti": ti}
    exec(compile(source, name, "exec"), made)
    data = np.arange(20_000, dtype=np.int32)
    total = int(data.sum())
    count = ti.field(ti.i32, 4096)

    @ti.kernel
    def add(by: int):
        for i in range(1 << 14):
            count[i % 4096] += by

    wrong, started = [], threading.Barrier(n_threads)

    def work(t):
        try:
            started.wait()
            for k in range(n):
                which = (3 * t + k) % 16
                if made[f"k{which}"](data) != total * (which + 1):
                    wrong.append((t, k))
                add(1)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(t,)) for t in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    # No sum of any launch is lost.
    assert (count.to_numpy() == 4 * n_threads * n).all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_forks_while_kernels_run():
    """R13: a child that is forked during a launch of another thread runs kernels of its own."""
    n = size("FORKS", 5)
    ti.init(arch=ti.cpu, log_level="error")
    x = ti.field(ti.i32, 1 << 16)

    @ti.kernel
    def fill(value: int):
        for i in x:
            x[i] = value

    @ti.kernel
    def total() -> ti.i64:
        s = ti.i64(0)
        for i in x:
            s += x[i]
        return s

    fill(1)
    assert total() == 1 << 16
    ends = threading.Event()

    def launch():
        while not ends.is_set():
            fill(1)

    launching = threading.Thread(target=launch)
    launching.start()
    try:
        for k in range(n):
            with warnings.catch_warnings():
                # Python warns of forks beside threads.
                warnings.simplefilter("ignore", DeprecationWarning)
                child = os.fork()
            if child == 0:
                code = 1
                with contextlib.suppress(BaseException):
                    fill(k + 2)
                    code = 0 if total() == (k + 2) << 16 else 2
                os._exit(code)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        ends.set()
        launching.join()
    assert total() == 1 << 16


def test_fields_come_and_go():
    """R9: thousands of fields leave no memory behind."""
    n = size("FIELDS", 600)
    ti.init(arch=ti.cpu, log_level="error")
    before = held = 0
    for k in range(n):
        x = ti.field(ti.f32, 350_000)
        x[k] = 1.0
        assert x[k] == 1.0
        del x
        if k == n // 5:
            gc.collect()
            before, held = resident(), ti._native.live_bytes()
    gc.collect()
    assert resident() < before + (5 << 20)
    assert ti._native.live_bytes() <= held


def test_cells_come_and_go():
    """R9: millions of sparse cells that are activated and deactivated leave no element behind."""
    n, cells = size("ROUNDS", 4), 1 << 17
    ti.init(arch=ti.cpu, log_level="error")
    x = ti.field(ti.i32)
    node = ti.root.pointer(ti.i, cells)
    node.place(x)

    @ti.kernel
    def activate(step: int):
        for i in range(cells):
            x[(i * step) % cells] = i + 1

    @ti.kernel
    def active() -> int:
        s = 0
        for i in x:
            s += 1
        return s

    before = 0
    for k in range(n):
        activate(2 * k + 1)
        assert active() == cells
        node.deactivate_all()
        assert active() == 0
        assert all(s["elements"] == s["used_bytes"] == 0 for s in node.stats())
        if k == 1:
            before = resident()
    assert resident() < before + (5 << 20)


FAULT = """
import aerogel as ti
ti.init(arch=ti.cpu, log_level="error", offline_cache=False)
x = ti.field(ti.f32, 8)

@ti.kernel
def astray(at: int):
    x[at] = 1.0

@ti.kernel
def spread(step: int):
    for i in range(100_000):
        x[i * step] = 1.0

astray(3)
spread(0)
print(x[3], flush=True)
{call}
print("goes on", flush=True)
"""


@pytest.mark.parametrize(
    ("call", "kernel", "line"), [("astray(1 << 30)", "astray", 7), ("spread(20_000)", "spread", 11)]
)
@pytest.mark.parametrize("first", ["", "import faulthandler; faulthandler.enable()\n"])
def test_a_fault_names_the_kernel(tmp_path, call, kernel, line, first):
    """Without checks an index may end the process: the last words name the kernel and its line, also of a thread of the pool."""
    program = tmp_path / "program.py"
    program.write_text(first + FAULT.format(call=call).lstrip("\n") if first else FAULT.format(call=call))
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode < 0 and done.stdout == "1.0\n"
    said = f"aerogel: invalid memory access while running the kernel `{kernel}` ({program}:{line}); ti.init(debug=True) finds"
    assert said in done.stderr
    assert ("Fatal Python error" in done.stderr) == bool(first)


@pytest.mark.parametrize("call", ["import ctypes; ctypes.string_at(8)", "import os; os.kill(os.getpid(), 11)"])
def test_a_fault_of_others_is_not_ours(tmp_path, call):
    """It ends the process all the same, also if somebody has sent it."""
    program = tmp_path / "program.py"
    program.write_text(FAULT.format(call=call))
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == -11 and "aerogel" not in done.stderr and done.stdout == "1.0\n"
