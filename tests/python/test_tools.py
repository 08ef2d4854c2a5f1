"""Images, videos, meshes and grids as files; pictures in notebooks; progress."""

import io
import os
import re
import struct
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import aerogel as ti
from aerogel.tools import video
from limits import small_files

PIL = pytest.importorskip("PIL.Image")


@pytest.fixture
def messages():
    """Messages are shown, whatever level other tests have chosen."""
    ti.set_logging_level(ti.INFO)
    yield
    ti.set_logging_level(ti.INFO)


class TestImages:
    @pytest.mark.parametrize("dtype", ["bool", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"])
    @pytest.mark.parametrize("channels", [(), (1,), (2,), (3,), (4,)])
    def test_every_type_and_shape(self, tmp_path, rng, dtype, channels):
        image = rng.random((7, 5, *channels))
        if dtype == "bool":
            image = image > 0.5
        elif dtype.startswith("u"):
            image = (image * np.iinfo(dtype).max).astype(dtype)
        else:
            image = image.astype(dtype)
        ti.tools.imwrite(image, str(tmp_path / "a.png"))
        with PIL.open(tmp_path / "a.png") as file:
            assert file.size == (7, 5)
            assert file.mode == {(): "L", (1,): "L", (2,): "RGB", (3,): "RGB", (4,): "RGBA"}[channels]
            rows = np.asarray(file)
        largest = 1 if dtype == "bool" or not dtype.startswith("u") else np.iinfo(dtype).max
        want = image.astype(np.float64)[:, ::-1].swapaxes(0, 1) / largest * 255
        if channels == (1,):
            want = want[..., 0]
        if channels == (2,):
            assert (rows[..., 2] == 0).all()
            rows = rows[..., :2]
        # Wider integers are cut to bytes as Taichi does it.
        wide = dtype in ("uint16", "uint32", "uint64")
        assert np.abs(rows - want).max() <= (2 if wide else 0.6)

    def test_fields_and_arrays(self, cpu, tmp_path, rng):
        path = str(tmp_path / "a.png")
        image = rng.integers(0, 256, (6, 4, 3)).astype(np.uint8)
        for x in (ti.Vector.field(3, ti.u8, (6, 4)), ti.field(ti.u8, (6, 4, 3)), ti.Vector.ndarray(3, ti.u8, (6, 4))):
            x.from_numpy(image)
            ti.tools.imwrite(x, path)
            assert (ti.tools.imread(path) == image).all()

    @pytest.mark.parametrize(
        "image,error,text",
        [
            (np.zeros((4, 4), np.int32), TypeError, "int32"),
            (np.zeros((4, 4), complex), TypeError, "complex128"),
            (np.zeros(4), ValueError, r"shape is \(4,\)"),
            (np.zeros((4, 4, 5)), ValueError, "1 to 4 channels"),
            (np.zeros((0, 4)), ValueError, r"shape is \(0, 4\)"),
        ],
    )
    def test_what_is_no_image(self, tmp_path, image, error, text):
        with pytest.raises(error, match=text):
            ti.tools.imwrite(image, str(tmp_path / "a.png"))
        assert not list(tmp_path.iterdir())

    def test_numbers_that_are_none_are_black(self, tmp_path):
        ti.tools.imwrite(np.array([[np.nan, np.inf, -np.inf]]), str(tmp_path / "a.png"))
        assert ti.tools.imread(str(tmp_path / "a.png")).reshape(-1).tolist() == [0, 255, 0]

    @pytest.mark.parametrize("suffix", [".png", ".bmp", ".tif", ".gif"])
    def test_formats(self, tmp_path, suffix):
        image = np.zeros((8, 6, 3), np.uint8)
        image[:4, 3:] = (255, 0, 0)
        path = str(tmp_path / f"a{suffix}")
        ti.tools.imwrite(image, path)
        back = ti.tools.imread(path, 3)
        assert back.shape == (8, 6, 3) and np.abs(back.astype(int) - image).max() < 60
        assert os.listdir(tmp_path) == [f"a{suffix}"]

    def test_a_suffix_that_is_no_format(self, tmp_path):
        with pytest.raises(ValueError, match="xyz"):
            ti.tools.imwrite(np.zeros((2, 2)), str(tmp_path / "a.xyz"))
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize("channels", range(5))
    @pytest.mark.parametrize("mode", ["1", "L", "P", "LA", "RGB", "RGBA", "I;16", "CMYK", "YCbCr"])
    def test_modes(self, tmp_path, mode, channels):
        grey = mode in ("1", "L", "LA", "I;16")
        color = (200, 200, 200) if grey else (200, 100, 50)
        source = PIL.new("RGB", (6, 4), color)
        if mode == "I;16":
            source = PIL.fromarray(np.full((4, 6), 200 * 257, np.uint16))
        elif mode == "P":
            source = source.quantize(4)
        elif mode == "1":
            source = PIL.new("1", (6, 4), 1)
        else:
            source = source.convert("RGB" if mode == "LA" else mode)
            source = source.convert("LA") if mode == "LA" else source
        path = str(tmp_path / ("a.tif" if mode in ("CMYK", "YCbCr") else "a.png"))
        source.save(path)
        image = ti.tools.imread(path, channels)
        own = {"1": 1, "L": 1, "I;16": 1, "LA": 2, "RGBA": 4}.get(mode, 3)
        assert image.shape == (6, 4, channels or own) and image.dtype == np.uint8
        value = 255 if mode == "1" else 200
        brightness = value if grey else round(0.299 * 200 + 0.587 * 100 + 0.114 * 50)
        many = channels or own
        wanted = [brightness] if many < 3 else [value] * 3 if grey else [200, 100, 50]
        wanted += [255] if many % 2 == 0 else []
        assert np.abs(image[0, 0].astype(int) - wanted).max() <= 6

    def test_opacity(self, tmp_path):
        PIL.new("LA", (2, 2), (10, 20)).save(tmp_path / "a.png")
        path = str(tmp_path / "a.png")
        assert ti.tools.imread(path)[0, 0].tolist() == [10, 20]
        assert ti.tools.imread(path, 4)[0, 0].tolist() == [10, 10, 10, 20]
        assert ti.tools.imread(path, 3)[0, 0].tolist() == [10, 10, 10]

    def test_floats_of_a_file_are_refused(self, tmp_path):
        PIL.fromarray(np.zeros((2, 2), np.float32)).save(tmp_path / "a.tif")
        with pytest.raises(ValueError, match="mode F"):
            ti.tools.imread(str(tmp_path / "a.tif"))

    def test_files_that_are_none(self, tmp_path):
        for name in ("a.png", "a.jpg"):
            with pytest.raises(OSError, match=name):
                ti.tools.imread(str(tmp_path / name))
            (tmp_path / name).write_bytes(b"no picture")
            with pytest.raises(OSError, match=name):
                ti.tools.imread(str(tmp_path / name))
        with pytest.raises(ValueError, match="channels"):
            ti.tools.imread(str(tmp_path / "a.png"), 5)

    def test_resize(self, rng):
        a = rng.random((4, 6, 3))
        assert ti.tools.imresize(a, 4, 6) is a
        assert (ti.tools.imresize(a, 8, 12) == np.repeat(np.repeat(a, 2, 0), 2, 1)).all()
        assert (ti.tools.imresize(a, 2, 3) == a[::2, ::2]).all()
        for size in ((0, 4), (2.5, 2), (-1, 3)):
            with pytest.raises(ValueError, match="positive integers"):
                ti.tools.imresize(a, *size)

    def test_show(self, monkeypatch):
        monkeypatch.setenv("AEROGEL_GUI_FRAMES", "1")
        ti.tools.imshow(np.zeros((8, 4)))


class TestWholeFiles:
    WRITERS = {
        "a.png": lambda path: ti.tools.imwrite(np.random.rand(64, 64, 3), path),
        "a.jpg": lambda path: ti.tools.imwrite(np.random.rand(64, 64, 3), path),
        "a.ply": lambda path: mesh(1000).export(path),
        "b.ply": lambda path: mesh(1000).export_ascii(path),
        "a.vtr": lambda path: ti.tools.write_vtk(np.zeros((32, 32)), path[:-4]),
    }

    @pytest.mark.parametrize("name", WRITERS)
    def test_a_full_disk_leaves_nothing(self, tmp_path, name):
        with pytest.raises(OSError, match=re.escape(name)), small_files():
            self.WRITERS[name](str(tmp_path / name))
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize("name", WRITERS)
    def test_a_full_disk_leaves_what_was_there(self, tmp_path, name):
        (tmp_path / name).write_text("before")
        with pytest.raises(OSError, match=re.escape(name)), small_files():
            self.WRITERS[name](str(tmp_path / name))
        assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [(name, "before")]

    @pytest.mark.parametrize("name", WRITERS)
    def test_a_folder_that_is_not_there(self, tmp_path, name):
        with pytest.raises(FileNotFoundError, match=re.escape(f"nowhere/{name}")):
            self.WRITERS[name](str(tmp_path / "nowhere" / name))

    def test_links_are_followed(self, tmp_path):
        (tmp_path / "real.png").write_text("before")
        (tmp_path / "a.png").symlink_to("real.png")
        ti.tools.imwrite(np.zeros((2, 2)), str(tmp_path / "a.png"))
        assert (tmp_path / "a.png").is_symlink() and (tmp_path / "real.png").read_bytes()[1:4] == b"PNG"

    def test_a_device_is_written_as_it_is(self):
        mesh(3).export("/dev/null")
        assert not os.path.isfile("/dev/null")


def mesh(n, faces=0, **options):
    writer = ti.tools.PLYWriter(num_vertices=n, num_faces=faces, **options)
    x = np.linspace(0, 1, n, dtype=np.float32)
    writer.add_vertex_pos(x, x + 1, x + 2)
    return writer


class TestMeshes:
    def test_ascii(self, tmp_path):
        writer = mesh(3, 1, comment="two\nlines")
        writer.add_vertex_id()
        writer.add_vertex_channel("c", "uchar", [1, 2, 3])
        writer.add_faces([0, 1, 2])
        writer.add_face_channel("w", "float", [0.5])
        writer.export_frame_ascii(7, str(tmp_path / "mesh.ply"))
        lines = (tmp_path / "mesh_000007.ply").read_text().splitlines()
        assert lines[:4] == ["ply", "format ascii 1.0", "comment two", "comment lines"]
        assert "property list uchar int vertex_indices" in lines and "property uchar c" in lines
        assert lines[-4:] == ["0.0 1.0 2.0 0 1 ", "0.5 1.5 2.5 1 2 ", "1.0 2.0 3.0 2 3 ", "3 0 1 2 0.5 "]

    def test_binary(self, tmp_path):
        writer = mesh(4, 1, face_type="quad")
        for name in ("normal", "vel", "color"):
            getattr(writer, f"add_vertex_{name}")(*np.ones((3, 4)))
        writer.add_vertex_alpha(np.zeros(4))
        writer.add_vertex_piece(np.arange(4))
        writer.add_vertex_channel("d", "double", np.arange(4))
        writer.add_faces(np.arange(4))
        writer.add_face_id()
        writer.add_face_piece([5])
        writer.export_frame(3, str(tmp_path / "mesh"))
        header, data = (tmp_path / "mesh_000003.ply").read_bytes().split(b"end_header\n", 1)
        assert b"property float vx" in header and b"property double d" in header
        rows = [struct.unpack_from("<13fid", data, 64 * k) for k in range(4)]
        assert rows[3] == (1, 2, 3, *[1] * 9, 0, 3, 3)
        assert struct.unpack_from("<B4iii", data, 256) == (4, 0, 1, 2, 3, 0, 5)
        assert len(data) == 256 + 25

    def test_fields(self, cpu, tmp_path):
        x = ti.field(ti.f32, 3)
        x.fill(2)
        writer = ti.tools.PLYWriter(num_vertices=3)
        writer.add_vertex_pos(x, x, x)
        writer.export_ascii(str(tmp_path / "a.ply"))
        assert (tmp_path / "a.ply").read_text().endswith("2.0 2.0 2.0 \n")

    def test_meshio_reads_them(self, tmp_path):
        meshio = pytest.importorskip("meshio")
        writer = mesh(3, 1)
        writer.add_faces([0, 1, 2])
        for export in (writer.export, writer.export_ascii):
            export(str(tmp_path / "a.ply"))
            found = meshio.read(tmp_path / "a.ply")
            assert found.points.tolist() == [[0, 1, 2], [0.5, 1.5, 2.5], [1, 2, 3]]
            assert found.cells_dict["triangle"].tolist() == [[0, 1, 2]]

    def test_a_type_that_ply_lacks(self, tmp_path, capsys, messages):
        writer = mesh(2)
        writer.add_vertex_channel("k", "int64", [1, 2])
        assert "no PLY type 'int64'" in capsys.readouterr().err
        writer.export_ascii(str(tmp_path / "a.ply"))
        assert "property int64" not in (tmp_path / "a.ply").read_text()

    @pytest.mark.parametrize(
        "act,text",
        [
            (lambda: ti.tools.PLYWriter(0), "one vertex or more"),
            (lambda: ti.tools.PLYWriter(3, 1, "hex"), "face_type"),
            (lambda: mesh(3).add_vertex_channel("k", "int", [1, 2]), "2 values for 3"),
            (lambda: mesh(3, 1).add_faces([0, 1, 3]), "between 0 and 2"),
            (lambda: mesh(3, 1).add_faces([0, 1]), "need 3 indices, not 2"),
            (lambda: mesh(3, 1).export("nowhere.ply"), "call add_faces"),
            (lambda: ti.tools.PLYWriter(3).export("nowhere.ply"), "call add_vertex_pos"),
        ],
    )
    def test_bad_input(self, act, text):
        with pytest.raises(ValueError, match=text):
            act()
        assert not os.path.exists("nowhere.ply")


def vtk_data(path):
    """Shape, and the arrays of a rectilinear grid by name."""
    raw = path.read_bytes()
    at = raw.index(b"_", raw.index(b"<AppendedData")) + 1
    tree = ElementTree.fromstring(raw[:at] + b"</AppendedData></VTKFile>")
    extent = [int(n) for n in tree.find(".//Piece").get("Extent").split()]
    arrays = {}
    for node in tree.iter("DataArray"):
        begin = at + int(node.get("offset"))
        size = int.from_bytes(raw[begin : begin + 8], "little")
        kind = {"Float": "f", "Int": "i", "UInt": "u"}[node.get("type").rstrip("0123456789")]
        dtype = f"<{kind}{int(re.sub(r'[^0-9]', '', node.get('type'))) // 8}"
        arrays[node.get("Name")] = np.frombuffer(raw[begin + 8 : begin + 8 + size], dtype)
    return tuple(extent[2 * k + 1] + 1 for k in range(3)), arrays


class TestGrids:
    @pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
    @pytest.mark.parametrize("shape", [(4, 3), (4, 3, 2)])
    def test_numbers(self, tmp_path, rng, dtype, shape):
        values = (rng.random(shape) * 100).astype(dtype)
        assert ti.tools.write_vtk(values, str(tmp_path / "a b&c")) == str(tmp_path / "a b&c.vtr")
        found, arrays = vtk_data(tmp_path / "a b&c.vtr")
        assert found == (*shape, 1)[:3]
        assert arrays["a b&c"].dtype == dtype
        assert (arrays["a b&c"].reshape(found, order="F") == values.reshape(found)).all()
        assert arrays["x"].tolist() == [0, 1, 2, 3] and arrays["y"].tolist() == [0, 1, 2]

    def test_vectors(self, cpu, tmp_path, rng):
        v = ti.Vector.field(2, ti.f32, (4, 3))
        v.from_numpy(rng.random((4, 3, 2)).astype(np.float32))
        ti.tools.write_vtk(v, str(tmp_path / "v"))
        _, arrays = vtk_data(tmp_path / "v.vtr")
        back = arrays["v"].reshape(3, 4, 3)
        assert (back[..., :2].swapaxes(0, 1) == v.to_numpy()).all() and (back[..., 2] == 0).all()

    @pytest.mark.parametrize(
        "values,error",
        [(np.zeros(3), ValueError), (np.zeros((2,) * 4), ValueError), (np.zeros((2, 2), "c8"), TypeError)],
    )
    def test_bad_input(self, tmp_path, values, error):
        with pytest.raises(error):
            ti.tools.write_vtk(values, str(tmp_path / "a"))
        assert not list(tmp_path.iterdir())

    def test_several_fields_and_where_they_lie(self, cpu, tmp_path, rng):
        p, v = rng.random((3, 4)), ti.Vector.ndarray(2, ti.f32, (3, 4))
        v.from_numpy(rng.random((3, 4, 2)).astype(np.float32))
        path = str(tmp_path / "exactly.this.vtr")
        assert ti.tools.write_vtk({"p": p, "v": v}, path, spacing=(0.5, 2), origin=1) == path
        _, arrays = vtk_data(tmp_path / "exactly.this.vtr")
        assert (arrays["p"].reshape(4, 3).T == p).all() and arrays["v"].reshape(4, 3, 3)[1, 2, 1] == v[2, 1][1]
        assert arrays["x"].tolist() == [1, 1.5, 2] and arrays["y"].tolist() == [1, 3, 5, 7] and arrays["z"] == [0]
        with pytest.raises(ValueError, match=r"a.vtk would be a file of the kind .vtr: name it .*a.vtr"):
            ti.tools.write_vtk(p, str(tmp_path / "a.vtk"))
        with pytest.raises(ValueError, match=r"`v` has \(2, 2\), not \(3, 4\)"):
            ti.tools.write_vtk({"p": p, "v": np.zeros((2, 2))}, path)


def vtu_data(path):
    """The arrays of a mesh by name; what reads them is VTK's own reader elsewhere, by hand."""
    raw = path.read_bytes()
    at = raw.index(b"_", raw.index(b"<AppendedData")) + 1
    tree = ElementTree.fromstring(raw[:at] + b"</AppendedData></VTKFile>")
    piece = tree.find("UnstructuredGrid/Piece")
    arrays = {}
    for node in tree.iter("DataArray"):
        begin = at + int(node.get("offset"))
        size = int.from_bytes(raw[begin : begin + 8], "little")
        dtype = {"Float32": "<f4", "Float64": "<f8", "Int64": "<i8", "UInt8": "u1", "Int32": "<i4"}[node.get("type")]
        values = np.frombuffer(raw[begin + 8 : begin + 8 + size], dtype)
        arrays[node.get("Name")] = values.reshape(-1, int(node.get("NumberOfComponents")))
    return [int(piece.get(f"NumberOf{what}")) for what in ("Points", "Cells")], arrays


class TestMeshesOfVTK:
    def test_particles(self, cpu, tmp_path):
        x, v = ti.Vector.field(2, ti.f64, 4), ti.ndarray(ti.f32, 4)
        x.from_numpy(np.arange(8.0).reshape(4, 2))
        assert ti.tools.write_vtk_mesh(str(tmp_path / "p"), x, data={"v": v}) == str(tmp_path / "p.vtu")
        counts, arrays = vtu_data(tmp_path / "p.vtu")
        assert counts == [4, 4] and arrays["points"].tolist() == [[0, 1, 0], [2, 3, 0], [4, 5, 0], [6, 7, 0]]
        assert arrays["types"].ravel().tolist() == [1] * 4 and arrays["offsets"].ravel().tolist() == [1, 2, 3, 4]
        assert arrays["v"].tolist() == [[0]] * 4

    @pytest.mark.parametrize(
        "kind, n, number", [("", 3, 5), ("", 4, 9), ("tetrahedron", 4, 10), ("", 8, 12), ("", 2, 3)]
    )
    def test_cells(self, tmp_path, kind, n, number):
        cells = np.arange(2 * n).reshape(2, n)
        ti.tools.write_vtk_mesh(
            str(tmp_path / "m.vtu"), np.zeros((2 * n, 3)), cells, kind=kind, cell_data={"c": [[1, 2, 3], [4, 5, 6]]}
        )
        counts, arrays = vtu_data(tmp_path / "m.vtu")
        assert counts == [2 * n, 2] and arrays["types"].ravel().tolist() == [number] * 2
        assert arrays["connectivity"].ravel().tolist() == list(range(2 * n)) and arrays["offsets"].tolist() == [
            [n],
            [2 * n],
        ]
        assert arrays["c"].tolist() == [[1, 2, 3], [4, 5, 6]]

    @pytest.mark.parametrize(
        "arguments, message",
        [
            (dict(points=np.zeros((3, 4))), "points are floats of shape"),
            (dict(cells=[[0, 1, 3]]), "corners lie between 0 and 2, not at 0 and 3"),
            (dict(cells=[[0, 1, -1]]), "corners lie between 0 and 2, not at -1"),
            (dict(cells=[[0, 1, 2, 0, 1]]), "of no known kind"),
            (dict(cells=[[0, 1, 2]], kind="quad"), "a quad has 4 integers"),
            (dict(data={"a": [1.0]}), r"`a` has the shape \(1,\); there are 3 elements"),
            (dict(filename="a.ply.vtr"), "name it a.ply.vtu"),
        ],
    )
    def test_what_does_not_fit(self, tmp_path, monkeypatch, arguments, message):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(ValueError, match=message):
            ti.tools.write_vtk_mesh(**{"filename": "a.vtu", "points": np.zeros((3, 3)), **arguments})
        assert not list(tmp_path.iterdir())

    def test_series(self, tmp_path):
        series = ti.tools.VTKSeries(str(tmp_path / "s.pvd"))
        (tmp_path / "in").mkdir()
        for k in range(2):
            series.add(ti.tools.write_vtk_mesh(str(tmp_path / "in" / f"{k}.vtu"), np.zeros((1, 3))), time=k / 4)
        sets = ElementTree.parse(tmp_path / "s.pvd").findall("Collection/DataSet")
        assert [(own.get("timestep"), own.get("file")) for own in sets] == [("0.0", "in/0.vtu"), ("0.25", "in/1.vtu")]
        with pytest.raises(FileNotFoundError, match="no.vtu is not there: write it before"):
            series.add(str(tmp_path / "no.vtu"), 1)

    def test_series_continue(self, tmp_path):
        path, files = str(tmp_path / "s.pvd"), [str(tmp_path / f"{k}.vtu") for k in range(4)]
        for file in files:
            ti.tools.write_vtk_mesh(file, np.zeros((1, 3)))
        for start, resumed, expected in ((0, True, "0 1 2"), (1, True, "0 1 2 3"), (3, False, "3"), (2, True, "2 3")):
            series = ti.tools.VTKSeries(path, resumed=resumed)
            for k in range(start, 3 if start == 0 else 4):
                series.add(files[k], time=k)
            sets = ElementTree.parse(path).findall("Collection/DataSet")
            assert [own.get("file") for own in sets] == [f"{k}.vtu" for k in expected.split()]
        (tmp_path / "s.pvd").write_text("other")
        with pytest.raises(ValueError, match="s.pvd is no series of VTK files: remove it"):
            ti.tools.VTKSeries(path, resumed=True)


class TestVideos:
    def frames(self, manager, n=5, size=(17, 12)):
        for k in range(n):
            manager.write_frame(np.full((*size, 3), k / n))

    def test_frames(self, tmp_path):
        manager = ti.tools.VideoManager(str(tmp_path / "out"), automatic_build=False)
        self.frames(manager, 3)
        folder = tmp_path / "out" / "frames"
        assert manager.get_frame_directory() == str(folder)
        assert sorted(os.listdir(folder)) == ["000000.png", "000001.png", "000002.png"]
        # An odd column is left out.
        assert ti.tools.imread(str(folder / "000001.png")).shape == (16, 12, 3)
        with pytest.raises(ValueError, match="17 by 12; this is 8 by 8"):
            manager.write_frame(np.zeros((8, 8)))
        manager.clean_frames()
        assert not os.listdir(folder) and manager.frame_counter == 0
        manager.write_frames([np.zeros((17, 12))] * 2)
        assert manager.frame_counter == 2

    def test_names(self, tmp_path):
        out = str(tmp_path)
        assert ti.tools.VideoManager(out).get_output_filename(".mp4") == os.path.join(out, "video.mp4")
        assert ti.tools.VideoManager(out, "a.avi").get_output_filename(".gif") == os.path.join(out, "a.gif")

    def test_sizes_and_post_processors(self, cpu, tmp_path):
        class Invert:
            def process(self, img):
                return 1 - img

        x = ti.field(ti.f32, (8, 8))
        manager = ti.tools.VideoManager(str(tmp_path), width=4, height=4, post_processor=Invert())
        manager.write_frame(x)
        image = ti.tools.imread(str(tmp_path / "frames" / "000000.png"))
        assert image.shape == (4, 4, 1) and (image == 255).all()

    def test_gif(self, tmp_path):
        manager = ti.tools.VideoManager(str(tmp_path), framerate=10, automatic_build=False)
        self.frames(manager)
        manager.make_video(mp4=False)
        with PIL.open(tmp_path / "video.gif") as gif:
            assert gif.n_frames == 5 and gif.size == (16, 12) and gif.info["duration"] == 100
            gif.seek(4)
            assert abs(gif.convert("RGB").getpixel((3, 3))[0] - 204) < 4

    def test_mp4(self, tmp_path):
        if video.find_ffmpeg() is None:
            pytest.skip("there is no ffmpeg")
        manager = ti.tools.VideoManager(str(tmp_path), "film.avi", framerate=12)
        self.frames(manager, 5, (64, 48))
        # It is made by itself after four frames, and then of all.
        assert (tmp_path / "film.mp4").exists()
        manager.make_video(gif=False)
        assert (tmp_path / "film.mp4").read_bytes()[4:8] == b"ftyp"
        assert sorted(os.listdir(tmp_path)) == ["film.mp4", "frames"]
        (tmp_path / "frames" / "000002.png").write_bytes(b"no picture")
        (tmp_path / "film.mp4").unlink()
        for name in os.listdir(tmp_path / "frames"):
            (tmp_path / "frames" / name).write_bytes(b"no picture")
        with pytest.raises(RuntimeError, match="ffmpeg could not make"):
            manager.make_video(gif=False)
        assert os.listdir(tmp_path) == ["frames"]

    def test_gif_without_pillow(self, tmp_path, monkeypatch):
        """What is written is the same; PIL is only there to read it."""
        monkeypatch.setitem(sys.modules, "PIL", None)
        manager = ti.tools.VideoManager(str(tmp_path), framerate=100, automatic_build=False)
        rng = np.random.default_rng(3)
        images = [rng.random((8, 8)) for _ in range(6)]
        for image in images:
            manager.write_frame(image, cmap="magma", vmin=0, vmax=1)
        monkeypatch.setattr(video, "find_ffmpeg", lambda: None)
        with pytest.raises(ImportError, match=r"needs ffmpeg .* a GIF needs nothing: `make_video\(mp4=False\)`"):
            manager.make_video()
        monkeypatch.undo()
        with PIL.open(tmp_path / "video.gif") as found:
            assert found.n_frames == 3 and found.info["duration"] == 20 and found.info["loop"] == 0
            for k, at in enumerate((0, 2, 4)):
                found.seek(k)
                shown = np.asarray(found.convert("RGB"))[::-1].swapaxes(0, 1)
                ti.tools.imwrite(images[at], str(tmp_path / "a.png"), cmap="magma", vmin=0, vmax=1)
                assert (shown == ti.tools.imread(str(tmp_path / "a.png"))).all()

    def test_gif_of_many_colours(self, tmp_path):
        """Colours beyond 256 become near ones."""
        x, y = np.meshgrid(np.linspace(0, 1, 200), np.linspace(0, 1, 90), indexing="ij")
        frames = [np.stack([x, y, k / 3 * x * y], -1) for k in range(3)]
        ti.tools.write_gif(tmp_path / "a.gif", frames, framerate=30)
        with PIL.open(tmp_path / "a.gif") as found:
            delays = []
            for k, frame in enumerate(frames):
                found.seek(k)
                delays.append(found.info["duration"])
                shown = np.asarray(found.convert("RGB"))[::-1].swapaxes(0, 1) / 255
                assert np.abs(shown - frame).max() < 0.1 and np.abs(shown - frame).mean() < 0.02
        assert delays == [30, 40, 30]

    @pytest.mark.parametrize(
        "frames, rate, message",
        [
            ([], 24, "no frames"),
            ([np.zeros((2, 2)), np.zeros((2, 3))], 24, "frame 1 is"),
            ([np.zeros((2, 2))], 60, "50"),
            ([np.zeros((2, 2))], 0.001, "1/600"),
            ([np.zeros((70000, 1))], 24, "65535 pixels"),
        ],
    )
    def test_gifs_that_cannot_be(self, tmp_path, frames, rate, message):
        with pytest.raises(ValueError, match=message):
            ti.tools.write_gif(tmp_path / "a.gif", frames, rate)
        assert not list(tmp_path.iterdir())

    def test_without_ffmpeg(self, tmp_path, monkeypatch, capsys, messages):
        monkeypatch.setattr(video, "find_ffmpeg", lambda: None)
        manager = ti.tools.VideoManager(str(tmp_path))
        self.frames(manager)
        assert capsys.readouterr().err.count("pip install imageio-ffmpeg") == 1
        with pytest.raises(ImportError, match="pip install imageio-ffmpeg"):
            manager.make_video(gif=False)

    def test_a_full_disk(self, tmp_path, rng):
        manager = ti.tools.VideoManager(str(tmp_path), automatic_build=False)
        with pytest.raises(OSError, match="000000.png"), small_files():
            manager.write_frame(rng.random((64, 64)))
        assert manager.frame_counter == 0 and not os.listdir(tmp_path / "frames")

    def test_bad_input(self, tmp_path):
        for options in ({"framerate": 0}, {"width": 4}):
            with pytest.raises(ValueError):
                ti.tools.VideoManager(str(tmp_path), **options)
        manager = ti.tools.VideoManager(str(tmp_path))
        with pytest.raises(RuntimeError, match="no frames"):
            manager.make_video()
        with pytest.raises(ValueError, match="two pixels"):
            manager.write_frame(np.zeros((1, 5)))


class TestNotebooks:
    def picture(self, x):
        assert x._repr_html_() is None
        return np.asarray(PIL.open(io.BytesIO(x._repr_png_())))

    def test_grids_are_pictures(self, arch):
        x = ti.field(ti.f32, (4, 3))
        x[3, 2] = 1
        assert self.picture(x).tolist() == [[0, 0, 0, 255], [0] * 4, [0] * 4]
        x[0, 0] = -3
        assert self.picture(x)[2, 0] == 0 and self.picture(x)[2, 1] == 191
        i = ti.field(ti.i32, (2, 2))
        i[1, 1] = 1000
        assert self.picture(i).tolist() == [[0, 255], [0, 0]]

    def test_vectors_are_colours(self, cpu):
        for n in (3, 4):
            x = ti.Vector.field(n, ti.u8, (4, 3))
            x.fill(9)
            assert self.picture(x).shape == (3, 4, n) and (self.picture(x) == 9).all()
        assert self.picture(ti.Vector.ndarray(3, ti.f32, (4, 3))).shape == (3, 4, 3)

    def test_large_ones_are_thinned(self, cpu):
        assert self.picture(ti.field(ti.f32, (3000, 10))).shape == (4, 1000)

    def test_others_are_told_of(self, cpu):
        for x, text in (
            (ti.field(ti.f32, 50), r"f32, shape \(50,\)<pre>\[0. 0. ... 0. 0.\]"),
            (ti.Vector.field(2, ti.i32, (2, 2)), r"i32, shape \(2, 2\)"),
            (ti.field(ti.f32), "not placed"),
            (ti.ndarray(ti.u8, 3), r"u8, shape \(3,\)"),
        ):
            assert x._repr_png_() is None and re.search(text, x._repr_html_())
        struct_field = ti.Struct.field({"a": ti.f32, "b": ti.i32}, shape=4)
        assert "a: f32, b: i32, shape (4,)" in struct_field._repr_html_()

    def test_numbers_that_are_none(self, cpu):
        x = ti.field(ti.f32, (2, 2))
        x.fill(float("nan"))
        assert self.picture(x).tolist() == [[0, 0], [0, 0]]


class TestProgress:
    def test_items_pass(self):
        assert list(ti.tools.progress(range(3))) == [0, 1, 2]
        assert list(ti.tools.progress(iter("ab"), "letters", total=2)) == ["a", "b"]

    def test_it_is_silent_where_nobody_looks(self, capsys):
        list(ti.tools.progress(range(3), "silent"))
        assert capsys.readouterr().err == ""

    def test_it_is_drawn(self, monkeypatch, capsys, messages):
        pytest.importorskip("tqdm")
        monkeypatch.setenv("AEROGEL_PROGRESS", "1")
        list(ti.tools.progress(range(3), "drawn"))
        assert "drawn" in capsys.readouterr().err
        ti.set_logging_level(ti.WARN)
        list(ti.tools.progress(range(3), "drawn"))
        assert capsys.readouterr().err == ""


def test_optional_packages_are_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match="pip install pillow"):
        ti.tools.imwrite(np.zeros((2, 2)), str(tmp_path / "a.jpg"))
    with pytest.raises(ImportError, match="pip install pillow"):
        ti.tools.imread(str(tmp_path / "a.jpg"))
    ti.tools.imwrite(np.zeros((2, 2)), str(tmp_path / "a.png"))
