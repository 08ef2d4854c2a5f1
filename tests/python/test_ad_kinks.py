"""The table of kinks in `docs/gradients.md`: each row is a kernel."""

import importlib.util
import math
import re
from pathlib import Path

import pytest

import aerogel as ti

PAGE = Path(__file__).parents[2] / "docs" / "gradients.md"
ROW = re.compile(r"\| `(?P<expression>.+)` \| (?P<at>\S+) \| (?P<derivative>[^:|]+?)(?:: .*)? \|")
ROWS = (
    [match.group("expression", "at", "derivative") for match in ROW.finditer(PAGE.read_text())] if PAGE.exists() else []
)

pytestmark = pytest.mark.skipif(not ROWS, reason="the documents are not here")

PROGRAM = """
import aerogel as ti

def kernel_of(x_of, result):
    @ti.kernel
    def kernel():
        x = x_of[None]
        result[None] = {expression}
    return kernel
"""


def kernel_of(expression, folder, fields):
    path = folder / "kink.py"
    path.write_text(PROGRAM.format(expression=expression))
    spec = importlib.util.spec_from_file_location("kink", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel_of(*fields)


@pytest.mark.parametrize("expression, at, derivative", ROWS)
def test_a_row(arch, tmp_path, expression, at, derivative):
    x, y = (ti.field(ti.f64, shape=(), needs_grad=True, needs_dual=True) for _ in range(2))
    kernel = kernel_of(expression, tmp_path, (x, y))
    x[None] = float(at)
    with ti.ad.Tape(y):
        kernel()
    with ti.ad.FwdMode(loss=y, param=x):
        kernel()
    want = float(derivative)
    for found in (x.grad[None], y.dual[None]):
        assert found == want or math.isnan(found) and math.isnan(want) or math.isclose(found, want, rel_tol=1e-12)


def test_decisions_are_made_by_arithmetic_as_it_is_written(arch):
    """Where the kernel itself may contract a product and a sum, its gradient decides by what is written."""
    x, b, c, y = (ti.field(ti.f64, shape=64, needs_grad=True, needs_dual=True) for _ in range(4))

    @ti.kernel
    def decide():
        for i in x:
            d = x[i] * b[i] - c[i]
            n = ti.cast(d * 1e30, ti.i32)
            r = x[i]
            if d == 0.0:
                r = 2 * x[i]
            y[i] = r + (x[i] * 3 if n == 0 else 0.0)

    for i in range(64):
        x[i], b[i] = 1.1 + i / 7, 1.3 + i / 11
        c[i] = x[i] * b[i]
    for i in range(64):
        y.grad[i] = 1
    decide.grad()
    assert x.grad.to_numpy().tolist() == [5] * 64
    with ti.ad.FwdMode(loss=y, param=x, seed=[1] * 64):
        decide()
    assert y.dual.to_numpy().tolist() == [5] * 64


@pytest.mark.parametrize("shape", [(20, 1, 1, 1), (2, 1025)])
def test_of_equal_cells_the_last_wins(arch, shape):
    """Cells are told apart however many axes a field has, and however long they are."""
    x = ti.field(ti.f64)
    axes = ti.ij if len(shape) == 2 else ti.ijkl
    inner = (1, 1024) if len(shape) == 2 else (2, 1, 1, 1)
    ti.root.pointer(axes, shape).dense(axes, inner).place(x)
    ti.root.lazy_grad()
    most, loss = (ti.field(ti.f64, shape=(), needs_grad=True) for _ in range(2))

    @ti.kernel
    def largest():
        for cell in ti.grouped(x):
            ti.atomic_max(most[None], x[cell])
        loss[None] += 3 * most[None]

    cells = [(0, 1 << 20), (1, 0)] if len(shape) == 2 else [(i, 0, 0, 0) for i in range(40)]
    for cell in cells:
        x[cell] = 1.0
    with ti.ad.Tape(loss):
        largest()
    assert [x.grad[cell] for cell in cells] == [0.0] * (len(cells) - 1) + [3.0]
