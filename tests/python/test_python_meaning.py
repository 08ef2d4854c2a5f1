"""What a kernel means where Python and Taichi say so: choices that are known, lists, assertions, names in expressions."""

import numpy as np
import pytest

import aerogel as ti

FLAG, OFF, NOTHING, PAIR = True, False, None, (1, 2)


def choices():
    @ti.kernel
    def number(x: ti.f32) -> ti.f32:
        v = 0 if FLAG else x
        v += 0.5
        return v

    @ti.kernel
    def shift(x: ti.i32, y: ti.i16) -> ti.i32:
        return (x if 5 == 1 else y) << 19

    @ti.kernel
    def within_static(x: ti.f32) -> ti.f32:
        v = 0 if ti.static(FLAG) else x
        v += 0.5
        w = ti.static(0 if FLAG else x)
        return v + w

    @ti.kernel
    def vector(x: ti.f32) -> ti.f32:
        v = ti.Vector([1, 1]) if FLAG else ti.Vector([x, 3.0])
        v += 0.5
        w = 0 if FLAG else ti.Vector([1.0, x])
        w += 0.5
        return v.sum() + w.sum()

    @ti.kernel
    def narrow() -> ti.f32:
        v = ti.i8(3) if FLAG else 0.25
        v += 0.5
        return v

    @ti.kernel
    def two_constants() -> ti.i32:
        v = 0 if FLAG else 1.0
        v += 0.5
        return v

    @ti.kernel
    def nested(x: ti.f32) -> ti.f32:
        v = 1 if FLAG else 2 if OFF else x
        v += 0.5
        return v

    return number(2.0), shift(1, 100), within_static(2.0), vector(2.0), narrow(), two_constants(), nested(1.0)


def test_known_choices_have_the_type_of_both(arch):
    # Taichi: 0.5, -, 0, 4, 3.5, 0
    assert choices() == (0.5, 100 << 19, 0.0, 4.0, 3.5, 0, 1.5)


def test_and_or_of_what_is_known(arch):
    @ti.kernel
    def f(x: ti.i16, y: ti.f32, out: ti.types.ndarray(ndim=1)):
        out[0] = (1 and x) << 10
        out[1] = (0 or x) << 10
        out[2] = 3 or x
        v = 3 or y
        v += 0.5
        out[3] = v
        out[4] = OFF or y

    out = np.zeros(5)
    f(100, 2.5, out)
    assert out.tolist() == [102400, 102400, 3, 3.5, 2.5]


def test_what_is_not_chosen_does_nothing(arch):
    calls = []
    n = ti.field(int, shape=())

    def python():
        calls.append(1)
        return 1.5

    @ti.func
    def count():
        n[None] += 1
        return 2.5 * n[None]

    @ti.real_func
    def real(x: float) -> float:
        n[None] += 1
        return x

    @ti.func
    def factorial(k: ti.template()):
        return 1 if k == 0 else k * factorial(k - 1)

    @ti.kernel
    def f(x: ti.f32) -> ti.f32:
        v = 1 if FLAG else count()
        v += 0.5
        w = 1 if FLAG else python() * x
        u = 1 if FLAG else real(x)
        u += 0.5
        return v + w + u + NOTHING.x if OFF else v + w + u

    @ti.kernel
    def g() -> ti.i32:
        return factorial(4)

    assert f(3.0) == 4.0
    assert (n[None], calls) == (0, [])
    assert g() == 24


def test_shapes_that_differ_and_what_is_no_number(arch):
    x, y = ti.field(int, 3), ti.field(float, 3)

    @ti.kernel
    def f(a: ti.f32) -> ti.f32:
        v = ti.Vector([1, 2]) if FLAG else ti.Vector([a, a, a])
        field = x if FLAG else y
        name = "a" if FLAG else a
        row = [1, 2] if FLAG else [a, a]
        row[0] += 0.5
        w = NOTHING if FLAG else a
        return v[1] + field[0] + (name == "a") + row[0] + (w is None)

    assert f(1.0) == 5.5


def list_case(text):
    """The same function in a kernel and in Python."""
    lines = "\n    ".join(part.strip() for part in text.split(";"))
    import linecache

    name = f"<case {text}>"
    source = f"import aerogel as ti\nN = 2\ndef f(x: ti.f32) -> ti.f32:\n    {lines}\n"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    scope = {}
    exec(compile(source, name, "exec"), scope)
    return ti.kernel(scope["f"]), scope["f"]


@pytest.mark.parametrize(
    "text",
    [
        "row = [x, 2.0] * 2; return row[0] * 10 + len(row)",
        "row = (x, 2.0) * 2; return row[3] * 10 + len(row)",
        "row = 2 * [x, 2.0]; return row[2] * 10 + len(row)",
        "row = [x, 2.0] * N; return row[2] * 10 + len(row)",
        "row = [x, 2.0] * True; return len(row)",
        "return len((x, 2.0) * 0) + len([x] * -1)",
        "row = [1, 2]; return len(row * 2)",
        "return len([[x, 1.0], [2.0, 3.0]] * 2)",
        "return ([[x, 1.0], [2.0, 3.0]] * 2)[2][0]",
        "return len((x, 2.0) + (1.0, x))",
        "row = [x, 2.0, 5.0][1:] * 2; return len(row) * 10 + row[2]",
        "row = [x, 2.0, 5.0]; row[0:2] = [7.0, 8.0]; return row[0] + row[1] * 10 + row[2] * 100",
        "return len([x, 2.0][2:])",
        "return [x, 2.0] == [x, 2.0]",
        "return (x, 2.0) != (x, 2.5)",
        "return (x, 2.0) == [x, 2.0]",
        "return [x] == []",
        "return [x] == [None]",
        "return [x, [1.0, x]] == [x, [1.0, 3.0]]",
        "return [x, 2.0] < [x, 3.0]",
        "return [x, 2.0] <= [x, 2.0]",
        "return (x, 2.0) > (x,)",
        "return (x, 2.0) < (x,)",
        "return (x, 2.0) >= (4.0, 1.0)",
        "return x in [1.0, 3.0]",
        "return x not in (1.0, 3.0)",
        "return 5.0 in [x, 1.0]",
        "return x in []",
        "return None in [x, None]",
        'return x in ["a", 3.0]',
        "row = [1, 2]; return 2 in row",
        "row = [1, 2]; return row == [1, 2]",
        'return "a" in "abc"',
        'return {"a": 1}["a"] in (1, 2)',
    ],
)
def test_lists_as_in_python(arch, text):
    kernel, function = list_case(text)
    assert kernel(3.0) == function(3.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("row = [x, 2.0] + 1.0; return row[0]", "`\\+` is not defined for a list and a float in Python"),
        ("row = [x, 2.0] - [x, 1.0]; return row[0]", "`-` is not defined for a list and a list in Python"),
        ("row = -[x, 2.0]; return row[0]", "`-` is not defined for a list in Python"),
        ("row = -[1, 2]; return row[0]", "-"),
        ("row = [x] + (x,); return row[0]", "`\\+` is not defined for a list and a tuple in Python"),
        ("row = [x, 1.0] * 0.5; return row[0]", "`\\*` is not defined for a list and a float in Python"),
        ("row = [x, 1.0] ** 2; return row[0]", "`\\*\\*` is not defined for a list and an int in Python"),
        ("return (x, 2.0) @ (x, 2.0)", "`@` is not defined for a tuple and a tuple in Python"),
        ("return [x] < (x,)", "`<` is not defined for a list and a tuple in Python"),
        ("n = 2; row = [x, 2.0] * n; return row[0]", "how often a list is repeated"),
    ],
)
def test_what_python_does_not_have_is_a_mistake(arch, text, message):
    kernel, _ = list_case(text)
    with pytest.raises(ti.AerogelTypeError, match=message):
        kernel(3.0)


def test_lists_beside_vectors_and_computed_numbers(arch):
    @ti.kernel
    def f(x: ti.f32) -> ti.f32:
        v = ti.Vector([x, 2.0]) * [x, 1.0] + [1.0, x]
        w = [x, 1.0] * ti.Vector([1.0, 2.0]) + [1.0, 2.0] * x - (1.0, 1.0) / x
        u = ti.Vector([x, 2.0] * 2)
        top = ti.Vector([ti.u32(7)] * 3, ti.u32)
        return v.sum() + w.sum() + u[2] + top[2] + (ti.Vector([x, 1.0]) * 2).sum()

    x = 3.0
    right = (x * x + 1) + (2 + x) + (x + x - 1 / x) + (2 + 2 * x - 1 / x) + x + 7 + 2 * x + 2
    assert abs(f(x) - right) < 1e-4


def test_assertions_that_do_something(arch):
    n = ti.field(int, shape=())

    @ti.real_func
    def add(k: int) -> int:
        n[None] += k
        return 0

    @ti.func
    def grow(k):
        n[None] += k
        return True

    @ti.kernel
    def f() -> int:
        assert add(15) == 0
        assert grow(10) and add(1) == 0, "never"
        assert (k := n[None]) == 26
        return k

    assert f() == 26
    assert n[None] == 26


def test_names_in_conditions(arch):
    @ti.kernel
    def loop(x: int) -> int:
        s = x
        while (z := s - 1) > 3:
            s = z
        return s * 100 + z

    @ti.kernel
    def both(x: int) -> int:
        n = 0
        while (a := x - n) > 2 and (b := a * 2) > 8:
            n += 1
            while (c := b - n) > 100:
                n += c
        return n * 10000 + a * 100 + b

    @ti.kernel
    def arms(x: int) -> int:
        r = 0
        if x > 0 and (y := x * 2) > 5 or (w := x + 1) == 3:
            r = 1
        t = (u := x) if x > 1 else (u := 7)
        return r + y * 10 + w * 100 + u * 1000 + t * 10000

    @ti.kernel
    def elsewhere(x: int) -> int:
        v = [(q := k * x) + 1 for k in ti.static(range(3))]
        s = 0
        for i in range(m := x):
            s += i
        for j in ti.static(range(known := 3)):
            s += j
        w = ti.Vector([(p := x * 3), p + 1])
        return v[2] + q * 10 + s * 100 + m * 10000 + w[1] * 100000 + known

    pair = ti.types.struct(a=ti.i32, b=ti.i32)

    @ti.kernel
    def structs(x: int) -> int:
        n = 0
        while (s := pair(x - n, n)).a > 2 and (r := [s.b, 7])[1] == 7:
            n += 1 + r[0] * 0
        return s.b * 10 + s.a + r[0] * 100

    @ti.kernel
    def known_conditions() -> int:
        v = [y for y in ti.static((1, 2, 3)) if (z := y) > 1]
        return v[0] * 100 + v[1] * 10 + z

    def python(x):
        v = [(q := k * x) + 1 for k in range(3)]
        return v[2] + q * 10 + (sum(range(x)) + 3) * 100 + x * 10000 + (x * 3 + 1) * 100000 + 3

    assert loop(9) == 403
    n = 0
    while (a := 9 - n) > 2 and (b := a * 2) > 8:
        n += 1
    assert both(9) == n * 10000 + a * 100 + b
    assert arms(3) == 1 + 60 + 0 + 3000 + 30000
    assert arms(1) == 0 + 20 + 200 + 7000 + 70000
    assert elsewhere(4) == python(4)
    assert known_conditions() == 233
    assert structs(5) == 30 + 2 + 200


def test_names_in_conditions_of_functions_and_parallel_loops(arch):
    out = ti.field(int, 8)

    @ti.func
    def halvings(x):
        n = 0
        while (h := x // 2) > 0:
            x = h
            n += 1
        return n

    @ti.kernel
    def f():
        for i in out:
            k = i
            while (d := k - 3) >= 0 and (e := d) >= 0:
                k = e
            out[i] = k * 10 + halvings(i)

    f()
    assert out.to_numpy().tolist() == [(i % 3) * 10 + max(i.bit_length() - 1, 0) for i in range(8)]


@pytest.mark.parametrize("n", [16, 17, 40])
def test_many_axes(arch, n):
    @ti.kernel
    def f(a: ti.types.ndarray()):
        for at in ti.grouped(a):
            a[at] += 1

    @ti.kernel
    def count(m: int) -> int:
        s = 0
        for _ in ti.grouped(ti.ndrange(*([m] * n))):
            s += 1
        return s

    a = np.zeros((1,) * (n - 2) + (2, 3), np.float32)
    f(a)
    assert a.sum() == 6
    assert count(1) == 1


def test_axes_that_fields_do_not_have(arch):
    with pytest.raises(ti.AerogelRuntimeError, match="12 axes"):
        ti.field(float, (1,) * 17)
    with pytest.raises(ValueError, match="12 axes"):
        ti.axes(*range(17))
    with pytest.raises(RuntimeError, match="12 axes"):
        ti.ndarray(float, (1,) * 17)
