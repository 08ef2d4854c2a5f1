"""How a case is written: a function under ``test``, which runs a kernel."""

# ruff: noqa
import importlib
import os

import numpy as np

ti = importlib.import_module(os.environ.get("LANGUAGE_MODULE", "aerogel"))
tm = ti.math
vec2, vec3 = tm.vec2, tm.vec3
CASES = {}


def test(f):
    CASES[f.__name__] = f
    return f


def run(kernel, *args):
    """What a kernel returns, as lists of rounded numbers; the kind of exception if it raises one."""
    try:
        result = kernel(*args)
    except Exception as e:
        names = [c.__name__.replace("Aerogel", "Taichi") for c in type(e).__mro__]
        return next((name for name in names if name.startswith("Taichi")), "?")
    return plain(result)


def plain(result):
    if hasattr(result, "to_numpy"):
        return np.round(result.to_numpy().astype(float), 4).tolist()
    if isinstance(result, (list, tuple)):
        return [plain(part) for part in result]
    return None if result is None else round(float(result), 4)
