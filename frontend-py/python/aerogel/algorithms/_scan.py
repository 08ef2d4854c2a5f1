"""Sums of all before, and what is made with them.

An array is gone through in tiles that the cache holds, so that it is fetched from memory once though read twice: for
the sums of its rows, and then, when it is known where each row begins, for the sums within.
"""

from typing import Any

import aerogel as ti
from aerogel.algorithms._arrays import (
    ARRAY,
    array_of,
    chunks_for,
    first_index,
    for_fields_and_arrays,
    numbers,
    same_length,
)
from aerogel.ops import prefetch

#: Groups of rows that threads take, and rows of a group. A sum waits for the one before, so a thread adds up several
#: rows at a time, of integers two elements in a step. For the sum of one row it has several sums, each of every so
#: manieth element, where the compiler may not make them by itself.
_GROUPS, _ROWS_OF_FLOATS, _ROWS_OF_INTS, _LANES = 16, 8, 4, 16
#: Elements of a tile. Its rows begin at different places modulo the size of a page: else they would meet in the cache.
_TILE = _GROUPS * _ROWS_OF_FLOATS * (2048 + 16)
#: Elements of a cache line, if they have four bytes.
_LINE = 16


def _scan_of(kind: Any) -> Any:
    @ti.kernel
    def scan(
        x: kind,
        begins: ARRAY,
        first: ti.i32,
        n: ti.i32,
        ahead: ti.i32,
        inclusive: ti.template(),
        dtype: ti.template(),
        rows: ti.template(),
        in_order: ti.template(),
    ):
        """Scans ``n`` elements; the last of ``begins`` is the sum of all before, and afterwards of these too.

        Of floats ``begins`` are doubles, and a row's sums are added to its beginning only when they are written: so
        what rounding loses does not grow with the length. ``ahead`` is how far on the next tile begins, 0 for the last.
        """
        for g in range(_GROUPS):
            length = n // (_GROUPS * rows * 2) * 2
            for k in range(rows):
                row = first + (g * rows + k) * length
                total = ti.cast(0, dtype)
                rest = row
                if ti.static(in_order):
                    lanes = ti.Vector.zero(dtype, _LANES)
                    for q in range(length // _LANES):
                        for w in ti.static(range(_LANES)):
                            lanes[w] += x[row + q * _LANES + w]
                    total = lanes.sum()
                    rest += length // _LANES * _LANES
                for i in range(rest, row + length):
                    total += x[i]
                begins[g * rows + k] = total
        for _ in range(1):
            # The sum until here, and the elements that are left over because they are no row.
            total = begins[_GROUPS * rows]
            for r in range(_GROUPS * rows):
                v = begins[r]
                begins[r] = total
                total += v
            for i in range(first + n // (_GROUPS * rows * 2) * (_GROUPS * rows * 2), first + n):
                v = x[i]
                if ti.static(not inclusive):
                    x[i] = ti.cast(total, dtype)
                total += v
                if ti.static(inclusive):
                    x[i] = ti.cast(total, dtype)
            begins[_GROUPS * rows] = total
        for g in range(_GROUPS):
            length = n // (_GROUPS * rows * 2) * 2
            base = first + g * rows * length
            total = ti.Vector.zero(dtype, rows)
            if ti.static(dtype.is_float):
                before = ti.Vector([ti.cast(begins[g * rows + k], dtype) for k in range(rows)])
                for line in range((length - 1) // _LINE + 1):
                    for k in ti.static(range(rows)):
                        prefetch(x[base + k * length + line * _LINE + ahead])
                    for q in range(line * _LINE, min((line + 1) * _LINE, length)):
                        for k in ti.static(range(rows)):
                            at = base + k * length + q
                            v = x[at]
                            x[at] = before[k] + (total[k] + v if ti.static(inclusive) else total[k])
                            total[k] += v
            else:
                for k in ti.static(range(rows)):
                    total[k] = begins[g * rows + k]
                for q in range(length // 2):
                    for k in ti.static(range(rows)):
                        at = base + k * length + 2 * q
                        v, w = x[at], x[at + 1]
                        x[at] = total[k] + v if ti.static(inclusive) else total[k]
                        x[at + 1] = total[k] + (v + w) if ti.static(inclusive) else total[k] + v
                        total[k] += v + w

    return scan


_scan = for_fields_and_arrays(_scan_of)


class PrefixSumExecutor:
    """Replaces each number by the sum of all up to it.

    Args:
        length: How many numbers there are.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> x = ti.field(ti.i32, 4)
    >>> x.fill(2)
    >>> ti.algorithms.PrefixSumExecutor(4).run(x)
    >>> x.to_numpy().tolist()
    [2, 4, 6, 8]
    """

    def __init__(self, length: int) -> None:
        if int(length) != length or length < 0:
            raise ValueError(f"the length must be an integer of at least 0, not {length!r}")
        self.length = int(length)

    def run(self, input_arr: Any, inclusive: bool = True) -> None:
        """Sums in place.

        Args:
            input_arr: A field or a ``ti.ndarray`` of numbers of any type but u1, of shape (length,). Sums of integers
                wrap around as the type does.
            inclusive: Whether the sum has the number itself in it, or only those before.

        Raises:
            TypeError: ``input_arr`` is no field and no array of numbers.
            ValueError: It has several axes, or another length.
        """
        dtype = numbers(input_arr, "input_arr")
        if dtype is ti.u1:
            raise TypeError("`input_arr` must hold numbers to be added, not u1")
        n = input_arr.shape[0]
        if n != self.length:
            raise ValueError(f"`input_arr` has {n} elements; the executor was made for {self.length}")
        rows = _ROWS_OF_FLOATS if dtype.is_float else _ROWS_OF_INTS
        begins = ti.ndarray(ti.f64 if dtype.is_float else dtype, _GROUPS * rows + 1)
        first = first_index(input_arr)
        for at in range(0, n, _TILE):
            size = min(n - at, _TILE)
            ahead = _TILE if at + 2 * _TILE + _LINE <= n else 0
            _scan(input_arr, begins, first + at, size, ahead, bool(inclusive), dtype, rows, not ti.cfg.fast_math)


def _count_of(kind: Any) -> Any:
    @ti.kernel
    def count(mask: kind, counts: ARRAY, first: ti.i32, n: ti.i32):
        for c in range(counts.shape[0]):
            size = (n - 1) // counts.shape[0] + 1
            found = ti.cast(0, ti.i32)
            for i in range(c * size, min(n - c * size, size) + c * size):
                found += ti.cast(mask[i + first] != 0, ti.i32)
            counts[c] = found

    return count


def _take_of(kind: Any) -> Any:
    def for_values(kind_of_values: Any) -> Any:
        @ti.kernel
        def take(
            x: kind_of_values, mask: kind, begins: ARRAY, out: ARRAY, x_first: ti.i32, mask_first: ti.i32, n: ti.i32
        ):
            for c in range(begins.shape[0]):
                size = (n - 1) // begins.shape[0] + 1
                at = begins[c]
                for i in range(c * size, min(n - c * size, size) + c * size):
                    if mask[i + mask_first] != 0:
                        out[at] = x[i + x_first]
                        at += 1

        return take

    chosen = for_fields_and_arrays(for_values)
    # What decides is the first argument, here the mask.
    return lambda mask, x, *args: chosen(x, mask, *args)


_count_set = for_fields_and_arrays(_count_of)
_take = for_fields_and_arrays(_take_of)


def select(values: Any, mask: Any) -> Any:
    """The numbers whose mask is not zero, in order.

    Args:
        values: A field or a ``ti.ndarray`` of numbers, of shape (n,).
        mask: A field or a ``ti.ndarray`` of numbers, of shape (n,).

    Returns:
        A new ``ti.ndarray`` of the type of ``values``.

    Raises:
        TypeError: An argument is no field and no array of numbers.
        ValueError: One has several axes, or their lengths differ.
    """
    dtype = numbers(values, "values")
    numbers(mask, "mask")
    same_length(values, mask, "`values` and `mask`")
    n = values.shape[0]
    if n == 0:
        return array_of(dtype, 0)
    counts = ti.ndarray(ti.i32, chunks_for(n, 1 << 14))
    _count_set(mask, counts, first_index(mask), n)
    found = counts.to_numpy()
    begins = found.cumsum(dtype=found.dtype) - found
    out = array_of(dtype, int(found.sum()))
    if out.shape[0]:
        counts.from_numpy(begins)
        _take(mask, values, counts, out, first_index(values), first_index(mask), n)
    return out
