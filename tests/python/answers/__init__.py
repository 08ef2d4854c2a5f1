"""Small kernels, each with its results: what the language means, in Aerogel and in Taichi.

`tests/oracle/ask.py` runs them on Taichi and keeps what it answers.
"""

from answers import control, numbers, tapes, vectors
from answers.cases import CASES, ti

__all__ = ["CASES", "fields", "tapes", "ti"]


def fields():
    """Makes the fields that the kernels use, after each `ti.init`."""
    made = {
        "x": ti.field(ti.f32, (4, 6)),
        "n": ti.field(ti.i32, ()),
        "v": ti.Vector.field(3, ti.f32, 5),
        "M": ti.Matrix.field(2, 2, ti.f32, 3),
        "fi": ti.field(ti.i32, 8),
        "f64": ti.field(ti.f64, 3),
    }
    for module in (control, numbers, vectors):
        vars(module).update(made)
