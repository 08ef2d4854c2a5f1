"""What a mode of `ti.init` costs: the benchmarks with and without it.

    python benches/modes.py MODE [--threads N] [--rounds N] [--json FILE] [file ...]

MODE is `bounds` (`check_out_of_bound=True`), `races` (`debug_races=True`) or `deterministic`. A row is a case of
`benches/programs`: the least time of a run by default and in the mode, in turns, and their quotient. The last row is the
geometric mean of the quotients, and the largest. Small sizes by BENCH_QUICK=1.
"""

import argparse
import importlib
import json
import os
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "programs"))
sys.path.insert(0, HERE)

import common  # noqa: E402

import aerogel as ti  # noqa: E402

MODES = {
    "bounds": {"check_out_of_bound": True},
    "races": {"debug_races": True},
    "deterministic": {"deterministic": True},
}

# Those that run kernels of fields and arrays. What the others measure is compiling, Python, or tensors, whose indices are
# checked by default.
FILES = ["b01_stream", "b02_stencil", "b03_reduce", "b04_nbody", "b05_julia", "b06_mpm", "b07_sparse", "b08_levelset"]
FILES += ["b09_cg", "b10_autodiff", "b11_life", "b12_matmul", "b13_launch", "b16_sort_scan", "b17_histogram", "b18_svd3"]
FILES += ["b19_math", "b20_sparse_mpm", "b21_quant"]


def made(program, case, settings, threads):
    """A case's functions, in a new program."""
    given = {**getattr(program, "TI_INIT", {}), **settings}
    ti.init(arch=ti.cpu, cpu_max_num_threads=threads, random_seed=1, log_level="error", offline_cache=False, **given)
    run, _, *prepare = common.IMPLS["ti"](ti, case)
    return run, prepare[0] if prepare and prepare[0] else lambda: None


def times(program, case, settings, threads, repeats):
    """Seconds of some runs, after one that compiles."""
    run, prepare = made(program, case, settings, threads)
    found = []
    for _ in range(repeats + 1):
        prepare()
        begin = time.perf_counter()
        given = run()
        found.append(given if isinstance(given, float) else time.perf_counter() - begin)
    return found[1:]


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=MODES)
    parser.add_argument("--threads", type=int, default=0, help="threads; all cores if not given")
    parser.add_argument("--rounds", type=int, default=2, help="turns of both (2), of three runs each")
    parser.add_argument("--json", metavar="FILE", help="write the rows there")
    parser.add_argument("files", nargs="*", default=FILES)
    given = parser.parse_intermixed_args()
    print(f"| benchmark | default, ms | {given.mode}, ms | cost |\n" + "|---" * 4 + "|")
    rows = []
    for file in given.files:
        common.IMPLS.clear()
        program = importlib.import_module(file)
        for case in program.CASES:
            found = ([], [])
            try:
                for _ in range(given.rounds):
                    for settings, into in zip(({}, MODES[given.mode]), found):
                        into += times(program, case, settings, given.threads, 3)
            except common.Skip:
                continue
            default, mode = (min(each) for each in found)
            rows.append((f"{file} {case}", default, mode, mode / default))
            print(f"| {file} {case} | {1e3 * default:.3g} | {1e3 * mode:.3g} | {mode / default:.2f} |", flush=True)
    costs = [row[-1] for row in rows]
    print(f"| geometric mean, and the largest | | | {statistics.geometric_mean(costs):.2f}, {max(costs):.2f} |")
    if given.json:
        with open(given.json, "w") as file:
            json.dump(rows, file)


if __name__ == "__main__":
    main()
