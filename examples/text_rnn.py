"""A recurrent network that reads a piece of text letter by letter, and tells English from the names in programs.

The text is this repository's documentation, and what its example programs name (Elman, Finding structure in time,
1990). The picture shows pieces that it was not shown before: blue while it thinks of English, red of a program.
"""

import io
import re
import tokenize
from pathlib import Path

import common
import numpy as np

import aerogel as ti
from aerogel import datasets, nn, optim
from aerogel.nn import functional as F

ROOT = Path(__file__).parents[1]
LETTERS = " abcdefghijklmnopqrstuvwxyz"
LENGTH = 24


def simple(text: str) -> str:
    """A text in small letters and spaces."""
    return re.sub("[^a-z]+", " ", text.lower())


def english() -> str:
    """The documentation without its code, its links and its headings."""
    pages = (path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md")))
    return " ".join(simple(re.sub(r"```.*?```|`[^`]*`|\(.*?\)|#.*?\n", " ", page, flags=re.DOTALL)) for page in pages)


def of_programs() -> str:
    """The names in the example programs, in the order in which they are written."""
    names: list[str] = []
    for path in sorted((ROOT / "examples").glob("*.py")):
        tokens = tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline)
        names += [simple(t.string) for t in tokens if t.type == tokenize.NAME]
    return re.sub(" +", " ", " ".join(names))


def pieces(texts: list[str], n: int, rng) -> tuple[np.ndarray, np.ndarray]:
    """Pieces of two texts in equal parts: their letters of shape (n, letters), and of which text each is."""
    label, rows = np.arange(n) % 2, []
    for k in label:
        begin = rng.integers(len(texts[k]) - LENGTH)
        rows.append([LETTERS.index(c) for c in texts[k][begin : begin + LENGTH]])
    return np.array(rows, np.int32), label.astype(np.float32)


class Network(nn.Module):
    """After each letter, the logit of the piece being of a program."""

    def __init__(self, width: int):
        self.letters = nn.Embedding(len(LETTERS), 16)
        self.memory, self.out = nn.RNN(16, width, batch_first=True), nn.Linear(width, 1)

    def forward(self, letters):
        return self.out(self.memory(self.letters(letters))[0])[..., 0]


@ti.program
def train(net, optimizer, letters, label):
    """A step: the loss after the last letter, its gradient and the new parameters, in one program."""

    def loss_of(net):
        return F.binary_cross_entropy_with_logits(net(letters)[:, -1], label)

    loss, gradient = ti.value_and_grad(loss_of)(net)
    optimizer.apply(gradient)
    return loss


def learned(net: Network, data, n_epochs: int) -> list[float]:
    """Trains a network; the losses."""
    optimizer = optim.AdamW(net, lr=4e-3)
    batches, losses = datasets.Batches(data, batch_size=64, seed=2, drop_last=True), []
    schedule = optim.CosineAnnealingLR(optimizer, T_max=n_epochs * len(batches))
    for _ in range(n_epochs):
        for batch in batches:
            losses.append(train(net, optimizer, *batch).item())
            schedule.step()
    return losses


@ti.no_grad()
def chances(net: Network, letters: np.ndarray) -> np.ndarray:
    """The chance of each piece, after each of its letters, to be of a program."""
    return F.sigmoid(net(ti.tensor.asarray(letters))).numpy()


def main(small=False):
    """Runs it: a picture of pieces, and how many that were not shown before are told right."""
    ti.init(arch=ti.cpu)
    ti.tensor.random.seed(1)
    rng, texts = np.random.default_rng(3), (english(), of_programs())
    cuts = [len(text) * 4 // 5 for text in texts]
    data = pieces([text[:cut] for text, cut in zip(texts, cuts)], 2_000 if small else 12_000, rng)
    letters, label = pieces([text[cut:] for text, cut in zip(texts, cuts)], 1_000, rng)
    net = Network(32 if small else 64)
    losses = learned(net, data, 8)
    chance = chances(net, letters)
    # From the middle of a text, two letters say little; 24 say nearly all.
    right = ((chance > 0.5) == (label[:, None] > 0.5)).mean(0)
    rows, columns = (8, 2) if small else (16, 3)
    shown = rng.permutation(1_000)[: rows * columns].reshape(rows, columns)
    lines = ["".join("".join(LETTERS[c] for c in letters[k]) + "  " for k in row) for row in shown]
    grey = np.full(2, 0.5)
    inks = [np.concatenate([part for k in row for part in (chance[k], grey)]) for row in shown]
    colors = [common.palette(ink, "1c4e80 8d8a86 b8321e") for ink in inks]
    numbers = {"loss": float(np.mean(losses[-20:])), "right after 2 letters": right[1], "right at last": right[-1]}
    return common.written(lines, colors, 320 if small else 960), numbers


if __name__ == "__main__":
    common.run(main)
