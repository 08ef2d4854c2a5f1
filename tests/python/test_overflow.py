"""Integer overflow under ``debug=True``: said once for each place and launch, and the program goes on."""

import aerogel as ti
import numpy as np
import pytest

CASES = [
    ("i32", "a + b", 2**31 - 1, 1, "Addition", "2147483647 + 1 does not fit `i32`, it becomes -2147483648"),
    ("i32", "a + b", -(2**31), -1, "Addition", "-2147483648 + -1"),
    ("i32", "a - b", -(2**31), 1, "Subtraction", "-2147483648 - 1"),
    ("i32", "a * b", 2**20, 2**20, "Multiplication", "1048576 * 1048576"),
    ("i32", "a << b", 3, 31, "Shift left", "3 << 31"),
    ("i32", "a << b", 1, 40, "Shift left", "1 << 40"),
    ("u32", "a - b", 1, 2, "Subtraction", "1 - 2 does not fit `u32`, it becomes 4294967295"),
    ("u32", "a * b", 2**31, 2, "Multiplication", ""),
    ("u8", "a + b", 200, 100, "Addition", "200 + 100 does not fit `u8`, it becomes 44"),
    ("i8", "a * b", -128, -1, "Multiplication", ""),
    ("i64", "a + b", 2**63 - 1, 1, "Addition", ""),
    ("i64", "a * b", 2**62, 4, "Multiplication", ""),
    ("i64", "a * b", -(2**63), -1, "Multiplication", ""),
    ("i64", "a * b", -1, -(2**63), "Multiplication", ""),
    ("u64", "a * b", 2**63, 2, "Multiplication", ""),
    ("i64", "a << b", 1, 63, "Shift left", ""),
]
FINE = [
    ("i32", "a + b", 2**31 - 1, 0),
    ("i32", "a + b", -(2**31), 2**31 - 1),
    ("i32", "a - b", -1, 2**31 - 1),
    ("i32", "a * b", -(2**16), 2**15),
    ("i32", "a << b", 1, 30),
    ("i32", "a << b", -1, 31),
    ("u32", "a << b", 1, 31),
    ("i64", "a * b", 0, 5),
    ("i64", "a * b", 5, 0),
    ("i64", "a * b", -(2**63), 1),
    ("u64", "a - b", 7, 7),
]


def kernel(ty, text):
    """``a op b`` as a kernel; its source is this file's, so each has lines of its own."""
    t = getattr(ti, ty)

    def add(a: t, b: t) -> t:
        return a + b

    def subtract(a: t, b: t) -> t:
        return a - b

    def multiply(a: t, b: t) -> t:
        return a * b

    def shift(a: t, b: t) -> t:
        return a << b

    return ti.kernel({"a + b": add, "a - b": subtract, "a * b": multiply, "a << b": shift}[text])


@pytest.mark.parametrize("ty, text, a, b, what, values", CASES)
def test_reported(arch, capfd, ty, text, a, b, what, values):
    ti.init(arch=arch, debug=True, log_level="error")
    exact = {"+": a + b, "-": a - b, "*": a * b, "<<": a << (b % int(ty[1:]))}[text.split()[1]]
    assert kernel(ty, text)(a, b) == int(np.array(exact % 2 ** int(ty[1:]), object).astype("uint64").astype(ty_of(ty)))
    said = capfd.readouterr().out
    assert said.startswith(f"{what} overflow detected: {values}")
    assert "test_overflow.py:" in said and f"return {text}" in said and "^^^^" in said


def ty_of(name):
    return {"i": "int", "u": "uint"}[name[0]] + name[1:]


@pytest.mark.parametrize("ty, text, a, b", FINE)
def test_not_reported(arch, capfd, ty, text, a, b):
    ti.init(arch=arch, debug=True, log_level="error")
    kernel(ty, text)(a, b)
    assert capfd.readouterr().out == ""


def test_only_in_debug_mode(arch, capfd):
    ti.init(arch=arch, log_level="error")
    assert kernel("i32", "a + b")(2**31 - 1, 1) == -(2**31)
    assert capfd.readouterr().out == ""


def test_vectors_fields_and_stores(arch, capfd):
    ti.init(arch=arch, debug=True, log_level="error")
    x, small = ti.Vector.field(3, ti.i32, 1000), ti.field(ti.u8, 4)

    @ti.kernel
    def vectors(n: ti.i32):
        for i in x:
            x[i] = x[i] + ti.Vector([1, 2, n])

    @ti.kernel
    def changes():
        for i in x:
            x[0].x += 2**30

    @ti.kernel
    def stores(n: ti.i32):
        small[1] = n

    vectors(2**31 - 1)
    assert capfd.readouterr().out == ""
    vectors(1)
    # A thousand times, and said once.
    said = capfd.readouterr().out
    assert said.count("Addition overflow detected: 2147483647 + 1 does not fit `i32`") == 1
    changes()
    assert capfd.readouterr().out.count("Addition overflow detected") == 1
    stores(255)
    assert capfd.readouterr().out == ""
    stores(300)
    assert "Store overflow detected: 300 does not fit `u8`, it becomes 44" in capfd.readouterr().out
    stores(-1)
    assert "Store overflow detected: -1 does not fit `u8`, it becomes 255" in capfd.readouterr().out


def test_augmented_stores(arch, capfd):
    """What is added is converted first, what it is multiplied with afterwards: neither is lost without a word."""
    ti.init(arch=arch, debug=True, log_level="error")
    small = ti.field(ti.i8, 4)

    @ti.kernel
    def add(n: ti.i32):
        small[0] += n

    @ti.kernel
    def add_to_local(n: ti.i32):
        a = ti.i8(0)
        a += n
        small[1] = a

    @ti.kernel
    def multiply(n: ti.i32):
        small[2] *= n

    @ti.kernel
    def mask(n: ti.i32):
        small[3] &= n

    small[2] = 1
    for kernel in (add, add_to_local, multiply):
        kernel(100)
        assert capfd.readouterr().out == ""
        small.fill(1)
        kernel(200)
        assert "Store overflow detected: 200 does not fit `i8`, it becomes -56" in capfd.readouterr().out
    mask(0xFFFE)
    assert capfd.readouterr().out == ""


def test_the_library_says_nothing(capfd):
    """What the package's own functions do modulo 2^n is meant."""
    ti.init(debug=True, log_level="error")
    x = ti.field(ti.i32, 5000)
    y = ti.field(ti.f32, 5000)

    @ti.kernel
    def fill():
        for i in x:
            x[i] = ti.random(ti.i32)
            y[i] = ti.randn()

    fill()
    ti.algorithms.parallel_sort(x)
    ti.algorithms.parallel_sort(y)
    executor = ti.algorithms.PrefixSumExecutor(5000)
    x.fill(1)
    executor.run(x)
    assert capfd.readouterr().out == ""
