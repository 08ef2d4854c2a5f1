"""The conformance suite: what a back end has to compute, method by method and as a whole, and whether it does.

`mutants` are copies of a back end in each of which one method returns something else: the suite must find every one.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, NamedTuple

from aerogel._dtypes import ALL, numpy_dtype
from aerogel.backends import _cases, _registry
from aerogel.backends._backend import DEFAULTS, REQUIRED, Backend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

f32, i32, u1 = ALL["f32"], ALL["i32"], ALL["u1"]


class Outcome(NamedTuple):
    """A check: what it is called, and what was wrong, or nothing."""

    name: str
    failure: str


def run(name: str) -> list[Outcome]:
    """All checks of a back end.

    Raises:
        ValueError: There is no such back end.
    """
    backend = _registry.entry(name).backend
    outcomes = list(of_methods(backend)) if backend is not None else []
    return (
        outcomes
        + [_outcome(case.name, lambda case=case: _case(name, case)) for case in _cases.CASES]
        + [_outcome(check.__doc__ or "", lambda check=check: check(name)) for check in _OF_MEMORY]
    )


def _outcome(name: str, check: Callable[[], Any]) -> Outcome:
    try:
        check()
    except Exception as e:
        return Outcome(name, f"{type(e).__name__}: {e}")
    return Outcome(name, "")


def expect_close(found: Any, wanted: Any) -> None:
    """That arrays are equal, floats up to rounding.

    Raises:
        AssertionError: They are not.
    """
    import numpy as np

    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.shape == wanted.shape, f"the shape is {found.shape}, not {wanted.shape}"
    if found.dtype.kind == "f":
        bound = {2: 4e-3, 4: 2e-5, 8: 1e-11}[found.dtype.itemsize]
        np.testing.assert_allclose(found, wanted, rtol=bound, atol=bound)
    else:
        np.testing.assert_array_equal(found, wanted)


class _Names:
    """The functions of tensors, by NumPy's names where they have others."""

    def __getattr__(self, name: str) -> Any:
        import aerogel as ti

        return getattr(ti.tensor if hasattr(ti.tensor, name) else ti.xp, name)


def _case(name: str, case: _cases.Case) -> None:
    import numpy as np

    import aerogel as ti

    given = _cases.arrays(case.kinds)
    with _registry.use(name), np.errstate(all="ignore"):
        found = case.ours(_Names(), *[ti.tensor.asarray(x) for x in given])
        assert found.backend == name, f"the result belongs to `{found.backend}`"
        expect_close(found.numpy(), case.theirs(np, *given))


# Memory and time.


def _host_memory(name: str) -> None:
    """values on the host are those of the last statement"""
    import aerogel as ti

    x = ti.tensor.asarray([1.0, 2.0]).to(name)
    y = x * 3
    assert y.numpy().tolist() == [3, 6]
    z = ti.tensor.asarray(y, copy=True)
    z[0] = 5
    assert (y + z).tolist() == [8, 12]


def _moves(name: str) -> None:
    """`to` moves values there and back"""
    import aerogel as ti

    x = ti.tensor.arange(6.0).reshape(2, 3)
    there = x.to(name)
    assert there.backend == name
    assert there.to("native").backend == "native"
    assert (there.to("native") == x).all()


def _mixing(name: str) -> None:
    """tensors of two back ends in one expression are an error that names both"""
    import aerogel as ti

    if name == "native":
        return
    x, y = ti.tensor.ones(3).to(name), ti.tensor.asarray([1.0, 2.0, 3.0]).to("native")
    try:
        (x + y).realize()
    except ValueError as e:
        assert f"`{name}`" in str(e)
        assert "`native`" in str(e)
    else:
        raise AssertionError("no error")


def _eager(name: str) -> None:
    """`eager=True` evaluates each statement at once"""
    import aerogel as ti

    with _registry.use(name, eager=True):
        x = ti.tensor.asarray([1.0, 2.0]) + 1
        y = ti.tensor.exp(x)
        expect_close(y.numpy(), [7.3890561, 20.0855369])


def _bounds(name: str) -> None:
    """an index outside is an error"""
    import aerogel as ti

    with _registry.use(name):
        x, i = ti.tensor.arange(3.0), ti.tensor.asarray([0, 5])
        try:
            x[i].realize()
        except IndexError as e:
            assert "index 5 is outside axis 0 with 3 elements" in str(e), str(e)
        else:
            raise AssertionError("no error")


_OF_MEMORY = (_host_memory, _moves, _mixing, _eager, _bounds)


# Methods.


def of_methods(b: Backend) -> Iterator[Outcome]:
    """Checks of each method of a back end by itself."""
    for method, check in _METHODS.items():
        yield _outcome(f"method `{method}`", lambda check=check: check(b))


def _sent(b: Backend, *arrays: Any) -> list[Any]:
    from aerogel.backends._checks import dtype_like

    return [b.from_host(x, dtype_like(x.dtype)) for x in arrays]


def _check_supports(b: Backend) -> None:
    assert all(b.supports(ALL[name]) for name in ("f32", "i32", "u1")), "f32, i32 and u1 are needed by all programs"


def _check_host(b: Backend) -> None:
    import numpy as np

    for dtype in (d for d in ALL.values() if str(d) != "bf16" and b.supports(d)):
        array = np.arange(6).reshape(2, 3).astype(numpy_dtype(dtype))
        x = b.from_host(array, dtype)
        kept = array.copy()
        array[...] = 0
        expect_close(b.to_host(x), kept)
        assert b.describe(x) == (dtype, (2, 3))


def _check_full(b: Backend) -> None:
    import numpy as np

    expect_close(b.to_host(b.full((2, 3), 1.5, f32)), np.full((2, 3), 1.5, np.float32))
    expect_close(b.to_host(b.full((), True, u1)), np.array(True))


def _check_iota(b: Backend) -> None:
    import numpy as np

    expect_close(b.to_host(b.iota(5, i32)), np.arange(5, dtype=np.int32))


def _numbers(dtype: str) -> Any:
    return _cases.arrays((f"{dtype}:3x5",))[0]


def _by_native(b: Backend, kind: str, ops: list[tuple[str, str, Any]]) -> None:
    """Compares operations with those of the interpreter's meaning, as NumPy has it."""
    for op, dtype, expected in ops:
        given = _cases.arrays((f"{dtype}:3x5",) * (1 if kind == "unary" else 2))
        try:
            expect_close(b.to_host(getattr(b, kind)(op, *_sent(b, *given))), expected(*given))
        except Exception as e:
            raise AssertionError(f"{op} of {dtype}: {e}") from e


def _check_unary(b: Backend) -> None:
    import numpy as np

    same = "sqrt floor ceil trunc sin cos tan sinh cosh tanh exp exp2 log log2 abs sign"
    names = {"neg": "negative", "asin": "arcsin", "acos": "arccos", "atan": "arctan", **{n: n for n in same.split()}}
    ops = [(op, "f32+", getattr(np, n)) for op, n in names.items() if op not in ("asin", "acos")]
    ops += [("asin", "f32+", lambda x: np.arcsin(x)), ("acos", "f32+", lambda x: np.arccos(x))]
    ops += [("rsqrt", "f32+", lambda x: 1 / np.sqrt(x)), ("floor", "f32", np.floor), ("trunc", "f32", np.trunc)]
    ops += [("round", "f32", lambda x: np.trunc(x + np.copysign(np.float32(0.5), x)))]
    ops += [("neg", "i32", np.negative), ("abs", "i32", np.abs), ("sign", "i32", np.sign), ("not", "i32", np.invert)]
    ops += [("popcnt", "i32", lambda x: np.vectorize(lambda v: bin(int(v) & 0xFFFFFFFF).count("1"))(x))]
    ops += [("clz", "i32", lambda x: np.vectorize(lambda v: 32 - (int(v) & 0xFFFFFFFF).bit_length())(x))]
    ops += [("not", "u1", np.invert), ("clz", "u1", np.invert)]
    ops += [(op, "u1", np.array) for op in ("abs", "sign", "popcnt")]
    with np.errstate(all="ignore"):
        _by_native(b, "unary", ops)


def _check_binary(b: Backend) -> None:
    import numpy as np

    floats = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "rem": np.fmod}
    floats |= {"mod": np.remainder, "floordiv": np.floor_divide, "pow": np.power, "atan2": np.arctan2}
    ops = [(op, "f32+", f) for op, f in (floats | {"min": np.fmin, "max": np.fmax}).items()]
    ops += [(op, "f32", f) for op, f in floats.items() if op not in ("pow",)]
    whole = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "min": np.minimum, "max": np.maximum}
    whole |= {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
    whole |= {"div": lambda x, y: _divided(x, y, True), "floordiv": lambda x, y: _divided(x, y, False)}
    whole |= {"rem": lambda x, y: x - y * _divided(x, y, True), "mod": lambda x, y: x - y * _divided(x, y, False)}
    ops += [(op, "i32", f) for op, f in whole.items()]
    ops += [("shl", "i32i", np.left_shift), ("shr", "i32i", np.right_shift), ("ushr", "i32i", np.right_shift)]
    ops += [("pow", "i32i", np.power), ("and", "u1", np.logical_and), ("or", "u1", np.logical_or)]
    ops += [("xor", "u1", np.logical_xor)]
    with np.errstate(all="ignore"):
        _by_native(b, "binary", ops)
        nan, one = np.array([np.nan, 1, np.nan], np.float32), np.array([1, np.nan, np.nan], np.float32)
        expect_close(b.to_host(b.binary("min", *_sent(b, nan, one))), np.array([1, 1, np.nan], np.float32))
        zero = np.array([0, 0], np.int32)
        for op in ("div", "rem", "floordiv", "mod"):
            found = b.to_host(b.binary(op, *_sent(b, np.array([5, -7], np.int32), zero)))
            assert not found.any(), f"{op} by zero is 0, not {found}"


def _divided(x: Any, y: Any, towards_zero: bool) -> Any:
    import numpy as np

    exact = x.astype(np.float64) / y.astype(np.float64)
    whole = np.trunc(exact) if towards_zero else np.floor(exact)
    return np.where(y == 0, 0, whole).astype(x.dtype)


def _check_compare(b: Backend) -> None:
    import numpy as np

    names = {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
    x, y = np.array([1, 2, 3, np.nan], np.float32), np.array([1, 3, 2, np.nan], np.float32)
    for op, name in names.items():
        expect_close(b.to_host(b.compare(op, *_sent(b, x, y))), getattr(np, name)(x, y))


def _check_select(b: Backend) -> None:
    import numpy as np

    c, x, y = _cases.arrays(("u1", "f32", "f32"))
    expect_close(b.to_host(b.select(*_sent(b, c, x, y))), np.where(c, x, y))


def _check_cast(b: Backend) -> None:
    import numpy as np

    (x,) = _sent(b, np.array([-1.5, 0, 2.75, -0.25], np.float32))
    for dtype, wanted in (("i32", [-1, 0, 2, 0]), ("u1", [True, False, True, True]), ("f32", [-1.5, 0, 2.75, -0.25])):
        expect_close(b.to_host(b.cast(x, ALL[dtype])), np.array(wanted, numpy_dtype(ALL[dtype])))


def _check_gather(b: Backend) -> None:
    import numpy as np

    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    i, j = np.array([[0, 2], [-1, 7]], np.int32), np.array([[3, 0], [1, -2]], np.int32)
    inside = (i >= 0) & (i < 3) & (j >= 0) & (j < 4)
    clamped = x[np.clip(i, 0, 2), np.clip(j, 0, 3)]
    wanted = {"clamp": clamped, "wrap": x[i % 3, j % 4], "zero": np.where(inside, clamped, 0).astype(np.float32)}
    for outside, values in wanted.items():
        expect_close(b.to_host(b.gather(_sent(b, x)[0], _sent(b, i, j), outside)), values)


def _check_scatter(b: Backend) -> None:
    import numpy as np

    x = np.arange(5, dtype=np.float32)
    i, v = np.array([0, 3, 3, -1, 9], np.int32), np.array([10, 20, 30, 40, 50], np.float32)
    stored = x.copy()
    stored[[0, 3]] = [10, 30]
    s = _sent(b, x, i, v)
    expect_close(b.to_host(b.scatter(s[0], [s[1]], s[2], None, "zero")), stored)
    expect_close(b.to_host(s[0]), x)
    for accum, f in (("add", np.add), ("mul", np.multiply), ("min", np.minimum), ("max", np.maximum)):
        for outside, places in (("zero", i[:3]), ("clamp", np.clip(i, 0, 4)), ("wrap", i % 5)):
            wanted = x.copy()
            f.at(wanted, places, v[: len(places)])
            expect_close(b.to_host(b.scatter(s[0], [s[1]], s[2], accum, outside)), wanted)
    for accum, g in (("and", np.bitwise_and), ("or", np.bitwise_or), ("xor", np.bitwise_xor)):
        whole = np.array([7, 12, 5], np.int32)
        wanted_i = whole.copy()
        g.at(wanted_i, np.array([1, 1]), np.array([6, 10]))
        w = _sent(b, whole, np.array([1, 1], np.int32), np.array([6, 10], np.int32))
        expect_close(b.to_host(b.scatter(w[0], [w[1]], w[2], accum, "zero")), wanted_i)


def _check_reduce(b: Backend) -> None:
    import numpy as np

    x, k, c = _cases.arrays(("f32:2x3x4", "i32:2x3x4", "u1:2x3x4"))
    for accum, f in (("add", np.sum), ("mul", np.prod), ("min", np.min), ("max", np.max)):
        for axes in ((0,), (1, 2), (0, 1, 2)):
            expect_close(b.to_host(b.reduce(accum, _sent(b, x)[0], axes)), f(x, axis=axes))
    for accum, ufunc in (("and", np.bitwise_and), ("or", np.bitwise_or), ("xor", np.bitwise_xor)):
        for given in (k, c):
            wanted = ufunc.reduce(ufunc.reduce(given, axis=2), axis=0)
            expect_close(b.to_host(b.reduce(accum, _sent(b, given)[0], (0, 2))), wanted)


def _check_copy(b: Backend) -> None:
    x = _numbers("f32")
    expect_close(b.to_host(b.copy(_sent(b, x)[0])), x)


def _check_bitcast(b: Backend) -> None:
    import numpy as np

    x = _numbers("f32")
    expect_close(b.to_host(b.bitcast(_sent(b, x)[0], i32)), x.view(np.int32))
    expect_close(b.to_host(b.bitcast(_sent(b, x[0, 0].reshape(()))[0], i32)), x[0, 0].view(np.int32))


def _check_reshape(b: Backend) -> None:
    x = _numbers("f32")
    for shape in ((5, 3), (15,), (1, 3, 1, 5)):
        expect_close(b.to_host(b.reshape(_sent(b, x)[0], shape)), x.reshape(shape))
    expect_close(b.to_host(b.reshape(_sent(b, x[:1, :1])[0], ())), x[0, 0].reshape(()))
    expect_close(b.to_host(b.reshape(_sent(b, x[0, 0].reshape(()))[0], (1, 1))), x[:1, :1])


def _check_permute(b: Backend) -> None:
    x = _cases.arrays(("f32:2x3x4",))[0]
    expect_close(b.to_host(b.permute(_sent(b, x)[0], (2, 0, 1))), x.transpose(2, 0, 1))


def _check_expand(b: Backend) -> None:
    import numpy as np

    x = _cases.arrays(("f32:1x3x1",))[0]
    expect_close(b.to_host(b.expand(_sent(b, x)[0], (2, 3, 4))), np.broadcast_to(x, (2, 3, 4)))


def _check_slice(b: Backend) -> None:
    x = _numbers("f32")
    expect_close(b.to_host(b.slice(_sent(b, x)[0], (0, 4), (3, -1), (2, -1))), x[0:3:2, ::-1])


def _check_scan(b: Backend) -> None:
    import numpy as np

    x = _numbers("f32")
    for accum, f in (("add", np.add), ("mul", np.multiply), ("min", np.minimum), ("max", np.maximum)):
        expect_close(b.to_host(b.scan(accum, _sent(b, x)[0])), f.accumulate(x, axis=1))


def _check_sort(b: Backend) -> None:
    import numpy as np

    x = np.array([[3, 1, 3, np.nan, 2], [0, 0, -1, 5, np.nan]], np.float32)
    for descending in (False, True):
        values, order = b.sort(_sent(b, x)[0], descending)
        key = np.where(np.isnan(x), np.inf, -x if descending else x)
        wanted = np.argsort(key, axis=1, kind="stable").astype(np.int32)
        expect_close(b.to_host(order), wanted)
        expect_close(b.to_host(values), np.take_along_axis(x, wanted, 1))


def _check_matmul(b: Backend) -> None:
    x, y = _cases.arrays(("f32:2x3x4", "f32:2x4x5"))
    expect_close(b.to_host(b.matmul(*_sent(b, x, y))), x @ y)
    k, m = _cases.arrays(("i32:3x4", "i32:4x2"))
    expect_close(b.to_host(b.matmul(*_sent(b, k, m))), k @ m)


def _check_run(b: Backend) -> None:
    """A program of one statement: the squares of numbers."""
    from aerogel.backends._program import Program

    x = _numbers("f32")
    shape = tuple(x.shape)
    exprs = (("axis", 0), ("axis", 1), ("load", 0, (0, 1), "never", None), ("binary", "mul", 2, 2))
    body = (("for", shape, (("store", 1, (0, 1), 3, None, False, "never", None),)),)
    buffers = (("x", "f32", shape, True), ("y", "f32", shape, False))
    program = Program(buffers, exprs, ("i32", "i32", "f32", "f32"), (), body, (0,), (1,), "")  # type: ignore[arg-type]
    expect_close(b.to_host(b.run(program, _sent(b, x))[0]), x * x)


def _check_describe(b: Backend) -> None:
    x = _numbers("f32")
    assert b.describe(_sent(b, x)[0]) == (f32, (3, 5))


def _check_wait(b: Backend) -> None:
    x = _sent(b, _numbers("f32"))
    b.eval(x)
    b.sync()
    b.sync(None)


def _check_memory(b: Backend) -> None:
    info = b.memory_info()
    assert all(isinstance(k, str) and isinstance(n, int) for k, n in info.items()), f"counts by name, not {info!r}"


def _check_pointer(b: Backend) -> None:
    (x,) = _sent(b, _numbers("f32"))
    try:
        assert b.device_pointer(x) > 0, "an address is above 0"
    except TypeError as e:
        assert "device_pointer" in str(e)
    b.unlock(x)


_METHODS: dict[str, Callable[[Backend], None]] = {
    "supports": _check_supports, "from_host": _check_host, "to_host": _check_host, "full": _check_full,
    "iota": _check_iota, "unary": _check_unary, "binary": _check_binary, "compare": _check_compare,
    "select": _check_select, "cast": _check_cast, "gather": _check_gather, "scatter": _check_scatter,
    "reduce": _check_reduce, "describe": _check_describe, "copy": _check_copy, "device_pointer": _check_pointer,
    "unlock": _check_pointer, "eval": _check_wait, "sync": _check_wait, "memory_info": _check_memory,
    "bitcast": _check_bitcast, "reshape": _check_reshape, "permute": _check_permute, "expand": _check_expand,
    "slice": _check_slice, "scan": _check_scan, "sort": _check_sort, "matmul": _check_matmul, "run": _check_run,
}  # fmt: skip
assert set(_METHODS) == {*REQUIRED, *DEFAULTS}

#: Methods that return nothing which could be wrong: a mutant of these raises instead.
_RETURN_NOTHING = ("unlock", "eval", "sync")


def mutants(backend: Backend) -> Iterator[tuple[str, Backend]]:
    """For each method, a copy of a back end in which it returns something else of the same dtype and shape."""
    for method in _METHODS:
        yield method, _mutant(backend, method)


def _mutant(backend: Backend, method: str) -> Backend:
    original = getattr(backend, method)

    def wrong(self: Any, *args: Any, **kwargs: Any) -> Any:
        if method == "device_pointer":
            return 0
        made = original(*args, **kwargs)
        if method in _RETURN_NOTHING:
            raise RuntimeError("a mutant")
        if method == "supports":
            return not made
        if method == "describe":
            return made[0], (*made[1], 1)
        if method == "to_host":
            return _other(made)
        if method == "memory_info":
            return {**made, 0: "none"}
        if isinstance(made, (list, tuple)):
            return [_changed(backend, made[0]), *made[1:]]
        return _changed(backend, made)

    out = copy.copy(backend)
    out.__class__ = type(f"Mutant_{method}", (type(backend),), {method: wrong, "__doc__": backend.__doc__})
    return out


def _changed(backend: Backend, x: Any) -> Any:
    return backend.from_host(_other(backend.to_host(x)), backend.describe(x)[0])


def _other(array: Any) -> Any:
    """An array whose first element is another one."""
    import numpy as np

    out = np.array(array)
    flat = out.reshape(-1)
    if flat.size:
        flat[0] = not flat[0] if out.dtype == bool else 99 if not flat[0] == 99 else 98
    return flat.reshape(out.shape)
