"""The character model of the gallery beside the same model in PyTorch: logits, gradients and training."""

import importlib
from pathlib import Path

import numpy as np
import pytest

import aerogel as ti
from aerogel import optim

torch = pytest.importorskip("torch")
tnn, TF = torch.nn, torch.nn.functional
EXAMPLES = Path(__file__).parents[2] / "examples"
pytestmark = pytest.mark.skipif(not EXAMPLES.exists(), reason="the examples are not here")
LAYERS, HEADS, WIDTH, BLOCK, VOCABULARY = 4, 4, 128, 64, 65


@pytest.fixture
def gpt(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    ti.init(arch=ti.cpu, log_level="error")
    ti.tensor.random.seed(3)
    yield importlib.import_module("char_gpt")
    ti.reset()


class Block(tnn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = tnn.LayerNorm(WIDTH), tnn.LayerNorm(WIDTH)
        self.attention = tnn.ModuleDict({"qkv": tnn.Linear(WIDTH, 3 * WIDTH), "out": tnn.Linear(WIDTH, WIDTH)})
        self.wide, self.narrow = tnn.Linear(WIDTH, 4 * WIDTH), tnn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = (
            part.unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for part in self.attention["qkv"](self.norm1(x)).chunk(3, -1)
        )
        seen = TF.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attention["out"](seen.transpose(1, 2).flatten(-2))
        return x + self.narrow(TF.gelu(self.wide(self.norm2(x))))


class Peer(tnn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = tnn.Embedding(VOCABULARY, WIDTH), tnn.Embedding(BLOCK, WIDTH)
        self.blocks = tnn.ModuleList([Block() for _ in range(LAYERS)])
        self.norm, self.head = tnn.LayerNorm(WIDTH), tnn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def both(gpt):
    """The two models with the same weights."""
    model, peer = gpt.GPT(VOCABULARY), Peer()
    peer.load_state_dict({name: torch.tensor(p.detach().numpy()) for name, p in model.named_parameters()})
    return model, peer


def text(seed, batch):
    """Characters that follow each other by a rule and by chance, so that there is something to learn."""
    rng, rows = np.random.default_rng(seed), []
    for _ in range(batch):
        row = [int(rng.integers(VOCABULARY))]
        while len(row) <= BLOCK:
            row.append((row[-1] * 7 + 1) % VOCABULARY if rng.random() < 0.9 else int(rng.integers(VOCABULARY)))
        rows.append(row)
    tokens = np.array(rows, np.int32)
    return tokens[:, :-1], tokens[:, 1:]


def peer_loss(peer, x, y):
    logits = peer(torch.tensor(x, dtype=torch.long))
    return TF.cross_entropy(logits.flatten(0, 1), torch.tensor(y, dtype=torch.long).flatten())


def test_logits_and_gradients(gpt):
    model, peer = both(gpt)
    x, y = text(0, 4)
    assert sum(p.size for p in model.parameters()) == sum(p.numel() for p in peer.parameters()) > 800_000
    with ti.no_grad():
        logits = model(ti.tensor.asarray(x)).numpy()
    np.testing.assert_allclose(logits, peer(torch.tensor(x, dtype=torch.long)).detach().numpy(), rtol=1e-4, atol=1e-4)

    def compiled(model, x, y):
        return ti.value_and_grad(gpt.loss_of)(model, x, y)

    loss = peer_loss(peer, x, y)
    loss.backward()
    for function in (compiled, ti.program(compiled)):
        value, gradient = function(model, *map(ti.tensor.asarray, (x, y)))
        assert abs(value.item() - loss.item()) < 1e-5
        expected_of = {name: p.grad.numpy() for name, p in peer.named_parameters()}
        for name, g in gradient.named_parameters():
            expected = expected_of.pop(name)
            assert g.shape == expected.shape
            error = np.abs(g.detach().numpy() - expected).max() / np.abs(expected).max()
            assert error < 1e-4, (name, error)
        assert not expected_of


def test_training_goes_the_same_way(gpt):
    """Sixty steps of AdamW: losses stay together, and fall."""
    model, peer = both(gpt)
    ours, theirs = optim.AdamW(model, lr=1e-3), torch.optim.AdamW(peer.parameters(), lr=1e-3)
    losses = []
    for k in range(60):
        x, y = text(k + 1, 2)
        theirs.zero_grad()
        loss = peer_loss(peer, x, y)
        loss.backward()
        theirs.step()
        losses.append((gpt.train(model, ours, *map(ti.tensor.asarray, (x, y))).item(), loss.item()))
    a, b = np.array(losses).T
    np.testing.assert_allclose(a[:20], b[:20], rtol=1e-3)
    np.testing.assert_allclose(a, b, rtol=2e-2)
    assert b[-1] < 0.7 * b[0]
