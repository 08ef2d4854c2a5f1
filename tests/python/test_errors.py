"""Mistakes in kernels, and kernels that fail: the kind of exception, the line, the caret."""

import linecache
import re
from types import SimpleNamespace
from pathlib import Path

import numpy as np
import pytest

import aerogel as ti


def caret(error):
    """The source text above the caret of an exception."""
    lines = str(error.value).splitlines()
    at = next(k for k, line in enumerate(lines) if re.match(r"\s*\|\s*\^+", line))
    start = lines[at].index("^")
    return lines[at - 1][start : start + lines[at].count("^")]


def test_unknown_name(arch):
    @ti.kernel
    def k():
        x = 1 + undefined_thing  # noqa: F821

    with pytest.raises(ti.TaichiNameError, match="undefined_thing") as e:
        k()
    assert caret(e) == "undefined_thing"
    assert "test_errors.py:" in str(e.value)
    with pytest.raises(NameError):
        k()


def test_syntax(cpu):
    @ti.kernel
    def with_try():
        try:
            pass
        except ValueError:
            pass

    @ti.kernel
    def with_lambda():
        f = lambda x: x  # noqa: E731

    @ti.kernel
    def with_else():
        for i in range(3):
            pass
        else:
            pass

    @ti.kernel
    def with_del():
        x = 1
        del x

    for k in (with_try, with_lambda, with_else, with_del):
        with pytest.raises(ti.TaichiSyntaxError, match="test_errors.py:"):
            k()


def test_types(cpu):
    x = ti.Vector.field(3, ti.f32, 4)

    @ti.kernel
    def shapes():
        for i in x:
            x[i] += ti.Vector([1.0, 2.0])

    @ti.kernel
    def condition() -> ti.i32:
        r = 0
        if 1.5 * x[0].x:
            r = 1
        return r

    for k in (shapes, condition):
        with pytest.raises(ti.TaichiTypeError) as e:
            k()
        assert "^" in str(e.value)


def test_break_of_a_parallel_loop(cpu):
    x = ti.field(ti.i32, 4)

    @ti.kernel
    def k():
        for i in x:
            if i == 2:
                break

    with pytest.raises(ti.TaichiSyntaxError, match="break"):
        k()


def test_all_mistakes_at_once(cpu):
    @ti.kernel
    def k():
        a = first_missing  # noqa: F821
        b = second_missing  # noqa: F821

    with pytest.raises(ti.TaichiNameError) as e:
        k()
    assert "first_missing" in str(e.value) and "second_missing" in str(e.value)


def test_mistake_in_a_function(cpu):
    @ti.func
    def inner(a):
        return a + nothing  # noqa: F821

    @ti.kernel
    def k() -> ti.i32:
        return inner(1)

    with pytest.raises(ti.TaichiNameError) as e:
        k()
    assert caret(e) == "nothing" and "inlined" in str(e.value)


def test_the_process_goes_on(arch):
    @ti.kernel
    def bad():
        nothing()  # noqa: F821

    @ti.kernel
    def good() -> ti.i32:
        return 3

    for _ in range(20):
        with pytest.raises(ti.TaichiCompilationError):
            bad()
        assert good() == 3


@pytest.mark.parametrize("index", [-1, 10, 1 << 20, -(1 << 30)])
def test_bounds_in_debug(debug, index):
    x = ti.field(ti.i32, 10)

    @ti.kernel
    def write(i: ti.i32):
        x[i] = 7

    with pytest.raises(ti.TaichiAssertionError, match=str(index)) as e:
        write(index)
    assert caret(e) == "x[i]"
    assert x.to_numpy().sum() == 0
    write(3)
    assert x[3] == 7


def test_bounds_of_arrays_in_debug(debug):
    @ti.kernel
    def write(a: ti.types.ndarray(), i: ti.i32, j: ti.i32):
        a[i, j] = 1

    a = np.zeros((2, 3), np.float32)
    for i, j in [(2, 0), (0, 3), (-1, 0)]:
        with pytest.raises(ti.TaichiAssertionError):
            write(a, i, j)
    assert a.sum() == 0
    write(a, 1, 2)
    assert a[1, 2] == 1


def test_assert(debug):
    @ti.kernel
    def k(a: ti.i32):
        assert a > 3, f"a is {a}"

    for _ in range(50):
        with pytest.raises(AssertionError, match="a is 2"):
            k(2)
        k(4)


def test_assert_costs_nothing_outside_debug(arch):
    @ti.kernel
    def k():
        assert 1 > 2

    k()


def test_division_by_zero_in_debug(debug):
    @ti.kernel
    def div(a: ti.i32, b: ti.i32) -> ti.i32:
        return a // b

    @ti.kernel
    def mod(a: ti.i32, b: ti.i32) -> ti.i32:
        return a % b

    for k in (div, mod):
        with pytest.raises(ZeroDivisionError, match="zero") as e:
            k(7, 0)
        assert "test_errors.py:" in str(e.value)
    assert div(-7, 2) == -4 and mod(-7, 2) == 1


@pytest.mark.parametrize("dtype", [ti.i8, ti.i16, ti.i32, ti.i64, ti.u8, ti.u32, ti.u64], ids=str)
def test_defined_arithmetic(arch, dtype):
    @ti.kernel
    def div(a: dtype, b: dtype) -> dtype:
        return a // b

    @ti.kernel
    def mod(a: dtype, b: dtype) -> dtype:
        return a % b

    @ti.kernel
    def left(a: dtype, b: dtype) -> dtype:
        return a << b

    bits, signed = int(str(dtype)[1:]), str(dtype)[0] == "i"

    def wrap(v):
        v &= (1 << bits) - 1
        return v - (1 << bits) if signed and v >> (bits - 1) else v

    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    values = sorted({low, low + 1, 0, 1, 2, 7, high - 1, high} | ({-1, -2, -7} if signed else set()))
    for a in values:
        for b in values:
            assert div(a, b) == (wrap(a // b) if b else 0), (a, b)
            assert mod(a, b) == (wrap(a % b) if b else 0), (a, b)
        for s in (0, 1, bits - 1):
            assert left(a, s) == wrap(a << s)


def test_failures_among_good_launches(debug):
    x = ti.field(ti.i32, 8)

    @ti.kernel
    def add(i: ti.i32):
        x[i] += 1

    failed = 0
    for k in range(400):
        try:
            add(k % 16)
        except ti.TaichiAssertionError:
            failed += 1
    assert failed == 200 and x.to_numpy().tolist() == [25] * 8


def test_not_a_number(arch):
    @ti.kernel
    def same(a: ti.f32) -> ti.i32:
        return int(a == a)

    @ti.kernel
    def quotient(a: ti.f32, b: ti.f32) -> ti.f32:
        return a / b

    assert same(float("nan")) == 0 and same(1.0) == 1
    assert np.isnan(quotient(0, 0)) and quotient(1, 0) == np.inf and quotient(-1, 0) == -np.inf


@pytest.mark.parametrize("target", ["interp", "cpu"])
@pytest.mark.parametrize("name", ["long_loop", "endless", "calls"])
def test_interrupt(name, target, tmp_path):
    """Ctrl-C ends a kernel, and the process goes on."""
    import os
    import signal
    import subprocess
    import sys
    import time

    program = tmp_path / "program.py"
    program.write_text(
        "import aerogel as ti\n"
        f"ti.init(arch='{target}', log_level='error')\n"
        "x = ti.field(ti.f32, 64)\n"
        "@ti.kernel\n"
        "def endless():\n"
        "    i = 0\n"
        "    while i >= 0:\n"
        "        i = (i + 1) % 1000\n"
        "        x[i % 64] += 1.0\n"
        "@ti.kernel\n"
        "def long_loop():\n"
        "    for i in range(2000000000):\n"
        "        for j in range(1000):\n"
        "            x[(i + j) % 64] += 1.0\n"
        "@ti.real_func\n"
        "def fib(n: ti.i32) -> ti.i32:\n"
        "    if n < 2:\n"
        "        return n\n"
        "    return fib(n - 1) + fib(n - 2)\n"
        "@ti.kernel\n"
        "def calls() -> ti.i32:\n"
        "    return fib(80)\n"
        "@ti.kernel\n"
        "def good() -> ti.i32:\n"
        "    return 3\n"
        "good()\n"
        "print('ready', flush=True)\n"
        "try:\n"
        f"    {name}()\n"
        "    ti.sync()\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', good(), flush=True)\n"
    )
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(p for p in sys.path if p))
    process = subprocess.Popen([sys.executable, program], env=env, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=20)[0] == "interrupted 3\n"
    finally:
        process.kill()


def test_fork():
    """A forked child runs kernels, old ones and new ones."""
    import os

    ti.init(arch=ti.cpu, log_level="error")
    x = ti.field(ti.f32, 100_000)

    @ti.kernel
    def fill(a: ti.f32):
        for i in x:
            x[i] = ti.sin(a * i)

    @ti.kernel
    def total() -> ti.f32:
        s = 0.0
        for i in x:
            s += x[i]
        return s

    fill(1.0)
    for _ in range(5):
        child = os.fork()
        if child == 0:
            fill(0.0)
            os._exit(0 if total() == 0 else 1)
        assert os.waitpid(child, 0)[1] == 0
    assert x[1] != 0
    ti.reset()


README = Path(__file__).parents[2] / "README.md"


@pytest.mark.skipif(not README.exists(), reason="the README is not here")
def test_the_message_in_the_readme_is_real(cpu, tmp_path, monkeypatch):
    message = next(b for b in README.read_text().split("```") if "AerogelTypeError" in b).strip()
    body = """\
import aerogel as ti

density = ti.field(ti.f32, shape=8)
position = ti.Vector.field(3, ti.f32, shape=8)
mass = 1.0


@ti.kernel
def accumulate():
    for i in density:
        r = position[i] - position[0]
        density[i] += mass * r


accumulate()
"""
    at = body.splitlines().index("        density[i] += mass * r") + 1
    monkeypatch.chdir(tmp_path)
    text = "\n" * (41 - at) + body
    Path("sph.py").write_text(text)
    with pytest.raises(ti.TaichiTypeError) as e:
        exec(compile(text, "sph.py", "exec"), {"__name__": "sph"})
    assert str(e.value).strip() == message


def test_an_assertion_without_words(debug):
    @ti.kernel
    def k(n: int):
        assert n < 3

    with pytest.raises(AssertionError, match="the assertion does not hold") as e:
        k(5)
    assert caret(e) == "n < 3"


@pytest.mark.parametrize(
    "expression, meant",
    [
        ("ti.sinn(1.0)", "sin"),
        ("ti.math.vec33(1.0)", "vec3"),
        ("v[0].nrom()", "norm"),
        ("v.shpae[0]", "shape"),
        ("s[0].pso", "pos"),
        ("s.pso[0]", "pos"),
        ("settings.stpes", "steps"),
    ],
)
def test_the_name_that_was_meant(cpu, expression, meant):
    class Settings:
        steps = 3

    scope = {
        "ti": ti,
        "v": ti.Vector.field(3, ti.f32, 4),
        "s": ti.Struct.field({"pos": ti.f32, "mass": ti.f32}, shape=4),
        "settings": Settings(),
    }
    source = f"@ti.kernel\ndef k():\n    a = {expression}\n"
    linecache.cache["meant.py"] = (len(source), None, source.splitlines(True), "meant.py")
    exec(compile(source, "meant.py", "exec"), scope)
    with pytest.raises(ti.TaichiCompilationError, match=f"did you mean `{meant}`?"):
        scope["k"]()


def test_whether_an_argument_was_given(arch):
    @ti.func
    def weighted(x, w=None):
        result = x
        if ti.static(w is not None):
            result = x * w
        return result

    @ti.kernel
    def k(n: ti.i32) -> ti.i32:
        return weighted(n) * 100 + weighted(n, n + 1)

    assert k(2) == 206


def test_a_dictionary_for_a_pack_has_its_members_only(arch):
    pack = ti.types.argpack(gravity=ti.f32, n=ti.i32)

    @ti.kernel
    def k(p: pack) -> ti.f32:
        return p.gravity * p.n

    assert k({"n": 2, "gravity": 1.5}) == 3
    for wrong in ({"n": 2, "gravity": 1.5, "gravty": 2}, {"n": 2, "gravity": 1.5, 3: 2}):
        with pytest.raises(ti.TaichiRuntimeTypeError, match=r"`p`.*has no member .*its members are `gravity`, `n`"):
            k(wrong)


def test_the_step_of_a_range_that_is_zero(debug):
    @ti.kernel
    def parallel(step: ti.i32) -> ti.i32:
        total = 0
        for i in range(0, 10, step):
            total += i
        return total

    @ti.kernel
    def serial(step: ti.i32) -> ti.i32:
        total = 0
        for _ in range(1):
            for i in range(0, 10, step):
                total += i
        return total

    for k in (parallel, serial):
        assert k(3) == 18
        with pytest.raises(ti.TaichiAssertionError, match="the step of a range is zero"):
            k(0)


def test_which_indices_there_are(debug):
    x = ti.field(ti.f32, (8, 4), offset=(-2, 0), name="x")

    @ti.kernel
    def k(i: ti.i32):
        x[i, 0] = 1

    k(5)
    with pytest.raises(ti.TaichiAssertionError, match=r"index \(6, 0\) .* `x` with indices \(-2 to 5, 0 to 3\)"):
        k(6)
    with pytest.raises(
        IndexError, match=r"index \(6, 0\) is out of range: the indices of the field `x` are -2 to 5, 0 to 3"
    ):
        x[6, 0]


def test_mistakes_of_form_are_syntax_errors(cpu):
    x = ti.field(ti.i32, 4)
    o = SimpleNamespace(a=3)

    @ti.kernel
    def swizzle() -> ti.f32:
        return ti.Vector([1.0, 2.0]).z

    @ti.kernel
    def atomic():
        ti.atomic_add(3, 4)

    @ti.kernel
    def sliced() -> ti.i32:
        return x[0:2]

    @ti.kernel
    def attribute():
        o.a = 5

    @ti.kernel
    def grouped():
        for i, j in ti.grouped(ti.ndrange(2, 3)):
            pass

    for kernel in (swizzle, atomic, sliced, attribute, grouped):
        with pytest.raises(ti.TaichiSyntaxError) as caught:
            kernel()
        assert "^" in str(caught.value), str(caught.value)
    with pytest.raises(ti.TaichiSyntaxError, match="lambda"):
        ti.kernel(lambda: 3)()


def test_an_integer_given_to_a_narrower_type_must_fit(cpu):
    low = -1

    @ti.kernel
    def a() -> ti.i32:
        return ti.i8(200)

    @ti.kernel
    def b() -> ti.i64:
        return ti.u32(low)

    @ti.kernel
    def c() -> ti.i32:
        return ti.i32(4294967295)

    for kernel in (a, b, c):
        with pytest.raises(ti.TaichiTypeError, match="is out of the range of"):
            kernel()

    @ti.kernel
    def fits() -> ti.i64:
        return ti.i8(-128) + ti.i64(ti.u32(0xFFFFFFFF)) + ti.cast(300, ti.u8)

    assert fits() == -128 + 0xFFFFFFFF + 44


def test_formats_that_do_not_fit_are_type_errors(cpu):
    @ti.kernel
    def k():
        print(f"{2.5:d}")

    with pytest.raises(ti.TaichiTypeError):
        k()


def test_a_negative_power_in_debug_mode_is_an_assertion(debug):
    @ti.kernel
    def k(a: ti.i32, b: ti.i32) -> ti.i32:
        return a**b

    for kind in (ti.TaichiAssertionError, ArithmeticError):
        with pytest.raises(kind):
            k(2, -1)
