"""Indices that are the integers of NaNs, infinities and large numbers: the program goes on, and all others are exact."""

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
