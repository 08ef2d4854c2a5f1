"""Blocks of a program as they are written: what a trace does not see of them.

A trace sees neither that Python leaves a block early nor that it binds a name to another tensor, and either would give
results other than those that the text says.
"""

from __future__ import annotations

import ast
import inspect
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

from aerogel.tensor._complex import ComplexTensor
from aerogel.tensor._tensor import Tensor, is_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from aerogel.tensor._blocks import Scope


class Written(NamedTuple):
    """A block by ``with``."""

    file: str
    #: The lines from ``with`` to the first statement.
    first: int
    last: int
    #: Names and attributes of names (``self.x``) that are bound in it, and where first.
    bound: dict[str, int]
    #: Those of them that are read before.
    carried: frozenset[str]
    #: Those that the function reads behind it, before it binds them again.
    behind: frozenset[str]
    #: What leaves it early, and where.
    exits: list[tuple[str, int]]


#: The blocks of functions that have been looked at.
_seen: weakref.WeakKeyDictionary[Any, list[Written]] = weakref.WeakKeyDictionary()


def at(frame: Any) -> Written | None:
    """The block that a frame is about to begin by ``with``, if its source is there.

    Raises:
        ValueError: For ``return``, ``break`` and ``continue`` out of the block.
    """
    blocks = _seen.get(frame.f_code)
    if blocks is None:
        blocks = _seen[frame.f_code] = _of(frame.f_code)
    around = [block for block in blocks if block.first <= frame.f_lineno <= block.last]
    if not around:
        return None
    for word, line in around[-1].exits:
        _refuse(word, f"{around[-1].file}:{line}")
    return around[-1]


def _of(code: Any) -> list[Written]:
    try:
        lines, first = inspect.getsourcelines(code)
        # Strings may have lines that are not indented: the source stays as it is.
        is_inside = lines[0][:1].isspace()
        tree = ast.parse("if 1:\n" * is_inside + "".join(lines))
    except (OSError, TypeError, SyntaxError, IndexError):
        # Without a source, as of what `exec` makes, there is nothing to look at.
        return []
    ast.increment_lineno(tree, max(first, 1) - 1 - is_inside)
    top: Any = tree.body[0]
    whole = top.body[0] if is_inside else top
    # A program at the top of a file is the file.
    body = whole.body if code.co_name == getattr(whole, "name", "") else tree.body
    uses = [use for stmt in body for use in _uses(stmt)]
    blocks = [n for n in ast.walk(tree) if isinstance(n, ast.With)]
    return [_written(code.co_filename, block, uses) for block in sorted(blocks, key=lambda b: b.lineno)]


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _exits(nodes: Iterable[ast.AST], in_loop: bool) -> Iterator[tuple[str, int]]:
    """What leaves the block of some statements, and in which lines."""
    for node in nodes:
        if isinstance(node, ast.Return):
            yield "return", node.lineno
        elif isinstance(node, (ast.Break, ast.Continue)):
            if not in_loop:
                yield type(node).__name__.lower(), node.lineno
        elif isinstance(node, (ast.For, ast.While)):
            yield from _exits(node.body, True)
            yield from _exits(node.orelse, in_loop)
        elif not isinstance(node, _FUNCTIONS):
            yield from _exits(ast.iter_child_nodes(node), in_loop)


def _refuse(word: str, place: str) -> None:
    instead = "return what `where` chooses, or set a value in the block and return that behind it"
    if word != "return":
        instead = "a loop of the program is left by `break_loop` and `continue_loop`"
    raise ValueError(
        f"`{word}` in a block ({place}) would leave out what stands behind it, whether the block runs or not: {instead}"
    )


def _written(file: str, block: ast.With, around: list[tuple[str, int, bool]]) -> Written:
    bound: dict[str, int] = {}
    carried = set()
    read = set()
    for name, line, is_read in (use for stmt in block.body for use in _uses(stmt)):
        if is_read:
            read.add(name)
        elif name not in bound:
            bound[name] = line
            carried |= {name} & read
    exits = list(_exits(block.body, False))
    first: dict[str, bool] = {}
    for name, line, is_read in around:
        if line > (block.end_lineno or 0):
            first.setdefault(name, is_read)
    behind = frozenset(name for name, is_read in first.items() if is_read)
    return Written(file, block.lineno, block.body[0].lineno, bound, frozenset(carried), behind, exits)


def _uses(node: ast.AST) -> Iterator[tuple[str, int, bool]]:
    """The names in a statement in the order in which they are read and bound, and whether it is the former."""
    if isinstance(node, ast.Name):
        yield node.id, node.lineno, isinstance(node.ctx, ast.Load)
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        yield node.value.id, node.lineno, True
        yield f"{node.value.id}.{node.attr}", node.lineno, isinstance(node.ctx, ast.Load)
    elif isinstance(node, _COMPREHENSIONS):
        uses = [use for child in ast.iter_child_nodes(node) for use in _uses(child)]
        own = {name for name, _, is_read in uses if not is_read}
        yield from (use for use in uses if use[0] not in own)
    elif not isinstance(node, _FUNCTIONS):
        if isinstance(node, ast.AugAssign) and isinstance(node.target, (ast.Name, ast.Attribute)):
            yield ast.unparse(node.target), node.lineno, True
        children = list(ast.iter_child_nodes(node))
        # What is bound is computed first: `value`, or what a `for` goes through.
        computed = [getattr(node, field, None) for field in ("value", "iter")]
        for child in sorted(children, key=lambda c: c not in computed):
            yield from _uses(child)


class Names:
    """The values that names stand for where a block begins."""

    def __init__(self, block: Written, frame: Any, scopes: list[Scope]) -> None:
        self._block = block
        self._frame: Any = frame
        *self._around, self._scope = scopes
        values = {name: _value_of(name, frame) for name in block.bound}
        self._before = {name: value for name, value in values.items() if self._is_there(value)}

    def _is_there(self, value: Any) -> bool:
        """Whether it is a number, or a tensor whose value is known here: not one of a block that has ended."""
        if is_number(value) or hasattr(value, "__array_interface__"):
            return True
        planes = _planes(value)
        return bool(planes) and all(scope in self._around for plane in planes for scope in plane._made.scopes)

    def end(self) -> None:
        """Refuses to read, behind the block, what a name has been bound to in it.

        Raises:
            ValueError: If a turn of a loop reads what the one before would have bound, or what stands behind the block
                reads a number or a tensor that was there before the block began.
        """
        frame, self._frame = self._frame, None
        for name, old in self._before.items():
            new = _value_of(name, frame)
            if new is old or (is_number(old) and is_number(new) and type(new) is type(old) and new == old):
                continue
            before = "" if _planes(old) else f"`{name} = const(...)` before the block, and "
            message = (
                f"`{name}` is bound to another value in a block ({self._block.file}:{self._block.bound[name]}), and "
                f"what it was stays as it was: write {before}`{name}.val = ...`"
            )
            if self._scope.is_loop and name in self._block.carried:
                raise ValueError(message)
            planes = [p for p in _planes(new) if self._scope in p._made.scopes]
            if not planes and name in self._block.behind:
                raise ValueError(message)
            for plane in planes:
                plane.__class__ = _rebound(message)


def _value_of(name: str, frame: Any) -> Any:
    """What a name, or an attribute of a name, stands for: nothing for those of tensors, and for computed ones."""
    name, _, attribute = name.partition(".")
    code = frame.f_code
    is_own = name in code.co_varnames or name in code.co_cellvars or name in code.co_freevars
    value = frame.f_locals.get(name) if is_own else frame.f_locals.get(name, frame.f_globals.get(name))
    if not attribute:
        return value
    return None if isinstance(value, Tensor) else getattr(value, "__dict__", {}).get(attribute)


def _planes(value: Any) -> list[Tensor]:
    """The tensors of a program that a value is made of: of complex numbers two, of a tuple or a list those of all."""
    if isinstance(value, (tuple, list)):
        return [plane for part in value for plane in _planes(part)]
    parts = [value.real, value.imag] if isinstance(value, ComplexTensor) else [value]
    return [part for part in parts if isinstance(part, Tensor) and part._made is not None]


def _rebound(message: str) -> type[Tensor]:
    def refuse(_: Tensor) -> Any:
        raise ValueError(message)

    return type("Tensor", (Tensor,), {"__slots__": (), "_native": property(refuse)})
