"""The tables of the pages that go through a document: each test that they name exists, and no row is without one or a reason."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ["fl.md", "tensorfrost.md", "ocannl.md", "picograd.md"]
NAMED = re.compile(r"`(test_\w+\.py)::(\w+)`")

pytestmark = pytest.mark.skipif(not (ROOT / "docs").exists(), reason="the documents are not here")


def rows(page):
    """The cells of the rows under a heading with a column of tests."""
    text, found = (ROOT / "docs" / page).read_text(), []
    for table in re.findall(r"^\|.*\|\n\|[-|]+\|\n(?:\|.*\|\n)+", text, re.MULTILINE):
        head, _, *lines = table.splitlines()
        if "test, or the reason why not" in head:
            found += [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return found


@pytest.mark.parametrize("page", PAGES)
def test_rows(page):
    found = rows(page)
    assert len(found) >= 20
    for row in found:
        assert len(row) == 3, row
        feature, _, evidence = row
        assert feature and (NAMED.search(evidence) or len(evidence.split()) >= 4), row


@pytest.mark.parametrize("page", PAGES)
def test_named_tests_exist(page):
    tests = {}
    for file, function in NAMED.findall((ROOT / "docs" / page).read_text()):
        if file not in tests:
            path = ROOT / "tests/python" / file
            tests[file] = path.read_text() if path.exists() else ""
        assert re.search(rf"^def {function}\(", tests[file], re.MULTILINE), f"{file}::{function}"
