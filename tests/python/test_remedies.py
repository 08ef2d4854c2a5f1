"""What is often tried first and is not how kernels do it: each message names what to write instead."""

import linecache

import numpy as np
import pytest

import aerogel as ti

COUNTER = iter(range(1000))

total: object = None
count = 3


def run(body, *args, params="", setup=""):
    """Runs a kernel with this body, as if it stood in a file."""
    text = f"{setup}\n@ti.kernel\ndef k({params}):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    path = f"remedy_{next(COUNTER)}.py"
    linecache.cache[path] = (len(text), None, text.splitlines(True), path)
    scope = {"ti": ti, "np": np, "x": ti.field(ti.f32, (4, 4)), "L": [1, 2], "c": 0, "__name__": "remedy"}
    exec(compile(text, path, "exec"), scope)
    scope["k"](*args)


WRONG = {
    "a list that grows": ("l = [1]\nl.append(2)", "", r"write it whole, as in `\[f\(i\) for i in range\(3\)\]`"),
    "an empty list": (
        "l = []\nfor i in range(3):\n    l.append(i)",
        "",
        "for data that grows at run time use a `dynamic`",
    ),
    "a determinant": (
        "m = ti.Matrix([[1.0, n], [0, 1]])\nd = np.linalg.det(m)",
        "n: int",
        "in kernels this is `a.determinant",
    ),
    "zeros": ("a = np.zeros(3)\na[0] = n", "n: int", "for a few numbers write `a = ti.Vector"),
    "so many zeros": ("a = np.zeros(n)", "n: int", r"`ti.Vector\(\[0.0, 0.0, 0.0\]\)` for small arrays"),
    "a dictionary that grows": ("d = {}\nd['a'] = n", "n: int", "a dictionary in a kernel is constant"),
    "a key of run time": ("d = {}\nfor i in range(n):\n    d[i] = n", "n: int", "use a vector or a field"),
    "a shape": ("for i, j in ti.ndrange(x.shape):\n    x[i, j] = n", "n: int", r"`ti.ndrange\(\*x.shape\)`"),
    "an index past the end": (
        "x[4, n] = n\nx[0, 4] = n",
        "n: int",
        r"index \(0, 4\) is out of bounds for the field `x` of",
    ),
    "an index from the end": ("x[-1, 0] = n", "n: int", r"write `x\[x.shape\[0\] - 1\]`"),
    "a list of Python's": ("L[0] = n", "n: int", "store values that a kernel modifies in a field"),
    "a global statement": ("global c\nc = n", "n: int", "store values that it changes in a field"),
    "numbers without end": ("v = ti.Vector([n] + [0] * 70000)", "n: int", "store the numbers in a field"),
    "a transpose": ("a = ti.Matrix([[n, 2], [3, 4]]).T", "n: int", r"write `A.transpose\(\)`"),
    "two brackets": ("for i in range(4):\n    x[i][0] = n", "n: int", r"all indices stand in one bracket: `x\[i, j\]`"),
}


@pytest.mark.parametrize("what", WRONG)
def test_the_message_names_the_remedy(cpu, what):
    body, params, message = WRONG[what]
    with pytest.raises(ti.TaichiCompilationError, match=message) as e:
        run(body, *[3] * bool(params), params=params)
    assert "remedy_" in str(e.value) and "^" in str(e.value)


ARRAYS = {
    "float64": (
        np.zeros(4),
        "ti.types.ndarray(ti.f32, 1)",
        r"pass `a.astype\(\"float32\"\)`, or .*ndarray\(dtype=ti.f64\)",
    ),
    "int64": (np.zeros(4, np.int64), "ti.types.ndarray(ti.u8, 1)", r"pass `a.astype\(\"uint8\"\)`"),
    "an array as a template": (np.zeros(4), "ti.template()", r"annotate a parameter `ti.types.ndarray\(\)`"),
}


@pytest.mark.parametrize("what", ARRAYS)
def test_arrays_that_are_passed_otherwise(cpu, what):
    array, annotation, message = ARRAYS[what]
    with pytest.raises((ti.TaichiCompilationError, ValueError), match=message):
        run("for i in a:\n    pass", array, params=f"a: {annotation}")


def test_a_field_is_no_array(cpu):
    x = ti.field(ti.f32, 4)
    with pytest.raises(TypeError, match=r"not a ScalarField; annotate the parameter `ti.template\(\)` to pass a field"):
        run("a[0] = 1", x, params="a: ti.types.ndarray()")
    assert x[0] == 0
    with pytest.raises(TypeError, match="a field cannot be accessed without a copy"):
        ti.from_dlpack(x)


@pytest.mark.parametrize(
    "annotation, message",
    [
        ("str", r"an argument that is not a number is a template, `a: ti.template\(\)`"),
        ("ti.field", r"a field is passed as `a: ti.template\(\)`"),
        ("np.ndarray", r"an array is passed as `a: ti.types.ndarray\(dtype=ti.f32, ndim=1\)`"),
        ("list", "a vector is passed as `a: ti.math.vec3`"),
        ("ti.Vector", "a vector is passed as `a: ti.math.vec3`"),
        ("dict", r"fields and other objects `a: ti.template\(\)`"),
    ],
)
def test_annotations_that_are_none(cpu, annotation, message):
    with pytest.raises(ti.TaichiSyntaxError, match=message):
        run("pass", params=f"a: {annotation}")


@pytest.mark.parametrize("body", ["self.n = 3", "self.new = 3", "self.n += 3"])
def test_members_of_an_object_of_pythons(cpu, body):
    setup = (
        "@ti.data_oriented\nclass A:\n    def __init__(self):\n        self.n = 2\n"
        f"    @ti.kernel\n    def set(self):\n        {body}\n"
    )
    with pytest.raises(
        ti.TaichiSyntaxError, match=r"is a Python object: a kernel cannot assign to it(.|\n)*ti.field\(int"
    ):
        run("pass", setup=setup + "A().set()")


def test_recursion_when_the_kernel_runs(cpu):
    setup = "@ti.func\ndef fib(n):\n    r = 1\n    if n > 1:\n        r = fib(n - 1) + fib(n - 2)\n    return r"
    with pytest.raises(ti.TaichiCompilationError, match="for recursion at run time use `@ti.real_"):
        run("x[0, 0] = fib(n)", 3, params="n: int", setup=setup)


@pytest.mark.parametrize("color", [(1, 0, 0), [1.0, 0.0, 0.0], (255, 0, 0), "red", "#ff0000"])
def test_colours_are_numbers(cpu, color):
    gui = ti.GUI("x", 16, show_gui=False)
    point = (0.5, 0.5)
    draws = [
        lambda: gui.circle(point, color=color),
        lambda: gui.circles(np.zeros((2, 2)), color=color),
        lambda: gui.line(point, point, color=color),
        lambda: gui.triangle(point, point, point, color=color),
        lambda: gui.text("a", point, color=color),
        lambda: gui.clear(color),
        lambda: ti.GUI("x", 16, show_gui=False, background_color=color),
    ]
    for draw in draws:
        with pytest.raises(ValueError, match="a colour is a number 0xRRGGBB.*0xff0000"):
            draw()
    gui.circles(np.zeros((3, 2)), color=np.array([0xFF0000, 0x00FF00, 0x0000FF]))
    gui.circles(np.zeros((3, 2)), color=0xFFFFFF * np.ones(3))


def test_what_is_read_once_is_told(cpu, capfd):
    ti.set_logging_level("warn")
    try:
        run("y = x.to_numpy()[0, 0] + x[0, 0]")
    finally:
        ti.set_logging_level("info")
    err = capfd.readouterr().err
    assert "to_numpy` is a Python function: it is called once, while the kernel is compiled" in err and "^^^" in err


def test_a_mistake_in_a_function_is_told_once(cpu):
    setup = "@ti.func\ndef f(a):\n    b = undefined + a\n    return b * 2"
    with pytest.raises(ti.TaichiCompilationError) as e:
        run("y = f(1.0)\nz = y + 1\nx[0, 0] = z\nw = f(2.0)\nv = w.foo", setup=setup)
    assert str(e.value).count("Error[") == 1


def test_an_index_that_is_not_reached_is_warned_of(cpu, capfd):
    x = ti.field(ti.i32, 4, offset=2)
    ti.set_logging_level("warn")

    @ti.kernel
    def k(n: ti.i32):
        if n > 6:
            x[6] = 1
        x[2] = n
        x[5] = n

    k(4)
    assert "warning: index (6) is out of bounds for the field `x` of shape (4)" in capfd.readouterr().err
    assert x.to_numpy().tolist() == [4, 0, 0, 4]


def test_a_name_of_pythons_that_becomes_a_variable_is_warned_of(cpu, capfd):
    global total
    total = ti.field(ti.f32, ())
    ti.set_logging_level("warn")

    @ti.kernel
    def k() -> ti.f32:
        total = 2.0
        count = count + 1  # noqa: F821, F823
        return total * count

    assert k() == 8 and total[None] == 0 and count == 3
    shown = capfd.readouterr().err
    assert "`total` is a new variable of the kernel" in shown and "`total[None] = ...`" in shown
    assert "`count` is a new variable of the kernel" in shown and "`count = ti.field(int, shape=())`" in shown


def test_where_the_kernel_is_whose_arguments_are_wrong(cpu):
    @ti.kernel
    def k(a: ti.i32, b: ti.types.ndarray(ti.f32, 1)):
        pass

    for args in [(1,), (1, 2, 3), ("x", np.zeros(3, np.float32)), (1, np.zeros(3))]:
        with pytest.raises((TypeError, ValueError, SyntaxError, RuntimeError)) as e:
            k(*args)
        notes = getattr(e.value, "__notes__", ["the kernel is `k(a, b)`, at test_remedies.py"])
        assert len(notes) == 1 and "the kernel is `k(a, b)`, at " in notes[0] and "test_remedies.py" in notes[0]


def test_an_init_that_is_never_called_is_warned_of(cpu, capfd):
    ti.set_logging_level("warn")

    @ti.dataclass
    class Ball:
        r: ti.f32

        def __init__(self, r):
            self.r = 2 * r

    assert "`Ball.__init__` is never called" in capfd.readouterr().err
    assert Ball(1.0).r == 1.0


@pytest.mark.parametrize("data", [[1, "a"], [[1, 2], [3, None]], [b"x"]])
def test_a_matrix_is_made_of_numbers(cpu, data):
    with pytest.raises(ti.TaichiTypeError, match="the components of a matrix are numbers, not "):
        ti.Matrix(data)


@pytest.mark.parametrize("level", [-1, 256])
def test_levels_of_optimisation(cpu, level):
    with pytest.raises(ValueError, match="opt_level is 0"):
        ti.init(opt_level=level)
    assert ti.field(ti.i32, 3).shape == (3,)


@pytest.mark.parametrize("dtype", ["f16", "f32"])
def test_numbers_that_would_become_infinite_are_refused(cpu, dtype):
    dtype = getattr(ti, dtype)
    large = np.array([1.0, 1e300, np.inf, np.nan])
    for x in (ti.field(dtype, 4), ti.ndarray(dtype, 4)):
        x.fill(3)
        with pytest.raises(ti.AerogelRuntimeTypeError, match=rf"1e\+300 does not fit an element of type {dtype}"):
            x.from_numpy(large)
        assert x.to_numpy().tolist() == [3] * 4
        x.from_numpy(large[[0, 2, 0, 2]])
        assert x.to_numpy().tolist() == [1, np.inf, 1, np.inf]
