"""How time and memory of tapes, checkpoints and snapshots grow with the number of steps and the size of fields.

    python benches/scaling.py [name ...]

Each program runs in a process of its own, on one thread. A row has processor time of a step, or of an element (least of
three runs, gradient included), and the memory that the process gained, for numbers that grow tenfold. If that time
grows, a program is not linear: the last column is the last time divided by the first, and rows above 3 are marked.
"""

import resource
import subprocess
import sys
import time

STEPS, ELEMENTS = (200, 2_000, 20_000), (10_000, 100_000, 1_000_000, 10_000_000)
N = 100


def field(ti, *shape):
    """A field with a gradient."""
    return ti.field(ti.f32, shape, needs_grad=True)


def stepped(ti, n, layout="dense"):
    """``x[t + 1, i]`` from ``x[t, i]``."""
    if layout == "dense":
        x = field(ti, n + 1, N)
    else:
        x = ti.field(ti.f32, needs_grad=True)
        ti.root.pointer(ti.i, n + 1).dense(ti.j, N).place(x, x.grad)
    loss = field(ti)

    @ti.kernel
    def start():
        for i in range(N):
            x[0, i] = 0.5

    @ti.kernel
    def step(t: ti.i32):
        for i in range(N):
            x[t + 1, i] = ti.sin(x[t, i])

    @ti.kernel
    def again(t: ti.i32):
        for i in range(N):
            x[t + 1, i] = x[t + 1, i] ** 2

    @ti.kernel
    def total():
        for i in range(N):
            loss[None] += x[n, i]

    start()
    return x, loss, step, again, total


def slices(ti, n):
    """Each step writes the next slice."""
    _, loss, step, _, total = stepped(ti, n)

    def run():
        with ti.ad.Tape(loss):
            for t in range(n):
                step(t)
            total()

    return run


def overwritten(ti, n, layout="dense"):
    """Each slice is overwritten once after it was read."""
    _, loss, step, again, total = stepped(ti, n, layout)

    def run():
        with ti.ad.Tape(loss):
            for t in range(n):
                step(t)
                again(t)
            total()

    return run


def sparse(ti, n):
    """The same in a sparse field."""
    return overwritten(ti, n, "sparse")


def retained(ti, n):
    """Slices, with all gradients retained."""
    x, loss, step, _, total = stepped(ti, n)

    def run():
        with ti.ad.Tape(loss, retain_grad=[x]):
            for t in range(n):
                step(t)
            total()

    return run


def custom(ti, n):
    """Slices, and a gradient that runs the step again."""
    _, loss, step, _, total = stepped(ti, n)

    @ti.ad.grad_replaced
    def forward(t):
        step(t)

    @ti.ad.grad_for(forward)
    def backward(t):
        step(t)
        step.grad(t)

    def run():
        with ti.ad.Tape(loss):
            for t in range(n):
                forward(t)
            total()

    return run


def apart(ti, n):
    """Slices that do not touch each other."""
    x, loss = field(ti, 2 * n, N), field(ti)

    @ti.kernel
    def step(t: ti.i32):
        for i in range(N):
            loss[None] += ti.sin(x[2 * t, i])

    def run():
        with ti.ad.Tape(loss):
            for t in range(n):
                step(t)

    return run


def from_python(ti, n):
    """Elements that Python writes between the launches that read them."""
    x, y, loss = field(ti, n), ti.ndarray(ti.f32, n, needs_grad=True), field(ti)

    @ti.kernel
    def step(y: ti.types.ndarray(), t: ti.i32):
        loss[None] += x[t] * y[t]

    def run():
        with ti.ad.Tape(loss):
            for t in range(n):
                step(y, t)
                x[t] = 1
                y[t] = 1

    return run


def checkpointed(ti, n):
    """Many small steps and 100 states."""
    x, loss = field(ti, N), field(ti)

    @ti.kernel
    def step():
        for i in x:
            x[i] = ti.sin(x[i])

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i]

    def run():
        with ti.ad.Tape(loss):
            ti.ad.checkpoint(lambda t: step(), steps=n, snapshots=100)
            total()

    return run


def snapshots(ti, n):
    """Ten steps that overwrite all of a field of ``n`` elements."""
    x, loss = field(ti, n), field(ti)

    @ti.kernel
    def step():
        for i in x:
            x[i] = x[i] * (1.5 - x[i])

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i]

    x.fill(0.3)

    def run():
        with ti.ad.Tape(loss):
            for _ in range(10):
                step()
            total()

    return run


def states(ti, n):
    """Forty checkpointed steps of a field of ``n`` elements."""
    x, loss = field(ti, n), field(ti)

    @ti.kernel
    def step():
        for i in x:
            x[i] = x[i] * (1.5 - x[i])

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i]

    x.fill(0.3)

    def run():
        with ti.ad.Tape(loss):
            ti.ad.checkpoint(lambda t: step(), steps=40, snapshots=5)
            total()

    return run


BY_STEPS = (slices, apart, overwritten, sparse, retained, custom, from_python, checkpointed)
BY_ELEMENTS = (snapshots, states)


def measure(name, n):
    """Prints seconds of a run, and bytes."""
    import aerogel as ti

    ti.init(arch=ti.cpu, cpu_max_num_threads=1, log_level="error")
    run = globals()[name](ti, n)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times = []
    for _ in range(3):
        begin = time.process_time()
        run()
        ti.sync()
        times.append(time.process_time() - begin)
    print(min(times), (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)


def main(names):
    """Measures the programs that are named, or all."""
    for programs, sizes, unit in ((BY_STEPS, STEPS, "us a step"), (BY_ELEMENTS, ELEMENTS, "ns an element")):
        factor = 1e6 if programs is BY_STEPS else 1e9
        for program in programs:
            name = program.__name__
            if names and name not in names:
                continue
            cells, each = [], []
            for n in sizes:
                command = [sys.executable, __file__, "--one", name, str(n)]
                seconds, gained = map(float, subprocess.check_output(command, text=True).split())
                each.append(seconds / n * factor)
                cells.append(f"{n:>10,}: {each[-1]:7.1f} {unit}, {gained / 1e6:6.0f} MB")
            growth = each[-1] / each[0]
            print(f"{name:13s}", " |".join(cells), f"| x{growth:.1f}", "NOT LINEAR" if growth > 3 else "", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        measure(sys.argv[2], int(sys.argv[3]))
    else:
        main(sys.argv[1:])
