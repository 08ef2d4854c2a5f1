"""The tables of the pages "Coming from ...": both columns of each row are run, and compute the same.

A row is run if each of its first two cells is one piece of code, but for those in `NOT_RUN`. NumPy's rows are always run, those of JAX
and PyTorch where they are installed.
"""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import aerogel as ti
from aerogel import nn, optim
from aerogel.tensor import programs

DOCS = Path(__file__).parents[2] / "docs"
ROW = re.compile(r"^\| `([^`|]+)` \| `([^`|]+)` \|", re.MULTILINE)
#: Names of settings and classes, what prints, and what changes the process or writes files.
NOT_RUN = {
    "numpy": set(),
    "jax": {
        'static_argnames=["n"]',
        'donate_argnames=["w"]',
        "jax.custom_vjp",
        'jax.config.update("jax_enable_x64", True)',
        'jax.debug.print("{}", x)',
    },
    "torch": {
        "torch.no_grad()",
        "loss.backward()",
        "torch.utils.data.DataLoader",
        "torch.manual_seed(0)",
        "torch.optim.Adam(net.parameters())",
        "torch.save(net.state_dict(), path)",
        "x.cuda()",
    },
}
PAGES = {"numpy": "coming-from-numpy.md", "jax": "coming-from-jax.md", "torch": "coming-from-pytorch.md"}
#: What draws other numbers: only the shapes agree.
RANDOM = re.compile(r"random|Linear")
VALUES = {
    "x": np.array([3, 1, 2], np.float32),
    "a": np.array([[1, 2, 3], [4, 5, 6]], np.float32),
    "m": np.array([[4, 1, 0], [1, 3, 1], [0, 1, 2]], np.float32),
    "i": np.array([2, 0], np.int32),
}

pytestmark = pytest.mark.skipif(not DOCS.exists(), reason="the documents are not here")


def f(v):
    return (v**2).sum()


def g(v):
    return v**2


def rows():
    for package, page in PAGES.items():
        for theirs, ours in ROW.findall((DOCS / page).read_text()) if DOCS.exists() else []:
            if theirs not in NOT_RUN[package]:
                yield package, theirs, ours


def scope_of(package):
    """The names that the code of a package uses, with arrays of its own."""
    module = importlib.import_module(package)
    if package == "numpy":
        return {"np": module, **{name: value.copy() for name, value in VALUES.items()}}
    if package == "torch":
        return {"torch": module, **{name: module.tensor(value) for name, value in VALUES.items()}}
    arrays = {name: module.numpy.asarray(value) for name, value in VALUES.items()}
    return {"jax": module, "jnp": module.numpy, "key": module.random.key(0), **arrays}


def is_statement(code):
    try:
        compile(code, "row", "eval")
    except SyntaxError:
        return True
    return False


def result(code, scope, changes):
    """What an expression returns, called with `x` if it is a function; with `changes`, the variables that the code leaves."""
    scope |= {"f": f, "g": g}
    if changes:
        exec(code, scope)
        return {name: scope[name] for name in ("x", "a")}
    value = eval(code, scope)
    return value(scope["x"]) if callable(value) and not hasattr(value, "shape") else value


def leaves(value):
    """The arrays of a result, in order."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple) and any(hasattr(item, "shape") for item in value):
        return [leaf for item in value for leaf in leaves(item)]
    return [np.asarray(value.detach() if hasattr(value, "detach") else value)]


@pytest.mark.parametrize("package, theirs, ours", list(rows()))
def test_a_row(package, theirs, ours, cpu):
    pytest.importorskip(package)
    changes = is_statement(ours)
    expected = leaves(result(theirs, scope_of(package), changes))
    tensors = {name: ti.tensor.asarray(value) for name, value in VALUES.items()}
    scope = {"ti": ti, "p": programs, "nn": nn, "optim": optim, "key": ti.tensor.random.default.key()}
    found = leaves(result(ours, scope | tensors, changes))
    assert [leaf.shape for leaf in found] == [leaf.shape for leaf in expected]
    for leaf, right in zip(found, expected, strict=True):
        assert leaf.dtype.kind == right.dtype.kind
        if not RANDOM.search(ours):
            np.testing.assert_allclose(leaf, right, rtol=1e-5)


def test_rows_that_are_not_run_exist():
    for package, page in PAGES.items():
        text = (DOCS / page).read_text()
        assert [code for code in NOT_RUN[package] if f"| `{code}` |" not in text] == []


def test_warp_computes_the_same(tmp_path):
    """The first two programs of the page about Warp print the same."""
    pytest.importorskip("warp")
    text = (DOCS / "coming-from-warp.md").read_text()
    printed = []
    for kind in ("py", "python"):
        path = tmp_path / f"{kind}_program.py"
        path.write_text(re.search(rf"```{kind}\n(.*?)```", text, re.DOTALL)[1])
        done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True)
        printed.append(done.stdout.splitlines()[-1])
    assert printed[0] == printed[1]
