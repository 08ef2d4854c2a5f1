"""A transformer that fills in letters which are masked, from those on both sides: a small BERT.

Devlin and others, BERT, 2019: an encoder whose task is a text with 15 of 100 letters missing. The text is this
repository's documentation. The picture shows lines that it was not shown before: masked letters that it found are
green, those that it did not find are red, as it guessed them.
"""

import common
import numpy as np
from char_gpt import text_of_pages

import aerogel as ti
from aerogel import datasets, nn, optim
from aerogel.nn import functional as F

IGNORED = -100


class BERT(nn.Module):
    """The logits of the letter at each place; the last number of the vocabulary stands for the mask."""

    def __init__(self, vocabulary: int, block: int, width: int, layers: int):
        self.letters, self.places = nn.Embedding(vocabulary + 1, width), nn.Embedding(block, width)
        settings = {"dropout": 0.0, "activation": "gelu", "batch_first": True, "norm_first": True}
        self.layers = nn.ModuleList(
            [nn.TransformerEncoderLayer(width, 4, 4 * width, **settings) for _ in range(layers)]
        )
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, vocabulary)

    def forward(self, letters):
        x = self.letters(letters) + self.places(ti.tensor.arange(letters.shape[1]))
        for layer in self.layers:
            x = layer(x)
        return self.out(self.norm(x))


def masked(letters: np.ndarray, vocabulary: int, rng) -> tuple[np.ndarray, np.ndarray]:
    """A text with masked letters, and those letters, `IGNORED` elsewhere.

    Of the letters to find, 8 of 10 are masked, one is replaced by another, and one stays as it is.
    """
    is_wanted, way = rng.random(letters.shape) < 0.15, rng.random(letters.shape)
    others = rng.integers(0, vocabulary, letters.shape)
    seen = np.where(way < 0.8, vocabulary, np.where(way < 0.9, others, letters))
    return np.where(is_wanted, seen, letters).astype(np.int32), np.where(is_wanted, letters, IGNORED).astype(np.int32)


@ti.program
def train(net, optimizer, seen, wanted):
    """A step: the loss at the letters to find, its gradient and the new parameters, in one program."""

    def loss_of(net):
        logits = net(seen)
        return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), wanted.reshape(-1), ignore_index=IGNORED)

    loss, gradient = ti.value_and_grad(loss_of)(net)
    optimizer.apply(gradient)
    return loss


def picture(text, seen: np.ndarray, wanted: np.ndarray, guess: np.ndarray, width: int) -> np.ndarray:
    """Lines of text; letters that were to be found are in colour."""
    lines, colors = [], []
    for row in range(len(seen)):
        is_wanted = wanted[row] != IGNORED
        line = text.decode(np.where(is_wanted, guess[row], seen[row]))
        lines.append(line.replace("\n", " "))
        is_right = (guess[row] == wanted[row])[:, None]
        color = np.where(is_right, [0.05, 0.55, 0.25], [0.85, 0.12, 0.1])
        colors.append(np.where(is_wanted[:, None], color, [0.55, 0.53, 0.5]))
    return common.written(lines, colors, width)


def main(small=False):
    """Runs it: a picture of text, and how many masked letters are found in text that was not shown before."""
    ti.init(arch=ti.cpu)
    ti.tensor.random.seed(1)
    rng, text = np.random.default_rng(2), datasets.Characters(text_of_pages())
    tokens, vocabulary = text.tokens.numpy(), len(text.vocabulary)
    block, batch, n_steps, lr = (16, 64, 700, 1e-2) if small else (48, 24, 3000, 4e-3)
    net = BERT(vocabulary, block, *((32, 1) if small else (64, 2)))
    optimizer = optim.AdamW(net, lr=lr)
    schedule = optim.OneCycleLR(optimizer, max_lr=lr, total_steps=n_steps, pct_start=0.1)
    others, losses = tokens[-256 * block :].reshape(256, block), []
    for _ in range(n_steps):
        starts = rng.integers(0, len(tokens) - others.size - block, batch)[:, None] + np.arange(block)
        losses.append(train(net, optimizer, *map(ti.tensor.asarray, masked(tokens[starts], vocabulary, rng))).item())
        schedule.step()
    seen, wanted = masked(others, vocabulary, rng)
    with ti.no_grad():
        guess = net(ti.tensor.asarray(seen)).numpy().argmax(-1)
    found = (guess == wanted)[wanted != IGNORED].mean()
    most = (np.bincount(tokens).argmax() == wanted)[wanted != IGNORED].mean()
    n_lines = 10 if small else 28
    image = picture(text, seen[:n_lines], wanted[:n_lines], guess[:n_lines], 320 if small else 960)
    return image, {"loss": float(np.mean(losses[-20:])), "found": found, "by the most frequent letter": most}


if __name__ == "__main__":
    common.run(main)
