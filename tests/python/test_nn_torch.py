"""Layers and losses beside PyTorch's, with the same parameters and inputs."""

import numpy as np
import pytest

import aerogel as ti
from aerogel import nn
from aerogel.nn import functional as F

torch = pytest.importorskip("torch")
tnn, TF = torch.nn, torch.nn.functional


@pytest.fixture(autouse=True)
def _values_are_looked_at():
    with ti.no_grad():
        yield


def x(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape)


def ids(n, *shape):
    return np.random.default_rng(n).integers(0, n, shape)


LAYERS = {
    "linear": (lambda m: m.Linear(5, 3), [x(4, 5)]),
    "linear without bias": (lambda m: m.Linear(5, 3, bias=False), [x(2, 4, 5)]),
    "linear of a vector": (lambda m: m.Linear(5, 3), [x(5)]),
    "bilinear": (lambda m: m.Bilinear(3, 4, 2), [x(2, 5, 3), x(2, 5, 4)]),
    "embedding": (lambda m: m.Embedding(7, 3, padding_idx=2), [ids(7, 4, 5)]),
    "conv1d": (lambda m: m.Conv1d(3, 4, 3, stride=2, padding=1, dilation=2), [x(2, 3, 11)]),
    "conv2d": (lambda m: m.Conv2d(3, 4, 3), [x(2, 3, 8, 9)]),
    "conv2d strides": (lambda m: m.Conv2d(3, 4, (3, 2), (2, 3), (1, 2), (2, 1)), [x(2, 3, 9, 8)]),
    "conv2d groups": (lambda m: m.Conv2d(6, 4, 3, padding="same", groups=2, bias=False), [x(2, 6, 7, 6)]),
    "conv2d even same": (lambda m: m.Conv2d(3, 4, 4, padding="same"), [x(2, 3, 7, 6)]),
    "conv2d depthwise": (lambda m: m.Conv2d(4, 8, 3, 2, 1, groups=4), [x(2, 4, 7, 6)]),
    "conv2d one image": (lambda m: m.Conv2d(3, 4, 3), [x(3, 7, 6)]),
    "conv3d": (lambda m: m.Conv3d(2, 3, 2, padding=1), [x(1, 2, 4, 3, 5)]),
    "transposed": (lambda m: m.ConvTranspose2d(3, 4, 3), [x(2, 3, 5, 4)]),
    "transposed strides": (lambda m: m.ConvTranspose2d(4, 6, 3, 2, 1, 1, groups=2), [x(2, 4, 5, 4)]),
    "transposed padding": (lambda m: m.ConvTranspose2d(3, 2, 2, (3, 2), 2, dilation=(1, 2)), [x(2, 3, 5, 6)]),
    "transposed 1d": (lambda m: m.ConvTranspose1d(3, 2, 4, 2, 1), [x(2, 3, 6)]),
    "max pool": (lambda m: m.MaxPool2d(2), [x(2, 3, 8, 7)]),
    "max pool padded": (lambda m: m.MaxPool2d(3, 2, 1, ceil_mode=True), [x(2, 3, 8, 7)]),
    "max pool dilated": (lambda m: m.MaxPool1d(3, 1, dilation=2), [x(2, 3, 9)]),
    "avg pool": (lambda m: m.AvgPool2d((2, 3)), [x(2, 3, 8, 7)]),
    "avg pool padded": (lambda m: m.AvgPool2d(3, 2, 1, ceil_mode=True), [x(2, 3, 8, 7)]),
    "avg pool counted": (lambda m: m.AvgPool2d(3, 2, 1, count_include_pad=False), [x(2, 3, 8, 7)]),
    "avg pool 1d": (lambda m: m.AvgPool1d(3, 2, 1, ceil_mode=True, count_include_pad=False), [x(2, 3, 8)]),
    "adaptive avg": (lambda m: m.AdaptiveAvgPool2d((3, 4)), [x(2, 3, 8, 7)]),
    "adaptive avg one": (lambda m: m.AdaptiveAvgPool2d(1), [x(2, 3, 8, 7)]),
    "adaptive avg keep": (lambda m: m.AdaptiveAvgPool2d((None, 2)), [x(2, 3, 8, 7)]),
    "adaptive max": (lambda m: m.AdaptiveMaxPool2d((3, 4)), [x(2, 3, 8, 7)]),
    "adaptive max 1d": (lambda m: m.AdaptiveMaxPool1d(3), [x(2, 3, 8)]),
    "batch norm 1d": (lambda m: m.BatchNorm1d(3), [x(4, 3)]),
    "batch norm 2d": (lambda m: m.BatchNorm2d(3, momentum=None), [x(4, 3, 5, 2)]),
    "batch norm plain": (lambda m: m.BatchNorm1d(3, affine=False, track_running_stats=False), [x(4, 3, 5)]),
    "layer norm": (lambda m: m.LayerNorm(5), [x(4, 3, 5)]),
    "layer norm 2 axes": (lambda m: m.LayerNorm((3, 5), bias=False), [x(4, 3, 5)]),
    "rms norm": (lambda m: m.RMSNorm(5), [x(4, 3, 5)]),
    "group norm": (lambda m: m.GroupNorm(2, 6), [x(4, 6, 3, 2)]),
    "instance norm": (lambda m: m.InstanceNorm2d(3, affine=True), [x(4, 3, 5, 2)]),
    "flatten": (lambda m: m.Flatten(), [x(4, 3, 5, 2)]),
    "unflatten": (lambda m: m.Unflatten(1, (3, 2)), [x(4, 6, 5)]),
    "prelu": (lambda m: m.PReLU(3), [x(4, 3, 5)]),
    "rnn": (lambda m: m.RNN(3, 4, 2, nonlinearity="relu"), [x(5, 2, 3)]),
    "rnn state": (lambda m: m.RNN(3, 4), [x(5, 2, 3), x(1, 2, 4)]),
    "gru": (lambda m: m.GRU(3, 4, 2, batch_first=True, bidirectional=True), [x(2, 5, 3)]),
    "gru without biases": (lambda m: m.GRU(3, 4, bias=False), [x(5, 3)]),
    "lstm": (lambda m: m.LSTM(3, 4, 2, bidirectional=True), [x(5, 2, 3)]),
    "lstm state": (lambda m: m.LSTM(3, 4), [x(5, 2, 3), (x(1, 2, 4), x(1, 2, 4) * 0.5)]),
    "attention": (lambda m: m.MultiheadAttention(6, 2), [x(4, 3, 6), x(5, 3, 6), x(5, 3, 6)]),
    "attention widths": (
        lambda m: m.MultiheadAttention(6, 3, kdim=4, vdim=5, batch_first=True, bias=False),
        [x(3, 4, 6), x(3, 5, 4), x(3, 5, 5), np.arange(15).reshape(3, 5) % 4 == 1],
    ),
    "encoder layer": (lambda m: m.TransformerEncoderLayer(6, 2, 8, 0.0, "gelu", norm_first=True), [x(4, 3, 6)]),
    "encoder": (
        lambda m: m.TransformerEncoder(m.TransformerEncoderLayer(6, 2, 8, 0.0, batch_first=True), 2, m.LayerNorm(6)),
        [x(3, 4, 6), np.triu(np.ones((4, 4), bool), 1)],
    ),
    "decoder": (
        lambda m: m.TransformerDecoder(m.TransformerDecoderLayer(6, 2, 8, 0.0), 2),
        [x(4, 3, 6), x(5, 3, 6), np.triu(np.full((4, 4), -np.inf), 1)],
    ),
    "adaptive softmax": (
        lambda m: m.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 11], div_value=2.0),
        [x(6, 8), np.array([0, 3, 4, 10, 11, 19])],
    ),
    "activations": (
        lambda m: m.Sequential(
            *[getattr(m, n)() for n in "ReLU6 Sigmoid Tanh SiLU Mish SELU Softplus Hardtanh Hardsigmoid GELU".split()]
        ),
        [x(4, 3) * 3],
    ),
    "more activations": (
        lambda m: m.Sequential(
            m.LogSigmoid(), m.LeakyReLU(0.2), m.ELU(), m.CELU(2.0), m.Softsign(), m.Hardswish(), m.GELU("tanh")
        ),
        [x(4, 3) * 3],
    ),
}


def arrays(tree):
    """The arrays of a tree of results."""
    if isinstance(tree, (tuple, list)):
        return [a for part in tree for a in arrays(part)]
    return [] if tree is None else [np.asarray(tree.detach() if hasattr(tree, "detach") else tree)]


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_layers(cpu, name, kind):
    make, inputs = LAYERS[name]
    dtype = getattr(torch, {"f32": "float32", "f64": "float64"}[kind])
    theirs = make(tnn).to(dtype)
    for p in theirs.parameters():  # Many begin as zeros or ones.
        if p.numel() and not p.detach().std() > 0:
            p.data += torch.tensor(np.random.default_rng(1).uniform(-0.3, 0.3, p.shape), dtype=dtype)
    ours = make(nn).to(kind)
    assert [n for n, _ in ours.named_parameters()] == [n for n, _ in theirs.named_parameters()]
    ours.load_state_dict({n: v.detach() for n, v in theirs.state_dict().items()})

    def given(tree, of):
        return tuple(given(t, of) for t in tree) if isinstance(tree, tuple) else of(tree)

    def for_torch(a):
        t = torch.tensor(a)
        return t.to(dtype) if t.is_floating_point() else t

    def for_us(a):
        t = ti.tensor.asarray(a)
        return t.astype(kind) if t.dtype.is_float else t

    tolerance = 2e-5 if kind == "f32" else 1e-11
    for _ in range(2):
        for got, wanted in zip(
            arrays(ours(*given(tuple(inputs), for_us))), arrays(theirs(*given(tuple(inputs), for_torch)))
        ):
            assert got.shape == wanted.shape and got.dtype == wanted.dtype
            np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)
    # Buffers, too.
    for n, v in theirs.state_dict().items():
        np.testing.assert_allclose(ours.state_dict()[n].numpy(), v.numpy(), rtol=tolerance, atol=tolerance)
    ours.eval(), theirs.eval()
    for got, wanted in zip(
        arrays(ours(*given(tuple(inputs), for_us))), arrays(theirs(*given(tuple(inputs), for_torch)))
    ):
        np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)


target = ids(5, 4)
with_ignored = np.where(target == 1, -100, target)
images = ids(5, 2, 3, 4)
weights = np.array([0.5, 1.0, 2.0, 0.1, 3.0])
probabilities = np.exp(x(4, 5)) / np.exp(x(4, 5)).sum(1, keepdims=True)
zero_one = (x(4, 5) > 0) * 1.0

LOSSES = {
    "cross_entropy": [
        ((x(4, 5), target), {}),
        ((x(4, 5), with_ignored), {}),
        ((x(4, 5), with_ignored, weights), {}),
        ((x(4, 5), with_ignored, weights), {"label_smoothing": 0.2}),
        ((x(4, 5), target), {"label_smoothing": 0.1, "reduction": "none", "ignore_index": 2}),
        ((x(4, 5), target, weights), {"reduction": "sum"}),
        ((x(2, 5, 3, 4), images, weights), {"label_smoothing": 0.1}),
        ((x(5), np.array(3)), {}),
        ((x(4, 5), probabilities, weights), {"label_smoothing": 0.1}),
        ((x(4, 5), probabilities), {"reduction": "none"}),
    ],
    "nll_loss": [((x(4, 5), target), {}), ((x(4, 5), with_ignored, weights), {"reduction": "none"})],
    "mse_loss": [((x(4, 5), x(2, 10).reshape(4, 5)), {"reduction": r}) for r in ("mean", "sum", "none")],
    "l1_loss": [((x(4, 5), x(2, 10).reshape(4, 5)), {})],
    "huber_loss": [((x(4, 5) * 3, x(2, 10).reshape(4, 5)), {"delta": 0.7})],
    "smooth_l1_loss": [((x(4, 5) * 3, x(2, 10).reshape(4, 5)), {"beta": b}) for b in (0.0, 0.5, 2.0)],
    "binary_cross_entropy": [((probabilities, zero_one), {}), ((zero_one, zero_one[::-1].copy(), x(4, 5) ** 2), {})],
    "binary_cross_entropy_with_logits": [
        ((x(4, 5) * 50, zero_one), {}),
        ((x(4, 5), zero_one), {"pos_weight": weights, "weight": x(4, 5) ** 2, "reduction": "none"}),
    ],
    "kl_div": [((np.log(probabilities), zero_one), {"reduction": r}) for r in ("mean", "batchmean", "sum", "none")]
    + [((np.log(probabilities), x(4, 5)), {"log_target": True, "reduction": "sum"})],
    "cosine_similarity": [((x(4, 5), x(4, 5)[::-1].copy()), {}), ((x(4, 5), x(4, 5) * 0), {})],
}
CALLS = [(name, k) for name, calls in LOSSES.items() for k in range(len(calls))]


@pytest.mark.parametrize("name, k", CALLS)
@pytest.mark.filterwarnings("ignore")
def test_losses(cpu, name, k):
    args, settings = LOSSES[name][k]

    def of(convert):
        return [convert(a) for a in args], {n: convert(v) if hasattr(v, "shape") else v for n, v in settings.items()}

    given, named = of(torch.tensor)
    wanted = getattr(TF, name)(*given, **named)
    given, named = of(ti.tensor.asarray)
    got = getattr(F, name)(*given, **named)
    assert got.shape == tuple(wanted.shape)
    np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("masked", ["", "causal", "mask", "floats"])
def test_scaled_dot_product_attention(cpu, masked):
    q, k, v = x(2, 3, 4, 6), x(2, 3, 5, 6), x(2, 3, 5, 7)
    mask = {"mask": np.arange(20).reshape(4, 5) % 3 != 0, "floats": x(4, 5)}.get(masked)
    causal = masked == "causal"
    wanted = TF.scaled_dot_product_attention(
        *map(torch.tensor, (q, k, v)), attn_mask=None if mask is None else torch.tensor(mask), is_causal=causal
    )
    got = F.scaled_dot_product_attention(*map(ti.tensor.asarray, (q, k, v)), attn_mask=mask, is_causal=causal)
    np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-12, atol=1e-12)


def test_adaptive_softmax_of_all_classes(cpu):
    theirs = tnn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 11], 2.0).double()
    ours = nn.AdaptiveSoftmax(8, 20, [4, 11], 2.0).to(ti.f64)
    ours.load_state_dict({n: v.detach() for n, v in theirs.state_dict().items()})
    given = x(6, 8)
    wanted = theirs.log_prob(torch.tensor(given)).detach().numpy()
    np.testing.assert_allclose(ours.log_prob(ti.tensor.asarray(given)).numpy(), wanted, rtol=1e-12)
    assert ours.predict(ti.tensor.asarray(given)).tolist() == wanted.argmax(1).tolist()


@pytest.mark.filterwarnings("ignore")
def test_weight_norm(cpu):
    theirs = tnn.utils.weight_norm(tnn.Conv2d(3, 4, 3).double())
    ours = nn.WeightNorm(nn.Conv2d(3, 4, 3).to(ti.f64))
    ours.load_state_dict({
        "weight_g": theirs.weight_g.detach() * 2, "weight_v": theirs.weight_v.detach(), "module.bias": theirs.bias.detach(),
    })  # fmt: skip
    theirs.weight_g.data *= 2
    given = x(2, 3, 6, 6)
    wanted = theirs(torch.tensor(given)).detach().numpy()
    np.testing.assert_allclose(ours(ti.tensor.asarray(given)).numpy(), wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["Linear", "Conv2d", "Embedding", "LSTM", "MultiheadAttention"])
def test_first_values_are_distributed_as_theirs(cpu, name):
    args = {"Linear": (60, 80), "Conv2d": (8, 16, 5), "Embedding": (50, 60), "LSTM": (30, 40)}.get(name, (48, 4))
    ti.tensor.random.seed(3)
    ours, theirs = getattr(nn, name)(*args), getattr(tnn, name)(*args)
    for (n, a), (_, b) in zip(ours.named_parameters(), theirs.named_parameters()):
        a, b = a.numpy(), b.detach().numpy()
        if b.size > 30:
            assert abs(a.std() - b.std()) <= 0.2 * b.std() and abs(a.mean()) <= 0.3 * b.std() + 1e-12, n
            assert a.min() != a.max() or b.min() == b.max(), n
