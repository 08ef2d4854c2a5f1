"""Files of the format safetensors. Nothing is ever executed from a file.

A file has eight bytes with the size of a header, the header in JSON, and the bytes of all tensors:

    {"w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, "__metadata__": {"epoch": "3"}}

Files that are written here have the SHA-256 of their other bytes in the metadata, and are compared with it when they
are read. Files of other programs have none.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
from typing import TYPE_CHECKING, Any

from aerogel._dtypes import ALL, numpy_dtype
from aerogel.tools._files import write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aerogel.tensor._tensor import Tensor

_DTYPES = {
    "u1": "BOOL", "i8": "I8", "i16": "I16", "i32": "I32", "i64": "I64", "u8": "U8", "u16": "U16", "u32": "U32",
    "u64": "U64", "f16": "F16", "bf16": "BF16", "f32": "F32", "f64": "F64",
}  # fmt: skip
_NAMES = {name: dtype for dtype, name in _DTYPES.items()}
#: The largest header, as other programs have it.
_MOST = 100_000_000
#: The name of the hash in the metadata, and what stands in its place while it is computed.
_HASH, _UNKNOWN = "aerogel.sha256", "0" * 64


def write(path: str | os.PathLike[str], tensors: Mapping[str, Tensor], texts: Mapping[str, str]) -> None:
    """Writes tensors of real numbers and texts by their names.

    Raises:
        OSError: If the file cannot be written. A file that was there stays as it was.
    """
    header: dict[str, Any] = {"__metadata__": {_HASH: _UNKNOWN, **texts}}
    # Wide elements first, so that all lie at multiples of their size.
    parts, at = [], 0
    for name, x in sorted(tensors.items(), key=lambda item: -item[1].dtype.itemsize):
        data = _bytes(x)
        header[name] = {
            "dtype": _DTYPES[x.dtype._aerogel_dtype], "shape": list(x.shape), "data_offsets": [at, at + len(data)],
        }  # fmt: skip
        parts.append(data)
        at += len(data)
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    text = text.replace(_UNKNOWN.encode(), _hash(text, parts).encode(), 1)
    write_whole(path, struct.pack("<Q", len(text)), text, *parts, stays=True)


def _hash(header: bytes, parts: list[Any]) -> str:
    made = hashlib.sha256(header)
    for part in parts:
        made.update(part)
    return made.hexdigest()


def _bytes(x: Tensor) -> memoryview:
    """The elements row by row."""
    import numpy as np

    # NumPy has no bfloat16 of its own.
    array = (x.bitcast("u16") if x.dtype._aerogel_dtype == "bf16" else x).numpy()
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def read(path: str) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors and the texts of a file by their names.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it is no such file; the error names the mistake and the byte.
    """
    import numpy as np

    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        header, start, text = _header(path, file.read(8), size, file.read)
    texts = _texts(path, header.pop("__metadata__", {}))
    ends = _checked(path, header, size - start)
    said = texts.pop(_HASH, None)
    tensors: dict[str, Tensor] = {}
    raw = np.memmap(path, np.uint8, "r") if size > start else np.zeros(start, np.uint8)
    if said is not None and said != _hash(text.replace(said.encode(), _UNKNOWN.encode(), 1), [raw[start:].data]):
        raise ValueError(
            f"{path} is damaged: its bytes do not have the SHA-256 that they were written with, or another program "
            f"changed them and copied `{_HASH}` of the metadata"
        )
    for name, (dtype, shape, begin, end) in ends.items():
        try:
            tensors[name] = _tensor(np.array(raw[start + begin : start + end]), dtype, shape)
        except ValueError as e:
            # As with more axes than a tensor may have.
            raise wrong(path, start + begin, f"`{name}` is not a tensor: {e}") from None
    return tensors, texts


def _tensor(data: Any, dtype: str, shape: tuple[int, ...]) -> Tensor:
    """A tensor of bytes."""
    # Tensors import programs, which import this module.
    from aerogel.tensor._tensor import asarray

    if dtype == "bf16":
        return asarray(data.view("u2").reshape(shape)).bitcast("bf16")
    # Bytes other than 0 and 1 are no booleans of NumPy's.
    array = data != 0 if dtype == "u1" else data.view(numpy_dtype(ALL[dtype]))
    return asarray(array.reshape(shape))


def wrong(path: str, at: int, what: str) -> ValueError:
    """The error of a file in which something is wrong."""
    return ValueError(f"{path} is not a safetensors file: at byte {at}, {what}")


def _header(path: str, first: bytes, size: int, read: Callable[[int], bytes]) -> tuple[dict[str, Any], int, bytes]:
    """The header, where the data begin, and the header's text."""
    # A size may begin with such bytes too, and is followed by the header then.
    is_other = first[:2] == b"PK" or first[:1] == b"\x80"
    is_size = len(first) == 8 and 8 + int.from_bytes(first, "little") <= size
    if is_other and not is_size:
        raise wrong(
            path, 0, "it begins as a file of `torch.save` or `pickle`, which is not read, since it could execute "
            "anything: save the values by `safetensors` there"
        )  # fmt: skip
    if len(first) < 8:
        raise wrong(path, 0, f"there are {len(first)} bytes where the size of the header has 8")
    (n,) = struct.unpack("<Q", first)
    if n > _MOST:
        raise wrong(path, 0, f"a header of {n} bytes is announced, more than {_MOST}")
    if 8 + n > size:
        raise wrong(path, 0, f"a header of {n} bytes is announced, and the file has {size - 8} more")
    text = read(n)
    if text[:1] != b"{":
        raise wrong(path, 8, "the header does not begin with '{'")
    header = parsed(path, text, 8)
    if not isinstance(header, dict):
        raise wrong(path, 8, "the header is not a dictionary")
    return header, 8 + n, text


def parsed(path: str, text: bytes | str, at: int) -> Any:
    """JSON in which no name occurs twice.

    Raises:
        ValueError: If it is none.
    """
    double: list[str] = []

    def noted(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        out = dict(pairs)
        if len(out) != len(pairs):
            names = [name for name, _ in pairs]
            double.extend(name for name in out if names.count(name) > 1)
        return out

    try:
        value = json.loads(text, object_pairs_hook=noted)
    except json.JSONDecodeError as e:
        raise wrong(path, at + e.pos, f"the header is not JSON: {e.msg}") from None
    except UnicodeDecodeError as e:
        raise wrong(path, at + e.start, "the header is not UTF-8") from None
    except ValueError as e:
        raise wrong(path, at, f"the header is not JSON: {e}") from None
    except RecursionError:
        raise wrong(path, at, "the header is nested too deeply") from None
    if double:
        raise wrong(path, at, f"`{double[0]}` occurs twice")
    return value


def _texts(path: str, texts: Any) -> dict[str, str]:
    if not isinstance(texts, dict) or not all(isinstance(value, str) for value in texts.values()):
        raise wrong(path, 8, "the metadata do not map names to strings")
    return dict(texts)


def _is_count(n: Any) -> bool:
    return isinstance(n, int) and not isinstance(n, bool) and n >= 0


def _checked(path: str, header: dict[str, Any], size: int) -> dict[str, Any]:
    """The dtype, the shape and the ends of each tensor, which lie one after the other and fill the file."""
    out = {}
    for name, entry in header.items():
        if not isinstance(entry, dict) or {"dtype", "shape", "data_offsets"} - entry.keys():
            raise wrong(path, 8, f"the entry of `{name}` has no `dtype`, `shape` and `data_offsets`")
        dtype, shape, ends = entry["dtype"], entry["shape"], entry["data_offsets"]
        if not isinstance(dtype, str) or dtype not in _NAMES:
            raise wrong(path, 8, f"`{name}` has the dtype {dtype!r}, not one of {', '.join(_NAMES)}")
        if not isinstance(shape, list) or not all(map(_is_count, shape)):
            raise wrong(path, 8, f"the shape of `{name}` is {shape!r}")
        if not isinstance(ends, list) or len(ends) != 2 or not all(map(_is_count, ends)) or ends[0] > ends[1]:
            raise wrong(path, 8, f"the `data_offsets` of `{name}` are {ends!r}")
        wanted = math.prod(shape) * ALL[_NAMES[dtype]].itemsize
        if ends[1] - ends[0] != wanted:
            raise wrong(
                path, 8, f"`{name}` of {dtype} and shape {shape} takes {wanted} bytes, its `data_offsets` {ends} have "
                f"{ends[1] - ends[0]}"
            )  # fmt: skip
        out[name] = (_NAMES[dtype], tuple(shape), *ends)
    at, start = 0, os.path.getsize(path) - size
    for name, (_, _, begin, end) in sorted(out.items(), key=lambda item: item[1][2:]):
        if begin != at:
            what = "overlaps the tensor before it" if begin < at else f"begins {begin - at} bytes after the one before"
            raise wrong(path, start + begin, f"`{name}` {what}")
        at = end
        if end > size:
            raise wrong(path, start + size, f"the file ends, but `{name}` extends to byte {start + end}")
    if at != size:
        raise wrong(path, start + at, f"the last tensor ends, and {size - at} bytes follow")
    return out
