"""Millions of cells come and go, and nothing is left behind."""

import gc
from functools import partial

import pytest

import aerogel as ti


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * 4096


def cells(node):
    return [s["cells"] for s in node.stats()]


N = 1 << 17


def make(size):
    """A tree of each kind, and one of all: its nodes, and kernels that fill, empty and sum them."""
    p, b, d, n, h = (ti.field(ti.i32) for _ in range(5))
    pointer = ti.root.pointer(ti.i, size)
    pointer.place(p)
    bitmasked = ti.root.bitmasked(ti.i, size)
    bitmasked.place(b)
    dynamic = ti.root.dense(ti.i, 64).dynamic(ti.j, size // 64, 32)
    dynamic.place(d)
    nested = ti.root.pointer(ti.i, size // 256)
    hash_node = ti.root.hash(ti.ij, 8 * size)
    hash_node.place(h)
    middle = nested.pointer(ti.i, 16)
    middle.bitmasked(ti.i, 16).place(n)

    @ti.kernel
    def activate(step: ti.i32):
        # An odd multiple visits every cell once, far from the one before.
        for k in range(size):
            i = k * step % size
            p[i] = b[i] = n[i] = i + 1
            d[i % 64].append(i)
            # Each step has cells of its own, far apart.
            h[i * 7 + step, i * 5] = i + 1

    @ti.kernel
    def deactivate(step: ti.i32):
        for k in range(size):
            i = k * step % size
            ti.deactivate(pointer, i)
            ti.deactivate(bitmasked, i)
        for i, j in h:
            ti.deactivate(hash_node, [i, j])
        for i in range(size // 256):
            ti.deactivate(nested, i)
        for i in range(64):
            d[i].deactivate()

    @ti.kernel
    def sums() -> ti.types.vector(5, ti.i64):
        s = ti.Vector([0, 0, 0, 0, 0], ti.i64)
        for i in p:
            s[0] += p[i]
        for i in b:
            s[1] += b[i]
        for i, j in d:
            s[2] += d[i, j] + 1
        for i in n:
            s[3] += n[i]
        for i, j in h:
            s[4] += h[i, j]
        return s

    return (pointer, bitmasked, dynamic, nested, hash_node), activate, deactivate, sums


def test_millions_of_cells_come_and_go(cpu):
    nodes, activate, deactivate, sums = make(N)
    before = None
    # Ten rounds of five trees with 2^17 cells: seven million activations.
    for k in range(10):
        activate(2 * k + 1)
        assert sums().to_list() == [N * (N + 1) // 2] * 5
        assert [cells(node) for node in nodes] == [[N], [N], [N], [N // 256, N // 16, N], [N]]
        if k % 2:
            deactivate(4 * k + 3)
        else:
            for node in nodes:
                node.deactivate_all()
        assert [cells(node) for node in nodes] == [[0], [0], [0], [0, 0, 0], [0]]
        assert all(
            s["elements"] == s["used_bytes"] == 0 for node in nodes for s in node.stats() if s["kind"] != "bitmasked"
        )
        assert sums().to_list() == [0] * 5
        if k == 1:  # All kernels are compiled.
            before = resident()
    assert resident() < before + 5 * 2**20


def test_thousands_of_cells_come_and_go(arch):
    """The same at a size for every arch."""
    size = 1 << 11
    nodes, activate, deactivate, sums = make(size)
    before = None
    for k in range(12):
        activate(2 * k + 1)
        assert sums().to_list() == [size * (size + 1) // 2] * 5
        assert [cells(node) for node in nodes] == [[size], [size], [size], [size // 256, size // 16, size], [size]]
        deactivate(4 * k + 3)
        stats = [s for node in nodes for s in node.stats()]
        assert [[s[name] for s in stats] for name in ("cells", "elements", "used_bytes")] == [[0] * 7] * 3
        assert sums().to_list() == [0] * 5
        held = sum(s["held_bytes"] for s in stats), ti._native.live_bytes()
        if k == 2:  # All kernels are compiled.
            before = held
        # Threads that reach a cell at once each take an element, of which all but one come back: what is held is the most.
        assert k < 3 or all(now <= then + 2**15 for now, then in zip(held, before))


@ti.kernel
def write(p: ti.template(), b: ti.template(), d: ti.template(), n: ti.template()):
    for i in range(500):
        p[i] = b[i] = n[i] = i
        d[i % 5, i // 5] = i


def test_hundreds_of_trees_come_and_go(cpu):
    before = live = None
    for k in range(500):
        builder = ti.FieldsBuilder()
        fields = p, b, d, n = [ti.field(ti.i32) for _ in range(4)]
        builder.pointer(ti.i, 64).dense(ti.i, 16).place(p)
        builder.bitmasked(ti.i, 1000).place(b)
        builder.dense(ti.i, 5).dynamic(ti.j, 128, 8).place(d)
        nested = builder.pointer(ti.i, 8).bitmasked(ti.i, 8)
        nested.dynamic(ti.j, 4, 2).place(ti.field(ti.i32))
        builder.hash(ti.ij, 1 << 30).place(ti.field(ti.i32))
        nested.pointer(ti.i, 4).dense(ti.i, 4).place(n)
        tree = builder.finalize()
        # A kernel is compiled for its fields, which takes longer than all else here.
        compiled = k % 50 == 0
        if compiled:
            write(*fields)
            assert p.to_numpy().sum() == b.to_numpy().sum() == d.to_numpy().sum() == n.to_numpy().sum() == 124750
        for field in fields:
            field[(3,) * len(field.shape)] = k
            assert field[(3,) * len(field.shape)] == k
        tree.destroy()
        uses = [tree.stats, *([partial(write, *fields)] if compiled else [])]
        for f in fields:
            uses += [lambda f=f: f[(3,) * len(f.shape)], lambda f=f: f.fill(1), f.to_numpy]
            uses += [f.parent().deactivate_all, f.parent().stats]
        for use in uses:
            with pytest.raises(ti.AerogelRuntimeError, match="no longer exists"):
                use()
        if k == 100:
            gc.collect()
            before, live = resident(), ti._native.live_bytes()
    del fields, p, b, d, n, f, field, uses, use, nested, tree, builder
    gc.collect()
    assert ti._native.live_bytes() <= live
    assert resident() < before + 5 * 2**20


@pytest.mark.parametrize("by_kernel", [True, False])
def test_large_cells_take_memory_where_they_are_touched(cpu, by_kernel):
    """A cell in which one number was written is zeroed without touching the rest."""
    x, y = ti.field(ti.i32), ti.field(ti.i32)
    node = ti.root.pointer(ti.i, 64)
    node.dense(ti.j, 1 << 26).place(x)  # 256 MiB each.
    masked = ti.root.bitmasked(ti.i, 2)
    masked.dense(ti.j, 1 << 26).place(y)

    @ti.kernel
    def write(i: ti.i32, j: ti.i32, value: ti.i32):
        x[i, j] = y[i % 2, j] = value

    @ti.kernel
    def clear():
        for i in node:
            ti.deactivate(node, i)
        for i in masked:
            ti.deactivate(masked, i)

    write(0, 5, 1)
    clear()
    before = resident()
    for k in range(1, 20):
        write(k, k << 21, k)
        assert x[k, k << 21] == y[k % 2, k << 21] == k
        if by_kernel:
            clear()
        else:
            node.deactivate_all()
            masked.deactivate_all()
        assert x[k, k << 21] == y[k % 2, k << 21] == 0 and cells(node) == cells(masked) == [0]
        assert resident() < before + 64 * 2**20
    write(3, 7 << 21, 1)
    assert x[3, 7 << 21] == 1 and x[3, 6 << 21] == y[1, 3 << 21] == 0
