"""Layouts for which memory does not suffice."""

import subprocess
import sys

LARGE = """
import aerogel as ti
ti.init(arch=ti.cpu, log_level="error")
x, y = ti.field(ti.f32, name="x"), ti.field(ti.f32, name="y")
ti.root.dense(ti.ij, 100000).place(x)
ti.root.dense(ti.i, 3).place(y)
for read in (lambda: x[0, 0], lambda: x[0, 0], lambda: y[0], lambda: x.to_numpy()):
    try:
        read()
    except MemoryError as e:
        print(e)
z = ti.field(ti.f32, shape=3)
print(z[0])
"""


def test_a_layout_that_had_no_memory_says_so_again():
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_AS, (10 << 30, 10 << 30))\n{LARGE}"
    out = subprocess.run([sys.executable, "-c", limited], capture_output=True, text=True, timeout=120)
    lines = out.stdout.splitlines()
    assert len(lines) == 5, out.stderr
    assert len(set(lines[:4])) == 1 and lines[4] == "0.0"
    assert lines[0].startswith(
        "out of memory: cannot allocate 40000000064 bytes: most of it for `dense` over 100000 x 1000"
    )
