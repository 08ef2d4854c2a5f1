"""Quantised fields: 4M particles in words of 32 bits (position, velocity), and the game of life with 32 cells in a word."""
from common import *
N = size(4 << 20, 1 << 16)
W = size(2048, 256)
CASES = {"particles": dict(tol=0, bytes=8 * N), "life": dict(tol=0, bytes=2 * W * W // 8)}


def particles(ti):
    quant = ti.types.quant
    x, v = ti.field(quant.fixed(18, signed=False, max_value=4.0)), ti.field(quant.fixed(14, max_value=4.0))
    word = ti.BitpackedFields(max_num_bits=32)
    word.place(x, v)
    ti.root.dense(ti.i, N).place(word)
    out = ti.field(ti.f32, N)

    @ti.kernel
    def begin():
        for i in x:
            x[i] = (i % 4096) / 2048.0
            v[i] = (i % 1000) / 500.0 - 1.0

    @ti.kernel
    def step():
        for i in x:
            at = x[i] + 0.25 * v[i]
            if at < 0 or at > 3:
                v[i] = -v[i]
            x[i] = ti.min(ti.max(at, 0.0), 3.0)

    @ti.kernel
    def read():
        for i in x:
            out[i] = x[i] + 8 * v[i]
    return lambda: (step(), ti.sync()), lambda: (read(), out.to_numpy())[1], begin


def life(ti):
    bit = ti.types.quant.int(1, signed=False)
    a, b = ti.field(bit), ti.field(bit)
    for f in (a, b):
        ti.root.dense(ti.ij, (W, W // 32)).quant_array(ti.j, 32, max_num_bits=32).place(f)
    out = ti.field(ti.i32, (W, W))

    @ti.kernel
    def begin():
        for i, j in a:
            a[i, j] = (i * 7 + j * j * 3 + i * j) % 5 // 3

    @ti.kernel
    def step():
        for i, j in b:
            n = 0
            for di, dj in ti.static(ti.ndrange((-1, 2), (-1, 2))):
                if ti.static(di != 0 or dj != 0):
                    n += a[(i + di + W) % W, (j + dj + W) % W]
            b[i, j] = (n == 3) or (n == 2 and a[i, j] == 1)

    @ti.kernel
    def read():
        for i, j in b:
            out[i, j] = b[i, j]
    return lambda: (step(), ti.sync()), lambda: (read(), out.to_numpy())[1], begin


@impl("ti")
def _(ti, case):
    return {"particles": particles, "life": life}[case](ti)
