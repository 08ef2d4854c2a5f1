"""Gradients of small kernels, f32: a smooth function of 1 M numbers, a five-point stencil and a product with a row on 1024^2,
and a march of 25 turns with a `while` for each of 256 K numbers.  fwd = the kernel, back = its gradient kernel; forward and
backward over forward is 1 + back/fwd.  Taichi has no gradient of a `while`."""
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
