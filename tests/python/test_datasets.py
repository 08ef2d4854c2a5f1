"""Data from files, and batches in an order that a seed determines."""

import gzip
import struct

import numpy as np
import pytest

import aerogel as ti
from aerogel import datasets as d

t = ti.tensor


@pytest.fixture(autouse=True)
def _start():
    ti.init(arch=ti.cpu, log_level="error")
    yield
    ti.reset()


def idx_bytes(array, code):
    return struct.pack(f">HBB{array.ndim}I", 0, code, array.ndim, *array.shape) + array.tobytes()


@pytest.mark.parametrize("code, dtype", [(8, "u1"), (9, "i1"), (11, ">i2"), (12, ">i4"), (13, ">f4"), (14, ">f8")])
@pytest.mark.parametrize("packed", [False, True])
def test_idx(tmp_path, code, dtype, packed):
    array = (np.arange(24).reshape(2, 3, 4) - 5).astype(dtype)
    data = idx_bytes(array, code)
    (tmp_path / "x").write_bytes(gzip.compress(data) if packed else data)
    x = d.idx(tmp_path / "x")
    assert x.tolist() == array.tolist() and x.numpy().dtype == array.dtype.newbyteorder("=")


def test_idx_of_other_files(tmp_path):
    data = idx_bytes(np.zeros((2, 3), "u1"), 8)
    for wrong, words in (
        (data[:-1], r"x is no IDX file: at byte 12, 6 bytes follow for the shape \(2, 3\), there are 5"),
        (data + b"1", "there are 7"),
        (data[:9], "at byte 9, it ends before the sizes of 2 axes"),
        (b"\0\0\x07\1", "at byte 0, 00 00 07 01 is not its magic number"),
        (b"", "at byte 0"),
        (gzip.compress(data)[:-9], "begins like a gzip file, but is not one"),
    ):
        (tmp_path / "x").write_bytes(wrong)
        with pytest.raises(ValueError, match=words):
            d.idx(tmp_path / "x")


def test_mnist(tmp_path):
    images, labels = np.arange(3 * 784, dtype="u1").reshape(3, 28, 28), np.array([1, 2, 3], "u1")
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx_bytes(images, 8)))
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(idx_bytes(labels, 8))
    x, y = d.mnist(tmp_path)
    assert (x.numpy() == images).all() and y.tolist() == [1, 2, 3]
    with pytest.raises(FileNotFoundError, match="t10k-images-idx3-ubyte.gz; Aerogel downloads nothing"):
        d.mnist(tmp_path, "test")


def test_npz(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.ones((2, 3), np.float32), y=np.arange(2))
    got = d.npz(tmp_path / "a.npz")
    assert got["x"].shape == (2, 3) and got["y"].tolist() == [0, 1]
    np.savez(tmp_path / "b.npz", x=np.array([{}], dtype=object))
    np.save(tmp_path / "c.npy", np.ones(2))
    (tmp_path / "d.npz").write_bytes(b"PK\3\4 no archive")
    for name, words in (
        ("b.npz", "b.npz cannot be read"),
        ("c.npy", "one array and no names"),
        ("d.npz", "d.npz cannot"),
    ):
        with pytest.raises(ValueError, match=words):
            d.npz(tmp_path / name)


def test_csv(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("size, weight, kind\n1, 2.5, b\n\n2, , a\n3, 1e2, b\n")
    columns, texts = d.csv(path)
    assert columns["size"].tolist() == [1, 2, 3] and columns["size"].dtype is ti.i32
    assert columns["weight"].tolist()[::2] == [2.5, 100.0] and np.isnan(columns["weight"].numpy()[1])
    assert columns["kind"].tolist() == [1, 0, 1] and texts == {"kind": ["a", "b"]}
    path.write_text("1;2\n3;4\n")
    assert {k: v.tolist() for k, v in d.csv(path, delimiter=";").columns.items()} == {"0": [1, 3], "1": [2, 4]}
    path.write_text("a,b\n1,2\n3\n")
    with pytest.raises(ValueError, match="a.csv, line 3: there are 1 values for 2 columns"):
        d.csv(path)
    path.write_text("")
    with pytest.raises(ValueError, match="a.csv has no rows"):
        d.csv(path)
    path.write_bytes(b"\xff\xfe1")
    with pytest.raises(ValueError, match="a.csv is not UTF-8 text"):
        d.csv(path)


def test_characters(tmp_path):
    (tmp_path / "a.txt").write_text("hello wörld\n", encoding="utf-8")
    text = d.text(tmp_path / "a.txt")
    assert text.decode(text.tokens) == "hello wörld\n" and len(text) == 12 and text.vocabulary == "\n dehlorwö"
    with pytest.raises(ValueError, match="'x' is not in the vocabulary"):
        text.encode("x")
    with pytest.raises(IndexError, match="there is no character 10: the vocabulary has 10"):
        text.decode([10])
    windows = text.windows(4)
    assert len(windows) == 8
    assert [text.decode(w) for w in windows[-1]] == ["örld", "rld\n"]
    x, y = windows[0]
    assert text.decode(x) == "hell" and text.decode(y) == "ello"
    seen = set()
    for x, y in d.Batches(windows, 3, seed=4):
        assert x.shape == y.shape and (x[:, 1:].numpy() == y[:, :-1].numpy()).all()
        seen |= {text.decode(row) for row in x}
    assert len(seen) == 8
    with pytest.raises(ValueError, match="`Windows` of 12 tokens"):
        text.windows(12)


def test_batches():
    x, y = np.arange(20).reshape(10, 2), t.arange(10)
    batches = d.Batches({"x": x, "y": (y,)}, 4, seed=3)
    assert len(batches) == 3
    first = [b["y"][0].tolist() for b in batches]
    assert [len(b) for b in first] == [4, 4, 2] and sorted(sum(first, [])) == list(range(10))
    for b in batches:
        assert (b["x"].numpy()[:, 0] == 2 * b["y"][0].numpy()).all() and b["x"].dtype is ti.i64
    second = [b.tolist() for b in d.Batches(y, 4, seed=3)]
    assert second == first, "the order follows from the seed"
    again = d.Batches(y, 4, seed=3)
    next(iter(again))
    assert [b.tolist() for b in again] != first, "and from the epoch"
    again.epoch = 0
    assert [b.tolist() for b in again] == first
    assert [b.tolist() for b in d.Batches(y, 4, shuffle=False, drop_last=True)] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    doubled = d.Batches(y, 5, shuffle=False, transform=lambda b: b * 2)
    assert [b.tolist() for b in doubled] == [[0, 2, 4, 6, 8], [10, 12, 14, 16, 18]]


def test_batches_compile_once():
    from aerogel import _native

    batches = d.Batches(t.arange(100).reshape(50, 2), 5)
    counts = []
    for _ in range(2):
        for _ in batches:
            counts.append(_native.tensor_counts()[3])
    assert counts[-1] <= counts[1] + 1


def test_progress_is_shown_where_it_is_asked_for(monkeypatch, capsys):
    pytest.importorskip("tqdm")
    monkeypatch.setenv("AEROGEL_PROGRESS", "1")
    ti.set_logging_level(ti.INFO)
    list(d.Batches(t.arange(10), 5, description="epoch"))
    list(d.Batches(t.arange(10), 5))
    ti.set_logging_level(ti.ERROR)
    assert capsys.readouterr().err.count("epoch: 100%") == 1


def test_split():
    x, y = t.arange(10), np.arange(10) * 2
    (a, b), (c, e) = d.split((x, y), 0.7, 0.3)
    assert a.shape == (7,) and c.shape == (3,) and sorted(a.tolist() + c.tolist()) == list(range(10))
    assert (b.numpy() == 2 * a.numpy()).all() and (e.numpy() == 2 * c.numpy()).all()
    assert [p.tolist() for p in d.split(x, 0.5, 0.5, seed=None)] == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]


WRONG = [
    (lambda: d.Batches(t.ones(3), 0), ValueError, "at least one example, not 0"),
    (lambda: d.Batches((t.ones(3), t.ones(4))), ValueError, r"the data\[0\]: 3, the data\[1\]: 4"),
    (lambda: d.Batches(5), TypeError, "the data is int"),
    (lambda: d.Batches([]), ValueError, "the same number of examples, not none"),
    (lambda: d.split(t.ones(3), 0.8, 0.3), ValueError, "their sum at most 1"),
    (lambda: d.Characters("a", "bb"), ValueError, "twice in the vocabulary"),
]


@pytest.mark.parametrize("k", range(len(WRONG)))
def test_wrong(k):
    call, kind, words = WRONG[k]
    with pytest.raises(kind, match=words):
        call()
