"""``ti.init`` and the state it sets."""

from __future__ import annotations

import enum
import importlib
import operator
import os
import re
import sys
import threading
from typing import TYPE_CHECKING, Any

from aerogel import _dtypes, _log, _native, _processes
from aerogel._dtypes import dtype_of
from aerogel._seeds import seed_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Unpack

    from aerogel._annotations import Settings


class Arch:
    """An architecture that kernels run on."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"Arch.{self.name}"

    def __eq__(self, other: object) -> bool:
        return self.name == (other.name if isinstance(other, Arch) else other)

    def __hash__(self) -> int:
        return hash(self.name)


x64 = x86_64 = cpu = Arch("x64")
arm64 = Arch("arm64")
interp = Arch("interp")
cuda = Arch("cuda")
metal = Arch("metal")
vulkan = Arch("vulkan")
opengl = Arch("opengl")
gles = Arch("gles")
dx11 = Arch("dx11")
dx12 = Arch("dx12")
amdgpu = Arch("amdgpu")
#: The GPUs, in the order in which ``ti.init`` tries them.
gpu = [cuda, metal, vulkan, opengl, dx11, dx12, gles, amdgpu]

_ARCHS = {a.name: a for a in (x64, arm64, interp, *gpu)} | {"cpu": cpu, "x86_64": x64}
_AVAILABLE = {"x64", "arm64", "interp", "cuda"}


class Extension(enum.Enum):
    """Features that not every arch of Taichi supports: ``ti.extension.sparse``."""

    sparse = "sparse"
    quant = "quant"
    quant_basic = "quant_basic"
    mesh = "mesh"
    data64 = "data64"
    adstack = "adstack"
    bls = "bls"
    assertion = "assertion"
    extfunc = "extfunc"


extension = Extension
_ABSENT = {Extension.bls, Extension.extfunc}


def is_extension_supported(arch: Arch, ext: Extension) -> bool:
    """Whether kernels for an arch can do this.

    >>> is_extension_supported(cpu, extension.sparse)
    True
    """
    return arch in _AVAILABLE and ext not in _ABSENT


# The keywords of `ti.init`. Those with a meaning here come first; the others are Taichi's (the last line those of
# earlier versions), accepted with a warning so that programs run unchanged.
_USED: dict[str, Any] = {
    "cpu": "native",
    "device": "",
    "debug": False,
    "debug_races": False,
    "deterministic": False,
    "fast_math": True,
    "check_out_of_bound": None,
    "opt_level": 3,
    "cpu_max_num_threads": 0,
    "random_seed": 0,
    "print_ir": False,
    "make_thread_local": True,
    "tensor_products": "tiles",
    "backend": "native",
    "eager": False,
    "kernel_profiler": False,
    "short_circuit_operators": True,
    "print_full_traceback": False,
    "log_level": None,
    "verbose": True,
    "ad_memory": None,
    "offline_cache": True,
    "offline_cache_file_path": "",
    "offline_cache_cleaning_policy": "lru",
    "offline_cache_max_size_of_files": 100 * 1024 * 1024,
    "offline_cache_cleaning_factor": 0.25,
}
#: What Taichi's settings are where a program sets none.
_ACCEPTED: dict[str, Any] = {
    "ad_stack_size": 0,
    "advanced_optimization": True,
    "allow_nv_shader_extension": True,
    "auto_mesh_local_default_occupacy": 4,
    "cache_loop_invariant_global_vars": True,
    "cfg_optimization": True,
    "constant_folding": True,
    "cpu_block_dim_adaptive": True,
    "cuda_stack_limit": 0,
    "default_ad_stack_size": 32,
    "default_cpu_block_dim": 32,
    "default_gpu_block_dim": 128,
    "demote_dense_struct_fors": True,
    "demote_no_access_mesh_fors": True,
    "detect_read_only": True,
    "device_memory_GB": 1.0,
    "device_memory_fraction": 0.0,
    "experimental_auto_mesh_local": False,
    "external_optimization_level": 3,
    "extra_flags": "",
    "flatten_if": False,
    "force_scalarize_matrix": False,
    "gdb_trigger": False,
    "gpu_max_reg": 0,
    "half2_vectorization": False,
    "lower_access": True,
    "make_block_local": True,
    "make_cpu_multithreading_loop": True,
    "make_mesh_block_local": True,
    "max_block_dim": 1024,
    "max_vector_width": 8,
    "mesh_localize_all_attr_mappings": False,
    "mesh_localize_from_end_mapping": False,
    "mesh_localize_to_end_mapping": True,
    "move_loop_invariant_outside_if": False,
    "num_compile_threads": 4,
    "optimize_mesh_reordered_mapping": True,
    "print_accessor_ir": False,
    "print_ir_dbg_info": False,
    "print_kernel_amdgcn": False,
    "print_kernel_asm": False,
    "print_kernel_llvm_ir": False,
    "print_kernel_llvm_ir_optimized": False,
    "print_preprocessed_ir": False,
    "print_struct_llvm_ir": False,
    "quant_opt_atomic_demotion": True,
    "quant_opt_store_fusion": True,
    "real_matrix_scalarize": True,
    "saturating_grid_dim": 0,
    "serial_schedule": False,
    "simd_width": 0,
    "simplify_after_lower_access": True,
    "simplify_before_lower_access": True,
    "timeline": False,
    "unrolling_limit": 32,
    "use_llvm": True,
    "validate_autodiff": False,
    "verbose_kernel_launches": False,
    "vk_api_version": "",
}
#: Settings that versions of Taichi before 1.7 had.
_OLDER = frozenset(
    """
    ad_stack_experimental_enabled async_flush_every async_listgen_fast_filtering async_max_fuse_per_task async_mode
    async_opt_activation_demotion async_opt_dse async_opt_fusion async_opt_fusion_max_iter
    async_opt_intermediate_file async_opt_listgen cc_compile_cmd cc_link_cmd dynamic_index excepthook
    experimental_real_function lazy_compilation ndarray_use_cached_allocator
    ndarray_use_cached_allocator_threshold ndarray_use_torch packed print_benchmark_stat
    print_evaluator_ir real_matrix use_gles use_mesh use_unified_memory
    """.split()
)

_DEFAULTS = {**_ACCEPTED, **_USED}

current: dict[str, Any] = dict(
    _DEFAULTS, arch=cpu, default_fp=_dtypes.f32, default_ip=_dtypes.i32, default_up=_dtypes.u32
)

_beginning = threading.Lock()
#: What modules forget when a program ends.
at_reset: list[Callable[[], None]] = []


def environment(key: str) -> str | None:
    """The text of ``AEROGEL_<KEY>`` or ``TI_<KEY>``, if one is set and not empty."""
    return os.environ.get("AEROGEL_" + key.upper()) or os.environ.get("TI_" + key.upper()) or None


def _setting(key: str, given: dict[str, Any]) -> Any:
    """The value of a keyword: what the call says, or else the environment, or else the default."""
    default = _USED[key]
    if key in given:
        return _typed(key, given[key])
    text = environment(key)
    if text is None:
        return default
    if key == "fast_math":
        truth = {"0": False, "false": False, "1": True, "true": True}
        return _fast_math(truth.get(text.lower(), text), "AEROGEL_FAST_MATH")
    if key == "log_level" and text.lower() not in _log._LEVELS:
        raise ValueError(f"{key} from the environment is one of {', '.join(_log._LEVELS)}, not {text!r}")
    if key == "ad_memory":
        return n_bytes(text, key)
    if key == "check_out_of_bound" or isinstance(default, bool):
        if text.lower() in ("0", "false", "1", "true"):
            return text.lower() in ("1", "true")
        raise ValueError(f"{key} from the environment is 0 or 1, not {text!r}")
    for kind in (int, float):
        if isinstance(default, kind):
            try:
                return kind(text)
            except ValueError:
                raise ValueError(f"{key} from the environment is a number, not {text!r}") from None
    return text


def _typed(key: str, value: Any) -> Any:
    """A value that a call gives for a keyword, if it is of the kind that this takes."""
    default = _USED[key]
    if key == "ad_memory":
        return None if value is None else n_bytes(value, key)
    if key == "fast_math":
        return _fast_math(value)
    if isinstance(default, bool):
        # `bool` accepts any other value, but `bool("false")` is True, which nobody means.
        kind, fits = "True or False", not isinstance(value, str)
    elif isinstance(default, int):
        kind, fits = "an integer", hasattr(value, "__index__")
    elif isinstance(default, str):
        kind, fits = "a string", isinstance(value, (str, os.PathLike))
    elif isinstance(default, float):
        kind, fits = "a number", hasattr(value, "__float__") and not isinstance(value, str)
    else:
        return value
    if not fits:
        raise TypeError(f"{key} is {kind}, not {value!r}")
    return value


_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def n_bytes(given: Any, what: str) -> int:
    """A number of bytes, given as a number or as text such as ``"2GB"``.

    >>> n_bytes("1.5 KiB", "ad_memory")
    1536
    """
    if isinstance(given, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([A-Za-z]*)\s*", given)
        if found is not None and found[2].upper() in _UNITS:
            return int(float(found[1]) * _UNITS[found[2].upper()])
        raise ValueError(f'{what} is a number of bytes, or text such as "2GB" or "500 MiB", not {given!r}')
    if isinstance(given, bool) or not isinstance(given, (int, float)) and not hasattr(given, "__index__"):
        raise TypeError(f'{what} is a number of bytes, or text such as "2GB", not {given!r}')
    if not 0 <= given < 2**63:
        raise ValueError(f"{what} is a number of bytes, at least 0, not {given!r}")
    return int(given)


def debug() -> bool:
    """Whether ``ti.init(debug=True)`` was called."""
    return bool(current["debug"])


def ad_memory() -> int:
    """The most bytes of values that are saved until gradients are computed."""
    begin_as_parent()
    return _ad_memory()


def _ad_memory() -> int:
    given = current["ad_memory"]
    if given is not None:
        return given
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, OSError, ValueError):
        return 2**62


def type_by_default(key: str) -> Any:
    """``default_fp`` or ``default_ip`` of a program that does not set it; the environment has the number of bits."""
    bits = environment(key) or "32"
    if bits not in ("32", "64"):
        raise ValueError(f"{key} from the environment is 32 or 64, not {bits!r}")
    return dtype_of(("f" if key == "default_fp" else "i") + bits)


def _default_type(key: str, given: Any) -> Any:
    """``default_fp`` or ``default_ip``, as ``ti.init`` is given it."""
    return _default_of(key, type_by_default(key) if given is None else given)


def _tell_of_unused(given: dict[str, Any], chosen: Any) -> None:
    """Names the settings that change nothing here, which published programs pass to Taichi, for those who debug."""
    used = {"device_memory_GB", "device_memory_fraction"} if chosen == cuda else set()
    keys = [key for key in sorted({*_ACCEPTED, *_OLDER} - used) if key in given or environment(key) is not None]
    if keys:
        _log.debug(f"ti.init: {', '.join(keys)} {'has' if len(keys) == 1 else 'have'} no effect here")


def current_cache_folder() -> str:
    """The folder in which compiled kernels are cached, unless ``ti.init`` names another one."""
    named = environment("offline_cache_file_path")
    if named:
        return os.path.abspath(named)
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(home, "aerogel")


def _device_number(device: str) -> int:
    """Which GPU ``ti.init(device=...)`` names."""
    found = re.fullmatch(r"cuda(?::(\d+))?", device)
    if found is None:
        raise ValueError(f'device is "cuda", or "cuda:1" for the second GPU, not {device!r}')
    return int(found[1] or os.environ.get("TI_VISIBLE_DEVICE") or 0)


def _missing(arch: Arch, device: str) -> str | None:
    """Why kernels cannot run there."""
    if arch != cuda:
        return None if arch.name in _AVAILABLE else f"Aerogel does not generate code for {arch.name}"
    return _native.open_cuda(_device_number(device or "cuda"))[1]


def _choose(arch: Any, fallback: bool, device: str) -> Arch:
    wanted = environment("arch") or arch or ("cuda" if device else "x64")
    if isinstance(wanted, str):
        if wanted == "gpu":
            wanted = gpu
        elif wanted not in _ARCHS:
            raise ValueError(f"there is no arch {wanted!r}; choose from {', '.join(_ARCHS)}")
        else:
            wanted = _ARCHS[wanted]
    choices = wanted if isinstance(wanted, (list, tuple)) else [wanted]
    for a in choices:
        if not isinstance(a, Arch):
            raise ValueError(f"arch is ti.cpu, ti.gpu or another of the names {', '.join(_ARCHS)}, not {a!r}")
    why = ""
    for a in choices:
        missing = _missing(a, device)
        if missing is None:
            return a
        why = why or missing
    names = ", ".join(a.name for a in choices)
    # Who names a device wants it; who writes `arch=ti.cuda`, as many programs do, wants it where there is one.
    if not fallback or device or "AEROGEL_CUDA" in os.environ:
        from aerogel.errors import AerogelRuntimeError

        raise AerogelRuntimeError(f"arch {names} is not available: {why}")
    _log.warn(f"arch [{names}] is not available, falling back to the CPU: {why}")
    return cpu


def init(
    arch: Any = None,
    default_fp: Any = None,
    default_ip: Any = None,
    _test_mode: bool = False,
    enable_fallback: bool = True,
    require_version: str | None = None,
    **kwargs: Unpack[Settings],
) -> None:
    """Starts over with an empty program and the given settings.

    Kernels and fields need this call first. Tensors do not: without it they begin with default settings. They live on
    when it is called: evaluated tensors keep their values, and others are evaluated with the new settings.

    Args:
        arch: ``ti.cpu``, ``ti.cuda`` (an NVIDIA GPU), ``ti.gpu`` (the same, or the CPU where there is none),
            ``"interp"`` for the reference interpreter.
        default_fp: The dtype of ``float``: ``ti.f32`` (the default) or ``ti.f64``.
        default_ip: The dtype of ``int``: ``ti.i32`` (the default) or ``ti.i64``.
        enable_fallback: Whether an arch that is missing is replaced by the CPU.
        require_version: The version of Taichi, such as "1.7.0", whose interface the program needs.
        kwargs: Settings by name. One that is not given is taken from the environment, from ``AEROGEL_<NAME>``
            or ``TI_<NAME>``; ``arch`` is taken from there even if it is given. ``cpu`` (which processors kernels are
            compiled for: ``"native"``, the one at hand, or ``"x86-64-v2"``, ``"x86-64-v3"`` or ``"x86-64-v4"``),
            ``device`` (which GPU: ``"cuda:1"`` is the second), ``device_memory_GB`` and ``device_memory_fraction``
            (how much of its memory may be used, all if none is given),
            ``debug`` (check indices, assertions and integer arithmetic), ``debug_races`` (find iterations of a parallel
            loop that write one cell, or write and read it, without an atomic operation), ``deterministic`` (results do
            not depend on the number of threads nor on which is faster; on the CPU), ``fast_math`` (``True``, the
            default: floats are rounded as the program is written, only accumulations may be regrouped; ``False``:
            accumulations keep their order, too; ``"full"``: the compiler may rewrite all float arithmetic),
            ``random_seed``,
            ``cpu_max_num_threads``, ``tensor_products`` (who makes large products of matrices of floats among tensors:
            ``"tiles"``, kernels over tiles, or ``"library"``), ``backend`` (the back end of tensors: ``"native"``,
            ``"interp"``, ``"blas"`` or another one of ``ti.backends``), ``eager`` (evaluate each tensor operation at
            once), ``ad_memory`` (the most that gradients keep until they
            are computed: bytes, or text such as ``"2GB"``; half of the machine's memory if it is not given),
            ``print_ir``, ``log_level``,
            ``verbose``, ``offline_cache`` (keep compiled kernels on disk for the
            next process) with ``offline_cache_file_path``, ``offline_cache_cleaning_policy`` (``never``,
            ``version``, ``lru`` or ``fifo``), ``offline_cache_max_size_of_files`` in bytes and
            ``offline_cache_cleaning_factor``, and all other keywords of Taichi.

    Raises:
        KeyError: A keyword that neither Aerogel nor Taichi has.
        TypeError: A value of another kind than the setting takes.
        ValueError: A value that a setting cannot have.

    >>> init(arch=cpu, log_level="error")
    """
    given: dict[str, Any] = dict(kwargs)
    if "default_up" in given:
        raise KeyError("'default_up' is the unsigned type of 'default_ip': set 'default_ip' instead")
    unknown = sorted(k for k in given if k not in _DEFAULTS and k not in _OLDER)
    if unknown:
        raise KeyError(f"Unrecognized keyword argument(s) for ti.init: {', '.join(unknown)}")
    if require_version is not None:
        _require(require_version)
    chosen = _begin_new(given, arch, default_fp, default_ip, enable_fallback)
    _tell_of_unused(given, chosen)
    if current["verbose"]:
        _log.info(f"Starting on arch={chosen.name}")


def _begin_new(
    given: dict[str, Any], arch: Any = None, default_fp: Any = None, default_ip: Any = None, fallback: bool = True
) -> Arch:
    """Starts over with these settings, and for others those of the environment and the defaults; returns the arch."""
    values = {key: _setting(key, given) for key in _USED}
    _expect_threads(values["cpu_max_num_threads"])
    _expect_opt_level(given.get("opt_level", 0))
    seed_of(values["random_seed"], "random_seed")
    if values["log_level"] is not None:
        _log.set_logging_level(values["log_level"])
    if values["backend"] != "native":
        # Refuses one that there is not, before anything has changed.
        importlib.import_module("aerogel.backends._registry").entry(values["backend"])
    device_memory = _device_memory(given)
    chosen = _choose(arch, fallback, values["device"])
    _expect_order(values, chosen)
    fp, ip = _default_type("default_fp", default_fp), _default_type("default_ip", default_ip)
    reset()
    current.clear()
    current.update(_DEFAULTS)
    current.update(given)
    _limits["device_memory"] = device_memory
    current.update(values, arch=chosen, default_fp=fp, default_ip=ip)
    _apply()
    return chosen


def _choose_backend() -> None:
    """Has a back end evaluate tensors; the default one needs no module of back ends."""
    if current["backend"] != "native" or current["eager"] or "aerogel.backends" in sys.modules:
        registry = importlib.import_module("aerogel.backends._registry")
        registry.set_default(current["backend"], current["eager"])


def begin_by_default() -> None:
    """Starts a program with default settings and those of the environment, if there is none, as tensors need one."""
    with _beginning:
        # Another thread may have started one.
        if not _dtypes.defaults:
            # A back end may have been chosen already.
            _begin_new({key: current[key] for key in ("backend", "eager") if current[key] != _USED[key]})


#: What may be used of a GPU, as `_device_memory` says.
_limits: dict[str, float | None] = {"device_memory": None}


def _device_memory(given: dict[str, Any]) -> float | None:
    """How many bytes of a GPU may be used: up to 1 such a part of it, ``None`` for all."""
    part, gigabytes = given.get("device_memory_fraction"), given.get("device_memory_GB")
    if part:
        if not 0 < float(part) <= 1:
            raise ValueError(f"device_memory_fraction is a fraction of the memory, up to 1, not {part}")
        return float(part)
    if gigabytes is None:
        return None
    if not float(gigabytes) > 0:
        raise ValueError(f"device_memory_GB is more than 0, not {gigabytes}")
    return float(gigabytes) * (1 << 30)


def _native_arch() -> str:
    if current["arch"] == cuda:
        return f"cuda:{_device_number(current['device'] or 'cuda')}"
    return "interp" if current["arch"] == interp else "cpu"


def _apply() -> None:
    """Lets what is compiled from now on follow the settings."""
    fp, ip = current["default_fp"]._aerogel_dtype, current["default_ip"]._aerogel_dtype
    _dtypes.defaults["fp"], _dtypes.defaults["ip"] = fp, ip
    current["default_up"] = dtype_of("u" + ip[1:])
    bounds = current["check_out_of_bound"]
    _native.init(
        arch=_native_arch(),
        cpu=current["cpu"],
        debug=bool(current["debug"]),
        debug_races=bool(current["debug_races"]),
        deterministic=bool(current["deterministic"]),
        fast_math=_FAST_MATH[current["fast_math"]],
        check_bounds=bool(current["debug"] if bounds is None else bounds),
        opt_level=int(current["opt_level"]),
        max_threads=int(current["cpu_max_num_threads"]),
        random_seed=seed_of(current["random_seed"], "random_seed"),
        print_ir=bool(current["print_ir"]),
        thread_local=bool(current["make_thread_local"]),
        products=str(current["tensor_products"]),
        default_fp=fp,
        default_ip=ip,
        short_circuit=bool(current["short_circuit_operators"]),
        profile=bool(current["kernel_profiler"]),
        cache=_cache(current),
        ad_memory=_ad_memory(),
        device_memory=_limits["device_memory"],
    )
    _choose_backend()
    names = {"arch": current["arch"].name, "default_fp": fp, "default_ip": ip}
    _processes.publish({**current, **_limits, **names})


def _begin(settings: dict[str, Any]) -> None:
    """Starts a program with the settings of another process."""
    current.update({key: value for key, value in settings.items() if key in _DEFAULTS})
    for key in ("default_fp", "default_ip"):
        current[key] = dtype_of(settings[key])
    current["arch"] = _ARCHS[settings["arch"]]
    _limits["device_memory"] = settings.get("device_memory")
    if current["log_level"] is not None:
        _log.set_logging_level(current["log_level"])
    _apply()


def begin_as_parent() -> None:
    """Starts a program with the settings of the parent process, in a child that has not called ``ti.init`` itself."""
    _processes.begin(_begin)


def change(key: str, value: Any) -> None:
    """Changes a setting of the running program: kernels that are called from now on are compiled by it."""
    if key in ("default_fp", "default_ip"):
        value = _default_of(key, value)
    elif key in _USED:
        value = _typed(key, value)
    elif key not in _ACCEPTED:
        raise AttributeError(f"there is no setting {key!r} that can be changed after ti.init")
    if key == "cpu_max_num_threads":
        _expect_threads(value)
    if key == "opt_level":
        _expect_opt_level(value)
    if key in _USED:
        _expect_order({**current, key: value}, current["arch"])
    _native.check_initialized()
    before = current[key]
    current[key] = value
    if key in _USED or key.startswith("default_"):
        try:
            _apply()
        except Exception:
            # Else every later change would be refused for this one.
            current[key] = before
            raise


#: The compiler's names of the levels of ``fast_math``.
_FAST_MATH: dict[Any, str] = {False: "off", True: "accumulations", "full": "full"}


def _fast_math(value: Any, name: str = "fast_math") -> Any:
    """A level of ``fast_math`` that a call or the environment gives.

    >>> _fast_math(1), _fast_math(False), _fast_math("full")
    (True, False, 'full')
    """
    if isinstance(value, str):
        if value == "full":
            return value
        raise ValueError(f'{name} is True, False or "full", not {value!r}')
    if isinstance(value, bool):
        return value
    import numpy as np

    if isinstance(value, np.bool_) or hasattr(value, "__index__") and operator.index(value) in (0, 1):
        return bool(value)
    raise TypeError(f'{name} is True, False or "full", not {value!r}')


def _expect_threads(n: Any) -> None:
    if int(n) < 0:
        raise ValueError(f"cpu_max_num_threads is a number of threads, or 0 for all cores, not {n}")


def _expect_order(values: dict[str, Any], arch: Arch) -> None:
    """Refuses ``deterministic`` for what adds in an order of its own."""
    if values["deterministic"] and arch == cuda:
        raise ValueError("deterministic=True needs arch=ti.cpu: the threads of a GPU add in any order")
    if values["deterministic"] and values["backend"] not in ("native", "interp"):
        raise ValueError(f"deterministic=True needs backend='native': {values['backend']!r} has its own order")


def _expect_opt_level(level: Any) -> None:
    if not 0 <= int(level) < 256:
        raise ValueError(f"opt_level is 0 (do not optimise) to 3, not {level}")


def _default_of(key: str, given: Any) -> Any:
    """What ``default_fp`` or ``default_ip`` can be."""
    dtype = dtype_of(given)
    if key == "default_fp" and dtype._aerogel_dtype not in ("f16", "bf16", "f32", "f64"):
        raise ValueError(f"default_fp must be a floating-point type, not {dtype}")
    if key == "default_ip" and dtype._aerogel_dtype not in ("i32", "i64"):
        raise ValueError(f"default_ip must be ti.i32 or ti.i64, not {dtype}")
    return dtype


def _require(version: str) -> None:
    """That the program needs no later interface of Taichi's than this one."""
    import aerogel
    from aerogel.errors import AerogelRuntimeError

    wanted = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", str(version))
    if wanted is None:
        raise AerogelRuntimeError(f"require_version is major.minor.patch, such as '1.7.0', not {version!r}")
    major, minor, patch = (int(part or 0) for part in wanted.groups())
    if major != aerogel.__version__[0] or (major, minor, patch) > aerogel.__version__:
        ours = ".".join(map(str, aerogel.__version__))
        raise AerogelRuntimeError(f"the program requires Taichi {version}; this is the interface of {ours}")


def _cache(values: dict[str, Any]) -> tuple[str, str, int, float] | None:
    if not values["offline_cache"]:
        return None
    return (
        os.path.abspath(values["offline_cache_file_path"] or current_cache_folder()),
        values["offline_cache_cleaning_policy"],
        int(values["offline_cache_max_size_of_files"]),
        float(values["offline_cache_cleaning_factor"]),
    )


def reset() -> None:
    """Ends the program: all fields are destroyed, and using one of them raises an error."""
    _processes.withdraw()
    for forget in at_reset:
        forget()
    _native.reset()
    _dtypes.defaults.clear()


def sync() -> None:
    """Waits for all kernels, and reports their prints and errors; on the CPU each has ended when its call returns."""
    _native.sync()


def n_threads() -> int:
    """How many threads solvers use at most: one, if results must not depend on their number."""
    return 1 if current["deterministic"] else _native.machine()[1]


class _Cfg:
    """The settings in force, as attributes; setting one changes it for what is compiled afterwards."""

    def __getattr__(self, name: str) -> Any:
        begin_as_parent()
        try:
            return current[name]
        except KeyError:
            raise AttributeError(f"there is no setting {name!r}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        change(name, value)

    def __dir__(self) -> list[str]:
        return sorted(current)


cfg = _Cfg()


for _function in (init, reset):
    _function.__aerogel_outside_kernels__ = True  # type: ignore[attr-defined]
