"""Arrays that share memory under a tape: the gradient between them arrives, or there is an error."""

import numpy as np
import pytest

import aerogel as ti
from aerogel.errors import AerogelRuntimeError

A = ti.types.ndarray


@pytest.fixture(autouse=True)
def fresh(arch):
    pass


@ti.kernel
def square(x: A(), y: A()):
    for i in x:
        y[i] = x[i] ** 2


@ti.kernel
def add_up(x: A(), total: A()):
    for I in ti.grouped(x):
        total[0] += x[I]


def arrays(*shapes):
    return [ti.ndarray(ti.f32, shape, needs_grad=True) for shape in shapes]


def test_an_array_and_a_view_of_it():
    x, y, total = arrays(3, 3, 1)
    x.from_numpy(np.array([1, 2, 3], np.float32))
    with ti.ad.Tape(total):
        square(x, y)
        add_up(y, total)
    assert x.grad.to_numpy().tolist() == [2, 4, 6]
    with pytest.raises(
        AerogelRuntimeError, match="`x`, whose memory kernel `square` has written.*pass `x` itself to both"
    ):
        with ti.ad.Tape(total, validation=True):
            square(x, np.asarray(y))
            add_up(y, total)


def leaf(torch, *shape):
    return torch.ones(shape, requires_grad=True)


def test_views_of_tensors():
    torch = pytest.importorskip("torch")
    for view in (lambda b: b[1], lambda b: b[:, 1], lambda b: b.view(-1)[:3]):
        x, base, total = leaf(torch, 3), leaf(torch, 3, 3), leaf(torch, 1)
        with pytest.raises(AerogelRuntimeError, match="shares memory with `y` of kernel `square`"):
            with ti.ad.Tape(total):
                square(x, view(base))
                add_up(base, total)


def test_views_that_lie_apart():
    torch = pytest.importorskip("torch")
    base, total = torch.full((4, 3), 1.5), leaf(torch, 1)
    for rows in (base.unbind(), base.T.contiguous().T.unbind(), torch.full((3, 4), 1.5).unbind(1)):
        rows = [row.requires_grad_() for row in rows]
        with ti.ad.Tape(total):
            for k in range(3):
                square(rows[k], rows[k + 1])
            add_up(rows[3], total)
        assert rows[0].grad.tolist() == pytest.approx([8 * 1.5**7] * 3)


def test_tensors_of_inference_mode():
    torch = pytest.importorskip("torch")
    with torch.inference_mode():
        constant = torch.full((3,), 2.0)
    x, y, total = leaf(torch, 3), leaf(torch, 3), leaf(torch, 1)

    @ti.kernel
    def scale(x: A(), c: A(), y: A()):
        for i in x:
            y[i] = x[i] * c[i]

    with ti.ad.Tape(total):
        scale(x, constant, y)
        add_up(y, total)
    assert x.grad.tolist() == [2, 2, 2]


def test_bfloat16_under_a_tape():
    torch = pytest.importorskip("torch")
    x = torch.ones(3, dtype=torch.bfloat16, requires_grad=True)
    total = ti.field(ti.f32, (), needs_grad=True)

    @ti.kernel
    def add(x: A()):
        for i in x:
            total[None] += ti.cast(x[i], ti.f32) * 3

    with ti.ad.Tape(total):
        add(x)
    assert x.grad.tolist() == [3, 3, 3]


def test_checks_of_gradients_that_are_there_already():
    torch = pytest.importorskip("torch")
    x, y, total = leaf(torch, 3), leaf(torch, 3), leaf(torch, 1)

    def run():
        square(x, y)
        add_up(y, total)

    assert ti.ad.check_grad(run, x, total)
    assert ti.ad.check_grad(run, x, total)
    with pytest.raises(TypeError, match="grad_check takes fields, not Tensor"):
        with ti.ad.Tape(total, grad_check=[x]):
            run()
