"""Programs in files and as text: the loaded one does what the traced one does, and what is damaged or made to do harm is refused."""

import dataclasses
import json
import os
import random
import subprocess
import sys

import numpy as np
import pytest

import aerogel as ti
from aerogel.tensor import programs as p

t = ti.tensor


@pytest.fixture(autouse=True)
def _start():
    ti.init(arch=ti.cpu, log_level="error")
    yield
    ti.reset()


def floats(*shape, seed=0):
    return t.asarray(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


@dataclasses.dataclass
class State:
    u: ti.tensor.Tensor
    n: int


WEIGHTS = np.random.default_rng(3).normal(size=(4, 4)).astype(np.float32)


def slices(x, w):
    return x[1:-1] + x[2:] - x[:-2], x[::2][:3].sum(), x[-1], x[::-1] * w[0, 0]


def products(x, w):
    return t.softmax(w @ w.T @ t.asarray(WEIGHTS), axis=1), w @ w.T[:, :1]


def stores(x, w):
    y = t.zeros_like(x)
    y[1:-1] = x[:-2] + x[2:]
    y[::3] = -1
    with p.loop(5) as k:
        with p.if_cond(y[0] < 3):
            y[0] = y[0] + k
    return y


def shapes(x, w):
    return w.reshape(-1), w.T.reshape(-1), t.pad(x, (1, 2)), t.repeat(x, 2), t.tile(x, 3), t.stack([x, x]).sum(axis=0)


def orders(x, w):
    order = t.argsort(x)
    return x[order], t.sort(x), t.cumsum(x), t.roll(x, 1), t.flip(w), w[:, 1]


def matrices(x, w):
    return t.linalg.inv(w + 5 * t.eye(4)), t.linalg.svd(w)[1], t.fft.fft(x).real if hasattr(t, "fft") else x


def complexes(x, w):
    z = x + 1j * x[::-1]
    return {"product": z * z, "size": abs(z)}


def gradients(x, w):
    def loss(w):
        y = p.fori_loop(0, 4, lambda k, y: t.tanh(y @ w) + k, w)
        return (y * y).sum()

    return ti.grad(loss)(w)


ALL = [slices, products, stores, shapes, orders, matrices, complexes, gradients]


def flat(tree):
    if isinstance(tree, dict):
        tree = list(tree.values())
    return [leaf for part in tree for leaf in flat(part)] if isinstance(tree, (list, tuple)) else [tree]


def bits(tree):
    return [(x.shape, str(x.dtype), x.numpy().tobytes()) for x in flat(tree)]


@pytest.mark.parametrize("function", ALL, ids=lambda f: f.__name__)
def test_a_loaded_program_gives_the_same_bits(function, tmp_path):
    traced = ti.program(function)
    lowered = traced.lower(floats(8), floats(4, 4))
    lowered.save(tmp_path / "p.aerogel")
    loaded = ti.load_program(tmp_path / "p.aerogel")
    assert loaded.text == lowered.text
    for n in (8, 9, 31):
        x, w = floats(n, seed=n), floats(4, 4, seed=n + 1)
        assert bits(loaded(x, w)) == bits(traced(x, w)), n
    loaded.save(tmp_path / "again.aerogel")
    assert (tmp_path / "again.aerogel").read_bytes() == (tmp_path / "p.aerogel").read_bytes()
    again = ti.program_from_text(lowered.text, lowered.constants)
    planes = [plane for x in flat(traced(x, w)) for plane in ([x.real, x.imag] if "complex" in str(x.dtype) else [x])]
    assert bits(again(x, w)) == bits(planes)


def test_an_edited_text_runs():
    @ti.program
    def scaled(x):
        return x * 2.5 + 1

    lowered = scaled.lower(t.ones(3))
    assert lowered.text.count("2.5") == 1
    edited = ti.program_from_text(lowered.text.replace("2.5", "4.0"), lowered.constants)
    assert edited(t.arange(3.0)).tolist() == [1, 5, 9]


def test_another_process_needs_no_source(tmp_path):
    lowered = ti.program(products).lower(floats(8), floats(4, 4))
    lowered.save(tmp_path / "p.aerogel")
    code = (
        "import sys, numpy as np, aerogel as ti\nti.init(arch=ti.cpu, log_level='error')\n"
        "made = ti.load_program(sys.argv[1])(ti.tensor.ones(8), ti.tensor.asarray(np.load(sys.argv[2])))\n"
        "np.save(sys.argv[2], made[0].numpy())"
    )
    w = floats(4, 4)
    np.save(tmp_path / "w.npy", w.numpy())
    subprocess.run([sys.executable, "-c", code, tmp_path / "p.aerogel", tmp_path / "w.npy"], check=True, cwd=tmp_path)
    assert np.load(tmp_path / "w.npy").tobytes() == ti.program(products)(t.ones(8), w)[0].numpy().tobytes()


def test_the_signature_is_that_of_the_function(tmp_path):
    @ti.program(static=["mode"])
    def step(state, pair, dt=0.5, *, n: int = 2, mode="fast", dtype=ti.f32):
        u = state.u * dt + pair["a"][0].astype(dtype)
        for _ in range(n):
            u = u * 2
        return State(u, n), {"last": (u[-1], [u + 1])}

    state, pair = State(floats(3), 7), {"a": [floats(3, seed=1)]}
    step.lower(state, pair).save(tmp_path / "p.aerogel")
    loaded = ti.load_program(tmp_path / "p.aerogel")
    assert str(loaded.signature).startswith("(state, pair, dt=0.5, *, n=2, mode='fast', dtype=")
    one, two = loaded(state, pair, dt=0.25), step(state, pair, dt=0.25)
    assert one[0].n == 2 and bits([one[0].u, one[1]]) == bits([two[0].u, two[1]])
    assert loaded(State(floats(5), 7), {"a": [floats(5)]})[0].u.shape == (5,)
    with pytest.raises(ValueError, match="argument `n` is part of the program, which was saved for 2, not 3"):
        loaded(state, pair, n=3)
    with pytest.raises(ValueError, match="argument `state.n` is part of the program, which was saved for 7, not 8"):
        loaded(State(floats(3), 8), pair)
    with pytest.raises(TypeError, match=r"argument `pair` is a dictionary with the keys \['a'\], not one with \['b'\]"):
        loaded(state, {"b": 1})
    with pytest.raises(TypeError, match=r"argument `pair\['a'\]\[0\]` takes elements of `f32`, not of `f64`"):
        loaded(state, {"a": [floats(3).astype("f64")]})
    with pytest.raises(ValueError, match="argument `state.u` takes 1 axes, not 2"):
        loaded(State(floats(3, 3), 7), pair)
    with pytest.raises(TypeError, match="argument `dt` is a number of type float, not str"):
        loaded(state, pair, "x")
    with pytest.raises(TypeError, match="the program: missing a required argument: 'pair'"):
        loaded(state)
    with pytest.raises(RuntimeError, match="cannot be part of another program"):
        ti.program(lambda x: loaded(x, x))(floats(3))


def test_inputs_of_a_function_without_parameters(tmp_path):
    @ti.program
    def halves():
        x = p.input([-1], ti.i32)
        return x[: x.shape[0] // 2], x.shape[0]

    halves.lower().save(tmp_path / "p.aerogel")
    loaded = ti.load_program(tmp_path / "p.aerogel")
    assert loaded([1, 2, 3, 4, 5])[0].tolist() == [1, 2] and loaded(t.arange(4))[1].item() == 4
    with pytest.raises(TypeError, match="argument `input_0`: elements of `i32` take no"):
        loaded([1.5])


@ti.kernel
def doubled(x: ti.types.ndarray()):
    for i in x:
        x[i] *= 2


def calls_a_kernel(x):
    y = x + 0
    doubled(y)
    return y


def has_a_maximum_in_a_loop(x):
    with p.loop(2):
        x.val = x * t.max(x)
    return x


FIELDS = []


def reads_a_field(x):
    return x + t.asarray(FIELDS[0])


@pytest.mark.parametrize(
    "function, message",
    [
        (calls_a_kernel, "calls the kernel `doubled` cannot be saved"),
        (has_a_maximum_in_a_loop, "a loop or a branch has a function that needs elements, as `max`"),
        (reads_a_field, "uses the field `heat` cannot be saved"),
        (lambda x: ti.nn.functional.dropout(x, 0.5), "draws other random numbers at each call"),
    ],
)
def test_what_cannot_be_saved_is_named(function, message, tmp_path):
    FIELDS[:] = [ti.field(ti.f32, shape=3, name="heat")]
    with pytest.raises(TypeError, match=message):
        ti.program(function).lower(floats(3)).save(tmp_path / "p.aerogel")
    assert not list(tmp_path.iterdir())


def test_a_maximum_of_an_axis_of_known_size_in_a_loop(tmp_path):
    ti.program(lambda x: has_a_maximum_in_a_loop(x.reshape(2))).lower(floats(2)).save(tmp_path / "p.aerogel")
    assert ti.load_program(tmp_path / "p.aerogel")(t.asarray([2.0, 1.0])).tolist() == [16, 8]


def test_arguments_that_cannot_be_saved_are_named(tmp_path):
    net = ti.nn.Linear(3, 3)
    with pytest.raises(TypeError, match="the argument `net.*` is a module"):
        ti.program(lambda net, x: net(x)).lower(net, floats(3)).save(tmp_path / "p.aerogel")
    with pytest.raises(TypeError, match="the argument `f` is builtin_function_or_method, which cannot be saved"):
        ti.program(lambda x, f: f(x)).lower(floats(3), abs).save(tmp_path / "p.aerogel")


def test_a_module_from_outside_is_saved_as_constants(tmp_path):
    net, x = ti.nn.Linear(3, 3), floats(3)
    step = ti.program(lambda x: net(x))
    lowered = step.lower(x)
    lowered.save(tmp_path / "p.aerogel")
    with ti.no_grad():
        right = bits(step(x))
    assert bits(ti.load_program(tmp_path / "p.aerogel")(x)) == right
    assert bits(ti.program_from_text(lowered.text, lowered.constants)(x)) == right


def test_a_default_that_cannot_be_saved_is_an_argument_that_is_needed(tmp_path):
    ti.program(lambda x, n=2, w=np.ones(3, np.float32): x * n + w).lower(floats(3)).save(tmp_path / "p.aerogel")
    loaded = ti.load_program(tmp_path / "p.aerogel")
    assert str(loaded.signature) == "(x, n, w)"
    assert loaded(t.ones(3), 3, t.ones(3)).tolist() == [4, 4, 4]


def test_keys_in_another_order(tmp_path):
    ti.program(lambda d, **named: d["a"] - d["b"] + named["u"] * 2 + named["v"]).lower(
        {"a": t.ones(2), "b": t.ones(2)}, u=t.ones(2), v=t.ones(2)
    ).save(tmp_path / "p.aerogel")
    loaded = ti.load_program(tmp_path / "p.aerogel")
    assert loaded({"b": t.ones(2), "a": t.ones(2) * 5}, v=t.ones(2), u=t.ones(2) * 3).tolist() == [11, 11]


# Text.

HEAD = 'in b0 "x": f32[?]\ntmp b1 "y": f32[b0:0]\n'


@pytest.mark.parametrize(
    "text, message",
    [
        ("for [b0:0] { b1[i0] = b9[i0] }\nresult b1", "line 3: `b9` is not there\n3 | for [b0:0] { b1[i0] = b9[i0] }\n"),
        ("for [b0:0] { b1[i0] = b0[i1] }\nresult b1", "line 3: `i1` is an index along an axis that does not exist"),
        ("for [b0:0] { b1[i0] = and(b0[i0], b0[i0]) }\nresult b1", "line 3: `and` does not take `f32, f32`"),
        ("for [b0:0] {\n  b1[i0] = i32(99999999999)\n}", "line 4: `99999999999` is no `i32`"),
        ("for [b0:0] {\n  b0[i0] = b1[i0]\n}", "line 4: a store to b0, which is an input"),
        ("result b0", "line 1: b0 is an input and a result"),
        ("for [b0:0] { b1[i0] = b0[i0]", "line 3: expected a name or a number"),
        ("call matmul(b1) = (b0, b0)", "line 3: a library with operands of other numbers of axes"),
        ("call sort(b1) = (b1)", "line 3: `sort` makes and takes one buffer"),
        ("tree0 { x }", "line 3: a program that is read has no fields and calls no kernels"),
        ("region r0 \"f\" ()", "line 3: a program that is read has no fields and calls no kernels"),
        ('tmp b2 "z": f32[4294967296]', "line 3: the size of an axis is 4294967296"),
        ('tmp b2 "z": f32[(f32(1.5))]', "line 3: a size is an `i32`, not `f32`"),
        ('tmp b2 "z": f32[' + ", ".join(["1"] * 65) + "]", "line 3: b2 has more than 64 axes"),
        ("for [b0:0] { b1[i0] = " + "neg(" * 600 + "f32(1.0)" + ")" * 600 + " }", "line 3: more than 500 operands"),
        ("if " * 3 + "u1(1) {", "line 3: "),
        ("if u1(1) { " * 600, "line 3: more than 500 operands or blocks are nested"),
        (
            'tmp b2 "m": i32[]\nfor [4] {\n  if lt(i0, i32(2)) { b2[] max init = i0 }\n}\nresult b2',
            "line 4: `init` of b2 stands in a branch or a loop of a `for`",
        ),
        ("break", "line 3: no loop to leave"),
        ("\0", "line 3: "),
        ("é" * 30 + " b9", "line 3: "),
    ],
)  # fmt: skip
def test_a_text_with_a_mistake_is_refused_at_its_line(text, message):
    with pytest.raises(ValueError) as raised:
        ti.program_from_text(HEAD + text)
    said = str(raised.value)
    assert said.startswith(message) and said.splitlines()[-1].strip().endswith("^"), said


def test_the_mark_is_below_the_word():
    with pytest.raises(ValueError) as raised:
        ti.program_from_text(HEAD + "for [b0:0] { b1[i0] = b9[i0] }")
    _, line, mark = str(raised.value).splitlines()
    assert line[mark.index("^") :].startswith("b9[i0]")


def test_deep_expressions_by_names_are_refused():
    names = "%0 = b0[i0]\n" + "".join(f"%{k + 1} = add(%{k}, %{k})\n" for k in range(5000))
    with pytest.raises(ValueError, match="more than 1000 nested operations"):
        ti.program_from_text(f"{HEAD}for [b0:0] {{ {names} b1[i0] = %5000 }}\nresult b1")
    names = "%0 = i0\n" + "".join(f"%{k + 1} = add(%{k}, %{k})\n" for k in range(400))
    doubled = ti.program_from_text(f"{HEAD}for [b0:0] {{ {names} b1[i0] = b0[%400] }}\nresult b1")
    # 2^400 times an index wraps around to zero.
    assert doubled(t.arange(3.0) + 1).tolist() == [1, 1, 1]


# What programs of the recorder never do.


@pytest.mark.parametrize("index", ["add(i0, i32(5))", "sub(i0, i32(1))", "mul(i0, i32(1000000007))", "i32(-1)"])
@pytest.mark.parametrize("is_store", [False, True])
def test_indices_that_promise_to_be_in_bounds_are_checked(index, is_store):
    access = f"b1[{index}] = b0[i0]" if is_store else f"b1[i0] = b0[{index}]"
    program = ti.program_from_text(f"{HEAD}for [b0:0] {{ {access} }}\nresult b1")
    for n in (2, 6, 100_000):
        with pytest.raises(IndexError, match="is outside axis 0 with"):
            program(t.ones(n))
    assert program(t.ones(0)).tolist() == []


def test_a_choice_protects_an_index():
    text = "for [b0:0] { b1[i0] = select(ge(i0, i32(2)), b0[sub(i0, i32(2))], f32(0.0)) }\nresult b1"
    assert ti.program_from_text(HEAD + text)(t.arange(5.0)).tolist() == [0, 0, 0, 1, 2]


def test_indices_from_memory_are_checked():
    text = 'in b0 "x": f32[?]\nin b1 "i": i32[?]\ntmp b2 "y": f32[b1:0]\nfor [b1:0] { b2[i0] = b0[b1[i0]] }\nresult b2'
    program = ti.program_from_text(text)
    assert program(t.arange(3.0), t.asarray([2, 0])).tolist() == [2, 0]
    with pytest.raises(IndexError, match="index 3 is outside axis 0 with 3 elements"):
        program(t.arange(3.0), t.asarray([2, 3]))


def test_memory_that_nobody_wrote_is_zero():
    program = ti.program_from_text(HEAD + "for [] { b1[i32(0)] = b0[i32(0)] }\nresult b1")
    for _ in range(3):
        (t.ones(100_000) * 7).sum().item()
        assert program(t.ones(100_000)).sum().item() == 1.0


def test_sizes_that_inputs_do_not_have():
    text = 'in b0 "x": f32[?]\nin b1 "y": f32[b0:0]\ntmp b2 "z": f32[b0:0]\nfor [b0:0] { b2[i0] = b1[i0] }\nresult b2'
    program = ti.program_from_text(text)
    assert program(t.ones(3), t.ones(3)).shape == (3,)
    with pytest.raises(ValueError, match="axis 0 has 3 elements, not 1000"):
        program(t.ones(1000), t.ones(3))


@pytest.mark.parametrize(
    "text, message",
    [
        ('tmp b2 "m": f32[2, 2]\ntmp b3 "n": f32[3, 3]\ncall matmul(b3) = (b2, b2)\nresult b3', "the shapes of the operands of `matmul`"),
        ('tmp b2 "m": f32[2]\ncall sort(b2) = (b0)\nresult b2', "the shapes of the operands of `sort`"),
        ('tmp b2 "m": f32[2, 3]\ncall inv(b2) = (b2)', "`inv` makes and takes one buffer"),
        ('tmp b2 "m": f32[2, 3]\ntmp b3 "n": f32[2, 3]\ncall inv(b3) = (b2)\nresult b3', "the shapes of the operands of `inv`"),
        ('tmp b2 "h": f32[b0:0]\ncall pop(b1, b2) = (b2)\nresult b1', "`pop` takes a value that no `push` has put"),
    ],
)  # fmt: skip
def test_libraries_look_at_their_operands(text, message):
    with pytest.raises(ValueError, match=message):
        ti.program_from_text(HEAD + text)(t.ones(1))


def test_huge_temporaries_are_an_error():
    text = 'tmp b2 "m": f32[2147483647, 2147483647, 2147483647]\nfor [] { b2[i32(0), i32(1), i32(2)] = f32(1.0) }\nresult b2'
    with pytest.raises(MemoryError):
        ti.program_from_text(HEAD + text)(t.ones(1))


# Files.


def saved(tmp_path):
    @ti.program
    def step(u, v, dt=0.5):
        v = v + dt * (u @ t.asarray(WEIGHTS))
        return {"u": u + v, "v": [v[1:], v.sum()]}

    path = tmp_path / "step.aerogel"
    step.lower(floats(3, 4), floats(3, 4)).save(path)
    return path, path.read_bytes()


def tried(path, data):
    """Loads and runs a file: the error, if it is one of those that there may be."""
    path.write_bytes(data)
    try:
        loaded = ti.load_program(path)
    except ValueError as e:
        return str(e)
    try:
        loaded(floats(3, 4), floats(3, 4))
    except (ValueError, TypeError, IndexError, MemoryError) as e:
        return str(e)
    return None


def test_files_that_are_cut_off(tmp_path):
    path, data = saved(tmp_path)
    for n in [*range(0, len(data), 37), len(data) - 1]:
        assert tried(path, data[:n]), n


def changed_metadata(data, change):
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    header["__metadata__"].pop("aerogel.sha256")
    change(header["__metadata__"])
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data[8 + size :]


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda m: m.update(version="2"), "has format version 2; this Aerogel reads version 1"),
        (lambda m: m.pop("format"), "has no program: read its tensors by `ti.load`"),
        (lambda m: m.pop("signature"), "no signature"),
        (lambda m: m.update(signature="[" * 100_000), "is damaged"),
        (lambda m: m.update(signature="{}"), "the signature has no list of parameters"),
        (lambda m: m.update(signature=m["signature"].replace('"u"', '"import os"', 1)), "is not a valid parameter name"),
        (lambda m: m.update(signature=m["signature"].replace("f32", "f64")), r"the input `u` of the program is f32\[None, None\], and is given f64"),
        (lambda m: m.update(signature=m["signature"].replace('{"planes": 1}', '{"planes": 2}', 1)), "the tree of results has 4 tensors, the program 3"),
        (lambda m: m.update(signature=m["signature"].replace('{"planes": 1}', '{"eval": "1"}', 1)), "is not a node of a tree"),
        (lambda m: m.update(program=m["program"].replace("constant 0", "constant 1")), "the input `constant 1` of the program .* is given nothing"),
        (lambda m: m.update(program=m["program"] + "\nresult b77"), "line .*`b77` is not there"),
    ],
)  # fmt: skip
def test_metadata_of_another_program(tmp_path, change, message):
    path, data = saved(tmp_path)
    path.write_bytes(changed_metadata(data, change))
    with pytest.raises(ValueError, match=message):
        ti.load_program(path)


def test_other_files_are_no_programs(tmp_path):
    ti.save(tmp_path / "x", {"x": t.ones(3)})
    with pytest.raises(ValueError, match="has no program: read its tensors by `ti.load`"):
        ti.load_program(tmp_path / "x")


def test_files_with_changed_bytes(tmp_path):
    """`AEROGEL_N_MUTATIONS` says how many."""
    path, data = saved(tmp_path)
    # With a hash all of them would be refused before they are looked at.
    data = changed_metadata(data, lambda m: None)
    draw = random.Random(int(os.environ.get("AEROGEL_FIRST_SEED", "0")))
    n_refused, n = 0, int(os.environ.get("AEROGEL_N_MUTATIONS", "300"))
    for _ in range(n):
        own = bytearray(data)
        for _ in range(draw.choice([1, 1, 2, 8])):
            at = draw.randrange(len(own))
            if draw.random() < 0.7:
                own[at] = draw.randrange(256)
            elif draw.random() < 0.5:
                del own[at : at + draw.randrange(1, 9)]
            else:
                own[at:at] = own[at : at + draw.randrange(1, 9)]
        n_refused += tried(path, bytes(own)) is not None
    # Most of a small file is its header; bytes of constants may be anything.
    assert n_refused > n // 2
