"""How a program is written: it makes its fields and gives what is run, the loss, and the inputs by which is derived."""

import numpy as np

import aerogel as ti

#: Each program, and how it ends: nothing for a right gradient, or what the error says.
PROGRAMS = {}


def right(fn):
    PROGRAMS[fn.__name__] = (fn, None)
    return fn


def error(message):
    def add(fn):
        PROGRAMS[fn.__name__] = (fn, message)
        return fn

    return add


def either(message):
    """Right, or an error that says this."""

    def add(fn):
        PROGRAMS[fn.__name__] = (fn, ("", message))
        return fn

    return add


def made(*shapes, dtype=ti.f64, **kwargs):
    """Fields with numbers in them, and a loss."""
    fields = []
    for k, shape in enumerate(shapes):
        field = ti.field(dtype, shape=shape, name="abcdef"[k], needs_grad=True, **kwargs)
        n = int(np.prod(shape, dtype=int))
        field.from_numpy((0.4 + 0.37 * np.sin(np.arange(n) * (k + 1.3))).reshape(shape).astype(field.to_numpy().dtype))
        fields.append(field)
    return (*fields, ti.field(dtype, shape=(), name="loss", needs_grad=True))
