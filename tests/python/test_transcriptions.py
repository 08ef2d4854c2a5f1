"""Simulators of the gallery, and the same written for JAX: equal losses, and equal gradients."""

import importlib
from pathlib import Path

import numpy as np
import pytest

import aerogel as ti

EXAMPLES = Path(__file__).parents[2] / "examples"
pytestmark = pytest.mark.skipif(not EXAMPLES.exists(), reason="the examples are not here")


@pytest.fixture
def jax():
    module = pytest.importorskip("jax")
    module.config.update("jax_enable_x64", True)
    yield module
    module.config.update("jax_enable_x64", False)


@pytest.fixture
def example(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    yield importlib.import_module
    ti.reset()


def compare(jax, simulation, parameters, loss_of):
    """The loss and its gradient, here and there, at values that are not the first ones."""
    values = parameters.to_numpy()
    values = values + np.random.default_rng(7).normal(0, 0.01, values.shape)
    parameters.from_numpy(values)
    with ti.ad.Tape(simulation.loss):
        simulation.simulate()
    loss, gradient = jax.jit(jax.value_and_grad(loss_of))(values)
    assert simulation.loss[None] == pytest.approx(float(loss), rel=1e-9)
    ours, theirs = parameters.grad.to_numpy(), np.asarray(gradient)
    assert np.abs(theirs).max() > 0
    assert np.abs(ours - theirs).max() < 1e-7 * np.abs(theirs).max()


def steps_of(jax, step, state, steps):
    """The state after some steps."""
    return jax.lax.scan(lambda state, t: (step(state, t), None), state, jax.numpy.arange(steps))[0]


def test_mass_spring(example, jax):
    d, jnp = example("diff_mass_spring"), jax.numpy
    walker = d.Walker(100)
    start, springs = d.robot()
    a, b = springs.T
    rest = np.linalg.norm(start[a] - start[b], axis=1)

    def step(state, t, weights):
        x, v = state
        waves = jnp.sin(d.OMEGA * d.DT * t + 2 * np.pi / d.WAVES * jnp.arange(d.WAVES))
        feels = jnp.concatenate([(x - x.mean(0)) / d.SIDE, 0.1 * v], axis=1)
        thought = weights @ jnp.concatenate([waves, feels.ravel()])
        way = x[a] - x[b]
        length = jnp.sqrt((way**2).sum(1))
        speed = ((v[a] - v[b]) * way).sum(1) / length
        size = d.STIFFNESS * (rest * (1 + d.PULL * jnp.tanh(thought)) - length) - d.DAMPING * speed
        f = (size / length)[:, None] * way
        force = jnp.zeros_like(x).at[a].add(f).at[b].add(-f) + jnp.array([0, -d.GRAVITY])
        push = d.HARDNESS * jnp.maximum(d.GROUND - x[:, 1], 0)
        drag = -d.FRICTION * push * v[:, 0] / jnp.sqrt(v[:, 0] ** 2 + d.CREEP**2)
        ground = jnp.stack([drag, push * (1 - jnp.tanh(2 * v[:, 1]))], axis=1)
        v = v + d.DT * (force + ground - d.DRAG * v)
        return x + d.DT * v, v

    def loss_of(weights):
        x, _ = steps_of(jax, lambda s, t: step(s, t, weights), (jnp.array(start), jnp.zeros_like(start)), 100)
        return (start[:, 0].mean() + d.GOAL - x[:, 0].mean()) ** 2

    compare(jax, walker, walker.weights, loss_of)


def test_electric(example, jax):
    d, jnp = example("diff_electric"), jax.numpy
    chase = d.Chase(3, 64)
    goals = d.paths(3, 64)

    def loss_of(weights):
        def step(state, t):
            x, v, far = state
            goal = jnp.asarray(goals)[:, t]
            seen = jnp.concatenate([x - 0.5, v, goal[:, :2] - 0.5, goal[:, 2:]], axis=1)
            neurons = jnp.tanh(4 * seen @ weights[:, : d.SEEN].T + weights[:, d.SEEN])
            charges = jnp.tanh(neurons @ weights[:, d.SEEN + 1 :])
            way = x[:, None] - d.ELECTRODES
            field = way / ((way**2).sum(2) + d.SOFT**2)[..., None] ** 1.5
            v = v + d.DT * (d.COULOMB * (charges[..., None] * field).sum(1) - d.DRAG * v)
            x = x + d.DT * v
            return x, v, far + ((x - goal[:, :2]) ** 2).sum()

        return steps_of(jax, step, (jnp.full((3, 2), 0.5), jnp.zeros((3, 2)), 0.0), 64)[2] / (3 * 64)

    compare(jax, chase, chase.weights, loss_of)


def test_billiards(example, jax):
    d, jnp = example("diff_billiards"), jax.numpy
    table, rack = d.Billiards(256), d.rack()
    others = ~np.eye(table.n, dtype=bool)

    def step(state, _):
        x, v = state
        way, speed = x[:, None] - x, v[:, None] - v
        nearing, fast = (way * speed).sum(2), (speed**2).sum(2)
        rest = nearing**2 - fast * ((way**2).sum(2) - 4 * d.RADIUS**2)
        meet = others & (nearing < 0) & (rest > 0)
        time = (-nearing - jnp.sqrt(jnp.where(meet, rest, 1))) / jnp.where(meet, fast, 1)
        meet &= time < table.dt
        time = jnp.where(meet, jnp.maximum(time, 0), 0)
        normal = jnp.where(meet[..., None], way + time[..., None] * speed, jnp.array([1.0, 0]))
        normal /= jnp.sqrt((normal**2).sum(2))[..., None]
        size = -(1 + d.ELASTICITY) / 2 * (speed * normal).sum(2)
        jump = jnp.where(meet[..., None], size[..., None] * normal, 0)
        push = ((table.dt - time)[..., None] * jump).sum(1)
        return x + table.dt * v + push, (v + jump.sum(1)) * (1 - d.DRAG * table.dt)

    def loss_of(shot):
        x = jnp.concatenate([shot[None, :2], rack])
        x, _ = steps_of(jax, step, (x, jnp.zeros_like(x).at[0].set(shot[2:])), table.steps)
        return ((x[-1] - jnp.array(d.GOAL)) ** 2).sum()

    compare(jax, table, table.shot, loss_of)


def test_rigid(example, jax):
    d, jnp = example("diff_rigid"), jax.numpy
    walker = d.Walker(512)
    middles, halves, springs = d.robot()
    a, b = springs[:, :2].astype(int).T
    rest, inverse = walker.rest.to_numpy(), walker.inverse.to_numpy()

    def turned(angle, r):
        c, s = jnp.cos(angle), jnp.sin(angle)
        return jnp.stack([c * r[:, 0] - s * r[:, 1], s * r[:, 0] + c * r[:, 1]], axis=1)

    def across(r):
        return jnp.stack([-r[:, 1], r[:, 0]], axis=1)

    def forces(x, v, t, weights):
        waves = jnp.sin(d.OMEGA * d.DT * t + 2 * np.pi / d.WAVES * jnp.arange(d.WAVES))
        thought = jnp.tanh(weights @ jnp.concatenate([waves, jnp.stack([x[:, 2], v[:, 0], v[:, 1]], 1).ravel()]))
        ra, rb = turned(x[a, 2], springs[:, 2:4]), turned(x[b, 2], springs[:, 4:6])
        way = x[a, :2] + ra - x[b, :2] - rb
        speed = v[a, :2] - v[b, :2] + v[a, 2:] * across(ra) - v[b, 2:] * across(rb)
        length = jnp.sqrt((way**2).sum(1))
        wanted = rest * (1 + d.PULL * springs[:, 6] * thought)
        size = d.STIFFNESS * (wanted - length) - d.DAMPING * (speed * way).sum(1) / length
        f = (size / length)[:, None] * way
        on_a = jnp.concatenate([f, (across(ra) * f).sum(1)[:, None]], axis=1)
        on_b = jnp.concatenate([f, (across(rb) * f).sum(1)[:, None]], axis=1)
        weight = jnp.stack([0 * x[:, 0], -d.GRAVITY / inverse[:, 0], 0 * x[:, 0]], axis=1)
        return weight.at[a].add(on_a).at[b].add(-on_b)

    def step(state, t, weights):
        x, v = state
        v, late = (1 - d.DRAG * d.DT) * v + d.DT * inverse * forces(x, v, t, weights), jnp.zeros_like(v)
        for corner in ((-1, -1), (1, -1), (-1, 1), (1, 1)):
            r = turned(x[:, 2], halves * np.array(corner))
            height, u = x[:, 1] + r[:, 1] - d.GROUND, v[:, :2] + v[:, 2:] * across(r)
            meet = (u[:, 1] < 0) & (height + d.DT * u[:, 1] < 0)
            up = d.LIFT * jnp.maximum(-height, 0) - (1 + d.BOUNCE) * u[:, 1]
            up = up / (inverse[:, 1] + inverse[:, 2] * r[:, 0] ** 2)
            most = d.FRICTION * up
            along = jnp.clip(-u[:, 0] / (inverse[:, 0] + inverse[:, 2] * r[:, 1] ** 2), -most, most)
            change = inverse * jnp.stack([along, up, r[:, 0] * up - r[:, 1] * along], axis=1)
            change = jnp.where(meet[:, None], change, 0)
            time = jnp.where(meet, jnp.maximum(height / -jnp.where(meet, u[:, 1], -1), 0), 0)
            v, late = v + change, late + time[:, None] * change
        return x + d.DT * v - late, v

    def loss_of(weights):
        x = jnp.concatenate([middles, np.zeros((walker.n, 1))], axis=1)
        x, _ = steps_of(jax, lambda s, t: step(s, t, weights), (x, jnp.zeros_like(x)), walker.steps)
        return (x[0, 0] - middles[0, 0] - d.GOAL) ** 2

    compare(jax, walker, walker.weights, loss_of)
