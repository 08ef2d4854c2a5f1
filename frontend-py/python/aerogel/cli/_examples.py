"""``python -m aerogel example``: the examples that come with the package, and Taichi's where it is installed."""

from __future__ import annotations

import ast
import shutil
import sys
from pathlib import Path

_PACKAGE = Path(__file__).parent.parent
_IN_REPOSITORY = Path("frontend-py", "python", "aerogel")
_NONE = (
    "this package was built without its examples: they are in the folder `examples` of Aerogel's repository, where "
    "`make examples` puts them into the package, and where this command finds them"
)


def _folder() -> Path | None:
    """Where the examples are: in the package, or in the repository of which it or the current folder is a part."""
    if (_PACKAGE / "examples").is_dir():
        return _PACKAGE / "examples"
    here = Path.cwd()
    for root in (*_PACKAGE.parents, here, *here.parents):
        if (root / _IN_REPOSITORY).is_dir() and (root / "examples").is_dir():
            return root / "examples"
    return None


def _own() -> dict[str, Path]:
    """The examples of Aerogel, without the modules that they share."""
    folder = _folder()
    paths = [] if folder is None else sorted(folder.glob("*.py"))
    return {path.stem: path for path in paths if "__main__" in path.read_text(encoding="utf-8")}


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
    width = max(map(len, own), default=0)
    lines = [f"  {name:{width}} {_summary(path)}" for name, path in own.items()] or [_NONE]
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
    return "\n".join(lines)


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
        raise SystemExit(f"there is no example {name}; there are {', '.join(own)}" if own else _NONE)
    return found


def _with_its_modules(path: Path) -> list[Path]:
    """A program, and the modules beside it that it imports."""
    found = [path]
    for source in found:
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            modules = [path.with_name(f"{name}.py") for name in names]
            found += [module for module in modules if module.is_file() and module not in found]
    return found


def copy(name: str, folder: str) -> list[Path]:
    """Copies an example and the modules it needs into a folder; gives the files written.

    A file that is there already is not written over; a module that is there already and is the same is left.

    Raises:
        SystemExit: There is no such example, or it cannot be written.
    """
    program, *modules = [(path, Path(folder, path.name)) for path in _with_its_modules(find(name))]
    # Looked at before anything is written: half a copy helps nobody.
    is_same = [target.is_file() and target.read_bytes() == path.read_bytes() for path, target in modules]
    pairs = [program, *(pair for pair, same in zip(modules, is_same) if not same)]
    for _, target in pairs:
        if target.exists():
            raise SystemExit(f"{target} is there already")
    written = []
    for path, target in pairs:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as out, path.open("rb") as source:
                shutil.copyfileobj(source, out)
        except OSError as e:
            raise SystemExit(f"{target} cannot be written: {e.strerror}") from None
        written.append(target)
    return written
