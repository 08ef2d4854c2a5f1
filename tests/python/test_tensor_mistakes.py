"""Arguments of a wrong kind, in every parameter of every public function: errors name the function or the parameter."""

import inspect
import itertools
import types

import aerogel as ti
import numpy as np
import pytest
from aerogel import nn, special, tensor, xp

MODULES = {
    "tensor": tensor, "xp": xp, "linalg": tensor.linalg, "fft": tensor.fft, "special": special,
    "functional": nn.functional,
}  # fmt: skip
#: No function computes with these. Numbers and lists may be operands: they are refused where a kind is annotated.
WRONG = {"string": "a", "none": None, "dictionary": {}, "object": object()}
X = [[1.0, 2.0], [3.0, 5.0]]
#: Arguments with which some function can be called; each function takes the first ones that it accepts.
CALLS = [
    [X], [X, X], [X, X, X], [X, 1], [X, 0], [3], [3, 3], [X, [0, 1]], [(2, 2)], [X, 0, X], [X, (1, 0)], [[X, X]],
    [0.0, 1.0, 5], ["ij->i", X], [np.asarray(X)], [X, [0, 1], X], [(2, 2), 1.0], ["i =>", [1.0]], [X, "f32"],
    [3.0, X], [X, X, X, X], [X, 0, 1], [X, [0], X], [[1.0, 2.0]] * 2, [[1.0, 2.0]], [[1.0, 2.0]] * 3, [[0, 1], (2, 2)],
    [X, [1.0, 1.0], [1.0, 1.0]], [[[[1.0, 2.0]]], [[[1.0]]]], [[1.0, 2.0, 4.0]] * 2, [X, (4,)], [[[X]], 1], [[X], 1], [[X], [[[1.0]] * 2]], [[[X]], [[[[1.0]]]]],
    [X, X, [X]], [[[1, 0], [0, 1]], (2, 2)], [[1.0, 2.0], [1.0, 2.0], 1], [[[True]], [X]], [[[[X]]], [[[[[1.0]]]]]],
    [[[X]], 1], [[[X, X]]], [[[[X]]], 2], [4, 4], ["i8"], ["f32", "f64"], [[X], [[[1.0]]]],
]  # fmt: skip
#: Their own arguments are functions, trees of anything, or of any number.
OTHERS = """
    accum_gradients broadcast_arrays broadcast_shapes check_grad checkpoint custom_jvp custom_vjp explain grad hessian hvp
    jacobian jvp realize stop_gradient value_and_grad vjp vmap atleast_1d atleast_2d atleast_3d result_type no_grad enable_grad
    apply_along_axis apply_over_axes vectorize fromfunction piecewise isdtype can_cast finfo iinfo select
""".split()
#: `None` is all axes, all sizes or the default dtype, although there is another default.
TAKES_NONE = {"axis", "axes", "output_size", "dtype"}


@pytest.fixture(autouse=True, scope="module")
def _start():
    ti.init(arch="interp", log_level="error")
    yield
    ti.reset()


def functions(module):
    names = getattr(module, "__all__", None) or [name for name in dir(module) if not name.startswith("_")]
    found = {name: getattr(module, name) for name in names if name not in OTHERS}
    return {name: own for name, own in found.items() if isinstance(own, types.FunctionType)}


def call_of(function, parameters):
    """Arguments that the function accepts; none if none of the table's are."""
    by_position = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)]
    least = sum(p.default is p.empty and p.kind is not p.VAR_POSITIONAL for p in by_position)
    for given in sorted(CALLS, key=len):
        if not least <= len(given) <= len(by_position):
            continue
        try:
            function(*given)
        except Exception:  # noqa: BLE001, S112 - The table has arguments for others, of which anything may be wrong.
            continue
        return given
    return None


def wrong_calls(function):
    """Calls with one argument of a wrong kind: the parameter, the value, the arguments."""
    parameters = list(inspect.signature(function).parameters.values())
    given = call_of(function, parameters)
    for (k, p), value in itertools.product(enumerate(parameters), WRONG.values()):
        if given is None or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) or value is None is p.default:
            continue
        if k < len(given):
            yield p, value, [*given[:k], value, *given[k + 1 :]], {}
        elif p.kind is not p.POSITIONAL_ONLY:
            yield p, value, given, {p.name: value}


def failure(function, parameter, value, args, kwargs):
    """What is wrong with how a call is refused; nothing if the error is a good one."""
    takes = value is None and (parameter.name in TAKES_NONE or "None" in str(parameter.annotation))
    takes |= value == "a" and parameter.annotation == "str" or value == {} and "dict" in str(parameter.annotation)
    try:
        made = function(*args, **kwargs)
    except (TypeError, ValueError, IndexError) as error:
        words = f"`{function.__name__}", f"`{parameter.name}`", f"{function.__name__}("
        return "" if takes or any(word in str(error) for word in words) else f"says {error!r}"
    except Exception as error:  # noqa: BLE001 - Which class it is is the question.
        return f"raises {error!r}"
    return "" if takes else f"returns {type(made).__name__}"


@pytest.mark.parametrize("module", MODULES)
def test_a_wrong_kind_is_an_error_that_names_it(module):
    failures, n = [], 0
    for name, function in functions(MODULES[module]).items():
        for parameter, value, args, kwargs in wrong_calls(function):
            n += 1
            if wrong := failure(function, parameter, value, args, kwargs):
                failures.append(f"{name}: {parameter.name}={value!r} {wrong}")
    assert failures == [] and n > 50


@pytest.mark.parametrize("module", MODULES)
def test_the_table_calls_every_function(module):
    missing = [
        name
        for name, function in functions(MODULES[module]).items()
        if call_of(function, list(inspect.signature(function).parameters.values())) is None
    ]
    assert missing == [], "add arguments that they accept to `CALLS`, or the names to `OTHERS`"


@pytest.mark.parametrize("flag", [3, 1.0, "a", None, [True]])
def test_booleans_are_true_or_false(flag):
    x = tensor.asarray([2.0, 1.0])
    for call in (
        lambda: x.sum(keepdims=flag),
        lambda: tensor.sum(x, keepdims=flag),
        lambda: tensor.argsort(x, stable=flag),
        lambda: (x * 1j).sum(keepdims=flag),
        lambda: x.requires_grad_(flag),
        lambda: setattr(x, "requires_grad", flag),
        lambda: nn.functional.dropout(x, 0.5, flag, key=None),
    ):
        with pytest.raises(TypeError, match=r"`\w+`: `\w+` takes True or False, not "):
            call()
    assert x.sum(keepdims=np.bool_(True)).shape == (1,) and not x.requires_grad


def test_messages_name_the_argument_and_what_it_is():
    for call, words in {
        lambda: tensor.arange("a"): "`arange`: `start` cannot be 'a': ",
        lambda: tensor.sort([1.0], axis="a"): "`sort`: `axis` takes an integer, not 'a'",
        lambda: tensor.tril([[1.0]], "a"): "`tril`: `k` cannot be 'a': ",
        lambda: tensor.split([1.0], "a"): "`split`: `sections` takes integers, not 'a'",
        lambda: tensor.linspace(0, 1, 2.5): "`linspace`: `num` takes an integer, not 2.5",
        lambda: tensor.sin({}): "`sin`: `x` cannot be {}: elements of a tensor are numbers, not dict",
        lambda: tensor.sum([1.0], dim=0): "`sum` has no keyword `dim`: write `axis=`",
    }.items():
        with pytest.raises(TypeError) as caught:
            call()
        assert str(caught.value).startswith(words), caught.value


def test_errors_of_functions_that_are_called_stay_as_they_are():
    def wrong(x):
        return x + "a".size

    for call in (lambda: ti.vmap(wrong)([1.0]), lambda: ti.grad(wrong)([1.0])):
        with pytest.raises(AttributeError, match="^'str' object has no attribute 'size'$"):
            call()


BOOLEANS = {
    "-x": lambda x: -x, "+x": lambda x: +x, "x - x": lambda x: x - x, "x - True": lambda x: x - True,
    "x // x": lambda x: x // x, "x % x": lambda x: x % x, "x ** x": lambda x: x**x, "x << x": lambda x: x << x,
    "x >> x": lambda x: x >> x, "negative": tensor.negative, "positive": tensor.positive,
    "subtract": lambda x: tensor.subtract(x, x), "fmod": lambda x: tensor.fmod(x, x),
}  # fmt: skip


@pytest.mark.parametrize("name", BOOLEANS)
def test_booleans_have_no_arithmetic(name):
    x = tensor.asarray([True, False])
    with pytest.raises(TypeError, match=r"takes numbers, not booleans: .*`x.astype\(ti.i32\)`"):
        BOOLEANS[name](x)
    with pytest.raises(TypeError, match="takes numbers, not booleans"):
        ti.program(BOOLEANS[name])(x)
    assert (~x).tolist() == [False, True] and (x ^ x).tolist() == [False, False] and (x - 1).tolist() == [0, -1]


def test_public_names_are_those_of_the_lists():
    names = {}
    exec("from aerogel.tensor import *", names)  # noqa: S102
    assert set(dir(tensor)) - {"programs"} == set(names) - {"__builtins__"} == set(tensor.__all__)
    assert {"sin", "asarray", "grad", "linalg", "TopK"} <= set(names)
    modules = ("math", "importlib", "types", "sys")
    inner = [
        n for n, own in vars(tensor).items() if n[0] != "_" and n not in names and n not in modules and callable(own)
    ]
    assert [n for n in inner if n != "Any"] == []
    with pytest.raises(AttributeError, match="the type is `ti.f32`"):
        tensor.f32  # noqa: B018
