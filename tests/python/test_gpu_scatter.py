"""Sums that threads of a GPU scatter into small fields: in memory that those of a block share."""

import json

import numpy as np
import pytest
from test_gpu import run

import aerogel as ti

N = 4096


@pytest.fixture
def machine(monkeypatch):
    monkeypatch.setenv("AEROGEL_CUDA", "machine")
    ti.init(arch=ti.cuda, log_level="error")
    yield
    ti.reset()


@pytest.mark.parametrize("dtype", [ti.i32, ti.u32, ti.i64, ti.u64, ti.f32, ti.f64, ti.i16, ti.f16])
@pytest.mark.parametrize("block_dim", [32, 128, 512])
def test_histograms_of_every_type(machine, dtype, block_dim):
    x, bins = ti.field(ti.i32, N), ti.field(dtype, 48, offset=-8)

    @ti.kernel
    def count(n: int):
        ti.loop_config(block_dim=block_dim)
        for i in range(n):
            bins[x[i]] += 1
            bins[-x[i] % 8] -= 2

    numbers = np.random.default_rng(0).integers(-8, 40, N).astype(np.int32)
    x.from_numpy(numbers)
    bins.fill(100 if block_dim == 32 else 1)
    for n in (0, 1, 77, N):
        before = bins.to_numpy()
        count(n)
        expected = before.astype(np.int64) if dtype not in (ti.f16, ti.f32, ti.f64) else before.astype(np.float64)
        np.add.at(expected, numbers[:n] + 8, 1)
        np.add.at(expected, -numbers[:n] % 8 + 8, -2)
        found = bins.to_numpy()
        assert (found == expected.astype(found.dtype)).all(), n


def test_vectors_of_two_axes(machine):
    momentum, mass = ti.Vector.field(2, ti.f32, (8, 6)), ti.field(ti.f32, (8, 6))
    where = ti.Vector.field(2, ti.i32, N)

    @ti.kernel
    def scatter():
        for p in where:
            at = where[p]
            for i, j in ti.static(ti.ndrange(2, 2)):
                momentum[at + [i, j]] += [1, p % 3]
                mass[at + [i, j]] += 0.5

    rng = np.random.default_rng(1)
    at = np.stack([rng.integers(0, 7, N), rng.integers(0, 5, N)], 1).astype(np.int32)
    where.from_numpy(at)
    scatter()
    expected = np.zeros((8, 6, 2))
    for i in range(2):
        for j in range(2):
            np.add.at(expected, (at[:, 0] + i, at[:, 1] + j), np.stack([np.ones(N), np.arange(N) % 3], 1))
    assert (momentum.to_numpy() == expected).all()
    assert (mass.to_numpy() == 0.5 * expected[..., 0]).all()


def test_what_the_loop_reads_is_not_copied(machine):
    bins = ti.field(ti.i32, 16)

    @ti.kernel
    def count() -> int:
        seen = 0
        for i in range(N):
            bins[i % 8] += 1
            if bins[8 + i % 8] != 0:
                seen += 1
        return seen

    bins[9] = 1
    assert count() == N // 8
    assert bins.to_numpy().tolist() == [N // 8] * 8 + [0, 1] + [0] * 6


def test_beside_a_sum_of_all(machine):
    bins, total = ti.field(ti.f32, 10), ti.field(ti.f32, ())

    @ti.kernel
    def count():
        for i in range(N):
            bins[i % 10] += 1
            total[None] += i % 2

    count()
    assert total[None] == N // 2 and bins.to_numpy().sum() == N


COUNTED = """
import json
import aerogel as ti
ti.init(arch=ti.cuda, log_level="error")
x, few, many = ti.field(ti.i32, 4096), ti.field(ti.i32, 64), ti.field(ti.i32, 2048)

@ti.kernel
def into_few():
    for i in x:
        few[x[i] % 64] += 1

@ti.kernel
def into_many():
    for i in x:
        many[x[i] % 2048] += 1

@ti.kernel
def fill():
    for i in x:
        x[i] = i * 7

fill()
into_few()
into_many()
ti.sync()
assert few[3] == 64 and many[5] == 2
"""


def test_one_atomic_for_each_number_and_block(tmp_path):
    (tmp_path / "ptx").mkdir()
    code, _, err = run(
        COUNTED,
        AEROGEL_CUDA="machine",
        AEROGEL_COUNT=str(tmp_path / "counts"),
        AEROGEL_KEEP_PTX=str(tmp_path / "ptx"),
    )
    assert code == 0, err
    counts = {}
    for line in (tmp_path / "counts").read_text().splitlines():
        row = json.loads(line)
        counts[row["kernel"].split("$")[0]] = row
    few, many = counts["into_few"], counts["into_many"]
    assert few["atomics"] == 64 * few["blocks"] and few["blocks"] > 1
    # A copy would have more to clear than each thread clears.
    assert many["atomics"] == 4096
    texts = [path.read_text() for path in (tmp_path / "ptx").glob("*.ptx")]
    text = next(text for text in texts if "into_few" in text)
    cleared, added, looked = (text.index(part) for part in ("st.shared", "atom.shared.add.u32", "ld.shared"))
    first = text.index("bar.sync")
    assert cleared < first < added < text.index("bar.sync", first + 1) < looked
    assert not any("shared" in text for text in texts if "into_many" in text)
