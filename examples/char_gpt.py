"""A transformer that reads this repository's documentation character by character, and writes more of it.

Four layers of four heads, 128 wide, over 64 characters (Vaswani and others, 2017; in the arrangement of GPT-2, Radford
and others, 2019). The picture shows where each head looks, and the loss over time.
"""

from pathlib import Path

import common
import numpy as np

import aerogel as ti
from aerogel import datasets, nn, optim
from aerogel.nn import functional as F

PAGES = Path(__file__).parents[1] / "docs"


class Attention(nn.Module):
    """Each character looks at those before it, by several heads."""

    def __init__(self, width: int, heads: int):
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def split(self, x):
        """Queries, keys and values of shape (batch, heads, time, width of a head)."""
        batch, time, width = x.shape
        parts = self.qkv(x).reshape(batch, time, 3, self.heads, width // self.heads)
        return [ti.tensor.permute_dims(parts[:, :, k], (0, 2, 1, 3)) for k in range(3)]

    def forward(self, x):
        query, key, value = self.split(x)
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.out(ti.tensor.permute_dims(seen, (0, 2, 1, 3)).reshape(x.shape))


class Block(nn.Module):
    """Attention and a network of each character's own, both added to what is there."""

    def __init__(self, width: int, heads: int):
        self.norm1, self.attention = nn.LayerNorm(width), Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.narrow(F.gelu(self.wide(self.norm2(x)), approximate=False))


class GPT(nn.Module):
    """The logits of the next character, at each character of a text."""

    def __init__(self, vocabulary: int, layers: int = 4, heads: int = 4, width: int = 128, block: int = 64):
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(block, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        for name, p in self.named_parameters():
            if name.endswith("weight") and "norm" not in name:
                nn.init.normal_(p, 0.0, 0.02)

    def embedded(self, ids):
        return self.tokens(ids) + self.positions(ti.tensor.arange(ids.shape[1]))

    def forward(self, ids):
        x = self.embedded(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def loss_of(model, x, y):
    """The mean cross entropy of the next characters, in nats."""
    logits = model(x)
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1))


@ti.program
def train(model, optimizer, x, y):
    """A step: the loss, its gradient and the new parameters, in one program."""
    loss, gradient = ti.value_and_grad(loss_of)(model, x, y)
    optimizer.apply(gradient)
    return loss


def text_of_pages() -> str:
    """The pages of the documentation, in ASCII."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted(PAGES.glob("*.md")))
    return "".join(c for c in text if c == "\n" or " " <= c <= "~")


def continued(model, text, begin: str, n: int, rng) -> str:
    """A text and the characters that the model draws after it, one by one."""
    block = model.positions.weight.shape[0]
    predict = ti.program(lambda model, ids: F.softmax(model(ids)[0], axis=-1))
    for _ in range(n):
        # The model sees as many characters as it was trained with; what stands behind the last one is not looked at.
        seen = begin[-block:]
        ids = text.encode(seen.ljust(block)).reshape(1, block)
        chances = predict(model, ids).numpy()[len(seen) - 1].astype(float)
        begin += text.vocabulary[rng.choice(len(chances), p=chances / chances.sum())]
    return begin


@ti.no_grad()
def attention_maps(model, ids) -> np.ndarray:
    """Where the heads look: a square for each, layers to the right and heads upwards."""
    x, columns = model.embedded(ids), []
    for block in model.blocks:
        query, key, _ = block.attention.split(block.norm1(x))
        scores = (query @ key.mT) * query.shape[-1] ** -0.5
        mask = nn.functional.causal_mask(ids.shape[1])
        maps = F.softmax(ti.tensor.where(mask, scores, -np.inf), axis=-1).numpy()[0]
        columns.append(np.concatenate([np.pad(m[::-1].T, 2) for m in maps], axis=1))
        x = block(x)
    return np.concatenate(columns)


def main(small=False):
    """Runs it: a picture of attention and of the loss, and losses in nats for each character."""
    ti.init(arch=ti.cpu)
    ti.tensor.random.seed(0)
    rng = np.random.default_rng(0)
    text = datasets.Characters(text_of_pages())
    block, batch, n_steps = (16, 8, 60) if small else (64, 12, 600)
    model = GPT(len(text.vocabulary), 2, 2, 32, block) if small else GPT(len(text.vocabulary), block=block)
    optimizer = optim.AdamW(model, lr=1e-2 if small else 2e-3)
    schedule = optim.OneCycleLR(optimizer, max_lr=1e-2 if small else 2e-3, total_steps=n_steps)
    tokens = text.tokens.numpy()
    test = tokens[-16 * block - 1 :]
    x_test, y_test = (ti.tensor.asarray(test[k : k + 16 * block].reshape(16, block)) for k in (0, 1))
    test_loss = ti.no_grad()(loss_of)
    before, losses = test_loss(model, x_test, y_test).item(), []
    for _ in range(n_steps):
        starts = rng.integers(0, len(tokens) - len(test) - block, batch)[:, None] + np.arange(block)
        losses.append(train(model, optimizer, *(ti.tensor.asarray(tokens[starts + k]) for k in (0, 1))).item())
        schedule.step()
    after = test_loss(model, x_test, y_test).item()
    if not small:
        print(continued(model, text, "A tensor", 300, rng))
    maps = common.palette(attention_maps(model, x_test[:1]) ** 0.5, "0b1026 3a5a9b e8b54a fff6dc")
    maps = np.kron(maps, np.ones((2, 2, 1)))
    image = np.concatenate([maps, common.curve(losses, len(maps), maps.shape[1])])
    return image, {"loss before": before, "loss after": after, "parameters": sum(p.size for p in model.parameters())}


if __name__ == "__main__":
    common.run(main)
