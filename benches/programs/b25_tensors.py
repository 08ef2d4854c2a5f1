"""Tensor programs, f32: what is written as in NumPy. Aerogel's own functions are `aerogel.tensor`'s; first calls are not timed."""
from common import *
N = size(4096, 256)
S = size(4096, 64)
L = size(1 << 24, 1 << 12)
R, C = size(8192, 64), 2048
M = size(1024, 64)
EPS = 1e-4
CASES = {
    "nbody": dict(flops=20 * N * N, tol=1e-3),
    "chain": dict(bytes=8 * L, tol=1e-4),
    "stencil": dict(bytes=8 * S * S, tol=1e-4),
    "softmax": dict(bytes=8 * R * C, tol=1e-4),
    "layer_norm": dict(bytes=8 * R * C, tol=1e-3),
    "columns": dict(bytes=4 * R * C, tol=1e-3),
    "matmul": dict(flops=2 * M ** 3, tol=1e-3),
    "compile640": dict(tol=1e-3),
}
P = rng(1).random((N, 3), dtype=np.float32)
X = rng(2).random(L, dtype=np.float32)
G = rng(3).random((S, S), dtype=np.float32)
A = rng(4).random((R, C), dtype=np.float32)
B = [rng(k).random((M, M), dtype=np.float32) for k in (5, 6)]
SMALL = rng(7).random((64, 64), dtype=np.float32)


def programs(xp, roll):
    """The cases in the words that NumPy, JAX and Aerogel share."""

    def nbody(p):
        d = p[None, :, :] - p[:, None, :]
        w = (xp.sum(d * d, axis=-1) + EPS) ** -1.5
        return xp.sum(d * w[:, :, None], axis=1)

    def chain(x):
        y = x * 2.0 + 1.0
        y = xp.sqrt(y * y + x)
        return xp.exp(-y) * xp.sin(x) + y / (1.0 + x * x)

    def stencil(u):
        return u + 0.1 * (roll(u, 1, 0) + roll(u, -1, 0) + roll(u, 1, 1) + roll(u, -1, 1) - 4.0 * u)

    def softmax(a):
        e = xp.exp(a - xp.max(a, axis=1, keepdims=True))
        return e / xp.sum(e, axis=1, keepdims=True)

    def layer_norm(a):
        m = xp.mean(a, axis=1, keepdims=True)
        v = xp.mean((a - m) ** 2, axis=1, keepdims=True)
        return (a - m) / xp.sqrt(v + 1e-5)

    def columns(a):
        return xp.sum(a, axis=0)

    def matmul(a, b):
        return a @ b

    def compile640(u):
        for _ in range(640):
            u = stencil(u)
        return u

    return {f.__name__: f for f in (nbody, chain, stencil, softmax, layer_norm, columns, matmul, compile640)}


INPUTS = {"nbody": [P], "chain": [X], "stencil": [G], "softmax": [A], "layer_norm": [A], "columns": [A], "matmul": B, "compile640": [SMALL]}


def aerogel(case, **config):
    import aerogel as ti

    ti.init(arch=ti.cpu, cpu_max_num_threads=THREADS, log_level="error", offline_cache=False, **config)
    xp = ti.tensor
    f = programs(xp, lambda x, shift, axis: xp.roll(x, shift, axis=axis))[case]
    arrays = []
    for a in INPUTS[case]:
        arrays.append(ti.ndarray(ti.f32, a.shape))
        arrays[-1].from_numpy(a)
    r = []
    # New tensors over the same memory: what an old one has computed would be there already.
    return lambda: (r.clear(), r.append(f(*map(xp.asarray, arrays)).realize())), lambda: r[0].numpy()


@impl("aerogel")
def _(case):
    return aerogel(case)


@impl("aerogel:library")
def _(case):
    if case != "matmul":
        raise Skip
    return aerogel(case, tensor_products="library")


@impl("aerogel:loops")
def _(case):
    """The same as a kernel, of which each thread keeps its sums in registers."""
    if case != "nbody":
        raise Skip
    import aerogel as ti

    ti.init(arch=ti.cpu, cpu_max_num_threads=THREADS, log_level="error", offline_cache=False)
    layout = ti.Layout.SOA
    p, a = (ti.Vector.field(3, ti.f32, N, layout=layout) for _ in range(2))

    @ti.kernel
    def step():
        for i in range(N):
            total = ti.Vector([0.0, 0.0, 0.0])
            for j in range(N):
                d = p[j] - p[i]
                r = ti.rsqrt(d.norm_sqr() + EPS)
                total += d * (r * r * r)
            a[i] = total

    p.from_numpy(P)
    return step, a.to_numpy


@impl("numpy")
def _(case):
    f = programs(np, np.roll)[case]
    r = []
    return lambda: (r.clear(), r.append(f(*INPUTS[case]))), lambda: r[0]


@impl("jax")
def _(case):
    import jax, jax.numpy as jn

    f = jax.jit(programs(jn, jn.roll)[case])
    inputs = [jn.asarray(a) for a in INPUTS[case]]
    r = []
    return lambda: (r.clear(), r.append(f(*inputs).block_until_ready())), lambda: r[0]


class Torch:
    """NumPy's words for PyTorch."""

    def __init__(self):
        import torch

        self.torch = torch
        torch.set_num_threads(THREADS)

    def __getattr__(self, name):
        f = getattr(self.torch, {"max": "amax"}.get(name, name))

        def call(*args, axis=None, keepdims=False, **kw):
            return f(*args, **({} if axis is None else {"dim": axis, "keepdim": keepdims}), **kw)

        return call


def pytorch(case, compiled):
    xp = Torch()
    torch = xp.torch
    f = programs(xp, lambda x, shift, axis: torch.roll(x, shift, axis))[case]
    if compiled:
        f = torch.compile(f)
    inputs = [torch.from_numpy(a) for a in INPUTS[case]]
    r = []

    def run():
        r.clear()
        with torch.no_grad():
            r.append(f(*inputs))

    return run, lambda: r[0].numpy()


@impl("torch")
def _(case):
    return pytorch(case, compiled=False)


@impl("torch:compile")
def _(case):
    if case == "compile640":
        raise Skip  # It takes minutes.
    return pytorch(case, compiled=True)


@impl("tensorfrost")
def _(case):
    if case not in ("nbody", "chain", "softmax"):
        raise Skip
    import TensorFrost as tf

    tf.initialize(tf.cpu)

    def nbody():
        p = tf.input([-1, 3], tf.float32)
        n = p.shape[0]
        i, j, c = tf.indices([n, n, 3])
        d = p[j, c] - p[i, c]
        w = (tf.sum(d * d) + EPS) ** -1.5
        i, c, j = tf.indices([n, 3, n])
        return tf.sum((p[j, c] - p[i, c]) * w[i, j])

    def chain():
        x = tf.input([-1], tf.float32)
        y = x * 2.0 + 1.0
        y = tf.sqrt(y * y + x)
        return tf.exp(-y) * tf.sin(x) + y / (1.0 + x * x)

    def softmax():
        a = tf.input([-1, -1], tf.float32)
        e = tf.exp(a - tf.unsqueeze(tf.max(a)))
        return e / tf.unsqueeze(tf.sum(e))

    program = tf.compile({"nbody": nbody, "chain": chain, "softmax": softmax}[case])
    inputs = [tf.tensor(a) for a in INPUTS[case]]
    r = []
    return lambda: (r.clear(), r.append(program(*inputs))), lambda: r[0].numpy


@impl("cpp")
def _(case):
    if case != "nbody":
        raise Skip
    L_ = cpp('''extern "C" void step(const float*p,float*a,long n,float eps){ const float*px=p,*py=p+n,*pz=p+2*n;
#pragma omp parallel for
    for(long i=0;i<n;i++){ float X=px[i],Y=py[i],Z=pz[i],ax=0,ay=0,az=0;
#pragma omp simd reduction(+:ax,ay,az)
      for(long j=0;j<n;j++){ float x=px[j]-X,y=py[j]-Y,z=pz[j]-Z,w=1/std::sqrt(x*x+y*y+z*z+eps); w=w*w*w; ax+=x*w; ay+=y*w; az+=z*w; }
      a[i]=ax; a[n+i]=ay; a[2*n+i]=az; } }''')
    p, a = np.ascontiguousarray(P.T), np.zeros((3, N), np.float32)
    return lambda: L_("step", p, a, N, EPS), lambda: a.T
