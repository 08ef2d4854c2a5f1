"""Random statements of functions of tensors, which keep to small shapes and bounded values, for any module of arrays."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from tensor_gradients.numpy_words import NUMPY

SHAPES = [(), (1,), (3,), (4,), (2, 3), (3, 1), (3, 4), (4, 4), (2, 3, 2)]


class Step:
    """A statement: which function of which tensors of the pool, and where its result goes; -1 is a new place."""

    def __init__(self, name: str, function: Callable[..., Any], operands: list[int], to: int = -1) -> None:
        self.name, self.function, self.operands, self.to = name, function, operands, to

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.operands))})" + (f" -> {self.to}" if self.to >= 0 else "")


class Steps:
    """Makes a function step by step, with its values by NumPy."""

    def __init__(self, seed: int, n_steps: int = 14) -> None:
        self.rng = rng = np.random.default_rng(seed)
        self.arrays = [np.asarray(rng.uniform(-1.5, 1.5, self.pick(SHAPES[2:]))) for _ in range(rng.integers(1, 4))]
        self.pool = [a * 1 for a in self.arrays]
        self.steps: list[Step] = []
        kinds = [getattr(self, name) for name in dir(self) if name.startswith("do_")]
        while len(self.steps) < n_steps:
            rng.choice(kinds)()

    def pick(self, of: Any) -> Any:
        return of[int(self.rng.integers(len(of)))]

    def any(self, n_axes: int = 0) -> int:
        """A tensor with as many axes at least; the last inputs if there is none."""
        fit = [k for k, x in enumerate(self.pool) if x.ndim >= n_axes]
        # Later ones more often, so that functions are deep.
        return fit[-1 - min(int(self.rng.exponential(3)), len(fit) - 1)] if fit else -1

    def add(self, name: str, function: Callable[..., Any], *operands: int, to: int = -1) -> None:
        if -1 in operands:
            return
        with np.errstate(all="ignore"):
            try:
                value = np.asarray(function(NUMPY, *(self.pool[k] for k in operands)))
            except (ValueError, IndexError):
                return
            if value.size == 0 or value.size > 200 or not np.isfinite(value).all():
                return
            if np.abs(value).max() > 3:
                inner = function

                def function(w: Any, *x: Any) -> Any:
                    return w.tanh(inner(w, *x))

                value = np.tanh(value)
                name += "!"
        self.steps.append(Step(name, function, list(operands), to))
        if to >= 0:
            self.pool[to] = value
        else:
            self.pool.append(value)

    def key(self, shape: tuple[int, ...]) -> Any:
        """A key of basic indices."""
        out: list[Any] = []
        for n in shape[: int(self.rng.integers(1, len(shape) + 1))]:
            kind = self.rng.integers(4)
            if kind == 0:
                out.append(int(self.rng.integers(-n, n)))
            elif kind == 1:
                out.append(slice(int(self.rng.integers(0, n)), None))
            elif kind == 2:
                out.append(slice(None, None, self.pick([1, 2, -1])))
            else:
                out.append(slice(None, int(self.rng.integers(1, n + 1))))
        if self.rng.integers(5) == 0:
            out.insert(int(self.rng.integers(len(out) + 1)), None)
        return tuple(out)

    def indices(self, n: int, shape: Any) -> np.ndarray:
        return self.rng.integers(0, n, shape).astype(np.int32)

    # Of each number another.

    def do_unary(self) -> None:
        name = self.pick("sin cos tanh exp sigmoid square abs negative atan asinh floor".split())
        self.add(name, lambda w, x: getattr(w, name)(x), self.any())

    def do_positive(self) -> None:
        name = self.pick("log sqrt reciprocal log1p".split())
        self.add(name, lambda w, x: getattr(w, name)(x * x + 0.5), self.any())

    def do_binary(self) -> None:
        name = self.pick("add subtract multiply maximum minimum atan2 hypot".split())
        self.add(name, lambda w, x, y: getattr(w, name)(x, y), self.any(), self.any())

    def do_divide(self) -> None:
        self.add("divide", lambda w, x, y: x / (y * y + 0.7), self.any(), self.any())

    def do_power(self) -> None:
        n = self.pick([2, 3, -1, 0.5])
        self.add(f"**{n}", lambda w, x: (x * x + 0.3) ** n, self.any())

    def do_where(self) -> None:
        c = float(self.rng.uniform(-1, 1))
        self.add("where", lambda w, a, x, y: w.where(a > c, x, y), self.any(), self.any(), self.any())

    def do_clip(self) -> None:
        self.add("clip", lambda w, x: w.clip(x, -0.8, 0.9), self.any())

    def do_number(self) -> None:
        c = float(self.rng.uniform(-2, 2))
        self.add("number", lambda w, x: c - x * 0.5, self.any())

    # Reductions and what runs along an axis.

    def do_reduce(self) -> None:
        name, x = self.pick("sum mean max min prod var".split()), self.any(1)
        n = self.pool[x].ndim
        axis = self.pick([None, int(self.rng.integers(-n, n))]) if n else None
        keep = bool(self.rng.integers(2))
        self.add(name, lambda w, x: getattr(w, name)(x, axis=axis, keepdims=keep), x)

    def do_along(self) -> None:
        name, x = self.pick("cumulative_sum cumulative_prod".split()), self.any(1)
        axis = int(self.rng.integers(self.pool[x].ndim or 1))
        self.add(name, lambda w, x: getattr(w, name)(x, axis=axis), x)

    def do_softmax(self) -> None:
        self.add("softmax", lambda w, x: w.softmax(x, axis=-1), self.any(1))

    def do_sort(self) -> None:
        x = self.any(1)
        axis = int(self.rng.integers(self.pool[x].ndim or 1))
        self.add("sort", lambda w, x: w.sort(x, axis=axis), x)

    # Shapes.

    def do_reshape(self) -> None:
        x = self.any(1)
        size = self.pool[x].size
        d = self.pick([d for d in range(1, size + 1) if size % d == 0])
        shape = self.pick([(d, size // d), (-1,), (size // d, d, 1)])
        self.add("reshape", lambda w, x: w.reshape(x, shape), x)

    def do_permute(self) -> None:
        x = self.any(2)
        order = tuple(int(k) for k in self.rng.permutation(self.pool[x].ndim))
        self.add("permute", lambda w, x: w.permute_dims(x, order), x)

    def do_flip(self) -> None:
        self.add("flip", lambda w, x: w.flip(x, axis=-1), self.any(1))

    def do_roll(self) -> None:
        n = int(self.rng.integers(-4, 5))
        self.add("roll", lambda w, x: w.roll(x, n, axis=0), self.any(1))

    def do_concat(self) -> None:
        x, y = self.any(1), self.any(1)
        axis = int(self.rng.integers(self.pool[x].ndim or 1))
        self.add("concat", lambda w, x, y: w.concat([x, y, x * 2], axis=axis), x, y)

    def do_stack(self) -> None:
        x = self.any()
        axis = self.pick([0, -1])
        self.add("stack", lambda w, x: w.stack([x, w.sin(x)], axis=axis), x)

    def do_broadcast(self) -> None:
        x = self.any()
        shape = (2, *self.pool[x].shape)
        self.add("broadcast", lambda w, x: w.broadcast_to(x, shape), x)

    def do_pad(self) -> None:
        x = self.any(1)
        widths = [(int(self.rng.integers(2)), int(self.rng.integers(2))) for _ in self.pool[x].shape]
        self.add("pad", lambda w, x: w.pad(x, widths), x)

    # Indices and stores.

    def do_slice(self) -> None:
        x = self.any(1)
        key = self.key(self.pool[x].shape) if self.pool[x].ndim else ()
        self.add(f"get{key}", lambda w, x: x[key], x)

    def do_gather(self) -> None:
        x = self.any(1)
        if self.pool[x].ndim:
            at = self.indices(self.pool[x].shape[0], self.pick([(3,), (2, 2), (5,)]))
            self.add(f"gather{at.tolist()}", lambda w, x: x[w.asarray(at)], x)

    def do_take_along(self) -> None:
        x = self.any(1)
        if self.pool[x].ndim:
            shape = (*self.pool[x].shape[:-1], 3)
            at = self.indices(self.pool[x].shape[-1], shape)
            self.add("take_along_axis", lambda w, x: w.take_along_axis(x, w.asarray(at), axis=-1), x)

    def do_store(self) -> None:
        x, y = self.any(1), self.any()
        if self.pool[x].ndim == 0:
            return
        key = tuple(k for k in self.key(self.pool[x].shape) if k is not None)
        to = self.pick([x, -1])
        self.add(f"set{key}", lambda w, x, y, inplace=to >= 0: w.stored(x if inplace else x * 1, key, y), x, y, to=to)

    def do_store_element(self) -> None:
        x, y = self.any(1), self.any()
        if self.pool[x].ndim:
            key = tuple(int(self.rng.integers(-n, n)) for n in self.pool[x].shape)
            self.add(f"set{key}", lambda w, x, y: w.stored(x, key, w.mean(y)), x, y, to=x)

    def do_store_mask(self) -> None:
        x, y = self.any(1), self.any()
        self.add("set mask", lambda w, x, y: w.stored(x * 1, x > 0.2, w.mean(y)), x, y)

    def do_scatter(self) -> None:
        x, y = self.any(1), self.any()
        if self.pool[x].ndim:
            n = self.pool[x].shape[0]
            at = self.rng.permutation(n).astype(np.int32)[: max(n - 1, 1)]
            how = self.pick(["set", "add"])
            at = self.indices(n, 4) if how == "add" else at
            self.add(f"scatter {how}", lambda w, x, y: w.scatter(x, w.asarray(at), w.mean(y) * w.asarray(
                np.arange(1.0, len(at) + 1)[(slice(None), *[None] * (x.ndim - 1))]), how=how), x, y)  # fmt: skip

    # Products.

    def do_matmul(self) -> None:
        x, y = self.any(1), self.any(1)
        self.add("matmul", lambda w, x, y: w.matmul(x, y), x, y)

    def do_matmul_turned(self) -> None:
        x = self.any(2)
        self.add("x @ x.mT", lambda w, x: w.matmul(x, w.matrix_transpose(x)), x)

    def do_outer(self) -> None:
        self.add("outer", lambda w, x, y: x[..., None] * y, self.any(1), self.any(1))

    # What gradients do not see.

    def do_stop(self) -> None:
        self.add("stop", lambda w, x: w.stopped(x) * 0.7, self.any())

    def do_evaluate(self) -> None:
        self.add("evaluate", lambda w, x: w.evaluated(x) * 1.0, self.any())
