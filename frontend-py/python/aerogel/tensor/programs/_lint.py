"""Checks of a function's source: names that a block rebinds, and statements that leave a block early.

Tracing runs an assignment in a block once, however often the block runs. So a name that is assigned before a block
must not be assigned in it; values change by ``.val =``, ``.set()`` and stores.
"""

from __future__ import annotations

import ast
import inspect
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

from aerogel._source_lines import lines_of_code

if TYPE_CHECKING:
    from collections.abc import Iterator

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LOOPS = (ast.For, ast.While)


class _Binding(NamedTuple):
    """A name where it is bound, and the statements around that."""

    name: str
    line: int
    around: tuple[ast.AST, ...]
    #: Of each ``if`` around it, which branch.
    branches: tuple[tuple[ast.AST, str], ...] = ()


class _Function:
    """A function as it is written."""

    def __init__(self, file: str, parameters: list[str], line: int, body: list[ast.stmt]) -> None:
        self.file = file
        self.body = body
        self.bindings = [_Binding(name, line, ()) for name in parameters]
        for statement in body:
            self.bindings += _bindings(statement, ())
        nodes = [node for statement in body for node in ast.walk(statement)]
        self.withs = [node for node in nodes if isinstance(node, ast.With)]
        self.elsewhere = {name for node in nodes if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names}
        #: The statements by ``with`` that have begun blocks.
        self.blocks: set[ast.AST] = set()


#: Functions by their code; those without a source have nothing.
_seen: weakref.WeakKeyDictionary[Any, _Function | None] = weakref.WeakKeyDictionary()


def look_at_block(frame: Any, binds_once: bool) -> None:
    """Looks at the block that a frame begins by ``with``, if its source is there.

    Args:
        frame: The user's function.
        binds_once: Whether names that are bound before the block may not be bound in it.

    Raises:
        ValueError: If the block rebinds such a name, or is left by ``return``, ``break`` or ``continue``.
    """
    function = _of(frame.f_code, frame.f_globals)
    if function is None:
        return
    # Functions that are written alike in two files are equal.
    function.file = frame.f_code.co_filename
    line = frame.f_lineno
    around = [node for node in function.withs if node.lineno <= line < max(node.body[0].lineno, node.lineno + 1)]
    if not around:
        return
    block = around[-1]
    function.blocks.add(block)
    for word, at in _exits(block.body, False):
        instead = "return the result of `where`, or set a value in the block and return it after the block"
        if word != "return":
            instead = "`break_loop()` and `continue_loop()` leave a loop of the program"
        raise ValueError(
            f"`{word}` in a block ({function.file}:{at}) would skip the statements after it, whether the block runs "
            f"or not: {instead}"
        )
    if binds_once:
        _expect_bound_once(function, block)


def look_at_function(function: Any) -> None:
    """Looks at assignments to the values of several tensors at once.

    Raises:
        ValueError: For ``u.val, v.val = v, u``, whose ``u`` has been set when it is read.
    """
    code = getattr(function, "__code__", None)
    known = None if code is None else _of(code, getattr(function, "__globals__", {}))
    if known is None:
        return
    for node in (node for statement in known.body for node in ast.walk(statement)):
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Tuple):
            continue
        if not isinstance(node.value, ast.Tuple):
            continue
        names: list[str] = []
        for target, value in zip(node.targets[0].elts, node.value.elts):
            read = value.value if isinstance(value, ast.Attribute) and value.attr == "val" else value
            if names and isinstance(read, ast.Name) and read.id in names:
                raise ValueError(
                    f"`{read.id}.val` is set before `{read.id}` is read by the same statement ({known.file}:"
                    f"{node.lineno}): copy it first, as in `old = {read.id}.copy()`"
                )
            if isinstance(target, ast.Attribute) and target.attr == "val" and isinstance(target.value, ast.Name):
                names.append(target.value.id)


def _expect_bound_once(function: _Function, block: ast.With) -> None:
    own = [binding for binding in function.bindings if block in binding.around]
    around = next((b.around[: b.around.index(block)] for b in own), ())
    loops = [node for node in around if isinstance(node, _LOOPS)]
    for again in own:
        if again.name in function.elsewhere:
            before: Any = "outside of the function"
        else:
            lines = (
                other.line
                for other in function.bindings
                if other.name == again.name
                and block not in other.around
                and not _exclude_each_other(other, again)
                # What a block that has ended has bound is free.
                and not any(node in function.blocks and node not in around for node in other.around)
                and (other.line < block.lineno or any(loop in other.around for loop in loops))
            )
            before = next((f"in line {line}" for line in lines), None)
        if before is not None:
            name = again.name
            raise ValueError(
                f"`{name}` is bound {before} and again in a block ({function.file}:{again.line}), which Python does "
                f"once, however often the block runs: write `{name}.val = ...` (a number is `{name} = const(0)` "
                "before the block), or give the new value a name of its own"
            )


def _exclude_each_other(one: _Binding, other: _Binding) -> bool:
    """Whether names are bound in two branches of one ``if``."""
    own = dict(one.branches)
    return any(own.get(node, branch) != branch for node, branch in other.branches)


def _of(code: Any, scope: dict[str, Any]) -> _Function | None:
    if code not in _seen:
        _seen[code] = _parsed(code, scope)
    return _seen[code]


def _parsed(code: Any, scope: dict[str, Any]) -> _Function | None:
    try:
        lines, first = lines_of_code(code, scope), code.co_firstlineno
        # A program at the top of a file is the file.
        lines = lines if code.co_name == "<module>" else inspect.getblock(lines[first - 1 :])
        # Strings may have lines that are not indented: the source stays as it is.
        is_inside = lines[0][:1].isspace()
        tree = ast.parse("if 1:\n" * is_inside + "".join(lines))
    except (OSError, TypeError, SyntaxError, IndexError):
        # As of what `exec` makes.
        return None
    ast.increment_lineno(tree, max(first, 1) - 1 - is_inside)
    top: Any = tree.body[0]
    whole = top.body[0] if is_inside else top
    is_function = code.co_name == getattr(whole, "name", "")
    parameters = list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]) if is_function else []
    return _Function(code.co_filename, parameters, first, whole.body if is_function else tree.body)


def _bindings(
    node: ast.AST, around: tuple[ast.AST, ...], branches: tuple[tuple[ast.AST, str], ...] = ()
) -> Iterator[_Binding]:
    """The names that a statement assigns, except the counters of loops, which each loop assigns itself."""
    if isinstance(node, _FUNCTIONS) or isinstance(node, ast.ClassDef):
        if not isinstance(node, ast.Lambda):
            yield _Binding(node.name, node.lineno, around, branches)
        return
    if isinstance(node, _COMPREHENSIONS):
        return
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        for alias in node.names:
            yield _Binding((alias.asname or alias.name).partition(".")[0], node.lineno, around, branches)
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield _Binding(node.id, node.lineno, around, branches)
    if isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name is not None:
        yield _Binding(node.name, node.lineno, around, branches)
    if isinstance(node, ast.MatchMapping) and node.rest is not None:
        yield _Binding(node.rest, node.lineno, around, branches)
    inside = (*around, node) if isinstance(node, (ast.With, *_LOOPS)) else around
    for field, value in ast.iter_fields(node):
        # `for k in ...` and `with ... as k` bind `k` each time that they are done.
        if field == "target" and isinstance(node, ast.For) or field == "optional_vars":
            continue
        own = (*branches, (node, field)) if isinstance(node, ast.If) and field in ("body", "orelse") else branches
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _bindings(child, inside, own)


def _exits(nodes: list[Any], in_loop: bool) -> Iterator[tuple[str, int]]:
    """What leaves some statements early."""
    for node in nodes:
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            continue
        if isinstance(node, ast.Return):
            yield "return", node.lineno
        if not in_loop and isinstance(node, (ast.Break, ast.Continue)):
            yield type(node).__name__.lower(), node.lineno
        if isinstance(node, _LOOPS):
            yield from _exits(node.body, True)
            yield from _exits(node.orelse, in_loop)
        else:
            yield from _exits(list(ast.iter_child_nodes(node)), in_loop)
