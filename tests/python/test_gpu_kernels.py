"""What the code of the benchmarks' kernels takes on a GPU, held under bounds: counts of the machine, and the assembler's report."""

import importlib.util
import sys
from pathlib import Path

import pytest

path = Path(__file__).parents[2] / "scripts" / "gpu_counts.py"
spec = importlib.util.spec_from_file_location("gpu_counts", path)
gpu_counts = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = gpu_counts
spec.loader.exec_module(gpu_counts)

# Registers, bytes moved over bytes needed, bank conflicts. A card has 65,536 registers for 2,048 threads: with more than
# 32 for each, fewer run at once.
BOUNDS = {
    "triad": (32, 1.1, 0),
    "stencil": (32, 3.5, 0),
    "reduce": (32, 1.1, 0),
    "histogram": (40, 1.1, 0),
    "nbody": (40, 40, 0),
    "laplacian": (40, 6, 800),
    "scatter": (40, 30, 0),
    "particles": (80, 5.5, 800),
    "matmul": (48, 4, 0),
}


@pytest.fixture(scope="module")
def rows():
    ptxas = gpu_counts.assembler()
    if ptxas is None:
        pytest.skip("there is no ptxas beside this Python")
    return {row.kernel: row for row in gpu_counts.measure(ptxas)}


def test_registers_transactions_and_conflicts(rows):
    assert rows.keys() == BOUNDS.keys()
    for name, (registers, moved, conflicts) in BOUNDS.items():
        row = rows[name]
        assert 8 <= row.registers <= registers, row
        assert row.spilled == 0, row
        assert 1 <= row.moved / row.needed <= moved, row
        assert row.counts["conflicts"] <= conflicts, row


def test_a_reduction_is_one_atomic_of_a_block(rows):
    # The machine runs four blocks at once.
    assert rows["reduce"].counts["atomics"] == 4


def test_a_histogram_is_one_atomic_for_each_bin_and_block(rows):
    assert rows["histogram"].counts["atomics"] <= 64 * rows["histogram"].counts["blocks"]
