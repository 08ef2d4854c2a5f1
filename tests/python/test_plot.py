"""Curves as pictures and as text."""

import math

import numpy as np
import pytest

import aerogel as ti
from aerogel.tools import imread


def test_pictures(tmp_path):
    path = tmp_path / "a.png"
    values = {"falling": [math.exp(-k / 9) for k in range(50)], "rising": [k / 50 for k in range(50)]}
    ti.plot(values, path, title="two curves")
    image = imread(str(path))
    assert image.shape == (800, 500, 3) and (image[0, 0] == 255).all()
    for color in ((0x00, 0x72, 0xB2), (0xD5, 0x5E, 0x00)):
        at = np.argwhere((image == color).all(-1))
        assert len(at) > 200
        inside = at[(at[:, 0] < 600)]  # Not the legend.
        way = np.polyfit(inside[:, 0], inside[:, 1], 1)[0]
        assert way < 0 if color[0] == 0 else way > 0
    ti.plot([1.0, 10.0, 100.0, -1.0, math.nan, 1000.0], path, log=True, size=(200, 150))
    assert imread(str(path)).shape == (200, 150, 3)


def test_text(capsys):
    chart = ti.plot({"loss": [3.0, 2.0, 1.0, 0.0]}, title="run")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "run: loss" and lines[1].startswith("3 \u2809") and lines[-1].startswith("0 \u2800")
    assert len(lines) == 11
    text = chart.text(width=22, height=5).splitlines()
    assert len(text) == 6 and all(len(line) <= 22 for line in text)
    chart.update({"loss": [0.0, 1.0]})
    assert capsys.readouterr().out.splitlines()[-1].startswith("0 \u28c0")
    for values in (
        [1.0],
        [2.0, 2.0],
        [math.nan, math.inf],
        np.array([3]),
        ti.tensor.arange(3),
        [ti.tensor.asarray(1.0)],
    ):
        ti.plot(values)
    assert "\u2800" in capsys.readouterr().out


def test_in_a_frame():
    gui = ti.GUI("curve", (300, 200), show_gui=False)
    chart = ti.plot([1.0, 2.0], gui=gui)
    first = gui.get_image()
    chart.update([2.0, 1.0])
    assert (gui.get_image() != first).any() and (first[..., :3] == 1).mean() > 0.9
    gui.close()


def test_wrong():
    for call, words in (
        (lambda: ti.plot({}), "at least one curve"),
        (lambda: ti.plot({"a": [[1.0]]}), r"the curve `a` has values along one axis, its shape is \(1, 1\)"),
        (lambda: ti.plot([]), r"its shape is \(0,\)"),
        (lambda: ti.plot([1.0], x=[1.0, 2.0]), r"has 1 values, `x` has the shape \(2,\)"),
        (lambda: ti.plot([1.0], size=(10, 10)), "at least 100 pixels"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
