"""The waveform of two black holes (IMRPhenomXAS), at 200,000 frequencies."""

import numpy as np
import taichi as ti
from _client import run

ti.init(arch=ti.cpu, default_fp=ti.f64)
from tiwave.waveforms import IMRPhenomXAS  # noqa: E402, it makes kernels

frequencies = ti.field(ti.f64, 200_000)
frequencies.from_numpy(np.linspace(20.0, 2000.0, 200_000))
wave = IMRPhenomXAS(frequencies, 20.0)
holes = dict(
    mass_1=36.0, mass_2=29.0, chi_1=-0.4, chi_2=0.02, luminosity_distance=800.0, inclination=0.4, reference_phase=1.2
)


def read():
    found = wave.waveform_container_numpy
    return {name: found[name] for name in ("plus", "cross", "tf")}


run(lambda: wave.update_waveform(holes), read, ti.sync)
