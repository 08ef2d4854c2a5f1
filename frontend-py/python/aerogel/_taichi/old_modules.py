"""Modules that Taichi has and Aerogel does not: each stands for one of ours, which is loaded when a name is looked up.

A name that Taichi's module defines and Aerogel lacks can be imported; its use raises an error. ``modules.json`` has the
modules and names of ``taichi==1.7.4`` (``scripts/taichi_modules.py`` makes it).
"""

from __future__ import annotations

import functools
import importlib
import importlib.machinery
import os
import sys
from types import ModuleType
from typing import Any, cast

from aerogel._taichi.absent import Absent

#: Which module of Aerogel, or object in one, has what a module of Taichi has. An empty text is the package itself.
MODULES: dict[str, str] = {
    "_funcs": "ops",
    "_kernels": "",
    "_lib.core": "_taichi.core",
    "_lib.core.taichi_python": "_dtypes",
    "_lib.utils": "_taichi.lib",
    "_logging": "_log",
    "_main": "cli",
    "_snode": "data.snode",
    "_snode.fields_builder": "data.snode",
    "_snode.snode_tree": "data.snode",
    "_ti_module": "cli",
    "_ti_module.cppgen": "",
    "_ti_module.module": "",
    "_version_check": "",
    "algorithms._algorithms": "algorithms",
    "aot._export": "_taichi.aot",
    "aot.conventions": "_taichi.aot",
    "aot.conventions.gfxruntime140": "_taichi.aot",
    "aot.conventions.gfxruntime140.dr": "_taichi.aot",
    "aot.conventions.gfxruntime140.sr": "_taichi.aot",
    "aot.module": "_taichi.aot",
    "aot.utils": "_taichi.aot",
    "graph._graph": "graph",
    "lang._ndarray": "data.ndarray",
    "lang._ndrange": "ops",
    "lang._template_mapper": "kernel",
    "lang._texture": "_taichi.texture",
    "lang._wrap_inspect": "_source",
    "lang.any_array": "_taichi.expressions",
    "lang.argpack": "data.argpack",
    "lang.ast": "kernel",
    "lang.ast.ast_transformer": "kernel",
    "lang.ast.ast_transformer_utils": "kernel",
    "lang.ast.checkers": "kernel",
    "lang.ast.symbol_resolver": "kernel",
    "lang.ast.transform": "kernel",
    "lang.common_ops": "_taichi.expressions",
    "lang.enums": "data.axes",
    "lang.exception": "errors",
    "lang.expr": "_taichi.expressions",
    "lang.field": "data.field",
    "lang.impl": "_taichi.impl",
    "lang.kernel_arguments": "_taichi.expressions",
    "lang.kernel_impl": "kernel",
    "lang.matrix": "data.matrix",
    "lang.matrix_ops": "_taichi.matrix_ops",
    "lang.matrix_ops_utils": "_taichi.matrix_ops",
    "lang.mesh": "mesh",
    "lang.misc": "_config",
    "lang.ops": "ops",
    "lang.runtime_ops": "_config",
    "lang.shell": "_log",
    "lang.simt": "_taichi.simt",
    "lang.simt.block": "_taichi.simt.block",
    "lang.simt.grid": "_taichi.simt.grid",
    "lang.simt.subgroup": "_taichi.simt.subgroup",
    "lang.simt.warp": "_taichi.simt.warp",
    "lang.snode": "data.snode",
    "lang.source_builder": "",
    "lang.struct": "data.structs",
    "lang.util": "_taichi.util",
    "linalg.matrixfree_cg": "linalg",
    "linalg.sparse_cg": "linalg",
    "linalg.sparse_matrix": "linalg",
    "linalg.sparse_solver": "linalg",
    "math._complex": "math",
    "math.mathimpl": "math",
    "profiler.kernel_metrics": "profiler",
    "profiler.kernel_profiler": "profiler",
    "profiler.memory_profiler": "profiler",
    "profiler.scoped_profiler": "profiler",
    "sparse._sparse_grid": "sparse",
    "tools.diagnose": "tools",
    "tools.np2ply": "tools",
    "snode.fields_builder": "data.snode",
    "snode.snode_tree": "data.snode",
    "types.annotations": "types",
    "types.compound_types": "types",
    "types.ndarray_type": "types",
    "types.primitive_types": "_dtypes",
    "types.quant": "types.quant",
    "types.texture_type": "_taichi.texture",
    "types.utils": "_dtypes",
    "ui.constants": "ui",
    "ui.gui": "gui",
    "ui.imgui": "ui",
    "ui.staging_buffer": "ui",
    "ui.ui": "ui",
    "ui.utils": "ui",
}


@functools.cache
def _names_of_taichi() -> dict[str, list[str]]:
    """The public names of each module of Taichi."""
    import json

    with open(os.path.join(os.path.dirname(__file__), "modules.json"), encoding="utf-8") as file:
        return json.load(file)


def _ours(path: str) -> Any:
    """A module of Aerogel, or an object in one."""
    try:
        return importlib.import_module(f"aerogel.{path}" if path else "aerogel")
    except ModuleNotFoundError:
        parent, _, name = path.rpartition(".")
        if not parent:
            raise
        return getattr(_ours(parent), name)


class _OldModule(ModuleType):
    """A module whose names are those of another one, and else those of ``aerogel.types`` and the package."""

    def __init__(self, name: str, ours: str) -> None:
        super().__init__(name, f"What Taichi has here is in ``aerogel{'.' if ours else ''}{ours}``.")
        # Modules of Taichi's packages are imported from here.
        self.__path__: list[str] = []
        self._ours = ours

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        for path in (self._ours, "types", ""):
            place = _ours(path)
            if place is not self and hasattr(place, name):
                return getattr(place, name)
        path = self.__name__.removeprefix("aerogel.")
        if name in _names_of_taichi().get(path, ()):
            return Absent(f"ti.{path}.{name}", "it is part of Taichi's implementation")
        message = f"{self.__name__!r} has no {name!r} here: Aerogel has what programs use, not Taichi's internals"
        raise AttributeError(message)


# `importlib.abc`, whose classes this one has the methods of, takes long to import.
class _OldModuleFinder:
    """Finds ``aerogel.lang.impl`` and the like, which are no files."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        package, _, name = fullname.partition(".")
        if package != "aerogel" or name not in MODULES:
            return None
        return importlib.machinery.ModuleSpec(fullname, cast("Any", self))

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _OldModule(spec.name, MODULES[spec.name.removeprefix("aerogel.")])

    def exec_module(self, module: ModuleType) -> None:
        pass


def offer(parent: str) -> None:
    """Gives a package the modules that stand for those of Taichi's package as attributes."""
    package = sys.modules[parent]
    for path in MODULES:
        above, _, name = f"aerogel.{path}".rpartition(".")
        # `ti.types.quant` is an object of the interface.
        if above == parent and name not in vars(package):
            module = _OldModule(f"{above}.{name}", MODULES[path])
            # As the import system would do it, but some milliseconds faster.
            module.__spec__ = importlib.machinery.ModuleSpec(module.__name__, None, is_package=True)
            sys.modules[module.__name__] = module
            setattr(package, name, module)


sys.meta_path.append(_OldModuleFinder())
