"""Elastic particles fall."""

import taichi as ti
from _client import run
from taichi_elements import mpm_solver

ti.init(arch=ti.cpu)
solver = mpm_solver.MPMSolver(res=(64, 64))
solver.add_cube(lower_corner=[0.2, 0.4], cube_size=[0.2, 0.2], material=mpm_solver.MPMSolver.material_elastic)


def step():
    solver.step(8e-3)


run(step, lambda: {"x": solver.x.to_numpy()[: solver.n_particles]}, ti.sync)
