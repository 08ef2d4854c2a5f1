"""A sparse volume of two spheres: sampled, and hit by rays."""

import numpy as np
import xuvdb
from _client import run

xuvdb.init_runtime()
grid = xuvdb.VdbGrid(background=0.15, voxel_size=0.05, leaf_log2=4, name="spheres", grid_class="level set")
grid.stamp_sphere((0.3, 0.2, 0.1), radius=0.6, band=3.0)
grid.stamp_sphere((0.9, 0.2, 0.1), radius=0.4)
volume = xuvdb.GpuVolume(grid)
rng = np.random.default_rng(0)
points = rng.uniform(-0.6, 1.4, (100_000, 3)).astype(np.float32)
origins = (np.float32([0.3, 0.2, -2]) + rng.uniform(-1, 1, (2000, 3)) * [1, 1, 0]).astype(np.float32)
state = {}


def step():
    state["samples"] = np.asarray(volume.sample(points))
    state["normals"] = np.asarray(volume.sdf_normal(points[:10_000]))


run(step, lambda: state, lambda: None)
