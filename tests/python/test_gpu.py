"""GPUs: what is said where there is none, and the machine that stands for one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import aerogel as ti


def run(program, **environment):
    env = {k: v for k, v in os.environ.items() if k not in ("AEROGEL_CUDA", "AEROGEL_ARCH", "AEROGEL_TEST_ARCH")}
    env |= {"AEROGEL_OFFLINE_CACHE": "0"} | environment
    Path("program.py").write_text(program)
    done = subprocess.run([sys.executable, "program.py"], capture_output=True, text=True, env=env)
    return done.returncode, done.stdout, done.stderr


def on_machine(program, kind="machine"):
    code, out, err = run(program, AEROGEL_CUDA=kind)
    assert code == 0, err
    return out


@pytest.fixture
def machine(monkeypatch):
    monkeypatch.setenv("AEROGEL_CUDA", "machine")
    ti.init(arch=ti.cuda, log_level="error")
    yield
    ti.reset()


HAS_DRIVER = os.path.exists("/proc/driver/nvidia/version")


@pytest.mark.skipif(HAS_DRIVER, reason="there is a driver")
def test_what_is_missing_is_said():
    for wanted in ("arch=ti.cuda, enable_fallback=False", "device='cuda'"):
        code, _, err = run(f"import aerogel as ti\nti.init({wanted})")
        assert code != 0
        assert "arch cuda is not available: no NVIDIA driver was found: libcuda.so.1 cannot be loaded" in err
    for arch in ("ti.gpu", "ti.cuda"):
        code, out, err = run(f"import aerogel as ti\nti.init(arch={arch})\nprint(ti.cfg.arch)")
        assert code == 0 and out.endswith("Arch.x64\n")
        assert (out + err).count("falling back to the CPU: no NVIDIA driver was found") == 1


def test_there_is_one_machine():
    program = "import aerogel as ti\nti.init(arch=ti.cuda, device='cuda:1')"
    code, _, err = run(program, AEROGEL_CUDA="machine")
    assert code != 0 and "there is no device cuda:1: the driver lists 1, from cuda:0 on" in err
    code, _, err = run("import aerogel as ti\nti.init(arch=ti.cuda)", AEROGEL_CUDA="card")
    assert code != 0 and "AEROGEL_CUDA is `driver`, `machine`, or" in err
    with pytest.raises(ValueError, match='device is "cuda", or "cuda:1"'):
        ti.init(device="gpu7")


def test_fields_and_arrays_stay_there_until_they_are_asked_for(machine):
    x = ti.field(ti.f32, shape=(20, 30))
    total = ti.field(ti.i32, shape=())
    a = ti.ndarray(ti.i32, 100)

    @ti.kernel
    def fill(k: ti.i32) -> ti.i32:
        for i, j in x:
            x[i, j] += i * k + j
            total[None] += 1
        return total[None]

    @ti.kernel
    def count(a: ti.types.ndarray(), n: ti.i32):
        for i in range(n):
            a[i] += i

    assert fill(2) == 600 == total[None]
    total[None] = 5
    x[3, 4] = 100
    assert fill(0) == 605
    expected = np.add.outer(2 * np.arange(20), 2 * np.arange(30))
    expected[3, 4] = 104
    assert (x.to_numpy() == expected).all()
    x.fill(1)
    fill(1)
    assert x[19, 29] == 49
    count(a, 100)
    a[7] = -1
    count(a, 50)
    assert [a[k] for k in (1, 7, 49, 50)] == [2, 6, 98, 50]
    # NumPy's view of the memory sees what kernels do, and they what it changes.
    view = np.asarray(a)
    count(a, 2)
    assert view[1] == 3
    view[0] = 9
    count(a, 1)
    assert view[0] == 9
    mine = np.zeros(10, np.int32)
    count(mine, 10)
    assert (mine == np.arange(10)).all()


def test_arrays_that_overlap_overlap_there(machine):
    @ti.kernel
    def shift(a: ti.types.ndarray(dtype=ti.i32, ndim=1), b: ti.types.ndarray(dtype=ti.i32, ndim=1)):
        ti.loop_config(serialize=True)
        for i in range(9):
            a[i + 1] = b[i] + 1

    whole = np.zeros(20, np.int32)
    shift(whole[:10], whole[:10])
    assert (whole[:10] == np.arange(10)).all()
    shift(whole[5:15], whole[:10])
    assert whole.tolist() == [0, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 6, 2, 3, 4, 0, 0, 0, 0, 0]


def test_prints_are_kept_and_those_that_are_lost_counted(machine, capfd):
    @ti.kernel
    def say(n: ti.i32):
        for i in range(n):
            print("number", i)

    say(3)
    ti.sync()
    assert sorted(capfd.readouterr().out.splitlines()) == ["number 0", "number 1", "number 2"]
    say(100_000)
    ti.sync()
    lines = capfd.readouterr().out.splitlines()
    kept = len(lines) - 1
    assert kept == (1 << 20) // 16
    assert lines[-1] == f"[{100_000 - kept} more prints are lost: a launch on the device buffers 1024 KiB of them]"
    say(1)
    ti.sync()
    assert capfd.readouterr().out == "number 0\n"


def test_random_numbers_are_those_of_the_cpu(machine):
    def draw():
        x = ti.field(ti.f64, 500)

        @ti.kernel
        def fill():
            for i in x:
                x[i] = ti.random(ti.f64) + ti.randn()

        fill()
        return x.to_numpy()

    found = draw()
    ti.init(arch=ti.cpu, log_level="error")
    assert (found == draw()).all()


def test_no_room_for_more_cells_names_the_node():
    program = """
import aerogel as ti
ti.init(arch=ti.cuda, log_level="error")
x = ti.field(ti.f32)
ti.root.pointer(ti.i, 1 << 12).dense(ti.i, 1 << 16).place(x)

@ti.kernel
def touch(n: ti.i32):
    for i in range(n):
        x[i << 16] = i

touch(10)
try:
    touch(1 << 12)
    ti.sync()
except MemoryError as e:
    print(str(e).splitlines()[0])
print(x[9 << 16])
touch(10)
y = ti.ndarray(ti.f32, 1 << 26)

@ti.kernel
def fill(a: ti.types.ndarray()):
    for i in range(8):
        a[i] = 1

try:
    fill(y)
except MemoryError as e:
    print(e)
print(x[9 << 16])
"""
    out = on_machine(program, "machine:64")
    assert out.splitlines() == [
        "out of memory for the pointer node S1",
        "9.0",
        f"out of memory on the device: cannot allocate {4 << 26} bytes",
        "9.0",
    ]


def test_a_device_does_not_survive_a_fork():
    program = """
import os
import aerogel as ti
ti.init(arch=ti.cuda, log_level="error")

@ti.kernel
def k() -> ti.i32:
    return 1

print(k(), flush=True)
if os.fork() == 0:
    try:
        k()
    except RuntimeError as e:
        print("before a fork cannot be used" in str(e), flush=True)
    try:
        ti.init(arch=ti.cuda)
    except RuntimeError as e:
        print("before a fork cannot be used" in str(e), flush=True)
    os._exit(0)
os.wait()
print(k())
"""
    assert on_machine(program).splitlines() == ["1", "True", "True", "1"]


def test_a_kernel_that_never_ends_can_be_interrupted():
    program = """
import os, signal, threading
import aerogel as ti
ti.init(arch=ti.cuda, log_level="error")
x = ti.field(ti.i32, ())

@ti.kernel
def forever():
    while x[None] == 0:
        pass

@ti.kernel
def k() -> ti.i32:
    return 7

k()
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    forever()
    ti.sync()
except KeyboardInterrupt:
    print("interrupted")
print(k())
"""
    assert on_machine(program).splitlines() == ["interrupted", "7"]


def test_long_loops_in_loops_can_be_interrupted():
    # A thread that asks after some turns of the outer loop alone would do so after minutes.
    program = """
import os, signal, threading
import aerogel as ti
ti.init(arch=ti.cuda, log_level="error")
x = ti.field(ti.f32, 64)

@ti.kernel
def long(n: ti.i32):
    for i in x:
        s = 0.0
        for a in range(1 << 20):
            for b in range(n):
                s += ti.sin(a * 0.1 * b)
        x[i] = s

threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    long(1 << 21)
    ti.sync()
except KeyboardInterrupt:
    print("interrupted")
x.fill(2)
print(x[3])
"""
    assert on_machine(program).splitlines() == ["interrupted", "2.0"]


def test_times_are_those_of_the_device(monkeypatch, tmp_path):
    monkeypatch.setenv("AEROGEL_CUDA", "machine")
    ti.init(arch=ti.cuda, log_level="error", kernel_profiler=True)
    x = ti.field(ti.i32, 1000)

    @ti.kernel
    def two_loops():
        for i in x:
            x[i] = i
        for i in x:
            x[i] += 1

    for _ in range(3):
        two_loops()
    times = ti.profiler.query_kernel_profiler_info("two_loops")
    assert times.counter == 3 and 0 < times.min <= times.avg <= times.max
    ti.profiler.export_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())
    events = events["traceEvents"] if isinstance(events, dict) else events
    launches = [e for e in events if e.get("cat") != "compile"]
    bars = {
        kind: [e for e in launches if e.get("name") == kind] for kind in ("two_loops", "two_loops.0", "two_loops.1")
    }
    assert [len(found) for found in bars.values()] == [3, 3, 3]
    # What the device took lies within the call, which also copies and waits.
    whole, *tasks = (sum(e["dur"] for e in found) for found in bars.values())
    assert 0 < sum(tasks) <= whole
    assert sum(tasks) / 1000 == pytest.approx(3 * times.avg, rel=1e-3)
    ti.reset()


def test_a_field_for_which_a_card_has_no_memory_is_named_by_its_layout():
    program = """
import aerogel as ti
ti.init(arch=ti.cuda, log_level="error")
x = ti.field(ti.f32)
ti.root.dense(ti.ij, (4096, 8192)).place(x)

@ti.kernel
def fill():
    for i in ti.grouped(x):
        x[i] = 1

@ti.kernel
def three() -> int:
    return 3

try:
    fill()
except ti.AerogelMemoryError as e:
    print(e)
print(three())
"""
    said, three = on_machine(program, "machine:64").splitlines()
    assert said.startswith(
        "out of memory on the device: cannot allocate 268435456 bytes: most of it for `dense` over 4096 x 8192; "
    )
    assert three == "3"


def test_how_much_memory_of_the_device_is_used(monkeypatch):
    monkeypatch.setenv("AEROGEL_CUDA", "machine")

    def fits(megabytes):
        x = ti.ndarray(ti.u8, megabytes << 20)

        @ti.kernel
        def touch(x: ti.types.ndarray()):
            x[0] = 1

        try:
            touch(x)
        except MemoryError as e:
            assert "out of memory on the device" in str(e)
            return False
        return True

    ti.init(arch=ti.cuda, log_level="error", device_memory_GB=0.05)
    assert fits(20) and not fits(60) and fits(20)
    ti.init(arch=ti.cuda, log_level="error", device_memory_fraction=0.001)
    assert fits(30) and not fits(80)
    ti.init(arch=ti.cuda, log_level="error")
    assert fits(80)
    for wrong in ({"device_memory_fraction": 1.5}, {"device_memory_GB": -1}):
        with pytest.raises(ValueError, match="device_memory"):
            ti.init(arch=ti.cuda, log_level="error", **wrong)
    ti.reset()
