"""Random numbers by counting: each is a function of a key and its index, and the same key returns the same numbers."""

from __future__ import annotations

import contextlib
import math
import threading
from typing import TYPE_CHECKING, Any

from aerogel import _native
from aerogel._dtypes import ALL, dtype_of
from aerogel._seeds import seed_of
from aerogel.backends import _extensions
from aerogel.tensor import _arguments, _types
from aerogel.tensor._creation import _shape
from aerogel.tensor._shapes import stack
from aerogel.tensor._tensor import Tensor, asarray, tracing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class _Draws(threading.local):
    """The keys that generators give in a block, which may be given once more."""

    kept: list[Tensor] | None = None
    #: How many have been given once more, if they are.
    n_again: int | None = None

    def key(self, make: Callable[[], Tensor]) -> Tensor:
        """The next key."""
        if self.kept is None:
            return make()
        if self.n_again is not None and self.n_again < len(self.kept):
            self.n_again += 1
            return self.kept[self.n_again - 1]
        made = make()
        if self.n_again is None:
            self.kept.append(made)
        return made

    @contextlib.contextmanager
    def kept_in(self, keys: list[Tensor], again: bool = False) -> Iterator[None]:
        """Adds the keys that are drawn inside to a list, or has generators give those of the list ``again``."""
        before = self.kept, self.n_again
        self.kept, self.n_again = keys, 0 if again else None
        try:
            yield
        finally:
            self.kept, self.n_again = before


_draws = _Draws()


class Generator:
    """Draws numbers one tensor after the other, from a seed: an integer of at most 64 bits.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> a, b = ti.tensor.random.Generator(7), ti.tensor.random.Generator(7)
    >>> bool((a.rand(4) == b.rand(4)).all())
    True
    """

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed_of(seed)
        self._drawn = 0

    def key(self) -> Tensor:
        """The next key: two words. In a loop of a program each iteration has its own."""
        return _of_iteration(_draws.key(lambda: asarray(self._next())))

    def _next(self) -> Any:
        import numpy as np

        mixed = (self._seed * 0x9E3779B97F4A7C15 + self._drawn * 0xBF58476D1CE4E5B9) & (1 << 64) - 1
        self._drawn += 1
        return np.array([mixed & 0xFFFFFFFF, mixed >> 32], dtype=np.uint32)

    def call_key(self) -> Tensor:
        """The next key; in a program, another one at each of its calls."""
        if tracing.program is None:
            return self.key()
        make = lambda: _native.NativeTensor.of_numpy(self._next())  # noqa: E731
        program = tracing.program
        return _of_iteration(_draws.key(lambda: program.each_call(make, "u32", [2])))

    def bits(self, shape: Any) -> Tensor:
        """32 random bits for each element, as ``u32``."""
        return bits(self.key(), shape)

    def rand(self, *shape: Any, dtype: Any = None) -> Tensor:
        """Numbers from 0 (inclusive) to 1 (exclusive)."""
        return uniform(self.key(), _given(shape, "rand"), dtype=dtype)

    def randn(self, *shape: Any, dtype: Any = None) -> Tensor:
        """Numbers of the normal distribution."""
        return normal(self.key(), _given(shape, "randn"), dtype=dtype)

    def integers(self, low: int, high: int, shape: Any, *, dtype: Any = None) -> Tensor:
        """Random integers from ``low`` (inclusive) to ``high`` (exclusive)."""
        return integers(self.key(), low, high, shape, dtype=dtype)

    def permutation(self, n: int) -> Tensor:
        """The integers below ``n`` in random order."""
        return permutation(self.key(), n)


def _of_iteration(key: Tensor) -> Tensor:
    """In a loop of a program the key of an iteration."""
    for at in tracing.program.counters() if tracing.program is not None else ():
        key = bits(key + stack([at.astype("u32"), at.astype("u32") * 0]), 2)
    return key


def _given(shape: tuple[Any, ...], called: str) -> Any:
    given = shape[0] if len(shape) == 1 and hasattr(shape[0], "__len__") else shape
    _types.counts(given, called, "shape")
    return given


def bits(key: Tensor, shape: Any) -> Tensor:
    """32 random bits for each element, as ``u32``: Threefry of a key (two ``u32``) and the element's number."""
    return Tensor(key._native.random_bits(_shape(shape, "bits")))


def uniform(key: Tensor, shape: Any, *, dtype: Any = None) -> Tensor:
    """Numbers from 0 (inclusive) to 1 (exclusive), equally far apart."""
    kind = dtype_of(dtype) if dtype is not None else _types.default_float()
    if not kind.is_float:
        raise TypeError(f"random numbers from 0 to 1 are floats, not `{kind}`")
    _types.counts(shape, "uniform", "shape")
    own = _extensions.uniform(key, shape, kind) if tracing.trace is None and tracing.mapped is None else None
    if own is not None:
        return Tensor(own)
    return Tensor(bits(key, shape)._native.uniform(kind._aerogel_dtype))


def normal(key: Tensor, shape: Any, *, dtype: Any = None) -> Tensor:
    """Numbers of the normal distribution (Box and Muller)."""
    from aerogel.tensor._elementwise import cos, log, sqrt

    kind = dtype_of(dtype) if dtype is not None else _types.default_float()
    extents = _shape(shape, "normal")
    if tracing.program is not None:
        # Sizes of the program in the form that `uniform` takes.
        extents = [shape] if isinstance(shape, Tensor) or hasattr(shape, "__index__") else list(shape)
    both = uniform(key, [2, *extents], dtype=kind if kind._aerogel_dtype not in ("f16", "bf16") else "f32")
    radius = sqrt(-2.0 * log(1.0 - both[0]))
    return (radius * cos(2 * math.pi * both[1])).astype(kind)


def integers(*args: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Random integers from ``low`` (inclusive) to ``high`` (exclusive): ``integers(low, high, shape)``.

    They are drawn as by ``rand``; ``integers(key, low, high, shape)`` are those of a key.
    """
    args = args if shape is None else (*args, shape)
    if len(args) == 4 and not isinstance(args[0], Tensor):
        raise TypeError("`integers`: the first of four arguments is a key, or the shape is given twice")
    if len(args) not in (3, 4):
        raise TypeError("`integers` takes an optional key, the lowest integer, the end, and a shape")
    _types.counts(args[-1], "integers", "shape")
    key, low, high, shape = args if len(args) == 4 else (default.key(), *args)
    for name, value in (("low", low), ("high", high)):
        if not hasattr(value, "__index__"):
            raise TypeError(f"`integers`: `{name}` is an integer, not {value!r}")
    low, high = low.__index__(), high.__index__()
    kind = dtype_of(dtype) if dtype is not None else _types.default_int()
    if high <= low:
        raise ValueError(f"`integers`: there are no integers from {low} to below {high}")
    if high - low > 1 << 32:
        raise ValueError(
            f"`integers` draws from at most 2**32 values, from {low} to below {high} there are {high - low}"
        )
    from aerogel.xp._types import iinfo

    if not kind.is_float and kind is not ALL["u1"] and not iinfo(kind).min <= low < high <= iinfo(kind).max + 1:
        raise ValueError(f"`integers`: not all integers from {low} to below {high} fit `{kind}`")
    # The upper half of a product of 32 bits each.
    drawn = (bits(key, shape).astype("u64") * (high - low)) >> 32
    return (drawn + low if low >= 0 else drawn.astype("i64") + low).astype(kind)


def permutation(*args: Any) -> Tensor:
    """The numbers below ``n`` in an order by chance: ``permutation(n)``; ``permutation(key, n)`` is that of a key."""
    if len(args) not in (1, 2):
        raise TypeError("`permutation` takes an optional key, and the number of elements")
    _types.counts(args[-1], "permutation", "n")
    key, n = args if len(args) == 2 else (default.key(), *args)
    from aerogel.tensor._searching import argsort

    return argsort(bits(key, (n,)))


default = Generator(0)


def seed(value: int) -> None:
    """Resets the random numbers of ``rand`` and ``randn`` to a seed.

    Raises:
        TypeError: The seed is not an integer.
        ValueError: It has more than 64 bits.
    """
    default.__init__(value)


def rand(*shape: Any, dtype: Any = None) -> Tensor:
    """Numbers from 0 (inclusive) to 1 (exclusive)."""
    return default.rand(*shape, dtype=dtype)


def randn(*shape: Any, dtype: Any = None) -> Tensor:
    """Numbers of the normal distribution."""
    return default.randn(*shape, dtype=dtype)


if not TYPE_CHECKING:  # For a type checker every name would be one.

    def __getattr__(name: str) -> Any:
        from aerogel.tensor import _elsewhere

        ours = f": write `{_elsewhere.FUNCTIONS[name]}`" if name in ("randint", "choice", "shuffle") else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{ours}")


_arguments.guard(globals())
