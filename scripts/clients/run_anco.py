"""An ant colony, step by step but for its random forces."""

import numpy as np
import taichi as ti
from _client import run
from anco import ImageSystem
from anco.target import PointTarget

n = 50_000
targets = [PointTarget(0, [100.0, 100.0], 20.0), PointTarget(1, [300.0, 250.0], 20.0)]
colony = ImageSystem([400, 400], np.zeros((400, 400)), targets, particle_number=n, arch="cpu", create_window=False)
rng = np.random.default_rng(0)
places = (50 + 300 * rng.random((n, 2))).astype(np.float32)
angles = (2 * np.pi * rng.random(n)).astype(np.float32)
smell = rng.random((400, 400, 2), dtype=np.float32)
state = np.eye(2, dtype=np.float32)[rng.integers(0, 2, n)]


def step():
    c = colony
    c.particle_location.from_numpy(places)
    c.particle_velocity.from_numpy(np.stack([np.cos(angles), np.sin(angles)], 1))
    c.particle_state.from_numpy(state)
    c.particle_concentration.fill(1)
    c.concentration.from_numpy(smell)
    for _ in range(20):
        c.update_location(c.dt, c.map, c.particle_location, c.particle_velocity)
        c.diffuse_vector_field(c.diffusion * c.dt, c.concentration, c.concentration_temp)
        c.decay(c.decay_strength, c.concentration)
        c.normalize_velocity(c.particle_velocity)
        c.state_transition(c.particle_location, c.particle_velocity, c.particle_state, c.particle_concentration)
    c.apply_gradient_force(
        c.sensor_distance,
        c.target_attract_strength,
        c.attract_matrix_field,
        c.concentration,
        c.particle_location,
        c.particle_velocity,
        c.particle_state,
    )


def read():
    return {
        "places": colony.particle_location.to_numpy(),
        "velocity": colony.particle_velocity.to_numpy(),
        "smell": colony.concentration.to_numpy(),
        "state": colony.particle_state.to_numpy(),
    }


run(step, read, ti.sync)
