"""Mistakes in kernels: the kind of exception, the words, and the place."""

import linecache

import pytest

import aerogel as ti

NAMES = {"ti": ti}


def kernel(body, head="def k():"):
    """A kernel from its text."""
    text = f"@ti.kernel\n{head}\n" + "".join(f"    {line}\n" for line in body.split("\n"))
    path = f"/kernel_{abs(hash(text))}.py"
    linecache.cache[path] = (len(text), None, text.splitlines(True), path)
    names = dict(NAMES)
    exec(compile(text, path, "exec"), names)
    return names["k"]


@pytest.fixture
def fields(cpu):
    import math

    import numpy as np

    NAMES.update(
        x=ti.field(ti.f32, (4, 6), name="x"),
        n=ti.field(ti.i32, ()),
        v=ti.Vector.field(3, ti.f32, 5),
        math=math,
        np=np,
    )


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        ("a = undefined + 1", "Name", "name `undefined` is not defined"),
        ("if n[None] > 0:\n    a = 1\nn[None] = a", "Name", "exists only in the block that first assigns it"),
        ("x[0] = 1", "Index", "the field `x` has 2 axes, but 1 index is given"),
        ("x[0.5, 1] = 1", "Type", "an index must be an integer, not `f32`"),
        ("a = x + 1", "Type", "index it"),
        ("x[0, 0] = 'abc'", "Type", "not a string"),
        ("v[0] = [1, 2]", "Type", "the shapes differ"),
        ("v[0].w = 1", "Syntax", "has no component `w`"),
        ("a = ti.Vector([1, 2])[2]", "Index", "index 2 is out of range"),
        ("a = ti.Vector([1, 2]) + ti.Vector([1, 2, 3])", "Type", "the shapes differ"),
        ("a = ti.sin(n[None])", "Type", "`sin` needs a float, not `i32`"),
        ("a = n[None] & 1.5", "Type", "`&` needs integers"),
        ("if x[0, 0]:\n    pass", "Type", "a condition must be an integer or a boolean, not `f32`"),
        ("if v[0] > 0:\n    pass", "Type", "combine the elements"),
        ("while True:\n    pass\nelse:\n    pass", "Syntax", "`else` of a loop"),
        ("for i in range(3):\n    break", "Syntax", "`break` cannot leave a parallel loop"),
        ("for i in range(3):\n    i += 1", "Syntax", "the loop index `i` cannot be assigned to"),
        ("i = 0\nfor i in range(3):\n    pass", "Syntax", "hides a variable"),
        ("for i in x:\n    pass", "Syntax", "the loop has 2 indices but one name"),
        ("for i in [1, 2]:\n    pass", "Type", "to unroll the loop, write `for x in ti.static(...)`"),
        ("for i in ti.static(range(n[None])):\n    pass", "Type", "must be an integer known while compiling"),
        ("for i in ti.static(range(10**9)):\n    pass", "Compilation", "drop `ti.static` from the loop"),
        ("for i in range(3):\n    return", "Syntax", "`return` inside a parallel loop"),
        ("return 1", "Syntax", "annotate it"),
        ("a = [1] * 10**9", "Compilation", "has at most 1048576 items"),
        ("a = ti.Vector.zero(float, 10**9)", "Type", "the size of a matrix axis"),
        ("a = 3000000000 + n[None]", "Type", "out of the range of `i32`"),
        ("a = 1 // 0", "Compilation", "division of a constant by zero"),
        ("a = math.sin(x[0, 0])", "Type", "did you mean `ti.sin`?"),
        ("a = np.mean(v[0])", "Type", "functions for kernels are in `ti` and `ti.math`"),
        ("a = ti.nothing(1)", "Compilation", "has no attribute `nothing`"),
        ("x.nothing()", "Compilation", "has no attribute `nothing`"),
        ("a = (lambda: 1)()", "Syntax", 'unsupported node "Lambda"'),
        ("try:\n    pass\nfinally:\n    pass", "Syntax", 'unsupported node "Try"'),
        ("import os", "Syntax", 'unsupported node "Import"'),
        ("a = {1, 2}", "Syntax", 'unsupported node "Set"'),
        ("k()", "Syntax", "cannot be called from a kernel"),
        ("ti.static_assert(1 == 2, 'never')", "Compilation", "never"),
        ("a, b = ti.Vector([1, 2, 3])", "Syntax", "3 values cannot be unpacked into 2 names"),
        ("a = max()", "Type", "needs an argument"),
        ("ti.atomic_add(3, 1)", "Syntax", "modifies a variable or an element in place"),
    ],
)
def test_a_mistake_is_explained(fields, body, kind, words):
    with pytest.raises(getattr(ti, f"Taichi{kind}Error")) as caught:
        kernel(body)()
    text = str(caught.value)
    assert words in text
    assert "^" in text and ".py:" in text


def test_all_mistakes_are_told_once(fields):
    with pytest.raises(ti.TaichiCompilationError) as caught:
        kernel("a = one\nb = two\nfor i in ti.static(range(4)):\n    c = a + three\n    n[None] = c")()
    text = str(caught.value)
    assert [text.count(f"name `{name}`") for name in ("one", "two", "three")] == [1, 1, 1]
    assert text.count("-->") == 3


def test_deep_nesting_is_refused_and_long_chains_are_not(fields):
    head = "def k() -> ti.i32:"
    with pytest.raises(ti.TaichiSyntaxError, match="nested too deeply"):
        kernel("return " + "-" * 900 + "n[None]", head)()
    assert kernel("return 1 + " + " + ".join(["n[None]"] * 1000), head)() == 1


def test_the_place_is_the_users_inside_a_method_and_a_function(cpu):
    @ti.func
    def inner(a):
        return a + missing  # noqa: F821

    @ti.data_oriented
    class Thing:
        @ti.kernel
        def run(self) -> ti.i32:
            return inner(1)

    with pytest.raises(ti.TaichiNameError) as caught:
        Thing().run()
    text = str(caught.value)
    line = inner.__aerogel_func__.__code__.co_firstlineno + 2
    assert f"{__file__}:{line}:" in text
    assert "return a + missing" in text and "inlined" in text
