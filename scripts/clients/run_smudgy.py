"""Smoothing lengths and densities of 5,000 points, and their deposition onto a grid."""

import numpy as np
import taichi as ti
from _client import run
from smudgy import PointCloud

rng = np.random.default_rng(0)
places, values = rng.random((5000, 3)), rng.random(5000)
state = {}
cloud = PointCloud(places, boxsize=1.0, verbose=False, arch="cpu")
cloud.global_setup(structure="isotropic", kernel_name="tophat", num_neighbors=32)


def step():
    cloud.compute_smoothing()
    cloud.compute_density()
    state["grid"] = cloud.deposit(values, averaged=False, gridnums=48)
    state["fixed"] = cloud.deposit(values, averaged=False, gridnums=48, adaptive=False, kernel_name="tsc")


run(step, lambda: state, ti.sync)
