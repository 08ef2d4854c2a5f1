"""Files of C code: names that are identifiers of C, and writing."""

from __future__ import annotations

import ctypes.util
import os
import re

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
    MB_CUR_MAX INT8_MIN INT8_MAX UINT8_MAX INT16_MIN INT16_MAX UINT16_MAX INT32_MIN INT32_MAX UINT32_MAX INT64_MIN
    INT64_MAX UINT64_MAX SIZE_MAX PTRDIFF_MIN PTRDIFF_MAX INTPTR_MIN INTPTR_MAX UINTPTR_MAX INTMAX_MIN INTMAX_MAX
    UINTMAX_MAX
    """.split()
)


class Names:
    """The names in one exported function.

    Args:
        name: The function's own.
        remedy: How another one is passed, for the error.

    Raises:
        ValueError: The function cannot have this name.
    """

    def __init__(self, name: str, remedy: str) -> None:
        is_name = re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) and name not in _RESERVED
        if not is_name or name.lower().startswith("ag_") or _is_of_libraries(name):
            raise ValueError(f"a function of C cannot be named {name!r}: pass one, as in `{remedy}`")
        self._taken = {name}

    def identifier(self, called: str) -> str:
        """An identifier of C that is not taken, for a parameter."""
        name = re.sub(r"[^A-Za-z0-9_]+", "_", called).strip("_")
        if not name or name[0].isdigit() or name in _RESERVED or name.lower().startswith("ag_"):
            name = f"in_{name}"
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name


def _is_of_libraries(name: str) -> bool:
    """Whether libraries that every program links have a function of this name, such as ``write`` or ``cosh``."""
    found = [ctypes.util.find_library(library) for library in ("c", "m")]
    return any(hasattr(ctypes.CDLL(library), name) for library in found if library)


def write(folder: str | os.PathLike[str], name: str, files: tuple[str, str, bytes, str]) -> list[str]:
    """Writes a header, a function, a library and LLVM IR: the paths."""
    os.makedirs(folder, exist_ok=True)
    paths = []
    for file, content in zip((f"{name}.h", f"{name}.c", f"lib{name}.a", f"{name}.ll"), files):
        paths.append(os.path.join(os.fspath(folder), file))
        with open(paths[-1], "wb") as out:
            out.write(content if isinstance(content, bytes) else content.encode())
    return paths
