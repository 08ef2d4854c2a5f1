"""Whole simulators with their gradients, in the manner of those that have been published for Taichi 1.x."""

# ruff: noqa
import numpy as np
from answers.cases import plain, test, ti

real = ti.f64


def scalar():
    return ti.field(real)


def vector():
    return ti.Vector.field(2, real)


def rounded(*fields):
    return plain([np.round(f.to_numpy().astype(float) * 100, 4).reshape(-1).tolist() for f in fields])


@test
def tape_mass_spring_with_a_controller():
    """Springs that a network actuates, on a ground without slip; states of all steps in one field."""
    steps, n_objects, n_springs, n_hidden, n_waves, dt = 24, 4, 5, 6, 3, 0.01
    x, v, force = vector(), vector(), vector()
    hidden, act = scalar(), scalar()
    weights1, bias1, weights2, bias2 = scalar(), scalar(), scalar(), scalar()
    loss = scalar()
    anchor_a, anchor_b = ti.field(ti.i32), ti.field(ti.i32)
    length = scalar()
    ti.root.dense(ti.i, steps).dense(ti.j, n_objects).place(x, v, force)
    ti.root.dense(ti.ij, (steps, n_hidden)).place(hidden)
    ti.root.dense(ti.ij, (steps, n_springs)).place(act)
    ti.root.dense(ti.i, n_springs).place(anchor_a, anchor_b, length)
    ti.root.dense(ti.ij, (n_hidden, n_waves + 4)).place(weights1)
    ti.root.dense(ti.i, n_hidden).place(bias1)
    ti.root.dense(ti.ij, (n_springs, n_hidden)).place(weights2)
    ti.root.dense(ti.i, n_springs).place(bias2)
    ti.root.place(loss)
    ti.root.lazy_grad()

    @ti.kernel
    def nn1(t: ti.i32):
        for i in range(n_hidden):
            out = ti.cast(0.0, real)
            for j in ti.static(range(n_waves)):
                out += weights1[i, j] * ti.sin(30 * t * dt + 2 * 3.14159265 / n_waves * j)
            for j in ti.static(range(2)):
                offset = x[t, j] - x[t, j + 2]
                out += weights1[i, n_waves + j * 2] * offset[0] * 0.05
                out += weights1[i, n_waves + j * 2 + 1] * offset[1] * 0.05
            hidden[t, i] = ti.tanh(out + bias1[i])

    @ti.kernel
    def nn2(t: ti.i32):
        for i in range(n_springs):
            out = ti.cast(0.0, real)
            for j in ti.static(range(n_hidden)):
                out += weights2[i, j] * hidden[t, j]
            act[t, i] = ti.tanh(out + bias2[i])

    @ti.kernel
    def apply_spring_force(t: ti.i32):
        for i in range(n_springs):
            a, b = anchor_a[i], anchor_b[i]
            dist = x[t, a] - x[t, b]
            norm = dist.norm(1e-8)
            target = length[i] * (1.0 + 0.2 * act[t, i])
            impulse = dt * (norm - target) * 80 / norm * dist
            ti.atomic_add(force[t + 1, a], -impulse)
            ti.atomic_add(force[t + 1, b], impulse)

    @ti.kernel
    def advance(t: ti.i32):
        for i in range(n_objects):
            s = ti.exp(-dt * 2.0)
            old_v = s * v[t - 1, i] + dt * -4.8 * ti.Vector([0.0, 1.0]) + force[t, i]
            old_x = x[t - 1, i]
            new_x = old_x + dt * old_v
            toi = ti.cast(0.0, real)
            new_v = old_v
            if new_x[1] < 0.1 and old_v[1] < -1e-4:
                toi = ti.min(ti.max(-(old_x[1] - 0.1) / old_v[1], 0), dt)
                new_v = ti.Vector([0.0, 0.0])
            v[t, i] = new_v
            x[t, i] = old_x + toi * old_v + (dt - toi) * new_v

    @ti.kernel
    def compute_loss(t: ti.i32):
        loss[None] += -x[t, 0][0] + x[t, 3].norm_sqr()

    square = [(0.1, 0.12), (0.3, 0.12), (0.1, 0.3), (0.3, 0.32)]
    for i, at in enumerate(square):
        x[0, i] = at
        v[0, i] = [0.3, -0.4]
    for i, (a, b) in enumerate([(0, 1), (1, 3), (3, 2), (2, 0), (0, 3)]):
        anchor_a[i], anchor_b[i] = a, b
        length[i] = 0.2 if i < 4 else 0.28
    rng = np.random.default_rng(1)
    for field in (weights1, bias1, weights2, bias2):
        field.from_numpy(rng.normal(size=field.shape) * 0.5)
    losses = []
    for _ in range(2):
        force.fill(0)
        with ti.ad.Tape(loss):
            for t in range(1, steps):
                nn1(t - 1)
                nn2(t - 1)
                apply_spring_force(t - 1)
                advance(t)
            compute_loss(steps - 1)
        losses.append(float(loss[None]))
        for field in (weights1, bias1, weights2, bias2):
            field.from_numpy(field.to_numpy() - 0.5 * field.grad.to_numpy())
    return [plain(losses), rounded(weights1.grad, bias1.grad, weights2.grad, bias2.grad)]


@test
def tape_elastic_particles_whose_steps_run_again():
    """The material point method, with one grid for all steps: the gradient runs each step once more, by hand."""
    steps, n, n_grid, dt, dx = 6, 9, 8, 2e-3, 1 / 8
    x, v, loss = vector(), vector(), scalar()
    C, F = ti.Matrix.field(2, 2, real), ti.Matrix.field(2, 2, real)
    grid_v, grid_m = vector(), scalar()
    init_v = vector()
    ti.root.dense(ti.ij, (steps + 1, n)).place(x, v, C, F)
    ti.root.dense(ti.ij, n_grid).place(grid_v, grid_m)
    ti.root.place(init_v, loss)
    ti.root.lazy_grad()

    @ti.kernel
    def clear_grid():
        for i, j in grid_m:
            grid_v[i, j] = [0, 0]
            grid_m[i, j] = 0
            grid_v.grad[i, j] = [0, 0]
            grid_m.grad[i, j] = 0

    @ti.kernel
    def p2g(f: ti.i32):
        for p in range(n):
            base = ti.cast(x[f, p] * 8 - 0.5, ti.i32)
            fx = x[f, p] * 8 - ti.cast(base, real)
            w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1) ** 2, 0.5 * (fx - 0.5) ** 2]
            new_F = (ti.Matrix.identity(real, 2) + dt * C[f, p]) @ F[f, p]
            F[f + 1, p] = new_F
            J = new_F.determinant()
            inv = new_F.inverse().transpose()
            P = 20.0 * (new_F - inv) + 30.0 * ti.log(J) * inv
            stress = -dt * 0.3 * 4 * 64 * P @ new_F.transpose()
            affine = stress + C[f, p]
            for i in ti.static(range(3)):
                for j in ti.static(range(3)):
                    offset = ti.Vector([i, j])
                    dpos = (ti.cast(offset, real) - fx) * dx
                    weight = w[i][0] * w[j][1]
                    grid_v[base + offset] += weight * (v[f, p] + affine @ dpos)
                    grid_m[base + offset] += weight

    @ti.kernel
    def grid_op():
        for i, j in grid_m:
            inv_m = 1 / (grid_m[i, j] + 1e-10)
            v_out = inv_m * grid_v[i, j]
            v_out[1] -= dt * 9.8
            if i < 2 and v_out[0] < 0:
                v_out[0] = 0
            if j < 2 and v_out[1] < 0:
                normal = ti.Vector([0.0, 1.0])
                lsq = (normal**2).sum()
                v_out -= v_out.dot(normal) / lsq * normal * 0.5
            grid_v_out[i, j] = v_out

    grid_v_out = ti.Vector.field(2, real, shape=(n_grid, n_grid), needs_grad=True)

    @ti.kernel
    def g2p(f: ti.i32):
        for p in range(n):
            base = ti.cast(x[f, p] * 8 - 0.5, ti.i32)
            fx = x[f, p] * 8 - ti.cast(base, real)
            w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1) ** 2, 0.5 * (fx - 0.5) ** 2]
            new_v = ti.Vector.zero(real, 2)
            new_C = ti.Matrix.zero(real, 2, 2)
            for i in ti.static(range(3)):
                for j in ti.static(range(3)):
                    dpos = ti.Vector([i, j]).cast(real) - fx
                    g_v = grid_v_out[base[0] + i, base[1] + j]
                    weight = w[i][0] * w[j][1]
                    new_v += weight * g_v
                    new_C += 4 * weight * g_v.outer_product(dpos) * 8
            v[f + 1, p] = new_v
            x[f + 1, p] = x[f, p] + dt * new_v
            C[f + 1, p] = new_C

    @ti.kernel
    def set_v():
        for p in range(n):
            v[0, p] = init_v[None] * (1.0 + 0.1 * p)

    @ti.kernel
    def compute_loss():
        for p in range(n):
            loss[None] += (x[steps, p] - ti.Vector([0.6, 0.2])).norm_sqr() / n

    @ti.ad.grad_replaced
    def substep(s):
        clear_grid()
        p2g(s)
        grid_op()
        g2p(s)

    @ti.ad.grad_for(substep)
    def substep_grad(s):
        clear_grid()
        grid_v_out.grad.fill(0)
        p2g(s)
        grid_op()
        g2p.grad(s)
        grid_op.grad()
        p2g.grad(s)

    for p in range(n):
        x[0, p] = [0.3 + 0.06 * (p % 3), 0.25 + 0.06 * (p // 3)]
        F[0, p] = [[1, 0.02 * p], [0, 1 + 0.01 * p]]
    init_v[None] = [1.5, -2.0]
    losses = []
    for _ in range(2):
        with ti.ad.Tape(loss):
            set_v()
            for s in range(steps):
                substep(s)
            compute_loss()
        losses.append(float(loss[None]))
        init_v[None] = [init_v[None][k] - 10 * init_v.grad[None][k] for k in range(2)]
    last = np.round(F.grad.to_numpy()[0] * 1e4, 4).reshape(-1).tolist()
    return [plain(losses), rounded(init_v.grad, x.grad)[0], last]


@test
def tape_smoke_of_a_class():
    """Smoke that is advected and made free of divergence, in a class whose kernels take the number of a step."""

    @ti.data_oriented
    class Smoke:
        def __init__(self, n=6, steps=4, sweeps=3):
            self.n, self.steps, self.sweeps = n, steps, sweeps
            self.v = ti.Vector.field(2, real, shape=(steps, n, n), needs_grad=True)
            self.updated = ti.Vector.field(2, real, shape=(steps, n, n), needs_grad=True)
            self.p = ti.field(real, shape=(steps, sweeps, n, n), needs_grad=True)
            self.div = ti.field(real, shape=(steps, n, n), needs_grad=True)
            self.smoke = ti.field(real, shape=(steps, n, n), needs_grad=True)
            self.target = ti.field(real, shape=(n, n))
            self.loss = ti.field(real, shape=(), needs_grad=True)

        @ti.func
        def inc(self, i):
            return (i + 1) % self.n

        @ti.func
        def dec(self, i):
            return (i + self.n - 1) % self.n

        @ti.kernel
        def advect(self, field: ti.template(), out: ti.template(), t: ti.i32):
            for y, x in ti.ndrange(self.n, self.n):
                center_x = y - self.v[t - 1, y, x][0]
                center_y = x - self.v[t - 1, y, x][1]
                x0 = ti.cast(ti.floor(center_x), ti.i32)
                y0 = ti.cast(ti.floor(center_y), ti.i32)
                rw, bw = center_x - x0, center_y - y0
                lw, tw = 1.0 - rw, 1.0 - bw
                x0, y0 = x0 % self.n, y0 % self.n
                x1, y1 = self.inc(x0), self.inc(y0)
                out[t, y, x] = lw * (bw * field[t - 1, x0, y1] + tw * field[t - 1, x0, y0]) + rw * (
                    bw * field[t - 1, x1, y1] + tw * field[t - 1, x1, y0]
                )

        @ti.kernel
        def divergence(self, t: ti.i32):
            for y, x in ti.ndrange(self.n, self.n):
                self.div[t, y, x] = -0.5 * (
                    self.updated[t, self.inc(y), x][0]
                    - self.updated[t, self.dec(y), x][0]
                    + self.updated[t, y, self.inc(x)][1]
                    - self.updated[t, y, self.dec(x)][1]
                )

        @ti.kernel
        def relax(self, t: ti.i32, k: ti.template()):
            for y, x in ti.ndrange(self.n, self.n):
                a = self.div[t, y, x]
                if ti.static(k > 0):
                    a += self.p[t, k - 1, self.dec(y), x] + self.p[t, k - 1, self.inc(y), x]
                    a += self.p[t, k - 1, y, self.dec(x)] + self.p[t, k - 1, y, self.inc(x)]
                self.p[t, k, y, x] = a / 4

        @ti.kernel
        def project(self, t: ti.i32):
            for y, x in ti.ndrange(self.n, self.n):
                last = self.sweeps - 1
                self.v[t, y, x] = self.updated[t, y, x] - 0.5 * ti.Vector(
                    [
                        self.p[t, last, self.inc(y), x] - self.p[t, last, self.dec(y), x],
                        self.p[t, last, y, self.inc(x)] - self.p[t, last, y, self.dec(x)],
                    ]
                )

        @ti.kernel
        def compute_loss(self):
            for i, j in ti.ndrange(self.n, self.n):
                self.loss[None] += (self.target[i, j] - self.smoke[self.steps - 1, i, j]) ** 2 / self.n**2

        def run(self):
            for t in range(1, self.steps):
                self.advect(self.v, self.updated, t)
                self.divergence(t)
                for k in range(self.sweeps):
                    self.relax(t, k)
                self.project(t)
                self.advect(self.smoke, self.smoke, t)
            self.compute_loss()

    s = Smoke()
    rng = np.random.default_rng(2)
    first = np.zeros((s.steps, s.n, s.n, 2))
    first[0] = rng.normal(size=(s.n, s.n, 2)) * 0.7
    s.v.from_numpy(first)
    smoke = np.zeros((s.steps, s.n, s.n))
    smoke[0] = rng.random((s.n, s.n))
    s.smoke.from_numpy(smoke)
    s.target.from_numpy(rng.random((s.n, s.n)))
    with ti.ad.Tape(s.loss):
        s.run()
    first_v = np.round(s.v.grad.to_numpy()[0] * 100, 4).reshape(-1).tolist()
    first_smoke = np.round(s.smoke.grad.to_numpy()[0] * 100, 4).reshape(-1).tolist()
    return [plain(float(s.loss[None])), first_v, first_smoke]
