"""``ti.ndarray`` along a grid: on two ranks and in one process, against NumPy."""

import runpy
import textwrap

import numpy as np
import pytest
from test_mpi import needs_mpi, ranks

import aerogel as ti

PROGRAM = """
    import copy, sys
    import numpy as np
    import aerogel as ti

    ti.init(arch=ti.cpu, log_level="error")
    rank, size = ti.mpi.rank(), ti.mpi.size()
    shape = nx, ny = 10, 7
    grid = ti.mpi.grid(shape, periodic=(True, False))
    whole = np.arange(70, dtype=np.float32).reshape(shape)
    a, b = ti.ndarray(ti.f32, grid), ti.ndarray(ti.f32, grid)
    velocity = ti.Vector.ndarray(2, ti.f32, grid)
    strain = ti.ndarray(ti.types.matrix(2, 1, ti.f64), grid)

    # The whole, the own box, an element.
    assert (a.shape, a.dtype, a.element_shape, velocity.element_shape) == (shape, ti.f32, (), (2,))
    assert (a.to_numpy() == 0).all() and strain.to_numpy().shape == (*shape, 2, 1)
    a.from_numpy(whole)
    box = tuple(slice(*ends) for ends in grid.box)
    assert (a.to_numpy() == whole).all() and (a.local() == whole[box]).all() and a.local().size * size == 70
    gathered = a.gather(root=size - 1)
    assert (gathered is None) == (rank != size - 1) and (gathered is None or (gathered == whole).all())
    a[9, 6] = -1
    assert a[9, 6] == -1 and (a[0, 0], a.get_type()) == (0, (ti.f32, (), 2))
    a[9, 6] = 69
    velocity.fill([1, 2])
    assert velocity[3, 3].to_list() == [1, 2]
    b.copy_from(a)
    assert (b.to_numpy() == whole).all()

    # Arguments by every annotation, their order, and both arrays in both places.
    @ti.kernel
    def step(x: ti.types.ndarray(), y: ti.types.ndarray(dtype=ti.f32, ndim=2), by: ti.f32):
        for i, j in ti.ndrange(nx, (1, ny - 1)):
            around = x[(i - 1) % nx, j] + x[(i + 1) % nx, j] + x[i, j - 1] + x[i, j + 1]
            y[i, j] = x[i, j] + by * (around - 4 * x[i, j]) + i

    @ti.kernel
    def bend(
        x: ti.types.ndarray(), v: ti.types.ndarray(dtype=ti.types.vector(2, ti.f32)), m: ti.types.ndarray()
    ) -> ti.f32:
        total = 0.0
        for i, j in x:
            v[i, j] = [x[(i + 1) % nx, j], x.shape[0] * 100 + x.shape[1]]
            m[i, j] = ti.Matrix([[x[i, j]], [x[i, ti.max(j - 1, 0)]]])
            total += x[i, j]
        return total

    def stepped(x):
        y = x.copy()
        i = np.arange(nx, dtype=np.float32)[:, None]
        around = np.roll(x, 1, 0)[:, 1:-1] + np.roll(x, -1, 0)[:, 1:-1] + x[:, :-2] + x[:, 2:]
        y[:, 1:-1] = x[:, 1:-1] + np.float32(0.25) * (around - 4 * x[:, 1:-1]) + i
        return y

    expected = whole
    for _ in range(3):
        step(a, b, 0.25)
        step(b, a, 0.25)
        expected = stepped(stepped(expected))
    assert (a.to_numpy() == expected).all()
    total = bend(a, velocity, strain)
    np.testing.assert_allclose(total, expected.sum(), rtol=1e-6)
    assert (velocity.to_numpy()[..., 0] == np.roll(expected, -1, 0)).all()
    assert (velocity.to_numpy()[..., 1] == 1007).all()
    assert (strain.to_numpy()[:, 1:, 1, 0] == expected[:, :-1]).all()

    # Beside arrays that every rank has, which are read; and as a global name.
    weights = ti.ndarray(ti.f32, 10)
    weights.from_numpy(np.arange(10))

    @ti.kernel
    def weighted(w: ti.types.ndarray(), x: ti.types.ndarray(), more: ti.types.ndarray()):
        for i, j in x:
            x[i, j] = w[i] + more[j] + b[i, j]

    b.fill(1)
    weighted(weights, a, np.arange(7, dtype=np.float32) * 10)
    assert (a.to_numpy() == np.add.outer(np.arange(10), 10 * np.arange(7)) + 1).all()

    # In a pack.
    pair = ti.types.argpack(x=ti.types.ndarray(), scale=ti.f32)

    @ti.kernel
    def scaled(p: pair):
        for i, j in p.x:
            p.x[i, j] *= p.scale

    a.fill(3)
    scaled(pair(x=a, scale=2))
    assert (a.to_numpy() == 6).all()

    # Gradients: of cells of other ranks, cleared by the tape.
    x, y = (ti.ndarray(ti.f64, grid, needs_grad=True) for _ in range(2))
    loss = ti.field(ti.f64, (), needs_grad=True)
    assert x.has_grad() and not a.has_grad() and x.grad.shape == shape

    @ti.kernel
    def cost(u: ti.types.ndarray(needs_grad=True), w: ti.types.ndarray()):
        for i, j in u:
            w[i, j] = u[(i + 1) % nx, j] ** 2
        for i, j in w:
            loss[None] += (i + 1) * w[i, j]

    x.from_numpy(whole)
    for _ in range(2):
        with ti.ad.Tape(loss):
            cost(x, y)
    assert (x.grad.to_numpy() == 2 * whole * ((np.arange(10) - 1) % 10 + 1)[:, None]).all()

    # Copies, and files.
    copied = copy.deepcopy(x)
    assert copied is not x and copy.copy(x) is x and repr(copied) == repr(x)
    assert (copied.to_numpy() == whole).all() and (copied.grad.to_numpy() == x.grad.to_numpy()).all()
    velocity.fill([3, 4])
    there = copy.deepcopy(velocity)
    plain_array = ti.ndarray(ti.f64, shape)
    plain_array.copy_from(x)
    assert (plain_array.to_numpy() == whole).all() and (there.to_numpy() == [3, 4]).all()
    ti.save(sys.argv[1], dict(x=x, velocity=velocity))
    x.fill(0), velocity.fill(0)
    ti.load(sys.argv[1], into=dict(x=x, velocity=velocity))
    assert (x.to_numpy() == whole).all() and (velocity.to_numpy() == [3, 4]).all()

    # Errors.
    @ti.kernel
    def clamps(x: ti.types.ndarray(boundary="clamp")):
        for i, j in x:
            x[i, j] = 0

    @ti.kernel
    def vectors(x: ti.types.ndarray(dtype=ti.math.vec3)):
        for i, j in x:
            x[i, j] = 0

    @ti.kernel
    def plain(x: ti.template(), w: ti.types.ndarray()):
        for i, j in x:
            w[i] = x[i, j]

    for call, message in (
        (lambda: clamps(a), "ti.max and ti.min"),
        (lambda: vectors(a), "f32, 2 axes"),
        (lambda: cost(a, y), "needs_grad=True"),
        (lambda: plain(x, weights), "writes to an array" if not grid.is_whole else "nothing"),
        (lambda: a.from_numpy(np.zeros(3)), "shape"),
        (lambda: a.to_torch(copy=False), "local()"),
    ):
        try:
            call()
            found = "nothing"
        except Exception as error:
            found = str(error)
        assert message in found, found
    print("arrays", size)
"""


@needs_mpi
def test_arrays_on_two_ranks(tmp_path):
    done = ranks(2, tmp_path, PROGRAM, tmp_path / "state.safetensors")
    assert done.returncode == 0 and done.stdout == "arrays 2\n", done.stderr


def test_arrays_in_one_process(tmp_path, monkeypatch, capsys):
    file = tmp_path / "program.py"
    file.write_text(textwrap.dedent(PROGRAM))
    monkeypatch.setattr("sys.argv", [str(file), str(tmp_path / "state.safetensors")])
    runpy.run_path(str(file))
    assert capsys.readouterr().out == "arrays 1\n"


def test_without_a_halo_in_one_process():
    """One rank, no periodic axis: nothing is exchanged, and the code is that for a plain field."""
    ti.init(arch=ti.cpu, log_level="error")
    x = ti.ndarray(ti.i32, ti.mpi.grid((4, 3)))
    plain = ti.field(ti.i32, shape=(4, 3))

    @ti.kernel
    def number(x: ti.types.ndarray()):
        for i, j in x:
            x[i, j] = 10 * i + j

    @ti.kernel
    def number_field(x: ti.template()):
        for i, j in x:
            x[i, j] = 10 * i + j

    number(x)
    assert (x.to_numpy() == np.add.outer(10 * np.arange(4), np.arange(3))).all()
    number_field(plain)
    with pytest.raises(ti.AerogelRuntimeTypeError, match=r"ti\.template"):
        number(plain)
    texts = [f.inspect(of)["stages"]["lower_access"] for f, of in ((number, x), (number_field, plain))]
    assert texts[0].replace("number", "n") == texts[1].replace("number_field", "n")
