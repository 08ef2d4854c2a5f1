"""Sums, extremes and histograms of fields and arrays of any shape."""

import math
from typing import Any

import aerogel as ti
from aerogel._dtypes import numpy_dtype
from aerogel.algorithms._arrays import ANY, ARRAY, for_fields_and_arrays, numbers_of_any_shape


def _add_of(kind: Any) -> Any:
    @ti.kernel
    def add(x: kind, out: ARRAY, wide: ti.template()):
        for I in ti.grouped(x):
            out[0] += ti.cast(x[I], wide)

    return add


def _extreme_of(kind: Any) -> Any:
    @ti.kernel
    def extreme(x: kind, out: ARRAY, others: ARRAY, largest: ti.template()):
        """The extreme into ``out``; into ``others`` whether there are numbers at all, and NaNs."""
        for I in ti.grouped(x):
            v = x[I]
            if v != v:
                others[1] = 1
            else:
                others[0] = 1
                if ti.static(largest):
                    ti.atomic_max(out[0], v)
                else:
                    ti.atomic_min(out[0], v)

    return extreme


def _histogram_of(kind: Any) -> Any:
    @ti.kernel
    def histogram(x: kind, counts: ARRAY, low: ti.f64, high: ti.f64):
        for I in ti.grouped(x):
            v = ti.cast(x[I], ti.f64)
            # Not so for NaN.
            if low <= v and v <= high:
                bins = counts.shape[0]
                width = (high - low) / bins
                bin = ti.min(ti.cast((v - low) / width, ti.i32), bins - 1)
                # The quotient is rounded; the edges decide.
                if v < low + bin * width:
                    bin -= 1
                elif bin + 1 < bins and v >= low + (bin + 1) * width:
                    bin += 1
                counts[bin] += 1

    return histogram


_add = for_fields_and_arrays(_add_of, ANY)
_extreme = for_fields_and_arrays(_extreme_of, ANY)
_histogram = for_fields_and_arrays(_histogram_of, ANY)


def reduce_add(x: Any) -> int | float:
    """The sum of all numbers; under sparse nodes of those that are active.

    Args:
        x: A field or a ``ti.ndarray`` of numbers, of any shape.

    Returns:
        Of integers an int, the sum modulo 2 to the 64; of floats a float, added up in f64. 0 of none.

    Raises:
        TypeError: ``x`` is no field and no array of numbers.
    """
    dtype = numbers_of_any_shape(x, "x")
    wide = ti.f64 if dtype.is_float else ti.i64 if dtype.is_signed_int else ti.u64
    out = ti.ndarray(wide, 1)
    if math.prod(x.shape):
        _add(x, out, wide)
    return out[0]


def _reduce_extreme(x: Any, largest: bool) -> Any:
    import numpy as np

    dtype = numbers_of_any_shape(x, "x")
    out, others = ti.ndarray(dtype, 1), ti.ndarray(ti.i32, 2)
    if dtype.is_float:
        out.fill(-math.inf if largest else math.inf)
    elif dtype is ti.u1:
        out.fill(0 if largest else 1)
    else:
        limits = np.iinfo(numpy_dtype(dtype))
        out.fill(limits.min if largest else limits.max)
    if math.prod(x.shape):
        _extreme(x, out, others, largest)
    if others[1]:
        return math.nan
    if not others[0]:
        raise ValueError("`x` has no elements, so it has no minimum and no maximum")
    return out[0]


def reduce_min(x: Any) -> int | float:
    """The smallest number; under sparse nodes of those that are active. NaN if there is a NaN.

    Args:
        x: A field or a ``ti.ndarray`` of numbers, of any shape.

    Raises:
        TypeError: ``x`` is no field and no array of numbers.
        ValueError: It has no elements.
    """
    return _reduce_extreme(x, False)


def reduce_max(x: Any) -> int | float:
    """The largest number; under sparse nodes of those that are active. NaN if there is a NaN.

    Args:
        x: A field or a ``ti.ndarray`` of numbers, of any shape.

    Raises:
        TypeError: ``x`` is no field and no array of numbers.
        ValueError: It has no elements.
    """
    return _reduce_extreme(x, True)


def histogram(x: Any, bins: int = 10, range: tuple[float, float] | None = None) -> Any:
    """The number of elements in each of ``bins`` intervals of equal width.

    As in NumPy, an interval includes its lower edge, and the last one its upper edge too; elements outside and NaN
    are not counted.

    Args:
        x: A field or a ``ti.ndarray`` of numbers, of any shape.
        bins: How many intervals.
        range: Where the first begins and the last ends; by default at the smallest number and the largest.

    Returns:
        A ``ti.ndarray`` of i32 of shape (bins,).

    Raises:
        TypeError: ``x`` is no field and no array of numbers.
        ValueError: ``bins`` is not positive, or ``range`` is not finite, or too narrow or too wide for this number
            of bins.
    """
    numbers_of_any_shape(x, "x")
    if int(bins) != bins or bins < 1:
        raise ValueError(f"`bins` must be an integer of at least 1, not {bins!r}")
    counts = ti.ndarray(ti.i32, int(bins))
    if not math.prod(x.shape):
        return counts
    low, high = (float(reduce_min(x)), float(reduce_max(x))) if range is None else map(float, range)
    if not (math.isfinite(low) and math.isfinite(high)) or low > high:
        raise ValueError(f"a histogram needs a finite range from low to high, not ({low}, {high})")
    if low == high:
        low, high = low - 0.5, high + 0.5
    width = (high - low) / int(bins)
    # Else the number of a bin is not a number, or many numbers have no bin of their own.
    if not (math.isfinite(width) and low + width > low and high - width < high):
        raise ValueError(f"floats cannot represent {bins} distinct intervals from {low} to {high}")
    _histogram(x, counts, low, high)
    return counts
