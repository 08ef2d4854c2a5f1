"""`ti.save` and `ti.load`: what is written is read, and what is no such file is refused with the byte at which it is not."""

import hashlib
import json
import struct

import numpy as np
import pytest

import aerogel as ti
from aerogel import nn, optim

t = ti.tensor


@pytest.fixture(autouse=True)
def _start():
    ti.init(arch=ti.cpu, log_level="error")
    # Values are looked at.
    with ti.no_grad():
        yield
    ti.reset()


KINDS = ["u1", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64"]


def test_all_dtypes_and_shapes(tmp_path):
    values = {}
    for k, kind in enumerate(KINDS):
        x = t.arange(6 + k).astype(ti.f32) if kind in ("bf16", "f16") else t.arange(6 + k)
        values[f"{kind} row"] = x.astype(kind)
        values[f"{kind} matrix"] = x[:6].astype(kind).reshape(2, 3)
        values[f"{kind} one"] = x[3].astype(kind)
        values[f"{kind} none"] = t.zeros((0, 3), kind)
    ti.save(tmp_path / "x.safetensors", values, metadata={"ä": "ö"})
    got, texts = ti.load(tmp_path / "x.safetensors", metadata=True)
    assert texts == {"ä": "ö"} and set(got) == set(values)
    for name, x in values.items():
        assert got[name].dtype is x.dtype and got[name].shape == x.shape and got[name].tolist() == x.tolist(), name


def test_the_format(tmp_path):
    ti.save(tmp_path / "x", {"b": t.asarray([1, 2], ti.u8), "a": t.asarray([[1.5]], ti.f32)})
    data = (tmp_path / "x").read_bytes()
    (n,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + n])
    said = header.pop("__metadata__").pop("aerogel.sha256")
    assert said == hashlib.sha256(data[8:].replace(said.encode(), b"0" * 64)).hexdigest()
    assert n % 8 == 0 and header == {
        "a": {"dtype": "F32", "shape": [1, 1], "data_offsets": [0, 4]},
        "b": {"dtype": "U8", "shape": [2], "data_offsets": [4, 6]},
    }
    assert data[8 + n :] == struct.pack("<fBB", 1.5, 1, 2)


def test_files_of_the_package_safetensors(tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy")
    values = {"x": np.arange(6, dtype=np.float16).reshape(2, 3), "y": np.array([True, False]), "z": np.array(3)}
    safetensors.save_file(values, tmp_path / "a", metadata={"k": "v"})
    got, texts = ti.load(tmp_path / "a", metadata=True)
    assert texts == {"k": "v"} and {n: x.tolist() for n, x in got.items()} == {n: x.tolist() for n, x in values.items()}
    ti.save(tmp_path / "b", got)
    for name, x in safetensors.load_file(tmp_path / "b").items():
        assert x.dtype == values[name].dtype and (x == values[name]).all()


def test_modules(tmp_path):
    a, b = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)), nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    x = t.random.randn(5, 3)
    a(x)
    ti.save(tmp_path / "a", a)
    b.load_state_dict(ti.load(tmp_path / "a"))
    assert (a.eval()(x).numpy() == b.eval()(x).numpy()).all()


def test_nested_values(tmp_path):
    p = nn.Parameter([1.0, 2.0])
    adam = optim.Adam([p])
    p.grad = t.ones(2)
    adam.step()
    values = {
        "optimizer": adam.state_dict(),
        "epoch": 3,
        "name": "run",
        "none": None,
        "list": [1.5, t.ones(2), (True,)],
    }
    ti.save(tmp_path / "a", values)
    got = ti.load(tmp_path / "a")
    assert got["epoch"] == 3 and got["name"] == "run" and got["none"] is None
    assert got["list"][0] == 1.5 and got["list"][1].tolist() == [1, 1] and got["list"][2] == (True,)
    assert got["optimizer"]["state"][0]["step"] == 1
    assert got["optimizer"]["param_groups"] == adam.state_dict()["param_groups"]


def test_a_file_that_was_there_stays_where_writing_fails(tmp_path):
    ti.save(tmp_path / "a", {"x": t.ones(2)})
    for values, kind, words in (
        ({"x": object()}, TypeError, "`x` is object, not a field, an array, a tensor, a number"),
        ({"x": {"y": t.ones(1)}, "x.y": t.ones(1)}, ValueError, "two tensors have the name `x.y`"),
        ({"x": t.asarray([1j])}, TypeError, "`x` is complex"),
        ({("x",): 1}, TypeError, "keys are strings or integers"),
        (t.ones(2), TypeError, "takes a dictionary, a dataclass or a module, not Tensor"),
        (nn.Linear(-1, 2), ValueError, "has no values yet"),
    ):
        with pytest.raises(kind, match=words):
            ti.save(tmp_path / "a", values)
    with pytest.raises(TypeError, match="metadata map names to strings"):
        ti.save(tmp_path / "a", {"x": t.ones(1)}, metadata={"a": 1})
    assert ti.load(tmp_path / "a")["x"].tolist() == [1, 1] and len(list(tmp_path.iterdir())) == 1
    with pytest.raises(FileNotFoundError, match="none.safetensors"):
        ti.load(tmp_path / "none.safetensors")


def made(header, data=b"", size=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if size is None else size) + text + data


def entry(dtype="U8", shape=(2,), ends=(0, 2)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(ends)}


WRONG = {
    "nothing": (b"", "at byte 0, there are 0 bytes"),
    "too short": (b"1234567", "at byte 0, there are 7 bytes"),
    "a pickle": (b"\x80\x04K\x01.1234567", "could execute anything"),
    "a file of torch.save": (b"PK\x03\x04" + b"0" * 20, "`torch.save` or `pickle`"),
    "a huge header": (
        made({}, size=1 << 62),
        "at byte 0, a header of 4611686018427387904 bytes is announced, more than",
    ),
    "a header beyond the end": (made({}, size=100), "a header of 100 bytes is announced, and the file has 2 more"),
    "no dictionary": (made(b"[1]"), r"at byte 8, the header does not begin with '\{'"),
    "no JSON": (made(b'{"a": }'), "at byte 14, the header is not JSON"),
    "no UTF-8": (made(b'{"\xff": 1}'), "at byte 10, the header is not UTF-8"),
    "very deep": (made(b'{"a":' * 100000), "JSON|nested too deeply"),
    "no entry": (made({"a": 1}), "the entry of `a` has no `dtype`"),
    "no offsets": (made({"a": {"dtype": "U8", "shape": []}}), "the entry of `a`"),
    "another dtype": (made({"a": entry("F8_E4M3")}, b"12"), "`a` has the dtype 'F8_E4M3'"),
    "a list as dtype": (made({"a": entry([])}, b"12"), r"`a` has the dtype \[\]"),
    "a negative size": (made({"a": entry(shape=(-1, -2))}, b"12"), r"the shape of `a` is \[-1, -2\]"),
    "a float": (made({"a": entry(shape=(2.0,))}, b"12"), "the shape of `a`"),
    "a boolean": (made({"a": entry(shape=(True,), ends=(0, 1))}, b"1"), "the shape of `a`"),
    "ends before beginnings": (made({"a": entry(ends=(2, 0))}, b"12"), r"the `data_offsets` of `a` are \[2, 0\]"),
    "negative offsets": (made({"a": entry(ends=(-2, 0))}, b"12"), "the `data_offsets` of `a`"),
    "another size": (made({"a": entry("F32")}, b"12"), r"`a` of F32 and shape \[2\] takes 8 bytes"),
    "huge sizes": (made({"a": entry(shape=(1 << 62, 1 << 62))}, b"12"), "takes 2126764793255.* bytes"),
    "beyond the end": (made({"a": entry(shape=(3,), ends=(0, 3))}, b"12"), "the file ends, but `a` extends to byte"),
    "overlapping": (made({"a": entry(), "b": entry(ends=(1, 3))}, b"123"), "`b` overlaps the tensor before it"),
    "a gap": (made({"a": entry(), "b": entry(ends=(3, 5))}, b"12345"), "`b` begins 1 bytes after the one before"),
    "more bytes": (made({"a": entry()}, b"1234"), "the last tensor ends, and 2 bytes follow"),
    "twice": (made(b'{"a": 1, "a": 2}'), "`a` occurs twice"),
    "too many axes": (made({"a": entry(shape=(1,) * 99 + (2,))}, b"12"), "`a` is not a tensor"),
    "a number of many digits": (made(b'{"a": ' + b"9" * 9999 + b"}"), "the header is not JSON"),
    "metadata": (made({"__metadata__": {"a": 1}}), "the metadata do not map names to strings"),
    "a structure": (made({"__metadata__": {"aerogel": '{"tensor": "x"}'}}), "the structure in the metadata"),
    "other keys": (made({"__metadata__": {"aerogel": '{"dict": {}, "whole": ["x"]}'}}), "as integers"),
    "another structure": (made({"__metadata__": {"aerogel": "[]"}}), "the structure in the metadata"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_files(tmp_path, name):
    data, words = WRONG[name]
    path = tmp_path / "x.safetensors"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=f"x.safetensors is not a safetensors file: .*(?:{words})"):
        ti.load(path)


def test_changed_bytes_are_refused(tmp_path):
    """By the hash; what is not refused has lost the name of the hash, and nothing else."""
    ti.save(tmp_path / "x", {"a": t.arange(4), "b": {"c": t.ones(2), "d": 3}})
    data = (tmp_path / "x").read_bytes()
    for at in range(len(data)):
        (tmp_path / "y").write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        try:
            got = ti.load(tmp_path / "y")
        except ValueError as e:
            assert str(tmp_path / "y") in str(e)
        else:
            assert b"aerogel.sha256" not in (tmp_path / "y").read_bytes()
            assert got["a"].tolist() == [0, 1, 2, 3] and got["b"]["d"] == 3


def test_changed_bytes_without_a_hash_are_refused_or_read(tmp_path):
    ti.save(tmp_path / "x", {"a": t.arange(4), "b": {"c": t.ones(2), "d": 3}})
    data = (tmp_path / "x").read_bytes().replace(b"aerogel.sha256", b"no hash of ours")
    data = (int.from_bytes(data[:8], "little") + 1).to_bytes(8, "little") + data[8:]
    rng = np.random.default_rng(0)
    for _ in range(300):
        wrong = bytearray(data)
        for _ in range(rng.integers(1, 4)):
            wrong[rng.integers(len(wrong))] = rng.integers(256)
        (tmp_path / "y").write_bytes(wrong[: rng.integers(len(wrong)) if rng.random() < 0.3 else len(wrong)])
        try:
            ti.load(tmp_path / "y")
        except ValueError as e:
            assert "y is not a safetensors file" in str(e), e


def test_a_header_whose_size_begins_as_a_pickle(tmp_path):
    """The size 1152 is `80 04` in bytes, with which files of `pickle` begin."""
    for n in range(960, 1100, 4):
        ti.save(tmp_path / "x", {"x": t.arange(3)}, metadata={"note": "n" * n})
        if (tmp_path / "x").read_bytes()[:2] == b"\x80\x04":
            break
    else:
        pytest.fail("no header has this size")
    assert ti.load(tmp_path / "x")["x"].tolist() == [0, 1, 2]


def test_a_structure_that_is_nested_too_deeply(tmp_path):
    tree = '{"list": [' * 700 + '{"value": 1}' + "]}" * 700
    (tmp_path / "x").write_bytes(made({"__metadata__": {"aerogel": tree}}))
    with pytest.raises(ValueError, match="nested too deeply"):
        ti.load(tmp_path / "x")
