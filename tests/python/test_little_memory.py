"""A few megabytes of address space left: a ``MemoryError``, and the process goes on."""

import subprocess
import sys

import pytest

PROGRAM = """
import resource, sys
import aerogel as ti, numpy as np
from aerogel import tools
ti.init(log_level="error", offline_cache=False)
a = np.zeros(1000, np.float32)
tools.imwrite(np.zeros((3, 3, 3), np.uint8), sys.argv[3])

@ti.kernel
def add(a: ti.types.ndarray()):
    for i in a:
        a[i] += 1

add(a)
left = int(sys.argv[1]) << 20
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + left, used + left))
try:
    if sys.argv[2] == "field":
        ti.field(ti.f32, left).fill(1)
    elif sys.argv[2] == "ndarray":
        ti.ndarray(ti.f32, left).fill(1)
    else:
        tools.imwrite(np.zeros((1000, left // 1700, 1), np.uint8), sys.argv[3])
    print("done", end=" ")
except MemoryError as e:
    print("MemoryError", end=" ")
add(a)
print(a.sum())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space by /proc and setrlimit")
@pytest.mark.parametrize("left", [2, 8, 20])
@pytest.mark.parametrize("what", ["field", "ndarray", "picture"])
def test_memory_error(left, what, tmp_path):
    (tmp_path / "p.py").write_text(PROGRAM)
    command = [sys.executable, "p.py", str(left), what, str(tmp_path / "a.png")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr[-500:]
    # What the C library keeps for later may do.
    assert done.stdout in ("MemoryError 2000.0\n", "done 2000.0\n")


COMPILING = """
import resource, sys
import aerogel as ti
ti.init(log_level="error", offline_cache=False)
x = ti.field(ti.f32, 100)

@ti.kernel
def long():
    for i in x:
        for k in ti.static(range(200)):
            x[i] = ti.sin(x[i] * k) + 1

used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
limit = used + (int(sys.argv[1]) << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
long()
print(x[1] > 0)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space by /proc and setrlimit")
@pytest.mark.parametrize("left", [1, 2, 8])
def test_compiling_has_room_of_its_own(left, tmp_path):
    (tmp_path / "p.py").write_text(COMPILING)
    command = [sys.executable, "p.py", str(left)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout == "True\n"
