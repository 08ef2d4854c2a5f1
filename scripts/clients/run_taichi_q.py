"""A circuit of ten qubits: superposition, entanglement, rotations and a Fourier transform."""

import taichi as ti
from _client import run
from taichi_q import Engine, Gate

engine = Engine(num_qubits=10, state_init=0, device="cpu")


def step():
    engine.gate_num = 0
    for i in range(10):
        engine.Ops(Gate.H(), [i], print_output=False)
    for i in range(9):
        engine.Ops(Gate.X(), [i + 1], [i], print_output=False)
        engine.Ops(Gate.Rx(0.1 * i), [i], print_output=False)
    engine.Ops(Gate.QFT(2), [2, 5], print_output=False)


run(step, lambda: {"states": engine.qubits.states.to_numpy()}, ti.sync)
