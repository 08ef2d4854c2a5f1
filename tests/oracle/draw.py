"""Draws pictures with `ti.GUI`, and writes them to a file.

The same file runs under Taichi itself (to make `drawn.npz`) and under Aerogel (to test it):

    python draw.py taichi OUT.npz
    python draw.py aerogel OUT.npz
"""

import importlib
import os
import sys

import numpy as np

os.environ["TI_GUI_SHOW"] = "0"
module, out = sys.argv[1:3]
ti = importlib.import_module(module)
ti.init(arch=ti.cpu, log_level="error")

rng = np.random.default_rng(1)
gui = ti.GUI("pictures", (64, 48), show_gui=False)
pictures = {}


def done(name):
    """Keeps the picture under a name, and begins another."""
    pictures[name] = np.clip(gui.get_image()[..., :3] * 255 + 0.5, 0, 255).astype(np.uint8)
    gui.clear(0)


def field(array):
    """A field of an array's numbers, or of vectors."""
    x = ti.Vector.field(2, ti.f32, array.shape[:2]) if array.ndim == 3 else ti.field(ti.f32, array.shape)
    x.from_numpy(array.astype(np.float32))
    return x


def ramp(shape):
    """An image of this shape that becomes brighter along all its axes."""
    return sum(np.indices(shape)) / sum(shape)


P, Q, R = rng.random((3, 30, 2)) * 1.2 - 0.1
gui.circles(P, radius=rng.random(30) * 6, color=rng.integers(0, 1 << 24, 30))
done("circles")
gui.circles(P, radius=3, palette=[0xFF0000, 0x00FF00, 0x445566], palette_indices=rng.integers(0, 3, 30))
done("palette")
gui.circle((0.3, 0.4), color=0x123456, radius=0.7)
done("circle")
gui.lines(P, Q, radius=1.3, color=0xFF8844)
done("lines")
gui.lines(P[:5], Q[:5], radius=4, color=rng.integers(0, 1 << 24, 5))
done("thick lines")
gui.triangles(P, Q, R, color=rng.integers(0, 1 << 24, 30))
done("triangles")
gui.rect((0.1, 0.9), (0.7, 0.2), radius=2, color=0x123456)
done("rect")
gui.arrows(P, Q * 0.3, radius=1.5, color=0xFFFFFF)
done("arrows")
gui.arrows(P, Q * 0.3, radius=1.5, tip_scale=0.5, angle=20)
done("arrows with other tips")
gui.arrow((0.2, 0.3), (0.5, 0.4), color=0xFF00FF)
done("arrow")
for bound in (0, 0.5, 1):
    gui.arrow_field(rng.random((6, 5, 2)) * 0.2, bound=bound)
    done(f"arrow_field {bound}")
    gui.point_field(rng.random((6, 5)) * 4, bound=bound)
    done(f"point_field {bound}")
for spacing in (5, 7):
    gui.vector_field(field(rng.standard_normal((64, 48, 2))), arrow_spacing=spacing)
    done(f"vector_field {spacing}")
gui.vector_field(field(rng.standard_normal((20, 30, 2))), color=0xFF0000)
done("small vector_field")
gui.contour(field(rng.random((20, 30))))
done("contour")
gui.contour(field(rng.standard_normal((20, 30))), normalize=True)
done("normalized contour")
for shape in ((64, 48), (64, 48, 1), (64, 48, 2), (64, 48, 3), (64, 48, 4)):
    for dtype in ("float32", "uint8", "uint16"):
        image = ramp(shape)
        gui.set_image(
            (image * 255 if dtype == "uint8" else image * 65535 if dtype == "uint16" else image).astype(dtype)
        )
        done(f"image of {dtype}, {shape[2:]}")
gui.set_image(field(ramp((64, 48))))
done("image of a field")
gui.set_image(field(ramp((64, 48, 2))))
done("image of a field of vectors")
np.savez_compressed(out, **pictures)
