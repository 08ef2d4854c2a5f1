"""Tensors and their programs where Python says what something means: blocks that do not end, settings, truth values."""

import numpy as np
import pytest

import aerogel as ti
from aerogel.tensor import programs as p


def test_blocks_that_do_not_end(arch):
    held = []

    @p.program
    def branch():
        x, y = p.input([-1], ti.i32), p.const(0)
        p.if_cond(x.sum() > 100).__enter__()
        y.val += x.sum()
        return y

    @p.program
    def loop():
        x, y = p.input([-1], ti.i32), p.const(0)

        def iterations():
            with p.loop(4) as k:
                yield k

        held.append(iterations())
        next(held[-1])
        y.val += x.sum()
        return y

    for program, word in ((branch, "if_cond"), (loop, "loop")):
        with pytest.raises(
            RuntimeError, match=f"`{word}` .*test_tensor_python_meaning.py:\\d+.* is never closed in its function"
        ):
            program([1, 2])


def test_blocks_that_end_in_another_order(arch):
    @p.program
    def f():
        x, y = p.input([-1], ti.i32), p.const(0)
        outer, inner = p.loop(2), p.if_cond(x.sum() > 1)
        outer.__enter__()
        inner.__enter__()
        y.val += 1
        outer.__exit__(None, None, None)
        inner.__exit__(None, None, None)
        return y

    with pytest.raises(RuntimeError, match="ends before"):
        f([1, 2])


def test_blocks_that_a_mapped_function_does_not_end(arch):
    @p.program
    def f():
        x = p.input([-1], ti.i32)

        def one(v):
            p.if_cond(v > 1).__enter__()
            return v + 1

        return ti.tensor.vmap(one)(x)

    with pytest.raises(RuntimeError, match="is never closed in its function"):
        f([1, 2])


def test_blocks_that_end_by_hand(arch):
    import contextlib

    @p.program
    def f():
        x, y = p.input([-1], ti.i32), p.const(0)
        with contextlib.ExitStack() as stack:
            stack.enter_context(p.loop(3))
            stack.enter_context(p.if_cond(x.sum() > 1))
            y.val += x.sum()
        return y

    assert f([1, 2]).item() == 9


def test_programs_follow_new_settings():
    @p.program
    def divided():
        return 1 // p.input([-1], ti.i32)

    @p.program
    def types():
        return p.input([-1], ti.i32) / 3, ti.tensor.zeros(2)

    ti.init(arch=ti.cpu)
    divided([1])
    assert [t.dtype for t in types([1])] == [ti.f32, ti.f32]
    ti.init(arch=ti.cpu, debug=True, default_fp=ti.f64)
    assert [t.dtype for t in types([1])] == [ti.f64, ti.f64]
    with pytest.raises(ZeroDivisionError):
        divided([0, 2]).tolist()
    ti.init(arch=ti.cpu)
    assert [t.dtype for t in types([1])] == [ti.f32, ti.f32]
    divided([0, 2]).tolist()


KEYS = [
    (True,),
    (False,),
    (True, 0),
    (False, 0),
    (0, True),
    (True, slice(0, 1)),
    (slice(0, 1), True),
    (slice(None), True, 0),
    (0, slice(None), True),
    (True, [0, 1]),
    ([0, 1], True),
    (slice(None), True, [0, 1]),
    (True, None),
    (None, True),
    (True, True),
    (True, False),
    (Ellipsis, True),
    (Ellipsis, False),
    (True, Ellipsis, 0),
    (slice(None), False),
]


@pytest.mark.parametrize("key", [True, False, np.True_, np.False_, *KEYS])
def test_truth_values_as_keys(arch, key):
    numbers = np.arange(6, dtype=np.int32).reshape(2, 3)
    part = numbers[key]
    x = ti.tensor.asarray(numbers)
    assert np.array_equal(x[key].numpy(), part)
    assert x[key].shape == part.shape
    for value in (-1, np.arange(part.size, dtype=np.int32).reshape(part.shape), part[:1] * 0 - 2):
        right, x = numbers.copy(), ti.tensor.asarray(numbers)
        right[key] = value
        x[key] = value
        assert np.array_equal(x.numpy(), right)


def test_values_that_do_not_fit_what_nothing_is_stored_of(arch):
    x = ti.tensor.zeros((2, 3))
    with pytest.raises(ValueError, match="shape"):
        x[False] = [1.0, 2.0]
    with pytest.raises(ValueError, match="shape"):
        x[True] = np.zeros((5, 3), np.float32)


def test_truth_values_as_keys_in_programs(arch):
    @p.program
    def f():
        x = p.input([-1, 3], ti.i32) + 0
        x[True] = -1
        x[False] = 7
        x[True, 0] = 5
        is_more = x.sum() > 0
        y, z = x + 0, x + 0
        y[is_more, 1] = 9
        z[~is_more] = y + 1
        return x, y, z

    x, y, z = f(np.zeros((2, 3), np.int32))
    assert x.tolist() == [[5] * 3, [-1] * 3]
    assert y.tolist() == [[5] * 3, [9] * 3]
    assert z.tolist() == x.tolist()


def test_truth_values_as_keys_in_mapped_functions(arch):
    def f(x):
        y = x + 0
        y[True, 1] = 9
        y[False] = 3
        y[y[0] > 0, 2] = 8
        return y

    assert ti.tensor.vmap(f)(ti.tensor.arange(6).reshape(2, 3)).tolist() == [[0, 9, 2], [3, 9, 8]]


def test_truth_values_as_keys_of_complex_tensors(arch):
    x = ti.tensor.asarray([1 + 2j, 3])
    x[False] = 1j
    assert x.tolist() == [1 + 2j, 3]
    x[True] = 5j
    assert x.tolist() == [5j, 5j]
