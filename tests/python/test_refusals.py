"""What Python hands over and is refused: numbers that do not fit, lists without end; and what is only deep."""

import itertools
import linecache
import runpy

import numpy as np
import pytest

import aerogel as ti

NO_FIT = "does not fit an element of type"


def endless():
    value = [1]
    value.append(value)
    return value


def deep():
    value = ()
    for _ in range(20000):
        value = (value,)
    return value


def wide():
    """Few lists, but as many ways through them as there are atoms in a grain."""
    value = []
    for _ in range(30):
        value = [value, value]
    return value


CONTAINERS = [endless, deep, wide]
COUNT = itertools.count()


def kernel_of(*lines, **names):
    """A kernel of these lines, which needs no file."""
    path = f"/refusals/{next(COUNT)}.py"
    source = "".join(f"{line}\n" for line in lines)
    linecache.cache[path] = (len(source), None, source.splitlines(True), path)
    scope = {"ti": ti, **names}
    exec(compile(source, path, "exec"), scope)  # noqa: S102
    return scope["k"]


@pytest.mark.parametrize("make", [ti.field, ti.ndarray])
@pytest.mark.parametrize(
    "ty, lo, hi",
    [(ti.i8, -128, 127), (ti.u8, 0, 255), (ti.i32, -(2**31), 2**31 - 1), (ti.u32, 0, 2**32 - 1)]
    + [(ti.i64, -(2**63), 2**63 - 1), (ti.u64, 0, 2**64 - 1)],
)
def test_an_element_takes_what_fits(arch, make, ty, lo, hi):
    x = make(ty, 3)
    for number in (lo, hi, 1):
        x[1] = number
        assert x[1] == number
        x.fill(number)
        assert [x[i] for i in range(3)] == [number] * 3
    for number in (lo - 1, hi + 1, 2**70, -(2**70), 10**60):
        with pytest.raises(ti.TaichiRuntimeTypeError, match=NO_FIT):
            x[1] = number
        with pytest.raises(ti.TaichiRuntimeTypeError, match=NO_FIT):
            x.fill(number)
    for number in (1e30, -1e30, float("inf"), float("nan")):
        with pytest.raises(ti.TaichiRuntimeTypeError, match=NO_FIT):
            x.fill(number)
    assert [x[i] for i in range(3)] == [1, 1, 1]
    x.fill(2.0)
    assert x[2] == 2


def test_numbers_of_numpy_fit_or_do_not(arch):
    x = ti.field(ti.u8, 2)
    x[0] = np.int64(255)
    assert x[0] == 255
    with pytest.raises(ti.TaichiRuntimeTypeError, match=f"256 {NO_FIT} u8: its values are 0 to 255"):
        x[0] = np.int64(256)


@pytest.mark.parametrize("make", [ti.Vector.field, ti.Vector.ndarray])
def test_vectors_take_what_fits(arch, make):
    v = make(3, ti.i32, 2)
    v[0] = [1, 2, 3]
    with pytest.raises(ti.TaichiRuntimeTypeError, match=NO_FIT):
        v[0] = [1, 2, 2**40]
    with pytest.raises(ti.TaichiRuntimeTypeError, match=NO_FIT):
        v[0][2] = 2**40
    with pytest.raises(ti.TaichiRuntimeTypeError, match=NO_FIT):
        v.fill([0, 0, 2**40])
    with pytest.raises(ti.TaichiRuntimeTypeError, match=NO_FIT):
        v.fill(-(2**40))
    assert list(v[1]) == [0, 0, 0]
    v.fill([4, 5, 6])
    assert list(v[1]) == [4, 5, 6]


def test_matrices_and_structs_take_what_fits(arch):
    m = ti.Matrix.field(2, 2, ti.i32, 2)
    with pytest.raises(ti.TaichiRuntimeTypeError, match=NO_FIT):
        m[0] = [[1, 2], [3, 2**31]]
    with pytest.raises(ti.TaichiRuntimeTypeError, match=NO_FIT):
        m[0][1, 1] = 2**31
    s = ti.types.struct(a=ti.i32, b=ti.u8)
    f = s.field(shape=2)
    with pytest.raises(ti.TaichiRuntimeTypeError, match=NO_FIT):
        f[0].b = -1
    with pytest.raises(ti.TaichiRuntimeTypeError, match=NO_FIT):
        f[0] = s(a=1, b=256)
    with pytest.raises(ti.TaichiRuntimeTypeError, match=NO_FIT):
        f.b.fill(-1)
    f[1] = s(a=-5, b=255)
    assert (f[1].a, f[1].b) == (-5, 255)


@pytest.mark.parametrize("make", [ti.field, ti.ndarray])
def test_an_index_of_more_than_64_bits(arch, make):
    x = make(ti.i32, 4)
    for index in (2**64, -(2**64), (2**70,)):
        with pytest.raises(IndexError, match="out of range"):
            x[index] = 1


@pytest.mark.parametrize("container", CONTAINERS)
def test_containers_without_end_are_no_elements(arch, container):
    f, v = ti.field(ti.i32, 4), ti.Vector.field(3, ti.f32, 4)
    for target in (f, v, ti.ndarray(ti.i32, 4)):
        with pytest.raises((TypeError, ValueError)):
            target[0] = container()
        with pytest.raises((TypeError, ValueError)):
            target.fill(container())


@pytest.mark.parametrize("container", CONTAINERS)
def test_containers_without_end_are_no_arguments(arch, container):
    @ti.kernel
    def template(x: ti.template()):
        pass

    @ti.kernel
    def vector(x: ti.math.vec3):
        pass

    @ti.kernel
    def right(x: ti.template()) -> ti.i32:
        return x[1][0]

    for kernel in (template, vector):
        with pytest.raises(ValueError, match="nested|components|too many items"):
            kernel(container())
    assert right([1, (2, 3)]) == 2


@pytest.mark.parametrize("container", CONTAINERS)
def test_containers_without_end_are_no_constants(arch, container):
    captured = container()
    for line in ("x = captured[0]", "for x in ti.static(captured): pass", "x = len(captured)"):
        kernel = kernel_of("@ti.kernel", "def k():", f"    {line}", captured=captured)
        with pytest.raises(ti.TaichiTypeError, match="contains itself|more than 1048576 items") as error:
            kernel()
        assert "/refusals/" in str(error.value)


def test_items_of_items_in_templates_are_told_apart(arch):
    """What a tuple in a tuple holds by identity is kept as long as the instance is."""

    class Holder:
        def __init__(self, n):
            self.n = n

    @ti.kernel
    def k(x: ti.template()) -> ti.i32:
        return x[0][0].n

    for n in range(20):
        assert k(((Holder(n),),)) == n


def test_async_functions_are_refused(arch):
    kernel = kernel_of("@ti.kernel", "async def k():", "    pass")
    with pytest.raises(ti.TaichiSyntaxError, match="cannot be `async`"):
        kernel()
    kernel = kernel_of("@ti.func", "async def f():", "    return 1", "@ti.kernel", "def k():", "    x = f()")
    with pytest.raises(ti.TaichiSyntaxError, match="cannot be `async`"):
        kernel()


def test_types_without_components(arch):
    for make in (lambda: ti.types.vector(0, ti.f32), lambda: ti.types.matrix(2, -1, ti.f32)):
        with pytest.raises(ValueError, match="positive integer"):
            make()


def test_a_chain_of_functions_does_not_call_itself(arch):
    lines = ["@ti.func", "def f0(x):", "    return x + 1"]
    for n in range(1, 150):
        lines += ["@ti.func", f"def f{n}(x):", f"    return f{n - 1}(x) + 1"]
    lines += ["@ti.kernel", "def k(x: ti.i32) -> ti.i32:", "    return f149(x)"]
    assert kernel_of(*lines)(5) == 155


def test_a_chain_longer_than_the_stack_is_told(arch):
    lines = ["@ti.func", "def f0(x):", "    return x + 1"]
    for n in range(1, 5000):
        lines += ["@ti.func", f"def f{n}(x):", f"    return f{n - 1}(x) + 1"]
    lines += ["@ti.kernel", "def k(x: ti.i32) -> ti.i32:", "    return f4999(x)"]
    with pytest.raises(
        ti.TaichiCompilationError, match="nested function calls, with the expressions in them, are too many"
    ):
        kernel_of(*lines)(5)


def test_functions_that_double_have_an_end(arch):
    lines = ["@ti.func", "def f0(x):", "    return x + 1"]
    for n in range(1, 40):
        lines += ["@ti.func", f"def f{n}(x):", f"    return f{n - 1}(x) + f{n - 1}(x)"]
    lines += ["@ti.kernel", "def k(x: ti.i32) -> ti.i32:", "    return f39(x)"]
    with pytest.raises(ti.TaichiCompilationError, match="the kernel becomes too large"):
        kernel_of(*lines)(5)


def test_exit_in_a_function_of_python_is_heard(arch):
    def leave():
        raise SystemExit(3)

    @ti.kernel
    def k():
        x = ti.static(leave())  # noqa: F841

    with pytest.raises(SystemExit):
        k()


def test_a_long_chain_of_elif(arch):
    lines = ["@ti.kernel", "def k(n: ti.i32) -> ti.i32:", "    x = 0", "    if n == 0:", "        x = 7"]
    for n in range(1, 700):
        lines += [f"    elif n == {n}:", f"        x = {n * n}"]
    kernel = kernel_of(*lines, "    return x")
    assert [kernel(n) for n in (0, 1, 17, 699, 700)] == [7, 1, 289, 699 * 699, 0]


@pytest.mark.parametrize("change", ["ws.append(1)", "ws.extend([1, 2])", "ws.insert(0, 1)", "ws.sort()", "ws.clear()"])
@pytest.mark.parametrize("made", ["[]", "list()", "ti.static([])"])
def test_lists_known_while_compiling_do_not_grow(arch, change, made, tmp_path):
    """A change of the copy that a kernel has would be lost."""
    ti.init(arch=arch, log_level="error")
    (tmp_path / "grows.py").write_text(
        f"import aerogel as ti\n@ti.kernel\ndef k() -> ti.i32:\n    ws = {made}\n    {change}\n    return len(ws)\n"
    )
    scope = runpy.run_path(str(tmp_path / "grows.py"))
    with pytest.raises(ti.TaichiCompilationError, match="has no attribute"):
        scope["k"]()


def test_arrays_whose_numbers_do_not_fit():
    ti.init(log_level="error")
    small, whole = ti.field(ti.u8, 3), ti.ndarray(ti.i32, 3)
    for field, values in (
        (small, np.array([300, 1, 2])),
        (small, np.array([-1, 1, 2], np.int8)),
        (small, np.array([0.0, 256.0, 1.0])),
        (small, np.array([0.0, np.nan, 1.0])),
        (whole, np.array([2**40, 1, 2])),
    ):
        with pytest.raises(ti.TaichiRuntimeTypeError, match="does not fit an element"):
            field.from_numpy(values)
    small.from_numpy(np.array([255, 0, 7]))
    assert small.to_numpy().tolist() == [255, 0, 7]
    small.from_numpy(np.array([255.9, 0.0, 7.5]))
    assert small.to_numpy().tolist() == [255, 0, 7]
    whole.from_numpy(np.array([2**31 - 1, -(2**31), 0]))
    assert whole.to_numpy().tolist() == [2**31 - 1, -(2**31), 0]
