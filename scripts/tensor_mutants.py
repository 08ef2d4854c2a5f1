"""Breaks the gradients of tensors in one place after another, and expects a test to fail each time.

Run as `python scripts/tensor_mutants.py [NAME...]` in a clean working tree, by the Python that runs the tests; it takes
half an hour. All mutants are built at once, each behind a question for its name in the environment, so
their texts are expressions or statements.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from _mutants import ROOT, Mutant, expect_committed, survivors

SOURCES = ROOT / "tensor" / "src" / "autodiff"
NATIVE = ROOT / "frontend-py" / "python" / "aerogel" / "_native.abi3.so"
BUILD = ["cargo", "build", "--quiet", "--release", "-p", "aerogel-py", "--features", "extension-module"]
#: The shorter ones first: the first test that fails ends a run.
TESTS = ["hard", "functions", "in_programs", "programs", "eager", "generated", "generated_modes"]

MUTANTS = [
    Mutant("a sign", "expressions.rs", "a.unary(UnaryOp::Neg, d)", "d"),
    Mutant("a sign of an inverse", "libraries.rs", "self.minus(made)", "Ok(made)"),
    Mutant(
        "a sign of couplings",
        "matrices.rs",
        'self.0.binary("sub", row, column)?',
        'self.0.binary("sub", column, row)?',
    ),
    Mutant("a row", "functions.rs", "a.number(d, TWO_OVER_ROOT_PI)", "a.number(d, 0.0)"),
    Mutant("a zeroing", "points.rs", "exprs.select(is_stored, no_part, old)", "old"),
    Mutant("an old value", "versions.rs", "versions.changed(b, false).is_some()", "false"),
    Mutant("what turns carry", "blocks.rs", "self.carried(turns.body, &written)", "Vec::new()"),
    Mutant("how many turns there were", "blocks.rs", "vec![counted]", "Vec::new()"),
    Mutant(
        "which branch was taken",
        "blocks.rs",
        "Stmt::If(taken, then, otherwise)",
        "Stmt::If(*cond, then, otherwise)",
    ),
    Mutant(
        "a turn that is left", "blocks.rs", "Stmt::If(stays, rest, Vec::new())", "Stmt::If(has_left, rest, Vec::new())"
    ),
    Mutant("a count of ties", "accumulations.rs", "exprs.binary(BinaryOp::Div, d, n)", "d"),
    Mutant("a count of ties of two", "functions.rs", "a.binary(Mul, d, half)", "d"),
    Mutant("the old value among extremes", "accumulations.rs", 'self.recording.binary("add", n, own)?', "n"),
    Mutant("NaN among many", "functions.rs", "a.select(operands[0], unknown, d)", "d"),
    Mutant("the factors behind", "accumulations.rs", 'r.binary("mul", before, after)?', "before"),
    Mutant("the factors of one element", "accumulations.rs", 'r.binary("or", is_other, is_end)?', "is_end"),
    Mutant("what is multiplied", "accumulations.rs", "self.scale_adjoint(point)?;", ""),
    Mutant(
        "a permutation",
        "libraries.rs",
        '*index.last_mut().expect("sorted along an axis") = place;',
        "",
    ),
    Mutant(
        "the last of several stores",
        "points.rs",
        "Some(program.exprs.compare(CompareOp::Eq, winner, own))",
        "None",
    ),
    Mutant("a direction", "scans.rs", "!of.is_backwards", "of.is_backwards"),
    Mutant("coefficients that stand for two", "libraries.rs", "r.mul(element, weight)", "element"),
    Mutant("a zero times what is infinite", "expressions.rs", "a.strong(d, factor, product)", "product"),
    Mutant("an index outside", "expressions.rs", "exprs.select(inside, value, zero)", "value"),
    Mutant("what is detached", "mod.rs", "without_detached(recording, body)", "body.to_vec()"),
    Mutant("the phases of vectors", "libraries.rs", "self.halved(phases)?", "phases"),
]


def sources() -> dict[Path, str]:
    """The files with all mutants in them."""
    out: dict[Path, str] = {}
    for mutant in MUTANTS:
        path = SOURCES / mutant.file
        on = f'std::env::var("AEROGEL_MUTANT").is_ok_and(|name| name == "{mutant.name}")'
        either = f"if {on} {{ {mutant.instead} }} else {{ {mutant.text} }}"
        out[path] = mutant.of(out.get(path, path.read_text()), either)
    return out


def build() -> None:
    """Builds the package with all mutants, and leaves the sources as they were."""
    changed = sources()
    kept = {path: path.read_text() for path in changed}
    try:
        for path, text in changed.items():
            path.write_text(text)
        if subprocess.run(BUILD, cwd=ROOT, check=False).returncode != 0:
            sys.exit("the mutants do not compile")
    finally:
        for path, text in kept.items():
            path.write_text(text)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    replace_native(target / "release" / "lib_native.so")


def replace_native(library: Path) -> None:
    """Puts a library in the package; the old file stays where a process has loaded it."""
    new = NATIVE.with_suffix(".tmp")
    shutil.copy(library, new)
    new.replace(NATIVE)


def fails(name: str) -> bool:
    """Whether a test fails."""
    tests = [str(ROOT / "tests" / "python" / f"test_tensor_gradients_{part}.py") for part in TESTS]
    environment = {**os.environ, "AEROGEL_MUTANT": name, "AEROGEL_N_GRADIENTS": "200"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False).returncode != 0


def main(wanted: list[str]) -> int:
    """Tries all mutants, or those that are wanted; the result is how many went unnoticed."""
    expect_committed(SOURCES)
    own = NATIVE.with_suffix(".own")
    shutil.copy(NATIVE, own)
    try:
        build()
        if fails("none"):
            sys.exit("a test fails without any mutant")
        return survivors(MUTANTS, wanted, lambda mutant: fails(mutant.name))
    finally:
        replace_native(own)
        own.unlink()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
