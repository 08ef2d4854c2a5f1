"""Ctrl-C while a kernel is compiled: it is heard, and the program goes on."""

import os
import signal
import threading

import apart
import pytest

import aerogel as ti
from aerogel import _native


def interrupted(start, turns):
    """A program whose kernel calls ``start`` while it is lowered, and is long to compile."""
    ti.init(arch=ti.cpu, log_level="error")
    x = ti.field(ti.i32, 8)

    @ti.kernel
    def long():
        ti.static(start())
        for i in ti.static(range(turns)):
            x[i % 8] += i * x[(i + 3) % 8]

    @ti.kernel
    def right(n: ti.i32) -> ti.i32:
        return n * 2

    with pytest.raises(KeyboardInterrupt):
        long()
    assert right(21) == 42
    ti.init(arch=ti.cpu, log_level="error")
    assert right(4) == 8
    # In a fork there is no thread to wait for.
    assert apart.run(lambda: str(_native.finish()), 20) == ("None", "")
    _native.finish()
    return "went on"


def test_while_it_is_lowered():
    said, terminal = apart.run(lambda: interrupted(lambda: signal.raise_signal(signal.SIGINT), 60000), 60)
    assert said == "went on", terminal


def test_while_it_is_compiled():
    def start():
        """Sends a signal when lowering is over, or if the machine is slow before that."""
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()

    said, terminal = apart.run(lambda: interrupted(start, 8000), 400)
    assert said == "went on", terminal
