"""Made-up kernels over split fields, by seed: run by `test_mpi_generated.py` in one process and on several ranks.

``python split_programs.py FIRST END FILE`` writes the fields that each kernel leaves behind, and their gradients.
"""

import importlib.util
import random
import sys
import tempfile
from pathlib import Path

import numpy as np

import aerogel as ti

DTYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32}


class Maker:
    """A kernel of one to three loops, which read neighbours and add to what all ranks have."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        n_axes = self.rng.choice([1, 2, 2, 3])
        self.shape = [self.rng.choice([5, 6, 7, 8, 9, 12]) for _ in range(n_axes)]
        self.periodic = [self.rng.random() < 0.5 for _ in range(n_axes)]
        self.counters = "ijk"[:n_axes]
        self.dtype = self.rng.choice(list(DTYPES))
        self.is_vector = self.rng.random() < 0.3

    def neighbour(self) -> str:
        """The index of a cell at most one away along each axis."""
        index = []
        for counter, n, wraps in zip(self.counters, self.shape, self.periodic):
            by = self.rng.choice([-1, 0, 0, 1])
            there = f"{counter} + {by}"
            if by == 0:
                index.append(counter)
            elif wraps:
                index.append(f"({there} + {n}) % {n}" if self.rng.random() < 0.5 else f"({there}) % {n}")
            else:
                index.append(f"ti.max({there}, 0)" if by < 0 else f"ti.min({there}, {n - 1})")
        return ", ".join(index)

    def loop(self) -> list[str]:
        here = ", ".join(self.counters)
        of, to = self.rng.choice([("f", "g"), ("g", "f"), ("f", "h"), ("h", "g")])
        over = to if self.rng.random() < 0.5 else f"ti.ndrange({', '.join(map(str, self.shape))})"
        lines = [f"for {here} in {over}:", f"    s = {of}[{self.neighbour()}]"]
        lines += [f"    s += {of}[{self.neighbour()}]" for _ in range(self.rng.randint(0, 3))]
        if self.rng.random() < 0.3:
            lines += ["    for m in range(2):", f"        s += {of}[{self.neighbour()}] * (m + 1)"]
        if self.rng.random() < 0.25:
            # To other cells than the own one.
            lines.append(f"    {to}[{self.neighbour()}] += s")
            lines.append(f"    {to}[{self.neighbour()}] += 2 * {of}[{here}]")
            summed = of
        else:
            lines.append(f"    {to}[{here}] = s")
            summed = to
        if self.rng.random() < 0.4:
            lines.append(f"    total[None] += {summed}[{here}]{'[0]' if self.is_vector else ''}")
        elif self.rng.random() < 0.4:
            lines.append(f"    ti.atomic_max(most[i % 3], {of}[{here}]{'[1]' if self.is_vector else ''})")
        return lines

    def source(self) -> str:
        body = [line for _ in range(self.rng.randint(1, 3)) for line in self.loop()]
        head = "import aerogel as ti\n\n\ndef made(f, g, h, total, most):\n    @ti.kernel\n    def kernel():\n"
        return head + "".join(f"        {line}\n" for line in body) + "    return kernel\n"


@ti.kernel
def cost(g: ti.template(), h: ti.template(), total: ti.template(), loss: ti.template()):
    for I in ti.grouped(h):
        by = I.sum() % 3 + 1
        if ti.static(hasattr(h, "n")):
            loss[None] += by * h[I].sum() - g[I].sum()
        else:
            loss[None] += by * h[I] - g[I]
    loss[None] += 2 * total[None]


def run(seed: int) -> list[np.ndarray]:
    """The fields after two launches, and gradients by them. All numbers are small integers, whose sums are exact."""
    maker = Maker(seed)
    # Optimising takes most of the time, and what is split is split before: every fourth program shows that it fits together.
    level = 3 if seed % 4 == 0 else 0
    ti.init(arch=ti.cpu, log_level="error", cpu_max_num_threads=1, offline_cache=False, opt_level=level)
    grid, dtype = ti.mpi.grid(maker.shape, periodic=maker.periodic), getattr(ti, maker.dtype)
    element = (2,) if maker.is_vector else ()
    numbers = np.random.default_rng(seed).integers(-4, 5, (*maker.shape, *element)).astype(DTYPES[maker.dtype])
    fields = []
    for by in (1, 2, 3):
        kind = {"shape": grid, "needs_grad": maker.dtype != "i32"}
        field = ti.Vector.field(2, dtype, **kind) if maker.is_vector else ti.field(dtype, **kind)
        field.from_numpy(numbers * by)
        fields.append(field)
    fields += [ti.field(dtype, n, needs_grad=maker.dtype != "i32") for n in ((), 3)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"made_{seed}.py")
        path.write_text(maker.source())
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        kernel = module.made(*fields)
        kernel()
        kernel()
        found = [field.to_numpy() for field in fields]
        # A maximum over ranks has no gradient.
        if maker.dtype != "i32" and "atomic_max" not in path.read_text():
            found += gradients(kernel, fields)
    return found


def gradients(kernel, fields) -> list[np.ndarray]:
    """Those of a weighted sum after a launch, by the fields before; one number if there are none."""
    loss = ti.field(fields[0].dtype, (), needs_grad=True)
    try:
        with ti.ad.Tape(loss):
            kernel()
            cost(*fields[1:4], loss)
    except ti.TaichiCompilationError:
        return [np.full(1, -1.0)]
    return [field.grad.to_numpy() for field in fields]


if __name__ == "__main__":
    first, end = map(int, sys.argv[1:3])
    found = {f"{seed}.{k}": array for seed in range(first, end) for k, array in enumerate(run(seed))}
    if ti.mpi.rank() == 0:
        np.savez(sys.argv[3], **found)
