"""A tree of boxes is built, and rays are cast through it."""

import numpy as np
import taichi as ti
from _client import run

ti.init(arch=ti.cpu)
from tibvh import AABB, LBVH  # noqa: E402, the package starts Taichi by itself if it has not been started

n, rays = 20_000, 20_000
rng = np.random.default_rng(0)
low = rng.random((n, 3), dtype=np.float32)
boxes = AABB(n)
boxes.aabbs.min.from_numpy(low)
boxes.aabbs.max.from_numpy(low + 0.02)
tree = LBVH(boxes)
origins, ways = ti.Vector.field(3, ti.f32, rays), ti.Vector.field(3, ti.f32, rays)
origins.from_numpy(rng.random((rays, 3), dtype=np.float32) - np.float32([0, 0, 2]))
ways.from_numpy(np.float32([0, 0, 1]) + 0.05 * rng.standard_normal((rays, 3)).astype(np.float32))
points = ti.Vector.field(3, ti.f32, rays)
points.from_numpy(rng.random((rays, 3), dtype=np.float32))
found = ti.field(ti.i32, (rays, 33))


@ti.kernel
def cast():
    for i in origins:
        hits, count = tree.collect_intersecting_elements(origins[i], ways[i].normalized())
        for k in ti.static(range(32)):
            found[i, k] = hits[k]
        found[i, 32] = count


@ti.kernel
def query() -> ti.i32:
    return ti.cast(tree.query(points), ti.i32)


def step():
    tree.build()
    cast()
    query()


def read():
    pairs = tree.query_result.to_numpy()[: tree.query_result_count[None]]
    return {
        "hits": np.sort(found.to_numpy(), 1),
        "low": tree.nodes.aabb_min.to_numpy()[: 2 * n - 1],
        "parents": tree.nodes.parent.to_numpy()[: 2 * n - 1],
        "pairs": pairs[np.lexsort(pairs.T)],
    }


run(step, read, ti.sync)
