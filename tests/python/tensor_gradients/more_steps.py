"""More statements of random functions: all elements' functions, other types between, scatters, loops, branches, matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensor_gradients.random_steps import Steps

#: Functions of any number whose values keep small, and what brings numbers to where the others are smooth.
ANY = "sin cos tanh atan asinh sigmoid erf softsign relu negative square fract degrees".split()
INSIDE = "asin acos atanh tan exp exp2 expm1 sinh cosh".split()
POSITIVE = "log log2 log10 log1p sqrt rsqrt cbrt reciprocal".split()
PAIRS = "atan2 hypot logaddexp copysign fmod remainder fmax fmin".split()


class MoreSteps(Steps):
    """Draws them, too."""

    def do_any(self) -> None:
        name = self.pick(ANY)
        self.add(name, lambda w, x: getattr(w, name)(x), self.any())

    def do_inside(self) -> None:
        name = self.pick(INSIDE)
        self.add(name, lambda w, x: getattr(w, name)(w.tanh(x) * 0.9), self.any())

    def do_more_positive(self) -> None:
        name = self.pick(POSITIVE)
        self.add(name, lambda w, x: getattr(w, name)(abs(x) + 0.4), self.any())

    def do_pair(self) -> None:
        name = self.pick(PAIRS)
        self.add(name, lambda w, x, y: getattr(w, name)(x, y * y + 0.6), self.any(), self.any())

    def do_pow(self) -> None:
        self.add("pow", lambda w, x, y: (x * x + 0.3) ** w.tanh(y), self.any(), self.any())

    # Other types between.

    def do_single(self) -> None:
        self.add("f32", lambda w, x: w.cast(w.sin(w.cast(x, "float32")), "float64"), self.any())

    def do_integers(self) -> None:
        self.add("i32", lambda w, x, y: w.cast(x * 2, "int32") * y + w.cast(x > 0.3, "float64"), self.any(), self.any())

    def do_computed_index(self) -> None:
        x, y = self.any(1), self.any()
        if self.pool[x].ndim:
            n = self.pool[x].shape[0]
            self.add("index", lambda w, x, y: x[w.cast(abs(y) * 3, "int32") % n], x, y)

    def do_mask(self) -> None:
        self.add("mask", lambda w, x, y: w.where((x > -0.4) & (y <= 0.6) | (x != x), x * y, y), self.any(), self.any())

    def do_largest(self) -> None:
        self.add("argmax", lambda w, x: w.take_along_axis(
            x, w.expand_dims(w.argmax(x, axis=-1), axis=-1), axis=-1), self.any(1))  # fmt: skip

    # Along an axis.

    def do_more_along(self) -> None:
        name, x = self.pick("cummax cummin diff median std logsumexp norm".split()), self.any(1)
        axis = int(self.rng.integers(self.pool[x].ndim or 1))
        if name == "std" and self.pool[x].ndim and self.pool[x].shape[axis] == 1:
            return
        self.add(name, lambda w, x: getattr(w, name)(x, axis=axis), x)

    def do_several_axes(self) -> None:
        name, x = self.pick("sum max min prod mean".split()), self.any(2)
        axes = tuple(int(k) for k in self.rng.permutation(self.pool[x].ndim)[:2])
        self.add(f"{name}{axes}", lambda w, x: getattr(w, name)(x, axis=axes), x)

    def do_topk(self) -> None:
        x = self.any(1)
        if self.pool[x].ndim:
            k = int(self.rng.integers(1, self.pool[x].shape[-1] + 1))
            self.add(f"topk {k}", lambda w, x: w.largest(x, k), x)

    def do_argsort(self) -> None:
        self.add("argsort", lambda w, x: w.take_along_axis(x, w.argsort(x, axis=-1), axis=-1) * x, self.any(1))

    # Stores.

    def do_scatter_more(self) -> None:
        x, y = self.any(1), self.any()
        if self.pool[x].ndim == 0:
            return
        n, how = self.pool[x].shape[0], self.pick(["mul", "max", "min"])
        at = self.indices(n, self.pick([(3,), (5,), (2, 2)]))
        factors = 0.5 + np.arange(at.size).reshape(at.shape + (1,) * (self.pool[x].ndim - 1)) * 0.3

        def scattered(w: Any, x: Any, y: Any) -> Any:
            return w.scatter(x, w.asarray(at), w.sin(w.mean(y) * w.asarray(factors)), how=how)

        self.add(f"scatter {how}{at.tolist()}", scattered, x, y)

    def do_added(self) -> None:
        x, y = self.any(1), self.any()
        if self.pool[x].ndim:
            key = tuple(k for k in self.key(self.pool[x].shape) if k is not None)
            self.add(f"added{key}", lambda w, x, y: w.stored(x * 1, key, x[key] * w.mean(y) + x[key]), x, y)

    # Products and matrices.

    def do_einsum(self) -> None:
        x, y = self.any(2), self.any(1)
        if self.pool[x].ndim == 2 and self.pool[y].ndim:
            self.add("einsum", lambda w, x, y: w.einsum("ij,...j->...i", x, y), x, y)

    def do_algebra(self) -> None:
        x = self.any(2)
        name = self.pick("inv det cholesky eigvalsh solve slogdet svdvals".split())

        def algebra(w: Any, x: Any) -> Any:
            square = w.matmul(x, w.matrix_transpose(x)) * 0.2 + w.eye(x.shape[-2])
            if name == "solve":
                return w.linalg.solve(square, x)
            made = getattr(w.linalg, name)(x if name == "svdvals" else square)
            return made[1] if name == "slogdet" else made

        self.add(name, algebra, x)

    def do_convolution(self) -> None:
        x, y = self.any(1), self.any(1)
        if self.pool[x].ndim and self.pool[y].ndim:
            n = self.pool[x].shape[-1] + 1
            self.add("fft", lambda w, x, y: w.fft.irfft(w.fft.rfft(x, n=n) * w.fft.rfft(y, n=n), n=n), x, y)

    # Calls.

    def do_vmap(self) -> None:
        c = float(self.rng.uniform(-1, 1))
        self.add(
            "vmap", lambda w, x: w.vmapped(lambda a: w.where(w.sum(a) > c, w.sin(a), a * a) + w.prod(a), x), self.any(1)
        )

    def do_checkpoint(self) -> None:
        self.add("checkpoint", lambda w, x: w.checkpointed(lambda a: w.sin(w.tanh(a) * a), x), self.any())

    # Loops and branches.

    def do_loop(self) -> None:
        n = int(self.rng.integers(0, 4))
        x, y = self.any(), self.any()
        body = self.pick([
            lambda w, k, a, b: (w.tanh(a * 1.3) + a * 0.1, b),
            lambda w, k, a, b: (a * w.cos(a * k), b),
            lambda w, k, a, b: (a * 0.5 + w.mean(b), w.sin(b)),
            lambda w, k, a, b: (w.branched(w.mean(a) > 0.1, lambda: w.sin(a), a * 1.1), b * 0.9),
            lambda w, k, a, b: (w.looped(2, lambda w, j, c: (w.sin(c + a) * 0.8,), a), b),
        ])  # fmt: skip
        self.add(f"loop {n}", lambda w, x, y: w.looped(n, body, x, y), x, y)

    def do_loop_of_stores(self) -> None:
        x = self.any(1)
        if self.pool[x].ndim and self.pool[x].shape[0] > 1:
            n = self.pool[x].shape[0] - 1
            self.add("loop of stores", lambda w, x: w.looped(
                n, lambda w, k, a: (w.stored(a, k + 1, w.sin(a[k] * a[k + 1] + a[k])),), x), x)  # fmt: skip

    def do_break(self) -> None:
        most = float(self.rng.uniform(0.5, 4))
        self.add("break", lambda w, x: w.looped_while(
            5, lambda a: w.max(abs(a)) < most, lambda a: a * 1.4 + w.sin(a), x), self.any())  # fmt: skip

    def do_branch(self) -> None:
        c = float(self.rng.uniform(-0.5, 0.5))
        self.add(
            "branch", lambda w, x, y: w.branched(w.mean(x) > c, lambda: w.sin(y) * y, y * 0.7), self.any(), self.any()
        )
