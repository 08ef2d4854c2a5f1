"""Convolutions, f32: forwards, and their gradients by the images and by the weights; batches of 32 to 128 images."""

from common import *

SHAPES = {
    # batch, channels, pixels, outputs, kernel, stride, padding
    "3x3": (32, 32, 32, 32, 3, 1, 1),
    "3x3_deep": (64, 64, 16, 64, 3, 1, 1),
    "3x3_of_images": (32, 3, 64, 16, 3, 1, 1),
    "3x3_stride2": (32, 32, 32, 64, 3, 2, 1),
    "5x5": (128, 4, 28, 16, 5, 1, 2),
    "5x5_small": (128, 16, 14, 64, 5, 1, 2),
    "7x7_stride2": (32, 3, 64, 32, 7, 2, 3),
    "1x1": (32, 64, 32, 64, 1, 1, 0),
}
if QUICK:
    SHAPES = {name: (2, *shape[1:]) for name, shape in SHAPES.items()}
KINDS = ("", ":images", ":weights")


def arrays(name):
    """Images, weights, and what the gradient of the result is."""
    b, c, n, o, k, s, p = SHAPES[name]
    m = (n + 2 * p - k) // s + 1
    shapes = [(b, c, n, n), (o, c, k, k), (b, o, m, m)]
    return [rng(i).standard_normal(shape, dtype=np.float32) for i, shape in enumerate(shapes)]


def flops(name):
    b, c, n, o, k, s, p = SHAPES[name]
    m = (n + 2 * p - k) // s + 1
    return 2 * b * o * m * m * c * k * k


CASES = {name + kind: dict(flops=flops(name), tol=1e-3) for name in SHAPES for kind in KINDS}


@impl("aerogel")
def _(case):
    import aerogel as ti

    ti.init(arch=ti.cpu, cpu_max_num_threads=THREADS, log_level="error", offline_cache=False)
    name, _, kind = case.partition(":")
    *_, stride, padding = SHAPES[name]
    given = arrays(name)
    x, w, dy = map(ti.tensor.asarray, given)
    conv = lambda x, w: ti.nn.functional.conv2d(x, w, stride=stride, padding=padding)
    # One operand is new each time: what an old one has computed would be there already.
    new = given[2] if kind == "images" else given[0]
    f = {
        "": lambda x: conv(x, w),
        "images": lambda dy: ti.grad(lambda x: (conv(x, w) * dy).sum())(x),
        "weights": lambda x: ti.grad(lambda w: (conv(x, w) * dy).sum())(w),
    }[kind]
    r = {}
    return (
        lambda: r.update(y=f(r["new"]).realize()),
        lambda: r["y"].numpy(),
        lambda: r.update(new=ti.tensor.asarray(new.copy()).realize()),
    )


@impl("torch")
def _(case):
    import torch

    torch.set_num_threads(THREADS)
    name, _, kind = case.partition(":")
    *_, stride, padding = SHAPES[name]
    x, w, dy = map(torch.from_numpy, arrays(name))
    if not kind:
        f = lambda: torch.nn.functional.conv2d(x, w, stride=stride, padding=padding)
    else:
        at = kind == "weights"
        one = [[stride] * 2, [padding] * 2, [1, 1], False, [0, 0], 1, [not at, at, False]]
        f = lambda: torch.ops.aten.convolution_backward(dy, x, w, None, *one)[at]
    r = {}
    return lambda: r.update(y=f()), lambda: r["y"].numpy()
