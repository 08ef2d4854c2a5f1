"""Many spellings of one computation: what they are made of, and the list of computations.

A computation is a function from a `Writer`, which has a choice of one value for each axis of spelling, to a program:

    {"loops": "nested", "storage": "ndarray", ...} -> for i in range(n): for j in range(n): b[i, j] = ...

The function raises `Skip` for choices that make no sense together.
"""

import importlib
import random
from dataclasses import dataclass, field
from typing import Any, Callable

FILES = ("stencils", "reductions", "histograms", "matrices", "particles", "sparse", "scans", "pointwise", "solvers")


class Skip(Exception):
    """The choices have no spelling together."""


@dataclass
class Computation:
    """A computation: its axes of spelling, its inputs and the reference for its result."""

    name: str
    axes: dict[str, tuple[str, ...]]
    full: dict[str, int]
    small: dict[str, int]
    spell: Callable[..., None]
    inputs: Callable[..., dict[str, Any]]
    reference: Callable[..., Any]
    # Axes whose values change the work. Spellings that differ in them are not compared.
    apart: tuple[str, ...] = ("dtype",)
    tolerance: dict[str, float] = field(default_factory=lambda: {"f32": 1e-4, "f64": 1e-10, "i32": 0})


COMPUTATIONS: dict[str, Computation] = {}


def computation(axes, full, small, inputs, reference, **options):
    """Registers the decorated function as the computation of its name."""

    def register(spell):
        COMPUTATIONS[spell.__name__] = Computation(
            spell.__name__, axes, full, small, spell, inputs, reference, **options
        )
        return spell

    return register


def load():
    """Imports all computations."""
    for name in FILES:
        importlib.import_module(f"variants.{name}")
    return COMPUTATIONS


@dataclass
class Spelling:
    """One program: the choice it was made by, and its source."""

    choice: dict[str, str]
    source: str

    @property
    def dtype(self):
        """The name of the type of its elements."""
        return self.choice.get("dtype", "f32")


def write(comp, choice, sizes):
    """The spelling of a choice, or `None` if there is none."""
    from variants.writer import Writer

    writer = Writer(choice, sizes)
    try:
        comp.spell(writer)
    except Skip:
        return None
    return Spelling(choice, writer.source())


def spellings(comp, sizes, count, seed, axis=None):
    """At most `count` different spellings.

    First the one of each axis' first value, then those that differ from it in one axis, then random choices. With
    `axis` only that axis varies, around as many random choices of the others as there is room for.
    """
    draw = random.Random(f"{seed} {comp.name}")
    first = {name: values[0] for name, values in comp.axes.items()}
    choices = []

    def around(centre, names):
        for name in names:
            choices.extend(centre | {name: value} for value in comp.axes[name])

    def anything():
        return {name: draw.choice(values) for name, values in comp.axes.items()}

    around(first, [axis] if axis else comp.axes)
    for _ in range(count * 30):
        if axis:
            around(anything(), [axis])
        else:
            choices.append(anything())
    seen, found = set(), []
    for choice in choices:
        if len(found) >= count:
            break
        spelling = write(comp, choice, sizes)
        if spelling is not None and spelling.source not in seen:
            seen.add(spelling.source)
            found.append(spelling)
    return found
