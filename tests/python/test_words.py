"""Words that have a standard term: each use is reported with its line and the term to write instead.

Only prose counts. On pages, programs, their output and names in backticks are skipped; in code, all but
comments, docstrings and messages.
"""

import io
import re
import tokenize
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
#: Folders of code whose comments, docstrings and messages are checked, without their folders of tests.
CODE_COVERED = [
    *("tensor", "passes", "runtime", "compiler", "ir", "snode", "gpu", "ptx", "linalg", "gui"),
    *("frontend-py/src", "frontend-py/python/aerogel"),
]
#: Files and folders of code that still have such words.
CODE_LEFT: set[str] = set()

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
#: Words that code may use: `room` is a type of the IR; "says" and "gives" are plain, and stand a thousand times
#: where the subject is an item ("the key says what an array is").
PLAIN_IN_CODE = {r"rooms?", r"gives?|gave", r"says?|said"}
CODE_WORDS = {word: term for word, term in WORDS.items() if word not in PLAIN_IN_CODE}


def pattern_of(words):
    """One expression for all words; the number of a group is that of its word."""
    groups = (rf"(?P<w{n}>\b(?:{word})\b)".replace(" ", r"\s+") for n, word in enumerate(words))
    return re.compile("|".join(groups), re.IGNORECASE)


PATTERN = pattern_of(WORDS)
CODE_PATTERN = pattern_of(CODE_WORDS)
#: Fenced programs and outputs, indented commands, comments, names in backticks, and the targets of links.
CODE = re.compile(
    r"^(`{3,}).*?^\1|^ {4}(?=.*$)(?! *[-*\d]).*?$|<!--.*?-->|`[^`\n]+`|\]\([^)\s]*\)", re.DOTALL | re.MULTILINE
)
#: What of comments, docstrings and messages is code: programs, names in backticks, examples, addresses, holes, tags, and
#: the names of arguments.
CODE_IN_COMMENTS = re.compile(
    r"^ *(`{3,}).*?\1|`[^`\n]+`|^ *>>> .*?$|https?://\S+|\{[^{}\n]*\}|<[^<>\n]+>|^ +\w+: ", re.DOTALL | re.MULTILINE
)
#: Comments and strings of Rust; characters and raw strings (programs of tests) are matched to be skipped.
RUST = re.compile(
    r"""(?P<comment>//[/!]?[^\n]*)|(?P<string>"(?:\\.|[^"\\])*")|'(?:\\[^']*|[^\\'])'|\br(?P<hash>\#*)".*?"(?P=hash)""",
    re.DOTALL,
)
#: What begins a comment or continues a string on the next line.
MARKS = re.compile(r"^//[/!]?|^#|\\(?=\n)")


def blank(text):
    """Spaces in place of a text, with its lines."""
    return re.sub(r"[^\n]", " ", text)


def prose(text, code=CODE):
    """A page without its code, every line where it was."""
    return code.sub(lambda code: blank(code[0]), text)


def rust_spans(text):
    """Where comments and strings of a Rust file are."""
    return (match.span() for match in RUST.finditer(text) if match["comment"] or match["string"])


def python_spans(text):
    """Where comments and strings of a Python file are."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    kinds = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in kinds:
            (line, column), (last, end) = token.start, token.end
            yield starts[line - 1] + column, starts[last - 1] + end


def code_prose(name, text):
    """The comments, docstrings and messages of a file of code; a string of one or two words is no message.

    What is between them becomes a semicolon, and its lines.
    """
    out, at = [], 0
    for begin, end in rust_spans(text) if name.endswith(".rs") else python_spans(text):
        between, piece = text[at:begin], text[begin:end]
        if piece[0] in "/#" or piece.endswith('"""') or piece.count(" ") > 1:
            out += [";" * bool(between.strip()), "\n" * between.count("\n"), MARKS.sub(" ", piece)]
            at = end
    return prose("".join(out), CODE_IN_COMMENTS)


def matches(text, pattern, words):
    """Lines, words, and what to write instead of each."""
    terms = list(words.values())
    for match in pattern.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield line, " ".join(match[0].split()), terms[int(match.lastgroup[1:])]


def found(text):
    """The words of a page."""
    return matches(prose(text), PATTERN, WORDS)


def found_in_code(name, text):
    """The words of a file of code."""
    return matches(code_prose(name, text), CODE_PATTERN, CODE_WORDS)


def pages():
    """The pages that are checked, by their names in the repository."""
    paths = [ROOT / name for name in COVERED]
    files = [page for path in paths for page in (sorted(path.rglob("*.md")) if path.is_dir() else [path])]
    return {name: page for page in files if (name := page.relative_to(ROOT).as_posix()) not in GENERATED}


def code_files():
    """The files of code that are checked, by their names in the repository."""
    files = [file for name in CODE_COVERED for kind in ("*.rs", "*.py") for file in sorted((ROOT / name).rglob(kind))]
    names = {file.relative_to(ROOT).as_posix(): file for file in files}
    return {name: file for name, file in names.items() if "/tests/" not in name}


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


@pytest.mark.skipif(not (ROOT / "tensor").exists(), reason="the code is not here")
def test_standard_terms_in_code():
    lines = [
        f"{name}:{line}: `{word}`: write {term}"
        for name, file in code_files().items()
        if not any(is_in(name, left) for left in CODE_LEFT)
        for line, word, term in found_in_code(name, file.read_text())
    ]
    assert not lines, f"{len(lines)} words that have a standard term\n" + "\n".join(lines)


@pytest.mark.skipif(not (ROOT / "tensor").exists(), reason="the code is not here")
def test_what_is_left_of_code_has_such_words():
    files = code_files()
    for left in CODE_LEFT:
        inside = (name for name in files if is_in(name, left))
        assert any(any(found_in_code(name, files[name].read_text())) for name in inside), f"{left} is clean"


def test_comments_and_messages_are_checked_and_code_is_not():
    rust = '/// Extents of\n/// `kept`.\nlet kept = \'k\'; // goes\nlet s = "is\\\n    held now"; f("kept", r#"kept on"#);\n'
    assert [(line, word) for line, word, _ in found_in_code("a.rs", rust)] == [(1, "Extents"), (4, "is held")]
    python = (
        'def kept():\n    """Extents, `kept`."""\n    # It is\n    # held.\n    raise E(f"the extent {kept} is bad")\n'
    )
    assert [(line, word) for line, word, _ in found_in_code("a.py", python)] == [
        (2, "Extents"),
        (3, "is held"),
        (5, "extent"),
    ]


def test_prose_is_checked_and_code_is_not():
    text = "# Extents\n\nThe loop\ngoes\non, `kept`.\n\n```python\nextents = kept\n```\n\n    kept\n\n[a](kept.md)\n"
    assert list(found(text)) == [
        (1, "Extents", WORDS[r"extents?"]),
        (4, "goes on", WORDS[r"go(es)? on|went on"]),
    ]
