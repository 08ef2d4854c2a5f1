"""The names of fl::Tensor: each function beside NumPy's, and the methods of tensors."""

import io

import numpy as np
import pytest

import aerogel as ti
from aerogel import fl
from aerogel.backends._numpy import NumPy

ALL = """
backendType eval supportsDataType getMemMgrInfo setMemMgrLogStream setMemMgrLoggingEnabled setMemMgrFlushInterval setSeed
randn rand fromScalar full identity arange iota reshape transpose tile concatenate nonzero pad exp log negative logicalNot
log1p sin cos sqrt tanh floor ceil rint absolute sigmoid erf flip clip roll isnan isinf sign tril triu where topk sort
argsort add sub mul div eq neq lessThan lessThanEqual greaterThan greaterThanEqual logicalOr logicalAnd mod bitwiseAnd
bitwiseOr bitwiseXor lShift rShift minimum maximum power matmul amin amax min max sum cumsum argmax argmin mean median var
std norm countNonzero any all print
""".split()
METHODS = """
clone backendType backend copy shallowCopy shape type isSparse location scalar device host unlock isLocked isContiguous
strides stream astype index flatten flat asContiguousTensor setContext getContext toString assign inPlaceAdd
inPlaceSubtract inPlaceMultiply inPlaceDivide
""".split()
BACKENDS = ["native", "numpy"]


@pytest.fixture(autouse=True, params=BACKENDS)
def backend(request):
    ti.init(arch=ti.cpu, log_level="error")
    with ti.backends.use(request.param):
        yield request.param


def test_all_names_are_there():
    assert len(ALL) == 87
    assert [name for name in ALL if not callable(getattr(fl, name, None))] == []
    assert len(METHODS) == 30
    assert [name for name in METHODS if not callable(getattr(fl.Tensor, name, None))] == []
    assert set(fl.__all__) <= set(dir(fl))


random = np.random.default_rng(2)
X, Y = random.standard_normal((2, 3, 4)).astype(np.float32)
P, Q = np.abs(X) + 0.5, np.abs(Y) + 0.5
I, J = random.integers(-20, 20, (2, 3, 4)).astype(np.int32)
S = random.integers(0, 5, (3, 4)).astype(np.int32)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def erf(x):
    import math

    return np.vectorize(math.erf)(x)


CHECKS = {
    **{name: (X, getattr(np, theirs)) for name, theirs in {
        "exp": "exp", "negative": "negative", "sin": "sin", "cos": "cos", "tanh": "tanh", "floor": "floor", "ceil": "ceil",
        "rint": "rint", "absolute": "abs", "isnan": "isnan", "isinf": "isinf", "sign": "sign", "tril": "tril", "triu": "triu",
    }.items()},
    "log": (P, np.log), "log1p": (P, np.log1p), "sqrt": (P, np.sqrt), "sigmoid": (X, sigmoid), "erf": (X, erf),
    "logicalNot": (S, np.logical_not),
    **{name: (X, Y, getattr(np, theirs)) for name, theirs in {
        "add": "add", "sub": "subtract", "mul": "multiply", "eq": "equal", "neq": "not_equal", "lessThan": "less",
        "lessThanEqual": "less_equal", "greaterThan": "greater", "greaterThanEqual": "greater_equal",
        "minimum": "minimum", "maximum": "maximum",
    }.items()},
    "div": (X, Q, np.divide), "power": (P, Y, np.power), "mod": (I, J, np.fmod),
    "logicalOr": (S, J, np.logical_or), "logicalAnd": (S, J, np.logical_and),
    "bitwiseAnd": (I, J, np.bitwise_and), "bitwiseOr": (I, J, np.bitwise_or), "bitwiseXor": (I, J, np.bitwise_xor),
    "lShift": (I, S, np.left_shift), "rShift": (I, S, np.right_shift),
    "where": (X > 0, X, Y, np.where),
}  # fmt: skip


@pytest.mark.parametrize("name", CHECKS)
def test_functions(name, backend):
    *given, theirs = CHECKS[name]
    with np.errstate(all="ignore"):
        wanted = theirs(*given)
    if name == "mod":
        # An integer by zero is 0 here.
        wanted = np.where(J == 0, 0, wanted)
    made = getattr(fl, name)(*[fl.Tensor(x) for x in given])
    assert made.backendType() == backend
    np.testing.assert_allclose(made.host(), wanted, rtol=1e-5, atol=1e-6)


REDUCED = {
    "amin": np.min, "amax": np.max, "sum": np.sum, "mean": np.mean, "median": np.median, "std": np.std, "var": np.var,
    "any": np.any, "all": np.all, "countNonzero": np.count_nonzero,
    "norm": lambda x, axis, keepdims: np.sqrt(np.sum(x**2, axis=axis, keepdims=keepdims)),
}  # fmt: skip


@pytest.mark.parametrize("name", REDUCED)
def test_functions_along_axes(name):
    x = (X > 0) if name in ("any", "all", "countNonzero") else X
    for axes in ([], [0], [1], [0, 1]):
        for keep in (False, True):
            wanted = REDUCED[name](x, axis=tuple(axes) or None, keepdims=keep)
            made = getattr(fl, name)(fl.Tensor(x), axes, keepDims=keep)
            np.testing.assert_allclose(made.host(), wanted, rtol=1e-5)


def test_functions_of_other_arguments():
    x, y = fl.Tensor(X), fl.Tensor(Y)
    np.testing.assert_allclose(fl.var(x, [1], True).host(), X.var(1, ddof=1), rtol=1e-5)
    np.testing.assert_allclose(fl.norm(x, [1], 3).host(), (np.abs(X) ** 3).sum(1) ** (1 / 3), rtol=1e-5)
    assert fl.identity(2).host().tolist() == [[1, 0], [0, 1]]
    assert fl.full(fl.Shape([2]), 3, fl.dtype.s32).host().tolist() == [3, 3]
    assert fl.fromScalar(4).scalar() == 4
    assert fl.arange(1, 7, 2).host().tolist() == [1, 3, 5]
    assert fl.arange(fl.Shape([2, 3]), 1).host().tolist() == [[0, 1, 2], [0, 1, 2]]
    assert fl.iota([2, 2], [1, 2]).host().tolist() == [[0, 1, 0, 1], [2, 3, 2, 3]]
    assert fl.transpose(x).shape() == (4, 3)
    assert fl.transpose(fl.reshape(x, [3, 2, 2]), [2, 0, 1]).shape() == (2, 3, 2)
    np.testing.assert_array_equal(fl.concatenate([x, y], 1).host(), np.concatenate([X, Y], 1))
    np.testing.assert_array_equal(fl.tile(x, [2, 2]).host(), np.tile(X, (2, 2)))
    np.testing.assert_array_equal(fl.flip(x, 1).host(), X[:, ::-1])
    np.testing.assert_array_equal(fl.roll(x, 1, 0).host(), np.roll(X, 1, 0))
    np.testing.assert_array_equal(fl.clip(x, -0.5, 0.5).host(), np.clip(X, np.float32(-0.5), np.float32(0.5)))
    np.testing.assert_allclose(fl.cumsum(x, 1).host(), np.cumsum(X, 1), rtol=1e-5)
    assert fl.nonzero(fl.Tensor([[0, 3], [4, 0]])).host().tolist() == [1, 2]
    for kind, mode in (("Constant", "constant"), ("Edge", "edge"), ("Symmetric", "symmetric")):
        made = fl.pad(x, [(1, 2), (0, 3)], getattr(fl.PadType, kind))
        np.testing.assert_array_equal(made.host(), np.pad(X, ((1, 2), (0, 3)), mode))
    with pytest.raises(ValueError, match="cannot be mirrored"):
        fl.pad(x, [(4, 0)], fl.PadType.Symmetric)


def test_order():
    x = fl.Tensor(X)
    np.testing.assert_array_equal(fl.sort(x, 1).host(), np.sort(X, 1))
    np.testing.assert_array_equal(fl.sort(x, 0, fl.SortMode.Descending).host(), -np.sort(-X, 0))
    np.testing.assert_array_equal(fl.argsort(x, 1).host(), np.argsort(X, 1))
    values, indices = fl.topk(x, 2, 1)
    np.testing.assert_array_equal(values.host(), -np.sort(-X, 1)[:, :2])
    np.testing.assert_array_equal(indices.host(), np.argsort(-X, 1)[:, :2])
    values, indices = fl.topk(x, 2, 0, fl.SortMode.Ascending)
    np.testing.assert_array_equal(values.host(), np.sort(X, 0)[:2])
    for function, theirs, at in ((fl.min, np.min, np.argmin), (fl.max, np.max, np.argmax)):
        values, indices = function(x, 1)
        np.testing.assert_array_equal(values.host(), theirs(X, 1))
        np.testing.assert_array_equal(indices.host(), at(X, 1))
    assert fl.argmax(x, 0, True).shape() == (1, 4)
    assert fl.argmin(x, 1).host().tolist() == np.argmin(X, 1).tolist()


def test_products():
    a, b = fl.Tensor(X), fl.Tensor(Y)
    transposed = fl.MatrixProperty.Transpose
    np.testing.assert_allclose(fl.matmul(a, b, rhsProp=transposed).host(), X @ Y.T, rtol=1e-4)
    np.testing.assert_allclose(fl.matmul(a, b, transposed).host(), X.T @ Y, rtol=1e-4)
    v = fl.Tensor([1.0, 2.0])
    assert fl.matmul(v, v).shape() == (1,)
    assert fl.matmul(v, v).scalar() == 5


def test_random_numbers():
    fl.setSeed(3)
    a, b = fl.rand([1000]), fl.randn([1000])
    fl.setSeed(3)
    np.testing.assert_array_equal(fl.rand([1000]).host(), a.host())
    assert 0 <= a.host().min() < 0.1 < 0.9 < a.host().max() < 1
    assert abs(b.host().mean()) < 0.15
    assert abs(b.host().std() - 1) < 0.1
    assert fl.rand([2], fl.dtype.f64).type() is ti.f64


def test_what_a_tensor_is(backend):
    x = fl.Tensor(fl.Shape([2, 3]), fl.dtype.s32)
    assert (x.shape(), x.ndim(), x.elements(), x.dim(1)) == (fl.Shape([2, 3]), 2, 6, 3)
    assert x.type() is ti.i32
    assert x.strides() == (3, 1)
    assert x.isContiguous()
    assert not x.isSparse()
    assert x.asContiguousTensor() is x
    assert x.backendType() == fl.backendType() == backend
    assert x.backend() == "native" if backend == "native" else isinstance(x.backend(), NumPy)
    assert x.astype(fl.dtype.f32).type() is ti.f32
    assert "i32" in x.toString()
    x.setContext("context")
    assert x.getContext() == "context"
    assert fl.Shape([2, 5]).elements() == 10
    assert fl.Shape([2, 5]).get() == [2, 5]
    with pytest.raises(IndexError, match="no axis 2"):
        fl.Shape([2, 5]).dim(2)
    assert fl.supportsDataType(fl.dtype.f32)
    assert fl.supportsDataType(ti.bf16) == (backend == "native")
    assert [str(getattr(fl.dtype, n)) for n in "f16 f32 f64 b8 s16 s32 s64 u8 u16 u32 u64".split()] == [
        "f16", "f32", "f64", "u1", "i16", "i32", "i64", "u8", "u16", "u32", "u64",
    ]  # fmt: skip


def test_indices():
    x, a = fl.Tensor(X), X
    rows = fl.Tensor([2, 0])
    for ours, theirs in [
        ([fl.range(1, 3), fl.span], a[1:3]),
        ([fl.range(1, fl.end)], a[1:]),
        ([fl.range(2)], a[:2]),
        ([fl.span, fl.range(0, 4, 2)], a[:, ::2]),
        ([1, 2], a[1, 2]),
        ([-1], a[-1]),
        ([rows], a[[2, 0]]),
        ([fl.span, rows], a[:, [2, 0]]),
        ([x > 0], a[a > 0]),
        ([fl.Index(fl.range(1)), fl.Index(3)], a[:1, 3]),
    ]:
        np.testing.assert_array_equal(x.index(ours).host(), theirs)
    np.testing.assert_array_equal(x(1, fl.span).host(), a[1])
    assert x.flat(5).scalar() == a.reshape(-1)[5]
    assert x.flatten().shape() == (12,)
    x[fl.range(1), fl.span] = 7
    assert x.host()[0].tolist() == [7] * 4
    with pytest.raises(TypeError, match="an index is a number"):
        x.index(["rows"])
    with pytest.raises(ValueError, match="stride"):
        fl.range(3, 0, -1)
    with pytest.raises(TypeError, match="takes integers"):
        fl.range(0.5)


def test_copies_and_changes_in_place():
    x = fl.Tensor([1.0, 2.0])
    y, z, w = x.copy(), x.shallowCopy(), x.clone()
    x.inPlaceAdd(1)
    x.inPlaceMultiply(fl.Tensor([2.0, 3.0]))
    x.inPlaceSubtract(1)
    x.inPlaceDivide(2)
    assert x.host().tolist() == [1.5, 4]
    assert [t.host().tolist() for t in (y, z, w)] == [[1, 2]] * 3
    x.assign(y)
    x += 1
    assert x.host().tolist() == [2, 3]
    assert x.scalar() == 2
    with pytest.raises(TypeError, match="quotient"):
        fl.Tensor([4]).inPlaceDivide(2)
    assert ((2 * x - x / 2 + 1) == fl.Tensor([4.0, 5.5])).host().all()


def test_memory(backend):
    import ctypes

    x = fl.Tensor([1.0, 2.0, 3.0]) + 1
    assert x.host().tolist() == [2, 3, 4]
    if backend != "native":
        assert x.location() is fl.Location.Device
        with pytest.raises(TypeError, match="no method `device_pointer`"):
            x.device()
        return
    assert x.location() is fl.Location.Host
    assert not x.isLocked()
    address = x.device()
    assert x.isLocked()
    assert list((ctypes.c_float * 3).from_address(address)) == [2, 3, 4]
    x.unlock()
    assert not x.isLocked()


class Device(NumPy):
    """NumPy with addresses, and a count of those that are in use."""

    name = "device"
    in_use = 0
    waited = 0

    def device_pointer(self, x):
        self.in_use += 1
        return x.ctypes.data

    def unlock(self, x):
        self.in_use -= 1

    def sync(self, stream=None):
        self.waited += 1

    def memory_info(self):
        return {"in_use": self.in_use}


DEVICE = ti.backends.register(Device())


def test_streams(backend):
    x = fl.Tensor([1.0, 2.0]).to("device")
    assert x.device() > 0
    assert DEVICE.in_use == 1
    x.unlock()
    assert DEVICE.in_use == 0
    before = DEVICE.waited
    x.stream().sync()
    fl.Tensor([1.0]).stream().relativeSync(x.stream())
    x.stream().relativeSync(x.stream())
    assert DEVICE.waited == before + 2
    fl.sync()


def test_memory_manager():
    with ti.backends.use("device"):
        assert "device: in_use: 0" in fl.getMemMgrInfo()
    log = io.StringIO()
    fl.setMemMgrLogStream(log)
    fl.setMemMgrLoggingEnabled(True)
    fl.setMemMgrFlushInterval(2)
    x = fl.Tensor([1.0]) + 1
    fl.eval(x)
    assert log.getvalue() == ""
    x.host()
    assert [line.split(":")[0] for line in log.getvalue().splitlines()] == ["eval", "host"]
    fl.setMemMgrLoggingEnabled(False)
    fl.setMemMgrFlushInterval(1)
    fl.setMemMgrLogStream(None)
    with pytest.raises(ValueError, match="1 line or more"):
        fl.setMemMgrFlushInterval(0)


def test_print(capsys):
    fl.print(fl.Tensor([1.0]))
    assert capsys.readouterr().out == "tensor([1.], dtype=f32)\n"


def test_delegated_gradients():
    """What `aerogel.fl` computes has gradients."""

    def loss(x):
        return fl.sum(fl.mul(fl.tanh(fl.Tensor(x)), fl.Tensor(x)))._values

    x = ti.tensor.asarray([0.5, 1.0])
    values = np.array([0.5, 1.0])
    wanted = np.tanh(values) + values * (1 - np.tanh(values) ** 2)
    np.testing.assert_allclose(ti.grad(loss)(x).numpy(), wanted, rtol=1e-5)
