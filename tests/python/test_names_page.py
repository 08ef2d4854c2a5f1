"""The tables of `docs/names.md` against the packages: what it says is not there, is not, and everything else is."""

import fnmatch
import importlib
import re
import types
from pathlib import Path

import pytest

from aerogel import special, xp
from aerogel.nn import functional

PAGE = Path(__file__).parents[2] / "docs" / "names.md"
pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="the documents are not here")

#: The heading of a table, the package whose names it has, its version in the page, and what stands for it here.
PACKAGES = {
    "Of NumPy": ("numpy", "NumPy", xp),
    "Of `jax.nn`": ("jax.nn", "JAX", functional),
    "Of `scipy.special`": ("scipy.special", "SciPy", special),
}


def absent(heading):
    """The patterns of a table."""
    part = PAGE.read_text().split(f"### {heading}\n")[1].split("\n#")[0]
    rows = [row.split("|") for row in part.splitlines() if row.startswith("| ")][1:]
    assert all(len(row) == 5 and row[3].strip() for row in rows)
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row[2])]


def names_of(package):
    theirs = importlib.import_module(package)
    listed = theirs.__all__ if package == "scipy.special" else dir(theirs)
    modules = () if package == "jax.nn" else types.ModuleType
    return {n for n in listed if not n.startswith("_") and not isinstance(getattr(theirs, n), modules)}


def is_version(package, title):
    """Whether the installed package is that of the page; others have other names."""
    version = importlib.import_module(package.partition(".")[0]).__version__
    return f"{title} {'.'.join(version.split('.')[:2])}" in PAGE.read_text().replace(" and ", " ").replace(",", "")


@pytest.mark.parametrize("heading", PACKAGES)
def test_absent_names(heading):
    package, title, ours = PACKAGES[heading]
    pytest.importorskip(package)
    patterns, theirs = absent(heading), names_of(package)
    assert len(set(patterns)) == len(patterns)
    missing = {name for name in theirs if any(fnmatch.fnmatchcase(name, p) for p in patterns)}
    assert [name for name in sorted(missing) if hasattr(ours, name)] == []
    if not is_version(package, title):
        pytest.skip(f"the page is about another version of {title}")
    assert sorted(name for name in theirs - missing if not hasattr(ours, name)) == []


def test_names_that_the_page_uses():
    import aerogel as ti

    for path in re.findall(r"`(?:ti\.)?((?:xp|special|tensor)(?:\.\w+)+)[(`]", PAGE.read_text()):
        made = ti
        for name in path.split("."):
            made = getattr(made, name)
        assert callable(made) or isinstance(made, types.ModuleType), path
