"""The examples of this repository run, on real input where they take any."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent.parent


def start(*command, first=()):
    """Runs a program that finds modules in the folders ``first`` before all others."""
    env = dict(os.environ)
    env["PYTHONPATH"] = os.pathsep.join([*map(str, first), *(p for p in sys.path if p)])
    return subprocess.run([sys.executable, *command], env=env, capture_output=True, text=True, timeout=300)


def run(*command):
    done = start(*command)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_command_line_of_an_example(tmp_path):
    """Its parameters are options."""
    out = tmp_path / "mpm.png"
    said = run(ROOT / "examples/mpm.py", "--frames", "1", "--particles", "300", "--out", out)
    assert f"the picture is {out}" in said and "mass: 1" in said
    assert out.stat().st_size > 1000


def test_levelset(tmp_path):
    pytest.importorskip("trimesh")
    pytest.importorskip("pymeshfix")
    out = tmp_path / "bunny.png"
    assert "cells: " in run(ROOT / "examples/levelset.py", "--small", "--out", out)
    assert out.stat().st_size > 2000


@pytest.mark.parametrize("absent", ["pymeshfix", "trimesh"])
def test_levelset_says_what_it_needs(tmp_path, absent):
    for name in ("pymeshfix", "trimesh"):
        text = f"raise ModuleNotFoundError('there is none', name={name!r})" if name == absent else ""
        (tmp_path / f"{name}.py").write_text(text)
    for command in ([ROOT / "examples/levelset.py"], ["-m", "aerogel", "example", "levelset"]):
        done = start(*command, "--small", first=[tmp_path])
        assert done.returncode == 1
        assert f"this example needs {absent}: pip install trimesh pymeshfix\n" in done.stderr
        assert "Traceback" not in done.stderr


def reference(image, radius, reach, contrast):
    """The bilateral filter in NumPy."""
    height, width, _ = image.shape
    total, weights = np.zeros_like(image), np.zeros((height, width, 1))
    for dk in range(-radius, radius + 1):
        for dl in range(-radius, radius + 1):
            k, l = slice(max(dk, 0), height + min(dk, 0)), slice(max(dl, 0), width + min(dl, 0))
            i, j = slice(max(-dk, 0), height + min(-dk, 0)), slice(max(-dl, 0), width + min(-dl, 0))
            away = ((image[k, l] - image[i, j]) ** 2).sum(-1, keepdims=True) / (2 * contrast**2)
            w = np.exp(-away - (dk * dk + dl * dl) / (2 * reach**2))
            total[i, j] += w * image[k, l]
            weights[i, j] += w
    return total / weights


def test_a_photograph(tmp_path):
    image_module = pytest.importorskip("PIL.Image")
    photo, out = ROOT / "tests/data/grace_hopper.jpg", tmp_path / "out.png"
    assert "512 by 600 pixels" in run(ROOT / "examples/photo.py", photo, out)
    image = np.asarray(image_module.open(photo).convert("RGB"), np.float64) / 255
    got = np.asarray(image_module.open(out), np.float64) / 255
    want = reference(image, 6, 4.0, 0.12)
    assert got.shape == image.shape
    # To the nearest of 256 levels, with room for rounding.
    assert np.abs(got - want).max() < 1.5 / 255
    # It smooths, and keeps what is there.
    assert np.abs(np.diff(got, axis=0)).mean() < 0.6 * np.abs(np.diff(image, axis=0)).mean()
    assert abs(got.mean() - image.mean()) < 0.01
