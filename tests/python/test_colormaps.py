"""Colour maps of `imwrite`, `imshow`, `GUI.set_image` and windows."""

import numpy as np
import pytest

import aerogel as ti
from aerogel import _colormaps

# What matplotlib has at 0, 64, 128, 192 and 255 of 255.
KNOWN = {
    "viridis": [(68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37)],
    "magma": [(0, 0, 4), (81, 18, 124), (183, 55, 121), (252, 137, 97), (252, 253, 191)],
    "plasma": [(13, 8, 135), (126, 3, 168), (204, 71, 120), (248, 149, 64), (240, 249, 33)],
    "inferno": [(0, 0, 4), (87, 16, 110), (188, 55, 84), (249, 142, 9), (252, 255, 164)],
    "gray": [(0, 0, 0), (64, 64, 64), (128, 128, 128), (192, 192, 192), (255, 255, 255)],
}


@pytest.mark.parametrize("name", KNOWN)
def test_known_colours(name):
    found = _colormaps.table(name)[[0, 64, 128, 192, 255]].astype(int)
    assert np.abs(found - KNOWN[name]).max() <= 2
    assert (_colormaps.table(name + "_r") == _colormaps.table(name)[::-1]).all()


def test_matplotlibs_tables():
    maps = pytest.importorskip("matplotlib").colormaps
    for name in _colormaps._TABLES:
        wanted = maps[name](np.arange(256))[:, :3] * 255
        assert np.abs(_colormaps.table(name) - wanted).max() <= 3, name


def test_images(tmp_path):
    path = str(tmp_path / "a.png")
    values = np.array([[-4.0, 0.0, np.nan], [4.0, np.inf, -np.inf]])
    ti.tools.imwrite(values, path, cmap="gray")
    assert ti.tools.imread(path).tolist() == [
        [[0] * 3, [128] * 3, [255, 0, 200]],
        [[255] * 3, [255] * 3, [0] * 3],
    ]
    ti.tools.imwrite(np.array([[10, 20, 300]]), path, cmap="gray", vmin=0, vmax=20)
    assert ti.tools.imread(path)[0, :, 0].tolist() == [128, 255, 255]
    ti.tools.imwrite(np.full((2, 2), 7), path, cmap="viridis")
    assert ti.tools.imread(path)[1, 1].tolist() == [68, 1, 84]


def test_fields_in_a_gui_and_in_a_window():
    ti.init(arch=ti.cpu, log_level="error")
    x = ti.field(ti.i32, (4, 3))
    x.from_numpy(np.arange(12).reshape(4, 3))
    wanted = _colormaps.colored(x, "turbo")
    gui = ti.GUI("", (4, 3), show_gui=False)
    gui.set_image(x, cmap="turbo")
    assert ((gui.get_image()[..., :3] * 255 + 0.5).astype(np.uint8) == wanted).all()
    window = ti.ui.Window("", (4, 3), show_window=False)
    window.get_canvas().set_image(x, cmap="turbo")
    assert np.abs(window.get_image_buffer_as_numpy()[..., :3] * 255 - wanted).max() <= 1
    ti.reset()


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(cmap="viridi"), "no colour map 'viridi'.*there are viridis"),
        (dict(vmin=0), "vmin= and vmax= are the range of cmap=, which is not given"),
        (dict(cmap="gray", img=np.zeros((2, 2, 3))), r"numbers along two axes; this is float64\(2, 2, 3\)"),
    ],
)
def test_errors(tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        ti.tools.imwrite(**{"img": np.zeros((2, 2)), "filename": str(tmp_path / "a.png"), **arguments})
    assert not list(tmp_path.iterdir())
