"""Gradients, modules and optimizers in TensorFrost's words."""

import importlib.util
import json
import pathlib

import numpy as np
import pytest

from aerogel.tensor import frost as tf

HERE = pathlib.Path(__file__).parent
_spec = importlib.util.spec_from_file_location("frost_learning_cases", HERE.parent / "oracle" / "frost_learning.py")
cases = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(cases)
ANSWERS = json.loads((HERE / "answers" / "frost_learning.json").read_text())
X = np.array([1, 2, 3, 4], np.float32)


@pytest.fixture(autouse=True)
def _start():
    tf.initialize(tf.cpu)


def run(function, *inputs):
    results = tf.compile(function)(*(tf.tensor(np.array(x, np.float32)) for x in inputs))
    return [r.numpy for r in (results if isinstance(results, tuple) else [results])]


# Optimizers, against numbers that TensorFrost gave.


@pytest.mark.parametrize("name", cases.CASES)
def test_optimizers(name):
    got = cases.run(tf, name)
    assert len(got) == len(ANSWERS[name])
    for ours, answer in zip(got, ANSWERS[name]):
        assert list(ours.shape) == answer["shape"]
        # Its powers are those of fast maths.
        np.testing.assert_allclose(ours.ravel(), answer["numbers"], rtol=2e-5, atol=2e-5)


def test_settings_are_inputs():
    """A learning rate that is a parameter, or an input of the program, needs no other program."""

    class Net(tf.Module):
        def __init__(self):
            self.a = tf.Parameter([2], tf.float32)

        def loss(self, x):
            return tf.sum(self.a * x)

    def made():
        rate = tf.Parameter([1], tf.float32, random_scale=0.0, random_offset=0.25, optimize=False)
        return tf.optimizers.sgd(Net(), learning_rate=rate)

    def step():
        x, optimizer = tf.input([2], tf.float32), made()
        optimizer.initialize_input()
        optimizer.step(optimizer.net.loss(x))
        return optimizer.parameters()

    compiled, optimizer = tf.compile(step), made()
    optimizer.initialize_parameters()
    assert [name for name, _ in optimizer.named_parameters()] == ["a", "learning_rate", "t"]
    for rate in (0.25, 1.0):
        optimizer.net.a = tf.tensor(np.zeros(2, np.float32))
        optimizer.learning_rate = tf.tensor(np.array([rate], np.float32))
        optimizer.update_parameters(compiled(np.array([1, 2], np.float32), optimizer))
        assert optimizer.net.a.numpy.tolist() == [-rate, -2 * rate]
    assert compiled.trace_count == 1 and optimizer.t.numpy.tolist() == [2]


def test_norms_bound_gradients_of_zero():
    class Net(tf.Module):
        def __init__(self):
            self.a = tf.Parameter([2], tf.float32, random_scale=0.0)

        def loss(self, x, y):
            return tf.sum(self.a * x)

    def made():
        optimizer = tf.optimizers.sgd(Net(), learning_rate=1.0, grad_clip=1.0)
        optimizer.set_clipping_type(tf.clipping.norm)
        return optimizer

    def step():
        x, optimizer = tf.input([2], tf.float32), made()
        optimizer.initialize_input()
        optimizer.step(x, x)
        return optimizer.net.a

    compiled, optimizer = tf.compile(step), made()
    optimizer.initialize_parameters()
    for x, expected in (([0.3, 0.4], [-0.3, -0.4]), ([0, 0], [0, 0]), ([3e3, 4e3], [-0.6, -0.8])):
        got = compiled(np.array(x, np.float32), optimizer).numpy
        np.testing.assert_allclose(got, expected, rtol=1e-6)


# Gradients.


def test_several_elements_have_the_gradient_of_their_sum():
    def squares():
        x = tf.input([-1], tf.float32)
        y = tf.sin(x)
        at = tf.indices([3])[0]
        near = x[at] * x[at + 1]
        unrelated = tf.input([-1], tf.float32)
        return tf.grad(x * x, x), tf.grad(y * y * x, y), tf.grad(near, x), tf.grad(x * x, x, x), tf.grad(x, unrelated)

    first, by_y, by_gather, seeded, nothing = run(squares, X, X)
    np.testing.assert_allclose(first, 2 * X)
    np.testing.assert_allclose(by_y, 2 * np.sin(X) * X, rtol=1e-6)
    assert by_gather.tolist() == [2, 4, 6, 3]
    np.testing.assert_allclose(seeded, 2 * X * X)
    assert not nothing.any()


def test_values_that_are_set_and_scalars():
    def both():
        x = tf.input([-1], tf.float32)
        y, a = x * 2.0, tf.const(2.0)
        y.val = y * x
        gradient = tf.grad(tf.sum(x * x * x), x)
        return tf.grad(y, x), tf.grad(x * a, a), tf.grad(gradient, x), *tf.grad(x * a, [x, a])

    of_set, of_const, second, *several = run(both, X)
    np.testing.assert_allclose(of_set, 4 * X)
    assert of_const.tolist() == [10] and several[1].tolist() == [10] and several[0].tolist() == [2] * 4
    np.testing.assert_allclose(second, 6 * X)


def test_gradients_of_integers_are_refused():
    def whole():
        x = tf.input([-1], tf.int32)
        return tf.grad(x * x, x)

    with pytest.raises(TypeError, match="float tensors"):
        tf.compile(whole)


def test_detached_and_passed_gradients():
    def through():
        x = tf.input([-1], tf.float32)
        return (
            tf.grad(x * tf.sin(x).detach_grad(), x),
            tf.grad(x * tf.floor(x).pass_grad(), x),
            tf.grad(tf.sign(x * 2.0).pass_grad() * 3.0, x),
            tf.floor(x).pass_grad(),
        )

    x = np.array([1.25, -2.5, 3.75, np.inf], np.float32)
    detached, floors, signs, values = run(through, x)
    np.testing.assert_allclose(detached[:3], np.sin(x[:3]), rtol=1e-6)
    np.testing.assert_allclose(floors[:3], np.floor(x[:3]) + x[:3])
    assert signs[:3].tolist() == [6, 6, 6] and values.tolist() == np.floor(x).tolist()


def test_what_passes_no_gradient():
    def of_product():
        x = tf.input([-1], tf.float32)
        return (x * x).pass_grad()

    def of_operand_that_was_set():
        x = tf.input([-1], tf.float32)
        u = x + 0.0
        y = tf.floor(u)
        u.val = u * 2.0
        return y.pass_grad()

    with pytest.raises(TypeError, match=r"as in `tf.floor\(x\).pass_grad\(\)`"):
        tf.compile(of_product)
    with pytest.raises(RuntimeError, match="was modified in between"):
        tf.compile(of_operand_that_was_set)


def test_operations_with_gradients_of_their_own():
    """`vjp` is what the gradient is, whatever the operation computes."""
    tf.register_custom_operation(
        "product",
        ["ff_f"],
        lambda inputs, output, axes: [inputs[0] * inputs[1]],
        lambda inputs, gradient, tensor: [gradient * inputs[1] * 10.0, gradient * inputs[0] * 100.0],
    )
    tf.register_custom_operation(
        "exponential",
        ["f_f"],
        lambda inputs, output, axes: [tf.exp(inputs[0])],
        lambda inputs, gradient, tensor: [gradient * tensor],
    )
    tf.register_custom_operation(
        "total",
        ["f_f"],
        lambda inputs, output, axes: [tf.sum(inputs[0])],
        lambda inputs, gradient, tensor: [inputs[0] * 0.0 + gradient],
    )

    def use():
        x = tf.input([-1], tf.float32)
        y = tf.input(x.shape, tf.float32)
        z, e = tf.custom("product", [x, y]), tf.custom("exponential", [x * 0.5])
        both = tf.grad(z * 2.0, [x, y])
        return z, *both, e, tf.grad(e, x), tf.grad(tf.custom("total", [x * x]) * 3.0, x)

    z, by_x, by_y, e, by_e, total = run(use, X, X + 1)
    np.testing.assert_allclose(z, X * (X + 1))
    np.testing.assert_allclose(by_x, 20 * (X + 1))
    np.testing.assert_allclose(by_y, 200 * X)
    np.testing.assert_allclose(e, np.exp(X / 2), rtol=1e-6)
    np.testing.assert_allclose(by_e, np.exp(X / 2) / 2, rtol=1e-6)
    np.testing.assert_allclose(total, 6 * X)


def test_a_derivative_without_bound_is_no_value():
    """Where a gradient is infinite, the result is not NaN, and the gradient is not silently zero."""
    tf.register_custom_operation(
        "root",
        ["f_f"],
        lambda inputs, output, axes: [tf.sqrt(inputs[0])],
        lambda inputs, gradient, tensor: [gradient / (2.0 * tensor)],
    )

    def root():
        x = tf.input([-1], tf.float32)
        y = tf.custom("root", [x])
        return y, tf.grad(y, x)

    value, gradient = run(root, [0, 4])
    assert value.tolist() == [0, 2] and not np.isfinite(gradient[0])
    assert run(root, [1, 4])[1].tolist() == [0.5, 0.25]


def test_operations_that_are_wrong():
    tf.register_custom_operation("few", ["ff_f"], lambda i, o, a: [i[0] * i[1]], lambda i, g, t: [g])
    tf.register_custom_operation("many", ["f_f"], lambda i, o, a: [i[0], i[0]], lambda i, g, t: [g])

    def few():
        x = tf.input([-1], tf.float32)
        return tf.custom("few", [x, x])

    def many():
        return tf.custom("many", [tf.input([-1], tf.float32)])

    with pytest.raises(ValueError, match="returns 1 gradients for 2 operands"):
        tf.compile(few)
    with pytest.raises(ValueError, match="must have one result, not 2"):
        tf.compile(many)
    with pytest.raises(ValueError, match="no operation is registered as 'none'"):
        tf.custom("none", [])


# Modules.


class Inner(tf.Module):
    def __init__(self):
        super().__init__()
        self.q = tf.Parameter([7], tf.float32)
        self.p = tf.Parameter([6], tf.float32)


class Outer(tf.Module):
    def __init__(self):
        super().__init__()
        self.z = tf.Parameter([1], tf.float32)
        self.several = tf.ParameterArray()
        for k in (2, 0, 1):
            self.several[k] = tf.Parameter([k + 1], tf.float32)
        self.inner = Inner()
        self.a = tf.Parameter([2], tf.float32, optimize=False)
        self.number = 3


def test_the_order_of_parameters():
    """Those of modules first, then a module's own, then those in arrays: as TensorFrost's."""
    outer = Outer()
    outer.initialize_parameters()
    assert [(name, p.shape) for name, p in outer.named_parameters()] == [
        ("q", (7,)), ("p", (6,)), ("z", (1,)), ("a", (2,)), ("several[0]", (1,)), ("several[1]", (2,)), ("several[2]", (3,)),
    ]  # fmt: skip
    assert outer.requires_grads_list() == [True, True, True, False, True, True, True]
    assert outer.param_requires_grad("z") and not outer.param_requires_grad("a")
    assert outer.hasattr("z") and not outer.hasattr("y") and outer.number == 3

    outer.update_parameters([tf.tensor(np.full(p.shape, k, np.float32)) for k, p in enumerate(outer.parameters())])
    assert [p.numpy.ravel()[0] for p in outer.parameters()] == list(range(7))
    assert outer.inner.p.numpy.tolist() == [1] * 6 and outer.several[2].numpy.tolist() == [6] * 3
    with pytest.raises(IndexError, match="1 values for 7 parameters"):
        outer.update_parameters([outer.z])
    with pytest.raises(IndexError, match="index 9"):
        outer.several[9]


def test_first_values():
    class Net(tf.Module):
        def __init__(self):
            self.w = tf.Parameter([64, 32], tf.float32)
            self.c = tf.Parameter([400], tf.float32, random_scale=0.5, random_offset=2.0)
            self.one = tf.Parameter([], tf.float32, random_scale=0.0, random_offset=3.0)
            self.whole = tf.Parameter([5], tf.int32, optimize=False)
            self.open = tf.Parameter([4, -1], tf.float32)

    net = Net()
    net.initialize_parameters()
    w, c = net.w.numpy, net.c.numpy
    assert 0.245 < abs(w).max() <= 0.25 and abs(w.mean()) < 0.01
    assert 1.5 <= c.min() < 1.53 and 2.47 < c.max() <= 2.5
    assert net.one.numpy == 3 and net.whole.numpy.tolist() == [0] * 5 and net.whole.numpy.dtype == np.int32
    assert net.open.shape == [4, -1]


def test_modules_are_arguments():
    def use():
        outer = Outer()
        outer.initialize_input()
        x = tf.input([-1], tf.float32)
        return x * outer.z + tf.sum(outer.several[2]) + tf.sum(outer.inner.p)

    compiled, outer = tf.compile(use), Outer()
    with pytest.raises(TypeError, match="the parameter `q` of `Outer` has no values"):
        compiled(outer, X)
    outer.initialize_parameters()
    expected = X * outer.z.numpy + outer.several[2].numpy.sum() + outer.inner.p.numpy.sum()
    np.testing.assert_allclose(compiled(outer, X).numpy, expected, rtol=1e-5)
    np.testing.assert_allclose(compiled(*outer.parameters(), X).numpy, expected, rtol=1e-5)
    with pytest.raises(ValueError, match="axis 0 takes 7 elements, not 4"):
        compiled(X, outer)
    with pytest.raises(TypeError):
        compiled(outer)


def test_sizes_that_belong_together():
    calls = []

    class Net(tf.Module):
        def __init__(self):
            self.W = tf.Parameter([16, -1], tf.float32)
            self.b = tf.Parameter([-1], tf.float32)
            self.inner = Child()

        def assert_parameters(self):
            calls.append("net")
            self.b = tf.assert_tensor(self.b, [self.W.shape[1]], tf.float32)

        def forward(self, x):
            return x @ self.W + self.b

    class Child(tf.Module):
        def assert_parameters(self):
            calls.append("child")

    def use():
        net = Net()
        net.initialize_input()
        return net.forward(tf.input([-1, 16], tf.float32))

    compiled, net = tf.compile(use), Net()
    net.initialize_parameters()
    assert calls == ["child", "net"]
    net.W, net.b = tf.tensor(np.ones((16, 5))), np.ones(5, np.float32)
    assert (compiled(net, np.ones((3, 16), np.float32)).numpy == 17).all()
    net.b = tf.tensor(np.ones(4))
    with pytest.raises((ValueError, RuntimeError), match="asserted is 5|extent"):
        compiled(net, np.ones((3, 16), np.float32))


def test_states_of_parameters_whose_size_follows():
    """An optimizer begins with zeros for a parameter whose values are assigned."""

    class Net(tf.Module):
        def __init__(self):
            self.W = tf.Parameter([3, -1], tf.float32)

        def loss(self, x):
            return tf.mean(tf.mean((x @ self.W) ** 2.0))

    def step():
        optimizer = tf.optimizers.adam(Net(), learning_rate=0.5)
        optimizer.initialize_input()
        loss = optimizer.step(optimizer.net.loss(tf.input([-1, 3], tf.float32)))
        return [*optimizer.parameters(), loss]

    compiled, optimizer = tf.compile(step), tf.optimizers.adam(Net())
    optimizer.initialize_parameters()
    optimizer.net.W = tf.tensor(np.ones((3, 2)))
    *parameters, loss = compiled(optimizer, np.eye(3, dtype=np.float32))
    optimizer.update_parameters(parameters)
    np.testing.assert_allclose(optimizer.net.W.numpy, 0.5, atol=1e-4)
    assert loss.numpy.tolist() == [1] and optimizer.m[0].shape == (3, 2)


def test_frozen_modules():
    class Frozen(tf.Module):
        def __init__(self):
            super().__init__(requires_grad=False)
            self.q = tf.Parameter([3], tf.float32)

    class Net(tf.Module):
        def __init__(self):
            self.f = Frozen()
            self.h = tf.Parameter([2], tf.float32)

    net = Net()
    assert net.requires_grads_list() == [False, True] and not net.f.param_requires_grad("q")
    assert list(tf.optimizers.adam(net).m.items())[0][0] == 1


def test_what_a_module_has_not():
    net = Inner()
    with pytest.raises(NotImplementedError, match="`Inner` has no `forward`"):
        net.forward(X)
    with pytest.raises(RuntimeError, match="`step` is for programs, after `initialize_input"):
        tf.optimizers.sgd(net).step(X)
    with pytest.raises(AttributeError):
        net.missing  # noqa: B018
