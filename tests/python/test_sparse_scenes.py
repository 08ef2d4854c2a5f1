"""Sparse fields in whole programs: a simulation and a level set."""

import sys
from pathlib import Path

import numpy as np
import pytest

import aerogel as ti

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "examples"))

import levelset
import snow3d


class DenseSnow(snow3d.Snow):
    """The same over a dense grid, which has to be cleared."""

    def __init__(self, particles, domain):
        super().__init__(particles, domain, "dense")

    def step(self):
        self.mass.fill(0)
        self.momentum.fill(0)
        super().step()


def state(snow):
    return np.concatenate([f.to_numpy().reshape(len(snow.x.to_numpy()), -1) for f in (snow.x, snow.v, snow.F)], 1)


@pytest.mark.parametrize("exact", [True, False])
def test_snow_over_a_sparse_grid_is_snow_over_a_dense_one(exact):
    # One thread adds in one order, so the values are the same to the last bit, unless products and sums are fused.
    options = {"cpu_max_num_threads": 1, "fast_math": False} if exact else {}
    ti.init(arch=ti.cpu, log_level="error", **options)
    scenes = [make(2000, 256) for make in (snow3d.Snow, DenseSnow)]
    begin = state(scenes[0])
    for _ in range(10):
        for scene in scenes:
            scene.step()
    sparse, dense = map(state, scenes)
    assert np.isfinite(sparse).all() and (np.abs(sparse - begin)[:, :3].max(1) > 0.01).all()
    if exact:
        assert (sparse == dense).all()
        assert (scenes[0].mass.to_numpy() == scenes[1].mass.to_numpy()).all()
    assert np.abs(sparse - dense).max() < 2e-3  # Of velocities of 20 metres in a second.
    ti.reset()


def test_snow_keeps_mass_and_momentum(cpu):
    particles, domain, steps = 2000, 256, 10
    snow = snow3d.Snow(particles, domain)
    for k in range(1, steps + 1):
        snow.grid.deactivate_all()
        assert [node["cells"] for node in snow.grid.stats()] == [0, 0]
        snow.deform()
        snow.scatter()
        assert abs(total(snow.mass) / (particles * snow3d.MASS) - 1) < 1e-5
        momentum = total(snow.momentum)
        # The balls fly towards each other, so what there is comes from gravity.
        assert np.abs(momentum / particles / snow3d.MASS - [0, -snow3d.GRAVITY * snow3d.DT * (k - 1), 0]).max() < 1e-4
        snow.update()
        snow.gather()
    assert np.isfinite(state(snow)).all()
    # They have met: the particles of the first ball are slower than they were.
    assert snow.v.to_numpy()[: particles // 2, 0].min() < 0.5 * snow3d.SPEED


def total(field):
    """The sum over the active cells, in double precision; a copy of the whole domain could be too long."""
    n = field.n if isinstance(field, ti.MatrixField) else 1
    sums = ti.field(ti.f64, n)

    @ti.kernel
    def add():
        for cell in ti.grouped(field):
            for k in ti.static(range(n)):
                sums[k] += ti.cast(field[cell] if ti.static(n == 1) else field[cell][k], ti.f64)

    add()
    return sums.to_numpy() if n > 1 else sums[0]


def test_memory_follows_the_matter_and_not_the_domain(cpu):
    held = []
    for domain in (256, 4096):
        snow = snow3d.Snow(2000, domain)
        for _ in range(3):
            snow.grid.deactivate_all()
            snow.scatter()
        held.append([(node["cells"], node["held_bytes"]) for node in snow.grid.stats()])
    assert held[0] == held[1]
    assert 0 < held[0][1][0] < 100


def test_a_level_set_in_a_narrow_band(tmp_path):
    pytest.importorskip("trimesh")
    pytest.importorskip("pymeshfix")
    ti.init(arch=ti.cpu, fast_math=False, log_level="error")
    corners = levelset.bunny(96)
    area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1).sum() / 2
    found = []
    for kind in ("pointer", "dense"):
        band = levelset.LevelSet(96, kind)
        band.rasterize(corners)
        cells = band.sweep()
        found.append([band.near.to_numpy(), band.laplacian.to_numpy()])
        # A band as wide as this, around a surface as large as that.
        assert abs(cells / (2 * levelset.BAND * area) - 1) < 0.05
        if kind == "pointer":
            outer, inner = band.grid.stats()
            assert outer["cells"] < 27 and inner["cells"] * 8**3 < 0.5 * 96**3
    assert (found[0][0] == found[1][0]).all() and (found[0][1] == found[1][1]).all()
    near, laplacian = found[0][0].astype(np.float64), found[0][1]
    around = sum(np.roll(near, way, axis) for way in (-1, 1) for axis in range(3)) - 6 * near
    assert np.abs(laplacian - np.where(near > 0, around, 0)).max() < 1e-5
    # Every cell that a vertex lies in is nearer to the surface than its diagonal.
    vertices = np.round(corners.reshape(-1, 3)).astype(int)
    assert (near[tuple(vertices.T)] > levelset.BAND - 0.5 * 3**0.5 - 1e-4).all()
    ti.reset()
