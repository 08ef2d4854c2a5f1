"""Float types: rounding to them, and values of them. A `bf16` is an `f32` array that is rounded after each operation."""

import ml_dtypes
import numpy as np

KINDS = ("f16", "bf16", "f32", "f64")
# What a NumPy array of the kind computes in, and what passes it to a kernel.
WORK = {"f16": np.float16, "bf16": np.float32, "f32": np.float32, "f64": np.float64}
STORED = WORK | {"bf16": ml_dtypes.bfloat16}
UINT = {"f16": np.uint16, "bf16": np.uint16, "f32": np.uint32, "f64": np.uint64}
DIGITS = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}


def promote(a, b):
    """The kind in which two values of a kind meet."""
    if a == b:
        return a
    return max((a, b), key=("f16", "bf16", "f32", "f64").index)


def rounded(kind, values):
    """The `f32`s of an operation on `bf16`s as `bf16`s; other kinds are rounded already."""
    if kind != "bf16":
        return values
    values = np.asarray(values, np.float32)
    bits = values.view(np.uint32)
    near = (bits + (0x7FFF + ((bits >> 16) & 1))) & 0xFFFF0000
    return np.where(np.isnan(values), values, near.astype(np.uint32).view(np.float32))


def from_double(kind, values):
    """Doubles rounded once to a kind."""
    values = np.asarray(values, np.float64)
    with np.errstate(all="ignore"):
        near = values.astype(WORK[kind])
        if kind == "bf16":
            # A tie among `bf16`s that is none among doubles goes to the double's side.
            tie = (near.view(np.uint32) & 0xFFFF) == 0x8000
            back = near.astype(np.float64)
            near = np.where(tie & (np.abs(values) > np.abs(back)), np.nextafter(near, near * np.float32(2)), near)
            near = np.where(tie & (np.abs(values) < np.abs(back)), np.nextafter(near, np.float32(0)), near)
            near = rounded(kind, near)
    return near


def convert(to, kind, values):
    """Values of a kind as values of another one."""
    if to == kind:
        return values
    with np.errstate(all="ignore"):
        if to == "bf16":
            return from_double(to, np.asarray(values, np.float64))
        return np.asarray(values).astype(WORK[to])


def stored(kind, values):
    """The array that is passed to a kernel."""
    with np.errstate(invalid="ignore"):
        return np.ascontiguousarray(np.asarray(values, WORK[kind]).astype(STORED[kind]))


def from_bits(kind, bits):
    """The values of bit patterns."""
    bits = np.asarray(bits).astype(UINT[kind])
    if kind == "bf16":
        return (bits.astype(np.uint32) << 16).view(np.float32)
    return bits.view(WORK[kind])


def bits_of(kind, values):
    """The bit patterns of values; one of all NaNs."""
    values = np.asarray(values, WORK[kind])
    wide = (values.view(np.uint32) >> 16).astype(np.uint16) if kind == "bf16" else values.view(UINT[kind])
    nan = np.array(np.nan, WORK[kind])
    one = (nan.view(np.uint32) >> 16).astype(np.uint16) if kind == "bf16" else nan.view(UINT[kind])
    return np.where(np.isnan(values), one, wide)


def nudged(kind, values, ulps):
    """Values moved by as many units in the last place; infinities and NaN stay."""
    values = np.asarray(values, WORK[kind])
    bits = bits_of(kind, values).astype(np.int64)
    moved = from_bits(kind, bits + np.where(bits_of(kind, np.abs(values)) == 0, np.abs(ulps), ulps))
    return np.where(np.isfinite(values), moved, values)


def any_bits(kind, rng, n):
    """Values of random bits: the whole range of exponents, NaN and infinities among them."""
    width = np.dtype(UINT[kind]).itemsize
    return from_bits(kind, np.frombuffer(rng.bytes(n * width), UINT[kind]))


def specials(kind):
    """Zeros, infinities, NaN, and the ends of the ranges of normal and subnormal values."""
    tiny, bits = {"f16": 0x0400, "bf16": 0x0080, "f32": 0x00800000, "f64": 1 << 52}[kind], []
    top = {"f16": 0x7BFF, "bf16": 0x7F7F, "f32": 0x7F7FFFFF, "f64": 0x7FEFFFFFFFFFFFFF}[kind]
    bits = [0, 1, 2, 3, tiny - 1, tiny, tiny + 1, top - 1, top, top + 1]
    plain = from_double(
        kind, [1.0, 0.5, 2.0, 1.5, 3.0, 0.1, 0.49999999, 2.0 ** (DIGITS[kind] - 1), 2.0 ** DIGITS[kind]]
    )
    positive = np.concatenate([from_bits(kind, bits), plain])
    return np.concatenate([positive, -positive, from_double(kind, [np.nan])])
