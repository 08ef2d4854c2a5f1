"""``python -m aerogel mpi``: a program in several processes."""

from __future__ import annotations

import importlib.util
import os
import runpy
import shutil
import subprocess
import sys

from aerogel.mpi import _comm


def run(n: int, program: str, arguments: list[str]) -> int:
    """Runs a program in ``n`` processes; returns the exit code.

    The processes share the cores of the machine, unless ``AEROGEL_CPU_MAX_NUM_THREADS`` says how many threads each has.
    """
    # The launcher that an installed wheel has beside this Python comes first: it fits the library that `mpi4py` loads.
    here = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)])
    launcher = shutil.which("mpiexec", path=here)
    if launcher is None or importlib.util.find_spec("mpi4py") is None:
        missing = "the package `mpi4py`" if launcher else "`mpiexec`"
        print(f"{missing} is missing: {_comm.EXTRA}", file=sys.stderr)
        return 1
    cores = len(os.sched_getaffinity(0))
    environment = {"AEROGEL_CPU_MAX_NUM_THREADS": str(max(1, cores // n)), **os.environ, "AEROGEL_MPI": "1"}
    own = [sys.executable, "-m", "aerogel.cli._mpi", program, *arguments]
    return subprocess.run([launcher, "-n", str(n), *own], env=environment, check=False).returncode


def _main() -> None:
    """One of the processes."""
    if _comm.rank() > 0:
        _comm.silence()
    program = sys.argv[1]
    del sys.argv[0]
    sys.path[0] = os.path.dirname(os.path.abspath(program))
    try:
        runpy.run_path(program, run_name="__main__")
    except SystemExit as end:
        # Python would print it to `sys.stderr`.
        if isinstance(end.code, str):
            print(f"rank {_comm.rank()} of {_comm.size()}: {end.code}", file=_comm.errors(), flush=True)
            end.code = 1
        raise


if __name__ == "__main__":
    _main()
