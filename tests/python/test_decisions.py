"""Generated decisions agree with NumPy, one operation after the other; `scripts/decisions.py` takes more of them.

By default each float expression is rounded as it is written, so that a floor, a comparison or a root decides as in NumPy.
"""

import numpy as np
import pytest
from conftest import ARCHS, TEST_ARCH
from decisions import expressions, formats, patterns, quotients, run

import aerogel as ti

pytestmark = pytest.mark.filterwarnings("error")
# The simulator of GPUs takes its time.
N = {"interp": 20_000, "cpu": 20_000 if TEST_ARCH else 60_000}


@pytest.fixture(autouse=True)
def after():
    yield
    ti.reset()


@pytest.mark.parametrize("kind", formats.KINDS)
@pytest.mark.parametrize("arch", ARCHS)
def test_kernels_decide_as_numpy(arch, kind):
    tally = run.run_programs(arch, N[arch], kinds=[kind])
    assert not tally.failures, str(tally)


@pytest.mark.parametrize("arch", ARCHS)
def test_tensors_decide_as_numpy(arch):
    tally = run.run_tensors(arch, N[arch])
    assert not tally.failures, str(tally)


@pytest.mark.parametrize("arch", ARCHS)
def test_quotients_are_correctly_rounded(arch):
    tally = run.run_quotients(arch, N[arch])
    assert not tally.failures, str(tally)


def test_there_are_many_patterns():
    assert len(patterns.expressions()) > 200 and len(patterns.patterns()) > 1500


def test_the_reference_rounds_once():
    """A `bf16` next to a tie, integers among floats, and constants that Python computes."""
    assert formats.from_double("bf16", 1 + 2**-8 + 2**-40) == 1 + 2**-7
    assert formats.from_double("bf16", 1 + 3 * 2**-8 - 2**-40) == 1 + 2**-7
    every = formats.from_bits("bf16", np.arange(1 << 16))
    finite = every[np.isfinite(every)]
    assert (formats.rounded("bf16", finite) == finite).all()
    evaluator = expressions.Evaluator("f32")
    x = expressions.Value("f32", np.float32([1]))
    assert evaluator.of("x * (0.1 * 0.3)", {"x": x}).array[0] == np.float32(0.1 * 0.3)
    assert evaluator.of("x * 0.1 * 0.3", {"x": x}).array[0] == np.float32(0.1) * np.float32(0.3)
    assert evaluator.of("round(x - 0.50000003)", {"x": x}).array[0] == 0


def test_quotients_of_integers():
    """The reference of quotients at the ends of the range: subnormal, overflowing, halfway."""
    least = 5e-324
    assert quotients.exact_quotient(least, 2.0) == 0 and quotients.exact_quotient(3 * least, 2.0) == 2 * least
    assert quotients.exact_quotient(1e300, -1e-300) == -np.inf
    assert not quotients.sample(np.random.default_rng(0), 2000).size
