"""A network with long short-term memory that reads the documentation letter by letter, and predicts the next one.

Hochreiter and Schmidhuber, Long short-term memory, 1997. The picture shows lines that it was not shown before, in the
colours of one cell of its memory: the cell that best remembers being inside of code in backticks.
"""

from pathlib import Path

import common
import numpy as np

import aerogel as ti
from aerogel import datasets, nn, optim
from aerogel.nn import functional as F

PAGES = Path(__file__).parents[1] / "docs"


def text_of_pages() -> str:
    """The paragraphs and lists of the documentation, in ASCII."""
    lines = [line for path in sorted(PAGES.glob("*.md")) for line in path.read_text(encoding="utf-8").splitlines()]
    prose = [line for line in lines if line[:1].isupper() or line[:2] == "* "]
    # A line with an odd number of backticks would leave the network in doubt in all that follow.
    prose = [line for line in prose if line.count("`") % 2 == 0]
    return "".join(c for c in "\n".join(prose) if c == "\n" or " " <= c <= "~")


class Network(nn.Module):
    """The logits of the next letter, at each letter of a text."""

    def __init__(self, vocabulary: int, width: int):
        self.letters = nn.Embedding(vocabulary, 32)
        self.memory, self.out = nn.LSTM(32, width, batch_first=True), nn.Linear(width, vocabulary)

    def forward(self, letters):
        return self.out(self.memory(self.letters(letters))[0])


def loss_of(net: Network, x, y):
    """The mean cross entropy of the next letters, in nats."""
    logits = net(x)
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1))


@ti.program
def train(net, optimizer, x, y):
    """A step: the loss, its gradient and the new parameters, in one program."""
    loss, gradient = ti.value_and_grad(loss_of)(net, x, y)
    optimizer.apply(gradient)
    return loss


def memories(net: Network, letters: np.ndarray) -> np.ndarray:
    """The cells of the memory after each letter of a text, of shape (letters, cells)."""
    shape = (1, 1, net.memory.hidden_size)
    step = ti.program(lambda net, x, h, c: net.memory(net.letters(x), (h.reshape(shape), c.reshape(shape)))[1])
    state = (ti.tensor.zeros(shape),) * 2
    rows = []
    for letter in letters:
        state = step(net, ti.tensor.asarray([[letter]]), *state)
        rows.append(state[1].numpy()[0, 0])
    return np.tanh(np.array(rows))


def inside_of_code(text: str) -> np.ndarray:
    """1 at letters between backticks, else 0."""
    return np.cumsum([c == "`" for c in text]) % 2


def main(small=False):
    """Runs it: a picture of text in the colours of a cell, losses in nats for each letter, and what the cell knows."""
    ti.init(arch=ti.cpu)
    ti.tensor.random.seed(1)
    rng, text = np.random.default_rng(2), datasets.Characters(text_of_pages())
    tokens, block, batch = text.tokens.numpy(), 32 if small else 64, 16
    n_steps, n_read = (100, 400) if small else (1500, 3000)
    net = Network(len(text.vocabulary), 32 if small else 96)
    optimizer = optim.AdamW(net, lr=1e-2 if small else 5e-3)
    schedule = optim.CosineAnnealingLR(optimizer, T_max=n_steps)
    test, losses = tokens[-64 * block - 1 :], []
    for _ in range(n_steps):
        starts = rng.integers(0, len(tokens) - len(test) - block, batch)[:, None] + np.arange(block)
        losses.append(train(net, optimizer, *(ti.tensor.asarray(tokens[starts + k]) for k in (0, 1))).item())
        schedule.step()
    x, y = (ti.tensor.asarray(test[k : k + len(test) - 1].reshape(-1, block)) for k in (0, 1))
    after = ti.no_grad()(loss_of)(net, x, y).item()
    often = np.bincount(tokens) / len(tokens)

    read = test[:n_read]
    cells, inside = memories(net, read), inside_of_code(text.decode(read))
    known = [abs(np.corrcoef(cell, inside)[0, 1]) for cell in cells.T]
    best = int(np.argmax(known))
    sign = np.sign(np.corrcoef(cells[:, best], inside)[0, 1])
    columns, n_lines = (40, 10) if small else (80, 24)
    shown = text.decode(read[: columns * n_lines]).replace("\n", " ")
    inks = common.palette(0.5 + 0.5 * sign * cells[: columns * n_lines, best], "1c4e80 8d8a86 b8321e")
    parts = range(0, columns * n_lines, columns)
    lines, colors = [shown[k : k + columns] for k in parts], [inks[k : k + columns] for k in parts]
    image = common.written(lines, colors, 320 if small else 960)
    numbers = {"entropy of single letters": -(often * np.log(often)).sum(), "loss": float(np.mean(losses[-20:]))}
    return image, numbers | {"loss on other text": after, "correlation of the cell": known[best]}


if __name__ == "__main__":
    common.run(main)
