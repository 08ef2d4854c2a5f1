"""Tensors from files of several formats."""

from __future__ import annotations

import gzip
import math
import os
import struct
import zlib
from typing import Any, NamedTuple

from aerogel.tensor._tensor import Tensor, asarray

_IDX_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def idx(path: str | os.PathLike[str]) -> Tensor:
    """A tensor of a file in the format IDX, that of MNIST; compressed by gzip or not.

    Args:
        path: The file.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it is no such file; the error names the mistake and the byte.
    """
    import numpy as np

    name = os.fspath(path)
    with open(path, "rb") as file:
        data = file.read()
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as e:
            raise ValueError(f"{name} begins like a gzip file, but is not one: {e}") from None
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in _IDX_TYPES:
        raise ValueError(f"{name} is not an IDX file: at byte 0, {data[:4].hex(' ')} is not its magic number")
    rank, kind = data[3], np.dtype(_IDX_TYPES[data[2]])
    start = 4 + 4 * rank
    if len(data) < start:
        raise ValueError(f"{name} is not an IDX file: at byte {len(data)}, it ends before the sizes of {rank} axes")
    shape = struct.unpack(f">{rank}I", data[4:start])
    size = math.prod(shape) * kind.itemsize
    if len(data) - start != size:
        raise ValueError(
            f"{name} is no IDX file: at byte {start}, {size} bytes follow for the shape {shape}, there are "
            f"{len(data) - start}"
        )
    return asarray(np.frombuffer(data, kind, offset=start).reshape(shape).astype(kind.newbyteorder("=")))


def mnist(folder: str | os.PathLike[str], split: str = "train") -> tuple[Tensor, Tensor]:
    """The images and labels of MNIST, or of sets with the same names of files, from a folder.

    Args:
        folder: Has ``train-images-idx3-ubyte``, ``train-labels-idx1-ubyte``, and with ``t10k`` the test images; with or
            without ``.gz``.
        split: ``"train"`` or ``"test"``.

    Returns:
        Images of shape (n, 28, 28) and labels of shape (n,), bytes.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If a file is none of the format, or there are more images than labels.
    """
    if split not in ("train", "test"):
        raise ValueError(f"`mnist`: the split is 'train' or 'test', not {split!r}")
    made = []
    for what in ("images-idx3", "labels-idx1"):
        stem = os.path.join(os.fspath(folder), f"{'train' if split == 'train' else 't10k'}-{what}-ubyte")
        found = next((name for name in (stem, stem + ".gz") if os.path.exists(name)), None)
        if found is None:
            raise FileNotFoundError(f"there is neither {stem} nor {stem}.gz; Aerogel downloads nothing")
        made.append(idx(found))
    images, labels = made
    if images.shape[0] != labels.shape[0]:
        raise ValueError(f"`mnist`: {os.fspath(folder)} has {images.shape[0]} images and {labels.shape[0]} labels")
    return images, labels


def npz(path: str | os.PathLike[str]) -> dict[str, Tensor]:
    """The tensors of a file of ``numpy.savez`` by name. Objects are refused: reading them could execute anything.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it is no such file, or has an array of objects.
    """
    import tokenize
    import zipfile
    import zlib

    import numpy as np

    # The last ones are encryption, unknown compression, sizes that no memory has, and names that are not there.
    of_zip = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, MemoryError, KeyError)
    # NumPy reads the header of an array as an expression of Python.
    damaged = (ValueError, TypeError, SyntaxError, tokenize.TokenError, *of_zip)
    try:
        loaded = np.load(path, allow_pickle=False)
        if not hasattr(loaded, "files"):
            raise ValueError("it has one array and no names: `ti.tensor.asarray(numpy.load(path))` reads it")
        with loaded as file:
            return {name: asarray(file[name]) for name in file.files}
    except damaged as e:
        raise ValueError(f"{os.fspath(path)} cannot be read as arrays of NumPy: {e}") from None


class Table(NamedTuple):
    """The columns of a file by name, and of those that are texts the texts, by their numbers."""

    columns: dict[str, Tensor]
    texts: dict[str, list[str]]


def csv(path: str | os.PathLike[str], *, delimiter: str = ",", header: bool | None = None) -> Table:
    """The columns of a text file with values between commas.

    Columns of integers are integers, those of other numbers floats, where an empty value is NaN. Columns of strings
    become integers: the index of each string in alphabetical order.

    Args:
        path: The file, in UTF-8.
        delimiter: The separator of values.
        header: Whether the first row has names; if not given, it has if one of them is no number.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If a row has another number of values; the error names the line. If there are no rows, or an integer
            has more than 64 bits.
    """
    import csv as rows_of

    name = os.fspath(path)
    rows: list[list[str]] = []
    lines: list[int] = []
    with open(path, encoding="utf-8-sig", newline="") as file:
        try:
            reader = rows_of.reader(file, delimiter=delimiter)
            for row in reader:
                if row:
                    rows.append([value.strip() for value in row])
                    lines.append(reader.line_num)
        except UnicodeDecodeError as e:
            raise ValueError(f"{name} is not UTF-8 text: {e}") from None
        except rows_of.Error as e:
            raise ValueError(f"{name}, line {reader.line_num}: {e}") from None
    if not rows:
        raise ValueError(f"{name} has no rows")
    has_names = not all(_number(value) is not None or not value for value in rows[0]) if header is None else header
    names = rows[0] if has_names else [str(k) for k in range(len(rows[0]))]
    if len(set(names)) != len(names):
        raise ValueError(f"{name}: two columns have the same name: {', '.join(names)}")
    body = rows[1:] if has_names else rows
    for row, line in zip(body, lines[has_names:]):
        if len(row) != len(names):
            raise ValueError(f"{name}, line {line}: there are {len(row)} values for {len(names)} columns")
    columns, texts = {}, {}
    for k, column in enumerate(names):
        values = [row[k] for row in body]
        try:
            made = _column(values)
        except OverflowError as e:
            raise ValueError(f"{name}, column {column}: {e}; write it as a float, such as 1e20") from None
        if made is None:
            texts[column] = sorted(set(values))
            number = {text: n for n, text in enumerate(texts[column])}
            made = asarray([number[value] for value in values], "i32")
        columns[column] = made
    return Table(columns, texts)


def _number(value: str) -> Any:
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            pass
    return None


def _column(values: list[str]) -> Tensor | None:
    """Numbers; nothing if there is something else."""
    numbers = [math.nan if not value else _number(value) for value in values]
    if any(n is None for n in numbers) or not any(values):
        return None if any(values) else asarray(numbers, "f32")
    is_whole = all(isinstance(n, int) for n in numbers)
    return asarray(numbers) if is_whole else asarray([float(n) for n in numbers])
