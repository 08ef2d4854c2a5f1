"""TensorFrost's `window` and `imgui`, without a display: what a frame shows, and what the user would do."""

import numpy as np
import pytest

import aerogel as ti
from aerogel.tensor import frost as tf


@pytest.fixture(autouse=True)
def window(monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "AEROGEL_GUI_FRAMES"):
        monkeypatch.delenv(name, raising=False)
    tf.initialize(tf.cpu)
    yield tf.window
    tf.window.hide()


@pytest.fixture
def frame(monkeypatch):
    """The frame, as it is when it is shown."""
    frames = []
    show = ti.ui.Window.show

    def keep(self):
        frames.append(self.get_image_buffer_as_numpy()[:, ::-1, :3].swapaxes(0, 1))
        show(self)

    monkeypatch.setattr(ti.ui.Window, "show", keep)
    return lambda: frames[-1]


def test_a_frame_is_stretched_by_nearest_neighbours(window, frame):
    window.show(40, 20, "frame")
    assert window.get_size() == window.get_window_size() == (40, 20) and not window.should_close()
    image = np.zeros((2, 4, 3), np.float32)
    image[0, 1] = [1, 0.5, 0]
    image[1, 3] = [0, 0, 2]
    expected = np.kron(np.clip(image, 0, 1), np.ones((10, 10, 1)))
    for given in (image, tf.tensor(image), np.where(image == 0.5, 128, np.clip(image, 0, 1) * 255).astype(np.uint8)):
        window.render_frame(given)
        np.testing.assert_allclose(frame(), expected, atol=1 / 250)
    window.render_frame(np.array([[0.0, 1.0]], np.float32))
    assert frame()[:, :20].max() == 0 and frame()[:, 20:].min() == 1
    window.render_frame()
    with pytest.raises(ValueError, match=r"\(height, width, 3\)"):
        window.render_frame(np.zeros((2, 2, 2)))


def test_no_window():
    assert tf.window.should_close()
    for ask in (tf.window.get_size, lambda: tf.window.is_key_pressed(65), lambda: tf.imgui.text("a")):
        with pytest.raises(RuntimeError, match="call `tf.window.show"):
            ask()
    tf.window.hide()


def test_frames_may_be_counted(window, monkeypatch):
    monkeypatch.setenv("AEROGEL_GUI_FRAMES", "2")
    window.show(8, 8, "two frames")
    n = 0
    while not window.should_close():
        window.render_frame(np.ones((4, 4)))
        n += 1
    assert n == 2
    window.show(16, 8, "another")
    assert window.get_size() == (16, 8) and not window.should_close()


def test_keys_and_mouse(window, monkeypatch):
    """Names of keys, and places in pixels from the upper left corner."""
    window.show(40, 20, "keys")
    monkeypatch.setattr(ti.ui.Window, "is_pressed", lambda self, key: key in ("w", " ", "RMB"))
    monkeypatch.setattr(ti.ui.Window, "get_cursor_pos", lambda self: (0.25, 0.9))
    assert window.is_key_pressed(window.KEY_W) and window.is_key_pressed(window.KEY_SPACE)
    assert not window.is_key_pressed(window.KEY_A) and (window.KEY_Z, window.KEY_APOSTROPHE) == (90, 39)
    assert window.is_mouse_button_pressed(window.MOUSE_BUTTON_1)
    assert not window.is_mouse_button_pressed(window.MOUSE_BUTTON_0)
    np.testing.assert_allclose(window.get_mouse_position(), (10, 2))
    with pytest.raises(ValueError, match="0, 1 or 2"):
        window.is_mouse_button_pressed(7)
    with pytest.raises(ValueError, match="KEY_"):
        window.is_key_pressed(999)


def test_widgets(window, monkeypatch):
    """Each widget is one of `ti.ui`, in a panel; outside of panels there is one for debugging."""
    calls = []

    class Widgets:
        def __getattr__(self, name):
            def called(*args):
                calls.append((name, *args))
                return {"slider_int": 7, "slider_float": 0.5, "color_edit_3": (0.25, 0.5, 1.0), "button": True}.get(
                    name
                )

            return called

    window.show(300, 300, "widgets")
    monkeypatch.setattr(ti.ui.Window, "get_gui", lambda self: Widgets())
    tf.imgui.text("outside")
    tf.imgui.begin("panel")
    assert tf.imgui.slider("whole", 3, 0, 9) == 7 and tf.imgui.slider("real", 3, 0.0, 9) == 0.5
    assert tf.imgui.button("press")
    tf.imgui.checkbox("tick", False)
    assert tf.imgui.color_picker3("c", np.zeros(3, np.float32)).tolist() == [0.25, 0.5, 1]
    assert tf.imgui.color_picker4("d", np.zeros(4, np.float32)).tolist() == [0.25, 0.5, 1, 0.5]
    tf.imgui.end()
    names = [call[0] for call in calls]
    assert names == [
        "begin", "text", "end", "begin", "slider_int", "slider_float", "button", "checkbox", "color_edit_3",
        "color_edit_3", "slider_float", "end",
    ]  # fmt: skip
    assert calls[0][1] == "Debug" and calls[3][1] == "panel"
    # Panels do not cover each other.
    assert calls[0][2] + calls[0][4] <= calls[3][2]


def test_widgets_keep_their_values_where_nobody_is(window):
    window.show(30, 30, "nobody")
    tf.imgui.begin("panel")
    assert tf.imgui.slider("a", 3, 0, 9) == 3 and tf.imgui.slider("b", 0.25, 0.0, 9.0) == 0.25
    assert tf.imgui.checkbox("c", True) and not tf.imgui.button("d")
    tf.imgui.end()
    with pytest.raises(ValueError, match="the minimum 2 above its maximum 1"):
        tf.imgui.slider("a", 1, 2, 1)
    with pytest.raises(ValueError, match="positive"):
        tf.imgui.scale_all_sizes(0.0)


def test_curves_and_texts_are_drawn_over_the_frame(window, frame):
    window.show(200, 160, "curves")
    tf.imgui.plotlines("rising", np.linspace(0, 1, 50, dtype=np.float32), graph_size=(100, 40))
    tf.imgui.plotlines("second", [3.0, 1.0, np.nan, 1.0], overlay_text="note", scale_min=0.0, graph_size=(100, 40))
    window.render_frame(np.full((4, 4, 3), 0.2, np.float32))
    blue = frame()[..., 2] > 0.7
    # From the lower left of its box to the upper right.
    assert blue[40:48, 92:100].any() and blue[8:16, 184:193].any() and not blue[10:25, 95:120].any()
    # Lowest where the smallest values are, and a gap where one is missing.
    assert blue[72:112].any()
    # The next frame has none of it.
    window.render_frame(np.full((4, 4, 3), 0.2, np.float32))
    np.testing.assert_allclose(frame(), 0.2, atol=1 / 250)

    tf.imgui.add_background_text("M", (10, 12), (1.0, 0.0, 0.0))
    window.render_frame(np.zeros((4, 4, 3), np.float32))
    rows, columns = np.nonzero(frame()[..., 0] > 0.5)
    assert 10 <= rows.min() and rows.max() < 32 and 9 <= columns.min() and columns.max() < 28
    assert frame()[..., 1:].max() == 0


def test_the_values_of_curves(window, frame):
    """An offset rotates them, a stride leaves some out."""
    pictures = []
    values = np.array([0, 9, 1, 9, 2, 9, 3, 9], np.float32)
    for plot in (
        lambda: tf.imgui.plotlines("", values, stride=8),
        lambda: tf.imgui.plotlines("", [2, 3, 0, 1], values_offset=2),
        lambda: tf.imgui.plotlines("", [3, 2, 1, 0]),
    ):
        window.show(120, 90, "curves")
        plot()
        window.render_frame(np.zeros((2, 2)))
        pictures.append(frame())
    assert (pictures[0] == pictures[1]).all() and (pictures[0] != pictures[2]).any()
    with pytest.raises(ValueError, match="multiple of 4 bytes"):
        tf.imgui.plotlines("", values, stride=6)
    with pytest.raises(ValueError, match="one axis"):
        tf.imgui.plotlines("", values.reshape(2, 4))
