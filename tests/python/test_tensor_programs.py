"""Programs of tensors in TensorFrost's words: the ones that its author printed, and what goes wrong."""

import subprocess
import sys

import aerogel as ti
import numpy as np
import pytest
from aerogel.tensor import frost as tf
from aerogel.tensor import programs


@pytest.fixture(autouse=True)
def _start():
    tf.initialize(tf.cpu)


def floats(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def close(got, want, tolerance=1e-5):
    got = np.asarray(got.numpy)
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def test_product_of_matrices():
    def matmul():
        A = tf.input([-1, -1], tf.float32)
        N, M = A.shape
        B = tf.input([-1, M], tf.float32)
        return (tf.sin(A) @ tf.cos(B.T)) ** 2.0

    compiled = tf.compile(matmul)
    for n, m, k in [(3, 4, 5), (1, 7, 2), (8, 8, 8)]:
        a, b = floats(n, m), floats(k, m, seed=1)
        close(compiled(tf.tensor(a), tf.tensor(b)), (np.sin(a) @ np.cos(b.T)) ** 2)
    with pytest.raises(ValueError, match="`input 1`: axis 1 has 5 elements, not 4"):
        compiled(floats(3, 4), floats(2, 5))


def test_kernel_in_a_program():
    @tf.program
    def mixed():
        A = tf.input([-1, -1], tf.float32)
        B = tf.input(A.shape, tf.float32)
        C = tf.buffer(A.shape, tf.float32)
        with tf.kernel(A.shape) as (i, j):
            C[i, j] = A[i, j] + B[i, j]
        return (C @ A.T) + tf.unsqueeze(tf.sum(tf.sin(B @ A), axis=-1), axis=-1)

    a, b = floats(4, 4), floats(4, 4, seed=1)
    close(mixed(a, b), (a + b) @ a.T + np.sin(b @ a).sum(-1)[:, None])


def test_bitonic_sort():
    def sort():
        keys = tf.input([-1], tf.int32)
        element_count = keys.shape[0]
        values = tf.input([element_count], tf.int32)
        log2N = tf.ceil(tf.log2(tf.float(element_count)))
        Nround = tf.int(tf.exp2(log2N))
        sort_id = tf.indices([Nround / 2])[0]
        steps = tf.int(log2N * (log2N + 1.0) / 2.0)
        with tf.loop(steps) as step:
            j = tf.floor(tf.sqrt(tf.float(2 * step) + 1.0) - 0.5)
            n = tf.round(tf.float(step) - 0.5 * j * (j + 1.0))
            B = tf.int(tf.round(tf.exp2(j - n)))
            mask = tf.select(n < 0.5, 2 * B - 1, B)
            e1 = sort_id % B + 2 * B * (sort_id / B)
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

    compiled = tf.compile(sort)
    for n in (5, 16, 33):
        k = np.random.default_rng(n).permutation(n).astype(np.int32)
        given = k.copy()
        got, places = compiled(k, np.arange(n, dtype=np.int32))
        assert got.numpy.tolist() == sorted(k.tolist(), reverse=True)
        assert k[places.numpy].tolist() == got.numpy.tolist()
        assert (k == given).all()


def test_convolution():
    def conv2d():
        X = tf.input([-1, -1, -1, -1], tf.float32)
        W = tf.input([-1, -1, -1, -1], tf.float32)
        N, CIN, HI, WI = X.shape
        COUT, CIN, h, w = W.shape
        bi, cout, wi, hi, cin, it = tf.indices([N, COUT, HI - h + 1, WI - w + 1, CIN, h * w])
        i, j = it % w, it / w
        return tf.sum(tf.sum(X[bi, cin, wi + i, hi + j] * W[cout, cin, i, j]))

    x, w = floats(2, 3, 6, 5), floats(4, 3, 3, 3, seed=1)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    close(tf.compile(conv2d)(x, w), np.einsum("ncyxij,ocij->noyx", windows, w))


def forces(x):
    d = x[None] - x[:, None]
    d2 = (d**2).sum(-1, keepdims=True) + 1e-4
    return d, d2


def test_bodies_as_tensors():
    def step():
        X = tf.input([-1, 3], tf.float32)
        V = tf.input(X.shape, tf.float32)
        dx = tf.unsqueeze(X, axis=1) - tf.unsqueeze(X, axis=0)
        d2 = tf.unsqueeze(tf.sum(dx**2.0, axis=-1), axis=-1) + 1e-4
        dist = tf.sqrt(d2)
        Fg = -dx * 1.0 / (d2 * dist)
        Fi = tf.sum(Fg, axis=1)
        Vnew = V + Fi * 0.001
        return X + Vnew * 0.001, Vnew

    x, v = floats(17, 3), floats(17, 3, seed=1)
    d = x[:, None] - x[None]
    d2 = (d**2).sum(-1, keepdims=True) + 1e-4
    want = v + (-d / (d2 * np.sqrt(d2))).sum(1) * 0.001
    got = tf.compile(step)(x, v)
    close(got[1], want)
    close(got[0], x + want * 0.001)


def test_bodies_in_a_loop():
    def step():
        X = tf.input([-1, 3], tf.float32)
        N = X.shape[0]
        V = tf.input([N, 3], tf.float32)
        Fi = tf.buffer([N, 3], tf.float32)
        (i,) = tf.indices([N])
        Fix, Fiy, Fiz = tf.const(0.0), tf.const(0.0), tf.const(0.0)
        x0, y0, z0 = X[i, 0], X[i, 1], X[i, 2]
        with tf.loop(N) as j:
            x, y, z = X[j, 0], X[j, 1], X[j, 2]
            dx, dy, dz = x - x0, y - y0, z - z0
            d2 = dx * dx + dy * dy + dz * dz + 1e-4
            dist = tf.sqrt(d2)
            Fg = 1.0 / (d2 * dist)
            Fix.val += Fg * dx
            Fiy.val += Fg * dy
            Fiz.val += Fg * dz
        Fi[i, 0] = Fix
        Fi[i, 1] = Fiy
        Fi[i, 2] = Fiz
        return V + Fi * 0.001

    x, v = floats(9, 3), floats(9, 3, seed=1)
    d = x[None] - x[:, None]
    d2 = (d**2).sum(-1, keepdims=True) + 1e-4
    close(tf.compile(step)(x, v), v + (d / (d2 * np.sqrt(d2))).sum(1) * 0.001)


def test_points_leave_a_loop_one_by_one():
    def mandelbrot():
        C = tf.input([-1, 2], tf.float32)
        (i,) = tf.indices([C.shape[0]])
        cx, cy = C[i, 0], C[i, 1]
        x, y, n = tf.const(0.0), tf.const(0.0), tf.const(0)
        with tf.loop(50) as k:
            with tf.if_cond(x * x + y * y > 4.0):
                tf.break_loop()
            t = x * x - y * y + cx
            y.val = 2.0 * x * y + cy
            x.val = t
            n.val += 1
        return n

    c = (floats(200, 2) * 2).astype(np.float32)
    want = []
    for cx, cy in c:
        x = y = np.float32(0)
        n = 0
        for _ in range(50):
            if x * x + y * y > 4:
                break
            x, y = x * x - y * y + cx, np.float32(2) * x * y + cy
            n += 1
        want.append(n)
    got = tf.compile(mandelbrot)(c).numpy
    assert (got == want).mean() > 0.97


def test_bounds_of_each_point():
    def sums():
        n = tf.input([-1], tf.int32)
        total = tf.const(0)
        with tf.loop(1, n, 2) as k:
            total.val += k
        return total

    n = np.array([0, 1, 5, 10], np.int32)
    assert tf.compile(sums)(n).numpy.tolist() == [sum(range(1, m, 2)) for m in n]


def test_branches_of_the_host():
    def collatz():
        start = tf.input([1], tf.int32)
        x = tf.const(0)
        x.val = start[tf.const(0)]
        steps = tf.const(0)
        with tf.loop(1000) as k:
            with tf.if_cond(x == 1):
                tf.break_loop()
            odd = x % 2
            with tf.if_cond(odd == 1):
                x.val = 3 * x + 1
            with tf.if_cond(odd == 0):
                x.val = x / 2
            steps.val += 1
        return steps

    assert tf.compile(collatz)(np.array([27], np.int32)).numpy == 111


def test_scatters():
    def bins():
        at = tf.input([-1], tf.int32)
        out = tf.buffer([4], tf.int32)
        low = tf.buffer([4], tf.int32)
        (i,) = tf.indices(at.shape)
        tf.scatterAdd(out, at[i], tf.const(1))
        tf.scatterMax(low, at[i], i)
        return out, low

    at = np.array([0, 3, 3, 1, 3], np.int32)
    counts, last = tf.compile(bins)(at)
    assert counts.numpy.tolist() == [1, 1, 0, 3] and last.numpy.tolist() == [0, 3, 0, 4]


def test_indices_outside_are_the_nearest():
    def blur():
        x = tf.input([-1], tf.float32)
        (i,) = tf.indices(x.shape)
        return (x[i - 1] + x[i] + x[i + 1]) / 3.0

    x = floats(6)
    padded = np.pad(x, 1, "edge")
    close(tf.compile(blur)(x), (padded[:-2] + padded[1:-1] + padded[2:]) / 3)


def test_hash():
    def draw():
        (i,) = tf.indices([4])
        return tf.pcg(tf.uint(i))

    def pcg(v):
        state = (v * 747796405 + 2891336453) % 2**32
        word = (((state >> ((state >> 28) + 4)) ^ state) * 277803737) % 2**32
        return (word >> 22) ^ word

    assert tf.compile(draw)().numpy.tolist() == [pcg(v) for v in range(4)]


def test_mistakes():
    with pytest.raises(RuntimeError, match="while they are traced"):
        tf.input([3], tf.float32)
    with pytest.raises(RuntimeError, match="`break_loop` is outside of a loop"):
        tf.compile(lambda: tf.break_loop())

    def one():
        return tf.input([-1, 3], tf.float32) * 2.0

    compiled = tf.compile(one)
    with pytest.raises(TypeError, match="`one` takes 1 tensors, 2 were passed"):
        compiled(floats(2, 3), floats(2, 3))
    with pytest.raises(ValueError, match="input 0 of `one`: axis 1 takes 3 elements, not 4"):
        compiled(floats(2, 4))
    with pytest.raises(TypeError, match="input 0 of `one` takes elements of `f32`, not of `i32`"):
        compiled(np.zeros((2, 3), np.int32))
    of_another = []

    def other():
        of_another.append(tf.input([3], tf.float32))
        return of_another[0]

    tf.compile(other)
    with pytest.raises(ValueError, match="make it an `input`"):
        tf.compile(lambda: tf.input([3], tf.float32) + of_another[0])


def test_programs_of_aerogels_own():
    @programs.program
    def half():
        x = programs.input([-1], ti.i32)
        return x / 2

    assert half(np.array([1, 2], np.int32)).tolist() == [0.5, 1.0]
    assert "in b0" in half.text


def test_program_runs_unchanged(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(
        "import TensorFrost as tf\nimport numpy as np\ntf.initialize(tf.cpu)\n"
        "def f():\n    A = tf.input([-1], tf.float32)\n    return A * 2.0\n"
        "print(tf.compile(f)(tf.tensor(np.arange(3, dtype=np.float32))).numpy)\n"
    )
    done = subprocess.run([sys.executable, "-m", "aerogel", "run", path], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[0. 2. 4.]"


def test_what_became_of_statements():
    T = ti.tensor
    x = T.asarray(floats(1000))
    text = T.explain((x * x + x).sum())
    assert text.startswith("3 statements became")
    assert "computed where they are read: t1, t2" in text and "it is a result" in text
    assert T.explain(x).startswith("0 statements became 0 kernels")

    @programs.program
    def many():
        a = programs.input([-1, 2], ti.f32)
        total = programs.const(0.0)
        with programs.loop(3):
            total.val += (a * a).sum()
        values, _ = T.sort(a, 0), T.linalg.inv(a.T @ a)
        return total, values

    text = many.explain()
    assert "loop of the host" in text and "library: sort" in text
    assert "several statements store to it" in text and "a library call reads or writes it" in text
    # What nobody asks for is not computed.
    assert "inv" not in text
    with pytest.raises(ValueError, match="program.explain"):

        @programs.program
        def inside():
            T.explain(programs.input([-1], ti.f32))

        inside.compile()
