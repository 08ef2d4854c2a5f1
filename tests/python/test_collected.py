"""What programs leave goes when nobody holds it any more, though kernels have seen it."""

import gc
import subprocess
import sys
import weakref
from pathlib import Path

import aerogel as ti

LEFT_OPEN = """
import aerogel as ti
ti.init(arch=ti.cpu, log_level="error")
written = open("written", "w")
written.write("all")
x = ti.field(ti.i32, 4)

@ti.func
def more(a):
    return a + 1

@ti.data_oriented
class Solver:
    def __init__(self):
        self.x = ti.field(ti.i32, 4)

    @ti.kernel
    def put(self, at: int):
        self.x[at] = more(at)

@ti.kernel
def put(at: int):
    x[at] = more(at)

put(1)
solver = Solver()
solver.put(2)
"""


def test_files_that_a_program_leaves_open_are_written():
    Path("program.py").write_text(LEFT_OPEN)
    subprocess.run([sys.executable, "program.py"], check=True)
    assert Path("written").read_text() == "all"


class Seen:
    pass


def test_kernels_and_what_they_saw_are_collected(arch):
    def make():
        seen = Seen()
        seen.n = 3
        x = ti.field(ti.i32, 4)

        @ti.kernel
        def put(at: int):
            x[at] = seen.n
            again(0)

        @ti.func
        def again(at):
            x[at] += ti.static(put is None)

        put(2)
        assert x.to_numpy().tolist() == [0, 0, 3, 0]
        return weakref.ref(seen), weakref.ref(put)

    refs = [make() for _ in range(3)]
    gc.collect()
    assert [[ref() for ref in pair] for pair in refs] == [[None, None]] * 3
