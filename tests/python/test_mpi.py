"""Fields that processes share: programs on several ranks against the same program in one process."""

import importlib.util
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import aerogel as ti

EXAMPLES = Path(__file__).parents[2] / "examples" / "mpi"

BIN = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)])
needs_mpi = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None or shutil.which("mpiexec", path=BIN) is None,
    reason="mpi4py and mpich are not installed: `make setup` installs them",
)


def ranks(n, tmp_path, source, *arguments):
    """Runs a program on so many ranks."""
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(source))
    command = [sys.executable, "-m", "aerogel", "mpi", "-n", str(n), str(program), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)


EXAMPLES_OF_A_SIZE = """
    import sys
    sys.path.insert(0, sys.argv[1])
    import numpy as np
    import aerogel as ti
    import heat, jacobi, lattice_boltzmann

    ti.init(arch=ti.cpu)
    warm, total = heat.run((24, 17), 11)
    # Compiling it on four ranks of two cores takes seconds.
    flow = lattice_boltzmann.run((16, 13), 9) if ti.mpi.size() < 4 else ()
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    potential, count = jacobi.run(20, 1e-3)
    if ti.mpi.rank() == 0:
        np.savez(sys.argv[2], warm=warm, total=total, flow=flow, potential=potential, count=count)
    print("once")
"""


@needs_mpi
def test_examples_are_bit_equal_on_ranks(tmp_path):
    alone = tmp_path / "alone.npz"
    source = textwrap.dedent(EXAMPLES_OF_A_SIZE)
    subprocess.run([sys.executable, "-c", source, str(EXAMPLES), str(alone)], check=True, capture_output=True)
    one = np.load(alone)
    assert one["warm"].max() > 0.5 and abs(one["flow"]).max() > 0.01 and one["count"] > 20
    for n in (2, 4):
        file = tmp_path / f"{n}.npz"
        done = ranks(n, tmp_path, EXAMPLES_OF_A_SIZE, EXAMPLES, file)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("once") == 1
        several = np.load(file)
        for name in ("warm", "potential", "count") if n == 4 else ("warm", "flow", "potential", "count"):
            np.testing.assert_array_equal(several[name], one[name], err_msg=f"{name} on {n} ranks")
        np.testing.assert_allclose(several["total"], one["total"], rtol=1e-5)


@needs_mpi
def test_fields_and_sums_on_three_ranks(tmp_path):
    done = ranks(
        3,
        tmp_path,
        """
        import numpy as np
        import aerogel as ti
        from mpi4py import MPI

        ti.init(arch=ti.cpu)
        rank, size = ti.mpi.rank(), ti.mpi.size()
        assert (size, ti.mpi.rank()) == (3, MPI.COMM_WORLD.rank)
        shape = (10, 7)
        grid = ti.mpi.grid(shape, halo=2, periodic=(True, False))
        whole = np.arange(70, dtype=np.float32).reshape(shape)

        # Python's accesses.
        f = ti.field(ti.f32, shape=grid, name="f")
        f.from_numpy(whole)
        assert f.shape == shape and (f.to_numpy() == whole).all()
        (x0, x1), (y0, y1) = grid.box
        assert (f.local() == whole[x0:x1, y0:y1]).all() and f.local().size < 70
        gathered = f.gather(root=1)
        assert (gathered is None) == (rank != 1) and (rank != 1 or (gathered == whole).all())
        assert f[9, 6] == 69
        f[0, 3] = -5
        assert f[0, 3] == -5
        f[0, 3] = 3
        vectors = ti.Vector.field(3, ti.i32, shape=grid)
        structs = ti.Struct.field({"a": ti.f32, "m": ti.types.matrix(2, 2, ti.f64)}, shape=grid)
        vectors.fill([1, 2, 3])
        assert vectors[5, 5].to_list() == [1, 2, 3] and (vectors.to_numpy() == [1, 2, 3]).all()

        # Two cells away, corners, loops over ranges, offsets from an inner loop, global indices.
        @ti.kernel
        def sum_of_box(g: ti.template()):
            for i, j in ti.ndrange(shape[0], (2, 5)):
                total = 0.0
                for di in range(-2, 3):
                    for dj in ti.static(range(-2, 3)):
                        total += f[(i + di) % shape[0], j + dj]
                g[i, j] = total + 1000 * i

        @ti.kernel
        def beyond(g: ti.template()):
            for i, j in g:
                g[i, j] = f[i + 2, j] - f[i - 1, ti.max(j - 1, 0)]

        @ti.kernel
        def mixed():
            for I in ti.grouped(structs):
                structs[I].a = f[I] + vectors[I].sum()
                structs[I].m = ti.Matrix([[I[0], I[1]], [1, f[I + ti.Vector([1, 0])]]])

        g = ti.field(ti.f32, shape=grid)
        for again in range(2):
            sum_of_box(g)
            index = np.arange(10)[:, None]
            expected = sum(np.roll(whole, -d, 0)[:, 2 + e : 5 + e] for d in range(-2, 3) for e in range(-2, 3)) + 1000 * index
            assert (g.to_numpy()[:, 2:5] == expected).all() and (g.to_numpy()[:, :2] == 0).all()
            whole += 3
            f.local()[...] += 3
            f.local_written()
        beyond(g)
        left = np.roll(whole, 1, 0)
        assert (g.to_numpy() == np.roll(whole, -2, 0) - left[:, np.maximum(np.arange(7) - 1, 0)]).all()
        mixed()
        got = structs.to_numpy()
        assert (got["a"] == whole + 6).all() and (got["m"][..., 1, 1] == np.roll(whole, -1, 0)).all()
        assert (got["m"][..., 0, 1] == np.arange(7)).all()

        # Sums: fields, elements, variables of a kernel, all operations; the loop after reads the sum of all.
        total = ti.field(ti.i64, shape=())
        bins = ti.field(ti.f64, shape=4)
        total[None] = 100
        ends = ti.Vector.field(2, ti.f32, shape=())

        @ti.kernel
        def reduce() -> ti.f64:
            s = 1.0
            ends[None] = [1e9, -1e9]
            for i, j in f:
                s += f[i, j]
                total[None] += ti.cast(f[i, j], ti.i64)
                bins[(i + j) % 4] += f[i, j]
                ti.atomic_min(ends[None][0], f[i, j])
                ti.atomic_max(ends[None][1], f[i, j])
            for i, j in f:
                g[i, j] = f[i, j] - s
            return s

        assert reduce() == 1 + whole.sum()
        assert total[None] == 100 + whole.sum()
        assert (g.to_numpy() == whole - (1 + whole.sum())).all()
        i, j = np.indices(shape)
        assert bins.to_numpy().tolist() == [float(whole[(i + j) % 4 == k].sum()) for k in range(4)]
        assert ends[None].to_list() == [whole.min(), whole.max()]
        print("done")
    """,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("done\n") and done.stdout.count("done") == 1


@needs_mpi
def test_layouts_axes_and_ranges(tmp_path):
    """Three axes, boxes of several sizes, other layouts, components, bounds of a launch, vectors as sums."""
    done = ranks(
        2,
        tmp_path,
        """
        import numpy as np, sys
        import aerogel as ti
        ti.init(arch=ti.cpu)
        size = ti.mpi.size()
        def check(name, a, b):
            assert np.array_equal(a, b), (name, ti.mpi.rank())
        shape = (7, 9, 5)
        g = ti.mpi.grid(shape, periodic=(False, True, True))
        a = ti.field(ti.i32, shape=g, order="kji"); b = ti.field(ti.i32, shape=g)
        v = ti.Vector.field(2, ti.f64, shape=g, layout=ti.Layout.SOA)
        n0, n1, n2 = shape
        @ti.kernel
        def begin():
            for i, j, k in a:
                a[i, j, k] = i * 100 + j * 10 + k
        @ti.kernel
        def diag():
            for i, j, k in b:
                if 0 < i < n0 - 1:
                    b[i, j, k] = a[i - 1, (j + 1) % n1, (k - 1) % n2] + a[i + 1, j - 1, k + 1]
                else:
                    b[i, j, k] = -1
        @ti.kernel
        def twice():
            for i, j, k in b:
                v[i, j, k] = [b[i, j, k], 2 * b[i, (j + 1) % n1, k]]
            for i, j, k in v:
                b[i, j, k] = ti.cast(v[i, j, (k + 1) % n2][0] + v[ti.min(i + 1, n0 - 1), j, k][1], ti.i32)
        begin(); diag()
        A = np.add.outer(np.add.outer(np.arange(7) * 100, np.arange(9) * 10), np.arange(5))
        check("begin", a.to_numpy(), A)
        P = lambda x, i, j, k: np.roll(x, (-i, -j, -k), (0, 1, 2))
        B = P(A, -1, 1, -1) + P(A, 1, -1, 1); B[0] = B[-1] = -1
        check("diag", b.to_numpy(), B)
        twice()
        up = np.concatenate([B[1:], B[-1:]])
        check("twice", b.to_numpy(), P(B, 0, 0, 1) + 2 * P(up, 0, 1, 0))
        check("v", v.to_numpy()[..., 1], 2 * P(B, 0, 1, 0))
        c = v.get_scalar_field(1)
        check("component", c.to_numpy(), v.to_numpy()[..., 1])
        v[6, 8, 4] = [5, 6]
        v[6, 8, 4][1] = 7
        assert v[6, 8, 4].to_list() == [5, 7]
        line = ti.field(ti.f32, shape=ti.mpi.grid(16, periodic=True))
        @ti.kernel
        def and_mask():
            for i in line:
                line[i] = i
        @ti.kernel
        def seven(out: ti.template()):
            for i in range(16):
                out[i] = line[15 & (i + 1)] - line[(i + 15) % 16]
        out = ti.field(ti.f32, shape=line.grid)
        and_mask(); seven(out)
        L = np.arange(16, dtype=np.float32)
        check("mask", out.to_numpy(), np.roll(L, -1) - np.roll(L, 1))
        @ti.kernel
        def counts(lo: ti.i32, hi: ti.i32) -> ti.i32:
            n = 0
            for i in range(lo, hi):
                out[i] = 1
                n += 1
            return n
        assert counts(3, 12) == 9 and counts(5, 5) == 0 and counts(0, 2) == 2
        @ti.kernel
        def cells() -> ti.i32:
            n = 0
            for i, j, k in a:
                n += 1
            return n
        assert cells() == 7 * 9 * 5
        own = ti.field(ti.i32, shape=ti.mpi.grid((6, 4), halo=0))

        @ti.kernel
        def without_halo():
            for i, j in ti.ndrange(6, 4):
                own[i, j] = 4 * i + j

        without_halo()
        check("no halo", own.to_numpy().reshape(-1), np.arange(24))
        @ti.kernel
        def vec_sum() -> ti.types.vector(2, ti.f64):
            s = ti.Vector([0.0, 0.0], ti.f64)
            for i, j, k in v:
                s += v[i, j, k]
            return s
        assert np.allclose(vec_sum().to_list(), v.to_numpy().sum((0, 1, 2)))
        print("all", size)
        """,
    )
    assert done.stdout.endswith("all 2\n"), done.stderr


@needs_mpi
def test_bad_input_on_every_rank(tmp_path):
    done = ranks(
        2,
        tmp_path,
        """
        import numpy as np
        import aerogel as ti
        from mpi4py import MPI

        ti.init(arch=ti.cpu)
        f = ti.field(ti.f32, shape=ti.mpi.grid((8, 8)), name="f")
        h = ti.field(ti.f32, shape=ti.mpi.grid((8, 8)), name="h")
        plain = ti.field(ti.f32, shape=(8, 8))

        @ti.kernel
        def unbounded(d: ti.i32):
            for i, j in f:
                h[i, j] = f[i + d, j]

        @ti.kernel
        def far():
            for i, j in f:
                h[i, j] = f[i + 2, j]

        @ti.kernel
        def wraps():
            for i, j in f:
                h[i, j] = f[(i + 1) % 8, j]

        @ti.kernel
        def outside():
            f[0, 0] = 1

        @ti.kernel
        def copies():
            for i, j in f:
                plain[i, j] = f[i, j]

        @ti.kernel
        def draws():
            for i, j in f:
                f[i, j] = ti.random()

        @ti.kernel
        def steps_ahead():
            for i, j in f:
                f[i + 1, j] = 1
                f[i, j] = 2

        @ti.kernel
        def nested():
            for _ in range(1):
                for i, j in f:
                    plain[0, 0] += 1

        def wide():
            ti.mpi.grid((8, 3), halo=5)

        def narrow():
            ti.mpi.grid((1, 1))

        line = ti.field(ti.f32, shape=ti.mpi.grid(8), needs_grad=True)
        most = ti.field(ti.f32, (), needs_grad=True)

        @ti.kernel
        def extremum():
            for i in line:
                ti.atomic_max(most[None], line[i])

        def in_a_tape():
            with ti.ad.Tape(most):
                line.from_numpy(np.ones(8))

        @ti.kernel
        def in_turn():
            for i in line:
                line[i + 1] += line[i - 1]
                line[i - 1] += line[i + 1]

        calls = [lambda: unbounded(1), far, wraps, outside, copies, draws, steps_ahead, nested, wide, narrow]
        calls += [extremum.grad, in_a_tape, in_turn]
        for call in calls:
            try:
                call()
                message = "nothing was raised"
            except Exception as e:
                message = f"{type(e).__name__}: {e}"
            assert len(set(MPI.COMM_WORLD.allgather(message))) == 1, message
            print(message)
    """,
    )
    assert done.returncode == 0, done.stderr
    for message in (
        "how far this index of `f` along axis 0 lies from the loop's own cell is not known",
        "program.py:14:21",
        "h[i, j] = f[i + d, j]",
        "ti.mpi.grid(shape, halo=n)",
        "`f` is read 2 cells away along axis 0 of its grid, whose halo is 1 wide",
        "which is not periodic",
        "accessed outside of a parallel loop",
        "writes to a field that is not split",
        "draws random numbers",
        "several distances",
        "stands inside another loop",
        "a halo of 5 cells is wider than a box",
        "2 ranks do not fit a grid of shape (1, 1)",
        "a loop adds to neighbours' cells of",
        "minima and maxima over all processes have no gradient",
        "this is about the derivative of the kernel",
        "a tape does not record writes from Python to elements of a split field",
    ):
        assert message in done.stdout, message
    assert "^" in done.stdout and "nothing was raised" not in done.stdout


@needs_mpi
def test_trusted_indices_are_checked_in_debug_mode(tmp_path):
    done = ranks(
        2,
        tmp_path,
        """
        import numpy as np
        import aerogel as ti

        ti.init(arch=ti.cpu, debug=True)
        grid = ti.mpi.grid(12, halo=2)
        f, g = ti.field(ti.i32, shape=grid), ti.field(ti.i32, shape=grid)
        f.from_numpy(np.arange(12))

        @ti.kernel
        def shift(d: ti.i32):
            for i in f:
                if 0 <= i + d < 12:
                    g[i] = f[i + d]

        shift(2)
        assert (g.to_numpy()[:10] == np.arange(2, 12)).all()
        shift(-2)
        assert (g.to_numpy()[2:] == np.arange(10)).all()
        try:
            shift(3)
        except ti.TaichiAssertionError as e:
            print("index" in str(e) and "out of bounds" in str(e))
        """,
    )
    # The other rank reads inside of its box and the grid.
    assert "True" in done.stdout, done.stderr


@needs_mpi
@pytest.mark.parametrize(
    "ending, messages",
    [
        ("raise KeyError('missing')", ["rank 1 of 2 ends the program", "KeyError: 'missing'"]),
        ("other()", ["the ranks reach different operations", "kernel `spread`", "kernel `other`"]),
        # A message arrives that is longer than the one that is expected.
        ("wide()", ["the ranks reach different operations", "kernel `spread`", "kernel `wide`"]),
        # All messages arrive, and those of the next loop do not.
        ("alike()", ["the ranks reach different operations", "kernel `spread`", "kernel `alike`"]),
        ("sys.exit(0)", ["the end of the program", "kernel `spread`"]),
        ("os.kill(os.getpid(), 9)", []),
    ],
)
def test_a_rank_that_ends_ends_all(tmp_path, ending, messages):
    done = ranks(
        2,
        tmp_path,
        f"""
        import os, sys
        import aerogel as ti

        ti.init(arch=ti.cpu)
        f = ti.field(ti.f32, shape=ti.mpi.grid(8))

        @ti.kernel
        def spread():
            for i in f:
                f[i] = f[i] + f[i + 1]

        @ti.kernel
        def other():
            for i in f:
                f[i] = f[i] - f[i - 1]

        v = ti.Vector.field(3, ti.f32, shape=f.grid)

        @ti.kernel
        def wide():
            for i in v:
                v[i] = v[i] + v[i + 1]

        @ti.kernel
        def alike():
            for i in f:
                f[i] = f[i] * f[i + 1]

        if ti.mpi.rank() == 1:
            {ending}
        spread()
    """,
    )
    assert done.returncode != 0
    for message in messages:
        assert message in done.stderr, done.stderr
    if "raise" in ending:
        assert done.stderr.count("KeyError: 'missing'") == 1


@needs_mpi
def test_what_ranks_would_do_differently(tmp_path):
    """Each is right on two ranks, or an error; without the mends each gave another number than one process."""
    done = ranks(
        2,
        tmp_path,
        """
        import numpy as np
        import aerogel as ti

        ti.init(arch=ti.cpu)
        n = 16
        ring = ti.mpi.grid(n, periodic=True)
        line = ti.mpi.grid(n)
        f, g, h = (ti.field(ti.f32, shape=ring) for _ in range(3))
        p, q = (ti.field(ti.f32, shape=line) for _ in range(2))
        total, least = ti.field(ti.f32, ()), ti.field(ti.f32, ())
        v = ti.Vector.field(2, ti.f32, ())
        first = v.get_scalar_field(0)
        numbers = np.arange(n, dtype=np.float32)

        @ti.kernel
        def twice_around():
            for i in range(2 * n):
                total[None] += f[i % n]

        @ti.kernel
        def beyond():
            for i in f:
                h[i + 1] = f[i]

        @ti.kernel
        def bounds_of_the_call(m: ti.i32):
            for i in range(m):
                total[None] += f[i % n]

        @ti.kernel
        def two_names():
            for i in f:
                v[None][0] += f[i]
                first[None] += f[i]

        for kernel in (twice_around, beyond, lambda: bounds_of_the_call(n), two_names):
            try:
                kernel()
                raise AssertionError("it compiled")
            except ti.AerogelCompilationError as e:
                assert "E0701" in str(e), e

        @ti.kernel
        def own_cells(m: ti.i32) -> ti.f32:
            out = 0.0
            for i in range(1, m):
                out += f[i]
            return out

        f.from_numpy(numbers)
        assert own_cells(9) == sum(range(9))

        @ti.kernel
        def clamped():
            for i in range(-1, n - 1):
                q[i + 1] = p[ti.max(i, 1)]

        p.from_numpy(numbers)
        clamped()
        assert (q.to_numpy() == np.maximum(np.arange(-1, n - 1), 1)).all(), q.to_numpy()

        @ti.kernel
        def smallest():
            for i in p:
                ti.atomic_min(least[None], p[i])

        least[None] = float("nan")
        p.from_numpy(np.where(numbers == 3, np.nan, numbers + 5).astype(np.float32))
        smallest()
        assert least[None] == 5, least[None]

        @ti.program
        def tensors():
            return ti.tensor.asarray(f) * 2

        for of in (tensors, lambda: ti.tensor.asarray(f)):
            try:
                of()
            except (ti.AerogelNotSupportedError, RuntimeError, TypeError) as e:
                assert "split" in str(e), e
            else:
                assert of is not tensors

        f.fill(1), g.fill(1)

        @ti.kernel
        def shift(a: ti.template(), b: ti.template()):
            for i in b:
                b[i] = a[(i + 1) % n]

        shift(f, h), shift(g, h)
        changed = f if ti.mpi.rank() == 0 else g
        changed.local()[...] = 2
        changed.local_written()
        # One rank sends cells of `f`, the other one cells of `g`.
        shift(f, h), shift(g, h)
    """,
    )
    assert done.returncode != 0
    assert "the ranks reach different operations" in done.stderr and "the exchange before loop 1" in done.stderr, (
        done.stderr
    )


@needs_mpi
def test_what_two_ranks_save_three_load(tmp_path):
    file = tmp_path / "state.safetensors"
    head = f"""
        import numpy as np
        import aerogel as ti

        ti.init(arch=ti.cpu)
        grid = ti.mpi.grid((6, 5))
        f = ti.field(ti.f64, shape=grid)
        v = ti.Vector.field(2, ti.f32, shape=grid)
        state = dict(f=f, v=v, step=0)
        whole = np.arange(30.0).reshape(6, 5)
        file = {str(file)!r}
    """
    save = """
        f.from_numpy(whole)
        v.fill([1, 2])
        ti.save(file, {**state, "step": 7})
        try:
            ti.save(file + "/none", state)
        except OSError as e:
            print("on every rank" if ti.mpi.rank() == 0 else "")
    """
    load = """
        ti.load(file, into=state)
        assert state["step"] == 7 and (f.to_numpy() == whole).all() and (v.to_numpy() == [1, 2]).all()
        (x0, x1), (y0, y1) = grid.box
        assert (f.local() == whole[x0:x1, y0:y1]).all()
        print("the same")
    """
    done = ranks(2, tmp_path, head + save)
    assert done.stdout.endswith("on every rank\n"), done.stderr
    done = ranks(3, tmp_path, head + load)
    assert done.stdout.endswith("the same\n"), done.stderr
    ti.init(arch=ti.cpu, log_level="error")
    loaded = ti.load(file)
    assert (loaded["f"].to_numpy() == np.arange(30).reshape(6, 5)).all() and loaded["step"] == 7


@needs_mpi
def test_a_failed_loop_leaves_sums_as_they_were(tmp_path):
    done = ranks(
        2,
        tmp_path,
        """
        import aerogel as ti

        ti.init(arch=ti.cpu, debug=True)
        f, total = ti.field(ti.f32, shape=ti.mpi.grid(8)), ti.field(ti.f32, ())

        @ti.kernel
        def add(limit: ti.i32):
            for i in f:
                assert i % 4 < limit
                total[None] += 1

        total[None] = 5
        try:
            add(2)
        except AssertionError:
            assert total[None] == 5, total[None]
        add(4)
        assert total[None] == 13, total[None]
        print("done")
    """,
    )
    assert done.returncode == 0 and done.stdout.endswith("done\n"), done.stderr


def test_a_halo_wider_than_the_axis_it_wraps_around():
    ti.init(arch=ti.cpu, log_level="error")
    with pytest.raises(ti.AerogelExtentError, match="halo of 5 cells"):
        ti.mpi.grid((16, 3), halo=5, periodic=True)
    ti.mpi.grid((16, 3), halo=5)


def test_a_missing_package_names_the_extra():
    code = "import sys; sys.modules['mpi4py'] = None; import aerogel as ti; ti.init(log_level='error'); ti.mpi.grid(4)"
    environment = {**os.environ, "AEROGEL_MPI": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert "ModuleNotFoundError" in done.stderr and "pip install aerogel[mpi]" in done.stderr


def test_one_process_needs_no_mpi():
    ti.init(arch=ti.cpu, log_level="error")
    plain = ti.field(ti.f32, shape=(6, 4))
    f = ti.field(ti.f32, shape=ti.mpi.grid((6, 4)))
    wrapped = ti.field(ti.f32, shape=ti.mpi.grid((6, 4), periodic=True))

    @ti.kernel
    def number(x: ti.template()):
        for i, j in x:
            x[i, j] = 10 * i + j

    @ti.kernel
    def shift(x: ti.template(), by: ti.template()):
        for i, j in plain:
            plain[i, j] = 0
        for i, j in x:
            x[i, j] = by[i + 1, j - 1]

    for x in (plain, f, wrapped):
        number(x)
    assert (f.to_numpy() == plain.to_numpy()).all() and (f.gather() == f.local()).all()
    # The same code as for a plain field.
    number(f), number(plain)
    texts = [number.inspect(x)["stages"]["lower_access"] for x in (f, plain)]
    assert texts[0] == texts[1]
    # Beyond the edge of a periodic grid lies its other side.
    before = wrapped.to_numpy()
    other = ti.field(ti.f32, shape=ti.mpi.grid((6, 4), periodic=True))
    shift(other, wrapped)
    np.testing.assert_array_equal(other.to_numpy(), np.roll(before, (-1, 1), (0, 1)))
    assert str(other.grid) == "<ti.mpi.Grid of shape (6, 4) on 1 x 1 ranks>"
