"""Training on the batches of all processes: gradients averaged, and the same parameters everywhere."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from aerogel._dtypes import numpy_dtype
from aerogel.mpi import _comm

if TYPE_CHECKING:
    from aerogel.nn import Module
    from aerogel.optim import Optimizer
    from aerogel.tensor._tensor import Tensor

    AnyOptimizer = TypeVar("AnyOptimizer", bound=Optimizer)


def part(n: int) -> slice:
    """Which of ``n`` examples of a batch are this process' own: as many for each, in the order of the ranks.

    Raises:
        ValueError: The processes cannot have equally many.
    """
    n, size = operator.index(n), _comm.size()
    if n % size != 0 or n < 1:
        raise ValueError(
            f"a batch of {n} examples cannot be divided into equal parts for {size} ranks: take another batch size, "
            "and leave out a last batch that is not full"
        )
    each = n // size
    return slice(_comm.rank() * each, (_comm.rank() + 1) * each)


def mean(values: Any) -> Any:
    """The mean over all processes of a number, or of each element of a NumPy array. All processes must call it.

    Returns:
        A float, or an array of floats of the same shape; the same bits on every process.

    Raises:
        AerogelRuntimeError: The processes have arrays of other shapes.
    """
    import numpy as np

    own = np.asarray(values, np.float64)
    comm = _comm.world()
    if comm is None:
        total = own
    else:
        _comm.agree(f"the mean of an array of shape {own.shape}")
        # In the order of the ranks, so that it does not depend on how MPI adds.
        total = sum(comm.allgather(own)) / comm.size
    return float(total) if own.ndim == 0 else total.copy()


def data_parallel(optimizer: AnyOptimizer, module: Module | None = None, bucket_bytes: int = 1 << 22) -> AnyOptimizer:
    """Lets an optimizer change parameters by the mean of the gradients of all processes.

    If each process takes its :func:`part` of a batch and the loss is a mean over examples, the parameters become what
    they become in one process with the whole batch. All processes must call this, and each ``step`` and ``apply``.

    Args:
        optimizer: ``optimizer.average`` is set, if there are several processes.
        module: A module whose parameters and buffers begin as those of rank 0. Without it these are the parameters of
            the optimizer.
        bucket_bytes: Gradients are evaluated in pieces of about this size, the last parameters' first. One is sent
            while the backward pass computes the next.

    Returns:
        The optimizer.

    Raises:
        ValueError: ``bucket_bytes`` is below 1.
        AerogelRuntimeError: The processes have other parameters, by number, shape or dtype.
    """
    if bucket_bytes < 1:
        raise ValueError(f"a bucket has at least one byte, not {bucket_bytes}")
    if _comm.world() is None:
        return optimizer
    _share(list(_tensors(optimizer, module)))
    optimizer.average = _Mean(bucket_bytes)
    return optimizer


def _tensors(optimizer: Optimizer, module: Module | None) -> Iterator[Tensor]:
    for group in optimizer.param_groups:
        yield from group["params"]
    if module is not None:
        own = {id(p) for group in optimizer.param_groups for p in group["params"]}
        yield from (t for t in (*module.parameters(), *module.buffers()) if id(t) not in own)


def _share(tensors: list[Tensor]) -> None:
    """Sets tensors to the values that they have on rank 0."""
    from aerogel.nn._parameter import set_data
    from aerogel.tensor._tensor import asarray

    kinds = ", ".join(f"{t.dtype}{list(t.shape)}" for t in tensors)
    _comm.agree(f"the parameters of ti.mpi.data_parallel ({kinds})")
    comm = _comm.world()
    for tensor in tensors:
        values = comm.bcast(tensor.detach().numpy() if comm.rank == 0 else None, root=0)
        if comm.rank > 0:
            set_data(tensor, asarray(values, dtype=tensor.dtype))


class _Mean:
    """The mean of gradients over all processes: the value of ``optimizer.average``."""

    def __init__(self, bucket_bytes: int) -> None:
        self._bucket_bytes = bucket_bytes

    def __call__(self, gradients: Any) -> Any:
        """The mean of an array."""
        _comm.agree(f"the mean of {gradients.size} gradients of {gradients.dtype.name}")
        return _Sum(gradients).mean()

    def of_tensors(self, gradients: dict[int, Tensor | None]) -> dict[int, Tensor | None]:
        """The means of tensors by key, which are evaluated in buckets: one is on its way while the next is computed."""
        from aerogel.tensor._shapes import concat
        from aerogel.tensor._tensor import asarray

        # The backward pass computes the gradients of the last parameters first.
        given = [(key, g.detach()) for key, g in reversed(gradients.items()) if g is not None]
        kinds = ", ".join(f"{g.dtype}{list(g.shape)}" for _, g in given)
        _comm.agree(f"the mean of the gradients {kinds}")
        sums = []
        for bucket in self._buckets(given):
            sums.append((bucket, _Sum(concat([g.reshape(-1) for _, g in bucket]).numpy())))
        out = dict(gradients)
        for bucket, total in sums:
            means, at = asarray(total.mean(), dtype=bucket[0][1].dtype), 0
            for key, g in bucket:
                out[key], at = means[at : at + g.size].reshape(g.shape), at + g.size
        return out

    def _buckets(self, given: list[tuple[int, Tensor]]) -> Iterator[list[tuple[int, Tensor]]]:
        """Tensors of one dtype each, that are no larger than a bucket, or one tensor."""
        for _, same in itertools.groupby(given, lambda each: each[1].dtype):
            bucket, n_bytes = [], 0
            for key, g in same:
                size = g.size * numpy_dtype(g.dtype).itemsize
                if bucket and n_bytes + size > self._bucket_bytes:
                    yield bucket
                    bucket, n_bytes = [], 0
                bucket.append((key, g))
                n_bytes += size
            yield bucket


class _Sum:
    """The sum of an array over all processes, on its way."""

    def __init__(self, values: Any) -> None:
        import numpy as np

        # MPI has no sums of shorter floats.
        is_short = values.dtype.itemsize < 4
        self._total = values.astype(np.float32) if is_short else np.ascontiguousarray(values)
        self._request = _comm.world().Iallreduce(_comm.mpi().IN_PLACE, self._total)

    def mean(self) -> Any:
        """The mean, once it has arrived."""
        self._request.Wait()
        self._total /= _comm.size()
        return self._total
