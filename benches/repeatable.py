"""What `ti.init(deterministic=True)` costs: benchmarks with and without it, and whether their results repeat.

    python benches/repeatable.py [--threads N] [file ...]

A row is a case of `benches/programs` (by default those whose loops share what they write): the least time of a run by
default and in the mode, their quotient, and whether results on 1, 2 and 3 threads are bit-equal, by default and in the
mode. Small sizes by BENCH_QUICK=1.
"""

import argparse
import importlib
import os
import sys
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "programs"))
sys.path.insert(0, HERE)

import common  # noqa: E402

import aerogel as ti  # noqa: E402

FILES = ["b01_stream", "b02_stencil", "b03_reduce", "b04_nbody", "b06_mpm", "b07_sparse", "b09_cg", "b10_autodiff"]
FILES += ["b12_matmul", "b16_sort_scan", "b17_histogram", "b20_sparse_mpm", "b21_quant"]


def made(name, case, deterministic, threads):
    """A case's functions, in a new program."""
    ti.init(arch=ti.cpu, deterministic=deterministic, cpu_max_num_threads=threads, random_seed=1, log_level="error")
    run, check, *prepare = common.IMPLS[name](ti, case)
    return run, check, prepare[0] if prepare else lambda: None


def least_time(name, case, deterministic, threads, repeats=7):
    """Seconds of the fastest run."""
    run, _, prepare = made(name, case, deterministic, threads)
    times = []
    for _ in range(repeats + 1):
        prepare()
        begin = time.perf_counter()
        given = run()
        times.append(given if isinstance(given, float) else time.perf_counter() - begin)
    return min(times[1:])


def repeats(name, case, deterministic):
    """Whether the results of one run on 1, 2 and 3 threads are bit-equal, three times on each."""
    found = set()
    for threads in (1, 2, 3) * 3:
        run, check, prepare = made(name, case, deterministic, threads)
        prepare()
        run()
        found.add(np.asarray(check()).tobytes())
    return len(found) == 1


def main():
    """Prints the table."""
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--threads", type=int, default=0, help="threads of the times; all cores if not given")
    args.add_argument("files", nargs="*", default=FILES)
    given = args.parse_args()
    print(
        "| benchmark | default, ms | deterministic, ms | cost | repeats by default | in the mode |\n" + "|---" * 6 + "|"
    )
    for file in given.files:
        common.IMPLS.clear()
        program = importlib.import_module(file)
        for case in program.CASES:
            try:
                times = [least_time("ti", case, mode, given.threads) for mode in (False, True)]
                equal = ["yes" if repeats("ti", case, mode) else "no" for mode in (False, True)]
            except common.Skip:
                continue
            ms = " | ".join(f"{1e3 * t:.3g}" for t in times)
            print(f"| {file} {case} | {ms} | {times[1] / times[0]:.2f} | {' | '.join(equal)} |", flush=True)


if __name__ == "__main__":
    main()
