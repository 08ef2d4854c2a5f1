"""How the threads of a GPU read, write and change memory: which instructions do it, and how many."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_gpu import run

import aerogel as ti

KERNELS = """
import numpy as np
import aerogel as ti
ti.init(arch=ti.cuda, log_level="error", offline_cache=False)
n = 1024
four, four_out, pair, three = (ti.Vector.field(k, ti.f32, n) for k in (4, 4, 2, 3))
x, y, plain = ti.field(ti.f32), ti.field(ti.f32), ti.field(ti.f32, n)
blocks = ti.root.pointer(ti.i, 16)
blocks.dense(ti.i, 64).place(x, y)

@ti.kernel
def fill():
    for i in four:
        four[i], pair[i], three[i] = [i, 1, 2, 3], [4, 5], [6, 7, 8]
        plain[i] = i
    for i in range(n // 4):
        x[i] = i

@ti.kernel
def reads_only():
    for i in four:
        four_out[i] = four[i] + pair[i][0] + pair[i][1]

@ti.kernel
def changes():
    for i in four:
        four[i] = 2 * four[i]

@ti.kernel
def reads_thirds():
    for i in three:
        plain[i] += three[i].sum()

@ti.kernel
def reads_cells():
    for i in x:
        plain[i] = x[i]

@ti.kernel
def grows():
    for i in range(n):
        y[i] = x[i] + 1

@ti.kernel
def takes_away():
    for i in range(n // 64):
        plain[i] = x[i]
        ti.deactivate(blocks, i)

@ti.real_func
def put(i: ti.i32, k: ti.i32):
    plain[i] = k
    if k > 0:
        put(i, k - 1)

@ti.kernel
def calls():
    for i in range(n):
        put(i, 2)
        four[i][0] = three[i][0]

@ti.kernel
def arrays(a: ti.types.ndarray(ti.f32, 1), b: ti.types.ndarray(ti.f32, 1)):
    for i in range(n):
        b[i] += a[i]

limit = ti.field(ti.i32, ())
limit[None] = n

@ti.kernel
def bounded():
    for i in range(limit[None]):
        plain[i] = i

fill()
reads_only()
assert (four_out.to_numpy() == four.to_numpy() + 9).all()
changes()
assert four[7][0] == 14
reads_thirds()
reads_cells()
grows()
assert y[n - 1] == 1 and y[5] == 6
a, b = ti.ndarray(ti.f32, n), ti.ndarray(ti.f32, n)
arrays(a, b)
takes_away()
assert blocks.stats()[0]["cells"] == 0
calls()
bounded()
ti.sync()
"""


@pytest.fixture(scope="module")
def loads(tmp_path_factory):
    """Of each task how numbers of 32 bits are read and written."""
    folder = tmp_path_factory.mktemp("ptx")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        code, _, err = run(KERNELS, AEROGEL_CUDA="machine", AEROGEL_KEEP_PTX=str(folder))
    assert code == 0, err
    found = {}
    for path in folder.glob("*.ptx"):
        for entry in re.split(r"(?=\.entry)", path.read_text())[1:]:
            name = entry.split("(")[0].split()[1]
            words = re.findall(r"\b((?:ld|st)\.global\S*\.[bs]32)", entry.split("\n}")[0])
            found[name] = words
    return found


def test_what_a_task_only_reads_goes_by_the_cache_for_constants(loads):
    assert loads["arrays$0"] == ["ld.global.nc.b32", "ld.global.b32", "st.global.b32"]
    assert loads["reads_thirds$0"] == ["ld.global.nc.b32"] * 3 + ["ld.global.b32", "st.global.b32"]
    # The list has been made by the task before; which cells are active, and what they hold, stays.
    assert loads["reads_cells$5"] == ["ld.global.nc.b32"] * 2 + ["st.global.b32"]
    # Bounds are found by a kernel that changes nothing else.
    assert loads["bounded$bounds1"] == ["ld.global.nc.s32"]
    # Cells that become active are zero before and after; which are active changes.
    assert sorted(word for word in loads["grows$0"] if "ld" in word) == ["ld.global.b32", "ld.global.nc.b32"]


def test_what_a_task_changes_does_not(loads):
    for name in ("changes$0", "takes_away$0", "calls$0"):
        assert any("ld" in word for word in loads[name]), name
        assert not any(".nc" in word for word in loads[name]), name


def test_neighbours_are_one_access(loads):
    assert loads["reads_only$0"] == ["ld.global.nc.v4.b32", "ld.global.nc.v2.b32", "st.global.v4.b32"]
    assert loads["changes$0"] == ["ld.global.v4.b32", "st.global.v4.b32"]
    # Triples begin anywhere.
    assert not any(".v" in word for word in loads["reads_thirds$0"])


@pytest.mark.parametrize("dtype", [ti.i8, ti.f16, ti.f32, ti.f64])
@pytest.mark.parametrize("n", [2, 3, 4, 8])
def test_vectors_wherever_they_lie(arch, dtype, n):
    lead = ti.field(ti.i8)
    fields = [ti.Vector.field(n, dtype) for _ in range(5)]
    ti.root.place(lead)
    ti.root.dense(ti.i, 5).place(fields[0])
    ti.root.dense(ti.i, 37).place(fields[1], ti.field(dtype))
    ti.root.pointer(ti.i, 5).dense(ti.i, 3).place(fields[2])
    ti.root.bitmasked(ti.i, 7).place(fields[3])
    ti.root.hash(ti.i, 64).place(fields[4])

    @ti.kernel
    def step(x: ti.template(), k: int):
        for i in range(5):
            x[i] = x[4 - i] * 0 + [i + k + a for a in ti.static(range(n))]

    @ti.kernel
    def move(x: ti.template(), y: ti.template()):
        for i in range(5):
            y[i] = x[i]

    expected = np.arange(5)[:, None] + np.arange(n)
    for k, x in enumerate(fields):
        step(x, k)
        assert all((x[i].to_numpy() == expected[i] + k).all() for i in range(5))
        move(x, fields[k - 1])
        assert all((fields[k - 1][i].to_numpy() == expected[i] + k).all() for i in range(5))


ACTIVATING = """
import aerogel as ti
ti.init(arch=ti.cuda, log_level="error", offline_cache=False)
b, d, n = ti.field(ti.i32), ti.field(ti.i32), 4096
masked = ti.root.bitmasked(ti.i, n)
masked.place(b)
lists = ti.root.dense(ti.i, 4).dynamic(ti.j, n, 32)
lists.place(d)
e, whole = ti.field(ti.i32), ti.field(ti.i32)
chunks = ti.root.dense(ti.i, 4).dynamic(ti.j, n, 32)
chunks.place(e)
ti.root.dense(ti.i, 4).dynamic(ti.j, n, n).place(whole)
places = ti.field(ti.i32, n)

@ti.kernel
def bits():
    for i in range(n):
        b[i] = i

@ti.kernel
def appended():
    for i in range(n):
        places[i] = d[i % 4].append(i)

@ti.kernel
def placed():
    for i in range(n):
        e[i % 4, i // 4] = i

@ti.kernel
def in_one_piece():
    for i in range(n):
        whole[i % 4, i // 4] = i

bits()
appended()
placed()
in_one_piece()
assert all(e[i % 4, i // 4] == i == whole[i % 4, i // 4] for i in range(n)) and chunks.stats()[0]["cells"] == n
assert b.to_numpy().sum() == n * (n - 1) // 2 and masked.stats()[0]["cells"] == n
assert all(d[i % 4, places[i]] == i for i in range(n)) and lists.stats()[0]["cells"] == n
"""


def test_a_warp_sets_bits_of_a_word_and_lengthens_a_list_once(tmp_path):
    log = tmp_path / "counts"
    code, _, err = run(ACTIVATING, AEROGEL_CUDA="machine", AEROGEL_COUNT=str(log))
    assert code == 0, err
    counts = [json.loads(line) for line in log.read_text().splitlines()]
    names = ("bits", "appended", "placed", "in_one_piece")
    atomics = {name: sum(c["atomics"] for c in counts if c["kernel"].startswith(name)) for name in names}
    # One for each of 128 words, where each lane had one; and a mark.
    assert 128 <= atomics["bits"] <= 128 + 4
    # One for each warp and list; and elements for chunks, for which four blocks may come at once.
    assert 4 * 128 <= atomics["appended"] <= 4 * 128 + 4 * 7 * 4 * 4
    # At most one for each warp and list, where each lane had one; and elements for chunks, which are looked at one by one.
    assert atomics["placed"] <= 2 * 4 * 128
    assert atomics["in_one_piece"] <= 4 * 128


def test_lanes_that_lengthen_lists_beside_others_that_append(arch):
    x, bad = ti.field(ti.i32), ti.field(ti.i32, ())
    lists = ti.root.dense(ti.i, 5).dynamic(ti.j, 2048, 8)
    lists.place(x)

    @ti.kernel
    def fill():
        for i in range(3000):
            if i % 3 == 0:
                x[i % 5].append(7)
            elif i % 7 != 1:
                x[i % 5, i * 13 % 900] = 7
            if i * i % 11 == 3:
                x[i // 5 % 5, i * 7 % 1500] = 7

    @ti.kernel
    def look():
        for i in range(3000):
            if i % 3 != 0 and i % 7 != 1:
                bad[None] += x[i % 5, i * 13 % 900] != 7
            if i * i % 11 == 3:
                bad[None] += x[i // 5 % 5, i * 7 % 1500] != 7

    fill()
    look()
    assert bad[None] == 0


def test_three_of_four_numbers_are_read_where_the_fourth_changes(arch):
    pair = ti.types.struct(p=ti.math.vec3, k=ti.f32)
    x = pair.field(shape=100)

    @ti.kernel
    def step():
        for i in x:
            x[i].k = x[i].p.sum() + i

    x.p.fill(2)
    step()
    assert (x.k.to_numpy() == 6 + np.arange(100)).all()


LARGE_BLOCKS = """
import aerogel as ti
ti.init(arch=ti.cuda, log_level="error", offline_cache=False)
x = ti.Matrix.field(4, 4, ti.f64, 2048)
y, z = ti.field(ti.f32), ti.field(ti.f32)
ti.root.pointer(ti.ij, 2).dense(ti.ij, 32).place(y, z)

@ti.kernel
def inverses():
    ti.loop_config(block_dim=1024)
    for i in x:
        a = x[i] + ti.Matrix.identity(ti.f64, 4)
        b = a.inverse()
        c = a @ b + b @ a
        x[i] = (c.inverse() @ a + b).inverse() @ c

@ti.kernel
def around():
    for i, j in y:
        z[i, j] = y[i - 1, j] + y[i + 1, j] + y[i, j - 1] + y[i, j + 1]

inverses()
y[5, 5] = 1
around()
ti.sync()
"""


def test_threads_of_large_blocks_have_no_more_registers_than_there_are(tmp_path):
    code, _, err = run(LARGE_BLOCKS, AEROGEL_CUDA="machine", AEROGEL_KEEP_PTX=str(tmp_path))
    assert code == 0, err
    texts = [path.read_text() for path in tmp_path.glob("*.ptx")]
    for kernel in ("inverses", "around"):
        limits = re.findall(r"\.maxntid (\d+)", "".join(text for text in texts if f".entry {kernel}$" in text))
        assert limits == ["1024"], kernel
    assembler = next(Path(sys.prefix).glob("lib/python3*/site-packages/nvidia/cuda_nvcc/bin/ptxas"), None)
    if assembler is None:
        return
    for path in tmp_path.glob("*.ptx"):
        if ".maxntid" in path.read_text():
            command = [assembler, "-v", "-arch=sm_80", "-o", os.devnull, path]
            said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
            assert all(int(n) <= 64 for n in re.findall(r"Used (\d+) registers", said))


def test_lanes_that_append_to_several_lists(arch):
    x, n = ti.field(ti.i32), 3000
    lists = ti.root.dense(ti.i, 7).dynamic(ti.j, 1000, 8)
    lists.place(x)
    places = ti.field(ti.i32, n)

    @ti.kernel
    def fill():
        for i in range(n):
            if i % 5 != 2:
                places[i] = ti.append(lists, i * i % 7, i)

    @ti.kernel
    def look() -> ti.i32:
        bad = 0
        for i in range(n):
            if i % 5 != 2:
                bad += x[i * i % 7, places[i]] != i
        return bad

    fill()
    assert look() == 0
    took = np.array([i * i % 7 for i in range(n) if i % 5 != 2])
    where = places.to_numpy()[[i % 5 != 2 for i in range(n)]]
    for k in range(7):
        of_list = np.sort(where[took == k])
        assert (of_list == np.arange(len(of_list))).all()


def test_lanes_see_the_bits_that_others_set_for_them(arch):
    x, seen = ti.field(ti.i32), ti.field(ti.i32, 256)
    node = ti.root.bitmasked(ti.i, 256)
    node.place(x)

    @ti.kernel
    def touch():
        for i in range(256):
            if i % 3 != 0:
                ti.activate(node, i)
                seen[i] = ti.is_active(node, i)

    touch()
    assert (seen.to_numpy() == (np.arange(256) % 3 != 0)).all()
    assert node.stats()[0]["cells"] == 170


FILLED = """
import numpy as np
import aerogel as ti

ti.init(arch=ti.cuda, log_level="error")
n = 100_000
x, v, h = ti.field(ti.f64, n), ti.Vector.ndarray(3, ti.f32, n), ti.field(ti.f16, n)

@ti.kernel
def twice(v: ti.types.ndarray(ti.types.vector(3, ti.f32), 1)):
    for i in x:
        x[i] = 2 * x[i]
        v[i] = 2 * v[i]
        h[i] = 2 * h[i]

twice(v)
for k in range(3):
    x.fill(1.5 + k)
    v.fill(ti.Vector([1, 2, 3 + k]))
    h.fill(0.5 + k)
    twice(v)
assert (x.to_numpy() == 7).all() and (h.to_numpy() == 5).all()
assert (v.to_numpy() == np.array([2, 4, 10], np.float32)).all()
x.fill(0)
assert (x.to_numpy() == 0).all()
x.fill(4)
x[7] = 5
assert x[6] == 4 and x[7] == 5 and x.to_numpy().sum() == 4 * n + 1
"""


def test_what_is_filled_stays_on_the_card(tmp_path, monkeypatch):
    code, _, err = run(FILLED, AEROGEL_CUDA="machine")
    assert code == 0, err
