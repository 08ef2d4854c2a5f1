"""Runs every example program of Taichi's wheel and writes `docs/compatibility.md`, but for the packages (`make clients`).

    python tests/oracle/compatibility.py FOLDER_OF_EXAMPLES

`FOLDER_OF_EXAMPLES` is `taichi/examples` in an environment that has `taichi==1.7.4`. Each program runs as it stands,
under `python -m aerogel run`, for two frames if it has a GUI, and for a minute at most.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
OUT = HERE.parent.parent / "docs" / "compatibility.md"
LIMIT = 25

HEAD = """# Programs and packages that run

`tests/oracle/compatibility.py` runs the {n} programs of the wheel of Taichi 1.7.4, unchanged, and writes this
page. *Equal*: its fields are compared with Taichi's, in a test. *Runs*: it ends without an error, or still runs
after {limit} seconds. The other outcomes name what is missing.

| program | outcome |
|---|---|
"""

# What was found by hand, of programs that are not kept.
OTHERS = """
## Programs of others

53 published programs for Taichi 0.8 to 1.7 were run as well: 14 with `ti.ui`, 9 with `ti.GUI`, 4 with sparse fields, 24 with tapes
(among them differentiable simulators).

| programs | outcome |
|---|---|
| 46 | run. Losses and gradients equal Taichi's. Where a program draws the same picture each time, so do the pictures, to 4 of 255 levels, except at the edges of balls and lines |
| 6 | stop in Taichi 1.7.4 too: they have mistakes, or use names of older versions |
| 1 | draws positions that are NaN: an error in Aerogel, ignored by Taichi |

Five other programs need `ti.Tape` and similar names, which Taichi 1.7.4 no longer has.
"""


def programs(folder: Path) -> list[Path]:
    """The programs: files that start a program of their own, none that others import."""
    found = sorted(folder.rglob("*.py"))
    return [p for p in found if p.name not in ("__init__.py", "patterns.py") and "ti.init(" in p.read_text()]


def last_error(text: str) -> str:
    """The message of the exception that ended a program, or its last line."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Exit)\b.*", line)]
    line = (errors or lines or ["no message"])[-1]
    return line.replace("|", "\\|")[:140]


def outcome(program: Path, compared: set[str], folder: Path) -> str:
    """What comes of a program."""
    name = str(program.relative_to(folder))
    env = {**os.environ, "AEROGEL_GUI_FRAMES": "2", "MPLBACKEND": "agg"}
    command = [sys.executable, "-m", "aerogel", "run", str(program)]
    try:
        run = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            env=env,
            timeout=LIMIT,
            stdin=subprocess.DEVNULL,
            cwd=os.environ.get("TMPDIR", "/tmp"),
        )
    except subprocess.TimeoutExpired:
        return "runs"
    if run.returncode == 0:
        return "equal" if name in compared else "runs"
    return last_error(run.stderr)


def main() -> None:
    """Runs them all."""
    folder = Path(sys.argv[1])
    lines = (HERE / "programs.txt").read_text().splitlines()
    compared = {line.split()[0] for line in lines if line.strip()}
    rows = []
    found = programs(folder)
    for k, program in enumerate(found):
        print(f"{k + 1}/{len(found)} {program.name}", end=" ", flush=True)
        result = outcome(program, compared, folder)
        print(result, flush=True)
        rows.append(f"| `{program.relative_to(folder)}` | {result} |")
    packages = "\n## Published packages" + OUT.read_text().split("\n## Published packages")[1]
    OUT.write_text(HEAD.format(n=len(found), limit=LIMIT) + "\n".join(rows) + "\n" + OTHERS + packages)


if __name__ == "__main__":
    main()
