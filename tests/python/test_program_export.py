"""Programs as code of C: what a C program computes is equal to the bit to what Python computes."""

import ctypes
import linecache
import math
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import aerogel as ti
from aerogel.tensor import programs as p

t = ti.tensor
needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler `cc`")


@pytest.fixture(autouse=True)
def _start():
    ti.init(arch=ti.cpu, log_level="error")
    yield
    ti.reset()


def floats(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def numbers(tree):
    """The arrays of a result, real parts before imaginary ones."""
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, (tuple, list)):
        return [x for part in tree for x in numbers(part)]
    value = np.asarray(tree)
    parts = [value.real, value.imag] if value.dtype.kind == "c" else [value]
    return [np.ascontiguousarray(part).reshape(value.shape) for part in parts]


class Exported:
    """An exported program, compiled as a library that this process calls."""

    def __init__(self, program, args, folder, name=None):
        paths = program.lower(*args).export_c(folder, name)
        self.name = name or program.__name__
        assert [os.path.basename(path) for path in paths] == [
            f"{self.name}.h",
            f"{self.name}.c",
            f"lib{self.name}.a",
            f"{self.name}.ll",
        ]
        so = os.path.join(folder, "program.so")
        flags = ["-O1", "-Wall", "-Wextra", "-Werror", "-std=c11", "-shared", "-fPIC"]
        subprocess.run(["cc", *flags, paths[1], paths[2], "-o", so, "-lm"], check=True, timeout=60)
        self.library = ctypes.CDLL(so)
        message = getattr(self.library, f"{self.name}_message")
        message.restype = ctypes.c_char_p
        self.message = lambda: message().decode()

    def __call__(self, args, outputs):
        """Calls it; numbers are `double` and `int64_t`."""
        given, held = [], []
        for value in args:
            if isinstance(value, ti.nn.Module):
                held += [np.asarray(x.detach()) for x in value.parameters()]
                given += [x.ctypes.data_as(ctypes.c_void_p) for x in held]
            elif isinstance(value, np.ndarray) and value.shape:
                given.append(value.ctypes.data_as(ctypes.c_void_p))
            elif isinstance(value, np.ndarray):
                given.append({"f": ctypes.c_float, "d": ctypes.c_double, "i": ctypes.c_int32}[value.dtype.char](value))
            else:
                given.append(ctypes.c_double(value) if isinstance(value, float) else ctypes.c_int64(value))
        given += [output.ctypes.data_as(ctypes.c_void_p) for output in outputs]
        return getattr(self.library, self.name)(*given)


def same(program, args, folder, name=None):
    """Whether the exported program gives what the program gives."""
    expected = numbers(program(*args))
    outputs = [np.full_like(x, 77) for x in expected]
    exported = Exported(program, args, folder, name)
    for _ in range(2):
        assert exported(args, outputs) == 0, exported.message()
        for made, wanted in zip(outputs, expected):
            np.testing.assert_array_equal(made, wanted)
    return exported


@ti.program
def wave(u, v, dt=0.1):
    lap = t.roll(u, 1, 0) + t.roll(u, -1, 0) + t.roll(u, 1, 1) + t.roll(u, -1, 1) - 4 * u
    v = v + dt * lap
    return {"u": u + dt * v, "v": v, "energy": (v * v).sum() + t.sin(u).mean(), "again": v}


@needs_cc
def test_stencils_and_sums(tmp_path):
    same(wave, (floats(33, 40), floats(33, 40, seed=1), 0.25), str(tmp_path))
    header = (tmp_path / "wave.h").read_text()
    assert "int wave(const float *u, const float *v, double dt, float *out_u, float *out_v, " in header
    assert "float *out_energy: f32[]" in header


@needs_cc
def test_products_with_constants(tmp_path):
    weights, bias = t.asarray(floats(96, 80)), t.asarray(floats(80, dtype=np.float64))

    @ti.program
    def layer(x):
        y = t.maximum(x @ weights, 0)
        return y, t.softmax(y.astype(ti.f64) + bias, axis=1), y.astype(ti.f16)

    same(layer, (floats(70, 96),), str(tmp_path))


@needs_cc
def test_convolutions_and_integers(tmp_path):
    @ti.program
    def convolved(net, x, k):
        y = net(x)
        return y, t.argmax(y.reshape(2, -1), axis=1), (y > 0), t.cumsum(k // 3, axis=0) ^ 5

    k = np.random.default_rng(0).integers(-50, 50, 1000).astype(np.int64)
    ti.tensor.random.seed(1)
    net = ti.nn.Conv2d(3, 4, 3, padding=1)
    same(convolved, (net, floats(2, 3, 16, 17), k), str(tmp_path))
    assert "convolved(const float *net_" in (tmp_path / "convolved.h").read_text()


@ti.program
def newton(x, target, most: int = 50):
    y, n, error = p.const(x), p.const(0), p.const(t.max(x))
    with p.loop(most):
        error.val = t.max(t.abs(y * y - target))
        with p.if_cond((error < 1e-5) | (n > 30)):
            p.break_loop()
        y.val = (y + target / y) / 2
        n.val += 1
    return y, n, error


@needs_cc
def test_loops_and_branches_of_the_host(tmp_path):
    x = np.abs(floats(500)) + 0.5
    exported = same(newton, (x, x * x + 1), str(tmp_path))
    text = (tmp_path / "newton.c").read_text()
    assert "for (int64_t" in text and "break;" in text
    assert "ag_expect(" in text
    # The number of iterations follows from the values of each call.
    steps = np.zeros((), np.int32)
    assert exported((x, x * x), [np.zeros_like(x), steps, np.zeros((), np.float32)]) == 0
    assert steps == newton(x, x * x)[1].item() < newton(x, x * x + 1)[1].item()


@needs_cc
def test_gradients_through_loops(tmp_path):
    def loss(x, w):
        y = p.const(x)
        with p.loop(12) as k:
            with p.if_cond(k % 3 != 1):
                y.val = t.tanh(y * w + k * 0.1)
        return (y * y).sum()

    @ti.program
    def slope(x, w):
        return ti.grad(loss, argnums=(0, 1))(x, w)

    same(slope, (floats(300), floats(300, seed=1)), str(tmp_path))
    assert "ag_push" in (tmp_path / "slope.c").read_text().split("int slope(")[1]


@needs_cc
def test_histograms_and_scatters(tmp_path):
    @ti.program
    def binned(k, x):
        counts = t.zeros(10, dtype=ti.i32).at[k].add(1)
        sums = t.zeros(10, dtype=ti.f64).at[k].add(x)
        return counts, sums, x[k]

    k = np.random.default_rng(0).integers(0, 10, 4000).astype(np.int32)
    same(binned, (k, floats(4000, dtype=np.float64)), str(tmp_path))


@needs_cc
def test_complex_numbers_and_other_names(tmp_path):
    program = ti.program(lambda double, x: (double + 1, t.exp(x * 1j)))
    same(program, (floats(5), floats(9, seed=1)), str(tmp_path), "turned")
    assert (
        "const float *in_double, const float *x, float *out_0, float *out_1_real" in (tmp_path / "turned.h").read_text()
    )


@needs_cc
def test_failures_have_a_message(tmp_path):
    @ti.program
    def picked(x, k):
        return x[k] * 2

    x = floats(5)
    exported = same(picked, (x, np.array([0, 3, 4], np.int32)), str(tmp_path))
    out = np.zeros(3, np.float32)
    for wrong in (5, -1):
        k = np.array([1, wrong, 2], np.int32)
        with pytest.raises(IndexError) as raised:
            np.asarray(picked(x, k))
        assert exported((x, k), [out]) == 1
        assert exported.message().startswith(str(raised.value).split("\n")[0] + ", at ")
        assert "test_program_export.py:" in exported.message()
    assert exported((x, np.array([1, 2, 3], np.int32)), [x[:3]]) == 3
    assert "shares memory" in exported.message()


PAGE = Path(__file__).parents[2] / "docs" / "programs.md"


@needs_cc
def test_a_program_in_c(tmp_path, monkeypatch):
    if not PAGE.exists():
        pytest.skip("the documents are not here")
    section = PAGE.read_text().split("## Programs as C\n")[1]
    python, _, program, shell = re.findall(r"```[a-z]+\n(.*?)```", section, re.DOTALL)[:4]
    command, expected = re.fullmatch(r"\$ (.*?)\n(.*)", shell, re.DOTALL).groups()
    monkeypatch.chdir(tmp_path)
    linecache.cache["page.py"] = (len(python), None, python.splitlines(True), "page.py")
    exec(compile(python, "page.py", "exec"), {"__name__": "page"})
    Path("main.c").write_text(program)
    assert len(program.splitlines()) <= 10
    said = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60)
    assert (said.stdout, said.stderr) == (expected, "")


def test_the_ir_is_one_module(tmp_path):
    wave.lower(floats(8, 8), floats(8, 8)).export_c(tmp_path)
    text = (tmp_path / "wave.ll").read_text()
    assert text.count("target triple") == 1 and text.count("define") >= text.count("ag_task") + 1
    assert "define void @wave_k0_0(ptr" in text


def refusal(function, *args, name="f", folder="unused"):
    with pytest.raises((TypeError, ValueError)) as raised:
        ti.program(function).lower(*args).export_c(folder, name)
    return str(raised.value)


@ti.kernel
def doubled(a: ti.types.ndarray()):
    for i in range(a.shape[0]):
        a[i] *= 2


def test_what_needs_aerogel_is_refused():
    x = floats(6)

    def calls(x):
        y = x + 1
        doubled(y)
        return y

    said = refusal(calls, x)
    assert "calls `doubled`, a kernel or a function of Python" in said and "test_program_export.py:" in said
    said = refusal(t.sort, x)
    assert "`sort` calls a library of Aerogel" in said
    assert "`solve`" in refusal(t.linalg.solve, floats(3, 3), floats(3))
    field = ti.field(ti.f32, shape=6)
    assert "uses the field" in refusal(lambda x: x + t.asarray(field), x)
    assert "draws other random numbers" in refusal(lambda x: ti.nn.functional.dropout(x, 0.5), x)
    assert "calls `print_value`" in refusal(lambda x: p.print_value("x", x) or x, x)
    assert "without elements" in refusal(lambda x: x[3:], x[:3])
    for name in ("int", "ag_x", "2d", "a-b", "", "main", "write", "cosh", "printf"):
        assert "cannot be named" in refusal(lambda x: x, x, name=name)
    ti.init(arch=ti.interp, log_level="error")
    with pytest.raises(RuntimeError, match="arch=ti.cpu"):
        ti.program(lambda x: x + 1).lower(x).export_c("unused", "f")
    assert not os.path.exists("unused")


def test_sizes_are_those_of_the_call(tmp_path):
    @ti.program
    def inner(x, y):
        return (x[1:] * y).sum()

    inner.lower(floats(5), floats(4)).export_c(tmp_path)
    with pytest.raises(ValueError, match="4"):
        inner.lower(floats(5), floats(7)).export_c(tmp_path)

    @ti.program
    def own():
        return p.input([-1], ti.f32) * 2

    with pytest.raises(TypeError, match="pass arrays of these sizes to `lower`"):
        own.lower().export_c(tmp_path)
    own.lower(floats(3)).export_c(tmp_path)
    assert "const float *" in (tmp_path / "own.h").read_text()
    assert math.isfinite(own(floats(3))[0].item())
