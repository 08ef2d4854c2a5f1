"""Where the newest numbers are while kernels run on the machine that stands for a GPU."""

import sys
import threading
import time

import numpy as np
import pytest
from test_gpu import machine, on_machine  # noqa: F401

import aerogel as ti


@pytest.mark.usefixtures("machine")
def test_what_another_thread_writes_while_a_kernel_runs_is_kept():
    x, y, z = (ti.field(ti.i32, 5000) for _ in range(3))

    @ti.kernel
    def work(n: ti.i32):
        for i in x:
            for _ in range(n):
                x[i] += 1

    work(1)
    numbers = np.arange(5000, dtype=np.int32)
    for k in range(5):
        kernel = threading.Thread(target=work, args=(20,))
        kernel.start()
        y.from_numpy(numbers + k)
        z.fill(k)
        for i in range(50):
            y[i] = -k
        kernel.join()
        assert (x.to_numpy() == 20 * k + 21).all()
        assert (y.to_numpy()[50:] == numbers[50:] + k).all() and (y.to_numpy()[:50] == -k).all()
        assert (z.to_numpy() == k).all()


@pytest.mark.usefixtures("machine")
def test_parts_of_a_tree_are_copied_alone():
    large = ti.Vector.field(3, ti.f32, 100_000)
    image = ti.field(ti.u8, (16, 16, 3))
    vectors = ti.Vector.field(2, ti.f64, 40)

    @ti.kernel
    def step(k: ti.i32):
        for i in large:
            large[i] += k
        for i, j, c in image:
            image[i, j, c] += ti.u8(i + j + c)
        for i in vectors:
            vectors[i] += ti.Vector([i, k])

    for k in range(1, 4):
        step(k)
        expected = k * np.add.outer(np.add.outer(np.arange(16), np.arange(16)), np.arange(3))
        assert (image.to_numpy() == expected).all()
        before = vectors.to_numpy()
        vectors.from_numpy(before + 1)
        assert (vectors.to_numpy() == before + 1).all()
    assert vectors[3].to_numpy().tolist() == [3 * 3 + 3, 6 + 3]
    assert (large.to_numpy() == 6).all()


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize("dtype", [ti.u8, ti.f16, ti.i64])
def test_arrays_are_copied_without_giving_their_memory_away(dtype):
    a, b = (ti.Vector.ndarray(2, dtype, (3, 4)) for _ in range(2))

    @ti.kernel
    def add(a: ti.types.ndarray()):
        for i, j in a:
            a[i, j] += 1

    numbers = np.arange(24).reshape(3, 4, 2)
    a.from_numpy(numbers)
    add(a)
    b.copy_from(a)
    add(b)
    assert (a.to_numpy() == numbers + 1).all() and (b.to_numpy() == numbers + 2).all()
    a.copy_from(a)
    # A view of its own memory, in another order.
    a.from_numpy(np.asarray(a)[::-1])
    assert (a.to_numpy() == numbers[::-1] + 1).all()
    a.from_numpy(np.asarray(a))
    add(a)
    assert (a.to_numpy() == numbers[::-1] + 2).all()


def test_what_was_on_a_device_before_a_fork_is_an_error_in_the_child():
    program = """
import os
import numpy as np
import aerogel as ti
ti.init(arch=ti.cuda, log_level="error")
x, s, a = ti.field(ti.f32, 4), ti.field(ti.f32), ti.ndarray(ti.f32, 4)
node = ti.root.pointer(ti.i, 8)
node.place(s)

@ti.kernel
def fill(a: ti.types.ndarray()):
    for i in x:
        x[i] = 7
        s[i] = 7
        a[i] = 7

fill(a)
ways = [
    lambda: x.to_numpy(), lambda: x[0], lambda: x.__setitem__(0, 1), lambda: a[0], lambda: a.to_numpy(),
    lambda: np.asarray(a), lambda: s[1], lambda: s.to_numpy(),
    lambda: node.deactivate_all(),
]
if os.fork() == 0:
    for way in ways * 2:
        try:
            print(way(), flush=True)
        except RuntimeError as e:
            assert " fork" in str(e) and "by `spawn`" in str(e), e
        except BaseException as e:
            print(repr(e), flush=True)
    os._exit(0)
os.wait()
print(x.to_numpy(), s[1], a[3])
"""
    assert on_machine(program).splitlines() == ["[7. 7. 7. 7.] 7.0 7.0"]


@pytest.mark.usefixtures("machine")
def test_functions_that_call_themselves_too_deeply_say_so():
    @ti.real_func
    def depth(n: ti.i32) -> ti.i32:
        result = 0
        if n > 0:
            result = depth(n - 1) + 1
        return result

    @ti.kernel
    def deep(n: ti.i32) -> ti.i32:
        total = 0
        for i in range(4):
            total += depth(n)
        return total

    assert deep(30) == 120
    with pytest.raises(ti.AerogelRuntimeError, match="`depth` calls itself too deeply"):
        deep(1000)
    assert deep(3) == 12


@pytest.mark.usefixtures("machine")
def test_who_waits_for_a_kernel_of_another_thread_lets_others_run():
    n = 4096
    x, a = ti.field(ti.i32, n), ti.ndarray(ti.i32, n)

    @ti.kernel
    def work(a: ti.types.ndarray(ti.i32, 1), n: ti.i32) -> ti.i32:
        for i in x:
            for _ in range(n):
                x[i] = x[i] * 3 + a[i] % 7
                a[i] = a[i] * 5 + x[i] % 3
        return 1

    work(a, 1)
    turns, is_done = 0, False

    def turn():
        nonlocal turns
        while not is_done:
            turns += 1
            time.sleep(0)

    # Nobody gives way but of his own accord.
    interval = sys.getswitchinterval()
    sys.setswitchinterval(60)
    other = threading.Thread(target=turn)
    other.start()
    uses = [lambda: x[5], lambda: a[5], lambda: x.__setitem__(5, 1), lambda: a.__setitem__(5, 1), lambda: a.fill(3)]
    try:
        for use in uses:
            # The kernel may be over before it is waited for.
            for _ in range(10):
                kernel = threading.Thread(target=work, args=(a, 500))
                kernel.start()
                before = turns
                use()
                grown = turns - before
                kernel.join()
                if grown > 200:
                    break
            else:
                pytest.fail("nobody else runs")
    finally:
        sys.setswitchinterval(interval)
        is_done = True
        other.join()
