"""Functions of one, done for many, beside a loop of Python's over NumPy."""

from collections import namedtuple

import numpy as np
import pytest

import functools

import aerogel as ti
from aerogel import _native
from aerogel.tensor import programs as p

t = ti.tensor


@pytest.fixture(autouse=True)
def start():
    ti.init(arch=ti.cpu, log_level="error", fast_math=False)


def numbers(*shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


def loop(f, args, in_axes, out_axis=0):
    """What a loop gives."""
    n = next(x.shape[a] for x, a in zip(args, in_axes) if a is not None)
    rows = [f(*(x if a is None else np.take(x, k, axis=a) for x, a in zip(args, in_axes))) for k in range(n)]
    return np.stack(rows, axis=out_axis)


X, W = numbers(4, 3, 5), numbers(5, 2, seed=1)

ROWS = {
    "elementwise": (lambda m, x, w: m.exp(x) * 2 + w[0, 0], (0, None)),
    "reductions": (lambda m, x, w: m.sum(x, axis=1) + m.max(x), (0, None)),
    "means": (lambda m, x, w: (x - m.mean(x, axis=0)) / (1 + m.var(x, axis=0)), (0, None)),
    "products": (lambda m, x, w: x @ w, (0, None)),
    "rows of another": (lambda m, x, w: x[:2, :2] * w[0] + w[1:3], (1, None)),
    "middle axis": (lambda m, x, w: x.T @ x, (1, None)),
    "last axis": (lambda m, x, w: x[0] + getattr(m, "cumulative_sum", np.cumsum)(x, axis=0), (2, None)),
    "the second only": (lambda m, x, w: x[0, 0] * w + w[0], (None, -1)),
    "shapes": (lambda m, x, w: m.concat([m.flip(x, axis=0), x], axis=1).reshape(6, 5)[1:, ::-2], (0, None)),
    "choices": (lambda m, x, w: m.where(x > 0, m.sqrt(m.abs(x)), x[0]), (0, None)),
    "places": (lambda m, x, w: m.argmax(x, axis=1) + m.argmin(x), (0, None)),
    "orders": (lambda m, x, w: m.sort(x, axis=0) + m.argsort(x, axis=1), (0, None)),
}


@pytest.mark.parametrize("name", ROWS)
def test_as_a_loop(name):
    f, axes = ROWS[name]
    at = [None if axis is None else axis % 3 if k == 0 else axis % 2 for k, axis in enumerate(axes)]
    expected = loop(lambda x, w: f(np, x, w), (X, W), axes)
    got = ti.vmap(lambda x, w: f(t, x, w), in_axes=axes)(X, W)
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-14)

    @p.program
    def whole():
        # How many there are is known when it runs.
        x, w = (p.input([-1 if k == axis else n for k, n in enumerate(a.shape)], ti.f64) for a, axis in zip((X, W), at))
        return ti.vmap(lambda x, w: f(t, x, w), in_axes=axes)(x, w)

    np.testing.assert_allclose(whole(X, W).numpy(), expected, rtol=1e-14)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_where_results_lie(axis):
    got = ti.vmap(lambda x: x * 2, in_axes=1, out_axes=axis)(X)
    assert (got.numpy() == loop(lambda x: x * 2, (X,), (1,), axis)).all()
    same = ti.vmap(lambda x: W[0] * 1.0, in_axes=1, out_axes=axis if abs(axis) < 2 else 0)(X)
    assert same.shape in ((3, 2), (2, 3))


def test_pairs_of_pairs():
    a, b = numbers(4, 3), numbers(5, 3, seed=2)
    dot = lambda x, y: (x * y).sum()  # noqa: E731
    table = ti.vmap(ti.vmap(dot, in_axes=(None, 0)), in_axes=(0, None))
    assert (table(a, b).numpy() == a @ b.T).all()
    apart = ti.vmap(lambda x: ti.vmap(lambda y: abs(x - y))(b))(a)
    assert (apart.numpy() == abs(a[:, None] - b[None])).all()
    three = ti.vmap(ti.vmap(ti.vmap(lambda x, y: x + y, (0, None)), (None, 0)), (0, 0))
    assert (three(a, a).numpy() == a[:, None, :] + a[:, :, None]).all()


def test_gathers_and_scatters():
    x, at = numbers(6, 5), np.random.default_rng(3).integers(0, 5, (6, 4)).astype(np.int32)
    got = ti.vmap(lambda x, at: x[at] * 2)(x, at)
    assert (got.numpy() == np.take_along_axis(x, at, 1) * 2).all()
    shared = ti.vmap(lambda at: t.asarray(x[0])[at])(at)
    assert (shared.numpy() == x[0][at]).all()

    def count(at):
        return t.scatter(t.zeros((5,), ti.i32), at, t.ones((4,), ti.i32), how="add")

    assert (ti.vmap(count)(at).numpy() == loop(lambda at: np.bincount(at, minlength=5), (at,), (0,))).all()

    def store(x, v):
        x[1] = v
        x[2:4] = x[0]
        return x

    def stored(x, v):
        x = x.copy()
        x[1] = v
        x[2:4] = x[0]
        return x

    v = numbers(6, seed=5)
    assert (ti.vmap(store)(x, v).numpy() == loop(stored, (x, v), (0, 0))).all()
    base = t.asarray(x[0])
    assert (ti.vmap(lambda v: store(base + 0, v))(v).numpy() == loop(lambda v: stored(x[0], v), (v,), (0,))).all()
    with pytest.raises(ValueError, match="stores to a tensor that was made outside of it"):
        ti.vmap(lambda v: store(base, v))(v)
    assert (base.numpy() == x[0]).all()


def test_many_stores():
    x = numbers(3, 40)

    def f(x):
        for k in range(1, 40):
            x[k] = x[k - 1] + x[k]
        return x

    assert (ti.vmap(f)(x).numpy() == np.cumsum(x, axis=1)).all()


def test_libraries():
    a = np.random.default_rng(1).normal(size=(4, 3, 3)) + 3 * np.eye(3)
    b = np.random.default_rng(2).normal(size=(3, 2))
    solved = ti.vmap(t.linalg.solve, in_axes=(0, None))(a, b)
    np.testing.assert_allclose(solved.numpy(), np.linalg.solve(a, np.broadcast_to(b, (4, 3, 2))), rtol=1e-10)
    values = ti.vmap(lambda m: t.linalg.svdvals(m + m.T))(a)
    np.testing.assert_allclose(values.numpy(), np.linalg.svd(a + a.swapaxes(1, 2))[1], rtol=1e-10)
    np.testing.assert_allclose(ti.vmap(t.linalg.det)(a).numpy(), np.linalg.det(a), rtol=1e-10)
    moved = ti.vmap(lambda x: t.fft.fft(x), in_axes=1, out_axes=1)(a[0])
    np.testing.assert_allclose(moved.numpy(), np.fft.fft(a[0], axis=0), rtol=1e-10, atol=1e-12)


def test_complex_tensors():
    z = numbers(4, 3) + 1j * numbers(4, 3, seed=1)
    got = ti.vmap(lambda z: (z * t.conj(z[0])).sum(), in_axes=1)(z)
    assert (got.numpy() == (z * z[:1].conj()).sum(0)).all()


def test_tuples_lists_and_dictionaries():
    Pair = namedtuple("Pair", ["x", "y"])

    def f(pair, named, *, scale):
        return {"sum": pair.x + pair.y, "rest": [named["a"] * scale, 7]}

    x, y, a, s = numbers(4, 2), numbers(4), numbers(2, 4), numbers(4)
    out = ti.vmap(f, in_axes=(0, {"a": 1}))(Pair(x, y), {"a": a}, scale=s)
    assert (out["sum"].numpy() == x + y[:, None]).all()
    assert (out["rest"][0].numpy() == a.T * s[:, None]).all()
    assert (out["rest"][1].numpy() == 7).all() and out["rest"][1].shape == (4,)
    first, same = ti.vmap(lambda x: (x, W), out_axes=(1, None))(x)
    assert (first.numpy() == x.T).all() and (same.numpy() == W).all()


def test_decorated():
    @ti.vmap
    def twice(x):
        """Twice."""
        return 2 * x

    assert twice.__doc__ == "Twice." and twice([1, 2]).tolist() == [2, 4]


@pytest.mark.parametrize("n", [0, 1, 2])
def test_few(n):
    x = numbers(n, 3)
    assert (ti.vmap(lambda x: x.sum() * x)(x).numpy() == x.sum(1)[:, None] * x).all()


def test_what_is_the_same_is_computed_once():
    x, w = t.asarray(numbers(8, 3)), t.asarray(numbers(3, 3))
    y = ti.vmap(lambda x: x * (w @ w @ w).sum())(x)
    text = t.explain(y)
    assert " over [8, 3, 3" not in text
    # Whoever asks twice is given the same numbers.
    assert (y.numpy() == x.numpy() * (w @ w @ w).sum().item()).all()


# Programs with branches, loops and memory.


def collatz_steps(n):
    steps = 0
    while n != 1:
        n, steps = 3 * n + 1 if n % 2 else n // 2, steps + 1
    return steps


def test_branches_and_loops_of_programs():
    @p.program
    def steps():
        start = p.input([-1], ti.i32)

        def one(start):
            x, n = p.const(0), p.const(0)
            x.val = start
            with p.loop(1000):
                with p.if_cond(x == 1):
                    p.break_loop()
                with p.if_cond(x % 2 == 1):
                    x.val = 6 * x + 2
                x.val = x // 2
                n.val += 1
            return n, x

        return ti.vmap(one)(start)

    first = np.arange(1, 40, dtype=np.int32)
    n, x = steps(first)
    assert n.tolist() == [collatz_steps(int(k)) for k in first]
    assert (x.numpy() == 1).all()


def test_loops_of_other_lengths():
    @p.program
    def sums():
        n = p.input([-1], ti.i32)

        def one(n):
            s, last = p.const(0), p.const(-1)
            with p.loop(0, n, 2) as k:
                with p.loop(k) as j:
                    s.val += j + 1
                last.val = k
            return s, last

        return ti.vmap(one)(n)

    given = np.array([0, 5, 3, 9, 1], np.int32)
    s, last = sums(given)
    assert s.tolist() == [sum(j + 1 for k in range(0, n, 2) for j in range(k)) for n in given]
    assert last.tolist() == [([-1, *range(0, n, 2)])[-1] for n in given]


def test_memory_of_each():
    @p.program
    def histograms():
        at = p.input([-1, -1], ti.i32)

        def one(at):
            counts = p.buffer([5], ti.i32)
            with p.if_cond(at.sum() > 6):
                p.scatter_add(counts, at, 1)
            counts[0] = 100
            return counts

        return ti.vmap(one, out_axes=1)(at)

    at = np.random.default_rng(0).integers(0, 5, (7, 4)).astype(np.int32)

    def expected(at):
        out = np.bincount(at, minlength=5) if at.sum() > 6 else np.zeros(5, int)
        out[0] = 100
        return out

    assert (histograms(at).numpy() == loop(expected, (at,), (0,), 1)).all()


def test_what_need_not_run_does_not_fail():
    @p.program
    def chosen():
        x, at = p.input([4], ti.f32), p.input([-1], ti.i32)

        def one(at):
            out = p.const(-1.0)
            with p.if_cond(at < 4):
                out.val = x[at]
            return out

        return ti.vmap(one)(at)

    assert chosen(np.arange(4, dtype=np.float32), np.array([2, 9, 0], np.int32)).tolist() == [2, -1, 0]


# Errors.


def test_extents_that_differ():
    with pytest.raises(
        ValueError, match=r"`vmap`: argument 0 has 4 elements along axis 0, argument 1 has 3 elements along axis 1"
    ):
        ti.vmap(lambda x, y: x, in_axes=(0, 1))(numbers(4, 2), numbers(2, 3))

    @p.program
    def sums():
        x, y = p.input([-1]), p.input([-1])
        return ti.vmap(lambda x, y: x + y)(x, y)

    with pytest.raises(
        ValueError, match=r"argument 0 has 2 elements along axis 0, argument 1 has 3 elements along axis 0"
    ):
        sums(np.zeros(2, np.float32), np.zeros(3, np.float32))


def test_axes_that_are_not_there():
    with pytest.raises(ValueError, match="argument 1 is one number, there is no axis 0: `in_axes` is None"):
        ti.vmap(lambda x, y: x)(numbers(4), 3.0)
    with pytest.raises(ValueError, match=r"argument 0\[1\] has axes 0 to 0, there is no axis 1"):
        ti.vmap(lambda x: x, in_axes=1)((numbers(4, 2), numbers(4)))
    with pytest.raises(ValueError, match="`in_axes` has 1 axes for 2 arguments"):
        ti.vmap(lambda x, y: x, in_axes=(0,))(X, X)
    with pytest.raises(ValueError, match="no argument is mapped"):
        ti.vmap(lambda x: x, in_axes=None)(X)
    with pytest.raises(TypeError, match="the axis of argument 0 is an integer or None, not 'a'"):
        ti.vmap(lambda x: x, in_axes="a")(X)
    with pytest.raises(ValueError, match=r"the result has 3 axes including the batch axis, there is no axis 3"):
        ti.vmap(lambda x: x, out_axes=3)(X)
    with pytest.raises(ValueError, match=r"the result\[1\] varies over the batch"):
        ti.vmap(lambda x: (x, x + 1), out_axes=(0, None))(X)


def test_programs_are_called_for_one_of_many():
    square = ti.program(lambda x: (x * x).sum())
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_allclose(ti.vmap(lambda row: square(row) + 1)(x).numpy(), [6, 51])

    @ti.program
    def power(x):
        y = x * 1
        with p.loop(2):
            y.val = y * x
        return y

    np.testing.assert_allclose(ti.program(ti.vmap(lambda row: power(row)))(x).numpy(), x**3)
    with pytest.raises(TypeError, match=r"calls the program `power`, which has blocks \(`loop`\): call `vmap` inside"):
        ti.vmap(lambda row: power(row))(x)


def test_a_condition_of_one_of_many():
    x = np.array([[1.0, -4.0], [9.0, 4.0]])
    choose = lambda row: p.cond(row.sum() > 0, lambda r: (ti.tensor.sqrt(r), r), lambda r: (-r, r * 2), row)
    roots, others = ti.vmap(choose)(x)
    np.testing.assert_allclose(roots.numpy(), [[-1, 4], [3, 2]])
    np.testing.assert_allclose(others.numpy(), [[2, -8], [9, 4]])
    # What is not chosen has no part in the gradient, and may be NaN.
    made = ti.grad(lambda x: ti.vmap(choose)(x)[0].sum())(x)
    np.testing.assert_allclose(made.numpy(), [[-1, -1], [1 / 6, 1 / 4]])
    with pytest.raises(TypeError, match="`if_false` of `cond` returns"):
        ti.vmap(lambda row: p.cond(row.sum() > 0, lambda r: r, lambda r: (r, r), row))(x)
    with pytest.raises(ValueError, match="`if_false` of `cond` returns a tensor with 0 axes"):
        ti.vmap(lambda row: p.cond(row.sum() > 0, lambda r: r, lambda r: r.sum(), row))(x)


def test_programs_are_not_mapped():
    @p.program
    def double():
        return p.input([-1], ti.f32) * 2

    x = np.ones((2, 3), np.float32)
    with pytest.raises(TypeError, match="`double` creates its inputs with `input` and cannot be mapped"):
        ti.vmap(double)
    text = "`vmap`: the function calls the program `double`, which creates its inputs with `input`: give its"
    for function in (lambda row: double(row + 1), functools.partial(double)):
        with pytest.raises(TypeError, match=text):
            ti.vmap(function)(x)
    # What is not one of many may be given to a program.
    assert ti.vmap(lambda row: row + double(x[0]))(x).tolist() == [[3, 3, 3]] * 2

    @p.program
    def outer():
        return ti.vmap(lambda row: double(row))(p.input([-1, 3], ti.f32))

    with pytest.raises(RuntimeError, match="`double` creates its inputs with `input` and is called by another"):
        outer(x)

    @p.program
    def inner():
        return ti.vmap(lambda row: row * 2)(p.input([-1, 3], ti.f32))

    assert inner(x).tolist() == [[2, 2, 2]] * 2


def test_numbers_of_one_of_many():
    kept = []

    def f(x):
        kept.append(x)
        return x if x.sum() > 0 else -x

    with pytest.raises(ValueError, match="is symbolic and has no values: use `where`"):
        ti.vmap(f)(X)
    with pytest.raises(ValueError, match="inside `vmap` is symbolic"):
        kept[0].numpy()
    assert repr(kept[0] + 1) == "<tensor of shape (3, 5), dtype=f64>"
    # What does not depend on it has numbers.
    w = t.asarray(W)
    assert ti.vmap(lambda x: x * w.sum().item())(X).shape == X.shape


def test_memory_of_others():
    def run(f):
        @p.program
        def whole():
            x = p.input([4], ti.f32)
            total = p.buffer([1], ti.f32)
            count = p.const(0.0)
            ti.vmap(lambda x: f(total, count, x))(x)
            return total

        return whole(np.zeros(4, np.float32))

    def read(total, count, x):
        p.scatter_add(total, 0, x)
        return total[0] + x

    def count(total, count, x):
        count.val += x
        return x

    def leave(total, count, x):
        p.break_loop()

    with pytest.raises(ValueError, match="sets a value that was made outside of it: store to its elements"):
        run(count)
    with pytest.raises(ValueError, match="reads memory from outside to which it also stores"):
        run(read)
    with pytest.raises(RuntimeError, match="`break_loop` is outside of a loop"):
        run(leave)


def test_a_function_that_raises_leaves_nothing():
    def broken(x):
        x = x + 1
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        ti.vmap(broken)(X)

    @p.program
    def whole():
        x = p.input([4], ti.f32)
        try:
            ti.vmap(broken)(x)
        except KeyError:
            pass
        return x + 1

    assert whole(np.zeros(4, np.float32)).tolist() == [1] * 4
    held = _native.tensor_counts()[2]
    for _ in range(3):
        ti.vmap(lambda x: x * 2)(X)
    assert _native.tensor_counts()[2] == held


@pytest.mark.parametrize("in_program", [False, True])
def test_a_library_in_a_branch_is_for_those_who_take_it(in_program):
    """Those who leave it out have matrices that the library refuses."""
    given = np.array([[[4.0, 0], [0, 9]], [[-1, 0], [0, -1]], [[0, 0], [0, 0]], [[1, 0], [2, 25]]])

    def body(m):
        total, x = p.const(0.0, ti.f64), p.buffer([2], ti.f64)
        with p.if_cond(m[0, 0] > 0):
            lower = t.linalg.cholesky(m)
            total.val = lower.sum()
            x.val = t.linalg.solve(m, t.sum(m, axis=0))
        return total, x

    if not in_program:
        # Outside of programs there are no branches: what raises, raises.
        with pytest.raises(ValueError, match="cholesky"):
            ti.vmap(lambda m: t.where(m[0, 0] > 0, t.linalg.cholesky(m).sum(), 0.0))(given).numpy()
        return
    program = p.program(lambda: ti.vmap(body)(p.input([-1, 2, 2], ti.f64)))
    totals, solved = (r.numpy() for r in program(given))
    want = [np.linalg.cholesky(m).sum() if m[0, 0] > 0 else 0 for m in given]
    assert np.allclose(totals, want)
    assert np.allclose(solved, [np.linalg.solve(m, m.sum(0)) if m[0, 0] > 0 else [0, 0] for m in given])
    with pytest.raises(ValueError, match=r"`cholesky`: .* \(number 1 of 2\)"):
        program(np.array([np.eye(2), [[1.0, 5], [5, 1]]]))


def test_what_a_library_gave_stays_for_those_who_left_a_loop():
    """Each leaves after so many turns; what was computed in its last one is its own."""

    def body(m, n):
        x = p.buffer([2, 2], ti.f64)
        with p.loop(4) as k:
            with p.if_cond(k >= n):
                p.break_loop()
            x.val = t.linalg.inv(m * (k + 1))
        return x

    given, n = np.array([np.eye(2) * 2, np.eye(2) * 4, np.zeros((2, 2))]), np.array([1, 3, 0], np.int32)
    program = p.program(lambda: ti.vmap(body)(p.input([-1, 2, 2], ti.f64), p.input([-1], ti.i32)))
    got = program(given, n).numpy()
    assert np.allclose(got, [np.eye(2) / 2, np.eye(2) / 12, np.zeros((2, 2))])


def test_what_left_a_mapped_function_has_no_numbers_later_either():
    kept = []

    def leaves(x):
        kept.append(x * 2)
        return x + 1

    assert t.vmap(leaves)(t.arange(3)).tolist() == [1, 2, 3]
    # What nobody holds is dropped as many more are made.
    for k in range(200):
        more = [t.asarray(float(k)) + n for n in range(50)]
        more[0].item()
    with pytest.raises(ValueError, match="inside `vmap` is symbolic"):
        kept[0].tolist()


def test_a_store_outside_is_an_index_error():
    def f(x):
        y = x + 0
        y[t.asarray([7])] = 1.0
        return y

    with pytest.raises(IndexError, match="index 7 is outside"):
        ti.vmap(f)(X).numpy()


def test_a_block_at_the_indices_of_a_shape():
    """Indices are single numbers in it, loops and branches those of a point; results leave it by stores."""

    @ti.program
    def pairs(x):
        n = x.shape[0]
        out, counts = p.const(ti.tensor.zeros((n, n))), p.const(ti.tensor.zeros(3, ti.i32))
        with ti.vmap((n, n)) as (i, j):
            d = x[i] - x[j]
            steps = p.const((d * d).sum())
            with p.loop(3):
                steps.val += 1.0
                with p.if_cond(i == j):
                    p.break_loop()
            with p.if_cond(i != j):
                out[i, j] = steps
            p.scatter_add(counts, (i + j) % 3, 1)
        with ti.vmap(n) as i:
            with p.if_cond(i > 1):
                out[i, i] = -1.0
        return out, counts

    for n in (4, 7):
        x = np.random.default_rng(n).standard_normal((n, 3))
        right = ((x[:, None] - x[None]) ** 2).sum(-1) + 3
        for k in range(n):
            right[k, k] = -1.0 if k > 1 else 0.0
        out, counts = pairs(ti.tensor.asarray(x))
        assert np.allclose(out.numpy(), right, rtol=1e-6)
        assert counts.tolist() == np.bincount(np.add.outer(range(n), range(n)).ravel() % 3).tolist()
    assert pairs.trace_count == 1
    found = ti.grad(lambda x: (pairs(x)[0] * 2.0).sum())(ti.tensor.asarray(x))
    assert np.allclose(found.numpy(), 8 * (n * x - x.sum(0)), rtol=1e-6)


def test_wrong_blocks_at_indices():
    def traced(function):
        return ti.program(function)(ti.tensor.ones(4))

    def leaked(x):
        with ti.vmap(4) as i:
            y = x[i] * 2
        return y

    def read(x):
        out = p.const(x)
        with ti.vmap(4) as i:
            out[i] = out[(i + 1) % 4] * 2
        return out

    def both(x):
        out = p.const(x)
        with ti.vmap(4) as i:
            out[i] = 2.0
            p.scatter_add(out, i, 1.0)
        return out

    def out_of_range(x):
        out = p.const(x)
        with ti.vmap(5) as i:
            out[i] = x[i]
        return out

    with pytest.raises(ValueError, match="belongs to a function that `vmap` has called, and is used outside of it"):
        traced(leaked)
    with pytest.raises(ValueError, match="reads memory from outside to which it also stores"):
        traced(read)
    with pytest.raises(
        ValueError, match="all stores to memory that was made outside of the function must use the same"
    ):
        traced(both)
    with pytest.raises(IndexError, match="index 4"):
        traced(out_of_range).numpy()
    with pytest.raises(ValueError, match="the shape has no axes"):
        traced(lambda x: ti.vmap(()).__enter__())
    with pytest.raises(RuntimeError, match="vmap"):
        ti.vmap((2, 2)).__enter__()
