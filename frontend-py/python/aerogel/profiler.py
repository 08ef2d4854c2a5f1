"""``ti.profiler``: how often each kernel ran, how long it took, and how long compiling took.

With ``ti.init(kernel_profiler=True)`` the time of each launch is measured, all its tasks together; on a GPU by
events of the device, without the time of copying and waiting. Kernels of tensor expressions are measured too.
Steps of compiling are always counted. ``ti.init`` resets both.
"""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from aerogel import _native
from aerogel._config import cfg

# Programs import from modules of Taichi's package of this name.
__path__: list[str] = []


@dataclass
class KernelProfilerQueryResult:
    """The launches of one kernel: how many, and the shortest, longest and mean time in milliseconds."""

    counter: int
    min: float
    max: float
    avg: float


def _launches() -> list[tuple[str, tuple[int, float, float, float]]]:
    """Name, and launches, total, shortest and longest time in seconds; the longest total first."""
    return sorted(_native.profile(), key=lambda row: -row[1][1])


def _table(title: str, columns: str, rows: Iterable[str], foot: Iterable[str]) -> None:
    rows, foot = list(rows), list(foot)
    width = max(map(len, (title, columns, *rows, *foot)))
    parts = ["=" * width, title, "=" * width, columns, "-" * width, *rows, "-" * width, *foot, "=" * width]
    sys.stdout.write("\n".join(parts) + "\n")


def print_kernel_profiler_info(mode: str = "count") -> None:
    """Prints the times of kernels.

    Args:
        mode: ``"count"`` for a row for each kernel, the longest total first; ``"trace"`` for a row for each launch.

    Raises:
        ValueError: There is no such mode.
    """
    if mode not in ("count", "trace"):
        raise ValueError(f"mode must be 'count' or 'trace', not {mode!r}")
    _say_if_off()
    if mode == "trace":
        events, dropped = _native.profile_events(False)
        launches = [event for event in events if event[1] == "launch"]
        start = min((begin for _, _, _, begin, _ in launches), default=0.0)
        rows = [
            f"[ {1e3 * (begin - start):10.3f} ms | {1e3 * took:9.3f} ms ] {name}"
            for name, _, _, begin, took in launches
        ]
        foot = [f"Number of records:  {len(rows)}"] + [f"Dropped before:  {dropped}"] * bool(dropped)
        _table("Kernel Profiler(trace, default)", "[    start.time | kernel.time  ] Kernel name", rows, foot)
        return
    rows = []
    all_time = get_kernel_profiler_total_time()
    for name, (n, total, low, high) in _launches():
        part = 100 * total / all_time if all_time else 0.0
        times = f"{1e3 * low:9.3f} {1e3 * total / n:9.3f} {1e3 * high:9.3f} ms"
        rows.append(f"[{part:6.2f}% {total:7.3f} s {n:6}x |{times}] {name}")
    foot = [f"[100.00%] Total execution time: {all_time:7.3f} s   number of results: {len(rows)}"]
    head = "[      %     total   count |      min       avg       max   ] Kernel name"
    _table("Kernel Profiler(count, default)", head, rows, foot)


def _say_if_off() -> None:
    if not getattr(cfg, "kernel_profiler", False):
        sys.stdout.write("kernels are timed after ti.init(kernel_profiler=True)\n")


def query_kernel_profiler_info(name: str) -> KernelProfilerQueryResult:
    """The launches of the kernel ``name`` in all regions, or those of a region; a counter of 0 if there are none.

    A region in another one is named with it: ``step/forward``.

    A kernel of tensor expressions is called by file and line: ``train.py:12``.
    """
    found = [
        timing
        for row, timing in _native.profile()
        if row == name or row.startswith((f"{name}: ", f"{name}/")) or row.endswith(f": {name}")
    ]
    calls, total = sum(timing[0] for timing in found), sum(timing[1] for timing in found)
    low, high = min((timing[2] for timing in found), default=0.0), max((timing[3] for timing in found), default=0.0)
    return KernelProfilerQueryResult(calls, low * 1e3, high * 1e3, total * 1e3 / calls if calls else 0.0)


class region:
    """A context that names its kernels: those launched in it, and those of tensor expressions written in it.

    The profiler's tables and traces have ``forward: train.py:12`` for a kernel in the region ``forward``, and
    ``step/forward: fill`` for one in a region in a region. The text of a program has a comment where a region begins.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> @ti.program
    ... def step(x):
    ...     with ti.profiler.region("forward"):
    ...         return x * 2
    >>> [line for line in step.lower(ti.tensor.ones(3)).text.splitlines() if line.startswith(";")]
    ['; forward', '; results']

    A region belongs to the thread that is in it. Statements of a program are in the region in which they were traced,
    whoever calls the program.

    Args:
        name: The name, without slashes. Names are stored until the process ends: use few.

    Raises:
        ValueError: If the name is empty, or has a slash, a colon with a space, or characters that cannot be printed.
    """

    def __init__(self, name: str) -> None:
        self._name = _region_name(name)

    def __enter__(self) -> region:
        self._around = _native.enter_region(self._name)
        return self

    def __exit__(self, *exc: Any) -> None:
        # Generators may end in another order than they began.
        _native.return_to_region(self._around)


def _region_name(name: str) -> str:
    if not isinstance(name, str):
        raise TypeError(f"a region's name is a string, not {type(name).__name__}")
    if not name or not name.isprintable() or "/" in name or ": " in name:
        raise ValueError(
            f"a region's name has printable characters, and neither a slash nor a colon with a space, unlike {name!r}"
        )
    return name


def get_kernel_profiler_total_time() -> float:
    """The time spent in all kernels, in seconds."""
    return sum((total for _, (_, total, _, _) in _native.profile()), 0.0)


def clear_kernel_profiler_info() -> None:
    """Forgets all launches so far."""
    _native.clear_profile()


def export_kernel_profiler_csv(path: str | os.PathLike[str]) -> None:
    """Writes a table of kernels: name, launches, and total, shortest, mean and longest time in milliseconds.

    Raises:
        OSError: The file cannot be written; then there is none.
    """
    from aerogel.tools._files import write_whole

    text = io.StringIO()
    rows = csv.writer(text)
    rows.writerow(["kernel", "count", "total_ms", "min_ms", "avg_ms", "max_ms"])
    for name, (n, total, low, high) in _launches():
        rows.writerow([name, n, *(f"{1e3 * t:.6f}" for t in (total, low, total / n, high))])
    write_whole(path, text.getvalue().encode())


def export_chrome_trace(path: str | os.PathLike[str]) -> None:
    """Writes a timeline of launches as a trace for ``chrome://tracing`` or https://ui.perfetto.dev.

    Each thread is a lane. Launches, and kernels being compiled, are bars in those of Python's threads, and in all what
    they did of a launch's tasks: ``step.0`` is the first loop of the kernel ``step``, or the code before it. The
    last 262144 bars of launches are stored, and as many of tasks.

    Raises:
        OSError: The file cannot be written; then there is none.
    """
    from aerogel.tools._files import write_whole

    events, dropped = _native.profile_events(False)
    tasks, dropped_tasks = _native.profile_events(True)
    events, dropped = [*events, *tasks], dropped + dropped_tasks
    process = os.getpid()
    trace: list[dict[str, Any]] = [
        {"ph": "M", "pid": process, "name": "process_name", "args": {"name": "aerogel"}},
        *(
            {"ph": "M", "pid": process, "tid": t, "name": "thread_name", "args": {"name": f"thread {t}"}}
            for t in sorted({thread for _, _, thread, _, _ in events})
        ),
    ]
    # Times are in microseconds.
    trace += [
        {"ph": "X", "pid": process, "tid": thread, "name": name, "cat": kind, "ts": 1e6 * begin, "dur": 1e6 * took}
        for name, kind, thread, begin, took in events
    ]
    whole = {"traceEvents": trace, "displayTimeUnit": "ms", "otherData": {"dropped": dropped}}
    write_whole(path, json.dumps(whole).encode())


def print_scoped_profiler_info() -> None:
    """Prints how long the steps of compiling each kernel took, the longest first."""
    kernels: dict[str, list[tuple[str, int, float]]] = {}
    for kernel, step, n, seconds in _native.profile_steps():
        kernels.setdefault(kernel, []).append((step, n, seconds))
    rows = []
    totals = {name: sum(seconds for _, _, seconds in steps) for name, steps in kernels.items()}
    for name, steps in sorted(kernels.items(), key=lambda item: -totals[item[0]]):
        rows.append(f"{1e3 * totals[name]:10.3f} ms           {name}")
        for step, n, seconds in sorted(steps, key=lambda row: -row[2]):
            part = 100 * seconds / totals[name] if totals[name] else 0.0
            rows.append(f"    {1e3 * seconds:10.3f} ms {part:6.2f}%  {step} [{n} x {1e3 * seconds / n:.3f} ms]")
    foot = [f"{1e3 * sum(totals.values()):10.3f} ms           all {len(kernels)} kernels"]
    _table("Scoped Profiler(compiling)", "      time", rows, foot)


def clear_scoped_profiler_info() -> None:
    """Forgets the times of compiling so far."""
    _native.clear_profile_steps()


def print_memory_profiler_info() -> None:
    """Prints how many bytes fields and arrays take, and the memory of the sparse nodes of all layouts."""
    from aerogel.data.snode import root

    sys.stdout.write(f"{_native.live_bytes()} bytes in fields and arrays\n")
    if stats := root.stats():
        sys.stdout.write(f"{stats}\n")


class CuptiMetric:
    """A counter of NVIDIA's GPUs; it exists for programs that name one.

    Args:
        name: CUPTI's name of it.
        header: The title of its column.
        val_format: How its values are written.
        scale: The factor of the values.
    """

    def __init__(
        self, name: str = "", header: str = "unnamed_header", val_format: str = "     {:8.0f} ", scale: float = 1.0
    ) -> None:
        self.name, self.header, self.val_format, self.scale = name, header, val_format, scale


def set_kernel_profiler_toolkit(toolkit_name: str = "default") -> bool:
    """Chooses the tool that measures kernels: there is the clock, ``"default"``.

    Returns:
        Whether there is such a toolkit: not ``"cupti"``, which counts on GPUs.

    Raises:
        ValueError: The name is neither of these.
    """
    if toolkit_name not in ("default", "cupti"):
        raise ValueError(f"toolkit_name must be 'default' or 'cupti', not {toolkit_name!r}")
    return toolkit_name == "default"


def get_predefined_cupti_metrics(name: str = "") -> list[CuptiMetric]:
    """The metrics of CUPTI under a name: none, since nothing runs on GPUs."""
    return []


def set_kernel_profiler_metrics(metric_list: Any = ()) -> None:
    """Chooses CUPTI's metrics, of which none is measured on a CPU."""


class collect_kernel_profiler_metrics:
    """A context in which CUPTI's metrics are collected, of which none is measured on a CPU."""

    def __init__(self, metric_list: Any = ()) -> None:
        self.metric_list = metric_list

    def __enter__(self) -> collect_kernel_profiler_metrics:
        return self

    def __exit__(self, *exc: Any) -> None: ...


__all__ = [
    "CuptiMetric",
    "KernelProfilerQueryResult",
    "clear_kernel_profiler_info",
    "clear_scoped_profiler_info",
    "collect_kernel_profiler_metrics",
    "export_chrome_trace",
    "export_kernel_profiler_csv",
    "get_kernel_profiler_total_time",
    "get_predefined_cupti_metrics",
    "print_kernel_profiler_info",
    "print_memory_profiler_info",
    "print_scoped_profiler_info",
    "query_kernel_profiler_info",
    "region",
    "set_kernel_profiler_metrics",
    "set_kernel_profiler_toolkit",
]
