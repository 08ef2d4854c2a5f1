"""Meshes: elements, relations, attributes; against NumPy, and Taichi's format."""

import itertools
import json

import numpy as np
import pytest

import aerogel as ti


def tetrahedral_cube(n):
    """A cube of n * n * n small ones, each cut into six tetrahedra around its diagonal."""
    axis = np.arange(n + 1)
    points = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3) / n
    number = np.arange((n + 1) ** 3).reshape(n + 1, n + 1, n + 1)
    cells = []
    for i, j, k in itertools.product(range(n), repeat=3):
        for order in itertools.permutations(range(3)):
            at, corners = [i, j, k], [number[i, j, k]]
            for axis in order:
                at[axis] += 1
                corners.append(number[tuple(at)])
            cells.append(corners)
    return points, np.array(cells)


def sphere(n):
    """A closed surface of triangles: n * n quadrilaterals between poles."""
    theta, phi = np.linspace(0, np.pi, n + 2)[1:-1], np.linspace(0, 2 * np.pi, n, endpoint=False)
    t, p = np.meshgrid(theta, phi, indexing="ij")
    ring = np.stack([np.sin(t) * np.cos(p), np.sin(t) * np.sin(p), np.cos(t)], -1).reshape(-1, 3)
    points = np.concatenate([ring, [[0, 0, 1], [0, 0, -1]]])
    north, south = len(ring), len(ring) + 1
    faces = []
    for j in range(n):
        k = (j + 1) % n
        faces.append([north, j, k])
        faces.append([south, (n - 1) * n + k, (n - 1) * n + j])
        for i in range(n - 1):
            a, b, c, d = i * n + j, i * n + k, (i + 1) * n + j, (i + 1) * n + k
            faces += [[a, c, b], [b, c, d]]
    return points, np.array(faces)


def make(data, relations=None):
    return ti.Mesh._create_instance(ti.Mesh.generate_meta(data, relations))


def reference(points, corners):
    """All relations by brute force: sets of vertices that contain one another, or share one of lower order."""
    top = corners.shape[1]
    elements = [[(v,) for v in range(len(points))]]
    for k in range(2, top + 1):
        subsets = {tuple(sorted(s)) for corner in corners for s in itertools.combinations(corner.tolist(), k)}
        elements.append(sorted(subsets))
    elements[-1] = [tuple(corner) for corner in corners.tolist()]
    found = {}
    for a, b in itertools.product(range(top), repeat=2):
        rows = []
        for x in elements[a]:
            if a != b:
                rows.append({y for y, e in enumerate(elements[b]) if set(e) <= set(x) or set(x) <= set(e)})
            else:
                common = a if a else None
                edges = {frozenset(e) for e in elements[1]}
                near = lambda e: len(set(e) & set(x)) == common if a else frozenset((*e, *x)) in edges
                rows.append({y for y, e in enumerate(elements[b]) if e != x and near(e)})
        found["VEFC"[a] + "VEFC"[b]] = rows
    return [len(e) for e in elements], found


@pytest.mark.parametrize(
    "data", [tetrahedral_cube(1), tetrahedral_cube(2), sphere(4)], ids=["cube1", "cube2", "sphere"]
)
def test_all_relations(arch, data):
    counts, relations = reference(*data)
    m = make(data)
    groups = [m.verts, m.edges, m.faces, m.cells]
    assert [len(g) for g in groups] == [*counts, 0][:4]
    assert m.relation_set == set(relations)
    total = ti.field(ti.i32, shape=())

    @ti.kernel
    def look(
        source: ti.template(),
        name: ti.template(),
        sizes: ti.types.ndarray(),
        hits: ti.types.ndarray(),
        at: ti.types.ndarray(),
    ):
        for x in source:
            near = ti.static(name)(x)
            sizes[x.id] = near.size
            assert len(near) == near.size
            for y in near:
                hits[x.id, y.id] += 1
            for k in range(near.size):
                at[x.id, near[k].id] += k + 1

    @ti.func
    def verts(x):
        return x.verts

    @ti.func
    def edges(x):
        return x.edges

    @ti.func
    def faces(x):
        return x.faces

    @ti.func
    def cells(x):
        return x.cells

    access = {"V": verts, "E": edges, "F": faces, "C": cells}
    for name, rows in relations.items():
        a, b = ("VEFC".index(letter) for letter in name)
        sizes = np.zeros(counts[a], np.int32)
        hits, at = (np.zeros((counts[a], counts[b]), np.int32) for _ in range(2))
        look(groups[a], access[name[1]], sizes, hits, at)
        want = np.zeros_like(hits)
        for x, row in enumerate(rows):
            want[x, list(row)] = 1
        np.testing.assert_array_equal(hits, want, name)
        np.testing.assert_array_equal(sizes, want.sum(1), name)
        np.testing.assert_array_equal(np.sort(at, 1), np.sort(np.cumsum(want, 1) * want, 1), name)


def test_counts_of_a_cube(cpu):
    m = make(tetrahedral_cube(4), [])
    v, e, f, c = (len(group) for group in (m.verts, m.edges, m.faces, m.cells))
    # Euler's characteristic of a ball; each inner face lies at two cells, 2 * 6 * 4 * 4 at one.
    assert (v, c) == (125, 6 * 64) and v - e + f - c == 1 and 2 * f == 4 * c + 192
    assert m.get_position_as_numpy().shape == (125, 3)


def test_normals_of_vertices(arch):
    points, faces = sphere(8)
    m = make((points, faces), ["FV", "VF"])
    vec3 = ti.types.vector(3, ti.f64)
    m.verts.place({"x": vec3, "normal": vec3}, reorder=True)
    m.faces.place({"normal": vec3})
    m.verts.x.from_numpy(m.get_position_as_numpy())

    @ti.kernel
    def normals(mesh: ti.template()):
        for f in mesh.faces:
            v0 = f.verts[0]
            v1, v2 = f.verts[1], f.verts[2]
            f.normal = (v1.x - v0.x).cross(v2.x - v0.x)
        ti.mesh_local(mesh.verts.x)
        for v in mesh.verts:
            for f in v.faces:
                v.normal += f.normal
            v.normal = v.normal.normalized()

    normals(m)
    a, b, c = (points[faces[:, k]] for k in range(3))
    of_faces = np.cross(b - a, c - a)
    want = np.zeros_like(points)
    for k in range(3):
        np.add.at(want, faces[:, k], of_faces)
    want /= np.linalg.norm(want, axis=1)[:, None]
    np.testing.assert_allclose(m.verts.normal.to_numpy(), want, atol=1e-12)
    # They point outside.
    assert (np.einsum("ij,ij->i", want, points) > 0.9).all()


def test_a_step_of_springs(cpu):
    points, cells = tetrahedral_cube(2)
    m = make((points, cells), ["EV", "VE"])
    vec3 = ti.types.vector(3, ti.f64)
    m.verts.place({"x": vec3, "v": vec3}, layout=ti.Layout.AOS)
    m.edges.place({"rest": ti.f64})
    m.verts.x.from_numpy(m.get_position_as_numpy())

    @ti.data_oriented
    class Springs:
        def __init__(self, mesh):
            self.mesh = mesh

        @ti.kernel
        def rest(self):
            for e in self.mesh.edges:
                e.rest = 0.875 * (e.verts[0].x - e.verts[1].x).norm()

        @ti.kernel
        def step(self, dt: ti.f64):
            for v in self.mesh.verts:
                force = ti.Vector([0.0, 0.0, -1.0], dt=ti.f64)
                for e in v.edges:
                    other = e.verts[0]
                    if other.id == v.id:
                        other = e.verts[1]
                    d = other.x - v.x
                    force += 10 * (d.norm() - e.rest) * d.normalized()
                v.v += dt * force
            for v in self.mesh.verts:
                v.x += dt * v.v

    springs = Springs(m)
    springs.rest()
    for _ in range(20):
        springs.step(0.01)
    x, v = points.copy(), np.zeros_like(points)
    edges = sorted({tuple(sorted(p)) for c in cells.tolist() for p in itertools.combinations(c, 2)})
    i, j = np.array(edges).T
    rest = 0.875 * np.linalg.norm(x[i] - x[j], axis=1)
    for _ in range(20):
        d = x[j] - x[i]
        length = np.linalg.norm(d, axis=1)
        pull = (10 * (length - rest) / length)[:, None] * d
        force = np.tile([0.0, 0.0, -1.0], (len(x), 1))
        np.add.at(force, i, pull)
        np.add.at(force, j, -pull)
        v += 0.01 * force
        x += 0.01 * v
    np.testing.assert_allclose(m.verts.x.to_numpy(), x, atol=1e-12)


def test_atomic_sums_into_other_elements(cpu):
    points, faces = sphere(6)
    m = make((points, faces), ["FV"])
    m.verts.place({"n": ti.i32})

    @ti.kernel
    def count():
        for f in m.faces:
            for v in f.verts:
                v.n += 1

    count()
    np.testing.assert_array_equal(m.verts.n.to_numpy(), np.bincount(faces.ravel(), minlength=len(points)))


PATCHES = {
    # Four triangles in a strip; the second patch owns two of them and has copies of what lies at them.
    "num_patches": 2,
    "elements": [
        {
            "order": 0,
            "num": 6,
            "max_num_per_patch": 6,
            "owned_offsets": [0, 4, 6],
            "total_offsets": [0, 6, 11],
            "l2g_mapping": [0, 1, 2, 3, 4, 5, 5, 4, 2, 3, 1],
            "l2r_mapping": [0, 1, 2, 3, 4, 5, 5, 4, 2, 3, 1],
            "g2r_mapping": [0, 1, 2, 3, 5, 4],
        },
        {
            "order": 2,
            "num": 4,
            "max_num_per_patch": 4,
            "owned_offsets": [0, 2, 4],
            "total_offsets": [0, 4, 7],
            "l2g_mapping": [0, 1, 2, 3, 3, 2, 1],
            "l2r_mapping": [0, 1, 2, 3, 3, 2, 1],
            "g2r_mapping": [0, 1, 3, 2],
        },
    ],
    "relations": [
        {
            "from_order": 2,
            "to_order": 0,
            # Triangles 012, 132, 234, 354; then 354, 234 and 132 in the numbers of the second patch.
            "value": [0, 1, 2, 1, 3, 2, 2, 3, 4, 3, 5, 4, 3, 0, 1, 2, 3, 1, 4, 3, 2],
        },
        {
            "from_order": 0,
            "to_order": 2,
            "patch_offset": [0, 9, 12],
            "offset": [0, 1, 3, 6, 9, 0, 1, 3],
            "value": [0, 0, 1, 0, 1, 2, 1, 2, 3, 0, 0, 1],
        },
    ],
    "attrs": {"x": [0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 1, 0, 0, 2, 0, 1, 2, 0]},
}


def test_a_mesh_in_patches(arch, tmp_path):
    (tmp_path / "mesh.json").write_text(json.dumps(PATCHES))
    m = ti.Mesh._create_instance(ti.Mesh.load_meta(tmp_path / "mesh.json"))
    assert (len(m.verts), len(m.edges), len(m.faces), m.num_patches) == (6, 0, 4, 2)
    m.verts.place({"patch": ti.i32, "faces_here": ti.i32, "last": ti.i32})
    corners = np.zeros((4, 3), np.int32)

    @ti.kernel
    def look(corners: ti.types.ndarray()):
        for f in m.faces:
            for k in ti.static(range(3)):
                corners[f.id, k] = f.verts[k].id
        for v in m.verts:
            v.patch = ti.mesh_patch_idx()
            v.faces_here = len(v.faces)
            v.last = v.faces[v.faces.size - 1].id

    look(corners)
    assert corners.tolist() == [[0, 1, 2], [1, 3, 2], [2, 3, 4], [3, 5, 4]]
    assert m.verts.patch.to_numpy().tolist() == [0, 0, 0, 0, 1, 1]
    assert m.verts.faces_here.to_numpy().tolist() == [1, 2, 3, 3, 2, 1]
    assert m.verts.last.to_numpy().tolist() == [0, 1, 2, 3, 2, 3]


@pytest.mark.parametrize("damage", ["elements", "value", "l2g"])
def test_a_damaged_file(cpu, damage):
    data = json.loads(json.dumps(PATCHES))
    if damage == "elements":
        del data["elements"][1]["owned_offsets"]
    elif damage == "value":
        data["relations"][0]["value"][3] = 9999
    else:
        data["elements"][0]["l2g_mapping"][9] = 77
    with pytest.raises(ValueError, match="not a mesh of MeshTaichi"):
        ti.Mesh.generate_meta(data)


@pytest.mark.parametrize("text", ["", json.dumps(PATCHES)[:-9], "[]", '{"num_patches": 1}', '"mesh"', b"\xff"])
def test_a_file_that_is_no_mesh_is_named(cpu, text, tmp_path):
    path = tmp_path / "broken.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match="broken.json.*(MeshTaichi|JSON|decode)"):
        ti.Mesh.load_meta(path)


def test_gradients(cpu):
    m = make(sphere(4), ["FV"])
    m.verts.place({"x": ti.f32}, needs_grad=True)
    assert m.verts.x.grad.shape == (len(m.verts),)


def test_relations_that_were_not_asked_for(cpu):
    m = make(sphere(4), ["FV", "VF"])

    @ti.kernel
    def edges():
        for v in m.verts:
            for e in v.edges:
                pass

    with pytest.raises(ti.TaichiCompilationError, match="relation VE, from verts to edges, .*it has FV, VF") as e:
        edges()
    assert "for e in v.edges:" in str(e.value)


def test_mistakes_in_kernels(cpu):
    m = make(sphere(4))
    m.verts.place({"mass": ti.f32})

    @ti.kernel
    def absent():
        for v in m.verts:
            v.mas = 1.0

    @ti.kernel
    def other():
        for f in m.faces:
            x = f.verts[0]
            x = f.edges[0]

    @ti.kernel
    def number():
        for v in m.verts:
            x = v + 1

    @ti.kernel
    def outside():
        x = ti.mesh_patch_idx()

    @ti.real_func
    def patch() -> ti.i32:
        return ti.mesh_patch_idx()

    @ti.kernel
    def outside_by_call():
        for v in m.verts:
            x = patch()

    for kernel, message in [
        (outside_by_call, "outside a loop over elements of a mesh"),
        (absent, "the `verts` of a mesh has no attribute `mas`(.|\n)*did you mean `mass`"),
        (other, "a variable for one of the `verts` cannot hold an element of the `edges`"),
        (number, "a number, vector or matrix is needed here, not an element of the `verts`"),
        (outside, "outside a loop over elements of a mesh"),
    ]:
        with pytest.raises(ti.TaichiCompilationError, match=message):
            kernel()


def test_an_index_past_the_neighbours():
    ti.init(arch=ti.cpu, debug=True, log_level="error")
    m = make(sphere(4))
    m.verts.place({"far": ti.i32})

    @ti.kernel
    def far(k: ti.i32):
        for v in m.verts:
            v.far = v.faces[k].id

    far(3)
    for k in (60, -1):
        with pytest.raises(ti.TaichiAssertionError, match=f"index {k} into the `faces` of an element that has"):
            far(k)


@pytest.mark.parametrize("k", [3, -1])
def test_a_constant_index_past_the_corners(arch, k):
    m = make(sphere(4))

    @ti.kernel
    def corner() -> ti.i32:
        found = 0
        for f in m.faces:
            found = f.verts[k].id
        return found

    with pytest.raises(ti.TaichiIndexError, match=f"index {k} is out of range for the 3 `verts` of an element"):
        corner()


def test_mistakes_in_python(cpu):
    points, faces = sphere(4)
    m = make((points, faces))
    m.verts.place({"x": ti.f32})
    for name in ("x", "verts", "id", "place", "keys"):
        with pytest.raises(ti.TaichiSyntaxError):
            m.verts.place({name: ti.f32})
    with pytest.raises(ti.TaichiSyntaxError, match="no cells"):
        m.cells.place({"x": ti.f32})
    for wrong in (faces[:, :2], faces.astype(float), faces + 1000, faces * 0, faces[:0]):
        with pytest.raises(ValueError):
            ti.Mesh.generate_meta((points, wrong))
    with pytest.raises(ValueError, match="two letters of VEF"):
        ti.Mesh.generate_meta((points, faces), ["VC"])


def test_files_that_meshio_reads(cpu, tmp_path):
    meshio = pytest.importorskip("meshio")
    points, faces = sphere(4)
    meshio.write_points_cells(tmp_path / "mesh.ply", points, [("triangle", faces)])
    assert len(make(tmp_path / "mesh.ply").edges) == len(faces) * 3 // 2


def test_the_older_builder(cpu):
    builder = ti.lang.mesh._TriMesh()
    builder.verts.place({"x": ti.f32, "y": ti.f32})
    builder.verts.AOS = True
    m = builder.build(ti.Mesh.generate_meta(sphere(4), ["VV"]))
    assert m.verts.keys == ["x", "y"] and m.verts.x.shape == (len(m.verts),)
