"""``python -m aerogel inspect``: a kernel through all stages of the compiler."""

from __future__ import annotations

import contextlib
import gc
import os
import sys

from aerogel.errors import AerogelRuntimeError
from aerogel.kernel import Inspection, Kernel
from aerogel.run import run


def _kernels(name: str) -> tuple[list[Kernel], list[str]]:
    """The living kernels of a name, and the names of all outside this package."""
    named, names = [], set()
    for found in gc.get_objects():
        if isinstance(found, Kernel) and not found.__module__.startswith("aerogel"):
            qualified = found.__wrapped__.__qualname__
            names.add(qualified.rpartition("<locals>.")[2])
            if qualified == name or qualified.endswith("." + name):
                named.append(found)
    return named, sorted(names)


def _part(inspection: Inspection, stage: str | None) -> str:
    """One part of what is known of a kernel, or all."""
    stages = inspection["stages"]
    if stage is None:
        return repr(inspection)
    if stage == "list":
        return "\n".join(["source", *stages, "llvm", "asm", "times", "loops"])
    if stage == "times":
        return "\n".join(f"{1e3 * seconds:9.3f} ms  {name}" for name, seconds in inspection["times"].items())
    text = inspection[stage] if stage in ("source", "llvm", "asm") else stages.get(stage)
    if text is None:
        known = ", ".join(["source", *stages, "llvm", "asm", "times", "loops"])
        raise SystemExit(f"this kernel has no stage {stage}; its stages are {known}")
    return text.rstrip()


def inspect(program: str, name: str, arguments: list[str], stage: str | None) -> str:
    """Runs a program and shows a kernel of it.

    Args:
        program: The file of the program.
        name: The name of the kernel, or ``Class.name``.
        arguments: What the program gets.
        stage: A part of it, ``"list"`` for the names of the parts, ``"loops"`` for a report on its loops, ``None``
            for all parts but the report.

    Raises:
        SystemExit: The program failed, or it has no such kernel or stage.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr):
            run(program, arguments)
    except KeyboardInterrupt:
        # A simulation that runs until its window is closed has compiled its kernels by now.
        pass
    except SystemExit as e:
        if e.code not in (None, 0):
            raise
    named, names = _kernels(name)
    if not named:
        known = f"; it has {', '.join(names)}" if names else ": it has none at all"
        raise SystemExit(f"{os.path.basename(program)} has no kernel {name}{known}")
    for found in named:
        with contextlib.suppress(AerogelRuntimeError):
            return repr(found.inspect(loops=True)) if stage == "loops" else _part(found.inspect(), stage)
    raise SystemExit(f"{os.path.basename(program)} never called the kernel {name}")
