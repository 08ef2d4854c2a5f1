"""Images that a kernel writes into memory of the device, and what is drawn with them in one frame."""

import numpy as np
import pytest
from desk import needs_vulkan

import aerogel as ti
from aerogel.ui import _pixels

SHAPE = (310, 203)


def shown(w, image):
    w.get_canvas().set_image(image)
    return w.get_image_buffer_as_numpy()[..., :3]


@needs_vulkan
@pytest.mark.parametrize("dtype", [ti.f32, ti.u8, ti.u16, ti.u32])
@pytest.mark.parametrize("channels", [None, 1, 2, 3, 4])
def test_large_images_of_all_kinds(cpu, dtype, channels, monkeypatch):
    """Fields, arrays and NumPy arrays alike, and as without a kernel: to a byte's step, for what rounds at a half."""
    rng = np.random.default_rng(7)
    shape = SHAPE if channels is None else (*SHAPE, channels)
    most = {ti.f32: 1, ti.u8: 2**8 - 1, ti.u16: 2**16 - 1, ti.u32: 2**32 - 1}[dtype]
    name = {ti.f32: np.float32, ti.u8: np.uint8, ti.u16: np.uint16, ti.u32: np.uint32}[dtype]
    values = rng.random(shape) * most
    values.reshape(-1)[:2] = 0, most
    values = values.astype(name)
    expected = values.astype(np.float64) / most
    if channels in (None, 1):
        expected = np.repeat(expected.reshape(*SHAPE, 1), 3, -1)
    elif channels == 2:
        expected = np.concatenate([expected, np.zeros((*SHAPE, 1))], -1)
    if channels is None:
        field, array = ti.field(dtype, SHAPE), ti.ndarray(dtype, SHAPE)
    else:
        field, array = ti.Vector.field(channels, dtype, SHAPE), ti.Vector.ndarray(channels, dtype, SHAPE)
    images = [field, array, ti.ndarray(dtype, shape), ti.field(dtype, shape)]
    for image in images:
        image.from_numpy(values)
    read_only = values.copy()
    read_only.flags.writeable = False
    images += [values, read_only, np.asfortranarray(values), values.byteswap().view(values.dtype.newbyteorder())]
    drawn = []
    draw = _pixels.draw
    monkeypatch.setattr(_pixels, "draw", lambda view, image: drawn.append(draw(view, image)) or drawn[-1])
    w = ti.ui.Window("images", SHAPE, show_window=False)
    for image in images:
        assert np.abs(shown(w, image) - expected[..., :3]).max() <= 0.51 / 255
        w.show()
    assert sum(drawn) == len(images), "a kernel has not drawn all of them"


@needs_vulkan
def test_large_images_are_stretched(cpu):
    """Between pixels is interpolated, beyond the last ones they are kept."""
    x, y = np.meshgrid(np.linspace(0, 1, 300), np.linspace(0, 1, 200), indexing="ij")
    image = np.stack([x, y, x * y], -1).astype(np.float32)
    for size in ((600, 400), (150, 100), (97, 301)):
        found = shown(ti.ui.Window("stretched", size, show_window=False), image)
        at = [np.clip((np.arange(n) + 0.5) / n * m - 0.5, 0, m - 1) / (m - 1) for n, m in zip(size, (300, 200))]
        u, v = np.meshgrid(*at, indexing="ij")
        assert np.abs(found - np.stack([u, v, u * v], -1)).max() < 1.1 / 255


@needs_vulkan
def test_a_frame_of_several_images(cpu):
    """The last image lies above all, and what is drawn afterwards above it; depths are those of what stands in space."""
    w = ti.ui.Window("several", SHAPE, show_window=False)
    canvas, scene, camera = w.get_canvas(), w.get_scene(), ti.ui.Camera()
    red, green, blue = (np.full((*SHAPE, 3), c, np.uint8) for c in ((255, 0, 0), (0, 255, 0), (0, 0, 255)))
    camera.position(0, 0, 2)
    for frame in range(4):
        canvas.set_image(red)
        canvas.circles(np.array([[0.5, 0.5]]), 0.2, (1, 1, 1))
        canvas.set_image(green)
        assert (w.get_image_buffer_as_numpy()[..., :3] == (0, 1, 0)).all()
        w.show()
        canvas.set_image(blue)
        canvas.circles(np.array([[0.5, 0.5]]), 0.2, (1, 1, 1))
        found = w.get_image_buffer_as_numpy()
        assert (found[150, 100, :3] == 1).all() and (found[5, 5, :3] == (0, 0, 1)).all()
        assert not w.get_depth_buffer_as_numpy().any()
        w.show()
        scene.set_camera(camera)
        scene.particles(np.zeros((1, 3)), 0.5, (1, 1, 1))
        canvas.scene(scene)
        canvas.set_image(red)
        assert (w.get_image_buffer_as_numpy()[..., :3] == (1, 0, 0)).all()
        depths = w.get_depth_buffer_as_numpy()
        assert depths[155, 101] > 0 and depths[5, 5] == 0
        w.show()
        # One that fits, one that is stretched, and one that fits again.
        canvas.set_image(np.full((400, 400, 3), 255, np.uint8))
        assert (w.get_image_buffer_as_numpy()[..., :3] == 1).all()
        w.show()
    canvas.set_background_color((0.0, 1.0, 1.0))
    assert (w.get_image_buffer_as_numpy()[..., :3] == (0, 1, 1)).all()


@needs_vulkan
def test_a_picture_taken_may_be_written(cpu):
    w = ti.ui.Window("taken", SHAPE, show_window=False)
    first = w.get_image_buffer_as_numpy()
    first[:] = 2
    assert not w.get_image_buffer_as_numpy()[..., :3].any() and (first == 2).all()


@needs_vulkan
def test_room_is_not_taken_back_from_who_has_it(cpu):
    """Memory of the device that Python still has stays, whatever becomes of the window."""
    import aerogel_viz

    view = aerogel_viz.Window("room", 300, 200, visible=False)
    with pytest.raises(ValueError, match="there is no room"):
        view.fill()
    for size in ((0, 1), (1, 0), (2**31, 1)):
        with pytest.raises(ValueError, match="pixels along each axis"):
            view.room(*size)
    kept = np.asarray(view.room(300, 200))
    assert kept.shape == (200, 320) and kept.dtype == np.uint32
    part = memoryview(kept)[10:]
    del kept
    with pytest.raises(BufferError, match="still refers to the room"):
        view.fill()
    # It is lost for the window, and stays who has it.
    other = np.asarray(view.room(300, 200))
    other[:] = 0xFF0000FF
    del other
    view.fill()
    np.asarray(part)[:] = 7
    assert view.pixels()[:4] == b"\xff\0\0\xff"
    last = view.room(300, 200)
    del view
    np.asarray(last)[:] = 7
    assert (np.asarray(last) == 7).all() and (np.asarray(part) == 7).all()


@needs_vulkan
def test_large_images_where_no_kernel_runs(cpu):
    """Before `ti.init`, by the interpreter, and in a graph's recording the picture is the same."""
    image = np.random.default_rng(2).random((*SHAPE, 3), dtype=np.float32)
    w = ti.ui.Window("images", SHAPE, show_window=False)
    by_kernel = shown(w, image)
    ti.reset()
    without = shown(w, image)
    ti.init(arch=ti.interp, log_level="error")
    interpreted = shown(w, image)
    assert np.abs(without - by_kernel).max() < 1e-3 and (without == interpreted).all()
