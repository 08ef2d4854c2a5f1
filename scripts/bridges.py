"""Gives kernels arrays of every kind and prints what comes of it: a value that is right, an error, or `SILENT`.

python scripts/bridges.py                       # all libraries that are installed
python scripts/bridges.py --library torch --kind strided --action write
python scripts/bridges.py --leak 2000           # as many calls of each: memory must not grow

The exit status is 1 if anything is silently wrong, crashes or leaks. `scripts/bridges.sh` runs it with several versions
of the libraries.
"""

import argparse
import importlib
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main() -> int:
    """Fills the table and prints it."""
    sys.path.insert(0, str(ROOT / "tests" / "python"))
    case, run = importlib.import_module("bridges.case"), importlib.import_module("bridges.run")
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--library", choices=list(case.LIBRARIES), action="append", help="all by default")
    parser.add_argument("--kind", default="", help="kinds whose names contain this")
    parser.add_argument("--action", choices=list(run.ACTIONS), action="append", help="all by default")
    parser.add_argument("--arch", choices=["cpu", "interp"], default="cpu")
    parser.add_argument("--leak", type=int, default=0, metavar="N", help="call each N times and look at the memory")
    options = parser.parse_args()
    for missing in case.register(options.library or list(case.LIBRARIES)):
        print(f"{missing} is not installed", file=sys.stderr)
    actions = options.action or list(run.ACTIONS)
    kinds = [kind for kind in case.KINDS if options.kind in kind]
    found = []
    for cell in run.cells(kinds, actions, options.arch, options.leak):
        found.append(cell)
        print(f"\r{len(found)} of {len(kinds) * len(actions)} ", end="", file=sys.stderr, flush=True)
    print("\r", end="", file=sys.stderr)
    print(run.table(found, actions) if found else "there is no such kind")
    return int(not found or any(cell.outcome in ("SILENT", "CRASH", "LEAK") for cell in found))


if __name__ == "__main__":
    sys.exit(main())
