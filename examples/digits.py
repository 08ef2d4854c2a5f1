"""A convolutional network learns to read handwritten digits; the picture shows digits that it reads wrong.

By default the digits are scikit-learn's, 8 by 8 pixels. ``--folder`` names a folder with the four files of MNIST, whose
digits have 28 by 28.

pip install scikit-learn
"""

import common
import numpy as np

import aerogel as ti
from aerogel import datasets, nn, optim
from aerogel.nn import functional as F


class Network(nn.Module):
    """Two convolutions, each of which halves the picture, and two layers that see all of it."""

    def __init__(self, channels: int = 16):
        self.first, self.second = nn.Conv2d(1, channels, 3, padding=1), nn.Conv2d(channels, 2 * channels, 3, padding=1)
        self.norm, self.drop = nn.BatchNorm2d(channels), nn.Dropout(0.3)
        self.hidden, self.out = nn.Linear(-1, 8 * channels), nn.Linear(8 * channels, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.first(x))), 2)
        x = F.max_pool2d(F.relu(self.second(x)), 2).reshape(x.shape[0], -1)
        return self.out(self.drop(F.relu(self.hidden(x))))


@ti.program
def train(net, optimizer, x, y):
    """A step: the loss, its gradient and the new parameters, in one program."""
    loss, gradient = ti.value_and_grad(lambda net: F.cross_entropy(net(x), y))(net)
    optimizer.apply(gradient)
    return loss


@ti.program
def read(net, x):
    """The digit that each picture shows."""
    return ti.tensor.argmax(net(x), axis=-1)


def pictures(folder: str) -> list[np.ndarray]:
    """Pictures to learn from of shape (n, 1, height, width) from 0 to 1, their digits, and others with theirs."""
    if folder:
        parts = [part.numpy() for split in ("train", "test") for part in datasets.mnist(folder, split)]
        x, y, others, digits = parts
        x, others = (images[:, None].astype(np.float32) / 255 for images in (x, others))
    else:
        from sklearn.datasets import load_digits

        data = load_digits()
        order = np.random.default_rng(0).permutation(len(data.images))
        every, digit = data.images[order, None].astype(np.float32) / 16, data.target[order]
        n = len(every) // 4
        x, y, others, digits = every[n:], digit[n:], every[:n], digit[:n]
    return [x, y.astype(np.int32), others, digits.astype(np.int32)]


def picture(x, wrong, shown) -> np.ndarray:
    """Digits in rows and columns; those that were read wrong stand first, in red."""
    tiles = []
    for k in shown:
        image = np.kron(np.pad(x[k, 0], 1).T[:, ::-1], np.ones((4, 4)))[..., None]
        tiles.append(image * ([1.0, 0.35, 0.25] if wrong[k] else [0.95, 0.93, 0.86]) + (1 - image) * [0.07, 0.09, 0.15])
    rows = [np.concatenate(tiles[k : k + 12]) for k in range(0, len(tiles), 12)]
    return np.concatenate(rows[::-1], axis=1)


def main(small=False, folder=""):
    """Runs it: a picture of digits, the loss, and how many of others are read right."""
    ti.init(arch=ti.cpu)
    ti.tensor.random.seed(1)
    x, y, others, digits = pictures(folder)
    net = Network(8 if small else 16)
    net(ti.tensor.asarray(x[:2]))  # The size of -1 follows from the pictures.
    optimizer, losses = optim.AdamW(net, lr=2e-3), []
    n_epochs = 8 if small else 3 if folder else 40
    batches = datasets.Batches((x, y), batch_size=64, seed=2, drop_last=True, description="pictures")
    schedule = optim.CosineAnnealingLR(optimizer, T_max=n_epochs * len(batches))
    for _ in range(n_epochs):
        for images, labels in batches:
            losses.append(train(net, optimizer, images, labels).item())
            schedule.step()
    net.eval()
    said = np.concatenate([read(net, ti.tensor.asarray(part)).numpy() for part in np.array_split(others, 10)])
    wrong = said != digits
    shown = np.argsort(~wrong, kind="stable")[:96]
    return picture(others, wrong, shown), {"loss": float(np.mean(losses[-20:])), "read right": 1 - wrong.mean()}


if __name__ == "__main__":
    common.run(main)
