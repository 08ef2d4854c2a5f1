"""Convolutions, correlations, and windows of samples, as NumPy has them."""

from __future__ import annotations

import math
from typing import Any

from aerogel._dtypes import u1
from aerogel.tensor import _types
from aerogel.tensor._accum import accum
from aerogel.tensor._complex import is_complex
from aerogel.tensor._complex_products import multilinear
from aerogel.tensor._creation import arange
from aerogel.tensor._searching import take
from aerogel.tensor._shapes import flip, pad
from aerogel.tensor._tensor import Tensor, asarray, operands
from aerogel.tensor._unknown import all_known, at_least


def _vectors(name: str, a: Any, v: Any, mode: str) -> list[Tensor]:
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"`{name}`: the mode is 'full', 'same' or 'valid', not {mode!r}")
    given = operands(a, v)
    if given[0].dtype is u1:
        given = [t.astype(_types.default_int()) for t in given]
    for t in given:
        if t.ndim > 1:
            raise ValueError(f"`{name}` takes vectors, the shapes are {given[0].shape} and {given[1].shape}")
    given = [t.reshape((1,)) if t.ndim == 0 else t for t in given]
    for t in given:
        if isinstance(t.shape[0], int):
            if t.shape[0] == 0:
                raise ValueError(f"`{name}` of no elements: the shapes are {given[0].shape} and {given[1].shape}")
        else:
            at_least(t.shape[0], 1, f"`{name}` of {{}} elements")
    return given


def _slid(name: str, long: Tensor, short: Tensor, mode: str, start: Any) -> Tensor:
    """The sums of products of a vector and the parts of a longer one that it slides over.

    Of those that overlap at all (``full``), ``same`` are as many as the longer vector has elements, from ``start`` on,
    and ``valid`` those that overlap wholly.
    """
    m = short.shape[0]
    if mode != "full" and not all_known((long.shape[0], m)):
        at_least(long.shape[0] - m + 1, 1, f"`{name}`: the second vector is longer than the first: {{}} windows fit")
    margin = {"full": (m - 1, m - 1), "same": (m - 1 - start, start), "valid": (0, 0)}[mode]
    long = pad(long, (margin,)) if mode != "valid" else long
    if all_known((long.shape[0], m)):
        return accum("o+k; k => o", long, short)
    n = long.shape[0] - m + 1
    parts = take(long, arange(n).unsqueeze(1) + arange(m).unsqueeze(0))
    return (parts * short.unsqueeze(0)).sum(axis=1, dtype=long.dtype)


def _is_longer(a: Tensor, b: Tensor) -> bool:
    """Whether a vector is known to have more elements than another one; two of unknown sizes are taken as they come."""
    n, m = a.shape[0], b.shape[0]
    return isinstance(n, int) and isinstance(m, int) and n > m


def convolve(a: Any, v: Any, /, mode: str = "full") -> Any:
    """The convolution of two vectors, the coefficients of the product of the polynomials that they are.

    In a program, the first vector is at least as long as the second, unless both lengths are known.

    Args:
        a: A vector.
        v: Another one.
        mode: ``full``; ``same``, with as many elements as the longer one has; or ``valid``, without those at which
            the vectors overlap partly.

    Raises:
        ValueError: For vectors without elements, more axes, or another mode.

    >>> import aerogel as ti
    >>> from aerogel import xp
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> xp.convolve([1, 2, 3], [0, 1, 10]).tolist()
    [0, 1, 12, 23, 30]
    """
    if is_complex(a) or is_complex(v):
        return multilinear(lambda x, y: convolve(x, y, mode), a, v)
    long, short = _vectors("convolve", a, v, mode)
    if _is_longer(short, long):
        long, short = short, long
    return _slid("convolve", long, flip(short), mode, (short.shape[0] - 1) // 2)


def correlate(a: Any, v: Any, /, mode: str = "valid") -> Any:
    """The sums of products of a vector and the complex conjugate of another one, moved along it.

    In a program, the first vector is at least as long as the second, unless both lengths are known.

    Args:
        a: A vector.
        v: Another one.
        mode: As for ``convolve``.

    Raises:
        ValueError: As for ``convolve``.

    >>> import aerogel as ti
    >>> from aerogel import xp
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> xp.correlate([1, 2, 3], [0, 1, 10], "full").tolist()
    [10, 21, 32, 3, 0]
    """
    if is_complex(a) or is_complex(v):
        return multilinear(lambda x, y: correlate(x, y, mode), a, asarray(v).conj())
    x, y = _vectors("correlate", a, v, mode)
    if _is_longer(y, x):
        return flip(_slid("correlate", y, x, mode, (x.shape[0] - 1) // 2))
    return _slid("correlate", x, y, mode, (y.shape[0] - 1) // 2)


def _cosines(name: str, m: Any, *terms: float) -> Tensor:
    """A window of ``m`` samples: a sum of cosines with these factors."""
    from aerogel.tensor._elementwise import cos

    at, count = _samples(name, m)
    if count is not None:
        return count
    out: Any = terms[0]
    for k, factor in enumerate(terms[1:], 1):
        out = out + factor * cos(at * (math.pi * k))
    return out.astype(_types.default_float())


def _samples(name: str, m: Any) -> tuple[Any, Any]:
    """Numbers from -1 to 1 at the samples of a window in ``f64``; or the window, if it has one sample or none."""
    from aerogel.tensor._creation import iota, ones

    (m,) = _types.whole_numbers([m], name)
    if m <= 1:
        return None, ones((max(m, 0),))
    return iota((m,), 0, "f64") * (2.0 / (m - 1)) - 1.0, None


def hanning(m: int, /) -> Tensor:
    """The Hann window of ``m`` samples, a raised cosine that begins and ends at zero."""
    return _cosines("hanning", m, 0.5, 0.5)


def hamming(m: int, /) -> Tensor:
    """The Hamming window of ``m`` samples, a raised cosine with ends of 0.08."""
    return _cosines("hamming", m, 0.54, 0.46)


def blackman(m: int, /) -> Tensor:
    """The Blackman window of ``m`` samples."""
    return _cosines("blackman", m, 0.42, 0.5, 0.08)


def bartlett(m: int, /) -> Tensor:
    """The triangular window of ``m`` samples, which begins and ends at zero."""
    at, known = _samples("bartlett", m)
    if known is not None:
        return known
    return (1.0 - abs(at)).astype(_types.default_float())
