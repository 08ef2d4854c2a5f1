"""Runs what Aerogel promises at full size, and prints rows for the table of `docs/promises.md`.

    python scripts/soak.py [--only R7,R12] [--minutes 30] [--scale 0.1] [--list]
    python scripts/soak.py --mutants            breaks the sources on purpose, and expects the soak to notice

Each promise is one or more commands with sizes in the environment, most of them tests of `make test`. `--scale`
multiplies the sizes, and `--minutes` ends what takes longer, which then counts as not run at full size. The exit status
is 1 if anything fails.
"""

import argparse
import datetime
import os
import platform
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from _mutants import ROOT, Mutant, expect_committed, survivors

PYTEST = (sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider")
CARGO = ("cargo", "test", "--quiet", "--release")


@dataclass
class Run:
    """A command, and the sizes that it is given."""

    command: Sequence[str]
    sizes: dict[str, int] = field(default_factory=dict)

    def at(self, scale: float) -> dict[str, int]:
        """The sizes, scaled."""
        return {name: max(1, round(number * scale)) for name, number in self.sizes.items()}


def pytest(*tests: str, k: str = "", **sizes: int) -> Run:
    """A run of tests in Python, or of those of them that `k` chooses."""
    chosen = ("-k", k) if k else ()
    return Run((*PYTEST, *(f"tests/python/{test}" for test in tests), *chosen), sizes)


def cargo(*options: str, **sizes: int) -> Run:
    """A run of tests in Rust."""
    return Run((*CARGO, *options), sizes)


FULL = "test_full_size.py::test_"
PROMISES: dict[str, tuple[str, list[Run]]] = {
    "R1": (
        "back ends agree",
        [
            cargo("-p", "aerogel-tests", "--test", "differential", AEROGEL_N_PROGRAMS=400_000),
            pytest("test_generated_programs.py", AEROGEL_N_PYTHON_PROGRAMS=20_000),
        ],
    ),
    "R2": ("code for GPUs", [cargo("-p", "aerogel-tests", "--test", "card", AEROGEL_N_PROGRAMS=2000)]),
    "R3": ("a bad kernel is a good error", [pytest("test_odd_programs.py"), pytest("test_kernel_errors.py")]),
    "R4": (
        "the compiler never panics",
        [
            cargo("-p", "aerogel-passes", "--test", "mutated", AEROGEL_N_MUTATIONS=1_000_000),
        ],
    ),
    "R5": (
        "indices out of bounds",
        [pytest("test_promises.py", "test_checked_loops.py", k="range or loop or proved or sums_that_wrap or read")],
    ),
    "R6": (
        "defined arithmetic",
        [pytest("test_promises.py", "test_arithmetic.py", k="edge_values or integers or nan")],
    ),
    "R7": (
        "errors leave the process usable",
        [pytest(FULL + "failing_launches_among_good_ones", AEROGEL_N_FAILURES=1000)],
    ),
    "R8": ("out of memory", [pytest("test_little_memory.py"), cargo("-p", "aerogel-runtime")]),
    "R9": (
        "no leaks",
        [
            pytest(FULL + "fields_come_and_go", AEROGEL_N_FIELDS=10_000),
            pytest(FULL + "cells_come_and_go", AEROGEL_N_ROUNDS=1526),
            pytest("test_sparse_soak.py"),
        ],
    ),
    "R10": (
        "damaged and shared caches",
        [pytest("test_cache.py", AEROGEL_N_FAULTS=2000, AEROGEL_N_KILLS=200)],
    ),
    "R11": ("who may write the cache", [pytest("test_cache.py", k="others_may_write or a_link")]),
    "R12": ("threads", [pytest(FULL + "threads_launch_and_compile", AEROGEL_N_LAUNCHES=5000)]),
    "R13": ("forks", [pytest(FULL + "forks_while_kernels_run", AEROGEL_N_FORKS=200), pytest("test_processes.py")]),
    "R14": ("Ctrl-C", [pytest("test_signals.py")]),
    "R15": (
        "gradients",
        [cargo("-p", "aerogel-tests", "--test", "gradients", AEROGEL_N_PROGRAMS=5000)],
    ),
    "R16": ("races, results that repeat", [pytest("test_races.py"), pytest("test_repeatable.py")]),
    "R17": ("memory safety of the runtime", [cargo("-p", "aerogel-runtime"), cargo("-p", "aerogel-snode")]),
    "R18": (
        "what others hand over",
        [
            pytest("test_readers.py", AEROGEL_MUTATIONS=100_000),
            pytest("test_foreign_arrays.py"),
            pytest("test_arguments.py"),
        ],
    ),
}

# Each with the promise that must notice.
MUTANTS = [
    Mutant(
        "a lost update",
        "compiler/llvm/src/memory.rs",
        "|s| s.update_shared(op, place, &kind, operand),",
        "|s| s.plain_update(op, place, &kind, operand),",
        ("R12",),
    ),
    Mutant(
        "a wrong bound",
        "passes/src/bounds_check.rs",
        "Bound::Known(offset(k), offset(k) + extent as i64)",
        "Bound::Known(offset(k), offset(k) + extent as i64 + 1)",
        ("R5",),
    ),
    Mutant(
        "a check that is not proved",
        "passes/src/proved_checks/known.rs",
        "CompareOp::Lt => a.hi < b.lo,",
        "CompareOp::Lt => a.hi <= b.lo,",
        ("R5",),
    ),
    Mutant(
        "an unlocked list",
        "runtime/device/sparse.air",
        "    k: u32 = atomic_add taken, one\n    at_n_free",
        "    k: u32 = load taken\n    more: u32 = add k, one\n    store taken, more\n    at_n_free",
        ("R9",),
    ),
]


def is_noticed(mutant: Mutant) -> bool:
    """Whether the soak fails where a source is broken; the source is put back."""
    path = ROOT / mutant.file
    source = path.read_text()
    try:
        path.write_text(mutant.of(source, mutant.instead))
        built = subprocess.run(("make", "build"), cwd=ROOT, capture_output=True, text=True, check=False)
        if built.returncode != 0:
            sys.exit(f"{mutant.name} cannot be built:\n{built.stderr[-2000:]}")
        held = soak(mutant.tests, 0.05, 1800, dict(os.environ), quiet=True)
    finally:
        path.write_text(source)
    # What did not end within its time has noticed nothing.
    return any(good is False for good in held.values())


def machine() -> str:
    """The processor, and how many there are."""
    name = platform.machine()
    with open("/proc/cpuinfo") as file:
        found = re.search(r"model name\s*: (.*)", file.read())
    return f"{found[1] if found else name}, {os.cpu_count()} threads"


def summary(output: str) -> str:
    """What the tests say at their end."""
    python = re.findall(r"^(\d+ (?:passed|failed).*?) in ", output, re.M)
    rust = [int(n) for n in re.findall(r"(\d+) passed;", output)]
    return python[-1] if python else f"{sum(rust)} passed" if rust else "nothing ran"


def run(
    command: Run, scale: float, seconds: float, environment: dict[str, str], quiet: bool
) -> tuple[bool | None, str, float]:
    """Whether a command succeeded (nothing if its time was up), what it said, and for how long it ran."""
    sizes = command.at(scale)
    begin = time.monotonic()
    full = {**environment, **{name: str(number) for name, number in sizes.items()}}
    with subprocess.Popen(
        command.command,
        cwd=ROOT,
        env=full,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return None, "its time was up", time.monotonic() - begin
    taken = time.monotonic() - begin
    said = summary(output)
    # A filter that finds no test must not pass for a test.
    is_good = process.returncode == 0 and said not in ("nothing ran", "0 passed")
    if not is_good and not quiet:
        print(output[-3000:], flush=True)
    return is_good, said, taken


def soak(
    names: Sequence[str], scale: float, seconds: float, environment: dict[str, str], quiet: bool = False
) -> dict[str, bool | None]:
    """Runs promises and prints their rows, and the end of what failed unless `quiet`; which of them held."""
    held = {}
    today = datetime.date.today().isoformat()
    print(f"{today}, {machine()}, sizes times {scale:g}")
    print("| promise | command and sizes | date | result |\n|---|---|---|---|", flush=True)
    for name in names:
        what, runs = PROMISES[name]
        ends = time.monotonic() + seconds
        for command in runs:
            left = max(1.0, ends - time.monotonic())
            good, said, taken = run(command, scale, left, environment, quiet)
            before = held.get(name, True)
            held[name] = False if before is False or good is False else None if before is None else good
            sizes = " ".join(f"{key.removeprefix('AEROGEL_')}={number:_}" for key, number in command.at(scale).items())
            words = [word for word in command.command if not word.startswith("-")]
            short = " ".join(words[2:]).replace("tests/python/", "").replace("no:cacheprovider ", "")
            result = {True: said, None: "not ended: its time was up", False: f"FAILED: {said}"}[good]
            print(f"| {name} {what} | `{short}` {sizes} | {today} | {result} in {taken:.0f} s |", flush=True)
    return held


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="R7,R12", help="these promises")
    parser.add_argument("--minutes", type=float, default=600, help="for each promise (600)")
    parser.add_argument("--scale", type=float, default=1, help="of all sizes (1)")
    parser.add_argument("--list", action="store_true", help="name the promises, and end")
    parser.add_argument("--mutants", action="store_true", help="break the sources on purpose, one place after another")
    given = parser.parse_args()
    names = given.only.split(",") if given.only else list(PROMISES)
    for name in names:
        if name not in PROMISES:
            parser.error(f"no promise `{name}`; there are {', '.join(PROMISES)}")
    if given.list:
        for name in names:
            print(f"{name}  {PROMISES[name][0]}")
        return 0
    environment = dict(os.environ)
    if given.mutants:
        expect_committed(*(ROOT / mutant.file for mutant in MUTANTS))
        try:
            return 1 if survivors(MUTANTS, (), is_noticed) else 0
        finally:
            subprocess.run(("make", "build"), cwd=ROOT, check=True)
    held = soak(names, given.scale, 60 * given.minutes, environment)
    broken = [name for name, good in held.items() if not good]
    print(
        f"{len(held) - len(broken)} of {len(held)} hold at these sizes"
        + (f"; not {', '.join(broken)}" if broken else "")
    )
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
