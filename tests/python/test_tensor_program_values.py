"""What values, blocks and calls of a traced program mean where Python could mean something else."""

import gc
import weakref

import aerogel as ti
import numpy as np
import pytest
from aerogel.tensor import programs as p

T = ti.tensor


@pytest.fixture(autouse=True)
def _start():
    ti.init(arch=ti.cpu, log_level="error")


def test_numbers_of_python_take_the_type_of_what_they_are_stored_to():
    x, u = ti.field(ti.f64, shape=3), ti.field(ti.u64, shape=3)

    @p.program
    def stores():
        (i,) = p.indices(x)
        x[i] = 0.1
        x[2] = 1e300
        u[i] = 2**63
        y = p.buffer([3], ti.f64)
        y[i] = 0.1
        z = p.const(0.0, ti.f64)
        z.val = 0.1
        k = p.buffer([3], ti.i32)
        k[i] = 2.0
        b = p.buffer([3], ti.i32)
        b[i] = True
        return y, z, k, b

    y, z, k, b = (r.numpy() for r in stores())
    assert x.to_numpy().tolist() == [0.1, 0.1, 1e300]
    assert u.to_numpy().tolist() == [2**63] * 3
    assert y.tolist() == [0.1] * 3 and z == 0.1
    assert k.tolist() == [2] * 3 and b.tolist() == [1] * 3


def test_numbers_that_a_type_has_not_are_refused():
    @p.program
    def stores():
        k = p.buffer([3], ti.i8)
        k[0] = 300
        return k

    with pytest.raises(OverflowError, match="300 is not a number of type `i8`"):
        stores()


@pytest.mark.parametrize(
    "store, says",
    [
        (lambda k, x: k.__setitem__(0, 2.75), "^elements of `i32` take no 2.75, which is not an integer$"),
        (lambda k, x: k.__setitem__(slice(1, 3), x[1:3]), "^elements of `i32` take no `f32`: write `value.astype"),
        (lambda k, x: k.set(x), "^`set`: elements of `i32` take no `f32`"),
        (lambda k, x: p.scatter_add(k, T.asarray(0), x), "^elements of `i32` take no `f32`"),
    ],
)
def test_types_that_lose_numbers_are_refused(store, says):
    def program():
        k, x = p.buffer([3], ti.i32), p.input([3], ti.f32)
        store(k, x)
        return k

    with pytest.raises(TypeError, match=says):
        p.program(program)(np.zeros(3, np.float32))


@pytest.mark.parametrize("block", ["branch", "point", "loop"])
def test_an_exception_that_leaves_a_block_is_not_caught_outside_of_it(block):
    x = np.arange(3, dtype=np.int32)

    @p.program
    def leaves():
        given = p.input([3], ti.i32)
        y = p.buffer([3], ti.i32)
        (i,) = p.indices([3])
        blocks = {"branch": lambda: p.if_cond(given.sum() > 1), "point": lambda: p.if_cond(given > 1)}
        try:
            with blocks.get(block, lambda: p.loop(3))():
                raise KeyError
        except KeyError:
            pass
        y[i] = 1
        return y

    with pytest.raises(RuntimeError, match="an exception left a block of the program"):
        leaves(x)

    @p.program
    def stays():
        given = p.input([3], ti.i32)
        y = p.buffer([3], ti.i32)
        (i,) = p.indices([3])
        with p.if_cond(given > 1):
            try:
                raise KeyError
            except KeyError:
                y[i] = 1
        return y

    assert stays(x).numpy().tolist() == [0, 0, 1]


def test_arguments_of_kernels_are_those_of_the_call():
    @ti.kernel
    def add(v: ti.math.vec3, a: ti.types.ndarray(ti.i32, 1)):
        a[0] += int(v[0])

    vector, numbers = ti.Vector([1.0, 0, 0]), [2.0, 0, 0]

    @p.program
    def twice():
        y = p.buffer([1], ti.i32)
        add(vector, y)
        vector[0] = 10.0
        add(vector, y)
        add(numbers, y)
        return y

    assert twice().numpy().tolist() == [13]
    numbers[0] = 100.0
    assert twice().numpy().tolist() == [13]


@pytest.mark.parametrize("kind", [np.int64, np.uint32, np.uint64])
def test_wide_indices_wrap_as_they_are(kind):
    at = np.array([2**32 - 1, 2**31, 4], kind)
    if kind is np.int64:
        at = np.append(at, [2**32 + 1, -(2**33) + 1])
    want = np.array([9, 8, 7])[[int(k) % 3 for k in at]].tolist()
    assert T.asarray(np.array([9, 8, 7], np.int32)).outside("wrap")[T.asarray(at)].numpy().tolist() == want

    @p.program
    def gathers():
        i = p.input([-1], {"int64": ti.i64, "uint32": ti.u32, "uint64": ti.u64}[at.dtype.name])
        a = p.input([3], ti.i32).outside("wrap")
        out = (p.buffer([3], ti.i32) + 0).outside("wrap")
        out[i] = 1
        return a[i], out

    read, stored = gathers(at, np.array([9, 8, 7], np.int32))
    assert read.numpy().tolist() == want
    assert sorted(np.flatnonzero(stored.numpy())) == sorted({int(k) % 3 for k in at})


FLAG = 0


@ti.kernel
def one_or_the_other(a: ti.types.ndarray(ti.i32, 1), b: ti.types.ndarray(ti.i32, 1)):
    for i in a:
        if ti.static(FLAG == 0):
            a[i] += b[i] + 1
        else:
            b[i] += a[i] + 1


def test_what_a_kernel_writes_is_asked_again_after_init():
    global FLAG

    @p.program
    def program():
        x = p.input([3], ti.i32)
        y = x * 2
        z = y + 1
        one_or_the_other(x, y)
        return x, y, z, y * 10

    given = np.arange(3, dtype=np.int32)
    for FLAG in (0, 1):
        ti.init(arch=ti.cpu, log_level="error")
        x, y, z, more = (r.numpy().tolist() for r in program(given))
        assert z == [1, 3, 5]
        assert (x, y) == (([1, 4, 7], [0, 2, 4]) if FLAG == 0 else ([0, 1, 2], [1, 4, 7]))
        assert more == [10 * k for k in y]


def test_programs_that_call_kernels_are_collected_with_their_owner():
    @ti.data_oriented
    class Owner:
        def __init__(self):
            self.program = p.program(self.body)

        @ti.kernel
        def double(self, a: ti.types.ndarray(ti.i32, 1)):
            for i in a:
                a[i] *= 2

        def body(self):
            x = p.input([-1], ti.i32) * 1
            self.double(x)
            return x

    alive = []
    for _ in range(5):
        owner = Owner()
        assert owner.program(np.ones(2, np.int32)).numpy().tolist() == [2, 2]
        alive.append(weakref.ref(owner))
    del owner
    gc.collect()
    assert sum(ref() is not None for ref in alive) <= 1


def test_known_places_count_from_the_end():
    @p.program
    def stores():
        y = p.buffer([4], ti.i32)
        y[-1] = 5
        y[-4] = 3
        return y

    assert stores().numpy().tolist() == [3, 0, 0, 5]


def test_reshape_finds_an_extent_that_is_known():
    @p.program
    def reshapes():
        x = p.input([2, 6], ti.i32)
        return x.reshape(-1), x.reshape((3, -1))

    flat, rows = reshapes(np.arange(12, dtype=np.int32).reshape(2, 6))
    assert flat.numpy().tolist() == list(range(12)) and rows.shape == (3, 4)

    @p.program
    def unknown():
        x = p.input([-1, 6], ti.i32)
        return x.reshape(-1), x.reshape((4, -1)), x.reshape((x.shape[0] * 2, -1))

    for n in (2, 6, 4):
        x = np.arange(n * 6, dtype=np.int32).reshape(n, 6)
        got = [r.numpy() for r in unknown(x)]
        assert all(np.array_equal(g, w) for g, w in zip(got, [x.reshape(-1), x.reshape(4, -1), x.reshape(2 * n, -1)]))
    with pytest.raises(ValueError, match=r"`reshape`: 18 and 16 elements\n  --> .*:\d+:\d+\n"):
        unknown(np.zeros((3, 6), np.int32))


def test_each_turn_of_a_loop_draws_its_own_numbers():
    t = ti.tensor

    @p.program
    def draw():
        out = p.buffer([3, 2, 4], ti.f32)
        with p.loop(3) as a, p.loop(2) as b:
            out[a, b] = t.random.rand(4)
        return out, t.random.rand(4)

    drawn, after = (r.numpy() for r in draw())
    assert len(np.unique(drawn)) == 24 and not np.isin(after, drawn).any()
    # A call draws what the one before drew.
    assert (draw()[0].numpy() == drawn).all()


def test_a_key_that_is_an_input_makes_other_numbers():
    t = ti.tensor

    @p.program
    def draw():
        return t.random.uniform(p.input([2], ti.u32), (5,))

    keys = [t.random.default.key() for _ in range(2)]
    first, second, again = (draw(key).numpy() for key in (*keys, keys[0]))
    assert (first == again).all() and (first != second).all()
    assert (first == t.random.uniform(keys[0], (5,)).numpy()).all()


def test_loops_that_cells_leave_go_over_active_cells_alone():
    b, v = ti.field(ti.i32), ti.Vector.field(2, ti.i32)
    for f in (b, v):
        ti.root.pointer(ti.i, 25).dense(ti.i, 4).place(f)
    for k in (1, 6, 27, 97):
        b[k] = k
    v[1], v[6] = [1, 2], [6, 12]
    cells = [b[k] for block in (0, 1, 6, 24) for k in range(4 * block, 4 * block + 4)]

    @p.program
    def left():
        (i,) = p.indices(b)
        n, m = p.const(0), p.const(0)
        with p.loop(10) as k:
            with p.if_cond(b[i] <= k):
                p.break_loop()
            n.val += 1
        with p.kernel(b), p.loop(10) as k:
            with p.if_cond(b[i] == k):
                p.continue_loop()
            m.val += 1
        return n.sum(), m.sum(), n

    @p.program
    def of_vectors():
        (i,) = p.indices(v)
        n = p.const(0)
        with p.loop(5) as k:
            with p.if_cond(v[i][..., 0] <= k):
                p.break_loop()
            n.val += 1
        return n.sum()

    n, m, each = left()
    assert n.item() == sum(min(x, 10) for x in cells)
    assert m.item() == sum(10 - (x < 10) for x in cells)
    assert each.numpy()[[0, 1, 6, 27, 50]].tolist() == [0, 1, 6, 10, 0]
    assert of_vectors().item() == 6


def test_what_depends_on_no_cell_is_at_the_cells_too():
    b = ti.field(ti.i32)
    ti.root.bitmasked(ti.i, 100).place(b)
    for k in (1, 6, 27, 97):
        b[k] = k

    @p.program
    def sums():
        (i,) = p.indices(b)
        v = b[i]
        likes = T.ones_like(v), T.full_like(v, 3), T.where(v > 0, 2, 2), p.const(1) + T.where(v >= 0, 0, 0)
        return [x.sum() for x in likes]

    assert [x.item() for x in sums()] == [4, 12, 8, 4]


def test_a_largest_number_of_none_is_an_error():
    for name in ("max", "min", "argmax", "argmin"):
        function = getattr(T, name)

        @p.program
        def program(x):
            return function(x, axis=1)

        assert program(np.ones((2, 3), np.float32)).shape == (2,)
        with pytest.raises(ValueError, match=f"`{name}` of 0 elements"):
            program(np.ones((2, 0), np.float32))


def test_sums_say_what_is_outside():
    @p.program
    def shifted():
        x = p.input([-1], ti.i32)
        (i,) = p.indices([8])
        p.scatter_add(x, i + 2, 1)
        return x

    @p.program
    def counted():
        x = p.input([-1], ti.i32)
        with p.loop(7) as k:
            p.scatter_add(x, k, 1)
        return x

    for program, most in ((shifted, 10), (counted, 7)):
        assert program(np.zeros(most, np.int32)).numpy().sum() == 8 - (program is counted)
        with pytest.raises(IndexError, match="index 4 is outside axis 0 with 4"):
            program(np.zeros(4, np.int32))


def test_sums_over_more_axes_say_what_is_outside_too():
    @p.program
    def known():
        x = p.input([-1], ti.f32)
        i, j = p.indices([8, 600])
        p.scatter_add(x, i + 1, j * 1.0)
        return x

    @p.program
    def unknown():
        x, v = p.input([-1], ti.f32), p.input([-1], ti.f32)
        i, j = p.indices([8, v.shape[0]])
        p.scatter_add(x, i + 1, v[j])
        return x

    nine, eight = np.zeros(9, np.float32), np.zeros(8, np.float32)
    assert known(nine).tolist() == [0] + [179700] * 8
    assert unknown(nine, np.ones(700, np.float32)).tolist() == [0] + [700] * 8
    for program, more in ((known, ()), (unknown, (np.ones(3, np.float32),))):
        with pytest.raises(IndexError, match="index 8 is outside axis 0 with 8"):
            program(eight, *more)
    # Where there is nothing to add, no index counts.
    assert unknown(eight, np.ones(0, np.float32)).tolist() == [0] * 8


@pytest.mark.parametrize("has_block", [False, True])
def test_a_value_that_is_set_outside_of_blocks_keeps_its_shape(has_block):
    @p.program
    def sets():
        x = p.input([-1], ti.i32)
        v, rows, n = x.copy(), T.zeros((2, x.shape[0]), dtype=ti.i32), p.const(0)
        if has_block:
            with p.if_cond(x.sum() > 100):
                v.val, rows.val, n.val = 0, 1, x
        v.val, rows.val = 7, x
        v[0] = 3
        n.val = x
        return v, rows, n

    v, rows, n = sets([1, 2, 3])
    assert v.tolist() == [3, 7, 7] and rows.tolist() == [[1, 2, 3]] * 2 and n.tolist() == [1, 2, 3]


def test_truth_values_are_added_by_or():
    @p.program
    def met():
        i = p.input([-1], ti.i32)
        seen = p.buffer([3], ti.u1)
        p.scatter_add(seen, i, T.ones_like(i).astype(ti.u1))
        return seen

    assert met(np.array([0, 0, 1], np.int32)).tolist() == [True, True, False]

    @p.program
    def met_before():
        i = p.input([-1], ti.i32)
        seen = p.buffer([3], ti.u1)
        return p.scatter_add_previous(seen, i, T.ones_like(i).astype(ti.u1)), seen

    before, seen = met_before(np.array([0, 0, 1], np.int32))
    assert before.tolist() == [False, True, False] and seen.tolist() == [True, True, False]


def test_shapes_of_more_elements_than_32_bits_count():
    x = T.arange(70000)[:, None] * 0 + T.arange(70000)[None, :]
    assert x.reshape(35000, 140000)[30000, 5].item() == 5
    assert x.reshape(35000, 2, 70000)[30000, 1, 5:8].tolist() == [5, 6, 7]
    with pytest.raises(ValueError, match=r"`reshape`: the shape is \(4900000000,\), and indices go up to 2147483647"):
        x.reshape(-1)


def test_the_index_along_one_axis_is_it_or_a_tuple_of_it():
    def at(make):
        @p.program
        def made():
            return make(p.indices([4]))

        return made().tolist()

    def unpacked(i):
        (k,) = i
        # The index alone, whose first element this is.
        return k + k[3]

    x = T.asarray([5, 6, 7, 8])
    assert at(lambda i: i * 2) == at(lambda i: 2 * i) == at(lambda i: i[0] * 2) == [0, 2, 4, 6]
    assert at(lambda i: i + 1) == at(lambda i: 1 + i) == at(lambda i: i[-1] + 1) == [1, 2, 3, 4]
    assert at(lambda i: x[i]) == at(lambda i: x[(*i,)]) == at(lambda i: T.gather(x, *i)) == [5, 6, 7, 8]
    assert at(unpacked) == [3, 4, 5, 6] and at(lambda i: i[:, None] + x[None, :3]) == [
        [5, 6, 7],
        [6, 7, 8],
        [7, 8, 9],
        [8, 9, 10],
    ]
    assert at(lambda i: T.full((), len(i) + len(i[1:]))) == 1 and at(lambda i: T.sin(i) * 0) == [0] * 4

    f = ti.field(ti.i32)
    ti.root.bitmasked(ti.i, 16).place(f)
    f[3] = f[9] = 1

    @p.program
    def cells():
        i = p.indices(f)
        f[i] = i * i
        with p.kernel(f) as k:
            f[k[0]] += k
        with p.kernel(p.input([-1], ti.i32).shape) as (k,):
            f[k] += 100

    cells(np.zeros(2, np.int32))
    assert [f[3], f[9], f[0], f[1]] == [12, 90, 100, 100]


def test_indices_outside_of_programs():
    for word in ("indices", "kernel"):
        with pytest.raises(RuntimeError, match=f"`{word}` is for functions under `program`"):
            with getattr(p, word)([4]):
                pass


def test_inputs_take_numbers_of_python_and_say_how_others_are_converted():
    @p.program
    def scaled():
        x, by = p.input([-1], ti.f64), p.input([], ti.i32)
        return x * by

    assert scaled([0.1, 2], 3).tolist() == [0.1 * 3, 6]
    with pytest.raises(TypeError, match="input 1 of `scaled`: elements of `i32` take no `f32`"):
        scaled([1], 1.5)
    with pytest.raises(TypeError, match=r"elements of `f64`, not of `f32`: .*asarray\(x, ti.f64\)"):
        scaled(np.ones(3, "float32"), 1)
    assert scaled((1, 2), True).tolist() == [1, 2] and p.program(lambda: p.input([-1], ti.i32).sum())([]).item() == 0
    with pytest.raises(ValueError, match="takes 1 axes, not 2"):
        scaled([[1]], 1)


def test_inputs_have_no_names():
    @p.program
    def same():
        return p.input([], ti.f32)

    with pytest.raises(
        TypeError, match=r"`same` has no parameters, but got the keyword arguments `x`: `same\(a, b\)` takes inputs"
    ):
        same(x=1)


def test_lists_of_tensors_of_a_program_are_tensors():
    @p.program
    def one():
        x = p.input([3], ti.f32)
        matrix = T.asarray([[x[0], 2], [3, x[2]]])
        return T.asarray([x[1], 7.5]), matrix, T.asarray([x, x], ti.i32), T.asarray([[x[0], x[1]], [1, x[2]]])

    pair, matrix, whole, result = one(np.array([1.5, 2, 4], "float32"))
    assert pair.tolist() == [2, 7.5] and matrix.tolist() == [[1.5, 2], [3, 4]]
    assert whole.tolist() == [[1, 2, 4]] * 2 and whole.dtype is ti.i32 and result.tolist() == [[1.5, 2], [1, 4]]
    with pytest.raises(ValueError, match="shape"):
        p.program(lambda: T.asarray([T.zeros(3), [p.const(1), 2]]))()
    assert p.program(lambda: T.asarray([p.const(1.0), 2j]))().tolist() == [1, 2j]


def test_lists_of_tensors_of_a_program_lose_no_digits():
    @p.program
    def one():
        x = p.input([2], ti.f32)
        return T.asarray([x[0], 0.1], ti.f64), T.asarray([[p.const(1)], [2**40]], ti.i64)

    floats, whole = one(np.ones(2, "float32"))
    assert floats.tolist() == [1, 0.1] and whole.tolist() == [[1], [2**40]]
