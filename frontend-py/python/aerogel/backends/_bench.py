"""Times of whole small networks: a training step, and a prediction, with each back end."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from aerogel.backends import _registry

if TYPE_CHECKING:
    from collections.abc import Callable


class Row(NamedTuple):
    """The milliseconds of processor time that a training step takes with a back end: the median, and the first one."""

    network: str
    backend: str
    median: float
    first: float


def _perceptron() -> tuple[Any, Any, Any]:
    import aerogel as ti
    from aerogel import nn

    net = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 10))
    return net, ti.tensor.random.randn(128, 64), ti.tensor.arange(128) % 10


def _convolutional() -> tuple[Any, Any, Any]:
    import aerogel as ti
    from aerogel import nn

    net = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(256, 10)
    )
    return net, ti.tensor.random.randn(32, 1, 14, 14), ti.tensor.arange(32) % 10


def _attention() -> tuple[Any, Any, Any]:
    import aerogel as ti
    from aerogel import nn

    class Net(nn.Module):
        def __init__(self) -> None:
            self.encoder = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
            self.out = nn.Linear(32, 10)

        def forward(self, x: Any) -> Any:
            return self.out(self.encoder(x).mean(axis=1))

    return Net(), ti.tensor.random.randn(16, 12, 32), ti.tensor.arange(16) % 10


NETWORKS: dict[str, Callable[[], tuple[Any, Any, Any]]] = {
    "perceptron 64-128-10, batch 128": _perceptron,
    "convolutions 8-16, 14 x 14, batch 32": _convolutional,
    "transformer layer of 32, 12 words, batch 16": _attention,
}


def run(names: list[str], steps: int = 12) -> list[Row]:
    """The times of all networks with some back ends."""
    return [_row(network, make, name, steps) for network, make in NETWORKS.items() for name in names]


def _row(network: str, make: Callable[[], Any], name: str, steps: int) -> Row:
    import aerogel as ti
    from aerogel import nn, optim

    with _registry.use(name):
        ti.tensor.random.seed(0)
        net, x, y = make()
        adam = optim.Adam(net, lr=1e-3)
        times = []
        for _ in range(steps):
            begin = time.process_time()
            loss, gradient = ti.value_and_grad(lambda net: nn.functional.cross_entropy(net(x), y))(net)
            adam.apply(gradient)
            loss.item()
            times.append(1e3 * (time.process_time() - begin))
    return Row(network, name, statistics.median(times[steps // 2 :]), times[0])


def table(rows: list[Row]) -> str:
    """The times as text."""
    lines = [f"{'training step':<46}{'back end':<10}{'ms':>10}{'first, ms':>12}"]
    lines += [f"{r.network:<46}{r.backend:<10}{r.median:>10.2f}{r.first:>12.0f}" for r in rows]
    return "\n".join(lines)
