"""Programs written for Taichi before 1.6 run, and hear once of each name what it is called today."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import aerogel as ti
from aerogel._taichi import older


@pytest.fixture
def untold(cpu):
    ti.set_logging_level("warn")
    older._told.clear()
    yield
    ti.set_logging_level("info")


def test_a_program_of_its_time(untold, capfd):
    x = ti.var(ti.f32, shape=4)
    y = ti.var(dt=ti.i32)
    v = ti.Vector(3, dt=ti.f32, shape=4)
    w = ti.Vector(2, dt=ti.f32)
    m = ti.Matrix(2, 2, dt=ti.f32, shape=())

    @ti.layout
    def place():
        ti.root.dense(ti.i, 4).place(y)
        ti.root.dense(ti.ij, (2, 2)).place(w)

    @ti.classfunc
    def length(a):
        return ti.dot(a, a)

    @ti.kernel
    def run(a: ti.ext_arr(), b: ti.any_arr()):
        ti.parallelize(4)
        for i in x:
            x[i] = ti.sqr(a[i]) + length(v[i]) + b[i]
        ti.vectorize(4)
        ti.block_dim(64)
        for i in y:
            if ti.logical_and(i > 0, i < 3):
                y[i] = 5
        columns = ti.Matrix(cols=[[1.0, 2.0], [3.0, 4.0]])
        m[None] = ti.transposed(columns)
        ti.print(y[1])

    v.fill(1)
    run(np.full(4, 2, np.float32), np.zeros(4, np.float32))
    ti.sync()
    assert x.to_numpy().tolist() == [7] * 4 and y.to_numpy().tolist() == [0, 5, 5, 0] and w.shape == (2, 2)
    assert m[None].to_list() == [[1, 2], [3, 4]]
    out, err = capfd.readouterr()
    assert out == "5\n"
    told = [line for line in err.splitlines() if "older versions of Taichi" in line]
    names = "ti.var ti.layout ti.classfunc ti.dot ti.ext_arr ti.any_arr ti.parallelize ti.sqr ti.vectorize ti.block_dim"
    for name in [*names.split(), "ti.logical_and", "ti.transposed", "ti.print", "ti.Vector(n, dt=..., shape=...)"]:
        assert len([line for line in told if line.startswith(f"[Aerogel] {name} is a name")]) == 1, name
    assert any("ti.var is a name of older versions of Taichi: write ti.field" in line for line in told)


@pytest.mark.parametrize("name", sorted(older.NAMES))
def test_every_name_is_something(untold, capfd, name):
    value = getattr(ti, name)
    assert value is not None
    assert f"ti.{name} is a name of older versions of Taichi: write " in capfd.readouterr().err
    getattr(ti, name)
    assert capfd.readouterr().err == ""


def test_older_quantised_types(untold):
    f = ti.quant.fixed(frac=16, range=4.0)
    i = ti.type_factory.custom_int(5, True)
    assert f == ti.types.quant.fixed(16, max_value=4.0) and i == ti.types.quant.int(5)
    a, b = ti.field(f), ti.field(i)
    word = ti.BitStruct(num_bits=32)
    word.place(a, b)
    ti.root.dense(ti.i, 4).place(word)
    a[1] = 1.5
    assert a[1] == 1.5


def test_settings_that_change_nothing_are_told_to_who_debugs(capfd):
    """Programs pass them to Taichi; one line names them all."""
    ti.init(arch=ti.cpu, dynamic_index=True, advanced_optimization=False, device_memory_GB=2)
    assert capfd.readouterr().err == ""
    ti.init(arch=ti.cpu, dynamic_index=True, advanced_optimization=False, log_level="debug")
    ti.init(arch=ti.cpu, log_level="error")
    assert capfd.readouterr().err == "[Aerogel] ti.init: advanced_optimization, dynamic_index have no effect here\n"
    with pytest.raises(KeyError):
        ti.init(arch=ti.cpu, dynamic_indx=True)


def test_vectors_are_made_as_ever(cpu):
    import copy
    import pickle

    v = ti.Vector([1, 2, 3])
    assert pickle.loads(pickle.dumps(v)).to_list() == copy.deepcopy(v).to_list() == [1, 2, 3]
    assert ti.Matrix(rows=[[1, 2], [3, 4]]).to_list() == [[1, 2], [3, 4]]
    with pytest.raises(TypeError):
        ti.Vector()


def run(*args, cwd):
    done = subprocess.run([sys.executable, *args], cwd=cwd, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def test_a_module_is_run_in_its_package(tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "numbers.py").write_text("import taichi as ti\nN = 3\n")
    (package / "module.py").write_text(
        textwrap.dedent(
            """
            import sys
            import taichi as ti
            from .numbers import N
            ti.init(arch=ti.cpu, log_level="error")

            @ti.kernel
            def run() -> ti.i32:
                return N

            if __name__ == "__main__":
                print(run(), ti.__name__, sys.argv[1:], __package__)
            """
        )
    )
    (package / "__main__.py").write_text("print('whole')\n")
    code, out, err = run("-m", "aerogel", "run", "-m", "package.module", "--an", "argument", cwd=tmp_path)
    assert (code, out) == (0, "3 aerogel ['--an', 'argument'] package\n"), err
    assert run("-m", "aerogel", "run", "-m", "package", cwd=tmp_path)[1] == "whole\n"
    code, _, err = run("-m", "aerogel", "run", "-m", "package.nothing", cwd=tmp_path)
    assert code == 1 and "there is no module package.nothing" in err
    assert run("-m", "aerogel", "run", "-m", cwd=tmp_path)[0] == 2


def test_a_notebook_or_a_test_asks_for_taichi(tmp_path):
    (tmp_path / "conftest.py").write_text("import aerogel\naerogel.as_taichi()\n")
    (tmp_path / "test_it.py").write_text(
        "import taichi as ti\nfrom taichi.lang.matrix import Vector\n\n"
        "def test_it():\n    import aerogel\n    assert ti is aerogel and Vector is aerogel.Vector\n"
    )
    code, out, err = run("-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=tmp_path)
    assert code == 0, out + err
    twice = (
        "import aerogel as a, sys; a.as_taichi(); a.as_taichi(); import taichi; print(taichi is a, len(sys.meta_path))"
    )
    once = "import aerogel as a, sys; a.as_taichi(); print(len(sys.meta_path))"
    assert run("-c", twice, cwd=tmp_path)[1] == f"True {run('-c', once, cwd=tmp_path)[1]}"


def test_older_ways_to_make_fields(untold, capfd):
    made = [
        ti.Vector.field(3, dt=ti.f32, shape=4),
        ti.Matrix.field(2, 3, dt=ti.f32, shape=4),
        ti.Vector.var(3, ti.f32, shape=4),
        ti.Matrix.var(2, 3, dt=ti.f32, shape=4),
        ti.Vector(3, dt=ti.f32, shape=4, layout=ti.SOA),
    ]
    assert [(x.n, x.m, x.shape) for x in made] == [(3, 1, (4,)), (2, 3, (4,))] * 2 + [(3, 1, (4,))]
    x = ti.var(ti.f32, shape=(4, 2))
    assert x.dim() == 2 and x.data_type() == ti.f32 and x.loop_range() is x
    a, b, c = ti.field(ti.quant.int(5)), ti.field(ti.quant.int(6)), ti.field(ti.quant.int(1, False))
    ti.root.dense(ti.i, 4).bit_struct(num_bits=16).place(a, b)
    ti.root.dense(ti.i, 4).bit_array(ti.i, 32, num_bits=32).place(c)
    a[1], b[1], c[100] = 7, -9, 1
    assert (a[1], b[1], c[100], c.shape) == (7, -9, 1, (128,))
    err = capfd.readouterr().err
    for told in (
        "x.dim() is a name",
        "ti.Vector.var is",
        "ti.Matrix.field(dt=...) is",
        "node.bit_struct(num_bits=...) is",
    ):
        assert err.count(told) == 1, told
    with pytest.raises(TypeError, match="ti.Vector.field needs the dtype of its components"):
        ti.Vector.field(3, shape=4)


def test_modules_of_the_tree_have_the_names_of_all_versions(untold):
    # Programs ask `hasattr(ti, "snode")` to tell versions apart.
    from aerogel._snode.snode_tree import SNodeTree as newer
    from aerogel.snode.fields_builder import FieldsBuilder
    from aerogel.snode.snode_tree import SNodeTree

    assert newer is SNodeTree and FieldsBuilder is ti.FieldsBuilder and ti.snode.SNode is ti.SNode


def test_kernels_are_told_from_functions_as_in_taichi(cpu):
    from aerogel.lang.kernel_impl import Kernel

    x, y = (ti.field(ti.f32, 3, needs_grad=True) for _ in range(2))

    @ti.kernel
    def square():
        for i in x:
            y[i] = x[i] ** 2

    x.fill(3), y.grad.fill(1)
    assert isinstance(square._primal, Kernel) and isinstance(square._adjoint, Kernel)
    square._primal()
    square._adjoint()
    assert y[0] == 9 and x.grad[0] == 6 and not hasattr(len, "_adjoint")


def test_a_field_like_another_one(cpu):
    # Packages make a field with all that another one says of itself.
    for like in (ti.Vector.field(3, ti.f32, 4), ti.Matrix.field(3, 2, ti.f32, 4)):
        made = ti.Matrix.field(n=like.n, m=like.m, dtype=like.dtype, shape=like.shape, ndim=like.ndim)
        assert made.to_numpy().shape == like.to_numpy().shape and made.ndim == like.ndim
    with pytest.raises(ValueError, match="ndim=1, m=2"):
        ti.Matrix.field(3, 2, ti.f32, 4, ndim=1)


def test_extents_that_are_missing_or_too_many(cpu):
    with pytest.raises(ti.TaichiTypeError, match="needs the number of columns"):
        ti.Matrix(2, dt=ti.f32, shape=4)
    with pytest.raises(ti.TaichiTypeError, match="takes no more than dt, shape, offset"):
        ti.Matrix(2, 2, ti.f32, 4, (0,), 7)


def test_shapes_and_transposes_were_methods(cpu, capfd):
    x = ti.field(ti.f32, (3, 5))
    ti.set_logging_level("warn")

    class Own:
        def shape(self):
            return 7

    own = Own()

    @ti.kernel
    def k() -> ti.f32:
        a = ti.Matrix([[1.0, 2.0], [3.0, 4.0]])
        return x.shape()[1] + 10 * a.T()[0, 1] + 100 * own.shape()

    assert k() == 5 + 30 + 700
    assert ti.Matrix([[1, 2], [3, 4]]).T() == ti.Matrix([[1, 3], [2, 4]])
    shown = capfd.readouterr().err
    assert "write `x.shape`" in shown and "write `A.transpose()`" in shown and shown.count("write `") == 2


def test_elements_were_called(cpu, capfd):
    ti.set_logging_level("warn")

    @ti.kernel
    def k(i: int) -> ti.f32:
        v, a = ti.Vector([1.0, 2.0]), ti.Matrix([[1.0, 2.0], [3.0, 4.0]])
        return v(i) + 10 * a(1, 0) + 100 * (v + v)(0)

    assert k(1) == 2 + 30 + 200
    assert "write `v[i]`" in capfd.readouterr().err


def test_what_is_no_vector_is_not_called(cpu):
    @ti.kernel
    def number(x: ti.f32) -> ti.f32:
        return x(0)

    @ti.kernel
    def nothing() -> ti.f32:
        v = ti.Vector([1.0, 2.0])
        return v()

    for kernel, args in ((number, (1.0,)), (nothing, ())):
        with pytest.raises(ti.TaichiTypeError, match="cannot be called"):
            kernel(*args)


def test_names_of_the_first_programs(untold, capfd):
    ti.require_version(0, 5, 11)
    ti.require_version(1, 7, 4)
    ti.require_version(1)
    for newer in ((1, 7, 5), (1, 8), (99,)):
        with pytest.raises(ti.TaichiRuntimeError, match="Aerogel runs programs of versions up to 1.7.4"):
            ti.require_version(*newer)
    x = ti.field(ti.i32)
    ti.root.dense(ti.indices(0, 1), (2, 3)).place(x)
    y = ti.field(ti.f32, ())

    @ti.materialize_callback
    @ti.kernel
    def begin():
        for i, j in x:
            x[i, j] = 10 * i + j

    assert x.to_numpy().tolist() == [[0, 1, 2], [10, 11, 12]]

    @ti.kernel
    def run():
        total = ti.expr_init(0.5)
        total += ti.subscript(x, 1, 2)
        y[None] = total + ti.trace(ti.Matrix([[1, 2], [3, 4]]))

    run()
    assert y[None] == 17.5
    assert not ti.inside_kernel() and ti.to_numpy_type(ti.f32) == np.float32
    assert ti.to_taichi_type(np.dtype("int32")) == ti.i32
    assert ti.python_scope(abs)(-2) == 2 and ti.taichi_scope(abs) is ti.lang.util.taichi_scope(abs)
    capfd.readouterr()
    assert [log("seen?") for log in (ti.trace, ti.debug, ti.info, ti.warn, ti.error)] == [None] * 5
    out, err = capfd.readouterr()
    shown = [line for line in (out + err).splitlines() if "seen?" in line]
    assert shown == ["[Aerogel] seen?"] * 2


def test_the_rotation_of_matrices(untold):
    """In kernels, where it was an attribute of the class, and outside."""

    @ti.kernel
    def turned() -> ti.math.vec2:
        return ti.Matrix.rotation2d(0.5) @ ti.Vector([1.0, 0.0])

    assert turned().to_list() == pytest.approx([0.8775826, 0.4794255])
    assert ti.Matrix.rotation2d(0.0).to_list() == [[1, 0], [0, 1]]
