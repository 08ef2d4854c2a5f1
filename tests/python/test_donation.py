"""``ti.program(donate=...)``: results take the memory of arguments that nobody uses afterwards."""

import gc

import numpy as np
import pytest

import aerogel as ti

xp = ti.tensor
N = 1 << 18


@pytest.fixture(autouse=True)
def init():
    ti.init(arch=ti.cpu, log_level="error")


def update(w, g):
    return [p - 0.5 * d for p, d in zip(w, g)]


def weights(n=4):
    return [(xp.arange(N, dtype=ti.f32) * (k + 1)).realize() for k in range(n)]


def test_results_take_the_memory():
    kept, given = ti.program(update), ti.program(update, donate="w")
    want = [p.numpy().copy() for p in kept(weights(), weights())]
    for _ in range(3):
        got = given(weights(), weights())
        assert all(np.array_equal(a, b) for a, b in zip(want, (p.numpy() for p in got)))
    # Sized so that memory that is not taken is seen: a step by itself, again and again.
    sizes = {}
    for name, step in ("kept", kept), ("given", given):
        w, g = step(weights(), weights()), weights()
        held = [w]
        gc.collect()  # Memory of earlier tests that is freed in between would count.
        before = ti._native.live_bytes()
        for _ in range(5):
            w = step(w, g)
            held.append(w)
        sizes[name] = ti._native.live_bytes() - before
    assert sizes == {"kept": 5 * 16 * N, "given": 0}


def test_using_it_again_is_an_error():
    step = ti.program(update, donate=["w"])
    w, g = weights(2), weights(2)
    new = step(w, g)
    uses = [
        lambda: w[0] + 1,
        lambda: 1 - w[0],
        lambda: xp.sum(w[0]),
        lambda: w[0].shape,
        lambda: w[0].numpy(),
        lambda: np.asarray(w[0]),
        lambda: w[0][3],
        lambda: step(w, g),
        lambda: float(w[0]),
    ]
    for use in uses:
        with pytest.raises(RuntimeError, match=r"was donated to `update` \(.*test_donation\.py:\d+\)"):
            use()
    assert repr(w[1]).startswith("<tensor donated to `update`")
    assert g[0].tolist()[:2] == [0, 1] and new[1].tolist()[:2] == [0, 2 - 0.5 * 2]


def test_what_others_share_stays():
    step = ti.program(lambda w, k: w + k, donate="w")
    numbers = np.arange(8, dtype=np.float32)
    w = xp.asarray(numbers)
    view, other = np.asarray(w), w.detach()
    seen = xp.from_dlpack(numbers)
    made = [step(x, float(k)) for k, x in enumerate((w, seen, xp.arange(8, dtype=ti.f32)[::2]))]
    for _ in range(3):
        made.append(step(made[-1], 1.0))
    assert numbers.tolist() == view.tolist() == other.tolist() == list(range(8))
    assert made[0].tolist() == list(range(8)) and made[1].tolist() == list(range(1, 9))
    assert made[-1].tolist() == [5, 7, 9, 11]


def test_recorded_statements_read_the_old_values():
    step = ti.program(lambda w: w * 2, donate="w")
    w = xp.arange(N, dtype=ti.f32).realize()
    later = w + 1
    new = step(w)
    assert later.tolist()[:3] == [1, 2, 3] and new.tolist()[:3] == [0, 2, 4]


def test_results_that_are_arguments_and_views_of_them():
    step = ti.program(lambda w, x: (w, w[::-1], x + w.sum()), donate=["w"])
    same, turned, x = step(xp.arange(4, dtype=ti.f32).realize(), xp.zeros(4))
    assert same.tolist() == [0, 1, 2, 3] and turned.tolist() == [3, 2, 1, 0] and x.tolist() == [6] * 4


def test_every_statement_reads_what_was_given():
    """Results of the size of an argument that is read later, in a loop, and by neighbours."""

    def work(w, n):
        shifted = xp.roll(w, 1)
        total = xp.programs.fori_loop(0, n, lambda _, u: u + w, xp.zeros_like(w))
        return shifted, total, w[::-1] * 2, xp.cumulative_sum(w)

    numbers = np.arange(1000, dtype=np.float32) % 7
    kept, given = ti.program(work), ti.program(work, donate="w")
    for _ in range(3):
        want, got = kept(xp.asarray(numbers), 5), given(xp.asarray(numbers), 5)
        assert all(np.array_equal(a.numpy(), b.numpy()) for a, b in zip(want, got))


def test_complex_tensors_and_dictionaries():
    step = ti.program(lambda state, dt: {k: v * dt for k, v in state.items()}, donate="state")
    state = {"z": xp.asarray(np.array([1 + 2j, 3j], np.complex64)), "x": xp.ones(2)}
    new = step(state, 2.0)
    assert new["z"].tolist() == [2 + 4j, 6j] and new["x"].tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="was donated"):
        state["z"].numpy()


def test_refused():
    with pytest.raises(TypeError, match="no parameter `v`, which `donate` names"):
        ti.program(update, donate="v")
    w = xp.ones(4)
    both = ti.program(lambda a, b: a + b, donate="a")
    with pytest.raises(ValueError, match="`a` and `b` are one tensor, which is donated: pass a copy"):
        both(w, w)
    assert w.tolist() == [1] * 4
    with pytest.raises(ValueError, match="4 .* 3"):
        both(w, xp.ones(3))
    # Nothing had begun.
    assert w.tolist() == [1] * 4


def test_a_program_that_fails_while_it_runs():
    step = ti.program(lambda w: xp.linalg.cholesky(w), donate="w")
    w = xp.zeros((3, 3)).realize()
    with pytest.raises(ValueError, match="positive"):
        step(w)
    with pytest.raises(RuntimeError, match="was donated"):
        w.numpy()


def test_a_gradient_keeps_the_argument():
    step = ti.program(lambda w, x: (w * x).sum(), donate="w")
    w = xp.arange(3, dtype=ti.f32).requires_grad_()
    step(w, xp.full(3, 4.0)).backward()
    assert w.grad.tolist() == [4, 4, 4] and w.tolist() == [0, 1, 2]
