"""Compares random kernels with Taichi itself.

    python tests/oracle/random_kernels.py [NUMBER] [FIRST_SEED]

Needs a Python that has `taichi==1.7.4` and Aerogel. Each kernel is a little program: scalars of all types, vectors,
matrices, structs, loops, branches, functions, atomics. It runs under both in processes of its own (Taichi may end
them); what it leaves in its fields and returns must be equal, floats up to rounding. Operations on which Taichi
crashes, or on which the two mean to differ, are not made: see the table in `docs/arithmetic.md`.
"""

import json
import math
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

INTS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
FLOATS = ["f32", "f64"]
BATCH = 20


class Writer:
    """Writes one kernel, its fields and its functions."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.seed = seed
        self.scopes: list[dict[str, str]] = [{}]
        self.count = 0
        self.functions: list[tuple[str, list[str], str]] = []

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def pick(self, kind: str) -> str | None:
        """A variable in scope, of a type that begins with `kind`."""
        found = [n for scope in self.scopes for n, t in scope.items() if t == kind]
        return self.draw.choice(found) if found else None

    def literal(self, ty: str) -> str:
        if ty in FLOATS:
            return f"ti.{ty}({self.draw.choice([0.5, 1.25, -2.0, 3.0, 0.1, -7.5])})"
        # Not constants: those of narrow types, and remainders, Taichi folds wrongly.
        return f"ti.cast(numbers[{self.draw.randrange(100 if ty[0] == 'u' else 200)}], ti.{ty})"

    def expr(self, ty: str, depth: int = 3) -> str:
        """An expression of a scalar type."""
        draw = self.draw
        known = self.pick(ty)
        if depth == 0 or draw.random() < 0.15:
            return known if known and draw.random() < 0.8 else self.literal(ty)
        sub = depth - 1
        roll = draw.random()
        if roll < 0.35:
            op = draw.choice(["+", "-", "*"])
            return f"({self.expr(ty, sub)} {op} {self.expr(ty, sub)})"
        if roll < 0.45:
            # Operands of other types are promoted, and the result is cast back.
            other = draw.choice(FLOATS if ty in FLOATS else INTS)
            op = draw.choice(["+", "-", "*"])
            return f"ti.cast({self.expr(ty, sub)} {op} {self.expr(other, sub)}, ti.{ty})"
        if roll < 0.55:
            function = draw.choice(["ti.min", "ti.max"])
            return f"{function}({self.expr(ty, sub)}, {self.expr(ty, sub)})"
        if roll < 0.63:
            return f"ti.select({self.cond(sub)}, {self.expr(ty, sub)}, {self.expr(ty, sub)})"
        if roll < 0.70:
            return f"({self.expr(ty, sub)} if {self.cond(sub)} else {self.expr(ty, sub)})"
        if roll < 0.75 and ty[0] != "u":
            return draw.choice([f"(-{self.expr(ty, sub)})", f"ti.abs({self.expr(ty, sub)})"])
        if ty in FLOATS:
            if roll < 0.85:
                op = draw.choice(["ti.sin", "ti.cos", "ti.floor", "ti.ceil", "ti.tanh"])
                return f"{op}({self.expr(ty, sub)})"
            if roll < 0.9:
                return f"ti.sqrt(ti.abs({self.expr(ty, sub)}))"
            if roll < 0.95:
                return f"({self.expr(ty, sub)} / (ti.abs({self.expr(ty, sub)}) + {self.literal(ty)[:-1].split('(')[0]}(1.5)))"
        else:
            if roll < 0.83:
                op = draw.choice(["&", "|", "^"])
                return f"({self.expr(ty, sub)} {op} {self.expr(ty, sub)})"
            if roll < 0.88:
                return f"({self.expr(ty, sub)} {draw.choice(['<<', '>>'])} {draw.randint(0, 7)})"
            if roll < 0.94:
                op = draw.choice(["//", "%"])
                return f"({self.expr(ty, sub)} {op} ti.cast(numbers[{draw.randint(1, 9)}], ti.{ty}))"
        vector = self.pick("vec")
        if vector and ty == "f32":
            choices = [f"{vector}[{draw.randint(0, 2)}]", f"{vector}.{draw.choice('xyz')}", f"{vector}.sum()"]
            choices += [f"{vector}.dot({vector})", f"{vector}.max()", f"{vector}.norm_sqr()"]
            return draw.choice(choices)
        struct = self.pick("struct")
        if struct and ty == "i32":
            return f"{struct}.n"
        usable = [f for f in self.functions if f[2] == ty]
        if usable:
            function, types, _ = draw.choice(usable)
            return f"{function}({', '.join(self.expr(t, sub) for t in types)})"
        return known or self.literal(ty)

    def cond(self, depth: int = 2) -> str:
        ty = self.draw.choice([*INTS, *FLOATS])
        compare = self.draw.choice(["<", "<=", ">", ">=", "==", "!="])
        first = f"({self.expr(ty, depth)} {compare} {self.expr(ty, depth)})"
        if depth and self.draw.random() < 0.25:
            return f"({first} {self.draw.choice(['and', 'or'])} {self.cond(depth - 1)})"
        return f"(not {first})" if self.draw.random() < 0.1 else first

    def vector(self, depth: int = 2) -> str:
        draw = self.draw
        known = self.pick("vec")
        if depth == 0 or not known or draw.random() < 0.3:
            return f"ti.Vector([{', '.join(self.expr('f32', 1) for _ in range(3))}])"
        roll = draw.random()
        if roll < 0.5:
            return f"({self.vector(depth - 1)} {draw.choice('+-*')} {self.vector(depth - 1)})"
        if roll < 0.7:
            return f"({self.vector(depth - 1)} * {self.expr('f32', 1)})"
        if roll < 0.8:
            return f"{known}.cross({self.vector(depth - 1)})"
        if roll < 0.9:
            return f"(ti.Matrix([[1.0, 2.0, 0.5], [0.0, 1.0, -1.0], [2.0, 0.0, 1.0]]) @ {self.vector(depth - 1)})"
        return f"{known}.{draw.choice(['zyx', 'yzx', 'xxy'])}"

    def block(self, indent: int, depth: int, in_loop: bool) -> list[str]:
        """Some statements in a scope of their own."""
        self.scopes.append({})
        lines: list[str] = []
        for _ in range(self.draw.randint(1, 4)):
            lines += self.statement(indent, depth, in_loop)
        self.scopes.pop()
        return lines

    def statement(self, indent: int, depth: int, in_loop: bool) -> list[str]:
        draw, pad = self.draw, "    " * indent
        roll = draw.random()
        ty = draw.choice([*INTS, *FLOATS])
        if roll < 0.3:
            value, name = self.expr(ty), self.name()
            self.scopes[-1][name] = ty
            return [f"{pad}{name} = {value}"]
        if roll < 0.4:
            value, name = self.vector(), self.name()
            self.scopes[-1][name] = "vec"
            return [f"{pad}{name} = {value}"]
        if roll < 0.45:
            members, name = f"n={self.expr('i32', 1)}, v={self.vector(1)}, x={self.expr('f64', 1)}", self.name()
            self.scopes[-1][name] = "struct"
            return [f"{pad}{name} = S{self.seed}({members})"]
        if roll < 0.65:
            target = self.pick(ty)
            if target:
                op = draw.choice(["=", "+=", "-=", "*="])
                return [f"{pad}{target} {op} {self.expr(ty)}"]
        if roll < 0.72:
            target = self.pick("vec")
            if target:
                return [f"{pad}{target}[{draw.randint(0, 2)}] {draw.choice(['=', '+='])} {self.expr('f32', 2)}"]
        if roll < 0.85 and depth:
            lines = [f"{pad}if {self.cond()}:", *self.block(indent + 1, depth - 1, in_loop)]
            if draw.random() < 0.5:
                lines += [f"{pad}else:", *self.block(indent + 1, depth - 1, in_loop)]
            return lines
        if roll < 0.95 and depth:
            counter = self.name()
            loop = f"range({draw.randint(0, 3)}, {draw.randint(2, 6)})"
            lines = [f"{pad}for {counter} in {loop}:"]
            self.scopes.append({counter: "i32*"})
            lines += self.block(indent + 1, depth - 1, True)
            if draw.random() < 0.3:
                lines += [f"{pad}    if {self.cond(1)}:", f"{pad}        {draw.choice(['break', 'continue'])}"]
            self.scopes.pop()
            return lines
        return [f"{pad}out_{ty}[{draw.randint(0, 3)}] += {self.expr(ty, 2)}"]

    def function(self) -> list[str]:
        draw = self.draw
        types = [draw.choice([*INTS, *FLOATS]) for _ in range(draw.randint(1, 3))]
        result, name = draw.choice(types), f"f{self.seed}_{len(self.functions)}"
        self.scopes = [{f"a{k}": f"{t}*" for k, t in enumerate(types)}]
        lines = ["@ti.func", f"def {name}({', '.join(f'a{k}' for k in range(len(types)))}):"]
        # Parameters are read through copies: those of a function cannot be assigned to.
        for k, t in enumerate(types):
            lines.append(f"    b{k} = a{k}")
            self.scopes[0][f"b{k}"] = t
        for _ in range(draw.randint(0, 2)):
            lines += self.statement(1, 1, False)
        lines += [f"    return {self.expr(result)}", ""]
        self.functions.append((name, types, result))
        return lines

    def kernel(self) -> str:
        """The text of a function that runs the kernel and gives what it leaves."""
        draw = self.draw
        lines = [f"S{self.seed} = ti.types.struct(n=ti.i32, v=ti.types.vector(3, ti.f32), x=ti.f64)", ""]
        for _ in range(draw.randint(0, 2)):
            lines += self.function()
        self.scopes = [{}]
        result = draw.choice(["i32", "i64", "f32", "f64"])
        lines += ["@ti.kernel", f"def k{self.seed}(p: ti.i32, q: ti.f32) -> ti.{result}:"]
        lines += ["    v0 = p * 2", "    w0 = q + 1"]
        self.scopes[0].update(v0="i32", w0="f32", p="i32*", q="f32*")
        for ty in draw.sample([*INTS, *FLOATS], 4):
            name = self.name()
            lines.append(f"    {name} = {self.literal(ty)}")
            self.scopes[0][name] = ty
        for _ in range(draw.randint(3, 8)):
            lines += self.statement(1, 2, False)
        return "\n".join([*lines, f"    return {self.expr(result)}", ""])


KERNEL = """import numpy as np
import {module} as ti
ti.init(arch=ti.cpu, fast_math=False, offline_cache=False, cpu_max_num_threads=1, log_level="error")
FIELDS = []
for name in {types}:
    globals()["out_" + name] = ti.field(getattr(ti, name), 4)
    FIELDS.append(globals()["out_" + name])
numbers = ti.field(ti.i32, 200)
numbers.from_numpy(np.concatenate([np.arange(100), -np.arange(100) - 1]).astype(np.int32))

{kernel}
def outcome():
    result = k{seed}(7, 0.75)
    return [result] + [v for x in FIELDS for v in x.to_numpy().tolist()]
"""

# Each kernel runs in a process of its own, which Taichi may end.
RUNNER = """import importlib.util, json, os, sys
import {module}
for seed, path in {files}:
    sys.stdout.flush()
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        continue
    try:
        spec = importlib.util.spec_from_file_location("kernel", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        outcome = module.outcome()
    except Exception as e:
        outcome = type(e).__name__ + ": " + str(e).strip().replace(chr(10), " ~ ")[-300:]
    print("OUTCOME", json.dumps([seed, outcome]), flush=True)
    os._exit(0)
"""


def outcomes(module: str, seeds: range, folder: Path) -> dict[int, object]:
    """What the kernels of some seeds leave, those that ended their process left out."""
    files = []
    for seed in seeds:
        path = folder / f"{module}_{seed}.py"
        path.write_text(KERNEL.format(module=module, types=[*INTS, *FLOATS], kernel=Writer(seed).kernel(), seed=seed))
        files.append((seed, str(path)))
    command = [sys.executable, "-c", RUNNER.format(module=module, files=files)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    lines = [line[8:] for line in run.stdout.splitlines() if line.startswith("OUTCOME ")]
    return {seed: outcome for seed, outcome in map(json.loads, lines)}


def equal(a: object, b: object) -> bool:
    """Whether two outcomes are equal but for rounding."""
    if isinstance(a, str) or isinstance(b, str):
        return isinstance(a, str) and isinstance(b, str)
    return all(
        x == y or (math.isnan(x) and math.isnan(y)) or math.isclose(x, y, rel_tol=2e-4, abs_tol=1e-5)
        for x, y in zip(a, b)
    )


def main() -> int:
    """Compares; the number of kernels that differ is the exit status."""
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    differ = compared = refused = 0
    with tempfile.TemporaryDirectory() as folder:
        for begin in range(first, first + number, BATCH):
            seeds = range(begin, min(begin + BATCH, first + number))
            theirs, ours = (outcomes(module, seeds, Path(folder)) for module in ("taichi", "aerogel"))
            for seed in seeds:
                if seed not in ours:
                    print(f"seed {seed}: Aerogel's process ended")
                    differ += 1
                elif seed in theirs:
                    compared += 1
                    refused += isinstance(theirs[seed], str)
                    if not equal(theirs[seed], ours[seed]):
                        differ += 1
                        print(f"seed {seed}:\n  taichi  {theirs[seed]}\n  aerogel {ours[seed]}")
                        if os.environ.get("SHOW"):
                            print(Writer(seed).kernel())
    print(f"{compared} kernels compared, {refused} of them refused by Taichi; {differ} differ")
    return min(differ, 100)


if __name__ == "__main__":
    sys.exit(main())
