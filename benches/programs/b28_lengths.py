"""Arrays of fifty lengths, each made a tensor once (ms for all): what costs when no two arrays are alike. `constants`: one length,
and fifty numbers beside it. First calls are not timed, so that two of the lengths have come before."""

from common import *

N = size(1000, 200)
CASES = {
    c: dict(tol=1e-4) for c in ("normalised", "softmax", "differences", "pairs", "products", "columns", "constants")
}
ARRAYS = [rng(k).random(N + k, dtype=np.float32) for k in range(50)]
SQUARE = [a[: N // 10 + k] for k, a in enumerate(ARRAYS)]


def programs(xp):
    """The cases in the words that NumPy, JAX and Aerogel share."""

    def normalised(x, k):
        return (x - xp.mean(x)) / xp.std(x)

    def softmax(x, k):
        e = xp.exp(x - xp.max(x))
        return e / xp.sum(e)

    def differences(x, k):
        return 2 * x[1:-1] - x[:-2] - x[2:]

    def pairs(x, k):
        return xp.sum(xp.abs(x[:, None] - x[None, :]), axis=1)

    def products(x, k):
        return (x[:, None] * x[None, :]) @ x

    def columns(x, k):
        return xp.sum(x[:, None] * x[None, :7], axis=0)

    def constants(x, k):
        return (x * (k + 1.5) + (k + 3)) / (7 * k + 5)

    return {f.__name__: f for f in (normalised, softmax, differences, pairs, products, columns, constants)}


def all_of(f, case, asarray, numbers):
    arrays = {"pairs": SQUARE, "products": SQUARE, "constants": ARRAYS[:1] * 50}.get(case, ARRAYS)
    for k in range(2):
        numbers(f(asarray(arrays[k]), k))
    r = []
    run = lambda: (r.clear(), r.extend(numbers(f(asarray(x), k)) for k, x in enumerate(arrays)))
    return run, lambda: np.concatenate(r)


@impl("aerogel")
def _(case):
    import aerogel as ti

    ti.init(arch=ti.cpu, cpu_max_num_threads=THREADS, log_level="error", offline_cache=False)
    return all_of(programs(ti.tensor)[case], case, ti.tensor.asarray, np.asarray)


@impl("numpy")
def _(case):
    return all_of(programs(np)[case], case, np.asarray, np.asarray)


@impl("jax")
def _(case):
    import jax, jax.numpy as jn

    return all_of(jax.jit(programs(jn)[case], static_argnums=1), case, jn.asarray, np.asarray)


@impl("torch")
def _(case):
    import torch

    torch.set_num_threads(THREADS)
    names = {"max": "amax"}

    class Torch:
        def __getattr__(self, name):
            f = getattr(torch, names.get(name, name))
            return lambda x, axis=None: f(x) if axis is None else f(x, dim=axis)

    std = Torch()
    std.std = lambda x: torch.std(x, correction=0)
    return all_of(programs(std)[case], case, torch.from_numpy, lambda x: x.numpy())
