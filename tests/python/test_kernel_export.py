"""Kernels as code of C: what a C program computes is what the kernel computes."""

import ctypes
import re
import shutil
import subprocess
import textwrap
from pathlib import Path

import numpy as np
import pytest

import aerogel as ti

needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler `cc`")
FLAGS = ["-O1", "-Wall", "-Wextra", "-Werror", "-std=c11"]


@pytest.fixture(autouse=True)
def _start():
    ti.init(arch=ti.cpu, log_level="error")
    yield
    ti.reset()


def run(folder, name, program):
    """What a C program prints that is linked with an exported kernel."""
    (folder / "main.c").write_text(textwrap.dedent(program))
    files = [folder / "main.c", folder / f"{name}.c", folder / f"lib{name}.a"]
    subprocess.run(["cc", *FLAGS, *files, f"-I{folder}", "-lm", "-o", folder / "main"], check=True, timeout=60)
    return subprocess.run([folder / "main"], check=True, capture_output=True, text=True, timeout=60).stdout


def library(folder, name):
    """An exported kernel as a library that this process calls."""
    files = [folder / f"{name}.c", folder / f"lib{name}.a"]
    so = folder / f"{name}.so"
    subprocess.run(["cc", *FLAGS, "-shared", "-fPIC", *files, "-o", so, "-lm"], check=True, timeout=60)
    loaded = ctypes.CDLL(str(so))
    message = getattr(loaded, f"{name}_message")
    message.restype = ctypes.c_char_p
    return getattr(loaded, name), lambda: message().decode()


def pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)


@ti.kernel
def saxpy(a: ti.f32, x: ti.types.ndarray(dtype=ti.f32, ndim=1), y: ti.types.ndarray(dtype=ti.f32, ndim=1)) -> ti.f32:
    for i in x:
        y[i] += a * x[i]
    total = 0.0
    for i in range(y.shape[0]):
        total += y[i]
    return total


@needs_cc
def test_a_c_program_of_ten_lines(tmp_path):
    x, y = np.arange(5, dtype=np.float32), np.full(5, 0.25, np.float32)
    paths = saxpy.export_c(tmp_path, 2.0, x, y)
    assert [Path(path).name for path in paths] == ["saxpy.h", "saxpy.c", "libsaxpy.a", "saxpy.ll"]
    program = """
        #include <stdio.h>
        #include "saxpy.h"
        int main(void) {
            float x[5] = {0, 1, 2, 3, 4}, y[5] = {.25, .25, .25, .25, .25}, total;
            if (saxpy(1.5f, x, 5, y, 5, &total))
                return puts(saxpy_message()), 1;
            printf("%g %g %g", y[1], y[4], total);
        }
        """
    printed = run(tmp_path, "saxpy", program)
    total = saxpy(1.5, x, y)
    assert [float(word) for word in printed.split()] == [y[1], y[4], total]
    assert "define void @saxpy_k0_0(" in (tmp_path / "saxpy.ll").read_text()
    header = (tmp_path / "saxpy.h").read_text()
    assert "int saxpy(float a, const float *x, int64_t x_size0, float *y, int64_t y_size0, float *out);" in header
    assert "float *y: f32[y_size0]" in header


@needs_cc
def test_axes_vectors_and_several_results(tmp_path):
    vec3, several = ti.types.vector(3, ti.f64), ti.types.struct(low=ti.i64, high=ti.f16)

    @ti.kernel
    def shift(
        by: vec3, n: ti.i8, is_twice: ti.u1, points: ti.types.ndarray(dtype=vec3), grid: ti.types.ndarray(ti.i32, 2)
    ) -> (vec3, several, ti.u8):
        for i, j in grid:
            grid[i, j] += n * (i - j)
        for i in points:
            points[i] += by * (2 if is_twice else 1)
        return points[1], several(low=ti.i64(grid[0, 1]) - 2**40, high=0.5), 200

    points, grid = np.arange(12.0).reshape(4, 3), np.zeros((3, 7), np.int32)
    shift.export_c(tmp_path, [0, 0, 0], 0, False, points, grid, name="moved")
    made, message = library(tmp_path, "moved")
    moved, counted = points.copy(), grid.copy()
    expected = shift([1, 2, 3.5], -3, True, points, grid)
    vector, low, high, last = np.zeros(3), ctypes.c_int64(), np.zeros(1, np.float16), ctypes.c_uint8()
    by = np.array([1, 2, 3.5])
    sizes = [ctypes.c_int64(n) for n in (4, 3, 7)]
    outputs = [pointer(vector), ctypes.byref(low), pointer(high), ctypes.byref(last)]
    arrays = [pointer(moved), sizes[0], pointer(counted), *sizes[1:]]
    assert made(pointer(by), ctypes.c_int8(-3), ctypes.c_uint8(1), *arrays, *outputs) == 0, message()
    np.testing.assert_array_equal(moved, points)
    np.testing.assert_array_equal(counted, grid)
    assert vector.tolist() == list(expected[0])
    assert (low.value, float(high[0]), last.value) == (expected[1]["low"], expected[1]["high"], expected[2])
    # Arrays that overlap are refused.
    arrays[2] = pointer(moved)
    assert made(pointer(by), ctypes.c_int8(0), ctypes.c_uint8(0), *arrays, *outputs) == 3
    assert "shares memory" in message()


@needs_cc
def test_histograms_templates_and_names(tmp_path):
    @ti.kernel
    def binned(int_: ti.types.ndarray(ti.i32, 1), counts: ti.types.ndarray(ti.i32, 1), width: ti.template()):
        for i in int_:
            counts[int_[i] // width] += 1

    values = np.random.default_rng(0).integers(0, 40, 5000).astype(np.int32)
    wanted = np.zeros(10, np.int32)
    binned(values, wanted, 4)
    # Without arguments, the instance that was compiled last.
    binned.export_c(tmp_path)
    made, message = library(tmp_path, "binned")
    counts = np.zeros(10, np.int32)
    assert made(pointer(values), ctypes.c_int64(5000), pointer(counts), ctypes.c_int64(10)) == 0, message()
    np.testing.assert_array_equal(counts, wanted)
    assert wanted.sum() == 5000


@needs_cc
def test_checks_have_a_message(tmp_path):
    ti.init(arch=ti.cpu, debug=True, log_level="error")

    @ti.kernel
    def picked(x: ti.types.ndarray(ti.f32, 1), k: ti.i32) -> ti.f32:
        assert k != 3, "three"
        return x[k]

    x = np.arange(5, dtype=np.float32)
    picked.export_c(tmp_path, x, 0)
    made, message = library(tmp_path, "picked")
    out = ctypes.c_float()
    assert made(pointer(x), ctypes.c_int64(5), 4, ctypes.byref(out)) == 0 and out.value == 4
    for k in (5, 3):
        with pytest.raises(AssertionError) as raised:
            picked(x, k)
        assert made(pointer(x), ctypes.c_int64(5), k, ctypes.byref(out)) == 1
        first = str(raised.value).splitlines()[0]
        assert re.fullmatch(re.escape(first) + r", at .*test_kernel_export.py:\d+", message())


@needs_cc
def test_sizes_that_arrays_cannot_have(tmp_path):
    @ti.kernel
    def count(x: ti.types.ndarray(ti.f32, 1)) -> ti.i32:
        return x.shape[0]

    x = np.zeros(4, np.float32)
    count.export_c(tmp_path, x)
    made, message = library(tmp_path, "count")
    out = ctypes.c_int32()
    for size in (0, 4, 2**31 - 1):
        assert made(pointer(x), ctypes.c_int64(size), ctypes.byref(out)) == 0 and out.value == size
    for size in (-3, 2**31, 2**32 + 3):
        assert made(pointer(x), ctypes.c_int64(size), ctypes.byref(out)) == 1
        assert message() == f"x_size0 is {size}: it must be between 0 and 2147483647"


@needs_cc
@pytest.mark.parametrize("dtype", [ti.f16, ti.bf16, ti.f32, ti.f64], ids=str)
@pytest.mark.parametrize("value", [2.0, -0.375, 6e-8, float("inf")])
def test_floats_in_messages(tmp_path, dtype, value):
    ti.init(arch=ti.cpu, debug=True, log_level="error")

    @ti.kernel
    def check(x: ti.types.ndarray(dtype, 1)) -> ti.i32:
        h = x[0]
        assert h != h, f"h {h}"
        return 1

    x = ti.ndarray(dtype, 1)
    x[0] = value
    check.export_c(tmp_path, x)
    made, message = library(tmp_path, "check")
    bits = np.frombuffer(np.asarray(x.to_numpy()).tobytes(), np.uint8).copy()
    assert made(pointer(bits), ctypes.c_int64(1), ctypes.byref(ctypes.c_int32())) == 1
    found = re.match(r"h (\S+), at", message())
    assert found and float(found[1]) == pytest.approx(float(x[0]), rel=1e-4)


def refusal(kernel, *args, **options):
    with pytest.raises((TypeError, ValueError, RuntimeError)) as raised:
        kernel.export_c("unused", *args, **options)
    assert not Path("unused").exists()
    return str(raised.value)


def test_what_needs_aerogel_is_refused():
    height = ti.field(ti.f32, shape=6)
    outside = ti.ndarray(ti.f32, 6)

    @ti.kernel
    def fields():
        for i in height:
            height[i] = i

    @ti.kernel
    def arrays():
        for i in outside:
            outside[i] = i

    @ti.kernel
    def draws(x: ti.types.ndarray(ti.f32, 1)):
        for i in x:
            x[i] = ti.random()

    @ti.kernel
    def prints(k: ti.i32):
        print("k", k)

    @ti.kernel
    def fine(k: ti.i32) -> ti.i32:
        return k + 1

    assert "kernel `fields` cannot be exported: it uses the field `height`: pass a `ti.types" in refusal(fields)
    assert "it uses an array that is no argument" in refusal(arrays)
    assert "it draws random numbers" in refusal(draws, np.zeros(3, np.float32))
    assert "it prints: return the values" in refusal(prints, 1)
    assert "not compiled yet: call it first, or pass its arguments to `export_c`" in refusal(fine)
    for name in ("int", "ag_x", "main", "2d", "write"):
        assert "cannot be named" in refusal(fine, 1, name=name)
    ti.init(arch=ti.interp, log_level="error")
    assert "a kernel is exported for processors: call ti.init(arch=ti.cpu)" in refusal(fine, 1)


PAGE = Path(__file__).parents[2] / "docs" / "programs.md"


@needs_cc
def test_the_kernel_of_the_page(tmp_path, monkeypatch):
    if not PAGE.exists():
        pytest.skip("the documents are not here")
    section = PAGE.read_text().split("### Kernels as C\n")[1]
    python, _, program, shell = re.findall(r"```[a-z]+\n(.*?)```", section, re.DOTALL)[:4]
    command, expected = shell.removeprefix("$ ").split("\n", 1)
    monkeypatch.chdir(tmp_path)
    Path("page.py").write_text(python)
    exec(compile(python, str(tmp_path / "page.py"), "exec"), {"__name__": "page"})
    Path("main.c").write_text(program)
    assert len(program.splitlines()) <= 10
    said = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60)
    assert (said.stdout, said.stderr) == (expected, "")
