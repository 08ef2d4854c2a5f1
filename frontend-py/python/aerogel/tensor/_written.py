"""Blocks of a program as they are written: what leaves them early, what they read and bind; assignments."""

from __future__ import annotations

import ast
import inspect
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

from aerogel._source_lines import lines_of_code

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Written(NamedTuple):
    """A block by ``with``."""

    file: str
    #: The lines from ``with`` to the first statement.
    first: int
    last: int
    #: Names that stand in it, and where first.
    mentioned: dict[str, int]
    #: Names and attributes of names (``self.x``) that are bound in it, and where first.
    bound: dict[str, int]
    #: Those of them that are read before, or by a function that was made before.
    carried: frozenset[str]
    #: Those that are read later, before they are bound again: behind it, in the next turn of what is around it, or by a
    #: function.
    later: frozenset[str]
    #: What it asks for whether that is there, by `d.get`, `in`, `getattr`: of which name or attribute, and the text of
    #: the key, or nothing for any.
    asked: frozenset[tuple[str, str | None]]
    #: What leaves it early, and where.
    exits: list[tuple[str, int]]

    def expect_no_exits(self) -> None:
        """Refuses to leave a block early, which a trace does not see.

        Raises:
            ValueError: For ``return``, ``break`` and ``continue`` out of the block.
        """
        for word, line in self.exits:
            instead = "return what `where` chooses, or set a value in the block and return that behind it"
            if word != "return":
                instead = "a loop of the program is left by `break_loop` and `continue_loop`"
            raise ValueError(
                f"`{word}` in a block ({self.file}:{line}) would leave out what stands behind it, whether the block "
                f"runs or not: {instead}"
            )


class _Function(NamedTuple):
    """A function; one without a source has nothing."""

    blocks: tuple[Written, ...] = ()
    #: The first and the last line of each assignment to several places at once.
    assignments: tuple[tuple[int, int], ...] = ()


#: What has been looked at. Functions that are written alike in two files are equal, but for the file.
_seen: weakref.WeakKeyDictionary[Any, _Function] = weakref.WeakKeyDictionary()


def at(frame: Any) -> Written | None:
    """The block that a frame is about to begin by ``with``, if its source is there."""
    around = [block for block in _function(frame).blocks if block.first <= frame.f_lineno <= block.last]
    return around[-1]._replace(file=frame.f_code.co_filename) if around else None


def assignment_at(frame: Any) -> int | None:
    """The first line of the assignment to several places, as ``a.val, b.val = ...``, in which a frame is."""
    around = [first for first, last in _function(frame).assignments if first <= frame.f_lineno <= last]
    return around[-1] if around else None


def _function(frame: Any) -> _Function:
    if frame.f_code not in _seen:
        _seen[frame.f_code] = _of(frame.f_code, frame.f_globals)
    return _seen[frame.f_code]


def _of(code: Any, scope: dict[str, Any]) -> _Function:
    try:
        lines, first = lines_of_code(code, scope), code.co_firstlineno
        # A program at the top of a file is the file.
        lines = lines if code.co_name == "<module>" else inspect.getblock(lines[first - 1 :])
        # Strings may have lines that are not indented: the source stays as it is.
        is_inside = lines[0][:1].isspace()
        tree = ast.parse("if 1:\n" * is_inside + "".join(lines))
    except (OSError, TypeError, SyntaxError, IndexError):
        # As of what `exec` makes.
        return _Function()
    ast.increment_lineno(tree, max(first, 1) - 1 - is_inside)
    top: Any = tree.body[0]
    whole = top.body[0] if is_inside else top
    body = whole.body if code.co_name == getattr(whole, "name", "") else tree.body
    blocks = sorted(_blocks(code.co_filename, body, list(_uses(body)), []), key=lambda block: block.first)
    nodes = (node for statement in body for node in ast.walk(statement))
    several = (node for node in nodes if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple))
    return _Function(tuple(blocks), tuple((node.lineno, node.end_lineno or node.lineno) for node in several))


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class _Use(NamedTuple):
    """A name where it is read or bound."""

    name: str
    line: int
    is_read: bool
    #: In a function, which may read it at any time after.
    is_in_function: bool = False


def _blocks(file: str, nodes: Iterable[ast.AST], uses: list[_Use], around: list[frozenset[str]]) -> Iterator[Written]:
    """The blocks in some statements of a function that has these uses; what blocks and loops around them carry on."""
    for node in nodes:
        inside = around
        if isinstance(node, (ast.For, ast.While, ast.With)):
            first: dict[str, bool] = {}
            for use in _uses([node]):
                first.setdefault(use.name, use.is_read)
            inside = [*around, frozenset(name for name, is_read in first.items() if is_read)]
        if isinstance(node, ast.With):
            yield _written(file, node, uses, around)
        if not isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            yield from _blocks(file, ast.iter_child_nodes(node), uses, inside)


def _written(file: str, block: ast.With, uses: list[_Use], around: list[frozenset[str]]) -> Written:
    # What follows `as` is bound when the block begins.
    own = list(_uses([*(item.optional_vars for item in block.items if item.optional_vars), *block.body]))
    mentioned: dict[str, int] = {}
    bound: dict[str, int] = {}
    carried = {use.name for use in uses if use.is_in_function and use.line < block.lineno}
    for use in own:
        mentioned.setdefault(use.name.partition(".")[0], use.line)
        if use.is_read and use.name not in bound:
            carried.add(use.name)
        elif not use.is_read:
            bound.setdefault(use.name, use.line)
    first: dict[str, bool] = {}
    for use in uses:
        if use.line > (block.end_lineno or 0):
            first.setdefault(use.name, use.is_read)
    later = {name for name, is_read in first.items() if is_read}.union(*around)
    later |= {use.name for use in uses if use.is_in_function}
    asked = frozenset(_asked(block.body))
    exits = list(_exits(block.body, False))
    last = block.body[0].lineno
    return Written(file, block.lineno, last, mentioned, bound, frozenset(carried), frozenset(later), asked, exits)


def _asked(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str | None]]:
    for node in (inner for outer in nodes for inner in ast.walk(outer)):
        if isinstance(node, ast.Compare):
            for left, op, right in zip([node.left, *node.comparators], node.ops, node.comparators):
                if isinstance(op, (ast.In, ast.NotIn)):
                    yield ast.unparse(right), _key(left)
        elif isinstance(node, ast.Call) and node.args:
            function, first, *others = node.func, *node.args
            if isinstance(function, ast.Attribute) and function.attr in ("get", "setdefault"):
                yield ast.unparse(function.value), _key(first)
            elif isinstance(function, ast.Name) and function.id in ("getattr", "hasattr") and others:
                yield ast.unparse(first), _key(others[0])


def _key(node: ast.AST) -> str | None:
    return repr(node.value) if isinstance(node, ast.Constant) else None


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
        elif not isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            yield from _exits(ast.iter_child_nodes(node), in_loop)


def _uses(nodes: Iterable[ast.AST]) -> Iterator[_Use]:
    """The names in some nodes, in the order in which they are read and bound."""
    for node in nodes:
        if isinstance(node, ast.Name):
            yield _Use(node.id, node.lineno, isinstance(node.ctx, ast.Load))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield _Use(node.value.id, node.lineno, True)
            yield _Use(f"{node.value.id}.{node.attr}", node.lineno, isinstance(node.ctx, ast.Load))
        elif isinstance(node, _COMPREHENSIONS):
            uses = list(_uses(ast.iter_child_nodes(node)))
            own = {use.name for use in uses if not use.is_read}
            yield from (use for use in uses if use.name not in own)
        elif isinstance(node, _FUNCTIONS):
            yield from _of_function(node)
            if not isinstance(node, ast.Lambda):
                yield _Use(node.name, node.lineno, False)
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar, ast.MatchMapping)):
            name = node.rest if isinstance(node, ast.MatchMapping) else node.name
            if name is not None:
                yield _Use(name, node.lineno, False)
            yield from _uses(ast.iter_child_nodes(node))
        else:
            if isinstance(node, ast.AugAssign) and isinstance(node.target, (ast.Name, ast.Attribute)):
                yield _Use(ast.unparse(node.target), node.lineno, True)
            # What is bound is computed first: `value`, or what a `for` goes through.
            computed = [getattr(node, field, None) for field in ("value", "iter")]
            yield from _uses(sorted(ast.iter_child_nodes(node), key=lambda child: child not in computed))


def _of_function(node: Any) -> Iterator[_Use]:
    """The names that a function reads and has not bound itself."""
    body = [node.body] if isinstance(node, ast.Lambda) else node.body
    uses = list(_uses(body))
    shared = {n for inner in ast.walk(node) if isinstance(inner, (ast.Nonlocal, ast.Global)) for n in inner.names}
    every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
    own = {arg.arg for arg in every if arg is not None}
    own |= {use.name for use in uses if not use.is_read} - shared
    for use in uses:
        if use.is_read and use.name.partition(".")[0] not in own:
            yield use._replace(is_in_function=True)


class Together:
    """What one assignment to several places has set by ``.val``: ``u.val, v.val = v, u`` takes ``u`` too late."""

    def __init__(self) -> None:
        self._at: Any = None
        self._last = -1
        #: By their numbers, which no others get as long as they are held.
        self._set: dict[int, Any] = {}

    def expect_unset(self, target: Any, value: Any, frame: Any) -> None:
        """Refuses to take the value of what the same assignment has set.

        Raises:
            ValueError: If it has.
        """
        first = assignment_at(frame)
        if first is None:
            return
        at = frame.f_code, first
        # The same place again, or one before, is another turn or another call.
        if at != self._at or frame.f_lasti <= self._last:
            self._at, self._set = at, {}
        self._last = frame.f_lasti
        if value is not target and id(value) in self._set:
            raise ValueError(
                "a value is taken of what the same assignment has set before, and which is another by now: copy it "
                "first, as in `old = u.copy()` and `u.val, v.val = v, old`"
            )
        self._set[id(target)] = target
