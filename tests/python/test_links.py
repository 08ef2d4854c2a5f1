"""Links between the pages of the repository, and their pictures, lead somewhere: to a file, and to a heading of it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = re.compile(r"^(`{3,}).*?^\1|`[^`\n]+`", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)|(?:href|src)=\"([^\"]+)\"")
#: Pages that the site is made of besides the files of the repository.
GENERATED = re.compile(r"docs/api/\w+\.md")
PAGES = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"]
PAGES += sorted(page.relative_to(ROOT).as_posix() for page in (ROOT / "docs").rglob("*.md"))

pytestmark = pytest.mark.skipif(not (ROOT / "docs").exists(), reason="the documents are not here")


def anchor(heading):
    """The fragment of a heading's address, on GitHub and on the documentation site."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def anchors(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return {anchor(heading) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


def broken(name):
    """The links of a page that lead nowhere."""
    page = ROOT / name
    for links in LINK.findall(CODE.sub("", page.read_text())):
        link = links[0] or links[1]
        if re.match(r"https?:|mailto:", link):
            continue
        path, _, fragment = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        inside = target.relative_to(ROOT).as_posix() if target.is_relative_to(ROOT) else ""
        if GENERATED.fullmatch(inside):
            continue
        if not target.exists() or (fragment and fragment not in anchors(target)):
            yield link


@pytest.mark.parametrize("page", PAGES)
def test_links(page):
    assert list(broken(page)) == []


def test_a_broken_link_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    (tmp_path / "other.md").write_text("# One heading\n")
    (tmp_path / "page.md").write_text(
        "[a](other.md) [b](gone.md) [c](other.md#one-heading) [d](other.md#two) `[e](f.md)` [g](https://example.org)\n"
    )
    assert list(broken("page.md")) == ["gone.md", "other.md#two"]


@pytest.mark.parametrize("folder, index", [("docs", "index.md"), ("docs/howto", "README.md")])
def test_the_index_leads_to_every_page(folder, index):
    text = (ROOT / folder / index).read_text()
    linked = {path.partition("#")[0] for path, _ in LINK.findall(text)}
    assert {page.name for page in (ROOT / folder).glob("*.md")} - {index} <= linked
