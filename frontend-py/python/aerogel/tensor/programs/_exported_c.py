"""Programs as code of C: a header, a driver in C, the kernels as a static library and as LLVM IR."""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING, Any

from aerogel._exported_c import Names, write
from aerogel.tensor.programs import _trees
from aerogel.tensor.programs._kinds import Leaf

if TYPE_CHECKING:
    from aerogel.tensor.programs._program import Lowered


def export_c(lowered: Lowered, folder: str | os.PathLike[str], name: str | None) -> list[str]:
    """Writes the files of ``Lowered.export_c``."""
    name = lowered.name if name is None else name
    names = Names(name, "export_c(folder, 'step')")
    if any(callable(own) for own in lowered.given):
        raise TypeError(
            "a program that draws other random numbers at each call cannot be exported: pass a key or the numbers "
            "as an argument"
        )
    if lowered._effects:
        raise TypeError("a program that changes tensors of a module cannot be exported: return the new values")
    if lowered.sizes is None:
        raise TypeError("the sizes of the inputs are not known: pass arrays of these sizes to `lower`")
    sizes = iter(lowered.sizes)
    inputs: list[tuple[str, list[int], Any]] = []
    for k, ((called, _, _), own) in enumerate(zip(lowered._native.inputs, lowered.given)):
        if own is None:
            inputs.append((names.identifier(called), next(sizes), None))
        else:
            inputs.append((names.identifier(f"{name}_constant{k}"), list(own.shape), own))
    outputs = [names.identifier(called) for called in _leaves(lowered._results, "out")]
    return write(folder, name, lowered._native.export_c(name, inputs, outputs))


def _leaves(tree: Any, name: str) -> list[str]:
    """How the tensors of a result are called."""
    if isinstance(tree, Leaf):
        return [f"{name}_real", f"{name}_imag"] if tree.is_complex else [name]
    if isinstance(tree, (list, tuple)):
        keys = getattr(tree, "_fields", range(len(tree)))
        parts = list(zip(keys, tree))
    elif isinstance(tree, dict):
        parts = list(tree.items())
    elif _trees.is_node(tree):
        parts = list(tree._tree_parts()[1].items())
    elif dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        parts = [(f.name, getattr(tree, f.name)) for f in dataclasses.fields(tree) if f.init]
    else:
        parts = []
    return [called for key, part in parts for called in _leaves(part, f"{name}_{key}")]
