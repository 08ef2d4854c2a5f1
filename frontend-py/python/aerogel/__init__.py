"""Aerogel: kernels in Python, compiled for all cores.

>>> import aerogel as ti
>>> ti.init(arch=ti.cpu, log_level="error")

A function under ``@ti.kernel`` is read from its source, compiled through LLVM, and runs on all cores; fields
and their layouts are made by ``ti.field`` and ``ti.root``. The names are those of Taichi 1.7.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from aerogel import _native, errors, ops, types
from aerogel._config import (
    Arch,
    amdgpu,
    arm64,
    cfg,
    cpu,
    cuda,
    dx11,
    dx12,
    extension,
    gles,
    gpu,
    init,
    interp,
    is_extension_supported,
    metal,
    opengl,
    reset,
    sync,
    vulkan,
    x64,
    x86_64,
)
from aerogel._log import CRITICAL, DEBUG, ERROR, INFO, TRACE, WARN, is_logging_effective, set_logging_level
from aerogel._taichi import aot, experimental, lang, old_modules, simt, texture
from aerogel._taichi import lib as _lib
from aerogel._taichi.aot import DeviceCapability
from aerogel.data import snode
from aerogel.data._field import Field
from aerogel.data._quant import BitpackedFields
from aerogel.data.argpack import ArgPack
from aerogel.data.axes import Layout, axes, i, ij, ijk, ijkl, ijl, ik, ikl, il, j, jk, jkl, jl, k, kl, l
from aerogel.data.field import MatrixField, ScalarField, field
from aerogel.data.matrix import Matrix, Vector
from aerogel.data.ndarray import MatrixNdarray, Ndarray, ScalarNdarray, VectorNdarray, from_dlpack, ndarray
from aerogel.data.snode import FieldsBuilder, SNode, deactivate_all_snodes, root
from aerogel.data.structs import Struct, StructField, dataclass
from aerogel.data.texture import Format, Texture
from aerogel.errors import *  # noqa: F403
from aerogel.kernel import Kernel, data_oriented, func, kernel, pyfunc, real_func
from aerogel.ops import *  # noqa: F403
from aerogel.types import ref, template

if TYPE_CHECKING:
    from aerogel._annotations import (
        bf16,
        bfloat16,
        f16,
        f32,
        f64,
        float16,
        float32,
        float64,
        i8,
        i16,
        i32,
        i64,
        int8,
        int16,
        int32,
        int64,
        u1,
        u8,
        u16,
        u32,
        u64,
        uint1,
        uint8,
        uint16,
        uint32,
        uint64,
    )
else:
    from aerogel._dtypes import (
        bf16,
        bfloat16,
        f16,
        f32,
        f64,
        float16,
        float32,
        float64,
        i8,
        i16,
        i32,
        i64,
        int8,
        int16,
        int32,
        int64,
        u1,
        u8,
        u16,
        u32,
        u64,
        uint1,
        uint8,
        uint16,
        uint32,
        uint64,
    )

if TYPE_CHECKING:
    from aerogel import (
        ad,
        algorithms,
        datasets,
        graph,
        linalg,
        math,
        mpi,
        nn,
        optim,
        profiler,
        sparse,
        special,
        tensor,
        tools,
        ui,
        xp,
    )
    from aerogel._linalg import eig, polar_decompose, solve, svd, sym_eig
    from aerogel._plot import plot
    from aerogel._saving import load, save
    from aerogel.gui import GUI, hex_to_rgb, rgb_to_hex
    from aerogel.mesh import Mesh, MeshInstance
    from aerogel.run import as_taichi
    from aerogel.tensor import (
        check_grad,
        checkpoint,
        custom_jvp,
        custom_vjp,
        enable_grad,
        grad,
        hessian,
        hvp,
        jacobian,
        jvp,
        no_grad,
        stop_gradient,
        value_and_grad,
        vjp,
        vmap,
    )
    from aerogel.tensor.programs import load_program, program, program_from_text

# Modules that stand in folders are imported by these names too.
for _name in ("argpack", "field", "matrix", "ndarray", "snode", "structs"):
    sys.modules[f"aerogel.{_name}"] = sys.modules[f"aerogel.data.{_name}"]
for _module in (aot, experimental, lang, simt, texture):
    sys.modules[_module.__name__.replace("._taichi", "")] = _module
sys.modules["aerogel._lib"] = _lib
old_modules.offer("aerogel.lang")
old_modules.offer("aerogel._lib")

__version__: tuple[int, int, int] = (1, 7, 4)
"""The version of Taichi whose interface this is; Aerogel's own is ``aerogel.version``."""

version: str = _native.version

__all__ = [
    "ArgPack",
    "Arch",
    "BitpackedFields",
    "CRITICAL",
    "DEBUG",
    "DeviceCapability",
    "ERROR",
    "Field",
    "FieldsBuilder",
    "Format",
    "GUI",
    "INFO",
    "Kernel",
    "Layout",
    "Matrix",
    "MatrixField",
    "MatrixNdarray",
    "Mesh",
    "MeshInstance",
    "Ndarray",
    "SNode",
    "Struct",
    "StructField",
    "ScalarField",
    "ScalarNdarray",
    "TRACE",
    "Vector",
    "Texture",
    "VectorNdarray",
    "WARN",
    "ad",
    "algorithms",
    "amdgpu",
    "arm64",
    "as_taichi",
    "axes",
    "cfg",
    "cpu",
    "cuda",
    "data_oriented",
    "dataclass",
    "datasets",
    "deactivate_all_snodes",
    "dx11",
    "dx12",
    "extension",
    "eig",
    "errors",
    "bf16",
    "bfloat16",
    "f16",
    "f32",
    "f64",
    "field",
    "float16",
    "float32",
    "float64",
    "from_dlpack",
    "func",
    "gles",
    "gpu",
    "hex_to_rgb",
    "i",
    "i16",
    "i32",
    "i64",
    "i8",
    "ij",
    "ijk",
    "ijkl",
    "ijl",
    "ik",
    "ikl",
    "il",
    "init",
    "int16",
    "int32",
    "int64",
    "int8",
    "interp",
    "is_extension_supported",
    "is_logging_effective",
    "j",
    "jk",
    "jkl",
    "jl",
    "k",
    "kernel",
    "kl",
    "l",
    "lang",
    "linalg",
    "load",
    "load_program",
    "graph",
    "math",
    "metal",
    "mpi",
    "ndarray",
    "nn",
    "opengl",
    "ops",
    "optim",
    "plot",
    "polar_decompose",
    "profiler",
    "program",
    "program_from_text",
    "pyfunc",
    "real_func",
    "ref",
    "reset",
    "rgb_to_hex",
    "root",
    "save",
    "set_logging_level",
    "snode",
    "solve",
    "sparse",
    "special",
    "svd",
    "sym_eig",
    "sync",
    "template",
    "tensor",
    "tools",
    "types",
    "u1",
    "u16",
    "u32",
    "u64",
    "u8",
    "ui",
    "uint1",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "version",
    "vmap",
    "vulkan",
    "x64",
    "x86_64",
    "xp",
    "check_grad",
    "checkpoint",
    "custom_jvp",
    "custom_vjp",
    "enable_grad",
    "grad",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "no_grad",
    "stop_gradient",
    "value_and_grad",
    "vjp",
]
__all__ += errors.__all__
__all__ += ops.__all__

# Loaded when they are first used, so that importing Aerogel stays fast.
_MODULES = (
    "ad",
    "algorithms",
    "backends",
    "datasets",
    "fl",
    "graph",
    "linalg",
    "math",
    "mpi",
    "nn",
    "optim",
    "profiler",
    "sparse",
    "special",
    "tensor",
    "tools",
    "ui",
    "xp",
)
_NAMES = {
    "as_taichi": "run",
    "atan": "_taichi.successors",
    "outer": "_taichi.successors",
    "make_spd": "_taichi.successors",
    "pure": "_taichi.successors",
    "Event": "_taichi.successors",
    "Stream": "_taichi.successors",
    "create_event": "_taichi.successors",
    "create_stream": "_taichi.successors",
    "Template": "types",
    "perf_dispatch": "_taichi.dispatch",
    "Backend": "_taichi.storage",
    "Tensor": "_taichi.storage",
    "VectorTensor": "_taichi.storage",
    "MatrixTensor": "_taichi.storage",
    "GUI": "gui",
    "hex_to_rgb": "gui",
    "rgb_to_hex": "gui",
    "Mesh": "mesh",
    "MeshInstance": "mesh",
    "eig": "_linalg",
    "load": "_saving",
    "plot": "_plot",
    "save": "_saving",
    "polar_decompose": "_linalg",
    "solve": "_linalg",
    "svd": "_linalg",
    "sym_eig": "_linalg",
    "load_program": "tensor.programs",
    "program": "tensor.programs",
    "program_from_text": "tensor.programs",
    "check_grad": "tensor",
    "checkpoint": "tensor",
    "custom_jvp": "tensor",
    "custom_vjp": "tensor",
    "enable_grad": "tensor",
    "grad": "tensor",
    "hessian": "tensor",
    "hvp": "tensor",
    "jacobian": "tensor",
    "jvp": "tensor",
    "no_grad": "tensor",
    "stop_gradient": "tensor",
    "value_and_grad": "tensor",
    "vjp": "tensor",
    "vmap": "tensor",
}


if not TYPE_CHECKING:  # For a type checker every name would be one.

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return importlib.import_module(f"aerogel.{name}")
        if name in _NAMES:
            value = getattr(importlib.import_module(f"aerogel.{_NAMES[name]}"), name)
            globals()[name] = value
            return value
        if name in old_modules.MODULES:
            return importlib.import_module(f"aerogel.{name}")
        hint = ""
        if not name.startswith("_"):
            from aerogel._taichi import older

            if name in older.NAMES:
                return older.older(name)
            if name.startswith("Quadrants") and name.endswith("Error"):
                return getattr(importlib.import_module("aerogel.errors"), name.replace("Quadrants", "Taichi"))
            from aerogel.tensor import _elsewhere

            hint = _elsewhere.of_package(name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_NAMES})
