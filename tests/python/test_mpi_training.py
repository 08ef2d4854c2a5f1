"""A network that ranks train, each on its part of every batch, against one process with whole batches."""

import numpy as np
import pytest
from test_mpi import EXAMPLES, needs_mpi, ranks

import aerogel as ti
from aerogel import nn, optim

PROGRAM = """
    import sys
    sys.path.insert(0, sys.argv[1])
    import numpy as np
    import aerogel as ti
    import training
    from aerogel import nn, optim

    ti.init(arch=ti.cpu, cpu_max_num_threads=1, log_level="error", opt_level=0)
    rank, size = ti.mpi.rank(), ti.mpi.size()
    losses, parameters = training.run(128, 4, 32)
    np.savez(f"{sys.argv[2]}.{rank}.npz", losses, *parameters)

    # What differs between ranks before it: parameters of an optimizer, buffers of a module.
    net = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    net[0].weight = nn.Parameter(np.full((2, 3), rank + 1.0, np.float32))
    for tensor in net[1].buffers():
        assert tensor is not None
    net[1].running_mean = ti.tensor.asarray(np.full(2, rank + 5.0, np.float32))
    optimizer = ti.mpi.data_parallel(optim.SGD(net[0], lr=1.0), net, bucket_bytes=5)
    assert (net[0].weight.detach().numpy() == 1).all() and (net[1].running_mean.numpy() == 5).all()

    # Other gradients on each rank, in buckets of one number; halves add in 32 bits.
    optimizer.apply([np.full((2, 3), 2.0 * rank, np.float32), np.arange(2, dtype=np.float32) * rank])
    mean = (size - 1) / 2
    assert (net[0].weight.detach().numpy() == 1 - 2 * mean).all(), net[0].weight.detach().numpy()
    half = nn.Parameter(ti.tensor.zeros(4, dtype=ti.f16))
    optimizer = ti.mpi.data_parallel(optim.SGD([half], lr=1.0))
    optimizer.apply([ti.tensor.asarray(np.full(4, 2049.0 if rank else 1.0)).astype(ti.f16)])
    assert (half.detach().numpy() == -(1 + 2048 * (size - 1)) / size).all(), half.detach().numpy()
    brief = nn.Parameter(ti.tensor.zeros(2, dtype=ti.bf16))
    ti.mpi.data_parallel(optim.SGD([brief], lr=1.0)).apply([ti.tensor.asarray(np.full(2, 4.0 * rank)).astype(ti.bf16)])
    assert (brief.detach().astype(ti.f32).numpy() == -4 * mean).all()
    assert ti.mpi.mean(rank) == mean and (ti.mpi.mean(np.array([rank, 1])) == [mean, 1]).all()
    assert [*range(8)[ti.mpi.part(8)]] == [*range(8 * rank // size, 8 * (rank + 1) // size)]

    if size > 1:
        for call, message in (
            (lambda: ti.mpi.part(7), "cannot be divided into equal parts for 2 ranks"),
            (lambda: ti.mpi.data_parallel(optim.SGD(nn.Linear(2, 1 + rank), lr=1.0)), "reach different operations"),
        ):
            try:
                call()
                found = "nothing"
            except Exception as error:
                found = str(error)
            assert message in found, found
    print("trained", size)
"""


@needs_mpi
def test_two_ranks_train_as_one_process(tmp_path, monkeypatch):
    done = ranks(2, tmp_path, PROGRAM, EXAMPLES, tmp_path / "two")
    assert done.returncode == 0 and done.stdout == "trained 2\n", done.stderr
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import training

    ti.init(arch=ti.cpu, log_level="error", cpu_max_num_threads=1, opt_level=0)
    losses, parameters = training.run(128, 4, 32)
    assert losses[-1] < 0.9 * losses[0]
    first, second = (np.load(tmp_path / f"two.{rank}.npz") for rank in range(2))
    for name, one in zip(first.files, [np.array(losses), *parameters], strict=True):
        assert (first[name] == second[name]).all(), "all ranks have the same parameters"
        np.testing.assert_allclose(first[name], one, rtol=2e-4, atol=2e-6, err_msg=name)
    # Without the other half of the batches it is another network.
    monkeypatch.setattr(ti.mpi, "part", lambda n: slice(n // 2))
    half = training.run(128, 4, 32)[1]
    assert abs(half[2] - parameters[2]).max() > 1e-3


def test_in_one_process_it_does_nothing():
    ti.init(arch=ti.cpu, log_level="error")
    optimizer = optim.SGD(nn.Linear(2, 1), lr=1.0)
    assert ti.mpi.data_parallel(optimizer) is optimizer and optimizer.average is None
    assert ti.mpi.part(7) == slice(0, 7) and ti.mpi.mean(2) == 2
    with pytest.raises(ValueError, match="at least one byte"):
        ti.mpi.data_parallel(optimizer, bucket_bytes=0)
    with pytest.raises(ValueError, match="equal parts"):
        ti.mpi.part(0)
