"""Runs generated programs, tensors and quotients until enough decisions were taken."""

import itertools
from dataclasses import dataclass, field

import numpy as np

import aerogel as ti
from decisions import programs, quotients, tensors
from decisions.formats import KINDS


@dataclass
class Tally:
    """How many decisions were taken, and how those that differ are reported."""

    decisions: int = 0
    failures: list = field(default_factory=list)

    def add(self, decisions, failures, seed):
        """Counts what the program of a seed decided."""
        self.decisions += decisions
        self.failures += [(seed, failure) for failure in failures]

    def __str__(self):
        lines = [f"{len(self.failures)} patterns differ in {self.decisions} decisions"]
        lines += [f"seed {seed}: {failure}" for seed, failure in self.failures[:20]]
        if self.failures:
            lines += ["", self.failures[0][1].program]
        return "\n".join(lines)


def start(arch, literal):
    """Begins a program; the environment decides about `fast_math`, as for any program."""
    ti.init(arch=arch, default_fp=getattr(ti, literal), log_level="error")


def run_programs(arch, n, seed=0, kinds=KINDS, rows=101, n_patterns=12):
    """About `n` decisions by kernels, from a seed on."""
    tally = Tally()
    for number in itertools.count(seed):
        if tally.decisions >= n:
            return tally
        rng = np.random.default_rng([1, number])
        program = programs.drawn(rng, kinds[number % len(kinds)], rows, n_patterns)
        if program.chosen:
            start(arch, program.literal)
            tally.add(*programs.check(program, rng), number)


def run_tensors(arch, n, seed=0, kinds=KINDS, rows=1003):
    """About `n` decisions by tensors."""
    tally = Tally()
    start(arch, "f32")
    for number in itertools.count(seed):
        if tally.decisions >= n:
            return tally
        rng = np.random.default_rng([2, number])
        tally.add(*tensors.check(rng, kinds[number % len(kinds)], rows, 6), number)


def run_quotients(arch, n, seed=0, kinds=KINDS):
    """About `n` quotients of each kind, and Python's integers on a sample."""
    tally = Tally()
    for kind in kinds:
        start(arch, kind)
        rng = np.random.default_rng([3, seed])
        tally.add(*quotients.check(kind, rng, n), seed)
    disagreeing = quotients.sample(np.random.default_rng([4, seed]), min(n // 10, 100_000))
    assert not disagreeing.size, "NumPy's division is not that of integers"
    return tally
