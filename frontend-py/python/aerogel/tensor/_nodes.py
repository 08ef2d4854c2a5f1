"""Calls whose gradient a rule gives, among the statements through which reverse mode goes by itself.

The results of such a call are leaves for reverse mode: it stops there. Then the rule computes, from the gradients by
the results, those by the inputs, where reverse mode continues. A node comes after those that its inputs depend on, so
the nodes are visited from the last to the first, each when all gradients by its results are computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aerogel import _native
from aerogel.tensor._backward import leaf_with
from aerogel.tensor._tensor import Tensor, tracing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    #: Computes, from the gradient by each result, the tensors where reverse mode continues, each with its gradient.
    Rule = Callable[[list[Tensor]], list[tuple[Tensor, Tensor]]]


class Node:
    """A call with a rule for its gradient."""

    __slots__ = ("inputs", "numbers", "is_source", "places", "results", "roots", "rule", "what")

    def __init__(self, what: str, rule: Rule) -> None:
        #: How errors call it.
        self.what = what
        self.rule = rule
        #: Whether gradients go to what others know of.
        self.is_source = False
        #: The number of each result, by which its gradient is found.
        self.numbers: list[int] = []
        #: Outside of programs, the shape and dtype of each.
        self.results: list[tuple[Any, Any]] = []
        #: Outside of programs, the variables that it depends on, with the numbers of those that are leaves.
        self.roots: list[tuple[int | None, Any]] = []
        #: In a program, the blocks that it is in, and what its results depend on alone, if that is to be so.
        self.places: tuple[Any, ...] = ()
        self.inputs: Sequence[Tensor] | None = None


def by_inputs(what: str, inputs: Sequence[Tensor], made: Sequence[Tensor | None]) -> list[tuple[Tensor, Tensor]]:
    """The inputs of a call, each with the gradient that a rule has given; without those for which it gave none.

    Raises:
        ValueError: If a gradient has not the shape and dtype of its input.
    """
    out = []
    for x, g in zip(inputs, made, strict=True):
        if g is None:
            continue
        if g.dtype is not x.dtype or not has_shape(g, x, f"{what}: the gradient by an argument"):
            raise ValueError(
                f"{what}: the gradient by an argument is of {g.dtype} and shape {g._native.shape_text()}, and the "
                f"argument of {x.dtype} and shape {x._native.shape_text()}"
            )
        out.append((x, g))
    return out


def has_shape(g: Tensor, x: Tensor, what: str) -> bool:
    """Whether a gradient has the shape of its tensor; in a program with unknown sizes, requires it."""
    if tracing.program is None:
        return g.shape == x.shape
    message = f"{what} has an axis of {{}} elements, and {{}} are needed"
    return tracing.program.native.assert_shape(g._native, list(x._native.shape), message)  # type: ignore[no-any-return]


#: The nodes outside of programs, by the numbers of their results.
_NODES: dict[int, Node] = {}
#: The leaves that tapes take gradients by.
_ON_TAPES: set[int] = set()
#: The number of cleanups of the session when unused nodes were dropped last.
_n_tidied = 0


def is_needed(inputs: Iterable[Any]) -> bool:
    """Whether gradients may be taken by what is computed of some tensors."""
    if _native.are_gradients_off():
        return False
    return tracing.program is not None or any(isinstance(x, Tensor) and x.requires_grad for x in inputs)


def attached(
    what: str,
    results: Sequence[Tensor],
    rule: Rule,
    inputs: Sequence[Tensor] | None = None,
    is_source: bool = False,
) -> list[Tensor]:
    """The results of a call again, with gradients that a rule gives; of a source also where no input has one.

    Raises:
        ValueError: If there are ``inputs``, and a gradient would go to the results in another way than through these.
    """
    node = Node(what, rule)
    node.is_source = is_source
    program = tracing.program
    if program is not None:
        node.inputs = inputs
    else:
        natives = [y._native for y in results]
        node.roots = _native.roots_behind(natives, [x._native for x in inputs or ()])
        if inputs is not None:
            if node.roots:
                raise _other_ways(what)
            node.roots = _native.roots_behind([x._native for x in inputs], [])
    made = []
    for y in results:
        native, number = _native.variable_of_tensor(y.detach()._native, program is None)
        made.append(Tensor(native, y._outside))
        if program is not None:
            node.numbers.append(len(program.node_results))
            # The variable itself: the tensor has another value once something is stored to it.
            program.node_results.append((node, native, y))
        elif number is not None:
            node.numbers.append(number)
            node.results.append((y.shape, y.dtype))
            _NODES[number] = node
    if program is None:
        _forget()
    else:
        node.places = tuple(program.open)
    return made


def leaf_of_tape(x: Tensor) -> tuple[Tensor, int]:
    """A tensor as one that a tape takes the gradient by, and its number."""
    native, number = _native.variable_of_tensor(x._native, True)
    assert number is not None
    _ON_TAPES.add(number)
    return Tensor(native, x._outside), number


def _expect_through(what: str, results: list[Any], inputs: Sequence[Tensor], variables: list[Any]) -> None:
    trace = tracing.program.native
    if results and _native.depends_beyond(results, [x._native for x in inputs], variables, trace):
        raise _other_ways(what)


def _other_ways(what: str) -> ValueError:
    return ValueError(
        f"{what} uses a tensor that requires a gradient and is not an argument, so its rule computes no gradient "
        "for it: make it an argument, or take `stop_gradient` of it"
    )


def newest() -> int:
    """The number of the node that was made last."""
    return max(list(_NODES), default=0)


def end(variables: list[Any], after: int) -> None:
    """Ends variables, and the nodes made after a number that depend on no other variables."""
    _native.end_variables(variables)
    ended = set()
    for number, node in list(_NODES.items()):
        if number > after and not node.is_source and all(_has_ended(root, ended) for root in node.roots):
            ended.add(number)
    if ended:
        _native.end_leaves(list(ended))
        for number in ended:
            _NODES.pop(number, None)


def _has_ended(root: tuple[int | None, Any], ended: set[int]) -> bool:
    number, native = root
    return number in ended or not _native.has_history(native)


def _forget() -> None:
    """Drops the nodes that no tensor depends on any more, if the session has dropped tensors."""
    global _n_tidied
    if _native.n_tidied() == _n_tidied:
        return
    while True:
        there = set(_native.leaves_in_use())
        ended = [number for number, node in list(_NODES.items()) if there.isdisjoint(node.numbers)]
        if not ended:
            break
        for number in ended:
            _NODES.pop(number, None)
        # What their inputs were made of goes with them, other nodes among it.
        _native.tidy_tensors()
    _ON_TAPES.intersection_update(there)
    _n_tidied = _native.n_tidied()


class Gradients:
    """The gradients by variables, through nodes."""

    def __init__(self, variables: Sequence[Any], first: int = 0, of_leaves: bool = False) -> None:
        self._variables = list(variables)
        #: In a program, the first node that may be between the variables and results.
        self._first = first
        # What is not there yet depends on no node that is done.
        self._end: int | None = None
        self._of_leaves = of_leaves
        #: By each variable, if something depends on it.
        self.by_variable: list[Tensor | None] = [None] * len(self._variables)
        #: By leaves, and by the results of nodes that are not done.
        self.by_number: dict[int, Tensor] = {}

    def add(self, pairs: Sequence[tuple[Tensor, Tensor]]) -> None:
        """Adds the gradients of some tensors, each times its seed."""
        if not pairs:
            return
        seeds = [(y._native, seed._native) for y, seed in pairs]
        if tracing.program is not None:
            found, by_variable = self._in_program(seeds)
        elif self._of_leaves or _NODES:
            only = None if self._of_leaves else list(_NODES)
            found, by_variable = _native.leaf_gradients(seeds, self._variables, only)
        else:
            found, by_variable = [], _native.tensor_gradients(seeds, self._variables, None)
        for number, native in found:
            self.by_number[number] = _sum(self.by_number.get(number), Tensor(native))
        for k, native in enumerate(by_variable):
            if native is not None:
                self.by_variable[k] = _sum(self.by_variable[k], Tensor(native))

    def taken(self, number: int) -> Tensor | None:
        """The gradient by a leaf, when that by all that came after it is done; it is not there any more then."""
        self.through_nodes(number + 1)
        return self.by_number.pop(number, None)

    def to_leaves(self, among: Callable[[Any], bool] = lambda _: True) -> None:
        """Goes through all nodes, and adds to ``grad`` of tensors with ``requires_grad``.

        Raises:
            RuntimeError: If a tensor of a field or an array is among them, whose gradient is that of a tape.
        """
        self.through_nodes()
        if not _ON_TAPES.isdisjoint(self.by_number):
            raise RuntimeError(
                "`backward`: the tensor depends on a field or an array that a tape has read: call `tape.grad(loss)`"
            )
        for number, gradient in self.by_number.items():
            leaf = leaf_with(number)
            if leaf is not None and among(leaf):
                leaf.grad = gradient if leaf.grad is None else leaf.grad + gradient

    def _in_program(self, seeds: list[Any]) -> tuple[list[tuple[int, Any]], list[Any]]:
        program = tracing.program
        nodes = program.node_results[self._first : self._end]
        for node, _, _ in nodes:
            if any(block not in program.open for block in node.places):
                raise ValueError(
                    f"there is no gradient: {node.what} is called in a loop or a branch, and the gradient is taken "
                    "outside of it; take it inside, or write the operation out"
                )
            if node.inputs is not None:
                _expect_through(node.what, [y._native for n, _, y in nodes if n is node], node.inputs, self._variables)
        wanted = [*self._variables, *(native for _, native, _ in nodes)]
        made = _native.tensor_gradients(seeds, wanted, program.native)
        n = len(self._variables)
        return [(self._first + k, native) for k, native in enumerate(made[n:]) if native is not None], made[:n]

    def through_nodes(self, down_to: int = 0) -> None:
        """Visits all nodes with gradients whose results have a number not below ``down_to``."""
        while pending := [n for n in self.by_number if n >= down_to and _node(n) is not None]:
            node = _node(max(pending))
            assert node is not None
            self._end = node.numbers[0]
            self.add(node.rule([self._taken(number, k, node) for k, number in enumerate(node.numbers)]))

    def _taken(self, number: int, k: int, node: Node) -> Tensor:
        """The gradient by a result of a node; zeros where nothing depends on it."""
        from aerogel.tensor._creation import zeros, zeros_like

        found = self.by_number.pop(number, None)
        if found is not None:
            return found
        program = tracing.program
        return (
            zeros(node.results[k][0], dtype=node.results[k][1])
            if program is None
            else zeros_like(program.node_results[number][2])
        )


def first_node() -> int:
    """In a program, the number of the node that comes next."""
    return 0 if tracing.program is None else len(tracing.program.node_results)


def _node(number: int) -> Node | None:
    program = tracing.program
    return _NODES.get(number) if program is None else program.node_results[number][0]


def _sum(x: Tensor | None, y: Tensor) -> Tensor:
    return y if x is None else x + y


__all__ = [
    "Gradients",
    "Node",
    "attached",
    "by_inputs",
    "end",
    "first_node",
    "has_shape",
    "is_needed",
    "leaf_of_tape",
    "newest",
]
