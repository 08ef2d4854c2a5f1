"""``python -m aerogel diagnose``: what a bug report needs to say."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
import textwrap
import time

import aerogel as ti
from aerogel import _config, _native
from aerogel.cli import _cache


def _version_of(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _show(name: str, value: object) -> None:
    lines = textwrap.wrap(str(value), 96, break_on_hyphens=False) or [""]
    print(f"{name:20}" + ("\n" + " " * 20).join(lines))


def _smoke_test() -> str:
    """Compiles and runs a kernel; says how long that took.

    Raises:
        ArithmeticError: The kernel has computed something wrong.
    """
    n = 1000
    squares = ti.field(ti.i32, n)

    @ti.kernel
    def total() -> ti.i32:
        for i in squares:
            squares[i] = i * i
        s = 0
        for i in squares:
            s += squares[i]
        return s

    start = time.perf_counter()
    got, want = total(), sum(i * i for i in range(n))
    seconds = time.perf_counter() - start
    if got != want:
        raise ArithmeticError(f"the sum of squares is {want}, not {got}")
    return f"passed in {1e3 * seconds:.0f} ms"


def diagnose() -> bool:
    """Prints versions, machine, settings and caches, and tries a kernel.

    Returns:
        Whether the kernel worked.
    """
    _show("aerogel", f"{ti.version}, interface of Taichi {'.'.join(map(str, ti.__version__))}")
    _show("package", os.path.dirname(ti.__file__))
    _show("python", f"{platform.python_version()} {sys.executable}")
    _show("system", platform.platform())
    for package in ("numpy", "taichi"):
        _show(package, _version_of(package))
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:
        cores = os.cpu_count() or 1
    _show("cores", f"{cores} of {os.cpu_count()} may be used")
    variables = {k: v for k, v in sorted(os.environ.items()) if k.startswith(("AEROGEL_", "TI_"))}
    _show("environment", ", ".join(f"{k}={v}" for k, v in variables.items()) or "no AEROGEL_* or TI_* variables")
    _show("cache", _cache.describe())
    try:
        ti.init(arch=ti.cpu, verbose=False, offline_cache=False)
        machine, n_threads = _native.machine()
        for name, value in machine:
            # LLVM also lists what a processor lacks.
            _show(name, " ".join(f for f in value.split(",") if f[:1] == "+") if name == "features" else value)
        _show("threads", n_threads)
        _show("settings", ", ".join(f"{name}={value}" for name, value in _config.current.items()))
        _show("a kernel", _smoke_test())
    except Exception as e:
        _show("a kernel", "FAILED")
        print(f"{type(e).__name__}: {e}", file=sys.stderr)
        return False
    return True
