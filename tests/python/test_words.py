"""Words of the documentation that have a standard term: each use is reported with its line and the term to write instead.

Only prose counts: programs, their output and names in backticks are skipped.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

#: Files and folders whose prose is checked: those of the repository that hold prose alone.
COVERED = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs",
    "frontend-py/python/aerogel/explain",
]
#: What is written by programs from the text of code, which is not covered.
GENERATED = {"docs/ir.md", "docs/gallery/README.md"}
#: Pages and folders that still have such words.
LEFT: set[str] = set()

#: A regular expression, where a space stands for any white space, and what to write instead.
WORDS = {
    r"extents?": "shape, size of an axis, dimension",
    r"has no numbers|(no|its|their) numbers (are|is)|numbers of (a|the|x's) tensor": "values, elements; is not evaluated",
    r"types? of (the )?elements": "dtype",
    r"two planes|planes (apart|of)": "real and imaginary parts; structure of arrays",
    r"(numbers|values?) at (active )?cells": "sparse values, values on active cells",
    r"(what|that) changes nothing": "identity element",
    r"stretch(ed|es)?": "broadcast",
    r"go(es)? around": "wrap around (modulo 2^n)",
    r"one (of|for) many|for many": "batched, vectorised over a batch",
    r"other for each": "varying",
    r"by chance": "random",
    r"ask(s|ed|ing)?": "needed, live; evaluated; queried, requested",
    r"demand(s|ed)": "needed, live",
    r"pending": "lazy, deferred, not evaluated yet",
    r"binds? (a )?names?|(block|name)s? binds?": "rebinding a name, loop-carried variable",
    r"watched": "checked for mutation",
    r"let go": "escapes, detached, released",
    r"lessons": "inferred constraints",
    r"(number of|each|every|all|its|of|a loop's) turns?|turns of": "iterations",
    r"t(old|ell|ells|elling) (\w+ )?apart": "disjoint, proved not to alias; distinguished",
    r"kept": "materialised, saved (for the backward pass), cached, stored",
    r"with (a|the) place|the place where": "source location, span",
    r"machine (in software|for PTX|that (runs|executes|stands))": "simulator (PTX simulator)",
    r"cards?": "GPU, device",
    r"rooms?": "headroom, reserve, space",
    r"sums into few": "reduction, histogram",
    r"so-manieth": "every n-th, strided",
    r"kin|and (its|their) likes?": "and related functions",
    r"truth values?": "booleans",
    r"go(es)? on|went on": "continues",
    r"gives?|gave": "returns, produces, passes",
    r"says?|said": "reports, states, prints, names",
    r"without a word": "silently",
    r"words of others": "coming from NumPy, PyTorch and JAX",
    r"hidden from|seen by": "visible to",
    r"in the end|on the way|behind the block": "after the loop, during, after the block",
    r"(nobody|somebody|anybody|whoever|who) (holds?|has|had|asks|asked)": "name the thing that acts",
    r"(is|are) held": "cached, stored; referenced",
    r"the way back": "the backward pass",
    r"whole numbers?": "integers",
    r"anew": "again",
}
PATTERN = re.compile(
    "|".join(rf"(?P<w{n}>\b(?:{word})\b)".replace(" ", r"\s+") for n, word in enumerate(WORDS)), re.IGNORECASE
)
#: Fenced programs and outputs, indented commands, comments, names in backticks, and the targets of links.
CODE = re.compile(
    r"^(`{3,}).*?^\1|^ {4}(?=.*$)(?! *[-*\d]).*?$|<!--.*?-->|`[^`\n]+`|\]\([^)\s]*\)", re.DOTALL | re.MULTILINE
)


def prose(text):
    """A page without its code, every line where it was."""
    return CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), text)


def found(text):
    """Lines, words, and what to write instead of each."""
    words = list(WORDS.values())
    for match in PATTERN.finditer(prose(text)):
        line = text.count("\n", 0, match.start()) + 1
        yield line, " ".join(match[0].split()), words[int(match.lastgroup[1:])]


def pages():
    """The pages that are checked, by their names in the repository."""
    paths = [ROOT / name for name in COVERED]
    files = [page for path in paths for page in (sorted(path.rglob("*.md")) if path.is_dir() else [path])]
    return {name: page for page in files if (name := page.relative_to(ROOT).as_posix()) not in GENERATED}


def is_in(name, left):
    return name == left or name.startswith(left + "/")


@pytest.mark.skipif(not (ROOT / "docs").exists(), reason="the documents are not here")
def test_standard_terms():
    lines = [
        f"{name}:{line}: `{word}`: write {term}"
        for name, page in pages().items()
        if not any(is_in(name, left) for left in LEFT)
        for line, word, term in found(page.read_text())
    ]
    assert not lines, f"{len(lines)} words that have a standard term\n" + "\n".join(lines)


@pytest.mark.skipif(not (ROOT / "docs").exists(), reason="the documents are not here")
def test_what_is_left_has_such_words():
    """A page that is clean is checked from then on."""
    left = {name for name, page in pages().items() if any(found(page.read_text()))}
    assert not [part for part in LEFT if not any(is_in(name, part) for name in left)]


def test_prose_is_checked_and_code_is_not():
    text = "# Extents\n\nThe loop\ngoes\non, `kept`.\n\n```python\nextents = kept\n```\n\n    kept\n\n[a](kept.md)\n"
    assert list(found(text)) == [
        (1, "Extents", WORDS[r"extents?"]),
        (4, "goes on", WORDS[r"go(es)? on|went on"]),
    ]
