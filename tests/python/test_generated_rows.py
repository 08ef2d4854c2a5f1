"""Made-up kernels over long rows: what runs in vector lanes computes what the interpreter does, on one thread and on two.

Bodies have loops around reads of neighbours whose indices wrap, are clamped or guarded, branches and loops whose conditions differ
between iterations, and short last axes. Set ``AEROGEL_N_ROWS`` for more kernels, ``AEROGEL_FIRST_SEED`` for others.
"""

import os
import random

import numpy as np
import pytest

import aerogel as ti

N_KERNELS = int(os.environ.get("AEROGEL_N_ROWS", "24"))
FIRST = int(os.environ.get("AEROGEL_FIRST_SEED", "0"))
#: By the number of axes. Batches of lanes have up to 64 iterations, and an inside has several.
SHAPES = {1: (1000,), 2: (2, 300), 3: (2, 130, 3)}
DTYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32}
NUMBERS = {"f32": ["0.5", "-2.0", "3.0"], "f64": ["0.5", "1.5", "-2.0"], "i32": ["-3", "2", "5"]}


class Body:
    """The text of a kernel, line by line."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.n_axes = self.random.choice([1, 2, 2, 2, 3])
        self.dtype = self.random.choice(list(DTYPES))
        self.axes = ["i", "j", "c"][: self.n_axes]
        self.sizes = ["n", "m", "l"][: self.n_axes]
        self.lines = []
        self.depth = 2
        self.counters = []
        self.n_names = 0
        self.block(0, 0)

    def out(self, line):
        self.lines.append("    " * self.depth + line)

    def name(self, prefix):
        self.n_names += 1
        return f"{prefix}{self.n_names}"

    def text(self):
        array = f"ti.types.ndarray(dtype=ti.{self.dtype}, ndim={self.n_axes})"
        head = [
            f"def made_up(a: {array}, w: ti.types.ndarray(dtype=ti.i32, ndim=1), o: {array}, r: ti.i32, q: ti.i32):",
            *(f"    {size} = a.shape[{k}]" for k, size in enumerate(self.sizes)),
            f"    for {', '.join(self.axes)} in o:",
            f"        s = ti.cast(0, ti.{self.dtype})",
        ]
        return "\n".join([*head, *self.lines, f"        o[{', '.join(self.axes)}] = s", ""])

    def offset(self):
        counters = [sign + c for c in self.counters for sign in ("", "-", "")]
        return self.random.choice(["0", "1", "-1", "-3", "r", "-r", "q", *counters, *counters])

    def condition(self):
        """One that is the same for all iterations, or differs, or is decided in the inside of a row."""
        any_axis = self.random.choice(self.axes)
        same = [f"{c} % 2 == 0" for c in self.counters] + [f"{c} * {c} < 5" for c in self.counters] + ["r > 1"]
        differs = [f"w[{x} % 16] > 0" for x in self.axes + self.counters] + [f"{any_axis} % 3 == 1", f"{any_axis} < q"]
        axis, size = self.axes[-1], self.sizes[-1]
        ends = [f"{axis} + {self.offset()} {test}" for test in (">= 0", f"< {size}", "< 0", f">= {size}")]
        one, other = (f"({self.random.choice(self.random.choice([same, differs, ends]))})" for _ in range(2))
        return self.random.choice(
            [one, one, f"{one} & {other}", f"{one} | {other}", f"{one} and {other}", f"not {one}"]
        )

    def read(self):
        guards, indices = [], []
        for axis, size in zip(self.axes, self.sizes):
            moved = f"({axis} + {self.offset()})"
            way = self.random.choice(["wrap", "clamp", "clamp the other way", "guard", "own"])
            if way == "guard":
                index = self.name("x")
                self.out(f"{index} = {moved}")
                within = [f"0 <= {index} < {size}", f"{index} >= 0 and {index} < {size}"]
                guards.append(self.random.choice([*within, f"not ({index} < 0 or {index} >= {size})"]))
                indices.append(index)
            else:
                ways = {
                    "wrap": f"{moved} % {size}",
                    "clamp": f"ti.max(0, ti.min({moved}, {size} - 1))",
                    "clamp the other way": f"ti.min(ti.max({moved}, 0), {size} - 1)",
                    "own": axis,
                }
                indices.append(ways[way])
        read = f"a[{', '.join(indices)}]"
        number = self.random.choice(NUMBERS[self.dtype])
        use = self.random.choice(
            [f"s += {read}", f"s += {read} * {number}", f"s = ti.max(s, {read})", f"s = {read} - s"]
        )
        if guards:
            self.out(f"if {' and '.join(guards)}:")
            self.out(f"    {use}")
        else:
            self.out(use)

    def block(self, depth, n_loops):
        for _ in range(self.random.randint(1, 3)):
            way = self.random.random()
            if way < 0.45 or depth > 3:
                self.read()
            elif way < 0.7 and n_loops < 2:
                counter = self.name("k")
                ends = ["3", "-1, 2", "-5, 6", "-r, r + 1", "0, q", f"0, w[{self.random.choice(self.axes)} % 16]"]
                self.out(f"for {counter} in range({self.random.choice(ends)}):")
                self.counters.append(counter)
                self.inner(depth, n_loops + 1)
                self.counters.pop()
            elif way < 0.9:
                self.out(f"if {self.condition()}:")
                self.inner(depth, n_loops)
                if self.random.random() < 0.4:
                    self.out("else:")
                    self.inner(depth, n_loops)
            elif self.counters and self.random.random() < 0.5:
                self.out(f"if {self.condition()}:")
                self.out(f"    {self.random.choice(['continue', 'break'])}")
            else:
                self.out("s = s % 1009" if self.dtype == "i32" else "s = s * 0.25")

    def inner(self, depth, n_loops):
        self.depth += 1
        self.block(depth + 1, n_loops)
        self.depth -= 1


def results(bodies, tmp_path, **settings):
    """The bytes that the kernels store, and whether one of them is no number."""
    ti.init(log_level="error", fast_math=False, **settings)
    out = []
    for seed, body in bodies.items():
        path = tmp_path / f"rows_{seed}.py"
        path.write_text(body.text())
        names = {"ti": ti}
        exec(compile(body.text(), str(path), "exec"), names)
        kernel = ti.kernel(names["made_up"])
        numbers = np.random.default_rng(seed)
        shape, dtype = SHAPES[body.n_axes], DTYPES[body.dtype]
        a = (numbers.integers(-50, 50, shape) if dtype is np.int32 else numbers.standard_normal(shape)).astype(dtype)
        w = numbers.choice([0, 0, 1, 2, 3, -1, 7], 16).astype(np.int32)
        for r, q in ((1, 2), (3, 40)):
            o = np.zeros(shape, dtype)
            kernel(a, w, o, r, q)
            out.append((seed, r, q, np.nan_to_num(o).tobytes()))
    return out


@pytest.mark.skipif("AEROGEL_TEST_ARCH" in os.environ, reason="it runs on the CPU and on the interpreter")
def test_rows_are_what_the_interpreter_makes_of_them(tmp_path):
    bodies = {seed: Body(seed) for seed in range(FIRST, FIRST + N_KERNELS)}
    wanted = results(bodies, tmp_path, arch=ti.interp)
    for n_threads in (1, 2):
        found = results(bodies, tmp_path, arch=ti.cpu, cpu_max_num_threads=n_threads)
        wrong = [f"seed {own[0]}, r={own[1]}, q={own[2]}" for own, other in zip(found, wanted) if own != other]
        assert not wrong, "\n".join([*wrong, bodies[int(wrong[0].split()[1][:-1])].text()])
