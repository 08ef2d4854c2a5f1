"""The functions whose gradients are checked, once for this package and for JAX.

A row is a name, a function of words and tensors, and its arguments: a letter for the domain, digits for the shape.
"""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

import numpy as np

from tensor_gradients import more_cases, numpy_cases

#: Between which numbers those of an argument are.
DOMAINS = {
    "r": (-2.0, 2.0),  # any
    "p": (0.3, 2.3),  # positive
    "u": (-0.9, 0.9),  # within the unit interval
    "g": (1.2, 3.0),  # greater than one
    "n": (-3.0, -0.4),  # negative
}


class Case(NamedTuple):
    """A function, and the domains and shapes of its arguments."""

    name: str
    function: Callable[..., Any]
    arguments: str
    #: Whether JAX has it, and is right.
    in_jax: bool = True

    def arrays(self, dtype: str = "float64", seed: int = 0) -> list[np.ndarray]:
        rng = np.random.default_rng([seed, *self.name.encode()])
        out = []
        for word in self.arguments.split():
            low, high = DOMAINS[word[0]]
            out.append(np.asarray(rng.uniform(low, high, [int(n) for n in word[1:]])).astype(dtype))
        return out


def _rows() -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []

    def row(name: str, arguments: str, function: Any = None, in_jax: bool = True) -> None:
        rows.append((name, function or (lambda w, *x: getattr(w, name)(*x)), arguments, in_jax))

    # Of each number another.
    for (
        name
    ) in "sin cos tan sinh cosh tanh asinh atan exp exp2 expm1 sigmoid erf square negative positive abs relu".split():
        row(name, "r34")
    for name in "degrees radians cbrt reciprocal sign floor ceil trunc round".split():
        row(name, "r34")
    for name in "log log2 log10 log1p sqrt rsqrt".split():
        row(name, "p34")
    for name in "asin acos atanh".split():
        row(name, "u34")
    row("acosh", "g34")
    row("log1p below", "u5", lambda w, x: w.log1p(x))
    row("fract", "r34", in_jax=False)
    # Of pairs.
    for name in "add subtract multiply minimum maximum atan2 hypot logaddexp copysign".split():
        row(name, "r34 r34")
        row(f"{name}, broadcast", "r314 r21", lambda w, x, y, name=name: getattr(w, name)(x, y))
    row("divide", "r34 p34")
    row("divide by negative", "r4 n34", lambda w, x, y: x / y)
    row("pow", "p34 r34")
    row("pow, broadcast", "p31 r4", lambda w, x, y: w.pow(x, y))
    for k in (-2, -1, 0, 0.5, 1, 2, 3, 7):
        row(f"pow {k}", "p34" if k == 0.5 else "r34", lambda w, x, k=k: x**k)
    row("number to the power", "r34", lambda w, x: 2.5**x)
    row("negative base", "n34", lambda w, x: x**3)
    row("remainder", "r34 p34")
    row("remainder of negative", "r34 n34", lambda w, x, y: w.remainder(x, y))
    row("fmod", "r34 p34")
    row("floor_divide", "r34 p34")
    row("nextafter free", "r3", lambda w, x: x * 2)
    row("lerp", "r4 r34 u31", in_jax=False)
    row("mix", "r4 r34 u31", in_jax=False)
    row("fma", "r4 r34 u31", in_jax=False)
    row("smoothstep", "u34", lambda w, x: w.smoothstep(-2.0, 2.0, x), False)
    row("smoothstep, edges", "n1 g1 u34", lambda w, a, b, x: w.smoothstep(a, b, x), False)
    row("step", "r34 r34", in_jax=False)
    row("mixed operators", "p34 p4", lambda w, x, y: 2 - x + 3 / y - -x * 0.5 + (y - 1) / 2 + abs(-x))
    row("where", "r34 r34 r4", lambda w, c, x, y: w.where(c > 0.3, x * c, y))
    row("where, one number", "r34", lambda w, x: w.where(x < 0, 0.5, x * x))
    row("clip", "r34", lambda w, x: w.clip(x, -0.7, 0.9))
    row("clip by tensors", "r34 n4 p31", lambda w, x, a, b: w.clip(x, a, b))
    row("clip below", "r34", lambda w, x: w.clip(x, 0.1))
    row("same operand", "p34", lambda w, x: x * x / (x + x) - x)
    row("astype", "r34", lambda w, x: w.astype(w.astype(x, w.float64), w.float64) * 2)
    row("comparisons", "r34 r34", lambda w, x, y: (x > y) * x + (x <= y) * y)
    row("isfinite", "r34", lambda w, x: w.where(w.isfinite(x), x * x, 0))
    # Reductions.
    for name in "sum prod mean max min var std".split():
        for text, shape, options in [
            ("all", "r34", {}), ("axis 0", "r34", {"axis": 0}), ("axis -1", "r232", {"axis": -1}),
            ("axes", "r232", {"axis": (0, -1)}), ("keepdims", "r34", {"axis": 1, "keepdims": True}),
            ("all, keepdims", "r32", {"keepdims": True}), ("one element", "r31", {"axis": 0}),
        ]:  # fmt: skip
            row(f"{name}, {text}", shape, lambda w, x, name=name, o=options: getattr(w, name)(x, **o))
        row(f"{name} of a number", "r", lambda w, x, name=name: getattr(w, name)(x) * x, name != "std")
    for name in "sum prod".split():
        row(f"{name} of nothing", "r03 r3", lambda w, x, y, name=name: getattr(w, name)(x, axis=0) * y)
        row(f"{name} along nothing", "r30 r3", lambda w, x, y, name=name: getattr(w, name)(x, axis=1) * y)
    row("var, correction", "r34", lambda w, x: w.var(x, axis=0, correction=1))
    row("std, correction", "r34", lambda w, x: w.std(x, axis=(0, 1), correction=1))
    for name in "softmax log_softmax".split():
        row(name, "r34")
        row(f"{name}, axis 0", "r34", lambda w, x, name=name: getattr(w, name)(x, axis=0))
    for k in (1, 2, 3, 0.5, float("inf"), -float("inf"), 0):
        row(f"norm {k}", "r34", lambda w, x, k=k: w.linalg.vector_norm(x, axis=1, ord=k), k != 0)
    row("norm of all", "r34", lambda w, x: w.linalg.vector_norm(x))
    row("norm, keepdims", "r34", lambda w, x: x / w.linalg.vector_norm(x, axis=-1, keepdims=True))
    row("median", "r5", lambda w, x: w.median(x))
    row("median, even", "r36", lambda w, x: w.median(x, axis=1))
    row("median, axis 0", "r43", lambda w, x: w.median(x, axis=0, keepdims=True))
    row("argmax", "r34", lambda w, x: w.take_along_axis(x, w.expand_dims(w.argmax(x, axis=1), axis=1), axis=1))
    row("any, all", "r34", lambda w, x: w.where(w.any(x > 1.5, axis=0), x, x * 2))
    row("count_nonzero", "r34", lambda w, x: x * w.count_nonzero(x > 0))
    # Along an axis.
    for name in "cumulative_sum cumulative_prod cummax cummin".split():
        jax = name.startswith("cumulative")
        row(name, "r5", lambda w, x, name=name: getattr(w, name)(x), jax or name == "cummax" or name == "cummin")
        row(f"{name}, axis 1", "r34", lambda w, x, name=name: getattr(w, name)(x, axis=1))
        row(f"{name}, axis 0", "r34", lambda w, x, name=name: getattr(w, name)(x, axis=0))
        row(f"{name}, axis -2", "r232", lambda w, x, name=name: getattr(w, name)(x, axis=-2))
        row(f"{name} of none", "r03 r3", lambda w, x, y, name=name: w.sum(getattr(w, name)(x, axis=0)) + y, False)
        row(f"{name} of one", "r31", lambda w, x, name=name: getattr(w, name)(x, axis=1))
    row("cumulative_sum, initial", "r34", lambda w, x: w.cumulative_sum(x, axis=1, include_initial=True))
    row("cumulative_prod, initial", "r34", lambda w, x: w.cumulative_prod(x, axis=1, include_initial=True))
    row("cumulative_sum twice", "r34", lambda w, x: w.cumulative_sum(w.cumulative_sum(x, axis=0), axis=1) ** 2)
    row("prefix_sum", "r34", in_jax=False)
    row("diff", "r34", lambda w, x: w.diff(x, axis=1))
    row("diff 2", "r5", lambda w, x: w.diff(x, n=2))
    row("diff, ends", "r34 r31 r31", lambda w, x, a, b: w.diff(x, axis=1, prepend=a, append=b))
    row("sort", "r6")
    row("sort, descending", "r34", lambda w, x: w.sort(x, axis=0, descending=True))
    row("argsort", "r34", lambda w, x: w.take_along_axis(x, w.argsort(x, axis=1), axis=1) ** 2)
    row("topk", "r36", lambda w, x: w.topk(x, 2))
    row("topk, smallest", "r36", lambda w, x: w.topk(x, 3, axis=0, largest=False), False)
    row("searchsorted", "r5 r3", lambda w, x, y: w.sort(x)[w.searchsorted(w.sort(x), y) % 5] * w.sum(y))
    row("interp", "r5 r4", lambda w, x, f: w.interp(x, w.asarray([-1.5, -0.5, 0.3, 1.6]), f))
    row("interp, places", "u5 r4", lambda w, x, f: w.interp(x, w.asarray([-1.0, -0.5, 0.3, 1.0]) + f * 0.01, f))
    # Shapes.
    row("reshape", "r34", lambda w, x: w.reshape(x, (2, 6)) ** 2)
    row("reshape -1", "r232", lambda w, x: w.reshape(x, (-1, 2)) ** 2)
    row("permute_dims", "r234", lambda w, x: w.permute_dims(x, (2, 0, 1)) ** 2)
    row("matrix_transpose", "r234", lambda w, x: w.matrix_transpose(x) ** 2)
    row("T", "r34", lambda w, x: x.T * w.sin(x.T))
    row("moveaxis", "r234", lambda w, x: w.moveaxis(x, 0, -1) ** 2)
    row("expand_dims", "r34", lambda w, x: w.expand_dims(x, axis=1) ** 2)
    row("unsqueeze", "r34", lambda w, x: w.unsqueeze(x, 1) ** 2)
    row("squeeze", "r314", lambda w, x: w.squeeze(x, axis=1) ** 2)
    row("flip", "r34", lambda w, x: w.flip(x, axis=1) * x)
    row("flip all", "r34", lambda w, x: w.flip(x) * x)
    row("roll", "r34", lambda w, x: w.roll(x, 2, axis=1) * x)
    row("roll, axes", "r34", lambda w, x: w.roll(x, (-1, 5), axis=(0, 1)) * x)
    row("roll all", "r34", lambda w, x: w.roll(x, 5) * x)
    row("tile", "r32", lambda w, x: w.tile(x, (2, 3)) ** 2)
    row("repeat", "r32", lambda w, x: w.repeat(x, 3, axis=0) ** 2)
    row("repeat, each", "r32", lambda w, x: w.repeat(x, np.asarray([2, 0, 3]), axis=0) ** 2)
    row("broadcast_to", "r31", lambda w, x: w.broadcast_to(x, (2, 3, 4)) ** 2)
    row("broadcast_arrays", "r31 r4", lambda w, x, y: [a * b for a, b in [w.broadcast_arrays(x, y)]])
    row("concat", "r32 r34 r31", lambda w, *x: w.concat(x, axis=1) ** 2)
    row("concat, flat", "r32 r4", lambda w, *x: w.concat(x, axis=None) ** 2)
    row("concat itself", "r32", lambda w, x: w.concat([x, x * 2, x], axis=0) ** 2)
    row("concat nothing", "r02 r32", lambda w, *x: w.concat(x) ** 2)
    row("stack", "r32 r32", lambda w, *x: w.stack(x, axis=1) ** 2)
    row("stack, last", "r r", lambda w, *x: w.stack(x, axis=-1) ** 2)
    row("unstack", "r34", lambda w, x: [a * k for k, a in enumerate(w.unstack(x, axis=1))])
    row("split", "r36", lambda w, x: [a**2 for a in w.split(x, 3, axis=1)])
    row("split at", "r36", lambda w, x: [a**2 for a in w.split(x, [1, 4], axis=1)])
    row("pad", "r32", lambda w, x: w.pad(x, ((1, 2), (0, 1))) ** 2)
    for mode in "edge reflect wrap symmetric".split():
        row(f"pad, {mode}", "r43", lambda w, x, mode=mode: w.pad(x, ((1, 2), (0, 2)), mode) ** 2)
    row("diagonal", "r34", lambda w, x: w.linalg.diagonal(x, offset=1) ** 2)
    row("diagonal below", "r234", lambda w, x: w.linalg.diagonal(x, offset=-1) ** 2)
    row("tril", "r34", lambda w, x: w.tril(x) ** 2)
    row("triu", "r234", lambda w, x: w.triu(x, k=1) ** 2)
    row("meshgrid", "r3 r2", lambda w, x, y: [a * b for a, b in [w.meshgrid(x, y, indexing="ij")]])
    # Indices.
    for text, key in {
        "1": 1, "-1": -1, "1:": slice(1, None), "::2": slice(None, None, 2), "::-1": slice(None, None, -1),
        "3:0:-2": slice(3, 0, -2), "..., 1": (..., 1), "None": None, ":, None, 1": (slice(None), None, 1), "0:0": slice(0, 0),
        "list": [0, 2, 2, 1], "lists": ([0, 2, 2], [1, 1, 3]), "slice, list": (slice(1, 3), [3, 3, 0]),
        "list, slice": ([0, 1, 0], slice(None, None, 2)), "matrix": [[0, 1], [1, 1]], "-list": [-1, -2, -1],
        "list, None, list": ([0, 1], None, [2, 2]),
    }.items():  # fmt: skip
        real = _known(key)
        row(f"x[{text}]", "r44", lambda w, x, key=real: x[key] ** 2 + x[key])
        row(f"x[{text}] = y", "r44 r", lambda w, x, y, key=real: w.stored(x * 1.5, key, y) ** 2)
        row(f"x[{text}] += y", "r44 r", lambda w, x, y, key=real: w.added(x * 1.5, key, y) ** 2, key != [0, 2, 2, 1])
    row("x[mask] = y", "r34 r", lambda w, x, y: w.stored(x * 1.5, x > 0, y) ** 2)
    row("x[k] = values", "r44 r24", lambda w, x, y: w.stored(x * 1.5, slice(1, 3), y * y) ** 2)
    row("x[k] = itself", "r44", lambda w, x: w.stored(x * 1.5, 1, x[2] * x[1]) ** 2)
    row("stores over stores", "r4 r r", lambda w, x, y, z: w.stored(w.stored(x * 1, 1, y), slice(0, 3), z * y) ** 2)
    row("take", "r34", lambda w, x: w.take(x, w.asarray([2, 0, 2]), axis=0) ** 2)
    row("take, matrix", "r34", lambda w, x: w.take(x, w.asarray([[1, 0], [3, 3]]), axis=1) ** 2)
    row("take_along_axis", "r34", lambda w, x: w.take_along_axis(x, w.asarray([[0, 0], [1, 3], [2, 2]]), axis=1) ** 2)
    row("gather", "r34", lambda w, x: w.gather(x, w.asarray([0, 2, 2]), w.asarray([1, 3, 3])) ** 2, False)
    for mode in "clamp wrap zero".split():
        row(
            f"gather, {mode}",
            "r4",
            lambda w, x, mode=mode: w.gather(x.outside(mode), w.asarray([-3, 1, 6, 9])) ** 2,
            False,
        )
    for how in "set add mul min max".split():
        row(f"scatter, {how}", "r4 r3", lambda w, x, y, how=how: w.scatter(x, w.asarray([3, 0, 2]), y, how=how) ** 2)
        row(
            f"scatter, {how}, rows",
            "r43 r23",
            lambda w, x, y, how=how: w.scatter(x, w.asarray([3, 1]), y, how=how) ** 2,
        )
    for how in "add mul min max".split():
        n, at = (5, [3, 0, 3, 0, 3]) if how == "mul" else (4, [3, 0, 3, 0])
        row(f"scatter, {how}, repeated", f"r4 r{n}", lambda w, x, y, how=how, at=at: w.scatter(
            x, w.asarray(at), y, how=how) ** 2, how != "mul")  # fmt: skip
        for mode in "clamp wrap zero".split():
            row(f"scatter, {how}, {mode}", "r4 r4", lambda w, x, y, how=how, mode=mode: w.scatter(
                (x * 1).outside(mode), w.asarray([-3, 1, 6, 9]), y, how=how) ** 2, False)  # fmt: skip
    # Products.
    for text, shapes in {
        "matrices": "r34 r42", "vector, matrix": "r3 r32", "matrix, vector": "r34 r4", "vectors": "r4 r4",
        "batch": "r234 r242", "broadcast batch": "r2134 r342", "batch, matrix": "r234 r42", "inner 1": "r31 r14",
        "inner 0": "r30 r04", "rows 0": "r04 r43",
    }.items():  # fmt: skip
        row(f"matmul, {text}", shapes, lambda w, x, y: w.matmul(x, y))
    row("matmul by itself", "r33", lambda w, x: x @ x.T + x @ x)
    row("vecdot", "r34 r4")
    row("vecdot, axis -1", "r34 r34", lambda w, x, y: w.vecdot(x, y, axis=-1))
    row("outer", "r3 r4", lambda w, x, y: w.linalg.outer(x, y))
    row("tensordot", "r234 r342", lambda w, x, y: w.tensordot(x, y, axes=2))
    row("tensordot, axes", "r234 r432", lambda w, x, y: w.tensordot(x, y, axes=((0, 2), (2, 0))))
    row("tensordot, 0", "r2 r3", lambda w, x, y: w.tensordot(x, y, axes=0))
    for text, shapes in {
        "ij,jk": "r34 r42", "ij->ji": "r34", "ii->i": "r33", "ii": "r33", "ij,ij->": "r34 r34", "bij,bjk->bik": "r234 r242",
        "i,j->ij": "r3 r4", "ij,jk,kl->il": "r23 r34 r42", "ij->": "r34", "...i,i->...": "r234 r4", "ab,ab,b->a": "r34 r34 r4",
    }.items():  # fmt: skip
        row(f"einsum {text}", shapes, lambda w, *x, text=text: w.einsum(text, *x))
    row("cross", "r43 r43", lambda w, x, y: w.linalg.cross(x, y))
    row("trace", "r44", lambda w, x: w.linalg.trace(x, offset=1) * x)
    for text, shapes in {
        "b|i; i->o => b|o": "r34 r24", "2*o+k; k => o": "r7 r3", "i => ii": "r3", "a; b => a^b": "r3 r2", "ij => j": "r34",
        "o+k; k => o": "r6 r3",
    }.items():  # fmt: skip
        row(f"accum {text}", shapes, lambda w, *x, text=text: w.accum(text, *x), False)
    for how in "max min mul".split():
        row(f"accum, {how}", "r34", lambda w, x, how=how: w.accum("ij => j", x, how=how), False)
    row("accum, same", "r6 r3", lambda w, x, k: w.accum("o=+k; k => o", x, k), False)
    # Linear algebra.
    for name in "inv det".split():
        row(name, "r33", lambda w, x, name=name: getattr(w.linalg, name)(x + 3 * w.eye(3)))
        row(f"{name}, batch", "r222", lambda w, x, name=name: getattr(w.linalg, name)(x + 3 * w.eye(2)))
        row(f"{name} of many rows", "r99", lambda w, x, name=name: getattr(w.linalg, name)(x / 3 + w.eye(9)))
    row("solve", "r33 r32", lambda w, x, y: w.linalg.solve(x + 3 * w.eye(3), y))
    row("solve, vector", "r33 r3", lambda w, x, y: w.linalg.solve(x + 3 * w.eye(3), y))
    row("solve, batch", "r233 r33", lambda w, x, y: w.linalg.solve(x + 3 * w.eye(3), y))
    row("slogdet", "r33", lambda w, x: w.linalg.slogdet(x + 3 * w.eye(3))[1])
    row("cholesky", "r33", lambda w, x: w.linalg.cholesky(x @ x.T + w.eye(3)))
    row("cholesky, upper", "r33", lambda w, x: w.linalg.cholesky(x @ x.T + w.eye(3), upper=True))
    row("cholesky, batch", "r233", lambda w, x: w.linalg.cholesky(x @ w.matrix_transpose(x) + w.eye(3)))
    row("qr", "r33", lambda w, x: tuple(w.linalg.qr(x + 3 * w.eye(3))))
    row("qr, tall", "r42", lambda w, x: tuple(w.linalg.qr(x)))
    row("qr, r", "r42", lambda w, x: w.linalg.qr(x)[1])
    row("eigh", "r33", lambda w, x: (lambda e: (e[0], abs(e[1])))(w.linalg.eigh(x + x.T)))
    row("eigvalsh", "r44", lambda w, x: w.linalg.eigvalsh(x + x.T))
    row("svd", "r33", lambda w, x: (lambda e: (abs(e[0]), e[1], abs(e[2])))(w.linalg.svd(x, full_matrices=False)))
    row("svd, tall", "r42", lambda w, x: (lambda e: (abs(e[0]), e[1], abs(e[2])))(w.linalg.svd(x, full_matrices=False)))
    row("svd, wide", "r24", lambda w, x: (lambda e: (abs(e[0]), e[1], abs(e[2])))(w.linalg.svd(x, full_matrices=False)))
    row("svdvals", "r34", lambda w, x: w.linalg.svdvals(x))
    row("pinv", "r42", lambda w, x: w.linalg.pinv(x))
    row("pinv, wide", "r24", lambda w, x: w.linalg.pinv(x))
    row("lstsq", "r42 r43", lambda w, x, y: w.linalg.lstsq(x, y)[0], False)
    row("matrix_power", "r33", lambda w, x: w.linalg.matrix_power(x, 3))
    row("matrix_power -2", "r33", lambda w, x: w.linalg.matrix_power(x + 3 * w.eye(3), -2))
    for k in ("fro", "nuc", 1, -1, 2, -2, float("inf"), -float("inf")):
        row(f"matrix_norm {k}", "r34", lambda w, x, k=k: w.linalg.matrix_norm(x, ord=k))
    row("cond", "r33", lambda w, x: w.linalg.cond(x), False)
    row("multi_dot", "r23 r34 r42", lambda w, *x: w.linalg.multi_dot(x))
    # Complex numbers, of two real tensors.
    for name in "exp sin cos tan sinh cosh tanh log sqrt square reciprocal conj negative abs".split():
        row(f"complex {name}", "p34 r34", lambda w, a, b, name=name: getattr(w, name)(w.complex(a, b)))
    row("complex angle", "r34 r34", lambda w, a, b: w.angle(w.complex(a, b)))
    row("complex parts", "r34 r34", lambda w, a, b: w.real(w.complex(a, b)) * w.imag(w.complex(b, a)))
    row("complex arithmetic", "r3 r3 p3 p3", lambda w, a, b, c, d: (
        lambda x, y: (x * y, x / y, x - 2 * y, x + a, a * y, d / x)
    )(w.complex(a, b), w.complex(c, d)))  # fmt: skip
    row("complex pow", "p3 p3 r3 r3", lambda w, a, b, c, d: w.complex(a, b) ** w.complex(c, d))
    row("complex pow 3", "r3 r3", lambda w, a, b: w.complex(a, b) ** 3)
    for name in "sum prod mean".split():
        row(f"complex {name}", "r34 r34", lambda w, a, b, name=name: getattr(w, name)(w.complex(a, b), axis=1))
    row("complex cumulative_sum", "r34 r34", lambda w, a, b: w.cumulative_sum(w.complex(a, b), axis=1))
    row("complex cumulative_prod", "r5 r5", lambda w, a, b: w.cumulative_prod(w.complex(a, b)))
    row("complex matmul", "r34 r34 r42 r42", lambda w, a, b, c, d: w.complex(a, b) @ w.complex(c, d))
    row("complex, real matmul", "r34 r34 r42", lambda w, a, b, c: w.complex(a, b) @ c)
    row("complex einsum", "r34 r34 r43", lambda w, a, b, c: w.einsum("ij,jk->ik", w.complex(a, b), c))
    row("complex norm", "r34 r34", lambda w, a, b: w.linalg.vector_norm(w.complex(a, b), axis=0))
    row("complex slices", "r34 r34", lambda w, a, b: w.complex(a, b)[1:, ::-2] * w.complex(b, a)[0, :2])
    row("complex where", "r34 r34", lambda w, a, b: w.where(a > b, w.complex(a, b), w.complex(b, a) * 2))
    row("complex vecdot", "r4 r4 r4 r4", lambda w, a, b, c, d: w.vecdot(w.complex(a, b), w.complex(c, d)))
    for name in "inv det".split():
        row(
            f"complex {name}",
            "r33 r33",
            lambda w, a, b, name=name: getattr(w.linalg, name)(w.complex(a + 3 * w.eye(3), b)),
        )
    row("complex solve", "r33 r33 r32 r32", lambda w, a, b, c, d: w.linalg.solve(
        w.complex(a + 3 * w.eye(3), b), w.complex(c, d)))  # fmt: skip
    row("complex cholesky", "r33 r33", lambda w, a, b: (
        lambda x: w.linalg.cholesky(x @ w.conj(w.matrix_transpose(x)) + w.eye(3)))(w.complex(a, b)))  # fmt: skip
    row("complex slogdet", "r33 r33", lambda w, a, b: w.linalg.slogdet(w.complex(a + 3 * w.eye(3), b))[1])
    row("complex eigvalsh", "r33 r33", lambda w, a, b: (
        lambda x: w.linalg.eigvalsh(x + w.conj(w.matrix_transpose(x))))(w.complex(a, b)))  # fmt: skip
    row("complex eigh", "r33 r33", lambda w, a, b: (
        lambda x: (lambda e: (e[0], abs(e[1])))(w.linalg.eigh(x + w.conj(w.matrix_transpose(x)))))(w.complex(a, b)))  # fmt: skip
    for text, shapes in {"": "r33 r33", ", tall": "r32 r32", ", wide": "r23 r23"}.items():
        row(f"complex svd{text}", shapes, lambda w, a, b: (lambda e: (abs(e[0]), e[1], abs(e[2]), e[0] @ e[2]))(
            w.linalg.svd(w.complex(a, b), full_matrices=False)))  # fmt: skip
    row("complex svdvals", "r32 r32", lambda w, a, b: w.linalg.svdvals(w.complex(a, b)))
    # Transforms.
    for name in "fft ifft".split():
        row(name, "r5 r5", lambda w, a, b, name=name: getattr(w.fft, name)(w.complex(a, b)))
        for norm in "ortho forward".split():
            row(f"{name}, {norm}", "r34 r34", lambda w, a, b, name=name, norm=norm: getattr(w.fft, name)(
                w.complex(a, b), axis=0, norm=norm))  # fmt: skip
        row(
            f"{name}, longer", "r34 r34", lambda w, a, b, name=name: getattr(w.fft, name)(w.complex(a, b), n=6, axis=-1)
        )
        row(
            f"{name}, shorter",
            "r34 r34",
            lambda w, a, b, name=name: getattr(w.fft, name)(w.complex(a, b), n=3, axis=-1),
        )
    for name in "rfft ihfft".split():
        for n in (1, 4, 5):
            row(f"{name} of {n}", f"r3{n}", lambda w, x, name=name: getattr(w.fft, name)(x))
        row(f"{name}, axis 0", "r43", lambda w, x, name=name: getattr(w.fft, name)(x, n=6, axis=0, norm="ortho"))
    for name in "irfft hfft".split():
        for n in (4, 5, 8):
            row(f"{name} of {n}", "r34 r34", lambda w, a, b, name=name, n=n: getattr(w.fft, name)(w.complex(a, b), n=n))
        row(f"{name}, axis 0", "r43 r43", lambda w, a, b, name=name: getattr(w.fft, name)(
            w.complex(a, b), axis=0, norm="ortho"))  # fmt: skip
    for name in "fftn ifftn".split():
        row(name, "r234 r234", lambda w, a, b, name=name: getattr(w.fft, name)(w.complex(a, b), axes=(0, 2)))
    row("rfftn", "r234", lambda w, x: w.fft.rfftn(x))
    row("irfftn", "r233 r233", lambda w, a, b: w.fft.irfftn(w.complex(a, b)))
    row("rfft2", "r34", lambda w, x: w.fft.rfft2(x), False)
    row("fftshift", "r5", lambda w, x: w.fft.fftshift(x) ** 2)
    row("convolution", "r8 r8", lambda w, x, y: w.fft.irfft(w.fft.rfft(x) * w.fft.rfft(y), n=8))
    numpy_cases.rows(row)
    more_cases.rows(row)
    return rows


def _known(key: Any) -> Any:
    """A key whose lists are arrays."""
    if isinstance(key, tuple):
        return tuple(map(_known, key))
    return np.asarray(key) if isinstance(key, list) else key


CASES = {name: Case(name, function, arguments, in_jax) for name, function, arguments, in_jax in _rows()}
