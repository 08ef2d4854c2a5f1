"""A gradient through many steps of the material point method, in little memory and in less.

    python benches/checkpoint_mpm.py [steps] [memory ...]

The soft animal of `examples/diff_mpm.py`, 8,192 particles on 128 x 128 nodes, on one thread, so that all numbers come out the
same each time. For each size of memory: states kept, runs of each step besides that on the way back, what the formula says of
them, the time, and the most memory of the process. The gradients must be equal, bit by bit.
"""

import resource
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

from diff_mpm import Animal

import aerogel as ti
from aerogel.ad._schedule import first_states, n_advances


def main(steps, memories):
    ti.init(arch=ti.cpu, default_fp=ti.f64, cpu_max_num_threads=1, log_level="error")
    soft = Animal(8192, 128, steps, 0.25)
    found = []
    for memory in memories:
        begin = time.perf_counter()
        with ti.ad.Tape(soft.loss):
            soft.begin()
            done = ti.ad.checkpoint(soft.step, steps=steps, memory=memory)
            soft.compare()
        seconds = time.perf_counter() - begin
        formula = n_advances(steps, done.n_states) + steps - first_states(steps, done.n_states)[-1]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"{steps} steps in {memory}: {done.n_states} states, {done.n_advanced / steps:.3f} runs of each step "
            f"(formula {formula / steps:.3f}), {seconds:.0f} s, {peak:.2f} GiB at most"
        )
        found.append(soft.weights.grad.to_numpy())
    print("gradients are equal:", all((gradient == found[0]).all() for gradient in found), np.abs(found[0]).max())


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000, sys.argv[2:] or ["64MB", "1.8GB"])
