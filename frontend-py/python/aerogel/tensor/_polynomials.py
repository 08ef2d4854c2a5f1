"""Polynomials by their coefficients, the highest power first, as NumPy has them."""

from __future__ import annotations

from typing import Any

from aerogel._dtypes import f32
from aerogel._limits import of_floats
from aerogel.tensor import _types
from aerogel.tensor._complex import is_complex
from aerogel.tensor._elementwise import sqrt
from aerogel.tensor._reductions import sum
from aerogel.tensor._searching import where
from aerogel.tensor._shapes import concat, pad, stack
from aerogel.tensor._tensor import Tensor, asarray, operands
from aerogel.tensor._unknown import differ


def _coefficients(p: Any, name: str) -> Any:
    """Coefficients along one axis, whose number is known.

    Raises:
        ValueError: For more axes, or, in a program, a number that only its run knows.
    """
    p = asarray(p)
    p = p.reshape((1,)) if p.ndim == 0 else p
    if p.ndim != 1:
        raise ValueError(f"`{name}` takes coefficients along one axis, the shape is {p.shape}")
    if not isinstance(p.shape[0], int):
        raise ValueError(f"`{name}`: the number of coefficients must be known when the program is traced")
    return p


def polyval(p: Any, x: Any, /) -> Any:
    """The value of a polynomial at each element, by Horner's rule; 0 without coefficients.

    >>> import aerogel as ti
    >>> from aerogel import xp
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> xp.polyval([1, 0, -1], [2.0, 3.0])
    tensor([3., 8.], dtype=f32)
    """
    from aerogel.tensor._creation import zeros_like

    p = _coefficients(p, "polyval")
    p, x = (p, asarray(x)) if is_complex(p) or is_complex(x) else operands(p, x)
    out = zeros_like(x) if not is_complex(x) and not is_complex(p) else x * 0
    for k in range(p.shape[0]):
        out = out * x + p[k] if k else p[k] + out
    return out


def polyfit(
    x: Any,
    y: Any,
    deg: Any,
    /,
    rcond: float | None = None,
    full: bool = False,
    w: Any = None,
    cov: bool | str = False,
) -> Any:
    """The polynomial of a degree that is closest to points, by least squares.

    Args:
        x: Coordinates, one axis.
        y: Values at them: one axis, or a matrix with a column for each polynomial.
        deg: The degree, or the powers that there are.
        rcond: Singular values up to this fraction of the largest count as zero; the number of points times the
            distance of 1 to the next number without it.
        full: Whether to return residuals, rank, singular values and ``rcond`` as well.
        w: Weights, by which differences are multiplied.
        cov: Whether to return the covariances of the coefficients as well; ``"unscaled"``: for weights that are
            reciprocal standard deviations.

    Returns:
        The coefficients, a column for each polynomial.

    Raises:
        ValueError: For a negative degree, no points, or too few of them for covariances.
        TypeError: For points of other shapes.

    >>> import aerogel as ti
    >>> from aerogel import xp
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> xp.round(xp.polyfit([0.0, 1.0, 2.0], [1.0, 3.0, 5.0], 1) * 1000) / 1000
    tensor([2., 1.], dtype=f32)
    """
    from aerogel.tensor import linalg

    x, y = operands(x, y, to_float=True)
    x, y = (t if _types._width(t.dtype) >= 32 else t.astype(f32) for t in (x, y))
    powers = _types.whole_numbers(deg, "polyfit")
    is_one = hasattr(deg, "__index__")
    if min(powers, default=-1) < 0:
        raise ValueError(f"`polyfit`: the degree must not be negative, it is {deg}")
    if x.ndim != 1 or y.ndim not in (1, 2) or differ(x.shape[0], y.shape[0]):
        raise TypeError(f"`polyfit` takes as many coordinates as values: the shapes are {x.shape} and {y.shape}")
    n = x.shape[0]
    if isinstance(n, int) and n == 0:
        raise ValueError("`polyfit` takes at least one point")
    degree = powers[0] if is_one else max(powers)
    named = list(range(degree, -1, -1)) if is_one else sorted(powers, reverse=True)
    columns = vander(x, degree + 1)
    matrix = stack([columns[:, degree - k] for k in named], axis=1)
    if w is not None:
        w = asarray(w).astype(x.dtype)
        if w.ndim != 1 or differ(w.shape[0], n):
            raise TypeError(f"`polyfit`: weights of shape {w.shape} for {n} points")
        matrix = matrix * w.unsqueeze(1)
        y = y * (w if y.ndim == 1 else w.unsqueeze(1))
    # Columns of one length, so that the rank is that of the powers and not of their scale.
    scale = sqrt(sum(matrix * matrix, 0))
    scale = where(scale == 0, 1.0, scale)
    if rcond is None:
        rcond = n * of_floats(x.dtype).eps
    c, residuals, rank, s = linalg.lstsq(matrix / scale, y, rtol=rcond)
    c = c / (scale if c.ndim == 1 else scale.unsqueeze(1))
    if not is_one:
        c = _placed(c, named, degree)
    if full:
        return c, residuals, rank, s, rcond
    if not cov:
        return c
    inverse = linalg.inv((matrix / scale).mT @ (matrix / scale)) / scale.unsqueeze(1) / scale.unsqueeze(0)
    if cov != "unscaled":
        if isinstance(n, int) and n <= len(named):
            raise ValueError(f"`polyfit`: {n} points are too few for covariances of {len(named)} coefficients")
        inverse = (
            inverse * (residuals / (n - len(named)))
            if y.ndim == 1
            else (inverse.unsqueeze(-1) * (residuals / (n - len(named))))
        )
    return c, inverse


def _placed(c: Any, powers: list[int], degree: int) -> Any:
    """Coefficients of some powers among zeros for the others."""
    rows = [c[powers.index(k)] if k in powers else c[0] * 0.0 for k in range(degree, -1, -1)]
    return stack(rows)


def vander(x: Any, n: Any = None, /, increasing: bool = False) -> Any:
    """The powers of each element along a second axis, the highest first, or the lowest with ``increasing``."""
    x = asarray(x)
    if x.ndim != 1:
        raise ValueError(f"`vander` takes one axis of numbers, the shape is {x.shape}")
    n = x.shape[0] if n is None else n
    if not isinstance(n, int):
        raise ValueError("`vander`: the number of powers must be known when the program is traced")
    _types.counts(n, "vander", "n")
    if n == 0:
        return x.unsqueeze(1)[:, :0]
    columns = [x * 0 + 1 if is_complex(x) else _ones(x)]
    for _ in range(n - 1):
        columns.append(columns[-1] * x)
    return stack(columns if increasing else columns[::-1], axis=1)


def _ones(x: Tensor) -> Tensor:
    from aerogel.tensor._creation import ones_like

    return ones_like(x)


def polyadd(p1: Any, p2: Any, /) -> Any:
    """The coefficients of the sum of two polynomials."""
    a, b = (_coefficients(p, "polyadd") for p in (p1, p2))
    n = max(a.shape[0], b.shape[0])
    a, b = (pad(t, ((n - t.shape[0], 0),)) for t in (a, b))
    return a + b


def polysub(p1: Any, p2: Any, /) -> Any:
    """The coefficients of the difference of two polynomials."""
    return polyadd(p1, -asarray(p2))


def polymul(p1: Any, p2: Any, /) -> Any:
    """The coefficients of the product of two polynomials."""
    from aerogel.tensor._signals import convolve

    return convolve(_coefficients(p1, "polymul"), _coefficients(p2, "polymul"))


def polyder(p: Any, m: int = 1, /) -> Any:
    """The coefficients of the ``m``-th derivative of a polynomial."""
    p = _coefficients(p, "polyder")
    (m,) = _types.whole_numbers([m], "polyder")
    _types.counts(m, "polyder", "m")
    for _ in range(m):
        n = p.shape[0]
        p = p[:-1] * asarray(list(range(n - 1, 0, -1))).astype(_part_of(p)) if n > 1 else p[:0]
    return p


def _part_of(p: Any) -> Any:
    return p.real.dtype if is_complex(p) else p.dtype


def polyint(p: Any, m: int = 1, /, k: Any = None) -> Any:
    """The coefficients of the ``m``-th integral of a polynomial.

    Args:
        p: The coefficients; integers become the default float.
        m: How often to integrate.
        k: The constant of each integration, or one for all; zero without it.
    """
    p = _coefficients(p, "polyint")
    p = p if is_complex(p) or p.dtype.is_float else p.astype(_types.default_float())
    (m,) = _types.whole_numbers([m], "polyint")
    _types.counts(m, "polyint", "m")
    constants = [0.0] * m if k is None else list(k) if isinstance(k, (list, tuple)) else [k] * m
    if len(constants) < m:
        raise ValueError(f"`polyint`: {len(constants)} constants for {m} integrations")
    for c in constants[:m]:
        n = p.shape[0]
        divisors = asarray(list(range(n, 0, -1))).astype(_part_of(p)) if n else p
        p = concat([p / divisors if n else p, asarray(c).astype(p.dtype).reshape((1,))])
    return p


__all__ = ["polyadd", "polyder", "polyfit", "polyint", "polymul", "polysub", "polyval", "vander"]
