"""``python -m aerogel``: what each command prints, where, and the code it ends with."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import aerogel

ROOT = Path(__file__).parent.parent.parent
PROGRAM = """
import sys
import taichi as ti

ti.init(arch=ti.cpu, log_level="error")

@ti.kernel
def twice(x: ti.i32) -> ti.i32:
    return x * 2

@ti.kernel
def never(x: ti.i32):
    pass

@ti.data_oriented
class Counter:
    @ti.kernel
    def step(self) -> ti.i32:
        return 7

print(twice(4), Counter().step(), sys.argv[1:])
if sys.argv[1:] == ["three"]:
    sys.exit(3)
"""


def command(*arguments, path=None, cwd=None, **env):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in (path, *sys.path) if p), **env}
    line = [sys.executable, "-m", "aerogel", *map(str, arguments)]
    return subprocess.run(line, env=env, cwd=cwd, capture_output=True, text=True, timeout=120)


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


@pytest.fixture
def installed(tmp_path):
    """A package with its examples inside, as a wheel has it."""
    package = tmp_path / "site" / "aerogel"
    package.mkdir(parents=True)
    for path in Path(aerogel.__file__).parent.iterdir():
        if path.name != "examples":
            (package / path.name).symlink_to(path)
    (package / "examples").mkdir()
    for path in (ROOT / "examples").glob("*.py"):
        shutil.copy(path, package / "examples")
    return str(package.parent)


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["bogus"],
        ["run"],
        ["cache", "burn"],
        ["inspect", "p.py"],
        ["inspect", "p.py", "k", "--stage"],
        ["example", "--show"],
    ],
)
def test_misuse(words):
    done = command(*words)
    assert done.returncode == 2 and done.stdout == "" and ": error: " in done.stderr


@pytest.mark.parametrize("name", [[], ["run"], ["example"], ["inspect"], ["diagnose"], ["cache"], ["explain"]])
def test_help_fits_a_screen(name):
    done = command(*name, "--help", COLUMNS="100")
    assert done.returncode == 0 and done.stderr == "" and done.stdout.startswith("usage: python -m aerogel")
    assert len(done.stdout.splitlines()) <= 40


def test_run_ends_with_the_code_of_the_program(program):
    done = command("run", program, "three")
    assert (done.returncode, done.stdout, done.stderr) == (3, "8 7 ['three']\n", "")
    # Options after the program are the program's.
    assert command("run", program, "--help", "-x").stdout == "8 7 ['--help', '-x']\n"


def test_examples_are_listed_shown_and_copied(installed, tmp_path):
    listed = command("example", path=installed)
    assert listed.returncode == 0
    for path in (ROOT / "examples").glob("*.py"):
        # What several share is no example.
        assert (f"  {path.stem} " in listed.stdout) == ("__main__" in path.read_text())
    source = (ROOT / "examples/mpm.py").read_text()
    assert command("example", "--show", "mpm", path=installed).stdout == source
    copies = tmp_path / "copies"
    done = command("example", "--copy", copies, "mpm.py", path=installed)
    # With what it needs to run.
    assert done.stdout.split() == [str(copies / f"{name}.py") for name in ("mpm", "common", "material_points")]
    alone = subprocess.run(
        [sys.executable, copies / "mpm.py", "--frames", "1", "--particles", "99", "--out", tmp_path / "out.png"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
    assert alone.returncode == 0
    assert command("example", "--copy", copies, "waves", path=installed).stdout.split() == [str(copies / "waves.py")]
    assert (copies / "mpm.py").read_text() == source
    (copies / "mpm.py").write_text("mine")
    again = command("example", "--copy", copies, "mpm", path=installed)
    assert again.returncode == 1 and "is there already" in again.stderr
    assert (copies / "mpm.py").read_text() == "mine"
    missing = command("example", "nothing", path=installed)
    assert missing.returncode == 1 and missing.stdout == "" and "mpm" in missing.stderr


def test_a_package_without_its_examples(installed, tmp_path):
    shutil.rmtree(Path(installed) / "aerogel" / "examples")
    elsewhere = {"path": installed, "cwd": tmp_path}
    assert "`make examples`" in command("example", **elsewhere).stdout
    missing = command("example", "mpm", **elsewhere)
    assert missing.returncode == 1 and "built without its examples" in missing.stderr
    # In the repository they are found.
    assert "  mpm " in command("example", path=installed, cwd=ROOT / "docs").stdout


def test_an_example_runs(installed, tmp_path):
    out = tmp_path / "mpm.png"
    done = command("example", "mpm", "--frames", "1", "--out", out, path=installed)
    assert done.returncode == 0, done.stderr
    assert out.stat().st_size > 5000


def test_examples_of_an_installed_taichi(installed, tmp_path):
    folder = Path(installed) / "taichi" / "examples" / "simulation"
    folder.mkdir(parents=True)
    (folder / "theirs.py").write_text("import taichi as ti\nprint(ti.version, __file__)\n")
    listed = command("example", path=installed).stdout
    assert f"and 1 of Taichi's, in {folder.parent}" in listed and "theirs" in listed
    assert command("example", "theirs", path=installed).stdout.split() == [aerogel.version, str(folder / "theirs.py")]


def test_inspect(program):
    whole = command("inspect", program, "twice")
    assert whole.returncode == 0, whole.stderr
    assert "8 7 []" in whole.stderr and "8 7" not in whole.stdout
    for title in ("; source", "; stages: ", "; llvm", "; asm", "; times"):
        assert f"\n{title}" in "\n" + whole.stdout
    names = command("inspect", "--stage", "list", program, "twice").stdout.split()
    assert {"source", "llvm", "asm", "times"} <= set(names) and len(names) > 5
    assert "define" in command("inspect", "--stage", "llvm", program, "twice").stdout
    assert "kernel @step" in command("inspect", "--stage", names[1], program, "Counter.step").stdout
    assert "return x * 2" in command("inspect", "--stage", "source", program, "twice").stdout
    # After the names too; a second one is the program's.
    for option in (["--stage", "source"], ["--stage=source"]):
        done = command("inspect", program, "twice", *option, "a")
        assert done.stdout.startswith("@ti.kernel") and "8 7 ['a']" in done.stderr
    done = command("inspect", "--stage", "source", program, "twice", "--stage", "a")
    assert "8 7 ['--stage', 'a']" in done.stderr and done.stdout.startswith("@ti.kernel")


def test_explain_lists_the_codes():
    lines = command("explain").stdout.splitlines()
    assert "  E0123  the step of a range is zero" in lines and lines == sorted(lines) and len(lines) > 50


def test_the_cache_is_cleaned_by_two_at_once(tmp_path, monkeypatch):
    from aerogel.cli import _cache

    monkeypatch.setenv("AEROGEL_OFFLINE_CACHE_FILE_PATH", str(tmp_path / "kernels"))
    assert "0 compiled kernels" in _cache.clean()
    (tmp_path / "kernels").mkdir()
    for name in "ab":
        (tmp_path / "kernels" / f"{name}.kernel").write_text("")
    listdir = os.listdir

    def gone(folder):
        names = listdir(folder)
        (Path(folder) / "a.kernel").unlink(missing_ok=True)
        return names

    monkeypatch.setattr(os, "listdir", gone)
    assert _cache.clean().endswith("removed") and list((tmp_path / "kernels").iterdir()) == []


def test_the_cache_says_which_kernels_are_for_cards(tmp_path):
    text = "import sys, aerogel as ti\nti.init(arch=getattr(ti, sys.argv[1]), log_level='error')\n"
    text += "@ti.kernel\ndef f(n: int) -> int:\n    return n + 1\nassert f(2) == 3\n"
    (tmp_path / "a.py").write_text(text)
    env = os.environ | {"AEROGEL_OFFLINE_CACHE": "1", "AEROGEL_OFFLINE_CACHE_FILE_PATH": str(tmp_path / "kernels")}
    env.pop("AEROGEL_ARCH", None)
    for arch in ("cpu", "cuda"):
        subprocess.run([sys.executable, "a.py", arch], cwd=tmp_path, env=env | {"AEROGEL_CUDA": "machine"}, check=True)
    (tmp_path / "kernels" / "other.kernel").write_text("what is no kernel")
    first, second = command("cache", AEROGEL_OFFLINE_CACHE_FILE_PATH=str(tmp_path / "kernels")).stdout.splitlines()
    assert ": 3 compiled kernels, 0.0 MB" in first
    assert re.fullmatch(r"  1 for .*sm_\d+ .*, 0.0 MB", second), second


def test_inspect_says_what_is_wrong(program):
    for words, message in [
        (["twicee"], "program.py has no kernel twicee; it has Counter.step, never, twice"),
        (["never"], "program.py never called the kernel never"),
        (["--stage", "x", "twice"], "this kernel has no stage x; its stages are source, "),
    ]:
        done = command("inspect", *words[:-1], program, words[-1])
        assert done.returncode == 1 and message in done.stderr and done.stdout == ""
    assert command("inspect", program, "twice", "three").returncode == 3


def test_diagnose(tmp_path):
    done = command("diagnose", AEROGEL_OFFLINE_CACHE_FILE_PATH=str(tmp_path), TI_DEBUG="1")
    assert done.returncode == 0, done.stderr
    shown = {line[:20].strip(): line[20:] for line in done.stdout.splitlines() if line[0] != " "}
    assert shown["aerogel"].startswith(aerogel.version) and shown["compiler"].startswith("LLVM ")
    assert shown["cache"].startswith(f"{tmp_path}: 0 compiled kernels")
    assert "TI_DEBUG=1" in done.stdout and "debug=True" in done.stdout
    assert int(shown["threads"]) >= 1 and shown["a kernel"].startswith("passed")


def test_diagnose_says_what_fails():
    done = command("diagnose", AEROGEL_OPT_LEVEL="much")
    assert done.returncode == 1 and "FAILED" in done.stdout
    assert "opt_level from the environment is a number" in done.stderr


@pytest.mark.skipif(not (ROOT / "docs").exists(), reason="the documents are not here")
def test_the_page_has_every_command_option_and_variable():
    page = (ROOT / "docs" / "command-line.md").read_text()
    listed = command("--help").stdout
    commands = set(re.findall(r"^    (\w+)  ", listed, re.MULTILINE))
    assert commands and commands == set(re.findall(r"^\| `(\w+)[ `]", page.split("## Settings")[0], re.MULTILINE))
    variables = set(re.findall(r"^  (AEROGEL_[\w<>]+) ", listed, re.MULTILINE))
    assert variables and variables == set(re.findall(r"`(AEROGEL_[A-Z_]+|AEROGEL_<NAME>)`", page)) - {
        "AEROGEL_CPU_MAX_NUM_THREADS"
    }
    for name, options in re.findall(r"^\| `(\w+)[^|]*\|(.*)\|$", page.split("## Settings")[0], re.MULTILINE):
        text = command(name, "--help").stdout
        assert all(option in text for option in re.findall(r"--\w+", options)), name
