"""Which cells are active is asked again on the way back, and was something else for earlier kernels."""

import numpy as np
import pytest

import aerogel as ti

N = 8


def pointer(x):
    node = ti.root.pointer(ti.i, N // 2)
    node.dense(ti.i, 2).place(x, x.grad)
    return node


def bitmasked(x):
    node = ti.root.bitmasked(ti.i, N)
    node.place(x, x.grad)
    return node


def hashed(x):
    node = ti.root.hash(ti.i, N // 2)
    node.dense(ti.i, 2).place(x, x.grad)
    return node


def nested(x):
    node = ti.root.bitmasked(ti.i, 2).pointer(ti.i, N // 2)
    node.place(x, x.grad)
    return node


def dynamic(x):
    node = ti.root.dynamic(ti.i, N, chunk_size=2)
    node.place(x, x.grad)
    return node


LAYOUTS = [pointer, bitmasked, hashed, nested, dynamic]


class Fields:
    """A sparse field, parameters of which the cells are made, and a loss."""

    def __init__(self, layout):
        self.x = ti.field(ti.f64, name="x", needs_grad=True)
        self.node = layout(self.x)
        self.p = ti.field(ti.f64, shape=N, name="p", needs_grad=True)
        self.loss = ti.field(ti.f64, shape=(), name="loss", needs_grad=True)
        self.start = np.arange(1, N + 1) / 3

    def compare(self, run):
        """The gradient by the parameters beside central differences of a run from an empty layout."""

        def value(p):
            self.node.deactivate_all()
            self.p.from_numpy(p)
            self.loss[None] = 0
            run()
            return self.loss[None]

        eps = 1e-5
        want = [(value(self.start + d) - value(self.start - d)) / 2 / eps for d in np.eye(N) * eps]
        self.node.deactivate_all()
        self.p.from_numpy(self.start)
        with ti.ad.Tape(self.loss):
            run()
        assert np.allclose(self.p.grad.to_numpy(), want, atol=1e-8), (self.p.grad.to_numpy(), want)
        return self.p.grad.to_numpy()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_loop_over_cells_of_which_there_are_more_later(arch, layout):
    f = Fields(layout)
    x, p, loss = f.x, f.p, f.loss

    @ti.kernel
    def put(lo: int, hi: int):
        for i in range(lo, hi):
            x[i] = p[i] ** 2

    @ti.kernel
    def total():
        for i in x:
            loss[None] += (x[i] + 1) * p[i] ** 2

    def run():
        put(0, 2)
        total()
        put(2, 5)
        total()
        x[6] = 1.0
        total()

    f.compare(run)


@pytest.mark.parametrize("layout", [pointer, bitmasked, hashed, nested])
def test_cells_that_are_asked_for(arch, layout):
    f = Fields(layout)
    x, p, loss, node = f.x, f.p, f.loss, f.node

    @ti.kernel
    def put(at: int):
        x[at] = p[at]

    @ti.kernel
    def ask():
        for i in p:
            if ti.is_active(node, [i]):
                loss[None] += p[i] ** 3
            else:
                loss[None] += p[i]

    def run():
        ask()
        put(1)
        ask()
        put(5)

    if layout in (pointer, hashed):

        @ti.kernel
        def ask():  # noqa: F811
            for i in p:
                if ti.is_active(node, [i // 2]):
                    loss[None] += p[i] ** 3
                else:
                    loss[None] += p[i]

    f.compare(run)


def test_the_length_of_a_list(arch):
    f = Fields(dynamic)
    x, p, loss, node = f.x, f.p, f.loss, f.node

    @ti.kernel
    def extend():
        ti.append(node, [], 1.0)

    @ti.kernel
    def long():
        for _ in range(1):
            for i in range(ti.length(node, [])):
                loss[None] += p[i] ** 2

    def run():
        long()
        extend()
        extend()
        long()
        extend()

    f.compare(run)


@pytest.mark.parametrize("layout", [pointer, bitmasked, hashed, nested])
def test_a_kernel_that_goes_over_cells_and_makes_more(arch, layout):
    """Its loop has seen those that were there when it began."""
    f = Fields(layout)
    x, p, loss = f.x, f.p, f.loss

    @ti.kernel
    def put():
        x[0] = p[0]

    @ti.kernel
    def spread():
        for i in x:
            loss[None] += p[i] ** 2
            if i + 2 < N:
                x[i + 2] += p[i] * p[i + 2]

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i] ** 2

    def run():
        put()
        spread()
        spread()
        total()

    f.compare(run)


def test_a_kernel_that_makes_cells_and_then_goes_over_them(arch):
    f = Fields(pointer)
    x, p, loss = f.x, f.p, f.loss

    @ti.kernel
    def step(at: int):
        for i in range(at, at + 2):
            x[i] += p[i] ** 2
        for i in x:
            loss[None] += x[i] * p[i]

    def run():
        step(0)
        step(1)
        step(4)

    f.compare(run)


def test_a_kernel_that_asks_before_and_after_is_refused(arch):
    f = Fields(pointer)
    x, p, loss = f.x, f.p, f.loss

    @ti.kernel
    def step():
        for i in x:
            loss[None] += p[i]
        for i in p:
            x[i] += p[i] ** 2
        for i in x:
            loss[None] += x[i] * p[i]

    with pytest.raises(
        ti.AerogelCompilationError, match=r"E0603.*which cells are active(.|\n)*for i in x(.|\n)*x\[i\] \+= p\[i\]"
    ):
        with ti.ad.Tape(loss):
            step()


def test_by_hand_a_kernel_that_makes_more_cells_is_refused(arch):
    f = Fields(pointer)
    x, p, loss = f.x, f.p, f.loss

    @ti.kernel
    def spread():
        for i in x:
            loss[None] += p[i] ** 2
            x[(i + 2) % N] += p[i]

    spread()
    with pytest.raises(ti.AerogelCompilationError, match="E0603.*which cells are active"):
        spread.grad()


def test_iterations_that_ask_for_what_others_make_active_are_refused(arch):
    f = Fields(pointer)
    x, p, loss, node = f.x, f.p, f.loss, f.node

    @ti.kernel
    def step():
        for i in p:
            if ti.is_active(node, [i // 2]):
                loss[None] += p[i]
            x[i] += p[i] ** 2

    with pytest.raises(ti.AerogelCompilationError, match="E0603"):
        with ti.ad.Tape(loss):
            step()


def test_cells_that_are_only_asked_for_stay(arch):
    """Nothing is read of them, but how many there are counts."""
    p = ti.field(ti.f64, shape=N, needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    mark = ti.field(ti.i32, name="mark")
    node = ti.root.pointer(ti.i, N)
    node.place(mark)

    @ti.kernel
    def total():
        for i in mark:
            loss[None] += p[i] ** 2

    @ti.kernel
    def drop():
        for i in range(N):
            ti.deactivate(node, [i])

    p.fill(1)
    mark[3] = 1
    for gone in (drop, node.deactivate_all, ti.deactivate_all_snodes):
        with pytest.raises(RuntimeError, match="deactivates cells of `mark`"), ti.ad.Tape(loss):
            total()
            gone()
        assert mark[3] == 1
    with ti.ad.Tape(loss):
        node.deactivate_all()
        mark[4] = 1
        total()
        mark[2] = 1
    assert p.grad.to_numpy().tolist() == [0, 0, 0, 0, 2, 0, 0, 0]


def test_second_derivatives_see_the_cells_of_their_kernel(arch):
    x = ti.field(ti.f64, name="x", needs_grad=True, needs_dual=True)
    node = ti.root.pointer(ti.i, N)
    node.place(x)
    node.lazy_grad()
    node.lazy_dual()
    p = ti.field(ti.f64, shape=N, needs_grad=True, needs_dual=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True, needs_dual=True)

    @ti.kernel
    def put(at: int):
        x[at] = p[at]

    @ti.kernel
    def total():
        for i in x:
            loss[None] += p[i] ** 3

    def run():
        put(1)
        total()
        put(2)

    p.fill(1)
    assert ti.ad.hvp(run, loss, p, np.ones(N)).tolist() == [0, 6, 0, 0, 0, 0, 0, 0]


def test_seeds_and_tapes_that_are_gone_back_twice(arch):
    f = Fields(pointer)
    x, p = f.x, f.p
    y = ti.field(ti.f64, shape=2, needs_grad=True)

    @ti.kernel
    def put(at: int):
        x[at] = p[at]

    @ti.kernel
    def total(to: int):
        for i in x:
            y[to] += p[i] ** 2

    def run():
        y.fill(0)
        put(0)
        total(0)
        put(2)
        total(1)

    p.fill(1)
    jacobian = ti.ad.vjp(run, outputs=y, inputs=p, seeds=np.eye(2))
    assert jacobian.tolist() == [[2, 2, 0, 0, 0, 0, 0, 0], [2, 2, 2, 2, 0, 0, 0, 0]]


def test_gradients_by_hand_under_a_tape_whose_cells_have_changed_are_refused(arch):
    f = Fields(pointer)
    x, p, loss = f.x, f.p, f.loss

    @ti.kernel
    def total():
        for i in x:
            loss[None] += p[i] ** 2

    @ti.ad.grad_replaced
    def forward():
        total()

    @ti.ad.grad_for(forward)
    def backward():
        total.grad()

    x[0] = 1
    with ti.ad.Tape(loss):
        forward()
    assert p.grad.to_numpy().tolist() == [0] * N
    p.fill(1)
    with ti.ad.Tape(loss):
        forward()
    assert p.grad.to_numpy()[:3].tolist() == [2, 2, 0]
    with pytest.raises(RuntimeError, match="`total`.*active"), ti.ad.Tape(loss):
        forward()
        x[4] = 1


def test_steps_of_a_checkpoint_that_see_other_cells_when_they_are_run_again_are_refused(arch):
    f = Fields(pointer)
    x, p, loss, node = f.x, f.p, f.loss, f.node

    @ti.kernel
    def put(at: int):
        x[at] = p[at] ** 2

    @ti.kernel
    def total():
        for i in x:
            loss[None] += p[i] ** 2 * (1 + x[i])

    def grows(t):
        put(t)
        total()

    def run():
        ti.ad.checkpoint(grows, steps=4, snapshots=1)

    p.fill(1)
    node.deactivate_all()
    with pytest.raises(RuntimeError, match="`total`.*which cells"), ti.ad.Tape(loss):
        run()
    assert p.grad.to_numpy().tolist() == [0] * N
    node.deactivate_all()

    def begins_anew(t):
        node.deactivate_all()
        put(t)
        total()

    node.deactivate_all()
    f.compare(lambda: ti.ad.checkpoint(begins_anew, steps=4, snapshots=1))


def test_the_state_of_a_checkpoint_whose_cells_come_and_go(arch):
    """What a state holds is put back where its cells have become inactive since."""
    f = Fields(bitmasked)
    x, p, loss, node = f.x, f.p, f.loss, f.node
    y = ti.field(ti.f64, name="y", needs_grad=True)
    other = bitmasked(y)

    @ti.kernel
    def first():
        x[0] = p[0]

    @ti.kernel
    def move(a: ti.template(), b: ti.template()):
        for i in range(1, N):
            if a[i - 1] != 0:
                b[i] = ti.sin(a[i - 1]) * p[i]

    @ti.kernel
    def total():
        for i in range(N):
            loss[None] += x[i] ** 2 + y[i]

    def step(t):
        if t % 2:
            node.deactivate_all()
            move(y, x)
        else:
            other.deactivate_all()
            move(x, y)

    def run():
        other.deactivate_all()
        first()
        ti.ad.checkpoint(step, steps=6, snapshots=2)
        total()

    f.compare(run)
    assert [i for i in range(N) if x[i] != 0] == [6]


def test_a_step_of_one_kernel_that_begins_with_an_empty_grid(arch):
    """What cells held before they became inactive has no influence, whatever was read of them since."""
    f = Fields(pointer)
    x, p, loss, node = f.x, f.p, f.loss, f.node
    v = ti.field(ti.f64, shape=N, needs_grad=True)

    @ti.kernel
    def begin():
        for i in p:
            v[i] = p[i]

    @ti.kernel
    def clear():
        for i in range(N // 2):
            ti.deactivate(node, [i])

    @ti.kernel
    def step():
        for i in v:
            x[(i * 3) % N] += v[i] ** 2
        for i in x:
            x[i] = ti.sin(x[i])
        for i in v:
            v[i] = v[i] * 0.9 + x[i] * 0.3 + x[(i + 2) % N]

    @ti.kernel
    def total():
        for i in p:
            loss[None] += v[i]

    def both(t):
        clear()
        step()

    def run():
        begin()
        ti.ad.checkpoint(both, steps=5, snapshots=2, state=[v])
        total()

    f.compare(run)

    # The gradient by what a cell held is zero before it became inactive.
    @ti.kernel
    def drop_and_read():
        for i in range(N // 2):
            ti.deactivate(node, [i])
        for i in p:
            loss[None] += x[i] * p[i]

    x.fill(0)
    for i in range(N):
        x[i] = 1
    with ti.ad.Tape(loss):
        drop_and_read()
    assert x.grad.to_numpy().tolist() == [0] * N


APART = {
    "both sparse": (lambda x: ti.root.pointer(ti.i, N // 2).dense(ti.i, 2).place(x), True),
    "a dense field": (lambda x: ti.root.dense(ti.i, N).place(x), True),
    "dense gradients": (lambda x: ti.root.pointer(ti.i, N // 2).dense(ti.i, 2).place(x), False),
}


@pytest.mark.parametrize("layout", APART)
def test_gradients_in_cells_of_their_own_become_active(arch, layout):
    place, is_sparse = APART[layout]
    x = ti.field(ti.f64, needs_grad=True)
    place(x)
    (ti.root.pointer(ti.i, N) if is_sparse else ti.root.dense(ti.i, N)).place(x.grad)
    p = ti.field(ti.f64, shape=N, needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def put():
        for i in range(1, 5):
            x[i] = p[i] ** 2

    @ti.kernel
    def total():
        for i in range(N):
            loss[None] += x[i] ** 2

    p.fill(1)
    with ti.ad.Tape(loss):
        put()
        total()
    assert p.grad.to_numpy().tolist() == [0, 4, 4, 4, 4, 0, 0, 0]


def test_components_under_nodes_of_their_own(arch):
    """Each is there or not by itself, also where its number is known at run time only."""
    v = ti.Vector.field(2, ti.f64, needs_grad=True)
    for k in range(2):
        ti.root.pointer(ti.i, 4).place(v.get_scalar_field(k), v.grad.get_scalar_field(k))
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def put():
        v[1][1] = 3.0
        v[2][0] = 5.0

    @ti.kernel
    def by_constants():
        for i in range(4):
            loss[None] += v[i][0] ** 2 + v[i][1] ** 3

    @ti.kernel
    def by_numbers():
        for i in range(4):
            for k in range(2):
                loss[None] += v[i][k] ** (2 + k)

    put()
    for kernel in (by_constants, by_numbers):
        with ti.ad.Tape(loss):
            kernel()
        assert v.grad.to_numpy().tolist() == [[0, 0], [0, 27], [10, 0], [0, 0]]


def test_all_cells_may_go_where_only_dense_fields_are_needed(arch):
    f = Fields(pointer)
    x, p, loss = f.x, f.p, f.loss

    @ti.kernel
    def total():
        for i in p:
            loss[None] += p[i] ** 2

    x[0] = 1
    p.fill(1)
    with ti.ad.Tape(loss):
        total()
        ti.deactivate_all_snodes()
    assert p.grad.to_numpy().tolist() == [2] * N and x[0] == 0


@pytest.mark.parametrize("where", ["apart", "with the numbers", "sparse as well"])
def test_tangents_of_cells_that_become_inactive_are_zero(arch, where):
    x = ti.field(ti.f64, name="x", needs_dual=True)
    y, p = (ti.field(ti.f64, shape=N, needs_dual=True) for _ in range(2))
    node = ti.root.pointer(ti.i, N)
    node.place(x)
    if where == "with the numbers":
        node.place(x.dual)
    elif where == "apart":
        ti.root.dense(ti.i, N).place(x.dual)
    else:
        ti.root.pointer(ti.i, N // 2).dense(ti.i, 2).place(x.dual)

    @ti.kernel
    def put():
        for i in p:
            x[i] = p[i] ** 2

    @ti.kernel
    def drop():
        for i in range(0, N, 2):
            ti.deactivate(node, [i])

    @ti.kernel
    def read():
        for i in y:
            y[i] = 3 * x[i]

    @ti.kernel
    def all_at_once():
        for i in p:
            x[i] = p[i] ** 2
        for i in range(0, N, 2):
            ti.deactivate(node, [i])
        for i in y:
            y[i] = 3 * x[i]

    numbers = np.arange(N) + 1.0
    p.from_numpy(numbers)
    odd = np.arange(N) % 2
    for run in (lambda: (put(), drop(), read()), all_at_once):
        with ti.ad.FwdMode(loss=y, param=p, seed=np.ones(N)):
            run()
        np.testing.assert_array_equal(y.to_numpy(), 3 * numbers**2 * odd)
        np.testing.assert_array_equal(y.dual.to_numpy(), 6 * numbers * odd)
    with ti.ad.FwdMode(loss=y, param=p, seed=np.ones(N)):
        put()
        node.deactivate_all()
        read()
    assert not y.to_numpy().any() and not y.dual.to_numpy().any()


def test_tangents_of_lists_that_become_empty_are_zero(arch):
    x = ti.field(ti.f64, name="x", needs_dual=True)
    y, p = (ti.field(ti.f64, shape=N, needs_dual=True) for _ in range(2))
    rows = ti.root.dense(ti.i, 2)
    lists = rows.dynamic(ti.j, N)
    lists.place(x)
    ti.root.dense(ti.ij, (2, N)).place(x.dual)

    @ti.kernel
    def run():
        for i in p:
            x[0, i] = p[i]
            x[1, i] = 2 * p[i]
        for i in range(1, 2):
            x[i].deactivate()
        for i in y:
            y[i] = x[0, i] + x[1, i]

    p.fill(1)
    with ti.ad.FwdMode(loss=y, param=p, seed=np.ones(N)):
        run()
    assert y.to_numpy().tolist() == [1] * N and y.dual.to_numpy().tolist() == [1] * N
