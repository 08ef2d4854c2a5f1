"""Takes as many generated decisions as asked for, and compares them with NumPy's: tests/python/decisions.

python scripts/decisions.py --n 10000000 --level all             # kernels, at each level of x86-64 that runs here
python scripts/decisions.py --n 1000000 --arch interp            # in the interpreter
python scripts/decisions.py --n 100000 --arch machine            # on the simulator of GPUs
python scripts/decisions.py --what quotients --n 10000000        # of each type
python scripts/decisions.py --what tensors --n 1000000 --fast-math 0
python scripts/decisions.py --what modules --n 100 --folder out  # programs as IR, for processors without Python
"""

import argparse
import importlib
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
LEVELS = ["x86-64-v2", "x86-64-v3", "x86-64-v4"]
# Rows of a kernel: the fewer, the more kernels for as many decisions.
ROWS = 1003


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--n", type=int, default=1_000_000, help="how many decisions; of quotients, of each type")
    parser.add_argument("--what", choices=["programs", "tensors", "quotients", "modules"], default="programs")
    parser.add_argument("--arch", choices=["cpu", "interp", "machine", "cuda"], default="cpu")
    parser.add_argument("--level", choices=["native", *LEVELS, "all"], default="native")
    parser.add_argument("--kind", choices=["f16", "bf16", "f32", "f64"], action="append", help="types, all by default")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--rows", type=int, default=ROWS, help="rows of a kernel")
    parser.add_argument("--folder", type=Path, help="where modules are written")
    parser.add_argument("--fast-math", help="what ti.init takes; its default if it is not given")
    return parser.parse_args()


def main() -> int:
    """Runs the decisions, each level in a process of its own; the exit status says whether all agree."""
    options = arguments()
    if options.level == "all":
        given = [word for word in sys.argv[1:] if word not in ("--level", "all")]
        runs = [subprocess.run([sys.executable, __file__, *given, "--level", level]) for level in LEVELS]
        return max(done.returncode for done in runs)
    os.environ["AEROGEL_CPU"] = options.level
    os.environ["AEROGEL_OFFLINE_CACHE"] = "0"
    arch = options.arch
    if arch in ("machine", "cuda"):
        os.environ["AEROGEL_ARCH"] = arch = "cuda"
    if options.arch == "machine":
        os.environ["AEROGEL_CUDA"] = "machine"
    if options.fast_math is not None:
        os.environ["AEROGEL_FAST_MATH"] = options.fast_math
    sys.path.insert(0, str(ROOT / "tests" / "python"))
    formats, run = importlib.import_module("decisions.formats"), importlib.import_module("decisions.run")
    if options.what == "modules":
        importlib.import_module("decisions.modules").write(options.folder, options.n, options.seed)
        return 0
    kinds = options.kind or formats.KINDS
    begin = time.perf_counter()
    try:
        if options.what == "programs":
            tally = run.run_programs(arch, options.n, options.seed, kinds, options.rows)
        elif options.what == "tensors":
            tally = run.run_tensors(arch, options.n, options.seed, kinds, options.rows)
        else:
            tally = run.run_quotients(arch, options.n, options.seed, kinds)
    except ValueError as error:
        if "runs code for" not in str(error):
            raise
        print(f"{options.level}: this processor does not execute it")
        return 0
    seconds = time.perf_counter() - begin
    print(f"{options.what}, {options.arch}, {options.level}: {tally} ({seconds:.0f} s)", flush=True)
    return bool(tally.failures)


if __name__ == "__main__":
    sys.exit(main())
