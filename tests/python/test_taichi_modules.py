"""Each module of Taichi can be imported, and each public name of it."""

import json
import subprocess
import sys
import textwrap
import time
from importlib import resources

import numpy as np
import pytest

import aerogel as ti

TAICHI = json.loads(resources.files("aerogel._taichi").joinpath("modules.json").read_text())

WITH_FILES = [
    "ad._ad",
    "aot",
    "linalg",
    "types.quant",
    "tools.image",
    "tools.video",
    "ui.camera",
    "ui.canvas",
    "ui.scene",
    "ui.window",
]


def run(program):
    return subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=120)


def test_modules_and_names_import(cpu):
    done = run("""
        import json
        from importlib import resources
        import aerogel
        aerogel.as_taichi()
        names = json.loads(resources.files("aerogel._taichi").joinpath("modules.json").read_text())
        absent, missing = [], []
        for module, own in names.items():
            exec(f"import taichi.{module}")
            for name in own:
                scope = {}
                try:
                    exec(f"from taichi.{module} import {name}", scope)
                except ImportError:
                    missing.append(f"{module}.{name}")
                    continue
                if type(scope[name]).__name__ == "Absent":
                    absent.append(f"{module}.{name}")
        print(json.dumps([absent, missing]))
    """)
    assert done.returncode == 0, done.stderr
    absent, missing = json.loads(done.stdout.splitlines()[-1])
    assert len(TAICHI) > 90 and "lang.kernel_impl.Func" in absent
    # Modules with files of their own here lack names of Taichi's implementation.
    assert {name.rpartition(".")[0] for name in missing} <= set(WITH_FILES), missing
    # What programs use is there.
    for name in (
        "types.primitive_types.f32",
        "types.compound_types.vector",
        "types.annotations.template",
        "types.ndarray_type.NdarrayType",
        "lang.util.is_taichi_class",
        "lang.impl.expr_init",
        "lang.matrix.Matrix",
        "linalg.sparse_solver.SparseSolver",
        "ui.gui.GUI",
        "ui.gui.rgb_to_hex",
        "tools.np2ply.PLYWriter",
        "_snode.fields_builder.FieldsBuilder",
        "_funcs.svd",
        "_funcs.sym_eig",
        "types.quant.fixed",
        "math.mathimpl.clamp",
    ):
        module, _, own = name.rpartition(".")
        assert own in TAICHI[module] and name not in absent, name


def test_the_same_objects(cpu):
    import aerogel.lang.matrix
    import aerogel.types.primitive_types

    assert aerogel.lang.matrix.Matrix is ti.Matrix and aerogel.types.primitive_types.f32 is ti.f32
    assert ti.lang.impl.get_runtime() is ti.lang.impl.pytaichi and ti._lib.core.with_cuda() is False
    assert ti._lib.utils.get_os_name() in ("linux", "osx", "win")


def test_what_is_not_there_says_so_where_it_is_used(cpu):
    from aerogel.lang.kernel_impl import Func

    with pytest.raises(ti.errors.AerogelNotSupportedError, match="ti.lang.kernel_impl.Func is not supported"):
        Func(print)
    assert not isinstance(print, Func)
    with pytest.raises(ImportError, match="cannot import name 'nonsense'"):
        from aerogel.lang.kernel_impl import nonsense  # noqa: F401
    with pytest.raises(ModuleNotFoundError):
        import aerogel.lang.nonsense  # noqa: F401
    done = run("import aerogel; aerogel.as_taichi(); import taichi.lang.nonsense")
    assert done.returncode != 0 and "ModuleNotFoundError: No module named 'taichi.lang.nonsense'" in done.stderr


@pytest.mark.parametrize("name", ["quadrants", "gstaichi", "taichi_forge"])
def test_packages_that_began_as_copies(tmp_path, name):
    """`python -m aerogel run` and `as_taichi` answer to their names as to Taichi's."""
    program = tmp_path / "program.py"
    program.write_text(
        f"import {name} as qd\nfrom {name}.lang.kernel_impl import kernel\nqd.init(arch=qd.cpu, log_level='error')\n"
        "print(qd.__name__, kernel is qd.kernel, __import__('taichi') is qd)"
    )
    command = [sys.executable, "-m", "aerogel", "run", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout == "aerogel True True\n", done.stderr


def test_names_that_are_chosen():
    done = run("""
        import aerogel
        aerogel.as_taichi(names=["quadrants"])
        import quadrants
        assert quadrants is aerogel
        try:
            aerogel.as_taichi("quadrants")
        except TypeError as error:
            print(error)
        import importlib.util
        print(importlib.util.find_spec("gstaichi"))
        aerogel.as_taichi()
        import gstaichi
        print(gstaichi is aerogel)
    """)
    assert done.stdout.splitlines() == [
        "as_taichi takes the names of packages in a list: ['quadrants']",
        "None",
        "True",
    ]


def test_names_of_successors(cpu):
    """What Quadrants has beyond Taichi, in kernels and outside."""

    @ti.kernel(fastcache=True, graph=True)
    def k(a: ti.f32, i: ti.i32) -> ti.types.vector(4, ti.f64):
        ti.loop_config(name="a loop")
        for _ in range(1):
            pass
        product = ti.outer(ti.Vector([a, 1.0]), ti.Vector([2.0, 3.0]))
        return ti.Vector([ti.atan(a), ti.math.ffs(i), ti.math.ffs(i - i), product[0, 1]], dt=ti.f64)

    assert k(0.5, 24).to_list() == pytest.approx([0.4636476, 4, 0, 1.5])
    assert (ti.atan(0.5), ti.math.ffs(24)) == (pytest.approx(0.4636476), 4)
    with pytest.raises(TypeError, match="`ti.kernel` has no option `fast`"):
        ti.kernel(fast=True)
    field, array = ti.field(ti.f32, 2, needs_grad=True), ti.ndarray(ti.f32, 2)
    assert field.has_grad() and not field.grad.has_grad() and not array.has_grad()
    assert ti._logging.WARN == "warn" and ti.lang._template_mapper is not None


def test_tensors_of_successors(cpu):
    """Fields and arrays by one function, and an annotation that takes both."""

    @ti.kernel
    def double(x: ti.Tensor):
        for I in ti.grouped(x):
            x[I] *= 2

    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    for backend in ti.Backend:
        x = ti.tensor(ti.f32, (2, 3), backend=backend, layout=(1, 0), needs_grad=True)
        x.from_numpy(values)
        double(x)
        assert np.array_equal(x.to_numpy(), 2 * values) and isinstance(x, ti.Tensor)
        assert not isinstance(x, ti.VectorTensor)
        v, m = ti.Vector.tensor(3, ti.f32, 4, backend=backend), ti.Matrix.tensor(2, 3, ti.f32, 4, backend=backend)
        double(v)
        assert isinstance(v, ti.VectorTensor) and not isinstance(v, ti.MatrixTensor) and isinstance(m, ti.MatrixTensor)
        assert v.to_numpy().shape == (4, 3) and m.to_numpy().shape == (4, 2, 3)
    assert isinstance(ti.tensor(ti.i32, 3), ti.Ndarray)
    with pytest.raises(ValueError, match="is no permutation of the 2 axes"):
        ti.tensor(ti.f32, (2, 3), layout=(1, 1))
    with pytest.raises(ValueError, match="`backend` is ti.Backend.FIELD or"):
        ti.tensor(ti.f32, 3, backend=7)
    with pytest.raises(TypeError, match=r"`ti.tensor.asarray\(x\)` makes a tensor"):
        ti.tensor([1, 2, 3])


def test_dispatch_by_time(cpu):
    ran = []

    @ti.perf_dispatch(get_geometry_hash=lambda n: n > 10, first_warmup=1, active=2, repeat_after_count=5)
    def work(n): ...

    @work.register
    def slow(n):
        ran.append("slow")
        time.sleep(0.02)
        return n

    @work.register(is_compatible=lambda n: n != 3)
    def fast(n):
        ran.append("fast")
        return n

    assert [work(1) for _ in range(11)] == [1] * 11
    # Three runs of each, the fastest until it is due, and then both again.
    assert sorted(ran[:6]) == ["fast"] * 3 + ["slow"] * 3 and ran[6:10] == ["fast"] * 4
    assert set(ran[10:]) <= {"slow", "fast"}
    ran.clear()
    assert work(3) == 3 and ran == ["slow"]
    ran.clear()
    for _ in range(6):
        work(20)
    assert sorted(ran) == ["fast"] * 3 + ["slow"] * 3

    @ti.perf_dispatch(get_geometry_hash=lambda: 0)
    def nothing(): ...

    with pytest.raises(RuntimeError, match="`nothing`: no function is registered that can run"):
        nothing()
    with pytest.raises(ValueError, match="`active` at least 1"):
        ti.perf_dispatch(get_geometry_hash=lambda: 0, active=0)
