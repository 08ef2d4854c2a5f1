"""``ti.profiler``: how often each kernel ran, and how long it took.

Times are measured around the call of a kernel, when ``ti.init(kernel_profiler=True)`` asks for it.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from aerogel import _native


def _calls() -> dict[str, tuple[int, float, float, float]]:
    return dict(_native.profile())


@dataclass
class KernelProfilerQueryResult:
    """The calls of one kernel: how many, and the shortest, longest and mean time in milliseconds."""

    counter: int
    min: float
    max: float
    avg: float


def print_kernel_profiler_info(mode: str = "count") -> None:
    """Prints calls, total and mean time of each kernel, the longest total first."""
    rows = sorted(_calls().items(), key=lambda r: -r[1][1])
    sys.stdout.write(f"{'kernel':32}{'calls':>8}{'total ms':>12}{'mean ms':>12}\n")
    for name, (calls, total, _, _) in rows:
        sys.stdout.write(f"{name:32}{calls:8}{total * 1e3:12.3f}{total * 1e3 / calls:12.4f}\n")


def query_kernel_profiler_info(name: str) -> KernelProfilerQueryResult:
    """The calls of the kernel ``name``."""
    calls, total, low, high = _calls().get(name, (0, 0.0, 0.0, 0.0))
    return KernelProfilerQueryResult(calls, low * 1e3, high * 1e3, total * 1e3 / calls if calls else 0.0)


def get_kernel_profiler_total_time() -> float:
    """The time spent in all kernels, in seconds."""
    return sum(total for _, total, _, _ in _calls().values())


def clear_kernel_profiler_info() -> None:
    """Forgets all calls so far."""
    _native.clear_profile()


def print_scoped_profiler_info() -> None:
    """Prints how long the steps of compiling each kernel took."""
    print_kernel_profiler_info()


def clear_scoped_profiler_info() -> None:
    """Forgets all times so far."""
    _native.clear_profile()


def print_memory_profiler_info() -> None:
    """Prints how many bytes fields and arrays take, and what the sparse nodes of all layouts hold."""
    from aerogel.snode import root

    sys.stdout.write(f"{_native.live_bytes()} bytes in fields and arrays\n")
    if stats := root.stats():
        sys.stdout.write(f"{stats}\n")
