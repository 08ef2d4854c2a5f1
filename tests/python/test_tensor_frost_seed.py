"""The programs that TensorFrost's author printed, as they stand, under ``python -m aerogel run``."""

import subprocess
import sys

import pytest

START = """
import numpy as np
import TensorFrost as tf
tf.initialize(tf.cpu)
rng = np.random.default_rng(0)
def floats(*shape): return rng.uniform(-1, 1, shape).astype(np.float32)
def close(got, want): np.testing.assert_allclose(got.numpy, want, rtol=2e-5, atol=2e-5)
"""

PROGRAMS = {
    "matmul": """
def matmul():
    A = tf.input([-1, -1], tf.float32)
    N, M = A.shape
    B = tf.input([-1,  M], tf.float32)
    K = B.shape[1]

    C = (tf.sin(A) @ tf.cos(B.T))**2.0

    return C

matmul_compiled = tf.compile(matmul)
A = tf.tensor(np.zeros([100, 100], dtype=np.float32))
B = tf.tensor(np.zeros([100, 100], dtype=np.float32))
C = matmul_compiled(A, B)
Cnp = C.numpy
assert Cnp.shape == (100, 100) and not Cnp.any()
a, b = floats(5, 7), floats(3, 7)
close(matmul_compiled(tf.tensor(a), tf.tensor(b)), (np.sin(a) @ np.cos(b.T))**2)
""",
    "kernel": """
def program():
    A = tf.input([-1, -1], tf.float32)
    B = tf.input(A.shape, tf.float32)

    C = tf.buffer(A.shape, tf.float32)

    with tf.kernel(A.shape) as (i, j):
        C[i, j] = A[i, j] + B[i, j]

    C = (C @ A.T) + tf.unsqueeze(tf.sum(tf.sin(B @ A),axis=-1),axis=-1)
    return C

a, b = floats(6, 6), floats(6, 6)
close(tf.compile(program)(tf.tensor(a), tf.tensor(b)), (a + b) @ a.T + np.sin(b @ a).sum(-1)[:, None])
""",
    "sort": """
def program():
    keys = tf.input([-1], tf.int32)
    element_count = keys.shape[0]
    values = tf.input([element_count], tf.int32)
    log2N = tf.ceil(tf.log2(tf.float(element_count)))
    Nround = tf.int(tf.exp2(log2N))
    sort_id = tf.indices([Nround/2])[0]
    steps = tf.int(log2N*(log2N + 1.0)/2.0)

    with tf.loop(steps) as step:
        j = tf.floor(tf.sqrt(tf.float(2*step) + 1.0) - 0.5)
        n = tf.round(tf.float(step) - 0.5*j*(j+1.0))
        B = tf.int(tf.round(tf.exp2(j-n)))
        mask = tf.select(n < 0.5, 2*B - 1, B)
        e1 = sort_id%B + 2*B*(sort_id/B)
        e2 = e1 ^ mask

        with tf.if_cond((e1 < element_count) & (e2 < element_count)):
            key1, key2 = keys[e1], keys[e2]

            with tf.if_cond(key1 < key2):
                val1, val2 = values[e1], values[e2]
                keys[e1] = key2
                keys[e2] = key1
                values[e1] = val2
                values[e2] = val1
    return keys, values

for n in (7, 64, 100):
    k = rng.permutation(n).astype(np.int32)
    keys, values = tf.compile(program)(tf.tensor(k), tf.tensor(np.arange(n, dtype=np.int32)))
    assert (keys.numpy == np.arange(n)[::-1]).all() and (k[values.numpy] == keys.numpy).all()
""",
    "convolution": """
def conv2d(X, W):
    N, CIN, HI, WI = X.shape
    COUT, CIN, h, w = W.shape
    bi, cout, wi, hi, cin, it = tf.indices([N, COUT, HI - h + 1, WI - w + 1, CIN, h * w])
    i, j = it%w, it/w
    return  tf.sum(tf.sum(X[bi, cin, wi + i, hi + j] * W[cout, cin, i, j]))

def program():
    X = tf.input([-1, -1, -1, -1], tf.float32)
    W = tf.input([-1, -1, -1, -1], tf.float32)
    return conv2d(X, W)

x, w = floats(2, 3, 8, 8), floats(4, 3, 3, 3)
windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
close(tf.compile(program)(tf.tensor(x), tf.tensor(w)), np.einsum("ncyxij,ocij->noyx", windows, w))
""",
    "values that are set": """
def program():
    data = tf.input([-1], tf.float32)
    A, B = tf.input([-1], tf.int32), tf.input([-1], tf.int32)
    begin, end, step = 1, data.shape[0], 2
    a = tf.const(0.0)
    with tf.if_cond(A == B):
      a.val += 1.0

    m = tf.const(-1e10)
    with tf.loop(begin, end, step) as iteration:
      m.val = tf.max(m, data[iteration])
    return a, m

d, p, q = floats(9), np.array([1, 2, 3], np.int32), np.array([1, 5, 3], np.int32)
a, m = tf.compile(program)(tf.tensor(d), tf.tensor(p), tf.tensor(q))
assert a.numpy.tolist() == [1, 0, 1] and m.numpy == d[1::2].max()
""",
    "density": """
sph_rad = 0.7

def sph_kernel(dist, rad):
    return tf.exp(-(dist / rad)**2.0)

def program():
    X = tf.input([-1, 3], tf.float32)
    N = X.shape[0]
    V = tf.input([N, 3], tf.float32)
    i, j, k = tf.indices([N, N, 3])
    dx = X[j,k] - X[i,k]
    dv = V[j,k] - V[i,k]

    # Compute the SPH density
    dist = tf.norm(dx)
    rho = tf.sum(sph_kernel(dist, sph_rad), axis=1)
    d2 = tf.unsqueeze(tf.sum(dx**2.0))
    dvdotdx = tf.unsqueeze(tf.dot(dv, dx)) / (tf.sqrt(d2) + 1e-5)
    Fij = tf.select(i == j, 0.0, dvdotdx * dx * rho[i] * rho[j])
    return rho, tf.sum(Fij, axis=1)

x, v = floats(12, 3), floats(12, 3)
dx, dv = x[None] - x[:, None], v[None] - v[:, None]
d = np.sqrt((dx**2).sum(-1))
rho = np.exp(-(d / 0.7)**2).sum(1)
f = ((dv * dx).sum(-1) / (d + 1e-5) * rho[:, None] * rho[None])[..., None] * dx
f[np.arange(12), np.arange(12)] = 0
got = tf.compile(program)(tf.tensor(x), tf.tensor(v))
close(got[0], rho)
close(got[1], f.sum(1))
""",
    "bodies": """
def vectors():
    X = tf.input([-1, 3], tf.float32)
    V = tf.input(X.shape, tf.float32)
    dx = tf.unsqueeze(X, axis=1) - tf.unsqueeze(X, axis=0)

    d2 = tf.unsqueeze(tf.sum(dx**2.0, axis=-1), axis=-1) + 1e-4
    dist = tf.sqrt(d2)
    Fg = -dx * 1.0 / (d2 * dist)

    Fi = tf.sum(Fg, axis=1)

    Vnew = V + Fi * 0.001
    Xnew = X + Vnew * 0.001
    return Xnew, Vnew

def loops():
    X = tf.input([-1, 3], tf.float32)
    N = X.shape[0]
    V = tf.input([N, 3], tf.float32)
    Fi = tf.buffer([N, 3], tf.float32)

    i, = tf.indices([N])
    Fix, Fiy, Fiz = tf.const(0.0), tf.const(0.0), tf.const(0.0)
    x0, y0, z0 = X[i, 0], X[i, 1], X[i, 2]
    with tf.loop(N) as j:
        x, y, z = X[j, 0], X[j, 1], X[j, 2]
        dx, dy, dz = x - x0, y - y0, z - z0
        d2 = dx*dx + dy*dy + dz*dz
        dist = tf.sqrt(d2 + 1e-4)
        Fg = -dx / (d2 + 1e-4) * 1.0 / dist
        Fix.val += Fg * dx
        Fiy.val += Fg * dy
        Fiz.val += Fg * dz

    Fi[i, 0] = Fix
    Fi[i, 1] = Fiy
    Fi[i, 2] = Fiz

    Vnew = V + Fi * 0.001
    Xnew = X + Vnew * 0.001
    return Xnew, Vnew

x, v = floats(30, 3), floats(30, 3)
dx = x[:, None] - x[None]
d2 = (dx**2).sum(-1, keepdims=True) + 1e-4
vnew = v + (-dx / (d2 * np.sqrt(d2))).sum(1) * 0.001
for got, want in zip(tf.compile(vectors)(tf.tensor(x), tf.tensor(v)), (x + vnew * 0.001, vnew)):
    close(got, want)
# The seed's second form multiplies by the first component's force, as it is printed.
dx = -dx
g = (-dx[..., :1] / d2 / np.sqrt(d2) * dx).sum(1)
vnew = v + g * 0.001
for got, want in zip(tf.compile(loops)(tf.tensor(x), tf.tensor(v)), (x + vnew * 0.001, vnew)):
    close(got, want)
""",
    "text": """
import os
def program():
    return tf.input([-1], tf.float32) * 2.0
compiled = tf.compile(program)
os.makedirs('generated_kernels')
# Save all the compiled functions
cpp_header = tf.get_cpp_header()
all_main_functions = tf.get_all_generated_main_functions() #always in C++
with open('tensorfrost_main.cpp', 'w') as f:
    f.write(cpp_header)
    for func in all_main_functions:
        f.write(func)

# Save all the compiled kernels
all_kernels = tf.get_all_generated_kernels() #depends on the kernel_lang
for i, kernel in enumerate(all_kernels):
    with open('generated_kernels/kernel_{}.hlsl'.format(i), 'w') as f:
        f.write(kernel)
assert 'mul(' in open('tensorfrost_main.cpp').read() and len(all_kernels) == 1
""",
}

NOT_HERE = {
    "window": ('tf.window.show(1280, 720, "a window")', "`window.show` is not here"),
    "module": ("class SmolNet(tf.Module):\n    pass", "`Module` is not here"),
    "gradient": (
        "def f():\n    x = tf.input([-1], tf.float32)\n    return tf.grad(x * x, x)\ntf.compile(f)",
        "`grad` is not here",
    ),
    "codegen": ("tf.initialize(tf.codegen, kernel_lang = tf.hlsl_lang)", "kernels in other languages is not made"),
}


def run(tmp_path, text):
    path = tmp_path / "program.py"
    path.write_text(START + text)
    return subprocess.run([sys.executable, "-m", "aerogel", "run", path], capture_output=True, text=True, cwd=tmp_path)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_of_the_seed(tmp_path, name):
    done = run(tmp_path, PROGRAMS[name])
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", NOT_HERE)
def test_what_the_seed_has_and_is_not_here(tmp_path, name):
    text, says = NOT_HERE[name]
    done = run(tmp_path, text)
    assert done.returncode == 1 and done.stderr.splitlines()[-1].startswith("NotImplementedError: ")
    assert says in done.stderr.splitlines()[-1]
