"""Functions of tensors in programs, where only the run knows extents: what they give outside of programs, or an error that says
why they cannot be a part of one."""

import numpy as np
import pytest

import aerogel as ti
from aerogel.tensor import programs as p

t = ti.tensor
A = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)


def stored(x):
    y = x + 0
    y[0] = 5
    y[:, 1] = 7
    y[-1, -1] = 9
    return y


def stored_part(x):
    y = x + 0
    y[1:3, ::2] = x[1:3, ::2] * 10
    return y


def stored_where(x):
    y = x + 0
    y[y > 0] = 0
    return y


def stored_rows(x):
    y = x + 0
    y[x[:, 0] > 0] = 1
    return y


def positive(x):
    return x @ x.T + t.eye(x.shape[0])


SAME = {
    # Shapes.
    "stack": lambda x: t.stack([x, x * 2], axis=-1),
    "concat": lambda x: t.concat([x, x + 1], axis=1),
    "concat of rows": lambda x: t.concat([x, x + 1]),
    "concat row by row": lambda x: t.concat([x, x], axis=None),
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
    "reshape to a row": lambda x: x.reshape(-1),
    "reshape to a size": lambda x: x.reshape(x.shape[0] * x.shape[1]),
    "reshape": lambda x: x.reshape(x.shape[1], x.shape[0]),
    "split": lambda x: t.split(x, [1, 3], axis=1)[1],
    "flip": lambda x: t.flip(x),
    "flip of rows": lambda x: t.flip(x, axis=1),
    "roll": lambda x: t.roll(x, 2, axis=1),
    "roll back": lambda x: t.roll(x, -1, axis=0),
    "roll row by row": lambda x: t.roll(x, 3),
    "roll by a number": lambda x: t.roll(x, t.asarray(2), axis=1),
    "tile": lambda x: t.tile(x, (2, 1)),
    "repeat": lambda x: t.repeat(x, 2, axis=1),
    "pad": lambda x: t.pad(x, ((1, 2), (0, 1))),
    "expand_dims": lambda x: t.expand_dims(x, axis=1),
    "moveaxis": lambda x: t.moveaxis(x, 0, 1),
    "broadcast_to": lambda x: t.broadcast_to(x, (3, *x.shape)),
    "broadcast_arrays": lambda x: t.broadcast_arrays(x, x[0])[1],
    "diagonal": lambda x: t.linalg.diagonal(x),
    "diagonal above": lambda x: t.linalg.diagonal(x, offset=3),
    "diagonal below": lambda x: t.linalg.diagonal(x, offset=-2),
    "tril": lambda x: t.tril(x),
    "triu": lambda x: t.triu(x, k=1),
    "meshgrid": lambda x: t.meshgrid(x[0], x[:, 0])[0],
    # What is made.
    "eye": lambda x: t.eye(x.shape[0]),
    "eye beside": lambda x: t.eye(x.shape[0], x.shape[1], k=1),
    "arange": lambda x: t.arange(x.shape[0]),
    "arange from": lambda x: t.arange(2, x.shape[1]),
    "arange by twos": lambda x: t.arange(0, x.shape[1], 2),
    "arange back": lambda x: t.arange(x.shape[1], 0, -4),
    "full": lambda x: t.full(x.shape, 2.0),
    "zeros_like": lambda x: t.zeros_like(x),
    "ones": lambda x: t.ones((x.shape[0], 2)),
    "iota": lambda x: t.iota(x.shape, 1),
    # Parts.
    "x[1]": lambda x: x[1],
    "x[-1]": lambda x: x[-1],
    "x[1:3]": lambda x: x[1:3],
    "x[:, 1:-1]": lambda x: x[:, 1:-1],
    "x[::2, ::-1]": lambda x: x[::2, ::-1],
    "x[..., 0]": lambda x: x[..., 0],
    "x[:, None]": lambda x: x[:, None],
    "x[-2:]": lambda x: x[-2:],
    "x[:100]": lambda x: x[:100],
    "x[2:1]": lambda x: x[2:1],
    "x[: n // 2]": lambda x: x[: x.shape[0] // 2],
    "x[[2, 0]]": lambda x: x[[2, 0]],
    "x[[0, 1], [2, 3]]": lambda x: x[[0, 1], [2, 3]],
    "take": lambda x: t.take(x, t.asarray([2, 0]), axis=0),
    "take_along_axis": lambda x: t.take_along_axis(x, t.argsort(x, axis=1), axis=1),
    "gather": lambda x: t.gather(x, t.asarray([0, 1]), t.asarray([2, 3])),
    "gather outside": lambda x: t.gather(x.outside("clamp"), t.asarray([9, -3]), t.asarray([1, 2])),
    "stored": stored,
    "stored to a part": stored_part,
    "stored where": stored_where,
    "stored to rows where": stored_rows,
    # Sums, orders.
    "cumulative_sum": lambda x: t.cumulative_sum(x, axis=1),
    "cumulative_sum from zero": lambda x: t.cumulative_sum(x, axis=1, include_initial=True),
    "cumulative_prod": lambda x: t.cumulative_prod(x, axis=0),
    "sort": lambda x: t.sort(x, axis=1),
    "sort down": lambda x: t.sort(x, axis=0, descending=True),
    "argsort": lambda x: t.argsort(x, axis=1),
    "topk": lambda x: t.topk(x, 2).values,
    "argmax": lambda x: t.argmax(x, axis=1),
    "argmax of all": lambda x: t.argmax(x),
    "median": lambda x: t.median(x, axis=1),
    "median of all": lambda x: t.median(x),
    "var": lambda x: t.var(x, axis=0),
    "std": lambda x: t.std(x, correction=1),
    "mean": lambda x: t.mean(x, axis=(0, 1)),
    "norm": lambda x: t.norm(x, axis=1),
    "any": lambda x: t.any(x > 1, axis=0),
    "count_nonzero": lambda x: t.count_nonzero(x > 0, axis=1),
    "prod": lambda x: t.prod(x, axis=1),
    "searchsorted": lambda x: t.searchsorted(t.sort(x[0]), x[1]),
    "searchsorted right": lambda x: t.searchsorted(t.sort(x[0]), t.sort(x[0]), side="right"),
    "softmax": lambda x: t.exp(x - x.max(axis=1, keepdims=True)) / t.exp(x - x.max(axis=1, keepdims=True)).sum(axis=1, keepdims=True),
    "size": lambda x: x.sum() / x.size,
    "shape": lambda x: x.sum(axis=0) / x.shape[0],
    # Products, linear algebra.
    "matmul": lambda x: x @ x.T,
    "matmul with a vector": lambda x: x @ x[0],
    "tensordot": lambda x: t.tensordot(x, x, axes=((1,), (1,))),
    "einsum": lambda x: t.einsum("ij,kj->ik", x, x),
    "outer": lambda x: t.outer(x[0], x[1]),
    "vecdot": lambda x: t.vecdot(x, x),
    "cross": lambda x: t.cross(x[:, :3], x[:, 3:]),
    "trace": lambda x: t.trace(x),
    "accum": lambda x: t.accum("ij => i", x),
    "windows": lambda x: t.accum("2*o+k, ; k => o", x[0], t.ones(3)),
    "svdvals": lambda x: t.linalg.svdvals(x),
    "pinv": lambda x: t.linalg.pinv(x),
    "matrix_rank": lambda x: t.linalg.matrix_rank(x),
    "matrix_norm": lambda x: t.linalg.matrix_norm(x, ord=2),
    "inv": lambda x: t.linalg.inv(positive(x)),
    "solve": lambda x: t.linalg.solve(positive(x), x),
    "det": lambda x: t.linalg.det(positive(x)),
    "slogdet": lambda x: t.linalg.slogdet(positive(x)).logabsdet,
    "cholesky": lambda x: t.linalg.cholesky(positive(x)),
    "eigvalsh": lambda x: t.linalg.eigvalsh(positive(x)),
    "matrix_power": lambda x: t.linalg.matrix_power(x @ x.T, 3),
    "multi_dot": lambda x: t.linalg.multi_dot([x, x.T, x]),
    "lu": lambda x: t.linalg.lu(x).U,
    "svdvals of complex": lambda x: t.linalg.svdvals(x + 1j * x[0]),
    "pinv of complex": lambda x: t.linalg.pinv(x + 1j * x[0]).imag,
    "matrix_norm of complex": lambda x: t.linalg.matrix_norm(1j * x + x[0], ord=1),
    "inv of complex": lambda x: t.linalg.inv(positive(x) + 1j * (x @ x.T)).imag,
    "solve of complex": lambda x: t.linalg.solve(positive(x) * 1j, x).imag,
    "det of complex": lambda x: t.linalg.det(positive(x) + 1j * (x @ x.T)).imag,
    "matrix_power of complex": lambda x: t.linalg.matrix_power(1j * (x @ x.T), 3).imag,
    # Fourier transforms.
    "fft": lambda x: t.fft.fft(x).real,
    "fft, ortho": lambda x: t.fft.fft(x, norm="ortho").imag,
    "ifft": lambda x: t.fft.ifft(t.fft.fft(x)).real,
    "rfft": lambda x: t.abs(t.fft.rfft(x)),
    "irfft": lambda x: t.fft.irfft(t.fft.rfft(x)),
    "fft2": lambda x: t.abs(t.fft.fft2(x)),
    "fftshift": lambda x: t.fft.fftshift(x),
    "ifftshift": lambda x: t.fft.ifftshift(x, axes=1),
    "fftfreq": lambda x: t.fft.fftfreq(x.shape[1]),
    "rfftfreq": lambda x: t.fft.rfftfreq(x.shape[1], d=0.5),
    # One for many.
    "vmap": lambda x: ti.vmap(lambda row: row / row.sum())(x),
    "vmap of columns": lambda x: ti.vmap(lambda column: t.sort(column), in_axes=1, out_axes=1)(x),
}  # fmt: skip


def in_a_program(function, *values):
    @p.program
    def program():
        return function(*(p.input([-1] * v.ndim, ti.f32) for v in values))

    return program(*map(t.asarray, values)).numpy()


@pytest.mark.parametrize("name", SAME)
def test_the_same_in_a_program(name):
    ti.init(arch=ti.cpu, log_level="error")
    for values in (A, A[:3, :5].copy()) if "cross" not in name else (A,):
        outside = SAME[name](t.asarray(values)).numpy()
        inside = in_a_program(SAME[name], values)
        assert inside.shape == outside.shape
        np.testing.assert_allclose(inside, outside, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("function", "kind", "text"),
    [
        (
            lambda x: t.nonzero(x)[0],
            ValueError,
            "`nonzero` cannot be part of a program: its shape would depend on values",
        ),
        (lambda x: t.unique_values(x), ValueError, "`unique` cannot be part of a program"),
        (lambda x: x[x > 0], ValueError, r"`x\[mask\]` cannot be part of a program.*choose by `where`"),
        (lambda x: t.split(x, 4, axis=1)[0], ValueError, "axis 1 has 6 elements where 4 are needed"),
        (lambda x: t.topk(x, x.shape[0] + 3).values, ValueError, "-1 elements more than are requested along axis -1"),
        (lambda x: t.topk(x, x.shape[0] - 5).values, ValueError, "-1 elements are requested"),
        (lambda x: t.tile(x, (1, x.shape[0] - 5)), ValueError, "`tile`: an element cannot be repeated -1 times"),
        (lambda x: t.unstack(x)[0], ValueError, "`unstack` returns one tensor for each element of the axis"),
        (lambda x: x * len(x), TypeError, r"the size of the first axis is known only at run time: use `x.shape\[0\]`"),
        (lambda x: t.topk(x, 7).values, ValueError, "`topk`: axis -1 has 6 elements, 7 are asked for"),
        (lambda x: t.median(x[:0], axis=0), ValueError, "`median` of 0 numbers"),
        (lambda x: t.cross(x, x), ValueError, "6 elements where 3 are needed"),
        (lambda x: t.fft.fft(x, n=3).real, ValueError, "transform a slice of the needed length"),
        (lambda x: t.tensordot(x, x, axes=((0,), (1,))), ValueError, "4"),
    ],
)
def test_what_cannot_be(function, kind, text):
    ti.init(arch=ti.cpu, log_level="error")
    with pytest.raises(kind, match=text):
        in_a_program(function, A)


def test_tensors_from_outside_are_constants():
    ti.init(arch=ti.cpu, log_level="error")
    table = t.asarray([10.0, 20.0, 30.0])
    scale = np.array([1.0, 2.0], np.float32)

    @p.program
    def program():
        at = p.input([-1], ti.i32)
        with p.loop(2):
            at.val = at + t.asarray([1, 1])
        return table.outside("clamp")[at] * scale + table.sum()

    assert program(t.asarray([-2, -1])).tolist() == [70, 100]
    # The numbers are those of the tensor when the program was traced.
    table[0] = 0
    assert program(t.asarray([-2, -1])).tolist() == [70, 100]
    with pytest.raises(TypeError, match="takes 1 tensors, 2 were passed"):
        program(t.asarray([1, 2]), table)


def test_constants_stay_as_they_are():
    ti.init(arch=ti.cpu, log_level="error")
    outside = t.asarray([1.0, 2.0, 3.0])

    @ti.kernel
    def more(a: ti.types.ndarray()):
        for i in a:
            a[i] += 1.0

    @p.program
    def copies():
        x = p.input([-1], ti.f32)
        mine, other = t.asarray(outside), outside + 0
        mine[0] = x[1]
        more(other)
        with p.loop(2):
            other[1] += x[0]
        return outside + x, mine, other

    for _ in range(2):
        assert [y.tolist() for y in copies(t.asarray([10.0, 20.0, 30.0]))] == [
            [11, 22, 33],
            [20, 2, 3],
            [2, 23, 4],
        ]
    assert outside.tolist() == [1, 2, 3]

    def store(x):
        outside[0] = x[0]

    def value(x):
        outside.val = x

    def add(x):
        p.scatter_add(outside, t.asarray([0]), x[0])

    for change in (store, value, add, lambda x: more(outside)):

        @p.program
        def program(x, how):
            how(x)
            return outside + x

        with pytest.raises(ValueError, match="from outside.* is a constant of the program: copy it"):
            program(t.ones(3), change)
    assert outside.tolist() == [1, 2, 3]


def test_a_tensor_of_another_program_is_none_of_this_one():
    ti.init(arch=ti.cpu, log_level="error")
    kept = []

    @p.program
    def first():
        kept.append(p.input([-1], ti.f32))
        return kept[0]

    @p.program
    def second():
        return p.input([-1], ti.f32) + kept[0]

    first(t.ones(2))
    with pytest.raises(ValueError, match="tensors of two programs, or of one and of none"):
        second(t.ones(2))


def test_masks_choose_elements_and_are_no_indices():
    ti.init(arch=ti.cpu, log_level="error")
    x, mask = np.arange(12, dtype=np.float32).reshape(4, 3), np.array([False, False, True, True])

    def stored(key, value=5.0):
        def program(x):
            y = x + 0
            y[key(x)] = value
            return y

        return in_a_program(program, x)

    expected = x.copy()
    expected[mask] = 5
    assert np.array_equal(stored(lambda x: t.asarray(mask)), expected)
    assert np.array_equal(stored(lambda x: (t.asarray(mask),)), expected)
    with pytest.raises(IndexError, match="a mask is the only index of a store"):
        stored(lambda x: (t.asarray(mask), 0))
    for wrong in ([True], [True] * 5):
        with pytest.raises(ValueError, match=f"axis 0 has {len(wrong)} elements where 4 are needed"):
            stored(lambda x: t.asarray(np.array(wrong)))
    with pytest.raises(ValueError, match="axis 0 has 3 elements where 4 are needed"):
        stored(lambda x: x[0] > 0)
    with pytest.raises(IndexError, match="a mask with 3 axes for memory with 2"):
        stored(lambda x: x[None] > 0)


def test_stores_where_a_condition_holds_are_inside():
    """Where it holds an index outside is an error; where it does not, none."""
    ti.init(arch=ti.cpu, log_level="error")

    @p.program
    def shifted():
        x, by = p.input([-1], ti.i32), p.input([], ti.i32)
        (i,) = p.indices([x.shape[0]])
        y = p.buffer([x.shape[0]], ti.i32)
        y[i] = -1
        with p.if_cond(x > 0):
            y[i + by] = x
        return y

    @p.program
    def counted():
        x, by = p.input([-1], ti.i32), p.input([], ti.i32)
        (i,) = p.indices([x.shape[0]])
        y, before = p.buffer([x.shape[0]], ti.i32), p.buffer([x.shape[0]], ti.i32)
        y[i], before[i] = 0, 7
        with p.if_cond(x > 0):
            before[i] = p.scatter_add_previous(y, i // 2 + by, x)
        return y, before

    def run(program, x, by):
        return program(np.array(x, np.int32), np.array(by, np.int32))

    assert run(shifted, [1, 2, 0], 1).tolist() == [-1, 1, 2]
    assert run(shifted, [0, 2, 3], -1).tolist() == [2, 3, -1]
    assert run(shifted, [], 5).tolist() == []
    assert [y.tolist() for y in run(counted, [1, 2, 3, 0], 2)] == [[0, 0, 3, 3], [0, 1, 0, 7]]
    for program, x, by in ((shifted, [1, 2, 3], 1), (shifted, [1, 2, 3], -1), (counted, [0, 0, 3], 2)):
        with pytest.raises(IndexError, match="index (3|-1) is outside axis 0 with 3 elements"):
            run(program, x, by)
    assert run(shifted, [1, 2, 0], 1).tolist() == [-1, 1, 2]

    @p.program
    def last():
        y = p.input([-1], ti.i32) + 0
        return p.scatter_add_previous(y, -1, 2), y

    assert [r.tolist() for r in last(np.array([1, 2, 3], np.int32))] == [3, [1, 2, 5]]


def test_bounds_of_loops_are_integers():
    ti.init(arch=ti.cpu, log_level="error")

    def turns(bound):
        n = p.const(0)
        with p.loop(bound):
            n.val += 1
        return n

    with pytest.raises(TypeError, match="the bounds of a loop are integers"):
        in_a_program(lambda x: turns(x.sum()), A)
    assert in_a_program(lambda x: turns((x * 0 + 1).sum().astype(ti.i32)), A) == A.size


@pytest.mark.parametrize("mode", ["constant", "edge", "wrap", "reflect", "symmetric"])
def test_margins_that_the_run_knows(mode):
    @p.program
    def made():
        x, more = p.input([-1], ti.f32), p.input([-1], ti.f32)
        n = more.shape[0]
        return t.pad(x, (n, 8 - x.shape[0]), mode=mode), t.pad(x, [(2, n)], mode=mode)

    for m in (1, 3, 5, 8):
        x = np.arange(m, dtype=np.float32) + 1
        for n in (0, 1, 7):
            both, behind = made(x, np.zeros(n, np.float32))
            assert both.tolist() == np.pad(x, (n, 8 - m), mode=mode).tolist()
            assert behind.tolist() == np.pad(x, (2, n), mode=mode).tolist()
    with pytest.raises(ValueError, match="is -1, below zero"):
        made(np.zeros(9, np.float32), np.zeros(1, np.float32))


def test_what_is_no_margin():
    x = t.asarray([1.0, 2.0])
    assert t.pad(x, np.array([1, 2])).shape == (5,) and t.pad(x, np.int64(2)).shape == t.pad(x, t.asarray(2)).shape
    for widths in (((-1, 2),), -1):
        with pytest.raises(ValueError, match="`pad`: `widths` has -1, below zero"):
            t.pad(x, widths)
    for widths in ((1, 2, 3), ((1, 2), (1, 2)), [(1, 2, 3)]):
        with pytest.raises(ValueError, match="two numbers for each of 1 axes"):
            t.pad(x, widths)
    with pytest.raises(TypeError):
        t.pad(x, 1.5)
    with pytest.raises(ValueError, match="`pad`: the shape is"):
        t.pad(x, 2**31)


def test_numbers_of_parts_that_the_run_knows():
    @p.program
    def made():
        x = p.input([-1, -1], ti.f32)
        n = x.shape[0] // 2
        return (
            *t.split(x, 2, axis=1),
            t.tile(x, (n, 1, 2)),
            t.tile(x, n),
            t.repeat(x, n, axis=0),
            t.repeat(x, x.shape[0]),
            t.topk(x, n, axis=0).values,
            t.topk(x, n, axis=0).indices,
            t.accum("ij => ik", x, sizes={"k": n}),
        )

    first, second, tiled, along, rows, flat, values, places, sums = (out.numpy() for out in made(A))
    assert np.array_equal(np.concatenate([first, second], axis=1), A) and first.shape == second.shape
    assert np.array_equal(tiled, np.tile(A, (2, 1, 2))) and np.array_equal(along, np.tile(A, 2))
    assert np.array_equal(rows, np.repeat(A, 2, axis=0)) and np.array_equal(flat, np.repeat(A, 4))
    assert np.array_equal(values, -np.sort(-A, axis=0)[:2]) and np.array_equal(places, np.argsort(-A, axis=0)[:2])
    np.testing.assert_allclose(sums, np.repeat(A.sum(axis=1)[:, None], 2, axis=1), rtol=1e-5)
