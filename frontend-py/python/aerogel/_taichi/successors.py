"""Names that Quadrants and Taichi Forge, which began as copies of Taichi, have and Taichi 1.7 has not."""

from __future__ import annotations

from typing import Any

import aerogel as ti


@ti.pyfunc
def atan(x):  # noqa: ANN001, ANN201
    """The arc tangent, in radians."""
    return ti.atan2(x, 1.0)


@ti.pyfunc
def outer(a, b):  # noqa: ANN001, ANN201
    """The matrix of all products of an element of ``a`` and one of ``b``: ``a.outer_product(b)``."""
    return a.outer_product(b)


@ti.func
def make_spd(A, dt=None):  # noqa: ANN001, ANN201
    """The positive semi-definite matrix nearest to a symmetric one of 2 or 3 rows: no eigenvalue is below zero."""
    values, vectors = ti.sym_eig(A, dt)
    for k in ti.static(range(A.n)):
        values[k] = ti.max(values[k], 0.0)
    return vectors @ _scaled(values, vectors)


@ti.func
def _scaled(values, vectors):  # noqa: ANN001, ANN202
    """The transposed eigenvectors, each times its eigenvalue."""
    rows = vectors.transpose()
    for i, j in ti.static(ti.ndrange(rows.n, rows.m)):
        rows[i, j] *= values[i]
    return rows


def pure(function: Any) -> Any:
    """A decorator for kernels that use no global variables: they are cached on disk in any case."""
    return function


class Stream:
    """A queue of launches. Launches end in their order here, so there is nothing to do."""

    handle = 0

    def synchronize(self) -> None:
        """Waits until all launches have ended."""
        ti.sync()

    def destroy(self) -> None:
        """Ends the use of the stream."""

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exc: Any) -> None: ...


class Event(Stream):
    """A point between launches, which others wait for: they do so in any case."""

    def record(self, stream: Any = None) -> None:
        """Sets the point behind all launches so far."""

    def wait(self, stream: Any = None) -> None:
        """Lets the launches that follow wait for the point."""


def create_stream() -> Stream:
    """A stream."""
    return Stream()


def create_event() -> Event:
    """An event."""
    return Event()


__all__ = ["Event", "Stream", "atan", "create_event", "create_stream", "make_spd", "outer", "pure"]
