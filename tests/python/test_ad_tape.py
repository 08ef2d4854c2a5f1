"""Tapes: what is recorded, cleared, put back, and refused."""

import gc

import numpy as np
import pytest

import aerogel as ti


def fields(n=3, dtype=ti.f64, **kwargs):
    x = ti.field(dtype, shape=n, name="x", needs_grad=True, **kwargs)
    y = ti.field(dtype, shape=n, name="y", needs_grad=True, **kwargs)
    loss = ti.field(dtype, shape=(), name="loss", needs_grad=True)
    return x, y, loss


def squares(x, y, loss):
    @ti.kernel
    def square():
        for i in x:
            y[i] = x[i] * x[i]

    @ti.kernel
    def total():
        for i in y:
            loss[None] += y[i]

    return square, total


def test_a_tape(arch):
    x, y, loss = fields()
    square, total = squares(x, y, loss)
    x.from_numpy(np.array([1.0, 2, 3]))
    loss[None], x.grad[0], loss.grad[None] = 5, 7, 3
    with ti.ad.Tape(loss):
        assert (loss[None], loss.grad[None], x.grad[0]) == (0, 0, 0)
        square()
        total()
    assert loss[None] == 14
    assert x.grad.to_numpy().tolist() == [2, 4, 6]
    # What was consumed is zero, the gradient of the loss stays.
    assert y.grad.to_numpy().tolist() == [0, 0, 0]
    assert loss.grad[None] == 1


def test_gradients_add_up_without_clearing(arch):
    x, y, loss = fields()
    square, total = squares(x, y, loss)
    x.fill(1)
    x.grad[0] = 7
    with ti.ad.Tape(loss, clear_gradients=False):
        square()
        total()
    assert x.grad.to_numpy().tolist() == [9, 2, 2]


def test_gradients_by_hand(arch):
    x, y, loss = fields()
    square, total = squares(x, y, loss)
    x.from_numpy(np.array([1.0, 2, 3]))
    square()
    total()
    ti.ad.clear_all_gradients()
    loss.grad[None] = 2
    total.grad()
    square.grad()
    assert x.grad.to_numpy().tolist() == [4, 8, 12]
    assert repr(square.grad).startswith("<gradient of <ti.kernel")


def test_what_later_kernels_overwrite(arch):
    x, y, loss = fields()

    @ti.kernel
    def step():
        for i in x:
            x[i] = x[i] * x[i]

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i]

    x.from_numpy(np.array([1.1, 0.9, 1.2]))
    start = x.to_numpy()
    with ti.ad.Tape(loss):
        for _ in range(3):
            step()
        total()
    end = x.to_numpy()
    assert np.allclose(end, start**8, rtol=1e-12)
    assert np.allclose(x.grad.to_numpy(), 8 * start**7, rtol=1e-12)


def test_primal_fields_are_bit_equal_afterwards(arch):
    x, y, loss = fields(50, ti.f32)
    n = ti.field(ti.i32, shape=(), name="n")

    @ti.kernel
    def step(k: ti.f32):
        for i in x:
            x[i] = ti.sin(x[i] * k) + y[i]
            y[i] += x[i]
            ti.atomic_add(n[None], 1)

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i] * y[i]

    def run():
        x.from_numpy(np.linspace(0, 1, 50, dtype=np.float32))
        y.fill(0.25)
        n[None] = 0
        for k in range(4):
            step(0.5 + k)
        total()

    run()
    want = [x.to_numpy(), y.to_numpy()]
    with ti.ad.Tape(loss):
        run()
    assert (x.to_numpy() == want[0]).all()
    assert (y.to_numpy() == want[1]).all()
    assert n[None] == 200


def test_writes_of_python(arch):
    x, y, loss = fields()
    square, total = squares(x, y, loss)
    x.from_numpy(np.array([1.0, 2, 3]))
    with ti.ad.Tape(loss):
        square()
        x[0] = 100
        y[1] = 7
        total()
        x.fill(9)
        y.from_numpy(np.zeros(3))
    assert x.to_numpy().tolist() == [9, 9, 9]
    assert y.to_numpy().tolist() == [0, 0, 0]
    assert loss[None] == 1 + 7 + 9
    # The element that Python wrote does not depend on x, and x was 1, 2, 3 when it was read.
    assert x.grad.to_numpy().tolist() == [2, 0, 6]


@pytest.mark.parametrize("write", ["fill", "from_numpy", "copy_from", "element", "set_cells"])
def test_every_way_of_writing_is_recorded(arch, write):
    x, y, loss = fields()
    square, total = squares(x, y, loss)
    other = ti.field(ti.f64, shape=3)
    other.fill(5)
    x.fill(3)
    ways = {
        "fill": lambda: x.fill(5),
        "from_numpy": lambda: x.from_numpy(np.full(3, 5.0)),
        "copy_from": lambda: x.copy_from(other),
        "element": lambda: [x.__setitem__(i, 5) for i in range(3)],
        "set_cells": lambda: x.set_cells(np.arange(3, dtype=np.int32), np.full(3, 5.0)),
    }
    with ti.ad.Tape(loss):
        square()
        total()
        ways[write]()
    assert x.to_numpy().tolist() == [5, 5, 5]
    # What is overwritten after it was read has a gradient; the field that Python wrote ends with it.
    assert x.grad.to_numpy().tolist() == [6, 6, 6]
    with ti.ad.Tape(loss):
        x.fill(3)
        ways[write]()
        square()
        total()
    assert x.grad.to_numpy().tolist() == [0, 0, 0]


def test_a_copy_passes_its_gradient_on(arch):
    x, y, loss = fields()
    _, total = squares(x, y, loss)
    a, b = (ti.ndarray(ti.f64, 3, needs_grad=True) for _ in range(2))

    @ti.kernel
    def of_array(a: ti.types.ndarray()):
        for i in a:
            loss[None] += a[i] ** 2

    x.fill(2)
    a.fill(3)
    with ti.ad.Tape(loss):
        y.copy_from(x)
        total()
        b.copy_from(a)
        of_array(b)
    assert x.grad.to_numpy().tolist() == [1, 1, 1]
    assert y.grad.to_numpy().tolist() == [0, 0, 0]
    assert (a.grad[0], b.grad[0]) == (6, 0)


def test_components_of_vectors(arch):
    v = ti.Vector.field(2, ti.f64, shape=2, needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def total():
        for i in v:
            loss[None] += v[i].dot(v[i])

    v.fill(3)
    with ti.ad.Tape(loss):
        total()
        v[0][1] = 8
        total()
    assert v.grad.to_numpy().tolist() == [[12, 6], [12, 12]]
    assert v[0][1] == 8


def test_one_field_for_all_steps_needs_no_copies(arch):
    n = 200
    x = ti.field(ti.f64, shape=(n + 1, 16), needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def step(t: ti.i32):
        for i in range(16):
            x[t + 1, i] = x[t, i] * 1.01

    @ti.kernel
    def total():
        for i in range(16):
            loss[None] += x[n, i]

    for i in range(16):
        x[0, i] = i
    with ti.ad.Tape(loss) as tape:
        for t in range(n):
            step(t)
        total()
    assert tape.entries.nbytes == 0
    assert np.allclose(x.grad.to_numpy()[0], 1.01**n)


def test_boxes_are_kept_and_nothing_else(arch):
    x = ti.field(ti.f32, shape=(64, 64), needs_grad=True)
    loss = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def read(a: ti.i32, b: ti.i32):
        for i, j in ti.ndrange((a, b), 64):
            loss[None] += x[i, j] ** 2

    @ti.kernel
    def write(a: ti.i32, b: ti.i32):
        for i, j in ti.ndrange((a, b), (1, 3)):
            x[i, j] = 5

    x.fill(1)
    with ti.ad.Tape(loss) as tape:
        read(0, 8)
        write(8, 20)
        assert tape.entries.nbytes == 0
        write(6, 10)
        assert tape.entries.nbytes == 4 * 2 * 2
    assert (x.grad.to_numpy()[:8] == 2).all()
    assert x[7, 2] == 5


def test_double_buffers(arch):
    x = ti.field(ti.f64, shape=(2, 8), needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def step(t: ti.i32):
        for i in range(8):
            x[(t + 1) % 2, i] = x[t % 2, i] ** 2

    @ti.kernel
    def total():
        for i in range(8):
            loss[None] += x[1, i]

    x.fill(1.1)
    with ti.ad.Tape(loss) as tape:
        for t in range(5):
            step(t)
        total()
    assert 0 < tape.entries.nbytes <= 8 * 8 * 5
    assert np.allclose(x.grad.to_numpy()[0], 32 * 1.1**31)
    assert np.allclose(x[1, 0], 1.1**32)


def test_random_numbers_are_drawn_again(arch):
    x, y, loss = fields()

    @ti.kernel
    def scale():
        for i in x:
            loss[None] += x[i] * y[i] * ti.random(ti.f64)

    x.fill(2)
    y.fill(1)
    with ti.ad.Tape(loss):
        scale()
    assert loss[None] == pytest.approx(2 * x.grad.to_numpy().sum())


def test_kernels_that_return_values(arch):
    x, y, loss = fields()
    square, total = squares(x, y, loss)

    @ti.kernel
    def first() -> ti.f64:
        return x[0] * 2

    x.fill(3)
    with ti.ad.Tape(loss):
        assert first() == 6
        square()
        total()
    assert x.grad.to_numpy().tolist() == [6, 6, 6]


def test_methods(arch):
    @ti.data_oriented
    class Model:
        def __init__(self):
            self.x, _, self.loss = fields()

        @ti.kernel
        def energy(self, k: ti.f64):
            for i in self.x:
                self.loss[None] += k * self.x[i] ** 2

    a, b = Model(), Model()
    a.x.fill(1)
    b.x.fill(10)
    for model in (a, b):
        with ti.ad.Tape(model.loss):
            model.energy(3)
    assert (a.x.grad[0], b.x.grad[0]) == (0, 60)
    ti.ad.clear_all_gradients()
    a.loss.grad[None] = 1
    a.energy.grad(2)
    a.energy.grad(k=2)
    assert (a.x.grad[0], b.x.grad[0]) == (8, 0)
    assert a.energy == a.energy and a.energy != b.energy


def test_arrays(arch):
    @ti.kernel
    def total(a: ti.types.ndarray(), out: ti.types.ndarray()):
        for i in a:
            out[0] += a[i] ** 2

    a, out = ti.ndarray(ti.f64, 3, needs_grad=True), ti.ndarray(ti.f64, 1, needs_grad=True)
    a.fill(2)
    out.fill(9)
    with ti.ad.Tape(out):
        total(a, out)
    assert out[0] == 12
    assert a.grad.to_numpy().tolist() == [4, 4, 4]
    # The gradients of arrays add up until they are cleared.
    with ti.ad.Tape(out):
        total(a, out)
    assert a.grad.to_numpy().tolist() == [8, 8, 8]
    a.grad.fill(0)
    with ti.ad.Tape(out):
        total(a, out)
        a.fill(7)
    assert a.grad.to_numpy().tolist() == [4, 4, 4]
    assert a.to_numpy().tolist() == [7, 7, 7]
    with ti.ad.Tape(out):
        total(np.ones(3), out)
    with pytest.raises(RuntimeError, match="`a` and `out` of kernel `total` share memory"), ti.ad.Tape(out):
        total(out, out)


def test_captured_arrays(arch):
    a, out = ti.ndarray(ti.f64, 3, needs_grad=True), ti.ndarray(ti.f64, (), needs_grad=True)
    a.fill(2)

    @ti.kernel
    def total(k: ti.f64):
        for i in a:
            out[None] += k * a[i] ** 2

    with ti.ad.Tape(out):
        total(3)
    assert a.grad.to_numpy().tolist() == [12, 12, 12]


def test_losses_that_are_none(arch):
    x, y, loss = fields()
    square, _ = squares(x, y, loss)
    array = ti.ndarray(ti.f64, 3, needs_grad=True)
    wrong = {
        "must be a 0-D field, i.e. a scalar; `x` has shape": x,
        "has no gradient: make it with needs_grad=True": ti.field(ti.f32, shape=()),
        "holds i32: only floats have derivatives": ti.field(ti.i32, shape=()),
        "not nothing": None,
        "not str": "loss",
        "not float": 1.0,
        "must be an array with only one element": array,
        "an array, has no gradient": ti.ndarray(ti.f64, 1),
    }
    x.grad[0] = 5
    for message, given in wrong.items():
        with pytest.raises(RuntimeError, match=message), ti.ad.Tape(given):
            raise AssertionError("the tape began")
    with (
        pytest.raises(RuntimeError, match="the seed of the loss of a tape, `x`, has shape"),
        ti.ad.Tape(x, seed=[1, 2]),
    ):
        pass
    # Nothing has been cleared.
    assert x.grad[0] == 5
    square()


def test_a_tape_inside_a_tape(arch):
    x, y, loss = fields()
    square, total = squares(x, y, loss)
    x.fill(2)
    for inner in (lambda: ti.ad.Tape(loss), lambda: ti.ad.FwdMode(loss=dual, param=dual)):
        dual = ti.field(ti.f64, shape=(), needs_dual=True)
        with pytest.raises(ti.TaichiRuntimeError, match="cannot begin inside a tape"), ti.ad.Tape(loss):
            square()
            with inner():
                total()
    with ti.ad.Tape(loss):
        square()
        total()
    assert x.grad[1] == 4


def test_an_exception_inside(arch):
    x, y, loss = fields()
    square, total = squares(x, y, loss)
    x.fill(2)
    with pytest.raises(KeyError), ti.ad.Tape(loss):
        square()
        raise KeyError("mine")
    assert x.grad.to_numpy().tolist() == [0, 0, 0]
    square()
    with ti.ad.Tape(loss):
        square()
        total()
    assert x.grad.to_numpy().tolist() == [4, 4, 4]


def test_an_exception_on_the_way_back(arch):
    x, y, loss = fields()
    square, total = squares(x, y, loss)

    @ti.ad.grad_replaced
    def fails():
        square()

    @ti.ad.grad_for(fails)
    def fails_back():
        raise KeyError("mine")

    x.fill(2)
    with pytest.raises(KeyError), ti.ad.Tape(loss):
        fails()
        total()
        x.fill(9)
        y.fill(8)
    assert (x[0], y[0], loss[None]) == (9, 8, 12)
    assert (x.grad[0], y.grad[0], loss.grad[None]) == (0, 0, 0)
    x.grad.fill(3)
    with pytest.raises(KeyError), ti.ad.Tape(loss, clear_gradients=False):
        fails()
        total()
    assert (x.grad[0], y.grad[0], loss.grad[None]) == (3, 0, 0)
    with ti.ad.Tape(loss):
        square()
        total()
    assert x.grad[0] == 18


def test_gradients_are_computed_once(arch):
    x, y, loss = fields()
    square, total = squares(x, y, loss)
    with ti.ad.Tape(loss) as tape:
        square()
        total()
    with pytest.raises(RuntimeError, match="computed only once"):
        tape.grad()
    # The same tape can be recorded again.
    x.fill(5)
    with tape:
        square()
        total()
    assert x.grad[0] == 10


def test_seeds(arch):
    x, y, loss = fields()
    square, _ = squares(x, y, loss)
    x.from_numpy(np.array([1.0, 2, 3]))
    with ti.ad.Tape(y, seed=[1, 0, 2]):
        square()
    assert x.grad.to_numpy().tolist() == [2, 0, 12]
    assert ti.ad.vjp(square, y, x, seed=np.array([0, 1, 0])).tolist() == [0, 4, 0]
    with pytest.raises(RuntimeError, match="give a `seed` of that shape"), ti.ad.Tape(y):
        square()


def test_several_losses(arch):
    x, y, loss = fields()
    square, total = squares(x, y, loss)
    x.fill(3)
    with ti.ad.Tape([y, loss], seed=[[1, 0, 0], 2]):
        square()
        total()
    assert x.grad.to_numpy().tolist() == [18, 12, 12]


def test_most_memory(arch):
    ti.init(arch=arch, ad_memory="1 KiB", log_level="error")
    x, y, loss = fields(1000)

    @ti.kernel
    def step():
        for i in x:
            x[i] = x[i] ** 2

    x.fill(1)
    with pytest.raises(MemoryError, match="the tape would save more than 1024 bytes"), ti.ad.Tape(loss):
        step()
    with pytest.raises(ValueError, match="ad_memory is a number of bytes"):
        ti.init(arch=arch, ad_memory="much")
    with pytest.raises(TypeError, match="ad_memory is a number of bytes"):
        ti.init(arch=arch, ad_memory=True)


def test_validation_finds_arrays_that_change_by_themselves(arch):
    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    x = ti.field(ti.f64, shape=3, needs_grad=True)

    @ti.kernel
    def total(a: ti.types.ndarray()):
        for i in a:
            loss[None] += a[i] * x[i]

    a = np.ones(3)
    with pytest.raises(RuntimeError, match="modified outside of kernels"), ti.ad.Tape(loss, validation=True):
        total(a)
        a[1] = 5
    with ti.ad.Tape(loss, validation=True):
        total(a)
    assert x.grad.to_numpy().tolist() == [1, 5, 1]


def test_tapes_keep_nothing_alive(arch):
    x, y, loss = fields()
    square, total = squares(x, y, loss)
    with ti.ad.Tape(loss):
        square()
    gc.collect()
    ti._native.drop_spares()
    before = ti._native.live_bytes()
    for _ in range(3):
        with ti.ad.Tape(loss):
            square()
            x.fill(2)
            total()
    gc.collect()
    ti._native.drop_spares()
    assert ti._native.live_bytes() == before


def test_threads_have_tapes_of_their_own(arch):
    import threading

    x, y, loss = fields()
    square, total = squares(x, y, loss)
    x.fill(2)
    with ti.ad.Tape(loss) as tape:
        square()
        other = threading.Thread(target=square)
        other.start()
        other.join()
        total()
    assert len(tape.entries.all) == 2
    assert x.grad[0] == 4


def test_old_names(arch):
    x, y, loss = fields()
    square, total = squares(x, y, loss)
    x.fill(2)
    from aerogel.ad._ad import Tape, clear_all_gradients

    with ti.Tape(loss=loss):
        square()
        total()
    assert x.grad[0] == 4
    assert Tape is ti.ad._ad.Tape is ti.ad.Tape
    clear_all_gradients(ti.ad._ad.SNodeGradType.ADJOINT)
    assert x.grad[0] == 0


def test_gradients_that_end_between_kernels_are_told_of(capfd):
    ti.init(arch=ti.cpu, default_fp=ti.f64, log_level="warn")
    x, loss = ti.field(float, 4, needs_grad=True), ti.field(float, (), needs_grad=True)
    between = ti.field(float, 4, name="between")

    @ti.kernel
    def first():
        for i in x:
            between[i] = x[i] ** 2

    @ti.kernel
    def second():
        for i in between:
            loss[None] += between[i]

    @ti.kernel
    def meant():
        for i in between:
            loss[None] += ti.stop_grad(between[i])

    with ti.ad.Tape(loss):
        first()
        meant()
    assert "between" not in capfd.readouterr().err
    for _ in range(2):
        with ti.ad.Tape(loss):
            first()
            second()
    told = capfd.readouterr().err
    assert (
        told.count("kernel `second` reads `between`, which kernel `first` has computed from data with a gradient") == 1
    )
    assert x.grad.to_numpy().tolist() == [0, 0, 0, 0]
