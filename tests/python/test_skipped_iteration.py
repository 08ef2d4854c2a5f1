"""Loops that leave out one iteration, or do something else in it: the same numbers wherever it lies."""

import numpy as np
import pytest

import aerogel as ti

N = 50


@pytest.mark.parametrize("fast_math", [True, False])
@pytest.mark.parametrize(("first", "last"), [(0, N), (3, 40), (10, 10), (12, 5), (0, 1)])
def test_sums(fast_math, first, last):
    ti.init(fast_math=fast_math)
    x, y = ti.field(ti.i32, N), ti.field(ti.i32, N)

    @ti.kernel
    def run(first: ti.i32, last: ti.i32, z: ti.types.ndarray()):
        for i in range(N):
            s, product = 0, 1
            for j in range(first, last):
                if j % 7 == 3:
                    continue
                if i != j:
                    s += x[j] * (x[i] - x[j])
                else:
                    s -= 1000
                if j == i:
                    product = product * 3 + s
                product = (product * 5 + z[j]) % 1009
            y[i] = s + product

    given, z = np.random.default_rng(5).integers(0, 100, (2, N), dtype=np.int32)
    x.from_numpy(given)
    run(first, last, z)
    want = []
    for i in range(N):
        s, product = 0, 1
        for j in range(first, last):
            if j % 7 == 3:
                continue
            if i != j:
                s += int(given[j]) * (int(given[i]) - int(given[j]))
            else:
                s -= 1000
                product = product * 3 + s
            product = (product * 5 + int(z[j])) % 1009
        want.append(s + product)
    assert y.to_numpy().tolist() == want


@pytest.mark.parametrize("number", [-5, 0, 20, N - 1, N, 2**31 - 1, -(2**31)])
def test_numbers_beyond_the_ends(number):
    ti.init()
    x = np.arange(N, dtype=np.float32)

    @ti.kernel
    def run(x: ti.types.ndarray(), number: ti.i32) -> ti.f32:
        s = 0.0
        for _ in range(1):
            for j in range(N):
                if j == number:
                    s = 0.0
                else:
                    s += x[j]
        return s

    assert run(x, number) == (x[number + 1 :].sum() if 0 <= number < N else x.sum())


def test_a_break_keeps_the_loop_whole():
    ti.init()
    x = np.arange(N, dtype=np.int32)

    @ti.kernel
    def run(x: ti.types.ndarray(), number: ti.i32) -> ti.i32:
        s = 0
        for _ in range(1):
            for j in range(N):
                if j != number:
                    s += x[j] * x[j] + x[j]
                if s > 100:
                    break
        return s

    s = 0
    for j in range(N):
        if j != 30:
            s += j * j + j
        if s > 100:
            break
    assert run(x, 30) == s
