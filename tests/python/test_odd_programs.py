"""Odd programs, each in a process of its own: none panics, is killed, hangs or is taken for another, and a right kernel
runs afterwards in the same process.

`wrong/odd.txt` holds the programs, with ``====`` between them. The first line of each says what comes of it: ``# ok``,
or the exception, where it is shown, and how its message begins. The place is the line of the program to which the
message points, or after an ``@`` the one at which Python raises it. ``AEROGEL_BLESS=1`` writes the first lines anew.
"""

import linecache
import os
import pathlib
import re
import traceback

import apart
import numpy as np

import aerogel as ti

FILE = pathlib.Path(__file__).parent / "wrong" / "odd.txt"
SECONDS = 60 if os.environ.get("CI") else 10
RIGHT = "@ti.kernel\ndef right(n: ti.i32) -> ti.i32:\n    return n * 2\n"


def run(path, text, scope):
    # Where Python, and so the compiler, looks for the source.
    linecache.cache[path] = (len(text), None, text.splitlines(True), path)
    exec(compile(text, path, "exec"), scope)  # noqa: S102


def place(error, path):
    shown = re.search(r"--> (\S+):(\d+):\d+", str(error))
    if shown:
        return shown[2] if shown[1] == path else pathlib.Path(shown[1]).name
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return f"@{lines[-1]}" if lines else "-"


def outcome(text, arch):
    path = "/odd/program.py"
    ti.init(arch=arch, log_level="error")
    scope = {"ti": ti, "np": np, "__name__": "program"}
    try:
        run(path, text, scope)
        said = "ok"
    except Exception as error:  # noqa: BLE001
        message = re.sub(r"^\w+\[E\d{4}\]: ", "", str(error).strip().split("\n")[0])
        # Of what Python itself says, the words change from one version to the next.
        ours = isinstance(error, ti.TaichiCompilationError | ti.TaichiRuntimeError)
        # A place in the package is nobody's but ours.
        message = re.sub(r"\(/\S*/aerogel/(\w+\.py):\d+\)", r"(\1)", message)
        message = message.split(" at 0x")[0][:80] if ours else ""
        said = f"{type(error).__name__} {place(error, path)} {message}".strip()
    ti.init(arch=arch, log_level="error")
    scope = {"ti": ti}
    run("/odd/right.py", RIGHT, scope)
    assert scope["right"](21) == 42
    return said


def test_every_program_has_its_outcome():
    programs = [block.split("\n", 1) for block in FILE.read_text().rstrip("\n").split("\n====\n")]
    assert len(programs) > 300
    wrong, new = [], []
    for number, (wanted, text) in enumerate(programs):
        try:
            said, terminal = apart.run(lambda text=text, n=number: outcome(text, ("interp", "cpu")[n % 2]), SECONDS)
        except apart.Hangs:
            said, terminal = "hangs", ""
        said = f"# {said}"
        new.append(f"{said}\n{text}")
        if said != wanted or "panicked at" in terminal or "a bug in the compiler" in said:
            wrong.append(f"{text}\n{wanted}\n... but:\n{said}\n{terminal[-1000:]}")
    if os.environ.get("AEROGEL_BLESS"):
        FILE.write_text("\n====\n".join(new) + "\n")
    assert not wrong, "\n\n".join(wrong)
