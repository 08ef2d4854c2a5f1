"""Real functions: recursion, references, and values of all kinds."""

import numpy as np
import pytest

import aerogel as ti


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
    assert "test_real_functions.py" in str(caught.value)
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


@pytest.mark.parametrize("dtype", [ti.i32, ti.u8, ti.i64, ti.f32, ti.f64, ti.f16])
def test_atomics_through_references_to_variables_and_elements(arch, dtype):
    """A thread's own memory has no atomic operations on a GPU, and what is handed over may lie there or not."""

    @ti.real_func
    def change(a: ti.ref(dtype), by: dtype) -> dtype:
        old = ti.atomic_add(a, by)
        ti.atomic_max(a, 3)
        ti.atomic_mul(a, 2)
        return old

    x, y, total = ti.field(dtype, 8), ti.field(dtype, 8), ti.field(dtype, ())

    @ti.real_func
    def count(a: ti.ref(dtype)) -> dtype:
        return ti.atomic_add(a, 1)

    @ti.kernel
    def run():
        for i in x:
            own = ti.cast(i, dtype)
            old = change(own, 1)
            old += change(x[i], 2)
            y[i] = own * 10 + old
            count(total[None])

    run()
    assert x.to_numpy().tolist() == [6] * 8
    assert y.to_numpy().tolist() == [max(i + 1, 3) * 20 + i for i in range(8)]
    assert total[None] == 8


def test_returns_from_loops_and_from_some_paths_of_both_arms(arch):
    def search(v: ti.f32, n: ti.i32) -> ti.f32:
        if v < 0.5:
            if v < 0.25:
                return 3.0
            else:
                if n > 4:
                    return v * 2.0
        elif n > 6:
            if v > 0.875:
                return -1.0
        total = 0.0
        for k in range(n):
            total += v
            for j in range(k):
                if total + j > 4.0:
                    return total
            while total < 0.75:
                total += 0.5
                if total > 1.0:
                    return 7.0
            if total > 5.0:
                return total + v
        return v + 1.0

    compiled = ti.real_func(search)

    @ti.real_func
    def twice(v: ti.f32, n: ti.i32) -> ti.f32:
        if n == 3:
            return 0.0
        return compiled(v, n) + compiled(v, n + 1)

    x, y, count = ti.field(ti.f32, (16, 10)), ti.field(ti.f32, (16, 10)), ti.field(ti.i32, ())

    @ti.kernel
    def run():
        for i, n in x:
            x[i, n] = compiled(i / 16.0, n)
            y[i, n] = twice(i / 16.0, n)
            if compiled(i / 16.0, n) > 2.0:
                count[None] += 1

    run()
    right = np.array([[search(i / 16.0, n) for n in range(11)] for i in range(16)], np.float32)
    assert np.array_equal(x.to_numpy(), right[:, :10])
    both = right[:, :10] + right[:, 1:]
    both[:, 3] = 0
    assert np.array_equal(y.to_numpy(), both)
    assert count[None] == (right[:, :10] > 2).sum()


def chain(n, body):
    """Real functions `f0` to `f{n - 1}`, each of which calls the one before, and a kernel that calls the last."""
    lines = ["import aerogel as ti", "y = ti.field(ti.i32, shape=2)", "@ti.real_func", "def f0(a: ti.i32) -> ti.i32:"]
    lines.append("    return a + 1")
    for k in range(1, n):
        lines += ["@ti.real_func", f"def f{k}(a: ti.i32) -> ti.i32:", f"    return {body.format(f=f'f{k - 1}')}"]
    return "\n".join([*lines, "@ti.kernel", "def run():", f"    y[0] = f{n - 1}(y[1])", ""])


def run_chain(tmp_path, n, body):
    path = tmp_path / f"chain_{n}.py"
    path.write_text(chain(n, body))
    module = {"__name__": f"chain_{n}"}
    exec(compile(path.read_text(), str(path), "exec"), module)
    module["run"]()
    return module["y"][0]


def test_a_long_chain_of_functions(arch, tmp_path):
    assert run_chain(tmp_path, 200, "{f}(a + 1) + 1") == 400 - 1


def test_functions_that_call_another_twice_are_not_written_out_without_end(arch, tmp_path):
    # Written out in each other they would have 2 ** 40 additions; called they take one each that is executed.
    body = "{f}(a + 1) if a >= 0 else {f}(a) + {f}(a - 1)"
    assert run_chain(tmp_path, 40, body) == 40
