"""Kernels of larger programs: a bilateral filter, neighbours by a grid (SPH), boids, lattice Boltzmann, a path tracer, a
semi-Lagrangian fluid, red-black multigrid smoothing, cloth, and an FFT.  Each is written as its users write it, on the Taichi
API alone, so that two versions or two modules can be compared."""
from common import *

CASES = {name: dict(tol=2e-2, calls=1) for name in "bilateral sph boids lbm path fluid multigrid cloth fft".split()}


def bilateral(ti):
    n, R = size(512, 64), 4
    src, dst = ti.field(ti.f32, (n, n)), ti.field(ti.f32, (n, n))
    src.from_numpy(rng(1).random((n, n), dtype=np.float32))

    @ti.kernel
    def run():
        for i, j in dst:
            total, weight = 0.0, 0.0
            for di, dj in ti.ndrange((-R, R + 1), (-R, R + 1)):
                k, l = ti.math.clamp(i + di, 0, n - 1), ti.math.clamp(j + dj, 0, n - 1)
                d = src[k, l] - src[i, j]
                w = ti.exp(-(di * di + dj * dj) / 18.0 - d * d / 0.02)
                total += w * src[k, l]
                weight += w
            dst[i, j] = total / weight
    return run, lambda: digest(dst.to_numpy())


def sph(ti):
    n, g, cap, h = size(32768, 2048), 64, 64, 1 / 64
    x, rho, force = ti.Vector.field(2, ti.f32, n), ti.field(ti.f32, n), ti.Vector.field(2, ti.f32, n)
    count, ids = ti.field(ti.i32, (g, g)), ti.field(ti.i32, (g, g, cap))
    x.from_numpy((rng(2).random((n, 2), dtype=np.float32) * 0.98 + 0.01).astype(np.float32))

    @ti.kernel
    def run():
        for c in ti.grouped(count):
            count[c] = 0
        ti.loop_config(serialize=True)
        for p in range(n):
            c = ti.floor(x[p] / h, int)
            k = ti.atomic_add(count[c], 1)
            if k < cap:
                ids[c, k] = p
        for p in x:
            c, s = ti.floor(x[p] / h, int), 0.0
            for o in ti.static(ti.grouped(ti.ndrange((-1, 2), (-1, 2)))):
                b = c + o
                if 0 <= b[0] < g and 0 <= b[1] < g:
                    for k in range(ti.min(count[b], cap)):
                        r2 = (x[p] - x[ids[b, k]]).norm_sqr()
                        if r2 < h * h:
                            s += (h * h - r2) ** 3
            rho[p] = s * 4 / (3.1415926 * h**8)
        for p in x:
            c, f = ti.floor(x[p] / h, int), ti.Vector([0.0, 0.0])
            for o in ti.static(ti.grouped(ti.ndrange((-1, 2), (-1, 2)))):
                b = c + o
                if 0 <= b[0] < g and 0 <= b[1] < g:
                    for k in range(ti.min(count[b], cap)):
                        q = ids[b, k]
                        d = x[p] - x[q]
                        r = d.norm(1e-6)
                        if q != p and r < h:
                            f += d / r * (h - r) ** 2 * (rho[p] + rho[q]) / (2 * rho[q])
            force[p] = f
    return run, lambda: digest(force.to_numpy())


def boids(ti):
    n = size(2048, 256)
    x, v = ti.Vector.field(2, ti.f32, n), ti.Vector.field(2, ti.f32, n)
    nv = ti.Vector.field(2, ti.f32, n)
    x.from_numpy(rng(3).random((n, 2), dtype=np.float32)), v.from_numpy(rng(4).random((n, 2), dtype=np.float32) - 0.5)

    @ti.kernel
    def run():
        for i in x:
            cohesion, align, apart, near = ti.Vector([0.0, 0.0]), ti.Vector([0.0, 0.0]), ti.Vector([0.0, 0.0]), 0
            for j in range(n):
                d = x[j] - x[i]
                r = d.norm()
                if j != i and r < 0.1:
                    cohesion += d
                    align += v[j]
                    near += 1
                    if r < 0.03:
                        apart -= d / (r + 1e-4)
            a = apart * 0.05
            if near > 0:
                a += cohesion / near * 0.5 + (align / near - v[i]) * 0.3
            w = v[i] + a
            nv[i] = w / ti.max(w.norm(), 1e-3) * ti.math.clamp(w.norm(), 0.1, 0.5)
    return run, lambda: digest(nv.to_numpy())


def lbm(ti):
    nx, ny = size(512, 64), size(256, 64)
    f, new = ti.Vector.field(9, ti.f32, (nx, ny)), ti.Vector.field(9, ti.f32, (nx, ny))
    e = [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)]
    w = [4 / 9] + [1 / 9] * 4 + [1 / 36] * 4
    f.from_numpy((np.array(w, np.float32) * (1 + 0.05 * rng(5).random((nx, ny, 1)))).astype(np.float32))

    @ti.kernel
    def step(a: ti.template(), b: ti.template()):
        for i, j in ti.ndrange((1, nx - 1), (1, ny - 1)):
            rho, u = 0.0, ti.Vector([0.0, 0.0])
            for k in ti.static(range(9)):
                b[i, j][k] = a[i - e[k][0], j - e[k][1]][k]
                rho += b[i, j][k]
                u += ti.Vector([e[k][0], e[k][1]]) * b[i, j][k]
            u /= rho
            uu = u.dot(u)
            for k in ti.static(range(9)):
                eu = e[k][0] * u[0] + e[k][1] * u[1]
                b[i, j][k] += (w[k] * rho * (1 + 3 * eu + 4.5 * eu * eu - 1.5 * uu) - b[i, j][k]) / 0.6
    start = f.to_numpy()

    def run():
        for _ in range(4):
            step(f, new), step(new, f)
    return run, lambda: digest(f.to_numpy()), lambda: f.from_numpy(start)


def path(ti):
    n, depth = size(256, 32), 4
    img = ti.Vector.field(3, ti.f32, (n, n))
    balls, glow = ti.Vector.field(4, ti.f32, 12), ti.Vector.field(3, ti.f32, 12)
    r = rng(6)
    balls.from_numpy(np.concatenate([r.random((12, 3)) * 4 - 2, r.random((12, 1)) * 0.5 + 0.2], 1).astype(np.float32))
    glow.from_numpy(r.random((12, 3)).astype(np.float32))

    @ti.func
    def hit(o, d):
        best, at = 1e9, -1
        for k in range(12):
            m = o - balls[k].xyz
            b, c = m.dot(d), m.dot(m) - balls[k].w ** 2
            disc = b * b - c
            if disc > 0:
                t = -b - ti.sqrt(disc)
                if 1e-3 < t < best:
                    best, at = t, k
        return best, at

    @ti.kernel
    def run():
        for i, j in img:
            total = ti.Vector([0.0, 0.0, 0.0])
            for s in range(4):
                o = ti.Vector([0.0, 0.0, -5.0])
                d = ti.Vector([(i + 0.25 * s) / n - 0.5, (j + 0.25 * s) / n - 0.5, 1.0]).normalized()
                through, seed = ti.Vector([1.0, 1.0, 1.0]), i * 131 + j * 17 + s
                for _ in range(depth):
                    t, k = hit(o, d)
                    if k < 0:
                        total += through * (0.5 + 0.5 * d[1])
                        break
                    p = o + t * d
                    normal = (p - balls[k].xyz) / balls[k].w
                    total += through * glow[k] * 0.2
                    through *= 0.7 * glow[k] + 0.2
                    seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
                    phi, z = seed / 2147483648.0 * 6.2831853, (seed & 0xFFFF) / 32768.0 - 1
                    q = ti.sqrt(ti.max(0.0, 1 - z * z))
                    d = (normal + ti.Vector([q * ti.cos(phi), q * ti.sin(phi), z]) * 0.9).normalized()
                    o = p
            img[i, j] = total / 4
    return run, lambda: digest(img.to_numpy().mean(axis=(0, 1)))


def fluid(ti):
    n = size(512, 64)
    v, nv = ti.Vector.field(2, ti.f32, (n, n)), ti.Vector.field(2, ti.f32, (n, n))
    p, q, div = (ti.field(ti.f32, (n, n)) for _ in range(3))
    start = (rng(7).random((n, n, 2), dtype=np.float32) - 0.5) * 40

    @ti.func
    def at(f: ti.template(), i, j):
        return f[ti.math.clamp(i, 0, n - 1), ti.math.clamp(j, 0, n - 1)]

    @ti.kernel
    def advect():
        for i, j in v:
            x = ti.Vector([i + 0.5, j + 0.5]) - 0.03 * v[i, j] - 0.5
            b = ti.floor(x, int)
            f = x - b
            top = ti.math.mix(at(v, b[0], b[1]), at(v, b[0] + 1, b[1]), f[0])
            low = ti.math.mix(at(v, b[0], b[1] + 1), at(v, b[0] + 1, b[1] + 1), f[0])
            nv[i, j] = ti.math.mix(top, low, f[1]) * 0.99

    @ti.kernel
    def diverge():
        for i, j in div:
            div[i, j] = 0.5 * (at(nv, i + 1, j)[0] - at(nv, i - 1, j)[0] + at(nv, i, j + 1)[1] - at(nv, i, j - 1)[1])

    @ti.kernel
    def jacobi(a: ti.template(), b: ti.template()):
        for i, j in a:
            b[i, j] = (at(a, i - 1, j) + at(a, i + 1, j) + at(a, i, j - 1) + at(a, i, j + 1) - div[i, j]) * 0.25

    @ti.kernel
    def project():
        for i, j in v:
            v[i, j] = nv[i, j] - 0.5 * ti.Vector([at(p, i + 1, j) - at(p, i - 1, j), at(p, i, j + 1) - at(p, i, j - 1)])

    def run():
        advect(), diverge()
        for _ in range(5):
            jacobi(p, q), jacobi(q, p)
        project()
    return run, lambda: digest(v.to_numpy()), lambda: (v.from_numpy(start), p.fill(0))


def multigrid(ti):
    n, levels = size(128, 32), 4
    z, r = ([ti.field(ti.f32, (n >> k,) * 3) for k in range(levels)] for _ in range(2))
    start = rng(8).random((n,) * 3, dtype=np.float32)

    @ti.func
    def around(f: ti.template(), i, j, k):
        m, s = f.shape[0], 0.0
        for o in ti.static([(1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1)]):
            a, b, c = i + o[0], j + o[1], k + o[2]
            if 0 <= a < m and 0 <= b < m and 0 <= c < m:
                s += f[a, b, c]
        return s

    @ti.kernel
    def smooth(l: ti.template(), phase: ti.i32):
        for i, j, k in r[l]:
            if (i + j + k) & 1 == phase:
                z[l][i, j, k] = (r[l][i, j, k] + around(z[l], i, j, k)) / 6.0

    @ti.kernel
    def restrict(l: ti.template()):
        for i, j, k in r[l]:
            res = r[l][i, j, k] - (6.0 * z[l][i, j, k] - around(z[l], i, j, k))
            r[l + 1][i // 2, j // 2, k // 2] += res * 0.5

    @ti.kernel
    def prolong(l: ti.template()):
        for i, j, k in z[l]:
            z[l][i, j, k] += z[l + 1][i // 2, j // 2, k // 2]

    def run():
        for l in range(levels - 1):
            smooth(l, 0), smooth(l, 1)
            r[l + 1].fill(0), z[l + 1].fill(0)
            restrict(l)
        smooth(levels - 1, 0), smooth(levels - 1, 1)
        for l in reversed(range(levels - 1)):
            prolong(l), smooth(l, 1), smooth(l, 0)
    return run, lambda: digest(z[0].to_numpy()), lambda: (r[0].from_numpy(start), z[0].fill(0))


def cloth(ti):
    n, dt, k, rest = size(128, 32), 5e-4, 1e3, 1.0 / 128
    x, v = ti.Vector.field(3, ti.f32, (n, n)), ti.Vector.field(3, ti.f32, (n, n))
    links = [(i, j) for i in range(-2, 3) for j in range(-2, 3) if (i, j) != (0, 0) and abs(i) + abs(j) <= 2]
    g = np.stack(np.meshgrid(np.arange(n), np.arange(n), indexing="ij"), -1) * rest
    start = np.concatenate([g, rng(9).normal(0, 0.002, (n, n, 1))], -1).astype(np.float32)

    @ti.kernel
    def step():
        for i in ti.grouped(x):
            f = ti.Vector([0.0, -9.8, 0.0])
            for o in ti.static(links):
                j = i + ti.Vector([o[0], o[1]])
                if 0 <= j[0] < n and 0 <= j[1] < n:
                    d, dv = x[i] - x[j], v[i] - v[j]
                    length = d.norm()
                    u, l0 = d / length, rest * float((o[0] * o[0] + o[1] * o[1]) ** 0.5)
                    f += -k * u * (length / l0 - 1) - 10.0 * dv.dot(u) * u * rest
            v[i] += f * dt
        for i in ti.grouped(x):
            v[i] *= ti.exp(-dt)
            m = x[i] - ti.Vector([0.5, -0.2, 0.5])
            if m.norm() <= 0.3:
                normal = m.normalized()
                v[i] -= ti.min(v[i].dot(normal), 0.0) * normal
            x[i] += dt * v[i]

    def run():
        for _ in range(8):
            step()
    return run, lambda: digest(x.to_numpy()), lambda: (x.from_numpy(start), v.fill(0))


def fft(ti):
    n, rows = 1024, size(256, 16)
    a, b = ti.Vector.field(2, ti.f32, (rows, n)), ti.Vector.field(2, ti.f32, (rows, n))
    start = rng(10).random((rows, n, 2), dtype=np.float32) - 0.5

    @ti.kernel
    def stage(x: ti.template(), y: ti.template(), s: ti.i32):
        for row, i in ti.ndrange(rows, n // 2):
            p, q = i // s, i % s
            angle = -6.283185307179586 * p * s / n
            w = ti.Vector([ti.cos(angle), ti.sin(angle)])
            u, t = x[row, q + s * p], x[row, q + s * (p + n // (2 * s))]
            d = u - t
            y[row, q + s * 2 * p] = u + t
            y[row, q + s * (2 * p + 1)] = ti.Vector([d[0] * w[0] - d[1] * w[1], d[0] * w[1] + d[1] * w[0]])

    def run():
        x, y, s = a, b, 1
        while s < n:
            stage(x, y, s)
            x, y, s = y, x, 2 * s
    return run, lambda: digest(a.to_numpy()), lambda: a.from_numpy(start)


@impl("ti")
def _(ti, case):
    run, check, *prep = globals()[case](ti)
    return lambda: (run(), ti.sync()), check, *prep
