"""Atomic changes that no operator writes: exchange, and compare and swap."""

import numpy as np
import pytest

import aerogel as ti

TYPES = [ti.u1, ti.i8, ti.i16, ti.i32, ti.i64, ti.u8, ti.u16, ti.u32, ti.u64, ti.f16, ti.f32, ti.f64]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_a_field_is_exchanged_and_swapped(arch, dtype):
    x = ti.field(dtype, shape=4)

    @ti.kernel
    def change(n: ti.i32) -> ti.types.vector(3, ti.f64):
        first = ti.atomic_exchange(x[0], 1)
        swapped = ti.atomic_cas(x[0], 1, 0)
        kept = ti.atomic_cas(x[0], 1, 1)
        for i in range(1, n):
            x[i] = ti.atomic_exchange(x[i], 1) + 1
        return ti.Vector([ti.cast(first, ti.f64), ti.cast(swapped, ti.f64), ti.cast(kept, ti.f64)])

    assert list(change(4)) == [0, 1, 0]
    assert x[0] == 0
    assert [x[i] for i in range(1, 4)] == [1] * 3


def test_locals_arrays_and_vectors(arch):
    @ti.kernel
    def change(a: ti.types.ndarray(ti.f32, 1), v: ti.types.ndarray(ti.types.vector(2, ti.i32), 1)) -> ti.i32:
        n = 5
        first = ti.atomic_cas(n, 5, 7)
        second = ti.atomic_exchange(n, 9)
        a[0] = ti.atomic_exchange(a[1], 2.5)
        a[2] = ti.atomic_cas(a[1], 2.5, -1.0)
        old = ti.atomic_exchange(v[0], [7, 8])
        ti.atomic_cas(v[1].y, 4, old.x)
        return first * 100 + second * 10 + n

    a = np.array([0, 1.5, 0], np.float32)
    v = np.array([[1, 2], [3, 4]], np.int32)
    assert change(a, v) == 579
    assert a.tolist() == [1.5, -1.0, 2.5]
    assert v.tolist() == [[7, 8], [3, 1]]


def test_a_lock_is_held_by_one_thread(arch):
    lock = ti.field(ti.i32, shape=())
    total = ti.field(ti.i32, shape=())
    n = 2000

    @ti.kernel
    def count():
        for i in range(n):
            done = False
            while not done:
                if ti.atomic_cas(lock[None], 0, 1) == 0:
                    total[None] = total[None] + 1
                    ti.atomic_exchange(lock[None], 0)
                    done = True

    count()
    assert total[None] == n
    assert lock[None] == 0


def test_each_value_is_taken_once(arch):
    n = 1000
    slot = ti.field(ti.i64, shape=())
    seen = ti.field(ti.i32, shape=n + 1)

    @ti.kernel
    def pass_on():
        for i in range(n):
            seen[ti.cast(ti.atomic_exchange(slot[None], i + 1), ti.i32)] += 1

    pass_on()
    seen[int(slot[None])] += 1
    assert (seen.to_numpy() == 1).all()


def test_what_cannot_be_swapped(arch):
    v = ti.Vector.field(2, ti.i32, shape=3)

    @ti.kernel
    def whole():
        ti.atomic_cas(v[0], 0, 1)

    with pytest.raises(ti.TaichiCompilationError, match="a number in one step"):
        whole()

    @ti.kernel
    def value():
        ti.atomic_exchange(3, 1)

    with pytest.raises(ti.TaichiCompilationError, match="modifies a variable or an element in place"):
        value()
