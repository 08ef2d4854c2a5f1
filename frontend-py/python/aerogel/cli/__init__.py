"""The command line, ``python -m aerogel``.

Misuse ends with code 2, a failure with 1, and a program that is run with its own code.
"""

from __future__ import annotations

import argparse
import sys

VIEW = """\
Runs a program and shows its fields while it runs: two axes of numbers as an image, vectors as arrows, fields of points
in the plane or in space, one axis as a curve, a number with its last values. NaN is magenta and infinity cyan; where
one appears, the program stops, and it is said which launch of which kernel wrote it.

Space pauses, n goes to the next launch, a click shows one field alone; points in space turn with the mouse. Without a
display the last frame is written to view.png."""

#: After the program they are arguments of its own, which is seldom meant.
VIEW_OPTIONS = ("--only", "--range", "--cmap", "--size", "--every", "--frames", "--out", "--no-stop", "--paused")

ENVIRONMENT = """\
environment:
  AEROGEL_<NAME>     a setting of ti.init that the program does not give, such as AEROGEL_CPU_MAX_NUM_THREADS
  AEROGEL_ARCH       where kernels run, whatever the program says: cpu, or interp for the interpreter
  AEROGEL_DEBUG      1: check indices, integer division and assertions
  AEROGEL_GUI_FRAMES the number of frames after which a window counts as closed
  AEROGEL_GUI_OUT    the picture of a window's last frame, a PNG
  AEROGEL_LOG_LEVEL  debug, info, warn or error
  AEROGEL_OFFLINE_CACHE            0: keep no compiled kernels on disk
  AEROGEL_OFFLINE_CACHE_FILE_PATH  the folder for them
  AEROGEL_PRINT      print the IR while compiling: all, changed, after:PASS or after:tensor.PASS
  AEROGEL_STOP       stop compiling: after:PASS"""


def _do_run(args: argparse.Namespace) -> None:
    from aerogel.run import run, run_module

    if args.program != "-m":
        run(args.program, args.arguments)
    elif args.arguments:
        run_module(args.arguments[0], args.arguments[1:])
    else:
        args.misuse("-m needs the name of a module")


def _do_example(args: argparse.Namespace) -> None:
    from aerogel.cli import _examples

    if args.name is None:
        if args.show or args.copy:
            args.misuse("--show and --copy need the name of an example")
        print(_examples.listing())
    elif args.show:
        print(_examples.find(args.name).read_text(encoding="utf-8"), end="")
    elif args.copy:
        print(*_examples.copy(args.name, args.copy), sep="\n")
    else:
        from aerogel.run import run

        run(str(_examples.find(args.name)), args.arguments)


def _do_inspect(args: argparse.Namespace) -> None:
    from aerogel.cli._inspect import inspect

    stage, arguments = args.stage, args.arguments
    # What follows the kernel's name is the program's; but --stage there, if it does not stand before, is the command's.
    if stage is None and arguments and arguments[0].partition("=")[0] == "--stage":
        option, equals, stage = arguments[0].partition("=")
        if not equals and len(arguments) == 1:
            args.misuse(f"argument {option}: expected one argument")
        stage, arguments = (stage, arguments[1:]) if equals else (arguments[1], arguments[2:])
    print(inspect(args.program, args.kernel, arguments, stage))


def _do_diagnose(args: argparse.Namespace) -> None:
    from aerogel.cli._diagnose import diagnose

    if not diagnose():
        raise SystemExit(1)


def _do_cache(args: argparse.Namespace) -> None:
    from aerogel.cli import _cache

    print(_cache.clean() if args.action == "clean" else _cache.describe())


def _do_explain(args: argparse.Namespace) -> None:
    from aerogel.explain import explain, titles

    if args.code is None:
        print("\n".join(f"  {code}  {title}" for code, title in titles().items()))
        return
    try:
        print(explain(args.code))
    except KeyError as e:
        raise SystemExit(e.args[0]) from None


def _do_view(args: argparse.Namespace) -> None:
    from aerogel.cli._view import options_of
    from aerogel.view import view

    own = [option for option in args.arguments if option.partition("=")[0] in VIEW_OPTIONS]
    if own:
        print(
            f"[view] {own[0]} follows {args.program}, so the program gets it: options of view precede it",
            file=sys.stderr,
        )
    view(args.program, args.arguments, options_of(args))


def _do_mpi(args: argparse.Namespace) -> None:
    from aerogel.cli import _mpi

    if args.n < 1:
        args.misuse("-n is at least 1")
    raise SystemExit(_mpi.run(args.n, args.program, args.arguments))


def _do_backends(args: argparse.Namespace) -> None:
    from aerogel.cli import _backends

    if not _backends.run(args.action, args.name, args.imports):
        raise SystemExit(1)


def _version() -> str:
    from aerogel import version

    return f"aerogel {version}"


class _Version(argparse.Action):
    """Prints the version, which is imported only when needed."""

    def __call__(self, parser: argparse.ArgumentParser, *rest: object) -> None:
        print(_version())
        parser.exit()


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        "python -m aerogel", formatter_class=raw, epilog=ENVIRONMENT, description="Kernels in Python, for all cores."
    )
    parser.add_argument("-V", "--version", action=_Version, nargs=0, help="show the version of Aerogel")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    run = commands.add_parser(
        "run",
        help="run a program written for Taichi: `import taichi` gives Aerogel",
        description="Runs a program in which `import taichi` gives Aerogel, and ends with the program's own code.",
        formatter_class=raw,
        epilog=ENVIRONMENT,
    )
    run.add_argument("program", metavar="PROGRAM.py", help="the program, or -m and the name of a module")
    run.set_defaults(do=_do_run, misuse=run.error)

    example = commands.add_parser(
        "example",
        help="list the examples, or run, show or copy one",
        description="Without a name, lists the examples. Taichi's own are found where Taichi is installed.",
    )
    example.add_argument("--show", action="store_true", help="print the source instead of running it")
    example.add_argument("--copy", metavar="DIR", help="copy the source into a folder instead of running it")
    example.add_argument("name", metavar="NAME", nargs="?")
    example.set_defaults(do=_do_example, misuse=example.error)

    inspect = commands.add_parser(
        "inspect",
        help="show the stages of a kernel: source, IR, LLVM IR, assembly",
        description="Runs a program, and then shows the kernel that it compiled last under the given name. What the "
        "program prints goes to the standard error.",
    )
    inspect.add_argument(
        "--stage",
        metavar="STAGE",
        help="one part only: source, llvm, asm, times, loops, or the IR after a pass (`list` names them)",
    )
    inspect.add_argument(
        "--loops",
        dest="stage",
        action="store_const",
        const="loops",
        help="what became of each loop: threads, vectors, accesses, and why not",
    )
    inspect.add_argument("program", metavar="PROGRAM.py")
    inspect.add_argument("kernel", metavar="KERNEL", help="its name, or Class.name for a method")
    inspect.set_defaults(do=_do_inspect, misuse=inspect.error)

    look = commands.add_parser(
        "view",
        help="run a program and show its fields while it runs",
        description=VIEW,
        formatter_class=raw,
        epilog=ENVIRONMENT,
    )
    look.add_argument("--only", metavar="NAMES", help="the fields to show, separated by commas")
    look.add_argument(
        "--range", metavar="NAME=LOW:HIGH", action="append", default=[], help="a fixed range of a field's colours"
    )
    look.add_argument(
        "--cmap", metavar="NAME", default="plasma", help="the colours: viridis, coolwarm, gray and others (plasma)"
    )
    look.add_argument("--size", metavar="WxH", default="1080x680", help="the window's size in pixels (1080x680)")
    look.add_argument("--every", metavar="N", type=int, default=0, help="a frame after every N launches, not by time")
    look.add_argument("--frames", metavar="N", type=int, default=0, help="end the program after N frames")
    look.add_argument("--out", metavar="FILE", default="", help="write the last frame, or all: frame-%%04d.png")
    look.add_argument("--no-stop", action="store_true", help="continue where a value becomes NaN or infinite")
    look.add_argument("--paused", action="store_true", help="start paused, before the second launch")
    look.add_argument("program", metavar="PROGRAM.py")
    look.set_defaults(do=_do_view, misuse=look.error)

    ranks = commands.add_parser(
        "mpi",
        help="run a program in several processes that share fields by MPI",
        description="Runs a program in N processes, which `ti.mpi.grid` lets share fields. The first one prints. An "
        "exception in one of them ends all.",
    )
    ranks.add_argument("-n", metavar="N", type=int, default=2, help="the number of processes (2)")
    ranks.add_argument("program", metavar="PROGRAM.py")
    ranks.set_defaults(do=_do_mpi, misuse=ranks.error)

    look.usage = "python -m aerogel view [OPTIONS] PROGRAM.py [ARGUMENTS ...]"
    for command in (run, example, inspect, look, ranks):
        rest = command.add_argument("arguments", metavar="ARGUMENTS", nargs=argparse.REMAINDER, help="for the program")
        # Without a program, the error names the program only.
        rest.required = False

    diagnose = commands.add_parser("diagnose", help="print what a bug report needs, and run a kernel")
    diagnose.set_defaults(do=_do_diagnose)
    cache = commands.add_parser("cache", help="show or remove the compiled kernels that are cached on disk")
    cache.add_argument(
        "action", nargs="?", choices=["show", "clean"], default="show", help="show (the default) or clean"
    )
    cache.set_defaults(do=_do_cache)
    backends = commands.add_parser(
        "backends",
        help="list the back ends of tensors, or test or time one",
        description="`list` names the back ends, `test NAME` runs the conformance suite on one, and `bench [NAME]` "
        "times small networks.",
    )
    backends.add_argument("action", choices=["list", "test", "bench"])
    backends.add_argument("name", metavar="NAME", nargs="?", help="a back end; all for bench if it is left out")
    backends.add_argument(
        "--import", metavar="MODULE", action="append", default=[], dest="imports", help="a module that registers one"
    )
    backends.set_defaults(do=_do_backends, misuse=backends.error)
    explain = commands.add_parser("explain", help="explain the code of an error, as in `explain E0203`")
    explain.add_argument("code", metavar="CODE", nargs="?", help="without it, all codes are listed")
    explain.set_defaults(do=_do_explain)
    return parser


def main(argv: list[str]) -> None:
    """The command line."""
    if argv[:2] == ["run", "-m"]:
        # What stands for a program begins with a dash.
        argv = ["run", "--", *argv[1:]]
    args = _parser().parse_args(["--help"] if argv == ["help"] else argv)
    try:
        args.do(args)
    except BrokenPipeError:
        # Whoever read the output has gone, as `head` does; nothing is left to be flushed.
        import os

        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
