"""``ti.save`` and ``ti.load``: tensors in files of the format safetensors. Nothing is ever executed from a file.

A file has eight bytes with the size of a header, the header in JSON, and the bytes of all tensors:

    {"w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, "__metadata__": {"epoch": "3"}}
"""

from __future__ import annotations

import json
import math
import os
import struct
from typing import TYPE_CHECKING, Any

from aerogel._dtypes import ALL, numpy_dtype
from aerogel.nn._module import Module
from aerogel.nn._parameter import data_of, is_lazy
from aerogel.tensor._complex import is_complex
from aerogel.tensor._tensor import Tensor, asarray, is_number
from aerogel.tools._files import write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_DTYPES = {
    "u1": "BOOL", "i8": "I8", "i16": "I16", "i32": "I32", "i64": "I64", "u8": "U8", "u16": "U16", "u32": "U32",
    "u64": "U64", "f16": "F16", "bf16": "BF16", "f32": "F32", "f64": "F64",
}  # fmt: skip
_NAMES = {name: dtype for dtype, name in _DTYPES.items()}
#: The largest header, as other programs have it.
_MOST = 100_000_000
#: Under this name the metadata have what is not a tensor.
_TREE = "aerogel"


def save(path: str | os.PathLike[str], values: Any, *, metadata: Mapping[str, str] | None = None) -> None:
    """Writes tensors to a file in the format safetensors.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> net = ti.nn.Linear(2, 3)
    >>> ti.save("net.safetensors", net)  # doctest: +SKIP
    >>> sorted(ti.load("net.safetensors"))  # doctest: +SKIP
    ['bias', 'weight']

    Args:
        path: The file. If writing fails, a file that was there stays as it was.
        values: A dictionary of tensors (or arrays) by name, a module (whose ``state_dict`` is written), or dictionaries
            and lists of these, numbers, texts and ``None``, nested, such as the ``state_dict`` of an optimizer.
        metadata: Texts by name.

    Raises:
        TypeError: If there is something else in ``values``, a complex tensor, or metadata that are no texts.
        ValueError: If a module has a parameter without values, or two tensors would have one name.
        OSError: If the file cannot be written.
    """
    tensors: dict[str, Tensor] = {}
    values = values.state_dict() if isinstance(values, Module) else values
    if not isinstance(values, dict):
        raise TypeError(
            f'`save` takes a dictionary of tensors or a module, not {type(values).__name__}: write {{"x": tensor}}'
        )
    tree = _collected(values, "", tensors)
    texts = dict(metadata or {})
    for name, text in texts.items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise TypeError(f"metadata map names to strings, {name!r}: {text!r} is not: write `json.dumps(value)`")
    if not all(isinstance(value, dict) and "tensor" in value for value in tree["dict"].values()):
        texts[_TREE] = json.dumps(tree)
    header: dict[str, Any] = {"__metadata__": texts} if texts else {}
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
    write_whole(path, struct.pack("<Q", len(text)), text, *parts)


def _bytes(x: Tensor) -> bytes:
    """The elements row by row."""
    # NumPy has no bfloat16 of its own.
    x = data_of(x)
    return (x.bitcast("u16") if x.dtype._aerogel_dtype == "bf16" else x).numpy().tobytes()


def _collected(value: Any, name: str, tensors: dict[str, Tensor]) -> Any:
    """The structure of what is saved; tensors are added by their names."""
    if isinstance(value, Module):
        value = value.state_dict()
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, (str, int)) or isinstance(key, bool):
                raise TypeError(f"`save`: {name or 'the dictionary'} has the key {key!r}; keys are strings or integers")
        kinds = {"dict": {str(k): _collected(v, f"{name}.{k}" if name else str(k), tensors) for k, v in value.items()}}
        whole = [str(k) for k in value if isinstance(k, int)]
        return {**kinds, "whole": whole} if whole else kinds
    if isinstance(value, (list, tuple)):
        return {type(value).__name__: [_collected(v, f"{name}.{k}", tensors) for k, v in enumerate(value)]}
    if value is None or isinstance(value, str) or is_number(value):
        return {"value": value}
    if not hasattr(value, "shape"):
        raise TypeError(f"`save`: `{name}` is {type(value).__name__}, not a tensor, a number or a string")
    if is_complex(value):
        raise TypeError(f"`save`: `{name}` is complex, which safetensors does not support: save `x.real` and `x.imag`")
    if is_lazy(value):
        raise ValueError(f"`save`: the parameter `{name}` of shape {value.shape} has no values yet")
    if name in tensors or name == "__metadata__":
        raise ValueError(f"`save`: two tensors have the name `{name}`, or it is that of the metadata")
    tensors[name] = asarray(value)
    return {"tensor": name}


def load(path: str | os.PathLike[str], *, metadata: bool = False) -> Any:
    """Reads what ``save`` or another program wrote in the format safetensors.

    Args:
        path: The file.
        metadata: Whether the texts of the file are returned, too.

    Returns:
        The tensors by name; dictionaries and lists as they were saved. With ``metadata``, these and
        the texts by name.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it is no such file; the error says what is wrong, and at which byte.
    """
    import numpy as np

    path = os.fspath(path)
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        header, start = _header(path, file.read(8), size, file.read)
    texts = _texts(path, header.pop("__metadata__", {}))
    ends = _checked(path, header, size - start)
    tensors: dict[str, Tensor] = {}
    raw = np.memmap(path, np.uint8, "r") if size > start else np.zeros(start, np.uint8)
    for name, (dtype, shape, begin, end) in ends.items():
        try:
            tensors[name] = _tensor(np.array(raw[start + begin : start + end]), dtype, shape)
        except ValueError as e:
            # As with more axes than a tensor may have.
            raise _wrong(path, start + begin, f"`{name}` is not a tensor: {e}") from None
    tree = texts.pop(_TREE, None)
    out: Any = tensors if tree is None else _rebuilt(path, _json(path, tree, start), tensors)
    return (out, texts) if metadata else out


def _tensor(data: Any, dtype: str, shape: tuple[int, ...]) -> Tensor:
    """A tensor of bytes."""
    if dtype == "bf16":
        return asarray(data.view("u2").reshape(shape)).bitcast("bf16")
    # Bytes other than 0 and 1 are no booleans of NumPy's.
    array = data != 0 if dtype == "u1" else data.view(numpy_dtype(ALL[dtype]))
    return asarray(array.reshape(shape))


def _wrong(path: str, at: int, what: str) -> ValueError:
    return ValueError(f"{path} is not a safetensors file: at byte {at}, {what}")


def _header(path: str, first: bytes, size: int, read: Callable[[int], bytes]) -> tuple[dict[str, Any], int]:
    """The header, and where the data begin."""
    # A size may begin with such bytes too, and is followed by the header then.
    is_other = first[:2] == b"PK" or first[:1] == b"\x80"
    is_size = len(first) == 8 and 8 + int.from_bytes(first, "little") <= size
    if is_other and not is_size:
        raise _wrong(
            path, 0, "it begins as a file of `torch.save` or `pickle`, which is not read, since it could execute "
            "anything: save the values by `safetensors` there"
        )  # fmt: skip
    if len(first) < 8:
        raise _wrong(path, 0, f"there are {len(first)} bytes where the size of the header has 8")
    (n,) = struct.unpack("<Q", first)
    if n > _MOST:
        raise _wrong(path, 0, f"a header of {n} bytes is announced, more than {_MOST}")
    if 8 + n > size:
        raise _wrong(path, 0, f"a header of {n} bytes is announced, and the file has {size - 8} more")
    text = read(n)
    if text[:1] != b"{":
        raise _wrong(path, 8, "the header does not begin with '{'")
    header = _json(path, text, 8)
    if not isinstance(header, dict):
        raise _wrong(path, 8, "the header is not a dictionary")
    return header, 8 + n


def _json(path: str, text: bytes | str, at: int) -> Any:
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
        raise _wrong(path, at + e.pos, f"the header is not JSON: {e.msg}") from None
    except UnicodeDecodeError as e:
        raise _wrong(path, at + e.start, "the header is not UTF-8") from None
    except ValueError as e:
        raise _wrong(path, at, f"the header is not JSON: {e}") from None
    except RecursionError:
        raise _wrong(path, at, "the header is nested too deeply") from None
    if double:
        raise _wrong(path, at, f"`{double[0]}` occurs twice")
    return value


def _texts(path: str, texts: Any) -> dict[str, str]:
    if not isinstance(texts, dict) or not all(isinstance(value, str) for value in texts.values()):
        raise _wrong(path, 8, "the metadata do not map names to strings")
    return dict(texts)


def _is_count(n: Any) -> bool:
    return isinstance(n, int) and not isinstance(n, bool) and n >= 0


def _checked(path: str, header: dict[str, Any], size: int) -> dict[str, Any]:
    """The dtype, the shape and the ends of each tensor, which lie one after the other and fill the file."""
    out = {}
    for name, entry in header.items():
        if not isinstance(entry, dict) or {"dtype", "shape", "data_offsets"} - entry.keys():
            raise _wrong(path, 8, f"the entry of `{name}` has no `dtype`, `shape` and `data_offsets`")
        dtype, shape, ends = entry["dtype"], entry["shape"], entry["data_offsets"]
        if not isinstance(dtype, str) or dtype not in _NAMES:
            raise _wrong(path, 8, f"`{name}` has the dtype {dtype!r}, not one of {', '.join(_NAMES)}")
        if not isinstance(shape, list) or not all(map(_is_count, shape)):
            raise _wrong(path, 8, f"the shape of `{name}` is {shape!r}")
        if not isinstance(ends, list) or len(ends) != 2 or not all(map(_is_count, ends)) or ends[0] > ends[1]:
            raise _wrong(path, 8, f"the `data_offsets` of `{name}` are {ends!r}")
        wanted = math.prod(shape) * ALL[_NAMES[dtype]].itemsize
        if ends[1] - ends[0] != wanted:
            raise _wrong(
                path, 8, f"`{name}` of {dtype} and shape {shape} takes {wanted} bytes, its `data_offsets` {ends} have "
                f"{ends[1] - ends[0]}"
            )  # fmt: skip
        out[name] = (_NAMES[dtype], tuple(shape), *ends)
    at, start = 0, os.path.getsize(path) - size
    for name, (_, _, begin, end) in sorted(out.items(), key=lambda item: item[1][2:]):
        if begin != at:
            what = "overlaps the tensor before it" if begin < at else f"begins {begin - at} bytes after the one before"
            raise _wrong(path, start + begin, f"`{name}` {what}")
        at = end
        if end > size:
            raise _wrong(path, start + size, f"the file ends, but `{name}` extends to byte {start + end}")
    if at != size:
        raise _wrong(path, start + at, f"the last tensor ends, and {size - at} bytes follow")
    return out


def _rebuilt(path: str, tree: Any, tensors: dict[str, Tensor]) -> Any:
    """What was saved, from its structure."""
    if isinstance(tree, dict):
        if "dict" in tree and isinstance(tree["dict"], dict):
            whole = tree.get("whole", [])
            if not isinstance(whole, list) or not all(isinstance(k, str) and k.lstrip("-").isdecimal() for k in whole):
                raise _wrong(path, 8, f"the structure in the metadata has {whole!r} as integers")
            return {int(k) if k in whole else k: _rebuilt(path, v, tensors) for k, v in tree["dict"].items()}
        for kind in (list, tuple):
            if isinstance(parts := tree.get(kind.__name__), list):
                return kind(_rebuilt(path, part, tensors) for part in parts)
        if "value" in tree:
            return tree["value"]
        if isinstance(name := tree.get("tensor"), str) and name in tensors:
            return tensors[name]
    raise _wrong(path, 8, f"the structure in the metadata has {tree!r}")
