"""Code for a level of processors instead of the one at hand: ``ti.init(cpu=...)`` and ``AEROGEL_CPU``."""

import os
import platform
import subprocess
import sys

import aerogel as ti
import numpy as np
import pytest

LEVELS = ["x86-64-v2", "x86-64-v3", "x86-64-v4"]


def runnable():
    """The levels that this processor executes."""
    found = []
    for level in LEVELS:
        try:
            ti.init(cpu=level, log_level="error")
            found.append(level)
        except ValueError:
            pass
    ti.reset()
    return found


@pytest.mark.skipif(platform.machine() != "x86_64", reason="levels are those of x86-64")
def test_lowest_level_is_there():
    assert "x86-64-v2" in runnable()


@pytest.mark.parametrize("fast_math", [False, True])
def test_levels_agree(fast_math):
    """Bit by bit without fast maths; to a few units in the last place with it."""
    x = np.random.default_rng(1).uniform(-3, 3, (1000, 3)).astype(np.float32)
    h = x[:, 0].astype(np.float16)
    results = {}
    for level in ["native", *runnable()]:
        ti.init(cpu=level, fast_math=fast_math, log_level="error")
        n = x.shape[0]
        v = ti.Vector.field(3, ti.f32, n)
        half, double, scalar = ti.field(ti.f16, n), ti.field(ti.f64, n), ti.field(ti.f32, n)
        v.from_numpy(x)
        half.from_numpy(h)

        @ti.kernel
        def work():
            for i in v:
                a = v[i]
                half[i] = half[i] * half[i] + 0.5
                double[i] = ti.exp(ti.f64(a.x)) * ti.sin(ti.f64(a.y))
                scalar[i] = ti.rsqrt(a.dot(a) + 1e-3) * ti.sqrt(abs(a.x)) / (1.5 + abs(a.y))
                v[i] = a.normalized() * ti.atan2(a.x, a.y) + ti.pow(abs(a), 0.3)

        work()
        results[level] = [f.to_numpy() for f in (v, half, double, scalar)]
    first = results.pop("native")
    for found in results.values():
        for a, b in zip(first, found):
            if fast_math:
                np.testing.assert_allclose(a, b, rtol=32 * np.finfo(a.dtype).eps, atol=32 * np.finfo(a.dtype).eps)
            else:
                np.testing.assert_array_equal(a, b)


def test_unknown_level():
    with pytest.raises(ValueError, match='runs code for native.*not for "pentium"'):
        ti.init(cpu="pentium")
    with pytest.raises(TypeError, match="cpu is a string"):
        ti.init(cpu=3)


def test_environment_and_cache(tmp_path):
    """``AEROGEL_CPU`` is heard, and code for one level is not taken for another."""
    program = (
        "import aerogel as ti\nti.init(log_level='error')\n"
        "@ti.kernel\ndef f(a: ti.f32) -> ti.f32:\n    return ti.sqrt(a)\n"
        "print(f(2.0), ti.cfg.cpu)\n"
    )
    (tmp_path / "p.py").write_text(program)
    for k, level in enumerate(["native", *runnable()]):
        env = os.environ | {
            "AEROGEL_CPU": level,
            "AEROGEL_OFFLINE_CACHE": "1",
            "AEROGEL_OFFLINE_CACHE_FILE_PATH": str(tmp_path / "cache"),
        }
        done = subprocess.run([sys.executable, "p.py"], cwd=tmp_path, env=env, capture_output=True, text=True)
        assert done.stdout == f"1.4142135381698608 {level}\n", done.stderr
        assert len(list((tmp_path / "cache").glob("*.kernel"))) == k + 1
