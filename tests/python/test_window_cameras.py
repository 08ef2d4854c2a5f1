"""Cameras that the user moves."""

import math
import time

import numpy as np
import pytest
from desk import Program, needs_desk

import aerogel as ti


class Desk:
    """A user whose keys and mouse are what a test says."""

    def __init__(self):
        self.keys, self.cursor = set(), (0.5, 0.5)

    def is_pressed(self, *keys):
        return any(key in self.keys for key in keys)

    def get_cursor_pos(self):
        return self.cursor


@pytest.fixture
def tracked(monkeypatch):
    """A camera at (0, 0, 5) that looks at the origin, its user, and a call for each sixtieth of a second."""
    camera, desk, now = ti.ui.Camera(), Desk(), [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    camera.position(0, 0, 5)
    camera.lookat(0, 0, 0)

    def turn(frames=1, **how):
        for _ in range(frames):
            now[0] += 1 / 60
            camera.track_user_inputs(desk, **how)

    turn()
    return camera, desk, turn


def at(camera):
    return [np.array(v, float) for v in (camera.curr_position, camera.curr_lookat)]


def test_keys_go(tracked):
    camera, desk, turn = tracked
    for key, way in {
        "w": (0, 0, -1),
        "s": (0, 0, 1),
        "a": (-1, 0, 0),
        "d": (1, 0, 0),
        "e": (0, 1, 0),
        "q": (0, -1, 0),
    }.items():
        camera.position(0, 0, 5)
        camera.lookat(0, 0, 0)
        desk.keys = {key}
        turn(10, movement_speed=0.3)
        position, lookat = at(camera)
        assert np.allclose(position, np.array((0, 0, 5)) + 3 * np.array(way))
        # What is looked at is one unit before the camera.
        assert np.allclose(lookat - position, (0, 0, -1))
    desk.keys = {"w", "s", "a", "d"}
    before = at(camera)
    turn(10)
    assert np.allclose(at(camera), before)


def test_the_mouse_turns(tracked):
    """By radians, a full width of the window being `yaw_speed`; only while the key is held, and never over the top."""
    camera, desk, turn = tracked
    desk.cursor = (0.75, 0.5)
    turn(hold_key=ti.ui.RMB)
    desk.keys = {ti.ui.RMB}
    turn(hold_key=ti.ui.RMB)
    assert np.allclose(at(camera)[1] - at(camera)[0], (0, 0, -1))
    desk.cursor = (1.0, 0.5)
    turn(hold_key=ti.ui.RMB, yaw_speed=2.0)
    position, lookat = at(camera)
    assert np.allclose(lookat - position, (math.sin(0.5), 0, -math.cos(0.5)))
    turn(20, hold_key=ti.ui.RMB)
    assert np.allclose(at(camera)[1], lookat)
    desk.cursor = (1.0, 0.6)
    turn(hold_key=ti.ui.RMB, pitch_speed=3.0)
    assert np.isclose((at(camera)[1] - position)[1], math.sin(0.3))
    for _ in range(100):
        desk.cursor = (1.0, desk.cursor[1] + 0.5)
        turn(hold_key=ti.ui.RMB)
    towards = at(camera)[1] - position
    assert 0.99 < towards[1] < 1 and np.isclose(np.linalg.norm(towards), 1)
    desk.keys, desk.cursor = set(), (0.0, 0.0)
    turn(hold_key=ti.ui.RMB)
    assert np.allclose(at(camera)[1] - position, towards)


def test_its_vectors_are_vectors(cpu, tracked):
    """Programs compute with them, hand them to kernels, and set them."""
    camera, _, turn = tracked
    vec3 = ti.types.vector(3, ti.f32)

    @ti.kernel
    def length(eye: vec3, at: vec3) -> ti.f32:
        return (eye - at).norm()

    camera.position(1, 2, 3)
    camera.lookat(0, 0, 0)
    for _ in range(2):
        towards = (camera.curr_lookat - camera.curr_position).normalized()
        assert np.allclose(towards.to_numpy(), np.array((-1, -2, -3)) / math.sqrt(14))
        assert np.isclose(length(camera.curr_position, camera.curr_position + towards), 1)
        assert camera.curr_position.z == 3 and [*camera.curr_up] == [0, 1, 0]
        assert np.allclose(ti.Vector([1, 1, 1]) - camera.curr_position, (0, -1, -2))
        turn()
    camera.curr_position[2] = 4.0
    camera.curr_lookat = ti.Vector([1.0, 2.0, 0.0])
    assert np.allclose(np.array([1, 2, 0, 1]) @ camera.get_view_matrix(), (0, 0, -4, 1))
    camera.curr_up = [0, 0, 1]
    with pytest.raises(ValueError):
        camera.position("a", 0, 0)


TEXT = """
w = ti.ui.Window("seen", (200, 200))
canvas, scene, camera = w.get_canvas(), ti.ui.Scene(), ti.ui.make_camera()
camera.position(0, 0, 5)
camera.lookat(0, 0, 0)
camera.up(0, 1, 0)
print("open", flush=True)
said = ""
while w.running:
    camera.track_user_inputs(w, movement_speed=0.05, hold_key=ti.ui.RMB)
    scene.set_camera(camera)
    scene.ambient_light((1, 1, 1))
    scene.particles([[0.0, 0, 0]], 0.5)
    canvas.scene(scene)
    w.show()
    p, q = camera.curr_position, camera.curr_lookat - camera.curr_position
    now = "nearer" if p[2] < 4 else ""
    now += " turned" if abs(q[0]) > 0.1 else ""
    if now != said:
        print(now, flush=True)
    said = now
"""


class TestOnADesk:
    pytestmark = needs_desk

    def test_keys_and_mouse(self, display, tmp_path):
        program = Program(TEXT, display, tmp_path)
        number = program.window()
        program.until("open")
        program.do("mousemove", "--window", number, 100, 100)
        program.do("keydown", "w")
        program.until("nearer")
        program.do("keyup", "w")
        program.do("mousedown", 3)
        for x in range(110, 200, 10):
            program.do("mousemove", "--window", number, x, 100)
        program.until("nearer turned")
        program.do("mouseup", 3)
        program.process.kill()
        program.process.wait()
