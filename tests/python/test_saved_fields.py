"""`ti.save` and `ti.load(into=)` of fields, arrays and what holds them, and checkpoints of running programs."""

import dataclasses
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import aerogel as ti
from aerogel import _safetensors

t = ti.tensor


@pytest.fixture(autouse=True)
def _start():
    ti.init(arch=ti.cpu, log_level="error")
    yield
    ti.reset()


@pytest.mark.parametrize("name", ["load", "load_program", "tools.save"])
def test_the_first_name_that_a_program_uses(name):
    code = f"import aerogel as ti; print(callable(ti.{name}))"
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(p for p in sys.path if p))
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.stdout == "True\n", done.stderr


@dataclasses.dataclass
class State:
    x: object
    parts: object
    time: float = 0.0
    label: object = None


def states():
    """All that may be saved, with other values at each call."""
    rng = np.random.default_rng()
    quant = ti.field(ti.types.quant.int(5))
    packed = ti.BitpackedFields(32)
    packed.place(quant)
    ti.root.dense(ti.i, 4).place(packed)
    shifted = ti.field(ti.i16)
    ti.root.dense(ti.i, 3).place(shifted, offset=-1)
    own = {
        "f64": ti.field(ti.f64, (2, 3)),
        "f16": ti.field(ti.f16, 3),
        "bf16": ti.field(ti.bf16, 3),
        "u1": ti.field(ti.u1, 3),
        "one": ti.field(ti.u64, ()),
        "vectors": ti.Vector.field(3, ti.f32, 2),
        "matrices": ti.Matrix.field(2, 3, ti.f32, 2),
        "structs": ti.Struct.field({"m": ti.f32, "v": ti.math.vec2, "in": {"n": ti.i64}}, shape=3),
        "array": ti.ndarray(ti.f32, (2, 2)),
        "vector array": ti.Vector.ndarray(2, ti.f64, 3),
        "numpy": np.zeros(4, np.uint16),
        "quant": quant,
        "offset": shifted,
    }
    for x in own.values():
        whole = x.to_numpy() if hasattr(x, "to_numpy") else x
        if isinstance(whole, dict):
            whole = {
                "m": rng.random(3, np.float32), "v": rng.random((3, 2), np.float32), "in": {"n": rng.integers(99, size=3)}
            }  # fmt: skip
            x.from_numpy(whole)
        elif isinstance(x, np.ndarray):
            x[:] = rng.integers(9, size=4)
        elif whole.dtype.kind in "iu":
            x.from_numpy(rng.integers(9, size=whole.shape).astype(whole.dtype))
        else:
            x.from_numpy((rng.random(whole.shape) * 8).astype(np.int32).astype(whole.dtype))
    own["tensors"] = [t.asarray(rng.random(3)), ti.Vector([rng.random(), 2.0])]
    own["net"] = ti.nn.Linear(2, 2)
    own["state"] = State(own["f64"], [1, 2.5], float(rng.random()), "run")
    return own


def plain(x):
    """Values that can be compared."""
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items()}
    if dataclasses.is_dataclass(x):
        return plain(vars(x))
    if isinstance(x, ti.nn.Module):
        return plain(x.state_dict())
    if isinstance(x, list):
        return [plain(v) for v in x]
    if hasattr(x, "to_numpy"):
        return plain(x.to_numpy())
    return np.asarray(x.detach() if hasattr(x, "detach") else x).tolist() if not isinstance(x, str) else x


def test_everything_is_restored(tmp_path):
    a, b = states(), states()
    ti.save(tmp_path / "a", a)
    assert plain(a) != plain(b)
    assert ti.load(tmp_path / "a", into=b) is b
    assert plain(a) == plain(b)
    got = ti.load(tmp_path / "a")
    assert got["state"].time == a["state"].time and got["structs"]["in"]["n"].tolist() == plain(a["structs"])["in"]["n"]
    assert got["vectors"].shape == (2, 3) and got["f64"].dtype is ti.f64


def test_what_does_not_fit_changes_nothing(tmp_path):
    def state(**other):
        own = {"x": ti.field(ti.f32, 4), "y": np.zeros(2), "step": 1, "pair": (1, 2), **other}
        return {k: v for k, v in own.items() if v is not None}

    saved = state()
    saved["x"].fill(1)
    ti.save(tmp_path / "a", saved)
    frozen = dataclasses.make_dataclass("Frozen", ["x"], frozen=True)
    ti.save(tmp_path / "frozen", {"all": frozen(1.5)})
    sparse = ti.field(ti.f32)
    ti.root.pointer(ti.i, 4).place(sparse)
    for own, kind, words in (
        (state(y=np.zeros(3)), ValueError, r"a does not fit: `y` has the shape \(3,\), the file has \(2,\)"),
        (state(y=np.zeros(2, np.float32)), TypeError, "a does not fit: `y` holds f32, the file has f64"),
        (state(y=None), ValueError, "the value lacks `y`, which the file has"),
        (state(z=np.zeros(2)), ValueError, "the value has `z`, which the file lacks"),
        (state(y=sparse), ValueError, "`y` is a sparse field, the file has a value of the kind 'tensor'"),
        (state(y="text"), ValueError, "`y` is str, the file has a value of the kind 'tensor'"),
        (state(step="text"), ValueError, "`step` is str, the file has a value of the kind 'int'"),
        (state(pair=(1, 3)), ValueError, "`pair.1` is in a tuple or a frozen dataclass and cannot be replaced"),
        (state(pair=(1,)), ValueError, "`pair` has 1 values, the file has 2"),
        (state(pair=[1, [2]]), ValueError, "`pair.1` is a list"),
        (state(y=ti.nn.Linear(1, 2)), ValueError, "`y` is the state of Linear"),
    ):
        with pytest.raises(kind, match=words):
            ti.load(tmp_path / "a", into=own)
        assert own["x"].to_numpy().max() == 0, words
    with pytest.raises(ValueError, match="`all.x` is in a tuple or a frozen dataclass"):
        ti.load(tmp_path / "frozen", into={"all": frozen(2.5)})
    with pytest.raises(KeyError, match="missing: bias"):
        own = {"x": ti.field(ti.f32, 2), "net": ti.nn.Linear(2, 2)}
        ti.save(tmp_path / "net", {"x": np.ones(2, np.float32), "net": {"weight": t.ones((2, 2))}})
        ti.load(tmp_path / "net", into=own)
    assert own["x"].to_numpy().max() == 0
    data = (tmp_path / "a").read_bytes()
    (tmp_path / "b").write_bytes(data[:-3])
    with pytest.raises(ValueError, match="b is not a safetensors file: at byte .*, the file ends, but `x` extends"):
        ti.load(tmp_path / "b", into=state())


def sparse_fields():
    x, v, d = ti.field(ti.f32), ti.Vector.field(2, ti.f64), ti.field(ti.i32)
    block = ti.root.pointer(ti.ij, 8)
    block.bitmasked(ti.ij, 4).place(x, v, offset=(-4, 0))
    ti.root.dynamic(ti.i, 64, chunk_size=8).place(d)
    return x, v, d, block


def test_sparse_fields(tmp_path):
    """Elements, and cells of the node above that have no active element."""
    x, v, d, block = sparse_fields()
    rng = np.random.default_rng(1)
    for _ in range(20):
        i, j = (int(n) for n in rng.integers(28, size=2))
        x[i - 4, j] = rng.random()
        v[j - 4, i] = rng.random(2)
    d[10] = 100
    d[3] = 9
    block.activate_cells([[7, 7]])
    ti.save(tmp_path / "a", {"x": x, "v": v, "nodes": [d]})
    saved = [[a.tolist() for a in own.active_cells()] for own in (x, v, d)], block.active_cells().tolist()
    ti.init(arch=ti.cpu, log_level="error")
    x, v, d, block = sparse_fields()
    x[27, 3], d[60] = 5, 1
    ti.load(tmp_path / "a", into={"x": x, "v": v, "nodes": [d]})
    assert ([[a.tolist() for a in own.active_cells()] for own in (x, v, d)], block.active_cells().tolist()) == saved
    assert [7, 7] in saved[1] and len(d.active_cells()[0]) == 11 and d[10] == 100
    small = ti.field(ti.f32)
    ti.root.pointer(ti.ij, 4).place(small)
    small[1, 1] = 3
    with pytest.raises(ValueError, match=r"`x` has the shape \(4, 4\), the file has the index"):
        ti.load(tmp_path / "a", into={"x": small, "v": v, "nodes": [d]})
    assert small[1, 1] == 3 and set(ti.load(tmp_path / "a")["x"]) == {"indices", "values"}


def simulation():
    x, count, grid = ti.Vector.field(2, ti.f32, 64), ti.field(ti.i32, ()), ti.field(ti.f32)
    ti.root.pointer(ti.ij, 16).dense(ti.ij, 4).place(grid)

    @ti.kernel
    def step():
        for i in x:
            x[i] = ti.math.fract(x[i] + 0.1 * ti.Vector([ti.random(), ti.randn()]))
            grid[ti.cast(x[i] * 63, ti.i32)] += x[i].x
        count[None] += 1

    return {"x": x, "count": count, "grid": grid, "noise": t.zeros(3)}, step


def test_a_simulation_that_is_resumed_continues_bit_equal(tmp_path):
    path = tmp_path / "run.checkpoint"

    def run(until, seed):
        ti.init(arch=ti.cpu, log_level="error", random_seed=seed)
        state, step = simulation()
        for k in range(ti.tools.resume(path, state), until):
            step()
            state["noise"] = state["noise"] + t.random.rand(3)
            if k % 3 == 2:
                ti.tools.checkpoint(path, state, k + 1)
        return {k: (v.to_numpy() if hasattr(v, "to_numpy") else v.numpy()).tobytes() for k, v in state.items()}

    t.random.seed(5)
    whole = run(10, 1)
    path.unlink()
    t.random.seed(5)
    run(7, 1)
    t.random.seed(9)
    # The seeds of the second run are those of the first.
    assert run(10, 2) == whole
    with pytest.raises(ValueError, match="`state` has `more`, which the file lacks"):
        ti.tools.resume(path, {**simulation()[0], "more": 1})
    with pytest.raises(TypeError, match="a step is an integer, not 1.5"):
        ti.tools.checkpoint(path, {}, 1.5)
    t.random.seed(0)


def test_states_of_modules_are_taken_together(tmp_path):
    path = tmp_path / "n.safetensors"
    ti.save(path, {"a": ti.nn.Linear(2, 2), "b": ti.nn.Linear(2, 3)})
    first = ti.nn.Linear(2, 2)
    before = first.weight.detach().numpy().copy()
    with pytest.raises(ValueError):
        ti.load(path, into={"a": first, "b": ti.nn.Linear(2, 2)})
    np.testing.assert_array_equal(first.weight.detach().numpy(), before)


def rewritten(path, tensors=(), tree=None):
    """The file with other tensors, or another structure, and its hash."""
    own, texts = _safetensors.read(str(path))
    own |= {name: t.asarray(x) for name, x in dict(tensors).items()}
    _safetensors.write(path, own, {"aerogel": texts["aerogel"] if tree is None else json.dumps(tree)})


@pytest.mark.parametrize("cells", [[[1000]], [[-1]], [[1.5]], [1, 2, 3], [[1, 2, 3]]])
def test_wrong_cells_of_inner_nodes_change_nothing(tmp_path, cells):
    sparse, dense = ti.field(ti.f32), ti.field(ti.f32, shape=2)
    ti.root.pointer(ti.i, 4).pointer(ti.i, 4).dense(ti.i, 4).place(sparse)
    path, state = tmp_path / "s.safetensors", {"sparse": sparse, "dense": dense}
    sparse[3] = 1
    ti.save(path, state)
    rewritten(path, {"nodes.0": np.array(cells, np.float32 if cells == [[1.5]] else np.int32)})
    sparse[3] = 7
    dense.fill(7)
    with pytest.raises(ValueError, match="have invalid indices"):
        ti.load(path, into=state)
    assert sparse[3] == 7 and dense[1] == 7


@pytest.mark.parametrize("tree", [{"dict": 5}, {"list": 5}, {"dict": {"x": {"tensor": ["x"]}}}, {"dict": {"x": 3}}, 7])
def test_structures_that_are_malformed(tmp_path, tree):
    path, x = tmp_path / "x.safetensors", ti.field(ti.f32, shape=2)
    ti.save(path, {"x": x, "n": 1})
    rewritten(path, tree=tree)
    for into in (None, {"x": x}, [x]):
        with pytest.raises(ValueError, match="x.safetensors"):
            ti.load(path, into=into)


def test_numbers_and_vectors_of_another_kind(tmp_path):
    path = tmp_path / "n.safetensors"
    for saved, own in [(1.5, 3), (True, 3), (1, True), ("1", 3), (ti.Vector([1, 2, 3]), ti.Vector([1, 2]))]:
        ti.save(path, {"n": saved})
        with pytest.raises(ValueError, match="`n` is"):
            ti.load(path, into={"n": own})
    ti.save(path, {"n": 2})
    assert ti.load(path, into={"n": 0.5}) == {"n": 2}


def test_names_that_would_be_lost(tmp_path):
    path, x = tmp_path / "x.safetensors", np.zeros(2, np.float32)
    with pytest.raises(ValueError, match="two keys of one text"):
        ti.save(path, {1: x, "1": x})
    for name in ("aerogel", "aerogel.sha256"):
        with pytest.raises(ValueError, match="which Aerogel uses"):
            ti.save(path, {"x": x}, metadata={name: "y"})
    assert not path.exists()
    ti.save(path, {1: x, 2: x})
    assert list(ti.load(path)) == [1, 2]


def test_checkpoints_with_wrong_numbers_change_nothing(tmp_path):
    path, x = tmp_path / "x.checkpoint", ti.field(ti.f32, shape=2)
    with pytest.raises(ValueError, match="from 0"):
        ti.tools.checkpoint(path, {"x": x}, -1)
    ti.tools.checkpoint(path, {"x": x}, 3)
    texts = _safetensors.read(str(path))[1]
    for wrong in ({"step": {"value": 1.5}}, {"random": {"dict": {}}}):
        tree = json.loads(texts["aerogel"])
        tree["dict"] |= wrong
        if "random" in wrong:
            names = ("seed", "launches", "tensors", "drawn")
            tree["dict"]["random"]["dict"] = {name: {"value": 1.5} for name in names}
        rewritten(path, tree=tree)
        x.fill(7)
        with pytest.raises(ValueError, match="not integers from 0"):
            ti.tools.resume(path, {"x": x})
        assert x[0] == 7
