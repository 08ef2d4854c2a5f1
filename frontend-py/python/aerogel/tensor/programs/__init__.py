"""Programs of tensors: functions with loops, branches and memory, traced once and compiled for tensors of any shape.

>>> import aerogel as ti
>>> @ti.program
... def distances(a):
...     return ti.tensor.norm(a, axis=1)
>>> distances(ti.tensor.asarray([[3.0, 0.0, 4.0]])).tolist()
[5.0]

Two rules hold in such a function. A tensor that is made in a block (``loop``, ``if_cond``) is not used outside of it. A
name that is bound before a block is not bound again in it: values change by ``x.val = ...``, ``x.set(...)`` and stores.
Other state of Python, in lists, attributes and caches, changes once, when the function is traced.
"""

from aerogel.tensor.programs._archive import LoadedProgram, load_program, program_from_text
from aerogel.tensor.programs._blocks import break_loop, continue_loop, if_cond, kernel, loop
from aerogel.tensor.programs._functional import cond, fori_loop, scan, while_loop
from aerogel.tensor.programs._program import Lowered, Program, program
from aerogel.tensor.programs._values import (
    assert_tensor,
    assert_value,
    buffer,
    const,
    dense,
    indices,
    input,  # noqa: A004
    print_value,
    scatter_add,
    scatter_add_previous,
    scatter_max,
    scatter_min,
)

__all__ = [
    "LoadedProgram",
    "Lowered",
    "Program",
    "assert_tensor",
    "assert_value",
    "break_loop",
    "buffer",
    "cond",
    "const",
    "continue_loop",
    "dense",
    "fori_loop",
    "if_cond",
    "indices",
    "input",
    "kernel",
    "load_program",
    "loop",
    "print_value",
    "program",
    "program_from_text",
    "scan",
    "scatter_add",
    "scatter_add_previous",
    "scatter_max",
    "scatter_min",
    "while_loop",
]
