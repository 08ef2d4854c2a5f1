"""Sparse trees on a grid: programs on several ranks against the same program in one process."""

import re
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from test_mpi import EXAMPLES, needs_mpi, ranks

import aerogel as ti

PROGRAM = """
    import sys
    sys.path.insert(0, sys.argv[1])
    import numpy as np
    import aerogel as ti
    import level_set

    ti.init(arch=ti.cpu, deterministic=True)
    out = {}
    out["distances"], out["n_active"] = level_set.run(64, 8)

    n, m = 32, 24
    grid = ti.mpi.grid((n // 8, m // 8), periodic=(True, False))
    x, y, z, s = (ti.field(ti.f32) for _ in range(4))
    gone, v = ti.field(ti.i32), ti.Vector.field(2, ti.f32)
    blocks = ti.root.pointer(ti.ij, grid)
    pixels = blocks.bitmasked(ti.ij, 8)
    pixels.place(x, y, v, gone)
    ti.root.pointer(ti.ij, grid).dense(ti.ij, 8).place(z)
    ti.root.hash(ti.ij, grid).bitmasked(ti.ij, 4).bitmasked(ti.ij, 2).place(s)
    coarse = ti.field(ti.i32, shape=grid)
    total = ti.field(ti.i32, shape=())

    @ti.kernel
    def begin():
        for i, j in ti.ndrange(n, m):
            if (i - 15) ** 2 + (j - 9) ** 2 < 50:
                x[i, j] = i * 0.37 + j

    @ti.kernel
    def smooth():
        for i, j in x:
            y[i, j] = x[i, j] + 0.5 * x[(i + 1) % n, j] - 0.25 * x[i, ti.max(j - 1, 0)]
            v[i, j] = ti.Vector([y[i, j], 1.0])
            total[None] += 1

    @ti.kernel
    def shift():
        for i, j in y:
            if i < n - 2:
                z[i + 2, j] = y[i, j]
        for i, j in z:
            if z[i, j] != 0:
                x[i, j] = z[i, j]
                z[i, j] = 0

    @ti.kernel
    def scatter():
        for i, j in y:
            s[(i + 1) % n, j] += 1.0
            s[(i - 8) % n, ti.min(j + 1, m - 1)] += 2.0
        for i, j in y:
            y[i, j] += s[(i + 1) % n, j] * 0.125

    @ti.kernel
    def clean():
        for i, j in x:
            gone[i, j] = ti.is_active(pixels, [(i + 1) % n, j]) == 0
        for i, j in x:
            if gone[i, j]:
                ti.deactivate(pixels, [i, j])
            coarse[i // 8, j // 8] += 1

    @ti.kernel
    def drop(least: ti.f32):
        for i, j in blocks:
            most = 0.0
            for a, b in ti.ndrange(8, 8):
                most = ti.max(most, x[i * 8 + a, j * 8 + b])
            if most < least:
                ti.deactivate(blocks, [i, j])

    @ti.kernel
    def neighbours() -> ti.i32:
        found = 0
        for i, j in blocks:
            found += 1 + 10 * ti.is_active(blocks, [(i + 1) % (n // 8), j])
        return found

    begin()
    for k in range(5):
        smooth()
        shift()
        scatter()
        clean()
        if k == 4:
            drop(20)
        for name, field in dict(x=x, y=y, z=z, s=s, v=v, coarse=coarse).items():
            out[f"{name}{k}"] = field.to_numpy()
        out[f"counts{k}"] = np.array([total[None], neighbours()])

    out["elements"] = np.array([x[20, 9], y[3, 3]])
    x[31, 23] = 5
    smooth()
    out["written"] = y.to_numpy()
    x.fill(2)
    y.from_numpy(np.arange(n * m, dtype=np.float32).reshape(n, m))
    smooth()
    cells, values = y.active_cells()
    order = np.lexsort(cells.T)
    out["cells"], out["values"] = cells[order], values[order]
    whole, gathered = y.to_numpy(), y.gather()
    assert (gathered is None) == (ti.mpi.rank() > 0) and (gathered is None or (gathered == whole).all())
    blocks.deactivate_all()
    smooth()
    out["empty"] = y.to_numpy()
    s.parent().deactivate_all()
    out["s"] = s.to_numpy()
    if ti.mpi.rank() == 0:
        np.savez(sys.argv[2], **out)
"""


@needs_mpi
def test_programs_are_bit_equal_on_ranks(tmp_path):
    alone = tmp_path / "alone.npz"
    program = tmp_path / "alone.py"
    program.write_text(textwrap.dedent(PROGRAM))
    done = subprocess.run([sys.executable, program, EXAMPLES, alone], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    one = dict(np.load(alone))
    # The band is about eight cells wide, and each thing is in use.
    distances = one["distances"][one["distances"] != 0]
    assert 300 < one["n_active"] < 1200 and abs(distances).max() < 4 and (distances < 0).any()
    assert all(np.count_nonzero(one[f"{name}4"]) > 2 for name in ("x", "y", "s", "v", "coarse"))
    counts = [one[f"counts{k}"][1] for k in (3, 4)]
    assert counts[0] > counts[1] > 0 and not one["empty"].any() and not one["s"].any()
    for n in (2, 4):
        file = tmp_path / f"{n}.npz"
        done = ranks(n, tmp_path, PROGRAM, EXAMPLES, file)
        assert done.returncode == 0, done.stderr
        several = np.load(file)
        for name, expected in one.items():
            np.testing.assert_array_equal(several[name], expected, err_msg=f"{name} on {n} ranks")


REFUSED = """
    import aerogel as ti

    ti.init(arch=ti.cpu)
    n = 32
    grid = ti.mpi.grid((n // 8, n // 8), halo=2)
    x, y, whole = ti.field(ti.f32), ti.field(ti.i32), ti.field(ti.f32, shape=(n, n))
    blocks = ti.root.pointer(ti.ij, grid)
    blocks.dense(ti.ij, 8).place(x)
    ti.root.dense(ti.ij, grid).bitmasked(ti.ij, 4).place(y)

    @ti.kernel
    def far():
        for i, j in x:
            x[i, j] = x[i + 17, j]

    @ti.kernel
    def unknown(k: ti.i32):
        for i, j in x:
            x[i, j] = x[i + k, j]

    @ti.kernel
    def other_block():
        for i, j in x:
            ti.deactivate(blocks, [i // 8 + 1, j // 8])

    @ti.kernel
    def other_cells():
        for i, j in x:
            x[i, j] = y[i // 3, j]

    @ti.kernel
    def beyond_the_halo():
        for i, j in x:
            x[i + 17, j] = 1

    @ti.kernel
    def wrapped_block():
        for i, j in x:
            x[i, j] = ti.is_active(blocks, [((i + 8) % n) // 8, j // 8])

    @ti.kernel
    def transposed():
        for i, j in x:
            x[j, i] = 1

    @ti.kernel
    def outside():
        x[3, 4] = 1

    @ti.kernel
    def not_split():
        for i, j in x:
            whole[i, j] = x[i, j]

    @ti.kernel
    def wraps():
        for i, j in x:
            x[i, j] = x[(i + 1) % n, j]

    wrong = far, lambda: unknown(1), other_block, other_cells, beyond_the_halo, wrapped_block, transposed, outside, not_split, wraps
    for kernel in wrong:
        try:
            kernel()
        except ti.AerogelCompilationError as error:
            if ti.mpi.rank() == 0:
                print(str(error).replace("\\n", " "))
    for refused in (x.local, blocks.active_cells, lambda: ti.save("x.safetensors", {"x": x}), lambda: x.copy_from(whole)):
        try:
            refused()
        except Exception as error:
            print(type(error).__name__, error)
"""


@needs_mpi
def test_refused_accesses(tmp_path):
    done = ranks(2, tmp_path, REFUSED)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if "rror" in line]
    expected = [
        "`x` is read 17 cells away along axis 0 of its grid, whose halo is 16 wide.*halo=3",
        "how far this index of `x` along axis 0 lies from the loop's own cell is not known",
        "which cells this index of a node along axis 0 lies in is not known",
        "which cells this index of `y` along axis 0 lies in is not known",
        "stores to cells 17 away along axis 0, and the halo is 16 wide",
        "an index of a node wraps around along axis 0, which is not periodic",
        "the index along axis 0 of a store is not the counter of that axis plus a number",
        "outside of a parallel loop",
        "writes to a field that is not split",
        "wraps around along axis 0, which is not periodic",
        "active_cells or a kernel",
        "divided among ranks",
        "sparse field on a grid",
        "not supported for split fields",
    ]
    assert len(lines) == len(expected), done.stdout
    for line, part in zip(lines, expected):
        assert re.search(part, line), line
        assert "E0701" in line or "CompilationError" not in line


def test_refused_layouts():
    ti.init(arch=ti.cpu)
    grid = ti.mpi.grid((4, 4))

    def layout(lay_out, **kinds):
        x = ti.field(ti.f32, **kinds)
        lay_out(x)
        x.to_numpy()

    def after_another(x):
        builder = ti.FieldsBuilder()
        builder.dense(ti.i, 4)
        builder.pointer(ti.ij, grid).place(x)

    def two(x):
        builder = ti.FieldsBuilder()
        builder.pointer(ti.ij, grid).place(x)
        builder.pointer(ti.ij, 4)

    for lay_out, message in (
        (lambda x: ti.root.pointer(ti.i, grid).place(x), "needs its 2 axes in order"),
        (lambda x: ti.root.pointer([*ti.j, *ti.i], grid).place(x), "in order"),
        (lambda x: ti.root.dense(ti.ij, 2).pointer(ti.ij, grid).place(x), "outermost node"),
        (lambda x: ti.root.pointer(ti.ij, grid).dynamic(ti.i, 4).place(x), "no dynamic nodes below a grid"),
        (lambda x: ti.root.pointer(ti.ij, grid).dense(ti.k, 4).place(x), "have the axes of the grid"),
        (lambda x: ti.root.dense(ti.ij, grid).dense(ti.ij, 4).place(x), "without sparse nodes"),
        (lambda x: ti.root.pointer(ti.ij, grid).place(x, offset=(1, 1)), "has no offset"),
        (after_another, "no other outermost node"),
        (two, "no other outermost node"),
    ):
        with pytest.raises(Exception, match=message):
            layout(lay_out)
    with pytest.raises(ti.AerogelNotSupportedError, match="have no gradients"):
        layout(lambda x: ti.root.pointer(ti.ij, grid).place(x, x.grad), needs_grad=True)
    ti.init(arch=ti.cpu)


def test_one_process_needs_no_mpi():
    ti.init(arch=ti.cpu)
    grid = ti.mpi.grid((4, 4), periodic=True)
    x = ti.field(ti.f32)
    ti.root.pointer(ti.ij, grid).dense(ti.ij, 4).place(x)

    @ti.kernel
    def spread():
        for i, j in x:
            x[(i + 4) % 16, j] += 1

    x[13, 2] = 2
    assert x.shape == (16, 16) and x.grid is grid
    spread()
    assert x.to_numpy()[1, 2] == 1 and len(x.active_cells()[0]) == 32
