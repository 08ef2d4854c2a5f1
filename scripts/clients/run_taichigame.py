"""Circles under gravity: 20 steps of velocities and rotations."""

import taichi as ti
from _client import run

ti.init(arch=ti.cpu)
import TaichiGAME as ng  # noqa: E402, it makes fields
from TaichiGAME.dynamics.body import Body  # noqa: E402
from TaichiGAME.dynamics.ti_phy_world import PhysicsWorld  # noqa: E402
from TaichiGAME.geometry.shape import Circle  # noqa: E402

world = PhysicsWorld(60)
for k in range(60):
    body = world.create_body()
    body.shape = Circle(0.5 + 0.01 * k)
    body.mass = 1.0 + k
    body.type = Body.Type.Dynamic if k % 2 else Body.Type.Static
    body.forces = ng.Matrix([0.1 * k, 1.0], "vec")
    body.torques = 0.05 * k


def step():
    world.init_data()
    for _ in range(20):
        world.step_velocity(0.01)
        world.step_position(0.01)


run(
    step,
    lambda: {"vel": world._vel.to_numpy(), "rot": world._rot.to_numpy(), "ang": world._ang_vel.to_numpy()},
    ti.sync,
)
