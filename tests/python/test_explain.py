"""The pages of `aerogel/explain`: every code has a section, whose program raises it with the message that is shown.

`AEROGEL_BLESS=1` writes the messages anew.
"""

import linecache
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import aerogel as ti
from aerogel import explain

PAGES = sorted(Path(explain.__file__).parent.glob("*.md"))
ROOT = Path(__file__).parents[2]
SOURCES = [ROOT / "frontend-py" / "src", ROOT / "passes" / "src"]
#: What is a warning says all there is to say.
WARNED = {"E0604", "E0606"}
INDEX = Path(__file__).parents[2] / "docs" / "errors.md"
BLOCK = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", re.DOTALL)


def message_of(program):
    """What a program raises, with the exception's class."""
    linecache.cache["program.py"] = (len(program), None, program.splitlines(True), "program.py")
    with pytest.raises(ti.TaichiCompilationError) as e:
        exec(compile(program, "program.py", "exec"), {"ti": ti, "__name__": "program"})
    text = str(e.value).strip()
    assert text.startswith(type(e.value).__name__)
    return text


@pytest.mark.parametrize("code", explain.codes())
def test_the_program_raises_the_code(cpu, code):
    page = next(page for page in PAGES if f"\n## {code}: " in page.read_text())
    section = explain.codes()[code] + "\n"
    blocks = BLOCK.findall(section)
    assert len(blocks) == 1, "one program for each code"
    program, shown = blocks[0]
    message = message_of(program)
    assert re.match(rf"\w+\[{code}\]: ", message), message
    if os.environ.get("AEROGEL_BLESS"):
        new = section.replace(BLOCK.search(section)[0], f"```python\n{program}```\n\n```text\n{message}\n```\n")
        page.write_text(page.read_text().replace(section, new))
    else:
        assert message + "\n" == shown


@pytest.mark.parametrize("code", explain.codes())
def test_a_section_ends_with_the_remedy(code):
    assert explain.codes()[code].rpartition("```")[2].strip()


@pytest.mark.skipif(not SOURCES[0].exists(), reason="the compiler's source is not here")
def test_codes_and_sections_are_the_same():
    texts = [path.read_text() for source in SOURCES for path in source.rglob("*.rs")]
    raised = {code for text in texts for code in re.findall(r'"(E\d{4})"', text)}
    assert raised - WARNED == set(explain.codes())


def anchor(heading):
    """The fragment of a heading's address, on GitHub and on the documentation site."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def table():
    """The index of all codes."""
    lines = ["# Error codes", ""]
    lines += ["Each code has a section with the shortest program that causes it, the message, and the remedy."]
    lines += ["`python -m aerogel explain E0203` prints it in the terminal.", ""]
    for page in PAGES:
        text = page.read_text()
        lines += [f"## {text.splitlines()[0][2:]}", "", "| code | |", "|---|---|"]
        for code, title in re.findall(r"^## (E\d{4}): (.*)$", text, re.MULTILINE):
            link = f"../frontend-py/python/aerogel/explain/{page.name}#{anchor(f'{code}: {title}')}"
            lines.append(f"| [{code}]({link}) | {title} |")
        lines.append("")
    return "\n".join(lines)


@pytest.mark.skipif(not INDEX.parent.exists(), reason="the documents are not here")
def test_the_index_is_current():
    if os.environ.get("AEROGEL_BLESS"):
        INDEX.write_text(table())
    assert INDEX.read_text() == table()


def command(*args):
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(p for p in sys.path if p))
    return subprocess.run([sys.executable, "-m", "aerogel", *args], env=env, capture_output=True, text=True)


def test_the_command():
    done = command("explain", "e0203")
    assert done.returncode == 0 and done.stdout.startswith("## E0203: ") and "```python" in done.stdout
    assert command("explain", "203").stdout == done.stdout
    wrong = command("explain", "E9999")
    assert wrong.returncode == 1 and "there is no code E9999" in wrong.stderr


def test_the_message_says_how_to_ask(cpu):
    @ti.kernel
    def k():
        undefined_here  # noqa: F821

    with pytest.raises(ti.TaichiNameError) as e:
        k()
    assert str(e.value).endswith("\n   = help: python -m aerogel explain E0301")
