"""How many kernels and temporaries in memory programs in TensorFrost's words come to, here or there.

PYTHON tests/oracle/materialised.py            here
PYTHON_WITH_TENSORFROST tests/oracle/materialised.py
"""

import contextlib
import importlib.util
import io
import re

PROGRAMS = {}


def program(function):
    """A program of the module."""
    PROGRAMS[function.__name__] = function
    return function


@program
def chain(tf):
    x = tf.input([-1], tf.float32)
    for _ in range(20):
        x = tf.sin(x) * 0.5 + x
    return x


@program
def n_body(tf):
    x = tf.input([-1, 3], tf.float32)
    d = tf.unsqueeze(x, axis=1) - tf.unsqueeze(x, axis=0)
    r2 = tf.sum(d * d) + 1e-4
    return tf.sum(d / tf.unsqueeze(r2 * tf.sqrt(r2)), axis=1)


@program
def stencils(tf):
    x = tf.input([-1, -1], tf.float32)
    for _ in range(4):
        i, j = x.indices if hasattr(x, "indices") else tf.indices(x.shape)
        x = 0.25 * (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1])
    return x


@program
def softmax(tf):
    x = tf.input([-1, -1], tf.float32)
    e = tf.exp(x - tf.unsqueeze(tf.max(x)))
    return e / tf.unsqueeze(tf.sum(e))


@program
def layer_norm(tf):
    x = tf.input([-1, -1], tf.float32)
    d = x - tf.unsqueeze(tf.mean(x))
    return d / tf.sqrt(tf.unsqueeze(tf.mean(d * d)) + 1e-5)


@program
def dense_layer(tf):
    x, w, b = tf.input([64, 128], tf.float32), tf.input([128, 32], tf.float32), tf.input([32], tf.float32)
    y = tf.matmul(x, w) + tf.unsqueeze(b, axis=0)
    return tf.select(y > 0.0, y, 0.1 * y)


@program
def attention(tf):
    q, k, v = (tf.input([64, 32], tf.float32) for _ in range(3))
    s = tf.matmul(q, tf.transpose(k)) * 0.176
    e = tf.exp(s - tf.unsqueeze(tf.max(s)))
    return tf.matmul(e / tf.unsqueeze(tf.sum(e)), v)


@program
def convolution(tf):
    x, w = tf.input([-1, -1], tf.float32), tf.input([3, 3], tf.float32)
    i, j, a, b = tf.indices([x.shape[0], x.shape[1], 3, 3])
    return tf.sum(tf.sum(x[i + a - 1, j + b - 1] * w[a, b]))


@program
def mandelbrot(tf):
    c = tf.input([-1, -1], tf.float32)
    d = tf.input([c.shape[0], c.shape[1]], tf.float32)
    re_, im = c, d
    for _ in range(8):
        re_, im = re_ * re_ - im * im + c, 2.0 * re_ * im + d
    return re_ * re_ + im * im


def _named(tf, name):
    # Its name is one of C++'s.
    def traced():
        return PROGRAMS[name](tf)

    return traced


def theirs(name):
    """What TensorFrost says of a program that it compiles."""
    import TensorFrost as tf

    said = io.StringIO()
    with contextlib.suppress(Exception), contextlib.redirect_stdout(said):
        tf.compile(_named(tf, name))
    text = said.getvalue()
    kernels, buffers = (re.search(rf"{what}: (\d+)", text) for what in ("Kernel count", "Intermediate buffers"))
    return (int(kernels[1]), int(buffers[1])) if kernels and buffers else ("-", "-")


def ours(name):
    """What `explain` says of a program; what it gives is no temporary."""
    from aerogel.tensor import frost as tf

    text = tf.compile(_named(tf, name)).explain()
    kernels = int(re.search(r"became (\d+) kernel", text)[1])
    return kernels, len(re.findall(r", materialised: ", text)) - len(re.findall(r"materialised: it is a result", text))


if __name__ == "__main__":
    is_there = importlib.util.find_spec("TensorFrost") is not None
    if is_there:
        import TensorFrost

        TensorFrost.initialize(TensorFrost.cpu)
    else:
        from aerogel.tensor import frost

        frost.initialize(frost.cpu)
    for name in PROGRAMS:
        print(name, *(theirs if is_there else ours)(name))
