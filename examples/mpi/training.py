"""A network learns a curve, each process from its part of every batch.

python -m aerogel mpi -n 4 examples/mpi/training.py
"""

import argparse

import numpy as np

import aerogel as ti
from aerogel import datasets, nn, optim
from aerogel.nn import functional as F


def run(n: int, epochs: int, batch_size: int = 64):
    """The mean loss of each epoch, and the parameters, on every process."""
    ti.tensor.random.seed(0)
    net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = ti.mpi.data_parallel(optim.Adam(net, lr=0.005))
    x = np.linspace(-1, 1, n, dtype=np.float32)[:, None]
    batches = datasets.Batches((x, np.sin(5 * x) * x), batch_size, drop_last=True)
    own = ti.mpi.part(batch_size)
    losses = []
    for _ in range(epochs):
        total = 0.0
        for inputs, targets in batches:
            optimizer.zero_grad()
            loss = F.mse_loss(net(inputs[own]), targets[own])
            loss.backward()
            optimizer.step()
            total += float(loss)
        losses.append(ti.mpi.mean(total) / len(batches))
    return losses, [p.detach().numpy() for p in net.parameters()]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--examples", type=int, default=1024)
    parser.add_argument("--epochs", type=int, default=30)
    args = parser.parse_args()
    ti.init(arch=ti.cpu)
    losses, _ = run(args.examples, args.epochs)
    print(
        f"{ti.mpi.size()} ranks: the mean loss was {losses[0]:.4f} in the first epoch, and {losses[-1]:.6f} in the last"
    )


if __name__ == "__main__":
    main()
