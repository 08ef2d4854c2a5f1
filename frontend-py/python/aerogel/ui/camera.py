"""Where a scene is looked at from."""

from __future__ import annotations

import enum
import math
import time
from typing import Any

import numpy as np

from aerogel.data.matrix import Vector


class ProjectionMode(enum.Enum):
    """How space becomes a picture."""

    Perspective = 0
    Orthogonal = 1


class Camera:
    """A place to look from, a place to look at, and how.

    ``curr_position``, ``curr_lookat`` and ``curr_up`` are its vectors, which kernels take and programs may set.
    It begins at the origin, looks along z with y upwards, and sees an angle of 45 degrees from 0.1 to 1000 before it.
    """

    def __init__(self) -> None:
        self.curr_position = Vector([0.0, 0.0, 0.0])
        self.curr_lookat = Vector([0.0, 0.0, 1.0])
        self.curr_up = Vector([0.0, 1.0, 0.0])
        self._mode = ProjectionMode.Perspective
        self._fov, self._near, self._far = 45.0, 0.1, 1000.0
        # Taichi calls the lower edge "top" and the upper one "bottom", and programs have got used to it.
        self._left, self._right, self._bottom, self._top = -1.0, 1.0, 1.0, -1.0
        self._last: tuple[float, tuple[float, float] | None] | None = None

    def _place(self) -> list[np.ndarray]:
        """Where it stands, what it looks at, and what is upwards."""
        return [np.array([float(x) for x in v]) for v in (self.curr_position, self.curr_lookat, self.curr_up)]

    def position(self, x: float, y: float, z: float) -> None:
        """Sets the camera's position."""
        self.curr_position = _vector((x, y, z))

    def lookat(self, x: float, y: float, z: float) -> None:
        """Sets the point in the middle of the picture."""
        self.curr_lookat = _vector((x, y, z))

    def up(self, x: float, y: float, z: float) -> None:
        """Sets the direction that points upwards in the picture."""
        self.curr_up = _vector((x, y, z))

    def projection_mode(self, mode: ProjectionMode) -> None:
        """Sets how space becomes a picture."""
        if not isinstance(mode, ProjectionMode):
            raise TypeError(f"projection_mode takes a ti.ui.ProjectionMode, not {mode!r}")
        self._mode = mode

    def fov(self, fov: float) -> None:
        """Sets the angle from the lower edge of the picture to the upper one, in degrees, for perspective."""
        if not 0 < fov < 180:
            raise ValueError(f"fov is an angle between 0 and 180 degrees, not {fov}")
        self._fov = float(fov)

    def left(self, left: float) -> None:
        """Sets the left edge of an orthogonal projection."""
        self._left = float(left)

    def right(self, right: float) -> None:
        """Sets the right edge of an orthogonal projection."""
        self._right = float(right)

    def top(self, top: float) -> None:
        """Sets the edge of an orthogonal projection that is shown below, as in Taichi; -1 until set."""
        self._top = float(top)

    def bottom(self, bottom: float) -> None:
        """Sets the edge of an orthogonal projection that is shown above, as in Taichi; 1 until set."""
        self._bottom = float(bottom)

    def z_near(self, z_near: float) -> None:
        """Sets how near the nearest thing seen may be."""
        self._near = float(z_near)

    def z_far(self, z_far: float) -> None:
        """Sets how far the farthest thing seen may be."""
        self._far = float(z_far)

    def get_view_matrix(self) -> np.ndarray:
        """The matrix from world to camera coordinates, f32 of shape (4, 4), for row vectors: ``[x, y, z, 1] @ m``."""
        position, lookat, up = self._place()
        towards = _unit(lookat - position, (0.0, 0.0, 1.0))
        right = _unit(np.cross(towards, up), (1.0, 0.0, 0.0))
        up = np.cross(right, towards)
        out = np.eye(4)
        out[:3, :3] = np.stack([right, up, -towards], 1)
        out[3, :3] = -position @ out[:3, :3]
        return out.astype(np.float32)

    def get_projection_matrix(self, aspect: float) -> np.ndarray:
        """The matrix from camera coordinates to the picture, f32 of shape (4, 4), for row vectors.

        Depth is 1 at the near plane and 0 at the far one.

        Args:
            aspect: The picture's width by its height.
        """
        near, far = self._near, self._far
        if not (far > near and (near > 0 or self._mode is ProjectionMode.Orthogonal)):
            raise ValueError(f"the camera needs z_near < z_far, and z_near > 0 in perspective, not {near} and {far}")
        out = np.zeros((4, 4))
        if self._mode is ProjectionMode.Perspective:
            f = 1 / math.tan(math.radians(self._fov) / 2)
            out[0, 0], out[1, 1] = f / aspect, f
            out[2, 2], out[2, 3] = near / (far - near), -1
            # The far plane may be at infinity.
            out[3, 2] = near / (1 - near / far)
            return out.astype(np.float32)
        width, height = self._right - self._left, self._bottom - self._top
        if width == 0 or height == 0:
            raise ValueError("the camera sees nothing: its edges coincide")
        out[0, 0], out[1, 1], out[2, 2], out[3, 3] = 2 / width, 2 / height, 1 / (far - near), 1
        out[3, 0] = -(self._left + self._right) / width
        out[3, 1] = -(self._bottom + self._top) / height
        out[3, 2] = far / (far - near)
        return out.astype(np.float32)

    def track_user_inputs(
        self,
        window: Any,
        movement_speed: float = 1.0,
        yaw_speed: float = 2.0,
        pitch_speed: float = 2.0,
        hold_key: str | None = None,
    ) -> None:
        """Moves as the user wants: w, a, s, d, e and q to go, the mouse to turn. To be called in every frame.

        The point looked at is then one unit away, as in Taichi.

        Args:
            window: The window.
            movement_speed: How far to go in a sixtieth of a second.
            yaw_speed: Radians of yaw while the mouse crosses the window's width.
            pitch_speed: Radians of pitch while it crosses the window's height.
            hold_key: Only while this key is down, the mouse turns.
        """
        now = time.perf_counter()
        cursor = window.get_cursor_pos()
        last_time, last_cursor = self._last or (now, None)
        turns = hold_key is None or window.is_pressed(hold_key)
        self._last = (now, cursor if turns else None)
        position, lookat, up = self._place()
        towards = _unit(lookat - position, (0.0, 0.0, 1.0))
        up = _unit(up, (0.0, 1.0, 0.0))
        left = _unit(np.cross(up, towards), (-1.0, 0.0, 0.0))
        step = movement_speed * 60 * (now - last_time)
        ways = {"w": towards, "s": -towards, "a": left, "d": -left, "e": up, "q": -up}
        move = sum((way for key, way in ways.items() if window.is_pressed(key)), np.zeros(3)) * step
        position = position + move
        self.curr_position, self.curr_lookat = _vector(position), _vector(position + towards)
        if not turns or last_cursor is None:
            return
        dx, dy = cursor[0] - last_cursor[0], cursor[1] - last_cursor[1]
        yaw = -dx * yaw_speed
        pitch = math.asin(float(np.clip(towards @ up, -1, 1))) + dy * pitch_speed
        pitch = max(-0.49 * math.pi, min(0.49 * math.pi, pitch))
        level = _unit(towards - (towards @ up) * up, (0.0, 0.0, 1.0))
        level = math.cos(yaw) * level + math.sin(yaw) * left
        self.curr_lookat = _vector(position + math.cos(pitch) * level + math.sin(pitch) * up)


def _vector(numbers: Any) -> Vector:
    x, y, z = numbers
    return Vector([float(x), float(y), float(z)])


def make_camera() -> Camera:
    """A camera."""
    return Camera()


def _unit(v: np.ndarray, otherwise: tuple[float, float, float]) -> np.ndarray:
    length = float(np.linalg.norm(v))
    return v / length if length > 0 and math.isfinite(length) else np.array(otherwise)
