"""Scenes in three dimensions of ``ti.ui``, drawn by Vulkan where there is one, and in software."""

import numpy as np
import pytest
from desk import near, needs_vulkan, window

import aerogel as ti
from aerogel.ui import _backend, _normals


def balls(w, light=True):
    camera = ti.ui.make_camera()
    camera.position(0, 0, 3)
    camera.lookat(0, 0, 0)
    scene = w.get_scene()
    scene.set_camera(camera)
    scene.ambient_light((0.2, 0.2, 0.2))
    if light:
        scene.point_light((0, 0, 5), (0.5, 0.5, 0.5))
    return scene


def test_balls_are_lit(drawn_by):
    w = window(300, 300)
    scene = balls(w)
    # The nearer one hides the other, whichever is named first; one is nowhere.
    centers = np.array([[0, 0, 0.5], [0, 0, 0], [1, 0, 0], [0, 1e38, 0]], np.float32)
    scene.particles(centers, radius=0.2, per_vertex_color=[[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]])
    w.get_canvas().scene(scene)
    picture = w.get_image_buffer_as_numpy()
    # Ambient light, and the lamp's straight from the front.
    assert near(picture[150, 150], (0.7, 0, 0), 0.02)
    at = 150 + int(150 * (1 / np.tan(np.pi / 8)) / 3)
    assert near(picture[at, 150], (0, 0, 0.68), 0.04)
    assert near(picture[10, 10], (0, 0, 0))
    w.show()
    # A scene is named anew in every frame.
    w.get_canvas().scene(scene)
    assert w.get_image_buffer_as_numpy()[..., :3].max() == 0


def test_light_from_everywhere_stays(drawn_by):
    """It is a tenth before a program says otherwise, and what it said last then; lamps are for one frame."""
    w = window(100, 100)
    scene, camera = w.get_scene(), ti.ui.Camera()
    camera.position(0, 0, 3)
    camera.lookat(0, 0, 0)
    scene.set_camera(camera)
    for light, lamp, expected in ((None, 0, 0.1), (0.4, 0.5, 0.9), (None, 0, 0.4)):
        if light is not None:
            scene.ambient_light((light,) * 3)
        if lamp:
            scene.point_light((0, 0, 5), (lamp,) * 3)
        # In the plane z = 0.
        scene.particles(np.zeros((1, 2), np.float32), radius=0.5, color=(1, 1, 1))
        w.get_canvas().scene(scene)
        assert near(w.get_image_buffer_as_numpy()[50, 50], (expected,) * 3, 0.02)
        w.show()


@needs_vulkan
def test_normals_are_the_means_of_those_of_triangles(cpu):
    """Whatever their size; many are added by a kernel, few without."""
    small = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [-1, 0, 1], [0, -1, 0], [9, 9, 9]], np.float32)
    faces = np.array([[0, 1, 2], [0, 2, 3], [0, 4, 1], [4, 4, 4]])
    n = 60
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 150)] * 2, indexing="ij"), -1).reshape(-1, 2)
    large = np.concatenate([grid, np.sin(n * grid[:, :1]) * grid[:, 1:]], 1).astype(np.float32)
    k = (np.arange(149)[:, None] * 150 + np.arange(149)).reshape(-1)
    for points, corners in ((small, faces), (large, np.stack([k, k + 150, k + 1, k + 151, k + 1, k + 150], 1))):
        corners = corners.reshape(-1, 3)
        expected = np.zeros(points.shape)
        a, b, c = (points[corners[:, i]].astype(np.float64) for i in range(3))
        normals = np.cross(b - a, c - a)
        sizes = np.linalg.norm(normals, axis=1, keepdims=True)
        normals = normals / np.where(sizes > 0, sizes, 1)
        for i in range(3):
            np.add.at(expected, corners[:, i], normals)
        # Indices count from the vertex behind one that is not there.
        positions = np.concatenate([np.zeros((1, 3), np.float32), points]).tobytes()
        found = _normals.of_vertices(positions, corners.astype(np.uint32).tobytes(), 1)
        found = np.frombuffer(found, np.float32)[3:]
        assert np.abs(found.reshape(-1, 3) - expected).max() < 1e-5


@needs_vulkan
def test_meshes_and_depths(cpu):
    w = window(200, 200)
    scene = balls(w)
    square = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]], np.float32)
    scene.mesh(square, indices=np.array([0, 1, 2, 0, 2, 3]), color=(1, 1, 1))
    w.get_canvas().scene(scene)
    assert near(w.get_image_buffer_as_numpy()[100, 100], (0.7, 0.7, 0.7), 0.02)
    depth = w.get_depth_buffer_as_numpy()
    # Near 0.1 and far 1000: at 3 before the eye.
    assert depth.shape == (200, 200) and depth[0, 0] == 0
    assert abs(depth[100, 100] - (0.1 * 1000 / 3 - 0.1) / 999.9) < 1e-5
    kept = ti.field(ti.f32, (200, 200))
    w.get_depth_buffer(kept)
    assert kept[100, 100] == depth[100, 100]
    w.show()
    # From behind it is dark, unless both sides are lit.
    for two_sided, expected in ((False, 0.2), (True, 0.7)):
        scene.ambient_light((0.2, 0.2, 0.2))
        scene.point_light((0, 0, 5), (0.5, 0.5, 0.5))
        scene.mesh(square, indices=[0, 2, 1, 0, 3, 2], color=(1, 1, 1), two_sided=two_sided)
        w.get_canvas().scene(scene)
        assert near(w.get_image_buffer_as_numpy()[100, 100], [expected] * 3, 0.02)
        w.show()


@needs_vulkan
def test_vertices_are_fetched_by_indices(cpu):
    """The same picture as of vertices one by one, with parts, an offset, colours, and of two scenes."""
    rng = np.random.default_rng(5)
    points = rng.uniform(-1, 1, (40, 3)).astype(np.float32)
    colors = rng.uniform(0, 1, (40, 3)).astype(np.float32)
    up = np.tile(np.float32([0, 0, 1]), (40, 1))
    corners = rng.integers(0, 30, 60)
    pictures = []
    for by_index in (True, False):
        w = window(80, 80)
        scene = balls(w)
        how = dict(two_sided=True)
        if by_index:
            how.update(indices=corners, vertex_offset=7, index_offset=6, index_count=45)
            scene.mesh(points, normals=up, per_vertex_color=colors, **how)
        else:
            named = corners[6:51] + 7
            scene.mesh(points[named], normals=up[named], per_vertex_color=colors[named], **how)
        w.get_canvas().scene(scene)
        flat = points[:, :2] * 0.2 + 0.2
        if by_index:
            w.get_canvas().triangles(flat, indices=corners, per_vertex_color=colors)
        else:
            w.get_canvas().triangles(flat[corners], per_vertex_color=colors[corners])
        pictures.append(w.get_image_buffer_as_numpy())
    assert len(np.unique(pictures[0])) > 50
    assert np.abs(pictures[0] - pictures[1]).max() < 0.01


@needs_vulkan
def test_copies_of_meshes(cpu):
    w = window(200, 200)
    scene = balls(w, light=False)
    small = np.array([[-0.1, -0.1, 0], [0.1, -0.1, 0], [0, 0.1, 0]], np.float32)
    places = ti.Matrix.field(4, 4, ti.f32, 3)
    for k in range(3):
        places[k] = ti.Matrix([[1, 0, 0, k - 1], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    scene.mesh_instance(small, transforms=places, color=(1, 1, 1), instance_offset=1)
    w.get_canvas().scene(scene)
    picture = w.get_image_buffer_as_numpy()
    right = 100 + int(100 / np.tan(np.pi / 8) / 3)
    assert picture[100, 100, 0] > 0.1 and picture[right, 100, 0] > 0.1 and picture[200 - right, 100, 0] == 0
    with pytest.raises(IndexError, match="instances"):
        scene.mesh_instance(small, transforms=places, instance_offset=2, instance_count=2)
        w.get_canvas().scene(scene)
    w.show()
    scene.ambient_light((1, 1, 1))
    scene.mesh(small, color=(1, 1, 1), show_wireframe=True)
    w.get_canvas().scene(scene)
    picture = w.get_image_buffer_as_numpy()[..., 0]
    assert 10 < (picture > 0.5).sum() < 100


def test_meshes_need_vulkan(cpu, monkeypatch):
    monkeypatch.setattr(_backend, "_viz", lambda: (None, "install a driver"))
    w = window()
    scene = balls(w)
    scene.mesh(np.zeros((3, 3), np.float32))
    with pytest.raises(RuntimeError, match="meshes need Vulkan, and install a driver"):
        w.get_canvas().scene(scene)


def test_the_camera_sees_as_taichis(cpu):
    camera = ti.ui.Camera()
    camera.position(0, 1, 3)
    camera.lookat(0, 0, 0)
    camera.up(0, 1, 0)
    # The numbers of Taichi 1.7.4.
    view = [[1, 0, 0, 0], [0, 0.94868326, 0.31622776, 0], [0, -0.31622776, 0.94868326, 0], [0, 0, -3.1622775, 1]]
    assert np.abs(camera.get_view_matrix() - view).max() < 1e-6
    shown = camera.get_projection_matrix(4 / 3)
    assert np.abs(shown[[0, 1, 2, 2, 3], [0, 1, 2, 3, 2]] - [1.8106601, 2.4142134, 1e-4, -1, 0.10001]).max() < 1e-5
    camera.projection_mode(ti.ui.ProjectionMode.Orthogonal)
    # What is called the top is shown below, as in Taichi.
    camera.left(-2), camera.right(3), camera.top(-0.5), camera.bottom(1.5)
    corner = np.array([3, 1.5, -0.1, 1]) @ camera.get_projection_matrix(1)
    assert np.abs(corner - [1, 1, 1, 1]).max() < 1e-6
    for wrong in (lambda: camera.fov(0), lambda: camera.projection_mode(3)):
        with pytest.raises((ValueError, TypeError)):
            wrong()


def test_a_scene_that_fails_leaves_nothing_behind(drawn_by):
    w = window()
    scene = balls(w)
    for _ in range(17):
        scene.point_light((0, 0, 1), (1, 1, 1))
    if drawn_by == "vulkan":
        with pytest.raises(ValueError, match="at most 16 lights"):
            w.get_canvas().scene(scene)
        w.get_canvas().scene(scene)
    camera = ti.ui.Camera()
    camera.z_far(np.inf)
    assert np.isfinite(camera.get_projection_matrix(1)).all()
