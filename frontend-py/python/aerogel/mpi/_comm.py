"""The processes of an MPI program. ``mpi4py`` is imported only if MPI has started this one."""

from __future__ import annotations

import atexit
import functools
import hashlib
import os
import pickle
import sys
import threading
from collections.abc import Callable
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


@functools.lru_cache(maxsize=1024)
def _digest(what: str) -> int:
    return int.from_bytes(hashlib.blake2b(what.encode(), digest_size=7).digest(), "little")


class _Check:
    """Whether all processes come to the same operation, on its way."""

    def __init__(self, what: str) -> None:
        import numpy as np

        global _operations
        _operations += 1
        self._label = f"{_operations}: {what}"
        # Another number of the operation is another digest.
        digest = (_digest(what) + _operations) % (1 << 56)
        self._both = np.array([digest, -digest], np.int64)
        self.request = world().Iallreduce(mpi().IN_PLACE, self._both, op=mpi().MIN)

    def judge(self) -> None:
        """Raises an error if they come to different ones; the request has been completed."""
        if self._both[0] == -self._both[1]:
            return
        comm = world()
        labels = comm.allgather(self._label)
        other = next(k for k, text in enumerate(labels) if text != self._label)
        raise AerogelRuntimeError(
            f"the ranks reach different operations: rank {comm.rank} has reached operation {self._label}, rank {other} "
            f"operation {labels[other]}; every rank must launch the same kernels and access the same elements"
        )


# The check whose result this process has not looked at.
_pending: _Check | None = None


def agree(what: str) -> None:
    """Checks that all processes come to the same operation; whoever calls a collective operation of MPI calls it first.

    Raises:
        AerogelRuntimeError: They come to different ones; it names those of this process and of another one.
    """
    begin_to_agree(what)
    _settle()


def begin_to_agree(what: str) -> None:
    """Begins the same check before messages that :func:`wait` waits for.

    If the messages arrive first, the result is looked at by the next operation: a step of a program does not wait until
    all processes have come to it.

    Raises:
        AerogelRuntimeError: Processes have come to different operations before this one.
    """
    global _pending
    if world() is None:
        return
    _settle()
    _pending = _Check(what)


def wait(messages: list[Any]) -> None:
    """Waits for messages, or until it is known that a process does something else and will not send one.

    Raises:
        AerogelRuntimeError: A process has come to another operation.
    """
    global _pending
    requests = mpi().Request
    try:
        while messages and _pending is not None:
            k = requests.Waitany([*messages, _pending.request])
            if k < len(messages):
                del messages[k]
            else:
                check, _pending = _pending, None
                check.judge()
        requests.Waitall(messages)
    except mpi().Exception:
        # A message that is too long is one of another operation.
        _settle()
        raise


def _settle() -> None:
    global _pending
    if _pending is not None:
        check, _pending = _pending, None
        check.request.Wait()
        check.judge()


def on_the_first(does: Callable[[], None], what: str) -> None:
    """Does something on rank 0 while the others wait. What it raises is raised on all."""
    agree(what)
    comm = world()
    if comm is None:
        does()
        return
    failed: Exception | None = None
    if comm.rank == 0:
        try:
            does()
        except Exception as error:
            failed = _sendable(error)
    failed = comm.bcast(failed, root=0)
    if failed is not None:
        raise failed


def _sendable(error: Exception) -> Exception:
    """The exception, or its text in another one if it cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


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
