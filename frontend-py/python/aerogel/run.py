"""``python -m aerogel``: runs a program written for Taichi as it stands, and looks after compiled kernels."""

from __future__ import annotations

import builtins
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
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


class _Finder(importlib.abc.MetaPathFinder):
    """Finds ``taichi`` and ``taichi.*`` in Aerogel, and ``taichi.examples.*`` in the folder of examples."""

    def __init__(self, examples: str | None) -> None:
        self._examples = examples

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        parts = fullname.split(".")
        if parts[0] != "taichi":
            return None
        if parts[1:2] == ["examples"]:
            return self._example(fullname, parts[2:])
        if parts[1:2] == ["lang"] and len(parts) == 3:
            from aerogel.lang import OLD_NAMES

            parts = ["taichi", OLD_NAMES.get(parts[2], "")]
        own = ".".join(["aerogel", *parts[1:]])
        try:
            found = importlib.util.find_spec(own)
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


def install(program: str = "") -> None:
    """Makes ``import taichi`` give Aerogel from now on."""
    for name in [n for n in sys.modules if n == "taichi" or n.startswith("taichi.")]:
        del sys.modules[name]
    sys.meta_path.insert(0, _Finder(_examples_of(program)))


def run(program: str, arguments: list[str]) -> None:
    """Runs a program as ``__main__`` with Aerogel in Taichi's place."""
    if not os.path.isfile(program):
        raise SystemExit(f"there is no file {program}")
    install(program)
    sys.argv = [program, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(program))
    module = ModuleType("__main__")
    module.__file__ = program
    module.__builtins__ = builtins  # type: ignore[attr-defined]
    sys.modules["__main__"] = module
    with open(program, "rb") as f:
        text = f.read()
    try:
        # The program has its own `from __future__` statements, not this file's.
        code = compile(text, program, "exec", dont_inherit=True)
        exec(code, module.__dict__)  # noqa: S102
    except Exception as e:
        # The traceback begins in the program, as if Python had been started with it.
        trace = e.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename != program:
            trace = trace.tb_next
        sys.excepthook(type(e), e.with_traceback(trace), trace)
        raise SystemExit(1) from None


def cache(clean: bool) -> None:
    """Shows what is kept of compiled kernels on disk, or removes it.

    Args:
        clean: Whether to remove it.
    """
    from aerogel import _config

    folder = _config.current_cache_folder()
    names = [name for name in os.listdir(folder) if name.endswith(".kernel")] if os.path.isdir(folder) else []
    files = [os.path.join(folder, name) for name in names]
    size = sum(os.path.getsize(file) for file in files)
    print(f"{folder}: {len(files)} compiled kernels, {size / 1e6:.1f} MB" + (", removed" if clean and files else ""))
    for file in files if clean else []:
        os.remove(file)


USAGE = "usage: python -m aerogel run PROGRAM.py [ARGUMENTS] | cache [clean] | explain CODE"
HELP = f"""{USAGE}

  run                run a program written for Taichi: `import taichi` gives Aerogel; it gets the arguments
  cache              show where compiled kernels are kept on disk, and how many; `cache clean` removes them
  explain            say what the code of an error message means, as in `explain E0203`

  --help             this text
  --version          the version of Aerogel

Environment:
  AEROGEL_<NAME>     a setting of ti.init that the program does not give, such as AEROGEL_CPU_MAX_NUM_THREADS
  AEROGEL_ARCH       where kernels run, whatever the program says: cpu, or interp for the interpreter
  AEROGEL_DEBUG      1: check indices, integer division and assertions
  AEROGEL_GUI_FRAMES the number of frames after which a GUI counts as closed (there are no windows yet)
  AEROGEL_GUI_OUT    the picture of the last frame of a GUI, a PNG
  AEROGEL_LOG_LEVEL  debug, info, warn or error
  AEROGEL_OFFLINE_CACHE            0: keep no compiled kernels on disk
  AEROGEL_OFFLINE_CACHE_FILE_PATH  the folder for them
  AEROGEL_PRINT      print the IR while compiling: all, changed or after:PASS
  AEROGEL_STOP       stop compiling: after:PASS"""


def main(argv: list[str]) -> None:
    """The command line."""
    if argv and argv[0] in ("-h", "--help", "help") or argv[:1] == ["run"] and argv[1:2] in (["-h"], ["--help"]):
        print(HELP)
    elif argv in (["--version"], ["-V"]):
        from aerogel import version

        print("aerogel", version)
    elif len(argv) >= 2 and argv[0] == "run":
        run(argv[1], argv[2:])
    elif argv in (["cache"], ["cache", "clean"]):
        cache(clean=len(argv) == 2)
    elif len(argv) == 2 and argv[0] == "explain":
        from aerogel.explain import explain

        try:
            print(explain(argv[1]))
        except KeyError as e:
            raise SystemExit(e.args[0]) from None
    else:
        raise SystemExit(USAGE)
