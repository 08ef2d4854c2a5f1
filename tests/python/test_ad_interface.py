"""What of gradients is asked for by name: where they lie, which stay, several seeds at once."""

import numpy as np
import pytest
from test_ad_tape import fields, squares

import aerogel as ti


def test_several_seeds_and_one_run(arch):
    x, y, loss = fields()
    square, _ = squares(x, y, loss)
    n_runs = []

    def run():
        n_runs.append(1)
        square()
        x.fill(9)

    x.from_numpy(np.array([1.0, 2, 3]))
    assert ti.ad.vjp(run, y, x, seeds=np.eye(3)).tolist() == [[2, 0, 0], [0, 4, 0], [0, 0, 6]]
    assert len(n_runs) == 1 and x[0] == 9
    a, b = (ti.ndarray(ti.f64, 3, needs_grad=True) for _ in range(2))

    @ti.kernel
    def product(a: ti.types.ndarray(), b: ti.types.ndarray()):
        for i in a:
            b[i] = a[i] * y[i]

    a.fill(2)
    y.from_numpy(np.array([1.0, 2, 3]))
    by_a, by_y = ti.ad.vjp(lambda: product(a, b), b, [a, y], seeds=[[1, 0, 0], [0, 1, 1]])
    assert by_a.tolist() == [[1, 0, 0], [0, 2, 3]]
    assert by_y.tolist() == [[2, 0, 0], [0, 2, 2]]
    rows = ti.ad.vjp(lambda: product(a, b), [b, loss], a, seeds=[([1, 0, 0], 0), ([0, 0, 2], 1)])
    assert rows.tolist() == [[1, 0, 0], [0, 0, 6]]
    with pytest.raises(RuntimeError, match="at least one seed"):
        ti.ad.vjp(run, y, x, seeds=[])
    with pytest.raises(RuntimeError, match="takes `seed`, or `seeds`"):
        ti.ad.vjp(run, y, x, seed=[1, 0, 0], seeds=[[1, 0, 0]])
    with pytest.raises(RuntimeError, match="has shape"):
        ti.ad.vjp(run, y, x, seeds=[[1, 0, 0], [1, 0]])


def test_several_seeds_through_checkpoints_and_replaced_functions(arch):
    x, y, loss = fields()

    @ti.kernel
    def step():
        for i in x:
            x[i] = x[i] ** 2

    @ti.kernel
    def double():
        for i in x:
            y[i] = 2 * x[i]

    @ti.ad.grad_replaced
    def doubled():
        double()

    @ti.ad.grad_for(doubled)
    def back():
        for i in range(3):
            x.grad[i] += 2 * y.grad[i]
        y.grad.fill(0)

    def run():
        ti.ad.checkpoint(lambda t: step(), steps=3, snapshots=2)
        doubled()

    start = np.array([1.1, 0.9, 1.2])
    x.from_numpy(start)
    want = 2 * 8 * start**7
    assert np.allclose(ti.ad.vjp(run, y, x, seeds=np.eye(3)), np.diag(want))
    assert np.allclose(x.to_numpy(), start**8)


def test_gradients_that_stay(arch):
    x, y, loss = fields()
    square, total = squares(x, y, loss)
    x.from_numpy(np.array([1.0, 2, 3]))
    with ti.ad.Tape(loss, retain_grad=[y]):
        square()
        total()
    assert y.grad.to_numpy().tolist() == [1, 1, 1]
    assert x.grad.to_numpy().tolist() == [2, 4, 6]
    with ti.ad.Tape(loss, retain_grad=True):
        square()
        y[1] = 5
        total()
    assert y.grad.to_numpy().tolist() == [1, 1, 1]
    assert x.grad.to_numpy().tolist() == [2, 0, 6]
    with ti.ad.Tape(loss):
        square()
        total()
    assert y.grad.to_numpy().tolist() == [0, 0, 0]
    with (
        pytest.raises(RuntimeError, match="a field of retain_grad, `plain`, has no gradient"),
        ti.ad.Tape(loss, retain_grad=[ti.field(ti.f64, shape=2, name="plain")]),
    ):
        pass


def test_gradients_that_stay_step_by_step(arch):
    n = 5
    x = ti.field(ti.f64, shape=(n + 1, 2), needs_grad=True, offset=(0, 3))
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def step(t: ti.i32):
        for i in range(3, 5):
            x[t + 1, i] = 2 * x[t, i]

    @ti.kernel
    def total():
        for i in range(3, 5):
            loss[None] += x[n, i]

    want = [[2.0 ** (n - t)] * 2 for t in range(n + 1)]
    for steps in (lambda: [step(t) for t in range(n)], lambda: ti.ad.checkpoint(step, steps=n, snapshots=2)):
        x.fill(1)
        with ti.ad.Tape(loss, retain_grad=[x]):
            steps()
            total()
        assert x.grad.to_numpy().tolist() == want
    a = ti.ndarray(ti.f64, 4, needs_grad=True)

    @ti.kernel
    def scale(a: ti.types.ndarray()):
        for i in a:
            a[i] = 3 * a[i]

    @ti.kernel
    def total_of(a: ti.types.ndarray()):
        for i in a:
            loss[None] += a[i] ** 2

    a.fill(1)
    with ti.ad.Tape(loss, retain_grad=[a]):
        scale(a)
        total_of(a)
    # By what it held after it was written last.
    assert a.grad.to_numpy().tolist() == [6] * 4


def test_gradients_are_fields_to_place(arch):
    x, v = ti.field(ti.f64, name="x"), ti.Vector.field(2, ti.f64)
    loss = ti.field(ti.f64, shape=(), needs_grad=True, needs_dual=True)
    ti.root.dense(ti.i, 8).place(x, v)
    ti.root.dense(ti.i, 2).dense(ti.i, 4).place(x.grad)
    ti.root.dense(ti.i, 8).place(v.grad)
    ti.root.dense(ti.i, 8).place(x.dual, v.dual)

    @ti.kernel
    def energy():
        for i in x:
            loss[None] += x[i] ** 2 * v[i][1]

    x.fill(3)
    v.fill(2)
    with ti.ad.Tape(loss):
        energy()
    assert x.grad.to_numpy().tolist() == [12] * 8
    assert v.grad.to_numpy().tolist() == [[0, 9]] * 8
    assert ti.ad.jvp(energy, x, np.arange(8), loss) == 12 * 28
    kinds = ti.ad.SNodeGradType
    found = [f.snode.ptr.get_snode_grad_type() for f in (x, x.grad, x.dual, v.grad)]
    assert found == [kinds.PRIMAL, kinds.ADJOINT, kinds.DUAL, kinds.ADJOINT]
    assert x.snode.ptr.has_dual() and not x.grad.snode.ptr.has_dual()
    ti.ad.clear_all_gradients(gradient_type=kinds.DUAL)
    assert loss.dual[None] == 0 and x.grad[0] == 12


def test_lazy_tangents(arch):
    x, y, k = ti.field(ti.f64), ti.field(ti.f64), ti.field(ti.i32)
    ti.root.dense(ti.i, 4).place(x, y)
    ti.root.place(k)
    ti.root.lazy_dual()

    @ti.kernel
    def square():
        for i in x:
            y[i] = x[i] ** 2

    x.fill(3)
    assert ti.ad.jvp(square, x, [0, 1, 0, 2], y).tolist() == [0, 6, 0, 12]
    assert x.dual.parent() is x.parent() and k.dual is None
    with pytest.raises(RuntimeError, match="has no gradient"):
        ti.ad.vjp(square, y, x, seed=[1, 1, 1, 1])
