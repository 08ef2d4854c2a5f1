"""Back ends: choosing them, the conformance suite and whether it notices mistakes, and back ends that are written wrongly."""

import numpy as np
import pytest

import aerogel as ti
from aerogel import nn, optim
from aerogel.backends import _conformance
from aerogel.backends._backend import DEFAULTS, Backend, expect_complete
from aerogel.backends._numpy import NumPy
from aerogel.tensor import programs as p


@pytest.fixture(autouse=True)
def settings():
    ti.init(arch=ti.cpu, log_level="error")


class Lean(NumPy):
    """NumPy with the required methods alone, whose storages hold what others cannot read."""

    name = "lean"


for _method in DEFAULTS:
    setattr(Lean, _method, getattr(Backend, _method))
ti.backends.register(Lean())


class Log(NumPy):
    """NumPy that notes what is called."""

    name = "log"

    def __init__(self):
        self.calls = []
        self.programs = []

    def binary(self, op, a, b):
        self.calls.append(op)
        return super().binary(op, a, b)

    def run(self, program, inputs):
        self.programs.append(program)
        return super().run(program, inputs)


LOG = ti.backends.register(Log())


def blas_or_skip(name):
    if name == "blas":
        try:
            ti.backends.use("blas").__enter__().__exit__()
        except RuntimeError as e:
            pytest.skip(str(e))


@pytest.mark.parametrize("name", ["native", "interp", "blas", "numpy", "lean"])
def test_conformance(name):
    blas_or_skip(name)
    outcomes = _conformance.run(name)
    assert len(outcomes) > 100
    assert not [o for o in outcomes if o.failure]


def test_a_back_end_of_required_methods_alone():
    assert not [o for o in _conformance.of_methods(ti.backends.get("lean")) if o.failure]


@pytest.mark.parametrize("name", ["numpy", "lean"])
def test_each_mutant_is_noticed(name):
    unnoticed = []
    for method, mutant in _conformance.mutants(ti.backends.get(name)):
        if not any(o.failure for o in _conformance.of_methods(mutant)):
            unnoticed.append(method)
    assert unnoticed == []


def test_choosing():
    assert ti.backends.current() == "native"
    with ti.backends.use("numpy"):
        x = ti.tensor.asarray([1.0, 2.0])
        assert ti.backends.current() == "numpy"
        with ti.backends.use("interp"):
            assert (ti.tensor.asarray([3.0]) + 1).backend == "interp"
        assert x.backend == "numpy"
    assert ti.backends.current() == "native"
    assert (x + 1).backend == "numpy"
    assert ti.tensor.asarray([1.0]).backend == "native"
    ti.backends.use("numpy")
    assert ti.tensor.asarray([1.0]).backend == "numpy"
    ti.init(arch=ti.cpu, log_level="error", backend="interp")
    assert ti.tensor.asarray([1.0]).backend == "interp"
    ti.init(arch=ti.cpu, log_level="error")
    assert ti.tensor.asarray([1.0]).backend == "native"
    with pytest.raises(ValueError, match="no back end 'nupmy'; there are .*numpy"):
        ti.init(backend="nupmy")
    ti.init(arch=ti.cpu, log_level="error")


def test_mixing_names_both_and_the_line():
    x, y = ti.tensor.ones(3) * ti.tensor.asarray([1.0, 2.0, 3.0]), ti.tensor.asarray([1.0, 2.0, 3.0]).to("numpy")
    with pytest.raises(ValueError, match="back end `native` and one of back end `numpy`"):
        x + y
    assert (x.to("numpy") + y).tolist() == [2, 4, 6]
    with pytest.raises(ValueError, match="back end"):
        x[:2] = y[:2]
        x.realize()

    @ti.program
    def both(x, y):
        return x + y

    with pytest.raises(ValueError, match="back end `native` and one of back end `numpy`"):
        both(x, y)


def test_numbers_and_constants_mix():
    x = ti.tensor.asarray([1.0, 2.0]).to("numpy")
    one = ti.tensor.ones(2)
    assert (one + 1).tolist() == [2, 2]
    assert (x + one).tolist() == [2, 3]
    assert (x * ti.tensor.asarray(3.0)).tolist() == [3, 6]
    assert (one + 1).backend == "native"
    with ti.backends.use("numpy"):
        assert (one + 1).backend == "numpy"
        assert (one + 1).tolist() == [2, 2]


def test_eager():
    LOG.calls.clear()
    with ti.backends.use("log"):
        y = ti.tensor.asarray([1.0, 2.0]) * 3
        assert LOG.calls == []
    with ti.backends.use("log", eager=True):
        z = ti.tensor.asarray([1.0, 2.0]) * 3
        assert LOG.calls == ["mul"]
    assert y.tolist() == z.tolist() == [3, 6]
    with ti.backends.use("native", eager=True):
        assert (ti.tensor.asarray([1.0]) + 1)._native.is_realised()
    assert not (ti.tensor.asarray([1.0]) + 1)._native.is_realised()


def test_run_is_given_the_program():
    LOG.programs.clear()
    x = ti.tensor.asarray([1.0, 2.0]).to("log")
    for _ in range(3):
        assert (x.to("native").to("log") * 2 + 1).tolist() == [3, 5]
    # The first may read constants that were computed before.
    first, second, third = LOG.programs
    assert third is second
    for program in (first, second):
        assert "mul(" in program.text
        assert (2,) in [b.shape for b in program.buffers if b.is_input]


def test_storages_go_in_and_out():
    array = np.array([1.0, 2.0], np.float32)
    x = ti.backends.tensor(array, "numpy")
    assert ti.backends.storage(x) is array
    assert (x + 1).tolist() == [2, 3]
    assert isinstance(ti.backends.storage(x + 1), np.ndarray)
    with pytest.raises(ValueError, match="memory of the host"):
        ti.backends.storage(ti.tensor.ones(2) + ti.tensor.asarray([1.0, 2.0]))


class Boxed(Backend):
    """Storages are boxes of arrays, with no attributes that anybody knows, and are made of native tensors by another back end."""

    name = "boxed"

    class Box:
        __slots__ = ("inside",)

        def __init__(self, inside):
            self.inside = inside

    def describe(self, x):
        return ti.backends.get("numpy").describe(x.inside)

    def supports(self, dtype):
        return str(dtype) in ("f32", "i32", "u1")


def _delegated(method):
    def call(self, *args):
        opened = [[i.inside for i in a] if isinstance(a, list) else getattr(a, "inside", a) for a in args]
        made = getattr(ti.backends.get("numpy"), method)(*opened)
        return made if method == "to_host" else Boxed.Box(made)

    return call


for _method in (
    "from_host",
    "to_host",
    "full",
    "iota",
    "unary",
    "binary",
    "compare",
    "select",
    "cast",
    "gather",
    "scatter",
):
    setattr(Boxed, _method, _delegated(_method))


class Summing(Boxed):
    def reduce(self, accum, x, axes):
        # A native tensor computes it.
        assert accum == "add"
        return Boxed.Box(ti.tensor.asarray(x.inside).sum(axis=tuple(axes)).numpy())


ti.backends.register(Summing())


def test_storages_are_opaque():
    x = ti.tensor.asarray([[1.0, 2.0], [3.0, 4.0]]).to("boxed")
    assert isinstance(ti.backends.storage(x), Boxed.Box)
    assert (x.T @ x + x[0]).tolist() == [[11, 16], [15, 22]]


def test_delegation():
    x = ti.tensor.asarray([[1.0, 2.0], [3.0, 4.0]]).to("boxed")
    assert x.sum(axis=0).tolist() == [4, 6]
    assert x.sum(axis=0).backend == "boxed"
    with pytest.raises(AssertionError):
        x.prod().item()
    assert ti.backends.current() == "native"


def test_unsupported_dtype():
    with pytest.raises(TypeError, match="back end `boxed` does not support f64"):
        ti.tensor.asarray([1.0], dtype=ti.f64).to("boxed")
    with pytest.raises(TypeError, match="back end `numpy` does not support bf16"):
        ti.tensor.asarray([1.0]).to("numpy").astype(ti.bf16).realize()


class Later(NumPy):
    """Elementwise operations are values to come, which are computed when somebody needs them."""

    name = "later"

    class Promise:
        def __init__(self, make, dtype, shape):
            self.make, self.dtype, self.shape, self.made = make, dtype, shape, None

        def value(self):
            if self.made is None:
                self.made = self.make()
            return self.made

    def __init__(self):
        self.n_begun, self.n_waited = 0, 0

    def eval(self, storages):
        self.n_begun += len(storages)

    def sync(self, stream=None):
        self.n_waited += 1

    def memory_info(self):
        return {"begun": self.n_begun}


def _promised(method):
    plain = NumPy.__dict__[method]

    def call(self, *args):
        first = next(a for a in args if hasattr(a, "shape"))
        dtype, shape = self.describe(first)

        def value(x):
            return x.value() if isinstance(x, Later.Promise) else x

        return Later.Promise(lambda: plain(self, *map(value, args)), dtype, shape)

    return call


for _method in ("unary", "binary"):
    setattr(Later, _method, _promised(_method))
for _method in (
    "reduce",
    "select",
    "cast",
    "gather",
    "to_host",
    "compare",
    "scatter",
    "reshape",
    "permute",
    "expand",
    "matmul",
):

    def _forced(self, *args, _plain=NumPy.__dict__[_method]):
        def value(x):
            return x.value() if isinstance(x, Later.Promise) else [value(y) for y in x] if isinstance(x, list) else x

        return _plain(self, *map(value, args))

    setattr(Later, _method, _forced)
LATER = ti.backends.register(Later())


def test_a_lazy_back_end():
    x = ti.tensor.asarray([1.0, 2.0]).to("later")
    before = LATER.n_begun
    y = ti.tensor.exp(x) * 2
    storage = ti.backends.storage(y)
    assert isinstance(storage, Later.Promise)
    assert storage.made is None
    assert LATER.n_begun == before + 1
    np.testing.assert_allclose(y.numpy(), 2 * np.exp([1, 2]), rtol=1e-6)
    assert storage.made is not None


@pytest.mark.parametrize("name", ["numpy", "lean", "interp", "blas"])
def test_training(name):
    """Two layers learn exclusive or, with the losses of the native back end."""
    blas_or_skip(name)

    def losses(name):
        with ti.backends.use(name):
            ti.tensor.random.seed(3)
            x = ti.tensor.asarray([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
            y = ti.tensor.asarray([[0.0], [1.0], [1.0], [0.0]])
            net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
            adam = optim.Adam(net, lr=0.1)
            out = []
            for _ in range(8 if name == "interp" else 60):
                loss, gradient = ti.value_and_grad(lambda net: nn.functional.mse_loss(net(x), y))(net)
                adam.apply(gradient)
                out.append(loss.item())
            assert net[0].weight.backend == name
        return out

    found = losses(name)
    np.testing.assert_allclose(found, losses("native")[: len(found)], rtol=2e-3, atol=1e-6)
    assert name == "interp" or found[-1] < 0.01


@pytest.mark.parametrize("name", ["numpy", "lean", "interp"])
def test_backward(name):
    with ti.backends.use(name):
        w = ti.tensor.asarray([1.0, -2.0, 3.0]).requires_grad_()
        loss = (ti.tensor.exp(w) * w).sum()
        loss.backward()
        assert w.grad.backend == name
        values = np.array([1, -2, 3], np.float32)
        np.testing.assert_allclose(w.grad.numpy(), np.exp(values) * (1 + values), rtol=1e-5)


@pytest.mark.parametrize("name", ["native", "interp", "numpy", "lean"])
def test_programs(name):
    @ti.program
    def grown(x, n: int):
        v = x + 0.0
        with p.loop(n):
            with p.if_cond(v.sum() > 100.0):
                p.break_loop()
            v.val = v * 2 + ti.tensor.roll(v, 1)
        return v, v.sum()

    @ti.program
    def slope(x):
        def f(x):
            v = x + 0.0
            with p.loop(3):
                v.val = v * x
            return v.sum()

        return ti.grad(f)(x)

    with ti.backends.use(name):
        for n in (3, 5):
            x = ti.tensor.arange(float(n)) + 1
            v, total = grown(x, 20)
            wanted = np.arange(1.0, n + 1, dtype=np.float32)
            while wanted.sum() <= 100:
                wanted = wanted * 2 + np.roll(wanted, 1)
            assert v.tolist() == wanted.tolist()
            assert total.item() == wanted.sum()
            assert v.backend == name
            np.testing.assert_allclose(slope(x).numpy(), 4 * x.numpy() ** 3, rtol=1e-6)
    assert grown.trace_count == 1


def test_parallel_blocks():
    @p.program
    def counted():
        a = p.input([-1], ti.i32)
        counts = p.buffer([3], ti.i32)
        best = p.buffer([1], ti.i32)
        with p.kernel(a.shape) as k:
            with p.if_cond(a[k] >= 0):
                p.scatter_add(counts, a[k], 1)
                p.scatter_max(best, 0, a[k] * k)
        return counts, best

    given = [0, 2, 2, -1, 0, 1]
    wanted = [x.tolist() for x in counted(given)]
    for name in ("numpy", "lean", "interp"):
        with ti.backends.use(name):
            assert [x.tolist() for x in counted(ti.tensor.asarray(given))] == wanted == [[2, 1, 2], [5]]


def test_an_index_outside_names_the_line():
    x, i = ti.tensor.arange(3.0).to("numpy"), ti.tensor.asarray([0, 7]).to("numpy")
    with pytest.raises(IndexError, match=r"(?s)index 7 is outside axis 0 with 3 elements.*y = x\[i\]"):
        y = x[i]
        y.realize()


def test_stores_in_place_reach_the_back_end():
    x = ti.tensor.asarray([1.0, 2.0, 3.0]).to("numpy")
    assert (x * 1).tolist() == [1, 2, 3]
    for k in range(20):
        x[k % 3] = float(k)
        assert x.backend == "numpy"
        assert (x + 0).tolist() == x.tolist()
    assert x.tolist() == [18, 19, 17]


def test_fields_and_kernels_are_native():
    field = ti.field(ti.f32, shape=3)
    field.from_numpy(np.array([1.0, 2.0, 3.0], np.float32))

    @ti.program
    def read(x):
        return x + ti.tensor.asarray(field)

    x = ti.tensor.asarray([1.0, 1.0, 1.0])
    assert read(x).tolist() == [2, 3, 4]
    for name in ("numpy", "interp"):
        with pytest.raises(RuntimeError, match="fields run on the back end `native` only"):
            read(x.to(name))

    @ti.kernel
    def doubled(a: ti.types.ndarray()):
        for i in a:
            a[i] *= 2

    y = x.to("numpy")
    doubled(y)
    assert (y + 1).tolist() == [3, 3, 3]
    assert y.backend == "numpy"


def test_dropped_tensors_release_storages():
    import gc
    import weakref

    class Storage(np.ndarray):
        pass

    array = np.zeros(4, np.float32).view(Storage)
    gone = weakref.ref(array)
    x = ti.backends.tensor(array, "numpy")
    del array
    assert (x + 1).tolist() == [1, 1, 1, 1]
    del x
    ti._native.tidy_tensors()
    (ti.tensor.ones(2) + 1).realize()
    gc.collect()
    assert gone() is None


# What is written wrongly.


def test_a_missing_method_is_named():
    class Half(Backend):
        name = "half"

        def supports(self, dtype):
            return True

    with pytest.raises(TypeError, match=r"(?s)`half` lacks .*`gather\(x, indices, outside\)`.*no default.*matmul"):
        ti.backends.register(Half())
    with pytest.raises(TypeError, match=r"lacks the method `iota\(n, dtype\)`, which is required and has no default"):
        Half().iota(3, ti.i32)
    with pytest.raises(TypeError, match="default is an error"):
        Half().device_pointer(None)
    with pytest.raises(TypeError, match="derived from"):
        ti.backends.register(object())

    class Nameless(NumPy):
        name = "two words"

    with pytest.raises(TypeError, match="identifier"):
        expect_complete(Nameless())


def test_a_name_is_registered_once():
    with pytest.raises(ValueError, match="there is a back end `lean` already, registered as Lean"):
        ti.backends.register(Lean())
    for name in ("native", "interp", "blas", "numpy"):
        own = type("Own", (NumPy,), {"name": name})
        with pytest.raises(ValueError, match=f"`{name}` already"):
            ti.backends.register(own())


WRONG = {
    "reduce": (lambda made: made[..., None], r"the result of `reduce` has to be f32\[\], and is f32\[1\]"),
    "binary": (lambda made: made.astype(np.float64), r"the result of `binary` has to be f32\[3\], and is f64\[3\]"),
    "from_host": (lambda made: made.reshape(-1, 1), r"the result of `from_host` has to be f32\[3\]"),
    "run": (lambda made: [*made, made[0]], r"`run` has to return \d values, not \d values"),
    "to_host": (lambda made: made.tolist(), "`to_host` has to return an array of NumPy's, float32"),
    "iota": (lambda made: None, "the result of `iota` has to be i32"),
}


@pytest.mark.parametrize("method", WRONG)
def test_a_wrong_result_is_named_at_once(method):
    change, message = WRONG[method]
    plain = getattr(NumPy, method)
    kind = type("Wrong", (NumPy,), {method: lambda self, *args: change(plain(self, *args)), "name": f"wrong_{method}"})
    ti.backends.register(kind())
    with pytest.raises(ti.backends.WrongResult, match=message):
        x = ti.tensor.asarray([1.0, 2.0, 3.0]).to(f"wrong_{method}")
        assert (x * x + ti.tensor.arange(3)).sum().item() == 17


def test_blas_names_what_is_missing(monkeypatch, tmp_path):
    from aerogel.backends import _blas

    nothing = tmp_path / "libnothing.so"
    nothing.write_text("no library")
    monkeypatch.setenv("AEROGEL_BLAS", str(nothing))
    with pytest.raises(RuntimeError, match=r"(?s)cblas_sgemm.*scipy-openblas64.*AEROGEL_BLAS.*libnothing"):
        _blas.functions()


@pytest.mark.parametrize("dtype", [ti.f32, ti.f64])
def test_blas_multiplies(dtype):
    blas_or_skip("blas")
    random = np.random.default_rng(0)
    a, b = random.standard_normal((2, 300, 260)), random.standard_normal((2, 260, 280))
    with ti.backends.use("blas"):
        x, y = ti.tensor.asarray(a, dtype=dtype), ti.tensor.asarray(b, dtype=dtype)
        found = (x @ y).numpy()
    np.testing.assert_allclose(found, a @ b, rtol=1e-3 if dtype is ti.f32 else 1e-10, atol=1e-3)
