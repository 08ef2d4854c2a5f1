"""What importing and setting up the package gives."""

import importlib
import os
import subprocess
import sys
import types

import numpy as np
import pytest

import aerogel as ti


def run(code, **env):
    full = dict(os.environ, **env)
    full["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
    return subprocess.run([sys.executable, "-c", code], env=full, capture_output=True, text=True, timeout=120)


def test_import_is_light():
    done = run(
        "import sys, time; t = time.process_time(); import aerogel; t = time.process_time() - t\n"
        "assert 'numpy' not in sys.modules and 'inspect' not in sys.modules\nprint(t)"
    )
    assert done.returncode == 0, done.stderr


def test_every_name_is_there():
    for name in ti.__all__:
        assert getattr(ti, name) is not None
    assert set(ti.__all__) <= set(dir(ti))
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        ti.nothing_of_the_kind


def test_every_keyword_of_taichi_is_taken():
    ti.init(
        arch=ti.cpu, log_level="error", offline_cache=False, cfg_optimization=True, device_memory_GB=1.0, packed=True
    )
    with pytest.raises(KeyError, match="colour"):
        ti.init(arch=ti.cpu, colour="red")
    ti.reset()


def test_environment():
    code = "import aerogel as ti; ti.init(log_level='error'); print(ti.cfg.arch, ti.cfg.debug)"
    assert run(code, TI_ARCH="interp", TI_DEBUG="1").stdout.strip() == "Arch.interp True"


def test_arch():
    with pytest.raises(ValueError, match="no arch"):
        ti.init(arch="abacus")
    with pytest.raises(ti.TaichiRuntimeError, match="not available"):
        ti.init(arch=ti.cuda, enable_fallback=False)
    ti.init(arch=["cuda", "x64"] and ti.x64, log_level="error")
    assert ti.cfg.arch == "x64"
    ti.reset()


def test_errors_have_taichis_names():
    assert ti.TaichiCompilationError is ti.AerogelCompilationError
    assert issubclass(ti.TaichiSyntaxError, SyntaxError) and issubclass(ti.TaichiNameError, NameError)
    assert issubclass(ti.TaichiTypeError, TypeError) and issubclass(ti.TaichiAssertionError, AssertionError)
    assert issubclass(ti.TaichiRuntimeTypeError, RuntimeError)


def test_logging(capsys):
    ti.set_logging_level(ti.ERROR)
    ti.init(arch=ti.cpu)
    assert capsys.readouterr().out == ""
    ti.set_logging_level(ti.INFO)
    ti.init(arch=ti.cpu)
    assert "Starting on arch=x64" in capsys.readouterr().out
    assert ti.is_logging_effective("warn") and not ti.is_logging_effective("debug")
    with pytest.raises(ValueError):
        ti.set_logging_level("loud")


def test_matrices_in_python():
    v, m = ti.Vector([1, 2, 3]), ti.Matrix([[1, 2], [3, 4]])
    assert (v + 1).to_list() == [2, 3, 4] and (2 / v)[1] == 1 and (-v).sum() == -6
    assert (m @ m).to_list() == [[7, 10], [15, 22]] and (m @ ti.Vector([1, 2])).to_list() == [5, 11]
    assert m.transpose()[0, 1] == 3 and m.trace() == 5 and m.determinant() == -2
    assert (m @ m.inverse()).to_list() == [[1, 0], [0, 1]]
    assert v.dot(v) == 14 and v.cross(v).to_list() == [0, 0, 0] and v.norm_sqr() == 14
    assert v.zyx.to_list() == [3, 2, 1] and v.rg.to_list() == [1, 2] and v.x == 1
    v.xy = [7, 8]
    assert v.to_list() == [7, 8, 3]
    assert (v > 3).to_list() == [True, True, False] and not (v > 3).all() and (v > 3).any()
    assert ti.math.vec3(1).to_list() == [1, 1, 1] and ti.math.vec3(ti.math.vec2(1, 2), 3).to_list() == [1, 2, 3]
    assert str(m) == "[[1 2]\n [3 4]]"
    assert ti.max(v, 5).to_list() == [7, 8, 5] and ti.select(v > 3, 1, 0).to_list() == [1, 1, 0]
    with pytest.raises(IndexError):
        v[3]
    with pytest.raises(ValueError):
        v + ti.Vector([1, 2])
    with pytest.raises(ValueError):
        ti.Matrix([[1, 2], [3]])
    with pytest.raises(AttributeError):
        v.w


def test_types_convert_like_kernels():
    assert ti.u8(300) == 44 and ti.i8(200) == -56 and ti.i32(2.9) == 2 and ti.f32(0.1) != 0.1 and ti.u1(3) is True


ABSENT = "aot.Module aot.export DeviceCapability".split()


@pytest.mark.parametrize("path", ABSENT)
def test_what_is_not_there_can_be_imported_and_says_so(path):
    module, _, name = f"aerogel.{path}".rpartition(".")
    scope = {}
    exec(f"from {module} import {name}", scope)
    absent = scope[name]
    assert repr(absent).startswith("<ti.") and repr(absent).endswith(f".{name}, not supported>")
    says = f"{name} is not supported: [a-z]"
    for use in (lambda: absent(1, key=2), lambda: types.new_class("Derived", (absent,))):
        with pytest.raises(NotImplementedError, match=says):
            use()
    with pytest.raises(NotImplementedError, match=f"{name}.something is not supported: "):
        absent.something()
    assert not isinstance(3, absent) and not hasattr(absent, "__something__")


def test_what_is_not_there_says_so_in_kernels(cpu):
    @ti.kernel
    def threads(x: ti.i32):
        for i in range(x):
            print(ti.simt.warp.shfl_down_i32(ti.u32(0xFFFFFFFF), i, 1))

    @ti.kernel
    def pixels(image: ti.template()):
        image.load(0)

    with pytest.raises(ti.TaichiRuntimeError, match="`ti.simt.warp.shfl_down_i32` is not supported on the CPU") as e:
        threads(1)
    assert "test_package.py" in str(e.value) and "^" in str(e.value)
    with pytest.raises(ti.TaichiRuntimeError, match="ti.aot.Module.load is not supported"):
        pixels(ti.aot.Module)


def test_profiler(capsys):
    ti.init(arch=ti.cpu, kernel_profiler=True, log_level="error")

    @ti.kernel
    def work():
        pass

    for _ in range(3):
        work()
    assert ti.profiler.query_kernel_profiler_info("work").counter == 3
    ti.profiler.print_kernel_profiler_info()
    assert "work" in capsys.readouterr().out
    ti.reset()


def test_inspect(cpu):
    x = ti.field(ti.f32, 64)

    @ti.kernel
    def double():
        for i in x:
            x[i] = 2 * x[i]

    seen = double.inspect()
    assert "; stages: offload\n" in str(seen) and " ms  llvm" in str(seen)
    assert "def double" in seen["source"]
    assert "parallel_cells" in seen["stages"]["frontend"] and "task range" in seen["stages"]["offload"]
    assert "define" in seen["llvm"] and "ret" in seen["asm"] and seen["times"]["llvm"] > 0


def test_inspect_needs_an_instance(cpu):
    @ti.kernel
    def twice(a: int) -> int:
        return 2 * a

    with pytest.raises(ti.TaichiRuntimeError, match="`twice` is not compiled yet: call it first"):
        twice.inspect()
    assert "def twice" in twice.inspect(3)["source"]


def test_printing_and_stopping():
    code = (
        "import aerogel as ti\nimport tempfile, importlib.util\n"
        "f = tempfile.NamedTemporaryFile('w', suffix='.py'); f.write('import aerogel as ti\\n@ti.kernel\\ndef k() -> ti.i32:\\n    return 1 + 2\\n'); f.flush()\n"
        "spec = importlib.util.spec_from_file_location('m', f.name); m = importlib.util.module_from_spec(spec); spec.loader.exec_module(m)\n"
        "ti.init(log_level='error'); print(m.k())"
    )
    done = run(code, AEROGEL_PRINT="after:offload")
    assert done.returncode == 0 and done.stdout == "3\n" and "; after offload" in done.stderr
    tensors = (
        "import aerogel as ti; ti.init(log_level='error'); print((ti.tensor.asarray([1.0, 2.0]) * 2.0 + 1.0).sum())"
    )
    done = run(tensors, AEROGEL_PRINT="after:tensor.reductions")
    assert done.returncode == 0 and done.stderr.count("; after ") == 1
    assert done.stderr.startswith("; after tensor.reductions\n")
    done = run(tensors, AEROGEL_PRINT="after:tensor.nothing")
    assert done.returncode != 0 and "there is no pass `tensor.nothing`; the passes are tensor." in done.stderr
    done = run(code, AEROGEL_STOP="after:nothing")
    assert done.returncode != 0 and "there is no pass `nothing`" in done.stderr


def test_settings_from_the_environment():
    code = (
        "import aerogel as ti; ti.init(log_level='error', debug=False)\n"
        "print(ti.cfg.debug, ti.cfg.random_seed, ti.cfg.check_out_of_bound, ti.cfg.default_fp, ti.cfg.default_ip)"
    )
    env = dict(TI_DEBUG="1", AEROGEL_RANDOM_SEED="7", TI_CHECK_OUT_OF_BOUND="1", TI_DEFAULT_FP="64")
    # What the program says counts, as in Taichi.
    assert run(code, **env).stdout.strip() == "False 7 True f64 i32"
    wrong = {
        "TI_DEBUG": "yes",
        "TI_OPT_LEVEL": "high",
        "AEROGEL_DEFAULT_FP": "f64",
        "AEROGEL_CPU_MAX_NUM_THREADS": "-2",
    }
    for key, value in (*wrong.items(), ("TI_LOG_LEVEL", "loud"), ("AEROGEL_LOG_LEVEL", "loud")):
        done = run("import aerogel as ti; ti.init()", **{key: value})
        assert "ValueError" in done.stderr and value in done.stderr
        assert key.partition("_")[2].lower() in done.stderr
    assert run("import aerogel as ti; ti.init(log_level='error')", TI_LOG_LEVEL="loud").returncode == 0
    assert run("import aerogel as ti; ti.init()", AEROGEL_LOG_LEVEL="Error").stdout == ""


@pytest.mark.parametrize(
    "wrong, says",
    [
        ({"cpu_max_num_threads": -1}, "cpu_max_num_threads is a number of threads, or 0 for all cores, not -1"),
        ({"arch": 3}, "arch is ti.cpu, ti.gpu or .*x64.*, not 3"),
        ({"arch": [ti.cpu, None]}, "arch is .*, not None"),
    ],
)
def test_values_that_a_setting_cannot_have(wrong, says):
    with pytest.raises(ValueError, match=says):
        ti.init(**wrong)


@pytest.mark.parametrize(
    "wrong, says",
    [
        ({"cpu_max_num_threads": 1.5}, "cpu_max_num_threads is an integer, not 1.5"),
        ({"cpu_max_num_threads": np.float64(2)}, "cpu_max_num_threads is an integer"),
        ({"random_seed": "3"}, "random_seed is an integer, not '3'"),
        ({"offline_cache_cleaning_factor": "x"}, "offline_cache_cleaning_factor is a number, not 'x'"),
        ({"debug": "false"}, "debug is True or False, not 'false'"),
    ],
)
def test_values_of_another_kind_than_a_setting_takes(wrong, says):
    with pytest.raises(TypeError, match=says):
        ti.init(**wrong)


@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1, 2**70])
def test_seeds_of_more_than_64_bits_are_refused(seed):
    """Else another seed would draw the same numbers."""
    tries = [lambda: ti.init(arch=ti.cpu, random_seed=seed, log_level="error"), lambda: ti.tensor.random.seed(seed)]
    tries += [lambda: ti.tensor.random.Generator(seed), lambda: ti.nn.Random(seed)]
    for call in tries:
        with pytest.raises(ValueError, match="has at most 64 bits"):
            call()
    with pytest.raises(TypeError, match="a seed is an integer, not 1.5"):
        ti.tensor.random.Generator(1.5)


def test_seeds_of_64_bits():
    @ti.kernel
    def draw() -> ti.f32:
        return ti.random()

    found = set()
    for seed in (0, 1, 2**63, 2**64 - 1):
        ti.init(arch=ti.cpu, random_seed=seed, log_level="error")
        ti.tensor.random.seed(seed)
        found |= {draw(), ti.tensor.random.rand(1).item()}
    assert len(found) == 8
    ti.reset()


def test_whole_numbers_of_other_packages_are_settings():
    ti.init(arch=ti.cpu, cpu_max_num_threads=np.int64(2), random_seed=np.uint8(3), log_level="error", fast_math=1)
    assert ti.cfg.cpu_max_num_threads == 2
    ti.reset()


def test_a_setting_that_is_refused_stays_as_it_is():
    """Else every later change would be refused for it."""
    ti.init(log_level="error")
    before = ti.cfg.cpu
    with pytest.raises(ValueError, match="runs code for native"):
        ti.cfg.cpu = "pentium"
    with pytest.raises(ValueError, match="cpu_max_num_threads is a number of threads"):
        ti.cfg.cpu_max_num_threads = -1
    assert ti.cfg.cpu == before
    assert ti.cfg.cpu_max_num_threads != -1
    ti.cfg.debug = True
    assert ti.cfg.debug is True


def test_settings_without_effect_are_named_for_debugging():
    code = "import aerogel as ti; ti.init(device_memory_fraction=0.5, packed=True, log_level={!r})"
    settings = {"TI_PRINT_KERNEL_ASM": "1", "TI_UNROLLING_LIMIT": ""}
    done = run(code.format("debug"), **settings)
    assert done.returncode == 0
    line = "[Aerogel] ti.init: device_memory_fraction, packed, print_kernel_asm have no effect here"
    assert done.stderr.splitlines().count(line) == 1
    assert run(code.format("warn"), **settings).stderr == ""
    for key in ("default_up", "colour"):
        with pytest.raises(KeyError, match=key):
            ti.init(**{key: ti.u32})


def test_real_functions_have_left_the_experiments():
    with pytest.warns(DeprecationWarning, match="Use ti.real_func instead"):
        assert hasattr(ti.experimental.real_func(lambda: None), "__aerogel_func__")


def test_the_package_of_the_language_has_the_names_too():
    assert ti.lang.Matrix is ti.Matrix and ti.lang.impl.field is ti.field
    assert not hasattr(ti.lang, "nothing_of_the_kind")


def test_an_arch_is_its_name():
    assert ti.cpu == ti.x64 == "x64" and ti.cpu != ti.cuda and len({ti.cpu, ti.x64, ti.cuda}) == 2


OLD_PATHS = """lang.impl.get_runtime lang.impl.current_cfg lang.impl.field lang.matrix.Matrix lang.matrix.VectorType
lang.field.ScalarField lang.kernel_impl.kernel lang.kernel_impl.data_oriented lang.ops.sqrt lang.snode.SNode
lang.exception.TaichiSyntaxError lang.misc.init lang.misc.cpu lang.misc.loop_config lang._ndarray.ScalarNdarray
lang._ndrange.ndrange lang.struct.Struct lang.enums.Layout
lang.mesh.Mesh types.primitive_types.f32 types.primitive_types.int32 types.annotations.template
lang.expr.Expr lang.expr.real_types lang.any_array.AnyArray lang.any_array.AnyArrayAccess lang.util.cook_dtype
lang.common_ops.TaichiOperations types.primitive_types.integer_types types.primitive_types.real_type_ids
lang.impl.pytaichi lang.impl.PyTaichi lang.util.to_numpy_type lang._texture.Texture ui.GUI ui.hex_to_rgb
types.compound_types.vector types.ndarray_type.NdarrayType types.annotations.Template types.quant.fixed
lang.matrix_ops.transpose lang.matrix_ops.Vector""".split()


@pytest.mark.parametrize("path", OLD_PATHS)
def test_taichis_modules_are_found(path):
    module, name = f"aerogel.{path}".rsplit(".", 1)
    assert hasattr(importlib.import_module(module), name)
    parent, child = module.rsplit(".", 1)
    assert getattr(importlib.import_module(parent), child) is importlib.import_module(module)


def test_old_modules_have_the_same_objects():
    from aerogel.lang import impl
    from aerogel.lang.exception import TaichiCompilationError
    from aerogel.lang.matrix import Vector
    from aerogel.types.primitive_types import f32

    assert impl.kernel is ti.kernel and Vector is ti.Vector and f32 is ti.f32
    assert TaichiCompilationError is ti.TaichiCompilationError
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("aerogel.lang.nothing")
    with pytest.raises(AttributeError, match="'aerogel.lang.impl' has no 'nothing' here"):
        impl.nothing


def test_operations_on_matrices_have_names_as_functions(arch):
    from aerogel.lang import matrix_ops as ops

    m, v = ti.Matrix([[2.0, 1.0], [1.0, 3.0]]), ti.Vector([3.0, 4.0])
    alone = {"sum": 7, "max": 3, "min": 1, "trace": 5, "determinant": 5, "norm_sqr": 15, "any": 1, "all": 1}
    for name, wanted in alone.items():
        op = getattr(ops, name)

        @ti.kernel
        def run() -> ti.f32:
            return op(m)

        assert run() == wanted == float(op(m)), name

    @ti.kernel
    def more() -> ti.types.vector(5, ti.f32):
        w = ti.Vector([0.0, 0.0])
        ops.fill(w, 2.0)
        return ti.Vector(
            [ops.norm(v), ops.normalized(v)[0], ops.dot(v, w), ops.matmul(m, v)[1], ops.outer_product(v, w)[1, 0]]
        )

    assert more().to_list() == pytest.approx([5, 0.6, 14, 15, 8])
    assert ops.transpose(ops.rows([v, 2 * v])).to_list() == ops.cols([v, 2 * v]).to_list() == [[3, 6], [4, 8]]


def test_what_stands_for_kinds_of_types_and_values(cpu):
    from aerogel.lang import common_ops, expr, util
    from aerogel.types import primitive_types

    x = ti.field(ti.u8, 3)
    assert x.dtype in primitive_types.integer_types and x.dtype not in primitive_types.real_types
    assert id(ti.f16) in primitive_types.real_type_ids and id(ti.f16) in primitive_types.type_ids
    assert {float, int, bool} <= set(primitive_types.all_types) and expr.real_types == primitive_types.real_types
    assert isinstance(ti.Vector([1, 2]), common_ops.TaichiOperations) and not isinstance(x, common_ops.TaichiOperations)
    assert not isinstance(x, expr.Expr)
    with pytest.raises(NotImplementedError, match="Expr cannot be made: kernels are read from their source"):
        expr.Expr(3)
    assert util.cook_dtype(float) is ti.f32 and util.to_numpy_type(ti.u8) is np.uint8
    assert util.to_taichi_type(np.dtype("float64")) is ti.f64 and util.to_taichi_type("torch.int64") is ti.i64
    assert util.in_python_scope() and not util.in_taichi_scope()


def test_the_runtime_that_programs_ask_for():
    from aerogel.lang import impl

    ti.reset()
    assert impl.get_runtime().prog is None
    ti.init(arch=ti.cpu, default_fp=ti.f64, default_ip=ti.i64, log_level="error", advanced_optimization=False)
    runtime = impl.get_runtime()
    assert runtime is impl.pytaichi and runtime.short_circuit_operators
    assert (runtime.default_fp, runtime.default_ip, runtime.default_up) == (ti.f64, ti.i64, ti.u64)
    assert runtime.prog.config().arch == ti.cpu and impl.current_cfg().default_up == ti.u64
    assert ti.cfg.advanced_optimization is False
    assert not impl.inside_kernel()
    x = ti.field(ti.i32)
    ti.root.dense(ti.i, 3).place(x)
    runtime.materialize()
    runtime.sync()
    assert x.shape == (3,) and x[1] == 0
    ti.reset()


def test_init_refuses_what_it_cannot_mean():
    for version in ("99.0.0", "1.7.5", "2.0.0", "0.9.12", "abc", "1"):
        with pytest.raises(ti.TaichiRuntimeError, match="require"):
            ti.init(arch=ti.cpu, require_version=version)
    for version in ("1.7.4", "1.7", "1.6.9", "1.7.0rc1"):
        ti.init(arch=ti.cpu, require_version=version, log_level="error")
    for arch in (3, [ti.cuda, 3]):
        with pytest.raises(ValueError, match="arch is .* not 3"):
            ti.init(arch=arch)
    ti.reset()


def test_extensions_are_those_that_the_cpu_has():
    from aerogel.lang.misc import is_extension_supported

    assert ti.is_extension_supported is is_extension_supported
    assert ti._lib.core.is_extension_supported(ti.cpu, ti.extension.quant)
    assert is_extension_supported(ti.cpu, ti.extension.sparse) and is_extension_supported(ti.cpu, ti.extension.data64)
    assert not is_extension_supported(ti.cpu, ti.extension.bls)
    assert is_extension_supported(ti.cuda, ti.extension.sparse)
    assert not is_extension_supported(ti.metal, ti.extension.sparse)
