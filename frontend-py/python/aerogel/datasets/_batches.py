"""Batches of data, in an order that a seed determines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aerogel.tensor._complex import ComplexTensor
from aerogel.tensor._searching import take
from aerogel.tensor._tensor import Tensor, asarray
from aerogel.tensor.programs import _trees
from aerogel.tools._progress import progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def _length(data: Any, called: str) -> int:
    """How many examples there are, of which all parts have equally many."""
    if hasattr(data, "_examples"):
        return len(data)
    sizes: dict[str, int] = {}

    def leaf(value: Any, name: str, _: Any) -> None:
        if not getattr(value, "shape", ()):
            raise TypeError(f"`{called}`: {name} is {type(value).__name__}, not a tensor or an array with a first axis")
        sizes[name] = value.shape[0]

    _trees.flatten(data, leaf, "the data")
    if len(set(sizes.values())) != 1:
        of = ", ".join(f"{name}: {n}" for name, n in sizes.items())
        raise ValueError(f"`{called}`: all arrays of the data need the same number of examples, not {of or 'none'}")
    return next(iter(sizes.values()))


def _examples(data: Any, at: Any) -> Any:
    """The examples with these numbers, as tensors with values."""
    if hasattr(data, "_examples"):
        return data._examples(at)

    def leaf(value: Any) -> Any:
        if isinstance(value, (Tensor, ComplexTensor)):
            return take(value, asarray(at), axis=0)
        return asarray(value[at])

    return _trees.mapped(data, leaf)


class Batches:
    """Batches of examples, in another random order in each epoch.

    The order follows from the seed and the number of the epoch alone. Batches are of one shape, except the last.

    Args:
        data: A tensor or an array (of NumPy, which may be a map of a file), whose first axis counts examples; a
            tuple, a list or a dictionary of such; or ``Windows``.
        batch_size: How many examples a batch has.
        shuffle: Whether the order is random.
        seed: The seed of the order.
        drop_last: Whether a last batch that is not full is left out.
        transform: A function of a batch, whose results are given in its place.
        description: The text before a progress bar; without a text there is none.

    Raises:
        TypeError: If there is something else than tensors and arrays.
        ValueError: If parts have other numbers of examples, or there are none; if the batch size is below 1.
    """

    def __init__(
        self,
        data: Any,
        batch_size: int = 1,
        *,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
        transform: Callable[[Any], Any] | None = None,
        description: str | None = None,
    ) -> None:
        if not hasattr(batch_size, "__index__") or batch_size < 1:
            raise ValueError(f"`Batches`: a batch has at least one example, not {batch_size!r}")
        self._n = _length(data, "Batches")
        self.data, self.batch_size, self.shuffle, self.seed = data, int(batch_size), shuffle, int(seed)
        self.drop_last, self.transform, self.description = drop_last, transform, description
        #: The number of the next epoch: how often the batches have been gone through.
        self.epoch = 0

    def __len__(self) -> int:
        """How many batches an epoch has."""
        return self._n // self.batch_size if self.drop_last else -(-self._n // self.batch_size)

    def order(self, epoch: int) -> Any:
        """The numbers of the examples in the order of an epoch, as a NumPy array."""
        import numpy as np

        if not self.shuffle:
            return np.arange(self._n)
        return np.random.default_rng([self.seed & (1 << 64) - 1, epoch]).permutation(self._n)

    def __iter__(self) -> Iterator[Any]:
        """The batches of the next epoch."""
        order = self.order(self.epoch)
        self.epoch += 1
        batches = self._batches(order)
        if self.description is None:
            return batches
        return progress(batches, self.description, len(self))

    def _batches(self, order: Any) -> Iterator[Any]:
        for k in range(len(self)):
            batch = _examples(self.data, order[k * self.batch_size : (k + 1) * self.batch_size])
            for part in _trees.leaves(batch):
                if isinstance(part, Tensor):
                    part.realize()
            yield batch if self.transform is None else self.transform(batch)


def split(data: Any, *fractions: float, seed: int | None = 0) -> tuple[Any, ...]:
    """Data divided into parts, as for training and testing.

    >>> import aerogel as ti
    >>> ti.init(arch=ti.cpu, log_level="error")
    >>> train, test = ti.datasets.split(ti.tensor.arange(10), 0.8, 0.2)
    >>> train.shape, test.shape
    ((8,), (2,))

    Args:
        data: Tensors and arrays, as ``Batches`` takes them.
        fractions: How much of the data each part has; at most 1 together.
        seed: The seed of the order in which examples are drawn; ``None`` for the order in which they are.

    Raises:
        ValueError: If the fractions are not positive, or more than 1 together.
    """
    import numpy as np

    n = _length(data, "split")
    if not fractions or min(fractions) <= 0 or sum(fractions) > 1 + 1e-9:
        raise ValueError(f"`split`: the fractions must be positive, and their sum at most 1, not {fractions}")
    order = np.arange(n) if seed is None else np.random.default_rng(seed).permutation(n)
    ends = [round(n * min(sum(fractions[:k]), 1.0)) for k in range(len(fractions) + 1)]
    return tuple(_examples(data, order[a:b]) for a, b in zip(ends, ends[1:]))
