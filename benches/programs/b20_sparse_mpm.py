"""Sparse MPM: particle-to-grid of 256k particles into a 1024^3 grid of pointer 64^3 over pointer 4^3 over dense 4^3,
cleared by deactivation; and the whole substep (clear, scatter, grid, gather)."""
from common import *
NP, STEPS, N = size(1 << 18, 1 << 12), 2, 1024
CASES = {"p2g": dict(tol=2e-3), "substep": dict(tol=2e-3)}
DT, GRAV, MASS = 2e-5, 9.8, 1.0


def start():
    return (rng(2).random((NP, 3), dtype=np.float32) * 0.06 + 0.47).astype(np.float32)


@impl("ti")
def _(ti, case):
    inv, dx = float(N), 1 / N
    x, v = (ti.Vector.field(3, ti.f32, NP) for _ in range(2))
    C = ti.Matrix.field(3, 3, ti.f32, NP)
    gv, gm = ti.Vector.field(3, ti.f32), ti.field(ti.f32)
    top = ti.root.pointer(ti.ijk, N // 16)
    top.pointer(ti.ijk, 4).dense(ti.ijk, 4).place(gv, gm)
    x.from_numpy(start())

    @ti.kernel
    def p2g():
        for p in x:
            Xp = x[p] * inv
            base = ti.cast(Xp - 0.5, ti.i32)
            fx = Xp - base
            w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1) ** 2, 0.5 * (fx - 0.5) ** 2]
            affine = MASS * C[p]
            for o in ti.static(ti.grouped(ti.ndrange(3, 3, 3))):
                weight = w[o[0]][0] * w[o[1]][1] * w[o[2]][2]
                gv[base + o] += weight * (MASS * v[p] + affine @ ((o - fx) * dx))
                gm[base + o] += weight * MASS

    @ti.kernel
    def grid():
        for I in ti.grouped(gm):
            if gm[I] > 0:
                gv[I] /= gm[I]
            gv[I][1] -= DT * GRAV

    @ti.kernel
    def g2p():
        for p in x:
            Xp = x[p] * inv
            base = ti.cast(Xp - 0.5, ti.i32)
            fx = Xp - base
            w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1) ** 2, 0.5 * (fx - 0.5) ** 2]
            nv = ti.zero(v[p])
            nC = ti.zero(C[p])
            for o in ti.static(ti.grouped(ti.ndrange(3, 3, 3))):
                weight = w[o[0]][0] * w[o[1]][1] * w[o[2]][2]
                g = gv[base + o]
                nv += weight * g
                nC += 4 * inv * weight * g.outer_product(o - fx)
            v[p], C[p] = nv, nC
            x[p] += DT * nv

    @ti.kernel
    def mass() -> ti.f64:
        s = ti.cast(0, ti.f64)
        for I in ti.grouped(gm):
            s += gm[I]
        return s

    @ti.kernel
    def height() -> ti.f64:
        s = ti.cast(0, ti.f64)
        for p in x:
            s += x[p][1]
        return s

    def once():
        top.deactivate_all()
        p2g()

    def run():
        for _ in range(STEPS):
            once()
            if case == "substep":
                grid()
                g2p()
        ti.sync()
    return run, lambda: [mass() if case == "p2g" else height()]
