"""``ti.simt`` on the machine that stands for a GPU, which reports races and barriers that are not reached by all."""

import functools
import operator

import numpy as np
import pytest
from test_gpu import machine  # noqa: F401

import aerogel as ti

pytestmark = pytest.mark.usefixtures("machine")

block, warp, subgroup = ti.simt.block, ti.simt.warp, ti.simt.subgroup
FULL = 0xFFFFFFFF


@pytest.mark.parametrize("n", [256, 200, 64, 1])
def test_forces_of_tiles_that_a_block_shares(n):
    size = 64
    x, f = ti.field(ti.f32, n), ti.field(ti.f32, n)

    @ti.kernel
    def forces():
        ti.loop_config(block_dim=size)
        for i in range(n):
            tile = block.SharedArray((size,), ti.f32)
            lane = i % size
            total = 0.0
            for k in range((n + size - 1) // size):
                at = k * size + lane
                # The last block has fewer threads, and each brings what those that are not there would.
                present = min(size, n - i // size * size)
                for j in range((size - lane + present - 1) // present):
                    if at + j * present < n:
                        tile[lane + j * present] = x[at + j * present]
                block.sync()
                for j in range(min(size, n - k * size)):
                    total += tile[j] - x[i]
                block.sync()
            f[i] = total

    numbers = np.arange(n, dtype=np.float32) % 7
    x.from_numpy(numbers)
    forces()
    assert (f.to_numpy() == numbers.sum() - n * numbers).all()


def test_a_missing_sync_is_a_race():
    x = ti.field(ti.i32, 64)

    @ti.kernel
    def race(first: ti.template(), second: ti.template()):
        ti.loop_config(block_dim=64)
        for i in x:
            tile = block.SharedArray(64, ti.i32)
            tile[i] = i
            if ti.static(first):
                block.sync()
            x[i] = tile[63 - i]
            if ti.static(second):
                block.sync()
            tile[i] = -i

    with pytest.raises(RuntimeError, match=r"(?s)kernel `race`.*uninitialised bytes.*ld.shared"):
        race(False, True)
        ti.sync()
    with pytest.raises(RuntimeError, match=r"(?s)kernel `race`.*nothing orders that.*shared"):
        race(True, False)
        ti.sync()
    race(True, True)
    assert (x.to_numpy() == np.arange(64)[::-1]).all()


def test_a_sync_that_some_do_not_reach():
    x = ti.field(ti.i32, 64)

    @ti.kernel
    def half():
        ti.loop_config(block_dim=64)
        for i in x:
            if i < 32:
                x[i] = block.sync_count_nonzero(i)
            else:
                x[i] = block.sync_any_nonzero(i)

    with pytest.raises(RuntimeError, match=r"(?s)kernel `half`.*others of the block elsewhere"):
        half()
        ti.sync()


ALL_TYPES = [ti.u1, ti.i8, ti.u8, ti.i16, ti.u16, ti.i32, ti.u32, ti.i64, ti.u64, ti.f16, ti.f32, ti.f64]


@pytest.mark.parametrize("dtype", ALL_TYPES)
def test_shared_arrays_of_all_types_and_shapes(dtype):
    x = ti.field(dtype, (4, 16))
    y = ti.field(dtype, (4, 16))

    @ti.kernel
    def transpose():
        ti.loop_config(block_dim=16)
        for i, j in x:
            plain = block.SharedArray((4, 4), dtype)
            deep = block.SharedArray((2, 2, 4), dtype)
            vectors = block.SharedArray(shape=16, dtype=ti.types.vector(2, dtype))
            plain[j // 4, j % 4] = x[i, j]
            deep[j // 8, j // 4 % 2, j % 4] = x[i, j]
            vectors[j] = ti.Vector([x[i, j], x[i, 15 - j]])
            block.sync()
            k = 15 - j
            total = plain[k // 4, k % 4] + deep[k // 8, k // 4 % 2, k % 4]
            y[i, j] = total + vectors[k][0] + vectors[j][1]

    numbers = (np.arange(64).reshape(4, 16) % 2 if dtype is ti.u1 else np.arange(64).reshape(4, 16) % 31).astype(int)
    x.from_numpy(numbers.astype(x.to_numpy().dtype))
    transpose()
    mirrored = numbers[:, ::-1]
    expected = np.where(mirrored > 0, 1, 0) if dtype is ti.u1 else 4 * mirrored
    if dtype is not ti.u1:
        assert (y.to_numpy() == expected).all()


def test_a_histogram_in_shared_memory():
    x, total = ti.field(ti.i32, 1000), ti.field(ti.i32, 8)

    @ti.func
    def count(bins: ti.template(), value):
        bins[value] += 1

    @ti.kernel
    def histogram():
        ti.loop_config(block_dim=128)
        for i in x:
            bins = block.SharedArray(8, ti.i32)
            lane = block.thread_idx()
            if lane < 8:
                bins[lane] = 0
            block.sync()
            count(bins, x[i])
            block.sync()
            if lane < 8:
                ti.atomic_add(total[lane], bins[lane])

    numbers = (np.arange(1000, dtype=np.int32) * 7) % 8
    x.from_numpy(numbers)
    histogram()
    assert (total.to_numpy() == np.bincount(numbers, minlength=8)).all()


@pytest.mark.parametrize("size", [32, 64, 256, 1024])
def test_threads_have_numbers_and_blocks_a_size(size):
    n = 1500
    own, all_of_them, count = (ti.field(ti.i32, n) for _ in range(3))
    conditions = ti.Vector.field(2, ti.i32, n)

    @ti.kernel
    def number(n: ti.i32):
        ti.loop_config(block_dim=size)
        for i in range(n):
            own[i] = block.thread_idx()
            all_of_them[i] = block.global_thread_idx()
            count[i] = block.sync_count_nonzero(i % 3)
            conditions[i] = [block.sync_all_nonzero(i + 1), block.sync_any_nonzero(i == 7)]
            block.mem_sync()
            ti.simt.grid.memfence()

    number(n)
    i = np.arange(n)
    assert (own.to_numpy() == i % size).all() and (all_of_them.to_numpy() == i).all()
    blocks = np.array([np.count_nonzero(b % 3) for b in np.split(i, range(size, n, size))])
    assert (count.to_numpy() == blocks[i // size]).all()
    assert (conditions.to_numpy() == np.stack([i >= 0, i // size == 0], -1)).all()


def test_votes_and_masks_of_a_warp():
    n = 64
    out = ti.Vector.field(8, ti.i64, n)

    @ti.kernel
    def votes():
        ti.loop_config(block_dim=32)
        for i in range(n):
            out[i][0] = warp.all_nonzero(ti.u32(FULL), i >= 32)
            out[i][1] = warp.any_nonzero(ti.u32(FULL), i == 40)
            out[i][2] = warp.unique(ti.u32(FULL), i < 32)
            out[i][3] = warp.unique(ti.u32(FULL), i < 31)
            out[i][4] = warp.ballot(i % 2)
            out[i][5] = warp.match_any(ti.u32(FULL), i // 8)
            out[i][6] = warp.match_all(ti.u32(FULL), i // 32)
            out[i][7] = warp.active_mask()
            warp.sync(ti.u32(FULL))

    votes()
    i = np.arange(n)
    second = i // 32
    groups = 0xFF << (i // 8 % 4 * 8)
    expected = [second, second, 1 + 0 * i, second, 0xAAAAAAAA + 0 * i, groups, FULL + 0 * i, FULL + 0 * i]
    assert (out.to_numpy() == np.stack(expected, -1)).all()


def test_numbers_go_from_lane_to_lane():
    n = 32
    a, b = ti.Vector.field(7, ti.i32, n), ti.Vector.field(4, ti.f64, n)

    @ti.kernel
    def shuffle():
        ti.loop_config(block_dim=32)
        for i in range(n):
            full = ti.u32(FULL)
            a[i][0] = warp.shfl_sync_i32(full, i * 10, 5)
            a[i][1] = warp.shfl_up_i32(full, i * 10, 1)
            a[i][2] = warp.shfl_down_i32(full, i * 10, 2)
            a[i][3] = warp.shfl_xor_i32(full, i * 10, 3)
            a[i][4] = warp.shfl_sync_f32(full, i * 0.5, 4) * 2
            a[i][5] = warp.shfl_up_f32(full, i * 0.5, 1) * 2
            a[i][6] = warp.shfl_down_f32(full, i * 0.5, 1) * 2
            b[i][0] = warp.shuffle(full, ti.f64(i) + 0.25, 7)
            b[i][1] = warp.shuffle_up(full, ti.i64(i) << 40, 3) >> 40
            b[i][2] = warp.shuffle_down(full, ti.u8(i), 4)
            b[i][3] = warp.shuffle_xor(full, ti.f16(i), 16)

    shuffle()
    i = np.arange(n)
    up = lambda k: np.where(i >= k, i - k, i)  # noqa: E731
    down = lambda k: np.where(i + k < n, i + k, i)  # noqa: E731
    assert (
        a.to_numpy() == np.stack([50 + 0 * i, 10 * up(1), 10 * down(2), 10 * (i ^ 3), 4 + 0 * i, up(1), down(1)], -1)
    ).all()
    assert (b.to_numpy() == np.stack([7.25 + 0 * i, up(3), down(4), i ^ 16], -1)).all()


OPERATIONS = {
    "add": operator.add,
    "mul": operator.mul,
    "min": min,
    "max": max,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("n", [32, 45])
def test_lanes_have_together(name, n):
    reduced, inclusive = (ti.field(ti.i32, n) for _ in range(2))
    together, upto = getattr(subgroup, f"reduce_{name}"), getattr(subgroup, f"inclusive_{name}")

    @ti.kernel
    def combine():
        ti.loop_config(block_dim=64)
        for i in range(n):
            value = i * 5 % 7 + 1
            reduced[i] = together(value)
            inclusive[i] = upto(value)

    def wrap(number):
        return (number + 2**31) % 2**32 - 2**31

    combine()
    values = [i * 5 % 7 + 1 for i in range(n)]
    for first in range(0, n, 32):
        mine = values[first : first + 32]
        op = OPERATIONS[name]
        assert reduced[first + len(mine) // 2] == wrap(functools.reduce(op, mine))
        for k in range(len(mine)):
            assert inclusive[first + k] == wrap(functools.reduce(op, mine[: k + 1])), k


def test_what_a_subgroup_does_where_only_some_lanes_are():
    n = 64
    out = ti.Vector.field(9, ti.i32, n)

    @ti.kernel
    def some():
        ti.loop_config(block_dim=64)
        for i in range(n):
            if i % 2 == 1:
                out[i][0] = subgroup.elect()
                out[i][1] = subgroup.all_true(i > 32)
                out[i][2] = subgroup.any_true(i == 33)
                out[i][3] = subgroup.all_equal(i // 32)
                out[i][4] = subgroup.broadcast_first(i)
                out[i][5] = subgroup.shuffle(i, 3)
                out[i][6] = subgroup.shuffle_xor(i, 2)
                out[i][7] = subgroup.exclusive_add(i)
                out[i][8] = subgroup.shuffle_up(i, 2) + subgroup.shuffle_down(i, 1)
                subgroup.barrier()
                subgroup.memory_barrier()

    some()
    found = out.to_numpy()
    assert (found[::2] == 0).all()
    i = np.arange(1, n, 2)
    lane, first = i % 32, i // 32 * 32
    before = np.array([sum(range(f + 1, k, 2)) for f, k in zip(first, i, strict=True)])
    shifted = np.where(lane >= 2, i - 2, i) + i
    expected = [lane == 1, first > 0, first > 0, 1 + 0 * i, first + 1, first + 3, i ^ 2, before, shifted]
    assert (found[1::2] == np.stack(expected, -1)).all()


def test_sizes_that_cannot_be_are_refused_with_their_line():
    x = ti.field(ti.f32, 64)

    def kernel(size, n):
        @ti.kernel
        def k():
            ti.loop_config(block_dim=size)
            for i in x:
                tile = block.SharedArray(n, ti.f32)
                tile[0] = 1.0

        return k

    for size in (0, 3, 2048):
        with pytest.raises(
            ti.TaichiTypeError, match="`block_dim` of `ti.loop_config` is a power of two up to 1024"
        ) as e:
            kernel(size, 4)()
        assert "block_dim=size" in str(e.value) and "^" in str(e.value)
    with pytest.raises(
        ti.TaichiCompilationError,
        match="a block of kernel `k` would share 80000 bytes in this loop, and a GPU has 49152",
    ) as e:
        kernel(64, 20_000)()
    assert "SharedArray(n, ti.f32)" in str(e.value)
    for n in (0, -4, (4, 0), 2.5):
        with pytest.raises(ti.TaichiTypeError, match="positive integers known while compiling"):
            kernel(64, n)()

    @ti.kernel
    def outside():
        block.sync()

    with pytest.raises(ti.TaichiCompilationError, match="is used outside of a loop that has threads"):
        outside()
    # The process goes on.
    kernel(64, 4)()


def test_on_the_cpu_it_is_an_error():
    ti.init(arch=ti.cpu, log_level="error")

    @ti.kernel
    def k():
        for i in range(4):
            ti.simt.block.sync()

    with pytest.raises(NotImplementedError, match=r"`ti.simt.block.sync` is not supported on the CPU") as e:
        k()
    assert "^" in str(e.value)


def told():
    """What lanes tell each other, of floats that have derivatives."""
    return {
        "reduce_add": lambda v: subgroup.reduce_add(v),
        "inclusive_add": lambda v: subgroup.inclusive_add(v),
        "broadcast": lambda v: subgroup.broadcast(v, ti.u32(0)),
        "shuffle_xor": lambda v: warp.shuffle_xor(FULL, v, 1),
        "shfl_down": lambda v: warp.shfl_down_f32(ti.u32(FULL), v, 1),
    }


@pytest.mark.parametrize("name", told())
@pytest.mark.parametrize("forward", [False, True])
def test_what_lanes_tell_each_other_has_no_derivative(name, forward):
    x, loss = (
        ti.field(ti.f32, 64, needs_grad=True, needs_dual=True),
        ti.field(ti.f32, (), needs_grad=True, needs_dual=True),
    )
    function = ti.func(told()[name])

    @ti.kernel
    def total():
        for i in x:
            loss[None] += function(x[i]) ** 2

    tape = ti.ad.FwdMode(loss=loss, param=x, seed=[1.0] * 64) if forward else ti.ad.Tape(loss)
    with (
        pytest.raises(
            ti.TaichiCompilationError, match="values that the threads of a block exchange have no derivative"
        ),
        tape,
    ):
        total()

    @ti.kernel
    def apart():
        for i in x:
            loss[None] += ti.stop_grad(function(x[i])) * x[i]

    x.fill(1)
    with ti.ad.Tape(loss):
        apart()
    assert (x.grad.to_numpy() != 0).all()


@pytest.mark.parametrize("forward", [False, True])
def test_what_a_block_shares_has_no_derivative(forward):
    x, loss = (
        ti.field(ti.f32, 64, needs_grad=True, needs_dual=True),
        ti.field(ti.f32, (), needs_grad=True, needs_dual=True),
    )

    @ti.kernel
    def total():
        ti.loop_config(block_dim=64)
        for i in x:
            tile = block.SharedArray((64,), ti.f32)
            tile[i] = x[i]
            block.sync()
            loss[None] += tile[63 - i]

    tape = ti.ad.FwdMode(loss=loss, param=x, seed=[1.0] * 64) if forward else ti.ad.Tape(loss)
    with (
        pytest.raises(
            ti.TaichiCompilationError, match="memory that the threads of a block share has no derivative"
        ) as raised,
        tape,
    ):
        total()
    assert "SharedArray((64,), ti.f32)" in str(raised.value)


@pytest.mark.parametrize("dtype", [ti.f64, ti.f32, ti.f16, ti.i32, ti.u64, ti.i16, ti.u16, ti.u8])
def test_atomic_operations_on_what_a_block_shares(dtype):
    out = ti.field(dtype, (3, 4))

    @ti.kernel
    def fill():
        ti.loop_config(block_dim=128)
        for i in range(128):
            least, most, product = block.SharedArray(4, dtype), block.SharedArray(4, dtype), block.SharedArray(4, dtype)
            if i < 4:
                least[i], most[i], product[i] = 120, 3, 1
            block.sync()
            ti.atomic_min(least[i % 4], ti.cast(i + 5, dtype))
            ti.atomic_max(most[i % 4], ti.cast(i, dtype))
            if i < 8:
                ti.atomic_mul(product[i % 4], ti.cast(i + 1, dtype))
            block.sync()
            if i < 4:
                out[0, i], out[1, i], out[2, i] = least[i], most[i], product[i]

    fill()
    assert out.to_numpy().tolist() == [[5, 6, 7, 8], [124, 125, 126, 127], [5, 12, 21, 32]]


@pytest.mark.parametrize("dtype", [ti.f16, ti.i8, ti.u8, ti.i16])
def test_numbers_of_a_word_are_changed_apart(dtype):
    shared, out = ti.field(dtype, 5), ti.field(dtype, 5)

    @ti.kernel
    def add():
        ti.loop_config(block_dim=128)
        for i in range(128):
            sums = block.SharedArray(8, dtype)
            if i < 8:
                sums[i] = 0
            block.sync()
            ti.atomic_add(sums[i % 5], 1)
            ti.atomic_sub(shared[i % 5], 1)
            block.sync()
            if i < 5:
                out[i] = sums[i]

    add()
    assert out.to_numpy().tolist() == [26, 26, 26, 25, 25]
    assert (-shared.to_numpy().astype(np.int32)).astype(np.uint8).tolist() == [26, 26, 26, 25, 25]
