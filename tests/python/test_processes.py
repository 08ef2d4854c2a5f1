"""Child processes of ``multiprocessing``: their settings, the name `taichi`, and kernels that are sent to them."""

import copy
import os
import pickle
import subprocess
import sys

import pytest
import test_processes as this_module
from test_mpi import BIN, needs_mpi
from test_pages import PART, ROOT

import aerogel as ti
from aerogel import _config

PAGE = ROOT / "docs" / "processes.md"
METHODS = ["fork", "spawn", "forkserver"]


def output_of(program, *arguments, run=(), **env):
    """What a program prints; its processes end with it."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), **env}
    line = [sys.executable, *run, str(program), *arguments]
    done = subprocess.run(line, env=env, capture_output=True, text=True, timeout=150)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


SETTINGS = """
import multiprocessing as mp
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

import aerogel as ti


@ti.kernel
def third(x: ti.f64) -> float:
    return x / 3


@ti.kernel
def drawn() -> ti.i32:
    return ti.random(ti.i32)


def settings():
    names = ("default_fp", "default_ip", "fast_math", "random_seed", "cpu_max_num_threads", "ad_stack_size")
    return ti.cfg.arch.name, *(str(getattr(ti.cfg, name)) for name in names)


def first_uses(_):
    # Each of these is the first thing in its process that depends on the settings.
    return str(ti.types.vector(2, float).dtype), third(1.0)


def field_first(_):
    f = ti.field(float, 3)
    return str(f.dtype), third(1.0)


def grandchild(queue):
    queue.put((settings(), third(1.0)))


def child(queue):
    process = context.Process(target=grandchild, args=(queue,))
    process.start()
    process.join()
    assert process.exitcode == 0, process.exitcode


context = mp.get_context(sys.argv[1])
if __name__ == "__main__":
    ti.init(arch="interp", default_fp=ti.f64, default_ip=ti.i64, fast_math=np.bool_(False), random_seed=np.int64(5),
            cpu_max_num_threads=1, ad_stack_size=lambda: "cannot be pickled", offline_cache_file_path=Path("cache"),
            log_level="error")
    expected, number = settings()[:-1], drawn()
    with context.Pool(1) as pool:
        assert pool.apply(settings)[:-1] == expected, pool.apply(settings)
        # A process that is forked goes on with the random numbers of its parent.
        assert (pool.apply(drawn) == number) == (sys.argv[1] != "fork")
        assert pool.map(third, [1.0, 2.0]) == [1 / 3, 2 / 3]
    for use in (first_uses, field_first):
        with ProcessPoolExecutor(1, mp_context=context) as executor:
            assert list(executor.map(use, [0])) == [("f64", 1 / 3)]
    queue = context.Queue()
    process = context.Process(target=child, args=(queue,))
    process.start()
    process.join(60)
    assert process.exitcode == 0, process.exitcode
    found, value = queue.get()
    assert found[:-1] == expected and value == 1 / 3
    ti.cfg.default_fp = ti.f32
    with context.Pool(1) as pool:
        assert pool.apply(settings)[1] == "f32"
    print("done")
"""


@pytest.mark.parametrize("method", METHODS)
def test_settings_of_the_parent(tmp_path, method):
    program = tmp_path / "program.py"
    program.write_text(SETTINGS)
    assert output_of(program, method) == ["done"]


OWN_SETTINGS = """
import multiprocessing as mp
import sys
import aerogel as ti


@ti.kernel
def one() -> ti.i32:
    return 1


def own(_):
    ti.init(default_ip=ti.i64, log_level="error")
    return str(ti.cfg.default_fp), str(ti.cfg.default_ip), one()


def ended(_):
    ti.reset()
    try:
        return one()
    except ti.TaichiRuntimeError as e:
        return str(e)


def none(_):
    try:
        return one()
    except ti.TaichiRuntimeError as e:
        return str(e)


if __name__ == "__main__":
    context = mp.get_context(sys.argv[1])
    with context.Pool(1) as pool:
        print(*pool.map(none, [0]))
    ti.init(default_fp=ti.f64, log_level="error")
    with context.Pool(1) as pool:
        print(*pool.map(own, [0]))
        print(*pool.map(ended, [0]))
    ti.reset()
    with context.Pool(1) as pool:
        print(*pool.map(none, [0]))
"""


@pytest.mark.parametrize("method", METHODS)
def test_a_child_without_a_program_or_with_its_own(tmp_path, method):
    program = tmp_path / "program.py"
    program.write_text(OWN_SETTINGS)
    missing = "call ti.init() first: there is no program"
    assert output_of(program, method) == [missing, "('f32', 'i64', 1)", missing, missing]


LATER = """
import sys

import aerogel as ti


def setting(_):
    return str(ti.cfg.default_fp)


if __name__ == "__main__":
    finders = list(sys.meta_path)
    for fp in (ti.f32, ti.f64):
        ti.init(arch=ti.cpu, log_level="error", default_fp=fp)
    assert "multiprocessing" not in sys.modules
    import multiprocessing as mp

    assert sys.meta_path == finders
    with mp.get_context(sys.argv[1]).Pool(1) as pool:
        print(*pool.map(setting, [0]))
"""


@pytest.mark.parametrize("method", METHODS)
def test_multiprocessing_is_imported_after_the_program_has_begun(tmp_path, method):
    program = tmp_path / "program.py"
    program.write_text(LATER)
    assert output_of(program, method) == ["f64"]


TAICHI = """
import multiprocessing as mp
import os
import sys
import taichi as ti
from taichi.lang.matrix import Matrix


@ti.kernel
def triple(n: int) -> int:
    return n * 3


def grandchild(queue):
    import taichi.math

    queue.put((taichi.math.__name__, triple(5), sys.argv[1:]))


def work(queue):
    queue.put((ti.__name__, triple(4), sys.argv[1:]))
    process = context.Process(target=grandchild, args=(queue,))
    process.start()
    process.join()
    assert process.exitcode == 0, process.exitcode


context = mp.get_context(sys.argv[1])
if __name__ == "__main__":
    ti.init(arch=ti.cpu, log_level="error")
    os.chdir(os.sep)
    queue = context.Queue()
    process = context.Process(target=work, args=(queue,))
    process.start()
    process.join(60)
    assert process.exitcode == 0, process.exitcode
    print(queue.get())
    print(queue.get())
"""


@pytest.mark.parametrize(
    ("method", "as_module"), [("fork", False), ("spawn", False), ("spawn", True), ("forkserver", False)]
)
def test_children_know_taichi(tmp_path, method, as_module):
    folder = tmp_path / "of programs"
    folder.mkdir()
    program = folder / "program.py"
    program.write_text(TAICHI)
    run = ["-m", "aerogel", "run"]
    if as_module:
        out = output_of("program", method, "x y", run=[*run, "-m"], PYTHONPATH=path_with(folder))
    else:
        out = output_of(os.path.relpath(program), method, "x y", run=run)
    arguments = [method, "x y"]
    assert out == [str(("aerogel", 12, arguments)), str(("aerogel.math", 15, arguments))]


def path_with(folder):
    return os.pathsep.join([str(folder), *(p for p in sys.path if p)])


def test_the_main_program_of_a_package(tmp_path):
    """As in Python, children of a package's `__main__` import the modules that they need, and not `__main__`."""
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "work.py").write_text(
        "import taichi as ti\n\n@ti.kernel\ndef triple(n: int) -> int:\n    return n * 3\n"
    )
    (package / "__main__.py").write_text(
        "import multiprocessing as mp\nimport taichi as ti\nfrom .work import triple\n"
        "ti.init(log_level='error')\n"
        "with mp.get_context('spawn').Pool(1) as pool:\n    print(pool.map(triple, [1, 2]))\n"
    )
    assert output_of("package", run=["-m", "aerogel", "run", "-m"], PYTHONPATH=path_with(tmp_path)) == ["[3, 6]"]


def test_a_fork_server_preloads_what_imports_taichi(tmp_path):
    (tmp_path / "large.py").write_text("import os\nimport taichi as ti\n\nwhere = os.getpid()\n")
    program = tmp_path / "program.py"
    program.write_text(
        "import multiprocessing as mp\n"
        "import os\n"
        "def is_from_the_server():\n"
        "    import large\n"
        "    return large.where == os.getppid(), large.ti.__name__\n"
        "if __name__ == '__main__':\n"
        "    context = mp.get_context('forkserver')\n"
        "    context.set_forkserver_preload(['large'])\n"
        "    with context.Pool(1) as pool:\n"
        "        print(*pool.apply(is_from_the_server))\n"
    )
    out = output_of(program, run=["-m", "aerogel", "run"], PYTHONPATH=path_with(tmp_path))
    assert out == ["True aerogel"]


def test_as_taichi_reaches_children(tmp_path):
    """As in `conftest.py`, which children do not import."""
    (tmp_path / "module.py").write_text("import taichi\n\ndef name():\n    return taichi.__name__\n")
    program = tmp_path / "program.py"
    program.write_text(
        "if __name__ == '__main__':\n"
        "    import multiprocessing as mp\n"
        "    import aerogel\n"
        "    aerogel.as_taichi()\n"
        "    import module\n"
        "    with mp.get_context('spawn').Pool(1) as pool:\n"
        "        print(pool.apply(module.name))\n"
    )
    assert output_of(program) == ["aerogel"]


@ti.kernel
def doubled(x: ti.i32) -> ti.i32:
    return helper(x) + recursive(x)


@ti.func
def helper(x):
    return x


@ti.real_func
def recursive(x: ti.i32) -> ti.i32:
    if x <= 0:
        return 0
    return 1 + recursive(x - 1)


@ti.pyfunc
def both(x):
    return x


@ti.data_oriented
class Scaled:
    def __init__(self, factor):
        self.factor = factor
        self.method = self.times

    @ti.kernel
    def times(self, x: ti.i32) -> ti.i32:
        return x * self.factor

    @ti.kernel
    def __private(self, x: ti.i32) -> ti.i32:
        return x - self.factor

    @staticmethod
    @ti.kernel
    def static(x: ti.i32) -> ti.i32:
        return x + 1

    @ti.func
    def function(self, x):
        return x

    @property
    def private(self):
        return self.__private


class Other(Scaled):
    @ti.kernel
    def times(self, x: ti.i32) -> ti.i32:
        return -x

    @property
    def inherited(self):
        return super().times


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_kernels_are_pickled_by_name(arch, protocol):
    def sent(value):
        return pickle.loads(pickle.dumps(value, protocol))

    for value in (doubled, helper, recursive, both, Scaled.times, Scaled.static, Scaled.function):
        name = value.__qualname__.split(".")
        for holder in (value, (value, value)):
            assert sent(holder) == holder, name
    assert this_module.doubled is not None
    assert doubled(4) == sent(doubled)(4) == 8
    scaled = Scaled(3)
    for method, expected in ((scaled.times, 15), (scaled.private, 2), (Other(3).times, -5), (Other(3).inherited, 15)):
        assert method(5) == sent(method)(5) == expected
    again = sent(scaled)
    assert again is not scaled and again.method(5) == 15 and again.method.__self__ is again
    gradient = sent(doubled.grad)
    assert repr(gradient) == repr(doubled.grad)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_copies(arch, copied):
    @ti.kernel
    def local(x: ti.i32) -> ti.i32:
        return x + 1

    assert copied(doubled) is doubled and copied(local) is local
    assert copied({"kernel": local})["kernel"] is local
    scaled = Scaled(3)
    times = copied(scaled.times)
    assert times(5) == 15 and times == scaled.times or copied is copy.deepcopy
    again = copied(scaled)
    assert again.method.__self__ is (again if copied is copy.deepcopy else scaled)


@ti.program
def mean(x):
    return x.sum() / x.shape[0]


class Model:
    @ti.program
    def __call__(self, x):
        return 2 * x


def test_programs_are_pickled_by_name(arch):
    for program in (mean, Model.__call__):
        assert pickle.loads(pickle.dumps(program)) is program and copy.deepcopy(program) is program
    method = pickle.loads(pickle.dumps(Model().__call__))
    assert method(ti.tensor.ones(2)).tolist() == [2, 2]
    local = ti.program(lambda x: x)
    with pytest.raises(pickle.PicklingError, match="program `<lambda>` .* defined inside a function"):
        pickle.dumps(local)
    with pytest.raises(pickle.PicklingError, match="not the same object as test_processes.mean"):
        pickle.dumps(ti.program(mean._function))


def test_kernels_without_a_name():
    @ti.kernel
    def local(x: ti.i32) -> ti.i32:
        return x + 1

    class Local:
        @ti.kernel
        def method(self) -> ti.i32:
            return 1

    for kernel in (local, Local.method):
        with pytest.raises(
            pickle.PicklingError, match="defined inside a function; define it, or its class, at the top level"
        ):
            pickle.dumps(kernel)
    other = ti.kernel(doubled.__wrapped__)
    with pytest.raises(pickle.PicklingError, match="not the same object as test_processes.doubled"):
        pickle.dumps(other)


POOL = """
import sys

import taichi as ti


@ti.kernel
def large(n: int) -> int:
    return n * 3


@ti.data_oriented
class Scaled:
    def __init__(self, by):
        self.by = by

    @ti.kernel
    def times(self, x: float) -> float:
        return x * self.by


def name(_):
    # Nothing of Aerogel's is sent with this one.
    return ti.__name__, str(ti.cfg.default_ip)


if __name__ == "__main__":
    ti.init(arch=ti.cpu, log_level="error", default_ip=ti.i64, default_fp=ti.f64, cpu_max_num_threads=1)
    from mpi4py.futures import MPIPoolExecutor

    with MPIPoolExecutor(2) as pool:
        print(list(pool.map(name, range(2))))
        print(list(pool.map(large, [1, 1 << 40])), list(pool.map(Scaled(3).times, [1 / 3, 2])))
"""


@needs_mpi
def test_workers_of_mpi(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(POOL)
    expected = ["[('aerogel', 'i64'), ('aerogel', 'i64')]", "[3, 3298534883328] [1.0, 6.0]"]
    assert output_of(program, run=["-m", "aerogel", "run"], PATH=BIN) == expected


BY_VALUE = """
import sys

import cloudpickle

import aerogel as ti

vec = ti.types.vector(2, ti.f32)
Pair = ti.types.struct(a=ti.f32)


@ti.func
def helper(x):
    return x + 1


@ti.kernel
def large(n: int) -> int:
    return helper(n) * 3


@ti.data_oriented
class Scaled:
    def __init__(self, by):
        self.by = by

    @ti.kernel
    def times(self, x: float) -> float:
        return x * self.by


@ti.kernel
def many(a: ti.types.ndarray(dtype=ti.i32, ndim=1), v: vec, t: ti.template(), m: ti.math.mat2, p: Pair) -> float:
    return a[0] + v[1] + t + m[0, 1] + p.a


def local(by):
    @ti.kernel
    def inner(n: int) -> int:
        return helper(n) + by

    return inner


@ti.program
def mean(x):
    return x.sum() / x.shape[0]


ti.init(arch=ti.cpu, log_level="error", default_ip=ti.i64, default_fp=ti.f64)
with open(sys.argv[1], "wb") as file:
    cloudpickle.dump([large, large.grad, Scaled(3).times, many, Pair, local(4), mean], file)
"""

ELSEWHERE = """
import pickle
import sys

import numpy as np

with open(sys.argv[1], "rb") as file:
    large, gradient, times, many, Pair, inner, mean = pickle.load(file)
import aerogel as ti

print(large(1 << 40), gradient, times(1 / 3), many(np.array([1], np.int32), [2, 3], 4, [[5, 6], [7, 8]], Pair(a=9)), inner(5))
print(mean(ti.tensor.asarray([1.0, 2.0])).item())
"""


def test_kernels_pickled_by_value(tmp_path):
    """As Dask, joblib and Ray send what has no name in their workers, whose file may be missing there."""
    pytest.importorskip("cloudpickle")
    program, data = tmp_path / "program.py", tmp_path / "data"
    program.write_text(BY_VALUE)
    assert output_of(program, str(data)) == []
    program.write_text(ELSEWHERE)
    assert output_of(program, str(data)) == ["3298534883331 <gradient of <ti.kernel large>> 1.0 23.0 10", "1.5"]


def test_settings_come_with_a_kernel(tmp_path):
    """To a process that is no child of one with a program, and has none itself."""
    (tmp_path / "kernels.py").write_text(
        "import aerogel as ti\n\n@ti.kernel\ndef large(n: int) -> int:\n    return n * 3\n"
    )
    program, path = tmp_path / "program.py", path_with(tmp_path)
    dump = "with open('data', 'wb') as file:\n    pickle.dump(kernels.large, file)\n"
    load = "with open('data', 'rb') as file:\n    print(pickle.load(file)(1 << 30))\n"
    outs = []
    for text in (f"ti.init(default_ip=ti.i64, log_level='error')\n{dump}", load, f"ti.init(log_level='error')\n{load}"):
        start = f"import os, pickle\nimport aerogel as ti\nimport kernels\nos.chdir({str(tmp_path)!r})\n"
        program.write_text(start + text)
        outs += output_of(program, PYTHONPATH=path)
    assert outs == [str(3 << 30), str((3 << 30) - (1 << 32))]


@pytest.mark.parametrize("method", METHODS)
def test_kernels_as_targets(tmp_path, method):
    program = tmp_path / "program.py"
    program.write_text(
        "import multiprocessing as mp\n"
        "import numpy as np\n"
        "import aerogel as ti\n"
        "from test_processes import Scaled\n"
        "@ti.kernel\n"
        "def failing(x: ti.i32):\n"
        "    assert x == 3, 'x is not 3'\n"
        "def exit_code(context, target, *arguments):\n"
        "    process = context.Process(target=target, args=arguments)\n"
        "    process.start()\n"
        "    process.join()\n"
        "    return process.exitcode\n"
        "if __name__ == '__main__':\n"
        f"    context = mp.get_context({method!r})\n"
        "    ti.init(debug=True, log_level='error')\n"
        "    print(exit_code(context, failing, 3), exit_code(context, failing, 4))\n"
        "    with context.Pool(1) as pool:\n"
        "        print(pool.map(Scaled(7).times, [1, 2]))\n"
    )
    assert output_of(program) == ["0 1", "[7, 14]"]


def test_archs_are_sent(arch):
    """As arguments of `ti.init` in the initializer of a pool."""
    here = ti.interp if arch == "interp" else ti.cpu
    ti.init(**pickle.loads(pickle.dumps({"arch": here, "default_fp": ti.f64})), log_level="error")
    assert _config._native_arch() == arch and ti.cfg.default_fp == ti.f64


@pytest.mark.skipif(not PAGE.exists(), reason="the documents are not here")
def test_the_program_of_the_page(tmp_path):
    part = PART.search(PAGE.read_text())
    program = tmp_path / "program.py"
    program.write_text(part["shown"])
    assert output_of(program, AEROGEL_LOG_LEVEL="error") == part["text"].splitlines()


LOADER = """
import sys
import torch
import aerogel as ti
from torch.utils.data import DataLoader, Dataset


@ti.kernel
def squares(x: ti.types.ndarray(), start: int):
    for i in x:
        x[i] = float(start + i) ** 2 / 3


class Squares(Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, at):
        x = torch.zeros(2, dtype=torch.float64)
        squares(x, at)
        return x, str(ti.cfg.default_fp)


if __name__ == "__main__":
    ti.init(arch=ti.cpu, default_fp=ti.f64, log_level="error")
    squares(torch.zeros(100_000, dtype=torch.float64), 0)
    loader = DataLoader(Squares(), batch_size=3, num_workers=1, multiprocessing_context=sys.argv[1])
    seen = 0
    for x, types in loader:
        for row, of in zip(x.tolist(), types):
            assert row == [seen**2 / 3, (seen + 1) ** 2 / 3] and of == "f64", (row, of)
            seen += 1
    print(seen)
"""


@pytest.mark.parametrize("method", METHODS)
def test_workers_of_a_data_loader(tmp_path, method):
    pytest.importorskip("torch")
    program = tmp_path / "program.py"
    program.write_text(LOADER)
    assert output_of(program, method) == ["6"]
