"""Programs whose sizes of tiles and limits of fusion are chosen by measurement. Times are not tested."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import aerogel as ti
from aerogel.tensor import programs

CHOICE = r"inline_cost=\d+ fused_statements=\d+ tile_rows=\d+ tile_block=\d+"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AEROGEL_OFFLINE_CACHE", "1")
    start(tmp_path)
    yield tmp_path
    ti.reset()


def start(folder, **options):
    ti.init(arch=ti.cpu, log_level="error", offline_cache=True, offline_cache_file_path=str(folder), **options)


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def layers(x, w):
    y = ti.tensor.tanh(x @ w)
    return ti.tensor.softmax(y * 2 + 1, axis=1), (y * y).sum(axis=0), ti.tensor.exp(y) - y


def choices(folder):
    return [file for file in Path(folder).glob("*.kernel") if b"choice of a tuner\n" in file.read_bytes()]


def test_a_choice_is_stored_and_results_are_equal(cache):
    x, w = drawn(96, 64), drawn(64, 80, seed=1)
    plain = [np.asarray(y) for y in ti.program(layers)(x, w)]
    tuned = ti.program(layers)
    said = tuned.tune(x, w)
    measured = re.fullmatch(CHOICE + r", the fastest of (\d+) measured", said)
    assert measured and int(measured[1]) >= 3
    assert f"tuned: {said}\n" in tuned.explain()
    for _ in range(2):
        for made, wanted in zip(tuned(x, w), plain):
            np.testing.assert_array_equal(np.asarray(made), wanted)
    assert len(choices(cache)) == 1
    # The same text takes it, another one does not.
    assert ti.program(layers).tune(x, w) == said.split(",")[0] + ", from the offline cache"
    assert ti.program(lambda x, w: layers(x, w)[0] + 1).tune(x, w).endswith("measured")
    assert len(choices(cache)) == 2


PROGRAM = """
import sys
import numpy as np
import aerogel as ti
from aerogel.tensor import programs

ti.init(arch=ti.cpu, log_level="error", offline_cache=True, offline_cache_file_path=sys.argv[1])


@ti.program
def step(x, dt):
    return (ti.tensor.roll(x, 1) - x) * dt, (x * x).sum()


x = np.arange(5000, dtype=np.float32)
print(step.tune(x, 0.5))
print(step.explain().splitlines()[-1])
print(float(step(x, 0.5)[1].item()))
"""


def test_another_process_takes_it_and_a_damaged_file_is_ignored(cache):
    def run():
        command = [sys.executable, "-c", PROGRAM, str(cache)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=os.environ)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    first, again = run(), run()
    assert first[0].endswith("measured") and again[0] == first[0].split(",")[0] + ", from the offline cache"
    assert again[1] == f"tuned: {again[0]}" and again[2] == first[2]
    (file,) = choices(cache)
    good = file.read_bytes()
    for bad in (good[:-1], good[:-1] + bytes([good[-1] ^ 1]), b"", good + b"0"):
        file.write_bytes(bad)
        assert run()[0].endswith("measured")
        assert choices(cache) == [file] and len(file.read_bytes()) >= len(good) - 8


def test_threads_are_part_of_the_key(cache):
    x = drawn(400)
    program = ti.program(lambda x: ti.tensor.sin(x) + ti.tensor.cumsum(x))
    assert program.tune(x).endswith("measured")
    start(cache, cpu_max_num_threads=1)
    assert program.tune(x).endswith("measured")
    assert len(choices(cache)) == 2
    # Without a cache, nothing is stored.
    ti.init(arch=ti.cpu, log_level="error", offline_cache=False)
    assert program.tune(x).endswith("measured")


def test_constants_and_inputs_of_the_function():
    bias = ti.tensor.asarray(drawn(30))
    program = ti.program(lambda x: ti.tensor.maximum(x + bias, 0) * 2)
    x = drawn(7, 30, seed=2)
    expected = np.asarray(program(x))
    program.tune(x)
    np.testing.assert_array_equal(np.asarray(program(x)), expected)

    @ti.program
    def own():
        return programs.input([-1], ti.f32) * 2

    assert "inline_cost" in own.tune(drawn(9))


def test_what_cannot_be_tuned_is_an_error(tmp_path):
    x = drawn(8)
    field = ti.field(ti.f32, 8)

    @ti.kernel
    def doubled(a: ti.types.ndarray()):
        for i in a:
            a[i] *= 2

    def calls(x):
        y = x + 1
        doubled(y)
        return y

    program = ti.program(lambda x: x * 2)
    with pytest.raises(TypeError, match="argument"):
        program.tune()
    with pytest.raises(TypeError, match="too many positional arguments"):
        program.tune(x, x)
    with pytest.raises(TypeError, match="a program that calls kernels or functions of Python cannot be tuned"):
        ti.program(calls).tune(x)
    with pytest.raises(TypeError, match="a program that uses fields cannot be tuned"):
        ti.program(lambda x: x + ti.tensor.asarray(field)).tune(x)
    with pytest.raises(IndexError):
        ti.program(lambda x, k: x[k]).tune(x, np.array([9], np.int32))
    with pytest.raises(RuntimeError, match="is called while a program is traced"):
        ti.program(lambda x: program.tune(x))(x)
    ti.init(arch=ti.interp, log_level="error")
    with pytest.raises(RuntimeError, match="programs are tuned for processors"):
        program.tune(x)
