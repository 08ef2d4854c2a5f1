"""Programs in TensorFrost's words, and what it gives for them.

    PYTHON_WITH_TENSORFROST tests/oracle/frost.py tests/python/answers/frost.json

A case is a function of the module, its inputs and what it returns: `tests/python/test_tensor_frost.py` runs the same
functions with `aerogel.tensor.frost` and compares.
"""

import json
import pathlib
import subprocess
import sys

import numpy as np

CASES = {}


def case(*inputs):
    """A program of arrays: its parameters are the module and the inputs."""

    def add(function):
        CASES[function.__name__] = (function, [np.asarray(x) for x in inputs])
        return function

    return add


def f32(*shape, seed=0):
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(np.float32) / 4


def i32(*shape, low=-9, high=9, seed=0):
    return np.random.default_rng(seed).integers(low, high, shape).astype(np.int32)


def run(tf, name):
    """What a case gives, as arrays."""
    function, inputs = CASES[name]
    kinds = {"f": tf.float32, "i": tf.int32, "u": tf.uint32}

    def program():
        given = [tf.input([-1] if x.ndim == 1 else list(x.shape), kinds[x.dtype.kind]) for x in inputs]
        return function(tf, *given)

    results = tf.compile(program)(*(tf.tensor(x) for x in inputs))
    results = results if isinstance(results, (tuple, list)) else [results]
    return [np.asarray(r.numpy) for r in results]


# Shapes.


@case(f32(3, 6))
def split_dim(tf, x):
    return tf.split_dim(x, 2)


@case(f32(6, 3))
def split_first_dim(tf, x):
    return tf.split_dim(x, 3, axis=0)


@case(f32(2, 7))
def split_what_does_not_divide(tf, x):
    return tf.split_dim(x, 3)


@case(f32(2, 3, 4))
def merge_dim(tf, x):
    return tf.merge_dim(x)


@case(f32(2, 3, 4))
def merge_dim_of_axis(tf, x):
    return tf.merge_dim(x, axis=1), tf.merge_dim(x, axis=2), tf.merge_dim(x, axis=-2)


@case(f32(2, 3))
def merge_all(tf, x):
    return tf.merge_dim(x)


@case(f32(2, 7))
def there_and_back(tf, x):
    return tf.merge_dim(tf.split_dim(x, 3), target_size=7)


@case(f32(2, 3))
def reverse(tf, x):
    return tf.reverse(x), tf.reverse(x, axis=0)


@case(f32(2, 3))
def repeat(tf, x):
    return tf.repeat(x, 2), tf.repeat(x, 3, axis=0)


@case(f32(2, 3))
def transpose(tf, x):
    return tf.transpose(x), x.T


@case(f32(2, 3))
def unsqueeze(tf, x):
    return tf.unsqueeze(x), tf.unsqueeze(x, axis=0), tf.squeeze(tf.unsqueeze(x, axis=1), axis=1)


@case(f32(2, 6))
def reshape(tf, x):
    return tf.reshape(x, [3, 4])


@case(f32(2, 3))
def likes(tf, x):
    return tf.zeros_like(x) + 1.0


@case(f32(3, 3))
def eyes(tf, x):
    return tf.eye(4), tf.eye_like(x)


@case(f32(3, 4))
def flat_indices(tf, x):
    i, j = tf.indices(x.shape)
    flat = tf.flat_index([i, j], x.shape)
    back = tf.indices_from_flat_index(flat, x.shape)
    return flat, back[0], back[1]


@case(f32(3, 4))
def grids(tf, x):
    i, j = tf.index_grid([1, 2], [3, 6])
    return i, j


@case(f32(3, 4))
def one_index(tf, x):
    return tf.index(0, x.shape), tf.index(1, x.shape)


@case(f32(3, 4))
def copies(tf, x):
    y = tf.copy(x)
    return y + 1.0


# Sums.


@case(f32(3, 4))
def reductions(tf, x):
    return tf.sum(x), tf.sum(x, axis=0), tf.mean(x), tf.max(x), tf.min(x, axis=0), tf.norm(x)


@case(i32(3, 4))
def reductions_of_integers(tf, x):
    return tf.sum(x), tf.max(x, axis=0), tf.min(x), tf.any(x > 5, axis=0), tf.all(x > -9)


@case(i32(3, 8))
def prefix_sums(tf, x):
    return tf.prefix_sum(x), tf.prefix_sum(x, axis=0)


@case(f32(3, 4), f32(3, 4, seed=1))
def dots(tf, x, y):
    return tf.dot(x, y), tf.matmul(x, y.T), x @ y.T


# Elementwise.


@case(i32(4, 5), i32(1, 5, low=1, seed=1))
def integers(tf, x, y):
    return x / y, x % y, x * y - y, x & y, x | y, x ^ y, x << 2, x >> 1, tf.abs(x), -x


@case(f32(4, 5))
def scalar_functions(tf, x):
    return (
        tf.abs(x), tf.sign(x), tf.floor(x), tf.ceil(x), tf.frac(x), tf.sqr(x), tf.exp2(x), tf.exp(x), tf.sin(x),
        tf.cos(x), tf.tanh(x), tf.atan(x), tf.sqrt(tf.abs(x)), tf.rcp(x + 10), tf.rsqrt(tf.abs(x) + 1), tf.log(tf.abs(x) + 1),
    )  # fmt: skip


@case(f32(4, 5), f32(4, 5, seed=1))
def functions_of_two(tf, x, y):
    return (
        tf.min(x, y), tf.max(x, y), tf.atan2(x, y), tf.lerp(x, y, 0.25), tf.clamp(x, -0.5, 0.5), tf.pow(tf.abs(x) + 1, y),
        tf.smoothstep(-1.0, 1.0, x), tf.fma(x, y, 2.0), tf.select(x > y, x, y),
    )  # fmt: skip


@case(i32(6, low=0))
def hashes(tf, x):
    return tf.pcg(tf.uint(x)), tf.pcgf(tf.uint(x)), tf.reversebits(tf.uint(x))


@case(f32(4))
def bits(tf, x):
    return tf.asuint(x), tf.asint(x), tf.asfloat(tf.asuint(x))


# Memory, loops, branches.


@case(f32(3, 4))
def indices_outside_are_the_nearest(tf, x):
    i, j = tf.indices(x.shape)
    return x[i - 2, j + 3]


@case(i32(9, low=0, high=4))
def scatter_add(tf, x):
    total = tf.zeros([4], tf.int32)
    with tf.kernel(x.shape) as i:
        tf.scatterAdd(total[x[i]], i + 1)
    return total


@case(i32(9, low=0, high=4))
def scatter_max(tf, x):
    most = tf.zeros([4], tf.int32)
    with tf.kernel(x.shape) as i:
        tf.scatterMax(most[x[i]], i * 2)
    return most


@case(np.array([2, 0, 3, 1], np.int32))
def scatter_with_previous(tf, x):
    total = tf.buffer([4], tf.int32)
    before = tf.buffer(x.shape, tf.int32)
    with tf.kernel([4]) as i:
        total[i] = i * 10
    with tf.kernel(x.shape) as i:
        before[i] = tf.scatterAddPrev(total[x[i]], i + 1)
    return total, before


@case(np.arange(10, dtype=np.int32))
def places_in_the_opposite_order(tf, x):
    return tf.random.reverse(x, 10)


@case(f32(6))
def an_operation_of_ones_own(tf, x):
    def own(inputs, tensor, axes):
        return [inputs[0] * 2.0 + inputs[1]]

    def derivative(inputs, gradient, tensor):
        return [gradient * 2.0, gradient]

    tf.register_custom_operation("own", ["ff_f"], own, derivative)
    return tf.custom("own", [x, x * x])


@case(i32(5, low=0, high=5))
def values_that_are_asserted(tf, x):
    n = tf.const(0)
    with tf.loop(3) as k:
        tf.assert_value("k is small", k < 3)
        n.val += k
    return x + n


@case(i32(5))
def known_indices(tf, x):
    out = tf.buffer([3], tf.int32)
    (i,) = tf.indices([3])
    out[i] = x[2] + i
    out[-1] = 70
    out[5] = 80
    return out


@case(f32(7))
def extents_from_floats(tf, x):
    n = tf.int(tf.ceil(tf.log2(tf.float(x.shape[0]))))
    (i,) = tf.indices([n + 1])
    return x[i] * 2.0


@case(f32(5))
def local_memory(tf, x):
    out = tf.buffer(x.shape, tf.float32)
    with tf.kernel(x.shape) as i:
        stack = tf.local_buffer(4, tf.float32)
        with tf.loop(4) as k:
            stack[k] = x[i] * tf.float(k)
        total = tf.const(0.0)
        with tf.loop(4) as k:
            total.val += stack[3 - k] * tf.float(k + 1)
        out[i] = total
    return out


@case(i32(6, low=1, high=30))
def collatz(tf, x):
    out = tf.buffer(x.shape, tf.int32)
    with tf.kernel(x.shape) as i:
        n = tf.const(0)
        at = tf.const(0)
        at.val = x[i]
        with tf.loop(1000):
            with tf.if_cond(at == 1):
                tf.break_loop()
            at.val = tf.select(at % 2 == 1, 3 * at + 1, at / 2)
            n.val += 1
        out[i] = n
    return out


@case(i32(6, low=0, high=9))
def turns_that_are_left(tf, x):
    out = tf.buffer(x.shape, tf.int32)
    with tf.kernel(x.shape) as i:
        n = tf.const(0)
        with tf.loop(10) as k:
            with tf.if_cond(k % 3 == x[i] % 3):
                tf.continue_loop()
            n.val += k
        out[i] = n
    return out


@case(f32(4, 3))
def particles(tf, x):
    dx = tf.unsqueeze(x, axis=1) - tf.unsqueeze(x, axis=0)
    d2 = tf.sum(dx * dx) + 1.0
    return tf.sum(dx / tf.unsqueeze(d2 * tf.sqrt(d2)), axis=1)


def answer(name):
    """What TensorFrost gives, in a process of its own, since some programs end it; nothing if it gives nothing."""
    code = (
        f"import frost, json, TensorFrost as tf; tf.initialize(tf.cpu); print('\\n@' + frost.answer_text(tf, {name!r}))"
    )
    folder = pathlib.Path(__file__).parent
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("@")]
    return json.loads(lines[0][1:]) if lines else None


def answer_text(tf, name):
    """The arrays of a case as text."""
    results = run(tf, name)
    return json.dumps([{"dtype": str(a.dtype), "shape": a.shape, "numbers": a.ravel().tolist()} for a in results])


if __name__ == "__main__":
    answers = {name: answer(name) for name in CASES}
    print("no answer:", *(name for name, found in answers.items() if found is None))
    with open(sys.argv[1], "w") as file:
        rows = [f"{json.dumps(name)}: {json.dumps(found)}" for name, found in answers.items() if found is not None]
        file.write("{\n" + ",\n".join(rows) + "\n}\n")
