"""What the gradient of a step of the material point method costs under a tape, beside the step alone.

    python benches/tape_mpm.py [threads ...]

The soft animal of `examples/diff_mpm.py`, 8,192 particles on 128 x 128 nodes in f64, 20 steps. Steps without a tape, and steps
and their gradient under one, take turns; processor time on one thread, wall time on more: medians of 25.
"""

import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

from diff_mpm import Animal

import aerogel as ti

STEPS, ROUNDS = 20, 25


def main(threads):
    ti.init(arch=ti.cpu, default_fp=ti.f64, cpu_max_num_threads=threads, log_level="error")
    soft = Animal(8192, 128, STEPS, 0.25)
    clock = time.process_time if threads == 1 else time.perf_counter

    def forward():
        soft.begin()
        for t in range(STEPS):
            soft.step(t)
        soft.compare()

    def both():
        with ti.ad.Tape(soft.loss):
            forward()

    forward()
    both()
    taken = []
    for _ in range(ROUNDS):
        begin = clock()
        forward()
        between = clock()
        both()
        taken.append((between - begin, clock() - between))
    alone, under_tape = np.median(taken, axis=0) * 1e3 / STEPS
    print(f"{threads} threads: a step {alone:.3f} ms, with its gradient {under_tape:.3f} ms, {under_tape / alone:.2f} times")


if __name__ == "__main__":
    for threads in [int(n) for n in sys.argv[1:]] or [1, 2]:
        main(threads)
