"""The programs of the documentation run, each page's as one program, and show what the page says they show.

Each page runs from its top as it is shown. A block of Python that is followed by a block of text prints that text,
warnings included, or raises the exception whose message it is. `AEROGEL_BLESS=1` writes the texts anew.
"""

import contextlib
import io
import gc
import linecache
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from desk import vulkan

import aerogel as ti

ROOT = Path(__file__).parents[2]
PAGES = ["docs/index.md", "docs/first-steps.md", "docs/language.md", "docs/layouts.md", "docs/performance.md"]
PAGES += ["docs/sparse.md", "docs/quantised.md", "docs/functions.md", "docs/algorithms.md", "docs/linalg.md"]
PAGES += ["docs/tensors.md", "docs/programs.md", "docs/names.md", "docs/learning.md", "docs/coming-from-tensorfrost.md"]
PAGES += ["docs/coming-from-numpy.md", "docs/coming-from-jax.md", "docs/coming-from-pytorch.md"]
PAGES += ["docs/coming-from-warp.md", "docs/tutorial.md"]
PAGES += ["docs/gradients.md", "docs/meshes.md", "docs/graphs.md", "docs/pictures.md", "docs/profiling.md", "README.md"]
PAGES += ["docs/many-machines.md", "docs/windows.md", "docs/textures.md", "docs/backends.md", "docs/fl.md"]
PAGES += ["docs/files.md", "docs/trust.md", "docs/ocannl.md", "docs/picograd.md", "docs/successors.md"]
PAGES += sorted(f"docs/howto/{path.name}" for path in (ROOT / "docs" / "howto").glob("[a-z]*.md"))
PART = re.compile(r"```python\n(?P<shown>.*?)```\n(?:\n```text\n(?P<text>.*?)```\n)?", re.DOTALL)

pytestmark = pytest.mark.skipif(not (ROOT / "docs").exists(), reason="the documents are not here")


def what_it_shows(block, scope):
    """What a block prints, and the message of the exception that ends it."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            exec(block, scope)
    except Exception as e:
        message = str(e).strip()
        name = type(e).__name__
        printed.write(message if message.startswith(name) else f"{name}: {message}")
    lines = printed.getvalue().splitlines()
    # What `ti.init` says depends on the machine.
    return "".join(line.rstrip() + "\n" for line in lines if not line.startswith("[Aerogel] Starting on arch="))


@pytest.fixture
def as_started():
    """As Python starts: no program, and messages of every kind that users see."""
    ti.reset()
    ti.set_logging_level("info")
    yield
    ti.reset()


@pytest.mark.parametrize("page", PAGES)
def test_the_programs(page, as_started, tmp_path, monkeypatch):
    if page == "docs/windows.md" and not vulkan():
        pytest.skip("there is no Vulkan, or no aerogel_viz")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AEROGEL_GUI_SHOW", "0")
    text = (ROOT / page).read_text()
    path = Path(page).stem.replace("-", "_") + ".py"
    assert "log_level=" not in text, "a page shows its warnings"
    scope, program, blessed = {"__name__": "page"}, "", text
    parts = list(PART.finditer(text))
    assert parts
    for part in parts:
        block = part["shown"]
        # All blocks are one file, as they are for who copies them.
        begin = program.count("\n")
        program += block
        linecache.cache[path] = (len(program), None, program.splitlines(True), path)
        # What no block holds is not there: an explanation counts what is.
        gc.collect()
        shown = what_it_shows(compile("\n" * begin + block, path, "exec"), scope)
        if os.environ.get("AEROGEL_BLESS") and part["text"] is not None:
            blessed = blessed.replace(part[0], f"```python\n{block}```\n\n```text\n{shown}```\n")
        else:
            assert shown == (part["text"] or ""), block
    if blessed != text:
        (ROOT / page).write_text(blessed)


def test_the_tutorial_on_a_gpu(tmp_path):
    """Its last step: the setting of the environment moves the program to a GPU, or leaves it on the CPU with a warning."""
    page = (ROOT / "docs" / "tutorial.md").read_text()
    (tmp_path / "drop.py").write_text("".join(part["shown"] for part in PART.finditer(page)))
    path = os.pathsep.join(p for p in sys.path if p)
    env = dict(os.environ, PYTHONPATH=path, AEROGEL_ARCH="gpu", AEROGEL_GUI_SHOW="0")
    done = subprocess.run([sys.executable, "drop.py"], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    shown = "".join(part["text"] or "" for part in PART.finditer(page))
    assert "".join(line + "\n" for line in done.stdout.splitlines() if not line.startswith("[Aerogel]")) == shown


def test_every_page_is_tested():
    """A page with programs is in the list above, or has a test of its own."""
    others = {"docs/coming-from-taichi.md", "docs/exchange.md", "docs/arithmetic.md", "docs/processes.md"}
    found = {f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md") if "```python" in p.read_text()}
    assert found <= others | set(PAGES)
