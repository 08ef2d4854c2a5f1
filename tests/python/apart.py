"""Programs in processes of their own, of which many are cheap: each is a fork of one that has imported the package."""

import os
import select
import signal
import sys
import tempfile
import time
import traceback


class Hangs(Exception):
    """A program did not come to an end."""


def run(work, seconds):
    """What ``work()`` returns, a text, in a fork of this process; and what it wrote on its terminal.

    Raises `Hangs` if it takes longer. A process that a signal ended gives a text that says so.
    """
    with tempfile.TemporaryFile() as terminal:
        here, there = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(here)
            _child(work, there, terminal)
        os.close(there)
        said = _listen(child, here, seconds)
        terminal.seek(0)
        return said, terminal.read().decode(errors="replace")


def _child(work, there, terminal):
    code = 1
    try:
        for stream in (1, 2):
            os.dup2(terminal.fileno(), stream)
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
        said = work()
        os.write(there, said.encode())
        code = 0
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        # Without what the parent registered to be done at its end.
        os._exit(code)


def _listen(child, here, seconds):
    end, parts = time.monotonic() + seconds, []
    with open(here, "rb", buffering=0) as pipe:
        while True:
            ready, _, _ = select.select([pipe], [], [], max(end - time.monotonic(), 0))
            if not ready:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                raise Hangs
            part = pipe.read(1 << 16)
            if not part:
                break
            parts.append(part)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return f"killed by signal {os.WTERMSIG(status)}"
    if os.WEXITSTATUS(status):
        return "ended in the middle"
    return b"".join(parts).decode()
