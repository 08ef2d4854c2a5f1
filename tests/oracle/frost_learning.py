"""Training in TensorFrost's words, and the numbers that it gives.

    PYTHON_WITH_TENSORFROST tests/oracle/frost_learning.py tests/python/answers/frost_learning.json

A case is an optimizer of the module below: `tests/python/test_tensor_frost_learning.py` runs the same steps with
`aerogel.tensor.frost` and compares the losses and all parameters.
"""

import json
import sys

import numpy as np

W = [[0.1, 0.2], [-0.3, 0.4], [0.5, -0.6]]
B, SCALE = [0.3, -0.1], [1.0, 2.0]
X = [[1.0, 2, 3], [0, 1, 0], [2, 1, 1], [1, 1, -1]]
Y = [[1.0, 0], [2, 1], [0, 1], [1, 1]]


def clipped(tf, optimizer, kind):
    optimizer.set_clipping_type(getattr(tf.clipping, kind))
    return optimizer


#: The optimizer of a module, by what it shows.
CASES = {
    "sgd": lambda tf, net: tf.optimizers.sgd(net, learning_rate=0.1),
    "adam": lambda tf, net: tf.optimizers.adam(net, learning_rate=0.1),
    "adam, other betas": lambda tf, net: tf.optimizers.adam(net, learning_rate=0.1, beta1=0.0, beta2=0.5),
    "rmsprop": lambda tf, net: tf.optimizers.rmsprop(net, learning_rate=0.1),
    "rmsprop, other decay": lambda tf, net: tf.optimizers.rmsprop(net, learning_rate=0.1, decay=0.5),
    "clamp": lambda tf, net: tf.optimizers.sgd(net, learning_rate=0.1, clip=0.05),
    "norm": lambda tf, net: clipped(tf, tf.optimizers.sgd(net, learning_rate=0.1, clip=0.05), "norm"),
    "norm, large": lambda tf, net: clipped(tf, tf.optimizers.sgd(net, learning_rate=0.1, clip=50.0), "norm"),
    "no clipping": lambda tf, net: clipped(tf, tf.optimizers.sgd(net, learning_rate=0.1, clip=0.05), "none"),
    "l1": lambda tf, net: tf.optimizers.sgd(net, reg_type=tf.regularizers.l1, learning_rate=0.1, reg=0.02),
    "l2": lambda tf, net: tf.optimizers.sgd(net, reg_type=tf.regularizers.l2, learning_rate=0.1, reg=0.02),
    "all": lambda tf, net: clipped(
        tf,
        tf.optimizers.adam(net, reg_type=tf.regularizers.l2, learning_rate=0.1, beta1=0.5, reg=0.02, clip=0.5),
        "norm",
    ),
}


def net_class(tf):
    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            self.W = tf.Parameter([3, 2], tf.float32)
            self.b = tf.Parameter([2], tf.float32)
            self.scale = tf.Parameter([2], tf.float32, optimize=False)

        def loss(self, x, y):
            return tf.mean(tf.mean((x @ self.W + self.b * self.scale - y) ** 2.0))

    return Net


def run(tf, name):
    """Three steps: after each the loss and all parameters, those of the optimizer too."""
    net = net_class(tf)

    def step():
        x = tf.input([-1, 3], tf.float32)
        y = tf.input([x.shape[0], 2], tf.float32)
        optimizer = CASES[name](tf, net())
        optimizer.initialize_input()
        loss = optimizer.step(x, y)
        return [*optimizer.parameters(), loss]

    compiled = tf.compile(step)
    optimizer = CASES[name](tf, net())
    optimizer.initialize_parameters()
    for key, value in (("W", W), ("b", B), ("scale", SCALE)):
        setattr(optimizer.net, key, tf.tensor(np.array(value, np.float32)))
    out = []
    for _ in range(3):
        *parameters, loss = compiled(*(tf.tensor(np.array(a, np.float32)) for a in (X, Y)), optimizer)
        optimizer.update_parameters(parameters)
        out += [loss.numpy, *(p.numpy for p in optimizer.parameters())]
    return [np.asarray(a) for a in out]


if __name__ == "__main__":
    import TensorFrost as tf

    tf.initialize(tf.cpu)
    answers = {name: [{"numbers": a.ravel().tolist(), "shape": a.shape} for a in run(tf, name)] for name in CASES}
    with open(sys.argv[1], "w") as f:
        json.dump(answers, f, indent=0)
        f.write("\n")
