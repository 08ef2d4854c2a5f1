#!/usr/bin/env python3
"""Looks for cliffs: makes many spellings of one computation and times them beside its best spelling.

  variants.py --list
  variants.py --only stencil5,clamped --limit 1.5 --json out.json
  variants.py --only row_sums --axis adding                            what one axis of spelling costs
  variants.py --peer taichi --peer-python /path/to/python              each spelling beside Taichi, too

Every result is compared with a reference in NumPy; a wrong one is listed before the slow ones.
"""

import argparse
import difflib
import json
import os
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from variants import load, measure, spellings  # noqa: E402


class Parser(argparse.ArgumentParser):
    """An argument parser whose error at an unknown option names those that exist."""

    def options(self):
        """All options."""
        return sorted(option for action in self._actions for option in action.option_strings if option.startswith("--"))


def arguments(argv):
    """The options, checked."""
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    option = parser.add_argument
    option("--list", action="store_true", help="name computations and their axes, and end")
    option("--only", metavar="COMPUTATION", help="computations, with commas between them (all)")
    option("--axis", metavar="NAME", help="vary this axis alone, around random choices of the others")
    option("--limit", type=float, default=1.5, help="report spellings slower than the best by this ratio (1.5)")
    option("--seed", type=int, default=0, help="of the choice of spellings (0)")
    option("--count", type=int, default=100, help="spellings of each computation (100)")
    option("--rounds", type=int, default=5, help="samples of each spelling (5)")
    option("--threads", type=int, default=1, help="threads of each library (1)")
    option("--small", action="store_true", help="small sizes: results only")
    option("--module", default="aerogel", help="the library to look at (aerogel)")
    option("--peer", metavar="MODULE", help="a library to run each spelling with, too, such as taichi")
    option("--peer-python", metavar="PATH", help="its Python (the variable VARIANTS_PEER_PYTHON, or this one)")
    option("--json", metavar="FILE", help="write all records there")
    option("--sources", type=int, default=10, help="slow spellings whose source is printed (10)")
    args, unknown = parser.parse_known_args(argv)
    if unknown:
        parser.error(f"no option `{unknown[0]}`; there are {', '.join(parser.options())}")
    computations = load()
    names = args.only.split(",") if args.only else list(computations)
    for name in names:
        if name not in computations:
            near = difflib.get_close_matches(name, computations, 1)
            hint = f" (did you mean `{near[0]}`?)" if near else ""
            parser.error(f"no computation `{name}`{hint}; there are {', '.join(computations)}")
    args.computations = [computations[name] for name in names]
    if args.axis:
        args.computations = [comp for comp in args.computations if args.axis in comp.axes]
        if not args.computations:
            axes = sorted({axis for name in names for axis in computations[name].axes})
            parser.error(f"no axis `{args.axis}`; there are {', '.join(axes)}")
    for name, least in (("count", 1), ("rounds", 1), ("threads", 1), ("sources", 0)):
        if getattr(args, name) < least:
            parser.error(f"--{name} is {getattr(args, name)}; it must be at least {least}")
    return args


def says(choice, comp):
    """A choice in words: what differs from the first value of each axis."""
    words = [f"{axis}={value}" for axis, value in choice.items() if value != comp.axes[axis][0]]
    return " ".join(words) or "first of all axes"


def kernels_of(source):
    """The source without its harness."""
    return "\n".join("    " + line for line in source.split("\ndef result():")[0].splitlines() if line.strip())


def report(comp, records, args):
    """Prints what one computation has shown."""
    failures = [record for record in records if "failure" in record]
    wrong = [record for record in records if record.get("wrong")]
    timed = sorted((record for record in records if record.get("ratio")), key=lambda record: -record["ratio"])
    slow = [record for record in timed if record["ratio"] > args.limit]
    for best in (record for record in timed if record["best"]):
        group = " ".join(best["group"])
        print(f"  best {group}: {best['seconds'] * 1e3:.3f} ms, {says(best['choice'], comp)}")
    counts = f"{len(slow)} above {args.limit} times the best, {len(wrong)} wrong, {len(failures)} failed"
    print(f"  {len(records)} spellings, {counts}")
    for record in wrong:
        print(f"  WRONG by {record['error']:.2g}: {says(record['choice'], comp)}")
        print(kernels_of(record["source"]))
    for record in failures:
        print(f"  FAILED: {says(record['choice'], comp)}: {record['failure']}")
    for record in slow:
        peer = record.get("peer", {}).get("ratio")
        beside = f"  x{args.peer} {peer:.2f}" if peer else ""
        print(f"  {record['ratio']:7.2f}  {record['seconds'] * 1e3:9.3f} ms{beside}  {says(record['choice'], comp)}")
    for record in slow[: args.sources]:
        print(f"  -- {record['ratio']:.2f} times the best: {says(record['choice'], comp)}")
        print(kernels_of(record["source"]))
    behind = [record for record in timed if record.get("peer", {}).get("ratio", 0) > 1.15]
    for record in sorted(behind, key=lambda record: -record["peer"]["ratio"]):
        beside = f"slower than {args.peer} by {record['peer']['ratio']:.2f}"
        print(f"  {beside}: {record['seconds'] * 1e3:.3f} ms, {says(record['choice'], comp)}")
    compiled = sorted(record["compile_s"] for record in records if "compile_s" in record)
    if compiled:
        middle = compiled[len(compiled) // 2]
        print(f"  compile time: median {middle * 1e3:.0f} ms, longest {compiled[-1] * 1e3:.0f} ms")
        for record in records:
            if record.get("compile_s", 0) > max(4 * middle, 0.3):
                print(f"    {record['compile_s'] * 1e3:.0f} ms: {says(record['choice'], comp)}")
    print("  median ratio of axis values:")
    for median, least, count, axis, value in measure.by_axis(records):
        if median > args.limit:
            print(f"    {median:6.2f} (least {least:.2f}, of {count})  {axis}={value}")


def main(argv=None):
    """Runs the chosen computations. The exit status is 1 if a result is wrong."""
    args = arguments(sys.argv[1:] if argv is None else argv)
    if args.list:
        for comp in args.computations:
            print(comp.name)
            for axis, values in comp.axes.items():
                print(f"    {axis}: {' '.join(values)}")
        return 0
    records = []
    with tempfile.TemporaryDirectory() as folder, open(os.path.join(folder, "log"), "w") as log:
        workers = [measure.Worker(sys.executable, args.module, args.threads, log)]
        if args.peer:
            python = measure.interpreter(args.peer_python)
            if measure.has(python, args.peer):
                workers.append(measure.Worker(python, args.peer, args.threads, log))
            else:
                print(f"{args.peer} is not installed for {python}: running without it")
        for comp in args.computations:
            begin = time.perf_counter()
            sizes = dict(comp.small if args.small else comp.full)
            chosen = spellings(comp, sizes, args.count, args.seed, args.axis)
            print(f"{comp.name}: {comp.spell.__doc__}", flush=True)
            found = measure.measure(comp, sizes, chosen, workers, args.rounds, args.limit, folder)
            report(comp, found, args)
            print(f"  {time.perf_counter() - begin:.0f} s", flush=True)
            records += found
            for worker in workers:
                worker.close()
    if args.json:
        with open(args.json, "w") as file:
            json.dump(records, file, indent=1)
    return 1 if any(record.get("wrong") for record in records) else 0


if __name__ == "__main__":
    sys.exit(main())
