"""Gradients by modules: of every layer beside PyTorch's, in programs, and where the function changes the module."""

import numpy as np
import pytest

import aerogel as ti
from aerogel import _native, nn, optim
from aerogel.nn import functional as F

t = ti.tensor


@pytest.fixture(autouse=True)
def _start():
    ti.init(arch=ti.cpu, log_level="error")
    yield
    ti.reset()


def flat(tree):
    if isinstance(tree, (tuple, list)):
        return [x for part in tree for x in flat(part)]
    return [] if tree is None else [tree]


try:
    from test_nn_torch import LAYERS, LOSSES, CALLS
except BaseException:  # Without PyTorch that module is skipped.
    LAYERS, LOSSES, CALLS = {}, {}, []


def values(x):
    """The gradient of a tensor as an array, zeros if it has none."""
    return np.zeros(tuple(x.shape)) if x.grad is None else x.grad.numpy()


def compared(name, ours, theirs, inputs, torch):
    """The largest difference of gradients by parameters and inputs, for weights of the results that are drawn."""

    def given(tree, of):
        return tuple(given(x, of) for x in tree) if isinstance(tree, tuple) else of(tree)

    def is_smooth(a):
        return np.asarray(a).dtype.kind == "f" and np.isfinite(a).all()

    for_torch = given(tuple(inputs), lambda a: torch.tensor(a).requires_grad_(bool(is_smooth(a))))
    for_us = given(tuple(inputs), lambda a: t.asarray(a).requires_grad_() if is_smooth(a) else t.asarray(a))
    wanted, got = flat(theirs(*for_torch)), flat(ours(*for_us))
    weights = [np.random.default_rng(3).standard_normal(tuple(w.shape)) for w in wanted]
    sum((r * torch.tensor(w)).sum() for r, w in zip(wanted, weights)).backward()
    sum((r * t.asarray(w)).sum() for r, w in zip(got, weights)).backward()
    pairs = list(zip(ours.parameters(), theirs.parameters())) if hasattr(ours, "parameters") else []
    pairs += [(a, b) for a, b in zip(flat(for_us), flat(for_torch)) if b.requires_grad]
    assert pairs, name
    for a, b in pairs:
        np.testing.assert_allclose(values(a), values(b), rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("name", [name for name in LAYERS if name != "adaptive softmax"] or ["none"])
@pytest.mark.filterwarnings("ignore")
def test_layers(name):
    torch = pytest.importorskip("torch")
    make, inputs = LAYERS[name]
    if name == "activations":
        # PyTorch divides by 6 in single precision in the derivative of `Hardsigmoid`.
        inputs = [np.asarray(inputs[0])]
        kinds = "ReLU6 Sigmoid Tanh SiLU Mish SELU Softplus Hardtanh GELU".split()
        make = lambda m: m.Sequential(*[getattr(m, n)() for n in kinds])
    theirs = make(torch.nn).to(torch.float64)
    for p in theirs.parameters():
        if p.numel() and not p.detach().std() > 0:
            p.data += torch.tensor(np.random.default_rng(1).uniform(-0.3, 0.3, p.shape))
    ours = make(nn).to(ti.f64)
    ours.load_state_dict({n: v.detach() for n, v in theirs.state_dict().items()})
    compared(name, ours, theirs, inputs, torch)


@pytest.mark.parametrize("name, k", CALLS or [("none", 0)])
@pytest.mark.filterwarnings("ignore")
def test_losses(name, k):
    torch = pytest.importorskip("torch")
    args, settings = LOSSES[name][k]
    if name == "cosine_similarity" and k == 1:
        pytest.skip("of vectors of zeros the derivative is by the bound of the length")
    ours = {n: t.asarray(v) if hasattr(v, "shape") else v for n, v in settings.items()}
    theirs = {n: torch.tensor(v) if hasattr(v, "shape") else v for n, v in settings.items()}
    x, *rest = args
    if name == "binary_cross_entropy":
        x = np.clip(x, 0.01, 0.99)
    compared(
        name,
        lambda x: getattr(F, name)(x, *map(t.asarray, rest), **ours),
        lambda x: getattr(torch.nn.functional, name)(x, *map(torch.tensor, rest), **theirs),
        [x],
        torch,
    )


class Net(nn.Module):
    def __init__(self):
        self.a = nn.Linear(4, 16)
        self.n = nn.BatchNorm1d(16)
        self.b = nn.Linear(16, 3)

    def forward(self, x):
        return self.b(F.gelu(self.n(self.a(x))))


def loss_of(net, x, y):
    return F.cross_entropy(net(x), y)


def data():
    rng = np.random.default_rng(0)
    return t.asarray(rng.standard_normal((8, 4)).astype(np.float32)), t.asarray(rng.integers(0, 3, 8))


def test_gradients_are_modules():
    net, (x, y) = Net(), data()
    value, g = ti.value_and_grad(loss_of)(net, x, y)
    assert isinstance(g, Net) and net.n.num_batches_tracked.item() == 1, "what the function changes is changed"
    again = loss_of(net, x, y)
    again.backward()
    assert abs(value.item() - again.item()) < 1e-6
    for (name, a), (_, b) in zip(g.named_parameters(), net.named_parameters()):
        np.testing.assert_allclose(a.numpy(), b.grad.numpy(), rtol=1e-5, atol=1e-7, err_msg=name)
    (pair,) = ti.grad(lambda nets: loss_of(nets[0], x, y))([net])
    np.testing.assert_allclose(pair.a.weight.numpy(), g.a.weight.numpy(), rtol=1e-5, atol=1e-7)


def test_training():
    results = []
    for in_program in (False, True):
        t.random.seed(2)
        net, (x, y) = Net(), data()
        adam = optim.AdamW(net, lr=0.02)
        schedule = optim.CosineAnnealingLR(adam, 40)

        @ti.program
        def step(net, optimizer, x, y):
            value, g = ti.value_and_grad(loss_of)(net, x, y)
            optimizer.apply(g)
            return value

        counts, losses = [], []
        for _ in range(40):
            if in_program:
                losses.append(step(net, adam, x, y).item())
            else:
                value = loss_of(net, x, y)
                adam.zero_grad()
                value.backward()
                adam.step()
                losses.append(value.item())
            schedule.step()
            counts.append(_native.tensor_counts()[3])
        assert losses[-1] < 0.3 * losses[0] and net.n.num_batches_tracked.item() == 40
        assert step.trace_count == (2 if in_program else 0)
        assert counts[-1] <= counts[3] + 1, "a step after the second compiles nothing"
        results.append(losses)
    np.testing.assert_allclose(*results, rtol=1e-3, atol=1e-4)


def test_programs_take_values_of_parameters():
    net, (x, _) = Net(), data()
    out = ti.program(lambda net, x: net(x).sum())(net, x)
    with pytest.raises((ValueError, RuntimeError)):
        out.backward()


def test_frozen_parameters():
    net, (x, y) = Net(), data()
    net.a.requires_grad_(False)
    loss_of(net, x, y).backward()
    assert net.a.weight.grad is None and net.b.weight.grad is not None
    before = net.a.weight.detach().numpy()
    optim.SGD(net, lr=1.0).step()
    assert (net.a.weight.detach().numpy() == before).all()


def test_assigned_values_are_leaves():
    net, (x, y) = Net(), data()
    net.b.weight = net.b.weight * 2
    loss_of(net, x, y).backward()
    assert net.b.weight.is_leaf and net.b.weight.grad is not None
    double = Net().to(ti.f64)
    loss_of(double, x.astype(ti.f64), y).backward()
    assert double.a.weight.grad.dtype is ti.f64
    double.to(ti.f32)
    assert double.a.weight.grad is None and double.a.weight.requires_grad


def test_padding_gets_no_gradient():
    table = nn.Embedding(4, 2, padding_idx=1)
    table(t.asarray([0, 1, 1, 2])).sum().backward()
    assert table.weight.grad.tolist() == [[1, 1], [0, 0], [1, 1], [0, 0]]


def test_regularisers_and_clipping():
    net = nn.Linear(2, 1)
    net.load_state_dict({"weight": [[3.0, -4.0]], "bias": [0.0]})
    (optim.l2(net.weight, 0.5) + optim.l1(net.weight)).backward()
    assert net.weight.grad.tolist() == [[4.0, -5.0]]
    optim.clip_grad_value_(net, 4.5)
    assert net.weight.grad.tolist() == [[4.0, -4.5]]


def test_second_derivative_of_the_logistic_loss_at_zero():
    """That of the sigmoid: there is no kink, though the formula has one that cancels."""
    logits = t.asarray([0.0, 1e-3, -2.0]).astype(ti.f64)
    loss = ti.hessian(lambda x: F.binary_cross_entropy_with_logits(x, t.zeros(3, dtype=ti.f64), reduction="sum"))
    s = 1 / (1 + np.exp(-logits.numpy()))
    np.testing.assert_allclose(loss(logits).numpy(), np.diag(s * (1 - s)), rtol=1e-12, atol=1e-15)
