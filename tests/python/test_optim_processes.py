"""Gradients averaged over several processes: as one process that has the whole batch."""

import multiprocessing

import numpy as np
import pytest

import aerogel as ti
from aerogel import nn, optim
from aerogel.nn import functional as F

BATCH, STEPS = 16, 5


def data():
    rng = np.random.default_rng(0)
    return rng.standard_normal((STEPS, BATCH, 3)).astype(np.float32), rng.standard_normal((STEPS, BATCH, 1)).astype(
        np.float32
    )


def trained(part, average):
    """The parameters after some steps on a part of each batch."""
    ti.init(arch=ti.cpu, log_level="error", cpu_max_num_threads=1)
    ti.tensor.random.seed(1)
    net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = optim.Adam(net, lr=0.01)
    optimizer.average = average
    for x, y in zip(*data()):
        optimizer.zero_grad()
        F.mse_loss(net(ti.tensor.asarray(x[part])), ti.tensor.asarray(y[part])).backward()
        optimizer.step()
    return [p.detach().numpy() for p in net.parameters()]


def worker(rank, pipe, results):
    """One of two processes, which exchange their gradients; mpi4py's ``Allreduce`` would do the same."""

    def average(gradients):
        pipe.send_bytes(gradients.tobytes())
        other = np.frombuffer(pipe.recv_bytes(), gradients.dtype)
        # In the order of the processes, so that both have the same digits.
        return (gradients + other if rank == 0 else other + gradients) / 2

    results.put((rank, trained(slice(rank * BATCH // 2, (rank + 1) * BATCH // 2), average)))


def test_two_processes_as_one():
    context = multiprocessing.get_context("spawn")
    pipes, results = context.Pipe(), context.Queue()
    workers = [context.Process(target=worker, args=(rank, pipes[rank], results)) for rank in (0, 1)]
    for process in workers:
        process.start()
    made = dict(results.get(timeout=120) for _ in workers)
    for process in workers:
        process.join(60)
        assert process.exitcode == 0
    whole = trained(slice(0, BATCH), None)
    half = trained(slice(0, BATCH // 2), None)
    for first, second, one in zip(made[0], made[1], whole, strict=True):
        assert (first == second).all(), "all processes have the same parameters"
        np.testing.assert_allclose(first, one, rtol=1e-4, atol=1e-6)
    assert abs(half[0] - whole[0]).max() > 1e-3, "half of the batch alone is something else"


def test_dtypes_and_gradients_that_are_given():
    """Each dtype is one array; parameters without a gradient are in none."""
    ti.init(arch=ti.cpu, log_level="error")
    a, b, c = nn.Parameter([1.0, 2.0]), nn.Parameter(ti.tensor.asarray([3.0]).astype(ti.f64)), nn.Parameter([4.0])
    optimizer, seen = optim.SGD([a, b, c], lr=1.0), []
    optimizer.average = lambda g: (seen.append((g.dtype.name, g.tolist())), g / 2)[1]
    optimizer.apply([ti.tensor.asarray([1.0, 2.0]), ti.tensor.asarray([4.0]).astype(ti.f64), None])
    assert seen == [("float32", [1, 2]), ("float64", [4])]
    assert [p.detach().tolist() for p in (a, b, c)] == [[0.5, 1], [1], [4]]


def test_what_is_refused():
    ti.init(arch=ti.cpu, log_level="error")
    net = nn.Linear(2, 1)
    optimizer = optim.SGD(net, lr=1.0)
    optimizer.average = lambda g: g[:1]
    net(ti.tensor.ones((1, 2))).sum().backward()
    with pytest.raises(ValueError, match=r"returned the shape \(1,\), and \(3,\) is needed"):
        optimizer.step()
    optimizer.average = lambda g: None
    with pytest.raises(TypeError, match="`SGD.average` returned None: return the array"):
        optimizer.step()

    @ti.program
    def step(net, optimizer):
        optimizer.apply(ti.grad(lambda net: net(ti.tensor.ones((1, 2))).sum())(net))

    with pytest.raises(ValueError, match="call `apply` outside of it"):
        step(net, optimizer)
