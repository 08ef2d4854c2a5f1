"""Extensions: what one back end does by code of its own, and that others record statements."""

import subprocess
import sys

import numpy as np
import pytest

import aerogel as ti
from aerogel import nn
from aerogel.backends._numpy import NumPy

functional, xp = nn.functional, ti.tensor


class Own(NumPy):
    """NumPy under another name, for extensions of these tests."""

    name = "own"


OWN = ti.backends.register(Own())


@pytest.fixture(autouse=True)
def settings():
    ti.init(arch=ti.cpu, log_level="error")


@pytest.fixture
def extended():
    """Registers extensions until the test ends."""
    added = []

    def add(extension, name="own"):
        ti.backends.register_extension(extension, name)
        added.append((type(extension).__mro__[-3], name))
        return extension

    yield add
    for kind, name in added:
        ti.backends.unregister_extension(kind, name)


class Layers(ti.backends.Autograd):
    """Layers over NumPy, which note their calls."""

    def __init__(self):
        self.calls = []

    def conv2d(self, x, weight, bias, stride, padding, dilation, groups):
        assert (stride, dilation, groups) == ((1, 1), (1, 1), 1)
        self.calls.append("conv2d")
        wide = np.pad(x, ((0, 0), (0, 0), *padding))
        windows = np.lib.stride_tricks.sliding_window_view(wide, weight.shape[2:], (2, 3))
        made = np.einsum("bcyxij,ocij->boyx", windows, weight)
        made = made if bias is None else made + bias[:, None, None]
        return made.astype(x.dtype), (windows, weight, wide.shape, padding, bias is not None)

    def conv2d_backward(self, gradient, payload):
        self.calls.append("conv2d_backward")
        windows, weight, shape, ((top, _), (left, _)), has_bias = payload
        by_x = np.zeros(shape, gradient.dtype)
        for i in range(weight.shape[2]):
            for j in range(weight.shape[3]):
                part = np.einsum("boyx,oc->bcyx", gradient, weight[:, :, i, j])
                by_x[:, :, i : i + part.shape[2], j : j + part.shape[3]] += part
        h, w = windows.shape[2] + weight.shape[2] - 1 - 2 * top, windows.shape[3] + weight.shape[3] - 1 - 2 * left
        by_weight = np.einsum("bcyxij,boyx->ocij", windows, gradient).astype(gradient.dtype)
        out = [by_x[:, :, top : top + h, left : left + w], by_weight]
        return [*out, gradient.sum((0, 2, 3))] if has_bias else out

    def pool2d(self, x, kernel, stride, padding, mode):
        assert kernel == stride == (2, 2)
        self.calls.append(f"pool2d {mode}")
        b, c, h, w = x.shape
        parts = x.reshape(b, c, h // 2, 2, w // 2, 2)
        made = parts.max((3, 5)) if mode == "max" else parts.mean((3, 5))
        return made, (x, made, mode)

    def pool2d_backward(self, gradient, payload):
        x, made, mode = payload
        wide = np.repeat(np.repeat(gradient, 2, 2), 2, 3)
        if mode == "mean":
            return [(wide / 4).astype(x.dtype)]
        return [wide * (x == np.repeat(np.repeat(made, 2, 2), 2, 3))]

    def batchnorm(self, x, weight, bias, mean, variance, eps):
        self.calls.append("batchnorm")
        shape = (1, -1, *[1] * (x.ndim - 2))
        centred, scale = x - mean.reshape(shape), (1 / np.sqrt(variance + eps)).astype(x.dtype).reshape(shape)
        made = centred * scale * weight.reshape(shape) + bias.reshape(shape)
        return made, (centred, scale, weight, shape)

    def batchnorm_backward(self, gradient, payload):
        centred, scale, weight, shape = payload
        axes = (0, *range(2, gradient.ndim))
        scaled = gradient * weight.reshape(shape)
        by_mean = -(scaled * scale).sum(axes)
        by_variance = (scaled * centred * -0.5 * scale**3).sum(axes)
        return [scaled * scale, (gradient * centred * scale).sum(axes), gradient.sum(axes), by_mean, by_variance]


def compared(f, *arrays):
    """The value and the gradients of a function with the extension, and with native statements."""

    def made(name):
        xs = [ti.tensor.asarray(x).to(name) for x in arrays]
        value, gradients = ti.value_and_grad(lambda *xs: (f(*xs) ** 2).sum(), argnums=tuple(range(len(xs))))(*xs)
        return [value.numpy(), *[g.numpy() for g in gradients]]

    for found, wanted in zip(made("own"), made("native"), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3)


def drawn(*shapes):
    random = np.random.default_rng(1)
    return [random.standard_normal(shape).astype(np.float32) for shape in shapes]


def test_registration(extended):
    layers = extended(Layers())
    assert ti.backends.extension(ti.backends.Autograd, "own") is layers
    assert ti.backends.extension(ti.backends.Autograd, "numpy") is None
    with pytest.raises(ValueError, match="`own` has an extension of type `Autograd` already: Layers"):
        ti.backends.register_extension(Layers(), "own")
    with pytest.raises(ValueError, match="no back end 'onw'"):
        ti.backends.register_extension(Layers(), "onw")
    with pytest.raises(TypeError, match="takes no extensions"):
        ti.backends.register_extension(Layers(), "native")
    with pytest.raises(TypeError, match="derived from Autograd, Linalg"):
        ti.backends.register_extension(object(), "own")


@pytest.mark.parametrize("padding", [0, 1])
def test_convolution(extended, padding):
    layers = extended(Layers())
    x, w, b = drawn((2, 3, 6, 5), (4, 3, 3, 3), (4,))
    compared(lambda x, w, b: functional.conv2d(x, w, b, padding=padding), x, w, b)
    assert layers.calls == ["conv2d", "conv2d_backward"]
    compared(lambda x, w: functional.conv2d(x, w, padding=padding), x, w)
    assert len(layers.calls) == 4


def test_pooling(extended):
    layers = extended(Layers())
    (x,) = drawn((2, 3, 6, 4))
    compared(lambda x: functional.max_pool2d(x, 2), x)
    compared(lambda x: functional.avg_pool2d(x, 2), x)
    assert layers.calls == ["pool2d max", "pool2d mean"]
    # What the extension has no arguments for records statements.
    compared(lambda x: functional.max_pool2d(x, 2, ceil_mode=True), x)
    assert len(layers.calls) == 2


def test_batch_norm(extended):
    layers = extended(Layers())
    x, w, b = drawn((5, 3, 2, 2), (3,), (3,))
    compared(lambda x, w, b: functional.batch_norm(x, None, None, w, b, training=True), x, w, b)
    assert layers.calls == ["batchnorm"]


def test_other_back_ends_and_programs_record_statements(extended):
    layers = extended(Layers())
    x, w = drawn((1, 1, 4, 4), (1, 1, 3, 3))
    for name in ("native", "numpy"):
        functional.conv2d(ti.tensor.asarray(x).to(name), ti.tensor.asarray(w).to(name)).realize()
    assert layers.calls == []


def test_a_gradient_that_is_missing_or_wrong_is_named(extended):
    class NoGradient(ti.backends.Autograd):
        def conv2d(self, x, weight, *rest):
            return np.zeros((1, 1, 2, 2), np.float32), None

    x, w = [ti.tensor.asarray(a).to("own") for a in drawn((1, 1, 4, 4), (1, 1, 3, 3))]
    with pytest.raises(TypeError, match=r"`NoGradient` has `conv2d` and no gradient of it: define `conv2d_backward\("):
        ti.backends.register_extension(NoGradient(), "own")
    wrong = Layers()
    wrong.conv2d_backward = lambda gradient, payload: [gradient, gradient]
    extended(wrong)
    with pytest.raises(ti.backends.WrongResult, match=r"value 0 of what `Layers.conv2d_backward` returns has to be"):
        ti.grad(lambda w: functional.conv2d(x, w).sum())(w).realize()


def test_linear_algebra_and_transforms(extended):
    class Matrices(ti.backends.Linalg):
        calls = 0

        def inv(self, x):
            self.calls += 1
            return [np.linalg.inv(x)]

        def det(self, x):
            return None

    class Rows(ti.backends.Fft):
        calls = 0

        def fft(self, re, im):
            self.calls += 1
            made = np.fft.fft(re + 1j * im)
            return [made.real.astype(re.dtype), made.imag.astype(re.dtype)]

    matrices, rows = extended(Matrices()), extended(Rows())
    a = np.array([[4.0, 1.0], [2.0, 3.0]])
    x = ti.tensor.asarray(a, dtype=ti.f64).to("own")
    np.testing.assert_allclose(ti.tensor.linalg.inv(x).numpy(), np.linalg.inv(a))
    np.testing.assert_allclose(ti.tensor.linalg.det(x).numpy(), 10)
    assert matrices.calls == 1
    with ti.backends.use("own"):
        found = ti.tensor.fft.fft(ti.tensor.asarray(a[0] + 1j * a[1]))
        np.testing.assert_allclose(found.numpy(), np.fft.fft(a[0] + 1j * a[1]))
    assert rows.calls == 1


def test_random_numbers(extended):
    class Uniform(ti.backends.Random):
        def uniform(self, key, shape, dtype):
            return np.random.default_rng(key).random(shape).astype(np.float32)

    def draw():
        with ti.backends.use("own"):
            return ti.tensor.random.Generator(4).rand(3).numpy()

    before = draw()
    extended(Uniform())
    assert (draw() == draw()).all()
    assert (draw() != before).all()


def test_a_compiler_of_programs(extended):
    class Compiler(ti.backends.JitOptimizer):
        def __init__(self):
            self.programs = []

        def compile(self, program):
            self.programs.append(program)
            if "exp(" not in program.text:
                return None
            return lambda inputs: [np.exp(inputs[0])]

    compiler = extended(Compiler())
    x = ti.tensor.asarray([0.0, 1.0]).to("own")
    for _ in range(2):
        y = x.to("native").to("own")
        np.testing.assert_allclose(ti.tensor.exp(y).numpy(), np.exp([0, 1]), rtol=1e-6)
        assert (y + 1).tolist() == [1, 2]
    assert len(compiler.programs) == 2


def refused(f):
    with pytest.raises(NotImplementedError, match="no second derivatives and no forward mode"):
        f()


def test_derivatives_of_gradients_by_storages_are_refused(extended):
    extended(Layers())
    a, w = np.ones((1, 1, 4, 4), np.float32), np.full((1, 1, 3, 3), 2, np.float32)
    a, w = xp.asarray(a).to("own"), xp.asarray(w).to("own")

    def f(w):
        return (nn.functional.conv2d(a, w) ** 2).sum()

    # 4 windows of nine twos: the gradient of each weight is 4 * 2 * 18.
    assert ti.grad(f)(w).tolist() == [[[[144.0] * 3] * 3]]
    refused(lambda: ti.jvp(f, (w,), (w,)))
    refused(lambda: ti.hvp(f, (w,), (w,)))


def test_no_gradient_disappears_in_a_storage():
    ti.init(arch=ti.cpu, backend="numpy", log_level="error")
    x = xp.asarray([1.0, 2.0])
    storage, tensor = ti.backends.storage, ti.backends.tensor
    with pytest.raises(RuntimeError, match="`storage` takes values, and no gradient would pass"):
        ti.grad(lambda x: (x * tensor(storage(x) * 3, x.backend)).sum())(x)

    @ti.custom_vjp
    def square(x):
        return forward(x)[0]

    def forward(x):
        return tensor(storage(x) ** 2, x.backend), storage(x)

    square.defvjp(forward, lambda s, g: (tensor(2 * s * storage(g), g.backend),))
    assert ti.grad(lambda x: square(x).sum())(x).tolist() == [2, 4]
    refused(lambda: ti.hvp(lambda x: square(x).sum(), (x,), (x,))[0])


def test_vmap_on_a_back_end():
    ti.init(arch=ti.cpu, backend="numpy", log_level="error")
    x, w = xp.asarray([1.0, 2.0]), xp.asarray([3.0, 4.0])
    made = ti.vmap(lambda x: (x * w).sum())(x)
    assert made.tolist() == [7, 14] and made.backend == "numpy"
    assert ti.jacobian(lambda x: x * w)(x).tolist() == [[3, 0], [0, 4]]


ALONE = """
import aerogel as ti
ti.init(arch=ti.cpu, log_level="error")
for k in range(5):
    m, x = ti.nn.GRU(3, 4), ti.tensor.ones((6, 2, 3))
    ti.hvp(lambda x: (m(x)[0] ** 2).sum(), (x,), (x,))[0].sum().item()
with ti.backends.use("numpy"):
    y = ti.tensor.ones(3)
    print((1.0 - y).backend, (y * 1.0).backend, ti.tensor.random.randn(3).backend)
"""


def test_constants_of_before_belong_to_no_back_end():
    """In a process of its own, where no back end but `native` has been used."""
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True)
    assert done.stdout.split() == ["numpy"] * 3, done.stderr[-800:]
