"""Notebooks: pictures below the cell, types of members, tables, and functions that a later cell defines anew."""

import linecache
import sys
import types

import numpy as np
import pytest

import aerogel as ti
from aerogel import _notebook


class Handle:
    def __init__(self, image):
        self.images = [image]

    def update(self, image):
        self.images.append(image)


@pytest.fixture
def notebook(monkeypatch):
    """What a notebook has of IPython; gives the handles of what has been shown."""
    shown = []

    class Image:
        def __init__(self, data, format):
            assert format == "png" and data.startswith(b"\x89PNG")

    def display(image, display_id):
        assert display_id is True
        shown.append(Handle(image))
        return shown[-1]

    ipython, inside = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    inside.Image, inside.display = Image, display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", inside)
    return shown


def test_no_notebook_is_running():
    assert not _notebook.is_running()


def test_a_gui_shows_its_frames_in_one_place(cpu, notebook):
    gui = ti.GUI("x", (8, 8))
    for frame in range(3):
        gui.circle((0.5, 0.5), radius=frame)
        gui.show()
    assert len(notebook) == 1 and len(notebook[0].images) == 3
    assert gui._repr_png_().startswith(b"\x89PNG")


def test_an_image_is_shown(cpu, notebook):
    ti.tools.imshow(np.zeros((4, 4, 3), np.float32))
    x = ti.field(ti.f32, (4, 4))
    ti.tools.imshow(x)
    assert len(notebook) == 2


def test_fields_of_structs_say_their_types(cpu):
    inner = ti.types.struct(a=int, b=ti.u8)
    x = ti.types.struct(pos=ti.math.vec3, mass=float, more=inner).field(shape=4)
    text = x._repr_html_()
    assert "pos: ti.types.vector(3, f32), mass: f32, more: {a: i32, b: u8}, shape (4,)" in text


def test_statistics_are_a_table(cpu):
    x = ti.field(ti.f32)
    block = ti.root.pointer(ti.i, 16)
    block.dense(ti.i, 4).place(x)
    x[3] = 1
    stats = block.stats()
    assert repr(stats) == str(stats) and "pointer 16" in repr(stats)
    assert stats._repr_html_().startswith("<pre>") and "pointer 16" in stats._repr_html_()


def cell(number, text, scope):
    path = f"/tmp/ipykernel_1/{number}.py"
    linecache.cache[path] = (len(text), None, text.splitlines(True), path)
    exec(compile(text, path, "exec"), scope)


def test_a_function_defined_anew_reaches_its_kernels(arch):
    scope = {"ti": ti, "__name__": "__main__"}
    cell(1, "@ti.func\ndef inner(x):\n    return x + 1\n", scope)
    cell(2, "@ti.func\ndef f(x):\n    return inner(x)\n@ti.kernel\ndef k(x: int) -> int:\n    return f(x)\n", scope)
    assert scope["k"](1) == 2 and scope["k"](2) == 3
    cell(3, "@ti.func\ndef inner(x):\n    return x * 10\n", scope)
    assert scope["k"](1) == 10
    cell(4, "@ti.func\ndef f(x):\n    return inner(x) + 5\n", scope)
    assert scope["k"](1) == 15
    del scope["f"]
    with pytest.raises(ti.TaichiCompilationError, match="`f` is not defined"):
        scope["k"](1)


def test_a_changed_number_reaches_the_kernels_of_a_notebook(cpu):
    """And of nothing else: in a file, a kernel has the number that there was when it was compiled."""
    text = "@ti.func\ndef f(x):\n    return x * scale\n@ti.kernel\ndef k(x: float) -> float:\n    return f(x) + shift\n"
    scope = {"ti": ti, "__name__": "__main__", "scale": 2.0, "shift": 1}
    cell(11, text, scope)
    assert scope["k"](3.0) == 7
    scope["scale"] = 10.0
    assert scope["k"](3.0) == 31
    scope["shift"] = 2
    assert scope["k"](3.0) == 32
    other = {"ti": ti, "__name__": "__main__", "scale": 2.0, "shift": 1}
    linecache.cache["a text.py"] = (len(text), None, text.splitlines(True), "a text.py")
    exec(compile(text, "a text.py", "exec"), other)
    assert other["k"](3.0) == 7
    other["scale"] = 10.0
    assert other["k"](3.0) == 7


def test_errors_name_the_cell(cpu, monkeypatch, notebook):
    scope = {"ti": ti, "__name__": "__main__"}
    text = "@ti.kernel\ndef k() -> int:\n    return nothing\n"

    def shell():
        compiler = types.SimpleNamespace(format_code_name=lambda name: ("Cell", "In[7]"))
        return types.SimpleNamespace(kernel=object(), compile=compiler)

    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", shell)
    cell(12, text, scope)
    with pytest.raises(ti.TaichiCompilationError, match=r"--> Cell In\[7\]:3:12"):
        scope["k"]()
    path = "/tmp/marimo_71/__marimo__cell_Hbol_.py"
    linecache.cache[path] = (len(text), None, text.splitlines(True), path)
    exec(compile(text, path, "exec"), scope)
    with pytest.raises(ti.TaichiCompilationError, match="--> cell Hbol:3:12"):
        scope["k"]()
    assert _notebook.cell_name("/tmp/a.py") == "/tmp/a.py"


def test_marimo_shows_frames(cpu, monkeypatch):
    shown = []
    marimo = types.SimpleNamespace(
        running_in_notebook=lambda: True, image=lambda data: data, output=types.SimpleNamespace(replace=shown.append)
    )
    monkeypatch.setitem(sys.modules, "marimo", marimo)
    gui = ti.GUI("x", (8, 8))
    gui.circle((0.5, 0.5))
    gui.show()
    assert len(shown) == 1 and shown[0].startswith(b"\x89PNG")
