"""Names that Taichi had before 1.6 and has no more: programs of that time run, with one warning for each name.

``older("var")`` is what ``ti.var`` was; the warning says what to write today.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import aerogel as ti
from aerogel import _log
from aerogel.data.field import matrix_field
from aerogel.errors import AerogelTypeError

_told: set[str] = set()


def warn(old: str, new: str) -> None:
    """Says once what an old name is called now."""
    if old not in _told:
        _told.add(old)
        _log.warn(f"{old} is a name of older versions of Taichi: write {new}")


def var(dt: Any, shape: Any = None, offset: Any = None, needs_grad: bool = False) -> Any:
    """``ti.field``."""
    return ti.field(dt, shape, offset=offset, needs_grad=needs_grad)


def matrix(cls: type, n: Any, *args: Any, **kwargs: Any) -> Any:
    """``ti.Vector(3, dt=ti.f32, shape=8)``, ``ti.Matrix(2, 2, ti.f32)``."""
    name = f"ti.{cls.__name__}"
    values = list(args)
    if not (values or kwargs):
        raise AerogelTypeError("a matrix is made from a list of numbers, or from a list of rows")
    warn(f"{name}({'n' if cls is ti.Vector else 'n, m'}, dt=..., shape=...)", f"{name}.field(...)")
    m = 1 if cls is ti.Vector else kwargs.pop("m", None)
    if m is None:
        if not values:
            raise AerogelTypeError("ti.Matrix needs the number of columns, m")
        m = values.pop(0)
    names = ("dt", "shape", "offset")
    if len(values) > len(names):
        raise AerogelTypeError(f"{name} takes no more than {', '.join(names)} besides its shape")
    given = {**dict(zip(names, values)), **kwargs}
    dtype = given.pop("dt", None) or given.pop("dtype", None) or float
    return matrix_field(n, m, 1 if cls is ti.Vector else 2, dtype, **given)


def rows_of(rows: Any, cols: Any) -> Any:
    """``ti.Matrix(rows=[...])`` and ``ti.Matrix(cols=[...])``."""
    made_of = "rows" if rows is not None else "cols"
    warn(f"ti.Matrix({made_of}=...)", f"ti.Matrix.{made_of}([...])")
    return ti.Matrix.rows(rows) if rows is not None else ti.Matrix.cols(cols)


def any_arr(*args: Any, **kwargs: Any) -> Any:
    """``ti.types.ndarray``: of any elements, whatever is said of them."""
    return ti.types.ndarray(**{key: value for key, value in kwargs.items() if key in ("element_dim", "element_shape")})


def nothing(*args: Any, **kwargs: Any) -> None:
    """A hint to Taichi's compiler that has no meaning here."""


def layout(place: Callable[[], None]) -> Callable[[], None]:
    """Calls the function that places the fields."""
    place()
    return place


def main(function: Callable[[], Any]) -> Callable[[], Any]:
    """Calls the function if its module is the program."""
    if function.__module__ == "__main__":
        function()
    return function


def benchmark(function: Callable[..., Any], repeat: int = 300, args: tuple = ()) -> float:
    """Seconds that a call takes, on the average."""
    import time

    function(*args)
    ti.sync()
    began = time.perf_counter()
    for _ in range(repeat):
        function(*args)
    ti.sync()
    return (time.perf_counter() - began) / repeat


def mkdir_p(path: str) -> None:
    """Makes a folder and those around it, where they are not there."""
    import os

    os.makedirs(path, exist_ok=True)


def imdisplay(img: Any) -> None:
    """Shows an image."""
    ti.tools.imshow(img)


def quant_int(bits: int, signed: bool = True, compute: Any = None) -> Any:
    """``ti.types.quant.int``."""
    return ti.types.quant.int(bits, signed, compute)


def quant_fixed(frac: int, signed: bool = True, range: float = 1.0, compute: Any = None) -> Any:
    """``ti.types.quant.fixed``, with the names of its arguments as they were."""
    return ti.types.quant.fixed(frac, signed, max_value=range, compute=compute)


def quant_float(exp: int, frac: int, signed: bool = True, compute: Any = None) -> Any:
    """``ti.types.quant.float``."""
    return ti.types.quant.float(exp, frac, signed, compute)


class _Quant:
    int = staticmethod(quant_int)
    fixed = staticmethod(quant_fixed)
    float = staticmethod(quant_float)


class _TypeFactory:
    """``ti.type_factory``."""

    def custom_int(self, bits: int, signed: bool = True, compute_type: Any = None) -> Any:
        """``ti.types.quant.int``."""
        return quant_int(bits, signed, compute_type)

    def custom_float(
        self, significand_type: Any, exponent_type: Any = None, scale: float | None = None, compute_type: Any = None
    ) -> Any:
        """``ti.types.quant.fixed`` of an integer type, by the factor between it and the number."""
        kind = significand_type.to_string().partition("/")[0]
        if exponent_type is not None:
            exponent = exponent_type.to_string().partition("/")[0]
            return quant_float(int(exponent[2:]), int(kind[2:]), kind[1] == "i", compute_type)
        return ti.types.quant.fixed(int(kind[2:]), kind[1] == "i", compute=compute_type, scale=scale)


class BitStruct(ti.BitpackedFields):
    """``ti.BitpackedFields``."""

    def __init__(self, num_bits: int) -> None:
        super().__init__(num_bits)


@ti.pyfunc
def sqr(x):  # noqa: ANN001, ANN201
    """A number times itself."""
    return x * x


@ti.pyfunc
def rotation2d(alpha):  # noqa: ANN001, ANN201
    """The 2x2 matrix of a rotation."""
    return ti.Matrix([[ti.cos(alpha), -ti.sin(alpha)], [ti.sin(alpha), ti.cos(alpha)]])


@ti.pyfunc
def dot(a, b):  # noqa: ANN001, ANN201
    """``a.dot(b)``."""
    return a.dot(b)


@ti.pyfunc
def cross(a, b):  # noqa: ANN001, ANN201
    """``a.cross(b)``."""
    return a.cross(b)


@ti.pyfunc
def outer_product(a, b):  # noqa: ANN001, ANN201
    """``a.outer_product(b)``."""
    return a.outer_product(b)


@ti.pyfunc
def normalized(a, eps=0.0):  # noqa: ANN001, ANN201
    """``a.normalized()``."""
    return a.normalized(eps)


@ti.pyfunc
def transposed(a):  # noqa: ANN001, ANN201
    """``a.transpose()``."""
    return a.transpose()


@ti.pyfunc
def inversed(a):  # noqa: ANN001, ANN201
    """``a.inverse()``."""
    return a.inverse()


@ti.pyfunc
def determinant(a):  # noqa: ANN001, ANN201
    """``a.determinant()``."""
    return a.determinant()


@ti.pyfunc
def trace(a):  # noqa: ANN001, ANN201
    """``a.trace()``; of a text, a message that only the logging level ``trace`` shows."""
    return _log.trace(a) if ti.static(isinstance(a, str)) else a.trace()


@ti.pyfunc
def logical_and(a, b):  # noqa: ANN001, ANN201
    """``a and b``."""
    return (a != 0) & (b != 0)


@ti.pyfunc
def logical_or(a, b):  # noqa: ANN001, ANN201
    """``a or b``."""
    return (a != 0) | (b != 0)


def matrix_var(cls: type, sizes: tuple[int, ...], dt: Any, shape: Any = None, **kwargs: Any) -> Any:
    """``ti.Vector.var(3, ti.f32, shape=8)``, ``ti.Matrix.var(2, 2, ti.f32)``."""
    warn(f"ti.{cls.__name__}.var", f"ti.{cls.__name__}.field")
    n, m = (*sizes, 1)[:2]
    return matrix_field(n, m, len(sizes), dt, shape, **kwargs)


def dtype_named_dt(cls_name: str, dtype: Any, kwargs: dict[str, Any]) -> Any:
    """The type of ``ti.Vector.field(3, dt=ti.f32)``."""
    if dtype is None and "dt" in kwargs:
        warn(f"ti.{cls_name}.field(dt=...)", f"ti.{cls_name}.field(dtype=...)")
        dtype = kwargs.pop("dt")
    if dtype is None:
        raise TypeError(f"ti.{cls_name}.field needs the dtype of its components")
    return dtype


class Word:
    """``node.bit_struct(num_bits=32)``: the word in which ``place`` puts its fields."""

    def __init__(self, node: Any, num_bits: int) -> None:
        self._node, self._word = node, ti.BitpackedFields(num_bits)

    def place(self, *args: Any, shared_exponent: bool = False) -> Any:
        """Places fields side by side in the word."""
        self._word.place(*args, shared_exponent=shared_exponent)
        return self._node.place(self._word)


def same(value: Any) -> Any:
    """The value itself: what a decorator did has no meaning here."""
    return value


#: The newest version of Taichi whose programs run here.
TAICHI = (1, 7, 4)


def require_version(major: int, minor: int | None = None, patch: int | None = None) -> None:
    """Raises an error if a program needs a newer version of Taichi than Aerogel is compatible with.

    Raises:
        AerogelRuntimeError: The version is newer than 1.7.4.
    """
    wanted = tuple(part or 0 for part in (major, minor, patch))
    if wanted > TAICHI:
        needed, newest = (".".join(map(str, version)) for version in (wanted, TAICHI))
        raise ti.errors.AerogelRuntimeError(
            f"the program needs version {needed} of Taichi; Aerogel runs programs of versions up to {newest}"
        )


def materialize_callback(function: Callable[[], None]) -> Callable[[], None]:
    """Lays out the fields placed so far and calls the function, such as a kernel that fills them."""
    ti.lang.impl.get_runtime().materialize()
    function()
    return function


def indices(*numbers: int) -> Any:
    """The axes with these numbers, as ``SNode.dense`` takes them."""
    return ti.axes(*numbers)


@ti.func
def expr_init(value):  # noqa: ANN001, ANN201
    """A variable with this value."""
    return value


@ti.func
def subscript(whole: ti.template(), i, j=None, k=None):  # noqa: ANN001, ANN201
    """``whole[i, j, k]``."""
    if ti.static(j is None):
        return whole[i]
    elif ti.static(k is None):
        return whole[i, j]
    else:
        return whole[i, j, k]


#: What each name was, and what is written today; a text is the path of what it is.
NAMES: Mapping[str, tuple[Any, str]] = {
    "AOS": (ti.Layout.AOS, "ti.Layout.AOS"),
    "SOA": (ti.Layout.SOA, "ti.Layout.SOA"),
    "BitStruct": (BitStruct, "ti.BitpackedFields"),
    "KernelArgError": (ti.errors.AerogelRuntimeTypeError, "ti.TaichiRuntimeTypeError"),
    "KernelDefError": (ti.errors.AerogelSyntaxError, "ti.TaichiSyntaxError"),
    "InvalidOperationError": (ti.errors.AerogelRuntimeError, "ti.TaichiRuntimeError"),
    "PLYWriter": ("tools.PLYWriter", "ti.tools.PLYWriter"),
    "Tape": ("ad.Tape", "ti.ad.Tape"),
    "TypeFactory": (_TypeFactory, "ti.types.quant"),
    "VideoManager": ("tools.VideoManager", "ti.tools.VideoManager"),
    "all_archs": (same, "the function without it"),
    "any_arr": (any_arr, "ti.types.ndarray()"),
    "benchmark": (benchmark, "a loop around the call, with ti.sync() and time.perf_counter()"),
    "block_dim": (nothing, "ti.loop_config(block_dim=...)"),
    "cache_shared": (nothing, "ti.block_local(...)"),
    "cache_l1": (nothing, "ti.cache_read_only(...)"),
    "cc": (ti.cpu, "ti.cpu"),
    "classfunc": (ti.func, "ti.func"),
    "classkernel": (ti.kernel, "ti.kernel"),
    "clear_all_gradients": ("ad.clear_all_gradients", "ti.ad.clear_all_gradients"),
    "clear_kernel_profile_info": ("profiler.clear_kernel_profiler_info", "ti.profiler.clear_kernel_profiler_info"),
    "complex_kernel": ("ad.grad_replaced", "ti.ad.grad_replaced"),
    "complex_kernel_grad": ("ad.grad_for", "ti.ad.grad_for"),
    "core": ("_lib.core", "ti._lib.core"),
    "cross": (cross, "a.cross(b)"),
    "debug": (_log.debug, "print"),
    "determinant": (determinant, "a.determinant()"),
    "dot": (dot, "a.dot(b)"),
    "error": (_log.error, "print"),
    "expr_init": (expr_init, "the value alone"),
    "ext_arr": (any_arr, "ti.types.ndarray()"),
    "get_runtime": ("lang.impl.get_runtime", "ti.lang.impl.get_runtime"),
    "imdisplay": (imdisplay, "ti.tools.imshow"),
    "imread": ("tools.imread", "ti.tools.imread"),
    "imresize": ("tools.imresize", "ti.tools.imresize"),
    "imshow": ("tools.imshow", "ti.tools.imshow"),
    "imwrite": ("tools.imwrite", "ti.tools.imwrite"),
    "indices": (indices, "ti.axes(...)"),
    "info": (_log.info, "print"),
    "inside_kernel": ("lang.impl.inside_kernel", "False: Python code is never inside of a kernel"),
    "inverse": (inversed, "a.inverse()"),
    "inversed": (inversed, "a.inverse()"),
    "kernel_profiler_clear": ("profiler.clear_kernel_profiler_info", "ti.profiler.clear_kernel_profiler_info"),
    "kernel_profiler_print": ("profiler.print_kernel_profiler_info", "ti.profiler.print_kernel_profiler_info"),
    "kernel_profiler_total_time": (
        "profiler.get_kernel_profiler_total_time",
        "ti.profiler.get_kernel_profiler_total_time",
    ),
    "layout": (layout, "what it places, without a function around"),
    "logical_and": (logical_and, "a and b"),
    "logical_or": (logical_or, "a or b"),
    "main": (main, 'if __name__ == "__main__"'),
    "memory_profiler_print": ("profiler.print_memory_profiler_info", "ti.profiler.print_memory_profiler_info"),
    "materialize_callback": (materialize_callback, "a call after the fields are made"),
    "mkdir_p": (mkdir_p, "os.makedirs(path, exist_ok=True)"),
    "normalized": (normalized, "a.normalized()"),
    "outer_product": (outer_product, "a.outer_product(b)"),
    "parallelize": (nothing, "ti.loop_config(parallelize=...)"),
    "print": (print, "print"),
    "print_kernel_profile_info": ("profiler.print_kernel_profiler_info", "ti.profiler.print_kernel_profiler_info"),
    "print_memory_profile_info": ("profiler.print_memory_profiler_info", "ti.profiler.print_memory_profiler_info"),
    "print_profile_info": ("profiler.print_scoped_profiler_info", "ti.profiler.print_scoped_profiler_info"),
    "python_scope": (same, "the function without it"),
    "quant": (_Quant, "ti.types.quant"),
    "query_kernel_profile_info": ("profiler.query_kernel_profiler_info", "ti.profiler.query_kernel_profiler_info"),
    "require_version": (require_version, "nothing, or a check of ti.__version__"),
    "sqr": (sqr, "x ** 2"),
    "subscript": (subscript, "x[i]"),
    "taichi_scope": (same, "the function without it"),
    "to_numpy_type": ("lang.util.to_numpy_type", "ti.lang.util.to_numpy_type"),
    "to_pytorch_type": ("lang.util.to_pytorch_type", "ti.lang.util.to_pytorch_type"),
    "to_taichi_type": ("lang.util.to_taichi_type", "ti.lang.util.to_taichi_type"),
    "trace": (trace, "a.trace()"),
    "transposed": (transposed, "a.transpose()"),
    "type_factory": (_TypeFactory(), "ti.types.quant"),
    "type_factory_": (_TypeFactory(), "ti.types.quant"),
    "var": (var, "ti.field"),
    "warn": (_log.warn, "warnings.warn"),
    "vectorize": (nothing, "the loop alone: it runs in vectors by itself"),
}


def older(name: str) -> Any:
    """What an old name was, with a warning that says the new one.

    Raises:
        AttributeError: The name is none of these.
    """
    try:
        value, new = NAMES[name]
    except KeyError:
        raise AttributeError(name) from None
    warn(f"ti.{name}", new)
    if isinstance(value, str):
        module, _, attribute = value.rpartition(".")
        value = getattr(sys.modules["aerogel"], module.partition(".")[0])
        for part in [*module.split(".")[1:], attribute]:
            value = getattr(value, part)
    return value
