"""Mutants: sources that are broken in one place. `mutants.py` and `tensor_mutants.py` have the tables."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent


class Mutant(NamedTuple):
    """A text of a file, and what stands in its place."""

    name: str
    file: str
    text: str
    instead: str
    # What must notice, if not everything that the script runs.
    tests: Sequence[str] = ()

    def of(self, source: str, instead: str) -> str:
        """A source with another text in its place; ends the script if the source does not have the text."""
        if self.text not in source:
            sys.exit(f"{self.file} has no `{self.text}`")
        return source.replace(self.text, instead, 1)


def expect_committed(*folders: Path) -> None:
    """Ends the script if sources, which it is going to change, have changes that are not committed."""
    command = ["git", "diff", "--quiet", "--", *map(str, folders)]
    if subprocess.run(command, cwd=ROOT, check=False).returncode != 0:
        sys.exit("the sources that are mutated have changes that are not committed")


def survivors(mutants: Sequence[Mutant], wanted: Sequence[str], is_caught: Callable[[Mutant], bool]) -> int:
    """Tries all mutants, or those that are wanted; the result is how many went unnoticed."""
    n = 0
    for mutant in mutants:
        if wanted and mutant.name not in wanted:
            continue
        caught = is_caught(mutant)
        print(f"{'caught' if caught else 'SURVIVED'}: {mutant.name} ({mutant.file})", flush=True)
        n += not caught
    return n
