"""``ti.ad.torch_function``: what it saves, what it refuses, and PyTorch's transformations."""

import pickle

import numpy as np
import pytest

import aerogel as ti

torch = pytest.importorskip("torch")
A = ti.types.ndarray


@pytest.fixture(autouse=True)
def fresh(arch):
    pass


@ti.kernel
def square(x: A(), y: A()):
    for i in x:
        y[i] = x[i] ** 2


@ti.kernel
def scaled(x: A(), s: float, v: ti.types.vector(2, float), y: A()):
    for i in x:
        y[i] = x[i] * s * v[0] + v[1]


@ti.kernel
def two(x: A(), y: A(), z: A()):
    for i in x:
        y[i] = x[i] ** 2
        z[i] = x[i] ** 3


@ti.kernel
def weighted(x: A(), w: A(), y: A()):
    for i in x:
        y[i] = x[i] * w[i]


@ti.kernel
def advance(x: A(), y: A()):
    for i in x:
        y[i] = x[i] ** 2
        x[i] = ti.sin(x[i])


@ti.kernel
def noisy(x: A(), y: A()):
    for i in x:
        y[i] = x[i] * ti.random(ti.f32)


@ti.kernel
def through(x: A(), w: A(), out: A(), y: A()):
    for i in x:
        out[i] = x[i] * w[i]
    for i in x:
        y[i] = out[i] * out[i]


def leaf(*numbers):
    return torch.tensor(numbers, requires_grad=True)


def test_tensors_for_numbers_have_gradients():
    x, s, v = leaf(1.0, 2, 3), leaf(2.0)[0], leaf(3.0, 1)
    s.retain_grad()
    ti.ad.torch_function(scaled)(x, s, v).sum().backward()
    assert x.grad.tolist() == [6, 6, 6]
    assert s.grad.item() == 18
    assert v.grad.tolist() == [12, 3]
    x.grad = None
    ti.ad.torch_function(scaled)(x, v=[3.0, 1.0], s=2.0).sum().backward()
    assert x.grad.tolist() == [6, 6, 6]


def test_several_results():
    f = ti.ad.torch_function(two, n_outputs=2)
    x = leaf(1.0, 2, 3)
    _, z = f(x)
    z.sum().backward()
    assert x.grad.tolist() == [3, 12, 27]
    x.grad = None
    sum(y.sum() for y in f(x)).backward()
    assert x.grad.tolist() == [5, 16, 33]

    @ti.kernel
    def parts(x: A(), y: A(), n: A()):
        for i in y:
            y[i] = x[i] * x[i + 1]
        n[0] = x.shape[0]

    f = ti.ad.torch_function(
        parts, n_outputs=2, shape=lambda x: [(x.shape[0] - 1,), (1,)], dtype=[torch.float32, torch.int32]
    )
    y, n = f(x)
    assert y.tolist() == [2, 6] and n.tolist() == [3] and n.dtype == torch.int32 and not n.requires_grad
    for shape in (lambda x: 3, 3, (3,)):
        assert ti.ad.torch_function(square, shape=shape)(x).shape == (3,)
    with pytest.raises(TypeError, match="`shape` must be a list, one for each of the 2 results"):
        ti.ad.torch_function(parts, n_outputs=2, shape=lambda x: x.shape[0])(x)


def test_fields_that_a_kernel_uses_for_itself():
    s = ti.field(ti.f32, 1, needs_grad=True)

    @ti.kernel
    def fourth(x: A(), y: A()):
        for i in x:
            s[i] = x[i] * x[i]
        for i in x:
            y[i] = s[i] * s[i]

    a, b = leaf(3.0), leaf(1.0)
    f = ti.ad.torch_function(fourth)
    (f(a) + f(b)).backward()
    assert a.grad.item() == 108 and b.grad.item() == 4
    assert s[0] == 1 and s.grad[0] == 0


def test_fields_that_change_between_calls():
    c = ti.field(ti.f32, (3, 4))

    @ti.kernel
    def step(x: A(), t: int, y: A()):
        for i in x:
            y[i] = x[i] * c[t, i]

    f = ti.ad.torch_function(step)
    x = torch.ones(4, requires_grad=True)
    h = x
    for t in range(3):
        c.fill(t + 1)
        h = f(h, t)
    c.fill(50)
    h.sum().backward()
    assert x.grad.tolist() == [6] * 4
    assert c[1, 1] == 50


def test_only_what_is_needed_is_saved():
    from aerogel.ad._function import KernelFunction

    c = ti.field(ti.f32, (100, 4))

    @ti.kernel
    def step(x: A(), t: int, y: A()):
        for i in x:
            y[i] = x[i] * c[t, i] + c[t, 3 - i]

    function = KernelFunction(step, 1, "torch_function")
    x, y = torch.ones(4, requires_grad=True), torch.zeros(4, requires_grad=True)
    blob = function.forward([x, 2, y], [x, 2, y], ["x"], False)
    assert len(blob) <= 16 + 2 * 4 * 4
    assert len(function.forward([x, 2, y], None, ["x"], False)) == 0


@pytest.mark.parametrize("kind", ["numpy", "strided", "ndarray"])
def test_arrays_beside_the_tensors_that_change(kind):
    w = {"numpy": np.ones(3, "f4"), "strided": np.ones(6, "f4")[::2], "ndarray": ti.ndarray(ti.f32, 3)}[kind]
    w.fill(2)
    x = leaf(1.0, 2, 3)
    y = ti.ad.torch_function(weighted)(x, w)
    w.fill(100)
    y.sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
    assert w[0] == 100


def test_an_array_with_a_gradient_on_the_way():
    x, out = leaf(1.0, 2, 3), ti.ndarray(ti.f32, 3, needs_grad=True)
    y = ti.ad.torch_function(through)(x, np.array([1, 2, 3], "f4"), out)
    out.fill(7)
    y.sum().backward()
    assert x.grad.tolist() == [2, 16, 54]
    assert out[0] == 7


def test_inputs_that_the_kernel_writes():
    f = ti.ad.torch_function(advance)
    w = leaf(1.0, 2, 3)
    x = w * 1
    y = f(x)
    assert torch.allclose(x, torch.sin(w))
    (y + 5 * x).sum().backward()
    assert torch.allclose(w.grad, 2 * w + 5 * torch.cos(w))
    plain = torch.tensor([1.0, 2, 3])
    version = plain._version
    f(plain)
    assert plain._version > version
    # PyTorch hears of it.
    h = w * w
    g = h * h
    y = f(h)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        (y + g).sum().backward()
    before = w.tolist()
    with pytest.raises(RuntimeError, match=r"kernel `advance` \(.*py:\d+\) writes to its argument `x`, a leaf"):
        f(w)
    x = w * 1
    with pytest.raises(RuntimeError, match="a view of another tensor"):
        f(x[:2])
    assert w.tolist() == before and x.tolist() == before


@ti.kernel
def fill_both(a: A(), b: A(), y: A()):
    for i in range(1):
        a[0] = 5
        b[1] = 6
        y[0] = a[0] * b[1]


def test_a_tensor_that_is_two_arguments_and_written():
    f = ti.ad.torch_function(fill_both)
    x, base = torch.zeros(3), torch.zeros(2, 3)
    assert f(x, x).tolist() == [30, 0, 0] and x.tolist() == [5, 6, 0]
    f(base[0], base[1])
    assert base.tolist() == [[5, 0, 0], [0, 6, 0]]
    x = leaf(1.0, 2, 3) * 1
    with pytest.raises(RuntimeError, match="argument `a`, which shares memory with `b`"):
        f(x, x)
    assert x.tolist() == [1, 2, 3]


def test_a_constant_that_becomes_a_result():
    @ti.kernel
    def add(x: A(), acc: A(), y: A()):
        for i in x:
            acc[i] += x[i] ** 2
            y[i] = x[i]

    f = ti.ad.torch_function(add)
    x, acc = leaf(1.0, 2, 3), torch.zeros(3)
    f(x, acc)
    f(x, acc)
    acc.sum().backward()
    assert x.grad.tolist() == [4, 8, 12]


def test_results_that_are_changed():
    x = leaf(1.0, 2, 3)
    y = ti.ad.torch_function(square)(x)
    y *= 2
    y.sum().backward()
    assert x.grad.tolist() == [4, 8, 12]
    x = leaf(1.0, 2, 3) * 1
    y = ti.ad.torch_function(square)(x)
    x += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_random_numbers_are_those_of_the_call():
    x = torch.ones(4, requires_grad=True)
    y = ti.ad.torch_function(noisy)(x)
    y.sum().backward()
    assert x.grad.tolist() == y.tolist()


def test_backward_twice_and_without_gradients():
    f = ti.ad.torch_function(square)
    x = leaf(1.0, 2, 3)
    y = f(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [4, 8, 12]
    with torch.no_grad():
        assert not f(x).requires_grad
    assert f(torch.arange(3)).tolist() == [0, 1, 4]


def test_second_derivatives_are_refused():
    x = leaf(1.0, 2, 3)
    y = ti.ad.torch_function(square)(x)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    assert g.tolist() == [2, 4, 6]
    with pytest.raises(RuntimeError, match="kernel `square` as a function has first derivatives only"):
        (g**2).sum().backward()


def test_transformations_of_torch_func():
    f = ti.ad.torch_function(square)
    x, rows = torch.tensor([1.0, 2, 3]), torch.arange(6.0).reshape(2, 3)
    assert torch.func.grad(lambda x: f(x).sum())(x).tolist() == [2, 4, 6]
    assert torch.equal(torch.vmap(f)(rows), rows**2)
    assert torch.equal(torch.vmap(torch.func.grad(lambda x: f(x).sum()))(rows), 2 * rows)
    assert torch.equal(torch.func.jacrev(f)(x), torch.diag(2 * x))
    scales = torch.vmap(lambda s: ti.ad.torch_function(scaled)(x, s, torch.tensor([1.0, 0])))(torch.tensor([1.0, 2]))
    assert torch.equal(scales, torch.stack([x, 2 * x]))
    with pytest.raises(RuntimeError, match="has gradients and no tangents: use torch.func.vjp"):
        torch.func.jvp(f, (x,), (x,))
    with pytest.raises(RuntimeError, match="first derivatives only"):
        torch.func.grad(lambda x: torch.func.grad(lambda x: f(x).sum())(x).sum())(x)
    with pytest.raises(RuntimeError, match="writes to its inputs, which torch.vmap cannot map"):
        torch.vmap(ti.ad.torch_function(advance))(rows.clone())
    with pytest.raises(TypeError, match=r"inside a transformation of torch.func, .* `ti.ad.torch_function\(square\)`"):
        torch.func.grad(lambda x: square(x, torch.zeros(3)) or x.sum())(x)


def test_a_batch_whose_elements_read_fields_of_other_sizes():
    factors = ti.field(float, 10)
    factors.fill(2)

    @ti.kernel
    def total(n: int, x: A(), y: A()):
        for i in range(n):
            y[0] += x[0] * factors[i] ** 2

    x = torch.ones(2, 1, requires_grad=True)
    y = torch.vmap(ti.ad.torch_function(total))(torch.tensor([2, 5]), x)
    factors.fill(0)
    y.sum().backward()
    assert y.tolist() == [[8], [20]] and x.grad.tolist() == [[8], [20]]


def test_sparse_fields():
    c = ti.field(ti.f32)
    cells = ti.root.pointer(ti.i, 4)
    cells.dense(ti.i, 2).place(c)

    @ti.kernel
    def weigh(x: A(), y: A()):
        for i in x:
            y[i] = x[i] * c[i]

    @ti.kernel
    def over(x: A(), y: A()):
        for i in c:
            y[i] = x[i] * c[i]

    def called(kernel):
        cells.deactivate_all()
        for i in range(4):
            c[i] = i + 1
        x = torch.ones(8, requires_grad=True)
        return x, ti.ad.torch_function(kernel)(x).sum()

    for kernel in (weigh, over):
        x, y = called(kernel)
        c.fill(50)
        y.backward()
        assert x.grad.tolist() == [1, 2, 3, 4, 0, 0, 0, 0] and c[0] == 50 and c[4] == 0
    x, y = called(weigh)
    cells.deactivate_all()
    with pytest.raises(RuntimeError, match="cells have become inactive since kernel `weigh` read them"):
        y.backward()
    x, y = called(over)
    c[5] = 1
    with pytest.raises(RuntimeError, match="kernel `over` has queried which cells are active, and that has changed"):
        y.backward()
    assert x.grad is None


def test_methods():
    @ti.data_oriented
    class Layer:
        def __init__(self):
            self.w = ti.field(ti.f32, 3, needs_grad=True)

        @ti.kernel
        def run(self, x: A(), y: A()):
            for i in x:
                y[i] = x[i] * self.w[i] ** 2

    layer, x = Layer(), torch.ones(3, requires_grad=True)
    layer.w.fill(2)
    y = ti.ad.torch_function(layer.run)(x)
    layer.w.fill(50)
    y.sum().backward()
    assert x.grad.tolist() == [4, 4, 4] and layer.w.grad.to_numpy().tolist() == [4, 4, 4]


def test_what_is_refused():
    f = ti.ad.torch_function(square)
    with pytest.raises(RuntimeError, match="torch_function takes a kernel"):
        ti.ad.torch_function(3)
    with pytest.raises(RuntimeError, match="`square` has 2 parameters, and `n_outputs` is 2"):
        ti.ad.torch_function(square, n_outputs=2)
    with pytest.raises(RuntimeError, match="the parameter `s` of kernel `k` takes results, and must be an array"):

        @ti.ad.torch_function
        @ti.kernel
        def k(x: A(), s: float):
            x[0] = s

    with pytest.raises(TypeError, match="`x` is missing"):
        f()
    with pytest.raises(TypeError, match="as a function takes x: got 2"):
        f(torch.ones(2), torch.ones(2))
    with pytest.raises(TypeError, match="is sparse: pass `x.to_dense"):
        f(torch.ones(2, 2).to_sparse())
    with pytest.raises(TypeError, match="lies on meta"):
        f(torch.ones(2, device="meta"))

    @ti.kernel
    def packed(p: ti.types.argpack(a=A(), s=float), x: A(), y: A()):
        for i in y:
            y[i] = p.a[i] * p.s

    with pytest.raises(
        RuntimeError, match="the argument `p` of kernel `packed` holds a tensor that requires a gradient"
    ):
        ti.ad.torch_function(packed)(dict(a=torch.ones(3, requires_grad=True), s=2.0), torch.ones(3))


def test_compiled():
    pytest.importorskip("torch._dynamo")
    f = ti.ad.torch_function(square)
    x = torch.ones(3, requires_grad=True)
    found = torch.compile(lambda x: (f(x * 2) + 1).sum(), backend="eager")(x)
    found.backward()
    assert found.item() == 15 and x.grad.tolist() == [8, 8, 8]
    torch._dynamo.reset()


@ti.kernel
def linear(x: A(), w: A(), b: A(), y: A()):
    for i, j in y:
        s = b[j]
        for k in range(x.shape[1]):
            s += x[i, k] * w[k, j]
        y[i, j] = s


@ti.kernel
def tanh(x: A(), y: A()):
    for i, j in x:
        y[i, j] = ti.tanh(x[i, j])


class Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, b):
        y = torch.zeros(x.shape[0], w.shape[1], dtype=x.dtype)
        linear(x, w, b, y)
        ctx.save_for_backward(x, w, b, y)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, w, b, y = (t.detach().requires_grad_() for t in ctx.saved_tensors)
        y.grad = dy.contiguous()
        linear.grad(x, w, b, y)
        return x.grad, w.grad, b.grad


class Tanh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.zeros_like(x)
        tanh(x, y)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, y = ctx.saved_tensors
        x.grad, y.grad = torch.zeros_like(x), dy.contiguous()
        tanh.grad(x, y)
        return x.grad


def losses(linear, tanh, dtype, n_steps):
    random = torch.Generator().manual_seed(0)
    x, wanted = (torch.randn(16, n, dtype=dtype, generator=random) for n in (4, 2))
    shapes = (4, 8), (8,), (8, 2), (2,)
    params = [(torch.randn(shape, dtype=dtype, generator=random) / 2).requires_grad_() for shape in shapes]
    optimizer = torch.optim.Adam(params, lr=1e-2)
    found = []
    for _ in range(n_steps):
        optimizer.zero_grad()
        loss = ((linear(tanh(linear(x, *params[:2])), *params[2:]) - wanted) ** 2).mean()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return np.array(found)


@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-9), (torch.float32, 1e-3)])
def test_a_network_is_trained_as_by_torch(dtype, tolerance):
    n_steps = 200
    theirs = losses(lambda x, w, b: x @ w + b, torch.tanh, dtype, n_steps)
    assert theirs[-1] < theirs[0] / 5
    shape = lambda x, w, b: (x.shape[0], w.shape[1])  # noqa: E731
    functions = ti.ad.torch_function(linear, shape=shape), ti.ad.torch_function(tanh)
    for ours in (functions, (Linear.apply, Tanh.apply)):
        assert np.allclose(losses(*ours, dtype, n_steps), theirs, rtol=tolerance, atol=0)


def test_functions_are_pickled_with_their_kernels():
    f = pickle.loads(pickle.dumps(ti.ad.torch_function(two, n_outputs=2)))
    assert [y.tolist() for y in f(leaf(2.0))] == [[4], [8]]
    assert f.__name__ == "two" and "kernel `two`" in repr(f)


def test_dtypes_of_results():
    @ti.kernel
    def halved(x: A(), y: A()):
        for i in x:
            y[i] = ti.cast(x[i], ti.f64) / 2

    for dtype in (torch.float64, ti.f64):
        assert ti.ad.torch_function(halved, dtype=dtype)(leaf(3.0)).dtype == torch.float64
    with pytest.raises(TypeError, match="one of PyTorch's, such as torch.float32, or ti.f32 and the like, not 'f64'"):
        ti.ad.torch_function(halved, dtype="f64")(leaf(3.0))
    with pytest.raises(TypeError, match="takes a tensor for an array, got list$"):
        ti.ad.torch_function(halved)([1.0] * 100_000)


def test_graphs_of_torch_compile_stay_whole():
    import torch._dynamo

    @ti.kernel
    def both(x: A(), s: ti.f32, y: A(), z: A()):
        for i in x:
            y[i] = x[i] ** 2 * s
            z[i] = 3 * x[i]

    f = ti.ad.torch_function(both, n_outputs=2)
    f(leaf(1.0), torch.tensor(2.0))

    def model(x, s):
        y, z = f(2 * x, s)
        return (y + 1).sum() + f(x, s * s)[1].sum()

    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    for numbers in ([1.0, 2.0], [3.0, 4.0]):
        given, wanted = [(leaf(*numbers), torch.tensor(2.0, requires_grad=True)) for _ in range(2)]
        assert compiled(*given).item() == model(*wanted).item()
        compiled(*given).backward(), model(*wanted).backward()
        assert torch.equal(given[0].grad, wanted[0].grad) and torch.equal(given[1].grad, wanted[1].grad)
    torch._dynamo.reset()


def test_graphs_end_at_kernels_that_read_fields():
    import torch._dynamo

    field = ti.field(ti.f32, 2)

    @ti.kernel
    def times(x: A(), y: A()):
        for i in x:
            y[i] = x[i] * field[i]

    f = ti.ad.torch_function(times)
    compiled = torch.compile(lambda x: (f(x) * 2).sum(), backend="aot_eager")
    for number in (1, 5, 7):
        field.fill(number)
        x = leaf(1.0, 2)
        compiled(x).backward()
        assert x.grad.tolist() == [2 * number] * 2
    assert f.number is None
    torch._dynamo.reset()
