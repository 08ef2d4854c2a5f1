"""Loops that iterations leave in different turns, and that read memory: the same to the bit as one iteration after the other."""

import numpy as np
import pytest

import aerogel as ti

N = 1000


def same(kernel, *args):
    """Whether a kernel gives the same in parallel as in order; its first arguments are the result and `serial`."""
    got = []
    for serial in (False, True):
        result = ti.field(ti.f32, N)
        kernel(result, serial, *args)
        got.append(result.to_numpy())
    assert np.any(got[1] != got[1][0])
    assert np.array_equal(*got, equal_nan=True)


@pytest.fixture(params=["native", "x86-64-v2", "x86-64-v3"])
def rng(request):
    ti.init(cpu=request.param) if request.param != "native" else ti.init()
    return np.random.default_rng(1)


def test_neighbours_in_cells(rng):
    count, ids = ti.field(ti.i32, (20, 20)), ti.field(ti.i32, (20, 20, 16))
    x = ti.Vector.field(2, ti.f32, N)
    count.from_numpy(rng.integers(0, 17, (20, 20), dtype=np.int32))
    ids.from_numpy(rng.integers(0, N, (20, 20, 16), dtype=np.int32))
    x.from_numpy(rng.random((N, 2), dtype=np.float32))

    @ti.kernel
    def run(result: ti.template(), serial: ti.template()):
        ti.loop_config(serialize=serial)
        for p in x:
            c, s = ti.floor(x[p] * 20, int), 0.0
            for d in ti.static(ti.grouped(ti.ndrange((-1, 2), (-1, 2)))):
                b = c + d
                if 0 <= b[0] < 20 and 0 <= b[1] < 20:
                    for k in range(ti.min(count[b], 16)):
                        q = ids[b, k]
                        r = (x[p] - x[q]).norm()
                        if q != p and r < 0.5:
                            if r < 0.1:
                                s = s * 0.5
                                continue
                            if s > 50.0:
                                break
                            s += ti.sqrt(0.5 - r) / (r + 0.1)
            result[p] = s

    same(run)


def test_lists_that_end(rng):
    """Lanes that have left must not read: the end of a list is at -1, and its numbers are beyond an array."""
    x = ti.Vector.field(2, ti.f32, N)
    x.from_numpy(rng.random((N, 2), dtype=np.float32))
    order = rng.permutation(N).astype(np.int32)
    following = np.full(N, -1, np.int32)
    for k in range(N - 1):
        if k % 7:
            following[order[k]] = order[k + 1]
    head = rng.integers(-1, N, N, dtype=np.int32)
    numbers, weights = np.arange(N, dtype=np.int64), rng.random((N, 3), dtype=np.float32)

    @ti.kernel
    def run(
        result: ti.template(),
        serial: ti.template(),
        head: ti.types.ndarray(),
        following: ti.types.ndarray(),
        numbers: ti.types.ndarray(),
        weights: ti.types.ndarray(),
    ):
        ti.loop_config(serialize=serial)
        for p in range(N):
            q, s, turns = head[p], 0.0, 0
            while q != -1 and numbers[q] < 2 * N:
                v = ti.sin(x[q][0]) * weights[q, turns % 3]
                if v > 0.3:
                    s += v * ti.exp(-s)
                else:
                    s -= ti.sqrt(1.0 + v * v) * weights[p, 0]
                q = following[q]
                turns += 1
                if turns > 4:
                    break
            result[p] = s

    same(run, head, following, numbers, weights)


def test_rays_among_balls(rng):
    balls = ti.Vector.field(4, ti.f32, 12)
    balls.from_numpy((rng.random((12, 4), dtype=np.float32) * [4, 4, 4, 0.5] - [2, 2, 2, -0.2]).astype(np.float32))

    @ti.kernel
    def run(result: ti.template(), serial: ti.template()):
        ti.loop_config(serialize=serial)
        for i in range(N):
            o = ti.Vector([0.0, 0.0, -5.0])
            d = ti.Vector([i % 32 / 32.0 - 0.5, i // 32 / 32.0 - 0.5, 1.0]).normalized()
            light = 1.0
            for depth in range(5):
                near, at = 1e9, -1
                for k in range(12):
                    m = o - balls[k].xyz
                    b = m.dot(d)
                    inside = b * b - m.dot(m) + balls[k].w ** 2
                    if inside > 0:
                        t = -b - ti.sqrt(inside)
                        if 1e-3 < t < near:
                            near, at = t, k
                if at < 0:
                    break
                o += near * d
                normal = (o - balls[at].xyz) / balls[at].w
                d -= 2 * d.dot(normal) * normal
                light *= 0.7 + 0.01 * at
            result[i] = light

    same(run)


def test_numbers_of_all_types(rng):
    """Wide and narrow numbers, two axes of a large stride, and a table that only some iterations look at."""
    wide, narrow = ti.field(ti.f64, (40, 50)), ti.field(ti.u8, N)
    table, empty = ti.field(ti.i64, 64), np.zeros(0, np.float32)
    wide.from_numpy(rng.random((40, 50)))
    narrow.from_numpy(rng.integers(0, 256, N, dtype=np.uint8))
    table.from_numpy(rng.integers(-5, 5, 64))

    @ti.kernel
    def run(result: ti.template(), serial: ti.template(), empty: ti.types.ndarray()):
        ti.loop_config(serialize=serial)
        for i in range(N):
            s, k = ti.f64(0.0), 0
            while k < narrow[i] % 40:
                w = wide[k, (i * 7 + k) % 50]
                if i % 3 == 0:
                    if empty.shape[0] > i:
                        s += empty[i]
                    s += ti.sqrt(w) * ti.cast(table[(i + k) % 64], ti.f64) + ti.sin(w) * ti.exp(w)
                else:
                    s -= ti.sqrt(w + s * s) / (1.0 + w)
                k += 1 + narrow[(i + k) % N] % 2
            result[i] = ti.cast(s, ti.f32)

    same(run, empty)


def test_branches_around_loops(rng):
    x = ti.field(ti.f32, N)
    x.from_numpy(rng.random(N, dtype=np.float32))

    @ti.kernel
    def run(result: ti.template(), serial: ti.template(), last: ti.i32):
        ti.loop_config(serialize=serial)
        for i in range(N):
            s = 0.0
            if x[i] > 0.5:
                for k in range(i % 13):
                    at = i - k * last
                    if 0 <= at:
                        s += ti.sqrt(x[at]) / (x[at] + ti.sin(s))
            else:
                j = i
                while j < N and x[j] < 0.9:
                    s += ti.exp(-x[j] * j) * ti.sqrt(x[j])
                    j += 3
            result[i] = s

    same(run, 77)
