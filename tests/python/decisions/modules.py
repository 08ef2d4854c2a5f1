"""Programs as IR, with their arguments and NumPy's decisions: what another processor runs that has no Python.

`NUMBER.air` is the module as the frontend made it, `NUMBER.py` the program, and `NUMBER.case` has a line for each parameter:

    scalar 3fb999999999999a                     the bits of a double
    array 101 0000803f...                       extents and bytes
    out 12x101 b3ffffff... 00000000...          extents, bytes before the launch, NumPy's bytes after it
"""

import numpy as np

from decisions import programs, run
from decisions.formats import KINDS

# Fields have no place in such a file.
SHAPES = ("parallel", "serial", "inner", "while", "branch", "carried", "until")


def write(folder, n, seed=0, rows=43, n_patterns=10):
    """Writes `n` programs into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    number, written = seed, 0
    while written < n:
        rng = np.random.default_rng([5, number])
        program = programs.drawn(rng, KINDS[number % len(KINDS)], rows, n_patterns, SHAPES)
        number += 1
        if not program.chosen or {"field of one", "vector"} & set(program.sources.values()):
            continue
        run.start("cpu", program.literal)
        values = program.rows(rng)
        given, done = programs.arguments(program, values, rng)
        right = np.where(done, program.right(values), programs.UNTOUCHED).astype(np.int32)
        lines = []
        for name in program.params():
            value = given[name]
            if isinstance(value, float) and name[0] == "a":
                lines.append(f"scalar {np.float64(value).view(np.uint64):016x}")
            elif isinstance(value, np.ndarray):
                after = f" {right.tobytes().hex()}" if name == "out" else ""
                extents = "x".join(map(str, value.shape))
                lines.append(f"{'out' if after else 'array'} {extents} {value.tobytes().hex()}{after}")
        kernel = programs.built(program, values)
        kernel(*(given[name] for name in program.params()))
        (folder / f"{number}.air").write_text(kernel.inspect()["stages"]["frontend"])
        (folder / f"{number}.case").write_text("\n".join(lines) + "\n")
        (folder / f"{number}.py").write_text(program.text())
        written += 1
