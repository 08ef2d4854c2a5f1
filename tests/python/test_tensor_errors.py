"""What is said when something is wrong with tensors: of what kind, in whose words, and where."""

import functools
import inspect
import re
import subprocess
import sys

import numpy as np
import pytest

import aerogel as ti
from aerogel import _native
from aerogel.tensor import programs as p

pytestmark = pytest.mark.usefixtures("arch")
T = ti.tensor


@pytest.fixture
def arch(request):
    ti.init(arch=ti.cpu, log_level="error")


def text_of(kind, function, *args):
    """What is raised, with `FILE:n` for the n-th line of a function, and without the picture of the line."""
    with pytest.raises(kind) as caught:
        function(*args)
    first = inspect.getsourcelines(inspect.unwrap(function))[1]
    text = str(caught.value).replace(__file__, "FILE")
    text = re.sub(r"FILE:(\d+)", lambda m: f"FILE:{int(m[1]) - first}", text)
    return [line for line in text.splitlines() if not re.match(r" *\d* \|", line)]


def under(text):
    """What is underlined."""
    lines = text.splitlines()
    at = next(k for k, line in enumerate(lines) if re.match(r" *\| *\^+$", line))
    line, marks = lines[at - 1].split(" | ", 1)[1], lines[at].split(" | ", 1)[1]
    return line[marks.index("^") : len(marks)]


# Outside of programs: where the operation is written, not where numbers are asked for.


def test_an_index_outside_is_shown_where_it_is_written():
    def program():
        x = T.arange(3) * 2
        at = T.asarray([0, 5])
        y = x[at] + 1
        return y.numpy()

    assert text_of(IndexError, program) == [
        "index 5 is outside axis 0 with 3 elements",
        "  --> FILE:3:13",
        "   = note: the tensor is made in FILE:1",
    ]
    with pytest.raises(IndexError) as caught:
        program()
    assert under(str(caught.value)) == "x[at]"


def test_an_index_that_counts_from_the_end_is_shown_as_it_is_written():
    def program():
        x = T.arange(3) * 2
        return T.take(x, T.asarray([-4])).tolist()

    assert text_of(IndexError, program)[0] == "index -4 is outside axis 0 with 3 elements"


def test_of_several_accesses_the_one_that_is_outside_is_shown():
    def program(k):
        x = T.arange(3) * 2
        first, second = x[T.asarray([0, k])], x[T.asarray([1, k + 1])]
        third = x[T.asarray([2, k + 2])]
        fourth = first + second
        return (fourth + third).tolist()

    assert text_of(IndexError, program, 1)[:2] == ["index 3 is outside axis 0 with 3 elements", "  --> FILE:3:17"]
    # The second that is outside is one of two.
    assert text_of(IndexError, program, 2)[:2] == ["index 3 is outside axis 0 with 3 elements", "  --> FILE:2:47"]
    assert program(0) == [2 + 0 + 4, 0 + 2 + 4]


def test_of_many_accesses_of_one_tensor_the_one_that_is_outside_is_shown():
    def program(k):
        x = T.arange(3) * 5
        y = [x[T.asarray([0, 3 if j == k else 1])] for j in range(20)]
        z = x[T.asarray([0, 3 if k == 20 else 1])]
        return (sum(y) + z).tolist()

    for k, line in (0, 2), (7, 2), (20, 3):
        text = text_of(IndexError, program, k)
        assert text[0] == "index 3 is outside axis 0 with 3 elements"
        assert text[1].startswith(f"  --> FILE:{line}:")
        assert text[2:] == ["   = note: the tensor is made in FILE:1"]
    assert program(21) == [0, 105]


def test_of_several_accesses_of_a_program_the_one_that_is_outside_is_shown():
    def program():
        x = p.input([-1], ti.f32)
        at = p.input([-1], ti.i32)
        y = x[at]
        z = x[at + 1]
        w = x[at * 2]
        return y + z + w

    made = p.program(program)
    first = inspect.getsourcelines(program)[1]
    x = np.ones(9, np.float32)
    for at, index, line in ([0, 9], 9, 3), ([0, 8], 9, 4), ([0, 5], 10, 5):
        with pytest.raises(IndexError) as caught:
            made(x, np.array(at, np.int32))
        text = str(caught.value)
        assert text.startswith(f"index {index} is outside axis 0 with 9 elements\n  --> {__file__}:{first + line}:")
        assert " or in " not in text
    assert made(x, np.array([0, 4], np.int32)).tolist() == [3, 3]


def test_equal_programs_on_other_lines_share_a_plan_and_name_their_own_lines():
    def program(at):
        x = T.arange(6) * 2
        return (x[T.asarray(at)] + 1).tolist()

    def other(at):
        # Another line.
        x = T.arange(6) * 2

        return (x[T.asarray(at)] + 1).tolist()

    assert program([1, 2]) == [3, 5]
    plans = _native.tensor_counts()[3]
    assert other([1, 2]) == [3, 5]
    assert text_of(IndexError, program, [1, 6])[1] == "  --> FILE:2:17"
    assert text_of(IndexError, other, [1, 6])[1] == "  --> FILE:4:17"
    assert _native.tensor_counts()[3] == plans


def test_a_store_outside_is_shown_where_it_is_written():
    def program():
        x = T.zeros(4)
        x[T.asarray([0, 4])] = 1.0
        return x.sum().item()

    assert text_of(IndexError, program)[:2] == ["index 4 is outside axis 0 with 4 elements", "  --> FILE:2:9"]


def test_what_a_library_refuses_is_shown_where_it_is_written():
    def program(function):
        x = T.zeros((2, 2))
        y = function(x)
        return y.numpy()

    for function, text in (
        (T.linalg.inv, "`inv`: the matrix is singular"),
        (lambda x: T.linalg.solve(x, T.ones(2)), "`solve`: the matrix is singular"),
    ):
        got = text_of(ValueError, program, function)
        assert got[0] == text and re.match(r"  --> FILE:-?\d+:\d+$", got[1])
    assert text_of(ValueError, program, T.linalg.inv)[1] == "  --> FILE:2:13"
    assert text_of(ValueError, program, T.linalg.cholesky)[1] == "  --> FILE:2:13"


def test_lines_stay_when_the_session_is_tidied():
    def program():
        x = T.arange(3) * 2
        y = x[T.asarray([7])]
        for _ in range(5000):
            T.arange(5) + T.asarray([1])
        return y.tolist()

    assert text_of(IndexError, program)[1] == "  --> FILE:2:13"


def test_an_index_outside_in_a_function_of_one_of_many():
    def program():
        x, at = T.arange(3) * 2, T.asarray([[0, 1], [2, 9]])
        one = lambda i: x[i] + 1
        return ti.vmap(one)(at).tolist()

    assert text_of(IndexError, program)[:2] == ["index 9 is outside axis 0 with 3 elements", "  --> FILE:2:25"]


def test_shapes_that_do_not_agree_name_the_lines_of_both():
    def program():
        x = T.zeros((2, 3))
        y = T.ones(4)
        return x + y

    (got,) = text_of(ValueError, program)
    assert got.endswith("the shapes are (2, 3) and (4,); operand 0 is made in FILE:1; operand 1 is made in FILE:2")


# In programs.


def test_a_store_outside_in_a_program_is_shown_where_it_is_written():
    def program():
        x = p.buffer([5], ti.f32)
        at = p.input([-1], ti.i32)
        x[at] = 1.0
        return x

    made = p.program(program)
    assert made(np.array([4], np.int32)).tolist() == [0, 0, 0, 0, 1]

    def run():
        made(np.array([2, 5], np.int32))

    first = inspect.getsourcelines(program)[1]
    with pytest.raises(IndexError) as caught:
        run()
    text = str(caught.value)
    assert text.startswith(f"index 5 is outside axis 0 with 5 elements\n  --> {__file__}:{first + 3}:9\n")
    assert under(text) == "x[at]"
    assert text.endswith(f"the tensor is made in {__file__}:{first + 1}")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("inv", "`inv`: the matrix is singular"),
        ("cholesky", "`cholesky`: "),
        ("solve", "`solve`: the matrix is singular"),
    ],
)
def test_what_a_library_refuses_in_a_program_is_shown_where_it_is_written(name, text):
    function = getattr(T.linalg, name)

    def program():
        x = p.input([-1, -1], ti.f32)
        y = function(x, x) if name == "solve" else function(x)
        return y * 2

    first = inspect.getsourcelines(program)[1]
    with pytest.raises(ValueError) as caught:
        p.program(program)(np.zeros((2, 2), np.float32))
    assert str(caught.value).startswith(text)
    assert f"\n  --> {__file__}:{first + 2}:" in str(caught.value)
    assert under(str(caught.value)).startswith("function(x")


@pytest.mark.parametrize(
    "use",
    [bool, int, float, lambda x: x.numpy(), lambda x: x.item(), lambda x: x.tolist(), range, lambda x: 3 in x],
    ids=["bool", "int", "float", "numpy", "item", "tolist", "range", "in"],
)
def test_numbers_of_a_program_are_asked_for(use):
    def program():
        return use(p.input([-1], ti.i32).sum())

    def contains():
        return use(p.input([-1], ti.i32))

    with pytest.raises(
        RuntimeError, match="while the program is traced.*`if_cond` or `where`, repeat by `loop`, show it by `print_v"
    ):
        p.program(contains if use not in (bool, int, float, range) else program)(np.zeros(3, np.int32))


def test_a_loop_is_left_where_there_is_none():
    def leave():
        p.break_loop()

    def go_on():
        with p.if_cond(p.const(True)):
            p.continue_loop()

    with pytest.raises(RuntimeError, match="`break_loop` is outside of a loop: it stands inside `with loop"):
        p.program(leave)()
    with pytest.raises(RuntimeError, match="`continue_loop` is outside of a loop"):
        p.program(go_on)()
    for name, call in (
        ("break_loop", p.break_loop),
        ("buffer", lambda: p.buffer([3])),
        ("input", lambda: p.input([3])),
    ):
        with pytest.raises(RuntimeError, match=f"`{name}` is for functions under `program`"):
            call()


# Arguments.


def test_explain_takes_tensors():
    for wrong, name in ((3, "int"), (None, "NoneType"), ([T.ones(2)], "list")):
        with pytest.raises(TypeError, match=f"`explain` takes tensors, not {name}"):
            T.explain(wrong)
    with pytest.raises(TypeError, match="takes at least one tensor"):
        T.explain()
    assert "became" in T.explain(T.ones(2) * 1j)


def test_what_functions_of_one_give():
    x = T.arange(6).reshape(2, 3)
    none = r"`vmap`: the result is None, and must be a tensor: does it `return`\?"
    with pytest.raises(TypeError, match=none):
        ti.vmap(lambda row: None)(x)
    with pytest.raises(TypeError, match=r"`vmap`: the result\[1\] is None"):
        ti.vmap(lambda row: (row, None))(x)
    for wrong in ("a", {1, 2}, len, [[1], [2, 3]]):
        with pytest.raises(TypeError, match=r"`vmap`: the result(\[0\])? is neither a tensor nor numbers"):
            ti.vmap(lambda row, wrong=wrong: wrong)(x)
    with pytest.raises(TypeError, match="`vmap`: argument 0 is None"):
        ti.vmap(lambda row: row)(None)
    with pytest.raises(TypeError, match="`vmap` takes a function or a shape, not float"):
        ti.vmap(3.0)
    # What is said of one of many is over.
    assert ti.vmap(lambda row: row.sum())(x).tolist() == [3, 12]


def test_solve_names_the_shapes_that_are_given():
    a = T.zeros((3, 3))
    for b, shape in ((T.ones(2), "(2,)"), (T.ones((2, 2)), "(2, 2)"), (T.ones(2) * 1j, "(2,)")):
        with pytest.raises(ValueError) as caught:
            T.linalg.solve(a, b)
        assert str(caught.value) == f"`solve`: matrices of shape (3, 3) for right sides of shape {shape}"


# Stores are named as they are written.


def test_stores_are_named_as_they_are_written():
    def known():
        x = T.zeros(5)
        x[1:3] = T.ones(3)

    def computed():
        x = T.zeros(5)
        x[T.asarray([0, 1])] = T.ones(3)

    def traced():
        x = p.buffer([5], ti.f32)
        x[1:3] = T.ones(3)

    def traced_points():
        x = p.buffer([5], ti.f32)
        x[T.asarray([1, 2])] = T.ones(3)

    for function in (known, computed, p.program(traced), p.program(traced_points)):
        with pytest.raises(ValueError, match=r"^`x\[key\] = value`: .*\(2,\)"):
            function()

    def unknown():
        x = p.input([-1], ti.f32) + 0
        x[1:3] = T.ones(3)
        return x

    with pytest.raises(ValueError, match=r"^`x\[key\] = value`: sizes 3 and 2 along one axis"):
        p.program(unknown)(np.zeros(7, np.float32))

    def value():
        x = p.buffer([5], ti.f32)
        with p.loop(3):
            x.val = T.ones(3)
        return x

    with pytest.raises(ValueError, match="^`x.val = value`: axis 0 of"):
        p.program(value)()
    with pytest.raises(ValueError, match=r"^`x\[key\]`: axis 0"):
        T.zeros((5, 5))[T.asarray([1, 2]), T.asarray([1, 2, 3])]


def test_elements_of_integers_take_no_fractions():
    x = T.zeros(5, ti.i32)
    for key in (0, slice(1, 3), T.asarray([1, 2])):
        for wrong in (0.5, float("nan"), float("inf")):
            with pytest.raises(TypeError, match="elements of `i32` take no"):
                x[key] = wrong
        x[key] = 2.0
    assert x.tolist() == [2, 2, 2, 0, 0]


# What is said of one of many is of no use afterwards.


def test_what_a_function_of_one_has_made_is_not_used_outside_of_it():
    kept = []

    def raises(row):
        kept.append(row.sum())
        raise KeyError

    def keeps(row):
        kept.append(row.sum())
        return row

    def program(function):
        x = p.input([-1, -1], ti.f32)
        try:
            ti.vmap(function)(x)
        except KeyError:
            pass
        return x + kept.pop()

    text = "belongs to a function that `vmap` has called, and is used outside of it: let the function return"
    for function in (raises, keeps):
        line = inspect.getsourcelines(function)[1] + 1
        with pytest.raises(ValueError, match=re.escape(f"a tensor, made in {__file__}:{line}, {text}")):
            p.program(functools.partial(program, function))(np.ones((2, 4), np.float32))


def test_a_constant_that_a_function_meets_first_and_then_raises():
    outside = T.asarray([1.0, 2.0, 3.0])

    def raises(row):
        _ = row + outside
        raise KeyError

    def program():
        x = p.input([-1, 3], ti.f32)
        with pytest.raises(KeyError):
            ti.vmap(raises)(x)
        return ti.vmap(lambda row: row * outside)(x), x + outside

    first, second = p.program(program)(np.ones((2, 3), np.float32))
    assert (first.tolist(), second.tolist()) == ([[1, 2, 3]] * 2, [[2, 3, 4]] * 2)


# What a name stands for.


def test_a_store_changes_the_tensor_and_no_copy_of_it():
    x = T.zeros(3)
    same, copy, part, array = x, T.asarray(x, copy=True), x[:], x.numpy()
    x[1] = 5
    assert same.tolist() == [0, 5, 0]
    assert copy.tolist() == part.tolist() == array.tolist() == [0, 0, 0]
    z = T.zeros(3) * 1j
    copy = T.asarray(z, copy=True)
    z[1] = 5
    assert (z.tolist(), copy.tolist()) == ([0j, 5 + 0j, 0j], [0j, 0j, 0j])


SAME_NUMBERS = [
    lambda x: +x, T.positive, T.conj, T.clip, lambda x: x.astype(x.dtype), lambda x: x.reshape(2, 2),
    lambda x: x[...], lambda x: T.linalg.matrix_power(x, 1), lambda x: T.triu(x, -5), lambda x: T.concat([x]), lambda x: T.roll(x, 0),
    lambda x: T.broadcast_arrays(x, x)[0], lambda x: T.permute_dims(x, (0, 1)),
]  # fmt: skip


@pytest.mark.parametrize("function", SAME_NUMBERS)
@pytest.mark.parametrize("of", [1, 1j], ids=["real", "complex"])
def test_a_function_gives_another_tensor(function, of):
    x = T.asarray([[1.0, 2.0], [3.0, 4.0]]) * of
    y = function(x)
    before = y.tolist()
    x[0, 1] = 7
    assert y.tolist() == before and x.tolist()[0][1] == 7
    y[1, 0] = 9
    assert x.tolist()[1][0] == 3 * of


# Wrong kinds of arguments.


def test_functions_of_real_numbers_refuse_complex_ones_by_name():
    z = T.ones((2, 3)) * 1j
    for name in ("sort", "argsort", "argmax", "max", "median", "std", "var", "cummax"):
        for x in (z, 1 + 2j):
            with pytest.raises(TypeError, match="takes real numbers, not `complex64`"):
                getattr(T, name)(x)
    with pytest.raises(TypeError, match="`sort` takes real numbers"):
        T.sort(z)
    assert T.expand_dims(1 + 2j).tolist() == [1 + 2j]


@pytest.mark.parametrize("name", ["std", "var", "median"])
def test_reductions_say_their_own_names(name):
    reduce = getattr(T, name)
    x = T.ones((2, 3))
    with pytest.raises(IndexError, match=f"`{name}`: there is no axis 2"):
        reduce(x, axis=2)
    with pytest.raises(TypeError, match=f"`{name}` takes real numbers, not `complex64`"):
        reduce(x * 1j)
    if name == "median":
        return
    for given in (x, T.asarray(1.0)):
        with pytest.raises(IndexError) as caught:
            reduce(given, axis=-3)
        with pytest.raises(IndexError) as other:
            T.mean(given, axis=-3)
        assert str(caught.value) == str(other.value).replace("mean", name)
    with pytest.raises(ValueError, match=f"`{name}`: axis -1 is named twice"):
        reduce(x, axis=(1, -1))
    with pytest.raises(IndexError, match=f"`{name}`: there is no axis 7"):
        getattr(x, name)(axis=(0, 7))
    with pytest.raises(TypeError, match=f"`{name}`: `correction` takes a number, not 'one'"):
        reduce(x, correction="one")


def test_texts_are_texts():
    for wrong in (None, 3, T.ones(2), {1}):
        with pytest.raises(TypeError, match="`accum`: `spec` takes a string"):
            T.accum(wrong, T.ones(2))
        with pytest.raises(TypeError, match="`einsum`: `equation` takes a string"):
            T.einsum(wrong, T.ones(2))
    with pytest.raises(ValueError, match="`einsum`: 'i->i' needs tensors, but none are passed"):
        T.einsum("i->i")
    for wrong, sign in zip("i-j ij->j->i ij=>j i.j ...i... ij->i,j i1".split(), "--=..,1", strict=True):
        with pytest.raises(ValueError, match=re.escape(f"`einsum`: {wrong!r} has `{sign}` where a letter")):
            T.einsum(wrong, T.ones((2, 2)))
    with pytest.raises(TypeError, match="`from_dlpack` takes an array that supports DLPack, not NoneType"):
        T.from_dlpack(None)
    with pytest.raises(TypeError, match="`tensordot` takes a number of axes, or those of both tensors in a pair"):
        T.tensordot(T.ones(2), T.ones(2), axes={1})
    with pytest.raises(ValueError, match="`rfftn` takes at least one axis"):
        T.fft.rfftn(T.ones(()))


def test_differences_taken_more_often_than_there_are_elements():
    from aerogel import xp

    assert xp.diff(T.arange(3), n=2**40).tolist() == []
    assert xp.diff(T.asarray([1, 4, 9]), n=2).tolist() == [2]


INTERRUPTED = """
import os, signal, threading, time
import aerogel as ti
from aerogel.tensor import programs as p

ti.init(arch=ti.cpu, log_level="error")
T = ti.tensor

@p.program
def endless():
    a, x = p.input([-1], ti.f32), p.const(0.0)
    with p.loop(2**31 - 1):
        x.val = x * 0.5 + a.sum()
    return x

a = T.ones(1000)
long = T.arange(300000) * 1.0
for case in (lambda: endless(a).item(), lambda: T.sin(long[:, None] * long[None, :]).sum().item()):
    threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGINT)).start()
    begin = time.monotonic()
    try:
        case()
    except KeyboardInterrupt:
        # A second one would come here.
        for _ in range(100):
            time.sleep(0.001)
        assert time.monotonic() - begin < 30
        print("once")
print(T.ones(3).sum().item())
"""


def test_a_signal_ends_a_program_once():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["once", "once", "3.0"], done.stderr


@pytest.mark.parametrize(
    "wrong, message",
    [
        (lambda: T.zeros(2, 3), r"`zeros` takes the shape as one tuple"),
        (lambda: T.ones(2, 3), r"`ones` takes the shape as one tuple"),
        (lambda: T.stack(T.ones(2), T.ones(2)), r"`stack` takes its tensors in one list"),
        (lambda: T.concat(T.ones(2), T.ones(2)), r"`concat` takes its tensors in one list"),
        (lambda: T.random.integers(0, 10, 5, shape=(3,)), r"the shape is given twice"),
        (lambda: p.program(lambda: p.input(ti.f32, [-1]))(), r"`input` takes the shape first"),
        (lambda: p.program(lambda: p.input([-1], T.complex64))(), r"`input` takes real dtypes, not `complex64`"),
        (lambda: p.program(lambda: p.buffer(3, "complex128"))(), r"`buffer` takes real dtypes, not `complex128`"),
        (lambda: p.program(lambda: p.const(1j))(), r"a value that may be set is real"),
        (lambda: p.program(5), r"`program` takes a function, not int"),
    ],
)
def test_arguments_in_the_wrong_place(wrong, message):
    with pytest.raises(TypeError, match=message):
        wrong()


def test_what_a_store_gets_is_called_by_name():
    @p.program
    def made():
        x = p.buffer((4, 4), ti.f32)
        with p.kernel((3,)) as i:
            x[i, T.zeros(5, dtype=ti.i32)] = 1.0

    with pytest.raises(ValueError, match="axis 0 of index 0 has 3 elements, axis 0 of index 1 has 5"):
        made()


def test_a_tensor_that_leaves_its_program():
    kept = []

    @p.program
    def made():
        x = p.input([-1, 3], ti.f32)
        kept.append(x)
        return x * 2

    made(np.zeros((2, 3), np.float32))
    assert repr(kept[0]) == "<tensor of shape (input 0.shape[0], 3), dtype=f32>"
    for numbers in (lambda: kept[0].numpy(), lambda: kept[0].shape):
        with pytest.raises(RuntimeError, match="only while the program runs"):
            numbers()


def test_values_of_arrays_that_may_be_set():
    @p.program
    def made():
        x, y = p.const([1, 2, 3]), p.const(T.ones(3, dtype=ti.i32))
        with p.loop(3):
            x.val = x + y
        y.val = y * 2
        return x, y

    x, y = made()
    assert x.to_numpy().tolist() == [4, 5, 6] and y.tolist() == [2, 2, 2]


def test_checks_of_arithmetic_raise_what_kernels_raise():
    ti.init(arch=ti.cpu, debug=True, log_level="error")
    n, zero = T.arange(1, 4), T.zeros(3, ti.i32)
    for of, message in {
        (lambda: n // zero): "division by zero",
        (lambda: n % zero): "% ",
        (lambda: n ** (zero - 2)): "negative",
    }.items():
        with pytest.raises(ti.AerogelArithmeticError) as caught:
            of().tolist()
        assert message in str(caught.value)
