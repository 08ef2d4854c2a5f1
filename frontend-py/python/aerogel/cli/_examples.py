"""``python -m aerogel example``: the examples that come with the package, and Taichi's where it is installed."""

from __future__ import annotations

import ast
import shutil
import sys
from pathlib import Path

_PACKAGE = Path(__file__).parent.parent


def _own() -> dict[str, Path]:
    """The examples of Aerogel: in the package, or, in a working copy of the repository, beside its source."""
    folder = _PACKAGE / "examples"
    source = Path(*_PACKAGE.parts[:-3])
    if not folder.is_dir() and _PACKAGE.parts[-3:] == ("frontend-py", "python", "aerogel"):
        folder = source / "examples"
    return {path.stem: path for path in sorted(folder.glob("*.py"))}


def _taichi() -> tuple[Path | None, dict[str, Path]]:
    """The folder of Taichi's examples and what can be run there, by name."""
    for entry in sys.path:
        folder = Path(entry, "taichi", "examples")
        if folder.is_dir():
            found = {path.stem: path for path in sorted(folder.rglob("*.py")) if path.stem != "__init__"}
            return folder, found
    return None, {}


def listing() -> str:
    """The names of all examples, and what those of Aerogel are about."""
    own = _own()
    lines = [f"  {name:12} {_summary(path)}" for name, path in own.items()]
    folder, theirs = _taichi()
    if folder is not None:
        lines += ["", f"and {len(theirs)} of Taichi's, in {folder}:"]
        line = " "
        for name in theirs:
            if len(line) + 1 + len(name) > 100:
                lines.append(line)
                line = " "
            line += " " + name
        lines.append(line)
    return "\n".join(lines) if lines else "there are no examples here"


def _summary(path: Path) -> str:
    """The first line of a program's docstring."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0]


def find(name: str) -> Path:
    """The file of an example.

    Raises:
        SystemExit: There is none of that name.
    """
    stem = name.removesuffix(".py")
    own = _own()
    found = own.get(stem) or _taichi()[1].get(stem)
    if found is None:
        raise SystemExit(f"there is no example {name}; there are {', '.join(own)}")
    return found


def copy(name: str, folder: str) -> Path:
    """Copies an example into a folder; a file that is there already is not written over.

    Raises:
        SystemExit: There is no such example, or it cannot be written.
    """
    path = find(name)
    target = Path(folder, path.name)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as out, path.open("rb") as source:
            shutil.copyfileobj(source, out)
    except FileExistsError:
        raise SystemExit(f"{target} is there already") from None
    except OSError as e:
        raise SystemExit(f"{target} cannot be written: {e.strerror}") from None
    return target
