"""Every test that takes `arch` runs once in the reference interpreter and once compiled."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest
from desk import (
    display,  # noqa: F401  A fixture.
    needs_vulkan,
)
from not_on_gpus import NOT_ON_GPUS

import aerogel as ti

# What tests read or run by themselves.
collect_ignore_glob = ["bridges/*", "wrong/*", "typed/*", "tensor_gradients/*"]

# A shell that starts something in the background has it ignore Ctrl-C, and so what that starts: tests that send one would wait
# for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# What is compiled in a test is compiled there.
os.environ["AEROGEL_OFFLINE_CACHE"] = "0"

# `AEROGEL_TEST_ARCH=cuda` runs all on a GPU, or with `AEROGEL_CUDA=machine` on the machine that is like one: what tests ask
# for gives way to the environment.
TEST_ARCH = os.environ.get("AEROGEL_TEST_ARCH", "")
if TEST_ARCH:
    os.environ["AEROGEL_ARCH"] = TEST_ARCH
ARCHS = ["cpu"] if TEST_ARCH else ["interp", "cpu"]


ROOT = Path(__file__).parents[2]


def pytest_collection_modifyitems(items):
    if TEST_ARCH != "cuda":
        return
    for item in items:
        file = item.path.name
        names = (f"{file}::{item.name}", f"{file}::{getattr(item, 'originalname', item.name)}", file)
        reason = next((NOT_ON_GPUS[name] for name in names if name in NOT_ON_GPUS), None)
        if reason is not None:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """What a test writes is in a folder of its own."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session", autouse=True)
def the_repository_gains_no_files():
    before = set(os.listdir(ROOT))
    yield
    # What git ignores may come, as the caches of tools.
    gained = {name for name in set(os.listdir(ROOT)) - before if not name.startswith(".")} - {"out", "dist", "target"}
    assert not gained, f"tests wrote {sorted(gained)} into the repository"


@pytest.fixture(params=ARCHS)
def arch(request):
    ti.init(arch=request.param, log_level="error")
    yield request.param
    ti.reset()


@pytest.fixture(params=ARCHS)
def debug(request):
    ti.init(arch=request.param, debug=True, log_level="error")
    yield request.param
    ti.reset()


@pytest.fixture
def cpu():
    ti.init(arch=ti.cpu, log_level="error")
    yield
    ti.reset()


@pytest.fixture(params=["software", pytest.param("vulkan", marks=needs_vulkan)])
def drawn_by(request, cpu, monkeypatch):
    if request.param == "software":
        monkeypatch.setattr("aerogel.ui._backend._viz", lambda: (None, "this test is without"))
    return request.param


@pytest.fixture
def rng():
    return np.random.default_rng(0)
