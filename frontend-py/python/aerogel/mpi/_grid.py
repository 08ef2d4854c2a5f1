"""Grids whose cells are divided among processes, in boxes."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from aerogel import _config, _native
from aerogel._outside import outside_kernels
from aerogel.errors import AerogelExtentError, AerogelNotSupportedError
from aerogel.mpi import _comm


class Grid:
    """The shape of split fields, and which box of the cells this process has. :func:`grid` makes it."""

    def __init__(
        self,
        shape: tuple[int, ...],
        halo: int | Literal["auto"],
        periodic: tuple[bool, ...],
        is_divided: bool = False,
    ) -> None:
        #: The cells along each axis.
        self.shape = shape
        #: Along which axes the last cell's neighbour is the first one.
        self.periodic = periodic
        #: Whether the program has given the halo's width.
        self.is_trusted = halo != "auto"
        #: The width of the halo where there is one.
        self.width = 1 if halo == "auto" else halo
        #: How many processes there are along each axis.
        self.ranks = _divided(shape, self.width, periodic)
        #: The number of this process along each axis.
        self.coordinates = _coordinates(_comm.rank(), self.ranks)
        # Whether fields are split even if one process has all cells.
        self._is_divided = is_divided
        #: The cells of this process along each axis: the first one, and the end.
        self.box = self.box_of(_comm.rank())

    def box_of(self, rank: int) -> tuple[tuple[int, int], ...]:
        """The cells of a process along each axis: the first one, and the end."""
        at = _coordinates(rank, self.ranks)
        return tuple((k * n // m, (k + 1) * n // m) for n, m, k in zip(self.shape, self.ranks, at))

    @property
    def is_whole(self) -> bool:
        """Whether one process has all cells and no halo."""
        return math.prod(self.ranks) == 1 and not any(self.widths) and not self._is_divided

    @property
    def widths(self) -> tuple[int, ...]:
        """The width of the halo of each axis: none where there is one process, unless the axis is periodic."""
        needed = (m > 1 or wraps for m, wraps in zip(self.ranks, self.periodic))
        return tuple(self.width if has_halo else 0 for has_halo in needed)

    @property
    def memory(self) -> tuple[tuple[int, int], ...]:
        """The cells along each axis of which this process has memory: its own and the halo."""
        axes = zip(self.box, self.widths, self.shape, self.periodic)
        return tuple(
            (lo - width, hi + width) if wraps else (max(lo - width, 0), min(hi + width, n))
            for (lo, hi), width, n, wraps in axes
        )

    @property
    def own(self) -> tuple[slice, ...]:
        """Which part of the memory the own cells are."""
        return tuple(slice(lo - first, hi - first) for (lo, hi), (first, _) in zip(self.box, self.memory))

    def neighbour(self, axis: int, step: int) -> int | None:
        """The process whose box lies below (-1) or above (1) along an axis; none beyond the edge."""
        return self.beside([step if k == axis else 0 for k in range(len(self.shape))])

    def beside(self, steps: Sequence[int]) -> int | None:
        """The process whose box lies so many boxes further along each axis; none beyond the edge."""
        at = [k + step for k, step in zip(self.coordinates, steps)]
        if not all(wraps or 0 <= k < m for k, m, wraps in zip(at, self.ranks, self.periodic)):
            return None
        return _number([k % m for k, m in zip(at, self.ranks)], self.ranks)

    def owner(self, index: Sequence[int]) -> int:
        """The process that has a cell."""
        at = [((i + 1) * m - 1) // n for i, n, m in zip(index, self.shape, self.ranks)]
        return _number(at, self.ranks)

    def _axes(self) -> list[tuple[int, int, int, int, bool]]:
        axes = zip(self.shape, self.box, self.widths, self.periodic)
        return [(n, lo, hi, width, wraps) for n, (lo, hi), width, wraps in axes]

    def __repr__(self) -> str:
        return f"<ti.mpi.Grid of shape {self.shape} on {' x '.join(map(str, self.ranks))} ranks>"


@outside_kernels
def grid(
    shape: int | Sequence[int],
    halo: int | Literal["auto"] = "auto",
    periodic: bool | Sequence[bool] = False,
) -> Grid:
    """Makes the shape of split fields: each process has a box of the cells, and a halo of its neighbours' cells.

    ``ti.field(ti.f32, shape=grid)`` and the ``field`` methods of vectors, matrices and structs take it. All processes
    must call this in the same order.

    Args:
        shape: The cells along each axis.
        halo: How many cells of its neighbours a process has on each side of its box. With ``"auto"`` it is one, and
            an index that is not known to stay inside is an error. With a number such indices are trusted to stay
            inside; ``ti.init(debug=True)`` checks it.
        periodic: Whether the neighbour of the last cell is the first one, for all axes or for each. Kernels then may
            read beyond the edge, or take indices modulo the size of the axis.

    Raises:
        AerogelExtentError: The processes do not fit the grid, or the halo is wider than a box.
        ModuleNotFoundError: MPI has started the program, but ``mpi4py`` is missing.
    """
    _native.check_initialized()
    dims = _shape(shape)
    wraps = (periodic,) * len(dims) if isinstance(periodic, bool) else tuple(bool(p) for p in periodic)
    if len(wraps) != len(dims):
        raise AerogelExtentError(f"periodic has {len(wraps)} values for {len(dims)} axes")
    if halo != "auto":
        halo = operator.index(halo)
        if halo < 0:
            raise AerogelExtentError(f"the width of a halo is at least 0, not {halo}")
    _comm.agree(f"ti.mpi.grid({dims}, halo={halo!r}, periodic={wraps})")
    out = Grid(dims, halo, wraps)
    if not out.is_whole and _config._native_arch() != "cpu":
        raise AerogelNotSupportedError("split fields need ti.init(arch=ti.cpu)")
    return out


def _shape(shape: Any) -> tuple[int, ...]:
    dims = tuple(operator.index(n) for n in ((shape,) if isinstance(shape, int) else shape))
    if not dims or any(n < 1 for n in dims):
        raise AerogelExtentError(f"the sizes of a grid are at least 1, and there is at least one axis; got {dims}")
    return dims


def _divided(shape: tuple[int, ...], width: int, periodic: tuple[bool, ...]) -> tuple[int, ...]:
    """The processes along each axis: those whose boxes have the least surface towards others."""
    n_ranks = _comm.size()
    fitting = [m for m in _factors(n_ranks, len(shape)) if all(k <= n for k, n in zip(m, shape))]
    if not fitting:
        raise AerogelExtentError(
            f"{n_ranks} ranks do not fit a grid of shape {shape}: each axis must have at least as many cells as ranks"
        )

    def is_wide(k: int, n: int, wraps: bool) -> bool:
        # The halo of a box that meets itself is a part of it.
        return n // k >= width or k == 1 and not wraps

    wide = [m for m in fitting if all(map(is_wide, m, shape, periodic))]
    if not wide:
        raise AerogelExtentError(
            f"a halo of {width} cells is wider than a box of the grid of shape {shape} on {n_ranks} ranks: use fewer "
            "ranks or a smaller halo"
        )

    def surface(ranks: tuple[int, ...]) -> float:
        sides = [n / m for n, m in zip(shape, ranks)]
        return sum(math.prod(sides) / side for side, m in zip(sides, ranks) if m > 1)

    # Along earlier axes if it is the same: their faces are contiguous.
    return min(wide, key=lambda ranks: (surface(ranks), [-m for m in ranks]))


def _factors(number: int, n_axes: int) -> Iterator[tuple[int, ...]]:
    """All ways to write a number as a product."""
    divisors = [k for k in range(1, number + 1) if number % k == 0]
    for first in itertools.product(divisors, repeat=n_axes - 1):
        rest, left = divmod(number, math.prod(first))
        if left == 0:
            yield (*first, rest)


def _coordinates(rank: int, ranks: Sequence[int]) -> tuple[int, ...]:
    """The number of a process along each axis, the last axis varying fastest."""
    at = []
    for m in reversed(ranks):
        rank, k = divmod(rank, m)
        at.append(k)
    return tuple(reversed(at))


def _number(at: Sequence[int], ranks: Sequence[int]) -> int:
    number = 0
    for k, m in zip(at, ranks):
        number = number * m + k
    return number
