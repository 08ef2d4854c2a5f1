"""Where gradients are kept: fields and arrays beside those they belong to."""

import gc

import numpy as np
import pytest

import aerogel as ti


def test_a_gradient_has_the_field_s_layout(arch):
    x = ti.field(ti.f32, shape=(3, 4), order="ji", offset=(-1, 2), name="x", needs_grad=True)
    v = ti.Vector.field(2, ti.f64, shape=5, needs_grad=True, layout=ti.Layout.SOA)
    assert (x.grad.shape, x.grad.dtype, x.grad.grad, x.dual, x.grad.name) == ((3, 4), ti.f32, None, None, "x.grad")
    assert str(x.grad.snode) == str(x.snode) == "ti.root => dense [4] => dense [3, 4] => place [3, 4]"
    assert x.grad[1, 5] == 0
    x.grad[1, 5] = 2
    assert (x[1, 5], x.grad[1, 5]) == (0, 2)
    v.grad[4] = [1, 2]
    assert v.grad[4].to_list() == [1, 2]
    assert (v.grad.n, v.grad.to_numpy().shape, v.to_numpy().sum()) == (2, (5, 2), 0)


def test_forward_mode_has_storage_of_its_own(arch):
    x = ti.field(ti.f32, shape=3, needs_dual=True)
    assert (x.grad, x.dual.shape) == (None, (3,))
    m = ti.field(ti.types.matrix(2, 2, ti.f32), shape=3, needs_dual=True, needs_grad=True)
    m.dual[1] = [[1, 2], [3, 4]]
    assert m.dual[1][1, 0] == 3
    assert m.grad[1][1, 0] == 0


def test_kernels_see_gradients(arch):
    x = ti.field(ti.f32, shape=4, needs_grad=True)
    s = ti.Struct.field({"a": ti.f32, "v": ti.types.vector(2, ti.f32)}, shape=4, needs_grad=True)

    @ti.kernel
    def write():
        for i in x:
            x.grad[i] = i
            x[i] += x.grad[i] * 2
            s.a.grad[i] += 1
            s.grad.v[i] = [i, 3]

    write()
    assert x.to_numpy().tolist() == [0, 2, 4, 6]
    assert x.grad.to_numpy().tolist() == [0, 1, 2, 3]
    assert s.grad.a[2] == s.grad[2].a == 1
    assert s.v.grad[3].to_list() == [3, 3]
    x.grad.fill(5)
    assert x.grad.to_numpy().tolist() == [5] * 4


def test_lazy_gradients_are_for_all_floats(arch):
    x, v, k = ti.field(ti.f32), ti.Vector.field(2, ti.f64), ti.field(ti.i32)
    ti.root.dense(ti.i, 4).place(x, v, k)
    # A field without a place of its own, as yet.
    assert not x.grad._is_placed() and k.grad is None
    ti.root.lazy_grad()
    assert x.grad.shape == v.grad.shape == (4,) and v.grad.n == 2
    assert k.grad is None and x.grad.grad is None


def test_lazy_gradients_are_for_fields_with_a_shape_too(arch):
    used = ti.field(ti.f32, 2)

    @ti.kernel
    def use():
        used[0] = 1

    use()
    x, v, loss = ti.field(float, ()), ti.Vector.field(2, float, 3), ti.field(float, ())
    with_offset, integers = ti.field(ti.f64, 3, offset=-1), ti.field(ti.i32, 3)
    ti.root.lazy_grad()
    # As in Taichi: what a kernel has used before has none.
    assert used.grad is None and integers.grad is None
    assert with_offset.grad[1] == 0 and v.grad.shape == (3,)

    @ti.kernel
    def run():
        for i in v:
            loss[None] += x[None] * v[i].sum()

    x[None] = 2
    v.fill(3)
    with ti.ad.Tape(loss):
        run()
    assert x.grad[None] == 18 and (v.grad.to_numpy() == 2).all()
    x.grad[None] = 5
    ti.root.lazy_grad()
    assert x.grad[None] == 5
    y = ti.field(float, 2)
    ti.root.lazy_dual()
    assert y.dual[1] == 0 and y.grad is None


def test_lazy_gradients_lie_beside_their_fields(arch):
    x = ti.field(ti.f32, needs_grad=True)
    y = ti.Vector.field(2, ti.f32, needs_grad=True, needs_dual=True)
    z = ti.field(ti.i32)
    block = ti.root.pointer(ti.i, 4)
    block.place(x, z, offset=2)
    block.dense(ti.j, 3).place(y)
    ti.root.lazy_grad()
    ti.root.lazy_dual()
    assert x.grad.parent() is x.parent()
    assert y.grad.parent() is y.dual.parent() is y.parent()
    assert (x.grad.shape, y.grad.shape) == ((4,), (4, 3))
    x.grad[5] = 3
    y.dual[3, 1] = [1, 2]
    assert (x[5], x.grad[5], y.dual[3, 1][1]) == (0, 3, 2)
    gc.collect()


def test_builders_place_gradients(arch):
    builder = ti.FieldsBuilder()
    x = ti.field(ti.f32, needs_grad=True)
    builder.dense(ti.i, 4).place(x)
    builder.lazy_grad()
    tree = builder.finalize()
    x.grad[1] = 2
    assert (x.grad[1], x[1]) == (2, 0)
    tree.destroy()
    with pytest.raises(ti.TaichiRuntimeError, match="no longer exists"):
        x.grad[1]


def test_gradients_placed_by_hand(arch):
    x = ti.field(ti.f32, needs_grad=True)
    ti.root.dense(ti.i, 4).place(x, x.grad)
    x.grad[2] = 1
    assert (x.grad[2], x.grad.parent() is x.parent()) == (1, True)


def test_a_gradient_that_is_nowhere(arch):
    x = ti.field(ti.f32, name="x", needs_grad=True)
    ti.root.dense(ti.i, 4).place(x)
    with pytest.raises(ti.TaichiRuntimeError, match="the gradient of `x` is not placed: call ti.root.lazy_grad"):
        x[1]
    ti.root.lazy_grad()
    assert x[1] == x.grad[1] == 0


def test_integers_have_none(arch):
    with pytest.raises(ti.TaichiRuntimeError, match="i32 is not supported for field with `needs_grad=True`"):
        ti.field(ti.i32, shape=3, needs_grad=True)
    with pytest.raises(ti.TaichiRuntimeError, match="i32 is not supported for field"):
        ti.Struct.field({"a": ti.f32, "n": ti.i32}, shape=3, needs_grad=True)
    with pytest.raises(ti.TaichiRuntimeError, match="i32 is not supported for ndarray"):
        ti.ndarray(ti.i32, 3, needs_grad=True)


def test_arrays_with_gradients(arch):
    x = ti.ndarray(ti.f32, (2, 3), needs_grad=True)
    v = ti.Vector.ndarray(3, ti.f32, 4, needs_grad=True)
    m = ti.ndarray(ti.types.matrix(2, 2, ti.f64), 4, needs_grad=True)
    assert (x.grad.shape, v.grad.element_shape, m.grad.element_shape) == ((2, 3), (3,), (2, 2))
    assert (x.grad.to_numpy() == np.zeros((2, 3))).all()

    @ti.kernel
    def take(a: ti.types.ndarray(ti.f32, 2, needs_grad=True)):
        a[1, 1] = 1

    take(x)
    with pytest.raises(ValueError, match="an array with a gradient is required"):
        take(ti.ndarray(ti.f32, (2, 3)))


def test_a_gradient_is_placed_after_its_field(arch):
    x, loss = ti.field(ti.f32, name="x"), ti.field(ti.f32, (), needs_grad=True)
    ti.root.dense(ti.i, 4).place(x)
    ti.root.dense(ti.i, 4).place(x.grad)

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i] ** 2

    x.fill(3)
    with ti.ad.Tape(loss):
        total()
    assert (x.grad.to_numpy() == 6).all()
    assert x.dual is None


def test_a_tape_clears_what_has_changed_since_the_last_one(arch):
    x, y, loss = (ti.field(ti.f32, shape=4, needs_grad=True, name=n) for n in "xyl")
    loss = ti.field(ti.f32, shape=(), needs_grad=True)
    v = ti.Vector.field(2, ti.f32, shape=3, needs_grad=True)
    block = ti.root.pointer(ti.i, 4)
    s = ti.field(ti.f32, needs_grad=True)
    block.dense(ti.i, 4).place(s, s.grad)

    @ti.kernel
    def run():
        for i in range(4):
            loss[None] += x[i] ** 2

    @ti.kernel
    def spoil():
        for i in y:
            y.grad[i] = 3
        v.grad[1][0] = 4
        s.grad[5] = 6

    def tape():
        with ti.ad.Tape(loss):
            run()
        assert x.grad.to_numpy().tolist() == [2, 2, 2, 2]
        for field in (y, v, s):
            assert not field.grad.to_numpy().any()

    def by_python():
        y.grad[2] = 1
        v.grad[2] = [1, 1]
        s.grad[1] = 1

    def by_component():
        v.grad.get_scalar_field(1)[0] = 7
        v.grad[0].x = 8

    def by_arrays():
        y.grad.from_numpy(np.ones(4, np.float32))
        v.grad.fill(2)
        s.grad.from_numpy(np.ones(16, np.float32))

    x.fill(1)
    for change in (lambda: None, spoil, by_python, by_component, by_arrays, lambda: None):
        change()
        tape()
        tape()
    # The tree of `x` is used by each tape, others are left alone between two.
    with ti.ad.Tape(loss, clear_gradients=False):
        run()
    assert x.grad.to_numpy().tolist() == [4, 4, 4, 4]
    ti.ad.clear_all_gradients()
    assert not x.grad.to_numpy().any()


def test_tangents_and_gradients_are_cleared_apart(arch):
    x = ti.field(ti.f32, shape=2, needs_grad=True, needs_dual=True)
    x.grad.fill(1)
    x.dual.fill(2)
    ti.ad.clear_all_gradients()
    assert (x.grad[0], x.dual[0]) == (0, 2)
    ti.ad.clear_all_gradients(ti.ad.SNodeGradType.DUAL)
    ti.ad.clear_all_gradients()
    assert (x.grad[0], x.dual[0]) == (0, 0)
