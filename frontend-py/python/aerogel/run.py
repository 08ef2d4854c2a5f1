"""Runs a program written for Taichi, unchanged."""

from __future__ import annotations

import builtins
import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any


class _Loader(importlib.abc.Loader):
    """Gives the module of Aerogel for the name that Taichi has for it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def create_module(self, spec: Any) -> ModuleType:
        module = importlib.import_module(self._name)
        self._own_spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._own_spec


#: Taichi, and the packages that began as copies of it and keep its interface.
TAICHI = ("taichi", "quadrants", "gstaichi", "taichi_forge")
#: Modules besides Taichi's, and what they are here.
_OTHERS = {"TensorFrost": "aerogel.tensor.frost", "picograd": "aerogel.pico"}


class _Finder(importlib.abc.MetaPathFinder):
    """Finds ``taichi.*``, ``TensorFrost`` and ``picograd`` in Aerogel, and ``taichi.examples.*`` in their folder."""

    def __init__(self, examples: str | None, names: Iterable[str]) -> None:
        self._examples, self.names = examples, frozenset(names)

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        parts = fullname.split(".")
        if parts[0] in _OTHERS:
            return self._own(fullname, [*_OTHERS[parts[0]].split("."), *parts[1:]])
        if parts[0] not in self.names:
            return None
        if parts[1:2] == ["examples"]:
            return self._example(fullname, parts[2:])
        return self._own(fullname, ["aerogel", *parts[1:]])

    def _own(self, fullname: str, parts: list[str]) -> Any:
        """A module of Aerogel for another name, if it is there."""
        own = ".".join(parts)
        try:
            found = own in sys.modules or importlib.util.find_spec(own)
        except ModuleNotFoundError:
            found = None
        return importlib.machinery.ModuleSpec(fullname, _Loader(own)) if found else None

    def _example(self, fullname: str, rest: list[str]) -> Any:
        if self._examples is None:
            return None
        base = os.path.join(self._examples, *rest)
        if os.path.isdir(base):
            spec = importlib.machinery.ModuleSpec(fullname, None, is_package=True)
            spec.submodule_search_locations = [base]
            return spec
        if os.path.isfile(base + ".py"):
            return importlib.util.spec_from_file_location(fullname, base + ".py")
        return None


def _examples_of(program: str) -> str | None:
    """The folder of Taichi's examples that a program stands in, or that is installed."""
    folder = os.path.dirname(os.path.abspath(program))
    for _ in range(4):
        if os.path.isfile(os.path.join(folder, "patterns.py")):
            return folder
        folder = os.path.dirname(folder)
    for entry in sys.path:
        folder = os.path.join(entry, "taichi", "examples")
        if os.path.isdir(folder):
            return folder
    return None


class _SearchPath(list[str]):
    """``sys.path`` for a child process. Where it is read, `import taichi` gives Aerogel from then on.

    A child unpickles it before it imports the main program; a fork server, which preloads modules, evaluates its text.
    Both use functions of Python's only, since this module may be missing from the search path until then.
    """

    def __init__(self, entries: list[str], program: str, names: tuple[str, ...]) -> None:
        super().__init__(entries)
        self._program, self._names = program, names

    def __repr__(self) -> str:
        code = "import sys; sys.path[:] = entries; from aerogel.run import install_once; install_once(program, names)"
        given = dict(entries=list(self), program=self._program, names=self._names)
        return f"exec({code!r}, {given!r}) or {super().__repr__()}"

    def __reduce__(self) -> tuple[Any, ...]:
        return eval, (repr(self),)


#: The program and the names of the latest `install`, for child processes.
_installed: dict[str, Any] = {}


def _install_in_children(program: str, names: tuple[str, ...]) -> None:
    """Makes ``import taichi`` give Aerogel in processes that `multiprocessing` starts by `spawn` and `forkserver`.

    The same holds for workers of `mpi4py.futures`.
    """
    from multiprocessing import spawn

    from aerogel import _processes

    is_first = not _installed
    _installed["program"] = os.path.abspath(program) if program else ""
    _installed["names"] = names
    if not is_first:
        return
    _processes.alias = _installed
    prepare: Any = spawn.get_preparation_data

    @functools.wraps(prepare)
    def get_preparation_data(*args: Any, **kwargs: Any) -> dict[str, Any]:
        data = prepare(*args, **kwargs)
        return {**data, "sys_path": _SearchPath(data["sys_path"], **_installed)}

    spawn.get_preparation_data = get_preparation_data


def install(program: str = "", names: Iterable[str] = TAICHI) -> None:
    """Makes ``import taichi``, and imports of other names, give Aerogel from now on, here and in child processes."""
    names = tuple(names)
    _install_in_children(program, names)
    for name in [name for name in sys.modules if name.partition(".")[0] in names]:
        del sys.modules[name]
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Finder)]
    sys.meta_path.insert(0, _Finder(_examples_of(program), names))


def install_once(program: str = "", names: Iterable[str] = TAICHI) -> None:
    """As ``install``, unless importing all of these gives Aerogel already."""
    installed = {name for finder in sys.meta_path if isinstance(finder, _Finder) for name in finder.names}
    if not installed.issuperset(names):
        install(program, installed.union(names))


def as_taichi(names: Iterable[str] = TAICHI) -> None:
    """Makes ``import taichi`` give Aerogel from now on: for notebooks, and for ``conftest.py`` of pytest.

    Args:
        names: The packages in whose place Aerogel is imported; all that have Taichi's interface, if left out.

    Raises:
        TypeError: A text is no list of names.

    >>> import aerogel
    >>> aerogel.as_taichi()
    >>> import taichi
    >>> taichi is aerogel
    True
    """
    if isinstance(names, str):
        raise TypeError(f"as_taichi takes the names of packages in a list: [{names!r}]")
    install_once(names=names)


def run(program: str, arguments: list[str]) -> None:
    """Runs a program as ``__main__`` with Aerogel in Taichi's place."""
    if not os.path.isfile(program):
        raise SystemExit(f"there is no file {program}")
    install(program)
    sys.argv = [program, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(program))
    with open(program, "rb") as f:
        text = f.read()
    # The program has its own `from __future__` statements, not this file's.
    _execute(program, lambda: compile(text, program, "exec", dont_inherit=True), None)


def run_module(name: str, arguments: list[str]) -> None:
    """Runs a module or package as ``python -m name`` does, with Aerogel in Taichi's place."""
    install()
    sys.path[0] = os.getcwd()
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            name += ".__main__"
            spec = importlib.util.find_spec(name)
    except ModuleNotFoundError as e:
        raise SystemExit(f"there is no module {name}: {e}") from None
    loader: Any = spec.loader if spec is not None else None
    if spec is None or spec.origin is None or not hasattr(loader, "get_code"):
        raise SystemExit(f"there is no module {name} that can be run")
    install(spec.origin)
    sys.argv = [spec.origin, *arguments]
    _execute(spec.origin, lambda: loader.get_code(name), spec)


def _execute(program: str, code_of: Callable[[], Any], spec: Any) -> None:
    """Runs code as ``__main__``."""
    module = ModuleType("__main__")
    module.__file__ = program
    module.__builtins__ = builtins  # type: ignore[attr-defined]
    if spec is not None:
        module.__spec__, module.__package__ = spec, spec.parent
    sys.modules["__main__"] = module
    try:
        exec(code_of(), module.__dict__)  # noqa: S102
    except Exception as e:
        # The traceback begins in the program, as if Python had been started with it.
        trace = e.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename != program:
            trace = trace.tb_next
        sys.excepthook(type(e), e.with_traceback(trace), trace)
        raise SystemExit(1) from None
