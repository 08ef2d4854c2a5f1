"""Functions: `return` anywhere, and real functions."""

import textwrap

import numpy as np
import pytest

import aerogel as ti


@ti.func
def first_at_least(x: ti.template(), bound):
    for i in range(8):
        if x[i] >= bound:
            return i
    return -1


@ti.func
def find(x: ti.template(), wanted):
    for i, j in ti.ndrange(4, 4):
        for k in range(3):
            if x[i, j] == wanted + k:
                return ti.Vector([i, j, k])
    return ti.Vector([-1, -1, -1])


@ti.func
def classify(x):
    if x < 0:
        if x < -10:
            return 1
        x = -x
    if x > 5:
        return 2
    while True:
        x += 1
        if x > 7:
            return x
    return 0


@ti.func
def static_search(x, values: ti.template()):
    for value in ti.static(values):
        if x == value:
            return True
    return False


@ti.func
def pair_until(n):
    total = 0
    for i in range(n):
        total += i
        if total > 10:
            return total, 0.5 * i
    return total, -1.0


@ti.func
def nothing_until(x: ti.template(), n):
    for i in range(8):
        if i == n:
            return
        x[i] = 1


def test_returns_inside_loops_of_functions(arch):
    x = ti.field(ti.i32, 8)
    y = ti.field(ti.i32, (4, 4))
    out = ti.field(ti.i32, 10)

    @ti.kernel
    def run() -> ti.f32:
        for i in x:
            x[i] = 3 * i
        for i, j in y:
            y[i, j] = 100 * i + 10 * j
        for k in range(10):
            out[k] = first_at_least(x, 4 * k)
        p = find(y, 209)
        total, half = pair_until(20)
        _, missed = pair_until(3)
        return p[0] * 100 + p[1] * 10 + p[2] + 1000 * total + 10000 * half + missed

    assert run() == 211 + 15000 + 25000 - 1
    assert out.to_numpy().tolist() == [0, 2, 3, 4, 6, 7, -1, -1, -1, -1]


def test_partial_returns(arch):
    out = ti.field(ti.i32, 5)

    given = ti.field(ti.i32, 5)

    @ti.kernel
    def play():
        for i in range(5):
            out[i] = classify(given[i])

    given.from_numpy(np.array([-20, -3, 9, -7, 2], dtype=np.int32))
    play()
    assert out.to_numpy().tolist() == [1, 8, 2, 2, 8]


def test_returns_in_unrolled_loops(arch):
    @ti.kernel
    def has(x: ti.i32) -> ti.i32:
        return static_search(x, (3, 5, 8))

    assert [has(k) for k in (3, 4, 5, 8, 9)] == [1, 0, 1, 1, 0]


def test_returns_without_a_value(arch):
    x = ti.field(ti.i32, 8)

    @ti.kernel
    def run(n: ti.i32):
        nothing_until(x, n)

    run(3)
    assert x.to_numpy().tolist() == [1, 1, 1, 0, 0, 0, 0, 0]


def test_kernels_return_from_anywhere(arch):
    x = ti.field(ti.i32, 16)

    @ti.kernel
    def run(n: ti.i32) -> ti.i32:
        if n < 0:
            return -1
        total = 0
        for i in range(16):
            x[i] += n
            total += n
        k = 0
        while True:
            k += 1
            if k * k > n:
                if n == 30:
                    return 1000
                break
        for i in range(16):
            ti.atomic_add(total, x[i])
        if n > 20:
            for j in range(5):
                if j == 3:
                    return j
        return total

    assert run(-2) == -1
    assert x.to_numpy().tolist() == [0] * 16
    assert run(2) == 16 * 4
    assert run(30) == 1000
    assert x.to_numpy().tolist() == [32] * 16
    assert run(40) == 3


def test_a_kernel_returns_from_a_loop_in_order(arch):
    x = ti.field(ti.i32, 16)
    seen = ti.field(ti.i32, ())

    @ti.kernel
    def first(wanted: ti.i32) -> ti.i32:
        ti.loop_config(serialize=True)
        for i in range(16):
            seen[None] += 1
            if x[i] == wanted:
                return i
        for i in range(16):
            x[i] = wanted
        return -1

    x[5] = 7
    assert (first(7), seen[None]) == (5, 6)
    assert x[0] == 0
    assert (first(9), seen[None]) == (-1, 22)
    assert x[0] == 9


def test_what_was_deactivated_is_collected_though_the_kernel_returned(arch):
    x = ti.field(ti.i32)
    block = ti.root.pointer(ti.i, 64)
    block.dense(ti.i, 64).place(x)

    @ti.kernel
    def cycle(early: ti.i32) -> ti.i32:
        for i in range(64 * 64):
            x[i] = i
        for k in block:
            ti.deactivate(block, [k])
        if early:
            ti.deactivate(block, [3])
            return 1
        for i in range(64):
            x[i] = 5
        return 2

    for turn in range(8):
        assert cycle(turn % 2) == 2 - turn % 2
        assert x[100] == 0


def test_a_parallel_loop_cannot_be_left(arch):
    @ti.kernel
    def run(n: ti.i32) -> ti.i32:
        for i in range(n):
            if i == 3:
                return i
        return 0

    with pytest.raises(ti.TaichiSyntaxError, match="`return` inside a parallel loop is not supported"):
        run(3)


def test_every_path_must_return(arch):
    @ti.func
    def sometimes(x):
        for i in range(3):
            if i == x:
                return i

    @ti.kernel
    def inlined() -> ti.i32:
        return sometimes(2)

    @ti.kernel
    def itself(n: ti.i32) -> ti.i32:
        if n > 3:
            return 1

    @ti.real_func
    def called(n: ti.i32) -> ti.i32:
        if n > 3:
            return 1

    @ti.kernel
    def calls(n: ti.i32) -> ti.i32:
        return called(n)

    with pytest.raises(ti.TaichiSyntaxError, match="`sometimes` does not return a value on every path"):
        inlined()
    for kernel in (itself, calls):
        with pytest.raises(ti.TaichiSyntaxError, match="does not return on every path"):
            kernel(2)


@ti.real_func
def fib(n: ti.i32) -> ti.i32:
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)


@ti.real_func
def is_even(n: ti.i32) -> bool:
    if n == 0:
        return True
    return is_odd(n - 1)


@ti.real_func
def is_odd(n: ti.i32) -> bool:
    if n == 0:
        return False
    return is_even(n - 1)


@ti.real_func
def endless(n: ti.i32) -> ti.i32:
    return endless(n + 1) + 1


@ti.real_func
def count_up(x: ti.ref(ti.i32), by: ti.i32):
    if by == 0:
        return
    x += by
    count_up(x, by - 1)


@ti.real_func
def swap(a: ti.ref(ti.f32), b: ti.ref(ti.f32)):
    a, b = b, a


@ti.func
def bounded(x):
    y = x
    if x > 10:
        y = 10
    return y


@ti.real_func
def calls_inlined(x: ti.i32) -> ti.i32:
    return bounded(x) + bounded(x - 5)


Ray = ti.types.struct(origin=ti.math.vec3, direction=ti.math.vec3, depth=ti.i32)
Hit = ti.types.struct(ray=Ray, at=ti.f32)


@ti.real_func
def trace(ray: Ray) -> Hit:
    if ray.depth == 0 or ray.origin.x > 5.0:
        return Hit(ray, ray.origin.norm())
    ray.origin += ray.direction
    ray.depth -= 1
    return trace(ray)


@ti.real_func
def divide(a: ti.i32, b: ti.i32) -> (ti.i32, ti.i32, ti.math.vec2):
    return a // b, a % b, ti.math.vec2(a, b)


@ti.real_func
def transpose(m: ti.math.mat2) -> ti.math.mat2:
    return m.transpose()


def test_recursion(arch):
    @ti.kernel
    def run(n: ti.i32) -> ti.i32:
        return fib(n)

    @ti.kernel
    def many(out: ti.types.ndarray()):
        for i in out:
            out[i] = fib(i)

    @ti.kernel
    def even(n: ti.i32) -> ti.i32:
        return is_even(n)

    assert run(20 if arch == "cpu" else 12) == (6765 if arch == "cpu" else 144)
    out = np.zeros(12, dtype=np.int32)
    many(out)
    assert out.tolist() == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89]
    assert [even(k) for k in (0, 7, 100)] == [1, 0, 1]


def test_endless_recursion_is_an_exception(arch):
    @ti.kernel
    def run() -> ti.i32:
        return endless(0)

    @ti.kernel
    def on_all_threads(x: ti.types.ndarray()):
        for i in x:
            x[i] = endless(i)

    with pytest.raises(ti.AerogelRecursionError, match="`endless` calls itself too deeply") as caught:
        run()
    assert "test_functions.py" in str(caught.value)
    with pytest.raises(RecursionError):
        on_all_threads(np.zeros(1000, dtype=np.int32))

    @ti.kernel
    def fine() -> ti.i32:
        return fib(7)

    assert fine() == 13


def test_references(arch):
    x = ti.field(ti.i32, 4)
    v = ti.Vector.field(2, ti.f32, 3)

    @ti.kernel
    def run(a: ti.types.ndarray()) -> ti.i32:
        local = 5
        count_up(local, 3)
        count_up(x[2], 4)
        count_up(a[1], 2)
        for i in range(4):
            count_up(x[i], 1)
        w = ti.Vector([1, 2, 3])
        count_up(w[1], 1)
        swap(v[1][0], v[1][1])
        f, g = 1.0, 2.0
        swap(f, g)
        return local + 100 * w[1] + 1000 * ti.cast(f, ti.i32)

    v[1] = [3, 4]
    a = np.zeros(3, dtype=np.int32)
    assert run(a) == 11 + 300 + 2000
    assert x.to_numpy().tolist() == [1, 1, 11, 1]
    assert a.tolist() == [0, 3, 0]
    assert v[1].to_list() == [4, 3]


def test_a_reference_to_a_cell_that_is_not_there_makes_it(arch):
    x = ti.field(ti.i32)
    block = ti.root.pointer(ti.i, 8)
    block.dense(ti.i, 4).place(x)

    @ti.kernel
    def run():
        for i in range(2):
            count_up(x[20 * i], 2)

    @ti.kernel
    def active() -> ti.i32:
        n = 0
        for i in block:
            n += 1
        return n

    run()
    assert (x[0], x[20], active()) == (3, 3, 2)


def test_what_a_reference_needs(arch):
    x = ti.field(ti.f32, 4)

    @ti.kernel
    def value():
        count_up(3, 1)

    @ti.kernel
    def other_type():
        count_up(x[0], 1)

    @ti.kernel
    def twice():
        a = 1.0
        swap(a, a)

    @ti.kernel
    def shared():
        a = 1
        for i in range(3):
            count_up(a, 1)

    for kernel, message in [
        (value, "a variable or an element is needed"),
        (other_type, "refers to `i32`, not `f32`"),
        (twice, "one variable by reference twice"),
        (shared, "a variable that all iterations share"),
    ]:
        with pytest.raises(ti.TaichiTypeError, match=message):
            kernel()


def test_values_of_all_kinds(arch):
    @ti.kernel
    def structs() -> Hit:
        return trace(Ray(ti.math.vec3(0, 1, 0), ti.math.vec3(1, 0, 0), 10))

    @ti.kernel
    def tuples() -> ti.f32:
        q, r, v = divide(17, 5)
        return q * 100 + r * 10 + v.x / v.y

    @ti.kernel
    def matrices() -> ti.math.mat2:
        return transpose(ti.Matrix([[1, 2], [3, 4]]))

    hit = structs()
    assert hit.ray.origin.to_list() == [6, 1, 0]
    assert hit.ray.depth == 4
    assert hit.at == pytest.approx(37**0.5)
    assert tuples() == pytest.approx(323.4)
    assert matrices().to_list() == [[1, 3], [2, 4]]


def test_inlined_functions_inside_real_ones(arch):
    @ti.kernel
    def run(x: ti.i32) -> ti.i32:
        return calls_inlined(x)

    assert [run(k) for k in (3, 12, 40)] == [1, 17, 20]


def test_fields_change_during_calls(arch):
    x = ti.field(ti.i32, 4)

    @ti.real_func
    def change(i: ti.i32) -> ti.i32:
        x[i] += 1
        if i < 2:
            return change(i + 1)
        return x[0]

    @ti.kernel
    def run() -> ti.i32:
        before = x[0]
        x[1] = 10
        got = change(0)
        return before + 10 * x[0] + 100 * x[1] + 10000 * got

    assert run() == 0 + 10 + 1100 + 10000
    assert x.to_numpy().tolist() == [1, 11, 1, 0]

    @ti.kernel
    def count():
        for i in range(1000):
            change(2)

    count()
    assert x[2] == 1001


def test_arrays_and_templates(arch):
    x = ti.field(ti.i32, 4)
    y = ti.field(ti.i32, 4)

    @ti.real_func
    def put(a: ti.types.ndarray(), f: ti.template(), n: ti.template(), i: ti.i32):
        a[i] += f[i] * n
        if i > 0:
            put(a, f, n, i - 1)

    @ti.kernel
    def run(a: ti.types.ndarray(), b: ti.types.ndarray()):
        put(a, x, 2, 3)
        put(b, y, 3, 2)

    for i in range(4):
        x[i], y[i] = i, 10 * i
    a, b = np.zeros(4, dtype=np.int32), np.ones(4, dtype=np.int32)
    run(a, b)
    assert a.tolist() == [0, 2, 4, 6]
    assert b.tolist() == [1, 31, 61, 1]


def test_defaults_keywords_and_conversions(arch):
    @ti.real_func
    def scale(x: ti.i32, by: ti.i32 = 3) -> ti.i32:
        return x * by + 0.5

    @ti.kernel
    def run() -> ti.i32:
        return scale(2) + 100 * scale(by=4, x=5.9)

    assert run() == 2006


def test_methods(arch):
    @ti.data_oriented
    class Tree:
        def __init__(self, n):
            self.left = ti.field(ti.i32, n)
            self.right = ti.field(ti.i32, n)

        @ti.real_func
        def depth(self, node: ti.i32) -> ti.i32:
            if node < 0:
                return 0
            return 1 + ti.max(self.depth(self.left[node]), self.depth(self.right[node]))

        @ti.kernel
        def run(self) -> ti.i32:
            return self.depth(0)

    tree = Tree(4)
    tree.left.from_numpy(np.array([1, 2, -1, -1], dtype=np.int32))
    tree.right.from_numpy(np.array([-1, 3, -1, -1], dtype=np.int32))
    assert tree.run() == 3


def test_checks_in_debug_mode(debug):
    x = ti.field(ti.i32, 4)

    @ti.real_func
    def read(i: ti.i32) -> ti.i32:
        assert i != 2, "two is not allowed"
        return x[i]

    @ti.kernel
    def run(i: ti.i32) -> ti.i32:
        return read(i)

    assert run(3) == 0
    with pytest.raises(ti.TaichiAssertionError, match="two is not allowed"):
        run(2)
    with pytest.raises(ti.TaichiAssertionError, match="out of bounds"):
        run(7)
    assert run(1) == 0


def test_annotations_are_needed(arch):
    @ti.real_func
    def bare(x) -> ti.i32:
        return x

    @ti.kernel
    def run() -> ti.i32:
        return bare(2)

    with pytest.raises(
        ti.TaichiSyntaxError, match="parameter `x` of the real function `bare`.* needs a type annotation"
    ):
        run()


def test_annotations_of_inlined_functions(arch):
    S = ti.types.struct(a=ti.i32)

    @ti.func
    def scalar(x: ti.i32, y: float):
        return x + y

    @ti.func
    def result(x) -> ti.i32:
        return x

    @ti.func
    def vector(v: ti.math.ivec2):
        return v

    @ti.func
    def struct(s: S):
        return s.a

    @ti.kernel
    def run() -> ti.f32:
        v = vector(ti.Vector([1.5, 2.5])) + vector([1, 2])
        return scalar(3.7, 2) + result(2.9) * 10 + v.sum() * 100 + struct(S(4)) * 10000

    assert run() == 5 + 20 + 700 + 40000

    @ti.kernel
    def wrong_shape() -> ti.i32:
        return vector(ti.Vector([1, 2, 3])).sum()

    with pytest.raises(ti.TaichiTypeError, match="cannot use `vec<3, i32>` as `vec<2, i32>`"):
        wrong_shape()


def test_rounding_of_constants(arch):
    @ti.kernel
    def run(x: ti.f32) -> ti.math.vec4:
        return ti.math.vec4(ti.round(2.5), ti.math.round(x), round(2.5), round(x))

    assert run(2.5).to_list() == [3, 3, 2, 3]


def test_references_by_indices_of_either_width(arch):
    x = ti.field(ti.i32, 8, offset=-4)

    @ti.real_func
    def add(n: ti.ref(ti.i32), m: ti.i32) -> ti.i32:
        n += m
        if m > 0:
            return add(n, m - 1)
        return n

    @ti.kernel
    def k(i: ti.i32, j: ti.i64):
        for _ in range(1):
            add(x[j], 2)
            add(x[i], 1)

    k(-1, -2)
    assert x.to_numpy().tolist() == [0, 0, 3, 1, 0, 0, 0, 0]


def test_how_many_members_a_dictionary_has(arch):
    @ti.kernel
    def k(n: ti.i32) -> ti.i32:
        d = {"a": n, "b": 2}
        return len(d) + len({n_: n for n_ in range(5)})

    assert k(3) == 7


def test_arrays_pass_through_functions_that_do_not_use_them(arch):
    @ti.real_func
    def element(a: ti.types.ndarray(ndim=2), i: int, j: int) -> ti.math.vec2:
        return a[i, j]

    @ti.real_func
    def both(a: ti.types.ndarray(ndim=2), i: int, j: int) -> ti.math.vec2:
        return element(a, i, j) + element(a, j, i)

    @ti.kernel
    def run(a: ti.types.ndarray(ndim=2), b: ti.types.ndarray(ndim=2)):
        for i, j in b:
            b[i, j] = both(a, i, j)

    a = np.arange(32, dtype=np.float32).reshape(4, 4, 2)
    x, y = (ti.Vector.ndarray(2, ti.f32, (4, 4)) for _ in range(2))
    x.from_numpy(a)
    run(x, y)
    assert np.array_equal(y.to_numpy(), a + a.transpose(1, 0, 2))


def _halved(v):
    if v > 3:
        return v / 2
    return v * 1.0


class _Scale:
    def __init__(self, by):
        self.by = by

    def apply(self, v):
        return v * self.by


def test_python_functions_are_lowered_with_a_warning(arch, capsys):
    """One without `@ti.func` is part of the kernel if it takes what is computed there; other calls are made once."""
    scale = _Scale(3)

    @ti.kernel
    def run(x: ti.f32) -> ti.f32:
        return scale.apply(_halved(x)) + _halved(8)

    ti.set_logging_level("warn")
    assert run(10.0) == 19.0
    ti.set_logging_level("error")
    said = capsys.readouterr().err
    for name in ("_halved", "apply"):
        assert said.count(f"`{name}` is a Python function: the kernel has it as if it were decorated") == 1
    assert run(2.0) == 10.0


def test_lambdas_and_functions_of_libraries_take_constants_only(arch):
    twice = lambda v: v * 2  # noqa: E731

    @ti.kernel
    def by_lambda(x: ti.f32) -> ti.f32:
        return twice(x)

    @ti.kernel
    def by_library(x: ti.i32) -> ti.i32:
        return textwrap.dedent(x)

    for kernel in (by_lambda, by_library):
        with pytest.raises(ti.TaichiTypeError, match="cannot take a value that is computed when the kernel runs"):
            kernel(1)
