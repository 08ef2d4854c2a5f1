"""Fills the table: every kind with every action, in a process that is started anew after a crash."""

from __future__ import annotations

import gc
import json
import os
import queue
import re
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from bridges.actions import ACTIONS, Inapplicable, Silent
from bridges.case import KINDS, LIBRARIES, NOT_REPEATED, register

import aerogel as ti

SECONDS = 120
#: How much memory a kind may take for ever, and after how many calls that counts.
DRIFT, WARM_UP = 2 << 20, 300


@dataclass
class Cell:
    """What came of an action on an array of a kind."""

    kind: str
    action: str
    #: `right`, `error`, `SILENT`, `CRASH`, `LEAK`, or `-` where there is nothing to do.
    outcome: str
    message: str = ""


def outcome_of(kind: str, action: str) -> Cell:
    """Makes an array and does something with it."""
    act = ACTIONS[action]
    found = Cell(kind, action, "error", "the transformation did not call its function")

    def judge(case: Any) -> None:
        nonlocal found
        try:
            act(case)
            found = Cell(kind, action, "right")
        except Inapplicable:
            found = Cell(kind, action, "-")
        except Silent as e:
            found = Cell(kind, action, "SILENT", str(e))
        except Exception as e:  # noqa: BLE001
            found = Cell(kind, action, "error", f"{type(e).__name__}: {first_line(e)}")

    KINDS[kind](judge)
    return found


def first_line(e: Exception) -> str:
    """The first line of a message that says something."""
    return next((line.strip() for line in str(e).splitlines() if line.strip()), "")


def resident() -> int:
    """The memory of this process, in bytes."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def leak_of(kind: str, action: str, n: int) -> Cell:
    """Does the same many times, and looks at the memory."""
    cell = outcome_of(kind, action)
    if kind in NOT_REPEATED or cell.outcome not in ("right", "error"):
        return Cell(kind, action, "-")
    for _ in range(WARM_UP):
        outcome_of(kind, action)
    before = resident()
    for _ in range(n):
        outcome_of(kind, action)
    grown = resident() - before
    if grown >= DRIFT:
        # What an allocator takes once, it does not take again.
        before = resident()
        for _ in range(n):
            outcome_of(kind, action)
        grown = resident() - before
    message = f"{grown / n:.0f} bytes a call"
    return Cell(kind, action, "LEAK" if grown >= DRIFT else "flat", message)


def work(arch: str, n: int) -> None:
    """Answers each line of the input, the names of a kind and an action, by a line."""
    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "w")
    # What libraries print is no answer.
    os.dup2(2, 1)
    register(list(LIBRARIES))
    ti.init(arch=arch, log_level="error", offline_cache=False)
    np.seterr(all="ignore")
    for line in sys.stdin:
        kind, action = json.loads(line)
        cell = leak_of(kind, action, n) if n else outcome_of(kind, action)
        print(json.dumps(asdict(cell)), file=answers, flush=True)


class Worker:
    """A process that fills cells one at a time."""

    def __init__(self, arch: str, n: int) -> None:
        command = "import sys; from bridges.run import work; work(sys.argv[1], int(sys.argv[2]))"
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "JAX_PLATFORMS": "cpu"}
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", command, arch, str(n)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=env,
        )
        self.lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put("")

    def fill(self, kind: str, action: str) -> Cell:
        """The cell; `CRASH` if the process ends or hangs."""
        assert self.process.stdin is not None
        try:
            print(json.dumps([kind, action]), file=self.process.stdin, flush=True)
            line = self.lines.get(timeout=SECONDS)
        except queue.Empty:
            self.end()
            return Cell(kind, action, "CRASH", f"no answer in {SECONDS} s")
        except BrokenPipeError:
            line = ""
        if line:
            return Cell(**json.loads(line))
        return Cell(kind, action, "CRASH", f"exit status {self.process.wait()}")

    def end(self) -> None:
        """Ends the process."""
        self.process.kill()
        self.process.wait()


def cells(kinds: list[str], actions: list[str], arch: str, n: int = 0) -> Iterator[Cell]:
    """Fills a table, kind by kind; with `n`, calls each as often and looks at the memory."""
    worker = Worker(arch, n)
    for kind in kinds:
        for action in actions:
            cell = worker.fill(kind, action)
            yield cell
            if cell.outcome == "CRASH":
                worker.end()
                worker = Worker(arch, n)
    worker.end()


def table(found: list[Cell], actions: list[str]) -> str:
    """The outcomes, a row for each kind; and below what was said, the worst first."""
    width = max(len(cell.kind) for cell in found)
    lines = [(" " * width + "".join(f"  {action:10s}" for action in actions)).rstrip()]
    of = {(cell.kind, cell.action): cell for cell in found}
    for kind in dict.fromkeys(cell.kind for cell in found):
        row = "".join(f"  {of[kind, action].outcome:10s}" for action in actions)
        lines.append(f"{kind:{width}s}{row}".rstrip())
    for outcome in ("CRASH", "SILENT", "LEAK", "error"):
        lines += ["", f"{outcome}: {sum(cell.outcome == outcome for cell in found)}"]
        by_message: dict[str, list[str]] = {}
        for cell in found:
            if cell.outcome == outcome:
                message = re.sub(r"kernel `\w+`", "the kernel", cell.message)
                by_message.setdefault(message, []).append(f"{cell.kind} / {cell.action}")
        for message, places in by_message.items():
            more = f" and {len(places) - 6} more" if len(places) > 6 else ""
            lines.append(f"  {message[:240]}\n      {'; '.join(places[:6])}{more}")
    return "\n".join(lines)
