"""Results of the gallery on different processors: equal bit by bit, but for the programs that a list names with reasons.

By default a compiler may regroup accumulations only, and how many lanes an accumulation has is the processor's own;
`scripts/gallery_levels.py` runs all programs.
"""

import platform

import pytest
from decisions import gallery
from test_cpu import runnable

pytestmark = [
    pytest.mark.skipif(platform.machine() != "x86_64", reason="levels are those of x86-64"),
    pytest.mark.skipif(not (gallery.ROOT / "examples").exists(), reason="the examples are not here"),
]


def test_results_differ_by_accumulations_only():
    levels = runnable()
    if len(levels) < 2:
        pytest.skip("this processor executes one level only")
    found = gallery.compared(levels, gallery.SHORT)
    unexpected = {name: what for name, what in found.items() if name not in gallery.may_differ()}
    assert not unexpected, unexpected


def test_fingerprints_see_a_last_bit():
    """The hash of a field with one bit changed is another one; the payload of a NaN does not matter."""
    np = gallery.np
    x = np.linspace(0, 1, 100, dtype=np.float32)
    y = x.copy()
    y[17] = np.nextafter(y[17], np.float32(2))
    assert gallery.digest(x) != gallery.digest(y)
    a, b = np.array([0x7FC00000, 0x7FC00001], np.uint32).view(np.float32)
    assert gallery.digest(np.float32([a])) == gallery.digest(np.float32([b]))
