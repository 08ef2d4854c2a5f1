"""The programs of `ad_edges.py`, and programs whose state goes away: a right gradient or an error, never a wrong number."""

import threading

import ad_edges
import numpy as np
import pytest
from test_ad_tape import fields, squares

import aerogel as ti


@pytest.mark.parametrize("name", ad_edges.PROGRAMS)
def test_a_program(arch, name):
    ti.init(arch=arch, log_level="error", default_fp=ti.f64)
    program, message = ad_edges.PROGRAMS[name]
    may_fail = isinstance(message, tuple)
    run, loss, inputs, *rest = program()
    keywords = rest[0] if rest else {}
    if message is not None and not may_fail:
        with pytest.raises((RuntimeError, ti.AerogelCompilationError), match=message):
            ti.ad.check_grad(run, inputs, loss, **keywords)
        return
    try:
        check = ti.ad.check_grad(run, inputs, loss, **keywords)
    except ti.AerogelCompilationError as e:
        assert may_fail and message[1] in str(e)
        return
    assert check and len(check) > 0, str(check)


def test_enough_of_them():
    assert len(ad_edges.PROGRAMS) >= 60


def test_a_reset_under_a_tape(arch):
    x, y, loss = fields()
    square, total = squares(x, y, loss)
    x.fill(2)
    with pytest.raises(RuntimeError), ti.ad.Tape(loss):
        square()
        ti.reset()
        ti.init(arch=arch, log_level="error")
        total()
    # The next program begins without a tape.
    x, y, loss = fields()
    square, total = squares(x, y, loss)
    x.fill(2)
    with ti.ad.Tape(loss):
        square()
        total()
    assert x.grad[0] == 4


def test_a_layout_that_is_destroyed_under_a_tape(arch):
    _, _, loss = fields()
    builder = ti.FieldsBuilder()
    x = ti.field(ti.f64)
    builder.dense(ti.i, 3).place(x, x.grad)
    tree = builder.finalize()

    @ti.kernel
    def energy(x: ti.template()):
        for i in x:
            loss[None] += x[i] ** 2

    with pytest.raises(RuntimeError), ti.ad.Tape(loss):
        energy(x)
        tree.destroy()
    assert loss.grad[None] == 0


def test_a_kernel_that_is_defined_anew(arch):
    x, y, loss = fields()
    square, total = squares(x, y, loss)
    x.fill(2)
    with ti.ad.Tape(loss):
        square()

        @ti.kernel
        def square():  # noqa: F811
            for i in x:
                y[i] = 5 * x[i]

        total()
    # What was launched counts.
    assert x.grad[0] == 4


def test_a_kernel_that_fails_under_a_tape(debug):
    x, y, loss = fields()

    @ti.kernel
    def checked():
        for i in x:
            assert x[i] < 5, "too large"
            y[i] = x[i] ** 2

    _, total = squares(x, y, loss)
    x.fill(9)
    with pytest.raises(AssertionError, match="too large"), ti.ad.Tape(loss):
        checked()
    assert x.grad.to_numpy().tolist() == [0, 0, 0]
    x.fill(2)
    with ti.ad.Tape(loss):
        checked()
        total()
    assert x.grad[0] == 4


def test_a_failing_kernel_that_is_caught(debug):
    """Nobody knows what it has written before it failed."""
    x, y, loss = fields()
    square, total = squares(x, y, loss)

    @ti.kernel
    def fails():
        for i in x:
            y[i] = 7.0
            assert x[i] > 100, "too small"

    x.fill(2)
    with pytest.raises(RuntimeError, match="kernel `fails` failed under the tape"), ti.ad.Tape(loss):
        square()
        try:
            fails()
        except AssertionError:
            pass
        total()


def test_two_threads_with_a_tape_each(arch):
    results = {}

    def work(k):
        x, y, loss = made[k]
        square, total = kernels[k]
        with ti.ad.Tape(loss, clear_gradients=False):
            square()
            total()
        results[k] = x.grad[0]

    made = [fields() for _ in range(2)]
    kernels = [squares(*f) for f in made]
    for k, (x, _, _) in enumerate(made):
        x.fill(k + 1)
    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {0: 2, 1: 4}


def test_prints_and_appends_are_not_repeated(arch, capfd):
    x, y, loss = fields()
    listed = ti.field(ti.i32)
    list_node = ti.root.dynamic(ti.i, 64, 8)
    list_node.place(listed)
    count = ti.field(ti.i32, shape=())

    @ti.kernel
    def noisy():
        for i in x:
            print("at", i)
            listed.append(i)
            count[None] += 1
            loss[None] += x[i] ** 2

    @ti.kernel
    def length() -> ti.i32:
        return ti.length(list_node, [])

    x.fill(3)
    with ti.ad.Tape(loss):
        noisy()
    assert capfd.readouterr().out.count("at") == 3
    assert (length(), count[None], x.grad[0]) == (3, 3, 6)


def test_losses_that_are_inputs(arch):
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def nothing():
        pass

    with ti.ad.Tape(loss):
        nothing()
    assert loss.grad[None] == 1
    with ti.ad.Tape(loss):
        pass
    assert loss.grad[None] == 1


def test_numbers_that_are_not_finite(arch):
    """A gradient that is not finite is one, and stays where it belongs."""
    x, y, loss = fields()

    @ti.kernel
    def logs():
        for i in x:
            if x[i] > 0:
                loss[None] += ti.log(x[i])
            else:
                loss[None] += ti.select(x[i] < 0, x[i], ti.sqrt(x[i]) * 0)

    x.from_numpy(np.array([2.0, 0.0, -1.0]))
    with ti.ad.Tape(loss):
        logs()
    assert x.grad.to_numpy().tolist() == [0.5, 0, 1]
