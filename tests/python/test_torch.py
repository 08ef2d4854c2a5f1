"""PyTorch tensors as arguments and as what fields are copied from, where PyTorch is installed."""

import subprocess
import sys
import warnings

import numpy as np
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


# What kernels write, whatever a tensor's class overrides.


class Cloning(torch.Tensor):
    def detach(self, *args, **kwargs):
        return super().detach(*args, **kwargs).clone()

    def numpy(self, *args, **kwargs):
        raise AssertionError

    def __array__(self, *args, **kwargs):
        return torch.zeros(self.shape).numpy()

    def data_ptr(self):
        return torch.zeros(100).data_ptr()

    def stride(self, *args):
        return (17,)

    @property
    def shape(self):
        return torch.Size([1])

    @property
    def dtype(self):
        return torch.int8


class Functions(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        raise AssertionError(func)


class Dispatches(torch.Tensor):
    @staticmethod
    def __new__(cls, x):
        return torch.Tensor._make_subclass(cls, x)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise AssertionError(func)


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("kind", [Cloning, Functions, Dispatches])
def test_subclasses_are_written_where_they_lie(kind, grad):
    base = torch.zeros(4, 2)
    with torch._C.DisableTorchFunction():
        make = kind if kind is Dispatches else lambda x: torch.Tensor.as_subclass(x, kind)
        whole, column = make(base), make(base[:, 1])
        whole.requires_grad_(grad)
    increment(whole)
    assert base.tolist() == [[1, 1]] * 4
    increment(column)
    assert base.tolist() == [[1, 2]] * 4
    assert base._version >= 2


def test_modes_are_not_asked():
    class Forbid(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            raise AssertionError(func)

    x = torch.zeros(3)
    with Forbid():
        increment(x)
    assert x.tolist() == [1, 1, 1]


# PyTorch is told of writes.


def test_autograd_notices_what_kernels_write():
    w, x = torch.tensor([2.0], requires_grad=True), torch.tensor([5.0])
    loss = w * x
    assert total(x) == 5, "reading is no write"
    loss.backward(retain_graph=True)
    increment(x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    base = torch.zeros(4)
    loss = w * base
    increment(base[::2])
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.sum().backward()
    loss = w * base
    increment(base[1:3])
    assert base.tolist() == [1, 1, 2, 0]
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.sum().backward()


def test_autograd_notices_what_is_written_to_an_array_over_a_tensor():
    base = torch.zeros(4)
    x = ti.from_dlpack(base)
    y = ti.ndarray(ti.f32, 4)
    for write in (
        lambda: increment(x),
        lambda: x.fill(2),
        lambda: x.__setitem__(1, 3),
        lambda: x.from_numpy(np.ones(4)),
        lambda: x.copy_from(y),
        lambda: ti.from_dlpack(base.reshape(2, 2), element_dim=1)[0].__setitem__(1, 2),
    ):
        version = base._version
        write()
        assert base._version > version
    version = base._version
    assert total(x) == base.sum() and x[1] == base[1] and x.to_numpy().tolist() == base.tolist()
    assert base._version == version


def test_versions_in_older_pytorch(tmp_path):
    program = """
import torch
del torch.autograd.graph.increment_version
import aerogel as ti
ti.init(arch=ti.cpu, log_level="error")

@ti.kernel
def increment(a: ti.types.ndarray()):
    for I in ti.grouped(a):
        a[I] += 1

class Cloning(torch.Tensor):
    def detach(self):
        return self.clone()

base = torch.zeros(3, 4)
for x in (base, base.T[::2], base[0, 0], base[:, :0], base.as_subclass(Cloning)):
    version = base._version
    increment(x)
    assert base._version > version, x
with torch.inference_mode():
    y = torch.zeros(3)
increment(y)
assert base.sum() == 12 + 6 + 1 + 12 and y.tolist() == [1, 1, 1]
"""
    path = tmp_path / "program.py"
    path.write_text(program)
    subprocess.run([sys.executable, path], check=True)


def test_versions_where_the_kernel_fails_and_under_inference_mode():
    @ti.kernel
    def fails(a: ti.types.ndarray()):
        for i in a:
            a[i] = 1
            assert a[i] == 2

    ti.init(arch=ti.cpu, debug=True, log_level="error")
    x = torch.zeros(4)
    with pytest.raises(AssertionError):
        fails(x)
    assert x._version > 0
    with torch.inference_mode():
        y = torch.zeros(3)
    increment(y)
    assert y.tolist() == [1, 1, 1]


def test_torch_function_of_a_kernel():
    @ti.kernel
    def square(x: ti.types.ndarray(), y: ti.types.ndarray()):
        for i in x:
            y[i] = x[i] ** 2

    @ti.kernel
    def steal(x: ti.types.ndarray(), y: ti.types.ndarray()):
        for i in x:
            y[i] = x[i]
            x[i] = 0

    f, g = ti.ad.torch_function(square), ti.ad.torch_function(steal)
    w = torch.arange(3.0, requires_grad=True)
    out = f(w).sum()
    out.backward(retain_graph=True)
    out.backward()
    assert w.grad.tolist() == [0, 4, 8]
    # An input that the kernel overwrites was saved by somebody else.
    a = torch.ones(3)
    loss = w * a
    g(a)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.sum().backward()
    b = torch.ones(3).as_subclass(Cloning)
    with torch._C.DisableTorchFunction():
        shown = torch.Tensor.as_subclass(b, torch.Tensor)
    increment(b)
    assert shown.tolist() == [2, 2, 2]


def test_tensors_can_be_resized_afterwards():
    x = torch.zeros(4)
    increment(x)
    f, n = ti.field(ti.f32, 4), ti.ndarray(ti.f32, 4)
    f.from_torch(x)
    f.from_numpy(x)
    n.from_torch(x)
    ti.tensor.asarray(x)
    x.resize_(1000)
    assert x[:4].tolist() == f.to_numpy().tolist() == n.to_numpy().tolist() == [1] * 4
    n.to_torch().resize_(100)


# Types.


def test_bfloat16_without_ml_dtypes(monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    x = torch.zeros(4, 2, dtype=torch.bfloat16)
    increment(x)
    increment(x[:, 1])
    assert x.tolist() == [[1, 2]] * 4
    f, n, s = ti.field(ti.bf16, (4, 2)), ti.ndarray(ti.bf16, (4, 2)), ti.field(ti.f32, (4, 2))
    for target in (f, n, s):
        target.from_torch(x)
        assert target.to_torch().tolist() == x.tolist()
        target.from_torch(x.float() + 0.5)
        assert target.to_torch().float().tolist() == (x.float() + 0.5).tolist()
    assert f.to_torch().dtype == n.to_torch().dtype == torch.bfloat16
    assert ti.tensor.asarray(x).dtype is ti.bf16 and ti.tensor.asarray(x).tolist() == x.tolist()
    assert ti.tensor.from_dlpack(x.T).tolist() == x.T.tolist()
    over = ti.from_dlpack(x)
    over[0, 0] = 7
    assert x[0, 0] == 7


def test_conversions_of_tensors():
    base = torch.arange(12.0).reshape(3, 4)
    f, n = ti.field(ti.f32, (3, 4)), ti.ndarray(ti.i32, (3, 4))
    for x in (base, base.flip(0), base.double(), base.requires_grad_(), base.detach().as_subclass(Cloning)):
        with torch._C.DisableTorchFunction():
            expected = torch.Tensor.tolist(torch.Tensor.as_subclass(torch.Tensor.detach(x), torch.Tensor))
        for use in (f.from_torch, f.from_numpy, n.from_torch, n.from_numpy):
            f.fill(0)
            n.fill(0)
            use(x)
            assert use.__self__.to_numpy().tolist() == expected
        assert ti.tensor.asarray(x).tolist() == ti.tensor.from_dlpack(x).tolist() == expected
    z = torch.tensor([1 + 2j, 3 - 1j])
    assert ti.tensor.asarray(z.conj()).tolist() == [1 - 2j, 3 + 1j]
    v, c = ti.Vector.field(3, ti.f32, 2), ti.Matrix.field(3, 1, ti.f32, 2)
    for target in (v, c):
        target.from_torch(torch.ones(2, 3))
        assert target.to_torch().shape == target.to_numpy().shape == (2, 3)
    with pytest.raises(TypeError, match="a PyTorch tensor is needed, not list"):
        v.from_torch([1, 2])
    with pytest.raises(ValueError, match="does not match"):
        v.from_torch(torch.ones(3, 2))


def test_memory_over_tensors_is_writable():
    x = torch.zeros(2, 3, requires_grad=True)
    v = ti.from_dlpack(x, element_dim=1)
    v[1] = [1, 2, 3]
    assert x.tolist() == [[0, 0, 0], [1, 2, 3]]
    with pytest.raises(ValueError, match="C-contiguous"):
        ti.from_dlpack(x.T)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_over_a_tensor_stays_when_the_tensor_gets_other_memory():
    def is_mapped(address):
        with open("/proc/self/maps") as maps:
            ranges = [[int(end, 16) for end in line.split()[0].split("-")] for line in maps]
        return any(first <= address < last for first, last in ranges)

    n = 1 << 22
    x = torch.zeros(n)
    v, address = ti.from_dlpack(x), x.data_ptr()
    x.data = torch.ones(4)
    assert is_mapped(address)
    v[n - 1] = 3
    assert v[n - 1] == 3 and x.tolist() == [1] * 4


# What has no memory, or not the memory that it seems to have.


class Wrapper(torch.Tensor):
    @staticmethod
    def __new__(cls, x, **how):
        return torch.Tensor._make_wrapper_subclass(cls, x.shape, dtype=x.dtype, **how)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise NotImplementedError(str(func))


def freed():
    x = torch.zeros(3)
    x.untyped_storage().resize_(0)
    return x


def fake():
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode():
        return torch.zeros(3)


WRONG = {
    "meta": (lambda: torch.zeros(3, device="meta"), TypeError, "`meta`, which has no values: make it on the CPU"),
    "fake": (fake, TypeError, "no memory of its own.*pass a plain tensor"),
    "freed": (freed, TypeError, "no memory of its own"),
    "zeros": (lambda: torch._efficientzerotensor(3), TypeError, "no memory of its own"),
    "wrapper": (lambda: Wrapper(torch.zeros(3)), TypeError, "no memory of its own"),
    "sizes": (lambda: Wrapper(torch.zeros(3), dispatch_sizes_strides_policy="sizes"), TypeError, "pass a plain tensor"),
    "coo": (lambda: torch.zeros(3, 3).to_sparse(), TypeError, r"torch.sparse_coo: pass `tensor.to_dense\(\)`"),
    "csr": (lambda: torch.zeros(3, 3).to_sparse_csr(), TypeError, r"pass `tensor.to_dense\(\)`"),
    "nested": (lambda: torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)]), TypeError, "to_padded_tensor"),
    "jagged": (
        lambda: torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)], layout=torch.jagged),
        TypeError,
        "to_padded_tensor",
    ),
    "quantised": (
        lambda: torch.quantize_per_tensor(torch.zeros(3), 0.1, 0, torch.quint8),
        TypeError,
        r"torch.quint8.*`tensor.int_repr\(\)`, or `tensor.dequantize\(\)`",
    ),
    "complex": (lambda: torch.zeros(3, dtype=torch.complex64), TypeError, r"`torch.view_as_real\(tensor\)`"),
    "conjugate": (lambda: torch.zeros(3, dtype=torch.complex64).conj(), TypeError, r"`tensor.resolve_conj\(\)`"),
    "negative": (
        lambda: torch.ones(3, dtype=torch.complex64).conj().imag,
        ValueError,
        r"negative bit is set.*`tensor.resolve_neg\(\)`",
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", WRONG)
def test_tensors_that_kernels_refuse(kind):
    make, error, match = WRONG[kind]
    try:
        x = make()
    except (RuntimeError, NotImplementedError) as e:
        pytest.skip(f"this PyTorch makes none: {e}")
    f = ti.field(ti.f32, 3)
    f.fill(2)
    for use in (increment, f.from_numpy, f.from_torch, ti.from_dlpack, ti.tensor.asarray):
        if kind in ("complex", "conjugate") and use is ti.tensor.asarray:
            continue
        with pytest.raises(error, match=match):
            use(x)
    with pytest.raises(error, match="argument `a` of kernel `increment`"):
        increment(x)
    assert f.to_numpy().tolist() == [2, 2, 2]
    good = torch.zeros(3)
    increment(good)
    assert good.tolist() == [1, 1, 1]


def test_transforms_of_functions():
    def call(x):
        increment(x)
        return x.sum()

    x = torch.zeros(2, 3)
    for transform in (torch.func.vmap, torch.func.grad, lambda f: torch.func.functionalize(f)):
        with pytest.raises(
            TypeError,
            match="inside a transformation of torch.func, and has no values: call the function that `ti.ad.torch_function",
        ):
            transform(call)(x)
    assert (x == 0).all() and x._version == 0


def test_copies_on_write_are_made_before_kernels_write():
    if not hasattr(torch, "_lazy_clone"):
        pytest.skip("this PyTorch has none")
    x = torch.zeros(3)
    y = x._lazy_clone()
    increment(y)
    assert (x.tolist(), y.tolist()) == ([0] * 3, [1] * 3)


def test_arrays_of_tensors_do_not_reach_constants():
    t = ti.tensor.zeros((3,))
    for seen in (np.asarray(t), np.asarray(t.to_ndarray()), t):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            shared = torch.from_numpy(seen) if isinstance(seen, np.ndarray) else torch.from_dlpack(seen)
            shared.add_(5)
        assert ti.tensor.zeros((3,)).tolist() == [0, 0, 0]


def test_fields_share_their_memory():
    x, v, m = ti.field(ti.i32, 4), ti.Vector.field(3, ti.f32, 5, layout=ti.Layout.SOA), ti.Matrix.field(2, 1, ti.f64, 3)
    for field, shape in ((x, (4,)), (v, (5, 3)), (m, (3, 2))):
        for shared in (field.to_torch(copy=False), torch.from_dlpack(field).reshape(shape)):
            assert shared.shape == field.to_torch().shape == shape
            shared += 1
            assert torch.equal(shared, field.to_torch())
    assert v.to_torch(copy=False).stride() == (1, 5)
    b = ti.field(ti.bf16, 2)
    shared = b.to_torch(copy=False)
    shared[1] = 1.5
    assert shared.dtype is torch.bfloat16 and b[1] == 1.5
    s = ti.Struct.field({"mass": ti.f32, "pos": ti.math.vec3}, shape=2)
    s.to_torch(copy=False)["pos"][1] = torch.tensor([1.0, 2.0, 3.0])
    assert s[1].pos.to_list() == [1, 2, 3]
    ti.reset()
    assert shared[1] == 1.5


def test_fields_that_cannot_share_their_memory():
    sparse = ti.field(ti.f32)
    ti.root.pointer(ti.i, 4).place(sparse)
    with pytest.raises(ValueError, match="sparse layout.*leave out copy=False"):
        sparse.to_torch(copy=False)
