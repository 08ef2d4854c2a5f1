"""Particles that move between ranks: on two ranks and in one process."""

import runpy
import textwrap

import numpy as np
import pytest
from test_mpi import EXAMPLES, needs_mpi, ranks

import aerogel as ti

PROGRAM = """
    import importlib.util
    import sys
    import numpy as np
    import aerogel as ti

    # By its path: another example has the same name.
    spec = importlib.util.spec_from_file_location("mpm_on_ranks", sys.argv[1] + "/mpm.py")
    mpm = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(mpm)

    ti.init(arch=ti.cpu, log_level="error", cpu_max_num_threads=1, deterministic=True)
    rank, size = ti.mpi.rank(), ti.mpi.size()
    positions, n_moves = mpm.run(32, 300, 64, speed=10.0)
    assert (n_moves > 0) == (size > 1)
    if rank == 0:
        np.save(sys.argv[2], positions)

    # Walks on a grid with a periodic axis, of integers so that sums are exact; the first axis is divided.
    nx, ny, n = 12, 5, 40
    grid = ti.mpi.grid((nx, ny), halo=1, periodic=(True, False))
    particles = ti.mpi.Particles(
        grid, n, position="at", origin=(-6, 0), spacing=(1, 2), at=ti.math.vec2, weight=ti.i32, m=ti.types.matrix(2, 3, ti.f64)
    )
    random = np.random.default_rng(5)
    at = random.integers([-6, 0], [6, 10], (n, 2)) + 0.5
    weight = random.integers(1, 9, n)
    m = random.random((n, 2, 3))
    for half in (slice(0, 15), slice(15, n)):
        particles.add(at=at[half], weight=weight[half], m=m[half])
    assert particles.count() == n and (particles.to_numpy("id") == np.arange(n)).all()
    assert (particles.to_numpy("at") == at).all() and (particles.to_numpy("m") == m).all()
    # On the edge of a cell, which one it is depends on the precision.
    line = ti.mpi.grid(14, halo=1)
    edges = ti.mpi.Particles(line, 10, x=ti.f32, spacing=0.1)
    edges.add(x=np.full(4, 0.7, np.float32))
    around = ti.field(ti.i32, shape=line)

    @ti.kernel
    def spread():
        for p in edges.x:
            if edges.alive[p]:
                for k in ti.static(range(-1, 2)):
                    around[ti.floor(edges.x[p] / 0.1, ti.i32) + k] += 1

    spread()
    assert sorted(around.to_numpy().tolist())[-4:] == [0, 4, 4, 4] and around.to_numpy().sum() == 12

    counts = ti.field(ti.i32, shape=grid)
    seen = ti.field(ti.i32, shape=grid)

    @ti.kernel
    def walk(by: ti.math.vec2):
        for p in particles.at:
            if particles.alive[p]:
                particles.at[p] += by * (1 + particles.weight[p] % 2)
                if particles.at[p].x >= 6:
                    particles.at[p].x -= 12

    @ti.func
    def cell(p):
        return ti.Vector([ti.floor(particles.at[p].x + 6, ti.i32), ti.floor(particles.at[p].y / 2, ti.i32)])

    @ti.kernel
    def deposit() -> ti.i32:
        total = 0
        for p in particles.at:
            if particles.alive[p]:
                i, j = cell(p)
                counts[i, j] += particles.weight[p]
                counts[i + 1, j] += 1
                total += particles.weight[p]
        return total

    @ti.kernel
    def look():
        for p in particles.at:
            if particles.alive[p]:
                i, j = cell(p)
                particles.weight[p] = counts[i, j] * 100 + counts[i - 1, j]
        for i, j in seen:
            seen[i, j] = counts[i, j]

    moved = 0
    for by in (0.5, 3.0, 5.0):
        # Far beyond the next rank as well.
        walk([by, 0])
        at[:, 0] += by * (1 + weight % 2)
        at[at[:, 0] >= 6, 0] -= 12
        moved += particles.migrate()
        assert particles.count() == n and (particles.to_numpy("at") == at).all()
        own = particles.at.local()[particles.alive.local() == 1]
        (x0, x1), (y0, y1) = grid.box
        assert ((own[:, 0] + 6 >= x0) & (own[:, 0] + 6 < x1)).all()
    assert (moved > 20) == (size > 1) and (particles.to_numpy("m") == m).all()
    assert deposit() == weight.sum()
    expected = np.zeros((nx, ny), np.int64)
    i, j = (at[:, 0] + 6).astype(int), (at[:, 1] // 2).astype(int)
    np.add.at(expected, (i, j), weight)
    np.add.at(expected, ((i + 1) % nx, j), 1)
    assert (counts.to_numpy() == expected).all()
    look()
    assert (particles.to_numpy("weight") == expected[i, j] * 100 + expected[i - 1, j]).all()
    assert (seen.to_numpy() == expected).all()

    # The gradient of what particles read, also of cells of the other rank.
    heights = ti.field(ti.f64, shape=grid, needs_grad=True)
    energy = ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def measure():
        for p in particles.at:
            if particles.alive[p]:
                i, j = cell(p)
                energy[None] += heights[i, j] ** 2 + heights[i + 1, j]

    levels = np.arange(nx * ny, dtype=np.float64).reshape(nx, ny)
    heights.from_numpy(levels)
    with ti.ad.Tape(energy):
        measure()
    expected = np.zeros((nx, ny))
    np.add.at(expected, (i, j), 2 * levels[i, j])
    np.add.at(expected, ((i + 1) % nx, j), 1)
    assert (heights.grad.to_numpy() == expected).all()

    # Beyond the edges the nearest cell counts; a position that is no number is kept.
    few = ti.mpi.Particles(grid, 4, x=ti.math.vec2)
    few.add(x=np.array([[0.0, -7], [11, 99], [-1, 0], [np.nan, 0]]))
    few.migrate()
    assert few.count() == 4 and few.to_numpy("x")[2, 0] == -1

    # Errors, on every rank, which leave particles as they were.
    line = ti.mpi.grid(8, halo=1)
    full = ti.mpi.Particles(line, 3, x=ti.f32)
    full.add(x=np.array([0.0, 0.0, 7.0, 7.0][: 2 * size]))

    @ti.kernel
    def all_to_one():
        for p in full.x:
            full.x[p] = 0.0

    @ti.kernel
    def of_two_grids():
        for p in particles.at:
            counts[0, 0] = particles.alive[p]

    @ti.kernel
    def of_others():
        for p in particles.at:
            particles.weight[p] = particles.weight[(p * 7) % n]

    def crowd():
        all_to_one()
        if size == 1:
            full.add(x=np.zeros(2))
        full.migrate()

    loss = ti.field(ti.f32, (), needs_grad=True)

    def in_a_tape():
        with ti.ad.Tape(loss):
            particles.migrate()

    errors = [
        (crowd, "has room for 3 and needs 4"),
        (lambda: full.add(x=np.zeros(2), v=np.zeros(2)), "no attribute `v`; there are x"),
        (lambda: full.add(x=np.zeros((2, 2))), "has the shape (2,), not (2, 2)"),
        (lambda: few.add(), "positions are missing: `x`"),
        (lambda: full.to_numpy("v"), "no attribute `v`"),
        (lambda: ti.mpi.Particles(grid, 4, x=ti.math.vec3), "is a vector of 2 floats"),
        (lambda: ti.mpi.Particles(grid, 4, x=ti.math.vec2, spacing=0), "above 0"),
        (lambda: ti.mpi.Particles(grid, 4, x=ti.math.vec2, origin=(0, 0, 0)), "3 numbers for 2 axes"),
        (lambda: ti.mpi.Particles(grid, 4, x=ti.math.vec2, id=ti.i32), "`id` cannot be the name"),
        (lambda: ti.mpi.Particles(grid, 0, x=ti.math.vec2), "room for at least 1"),
        (of_two_grids, "two grids"),
        (in_a_tape, "inside of a tape"),
    ]
    if size > 1:
        errors.append((of_others, "how far this index of `weight`"))
    for call, message in errors:
        try:
            call()
            found = "nothing"
        except Exception as error:
            found = str(error)
        assert message in found, found
    assert full.count() == 2 * size
    print("particles", size)
"""


@needs_mpi
def test_particles_on_two_ranks_are_bit_equal_to_those_of_one_process(tmp_path, monkeypatch, capsys):
    done = ranks(2, tmp_path, PROGRAM, EXAMPLES, tmp_path / "two.npy")
    assert done.returncode == 0 and done.stdout == "particles 2\n", done.stderr
    program = tmp_path / "alone.py"
    program.write_text(textwrap.dedent(PROGRAM))
    monkeypatch.setattr("sys.argv", ["alone.py", str(EXAMPLES), str(tmp_path / "one.npy")])
    runpy.run_path(str(program))
    assert capsys.readouterr().out == "particles 1\n"
    one, two = (np.load(tmp_path / f"{name}.npy") for name in ("one", "two"))
    assert one.shape == (300, 2) and np.ptp(one[:, 1]) > 0.1
    np.testing.assert_array_equal(two, one)


def test_in_one_process_without_a_halo():
    """All fields are plain ones."""
    ti.init(arch=ti.cpu, log_level="error")
    particles = ti.mpi.Particles(ti.mpi.grid((4, 4), halo=1), 5, x=ti.math.vec2)
    particles.add(x=np.array([[1.5, 2.5], [3.0, 0.0]]))
    assert particles.migrate() == 0 and repr(particles) == "<ti.mpi.Particles with x on 1 ranks, 5 on each>"
    assert particles.x.grid.is_whole
    with pytest.raises(ti.AerogelRuntimeError, match="make them with a larger capacity"):
        particles.add(x=np.zeros((4, 2)))
    assert particles.count() == 2
