"""Sparse fields as arrays, in files, and on the screen."""

import json
import os
import random
import struct
import threading
import zlib

import numpy as np
import pytest

import aerogel as ti
from aerogel.tools import sparse as format

LAYOUTS = {
    "dense": lambda: ti.root.dense(ti.ij, (12, 8)),
    "pointer": lambda: ti.root.pointer(ti.ij, (3, 2)).dense(ti.ij, 4),
    "bitmasked": lambda: ti.root.bitmasked(ti.ij, (12, 8)),
    "pointer pointer": lambda: ti.root.pointer(ti.j, 2).pointer(ti.i, 3).dense(ti.ij, 4),
    "dense bitmasked": lambda: ti.root.dense(ti.i, 6).bitmasked(ti.ij, (2, 8)),
    "pointer bitmasked": lambda: ti.root.pointer(ti.ij, (3, 4)).bitmasked(ti.ij, (4, 2)),
    "bitmasked bitmasked": lambda: ti.root.bitmasked(ti.i, 3).bitmasked(ti.ij, (4, 8)),
    "dynamic": lambda: ti.root.dense(ti.i, 12).dynamic(ti.j, 8, chunk_size=2),
    "hash": lambda: ti.root.hash(ti.ij, (12, 8)),
    "hash hash": lambda: ti.root.hash(ti.ij, (3, 4)).hash(ti.ij, (4, 2)),
    "hash bitmasked": lambda: ti.root.hash(ti.ij, (3, 4)).bitmasked(ti.ij, (4, 2)),
    "pointer dynamic": lambda: ti.root.pointer(ti.i, 12).dynamic(ti.j, 8, chunk_size=1),
}


@pytest.fixture(params=LAYOUTS)
def layout(request):
    return LAYOUTS[request.param]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "cells.agl"


@ti.kernel
def visit(x: ti.template(), out: ti.types.ndarray()) -> int:
    n = 0
    ti.loop_config(serialize=True)
    for i, j in x:
        out[n, 0], out[n, 1] = i, j
        n += 1
    return n


def in_order(x, n):
    """The indices of the active elements as a loop visits them."""
    out = np.zeros((n, 2), np.int32)
    return out[: visit(x, out)]


def scatter(x, rng, n=20, offset=(0, 0)):
    """Writes to some elements; the model maps indices to values."""
    at = np.stack([rng.integers(0, extent, n) for extent in x.shape], 1) + np.array(offset)
    values = rng.integers(1, 100, n)
    x.set_cells(at, values)
    return {tuple(i): v for i, v in zip(at.tolist(), values.tolist())}


def held(*fields):
    """All that can be seen of fields: order, indices, bytes."""
    return [(at.tolist(), values.tobytes()) for at, values in (x.active_cells() for x in fields)]


def test_active_cells_are_those_of_loops(arch, layout, rng):
    x = ti.field(ti.i32)
    layout().place(x)
    model = scatter(x, rng)
    at, values = x.active_cells()
    assert at.dtype == np.int32 and values.dtype == np.int32 and at.flags.writeable
    assert (at == in_order(x, 96)).all() and len(at) == len(values)
    assert {tuple(i): v for i, v in zip(at.tolist(), values.tolist()) if v} == model
    dense = np.zeros(x.shape, np.int32)
    dense[tuple(at.T)] = values
    assert (dense == x.to_numpy()).all()
    x.parent().deactivate_all()
    if x.parent().stats():
        assert len(x.active_cells()[0]) == 0


def test_many_cells_in_parts(arch, rng):
    # More than one part for each thread, with ranges that begin within a word of the mask.
    x, y = ti.field(ti.i32), ti.field(ti.u8)
    ti.root.bitmasked(ti.i, 70001).place(x)
    ti.root.pointer(ti.i, 3).dense(ti.i, 20000).place(y)
    at = rng.permutation(70001)[:5000]
    x.set_cells(at, at * 3)
    found, values = x.active_cells()
    assert (found[:, 0] == np.sort(at)).all() and (values == 3 * found[:, 0]).all()
    y.set_cells([45000], 7)
    found, values = y.active_cells()
    assert (found[:, 0] == np.arange(40000, 60000)).all() and values.nonzero()[0].tolist() == [5000]
    # Of equal indices the last counts, however threads race.
    same = rng.integers(0, 50, 20000)
    x.set_cells(same, np.arange(20000))
    last = {i: k for k, i in enumerate(same.tolist())}
    assert all(x[i] == k for i, k in last.items())


def test_vectors_matrices_offsets(arch, rng):
    v, m = ti.Vector.field(3, ti.f32), ti.Matrix.field(2, 2, ti.f64)
    s = ti.field(ti.u1)
    ti.root.pointer(ti.ij, 2).bitmasked(ti.ij, 4).place(v, s, offset=(-4, 100))
    ti.root.dynamic(ti.i, 9, chunk_size=2).place(m)
    at = np.array([[-4, 100], [3, 107], [0, 104]])
    values = rng.random((3, 3))
    v.set_cells(at, values)
    assert np.allclose(v[3, 107].to_list(), values[1])
    found, back = v.active_cells()
    order = np.lexsort(found.T)
    assert (found[order] == at[np.lexsort(at.T)]).all() and back.shape == (3, 3)
    assert np.allclose(back[order], values[np.lexsort(at.T)])
    s.set_cells([[-4, 107]], True)
    assert len(v.active_cells()[0]) == 4 and s.active_cells()[1].sum() == 1
    # Cells of a node have no offset.
    assert sorted(v.parent().active_cells().tolist()) == [[0, 0], [0, 7], [4, 4], [7, 7]]
    m.set_cells([4], [[1, 2], [3, 4]])
    found, back = m.active_cells()
    assert found.tolist() == [[0], [1], [2], [3], [4]] and back.shape == (5, 2, 2)
    assert back[4].tolist() == [[1, 2], [3, 4]] and back[:4].sum() == 0
    c = m.get_scalar_field(1, 0)
    assert c.active_cells()[1].tolist() == [0, 0, 0, 0, 3]
    single = ti.field(ti.f32, shape=())
    single.set_cells(np.zeros((1, 0), int), 4.0)
    assert single.active_cells()[0].shape == (1, 0) and single.active_cells()[1].tolist() == [4]


def test_components_apart(arch):
    v = ti.Vector.field(2, ti.i16, shape=(3, 2), layout=ti.Layout.SOA, order="ji")
    v.set_cells([[2, 1], [0, 1]], [[1, 2], [3, 4]])
    at, values = v.active_cells()
    assert at.tolist() == [[0, 0], [1, 0], [2, 0], [0, 1], [1, 1], [2, 1]]
    assert values.tolist() == [[0, 0], [0, 0], [0, 0], [3, 4], [0, 0], [1, 2]]


def test_nothing_changes_when_an_argument_is_wrong(arch):
    x, u = ti.field(ti.i32, name="x"), ti.field(ti.u8)
    block = ti.root.pointer(ti.ij, 4)
    block.dense(ti.ij, 2).place(x, offset=(2, 0))
    ti.root.bitmasked(ti.i, 8).place(u)
    x.set_cells([[2, 0]], 5)
    before = held(x, u)
    good = np.tile([[3, 3]], (1000, 1))
    for bad in ([1, 3], [10, 0], [3, 8], [3, -1], [-(2**31), 0], [2**31 - 1, 0], [2**40, 3]):
        at = np.concatenate([good, [bad]])
        with pytest.raises(IndexError) as e:
            x.set_cells(at, 1)
        assert "`x`" in str(e.value) and str(bad[0]) in str(e.value)
    for at, values, error in [
        ([[3.0, 3.0]], 1, TypeError),
        ([[True, True]], 1, TypeError),
        ([3, 3], 1, ValueError),
        ([[3, 3, 3]], 1, ValueError),
        ([[3, 3]], [1, 2], ValueError),
        ([[3, 3]], [[1]], ValueError),
        ([[3, 3]], 1.5, TypeError),
        ([[3, 3]], "a", TypeError),
        ([[3, 3]], 1j, TypeError),
        ([[3, 3]], 2**31, ValueError),
    ]:
        with pytest.raises(error):
            x.set_cells(at, values)
    for value in (256, -1):
        with pytest.raises(ValueError):
            u.set_cells([1], value)
    with pytest.raises(IndexError):
        block.activate_cells([[0, 1], [0, 4]])
    with pytest.raises(TypeError):
        block.activate_cells([[0.5, 1]])
    assert held(x, u) == before and block.stats()[0]["cells"] == 1
    x.set_cells([], [])
    x.set_cells(np.zeros((0, 2), np.int64), 1)
    assert held(x, u) == before


def test_cells_of_nodes(arch):
    x = ti.field(ti.f32)
    block = ti.root.pointer(ti.ij, (4, 3))
    inner = block.bitmasked(ti.ij, 2)
    inner.place(x)
    block.activate_cells([[3, 2], [0, 1], [3, 2]])
    assert block.active_cells().tolist() == [[0, 1], [3, 2]] and len(x.active_cells()[0]) == 0
    inner.activate_cells([[7, 0]])
    assert block.active_cells().tolist() == [[0, 1], [3, 0], [3, 2]]
    assert inner.active_cells().tolist() == [[7, 0]] and x.active_cells()[1].tolist() == [0]
    assert block.active_cells().dtype == np.int32 and block.parent().active_cells().shape == (1, 0)


def test_strided_and_foreign_arrays(arch, rng):
    x = ti.field(ti.f32)
    ti.root.bitmasked(ti.ij, 8).place(x)
    wide = rng.integers(0, 8, (10, 4)).astype(">i8")
    values = rng.random(20).astype(np.float64)[::2]
    x.set_cells(wide[:, ::2], values)
    model = {tuple(i): v for i, v in zip(wide[:, ::2].tolist(), values.astype(np.float32).tolist())}
    at, back = x.active_cells()
    assert dict(zip(map(tuple, at.tolist()), back.tolist())) == model


def test_threads_share_a_field(cpu):
    x = ti.field(ti.i32)
    block = ti.root.pointer(ti.i, 64)
    block.bitmasked(ti.i, 64).place(x)

    @ti.kernel
    def mark(k: int):
        for i in range(512):
            x[8 * i + k] = i + 1

    def from_outside(k):
        x.set_cells(np.arange(512) * 8 + k, np.arange(1, 513))

    work = [threading.Thread(target=f, args=(k,)) for k in range(8) for f in [mark if k % 2 else from_outside]]
    for w in work:
        w.start()
    for w in work:
        w.join()
    at, values = x.active_cells()
    assert (at[:, 0] == np.arange(4096)).all() and (values == np.arange(4096) // 8 + 1).all()
    assert block.stats()[0]["elements"] == 64


def test_too_much_memory(arch):
    x = ti.field(ti.u8)
    node = ti.root.pointer(ti.i, 8)
    node.dense(ti.ij, (1 << 14, 1 << 31)).place(x)
    for act in (lambda: x.set_cells([[5, 7]], 1), lambda: node.activate_cells([[2]])):
        with pytest.raises(MemoryError):
            act()
        assert x[5, 7] == 0 and len(x.active_cells()[0]) == len(node.active_cells()) == 0


# Files


def test_saved_cells_come_back(arch, layout, rng, path):
    x = ti.field(ti.i32, name="x")
    layout().place(x)
    scatter(x, rng)
    # An active cell of value 0 is not an inactive one.
    x.set_cells([[1, 6]], 0)
    before = held(x)
    ti.tools.save_sparse(path, x)
    scatter(x, rng, n=50)
    ti.tools.load_sparse(path, x)
    assert held(x) == before
    assert os.listdir(path.parent) == [path.name]


def test_from_one_layout_into_another(arch, layout, rng, path):
    x = ti.field(ti.i32, name="x")
    layout().place(x)
    scatter(x, rng)
    ti.tools.save_sparse(path, x)
    for other in LAYOUTS.values():
        y = ti.field(ti.i32)
        other().place(y)
        scatter(y, rng)
        ti.tools.load_sparse(path, y)
        assert (y.to_numpy() == x.to_numpy()).all()


@pytest.mark.parametrize("dtype", ["u1", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f16", "f32", "f64"])
def test_types(cpu, dtype, rng, path):
    kind = getattr(ti, dtype)
    x, v = ti.field(kind), ti.Vector.field(2, kind)
    m = ti.Matrix.field(2, 3, kind)
    ti.root.pointer(ti.i, 4).dense(ti.i, 3).place(x, v)
    ti.root.dynamic(ti.ij[0], 12, chunk_size=2).place(m, offset=-5)
    x.set_cells([4, 11], rng.integers(0, 2, 2))
    v.set_cells([4, 7], rng.integers(0, 2, (2, 2)))
    m.set_cells(range(-5, 2), rng.integers(0, 2, (7, 2, 3)))
    before = held(x, v, m)
    ti.tools.save_sparse(path, x, v, m)
    for field in (x, v, m):
        field.fill(1)
        field.set_cells([3], 1)
    ti.tools.load_sparse(path, x, v, m)
    assert held(x, v, m) == before


def test_whole_trees(arch, rng, path):
    def make():
        builder = ti.FieldsBuilder()
        x, y, z, w = (ti.field(ti.f32, name=n) for n in "xyzw")
        block = builder.pointer(ti.ij, (3, 4))
        inner = block.bitmasked(ti.ij, 2)
        inner.place(x, y)
        block.place(z)
        lists = builder.dense(ti.i, 3).dynamic(ti.j, 10, chunk_size=1)
        lists.place(w)
        return builder, builder.finalize(), block, inner, lists, (x, y, z, w)

    builder, tree, block, inner, lists, fields = make()
    x, y, z, w = fields
    x.set_cells(rng.integers(0, 6, (5, 2)), rng.random(5))
    z.set_cells([[2, 3]], 0)
    block.activate_cells([[1, 1]])
    inner.activate_cells([[0, 0]])
    w.set_cells([[0, 9], [2, 0]], [1, 2])
    expected = held(*fields), [n.active_cells().tolist() for n in (block, inner, lists)]
    assert [1, 1] in expected[1][0]

    def change(fields):
        for field in fields:
            field.set_cells([[0, 3], [1, 2], [2, 2]], [1, 2, 3])

    for what in ([builder], [tree], [builder.root], [*fields]):
        ti.tools.save_sparse(path, *what)
        change(fields)
        ti.tools.load_sparse(path, *what)
        assert (held(*fields), [n.active_cells().tolist() for n in (block, inner, lists)]) == expected
    # Into a tree of the same layout, and by name in another order.
    other, _, block2, inner2, lists2, fields2 = make()
    change(fields2)
    ti.tools.load_sparse(path, *reversed(fields2))
    assert (held(*fields2), [n.active_cells().tolist() for n in (block2, inner2, lists2)]) == expected
    # One field alone leaves its neighbours; what they share stays active.
    change(fields2)
    y_before, z_before = y2, z2 = [f.to_numpy() for f in fields2[1:3]]
    ti.tools.load_sparse(path, fields2[0])
    assert (fields2[0].to_numpy() == x.to_numpy()).all()
    assert (fields2[1].to_numpy() == y_before).all() and (fields2[2].to_numpy() == z_before).all()
    assert fields2[0].active_cells()[0].tolist() == fields2[1].active_cells()[0].tolist()
    # Lists that hold this field alone become as short as they were.
    ti.tools.load_sparse(path, fields2[3])
    assert held(fields2[3]) == held(w)
    builder._native.destroy()
    with pytest.raises(RuntimeError):
        ti.tools.save_sparse(path, builder)


def test_layouts_that_look_the_same(arch, path):
    def make():
        x = ti.field(ti.i32)
        block = ti.FieldsBuilder()
        node = block.pointer(ti.i, 4)
        node.bitmasked(ti.i, 2).place(x)
        return x, node

    (x, xs), (y, ys) = make(), make()
    xs.activate_cells([1])
    ys.activate_cells([3])
    ti.tools.save_sparse(path, x, y)
    ti.tools.load_sparse(path, x, y)
    assert (xs.active_cells().tolist(), ys.active_cells().tolist()) == ([[1]], [[3]])


def test_many_blocks(arch, rng, path, monkeypatch):
    monkeypatch.setattr(format, "BLOCK", 100)
    x = ti.field(ti.f32)
    ti.root.pointer(ti.i, 64).bitmasked(ti.i, 64).place(x)
    at = rng.permutation(4096)[:1050]
    x.set_cells(at, rng.random(1050))
    before = held(x)
    ti.tools.save_sparse(path, x)
    x.parent(2).deactivate_all()
    ti.tools.load_sparse(path, x)
    assert held(x) == before
    # Two whole blocks that change places are found out.
    data = path.read_bytes()
    blocks = split(data)
    assert len(blocks) == 1 + 11 + 1
    path.write_bytes(b"".join([*blocks[:1], blocks[2], blocks[1], *blocks[3:]]))
    with pytest.raises(ValueError, match="checksum of block 0"):
        ti.tools.load_sparse(path, x)
    path.write_bytes(b"".join(blocks[:-1]))
    with pytest.raises(ValueError, match="ends before block 11"):
        ti.tools.load_sparse(path, x)
    assert held(x) == before


def split(data):
    """A file's header and blocks."""
    at = format._PREFIX.size + struct.unpack_from("<I", data, 12)[0]
    parts = [data[:at]]
    while at < len(data):
        end = at + format._BLOCK.size + struct.unpack_from("<I", data, at + 4)[0]
        parts.append(data[at:end])
        at = end
    return parts


@pytest.fixture
def damaged(arch, rng, path):
    """A file, the fields it is of (which hold something else by now), and a check that a file is refused."""
    x, v = ti.field(ti.f32, name="x"), ti.Vector.field(2, ti.i16, name="v")
    ti.root.pointer(ti.ij, 3).bitmasked(ti.ij, 4).place(x)
    ti.root.dynamic(ti.i, 20, chunk_size=2).place(v)
    scatter(x, rng)
    v.set_cells([9], [[1, 2]])
    ti.tools.save_sparse(path, x, v)
    x.set_cells([[11, 11]], 3)
    v.fill(4)
    before = held(x, v)

    def refused(data, *words, what=(x, v)):
        path.write_bytes(data)
        with pytest.raises(ValueError) as e:
            ti.tools.load_sparse(path, *what)
        assert path.name in str(e.value) and all(w in str(e.value) for w in words), str(e.value)
        assert held(x, v) == before

    return path.read_bytes(), refused


def test_truncated_files_are_refused(damaged):
    data, refused = damaged
    for n in range(len(data)):
        refused(data[:n])
    refused(data + b"\0", "1 more bytes after its end")


def test_flipped_bits_are_refused(damaged):
    data, refused = damaged
    random.seed(1)
    for at in range(len(data)):
        flipped = bytearray(data)
        flipped[at] ^= 1 << random.randrange(8)
        refused(bytes(flipped))
    for _ in range(100):
        begin = random.randrange(len(data))
        n = random.randrange(1, 40)
        noise = data[:begin] + random.randbytes(len(data[begin : begin + n])) + data[begin + n :]
        if noise != data:
            refused(noise)


def made(data, change):
    """The file with another header, and right checksums."""
    _, *blocks = split(data)
    size = struct.unpack_from("<I", data, 12)[0]
    header = json.loads(data[format._PREFIX.size :][:size])
    change(header)
    text = json.dumps(header).encode()
    prefix = struct.pack("<8sIII", format.MAGIC, 1, len(text), 0)
    prefix = prefix[:-4] + struct.pack("<I", zlib.crc32(text, zlib.crc32(prefix)))
    return b"".join([prefix, text, *blocks])


def test_foreign_and_newer_files_are_refused(damaged):
    data, refused = damaged
    refused(b"", "not a file of sparse fields")
    refused(b"PK\x03\x04" + bytes(100), "not a file of sparse fields")
    refused(data.replace(b"\r\n", b"\n", 1), "not a file of sparse fields")
    refused(data[:8] + struct.pack("<I", 2) + data[12:], "version 2", "reads version 1")
    assert made(data, lambda h: None) == data
    for key, value in {
        "cells": 10**9,
        "shape": [12, 13],
        "dtype": "f64",
        "element": [2],
        "offset": [1, 0],
    }.items():
        refused(made(data, lambda h: h["fields"][0].update({key: value})))
    for value in (-1, "many", 1.5, None, {}):
        refused(made(data, lambda h: h["fields"][0].update(cells=value)))
        refused(made(data, lambda h: h["fields"][0].update(shape=[value])))
    refused(made(data, lambda h: h.pop("nodes")), "invalid header")
    for section in ("fields", "nodes"):
        for key in json.loads(data[format._PREFIX.size :][: struct.unpack_from("<I", data, 12)[0]])[section][0]:
            refused(made(data, lambda h: h[section][0].pop(key)), "invalid header")
    refused(made(data, lambda h: h["fields"].append(3)), "invalid header")
    refused(made(data, lambda h: h["fields"][0].update(dtype="f33")))
    # Less than there is, which leaves a block over.
    refused(made(data, lambda h: h.update(nodes=[])), "bytes after")


def test_files_that_do_not_fit_are_refused(damaged):
    data, refused = damaged
    for field, key in [
        (ti.field(ti.f32, shape=(12, 11), name="x"), "shape"),
        (ti.field(ti.i32, shape=(12, 12), name="x"), "dtype"),
        (ti.Vector.field(2, ti.f32, shape=(12, 12), name="x"), "element"),
        (ti.field(ti.f32, shape=(12, 12), name="x", offset=(0, 1)), "offset"),
    ]:
        refused(data, "`x`", key, what=[field])
        assert not field.to_numpy().any()
    refused(data, "2 fields", what=[ti.field(ti.f32, shape=(12, 12), name="q")])


def test_misuse(arch, path):
    x = ti.field(ti.f32, shape=3)
    for what, error in [((), ValueError), ((x, x), ValueError), ((3,), TypeError), ((ti.FieldsBuilder(),), ValueError)]:
        with pytest.raises(error):
            ti.tools.save_sparse(path, *what)
    assert not path.exists()
    with pytest.raises(FileNotFoundError):
        ti.tools.load_sparse(path, x)
    with pytest.raises(FileNotFoundError):
        ti.tools.save_sparse(path / "deeper", x)


def test_a_failed_save_leaves_the_old_file(arch, path, monkeypatch):
    x = ti.field(ti.f32, shape=3)
    ti.tools.save_sparse(path, x)
    old = path.read_bytes()

    def full(fd):
        raise OSError(28, "no space left on device")

    x.fill(1)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError):
        ti.tools.save_sparse(path, x)
    assert path.read_bytes() == old and os.listdir(path.parent) == [path.name]


def test_links_are_followed(arch, path):
    x = ti.field(ti.f32, shape=3)
    link = path.with_name("link")
    link.symlink_to(path)
    ti.tools.save_sparse(link, x)
    assert link.is_symlink() and path.stat().st_size > 0


def test_nanovdb(arch, tmp_path):
    pytest.importorskip("warp")
    x, y = ti.field(ti.f32), ti.field(ti.f32)
    ti.root.pointer(ti.ijk, 4).bitmasked(ti.ijk, 8).place(x, offset=(-16, 0, 0))
    ti.root.bitmasked(ti.ijk, 32).place(y, offset=(-16, 0, 0))
    at = [[-16, 0, 0], [-1, 8, 31], [15, 31, 7], [3, 3, 3]]
    x.set_cells(at, [1, 2.5, -3, 0])
    file = tmp_path / "x.nvdb"
    ti.tools.export_nanovdb(x, file, voxel_size=0.5)
    ti.tools.import_nanovdb(file, y)
    assert sorted(y.active_cells()[0].tolist()) == sorted(at[:3])
    assert (x.to_numpy() == y.to_numpy()).all()
    small = ti.field(ti.f32, shape=(8, 8, 8))
    with pytest.raises(IndexError):
        ti.tools.import_nanovdb(file, small)
    file.write_bytes(b"no volume at all")
    with pytest.raises(ValueError):
        ti.tools.import_nanovdb(file, y)


def test_nanovdb_takes_volumes_of_floats(arch):
    for field in (ti.field(ti.f64, shape=(2, 2, 2)), ti.field(ti.f32, shape=4), ti.Vector.field(3, ti.f32, shape=4)):
        with pytest.raises(TypeError):
            ti.tools.export_nanovdb(field, "x.nvdb")


# Seeing


@pytest.fixture
def blob():
    x = ti.field(ti.f32, name="x")
    block = ti.root.pointer(ti.ij, 4)
    inner = block.bitmasked(ti.ij, (2, 1))
    inner.place(x)
    x.set_cells([[0, 0], [1, 0], [6, 3]], 1)
    return x, block, inner


def test_trees_print(arch, blob):
    x, block, inner = blob
    v, lists = ti.Vector.field(3, ti.i32), ti.root.dynamic(ti.k, 8, chunk_size=2)
    lists.place(v)
    assert repr(block) == "\n".join(
        ["<ti.SNode of type pointer>", "pointer i:4 j:4", "└─ bitmasked i:2 j:1", "   └─ place x: f32"]
    )
    assert repr(lists).splitlines()[1:] == ["dynamic k:8 chunk_size=2", "└─ place i32 3"]
    builder = ti.FieldsBuilder()
    m, y = ti.Matrix.field(2, 3, ti.f32), ti.field(ti.f32, name="y")
    builder.dense(ti.i, 2).place(m)
    builder.pointer(ti.i, 2)
    # A look at a layout does not finish it.
    assert repr(builder.root).splitlines()[1:] == ["root", "├─ dense i:2", "│  └─ place f32 2x3", "└─ pointer i:2"]
    builder.root.place(y)
    assert "place y: f32" in repr(builder.finalize())
    text = repr(ti.root)
    assert all(node in text for node in ("pointer i:4 j:4", "dynamic k:8 chunk_size=2", "place y: f32"))


def test_statistics_print_as_a_table(arch, blob, capsys):
    x, block, inner = blob
    lines = str(block.stats()).splitlines()
    assert lines[0].split() == ["node", "active", "of", "used", "held"]
    assert lines[1].split()[:6] == ["pointer", "4x4", "2", "16", "12.5", "%"]
    assert lines[2].split()[:6] == ["bitmasked", "8x4", "3", "32", "9.38", "%"]
    assert len({len(line) for line in lines}) == 1
    ti.profiler.print_memory_profiler_info()
    out = capsys.readouterr().out
    assert "bytes in fields" in out and str(block.stats()) in out
    other = ti.FieldsBuilder()
    other.bitmasked(ti.i, 7).place(ti.field(ti.i32))
    tree = other.finalize()
    ti.profiler.print_memory_profiler_info()
    assert "bitmasked 7 " in capsys.readouterr().out
    assert [row["cells"] for row in ti.root.stats()] == [2, 3, 0]
    tree.destroy()
    ti.profiler.print_memory_profiler_info()
    assert "bitmasked 7 " not in capsys.readouterr().out


def test_maps_print(arch, blob, capsys):
    x, block, inner = blob
    x.show_sparsity()
    assert capsys.readouterr().out.splitlines() == [
        "pointer [4, 4]: 2 of 16 cells active (12.5 %)",
        "┌────────┐",
        "│      ██│",
        "│        │",
        "│        │",
        "│██      │",
        "└────────┘",
        "bitmasked [8, 4]: 3 of 32 cells active (9.38 %)",
        "┌────────────────┐",
        "│            ██  │",
        "│                │",
        "│                │",
        "│████            │",
        "└────────────────┘",
    ]
    block.show_sparsity(size=2, levels=1)
    assert capsys.readouterr().out.splitlines()[1:] == ["┌────┐", "│  ░░│", "│░░  │", "└────┘"]
    block.parent().show_sparsity(size=1)
    assert capsys.readouterr().out.count("│░░│") == 2
    ti.root.show_sparsity(levels=1)
    assert capsys.readouterr().out.splitlines()[0] == "pointer [4, 4]: 2 of 16 cells active (12.5 %)"
    ti.field(ti.f32, shape=(2, 3)).show_sparsity()
    assert capsys.readouterr().out == "dense [2, 3]: all 6 cells active\n"


def test_maps_on_terminals_without_unicode(arch, blob, capsys, monkeypatch):
    import io
    import sys

    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    blob[0].show_sparsity()
    out.flush()
    assert b"|      ##|\n" in out.buffer.getvalue()


def test_occupancy(arch, blob, rng, tmp_path):
    x, block, inner = blob
    part = x.occupancy()
    assert part.shape == (8, 4) and part.dtype == np.float32 and part.sum() == 3 and part[6, 3] == 1
    assert x.occupancy(size=2).tolist() == [[2 / 8, 0], [0, 1 / 8]]
    # Tiles of unlike size, in three axes along each.
    y = ti.field(ti.i32)
    ti.root.bitmasked(ti.ijk, (5, 7, 3)).place(y, offset=(1, -1, 0))
    dense = rng.random((5, 7, 3)) < 0.3
    y.set_cells(np.argwhere(dense) + [1, -1, 0], 1)
    for axis in range(3):
        assert np.allclose(y.occupancy(axis=axis), dense.mean(axis))
        assert np.allclose(y.parent().occupancy(axis=axis - 3), dense.mean(axis))
    tiles = y.occupancy(size=2)
    assert np.isclose(tiles[0, 0], dense[:3, :4].mean()) and np.isclose(tiles[1, 1], dense[3:, 4:].mean())
    for axis in (3, -4):
        with pytest.raises(ValueError):
            y.occupancy(axis=axis)
    with pytest.raises(ValueError):
        y.occupancy(size=0)
    line = ti.field(ti.i32)
    ti.root.dynamic(ti.i, 8, chunk_size=4).place(line)
    line[3] = 1
    assert line.occupancy(size=4).tolist() == [[1], [1], [0], [0]]
    x.show_sparsity(filename=str(tmp_path / "x.png"))
    image = ti.tools.imread(str(tmp_path / "x.png"))
    assert image.shape[:2] == (8, 4) and (image[..., 0] == 255 * part).all()
