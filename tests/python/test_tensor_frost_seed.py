"""The programs that TensorFrost's author printed, as they stand, under ``python -m aerogel run``."""

import os
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
    "forces as gradients": """
sph_rad, gravity, viscosity, stiffness, rest_density, dt = 0.7, 0.1, 0.2, 0.3, 0.5, 0.01

def program():
    X = tf.input([-1, 3], tf.float32)
    N = X.shape[0]
    V = tf.input([N, 3], tf.float32)
    i, j, k = tf.indices([N, N, 3])
    dx = X[j,k] - X[i,k]
    dv = V[j,k] - V[i,k]

    def sph_kernel(dist, rad):
        return tf.exp(-(dist / rad)**2.0)

    # Compute the SPH density
    dist = tf.norm(dx)
    rho = tf.sum(sph_kernel(dist, sph_rad), axis=1)

    def pressure(rho):
        return (rho - rest_density)

    # Compute the SPH forces
    d2 = tf.unsqueeze(tf.sum(dx**2.0))
    dist = tf.sqrt(d2 + 1e-4) # soft distance
    Fg = - tf.grad(gravity / dist, dx)
    weight = sph_kernel(dist, sph_rad)
    weightgrad = tf.grad(weight, dx)
    dvdotdx = tf.unsqueeze(tf.dot(dv, dx)) / (tf.sqrt(d2) + 1e-5)
    Fvisc = - viscosity * dvdotdx * weightgrad
    Fsph = stiffness * 0.5 * (pressure(rho[i]) + pressure(rho[j])) * weightgrad
    dist2 = (tf.sqrt(d2) + 1e-8)
    Fspike = - 250.0 * sph_kernel(dist, 1.0*sph_rad) * dx / (dist2*dist2)
    Fij = tf.select(i == j, 0.0, Fg + Fsph + Fvisc + Fspike)
    Fi = tf.sum(Fij, axis=1)

    Vnew = V + Fi * dt
    Xnew = X + V * dt
    return Vnew, Xnew

x, v = floats(9, 3), floats(9, 3)
dx, dv = x[None] - x[:, None], v[None] - v[:, None]
d2 = (dx**2).sum(-1, keepdims=True)
rho = np.exp(-d2[..., 0] / 0.7**2).sum(1)
soft = np.sqrt(d2 + 1e-4)
weight = np.exp(-(soft / 0.7)**2)
fg, slope = 0.1 * dx / soft**3, -2 * dx / 0.7**2 * weight
visc = -0.2 * (dv * dx).sum(-1, keepdims=True) / (np.sqrt(d2) + 1e-5) * slope
sph = 0.15 * (rho[:, None] + rho[None] - 1)[..., None] * slope
spike = -250 * weight * dx / (np.sqrt(d2) + 1e-8)**2
f = np.where(np.eye(9, dtype=bool)[..., None], 0, fg + sph + visc + spike).sum(1)
got = tf.compile(program)(tf.tensor(x), tf.tensor(v))
np.testing.assert_allclose(got[0].numpy, v + f * 0.01, rtol=2e-4, atol=2e-4)
close(got[1], x + v * 0.01)
""",
    "module": """
class SmolNet(tf.Module):
    def __init__(self):
        #specify a custom random scale and offset for the weights when initializing
        self.W = tf.Parameter([16, -1], tf.float32, random_scale=0.01, random_offset=0.0)
        #dont compute gradients for the bias
        self.b = tf.Parameter([-1], tf.float32, optimize=False)

    def assert_parameters(self):
        #makes sure that the compiler knows that b has shape compatible with W
        self.b = tf.assert_tensor(self.b, [self.W.shape[1]], tf.float32)

    def forward(self, x):
        return x @ self.W + self.b

    def loss(self, x, y):
        y_pred = self.forward(x)
        return tf.mean((y - y_pred)**2)

def ComputeForward():
    model = SmolNet()
    #creates tf.input tensors from all the parameters of the module
    model.initialize_input()
    X = tf.input([-1, -1], tf.float32)
    return model.forward(X)

forward = tf.compile(ComputeForward)

model_container = SmolNet()
#creates tf.tensor tensors from all the parameters of the module and initializes them
model_container.initialize_parameters()
#you can change them afterwards too
w, b = floats(16, 10), floats(10)
model_container.W = tf.tensor(w)
model_container.b = tf.tensor(b)

x, y = floats(100, 16), floats(100, 10)
X = tf.tensor(x)
#the module is passed as an argument to the compiled function, in the same order as they are created in the function
Y = forward(model_container, X)
close(Y, x @ w + b)

def OptimizerStep():
    X = tf.input([-1, -1], tf.float32)
    Y = tf.input([-1, 10], tf.float32)

    model = SmolNet()
    opt = tf.optimizers.adam(model, learning_rate=0.001, beta1=0.9, beta2=0.999)
    opt.initialize_input()

    #do a single step of the optimizer (automatically computes gradients and updates the parameters)
    L = opt.step(X, Y)
    #or
    #L = model.loss(X, Y)
    #opt.step(L)

    params = opt.parameters()
    params.append(L)
    return params

step = tf.compile(OptimizerStep)

opt = tf.optimizers.adam(model_container)
opt.initialize_parameters()
model_container.W = tf.tensor(w)
model_container.b = tf.tensor(b)

Y = tf.tensor(y)
residual = x @ w + b - y
losses = []
for k in range(30):
    res = step(X, Y, opt)
    opt.update_parameters(res[:-1])
    losses.append(res[-1].numpy.sum())
    if k == 0:
        np.testing.assert_allclose(res[-1].numpy, (residual**2).mean(-1), rtol=2e-5)
        np.testing.assert_allclose(model_container.W.numpy, w - 0.001 * np.sign(x.T @ residual), atol=2e-5)
assert losses[-1] < losses[0] and (model_container.b.numpy == b).all()

optimizer = tf.optimizers.adam(model_container, beta1 = 0.0, beta2 = 0.999, reg_type = tf.regularizers.l2, reg = 0.02, clip = 0.01)
optimizer.set_clipping_type(tf.clipping.norm)
assert optimizer.clip == 0.01 and optimizer.beta1 == 0
""",
    "window": """
from TensorFrost import imgui
import TensorFrost.window
assert TensorFrost.window is tf.window and imgui is tf.imgui
def render():
    i, j, k = tf.indices([12, 20, 3])
    return tf.float(j) / 20.0 * tf.float(k == 0)
render_image = tf.compile(render)
value, frames = 3.0, 0

#creates a single global window (can only be one at the moment)
tf.window.show(1280, 720, "a window")

while not tf.window.should_close(): #window will close if you press the close button and this will return True
    mx, my = tf.window.get_mouse_position()
    wx, wy = tf.window.get_window_size()

    #simple input example
    if tf.window.is_mouse_button_pressed(tf.window.MOUSE_BUTTON_0):
        tf.imgui.text("Mouse button 0 is pressed")

    if tf.window.is_key_pressed(tf.window.KEY_W):
        tf.imgui.text("W is pressed")

    #ImGui example
    tf.imgui.begin("an imgui window")
    tf.imgui.text("some text")
    value = tf.imgui.slider("slider", value, 0.0, 10.0)
    if(tf.imgui.button("a button")):
        print("button pressed")
    tf.imgui.end()

    #exectute a TensorFrost TensorProgram that outputs a [-1, -1, 3] float32 tensor
    img = render_image()

    #display the image (will be stretched to the window size with nearest neighbor interpolation)
    tf.window.render_frame(img)
    frames += 1
assert (wx, wy) == (1280, 720) and value == 3.0 and frames == 3
""",
}


def run(tmp_path, text):
    path = tmp_path / "program.py"
    path.write_text(START + text)
    # Without a display, whatever the machine has: a window is closed after three frames.
    hidden = ("DISPLAY", "WAYLAND_DISPLAY")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    return subprocess.run(
        [sys.executable, "-m", "aerogel", "run", path],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**environment, "AEROGEL_GUI_FRAMES": "3"},
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_of_the_seed(tmp_path, name):
    done = run(tmp_path, PROGRAMS[name])
    assert done.returncode == 0, done.stderr


def test_code_in_other_languages_is_refused(tmp_path):
    done = run(tmp_path, "tf.initialize(tf.codegen, kernel_lang = tf.hlsl_lang)")
    assert done.returncode == 1 and "does not generate source in other languages" in done.stderr.splitlines()[-1]
