"""PyTorch tensors as arguments and as what fields are copied from, where PyTorch is installed."""

import pytest

import aerogel as ti

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def fresh():
    ti.init(arch=ti.cpu, log_level="error")


@ti.kernel
def increment(a: ti.types.ndarray()):
    for I in ti.grouped(a):
        a[I] += 1


@ti.kernel
def total(a: ti.types.ndarray()) -> ti.f32:
    s = 0.0
    for i in a:
        s += a[i]
    return s


@ti.kernel
def double(x: ti.types.ndarray(), y: ti.types.ndarray(dtype=ti.f32, ndim=2)):
    for i, j in y:
        y[i, j] = 2 * x[i, j]


def test_kernels_write_to_the_tensors_memory():
    a, b = torch.arange(12, dtype=torch.float32).reshape(3, 4), torch.zeros(3, 4)
    address, view = b.data_ptr(), b[1]
    double(a, b)
    assert torch.equal(b, 2 * a) and b.data_ptr() == address
    assert torch.equal(view, 2 * a[1])


@pytest.mark.parametrize("name", "float16 float32 float64 int8 int16 int32 int64 uint8".split())
def test_element_types(name):
    tensor = torch.zeros(5, dtype=getattr(torch, name))
    increment(tensor)
    assert tensor.tolist() == [1] * 5


def test_views():
    base = torch.zeros(4, 6)
    increment(base.T)
    assert (base == 1).all()
    increment(base[::2, 1::2])
    assert base.sum() == 24 + 6
    with pytest.raises(ValueError, match="share memory"):
        increment(torch.zeros(1, 3).expand(2, 3))


def test_what_cannot_be_an_argument():
    for tensor in (torch.zeros(3, dtype=torch.complex64), torch.zeros(3, 3).to_sparse(), torch.zeros(3, device="meta")):
        with pytest.raises(TypeError):
            increment(tensor)
    assert total(torch.ones(3, requires_grad=True)) == 3


def test_fields_and_arrays_in_and_out():
    a = torch.rand(3, 4)
    x = ti.field(ti.f32, (3, 4))
    x.from_torch(a)
    assert torch.equal(x.to_torch(), a)
    v = ti.Vector.field(3, ti.f32, 4)
    v.from_torch(torch.ones(4, 3))
    assert v.to_torch().shape == (4, 3) and v.to_torch().sum() == 12
    n = ti.ndarray(ti.f32, (3, 4))
    n.from_torch(a)
    assert torch.equal(n.to_torch(), a)
    shared = torch.from_dlpack(n)
    shared[0, 0] = 7
    assert n[0, 0] == 7


def test_a_kernel_in_autograd():
    @ti.kernel
    def square(x: ti.types.ndarray(), y: ti.types.ndarray()):
        for i in x:
            y[i] = x[i] ** 2

    @ti.kernel
    def square_grad(x: ti.types.ndarray(), dy: ti.types.ndarray(), dx: ti.types.ndarray()):
        for i in x:
            dx[i] = 2 * x[i] * dy[i]

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = torch.empty_like(x)
            square(x, y)
            ctx.save_for_backward(x)
            return y

        @staticmethod
        def backward(ctx, dy):
            (x,) = ctx.saved_tensors
            dx = torch.empty_like(x)
            square_grad(x, dy, dx)
            return dx

    w = torch.arange(3.0, requires_grad=True)
    (3 * Square.apply(w)).sum().backward()
    assert w.grad.tolist() == [0, 6, 12]
