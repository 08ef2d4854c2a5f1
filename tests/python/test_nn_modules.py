"""Modules: attributes, names, state, programs, and errors that name the module and the parameter."""

import copy
import math
import pickle

import numpy as np
import pytest

import aerogel as ti
from aerogel import nn
from aerogel.nn import functional as F
from aerogel.tensor import frost, programs

t = ti.tensor


@pytest.fixture(autouse=True)
def _start():
    ti.init(arch=ti.cpu, log_level="error")
    # Values are looked at.
    with ti.no_grad():
        yield
    ti.reset()


class Net(nn.Module):
    def __init__(self):
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.drop = nn.Dropout(0.5)
        self.out = nn.Linear(-1, 3)
        self.scale = 2.0

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)
        return self.out(self.drop(x.reshape(x.shape[0], -1))) * self.scale


def test_names_are_in_the_order_of_assignment():
    net = Net()
    assert [n for n, _ in net.named_parameters()] == [
        "conv.weight", "conv.bias", "norm.weight", "norm.bias", "out.weight", "out.bias",
    ]  # fmt: skip
    assert [n for n, _ in net.named_children()] == ["conv", "norm", "drop", "out"]
    assert [n for n, _ in net.named_buffers()] == ["norm.running_mean", "norm.running_var", "norm.num_batches_tracked"]
    assert [n for n, _ in net.named_modules()] == ["", "conv", "norm", "drop", "out"]
    assert net.out.weight.shape == (3, -1) and "without values" in repr(net.out.weight)
    net(t.ones((2, 1, 4, 4)))
    assert net.out.weight.shape == (3, 16) and net.out.in_features == 16
    assert repr(net).splitlines()[1] == "  (conv): Conv2d(1, 4, kernel_size=(3, 3), padding=(1, 1))"


def test_attributes():
    m = nn.Module()
    m.w = nn.Parameter([1.0])
    m.b = t.ones(2)
    m.register_buffer("c", t.ones(3))
    m.inner = nn.Identity()
    assert list(m.state_dict()) == ["w", "c"] and [n for n, _ in m.named_buffers()] == ["b", "c"]
    w = m.w
    m.w = t.asarray([3.0])
    assert m.w is w and w.tolist() == [3.0], "other values of the same parameter"
    with pytest.raises(ValueError, match=r"`w` has the shape \(1,\), and is assigned a tensor of \(2,\)"):
        m.w = t.ones(2)
    m.w = nn.Parameter([5.0])
    assert m.w is not w
    m.w = 7
    assert m.w == 7 and not list(m.parameters())
    del m.inner, m.b
    with pytest.raises(AttributeError, match="`Module` has no attribute 'inner'"):
        m.inner
    for plain, name in (
        ([nn.Linear(1, 1)], "ModuleList"), ({"a": nn.Linear(1, 1)}, "ModuleDict"), ((nn.Parameter([1.0]),), "ParameterList"),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=rf"`layers` is a plain .* would not be found: use `nn.{name}`"):
            m.layers = plain
    with pytest.raises(NotImplementedError, match="has no `forward`"):
        m(1)


def test_shared_modules_and_parameters_count_once():
    m = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    m[1].weight = m[0].weight
    assert [n for n, _ in m.named_parameters()] == ["0.weight", "0.bias", "1.bias"]
    assert list(m.state_dict()) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    again = copy.deepcopy(m)
    assert again[1].weight is again[0].weight and again[0].weight is not m[0].weight
    x = t.ones((2, 3))
    program = ti.program(lambda m, x: m(x))
    np.testing.assert_allclose(program(m, x).numpy(), m(x).numpy(), rtol=1e-6)
    assert len(m._tree_parts()[1]) == 3


def test_modes_and_gradients():
    net = Net()
    assert net.training and not net.eval().drop.training and net.train().drop.training
    net.requires_grad_(False)
    assert not any(p.requires_grad for p in net.parameters())
    net.requires_grad_()
    assert all(p.requires_grad for p in net.parameters()) and net.out.weight.grad is None
    net.conv.bias.grad = t.ones(4)
    assert net.norm.bias.requires_grad
    net.zero_grad(set_to_none=False)
    assert net.conv.bias.grad.tolist() == [0.0] * 4
    net.zero_grad()
    assert net.conv.bias.grad is None
    seen = []
    net.apply(lambda m: seen.append(type(m).__name__))
    assert seen == ["Conv2d", "BatchNorm2d", "Dropout", "Linear", "Net"]


def test_conversion():
    net = Net().to(ti.f64)
    net(t.ones((2, 1, 4, 4), ti.f64))
    kinds = {n: str(v.dtype) for n, v in net.state_dict().items()}
    assert kinds.pop("norm.num_batches_tracked") == "i64" and set(kinds.values()) == {"f64"}
    with pytest.raises(TypeError, match="parameters are floats, not `i32`"):
        net.to(ti.i32)


def test_state_is_a_copy_and_loads():
    a, b = nn.Linear(3, 2), nn.Linear(3, 2)
    state = a.state_dict()
    nn.init.zeros_(a.weight)
    assert state["weight"].numpy().any(), "later changes do not change what was taken"
    weight = b.weight
    assert b.load_state_dict(state) == ([], [])
    assert b.weight is weight and (b.weight.numpy() == state["weight"].numpy()).all()
    with pytest.raises(KeyError, match="missing: bias; not of this module: beta"):
        b.load_state_dict({"weight": state["weight"], "beta": state["bias"]})
    assert b.load_state_dict({"weight": state["weight"], "x": 1}, strict=False) == (["bias"], ["x"])
    before = b.bias.tolist()
    with pytest.raises(ValueError, match=r"`weight` has the shape \(2, 3\), the loaded tensor has \(3, 2\)"):
        b.load_state_dict({"weight": np.ones((3, 2)), "bias": np.ones(2)})
    assert b.bias.tolist() == before, "nothing is changed if there is an error"
    c = nn.Linear(-1, 2)
    c.load_state_dict(state)
    assert c(t.ones((1, 3))).shape == (1, 2)


def test_copies():
    net = Net()
    x = t.random.randn(2, 1, 4, 4)
    copy.deepcopy(net)(x)
    net(x)
    net.eval()
    wanted = net(x).numpy()
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert other.out.weight is not net.out.weight and isinstance(other.out.weight, nn.Parameter)
        assert (other(x).numpy() == wanted).all() and not other.training


def test_containers():
    m = nn.ModuleList([nn.Linear(1, 1)])
    m.append(nn.ReLU()).extend([nn.GELU(), nn.Identity()])
    m.insert(1, nn.Tanh())
    assert [type(x).__name__ for x in m] == ["Linear", "Tanh", "ReLU", "GELU", "Identity"] and len(m) == 5
    assert isinstance(m[1:3], nn.ModuleList) and isinstance(m[-1], nn.Identity)
    del m[0]
    m[0] = nn.SiLU()
    assert [n for n, _ in m.named_children()] == ["0", "1", "2", "3"] and isinstance(m[0], nn.SiLU)
    with pytest.raises(IndexError, match="has 4 elements, there is no 4"):
        m[4]
    with pytest.raises(TypeError, match="has elements of `Module`"):
        m.append(3)
    named = nn.ModuleDict({"a": nn.ReLU()})
    named["b"] = nn.Linear(1, 2)
    assert "b" in named and named.keys() == ["a", "b"] and len(list(named.parameters())) == 2
    with pytest.raises(ValueError, match="contain a dot"):
        named["a.b"] = nn.ReLU()
    rows = nn.ParameterArray([[1.0], [2.0]])
    rows[2] = nn.Parameter([3.0])
    assert [p.tolist() for p in rows] == [[1.0], [2.0], [3.0]] and len(list(rows.parameters())) == 3
    one = nn.Sequential({"first": nn.Linear(2, 2), "last": nn.ReLU()})
    assert one[0] is one.first and one[0:1](t.ones((1, 2))).shape == (1, 2)


# Programs.


def test_programs_take_modules():
    net, x = Net(), t.random.randn(5, 1, 8, 8)
    program = ti.program(lambda m, x: m(x))
    with pytest.raises(ValueError, match=r"`Net`: `out.weight` of shape \(3, -1\) has no values yet"):
        program(net, x)
    net(x)
    net.eval()
    np.testing.assert_allclose(program(net, x).numpy(), net(x).numpy(), rtol=1e-5, atol=1e-6)
    program(net, x[:3])
    assert program.trace_count == 1, "batches of any size"
    net.load_state_dict({n: v * 0.5 for n, v in net.state_dict().items()})
    np.testing.assert_allclose(program(net, x).numpy(), net(x).numpy(), rtol=1e-5, atol=1e-6)
    assert program.trace_count == 1, "other values"
    net.scale = 3.0
    np.testing.assert_allclose(program(net, x).numpy(), net(x).numpy(), rtol=1e-5, atol=1e-6)
    assert program.trace_count == 2, "what is no tensor is part of the program"


def test_programs_change_modules():
    net, x = Net(), t.random.randn(6, 1, 8, 8)
    net(x)
    other = copy.deepcopy(net)
    program = ti.program(lambda m, x: m(x))
    first, second = program(net, x).numpy(), program(net, x).numpy()
    assert (first != second).any(), "each call drops other elements"
    assert net.norm.num_batches_tracked.item() == 3
    other(x), other(x)
    np.testing.assert_allclose(net.norm.running_var.numpy(), other.norm.running_var.numpy(), rtol=1e-5)

    @ti.program
    def halved(m, x):
        m.out.weight = m.out.weight * 0.5
        m.conv.bias[0] = 7.0
        m.last = x.sum()
        return m, m(x).sum()

    weight, was = net.out.weight, net.out.weight.numpy()
    made, _ = halved(net, x)
    assert net.out.weight is weight and isinstance(made.out.weight, nn.Parameter)
    np.testing.assert_array_equal(net.out.weight.numpy(), was * 0.5)
    np.testing.assert_array_equal(made.out.weight.numpy(), was * 0.5)
    assert net.conv.bias.numpy()[0] == 7 and abs(net.last.item() - x.numpy().sum()) < 1e-3
    assert [n for n, _ in made.named_parameters()] == [n for n, _ in net.named_parameters()]
    assert made.norm.num_batches_tracked.item() == 4


def test_convolutions_in_programs():
    for make, shape in (
        (lambda: nn.Conv2d(2, 4, 3, 2, 1), (1, 2, 8, 9)), (lambda: nn.Conv2d(2, 4, 1), (1, 2, 8, 9)),
        (lambda: nn.Conv2d(4, 4, 3, groups=4), (1, 4, 8, 9)), (lambda: nn.Conv2d(4, 8, 3, groups=4), (1, 4, 8, 9)),
        (lambda: nn.ConvTranspose2d(4, 6, 3, 2, 1, 1, groups=2), (2, 4, 5, 4)), (lambda: nn.MaxPool2d(2), (1, 2, 8, 9)),
        (lambda: nn.AvgPool2d(3, 2, 1, count_include_pad=False), (1, 2, 8, 9)), (lambda: nn.GlobalAvgPool2d(), (1, 2, 8, 9)),
    ):  # fmt: skip
        m, x = make(), t.random.randn(*shape)
        program = ti.program(lambda m, x: m(x))
        for x in (x, t.random.randn(3, shape[1], 11, 6)):
            np.testing.assert_allclose(program(m, x).numpy(), m(x).numpy(), rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="`conv2d`: the size of the kernel has to be known"):
        ti.program(lambda x, w: F.conv2d(x, w))(t.ones((1, 1, 5, 5)), t.ones((1, 1, 3, 3)))


def test_transposed_convolutions_add_what_windows_give():
    x, w = t.random.randn(4, 5, dtype=ti.f64), t.random.randn(4, 2, 3, dtype=ti.f64)
    for stride, padding, more, dilation in ((1, 0, 0, 1), (2, 1, 1, 1), (3, 0, 2, 2), (2, 3, 0, 3), (1, 0, 1, 2)):
        full = np.zeros((2, 4 * stride + 2 * dilation + 1 + more))
        for h in range(5):
            for k in range(3):
                full[:, stride * h + dilation * k] += x.numpy()[:, h] @ w.numpy()[:, :, k]
        got = F.conv_transpose1d(x, w, None, stride, padding, more, 1, dilation)
        np.testing.assert_allclose(got.numpy(), full[:, padding : full.shape[1] - padding], rtol=1e-12, atol=1e-12)


def test_frozen_parameters_come_back_frozen():
    m = nn.Linear(2, 2)
    m.bias.requires_grad = False
    made = ti.program(lambda m: m)(m)
    assert made.weight.requires_grad and not made.bias.requires_grad


def test_recurrent_networks_in_programs():
    for kind in (nn.RNN, nn.GRU, nn.LSTM):
        m, x = kind(3, 4, 2, bidirectional=True), t.random.randn(5, 2, 3)
        program = ti.program(lambda m, x: m(x)[0])
        np.testing.assert_allclose(program(m, x).numpy(), m(x)[0].numpy(), rtol=1e-5, atol=1e-6)
        program(m, t.random.randn(9, 3, 3))
        assert program.trace_count == 1, "sequences of any length"


# Numbers that PyTorch 2.15 gave for these parameters and inputs.


def ramp(*shape):
    n = math.prod(shape)
    return (np.arange(n) * 7 % 11 / 11 - 0.4).reshape(shape)


def known(module, *inputs):
    module = module.to(ti.f64)
    module.load_state_dict({n: ramp(*v.shape) for n, v in module.named_parameters()}, strict=False)
    out = module(*(t.asarray(x) for x in inputs))
    return (out[0] if isinstance(out, tuple) else out).numpy()


KNOWN = {
    "conv": (lambda: nn.Conv2d(2, 2, 2, stride=2, padding=1), (ramp(1, 2, 3, 3),)),
    "transposed": (lambda: nn.ConvTranspose2d(2, 1, 2, stride=2), (ramp(1, 2, 2, 2),)),
    "lstm": (lambda: nn.LSTM(2, 2), (ramp(3, 1, 2),)),
    "gru": (lambda: nn.GRU(2, 2), (ramp(3, 1, 2),)),
    "attention": (lambda: nn.MultiheadAttention(4, 2), (ramp(3, 1, 4),) * 3),
    "encoder": (lambda: nn.TransformerEncoderLayer(4, 2, 3, 0.0), (ramp(2, 1, 4),)),
    "layer norm": (lambda: nn.LayerNorm(4), (ramp(2, 4),)),
    "group norm": (lambda: nn.GroupNorm(2, 4), (ramp(1, 4, 2),)),
    "batch norm": (lambda: nn.BatchNorm1d(2), (ramp(3, 2),)),
}
#: The sum of all results, and that of their squares.
SUMS = {
    "conv": [-1.1309090909090913, 1.6974026364319377],
    "transposed": [-6.192396694214877, 2.7326126903900017],
    "lstm": [-0.38553203497379185, 0.21221795447573244],
    "gru": [0.1197542695902783, 0.26867981081857084],
    "attention": [0.769739988214278, 0.7817982377910945],
    "encoder": [3.0446201809408926, 3.5761737074904207],
    "layer norm": [1.1301496637783164, 2.0343681470515196],
    "group norm": [1.7012570081227767, 2.383828169206242],
    "batch norm": [-0.490909090909091, 1.2950912086672186],
}


@pytest.mark.parametrize("name", KNOWN)
def test_numbers_of_pytorch(name):
    make, inputs = KNOWN[name]
    out = known(make(), *inputs)
    np.testing.assert_allclose([out.sum(), (out * out).sum()], SUMS[name], rtol=1e-11)


def test_losses_by_hand():
    x = t.asarray([[1.0, 2.0, 3.0], [1.0, 1.0, 1.0]], ti.f64)
    first = math.log(sum(math.exp(k - 3) for k in (1, 2, 3)))
    close = lambda got, wanted: abs(got.item() - wanted) < 1e-12
    assert close(F.cross_entropy(x, [2, 0]), (first + math.log(3)) / 2)
    assert close(F.cross_entropy(x, [2, -100]), first)
    assert close(F.cross_entropy(x, [2, 0], weight=[1.0, 1.0, 3.0]), (3 * first + math.log(3)) / 4)
    assert close(F.cross_entropy(x, [2, 0], reduction="sum", label_smoothing=0.3), first + 0.3 + math.log(3))
    a, b = t.asarray([0.5, -2.0], ti.f64), t.asarray([0.0, 1.0], ti.f64)
    assert close(F.mse_loss(a, b), 4.625) and close(F.l1_loss(a, b, "sum"), 3.5)
    assert close(F.huber_loss(a, b), (0.125 + 2.5) / 2) and close(F.smooth_l1_loss(a, b, beta=2.0), (0.0625 + 2.0) / 2)
    assert close(F.hinge_loss(a, [1.0, -1.0]), 0.25)
    assert close(
        F.binary_cross_entropy_with_logits(a, b, reduction="sum"), math.log1p(math.exp(0.5)) + math.log1p(math.exp(2))
    )
    assert close(F.binary_cross_entropy(t.asarray([0.25, 1.0]).astype(ti.f64), [1.0, 1.0]), math.log(4) / 2)
    assert close(F.kl_div(t.asarray([-1.0, -2.0], ti.f64), [0.5, 0.0], "sum"), 0.5 * (math.log(0.5) + 1))
    assert close(F.cosine_similarity(t.asarray([[3.0, 4.0]], ti.f64), [[4.0, 3.0]])[0], 0.96)


# Others.


def test_accum():
    x = t.random.randn(8, 10)
    layer = nn.Accum("b|i->o => b|o", o=64)
    out = layer(x)
    assert layer.weight.shape == (64, 10) and "'b|i; i->o => b|o', o=64" in repr(layer)
    np.testing.assert_allclose(out.numpy(), x.numpy() @ layer.weight.numpy().T, rtol=1e-4, atol=1e-5)
    assert abs(layer.weight.numpy()).max() <= 1 / math.sqrt(10)
    conv = nn.Accum("b, | 2*y+k, c; c, k -> o => b, | y, o", k=3, o=4, bias=True)
    image = t.random.randn(2, 9, 3)
    out = conv(image)
    assert conv.weight.shape == (4, 3, 3), "outputs come before inputs"
    wanted = F.conv1d(image.permute(0, 2, 1), conv.weight, stride=2)
    np.testing.assert_allclose(out.permute(0, 2, 1).numpy(), wanted.numpy(), rtol=1e-4, atol=1e-5)
    assert conv.bias.shape == (4, 4)
    with pytest.raises(
        ValueError, match=r"`Accum`: no input determines the size of `o` in .* write `Accum\(..., o=...\)`"
    ):
        nn.Accum("b|i->o => b|o")(x)
    with pytest.raises(ValueError, match="`Accum`, `weight` of shape .*accum"):
        layer(t.ones((8, 11)))
    with pytest.raises(ValueError, match="takes 1 inputs, not 2"):
        layer(x, x)
    with pytest.raises(ValueError, match="has no weight"):
        nn.Accum("b|i => b|i")


def test_weight_norm_keeps_the_function():
    layer, x = nn.Linear(4, 3), t.random.randn(2, 4)
    wanted = layer(x).numpy()
    own = nn.WeightNorm(layer)
    np.testing.assert_allclose(own(x).numpy(), wanted, rtol=1e-5)
    np.testing.assert_allclose(ti.program(lambda m, x: m(x))(own, x).numpy(), wanted, rtol=1e-5)
    assert [n for n, _ in own.named_parameters()] == ["weight_g", "weight_v", "module.bias"]
    with pytest.raises(AttributeError, match="has no parameter `kernel`"):
        nn.WeightNorm(nn.Linear(1, 1), "kernel")


def test_dropout():
    t.random.seed(5)
    x = t.ones((1000,))
    d = nn.Dropout(0.25)
    out = d(x).numpy()
    assert set(np.unique(out)) == {0.0, np.float32(1 / 0.75)} and 180 < (out == 0).sum() < 320
    assert (d(x).numpy() != out).any() and (d.eval()(x).numpy() == 1).all()
    t.random.seed(5)
    assert (nn.Dropout(0.25)(x).numpy() == out).all(), "a seed gives the same again"
    assert not nn.Dropout(1.0)(x).numpy().any() and (nn.Dropout(0.0)(x).numpy() == 1).all()
    channels = nn.Dropout2d(0.5)(t.ones((8, 16, 3, 3))).numpy()
    assert (channels.reshape(128, 9).std(1) == 0).all() and 30 < (channels[:, :, 0, 0] == 0).sum() < 100
    with pytest.raises(ValueError, match="the probability is from 0 to 1, not 2"):
        nn.Dropout(2)
    program = ti.program(lambda m, x: m(x))
    d.train()
    a, b = program(d, x).numpy(), program(d, x).numpy()
    assert (a != b).any() and program.trace_count == 1


def test_positions():
    p = F.sinusoidal_positions(6, 8, dtype=ti.f64).numpy()
    at, k = np.arange(6)[:, None], np.arange(4)
    np.testing.assert_allclose(p[:, 0::2], np.sin(at / 10000 ** (k / 4)), atol=1e-12)
    np.testing.assert_allclose(p[:, 1::2], np.cos(at / 10000 ** (k / 4)), atol=1e-12)
    x = t.random.randn(2, 6, 8)
    np.testing.assert_allclose(nn.SinusoidalPositions(8)(x).numpy(), x.numpy() + p, rtol=1e-5, atol=1e-6)
    learned = nn.LearnedPositions(10, 8)
    np.testing.assert_allclose(learned(x).numpy(), x.numpy() + learned.weight.numpy()[:6], rtol=1e-6)
    with pytest.raises(ValueError, match="a sequence has 11 elements, there are 10 positions"):
        learned(t.ones((11, 8)))
    for interleaved in (False, True):
        turned = F.rotary(x.astype(ti.f64), is_interleaved=interleaved).numpy()
        np.testing.assert_allclose((turned**2).sum(-1), (x.numpy().astype(float) ** 2).sum(-1), rtol=1e-6)
        q, w = (t.asarray(np.random.default_rng(s).standard_normal((1, 8))) for s in (1, 2))
        dots = [
            (F.rotary(q, [a], is_interleaved=interleaved) * F.rotary(w, [b], is_interleaved=interleaved)).sum().item()
            for a, b in ((3, 1), (7, 5))
        ]
        assert abs(dots[0] - dots[1]) < 1e-12, "only distances count"


def test_first_values():
    t.random.seed(1)
    init = nn.init
    w = init.orthogonal((3, 5), gain=2.0, dtype=ti.f64).numpy()
    np.testing.assert_allclose(w @ w.T, 4 * np.eye(3), atol=1e-6)
    w = init.orthogonal((6, 2, 2)).numpy().reshape(6, 4)
    np.testing.assert_allclose(w.T @ w, np.eye(4), atol=1e-5)
    cut = init.trunc_normal((20000,), 1.0, 2.0, -1.0, 4.0, dtype=ti.f64).numpy()
    assert cut.min() >= -1 and cut.max() <= 4 and abs(cut.mean() - 1.275) < 0.05 and abs(cut.std() - 1.28) < 0.05
    for function, std in (
        (init.xavier_uniform, math.sqrt(2 / 300)), (init.xavier_normal, math.sqrt(2 / 300)),
        (init.kaiming_uniform, math.sqrt(2 / 200)), (init.kaiming_normal, math.sqrt(2 / 200)),
    ):  # fmt: skip
        assert abs(function((100, 200)).numpy().std() / std - 1) < 0.03
    assert abs(init.kaiming_normal((100, 20, 3, 3), mode="fan_out").numpy().std() / math.sqrt(2 / 900) - 1) < 0.05
    p = nn.Parameter(shape=(2, 2), init=init.ones)
    assert init.normal_(p, std=0.1) is p and abs(p.numpy()).max() < 1
    lazy = nn.Parameter(shape=(-1, 2), init=init.zeros)
    init.constant_(lazy, 3.0)
    assert lazy.infer(2, 2).tolist() == [[3.0, 3.0], [3.0, 3.0]] and type(lazy) is nn.Parameter
    key = t.random.Generator(4).key()
    assert (init.uniform((5,), key=key).numpy() == init.uniform((5,), key=key).numpy()).all()


WRONG = [
    (lambda: nn.Linear(3, 2)(t.ones((4, 5))), ValueError, r"`Linear`: axis 1 of the input has 5 .* `weight` of shape \(2, 3\)"),
    (lambda: nn.Linear(3, 2)([[1, 2, 3]]), TypeError, "`Linear` takes floats, not `i32`"),
    (lambda: nn.Sequential(nn.Linear(2, 2), nn.Linear(3, 2))(t.ones((1, 2))), ValueError, r"`Linear` \(`1`\): axis 1"),
    (lambda: nn.Embedding(3, 2)([0.5]), TypeError, "`Embedding` takes integers, not `f32`"),
    (lambda: nn.Embedding(3, 2)([3]).numpy(), IndexError, "3"),
    (lambda: nn.Conv2d(3, 2, 3)(t.ones((1, 4, 5, 5))), ValueError, "`Conv2d`: axis 1 of the input has 4 .* `weight`"),
    (lambda: nn.Conv2d(3, 2, 3)(t.ones((1, 3, 2, 5))), ValueError, "the kernel spans 3 elements, axis 2 has 2"),
    (lambda: nn.Conv2d(3, 2, 3)(t.ones((3, 5))), ValueError, r"`Conv2d` takes 3 or 4 axes \(batch, channels and space\)"),
    (lambda: nn.Conv2d(3, 2, 3, groups=2), ValueError, "3 `in_channels` are not 2 groups"),
    (lambda: nn.Conv2d(3, 2, 3, stride=0), ValueError, "`stride` is at least 1, not 0"),
    (lambda: nn.Conv2d(3, 2, (1, 2, 3)), ValueError, "`kernel_size` has 3 numbers for 2 axes"),
    (lambda: nn.Conv2d(3, 2, 3, 2, padding="same")(t.ones((1, 3, 5, 5))), ValueError, "padding='same' the stride is 1"),
    (lambda: nn.MaxPool2d(2, padding=2)(t.ones((1, 1, 4, 4))), ValueError, "at most half of the kernel"),
    (lambda: nn.BatchNorm1d(3)(t.ones((2, 4))), ValueError, "`BatchNorm1d`: axis 1 .* 4 elements, and `num_features`"),
    (lambda: nn.BatchNorm1d(3)(t.ones((1, 3))), ValueError, "more than one element for each channel"),
    (lambda: nn.LayerNorm(3)(t.ones((2, 4))), ValueError, r"`LayerNorm`: axis 1 .* `normalized_shape` of shape \(3,\)"),
    (lambda: nn.GroupNorm(2, 3), ValueError, "3 channels are not 2 groups"),
    (lambda: nn.LSTM(3, 2)(t.ones((4, 2, 5))), ValueError, "`LSTM`: axis 2 of the input has 5 .*`weight_ih_l0`"),
    (lambda: nn.GRU(3, 2)(t.ones((4, 2, 3)), t.ones((2, 2, 2))), ValueError, r"the state has the shape \(1, batch, 2\)"),
    (lambda: nn.MultiheadAttention(5, 2), ValueError, "5 features are not 2 heads"),
    (lambda: nn.MultiheadAttention(4, 2)(t.ones((3, 1, 5))), ValueError, "`MultiheadAttention`: axis 2 .* `weight of q`"),
    (lambda: nn.TransformerEncoderLayer(4, 2, activation="tanh"), ValueError, "'relu', 'gelu' or a function"),
    (lambda: nn.AdaptiveSoftmax(4, 10, [5, 3]), ValueError, "cutoffs must increase"),
    (lambda: nn.AdaptiveSoftmax(4, 10, [3])(t.ones((2, 4)), [1, 10]).output.numpy(), IndexError, "10"),
    (lambda: F.cross_entropy(t.ones((2, 3)), [1, 3]).numpy(), IndexError, "3"),
    (lambda: F.cross_entropy(t.ones((2, 3)), [1]), ValueError, r"indices of classes then have \(2,\)"),
    (lambda: F.cross_entropy(t.ones((2, 3)), [1, 1], weight=[1.0]), ValueError, "`weight` has one number for each class"),
    (lambda: F.mse_loss([1.0, 2.0], [[1.0, 2.0]]), ValueError, "they must be the same"),
    (lambda: F.mse_loss([1.0], [1.0], "median"), ValueError, "'mean', 'sum' or 'none', not 'median'"),
    (lambda: nn.MSELoss(size=3), TypeError, "`MSELoss` takes reduction"),
    (lambda: nn.Parameter([1, 2]), TypeError, "`Parameter` takes floats, not `i32`"),
    (lambda: nn.Parameter(shape=(2,)), TypeError, "a function `init`"),
    (lambda: nn.Parameter(shape=(-1, 2), init=nn.init.zeros).numpy(), ValueError, r"of shape \(-1, 2\) has no values yet"),
    (lambda: nn.Parameter(shape=(-1, 2), init=nn.init.zeros).infer(3, 4), ValueError, r"the input needs \(3, 4\)"),
    (lambda: nn.init.kaiming_normal((3,)), ValueError, "at least two axes"),
    (lambda: nn.init.calculate_gain("sine"), ValueError, "'sine'"),
]  # fmt: skip


@pytest.mark.parametrize("k", range(len(WRONG)))
def test_wrong(k):
    call, kind, words = WRONG[k]
    with pytest.raises(kind, match=words):
        call()


def test_layers_of_halves():
    x = t.random.randn(4, 6, 5, 5)
    for make in (
        lambda: nn.Conv2d(6, 4, 3), lambda: nn.BatchNorm2d(6), lambda: nn.GroupNorm(2, 6), lambda: nn.LayerNorm(5),
        lambda: nn.RMSNorm(5, 1e-5), lambda: nn.Linear(5, 3), lambda: nn.GELU(), lambda: nn.AvgPool2d(2),
    ):  # fmt: skip
        m = make()
        wanted = m(x).numpy()
        for kind, tolerance in ((ti.f16, 4e-3), (ti.bf16, 4e-2)):
            got = m.to(kind)(x.astype(kind))
            assert got.dtype is kind
            np.testing.assert_allclose(got.astype(ti.f32).numpy(), wanted, rtol=tolerance, atol=2 * tolerance)
            m.to(ti.f32)


def test_nothing_is_loaded_before_it_is_used():
    import subprocess
    import sys

    code = "import aerogel, sys; print([m for m in sys.modules if m.startswith(('aerogel.nn', 'aerogel.optim'))])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_random_numbers_with_a_state():
    """The draws of a program, in its loops too, are those of the module outside; the state is saved with the others."""

    class Noisy(nn.Module):
        def __init__(self):
            self.random = nn.Random(seed=3)

        def forward(self, x):
            return x + self.random.normal(0.0, 2.0, x.shape)

    @ti.program
    def draw(net, x):
        total = programs.const(net(x))
        with programs.loop(3):
            total.val += net.random.uniform(2.0, 3.0, (4,))
        return total

    net, plain, x = Noisy(), Noisy(), ti.tensor.zeros(4)
    for _ in range(2):
        right = plain(x)
        for _ in range(3):
            right = right + plain.random.uniform(2.0, 3.0, (4,))
        assert np.allclose(draw(net, x).numpy(), right.numpy(), rtol=1e-6)
    assert draw.trace_count == 1
    with pytest.raises(ValueError, match="pass the module that it belongs to as an argument"):
        ti.program(lambda x: x + plain.random.uniform(0.0, 1.0, (4,)))(x)
    resumed = Noisy()
    resumed.load_state_dict(net.state_dict())
    assert np.array_equal(resumed(x).numpy(), net(x).numpy())
    drawn = nn.Random(1).uniform(-2.0, 5.0, (10_000,)).numpy()
    assert -2 <= drawn.min() < -1.9 and 4.9 < drawn.max() <= 5 and abs(drawn.mean() - 1.5) < 0.1
    assert sorted(nn.Random(1).permutation(9).tolist()) == list(range(9))
    assert set(nn.Random(1).integers(3, 6, (50,)).tolist()) == {3, 4, 5}
    assert len({nn.Random(seed).bits(1).item() for seed in (0, 1, -1, 2**40, 2**63)}) == 5
    with pytest.raises(TypeError, match="the seed of `Random` is an integer, not 1.5"):
        nn.Random(1.5)
    with pytest.raises(ValueError, match="`type` is 'threefry', not 'pcg'"):
        frost.random.rng_module("pcg")
    assert isinstance(frost.random.rng_module(seed=4), nn.Random)
