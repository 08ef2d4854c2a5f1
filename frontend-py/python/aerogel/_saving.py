"""``ti.save`` and ``ti.load``: modules, and trees of tensors, in files of the format safetensors."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from aerogel._safetensors import parsed, read, write, wrong
from aerogel.nn._module import Module
from aerogel.nn._parameter import data_of, is_lazy
from aerogel.tensor._complex import is_complex
from aerogel.tensor._tensor import Tensor, asarray, is_number

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    write(path, {name: data_of(x) for name, x in tensors.items()}, texts)


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
    path = os.fspath(path)
    tensors, texts = read(path)
    tree = texts.pop(_TREE, None)
    out: Any = tensors if tree is None else _rebuilt(path, parsed(path, tree, 8), tensors)
    return (out, texts) if metadata else out


def _rebuilt(path: str, tree: Any, tensors: dict[str, Tensor]) -> Any:
    """What was saved, from its structure."""
    if isinstance(tree, dict):
        if "dict" in tree and isinstance(tree["dict"], dict):
            whole = tree.get("whole", [])
            if not isinstance(whole, list) or not all(isinstance(k, str) and k.lstrip("-").isdecimal() for k in whole):
                raise wrong(path, 8, f"the structure in the metadata has {whole!r} as integers")
            return {int(k) if k in whole else k: _rebuilt(path, v, tensors) for k, v in tree["dict"].items()}
        for kind in (list, tuple):
            if isinstance(parts := tree.get(kind.__name__), list):
                return kind(_rebuilt(path, part, tensors) for part in parts)
        if "value" in tree:
            return tree["value"]
        if isinstance(name := tree.get("tensor"), str) and name in tensors:
            return tensors[name]
    raise wrong(path, 8, f"the structure in the metadata has {tree!r}")
