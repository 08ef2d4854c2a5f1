"""A source file that is edited while its functions are in use: what was imported is compiled, or an error says so."""

import importlib
import sys
import time

import pytest

import aerogel as ti

HEAD = "import aerogel as ti\n"
G, H = "@ti.func\ndef g(x): return x + 1\n", "@ti.func\ndef h(x): return x + 2\n"
PLAIN_G, PLAIN_H = "def g(x):\n    return x + 1\n", "def h(x):\n    return x + 2\n"
KERNEL = "@ti.kernel\ndef k() -> int: return g(1)\n"


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Imports a module of this text, and edits it afterwards."""
    monkeypatch.syspath_prepend(str(tmp_path))
    made = []

    def make(text, edited=None):
        name = f"edited_{len(made)}_{time.monotonic_ns()}"
        made.append(name)
        path = tmp_path / f"{name}.py"
        path.write_text(text)
        importlib.invalidate_caches()
        out = importlib.import_module(name)
        if edited is not None:
            path.write_text(edited)
        return out, path

    yield make
    for name in made:
        sys.modules.pop(name, None)


def test_functions_that_change_places(arch, module):
    edited, _ = module(HEAD + G + H + KERNEL, HEAD + H + G + KERNEL)
    assert edited.k() == 2


def test_another_body(arch, module):
    edited, _ = module(HEAD + G + KERNEL, HEAD + G.replace("+ 1", "+ 5") + KERNEL)
    assert edited.k() == 2


def test_fewer_lines_and_none(arch, module):
    edited, path = module(HEAD + G + KERNEL, HEAD)
    path.unlink()
    assert edited.k() == 2


def test_methods_and_real_functions(arch, module):
    text = HEAD + (
        "@ti.real_func\ndef r(x: int) -> int:\n    return x + 1\n"
        "@ti.data_oriented\nclass C:\n    @ti.kernel\n    def k(self) -> int:\n        return r(1)\n"
    )
    edited, _ = module(text, "# a line\n" + text.replace("+ 1", "+ 3"))
    assert edited.C().k() == 2


def test_plain_functions_next_to_kernels(arch, module):
    kernel = "@ti.kernel\ndef k(x: int) -> int: return g(x)\n"
    edited, _ = module(HEAD + PLAIN_G + PLAIN_H + kernel, HEAD + PLAIN_H + PLAIN_G + kernel)
    assert edited.k(1) == 2


@pytest.mark.parametrize(
    "edit", [lambda t: PLAIN_H + t, lambda t: t.replace("+ 1", "- 1"), lambda t: t.replace("x", "y"), lambda t: "("]
)
def test_plain_functions_of_other_files(arch, module, edit):
    other, _ = module(PLAIN_G, edit(PLAIN_G))
    kernels, _ = module(HEAD + "g = None\n@ti.kernel\ndef k(x: int) -> int: return g(x)\n")
    kernels.g = other.g
    # Python runs the function as it was imported.
    assert kernels.k(1) == 2


def test_plain_functions_of_files_that_stay(arch, module):
    text = (
        "def outer(n):\n    def g(x):\n        def one():\n            return 1\n        return x + n\n    return g\n"
        "class C:\n    def __init__(self):\n        self.__hidden = 1\n    def g(self, x):\n        return x + 1\n"
        "g = outer(1)\nc = C()\nf = lambda x: x + 1\n"
    )
    other, _ = module(text)
    kernels, _ = module(HEAD + "g = None\n@ti.kernel\ndef k(x: int) -> int: return g(x)\n")
    for function in (other.f, other.c.g):
        kernels.g = function
        again = ti.kernel(kernels.k.__wrapped__)
        assert again(1) == 2


def test_reloaded(arch, module):
    edited, path = module(HEAD + G + KERNEL)
    assert edited.k() == 2
    path.write_text(HEAD + G.replace("+ 1", "+ 50") + KERNEL)
    assert importlib.reload(edited).k() == 51


def test_programs_of_tensors(arch, module):
    text = (
        "import aerogel as ti\nfrom aerogel.tensor import programs as p\n@p.program\ndef f():\n"
        "    x = p.input([-1], ti.i32)\n    n = p.const(0)\n    with p.loop(3):\n        n.val += x.sum()\n    return n\n"
    )
    edited, _ = module(text, "# a line more\n" * 3 + text)
    assert edited.f([1, 2]).item() == 9
