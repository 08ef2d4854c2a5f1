"""``kernel.inspect(loops=True)``: what became of each loop."""

import subprocess
import sys

import numpy as np
import pytest

import aerogel as ti

N = 4096


@pytest.fixture(autouse=True)
def start():
    ti.init(arch=ti.cpu, offline_cache=False)


def loops_of(kernel, *args):
    kernel(*args)
    return kernel.inspect(loops=True)


def line_of(kernel, text):
    lines = open(__file__).read().splitlines()
    first = kernel.__wrapped__.__code__.co_firstlineno
    return next(k for k in range(first, len(lines) + 1) if text in lines[k - 1])


def test_a_stencil_runs_in_vectors_on_threads():
    x, y = ti.field(ti.f32, N), ti.field(ti.f32, N)

    @ti.kernel
    def blur():
        for i in range(1, N - 1):
            y[i] = (x[i - 1] + x[i] + x[i + 1]) / 3

    found = loops_of(blur)
    (loop,) = found["loops"]
    assert loop.runs == "parallel" and loop.lanes >= 4 and not loop.reasons
    assert loop.line == line_of(blur, "for i in range(1, N - 1):") and loop.path == __file__
    assert any("neighbours in memory" in fact and str(loop.line + 1) in fact for fact in loop.facts)
    assert f"vectors of {loop.lanes}" in repr(found) and str(loop.line) in repr(found)


def test_gathers_name_their_line():
    x, y, at = ti.field(ti.f32, N), ti.field(ti.f32, N), ti.field(ti.i32, N)

    @ti.kernel
    def pick():
        for i in y:
            value = x[at[i]]
            y[i] = ti.sqrt(value) * value + 1

    (loop,) = loops_of(pick)["loops"]
    line = line_of(pick, "x[at[i]]")
    assert loop.lanes > 1
    assert any(f"line {line}" in fact and "one address for each lane" in fact for fact in loop.facts)
    assert any(f"line {line}" in hint for hint in loop.hints)


def test_ways_to_sparse_cells_are_no_gathers():
    x = ti.field(ti.f32)
    ti.root.pointer(ti.i, 64).dense(ti.i, 64).place(x)

    @ti.kernel
    def double():
        for i in x: x[i] *= 2  # fmt: skip

    x[3] = 1
    (loop,) = loops_of(double)["loops"]
    assert loop.lanes > 1 and not loop.hints


def test_threads_of_a_gpu_need_no_vectors():
    from aerogel import _loops

    source = "def k():\n    for i in x:\n        x[i] = 1\n"
    llvm = (
        'target triple = "nvptx64"\ndefine void @k() {\n  store float 1.0, ptr %3, align 4, !dbg !7\n}\n'
        "!7 = !DILocation(line: 1, scope: !3)\n"
    )
    inspection = {"files": [("k.py", 1, source)], "places": [[(0, 3)]], "llvm": llvm, "stages": {}}
    (loop,), _ = _loops.report(inspection)
    assert loop.lanes == 1 and not loop.reasons and not loop.hints and "threads of a GPU" in str(loop)


def test_serial_loops_and_recurrences():
    x = ti.field(ti.f64, N)

    @ti.kernel
    def scan():
        ti.loop_config(serialize=True)
        for i in range(1, N):
            x[i] = 0.5 * x[i] + 0.25 * x[i - 1]

    (loop,) = loops_of(scan)["loops"]
    assert loop.runs == "serial" and loop.lanes == 1
    assert loop.reasons and any(f"line {loop.line}" in hint for hint in loop.hints)


def test_atomics_are_the_reason():
    bins, x = ti.field(ti.i32, 1 << 20), ti.field(ti.i32, N)

    @ti.kernel
    def count():
        for i in x:
            bins[x[i]] += 1

    (loop,) = loops_of(count)["loops"]
    line = line_of(count, "bins[x[i]] += 1")
    assert loop.runs == "parallel"
    assert any(f"line {line}" in text and "atomic" in text for text in [*loop.reasons, *loop.facts])


def test_a_while_loop():
    x = ti.field(ti.i32, N)

    @ti.kernel
    def steps():
        for i in x:
            n, k = i + 1, 0
            while n != 1:
                n = n // 2 if n % 2 == 0 else 3 * n + 1
                k += 1
            x[i] = k

    outer, inner = loops_of(steps)["loops"]
    assert outer.runs == "parallel" and inner.runs == "serial" and inner.is_while
    # Lanes run such a loop until the last one has ended; without lanes the reason is that its end is unknown.
    assert inner.lanes > 1 or "not known" in inner.reasons[0]


def test_sums_and_products():
    a, b, c = (ti.field(ti.f32, (192, 192)) for _ in range(3))
    total = ti.field(ti.f32, ())

    @ti.kernel
    def product():
        for i, j in c:
            s = 0.0
            for k in range(192):
                s += a[i, k] * b[k, j]
            c[i, j] = s

    @ti.kernel
    def add():
        for i, j in a:
            total[None] += a[i, j]

    found = loops_of(product)
    assert any("blocks" in fact for loop in found["loops"] for fact in loop.facts), repr(found)
    assert any("blocks" in text for text in found["changes"])
    found = loops_of(add)
    assert any("each thread adds up" in text for text in found["changes"])
    assert found["loops"][0].lanes > 1


def test_functions_and_static_loops():
    x = ti.field(ti.f32, N)

    @ti.func
    def power(v):
        r = v
        for _ in range(3):
            r = r * v + ti.sin(r)
        return r

    @ti.kernel
    def both():
        for i in x:
            for k in ti.static(range(2)):
                x[i] += k * power(x[i])

    found = loops_of(both)
    texts = {loop.text: loop for loop in found["loops"]}
    assert texts["for k in ti.static(range(2)):"].runs == "unrolled"
    assert texts["for _ in range(3):"].line == line_of(power, "for _ in range(3):")


def test_nothing_else_changes():
    x = ti.field(ti.f32, N)

    @ti.kernel
    def fill():
        for i in x:
            x[i] = i

    @ti.kernel
    def constant() -> ti.i32:
        return 3

    fill()
    assert "DILocation" not in fill.inspect()["llvm"] and "loops" not in fill.inspect()
    assert np.array_equal(x.to_numpy(), np.arange(N))
    assert "no loops" in repr(loops_of(constant))


def test_the_command(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import aerogel as ti\nti.init(arch=ti.cpu)\nx = ti.field(ti.f32, 4096)\n\n\n"
        "@ti.kernel\ndef fill():\n    for i in x:\n        x[i] = 2 * i\n\n\nfill()\n"
    )
    for option in ["--loops"], ["--stage", "loops"]:
        command = [sys.executable, "-m", "aerogel", "inspect", *option, str(program), "fill"]
        out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert "    8  for i in x:" in out and "parallel; vectors of " in out, out
