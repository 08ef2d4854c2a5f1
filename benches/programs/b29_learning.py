"""Steps of training and gradients of simulations, f32: an MLP 784-128-10 (batch 128; in one program, or by `backward`), a network of convolutions
4-16-64, a character GPT of 0.8 million parameters (batch 12), gradients of n-body accelerations and of 1,000 steps of heat on 64^2.
A step = forward, backward and plain gradient descent; `.fwd` is the forward alone."""

from common import *

BODIES, HEAT, STEPS = size(4096, 128), 64, size(1000, 20)
WIDTH, HEADS, LAYERS, BLOCK, VOCABULARY, BATCH = 128, 4, size(4, 1), 64, 96, 12
# Shapes of the weights of convolutions.
KERNELS = [(4, 1, 5, 5), (16, 4, 5, 5), (64, 16, 3, 3)]
CASES = {
    name: dict(tol=2e-2) for name in ("mlp", "mlp.backward", "cnn", "gpt", "nbody", "nbody.fwd", "heat", "heat.fwd")
}


def normal(seed, *shape, scale=1.0):
    return scale * rng(seed).standard_normal(shape, dtype=np.float32)


def mlp():
    weights = [
        normal(1, 784, 128, scale=0.05),
        normal(2, 128, scale=0.1),
        normal(3, 128, 10, scale=0.1),
        normal(4, 10, scale=0.1),
    ]
    return weights, normal(5, 128, 784), rng(6).integers(0, 10, 128).astype(np.int32)


def cnn():
    weights = [normal(k, *shape, scale=0.1) for k, shape in enumerate(KERNELS)] + [normal(4, 64 * 49, 10, scale=0.02)]
    return weights, normal(5, 32, 1, 28, 28), rng(6).integers(0, 10, 32).astype(np.int32)


def bodies():
    return normal(7, BODIES, 3)


def gpt():
    shapes = {"tokens": (VOCABULARY, WIDTH), "positions": (BLOCK, WIDTH), "head": (WIDTH, VOCABULARY)}
    for k in range(LAYERS):
        shapes |= {
            f"qkv{k}": (WIDTH, 3 * WIDTH),
            f"out{k}": (WIDTH, WIDTH),
            f"wide{k}": (WIDTH, 4 * WIDTH),
            f"narrow{k}": (4 * WIDTH, WIDTH),
        }
    weights = {name: normal(20 + k, *shape, scale=0.02) for k, (name, shape) in enumerate(shapes.items())}
    ids = rng(8).integers(0, VOCABULARY, (BATCH, BLOCK + 1)).astype(np.int32)
    return weights, ids[:, :-1].copy(), ids[:, 1:].copy()


def programs(xp, nn, conv, pool, attention, entropy, embed, one, loop):
    """The losses, by what the frameworks call their functions."""

    def mlp_loss(w, x, y):
        return entropy(xp.tanh(x @ w[0] + w[1]) @ w[2] + w[3], y)

    def cnn_loss(w, x, y):
        x = pool(nn.relu(conv(x, w[0], 2, KERNELS[0])))
        x = pool(nn.relu(conv(x, w[1], 2, KERNELS[1])))
        x = nn.relu(conv(x, w[2], 1, KERNELS[2]))
        return entropy(x.reshape((x.shape[0], -1)) @ w[3], y)

    def norm(x):
        x = x - x.mean(-1)[..., None]
        return x / xp.sqrt((x * x).mean(-1)[..., None] + 1e-5)

    def gpt_loss(w, x, y):
        b, t = x.shape
        h = embed(w["tokens"], x) + w["positions"]
        for k in range(LAYERS):
            qkv = (norm(h) @ w[f"qkv{k}"]).reshape((b, t, 3, HEADS, WIDTH // HEADS))
            seen = attention(*(one(qkv[:, :, i], (0, 2, 1, 3)) for i in range(3)))
            h = h + one(seen, (0, 2, 1, 3)).reshape((b, t, WIDTH)) @ w[f"out{k}"]
            h = h + nn.gelu(norm(h) @ w[f"wide{k}"]) @ w[f"narrow{k}"]
        return entropy((norm(h) @ w["head"]).reshape((b * t, -1)), y.reshape((-1,)))

    def nbody(x):
        # The potential: its gradient are the accelerations, whose squares are what is differentiated.
        d = x[None, :, :] - x[:, None, :]
        r2 = (d * d).sum(-1) + 0.01
        a = (d / (r2 * xp.sqrt(r2))[..., None]).sum(1)
        return (a * a).sum()

    def heat(u):
        def step(u):
            around = xp.roll(u, 1, 0) + xp.roll(u, -1, 0) + xp.roll(u, 1, 1) + xp.roll(u, -1, 1)
            return u + 0.1 * (around - 4 * u)

        u = loop(STEPS, step, u)
        return (u * u).sum()

    return dict(mlp=mlp_loss, cnn=cnn_loss, gpt=gpt_loss, nbody=nbody, heat=heat)


def data(case):
    """The weights, and the rest."""
    what = case.partition(".")[0]
    if what in ("mlp", "cnn", "gpt"):
        w, x, y = {"mlp": mlp, "cnn": cnn, "gpt": gpt}[what]()
        return w, (x, y)
    return (bodies() if what == "nbody" else normal(9, HEAT, HEAT)), ()


LR = 1e-3


@impl("aerogel")
def _(case):
    import aerogel as ti

    ti.init(arch=ti.cpu, cpu_max_num_threads=THREADS, log_level="error", offline_cache=False)
    xp, F = ti.tensor, ti.nn.functional
    conv = lambda x, w, p, shape: F.conv2d(x, xp.programs.assert_tensor(w, shape), padding=p)
    attention = lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)
    loop = lambda n, step, u: xp.programs.fori_loop(0, n, lambda _, u: step(u), u)
    all = programs(
        xp,
        F,
        conv,
        lambda x: F.max_pool2d(x, 2),
        attention,
        F.cross_entropy,
        lambda w, i: F.embedding(i, w),
        xp.permute_dims,
        loop,
    )
    loss, (w, rest) = all[case.partition(".")[0]], data(case)
    tensors = lambda w: (
        {k: tensors(v) for k, v in w.items()}
        if isinstance(w, dict)
        else [tensors(v) for v in w]
        if isinstance(w, list)
        else xp.asarray(w)
    )
    r = {"w": tensors(w)}
    rest = [xp.asarray(a) for a in rest]
    if not rest:
        f = ti.program(loss if case.endswith("fwd") else ti.grad(loss))
        return lambda: r.update(y=f(r["w"]).realize()), lambda: r["y"].detach().numpy()
    if case == "mlp.backward":

        def step():
            for p in r["w"]:
                p.requires_grad = True
            value = loss(r["w"], *rest)
            value.backward()
            r["w"] = [(p.detach() - LR * p.grad).realize() for p in r["w"]]
            return value

        return lambda: r.update(y=step().realize()), lambda: r["y"].detach().numpy()

    @ti.program
    def train(w, x, y):
        value, g = ti.value_and_grad(loss)(w, x, y)
        new = [p - LR * d for p, d in zip(w, g)] if isinstance(w, list) else {k: w[k] - LR * g[k] for k in w}
        return value, new

    def step():
        value, r["w"] = train(r["w"], *rest)
        r["y"] = value.realize()

    return step, lambda: r["y"].detach().numpy()


@impl("jax")
def _(case):
    import jax, jax.numpy as jn

    if case == "mlp.backward":
        raise Skip
    conv = lambda x, w, p, _: jax.lax.conv_general_dilated(x, w, (1, 1), [(p, p)] * 2)
    pool = lambda x: jax.lax.reduce_window(x, -jn.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")

    def attention(q, k, v):
        s = q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5
        return jax.nn.softmax(jn.where(jn.tril(jn.ones(s.shape[-2:], bool)), s, -jn.inf), axis=-1) @ v

    def entropy(logits, y):
        return -jn.take_along_axis(jax.nn.log_softmax(logits), y[:, None], 1).mean()

    class nn:
        relu = jax.nn.relu
        gelu = staticmethod(lambda x: jax.nn.gelu(x, approximate=False))

    # Reverse mode needs the loop as a scan.
    loop = lambda n, step, u: jax.lax.scan(lambda u, _: (step(u), None), u, None, length=n)[0]
    all = programs(jn, nn, conv, pool, attention, entropy, lambda w, i: w[i], jn.transpose, loop)
    loss, (w, rest) = all[case.partition(".")[0]], data(case)
    w, rest = jax.tree.map(jn.asarray, w), [jn.asarray(a) for a in rest]
    r = {"w": w}
    if not rest:
        f = jax.jit(loss if case.endswith("fwd") else jax.grad(loss))
        return lambda: r.update(y=jax.block_until_ready(f(w))), lambda: np.asarray(r["y"])

    @jax.jit
    def train(w, x, y):
        value, g = jax.value_and_grad(loss)(w, x, y)
        return value, jax.tree.map(lambda p, d: p - LR * d, w, g)

    def step():
        r["y"], r["w"] = jax.block_until_ready(train(r["w"], *rest))

    return step, lambda: np.asarray(r["y"])


@impl("torch")
def _(case):
    import torch

    torch.set_num_threads(THREADS)
    F = torch.nn.functional
    if case == "mlp.backward" or case.startswith(("nbody", "heat")):
        raise Skip
    conv = lambda x, w, p, _: F.conv2d(x, w, padding=p)
    attention = lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)
    all = programs(
        torch, F, conv, lambda x: F.max_pool2d(x, 2), attention, F.cross_entropy, lambda w, i: w[i], torch.permute, None
    )
    loss, (w, rest) = all[case], data(case)
    names = list(w) if isinstance(w, dict) else range(len(w))
    w = {k: torch.tensor(w[k], requires_grad=True) for k in names}
    x, y = torch.tensor(rest[0]), torch.tensor(rest[1]).long()
    x = x.long() if case == "gpt" else x
    r = {}

    def step():
        for p in w.values():
            p.grad = None
        value = loss(w, x, y)
        value.backward()
        with torch.no_grad():
            for p in w.values():
                p -= LR * p.grad
        r["y"] = value

    return step, lambda: r["y"].detach().numpy()
