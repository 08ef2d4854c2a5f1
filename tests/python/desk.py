"""A desktop that nobody looks at, for tests of windows: a display, and programs with a window on it."""

import os
import shutil
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import aerogel as ti


def vulkan():
    try:
        import aerogel_viz

        aerogel_viz.adapter()
    except (ImportError, RuntimeError):
        return False
    return True


needs_desk = [
    pytest.mark.skipif(not vulkan(), reason="there is no Vulkan, or no aerogel_viz"),
    pytest.mark.skipif(not (shutil.which("Xvfb") and shutil.which("xdotool")), reason="Xvfb or xdotool is missing"),
]


@pytest.fixture
def display(tmp_path):
    r, w = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(w), "-screen", "0", "1024x768x24", "-nolisten", "tcp", "-fbdir", tmp_path],
        pass_fds=[w],
        stderr=subprocess.DEVNULL,
    )
    os.close(w)
    with os.fdopen(r) as told:
        number = told.readline().strip()
    assert number, "Xvfb does not start"
    server.name = f":{number}"
    server.screen = tmp_path / "Xvfb_screen0"
    yield server
    server.kill()
    server.wait()


def colors(display):
    """The colours on the screen, each as (red, green, blue), with the number of their pixels."""
    # An XWD file: a head of big-endian words, a table of colours, and rows of BGRX.
    dump = display.screen.read_bytes()
    head = np.frombuffer(dump[:100], ">u4")
    size, width, height, line, n_table = (int(head[k]) for k in (0, 4, 5, 12, 19))
    rows = np.frombuffer(dump, np.uint8, line * height, size + 12 * n_table).reshape(height, line)
    pixels = rows[:, : 4 * width].reshape(-1, 4)[:, 2::-1]
    found, numbers = np.unique(pixels, axis=0, return_counts=True)
    return {tuple(color.tolist()): int(n) for color, n in zip(found, numbers)}


class Program:
    """A program with a window, which says what it sees line by line."""

    def __init__(self, text, display, tmp_path, stdin=None, **environment):
        head = 'import aerogel as ti\nti.init(log_level="error")\nimport sys, time\n'
        (tmp_path / "p.py").write_text(head + textwrap.dedent(text))
        env = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
        env.update(PYTHONUNBUFFERED="1", **environment)
        if display.name:
            env["DISPLAY"] = display.name
        self.env = env
        self.process = subprocess.Popen(
            [sys.executable, "p.py"],
            cwd=tmp_path,
            env=env,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def line(self):
        return self.process.stdout.readline().rstrip("\n")

    def until(self, wanted):
        """Reads on until a line is the wanted one, for two minutes at most."""
        seen, end = [], time.time() + 120
        while (line := self.line()) != wanted:
            seen.append(line)
            assert time.time() < end, f"{wanted!r} does not come: {seen[-40:]}"
            # Empty only at its end.
            assert line, f"{wanted!r} is not in {seen[-40:]}: {self.process.stderr.read()[-800:]}"

    def do(self, *words):
        subprocess.run(["xdotool", *map(str, words)], env=self.env, check=True, timeout=60, capture_output=True)

    def window(self):
        """The number of its window, which then hears keys."""
        found = ["xdotool", "search", "--sync", "--onlyvisible", "--name", "seen"]
        number = subprocess.run(found, env=self.env, capture_output=True, text=True, timeout=60).stdout.split()[0]
        self.do("windowfocus", "--sync", number)
        return number

    def end(self, told=None):
        out, err = self.process.communicate(told, timeout=90)
        return self.process.returncode, out.strip(), err


needs_vulkan = pytest.mark.skipif(not vulkan(), reason="there is no Vulkan, or no aerogel_viz")


def window(width=64, height=48):
    return ti.ui.Window("test", (width, height), show_window=False)


def near(pixel, color, tolerance=0.01):
    return np.abs(np.asarray(pixel[:3]) - color).max() <= tolerance
