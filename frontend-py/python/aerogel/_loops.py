"""What became of the loops of a kernel, read from its optimised code.

Instructions of LLVM IR have debug locations, whose lines are numbers of places in the source. The instructions of a
loop's own lines show its vectors, its accesses to memory, and what prevents vectors.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

# Passes over a kernel that change how it runs, and what they do.
PASSES = {
    "matrix_products": "sums of products run in blocks that fit into the cache",
    "thread_local": "each thread adds up sums of its own, which are combined at the end",
    "privatize": "iterations have copies of small arrays in registers",
    "axis_order": "axes are in another order than in the source, so that the innermost one runs along memory",
    "short_axis": "a short last axis runs inside of the vectors of the axis before",
    "carried_elements": "elements that all iterations of a loop read and write are variables until it ends",
    "skipped_iteration": "loops are split at an iteration that `if i != j` skips",
    "hoisted_checks": "checks of indices are made once before a loop",
    "proved_checks": "checks of indices that always hold are removed",
}

_LOCATION = re.compile(r"^!(\d+) = (?:distinct )?!DILocation\(line: (\d+)")
_INSTRUCTION = re.compile(r"^ +(?:%\S+ = )?(?:tail |notail |musttail )?(\w+) (.*?), !dbg !(\d+)")
_CALLED = re.compile(r"@([\w.$]+)\(")
_VECTOR = re.compile(r"<(\d+) x ")
_MOVES = {"shufflevector", "insertelement", "extractelement", "phi", "getelementptr"}


@dataclass
class Loop:
    """A loop of a kernel, or of a function that the kernel calls.

    Attributes:
        path: The file.
        line: The line of the loop's head in the file, from 1.
        last_line: The last line of its body.
        text: The head, such as ``for i in x:``.
        runs: ``"parallel"`` (on threads), ``"serial"``, or ``"unrolled"`` (``ti.static``).
        lanes: How many elements one instruction computes: 1 without vectors, and on a GPU. 0 where no code is left.
        facts: What the code does, as sentences.
        reasons: Why there are no vectors, as sentences.
        hints: What to change, with the line.
    """

    path: str
    line: int
    last_line: int
    text: str
    runs: str
    is_while: bool
    on_gpu: bool
    depth: int
    has_inner: bool
    lanes: int = 0
    facts: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        scalar = "in threads of a GPU" if self.on_gpu else "no vectors"
        how = {0: "no code of its own", 1: scalar}.get(self.lanes, f"vectors of {self.lanes}")
        head = f"{'    ' * self.depth}{self.text}"
        lines = [f"{self.line:5}  {head:<48} {self.runs}; {how}"]
        notes = [*self.facts, *self.reasons, *(f"hint: {hint}" for hint in self.hints)]
        return "\n".join([*lines, *(f"{'':9}{'    ' * self.depth}- {note}" for note in notes)])


@dataclass
class _Code:
    """The instructions of a loop's own lines."""

    # How often each line has an access or an operation of a kind.
    kinds: dict[str, Counter[int]] = field(default_factory=dict)
    # The numbers of elements of its operations.
    widths: set[int] = field(default_factory=set)
    # Those of its accesses: records are read as vectors of several elements a lane.
    accessed: set[int] = field(default_factory=set)

    def add(self, kind: str, line: int, lanes: int) -> None:
        self.kinds.setdefault(kind, Counter())[line] += 1
        (self.accessed if "access" in kind else self.widths).add(lanes)

    @property
    def lanes(self) -> int:
        computed = max(self.widths, default=0)
        if computed > 1 or not self.accessed:
            return computed
        return min(self.accessed - {1}, default=1)

    def lines(self, kind: str) -> list[int]:
        return sorted(self.kinds.get(kind, ()))


def report(inspection: dict[str, Any]) -> tuple[list[Loop], list[str]]:
    """The loops of an inspected kernel by their lines, and what passes changed in all of it."""
    on_gpu = 'target triple = "nvptx' in inspection["llvm"]
    files = enumerate(inspection["files"])
    loops = [list(_loops(number, path, line, text, on_gpu)) for number, (path, line, text) in files]
    code = _by_loop(inspection["llvm"], inspection["places"], loops)
    for of_file in loops:
        for loop in of_file:
            _tell(loop, code.get(id(loop), _Code()))
    changed = [text for name, text in PASSES.items() if name in inspection["stages"]]
    return [loop for of_file in loops for loop in of_file], changed


def _loops(number: int, path: str, first_line: int, text: str, on_gpu: bool) -> Iterator[Loop]:
    """The loops of a source, outer ones first. Only the first source is the kernel's."""
    # The source of an inner function is indented.
    first_line, text = first_line - 1, f"if True:\n{text}" if text[:1].isspace() else f"\n{text}"
    try:
        block = ast.parse(text).body[0]
    except (SyntaxError, IndexError):
        return
    function = block.body[0] if isinstance(block, ast.If) else block
    lines = text.splitlines()

    def below(body: list[ast.stmt], is_top: bool, depth: int) -> Iterator[Loop]:
        serialize = False
        for stmt in body:
            if isinstance(stmt, ast.For | ast.While):
                is_static = isinstance(stmt, ast.For) and _is_static(stmt.iter)
                is_parallel = is_top and isinstance(stmt, ast.For) and not serialize
                inside = list(below(stmt.body, is_top and is_static, depth + 1))
                yield Loop(
                    path=path,
                    line=first_line + stmt.lineno - 1,
                    last_line=first_line + (stmt.end_lineno or stmt.lineno) - 1,
                    text=lines[stmt.lineno - 1].strip(),
                    runs="unrolled" if is_static else "parallel" if is_parallel else "serial",
                    is_while=isinstance(stmt, ast.While),
                    on_gpu=on_gpu,
                    depth=depth,
                    has_inner=any(loop.runs != "unrolled" for loop in inside),
                )
                yield from inside
            elif isinstance(stmt, ast.If):
                is_open = is_top and _is_static(stmt.test)
                yield from below(stmt.body, is_open, depth)
                yield from below(stmt.orelse, is_open, depth)
            serialize = _serializes(stmt)

    if isinstance(function, ast.FunctionDef):
        yield from below(function.body, number == 0, 0)


def _is_static(e: ast.expr) -> bool:
    if not isinstance(e, ast.Call):
        return False
    return getattr(e.func, "attr", getattr(e.func, "id", "")) == "static"


def _serializes(stmt: ast.stmt) -> bool:
    if not (isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Call)):
        return False
    called = stmt.value
    on = [k.value for k in called.keywords if k.arg == "serialize"]
    return getattr(called.func, "attr", "") == "loop_config" and any(
        isinstance(value, ast.Constant) and bool(value.value) for value in on
    )


def _by_loop(llvm: str, places: list[list[tuple[int, int]]], loops: list[list[Loop]]) -> dict[int, _Code]:
    """The instructions of each loop, by its ``id``."""
    spans, instructions = {}, []
    for line in llvm.splitlines():
        if line.startswith("!"):
            if location := _LOCATION.match(line):
                spans[location[1]] = int(location[2])
        elif found := _INSTRUCTION.match(line):
            instructions.append(found.groups())
    code: dict[int, _Code] = {}
    for opcode, rest, location in instructions:
        span = spans.get(location, 0)
        if not 0 < span <= len(places):
            continue
        kind, lanes = _kind(opcode, rest)
        found = _innermost(places[span - 1], loops, kind == "blocks")
        if kind and found is not None:
            loop, line = found
            code.setdefault(id(loop), _Code()).add(kind, line, lanes)
    return code


def _innermost(chain: list[tuple[int, int]], loops: list[list[Loop]], in_head: bool) -> tuple[Loop, int] | None:
    """The innermost loop around a place or around the calls that lead to it, and the line there."""
    for number, line in chain:
        around = [loop for loop in loops[number] if loop.line <= line <= loop.last_line]
        # What computes the bounds of a loop and counts its iterations is not in it.
        around = [loop for loop in around if in_head or loop.line < line or loop.line == loop.last_line]
        if around:
            return max(around, key=lambda loop: loop.depth), line
    return None


def _kind(opcode: str, rest: str) -> tuple[str, int]:
    """What an instruction does, and for how many elements."""
    width = max((int(n) for n in _VECTOR.findall(rest)), default=1)
    match opcode:
        case "load" if rest.startswith("ptr"):
            # The way to an array, or to the cells of a sparse node.
            return "", 1
        case "load" | "store":
            return "access" if width > 1 else f"scalar access: {opcode} {rest.partition(' ')[0]}", width
        case "atomicrmw" | "cmpxchg":
            return "atomic", 1
        case "call" | "invoke":
            name = (_CALLED.search(rest) or [None, ""])[1] or ""
            for part, kind in (
                ("masked.gather", "gather"),
                ("masked.scatter", "scatter"),
                ("masked.", "access"),
                ("tile_product", "blocks"),
            ):
                if part in name:
                    return kind, width
            return ("", 1) if name.startswith("llvm.") and width == 1 else ("call", 1) if width == 1 else ("", width)
        case _ if opcode in _MOVES or opcode in ("br", "ret", "switch"):
            return "", 1
        case _:
            return "operation", width


def _tell(loop: Loop, code: _Code) -> None:
    """Facts, reasons and hints of a loop."""
    if loop.runs == "unrolled":
        loop.lanes = code.lanes
        return
    loop.lanes = code.lanes
    if blocks := code.lines("blocks"):
        loop.facts.append(f"{_lines(blocks)}: a matrix product in blocks, with the sums of a block in registers")
    if loop.on_gpu:
        # Neighbouring threads are the lanes; what vectors there are hold the components of one element.
        loop.lanes = min(loop.lanes, 1)
    elif loop.lanes > 1:
        _tell_accesses(loop, code)
    elif loop.lanes == 1 and not blocks:
        _tell_reasons(loop, code)
    elif not loop.has_inner and not blocks:
        loop.facts.append("it was unrolled, joined with the loop around it, or nothing reads what it computes")
    atomics = code.lines("atomic")
    if atomics and not loop.reasons:
        loop.facts.append(f"{_lines(atomics)}: atomic operations, one element at a time")


def _tell_accesses(loop: Loop, code: _Code) -> None:
    if accesses := code.lines("access"):
        loop.facts.append(f"{_lines(accesses)}: neighbours in memory are read or written together")
    one_by_one = [of_lines for kind, of_lines in code.kinds.items() if kind.startswith("scalar access")]
    # Fewer alike are those of the iterations after the last whole vector. The line of a loop that has only one contains
    # what makes lists of sparse cells, too.
    by_element = [line for of_lines in one_by_one for line, n in of_lines.items() if n >= max(loop.lanes, 4)]
    by_element = by_element if loop.line < loop.last_line else []
    scattered = sorted({*code.lines("gather"), *code.lines("scatter"), *by_element})
    if scattered:
        loop.facts.append(f"{_lines(scattered)}: one address for each lane (gather or scatter)")
        loop.hints.append(
            f"{_lines(scattered)}: let the last index be the one that the innermost loop counts, or change the layout"
        )


def _tell_reasons(loop: Loop, code: _Code) -> None:
    atomics, calls = code.lines("atomic"), code.lines("call")
    if atomics:
        loop.reasons.append(f"{_lines(atomics)}: several iterations may add to one element, so each does it atomically")
        loop.hints.append(
            f"{_lines(atomics)}: let each iteration store to an element of its own, or add to a variable and store once"
        )
    elif calls:
        loop.reasons.append(f"{_lines(calls)}: a call that is not part of the loop's code")
    elif loop.is_while:
        loop.reasons.append("the number of iterations is not known before the loop")
        loop.hints.append(f"line {loop.line}: write `for k in range(n)` if the number is known")
    elif not loop.has_inner:
        loop.reasons.append("an iteration may need what the one before computed, or vectors do not pay")
        loop.hints.append(f"line {loop.line}: iterations that read nothing that others store can run in vectors")


def _lines(lines: list[int]) -> str:
    return f"line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))}"


def text_of(loops: list[Loop], changed: list[str]) -> str:
    """The report as text: a paragraph for each file."""
    parts = []
    for path in dict.fromkeys(loop.path for loop in loops):
        parts += [path, *(str(loop) for loop in loops if loop.path == path), ""]
    if not loops:
        parts.append("The kernel has no loops.")
    if changed:
        parts += ["In the whole kernel:", *(f"  - {text}" for text in changed)]
    return "\n".join(parts).rstrip()
