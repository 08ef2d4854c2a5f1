"""What the programs of this folder share: this module measures the steps of their packages and saves the results."""

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

REPEATS = 5  # steps that are timed after the first one


def run(step: Callable[[], Any], read: Callable[[], dict[str, Any]], sync: Callable[[], Any]) -> None:
    """Calls `step` and saves what `read` returns then, with times of the first step and the fastest later one.

    `read` returns a dict of arrays, which are those of the first step: a step may change its state. `sync` waits for
    kernels. The results go to the file named by `CLIENT_OUT`, and a summary is printed.
    """
    began = time.perf_counter()
    step()
    sync()
    first = time.perf_counter() - began
    arrays = {name: np.array(value) for name, value in read().items()}
    later = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        step()
        sync()
        later.append(time.perf_counter() - began)
    out = os.environ.get("CLIENT_OUT")
    if out:
        np.savez(out, first_s=first, later_s=min(later), **arrays)
    for name, value in arrays.items():
        print(f"{name}: {value.shape} {value.dtype}, sum {value.sum()}")
    print(f"first {first:.3f} s, later {min(later):.4f} s")
