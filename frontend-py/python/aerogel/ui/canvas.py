"""Two-dimensional drawing in a window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from aerogel import _colormaps
from aerogel.ui import _arrays

if TYPE_CHECKING:
    from aerogel.ui.scene import Scene
    from aerogel.ui.window import Window

#: How images tell their numbers: `image` of `aerogel_viz.Window`.
_KINDS = {"float32": 0, "uint8": 1, "uint16": 2, "uint32": 3}


class Canvas:
    """The plane of a window: (0, 0) is its lower left corner, (1, 1) its upper right one.

    Later shapes cover earlier ones. Radii and widths are fractions of the window's height. Positions, colours and
    radii may be fields, arrays, NumPy arrays or lists; colours go from 0 to 1, with an optional opacity as a fourth
    number.
    """

    def __init__(self, window: Window) -> None:
        self._window = window

    @property
    def _view(self) -> Any:
        return self._window._view

    def set_background_color(self, color: Any) -> None:
        """Sets the colour behind everything, in this frame and those that follow."""
        self._view.background(_arrays.color(color)[:3])

    def set_image(self, img: Any, cmap: str | None = None, vmin: Any = None, vmax: Any = None) -> None:
        """Draws an image over the whole window, scaled to it.

        Args:
            img: A texture, or a field or array of shape (width, height), (width, height, channels), or of vectors, the
                second axis upwards: 1 channel is grey, 2 are red and green, 3 and 4 colours; opacity is ignored.
                Floats go from 0 to 1, unsigned integers over their whole range; 1 of u1 is white.
            cmap: The colours of numbers, such as "viridis", as in `ti.tools.imwrite`.
            vmin, vmax: The numbers of the first and the last colour of ``cmap``.

        Raises:
            TypeError: Signed integers, whose range is not an image's.
            ValueError: The shape is not that of an image.
        """
        # Large ones by a kernel, which not every program with a window needs.
        from aerogel.data.ndarray import Ndarray
        from aerogel.ui import _pixels

        img = _colormaps.maybe(img, cmap, vmin, vmax, "set_image")
        if hasattr(img, "_aerogel_field") and _pixels.draw(self._view, img):
            return
        values = img._view() if isinstance(img, Ndarray) else _arrays.array(img)
        if values.ndim not in (2, 3) or (values.ndim == 3 and not 1 <= values.shape[2] <= 4) or not values.size:
            raise ValueError(f"an image has 2 axes, or 3 with 1 to 4 channels last; this shape is {values.shape}")
        if values.dtype.kind == "b":
            values = values.astype(np.uint8) * np.uint8(255)
        elif values.dtype.kind == "f":
            values = values.astype(np.float32, copy=False)
        if values.dtype.name not in _KINDS:
            raise TypeError(f"an image consists of floats or unsigned integers, not {values.dtype}")
        values = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
        if _pixels.draw(self._view, values):
            return
        width, height, *rest = values.shape
        values = values.reshape(width, height, *(rest or [1]))
        channels, kind = values.shape[2], _KINDS[values.dtype.name]
        self._view.image(values.tobytes(), width, height, channels, kind)

    def contour(self, scalar_field: Any, cmap_name: str = "plasma", normalize: bool = False) -> None:
        """Draws a scalar field in colours over the whole window.

        Args:
            scalar_field: A field or array of shape (n, m).
            cmap_name: The colours, as `cmap` of `set_image`.
            normalize: Whether the colours go from the smallest value to the largest instead of from 0 to 1.
        """
        from aerogel.gui import contour_colors

        self.set_image(contour_colors(_arrays.array(scalar_field), cmap_name, normalize))

    def triangles(
        self, vertices: Any, color: Any = (0.5, 0.5, 0.5), indices: Any = None, per_vertex_color: Any = None
    ) -> None:
        """Draws triangles.

        Args:
            vertices: Vectors of two numbers; each three make a triangle.
            color: The colour of all.
            indices: The numbers of vertices, each three of which make a triangle instead.
            per_vertex_color: A colour for each vertex instead.

        Raises:
            IndexError: An index names no vertex.
            ValueError: A vertex that is drawn is NaN or infinite.
        """
        how = _arrays.appearance(color, per_vertex_color, indices)
        positions = _arrays.points(vertices, 2, "vertices")
        _arrays.check_places("vertices", positions, 2, how)
        _arrays.draw(self._view, "triangles", positions, **how)

    def lines(
        self,
        vertices: Any,
        width: float,
        indices: Any = None,
        color: Any = (0.5, 0.5, 0.5),
        per_vertex_color: Any = None,
    ) -> None:
        """Draws lines.

        Args:
            vertices: Vectors of two numbers; each two make a line.
            width: The width of all.
            indices: The numbers of vertices, each two of which make a line instead.
            color: The colour of all.
            per_vertex_color: A colour for each vertex instead.

        Raises:
            IndexError: An index names no vertex.
            ValueError: A vertex that is drawn is NaN or infinite.
        """
        how = _arrays.appearance(color, per_vertex_color, indices)
        positions = _arrays.points(vertices, 2, "vertices")
        _arrays.check_places("vertices", positions, 2, how)
        _arrays.draw(self._view, "lines", positions, size=float(width), **how)

    def circles(
        self,
        centers: Any,
        radius: float,
        color: Any = (0.5, 0.5, 0.5),
        per_vertex_color: Any = None,
        per_vertex_radius: Any = None,
    ) -> None:
        """Draws discs.

        Args:
            centers: Vectors of two numbers.
            radius: The radius of all.
            color: The colour of all.
            per_vertex_color: A colour for each instead.
            per_vertex_radius: A radius for each instead.

        Raises:
            ValueError: A centre is NaN or infinite.
        """
        how = _arrays.appearance(color, per_vertex_color, None)
        positions = _arrays.points(centers, 2, "centers")
        _arrays.check_places("centers", positions, 2, how)
        if per_vertex_radius is not None:
            how["extra"] = _arrays.radii(per_vertex_radius, positions, 2)
        _arrays.draw(self._view, "circles", positions, size=float(radius), **how)

    def vector_field(
        self,
        vector_field: Any,
        arrow_spacing: int = 5,
        scale: float = 0.1,
        width: float = 0.002,
        color: Any = (0, 0, 0),
    ) -> None:
        """Draws arrows on a grid.

        Args:
            vector_field: A field of vectors of two numbers, or an array of shape (n, m, 2).
            arrow_spacing: Elements from one arrow to the next.
            scale: The length of the longest arrow.
            width: The width of their lines.
            color: Their colour.
        """
        v = _arrays.array(vector_field).astype(np.float64)
        if v.ndim != 3 or v.shape[2] < 2:
            raise ValueError(f"vector_field draws grids of vectors of two numbers; the shape is {v.shape}")
        if arrow_spacing < 1:
            raise ValueError(f"arrow_spacing must be 1 or more, not {arrow_spacing}")
        n, m = v.shape[:2]
        v = np.nan_to_num(v[::arrow_spacing, ::arrow_spacing, :2])
        grid = np.meshgrid(np.arange(0, n, arrow_spacing), np.arange(0, m, arrow_spacing), indexing="ij")
        start = (np.stack(grid, -1) + 0.5) / (n, m)
        longest = float(np.sqrt((v**2).sum(-1)).max(initial=0))
        way = v * (scale / longest if longest > 0 else 0)
        side = np.stack([-way[..., 1], way[..., 0]], -1)
        tip = start + way
        # A line, and two for its head.
        parts = [start, tip, tip, tip - 0.25 * way + 0.15 * side, tip, tip - 0.25 * way - 0.15 * side]
        self.lines(np.stack(parts, -2).reshape(-1, 2), width, color=color)

    def scene(self, scene: Scene) -> None:
        """Draws a scene, with the objects that were added since it was drawn last.

        Raises:
            TypeError: It is not a scene.
        """
        from aerogel.ui.scene import Scene

        if not isinstance(scene, Scene):
            raise TypeError(f"scene takes a ti.ui.Scene, not {type(scene).__name__}")
        scene._draw(self._window)
