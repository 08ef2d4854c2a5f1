"""A small network learns to separate two moons of points: the boundary between them while it trains.

The moons are scikit-learn's (make_moons): two half circles that reach into each other, with noise.
"""

import common
import numpy as np

import aerogel as ti
from aerogel import datasets, nn, optim
from aerogel.nn import functional as F


def moons(n: int, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Points of shape (n, 2), and to which moon each belongs."""
    rng = np.random.default_rng(seed)
    label = np.arange(n) % 2
    angle = np.pi * rng.random(n)
    x = np.where(label, 1 - np.cos(angle), np.cos(angle))
    y = np.where(label, 0.5 - np.sin(angle), np.sin(angle))
    points = np.stack([x, y], axis=-1) + noise * rng.standard_normal((n, 2))
    return points.astype(np.float32), label.astype(np.float32)


def network(width: int) -> nn.Module:
    """Two hidden layers; the result is the logit of the second moon."""
    return nn.Sequential(
        nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1), nn.Flatten(0)
    )


@ti.program
def train(net, optimizer, x, y):
    """A step: the loss, its gradient and the new parameters, in one program."""
    loss, gradient = ti.value_and_grad(lambda net: F.binary_cross_entropy_with_logits(net(x), y))(net)
    optimizer.apply(gradient)
    return loss


def picture(net, points, label, size: int) -> np.ndarray:
    """What the network says everywhere, and the points."""
    width, height = size, size * 3 // 5
    at = np.stack(np.meshgrid(np.linspace(-1.6, 2.6, width), np.linspace(-1.1, 1.42, height), indexing="ij"), -1)
    with ti.no_grad():
        chance = F.sigmoid(net(ti.tensor.asarray(at.reshape(-1, 2).astype(np.float32)))).numpy().reshape(width, height)
    image = common.palette(chance, "1c4e80 7fb2dd f5efe6 f0a35e a23b1e")
    edge = np.exp(-(((chance - 0.5) / (0.004 + 2.5 * np.hypot(*np.gradient(chance)))) ** 2))[..., None]
    image = image * (1 - 0.8 * edge)
    canvas = ti.GUI("moons", (width, height), show_gui=False)
    canvas.set_image(image.astype(np.float32))
    places = (points - [-1.6, -1.1]) / [4.2, 2.52]
    for k, color in ((0, 0x123A63), (1, 0x6E1F0C)):
        canvas.circles(places[label == k].astype(np.float32), radius=2.5, color=color)
    return canvas.get_image()[..., :3]


def main(small=False):
    """Runs it: pictures of the boundary over time, the loss, and the accuracy on other points."""
    ti.init(arch=ti.cpu)
    ti.tensor.random.seed(1)
    n_epochs, n_frames = (30, 3) if small else (120, 40)
    points, label = moons(400, 0.12, 0)
    net = network(16)
    optimizer = optim.Adam(net, lr=0.01)
    batches = datasets.Batches((points, label), batch_size=100, seed=2)
    losses, frames = [], [picture(net, points, label, 120 if small else 400)]
    for epoch in range(n_epochs):
        losses += [train(net, optimizer, x, y).item() for x, y in batches]
        # More frames at first, where more happens.
        if epoch in {int(n_epochs * (k / n_frames) ** 2) for k in range(n_frames)} or epoch == n_epochs - 1:
            frames.append(picture(net, points, label, 120 if small else 400))
    others, which = moons(1000, 0.12, 7)
    with ti.no_grad():
        told = (net(ti.tensor.asarray(others)).numpy() > 0) == (which > 0)
    return np.stack(frames), {"loss before": losses[0], "loss after": losses[-1], "accuracy": told.mean()}


if __name__ == "__main__":
    common.run(main)
