"""A kernel compiled from a string."""

import taichi as ti
from _client import run
from taichi_meta import MetaKernelLoader

ti.init(arch=ti.cpu)
loader = MetaKernelLoader()
loader.compile_and_load(
    """
x = ti.field(ti.f32, 1 << 20)

@ti.kernel
def fill(k: ti.f32):
    for i in x:
        x[i] = tm.sin(k * i) * tm.fract(0.1 * i)
""",
    "waves",
)
waves = loader["waves"]
run(lambda: waves.fill(0.001), lambda: {"x": waves.x.to_numpy()}, ti.sync)
