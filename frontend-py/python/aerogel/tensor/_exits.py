"""What leaves a block of a program early: a trace does not see it, and what stands behind it would be lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator

_BLOCKS = ("if_cond", "loop")

#: Functions that have been looked at.
_seen: set[Any] = set()


def refuse(frame: Any) -> None:
    """Refuses ``return``, ``break`` and ``continue`` out of the blocks that the function of a frame writes by ``with``.

    Raises:
        ValueError: If there is one.
    """
    code = frame.f_code
    if code in _seen:
        return
    for line, word in _of(code):
        instead = "return what `where` chooses, or set a value in the block and return that behind it"
        if word != "return":
            instead = "a loop of the program is left by `break_loop` and `continue_loop`"
        raise ValueError(
            f"`{word}` in a block ({code.co_filename}:{line}) would leave out what stands behind it, whether the block "
            f"runs or not: {instead}"
        )
    _seen.add(code)


def _of(code: Any) -> list[tuple[int, str]]:
    import ast
    import inspect
    import textwrap

    try:
        lines, first = inspect.getsourcelines(code)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError, IndexError):
        # Without a source, as of what `exec` makes, there is nothing to look at.
        return []
    blocks = (n for n in ast.walk(tree) if isinstance(n, ast.With) and any(_is_block(i.context_expr) for i in n.items))
    return [(max(first, 1) + node.lineno - 1, word) for block in blocks for node, word in _exits(block, False)]


def _is_block(call: ast.expr) -> bool:
    name = getattr(call, "func", None)
    return getattr(name, "attr", getattr(name, "id", "")) in _BLOCKS


def _exits(node: ast.AST, in_loop: bool) -> Iterator[tuple[Any, str]]:
    """What leaves a statement, by functions in it not."""
    import ast

    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Return):
            yield child, "return"
        elif isinstance(child, (ast.Break, ast.Continue)) and not in_loop:
            yield child, type(child).__name__.lower()
        elif not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            yield from _exits(child, in_loop or isinstance(child, (ast.For, ast.While)))
