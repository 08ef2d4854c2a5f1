"""Tensors without ``ti.init``: they begin with default settings at their first use, and live on when it is called."""

import os
import subprocess
import sys

import pytest

HEAD = """
import aerogel as ti
from aerogel import xp
from aerogel.tensor import programs as p

x = xp.ones(3)
"""

TAIL = """
pending = x / 4
ti.init(arch=ti.cpu, default_fp=ti.f64, log_level="error")
assert x.tolist() == [1, 1, 1] and pending.tolist() == [0.25] * 3 and x.dtype == pending.dtype == ti.f32
assert xp.ones(2).dtype == ti.f64 and (xp.ones(3) + x).tolist() == [2, 2, 2]
"""

USES = {
    "a reduction": "print(xp.sum(x).item(), xp.all(x == 1).item())",
    "printing": "print(x)",
    "a float": "print(float(xp.max(x)))",
    "DLPack": "import numpy as np; print(np.from_dlpack(x).tolist())",
    "NumPy": "import numpy as np; print(np.asarray(x).sum(), x.numpy().dtype)",
    "a list": "print(ti.tensor.asarray([1, 2]).tolist())",
    "a small part": "print(x[1].item())",
    "a store": "x2 = xp.zeros(3); x2[1] = 5; print(x2.tolist())",
    "random numbers": "ti.tensor.random.seed(1); print(ti.tensor.random.rand(2).shape)",
    "a matrix": "print(xp.linalg.det(xp.eye(2)).item())",
    "vmap": "print(ti.vmap(lambda row: row.sum())(xp.ones((2, 3))).tolist())",
    "explain": "print(ti.tensor.explain(x + 1).splitlines()[0])",
    "a program": """
@p.program
def twice():
    a = p.input([-1], ti.f32)
    return a * 2
print(twice(x).tolist())
""",
    "a program without inputs": """
@p.program
def four():
    n = p.const(0)
    with p.loop(4):
        n.val += 1
    return n
print(four().item())
""",
    "a kernel": """
@ti.kernel
def total(a: ti.types.ndarray(), by: float) -> float:
    s = 0.0
    for i in a:
        s += a[i] * by
    return s
print(total(x, 2.0), total(by=3.0, a=x))
""",
}
PRINTED = {
    "a reduction": "3.0 True",
    "printing": "tensor([1., 1., 1.], dtype=f32)",
    "a float": "1.0",
    "DLPack": "[1.0, 1.0, 1.0]",
    "NumPy": "3.0 float32",
    "a list": "[1, 2]",
    "a small part": "1.0",
    "a store": "[0.0, 5.0, 0.0]",
    "random numbers": "(2,)",
    "a matrix": "1.0",
    "vmap": "[3.0, 3.0]",
    "explain": "3 statements became 1 kernel; 1 of 3 temporaries is materialised",
    "a program": "[2.0, 2.0, 2.0]",
    "a program without inputs": "4",
    "a kernel": "6.0 9.0",
}


def run(folder, program, **environment):
    """What a program prints in a process of its own."""
    path = folder / "program.py"
    path.write_text(program)
    ours = {key: value for key, value in os.environ.items() if key not in ("TI_DEFAULT_FP", "AEROGEL_DEFAULT_FP")}
    done = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, timeout=300, env={**ours, **environment}
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


@pytest.mark.parametrize("use", USES)
def test_without_init_and_with_one_afterwards(tmp_path, use):
    assert run(tmp_path, HEAD + USES[use] + TAIL) == PRINTED[use] + "\n"


def test_the_environment_holds(tmp_path):
    program = HEAD + "print(x.dtype, xp.zeros(1, dtype=float).dtype, float(x.sum()), ti.cfg.arch, ti.cfg.default_fp)"
    assert run(tmp_path, program, TI_DEFAULT_FP="64", AEROGEL_ARCH="interp") == "f64 f64 3.0 Arch.interp f64\n"
    assert run(tmp_path, program.replace("x.dtype, ", ""), AEROGEL_DEFAULT_FP="64", AEROGEL_DEBUG="1").startswith("f64")


def test_kernels_and_fields_want_init(tmp_path):
    program = """
import aerogel as ti

@ti.kernel
def one() -> int:
    return 1

for use in (one, lambda: ti.field(ti.f32, 3), lambda: ti.ndarray(ti.f32, 3)):
    try:
        use()
    except ti.TaichiRuntimeError as e:
        print(e)
"""
    assert run(tmp_path, program) == "call ti.init() first: there is no program\n" * 3


def test_after_reset(tmp_path):
    program = HEAD + "ti.init(log_level='error', default_fp=ti.f64); y = x + 1; ti.reset(); print(y, xp.ones(1).sum())"
    assert run(tmp_path, program) == "tensor([2., 2., 2.], dtype=f32) tensor(1., dtype=f32)\n"


def test_threads_begin_one_program(tmp_path):
    program = """
import threading
from aerogel import xp

x, found = xp.arange(100), []
threads = [threading.Thread(target=lambda k=k: found.append(int((x * k).sum()))) for k in range(8)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(sorted(found) == [4950 * k for k in range(8)])
"""
    assert run(tmp_path, program) == "True\n"
