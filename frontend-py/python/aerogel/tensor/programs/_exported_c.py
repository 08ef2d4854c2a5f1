"""Programs as code of C: a header, a driver in C, the kernels as a static library and as LLVM IR."""

from __future__ import annotations

import ctypes.util
import dataclasses
import os
import re
from typing import TYPE_CHECKING, Any

from aerogel.tensor.programs import _trees
from aerogel.tensor.programs._kinds import Leaf

if TYPE_CHECKING:
    from aerogel.tensor.programs._program import Lowered

#: Words of C and C++, and names of what the driver includes.
_RESERVED = frozenset(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const const_cast consteval
    constexpr constinit continue co_await co_return co_yield decltype default delete do double dynamic_cast else enum
    explicit export extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
    nullptr operator or or_eq private protected public register reinterpret_cast requires restrict return short signed
    sizeof static static_assert static_cast struct switch template this thread_local throw true try typedef typeid
    typename typeof typeof_unqual union unsigned using virtual void volatile wchar_t while xor xor_eq linux unix i386
    main int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t size_t errno stdin stdout stderr NULL EOF
    BUFSIZ FILENAME_MAX FOPEN_MAX L_tmpnam SEEK_CUR SEEK_END SEEK_SET TMP_MAX EXIT_FAILURE EXIT_SUCCESS RAND_MAX
    MB_CUR_MAX
    """.split()
)


def export_c(lowered: Lowered, folder: str | os.PathLike[str], name: str | None) -> list[str]:
    """Writes the files of ``Lowered.export_c``."""
    name = lowered.name if name is None else name
    is_name = re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) and name not in _RESERVED
    if not is_name or name.lower().startswith("ag_") or _is_of_libraries(name):
        raise ValueError(f"a function of C cannot be named {name!r}: pass one, as in `export_c(folder, 'step')`")
    if any(callable(own) for own in lowered.given):
        raise TypeError(
            "a program that draws other random numbers at each call cannot be exported: pass a key or the numbers "
            "as an argument"
        )
    if lowered._effects:
        raise TypeError("a program that changes tensors of a module cannot be exported: return the new values")
    if lowered.sizes is None:
        raise TypeError("the sizes of the inputs are not known: pass arrays of these sizes to `lower`")
    taken = {name}
    sizes = iter(lowered.sizes)
    inputs: list[tuple[str, list[int], Any]] = []
    for k, ((called, _, _), own) in enumerate(zip(lowered._native.inputs, lowered.given)):
        if own is None:
            inputs.append((_name(called, taken), next(sizes), None))
        else:
            inputs.append((_name(f"{name}_constant{k}", taken), list(own.shape), own))
    outputs = [_name(called, taken) for called in _leaves(lowered._results, "out")]
    header, driver, library, llvm = lowered._native.export_c(name, inputs, outputs)
    os.makedirs(folder, exist_ok=True)
    paths = []
    contents = {f"{name}.h": header, f"{name}.c": driver, f"lib{name}.a": library, f"{name}.ll": llvm}
    for file, content in contents.items():
        paths.append(os.path.join(os.fspath(folder), file))
        with open(paths[-1], "wb") as out:
            out.write(content if isinstance(content, bytes) else content.encode())
    return paths


def _is_of_libraries(name: str) -> bool:
    """Whether libraries that every program links have a function of this name, such as ``write`` or ``cosh``."""
    found = [ctypes.util.find_library(library) for library in ("c", "m")]
    return any(hasattr(ctypes.CDLL(library), name) for library in found if library)


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


def _name(called: str, taken: set[str]) -> str:
    """An identifier of C that is not taken."""
    name = re.sub(r"[^A-Za-z0-9_]+", "_", called).strip("_")
    if not name or name[0].isdigit() or name in _RESERVED or name.lower().startswith("ag_"):
        name = f"in_{name}"
    while name in taken:
        name += "_"
    taken.add(name)
    return name
