"""Breaks the derivatives in one place after another, and expects a test to fail each time.

Run as `python scripts/mutants.py [NAME...]` in a clean working tree; it takes some minutes. Each mutant is a text of a
file in `SOURCES` and what stands in its place.
"""

import os
import subprocess
import sys
from collections.abc import Sequence

from _mutants import ROOT, Mutant, expect_committed, survivors

# The folders of the files.
SOURCES = [ROOT / "passes" / "src" / "autodiff", ROOT / "ir" / "src"]
# What must notice: kernels whose gradients are compared with differences, or the texts of derivatives.
KERNELS = ["-p", "aerogel-tests", "--test", "gradients"]
CALLED = ["-p", "aerogel-tests", "--test", "called_gradients"]
TEXTS = ["-p", "aerogel-passes", "--lib", "autodiff"]

MUTANTS = [
    Mutant(
        "a sign",
        "rules.rs",
        "Partial::MinusOne => Some(b.unary(UnaryOp::Neg, d)),",
        "Partial::MinusOne => Some(d),",
    ),
    Mutant(
        "an operand",
        "derivatives.rs",
        "(BinaryOp::Mul, _) => b.binary(Mul, d, x()),",
        "(BinaryOp::Mul, _) => b.binary(Mul, d, y()),",
    ),
    Mutant("a row", "derivatives.rs", "Sqrt => OF_R,", "Sqrt => Partial::Zero,"),
    Mutant(
        "what changed the other way",
        "memory.rs",
        "AtomicOp::Sub => self.b.unary(UnaryOp::Neg, d),",
        "AtomicOp::Sub => d,",
    ),
    Mutant("a zeroing", "memory.rs", "pass.b.store(at, zero);", "let _ = zero;"),
    Mutant(
        "a loser's adjoint",
        "demand.rs",
        "(!adds || self.activity.is_active(*value))",
        "self.activity.is_active(*value) && (adds || !adds)",
    ),
    Mutant(
        "a save",
        "saved.rs",
        "let value = self.now(param);\n            self.b.store(place, value);",
        "let _ = (place, param);",
    ),
    Mutant("a held local", "saved.rs", "self.transfer(local, copy, true);", ""),
    Mutant("an old value", "undo.rs", "let at = self.now(place);\n            self.b.store(at, old);", "let _ = old;"),
    Mutant("an entry of a log", "undo.rs", "pass.b.store(place, old);", "let _ = place;"),
    Mutant("a mark", "saved.rs", "self.b.store(place, mark);", "let _ = (place, mark);"),
    Mutant("a turn's undoing", "turns.rs", "pass.undo_turn(inst, &saved, k);\n            pass.take", "pass.take"),
    Mutant("what is behind", "demand.rs", "copies.reversed = later.any(|looks| looks);", "let _ = later.any(|l| l);"),
    Mutant("what turns read", "demand.rs", "copies.reversed |= is_loop && ", "let _ = is_loop && "),
    Mutant(
        "a race",
        "overwritten.rs",
        "Races::Yes => reads.lost = reads.lost.or(Lost::of(overwritten, Why::Order)),",
        "Races::Yes => {}",
        TEXTS,
    ),
    Mutant("a call that runs again", "saved.rs", "*func = self.cx.calls.of(*func).rerun;", "let _ = func;", CALLED),
    Mutant(
        "a call's adjoint",
        "reverse.rs",
        "self.contribute(value, d);\n        }\n    }\n\n    fn branch",
        "let _ = (value, d);\n        }\n    }\n\n    fn branch",
        CALLED,
    ),
    Mutant("what a function overwrites", "calls.rs", ".or_else(|| met(needed, &self.writes))", "", TEXTS),
    Mutant(
        "a component's name",
        "undo.rs",
        "true => [&indices[..], &component].concat(),",
        "true => indices.clone(),",
        CALLED,
    ),
    Mutant("the last winner", "winners.rs", "self.b.binary(BinaryOp::And, is_near, is_last)", "is_last", TEXTS),
    Mutant("an iteration's number", "serial.rs", "*iteration = vec![number];", "let _ = (iteration, number);"),
]


def fails(tests: Sequence[str]) -> bool:
    """Whether a test fails."""
    environment = {"AEROGEL_N_PROGRAMS": "100", "INSTA_UPDATE": "no", **os.environ}
    built = subprocess.run(["cargo", "test", "-q", *tests, "--no-run"], cwd=ROOT, check=False)
    if built.returncode != 0:
        sys.exit("the mutant does not compile")
    command = ["cargo", "test", "-q", *tests]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False).returncode != 0


def is_caught(mutant: Mutant) -> bool:
    """Whether a test fails with a mutant; the source is as it was afterwards."""
    path = next(folder / mutant.file for folder in SOURCES if (folder / mutant.file).exists())
    source = path.read_text()
    try:
        path.write_text(mutant.of(source, mutant.instead))
        return fails(mutant.tests or KERNELS)
    finally:
        path.write_text(source)


if __name__ == "__main__":
    expect_committed(*SOURCES)
    sys.exit(survivors(MUTANTS, sys.argv[1:], is_caught))
