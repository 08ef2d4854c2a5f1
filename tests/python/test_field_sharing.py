"""Dense fields whose memory other packages access without a copy."""

import gc

import numpy as np
import pytest

import aerogel as ti


def strided():
    """Fields of all kinds of layouts that NumPy's strides express."""
    columns, others = ti.field(ti.f32), ti.field(ti.i32)
    ti.root.dense(ti.j, 4).dense(ti.i, 8).place(columns, others)
    blocks = ti.field(ti.i16)
    ti.root.dense(ti.ij, 4).dense(ti.ij, (8, 2)).place(blocks)
    return [
        ti.field(ti.f32, (3, 4)),
        ti.field(ti.f64, ()),
        ti.field(ti.u1, 5),
        ti.field(ti.f16, 5, offset=-2),
        ti.Vector.field(3, ti.f32, 5),
        ti.Vector.field(3, ti.f32, 5, layout=ti.Layout.SOA),
        ti.Vector.field(3, ti.f32, 5).get_scalar_field(1),
        ti.Matrix.field(2, 3, ti.f64, (2, 4)),
        columns,
        others,
        blocks,
    ]


def test_numpy_shares_the_memory_of_dense_fields(cpu):
    for x in strided():
        seen = np.from_dlpack(x)
        assert seen.shape == x.to_numpy().shape and seen.dtype == x.to_numpy().dtype
        given = (np.arange(seen.size) % 7).reshape(seen.shape).astype(seen.dtype)
        x.from_numpy(given)
        assert np.array_equal(seen, given)
        there = x.__array__(copy=False)
        there[...] = given[..., ::-1] if given.ndim else 3
        assert np.array_equal(x.to_numpy(), there)


def test_kernels_see_what_others_write(cpu):
    x = ti.Vector.field(2, ti.f32, 4)

    @ti.kernel
    def double():
        for i in x:
            x[i] *= 2

    seen = np.from_dlpack(x)
    seen[1] = [3, 4]
    double()
    assert seen[1].tolist() == [6, 8]


def test_the_memory_lives_as_long_as_its_arrays(cpu):
    x = ti.field(ti.i32, 1000)
    x.fill(7)
    seen = np.from_dlpack(x)
    ti.reset()
    del x
    gc.collect()
    ti.init(arch=ti.cpu, log_level="error")
    ti.field(ti.i32, 1000).fill(1)
    assert (seen == 7).all()


def test_gradients_written_by_others_count(cpu):
    x = ti.field(ti.f32, 3, needs_grad=True)
    loss = ti.field(ti.f32, (), needs_grad=True)

    @ti.kernel
    def sum_up():
        for i in x:
            loss[None] += 3 * x[i]

    seen = np.from_dlpack(x.grad)
    for _ in range(2):
        loss[None] = 0
        with ti.ad.Tape(loss):
            sum_up()
        assert seen.tolist() == [3, 3, 3]
        seen[...] = 100


def test_layouts_that_are_no_strided_arrays(cpu):
    sparse, blocked, quantised = ti.field(ti.f32), ti.field(ti.f32), ti.field(ti.types.quant.int(6))
    ti.root.pointer(ti.i, 4).place(sparse)
    # Dense blocks lie in memory as one, unless sparse nodes share them.
    outer = ti.root.dense(ti.i, 4)
    outer.dense(ti.i, 4).place(blocked)
    outer.pointer(ti.i, 4).place(ti.field(ti.f32))
    word = ti.BitpackedFields(max_num_bits=32)
    word.place(quantised)
    ti.root.dense(ti.i, 4).place(word)
    apart = ti.Vector.field(3, ti.f32, name="apart")
    ti.root.dense(ti.i, 4).place(apart.get_scalar_field(0), ti.field(ti.i32), apart.get_scalar_field(1))
    ti.root.dense(ti.i, 4).place(apart.get_scalar_field(2))
    for x, why in (
        (sparse, "sparse layout"),
        (blocked, "divides an axis into blocks"),
        (quantised, "quantised"),
        (apart, "field `apart` has components that are not evenly spaced"),
    ):
        with pytest.raises(ValueError, match=f"{why}.*leave out copy=False"):
            x.__array__(copy=False)
        with pytest.raises(BufferError, match="leave out copy=False"):
            x.__dlpack__(copy=False)
        # Without the request there is a copy.
        assert np.from_dlpack(x).shape == x.to_numpy().shape


class Copying:
    """A field of which packages are given copies, as by ``from_dlpack(x, copy=True)`` of NumPy 2."""

    def __init__(self, field):
        self._field = field

    def __dlpack__(self, **kwargs):
        return self._field.__dlpack__(**{**kwargs, "copy": True})

    def __dlpack_device__(self):
        return self._field.__dlpack_device__()


def test_copies_on_request(cpu):
    x = ti.field(ti.f32, 3)
    with pytest.raises(ValueError, match="elements of f32 are copied to become float64"):
        x.__array__(np.dtype("float64"), copy=False)
    copies = [np.asarray(x), np.from_dlpack(Copying(x))]
    shared = x.__array__(np.dtype("float32"), copy=False)
    x.fill(1)
    assert [seen.tolist() for seen in (*copies, shared)] == [[0, 0, 0], [0, 0, 0], [1, 1, 1]]


def test_kernels_that_access_a_field_twice(cpu):
    x, y = ti.field(ti.f32, 4, name="x"), ti.field(ti.f32, 4)
    left, right = ti.field(ti.f32), ti.field(ti.f32)
    ti.root.dense(ti.i, 4).place(left, right)

    @ti.kernel
    def add_to_x(a: ti.types.ndarray(ti.f32, 1)):
        for i in x:
            x[i] += a[i]

    @ti.kernel
    def add_to(a: ti.types.ndarray(ti.f32, 1)):
        for i in x:
            a[i] += x[i] + right[i]

    @ti.kernel
    def total(a: ti.types.ndarray(ti.f32, 1)) -> ti.f32:
        s = 0.0
        for i in x:
            s += a[i] * x[i]
        return s

    x.fill(2)
    for kernel in (add_to_x, add_to):
        with pytest.raises(ValueError, match="`a` of kernel `add_to.*over the memory of the field `x`"):
            kernel(np.from_dlpack(x))
    assert total(np.from_dlpack(x)) == 16
    y.fill(3)
    add_to_x(np.from_dlpack(y))
    add_to(np.from_dlpack(y))
    assert x.to_numpy().tolist() == [5] * 4 and y.to_numpy().tolist() == [8] * 4
    # Another field of the same layout.
    add_to(np.from_dlpack(left))
    assert left.to_numpy().tolist() == [5] * 4
    with pytest.raises(ValueError, match="over the memory of the field"):
        add_to(np.from_dlpack(right))


def test_bf16_has_its_dtype_in_numpy(cpu):
    h = ti.field(ti.bf16, 3)
    h.fill(1.5)
    shared = h.__array__(copy=False)
    assert shared.dtype == h.to_numpy().dtype and shared.astype(np.float32).tolist() == [1.5] * 3
