"""Every test that takes `arch` runs once in the reference interpreter and once compiled."""

import os

import numpy as np
import pytest

import aerogel as ti

# Programs that `test_wrong_programs.py` and `test_types.py` read, not tests.
collect_ignore_glob = ["wrong/*", "typed/*"]

# What is compiled in a test is compiled there.
os.environ["AEROGEL_OFFLINE_CACHE"] = "0"


@pytest.fixture(params=["interp", "cpu"])
def arch(request):
    ti.init(arch=request.param, log_level="error")
    yield request.param
    ti.reset()


@pytest.fixture(params=["interp", "cpu"])
def debug(request):
    ti.init(arch=request.param, debug=True, log_level="error")
    yield request.param
    ti.reset()


@pytest.fixture
def cpu():
    ti.init(arch=ti.cpu, log_level="error")
    yield
    ti.reset()


@pytest.fixture
def rng():
    return np.random.default_rng(0)
