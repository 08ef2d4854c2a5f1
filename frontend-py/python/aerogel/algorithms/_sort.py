"""Sorting by digits, from the least significant one.

A pass counts how often each digit occurs in each chunk, makes the counts into the places where a chunk's keys of that
digit begin, and moves the keys there. What moves is gathered in a line of cache for each digit and written a line at a
time: a thousand streams of single writes would each take a line of the nearest cache and an entry of the page table.
"""

from typing import Any

import aerogel as ti
from aerogel.algorithms._arrays import (
    ARRAY,
    TABLE,
    array_of,
    bit_width,
    chunks_for,
    first_index,
    for_fields_and_arrays,
    numbers,
    same_length,
)
from aerogel.ops import prefetch

UNSIGNED, SIGNED, FLOAT = range(3)


@ti.func
def _rank(raw, kind: ti.template(), width: ti.template(), mantissa: ti.template()):
    """The order of a key as that of an unsigned number: what is equal has equal ranks, and NaNs have the last."""
    one = raw * 0 + 1
    sign = one << (width - 1)
    rank = raw
    if ti.static(kind == SIGNED):
        rank = raw ^ sign
    if ti.static(kind == FLOAT):
        magnitude = raw & (sign - 1)
        infinity = sign - (one << mantissa)
        rank = sign - magnitude if raw >= sign else sign + magnitude
        if magnitude > infinity:
            rank = sign | (sign - 1)
    return rank


@ti.func
def _digit(raw, kind: ti.template(), width: ti.template(), mantissa: ti.template(), shift, bits: ti.template()):
    return ti.cast((_rank(raw, kind, width, mantissa) >> ti.cast(shift, ti.u32)) & ((1 << bits) - 1), ti.i32)


@ti.kernel
def _differences(raw: ARRAY, n: ti.i32, kind: ti.template(), width: ti.template(), mantissa: ti.template()) -> ti.u64:
    """The bits in which the keys' ranks differ."""
    first = _rank(raw[0], kind, width, mantissa)
    found = ti.cast(0, ti.u64)
    for i in range(n):
        found |= ti.cast(_rank(raw[i], kind, width, mantissa) ^ first, ti.u64)
    return found


@ti.kernel
def _count(
    raw: ARRAY,
    counts: TABLE,
    n: ti.i32,
    shift: ti.i32,
    bits: ti.template(),
    kind: ti.template(),
    width: ti.template(),
    mantissa: ti.template(),
):
    for c in range(counts.shape[0]):
        size = (n - 1) // counts.shape[0] + 1
        for d in range(1 << bits):
            counts[c, d] = 0
        for i in range(c * size, min(n - c * size, size) + c * size):
            d = _digit(raw[i], kind, width, mantissa, shift, bits)
            counts[c, d] = counts[c, d] + 1


@ti.kernel
def _places(counts: TABLE, begins: TABLE):
    """Makes the counts into the places where the keys of each digit and chunk begin."""
    total = ti.cast(0, ti.i32)
    ti.loop_config(serialize=True)
    for d in range(counts.shape[1]):
        for c in range(counts.shape[0]):
            count = counts[c, d]
            counts[c, d] = total
            begins[c, d] = total
            total += count


@ti.func
def _write_out(line: ti.template(), row, out: ti.template(), first, last, per_line: ti.template()):
    """Writes what a row of ``line`` holds for the places from ``first`` to before ``last``."""
    for p in range(first, last):
        out[p] = line[row, p & (per_line - 1)]


@ti.func
def _write_line(line: ti.template(), row, out: ti.template(), first, per_line: ti.template()):
    """Writes a whole row of ``line``: all is read first, so that it goes in the widest words there are."""
    full = ti.Vector([line[row, q] for q in range(per_line)])
    for q in ti.static(range(per_line)):
        out[first + q] = full[q]


@ti.kernel
def _move(
    keys: ARRAY,
    sorted_keys: ARRAY,
    line: TABLE,
    values: ARRAY,
    sorted_values: ARRAY,
    value_line: TABLE,
    places: TABLE,
    begins: TABLE,
    n: ti.i32,
    shift: ti.i32,
    bits: ti.template(),
    kind: ti.template(),
    width: ti.template(),
    mantissa: ti.template(),
    has_values: ti.template(),
    per_line: ti.template(),
):
    """Moves keys (and values) to their places; ``line`` has a row of ``per_line`` keys for each chunk and digit."""
    for c in range(places.shape[0]):
        size = (n - 1) // places.shape[0] + 1
        for i in range(c * size, min(n - c * size, size) + c * size):
            key = keys[i]
            d = _digit(key, kind, width, mantissa, shift, bits)
            at = places[c, d]
            places[c, d] = at + 1
            row = (c << bits) + d
            slot = at & (per_line - 1)
            line[row, slot] = key
            if ti.static(has_values):
                value_line[row, slot] = values[i]
            if slot == per_line // 2:
                # Where the row will be written is not in the cache, and few writes can wait for what is not.
                prefetch(sorted_keys[at])
            if slot == per_line - 1:
                first = at - slot
                # The places before the first of this chunk and digit are another's.
                if first >= begins[c, d]:
                    _write_line(line, row, sorted_keys, first, per_line)
                    if ti.static(has_values):
                        _write_line(value_line, row, sorted_values, first, per_line)
                else:
                    _write_out(line, row, sorted_keys, begins[c, d], at + 1, per_line)
                    if ti.static(has_values):
                        _write_out(value_line, row, sorted_values, begins[c, d], at + 1, per_line)
        for d in range(1 << bits):
            row = (c << bits) + d
            end = places[c, d]
            first = max(begins[c, d], end & ~(per_line - 1))
            _write_out(line, row, sorted_keys, first, end, per_line)
            if ti.static(has_values):
                _write_out(value_line, row, sorted_values, first, end, per_line)


@ti.kernel
def _sort_buckets(
    keys: ARRAY,
    other_keys: ARRAY,
    values: ARRAY,
    other_values: ARRAY,
    begins: TABLE,
    counts: TABLE,
    n: ti.i32,
    shift: ti.i32,
    passes: ti.template(),
    bits: ti.template(),
    kind: ti.template(),
    width: ti.template(),
    mantissa: ti.template(),
    has_values: ti.template(),
):
    """Sorts each bucket by itself, which stays in the cache; after an odd number of passes all are in the others."""
    for g in range(counts.shape[0]):
        for turn in range((begins.shape[1] - 1 - g) // counts.shape[0] + 1):
            bucket = g + turn * counts.shape[0]
            low = begins[0, bucket]
            high = n
            if bucket + 1 < begins.shape[1]:
                high = begins[0, bucket + 1]
            if low < high:
                for p in ti.static(range(passes)):
                    if ti.static(p % 2 == 0):
                        _sort_range(
                            keys, other_keys, values, other_values, counts, g, low, high, shift + p * bits,
                            bits, kind, width, mantissa, has_values,
                        )  # fmt: skip
                    else:
                        _sort_range(
                            other_keys, keys, other_values, values, counts, g, low, high, shift + p * bits,
                            bits, kind, width, mantissa, has_values,
                        )  # fmt: skip


@ti.func
def _sort_range(
    keys: ti.template(),
    sorted_keys: ti.template(),
    values: ti.template(),
    sorted_values: ti.template(),
    counts: ti.template(),
    g,
    low,
    high,
    shift,
    bits: ti.template(),
    kind: ti.template(),
    width: ti.template(),
    mantissa: ti.template(),
    has_values: ti.template(),
):
    """One pass over the places from ``low`` to before ``high``, with row ``g`` of ``counts`` to count in."""
    for d in range(1 << bits):
        counts[g, d] = 0
    for i in range(low, high):
        d = _digit(keys[i], kind, width, mantissa, shift, bits)
        counts[g, d] = counts[g, d] + 1
    total = low
    for d in range(1 << bits):
        count = counts[g, d]
        counts[g, d] = total
        total += count
    for i in range(low, high):
        key = keys[i]
        d = _digit(key, kind, width, mantissa, shift, bits)
        at = counts[g, d]
        counts[g, d] = at + 1
        sorted_keys[at] = key
        if ti.static(has_values):
            sorted_values[at] = values[i]


def _load_into(kind: Any) -> Any:
    @ti.kernel
    def load(x: kind, raw: ARRAY, first: ti.i32, same_width: ti.template(), wide: ti.template()):
        for i in range(raw.shape[0]):
            raw[i] = ti.cast(ti.bit_cast(x[i + first], same_width), wide)

    return load


def _load_ordered_into(kind: Any) -> Any:
    @ti.kernel
    def load(
        x: kind, raw: ARRAY, first: ti.i32, same_width: ti.template(), wide: ti.template(), mantissa: ti.template()
    ) -> ti.i32:
        """Of floats, words with the order of unsigned numbers; gives whether there are some that have no such word.

        These are NaNs, of which all are equal, and the zero with a sign, which equals the one without.
        """
        without = 0
        for i in range(raw.shape[0]):
            word = ti.cast(ti.bit_cast(x[i + first], same_width), wide)
            sign = (word * 0 + 1) << (ti.static(_BITS_OF[same_width]) - 1)
            infinity = sign - ((word * 0 + 1) << mantissa)
            if (word & (sign - 1)) > infinity or word == sign:
                without |= 1
            raw[i] = word ^ (sign | (sign - 1) if word >= sign else sign)
        return without

    return load


def _store_from(kind: Any) -> Any:
    @ti.kernel
    def store(
        x: kind, raw: ARRAY, first: ti.i32, same_width: ti.template(), dtype: ti.template(), ordered: ti.template()
    ):
        for i in range(raw.shape[0]):
            word = raw[i]
            if ti.static(ordered):
                sign = (word * 0 + 1) << (ti.static(_BITS_OF[same_width]) - 1)
                word = word ^ (sign if word >= sign else sign | (sign - 1))
            x[i + first] = ti.bit_cast(ti.cast(word, same_width), dtype)

    return store


_load = for_fields_and_arrays(_load_into)
_load_ordered = for_fields_and_arrays(_load_ordered_into)
_store = for_fields_and_arrays(_store_from)


@ti.kernel
def _count_up(out: ARRAY):
    for i in range(out.shape[0]):
        out[i] = ti.cast(i, ti.u32)


#: Exponent's place in the floats: the bits of the mantissa.
_MANTISSA = {16: 10, 32: 23, 64: 52}
_UNSIGNED = {1: ti.u1, 8: ti.u8, 16: ti.u16, 32: ti.u32, 64: ti.u64}
_BITS_OF = {word: width for width, word in _UNSIGNED.items()}


class _Words:
    """Unsigned words in an array, and another array to move them to."""

    def __init__(self, word: Any, n: int) -> None:
        self.now, self.next = ti.ndarray(word, n), ti.ndarray(word, n)

    def swap(self) -> None:
        """After a pass: what was moved to is now the source."""
        self.now, self.next = self.next, self.now


class _Bits(_Words):
    """The bits of a field's or array's numbers.

    Args:
        x: The field or array.
        name: What messages call it.
        ordered: Whether floats become words with the order of unsigned numbers, if all of them can: ranks of others
            are recomputed for each digit.
    """

    def __init__(self, x: Any, name: str, ordered: bool = False) -> None:
        self.x, self.dtype = x, numbers(x, name)
        self.width = bit_width(self.dtype)
        self.word = ti.u64 if self.width == 64 else ti.u32
        self.first = first_index(x)
        super().__init__(self.word, x.shape[0])
        place = x, self.now, self.first, _UNSIGNED[self.width], self.word
        self.ordered = ordered and self.dtype.is_float and not _load_ordered(*place, _MANTISSA[self.width])
        if not self.ordered:
            _load(*place)

    @property
    def order(self) -> tuple[int, int, int]:
        """The arguments of `_rank`: the kind of the words, their number of bits, and the bits of the mantissa."""
        kind = SIGNED if self.dtype.is_signed_int else UNSIGNED
        if self.dtype.is_float and not self.ordered:
            kind = FLOAT
        return kind, self.width, _MANTISSA.get(self.width, 0)

    def store(self) -> None:
        """Writes the words back."""
        _store(self.x, self.now, self.first, _UNSIGNED[self.width], self.dtype, self.ordered)


#: From so many keys on, they are first cut into buckets that the cache holds.
_MANY = 1 << 20


class _Sorter:
    """Sorts the words of ``keys``, and moves those of ``values``."""

    def __init__(self, keys: _Bits, values: _Words | None) -> None:
        self.keys, self.values = keys, values
        self.n = n = keys.now.shape[0]
        self.order = keys.order
        self.bits = bits = 11 if n >= 1 << 17 else 8
        self.chunks = chunks_for(n, 4 << bits)
        self.counts = ti.ndarray(ti.i32, (self.chunks, 1 << bits))
        self.begins = ti.ndarray(ti.i32, (self.chunks, 1 << bits))
        # Without values the keys stand for them, where a kernel wants an array.
        self.others = keys if values is None else values
        self.per_line = 16 if keys.word is ti.u32 else 8
        rows = self.chunks << bits
        self.line = ti.ndarray(keys.word, (rows, self.per_line))
        self.other_line = self.line if values is None else ti.ndarray(values.now.dtype, (rows, self.per_line))

    def run(self) -> None:
        """Sorts by the bits in which keys differ at all."""
        differences = _differences(self.keys.now, self.n, *self.order)
        if not differences:
            return
        low, high = (differences & -differences).bit_length() - 1, differences.bit_length()
        if self.n < _MANY or high - low <= 2 * self.bits or not self.by_buckets(low, high):
            for shift in range(low, high, self.bits):
                if (differences >> shift) & ((1 << self.bits) - 1):
                    self.count(shift)
                    self.move(shift)

    def by_buckets(self, low: int, high: int) -> bool:
        """Sorts by the uppermost digit, and then what has the same one; unless too many have the same one."""
        top = high - self.bits
        self.count(top)
        begins = self.begins.to_numpy()[0]
        if max(b - a for a, b in zip(begins, [*begins[1:], self.n])) > self.n >> 4:
            return False
        self.move(top)
        keys, others = self.keys, self.others
        passes = (top - low - 1) // self.bits + 1
        # More groups than threads, so that none waits long for the last.
        counts = ti.ndarray(ti.i32, (64, 1 << self.bits))
        # The bits above the bucket's are the same for all of it.
        _sort_buckets(
            keys.now, keys.next, others.now, others.next, self.begins, counts, self.n, low,
            passes, self.bits, *self.order, self.values is not None,
        )  # fmt: skip
        if passes % 2:
            self.swap()
        return True

    def swap(self) -> None:
        """After a pass: what was moved to is now the source."""
        self.keys.swap()
        if self.values is not None:
            self.values.swap()

    def count(self, shift: int) -> None:
        """Finds where the keys of each digit and chunk go."""
        _count(self.keys.now, self.counts, self.n, shift, self.bits, *self.order)
        _places(self.counts, self.begins)

    def move(self, shift: int) -> None:
        """Moves all to where `count` has found they go."""
        keys, others = self.keys, self.others
        _move(
            keys.now, keys.next, self.line, others.now, others.next, self.other_line, self.counts, self.begins,
            self.n, shift, self.bits, *self.order, self.values is not None, self.per_line,
        )  # fmt: skip
        self.swap()


def parallel_sort(keys: Any, values: Any = None) -> None:
    """Sorts numbers in place, the smallest first; equal ones keep their order.

    NaNs come last, and -0.0 equals 0.0.

    Args:
        keys: A field or a ``ti.ndarray`` of numbers of any type, of shape (n,).
        values: A field or a ``ti.ndarray`` of numbers of shape (n,), which are moved as their keys are.

    Raises:
        TypeError: ``keys`` or ``values`` is no field and no array of numbers.
        ValueError: One has several axes, or their lengths differ.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> x = ti.field(ti.f32, 4)
    >>> x.from_numpy([3.0, -1.0, 2.0, 0.5])
    >>> ti.algorithms.parallel_sort(x)
    >>> x.to_numpy().tolist()
    [-1.0, 0.5, 2.0, 3.0]
    """
    numbers(keys, "keys")
    if values is not None:
        numbers(values, "values")
        same_length(keys, values, "`keys` and `values`")
    if keys.shape[0] < 2:
        return
    words = _Bits(keys, "keys", ordered=True)
    moved = None if values is None else _Bits(values, "values")
    _Sorter(words, moved).run()
    words.store()
    if moved is not None:
        moved.store()


def argsort(keys: Any) -> Any:
    """The order that would sort numbers: where the smallest is, the next, and so on; the keys stay as they are.

    Args:
        keys: A field or a ``ti.ndarray`` of numbers of any type, of shape (n,).

    Returns:
        A ``ti.ndarray`` of i32 of shape (n,). Of equal keys the first comes first, and NaNs come last.

    Raises:
        TypeError: ``keys`` is no field and no array of numbers.
        ValueError: It has several axes.
    """
    numbers(keys, "keys")
    n = keys.shape[0]
    out = array_of(ti.i32, n)
    if n:
        indices = _Words(ti.u32, n)
        _count_up(indices.now)
        _Sorter(_Bits(keys, "keys", ordered=True), indices).run()
        _store(out, indices.now, 0, ti.u32, ti.i32, False)
    return out
