"""Random functions that return from anywhere: what they give in kernels is what Python gives."""

import linecache
import random

import pytest

import aerogel as ti

NAMES = ("a", "b", "c")


class Program:
    """Statements over three integers, as text."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.lines = []
        self.n_loops = 0

    def expression(self):
        rng = self.rng
        left = rng.choice([*NAMES, str(rng.randint(-5, 9))])
        return f"({left} {rng.choice(['+', '-', '*'])} {rng.choice(NAMES)}) % 17"

    def condition(self):
        return f"{self.expression()} {self.rng.choice(['<', '>', '==', '<='])} {self.rng.randint(0, 12)}"

    def block(self, depth, loops, indent):
        for _ in range(self.rng.randint(1, 3)):
            if self.statement(depth, loops, indent):
                return

    def emit(self, indent, text):
        self.lines.append("    " * indent + text)

    def statement(self, depth, loops, indent):
        """Writes one; whether nothing can follow it. `loops` are the kinds of those around, `if`s among them."""
        kind = self.rng.randint(0, 11) if depth > 0 else self.rng.randint(0, 4)
        if kind <= 2:
            self.emit(indent, f"{self.rng.choice(NAMES)} = {self.expression()}")
        elif kind == 3:
            self.emit(indent, f"{self.rng.choice(NAMES)} += {self.expression()}")
        elif kind == 4 and indent > 1:
            # A loop under `ti.static` cannot be left by what is computed.
            if loops and loops[-1] == "loop" and self.rng.random() < 0.5:
                self.emit(indent, self.rng.choice(["break", "continue"]))
            else:
                self.emit(indent, f"return {self.expression()} + {self.rng.randint(0, 50)}")
            return True
        elif kind in (5, 6, 7):
            self.emit(indent, f"if {self.condition()}:")
            self.block(depth - 1, loops, indent + 1)
            if self.rng.random() < 0.5:
                self.emit(indent, "else:")
                self.block(depth - 1, loops, indent + 1)
        elif kind == 8:
            self.loop(f"for i{self.n_loops} in range({self.rng.randint(1, 4)}):", "loop", depth, loops, indent)
        elif kind == 9:
            self.loop(
                f"for i{self.n_loops} in ti.static(range({self.rng.randint(1, 3)})):", "static", depth, loops, indent
            )
        elif kind == 10:
            self.loop(
                f"for i{self.n_loops}, j{self.n_loops} in ti.ndrange({self.rng.randint(1, 3)}, 2):",
                "loop",
                depth,
                loops,
                indent,
            )
        else:
            count = f"n{self.n_loops}"
            self.emit(indent, f"{count} = 0")
            self.emit(indent, f"while {count} < {self.rng.randint(1, 4)}:")
            self.emit(indent + 1, f"{count} += 1")
            self.n_loops += 1
            self.block(depth - 1, [*loops, "loop"], indent + 1)
        return False

    def loop(self, head, kind, depth, loops, indent):
        self.emit(indent, head)
        index = head.split()[1].rstrip(",")
        self.n_loops += 1
        self.emit(indent + 1, f"{self.rng.choice(NAMES)} += {index}")
        self.block(depth - 1, [*loops, kind], indent + 1)

    def text(self):
        self.block(4, [], 1)
        self.emit(1, f"return {self.expression()} - 100")
        return "\n".join(self.lines) + "\n"


class Plain:
    """What `ti` is when Python runs the text itself."""

    @staticmethod
    def static(x):
        return x

    @staticmethod
    def ndrange(n, m):
        return [(i, j) for i in range(n) for j in range(m)]


def make(path, head, body, scope):
    text = head + body
    linecache.cache[path] = (len(text), None, text.splitlines(True), path)
    exec(compile(text, path, "exec"), scope)  # noqa: S102
    return scope["f"]


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_functions_return_what_python_returns(arch, first):
    arguments = [(0, 1, 2), (5, -3, 11), (16, 7, 3)]
    for seed in range(first, first + 20):
        body = Program(seed).text()
        plain = make(f"/random/plain_{seed}.py", "def f(a, b, c):\n", body, {"ti": Plain})
        head = "    a, b, c = a0, b0, c0\n"
        parameters = "a0: ti.i32, b0: ti.i32, c0: ti.i32"
        inlined = make(f"/random/func_{seed}.py", f"@ti.func\ndef f({parameters}):\n{head}", body, {"ti": ti})
        real = make(
            f"/random/real_{seed}.py", f"@ti.real_func\ndef f({parameters}) -> ti.i32:\n{head}", body, {"ti": ti}
        )

        @ti.kernel
        def run(a: ti.i32, b: ti.i32, c: ti.i32) -> ti.types.vector(2, ti.i32):
            out = ti.Vector([0, real(a, b, c)])
            # Its loops would be parallel, which `break` does not leave, at the outermost level.
            for _ in range(1):
                out[0] = inlined(a, b, c)
            return out

        for given in arguments:
            wanted = plain(*given)
            assert run(*given).to_list() == [wanted] * 2, f"seed {seed}, {given}:\n{body}"
