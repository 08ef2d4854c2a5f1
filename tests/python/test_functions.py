"""Inlined functions: `return` anywhere, and what annotations say."""

import numpy as np
import pytest

import aerogel as ti


@ti.func
def first_at_least(x: ti.template(), bound):
    for i in range(8):
        if x[i] >= bound:
            return i
    return -1


@ti.func
def find(x: ti.template(), wanted):
    for i, j in ti.ndrange(4, 4):
        for k in range(3):
            if x[i, j] == wanted + k:
                return ti.Vector([i, j, k])
    return ti.Vector([-1, -1, -1])


@ti.func
def classify(x):
    if x < 0:
        if x < -10:
            return 1
        x = -x
    if x > 5:
        return 2
    while True:
        x += 1
        if x > 7:
            return x
    return 0


@ti.func
def static_search(x, values: ti.template()):
    for value in ti.static(values):
        if x == value:
            return True
    return False


@ti.func
def pair_until(n):
    total = 0
    for i in range(n):
        total += i
        if total > 10:
            return total, 0.5 * i
    return total, -1.0


@ti.func
def nothing_until(x: ti.template(), n):
    for i in range(8):
        if i == n:
            return
        x[i] = 1


def test_returns_inside_loops_of_functions(arch):
    x = ti.field(ti.i32, 8)
    y = ti.field(ti.i32, (4, 4))
    out = ti.field(ti.i32, 10)

    @ti.kernel
    def run() -> ti.f32:
        for i in x:
            x[i] = 3 * i
        for i, j in y:
            y[i, j] = 100 * i + 10 * j
        for k in range(10):
            out[k] = first_at_least(x, 4 * k)
        p = find(y, 209)
        total, half = pair_until(20)
        _, missed = pair_until(3)
        return p[0] * 100 + p[1] * 10 + p[2] + 1000 * total + 10000 * half + missed

    assert run() == 211 + 15000 + 25000 - 1
    assert out.to_numpy().tolist() == [0, 2, 3, 4, 6, 7, -1, -1, -1, -1]


def test_partial_returns(arch):
    out = ti.field(ti.i32, 5)

    given = ti.field(ti.i32, 5)

    @ti.kernel
    def play():
        for i in range(5):
            out[i] = classify(given[i])

    given.from_numpy(np.array([-20, -3, 9, -7, 2], dtype=np.int32))
    play()
    assert out.to_numpy().tolist() == [1, 8, 2, 2, 8]


def test_returns_in_unrolled_loops(arch):
    @ti.kernel
    def has(x: ti.i32) -> ti.i32:
        return static_search(x, (3, 5, 8))

    assert [has(k) for k in (3, 4, 5, 8, 9)] == [1, 0, 1, 1, 0]


def test_returns_without_a_value(arch):
    x = ti.field(ti.i32, 8)

    @ti.kernel
    def run(n: ti.i32):
        nothing_until(x, n)

    run(3)
    assert x.to_numpy().tolist() == [1, 1, 1, 0, 0, 0, 0, 0]


def test_kernels_return_from_anywhere(arch):
    x = ti.field(ti.i32, 16)

    @ti.kernel
    def run(n: ti.i32) -> ti.i32:
        if n < 0:
            return -1
        total = 0
        for i in range(16):
            x[i] += n
            total += n
        k = 0
        while True:
            k += 1
            if k * k > n:
                if n == 30:
                    return 1000
                break
        for i in range(16):
            ti.atomic_add(total, x[i])
        if n > 20:
            for j in range(5):
                if j == 3:
                    return j
        return total

    assert run(-2) == -1
    assert x.to_numpy().tolist() == [0] * 16
    assert run(2) == 16 * 4
    assert run(30) == 1000
    assert x.to_numpy().tolist() == [32] * 16
    assert run(40) == 3


def test_a_kernel_returns_from_a_loop_in_order(arch):
    x = ti.field(ti.i32, 16)
    seen = ti.field(ti.i32, ())

    @ti.kernel
    def first(wanted: ti.i32) -> ti.i32:
        ti.loop_config(serialize=True)
        for i in range(16):
            seen[None] += 1
            if x[i] == wanted:
                return i
        for i in range(16):
            x[i] = wanted
        return -1

    x[5] = 7
    assert (first(7), seen[None]) == (5, 6)
    assert x[0] == 0
    assert (first(9), seen[None]) == (-1, 22)
    assert x[0] == 9


def test_what_was_deactivated_is_collected_though_the_kernel_returned(arch):
    x = ti.field(ti.i32)
    block = ti.root.pointer(ti.i, 64)
    block.dense(ti.i, 64).place(x)

    @ti.kernel
    def cycle(early: ti.i32) -> ti.i32:
        for i in range(64 * 64):
            x[i] = i
        for k in block:
            ti.deactivate(block, [k])
        if early:
            ti.deactivate(block, [3])
            return 1
        for i in range(64):
            x[i] = 5
        return 2

    for turn in range(8):
        assert cycle(turn % 2) == 2 - turn % 2
        assert x[100] == 0


def test_a_parallel_loop_cannot_be_left(arch):
    @ti.kernel
    def run(n: ti.i32) -> ti.i32:
        for i in range(n):
            if i == 3:
                return i
        return 0

    with pytest.raises(ti.TaichiSyntaxError, match="`return` inside a parallel loop is not supported"):
        run(3)


def test_every_path_must_return(arch):
    @ti.func
    def sometimes(x):
        for i in range(3):
            if i == x:
                return i

    @ti.kernel
    def inlined() -> ti.i32:
        return sometimes(2)

    @ti.kernel
    def itself(n: ti.i32) -> ti.i32:
        if n > 3:
            return 1

    @ti.real_func
    def called(n: ti.i32) -> ti.i32:
        if n > 3:
            return 1

    @ti.kernel
    def calls(n: ti.i32) -> ti.i32:
        return called(n)

    with pytest.raises(ti.TaichiSyntaxError, match="`sometimes` does not return a value on every path"):
        inlined()
    for kernel in (itself, calls):
        with pytest.raises(ti.TaichiSyntaxError, match="does not return on every path"):
            kernel(2)


def test_annotations_of_inlined_functions(arch):
    S = ti.types.struct(a=ti.i32)

    @ti.func
    def scalar(x: ti.i32, y: float):
        return x + y

    @ti.func
    def result(x) -> ti.i32:
        return x

    @ti.func
    def vector(v: ti.math.ivec2):
        return v

    @ti.func
    def struct(s: S):
        return s.a

    @ti.kernel
    def run() -> ti.f32:
        v = vector(ti.Vector([1.5, 2.5])) + vector([1, 2])
        return scalar(3.7, 2) + result(2.9) * 10 + v.sum() * 100 + struct(S(4)) * 10000

    assert run() == 5 + 20 + 700 + 40000

    @ti.kernel
    def wrong_shape() -> ti.i32:
        return vector(ti.Vector([1, 2, 3])).sum()

    with pytest.raises(ti.TaichiTypeError, match="cannot use `vec<3, i32>` as `vec<2, i32>`"):
        wrong_shape()


def test_only_functions_can_be_decorated():
    for decorate in (ti.kernel, ti.func, ti.real_func):
        for wrong in (3, len):
            with pytest.raises(TypeError, match="is not a function written in Python"):
                decorate(wrong)
