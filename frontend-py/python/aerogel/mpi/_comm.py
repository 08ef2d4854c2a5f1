"""The processes of an MPI program. ``mpi4py`` is imported only if MPI has started this one."""

from __future__ import annotations

import atexit
import functools
import hashlib
import os
import sys
import threading
from types import TracebackType
from typing import Any

from aerogel.errors import AerogelRuntimeError

#: What the launchers of MPI set for each process.
_LAUNCHED = ("AEROGEL_MPI", "PMI_SIZE", "PMIX_RANK", "OMPI_COMM_WORLD_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_SIZE")
#: What to do where a package is missing.
EXTRA = "install it by `pip install aerogel[mpi]`"

# How many operations of all processes there were.
_operations = 0


def _was_launched() -> bool:
    return "mpi4py.MPI" in sys.modules or any(name in os.environ for name in _LAUNCHED)


@functools.cache
def mpi() -> Any:
    """The module ``mpi4py.MPI``.

    Raises:
        ModuleNotFoundError: It is not installed, or finds no library of MPI.
    """
    try:
        from mpi4py import MPI
    # The second one is mpi4py's where it finds no library.
    except (ImportError, RuntimeError) as missing:
        raise ModuleNotFoundError(
            f"MPI has started this program, but the package `mpi4py` is missing or finds no library of MPI: {EXTRA}",
            name="mpi4py",
        ) from missing
    return MPI


@functools.cache
def world() -> Any:
    """The communicator of all processes, or nothing if there is one process only."""
    if not _was_launched() or mpi().COMM_WORLD.size == 1:
        return None
    # A duplicate: messages of the program itself do not meet those of fields.
    comm = mpi().COMM_WORLD.Dup()
    sys.excepthook = _end_all
    atexit.register(_at_exit)
    return comm


def rank() -> int:
    """The number of this process among all that run the program: 0 without MPI."""
    comm = world()
    return 0 if comm is None else comm.rank


def size() -> int:
    """How many processes run the program: 1 without MPI."""
    comm = world()
    return 1 if comm is None else comm.size


def agree(what: str) -> None:
    """Checks that all processes come to the same operation; whoever waits for others calls it first.

    Raises:
        AerogelRuntimeError: They come to different ones; it names those of this process and of another one.
    """
    global _operations
    comm = world()
    if comm is None:
        return
    import numpy as np

    _operations += 1
    label = f"{_operations}: {what}"
    digest = int.from_bytes(hashlib.blake2b(label.encode(), digest_size=7).digest(), "little")
    both = np.array([digest, -digest], np.int64)
    comm.Allreduce(mpi().IN_PLACE, both, op=mpi().MIN)
    if both[0] != -both[1]:
        labels = comm.allgather(label)
        other = next(k for k, text in enumerate(labels) if text != label)
        raise AerogelRuntimeError(
            f"the ranks do different things: rank {comm.rank} has come to operation {label}, rank {other} to operation "
            f"{labels[other]}; every rank must launch the same kernels and access the same elements"
        )


def _at_exit() -> None:
    # Others would wait for this process for ever. After an exception there is no point in it: `_end_all` ends them.
    try:
        agree("the end of the program")
    except AerogelRuntimeError:
        _end_all(*sys.exc_info())


def _end_all(kind: Any, value: Any, traceback: TracebackType | None) -> None:
    """Prints an exception with the number of the process, and ends all processes."""
    import traceback as printer

    comm = world()
    text = "".join(printer.format_exception(kind, value, traceback))
    # In one piece, so that those of several processes do not mix.
    print(f"rank {comm.rank} of {comm.size} ends the program:\n{text}", end="", file=errors(), flush=True)
    sys.stdout.flush()
    comm.Abort(1)


#: Where exceptions are printed if the standard error of this process leads nowhere.
_errors: Any = None


def errors() -> Any:
    """The file that exceptions are printed to."""
    return _errors or sys.stderr


def silence() -> None:
    """Sends what this process prints nowhere, except exceptions; what a crash prints comes through as well."""
    global _errors
    _errors = sys.stderr
    sys.stdout.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    sys.stderr = os.fdopen(nowhere, "w")
    threading.excepthook = _of_thread


def _of_thread(args: threading.ExceptHookArgs) -> None:
    """Prints the exception of a thread."""
    import traceback

    text = "".join(traceback.format_exception(args.exc_type, args.exc_value, args.exc_traceback))
    print(f"rank {rank()} of {size()}, a thread:\n{text}", end="", file=errors(), flush=True)
