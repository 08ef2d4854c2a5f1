"""Indices that are the integers of NaNs, infinities and large numbers: the program goes on, and all others are exact."""

import subprocess
import sys

import numpy as np
import pytest

import aerogel as ti

WILD = [float("nan"), float("inf"), -float("inf"), 1e30, -1e30, 3e9, -3e9, 1e6, -1e6, -1.0, 8.0]


def test_fields_and_arrays_are_read_inside(arch):
    if arch == "interp":
        pytest.skip("the interpreter refuses indices outside")
    x = ti.field(ti.f32, (8, 8), offset=(-4, 2))
    s = ti.field(ti.f32, 8)
    pos = ti.field(ti.f32, len(WILD))
    out = ti.field(ti.f32, len(WILD))

    @ti.kernel
    def f(a: ti.types.ndarray(ndim=2)):
        for i in pos:
            k = ti.floor(pos[i]).cast(ti.i32)
            b = ti.Vector([int(pos[i]), k])
            for o in ti.static(ti.grouped(ti.ndrange(3, 3))):
                out[i] += x[b + o] + a[b + o - 1] + s[ti.cast(pos[i], ti.i64)]
            for j in range(2):
                out[i] += s[k + j]
            n = k
            while n < 3:
                out[i] += s[n]
                n += 1 << 30

    x.fill(1)
    s.fill(1)
    pos.from_numpy(np.array(WILD, np.float32))
    f(np.ones((5, 7), np.float32))
    values = out.to_numpy()
    # What was read is what is there, wherever it lies.
    assert ((values >= 29) & (values <= 33)).all(), values


def test_stores_and_atomics_stay_inside(arch):
    if arch == "interp":
        pytest.skip("the interpreter refuses indices outside")
    all_ = ti.field(ti.i32)
    before, behind = ti.field(ti.i32, 64), ti.field(ti.i32, 64)
    x = ti.field(ti.i32)
    ti.root.dense(ti.i, 8).place(x, all_)
    v = ti.Vector.field(3, ti.i32, (4, 4))
    pos = ti.field(ti.f32, len(WILD))

    @ti.kernel
    def f(a: ti.types.ndarray(ndim=1)):
        for i in pos:
            k = int(pos[i])
            x[k] += 1
            a[k] += 1
            v[k, k] += 1
            ti.atomic_max(all_[k], 5)

    pos.from_numpy(np.array(WILD, np.float32))
    a = np.zeros(16, np.int32)
    f(a)
    n = len(WILD)
    assert x.to_numpy().sum() == n
    assert a.sum() == n
    assert v.to_numpy().sum() == 3 * n
    assert all_.to_numpy().max() == 5
    assert not before.to_numpy().any() and not behind.to_numpy().any()


def test_indices_inside_are_what_they_are(arch):
    n = 64
    x = ti.field(ti.i32, n)
    pos = ti.field(ti.f32, n)
    out = ti.field(ti.i32, n)

    @ti.kernel
    def f():
        for i in x:
            x[i] = i * i
            pos[i] = i + 0.75
        for i in out:
            k = int(pos[i])
            # Next to the last there is none, and it does not count.
            if k + 1 < n:
                out[i] += x[k + 1]
            out[i] += x[k]

    f()
    i = np.arange(n)
    assert out.to_numpy().tolist() == (i * i + np.where(i + 1 < n, (i + 1) ** 2, 0)).tolist()


def test_sparse_fields_look_by_themselves(arch):
    x = ti.field(ti.f32)
    ti.root.pointer(ti.ij, 4).dense(ti.ij, 4).place(x)
    pos = ti.field(ti.f32, len(WILD))
    out = ti.field(ti.f32, len(WILD))

    @ti.kernel
    def f():
        for i in out:
            out[i] = x[int(pos[i]), 1] + 1

    pos.from_numpy(np.array(WILD, np.float32))
    f()
    assert (out.to_numpy() == 1).all()


# What would end the process is run in another one, which must come to its end.
PROGRAM = """
import numpy as np

import aerogel as ti

ti.init(arch=ti.cpu)
x = ti.field(ti.i32, 8)
y = ti.field(ti.i32, ())
v = ti.Vector.field(3, ti.i32, 4)
s = ti.field(ti.f32, ())


@ti.real_func
def read(i: ti.i32, n: ti.i32) -> ti.i32:
    if n > 5:
        return 0
    return x[i + n]


@ti.real_func
def through(i: ti.i32, n: ti.i32) -> ti.i32:
    if n > 6:
        return 0
    return read(i, n) + 1


@ti.real_func
def rounded(p: ti.f32) -> ti.i32:
    if p == 0.25:
        return 0
    return int(p)


@ti.kernel
def f(p: ti.f32):
    {body}


for p in [float("nan"), 1e9, -1e9, 1e30]:
    s[None] = p
    x.fill(0)
    f(p)
    ti.sync()
    assert 0 <= x.to_numpy().sum() <= 9, x
print("ended")
"""

BODIES = {
    "a parallel loop": """
    for i in range(int(p), int(p) + 3):
        x[i] += 1
    """,
    "a parallel loop of a field": """
    for i in range(int(s[None]), int(s[None]) + 3):
        x[i] += 1
    """,
    "a grid": """
    for i, j in ti.ndrange((int(p), int(p) + 3), 2):
        x[i] += 1
    """,
    "a serial loop": """
    ti.loop_config(serialize=True)
    for i in range(int(p), int(p) + 3):
        x[i] += 1
    """,
    "an inner loop": """
    for k in range(2):
        for i in range(int(p), int(p) + 3):
            x[i] += 1
    """,
    "an inner grid": """
    for k in range(1):
        for i, j in ti.ndrange((int(p), int(p) + 3), 2):
            x[i] += 1
    """,
    "a while loop": """
    i = int(p)
    end = i + 3
    while i < end:
        x[i] = 1
        i += 1
    """,
    "a while loop up to a constant": """
    for k in range(1):
        i = int(p)
        while i < -999999900:
            x[i] = 1
            i += 10
        while i < 1000000100 and i > 999999999:
            x[i] = 1
            i += 10
    """,
    "an inner while loop": """
    for k in range(1):
        i = int(p)
        n = 0
        while n < 3:
            x[i] = 1
            i += 1
            n += 1
    """,
    "continue and break": """
    for k in range(1):
        i = 0
        n = 0
        while n < 7:
            n += 1
            if n == 2:
                i = int(p)
                continue
            x[i] = 1
            if n == 5:
                i = int(p) + 1
                break
        x[i] = 2
    """,
    "a vector": """
    for k in range(1):
        a = ti.Vector([1, 2, 3])
        a[int(p)] = 5
        y[None] = a[int(p)] + a[0] + a[1] + a[2]
    """,
    "a matrix": """
    m = ti.Matrix([[1, 2, 3], [4, 5, 6]])
    m[int(p), int(p)] += 5
    y[None] = m[int(p), 1]
    """,
    "a vector of a field": """
    v[1][int(p)] += 5
    y[None] = v[1][int(p)]
    """,
    "a parameter": """
    y[None] = through(int(p), 2)
    """,
    "a result": """
    for k in range(1):
        y[None] = x[rounded(p)]
    """,
}


def run_apart(path, program):
    file = path / "program.py"
    file.write_text(program)
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{done.returncode}: {done.stderr[-2000:]}"
    assert done.stdout.endswith("ended\n"), done.stdout


@pytest.mark.parametrize("name", BODIES)
def test_no_index_ends_the_process(name, tmp_path):
    run_apart(tmp_path, PROGRAM.replace("{body}", BODIES[name].strip()))


EMPTY = """
import numpy as np

import aerogel as ti

ti.init(arch=ti.cpu)


@ti.kernel
def read(a: ti.types.ndarray(dtype=ti.i32, ndim=1), p: ti.f32) -> ti.i32:
    return a[int(p)]


@ti.kernel
def guarded(a: ti.types.ndarray(dtype=ti.i32, ndim=1), p: ti.f32) -> ti.i32:
    total = 0
    for k in range(a.shape[0]):
        total += a[int(p)]
    if a.shape[0] > 0:
        total += a[int(p)]
    return total


none = np.zeros(0, np.int32)
for p in [float("nan"), 0.0, 1e9]:
    read(none, p)
    assert guarded(none, p) == 0
assert read(np.arange(5, dtype=np.int32), 3.5) == 3
print("ended")
"""


def test_arrays_without_elements(tmp_path):
    run_apart(tmp_path, EMPTY)


def test_loops_between_floats_are_exact(arch):
    n = 32
    x = ti.field(ti.i32, (n, n))

    @ti.kernel
    def fill(a: ti.f32, b: ti.f32):
        for k in range(1):
            for i in range(ti.max(int(a), 0), ti.min(int(b) + 1, n)):
                for j in range(int(a), int(b)):
                    x[i, j] += 1

    fill(3.5, 20.5)
    wanted = np.zeros((n, n), np.int32)
    wanted[3:21, 3:20] = 1
    assert (x.to_numpy() == wanted).all()
