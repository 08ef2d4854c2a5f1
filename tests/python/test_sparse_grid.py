"""`ti.sparse`: grids of structs."""

import pytest

import aerogel as ti


@pytest.mark.parametrize("shape", [(8, 10), (4, 5, 6)])
def test_grid(arch, shape):
    grid = ti.sparse.grid({"pos": ti.math.vec2, "mass": ti.f32, "near": ti.types.vector(20, ti.i32)}, shape=shape)
    assert ti.sparse.usage(grid) == 0.0
    first = (0,) * len(shape)
    grid[first].mass = 2.0
    grid[first].near[2] = 7

    @ti.kernel
    def double() -> int:
        n = 0
        for I in ti.grouped(grid):
            grid[I].mass *= 2
            n += grid[I].near[2]
        return n

    assert double() == 7 and grid[first].mass == 4.0
    cells = 1
    for extent in shape:
        cells *= extent
    assert ti.sparse.usage(grid) == pytest.approx(1 / cells)


def test_lists_of_structs(arch):
    Edge = ti.types.struct(a=ti.math.vec2, n=ti.i32)
    edges = Edge.field()
    ti.root.dynamic(ti.i, 64, chunk_size=4).place(edges)
    lists = Edge.field()
    ti.root.dense(ti.i, 3).dynamic(ti.j, 16).place(lists)

    @ti.kernel
    def fill() -> int:
        for k in range(10):
            edges.append(Edge(ti.math.vec2(k, -k), k * k))
        for i in range(3):
            for k in range(i + 1):
                lists[i].append(Edge(ti.math.vec2(i, k), 10 * i + k))
        return edges.length()

    @ti.kernel
    def total() -> int:
        s = 0
        for i in edges:
            s += edges[i].n + int(edges[i].a.x) + int(edges[i].a.y)
        for i, j in lists:
            s += 1000 * lists[i, j].n
        return s

    @ti.kernel
    def clear():
        edges.deactivate()

    assert fill() == 10
    assert total() == sum(k * k for k in range(10)) + 1000 * (0 + 10 + 11 + 20 + 21 + 22)
    clear()
    assert total() == 1000 * 84


def test_grid_shape(cpu):
    with pytest.raises(ValueError, match="2 or 3 axes"):
        ti.sparse.grid({"m": ti.f32}, shape=(4,))
