"""Quantised types: fields whose elements are some bits of a word."""

import math

import numpy as np
import pytest

import aerogel as ti

quant = ti.types.quant


def packed(*types, bits=32, shape=None, below=None, shared=False, offset=None):
    """Fields of quantised types side by side in a word of each cell."""
    fields = [ti.field(ty) for ty in types]
    word = ti.BitpackedFields(max_num_bits=bits)
    word.place(*fields, shared_exponent=shared)
    node = below or (ti.root if shape is None else ti.root.dense(ti.axes(*range(len(shape))), shape))
    node.place(word, offset=offset)
    return fields


def stored(x, values):
    """What a kernel reads after it has written."""
    result = ti.field(x.dtype.compute, shape=())

    @ti.kernel
    def write(v: x.dtype.compute):
        x[None] = v
        result[None] = x[None]

    out = []
    for v in values:
        write(v)
        assert x[None] == result[None] or math.isnan(result[None])
        out.append(x[None])
    return out


def test_integers_keep_their_low_bits(arch):
    x, y = packed(quant.int(5), quant.int(5, signed=False))
    values = [0, 1, 15, 16, 31, 32, -1, -16, -17, 100]
    assert stored(x, values) == [0, 1, 15, -16, -1, 0, -1, -16, 15, 4]
    assert stored(y, values) == [0, 1, 15, 16, 31, 0, 31, 16, 15, 4]


@pytest.mark.parametrize(("compute", "bits"), [(ti.i64, 40), (ti.u8, 7), (ti.i16, 16), (ti.u64, 64), (ti.u32, 32)])
def test_integers_of_every_width(arch, compute, bits):
    (x,) = packed(quant.int(bits, signed=False, compute=compute), bits=64)
    assert stored(x, [2 ** (bits - 1) - 1, 5]) == [2 ** (bits - 1) - 1, 5]


def test_fixed_point_is_rounded_and_wraps(arch):
    x, y = packed(quant.fixed(4, max_value=2.0), quant.fixed(4, signed=False, max_value=2.0))
    values = [0.1, 0.124, 0.125, 0.37, 0.375, 1.75, 1.8, 1.9, 2.3, 5, -0.1, -0.125, -2, -2.1, -3, math.inf, math.nan]
    signed = [0, 0, 0.25, 0.25, 0.5, 1.75, 1.75, -2, -1.75, 1, 0, -0.25, -2, -2, 1, 0, 0]
    unsigned = [0.125, 0.125, 0.125, 0.375, 0.375, 1.75, 1.75, 1.875, 0.25, 1, 1.875, 1.875, 0, 1.875, 1, 0, 0]
    assert stored(x, values) == signed
    assert stored(y, values) == unsigned
    (z,) = packed(quant.fixed(8, scale=0.1, compute=ti.f64))
    assert stored(z, [0.05, 12.8, -0.05]) == [0.1, -128 * 0.1, -0.1]


FLOATS = {
    (5, 10, True): [1, -0.0999755859375, 3.140625, 65536, 6.198883056640625e-05, 0, 0],
    (5, 11, True): [1, -0.0999755859375, 3.140625, 65504, 6.198883056640625e-05, 0, 0],
    (5, 5, True): [1, -0.1015625, 3.125, 65536, 6.103515625e-05, 0, 0],
    (6, 10, False): [1, 0.0999755859375, 3.140625, 65504, 6.198883056640625e-05, 5.9992074966430664e-05, None],
    (8, 20, True): [1, -0.10000002384185791, 3.141590118408203, 65504, 6.200000643730164e-05, None, None],
}


@pytest.mark.parametrize("form", FLOATS, ids=str)
def test_floats_are_rounded_and_small_ones_vanish(arch, form):
    (x,) = packed(quant.float(*form))
    values = [1.0, -0.1, 3.14159, 65504.0, 6.2e-5, 6e-5, -1e-8]
    for value, found, expected in zip(values, stored(x, values), FLOATS[form]):
        assert expected is None or found == expected, value


def test_large_floats_become_the_largest(arch):
    x, y = packed(quant.float(5, 10), quant.float(8, 9))
    assert stored(x, [1e6, -1e10, math.inf, -math.inf]) == [130944, -130944, 130944, -130944]
    found = stored(y, [math.inf, -math.inf, math.nan])
    assert found[:2] == [math.inf, -math.inf]
    assert math.isnan(found[2])


def test_neighbours_stay_as_they_are(arch):
    n = 500
    x, y, z = packed(quant.int(7), quant.fixed(9, scale=0.5), quant.float(6, 10), shape=(n,))

    @ti.kernel
    def write():
        for i in range(n):
            x[i] = i % 100 - 50
        for i in y:
            y[i] = i % 90
            z[n - 1 - i] = i

    write()
    i = np.arange(n)
    assert (x.to_numpy() == i % 100 - 50).all()
    assert (y.to_numpy() == i % 90).all()
    assert (z.to_numpy() == [round_to(n - 1 - k, 9) for k in i]).all()


def round_to(x, digits):
    if x == 0:
        return 0
    unit = 2.0 ** (math.floor(math.log2(x)) - digits)
    return math.floor(x / unit + 0.5) * unit


@pytest.mark.parametrize("kind", ["dense", "pointer", "bitmasked", "root"])
def test_arrays_of_elements_in_a_word(arch, kind):
    n = 8 if kind == "root" else 64
    x = ti.field(quant.int(4))
    y = ti.field(quant.fixed(8, scale=0.5))
    node = ti.root if kind == "root" else getattr(ti.root, kind)(ti.i, n // 8)
    node.quant_array(ti.i, 8, max_num_bits=32).place(x)
    node.quant_array(ti.i, 8, max_num_bits=64).place(y)
    assert x.shape == y.shape == (n,)

    @ti.kernel
    def write():
        for i in range(n):
            x[i] = i
        for i in x:
            y[i] = x[i] + 0.3

    write()
    expected = (np.arange(n) + 8) % 16 - 8
    assert (x.to_numpy() == expected).all()
    assert y.to_numpy().tolist() == [float(v) + 0.5 for v in expected]
    assert [x[k] for k in range(n)] == expected.tolist()


def test_loops_over_words_visit_every_element_once(arch):
    x = ti.field(quant.int(2, signed=False))
    block = ti.root.pointer(ti.ij, (5, 3))
    block.dense(ti.i, 2).quant_array(ti.ij, (4, 4), max_num_bits=32).place(x)
    seen = ti.field(ti.i32, shape=x.shape)
    assert x.shape == (40, 12)

    @ti.kernel
    def touch():
        x[9, 2] = 3
        x[39, 11] = 1

    @ti.kernel
    def visit():
        for i, j in x:
            seen[i, j] += 1
            x[i, j] += 1

    touch()
    visit()
    expected = np.zeros(x.shape)
    expected[8:16, 0:4] = 1
    expected[32:40, 8:12] = 1
    assert (seen.to_numpy() == expected).all()
    expected[9, 2] = 0
    expected[39, 11] = 2
    assert (x.to_numpy() == expected).all()


def test_words_of_the_next_iteration_are_shared(cpu):
    n = 4000
    x = ti.field(quant.int(4))
    y = ti.field(quant.int(2, signed=False))
    z = ti.field(quant.int(8))
    ti.root.dense(ti.i, n // 8).quant_array(ti.i, 8, max_num_bits=32).place(x)
    ti.root.dense(ti.i, n // 32).quant_array(ti.i, 32, max_num_bits=64).place(y)
    ti.root.dense(ti.i, n // 4).quant_array(ti.i, 4, max_num_bits=32).place(z)

    @ti.kernel
    def shift():
        for i in x:
            x[(i + 1) % n] = i % 7
            y[i] = i % 3
            z[i] = i % 100

    for _ in range(20):
        x.fill(0)
        y.fill(0)
        z.fill(0)
        shift()
        i = np.arange(n)
        assert (np.roll(x.to_numpy(), -1) == i % 7).all()
        assert (y.to_numpy() == i % 3).all()
        assert (z.to_numpy() == i % 100).all()


def test_leaving_a_serial_loop_over_words(arch):
    x = ti.field(quant.int(8))
    ti.root.dense(ti.i, 4).quant_array(ti.i, 4, max_num_bits=32).place(x)

    @ti.kernel
    def fill():
        ti.loop_config(serialize=True)
        for i in x:
            if i == 2:
                continue
            if i == 6:
                break
            x[i] = i

    fill()
    assert x.to_numpy().tolist() == [0, 1, 0, 3, 4, 5] + [0] * 10


def test_atomics_give_the_old_value(arch):
    x, y, z = packed(quant.int(5), quant.int(5, signed=False), quant.fixed(8, scale=0.25), shape=(4,))
    old = ti.Vector.field(3, ti.f32, shape=())

    @ti.kernel
    def add(a: ti.i32, b: ti.f32):
        old[None] = [ti.atomic_add(x[1], a), ti.atomic_add(y[1], a), ti.atomic_add(z[1], b)]

    seen = []
    for a, b in [(3, 0.5), (14, 0.3), (-5, 0.1), (-20, -0.13)]:
        add(a, b)
        seen.append((*old[None], x[1], y[1], z[1]))
    assert seen == [
        (0, 0, 0, 3, 3, 0.5),
        (3, 3, 0.5, -15, 17, 0.75),
        (-15, 17, 0.75, 12, 12, 0.75),
        (12, 12, 0.75, -8, 24, 0.5),
    ]
    assert x[0] == y[0] == z[0] == 0


@pytest.mark.parametrize("op", ["add", "sub", "min", "max", "and", "or", "xor", "mul", "exchange"])
def test_every_atomic(arch, op):
    x, y = packed(quant.int(12), quant.int(20))
    atomic = getattr(ti, f"atomic_{op}")
    plain = ti.field(ti.i32, shape=())
    same = ti.field(ti.i32, shape=())

    @ti.kernel
    def change(a: ti.i32):
        for i in range(1):
            if atomic(x[None], a + i) == atomic(plain[None], a + i):
                same[None] += 1

    y[None] = -12345
    for a in (7, 30, -9, 5):
        change(a)
        assert x[None] == plain[None]
    assert same[None] == 4
    assert y[None] == -12345


def test_threads_share_words(arch):
    n = 2000
    x, y = packed(quant.int(14), quant.int(18))
    count = ti.field(quant.int(8, signed=False))
    ti.root.quant_array(ti.i, 8, max_num_bits=64).place(count)

    @ti.kernel
    def add():
        for i in range(n):
            x[None] += 1
            y[None] -= 2
            count[i % 8] += 1
            ti.atomic_max(y[None], -100000)

    add()
    assert (x[None], y[None]) == (n, -2 * n)
    assert count.to_numpy().tolist() == [n // 8] * 8


def test_what_is_read_back_is_what_was_kept(arch):
    x, z = packed(quant.int(5), quant.fixed(8, scale=0.25))
    out = ti.field(ti.f32, shape=3)

    @ti.kernel
    def write():
        x[None] = 20
        out[0] = x[None]
        z[None] = 0.3
        out[1] = z[None]
        z[None] /= 2
        out[2] = z[None]

    write()
    assert out.to_numpy().tolist() == [-12, 0.25, 0.25]


def test_a_shared_exponent_is_that_of_the_greatest(arch):
    a, b, c = packed(*[quant.float(5, 10)] * 3, bits=64, shared=True)
    fields = (a, b, c)
    steps = [
        (0, 1.0, (1, 0, 0)),
        (1, 0.1, (1, 0.1015625, 0)),
        (2, 1000.0, (2, 0, 1000)),
        (0, 0.0, (0, 0, 1000)),
        (2, 0.0, (0, 0, 0)),
        (1, 0.1, (0, 0.10009765625, 0)),
        (0, -3.3, (-3.296875, 0.1015625, 0)),
    ]
    for k, value, expected in steps:
        fields[k][None] = value
        assert tuple(f[None] for f in fields) == expected

    @ti.kernel
    def write(x: ti.f32, y: ti.f32, z: ti.f32):
        a[None] = 0
        b[None] = 0
        c[None] = 0
        a[None] = x
        b[None] = y
        c[None] = z

    for values, expected in [
        ((1, 2, 3), (1, 2, 3)),
        ((1, 1000, 0.1), (2, 1000, 0)),
        ((-1, 0.5, -0.25), (-1, 0.5, -0.25)),
        # 0.1 is rounded again whenever the exponent grows.
        ((0.1, 0.2, 0.3), (0.1005859375, 0.2001953125, 0.2998046875)),
        ((0.3, 0.1, 0.2), (0.2998046875, 0.099609375, 0.2001953125)),
        ((1e-4, 1e-5, 1e-6), (9.989738464355469e-05, 1.0013580322265625e-05, 9.5367431640625e-07)),
        ((1.9999, 0, 0), (1.99609375, 0, 0)),
    ]:
        write(*values)
        assert tuple(f[None] for f in fields) == expected


def test_several_groups_in_a_word(arch):
    fields = [ti.field(ty) for ty in [quant.int(5), *[quant.float(5, 10)] * 2, *[quant.float(6, 8, False)] * 2]]
    word = ti.BitpackedFields(max_num_bits=64)
    word.place(fields[0])
    word.place(*fields[1:3], shared_exponent=True)
    word.place(*fields[3:], shared_exponent=True)
    ti.root.dense(ti.i, 3).place(word)
    values = [7, 3.0, 0.5, 100.0, 2.0]
    for f, v in zip(fields, values):
        f[1] = v
    assert [f[1] for f in fields] == values
    assert all(f[0] == f[2] == 0 for f in fields)


def test_vectors_and_structs_share_words(arch):
    v = ti.Vector.field(3, quant.float(6, 12), shape=None)
    m = ti.Matrix.field(2, 2, quant.int(4))
    s = ti.Struct.field({"a": quant.int(6), "b": quant.fixed(7, scale=0.5)})
    word = ti.BitpackedFields(max_num_bits=64)
    word.place(v, shared_exponent=True)
    word.place(s)
    other = ti.BitpackedFields(max_num_bits=16)
    other.place(m)
    ti.root.pointer(ti.i, 4).dense(ti.i, 2).place(word, other)

    @ti.kernel
    def write(k: ti.i32):
        v[3] = [1, 2, 0.5]
        v[3][k] = 3
        m[3] = [[1, 2], [3, -9]]
        m[3][k, 1] += 2
        s[3].a = -5
        s[3].b = 2.4

    write(1)
    assert v[3].to_list() == [1, 3, 0.5]
    assert m[3].to_list() == [[1, 2], [3, -7]]
    assert (s[3].a, s[3].b) == (-5, 2.5)
    v[2] = [4, 5, 6]
    assert v[2].y == 5
    v[2].y = 8
    assert v.to_numpy()[2].tolist() == [4, 8, 6]
    assert m.get_scalar_field(1, 1)[3] == -7


def test_python_side(arch):
    x, y = packed(quant.fixed(8, scale=0.25), quant.int(8), shape=(3, 4), offset=(-1, 2))
    assert (repr(x.dtype), repr(y.dtype)) == ("qi8*0.25/f32", "qi8/i32")
    a = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
    x.from_numpy(a)
    y.fill(-3)
    kept = np.sign(a) * np.floor(np.abs(a) * 4 + 0.5) / 4
    assert (x.to_numpy() == kept).all()
    assert x.to_numpy().dtype == np.float32
    assert y.to_numpy().tolist() == [[-3] * 4] * 3
    assert x[-1, 2] == -2
    x[0, 3] = 1.3
    assert (x[0, 3], y[0, 3]) == (1.25, -3)
    y.copy_from(x)
    assert y.to_numpy().tolist() == x.to_numpy().astype(np.int32).tolist()
    assert str(x.parent()) == "ti.root => dense [3, 4] => bit_struct [3, 4]"
    assert x.snode.parent().parent() is x.parent(2)
    with pytest.raises(IndexError):
        x[2, 2]


@pytest.mark.parametrize("kind", ["pointer", "bitmasked", "dynamic"])
def test_sparse_nodes_hold_words(arch, kind):
    node = ti.root.dynamic(ti.i, 64, chunk_size=8) if kind == "dynamic" else getattr(ti.root, kind)(ti.i, 64)
    x, y = packed(quant.int(10), quant.float(6, 12), below=node)

    @ti.kernel
    def write():
        for i in range(8):
            x[i * 3] = i
            y[i * 3] += i / 2

    @ti.kernel
    def total() -> ti.f32:
        sum = 0.0
        for i in x:
            sum += x[i] + y[i] * 100
        return sum

    write()
    assert total() == 28 + 1400
    i, values = y.active_cells()
    assert len(i) == (22 if kind == "dynamic" else 8)
    assert values[-1] == 3.5
    x.set_cells([40, 41], [511, 512])
    assert (x[40], x[41], x[0], y[21]) == (511, -512, 0, 3.5)
    assert ti.root.shape == ()
    x.parent().parent().deactivate_all()
    assert total() == 0


def test_appending_to_a_list_of_words(arch):
    node = ti.root.dense(ti.i, 3).dynamic(ti.j, 16)
    (x,) = packed(quant.int(5), below=node, bits=8)

    @ti.kernel
    def fill():
        for i, n in ti.ndrange(3, 5):
            x[i].append(n * 4)

    fill()
    assert sorted(x.to_numpy()[1][:5].tolist()) == [-16, 0, 4, 8, 12]


def test_compare_and_swap_in_a_word(arch):
    x, y = packed(quant.int(3), quant.float(5, 10), shape=(2,))

    @ti.kernel
    def swap() -> ti.i32:
        first = ti.atomic_cas(x[1], 0, 2)
        second = ti.atomic_cas(x[1], 0, 3)
        ti.atomic_cas(y[1], 0.0, 1.5)
        return first * 10 + second

    assert swap() == 2
    assert (x[1], y[1], x[0], y[0]) == (2, 1.5, 0, 0)


def test_options_of_taichi_are_taken(arch):
    ti.init(arch=arch, quant_opt_store_fusion=False, quant_opt_atomic_demotion=True)
    x = ti.field(quant.int(4))
    ti.root.dense(ti.i, 8).quant_array(ti.i, 8, max_num_bits=32).place(x)

    @ti.kernel
    def fill():
        ti.loop_config(bit_vectorize=True)
        for i in x:
            x[i] = 3

    fill()
    assert (x.to_numpy() == 3).all()


WRONG = {
    "bits of an integer": (lambda: quant.int(33), "from 1 to 32 bits, not 33"),
    "no bits": (lambda: quant.int(0), "from 1 to 32 bits, not 0"),
    "half a bit": (lambda: quant.int(2.5), "is an integer, not 2.5"),
    "an integer of floats": (lambda: quant.int(5, compute=ti.f32), "an integer type, not f32"),
    "fixed point of integers": (lambda: quant.fixed(5, compute=ti.i32), "f32 or f64, not i32"),
    "no scale": (lambda: quant.fixed(5, scale=0.0), "positive and finite"),
    "a negative scale": (lambda: quant.fixed(5, max_value=-1.0), "positive and finite"),
    "double precision": (lambda: quant.float(5, 10, compute=ti.f64), "f32, not f64"),
    "a long exponent": (lambda: quant.float(9, 10), "from 1 to 8 bits, not 9"),
    "a long fraction": (lambda: quant.float(5, 25), "from 1 to 24 bits, not 25"),
}


@pytest.mark.parametrize("case", WRONG)
def test_types_that_cannot_be(arch, case):
    make, message = WRONG[case]
    with pytest.raises(ti.TaichiTypeError, match=message):
        make()


def test_what_does_not_fit_is_refused_where_it_stands(arch):
    word = ti.BitpackedFields(max_num_bits=32)
    with pytest.raises(ValueError, match="40 bits do not fit a word of 32"):
        word.place(ti.field(quant.int(20)), ti.field(quant.int(20)))
    with pytest.raises(ValueError, match="only fields of quantised types"):
        word.place(ti.field(ti.i32))
    with pytest.raises(ValueError, match="not 24"):
        ti.BitpackedFields(max_num_bits=24)
    with pytest.raises(ValueError, match="36 bits do not fit"):
        ti.root.quant_array(ti.i, 9, max_num_bits=32).place(ti.field(quant.int(4)))
    with pytest.raises(ValueError, match="only fields of quantised types"):
        ti.root.quant_array(ti.i, 8, max_num_bits=32).place(ti.field(ti.i32))
    with pytest.raises(ValueError, match="not floating-point ones"):
        ti.root.quant_array(ti.i, 2, max_num_bits=32).place(ti.field(quant.float(4, 4)))
    with pytest.raises(ValueError, match="holds one field"):
        ti.root.quant_array(ti.i, 8, max_num_bits=32).dense(ti.i, 4)
    with pytest.raises(ValueError, match="BitpackedFields"):
        ti.root.dense(ti.i, 8).place(ti.field(quant.int(4)))
    with pytest.raises(ValueError, match="BitpackedFields"):
        ti.field(quant.int(4), shape=8)
    with pytest.raises(ti.TaichiSyntaxError, match="At least 2 fields"):
        word.place(ti.field(quant.float(5, 10)), shared_exponent=True)
    with pytest.raises(ValueError, match="share"):
        word.place(ti.field(quant.int(5)), ti.field(quant.int(5)), shared_exponent=True)
    with pytest.raises(ValueError, match="share"):
        word.place(ti.field(quant.float(5, 5)), ti.field(quant.float(6, 5)), shared_exponent=True)
    with pytest.raises(ti.TaichiRuntimeError, match="needs_grad"):
        ti.field(quant.int(5), needs_grad=True)
    with pytest.raises(TypeError):
        ti.ndarray(quant.int(5), 4)


def test_words_are_shown_and_saved(arch, tmp_path):
    block = ti.root.pointer(ti.i, 4)
    x, y = packed(quant.int(5), quant.fixed(7, scale=0.5), below=block, bits=16)
    q = ti.field(quant.int(4), name="q")
    block.quant_array(ti.i, 4, max_num_bits=16).place(q)
    assert repr(block).splitlines()[1:] == [
        "pointer i:4",
        "├─ bit_struct max_num_bits=16",
        "│  ├─ place qi5/i32",
        "│  └─ place qi7*0.5/f32",
        "└─ quant_array i:4 max_num_bits=16",
        "   └─ place q: qi4/i32",
    ]
    x[3], y[3], q[9] = -7, 2.5, 5
    assert block.stats()[0]["cells"] == 2
    ti.tools.save_sparse(tmp_path / "words", x, y, q)
    ti.deactivate_all_snodes()
    assert (x[3], y[3], q[9]) == (0, 0, 0)
    ti.tools.load_sparse(tmp_path / "words", x, y, q)
    assert (x[3], y[3], q[9], len(q.active_cells()[0])) == (-7, 2.5, 5, 8)


def test_no_value_has_a_quantised_type(arch):
    small = quant.int(5)

    @ti.kernel
    def cast() -> ti.i32:
        return ti.cast(40, small)

    with pytest.raises(ti.TaichiCompilationError):
        cast()
    with pytest.raises(ti.TaichiSyntaxError, match="not a type of the kernel language"):

        @ti.kernel
        def take(a: small):
            pass


def test_indices_are_checked(debug):
    (x,) = packed(quant.int(5), shape=(4,))
    z = ti.field(quant.int(4), name="z")
    ti.root.pointer(ti.i, 2).quant_array(ti.i, 8, max_num_bits=32).place(z)

    @ti.kernel
    def write(i: ti.i32, k: ti.i32):
        x[i] = 1
        z[k] = 2

    write(3, 15)
    for at in [(4, 0), (0, 16), (-1, 0), (0, -1)]:
        with pytest.raises(ti.TaichiAssertionError, match="out of bounds"):
            write(*at)


def test_iterations_that_diverge_share_a_word(arch):
    """Each iteration changes the same word once, however long its own loop behind that takes."""
    z = ti.field(quant.int(20, signed=False), name="z")
    ti.root.quant_array(ti.i, 3, max_num_bits=64).place(z)
    steps = ti.field(ti.i32, shape=100)

    @ti.kernel
    def count():
        for i in range(100):
            z[1] += i
            n, k = i, 0
            while n > 1:
                n = n // 2 if n % 2 == 0 else 3 * n + 1
                k += 1
            steps[i] = k

    count()
    assert z.to_numpy().tolist() == [0, 4950, 0]
    assert (steps[1], steps[27], steps[64]) == (0, 111, 6)


def test_outside_of_a_sparse_field_of_words(arch):
    z = ti.field(quant.int(4), name="z")
    ti.root.pointer(ti.i, 3).quant_array(ti.ij, (2, 3), max_num_bits=32).place(z)
    seen = ti.field(ti.i32, shape=())

    @ti.kernel
    def read(i: ti.i32, j: ti.i32):
        z[1, 2] = 5
        seen[None] = z[i, j] * 10 + z[1, 2]

    for at in [(-1, 0), (6, 0), (0, 3), (1, -1), (1, 5)]:
        read(*at)
        assert seen[None] == 5

    @ti.kernel
    def write(i: ti.i32, j: ti.i32):
        z[i, j] = 1

    for at in [(-1, 0), (6, 0), (0, 3), (1, -1)]:
        with pytest.raises(ti.TaichiAssertionError, match="is out of bounds for field `z` of shape"):
            write(*at)
            ti.sync()
    assert z.to_numpy().sum() == 5


def test_a_word_is_placed_once(arch):
    word = ti.BitpackedFields(max_num_bits=32)
    word.place(ti.field(quant.int(5)))
    ti.root.dense(ti.i, 4).place(word)
    with pytest.raises(RuntimeError, match="placed already"):
        ti.root.dense(ti.i, 4).place(word)


def test_tensors_read_and_store_quantised_fields(cpu):
    """Those with a shared exponent are read outside of programs only: a store would change the others."""
    fixed = ti.types.quant.fixed(bits=10, max_value=2.0)
    shared = ti.types.quant.float(exp=6, frac=13, signed=True)
    x, y = ti.field(ti.types.quant.int(5, True), name="x"), ti.field(fixed, name="y")
    a, b = ti.field(shared, name="a"), ti.field(shared, name="b")
    for fields, how in (((x, y), {}), ((a, b), {"shared_exponent": True})):
        word = ti.BitpackedFields(max_num_bits=32)
        word.place(*fields, **how)
        ti.root.dense(ti.i, 4).place(word)
    for i in range(4):
        x[i], y[i], a[i], b[i] = i - 2, i * 0.25, i * 3.0, -i * 0.5
    t, p = ti.tensor, ti.tensor.programs
    assert (t.asarray(x) * 2).tolist() == [-4, -2, 0, 2]
    assert (t.asarray(a) * t.asarray(b)).tolist() == [0, -1.5, -6, -13.5]

    @ti.program
    def step():
        i = p.indices(y)[0]
        y[i] = y[i] * 0.5 + 0.001
        return y[i] * 2, x[i] + 1

    doubled, more = step()
    # As rounded when they were stored: to multiples of 2 / 512.
    expected = np.round((np.arange(4) * 0.125 + 0.001) * 256) / 256
    np.testing.assert_allclose(y.to_numpy(), expected, atol=2e-3)
    np.testing.assert_array_equal(doubled.numpy(), y.to_numpy() * 2)
    assert more.tolist() == [-1, 0, 1, 2]

    @ti.program
    def spoil():
        a[p.indices(a)[0]] = 1.0

    with pytest.raises(ValueError, match="`a` shares its exponent with other fields"):
        spoil()
