"""Ctrl-C is heard whoever handles it: Python, or the program itself."""

import subprocess
import sys

import pytest

KERNELS = """
import os, signal, threading, time
import aerogel as ti

HEARD = []

def own(number, frame):
    HEARD.append(number)

def again():
    signal.signal(signal.SIGINT, signal.default_int_handler)

def press(*after):
    for seconds in after:
        threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()

def start():
    global x
    ti.init(arch=ti.cpu, log_level="error")
    x = ti.field(ti.i64, 64)

@ti.kernel
def turns(n: ti.i64) -> ti.i64:
    i = ti.i64(0)
    while i < n:
        i += 1
        x[i % 64] += 1
    return i

def long_enough():
    # So many turns as last a second or two.
    turns(3)
    begin, n = time.monotonic(), 10**7
    turns(n)
    return int(n * 1.5 / (time.monotonic() - begin))
"""


@pytest.fixture
def run(tmp_path):
    def run(program):
        (tmp_path / "program.py").write_text(KERNELS + program)
        command = [sys.executable, "program.py"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    return run


@pytest.mark.parametrize(
    "order", ["signal.signal(signal.SIGINT, own); start()", "start(); signal.signal(signal.SIGINT, own)"]
)
def test_a_handler_of_the_programs_own_lets_a_kernel_end(run, order):
    """It may want to keep what has been computed so far."""
    program = f"{order}\nn = long_enough()\npress(0.3)\nprint(turns(n) == n, HEARD == [signal.SIGINT], turns(3))"
    assert run(program) == ["True", "True", "3"]


@pytest.mark.parametrize(
    "order", ["signal.signal(signal.SIGINT, own); start()", "start(); signal.signal(signal.SIGINT, own)"]
)
def test_who_presses_twice_ends_it(run, order):
    program = f"""{order}
turns(3)
for _ in range(2):
    press(0.3, 0.6)
    try:
        turns(2**62)
    except KeyboardInterrupt:
        print("ended", len(HEARD))
print(turns(3))
"""
    said = run(program)
    # Python calls it once for what came while a kernel ran.
    assert said[::2] == ["ended", "ended", "3"] and int(said[1]) < int(said[3])


def test_pythons_handler_that_is_back(run):
    """Notebooks set a handler for each cell."""
    program = """
start()
turns(3)
for _ in range(2):
    signal.signal(signal.SIGINT, own)
    turns(3)
    again()
    # It is looked for every few milliseconds.
    time.sleep(0.02)
    press(0.3)
    try:
        turns(2**62)
    except KeyboardInterrupt:
        print("ended", HEARD)
"""
    assert run(program) == ["ended", "[]", "ended", "[]"]


def test_tensors_hear_it(run):
    program = """
from aerogel.tensor import programs as p

start()
T = ti.tensor

@p.program
def endless():
    a, x = p.input([-1], ti.f32), p.const(0.0)
    with p.loop(2**31 - 1):
        x.val = x * 0.5 + a.sum()
    return x

a = T.ones(1000)
again()
press(0.3)
try:
    endless(a).item()
except KeyboardInterrupt:
    print("ended")
signal.signal(signal.SIGINT, own)
press(0.3, 0.6)
try:
    endless(a).item()
except KeyboardInterrupt:
    print("ended", len(HEARD) > 0)
print(T.ones(3).sum().item())
"""
    assert run(program) == ["ended", "ended", "True", "3.0"]


def test_nobody_handles_it(run):
    """A program that ignores it is not ended by it."""
    program = """
start()
signal.signal(signal.SIGINT, signal.SIG_IGN)
n = long_enough()
press(0.3)
print(turns(n) == n)
"""
    assert run(program) == ["True"]


SERIAL = {
    "a loop in order": """
    ti.loop_config(serialize=True)
    for i in range(n):
        s = 0.0
        for k in range(60):
            s += ti.sin(f[k] + i)
        f[i % 64] = s
""",
    "a nest in order": """
    ti.loop_config(serialize=True)
    for i, j in ti.ndrange(4, n):
        f[j % 64] += ti.sin(f[(i + j) % 64]) + 1.0
""",
    "a sum": """
    if n > 0:
        s = 0.0
        for i in range(n):
            s = ti.sin(s + i)
        f[0] = s
""",
}


@pytest.mark.parametrize("loop", SERIAL)
def test_what_one_thread_does_ends_within_half_a_second(run, loop):
    program = f"""
start()
f = ti.field(ti.f32, 64)

@ti.kernel
def serial(n: ti.i32):
{SERIAL[loop]}
serial(3)
PRESSED = []
def note():
    PRESSED.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)
threading.Timer(0.2, note).start()
try:
    serial(2**31 - 2)
    print("ran through")
except KeyboardInterrupt:
    print(time.monotonic() - PRESSED[0])
"""
    (seconds,) = run(program)
    assert float(seconds) < 0.5
