"""Gradients of small kernels, f32: a smooth function of 1 M numbers, a five-point stencil and a product with a row on 1024^2,
and a march of 25 turns with a `while` for each of 256 K numbers.  fwd = the kernel, back = its gradient kernel; forward and
backward over forward is 1 + back/fwd.  Neither Taichi nor JAX has a reverse gradient of a `while`, and that of Warp, which
does not run a loop again, is off in the third digit."""
from common import *

N, M, R = size(1 << 20), size(1024, 64), size(1 << 18)
CASES = {f"{what}.{way}": dict(tol=1e-3) for what in ("smooth", "stencil", "row", "march") for way in ("fwd", "back")}
X = rng(24).uniform(-1, 1, max(N, M * M)).astype(np.float32)


@impl("ti")
def _(ti, case):
    what, way = case.split(".")
    shape = {"smooth": N, "march": R}.get(what, (M, M))
    x, y = (ti.field(ti.f32, shape, needs_grad=True) for _ in range(2))
    row = ti.field(ti.f32, M, needs_grad=True)
    x.from_numpy(X[: np.prod(shape)].reshape(shape))
    row.from_numpy(X[:M].copy())

    @ti.kernel
    def smooth():
        for i in x:
            y[i] = ti.sin(x[i]) * ti.exp(-x[i] * x[i]) + ti.sqrt(x[i] + 2.0)

    @ti.kernel
    def stencil():
        for i, j in ti.ndrange((1, M - 1), (1, M - 1)):
            y[i, j] = 0.2 * (x[i, j] + x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1])

    @ti.kernel
    def product():
        for i, j in x:
            y[i, j] = x[i, j] * row[j]

    @ti.kernel
    def march():
        for i in x:
            t, v = 0.0, x[i]
            while t < 1.0:
                t += 0.05 + 0.02 * ti.sin(v)
                v = v * 0.98 + 0.01 * t
            y[i] = v + t

    kernel = {"smooth": smooth, "stencil": stencil, "row": product, "march": march}[what]
    kernel()
    if way == "back" and what == "march" and ti.__name__ == "taichi":
        raise Skip
    run = kernel if way == "fwd" else kernel.grad

    def prep():
        # Consumed adjoints are zero, others add up.
        y.grad.fill(1.0)
        x.grad.fill(0.0)
        row.grad.fill(0.0)

    def timed():
        run()
        ti.sync()

    return timed, (y if way == "fwd" else x.grad).to_numpy, prep


@impl("jax")
def _(case):
    import jax, jax.numpy as jn
    what, way = case.split(".")

    def smooth(x, row):
        return jn.sin(x) * jn.exp(-x * x) + jn.sqrt(x + 2)

    def stencil(x, row):
        inner = 0.2 * (x[1:-1, 1:-1] + x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])
        return jn.pad(inner, 1)

    def product(x, row):
        return x * row

    def march(x, row):
        def turn(s):
            t, v = s
            on, t1 = t < 1, t + 0.05 + 0.02 * jn.sin(v)
            return jn.where(on, t1, t), jn.where(on, v * 0.98 + 0.01 * t1, v)
        t, v = jax.lax.while_loop(lambda s: (s[0] < 1).any(), turn, (jn.zeros_like(x), x))
        return v + t

    if case == "march.back": raise Skip
    shape = {"smooth": N, "march": R}.get(what, (M, M))
    x, row = jn.asarray(X[: np.prod(shape)].reshape(shape)), jn.asarray(X[:M])
    kernel = {"smooth": smooth, "stencil": stencil, "row": product, "march": march}[what]
    f = jax.jit(kernel if way == "fwd" else jax.grad(lambda x, row: kernel(x, row).sum(), argnums=(0, 1)))
    r = []
    return lambda: (r.clear(), r.append(jax.block_until_ready(f(x, row)))), lambda: r[0] if way == "fwd" else r[0][0]


@impl("warp")
def _(case):
    wp = warp()
    what, way = case.split(".")
    shape = {"smooth": N, "march": R}.get(what, (M, M))
    x, y = wp.array(X[: np.prod(shape)].reshape(shape), requires_grad=True), wp.zeros(shape, dtype=float, requires_grad=True)
    row = wp.array(X[:M], requires_grad=True)

    @wp.kernel
    def smooth(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = wp.sin(x[i]) * wp.exp(-x[i] * x[i]) + wp.sqrt(x[i] + 2.0)

    @wp.kernel
    def stencil(x: wp.array2d(dtype=float), y: wp.array2d(dtype=float)):
        i, j = wp.tid()
        i = i + 1
        j = j + 1
        y[i, j] = 0.2 * (x[i, j] + x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1])

    @wp.kernel
    def product(x: wp.array2d(dtype=float), row: wp.array(dtype=float), y: wp.array2d(dtype=float)):
        i, j = wp.tid()
        y[i, j] = x[i, j] * row[j]

    @wp.kernel
    def march(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        t = float(0.0)
        v = x[i]
        while t < 1.0:
            t = t + 0.05 + 0.02 * wp.sin(v)
            v = v * 0.98 + 0.01 * t
        y[i] = v + t

    if case == "march.back": raise Skip
    kernel = {"smooth": smooth, "stencil": stencil, "row": product, "march": march}[what]
    dim = (M - 2, M - 2) if what == "stencil" else shape
    inputs, adjoints = ([x, row], [x.grad, row.grad]) if what == "row" else ([x], [x.grad])

    def prep():
        y.grad.fill_(1.0); x.grad.zero_(); row.grad.zero_()

    def run():
        if way == "fwd": wp.launch(kernel, dim=dim, inputs=inputs, outputs=[y])
        else: wp.launch(kernel, dim=dim, inputs=inputs, outputs=[y], adj_inputs=adjoints, adj_outputs=[y.grad], adjoint=True)
    return run, lambda: (y if way == "fwd" else x.grad).numpy(), prep
