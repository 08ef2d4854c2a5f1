"""What the conformance suite computes: expressions of tensors, each beside the same one of NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class Case(NamedTuple):
    """An expression: of tensors (``ours`` is given `aerogel.tensor`), and of arrays. ``kinds``: see `arrays`."""

    name: str
    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    kinds: tuple[str, ...]


def arrays(kinds: tuple[str, ...]) -> list[Any]:
    """Arrays of some dtypes: ``f32+`` are above zero, ``i32i`` are indices below 4, ``u1`` are conditions."""
    import numpy as np

    random = np.random.default_rng(5)
    out = []
    for kind in kinds:
        dtype, _, shape = kind.partition(":")
        size = tuple(int(n) for n in shape.split("x")) if shape else (4, 6)
        name = dtype.rstrip("+i")
        if name == "u1":
            out.append(random.random(size) < 0.5)
        elif dtype.endswith("i"):
            out.append(random.integers(0, 4, size, np.int32))
        elif name[0] == "f":
            values = random.random(size) + 0.25 if dtype.endswith("+") else random.standard_normal(size) * 2
            out.append(values.astype({"f32": np.float32, "f64": np.float64, "f16": np.float16}[name]))
        else:
            low = 0 if name[0] == "u" else -50
            out.append(random.integers(low, 50, size).astype({"i": "int", "u": "uint"}[name[0]] + name[1:]))
    return out


def _same(names: str, *kinds: str) -> list[Case]:
    """Functions of these names in both."""

    def case(name: str) -> Case:
        return Case(
            f"{name} {', '.join(kinds)}",
            lambda t, *xs: getattr(t, name)(*xs),
            lambda n, *xs: getattr(n, name)(*xs),
            kinds,
        )

    return [case(name) for name in names.split()]


def _case(name: str, ours: Callable[..., Any], kinds: str, theirs: Callable[..., Any] | None = None) -> Case:
    return Case(name, ours, theirs or ours, tuple(kinds.split()))


def _stored(t: Any, x: Any, key: Any, value: Any) -> Any:
    x = t.asarray(x, copy=True)
    x[key] = value
    return x


def _softmax(n: Any, x: Any) -> Any:
    e = n.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def _gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    def of(t: Any, *xs: Any) -> Any:
        import aerogel as ti

        return ti.grad(lambda *ys: f(t, *ys).sum(), argnums=0)(*xs)

    return of


def _tanh_slope(n: Any, x: Any) -> Any:
    return 1 - n.tanh(x) ** 2


def _loop(t: Any, x: Any) -> Any:
    """Halves of numbers until they are below 1, in a program with a loop that points leave one by one."""
    import aerogel as ti
    from aerogel.tensor import programs as p

    @ti.program
    def halved(x: Any) -> Any:
        n = p.const(0)
        v = p.const(x * 1.0)
        with p.loop(40):
            with p.if_cond(v < 1.0):
                p.break_loop()
            v.val = v * 0.5
            n.val += 1
        return n

    return halved(x)


def _loop_of_numpy(n: Any, x: Any) -> Any:
    out = n.zeros(x.shape, n.int32)
    v = x.copy()
    for _ in range(40):
        out += v >= 1
        v = n.where(v >= 1, v * 0.5, v)
    return out


def _vmap(t: Any, x: Any, y: Any) -> Any:
    import aerogel as ti

    return ti.tensor.vmap(lambda a, b: (a * b).sum() + a[0])(x, y)


def _learned(t: Any, x: Any, y: Any) -> Any:
    """A linear model after ten steps of descent."""
    import aerogel as ti

    w = t.zeros((x.shape[1], y.shape[1]))
    for _ in range(10):
        w = w - 0.05 * ti.grad(lambda w: ((x @ w - y) ** 2).mean())(w)
    return w


def _learned_by_numpy(n: Any, x: Any, y: Any) -> Any:
    w = n.zeros((x.shape[1], y.shape[1]), x.dtype)
    for _ in range(10):
        w = w - 0.05 * 2 / y.size * x.T @ (x @ w - y)
    return w


def _convolved(t: Any, x: Any, w: Any) -> Any:
    from aerogel.nn import functional

    return functional.conv2d(x, w)


def _convolved_by_numpy(n: Any, x: Any, w: Any) -> Any:
    windows = n.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))
    return n.einsum("bcyxij,ocij->boyx", windows, w)


CASES: list[Case] = [
    *_same("exp sin cos tan tanh sinh cosh atan arctan floor ceil trunc abs sign square", "f32"),
    *_same("log log2 log1p sqrt expm1", "f32+"),
    *_same("exp sqrt log sin", "f64+"),
    *_same("add subtract multiply maximum minimum", "f32", "f32"),
    *_same("divide atan2", "f32", "f32+"),
    *_same("power", "f32+", "f32"),
    *_same("add subtract multiply maximum minimum bitwise_and bitwise_or bitwise_xor", "i32", "i32"),
    *_same("add multiply", "i64", "i64"),
    *_same("floor_divide remainder", "i32", "u8+"),
    *_same("bitwise_left_shift bitwise_right_shift", "i32", "i32i"),
    *_same("equal not_equal less less_equal greater greater_equal", "f32", "f32"),
    *_same("equal less", "i32", "i32"),
    *_same("logical_and logical_or logical_xor", "u1", "u1"),
    *_same("logical_not", "u1"),
    *_same("isnan isinf isfinite negative", "f32"),
    *_same("abs negative sign bitwise_invert", "i32"),
    _case("where", lambda t, c, x, y: t.where(c, x, y), "u1 f32 f32"),
    _case("cast to integers", lambda t, x: x.astype(t.int32), "f32"),
    _case("cast to u1", lambda t, x: x.astype("bool"), "f32", lambda n, x: x.astype(bool)),
    _case("cast of integers", lambda t, x: x.astype(t.float32), "i32"),
    _case("cast to a narrow float", lambda t, x: x.astype(t.float16), "f32"),
    _case("bits", lambda t, x: x.bitcast("i32"), "f32", lambda n, x: x.view(n.int32)),
    _case("broadcast", lambda t, x, y: x + y[:, None], "f32 f32:4"),
    _case("full", lambda t: t.full((3, 2), 1.5, dtype=t.float32), ""),
    _case("arange", lambda t: t.arange(2, 20, 3), "", lambda n: n.arange(2, 20, 3, dtype=n.int32)),
    _case("eye", lambda t: t.eye(3, dtype=t.float32), ""),
    _case("reshape", lambda t, x: t.reshape(x, (3, 8)), "f32"),
    _case("permute", lambda t, x: t.permute_dims(x, (2, 0, 1)), "f32:2x3x4"),
    _case("slice", lambda t, x: x[1:4:2, ::-1], "f32"),
    _case("row", lambda t, x: x[2], "f32"),
    _case("element", lambda t, x: x[2, -1], "f32"),
    _case("indices", lambda t, x, i: x[i], "f32 i32i:5"),
    _case("indices of two axes", lambda t, x, i, j: x[i, j], "f32 i32i:5 i32i:5"),
    _case(
        "take along axis",
        lambda t, x, i: t.take_along_axis(x, i, axis=1),
        "f32 i32i:4x3",
        lambda n, x, i: n.take_along_axis(x, i, 1),
    ),
    _case("mask of zeros", lambda t, x, c: _stored(t, x, c, 0), "f32 u1"),
    _case("store of a row", lambda t, x: _stored(t, x, 1, 7), "f32"),
    _case("store of a part", lambda t, x: _stored(t, x, (slice(1, 3), slice(None, None, 2)), 7), "f32"),
    _case("store at indices", lambda t, x, i: _stored(t, x, (i, 0), 7), "f32 i32i:5"),
    _case(
        "the last of several stores",
        lambda t, x: _stored(t, x, ([0, 0, 1], 0), t.asarray([1.0, 2.0, 3.0], dtype=t.float32)),
        "f32",
    ),
    _case(
        "scatter add",
        lambda t, x, i: t.scatter(x, i, t.ones(5), how="add"),
        "f32:4 i32i:5",
        lambda n, x, i: _added(n, x, i),
    ),
    _case("concat", lambda t, x, y: t.concat([x, y], axis=1), "f32 f32:4x2"),
    _case("stack", lambda t, x, y: t.stack([x, y], axis=1), "f32 f32"),
    _case("tile", lambda t, x: t.tile(x, (2, 2)), "f32"),
    _case("roll", lambda t, x: t.roll(x, 2, axis=1), "f32"),
    _case("flip", lambda t, x: t.flip(x, axis=0), "f32"),
    _case("pad", lambda t, x: t.pad(x, ((1, 0), (0, 2))), "f32"),
    _case("tril", lambda t, x: t.tril(x), "f32"),
    _case("triu", lambda t, x: t.triu(x), "f32"),
    _case("sum", lambda t, x: t.sum(x), "f32"),
    _case("sum of an axis", lambda t, x: t.sum(x, axis=0), "f32"),
    _case("sum of integers", lambda t, x: t.sum(x, axis=1), "i32", lambda n, x: n.sum(x, axis=1, dtype=n.int32)),
    _case("prod", lambda t, x: t.prod(x, axis=1), "f32"),
    _case("max", lambda t, x: t.max(x, axis=0), "f32"),
    _case("min", lambda t, x: t.min(x, axis=1), "f32"),
    _case("max of integers", lambda t, x: t.max(x), "i32"),
    _case("any", lambda t, c: t.any(c, axis=0), "u1"),
    _case("all", lambda t, c: t.all(c, axis=0), "u1"),
    _case("mean", lambda t, x: t.mean(x, axis=0), "f32"),
    _case("var", lambda t, x: t.var(x, axis=1), "f32"),
    _case("std", lambda t, x: t.std(x), "f32"),
    _case("argmax", lambda t, x: t.argmax(x, axis=1), "f32", lambda n, x: n.argmax(x, 1).astype(n.int32)),
    _case("argmin", lambda t, x: t.argmin(x, axis=0), "f32", lambda n, x: n.argmin(x, 0).astype(n.int32)),
    _case("cumsum", lambda t, x: t.cumulative_sum(x, axis=1), "f32", lambda n, x: n.cumsum(x, 1)),
    _case("cumprod", lambda t, x: t.cumulative_prod(x, axis=0), "f32", lambda n, x: n.cumprod(x, 0)),
    _case("sort", lambda t, x: t.sort(x, axis=1), "f32"),
    _case("sort downwards", lambda t, x: t.sort(x, axis=1, descending=True), "f32", lambda n, x: -n.sort(-x, 1)),
    _case(
        "argsort",
        lambda t, x: t.argsort(x, axis=1),
        "i32:3x20",
        lambda n, x: n.argsort(x, 1, kind="stable").astype(n.int32),
    ),
    _case(
        "argsort downwards",
        lambda t, x: t.argsort(x, axis=0, descending=True),
        "i32:20x2",
        lambda n, x: n.argsort(-x, 0, kind="stable").astype(n.int32),
    ),
    _case("matmul", lambda t, x, y: x @ y, "f32:4x6 f32:6x3"),
    _case("matmul of batches", lambda t, x, y: x @ y, "f32:2x4x6 f32:2x6x3"),
    _case("matmul of vectors", lambda t, x, y: t.vecdot(x, y), "f32:7 f32:7", lambda n, x, y: n.dot(x, y)),
    _case("matmul of integers", lambda t, x, y: x @ y, "i32:3x4 i32:4x2"),
    _case("outer", lambda t, x, y: t.einsum("i,j->ij", x, y), "f32:3 f32:4", lambda n, x, y: n.outer(x, y)),
    _case("einsum", lambda t, x, y: t.einsum("bij,bkj->bik", x, y), "f32:2x3x4 f32:2x5x4"),
    _case("softmax", lambda t, x: t.softmax(x, axis=1), "f32", _softmax),
    _case("convolution", _convolved, "f32:2x3x6x6 f32:4x3x3x3", _convolved_by_numpy),
    _case(
        "inverse",
        lambda t, x: t.linalg.inv(x + 8 * t.eye(4, dtype=t.float64)),
        "f64:4x4",
        lambda n, x: n.linalg.inv(x + 8 * n.eye(4)),
    ),
    _case("determinant", lambda t, x: t.linalg.det(x), "f64:4x4"),
    _case("fourier transform", lambda t, x: t.real(t.fft.fft(x)), "f64:8", lambda n, x: n.fft.fft(x).real),
    _case("an empty axis", lambda t: t.sum(t.zeros((0, 3), dtype=t.float32), axis=0), ""),
    _case("a single number", lambda t, x: x.sum() * 2 + 1, "f32"),
    _case("gradient of tanh", _gradient(lambda t, x: t.tanh(x)), "f32", lambda n, x: _tanh_slope(n, x)),
    _case(
        "gradient of a product",
        _gradient(lambda t, x, y: x @ y),
        "f32:3x4 f32:4x5",
        lambda n, x, y: n.tile(y.sum(1), (3, 1)),
    ),
    _case("gradient of a gather", _gradient(lambda t, x, i: x[i]), "f32:4 i32i:9", lambda n, x, i: _added(n, 0 * x, i)),
    _case(
        "gradient of a maximum",
        _gradient(lambda t, x: t.max(x, axis=1)),
        "f32",
        lambda n, x: (x == x.max(1, keepdims=True)).astype(n.float32),
    ),
    _case("a loop that points leave", _loop, "f32+:9", _loop_of_numpy),
    _case("vmap", _vmap, "f32 f32", lambda n, x, y: (x * y).sum(1) + x[:, 0]),
    _case("descent", _learned, "f32:8x3 f32:8x2", _learned_by_numpy),
]


def _added(n: Any, x: Any, i: Any) -> Any:
    x = x.copy()
    n.add.at(x, i, 1)
    return x
