"""The statements of a program one by one, by the operations of a back end on whole arrays.

All points of a ``for`` are computed together. A value has the axes that it depends on and no others, and is expanded
where it meets one with more. A branch at each point is a mask, and a loop ends when its mask is empty.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from aerogel._dtypes import ALL, DataType, u1
from aerogel.backends import _libraries, _stores

if TYPE_CHECKING:
    from aerogel.backends._backend import Backend
    from aerogel.backends._program import Program

i32 = ALL["i32"]


class OutOfBounds(IndexError):
    """An index outside; whoever runs the program says where it was written."""

    def __init__(self, site: int, axis: int, index: int, size: int) -> None:
        super().__init__(f"index {index} is outside axis {axis} with {size} elements")
        self._aerogel_out_of_bounds = (site, axis, index, size)


class Value(NamedTuple):
    """An expression at all points: a storage with one axis for each axis of the domain that it depends on, in order."""

    storage: Any
    axes: tuple[int, ...]


class _Left(Exception):
    """A loop of the host, or of all points, is left (``break``) or goes on (``continue``)."""

    def __init__(self, kind: str) -> None:
        self.kind = kind


class _Loop:
    """A loop at each point: where it still runs, and where this iteration does; ``None`` is everywhere."""

    def __init__(self) -> None:
        self.alive: Value | None = None
        self.in_iteration: Value | None = None


def execute(backend: Backend, program: Program, inputs: list[Any]) -> list[Any]:
    """The results of a program.

    Raises:
        OutOfBounds: An index is outside where that is an error.
        TypeError: The back end does not have a dtype of the program.
    """
    for dtype in {buffer.dtype for buffer in program.buffers} | set(program.dtypes):
        if not backend.supports(dtype):
            raise TypeError(
                f"back end `{backend.name}` does not support {dtype}: use `x.to('native')`, or another dtype"
            )
    run = Execution(backend, program, inputs)
    run.block(program.body)
    results = [run.memory_of(b) for b in program.results]
    backend.eval(results)
    return results


class Execution:
    """One run of a program."""

    def __init__(self, backend: Backend, program: Program, inputs: list[Any]) -> None:
        self.b = backend
        self.program = program
        self.memory: dict[int, Any] = dict(zip(program.inputs, inputs, strict=True))
        #: Values that were put aside for a gradient.
        self.histories: dict[int, Any] = {}
        #: Sizes of the axes of the domain.
        self.domain: tuple[int, ...] = ()
        self._is_in_for = False
        #: Variables of the host, and those of each point.
        self._variables: dict[int, Value] = {}
        self._own: dict[int, Value] = {}
        #: Conditions of the branches around, and loops.
        self._conditions: list[Value | _Loop] = []
        self._known: dict[int, Value] = {}

    # Memory.

    def memory_of(self, buffer: int) -> Any:
        """What a buffer holds; zeros at first."""
        if buffer not in self.memory:
            own = self.program.buffers[buffer]
            self.memory[buffer] = self.b.full(own.shape, 0, own.dtype)
        return self.memory[buffer]

    def set_memory(self, buffer: int, storage: Any) -> None:
        """Gives a buffer other contents."""
        self.memory[buffer] = storage
        self._known.clear()

    # Statements.

    def block(self, body: tuple[Any, ...]) -> None:
        """Statements one after the other."""
        for stmt in body:
            getattr(self, f"_do_{stmt[0]}")(*stmt[1:])

    def _do_for(self, domain: tuple[int, ...], body: tuple[Any, ...]) -> None:
        for stmt in body:
            if stmt[0] == "store" and stmt[5]:
                own = self.program.buffers[stmt[1]]
                self.memory[stmt[1]] = self.b.full(own.shape, neutral(stmt[4], own.dtype), own.dtype)
        if 0 in domain:
            return
        self.domain, self._is_in_for = domain, True
        self._known.clear()
        try:
            self.block(body)
        finally:
            self.domain, self._is_in_for = (), False
            self._own.clear()
            self._known.clear()

    def _do_store(self, target: int, index: Any, value: int, accum: Any, init: bool, outside: str, site: Any) -> None:
        _stores.store(self, _stores.Store(target, index, value, accum, init, outside, site))

    def _do_set(self, variable: int, e: int) -> None:
        value = self.value(e)
        self._known.clear()
        if not self._is_in_for:
            self._variables[variable] = value
            return
        mask = self.mask()
        if mask is not None:
            axes = tuple(sorted({*mask.axes, *value.axes, *self.variable(variable).axes}))
            old = self.lifted(self.variable(variable), axes)
            value = Value(self.b.select(self.lifted(mask, axes), self.lifted(value, axes), old), axes)
        self._own[variable] = value

    def variable(self, variable: int) -> Value:
        """What a variable is; zero before it is set."""
        found = self._own.get(variable) or self._variables.get(variable)
        return found or self.constant(0, self.program.variables[variable])

    def _do_loop(self, counter: tuple[int, int, int, int], body: tuple[Any, ...]) -> None:
        variable, lo, hi, step = counter
        first, last = self.value(lo), self.value(hi)
        if first.axes or last.axes:
            self._loop_of_points(counter, first, last, body)
            return
        loop = _Loop()
        for k in range(self.number(first), self.number(last), step):
            if self._turn(loop, variable, self.constant(k, i32), body):
                return

    def _turn(self, loop: _Loop, variable: int, k: Value, body: tuple[Any, ...]) -> bool:
        """One iteration of a loop; whether it was the last one at all points."""
        (self._own if self._is_in_for else self._variables)[variable] = k
        self._known.clear()
        loop.in_iteration = None
        self._conditions.append(loop)
        try:
            self.block(body)
        except _Left as left:
            return left.kind == "break"
        finally:
            self._conditions.pop()
        return loop.alive is not None and not self.any(loop.alive)

    def _loop_of_points(self, counter: Any, first: Value, last: Value, body: tuple[Any, ...]) -> None:
        """A loop that begins or ends at other numbers at each point."""
        variable, _, _, step = counter
        axes = tuple(sorted({*first.axes, *last.axes}))
        k, end = Value(self.lifted(first, axes), axes), Value(self.lifted(last, axes), axes)
        loop = _Loop()
        while True:
            inside = Value(self.b.compare("lt" if step > 0 else "gt", k.storage, end.storage), axes)
            loop.alive = inside if loop.alive is None else self.both(loop.alive, inside)
            if not self.any(loop.alive) or self._turn(loop, variable, k, body):
                return
            shape = self.b.describe(k.storage)[1]
            k = Value(self.b.binary("add", k.storage, self.b.full(shape, step, i32)), axes)

    def _do_if(self, cond: int, then: tuple[Any, ...], otherwise: tuple[Any, ...]) -> None:
        condition = self.value(cond)
        if not condition.axes:
            self.block(then if self.number(condition) else otherwise)
            return
        for mask, body in ((condition, then), (self.negated(condition), otherwise)):
            if body:
                self._conditions.append(mask)
                try:
                    self.block(body)
                finally:
                    self._conditions.pop()

    def _do_break(self) -> None:
        self._leave("alive")

    def _do_continue(self) -> None:
        self._leave("in_iteration")

    def _leave(self, which: str) -> None:
        at = max((k for k, c in enumerate(self._conditions) if isinstance(c, _Loop)), default=-1)
        mask = self._of(self._conditions[at + 1 :])
        if mask is None or not self._is_in_for:
            raise _Left("break" if which == "alive" else "continue")
        loop = self._conditions[at]
        assert isinstance(loop, _Loop)
        stays, before = self.negated(mask), getattr(loop, which)
        setattr(loop, which, stays if before is None else self.both(before, stays))

    def _do_call(self, name: str, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> None:
        _libraries.call(self, name, inputs, outputs)

    # Masks.

    def mask(self) -> Value | None:
        """The points at which statements are done; ``None`` is all of them."""
        return self._of(self._conditions)

    def _of(self, conditions: list[Value | _Loop]) -> Value | None:
        found: Value | None = None
        for condition in conditions:
            parts = (condition.alive, condition.in_iteration) if isinstance(condition, _Loop) else (condition,)
            for part in parts:
                if part is not None:
                    found = part if found is None else self.both(found, part)
        return found

    def both(self, a: Value, b: Value) -> Value:
        """Where two conditions are true."""
        axes = tuple(sorted({*a.axes, *b.axes}))
        return Value(self.b.binary("and", self.lifted(a, axes), self.lifted(b, axes)), axes)

    def negated(self, a: Value) -> Value:
        """Where a condition is false."""
        return Value(self.b.unary("not", a.storage), a.axes)

    def any(self, a: Value) -> bool:
        """Whether a condition is true at any point."""
        count = len(self.b.describe(a.storage)[1])
        some = self.b.reduce("or", a.storage, tuple(range(count))) if count else a.storage
        return bool(self.b.to_host(some))

    # Values.

    def constant(self, value: Any, dtype: DataType) -> Value:
        """One number."""
        return Value(self.b.full((), value, dtype), ())

    def number(self, value: Value) -> int:
        """The number that a value without axes is."""
        return int(self.b.to_host(value.storage))

    def lifted(self, value: Value, axes: tuple[int, ...]) -> Any:
        """The storage of a value, expanded to more axes."""
        if value.axes == axes:
            return value.storage
        held = [self.domain[axis] if axis in value.axes else 1 for axis in axes]
        shape = [self.domain[axis] for axis in axes]
        storage = self.b.reshape(value.storage, held)
        return storage if held == shape else self.b.expand(storage, shape)

    def value(self, e: int) -> Value:
        """An expression at all points of the domain."""
        if self.program.checks(e):
            return self._checked(e, None)
        for k in self.program.needed(e):
            if k not in self._known:
                self._known[k] = self._computed(k, self._known.__getitem__, None)
        return self._known[e]

    def _checked(self, e: int, guard: Value | None) -> Value:
        """An expression with indices that are looked at, but only where ``guard`` is true."""
        if not self.program.checks(e):
            return self.value(e)
        if self.program.exprs[e][0] != "select":
            return self._computed(e, lambda k: self._checked(k, guard), guard)
        _, cond, a, b = self.program.exprs[e]
        c = self._checked(cond, guard)
        sides = [(a, c), (b, self.negated(c))]
        found = {k: self._checked(k, side if guard is None else self.both(guard, side)) for k, side in sides}
        found[cond] = c
        return self._computed(e, found.__getitem__, guard)

    def _computed(self, e: int, of: Any, guard: Value | None) -> Value:
        kind, *rest = self.program.exprs[e]
        if kind == "load":
            return self._load(e, [of(k) for k in rest[1]], guard)
        if kind == "const":
            return self.constant(rest[0], self.program.dtypes[e])
        if kind == "axis":
            return Value(self.b.iota(self.domain[rest[0]], i32), (rest[0],))
        if kind == "var":
            return self.variable(rest[0])
        operands = [of(k) for k in self.program.operands(e)]
        axes = tuple(sorted({axis for x in operands for axis in x.axes}))
        storages = [self.lifted(x, axes) for x in operands]
        if kind in ("unary", "binary", "compare"):
            return Value(getattr(self.b, kind)(rest[0], *storages), axes)
        if kind == "select":
            return Value(self.b.select(*storages), axes)
        return Value(getattr(self.b, kind)(storages[0], self.program.dtypes[e]), axes)

    # Elements.

    def _load(self, e: int, indices: list[Value], guard: Value | None) -> Value:
        _, buffer, index, outside, site = self.program.exprs[e]
        x, shape = self.memory_of(buffer), self.program.buffers[buffer].shape
        if not index:
            return Value(x, ())
        if 0 in shape:
            # Only an index that is never used reads from nothing.
            self.expect_inside(indices, shape, outside, site, guard)
            return self.constant(0, self.program.dtypes[e])
        part = self._part(index, shape)
        if part is not None:
            return self._sliced(x, shape, part)
        axes = tuple(sorted({axis for i in indices for axis in i.axes}))
        self.expect_inside(indices, shape, outside, site, guard)
        storages = [self.lifted(i, axes) for i in indices]
        mode = "clamp" if outside in ("never", "error") else outside
        return Value(self.b.gather(x, storages, mode), axes)

    def _part(self, index: tuple[int, ...], shape: tuple[int, ...]) -> list[tuple[int | None, int, int]] | None:
        """The part that indices name, if each is a number or one axis of its own: the axis, the first one, the step."""
        out: list[tuple[int | None, int, int]] = []
        for e, n in zip(index, shape, strict=True):
            affine = self.program.affine(e)
            if affine is None or len(affine[0]) > 1:
                return None
            axis, step = next(iter(affine[0].items()), (None, 1))
            count = 1 if axis is None else self.domain[axis]
            ends = (affine[1], affine[1] + step * (count - 1))
            if not all(0 <= end < n for end in ends) or axis is not None and any(axis == o[0] for o in out):
                return None
            out.append((axis, affine[1], step))
        return out

    def _sliced(self, x: Any, shape: tuple[int, ...], part: list[tuple[int | None, int, int]]) -> Value:
        counts = [1 if axis is None else self.domain[axis] for axis, _, _ in part]
        if any(first or step != 1 or m != n for (_, first, step), m, n in zip(part, counts, shape, strict=True)):
            stops = [first + step * m for (_, first, step), m in zip(part, counts, strict=True)]
            x = self.b.slice(x, [p[1] for p in part], [max(s, -1) for s in stops], [p[2] for p in part])
        axes = [axis for axis, _, _ in part if axis is not None]
        if len(axes) < len(part):
            x = self.b.reshape(x, [self.domain[axis] for axis in axes])
        order = sorted(range(len(axes)), key=lambda k: axes[k])
        if order != list(range(len(axes))):
            x = self.b.permute(x, order)
        return Value(x, tuple(sorted(axes)))

    def expect_inside(self, indices: list[Value], shape: Any, outside: str, site: Any, guard: Value | None) -> None:
        """That indices which are looked at are inside, where statements are done."""
        if outside != "error":
            return
        masks = [m for m in (self.mask(), guard) if m is not None]
        axes = tuple(sorted({axis for v in (*indices, *masks) for axis in v.axes}))
        sizes = [self.domain[axis] for axis in axes]
        bad = None
        for i, n in zip(indices, shape, strict=True):
            own, zero, end = self.lifted(i, axes), self.b.full(sizes, 0, i32), self.b.full(sizes, n, i32)
            is_bad = self.b.binary("or", self.b.compare("lt", own, zero), self.b.compare("ge", own, end))
            bad = is_bad if bad is None else self.b.binary("or", bad, is_bad)
        for mask in masks:
            bad = self.b.binary("and", bad, self.lifted(mask, axes))
        if bad is None or not self.any(Value(bad, axes)):
            return
        import numpy as np

        where = int(np.argmax(self.b.to_host(bad).reshape(-1)))
        for axis, (i, n) in enumerate(zip(indices, shape, strict=True)):
            index = int(self.b.to_host(self.lifted(i, axes)).reshape(-1)[where])
            if not 0 <= index < n:
                raise OutOfBounds(site, axis, index, n)


def neutral(accum: str, dtype: DataType) -> Any:
    """The identity element."""
    if accum == "mul":
        return 1
    if accum in ("add", "or", "xor"):
        return 0
    if dtype is u1:
        return accum in ("min", "and")
    if dtype.is_float:
        return math.inf if accum == "min" else -math.inf
    low, high = limits(dtype)
    return {"min": high, "max": low, "and": high if low == 0 else -1}[accum]


def limits(dtype: DataType) -> tuple[int, int]:
    """The smallest and the largest number of an integer dtype."""
    name = str(dtype)
    bits = int(name[1:])
    return (0, (1 << bits) - 1) if name[0] == "u" else (-(1 << bits - 1), (1 << bits - 1) - 1)
