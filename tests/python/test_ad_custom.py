"""Functions whose gradient is given, or that have none."""

import pytest
from test_ad_tape import fields, squares

import aerogel as ti


def test_a_gradient_that_is_given(arch):
    x, y, loss = fields()
    square, total = squares(x, y, loss)
    called = []

    @ti.ad.grad_replaced
    def forward(k):
        called.append("forward")
        square()
        return k + 1

    @ti.ad.grad_for(forward)
    def backward(k):
        called.append(k)
        for i in range(3):
            x.grad[i] += 10 * y.grad[i]

    x.fill(2)
    with ti.ad.Tape(loss):
        assert forward(5) == 6
        total()
    assert called == ["forward", 5]
    assert x.grad.to_numpy().tolist() == [10, 10, 10]
    assert forward(1) == 2


def test_methods(arch):
    @ti.data_oriented
    class Model:
        def __init__(self):
            self.x, _, self.loss = fields()

        @ti.kernel
        def energy(self):
            for i in self.x:
                self.loss[None] += self.x[i] ** 2

        @ti.ad.grad_replaced
        def run(self):
            self.energy()

        @ti.ad.grad_for(run)
        def run_back(self):
            self.energy.grad()

    model = Model()
    model.x.fill(3)
    with ti.ad.Tape(model.loss):
        model.run()
    assert model.x.grad.to_numpy().tolist() == [6, 6, 6]


def test_what_a_replaced_function_overwrites(arch):
    x, y, loss = fields()
    square, total = squares(x, y, loss)

    @ti.kernel
    def set_to(v: ti.f64):
        for i in x:
            x[i] = v

    @ti.ad.grad_replaced
    def forward():
        set_to(9)

    @ti.ad.grad_for(forward)
    def backward():
        pass

    x.fill(2)
    with ti.ad.Tape(loss):
        square()
        total()
        forward()
    assert x.grad.to_numpy().tolist() == [4, 4, 4]
    assert x[0] == 9


def test_no_gradient(arch):
    x, y, loss = fields()
    square, total = squares(x, y, loss)

    @ti.ad.no_grad
    def constant():
        square()
        return 3

    x.fill(2)
    with ti.ad.Tape(loss):
        assert constant() == 3
        total()
    assert x.grad.to_numpy().tolist() == [0, 0, 0]
    assert y.grad.to_numpy().tolist() == [1, 1, 1]
    assert constant() == 3


def test_a_kernel_without_gradient(arch):
    x, y, loss = fields()
    _, total = squares(x, y, loss)

    @ti.ad.no_grad
    @ti.kernel
    def square():
        for i in x:
            y[i] = x[i] * x[i]

    x.fill(2)
    with ti.ad.Tape(loss):
        square()
        total()
    assert x.grad[0] == 0


def test_mistakes(arch):
    x, y, loss = fields()
    square, total = squares(x, y, loss)
    with pytest.raises(ti.TaichiRuntimeError, match="`square` is a kernel: put it into a Python function"):
        ti.ad.grad_for(square)

    def plain():
        pass

    with pytest.raises(ti.TaichiRuntimeError, match="`plain` must be decorated by @ti.ad.grad_replaced"):
        ti.ad.grad_for(plain)

    @ti.ad.grad_replaced
    def alone():
        square()

    with (
        pytest.raises(ti.TaichiRuntimeError, match=r"write a function under @ti.ad.grad_for\(alone\)"),
        ti.ad.Tape(loss),
    ):
        alone()
    alone()


def test_a_gradient_that_ends(arch, capfd):
    ti.init(arch=arch, log_level="warn")
    x, y, loss = fields()
    between = ti.field(ti.f64, shape=3)

    @ti.kernel
    def run():
        for i in x:
            between[i] = x[i] ** 2
        for i in x:
            loss[None] += between[i]

    with ti.ad.Tape(loss):
        run()
    said = capfd.readouterr().err
    assert "depends on data with a gradient, but is stored in a field or array without one" in said
    assert "loss[None] += between[i]" in said and "ti.stop_grad(x[i])" in said


def test_stop_grad(arch):
    x, y, loss = fields()

    @ti.kernel
    def of_a_value():
        for i in x:
            loss[None] += x[i] * ti.stop_grad(x[i])

    @ti.kernel
    def of_a_field():
        for i in x:
            ti.stop_grad(y)
            loss[None] += x[i] * y[i]

    x.fill(3)
    y.fill(2)
    with ti.ad.Tape(loss):
        of_a_value()
    assert (loss[None], x.grad[0]) == (27, 3)
    with ti.ad.Tape(loss):
        of_a_field()
    assert (loss[None], x.grad[0], y.grad[0]) == (18, 2, 0)
