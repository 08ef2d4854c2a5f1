"""Compiled kernels on disk: found again, never trusted blindly, never in the way."""

import contextlib
import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import aerogel as ti
from readers import changed

PROGRAM = """
import sys
import threading
import aerogel as ti

ti.init(arch=ti.cpu, log_level="warn", offline_cache=True, offline_cache_file_path=sys.argv[1])
x = ti.field(ti.i32, 16)

@ti.kernel
def fill(a: ti.i32):
    for i in x:
        x[i] = a * i + 1

@ti.kernel
def total() -> ti.i32:
    s = 0
    for i in x:
        s += x[i]
    return s

fill(3)
print(total(), "cache" in fill.inspect()["times"])
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def environment():
    return {**os.environ, "AEROGEL_OFFLINE_CACHE": "1"}


def run(program: Path, cache: Path) -> subprocess.CompletedProcess:
    command = [sys.executable, str(program), str(cache)]
    return subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=120, check=True)


def entries(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.kernel"))


def start(folder: Path, **kwargs):
    """A new program in this process, with a cache."""
    ti.init(arch=ti.cpu, log_level="warn", offline_cache=True, offline_cache_file_path=str(folder), **kwargs)


@pytest.fixture(autouse=True)
def cache_allowed(monkeypatch):
    monkeypatch.delenv("AEROGEL_OFFLINE_CACHE")
    yield
    ti.reset()


@ti.kernel
def double(a: ti.i32) -> ti.i32:
    return a * 2


def from_cache(kernel) -> bool:
    return "cache" in kernel.inspect()["times"]


def test_another_process_finds_what_one_has_compiled(program, tmp_path):
    cache = tmp_path / "deep" / "cache"
    first = run(program, cache)
    assert first.stdout.split() == [str(3 * 120 + 16), "False"]
    files = entries(cache)
    assert len(files) == 2
    assert cache.stat().st_mode & 0o777 == 0o700
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in files)
    again = run(program, cache)
    assert again.stdout.split() == [str(3 * 120 + 16), "True"]
    assert entries(cache) == files


def test_it_is_taken_from_there(tmp_path):
    start(tmp_path)
    assert double(4) == 8
    assert not from_cache(double)
    start(tmp_path)
    assert double(4) == 8
    assert from_cache(double)


OPTIONS = [{"debug": True}, {"debug_races": True}, {"opt_level": 1}, {"fast_math": False}, {"default_ip": ti.i64}]
OPTIONS += [{"deterministic": True}]


@pytest.mark.parametrize("option", OPTIONS)
def test_other_options_are_other_kernels(tmp_path, option):
    @ti.kernel
    def third(a: ti.i32) -> ti.f32:
        assert a < 10
        n = 1
        return (a + n) / 3

    start(tmp_path)
    third(4)
    start(tmp_path, **option)
    third(4)
    assert not from_cache(third)
    assert len(entries(tmp_path)) == 2


def test_switched_off(tmp_path):
    ti.init(arch=ti.cpu, log_level="warn", offline_cache=False, offline_cache_file_path=str(tmp_path))
    assert double(4) == 8
    assert list(tmp_path.iterdir()) == []


def damages(whole: bytes):
    """Damaged versions of a file."""
    draw = random.Random(0)
    for k in range(0, len(whole), max(1, len(whole) // 60)):
        yield whole[:k]
    for _ in range(150):
        at = draw.randrange(len(whole))
        yield whole[:at] + bytes([whole[at] ^ (1 << draw.randrange(8))]) + whole[at + 1 :]
    yield whole + b"more"
    yield whole[:-1] + b"\0"
    yield b"not a kernel at all"


def test_a_damaged_file_is_made_again(tmp_path):
    start(tmp_path)
    double(1)
    (file,) = entries(tmp_path)
    whole = file.read_bytes()
    for damaged in damages(whole):
        file.write_bytes(damaged)
        start(tmp_path)
        assert double(21) == 42
        if damaged != whole:
            assert not from_cache(double)
        assert file.read_bytes() == whole


def test_a_file_of_another_kernel(tmp_path):
    @ti.kernel
    def triple(a: ti.i32) -> ti.i32:
        return a * 3

    start(tmp_path)
    double(1)
    (first,) = entries(tmp_path)
    triple(1)
    (second,) = set(entries(tmp_path)) - {first}
    first.write_bytes(second.read_bytes())
    start(tmp_path)
    assert double(21) == 42


def test_a_folder_in_place_of_a_file(tmp_path):
    start(tmp_path)
    double(1)
    (file,) = entries(tmp_path)
    file.unlink()
    file.mkdir()
    (file / "inside").write_text("x")
    start(tmp_path)
    assert double(21) == 42
    assert (file / "inside").exists()


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o722])
def test_a_folder_that_others_may_write_is_not_used(tmp_path, capfd, mode):
    tmp_path.chmod(mode)
    start(tmp_path)
    assert double(21) == 42
    assert list(tmp_path.iterdir()) == []
    double(22)
    messages = capfd.readouterr()
    assert (messages.out + messages.err).count("others may write") == 1


def test_a_link_is_not_used(tmp_path, capfd):
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    start(tmp_path / "link")
    assert double(21) == 42
    assert list((tmp_path / "real").iterdir()) == []
    messages = capfd.readouterr()
    assert "is a link" in messages.out + messages.err


def test_a_file_in_place_of_the_folder(tmp_path, capfd):
    (tmp_path / "cache").write_text("something else")
    start(tmp_path / "cache")
    assert double(21) == 42
    messages = capfd.readouterr()
    assert "cannot be made" in messages.out + messages.err
    assert (tmp_path / "cache").read_text() == "something else"


def test_a_file_that_others_may_write_is_not_loaded(tmp_path):
    start(tmp_path)
    double(1)
    (file,) = entries(tmp_path)
    file.chmod(0o666)
    start(tmp_path)
    assert double(21) == 42
    assert not from_cache(double)
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_fifo_in_place_of_a_file_is_not_waited_for(tmp_path):
    start(tmp_path)
    double(1)
    (file,) = entries(tmp_path)
    file.unlink()
    os.mkfifo(file, 0o600)
    start(tmp_path)
    assert double(21) == 42


def test_the_oldest_are_removed_when_there_are_too_many(tmp_path):
    start(tmp_path, offline_cache_max_size_of_files=10000, offline_cache_cleaning_factor=0.5)
    for k in range(24):

        @ti.kernel
        def scaled(a: ti.i32) -> ti.i32:
            return a * ti.static(k) + ti.static(k * k)  # noqa: B023

        assert scaled(2) == 2 * k + k * k
    files = entries(tmp_path)
    assert 0 < len(files) < 24
    assert sum(file.stat().st_size for file in files) <= 10000


def test_what_other_builds_made_is_removed(tmp_path):
    old = tmp_path / "0123abcd-0000.kernel"
    other = tmp_path / "notes.txt"
    old.write_text("old")
    other.write_text("mine")
    start(tmp_path, offline_cache_cleaning_policy="version")
    assert double(21) == 42
    assert not old.exists()
    assert other.exists()


def test_a_policy_that_there_is_not(tmp_path):
    with pytest.raises(ValueError, match="never, version, lru or fifo"):
        start(tmp_path, offline_cache_cleaning_policy="always")


def test_messages_name_the_line_where_the_kernel_is_now(tmp_path):
    kernel = "@ti.kernel\ndef check(a: ti.i32):\n    assert a < 5, 'too large'\n"
    head = "import sys\nimport aerogel as ti\n"
    head += "ti.init(arch=ti.cpu, debug=True, offline_cache=True, offline_cache_file_path=sys.argv[1])\n"
    tail = "try:\n    check(7)\nexcept ti.TaichiAssertionError as e:\n    print(e)\n"
    lines = []
    for blank in (0, 5):
        path = tmp_path / "moved.py"
        path.write_text(head + "\n" * blank + kernel + tail)
        found = run(path, tmp_path / "cache").stdout
        assert "too large" in found
        assert f"moved.py:{6 + blank}:" in found
        lines.append(found)
    assert lines[0] != lines[1]
    assert len(entries(tmp_path / "cache")) == 1


def test_many_processes_at_once(program, tmp_path):
    cache = tmp_path / "cache"
    command = [sys.executable, str(program), str(cache)]
    pipe = subprocess.PIPE
    runs = [subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment()) for _ in range(8)]
    for each in runs:
        out, err = each.communicate(timeout=300)
        assert each.returncode == 0, err
        assert out.startswith(f"{3 * 120 + 16} ")
    assert len(entries(cache)) == 2
    assert not list(cache.glob(".writing-*"))


def test_the_command_shows_and_removes(tmp_path):
    start(tmp_path)
    double(1)
    (tmp_path / "notes.txt").write_text("mine")
    env = {**environment(), "AEROGEL_OFFLINE_CACHE_FILE_PATH": str(tmp_path)}

    def command(*words):
        line = [sys.executable, "-m", "aerogel", "cache", *words]
        return subprocess.run(line, capture_output=True, text=True, env=env, check=True).stdout

    assert f"{tmp_path}: 1 compiled kernels" in command()
    assert "removed" in command("clean")
    assert [p.name for p in tmp_path.iterdir()] == ["notes.txt"]
    assert ": 0 compiled kernels" in command("clean")


def test_what_a_killed_process_was_writing_is_removed(tmp_path):
    left, being_written, others = (tmp_path / name for name in (".writing-old", ".writing-new", "notes.txt"))
    for path in (left, being_written, others):
        path.write_bytes(b"half")
    for path in (left, others):
        os.utime(path, (0, 0))
    start(tmp_path)
    assert double(3) == 6
    assert not left.exists() and being_written.exists() and others.exists()


def test_many_threads_at_once(tmp_path):
    """Each kernel is compiled and kept once, whoever calls first."""
    start(tmp_path)
    lowered = []

    def note(by):
        lowered.append(by)

    @ti.kernel
    def scaled(a: ti.i32, by: ti.template()) -> ti.i32:
        ti.static(note(by))
        return a * by

    at_once = threading.Barrier(8)
    answers = [None] * 8

    def work(k):
        at_once.wait()
        answers[k] = [scaled(k, by) for by in range(6)]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [[k * by for by in range(6)] for k in range(8)]
    assert sorted(lowered) == list(range(6))
    assert len(entries(tmp_path)) == 6


def test_a_kernel_that_its_own_compilation_calls(tmp_path):
    """What compiles does not wait for itself, nor do two threads that compile wait for each other."""
    start(tmp_path)
    depth = [0]

    def once_more():
        depth[0] += 1
        return outer(1) if depth[0] < 3 else 5

    @ti.kernel
    def outer(a: ti.i32) -> ti.i32:
        return ti.static(once_more()) + a

    assert outer(1) == 8


MANY = """
import importlib.util, sys
import aerogel as ti

folder, source = sys.argv[1:]
spec = importlib.util.spec_from_file_location("many", source)
ti.init(arch=ti.cpu, log_level="warn", offline_cache=True, offline_cache_file_path=folder)
many = importlib.util.module_from_spec(spec)
spec.loader.exec_module(many)
print("ready", flush=True)
print([kernel(2) for kernel in many.KERNELS], flush=True)
"""


def test_processes_that_are_killed_leave_a_cache_that_serves(tmp_path):
    folder, source, program = tmp_path / "cache", tmp_path / "many.py", tmp_path / "program.py"
    n = 20
    kernels = "\n".join(f"@ti.kernel\ndef k{k}(a: ti.i32) -> ti.i32:\n    return a * {k} + 7" for k in range(n))
    names = ", ".join(f"k{k}" for k in range(n))
    source.write_text(f"import aerogel as ti\n\n{kernels}\nKERNELS = [{names}]\n")
    program.write_text(MANY)
    command = [sys.executable, str(program), str(folder), str(source)]
    chance = random.Random(8)
    for _ in range(int(os.environ.get("AEROGEL_N_KILLS", "5"))):
        killed = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment())
        assert killed.stdout is not None and killed.stdout.readline() == "ready\n"
        with contextlib.suppress(subprocess.TimeoutExpired):
            killed.wait(chance.random() * 0.2)
        killed.kill()
        killed.communicate()
        # What was made anew is written by the next process, and so on.
        for file in chance.sample(entries(folder), k=len(entries(folder)) // 2):
            file.unlink()
    out = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=120, check=True).stdout
    assert out.splitlines()[1] == str([2 * k + 7 for k in range(n)])


def test_random_damage(tmp_path):
    """`AEROGEL_N_FAULTS` says how many are tried."""
    start(tmp_path)
    double(1)
    (file,) = entries(tmp_path)
    whole = file.read_bytes()
    chance = random.Random(9)
    for _ in range(int(os.environ.get("AEROGEL_N_FAULTS", "40"))):
        damaged = bytearray(whole)
        kind = chance.randrange(4)
        if kind == 0:
            del damaged[chance.randrange(len(whole)) :]
        elif kind == 1:
            damaged[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
        elif kind == 2:
            at = chance.randrange(len(whole))
            damaged[at : at + chance.randrange(1, 512)] = chance.randbytes(chance.randrange(512))
        else:
            damaged += chance.randbytes(chance.randrange(1, 4096))
        file.write_bytes(damaged)
        start(tmp_path)
        assert double(21) == 42
        assert bytes(damaged) == whole or not from_cache(double)
        assert file.read_bytes() == whole


def test_changed_files_are_not_used(tmp_path):
    """`AEROGEL_MUTATIONS=100000` for so many files."""
    start(tmp_path)
    assert double(4) == 8
    (file,) = entries(tmp_path)
    good = file.read_bytes()
    for k in range(int(os.environ.get("AEROGEL_MUTATIONS", "30"))):
        bad = changed(good, random.Random(k))
        file.write_bytes(bad)
        start(tmp_path)
        assert double(4) == 8
        assert from_cache(double) == (bad == good), k
        if bad != good:
            assert file.read_bytes() == good
