"""``accum``: sums over named axes, in rows of batch, input and output axes.

>>> import aerogel as ti
>>> ti.init(arch=ti.cpu, log_level="error")
>>> x, w = ti.tensor.arange(6).reshape(2, 3), ti.tensor.ones((4, 3), ti.i32)
>>> ti.tensor.accum("b|i; i->o => b|o", x, w).tolist()
[[3, 3, 3, 3], [12, 12, 12, 12]]
"""

from __future__ import annotations

import itertools
import operator
import re
from typing import Any, NamedTuple

from aerogel.tensor import _unknown
from aerogel.tensor._products import _numbers
from aerogel.tensor._tensor import Tensor, operands, tracing

_ROWS = ("batch", "output", "input")


class Index(NamedTuple):
    """An index along an axis: the factor of each label, what is added, and what is said of a window's padding."""

    terms: tuple[tuple[str, int], ...]
    offset: int
    padding: str = ""

    @property
    def label(self) -> str | None:
        """The label that it is, if it is one."""
        return self.terms[0][0] if len(self.terms) == 1 and self.terms[0][1] == 1 and self.offset == 0 else None


class Joined(NamedTuple):
    """An axis of several, one after the other; a number is the extent of one without a label."""

    parts: tuple[str | int, ...]

    @property
    def label(self) -> None:
        """It is no label."""
        return

    def labels(self, at: int) -> tuple[str, ...]:
        """Its labels, those without one by a name that is the axis's own."""
        return tuple(p if isinstance(p, str) else f"{p} of {at}.{k}" for k, p in enumerate(self.parts))


class Dots(NamedTuple):
    """All axes of a row that are not named, by a name."""

    name: str


def _split_labels(row: str, spec: str) -> list[str]:
    """The items of a row: between commas, or letter by letter where there are none."""
    row = row.strip()
    if not row:
        return []
    if "," in spec or re.search(r"[*+\s]", row) and "^" not in row:
        return [item.strip() for item in row.split(",") if item.strip()]
    row = re.sub(r"\s*\^\s*", "^", row)
    part = r"(?:\d+|[^\W\d])"
    items = re.findall(rf"\.\.\w+\.\.|\.\.\.?|{part}(?:\^{part})+|\w", row)
    if "".join(items) != row:
        raise ValueError(f"`accum`: {row!r} of {spec!r} is no row: letters and `..`, or items between commas")
    return items


def _index(item: str, spec: str) -> Index:
    terms: dict[str, int] = {}
    offset = 0
    compact = item.replace(" ", "")
    padding = "same" if "=+" in compact else "exact" if "<+" in compact else ""
    for part in re.split(r"[=<]?\+", compact):
        number = re.fullmatch(r"\d+", part)
        product = re.fullmatch(r"(?:(\d+)\*)?([A-Za-z_]\w*)(?:\*(\d+))?", part)
        if number:
            offset += int(part)
        elif product:
            factor = int(product[1] or 1) * int(product[3] or 1)
            if factor == 0:
                raise ValueError(f"`accum`: a factor of 0 in {item!r} of {spec!r}")
            terms[product[2]] = terms.get(product[2], 0) + factor
        else:
            raise ValueError(f"`accum`: {item!r} of {spec!r} is no index: labels, numbers, `2*o+k`, `..`")
    return Index(tuple(terms.items()), offset, padding)


def _joined(item: str, spec: str) -> Joined:
    parts = [part.strip() for part in item.split("^")]
    if not all(re.fullmatch(r"\d+|[A-Za-z]\w*", part) for part in parts):
        raise ValueError(f"`accum`: {item!r} of {spec!r} is no axis: `^` stands between labels and extents")
    return Joined(tuple(int(part) if part.isdigit() else part for part in parts))


def _axes(text: str, spec: str) -> list[Axis]:
    """The axes of a tensor in the order in which they lie: batch, output, input."""
    batch, bar, rest = text.rpartition("|")
    source, arrow, target = rest.rpartition("->")
    rows = {"batch": batch if bar else "", "input": source if arrow else "", "output": target}
    if "|" in rows["batch"] or "->" in rows["input"] or "->" in rows["batch"]:
        raise ValueError(f"`accum`: {text.strip()!r} of {spec!r} is no tensor: write `batch|input->output`")
    out: list[Axis] = []
    for row in _ROWS:
        for item in _split_labels(rows[row], spec):
            dots = re.fullmatch(r"\.\.(\w*)(?:\.\.)?|\.\.\.", item)
            if dots:
                out.append(Dots(dots[1] or row))
            elif item == "_":
                # An axis without a name is that of no other one.
                out.append(Index(((f"_{len(out)} of {text.strip()}", 1),), 0))
            else:
                out.append(_joined(item, spec) if "^" in item else _index(item, spec))
    if sum(isinstance(a, Dots) for a in out) != len({a for a in out if isinstance(a, Dots)}):
        raise ValueError(f"`accum`: `..` stands twice in a row of {text.strip()!r}")
    return out


Axis = Index | Joined | Dots


class _Extents:
    """What is known of the labels' extents."""

    def __init__(self, spec: str, given: dict[str, Any]) -> None:
        self.spec = spec
        self.of: dict[str, Any] = {}
        self.where: dict[str, str] = {}
        self.agreements: list[tuple[Any, Any, str]] = []
        for label, n in given.items():
            if label not in spec:
                raise ValueError(f"`accum`: `extents` names {label!r}, which {spec!r} has not")
            self.put(label, tracing.program.extents([n])[0] if tracing.program else operator.index(n), "`extents`")

    def put(self, label: str, n: Any, where: str) -> None:
        """An extent, which has to be that which is known, or 1."""
        known = self.of.get(label)
        if known is None or (isinstance(known, int) and known == 1 and where != "the result"):
            self.of[label], self.where[label] = n, where
        elif known == n or (isinstance(n, int) and n == 1):
            return
        elif isinstance(known, int) and isinstance(n, int):
            raise ValueError(
                f"`accum`: {label!r} of {self.spec!r} has {known} elements in {self.where[label]}, {n} in {where}"
            )
        else:
            text = f"`accum`: {label!r} of {self.spec!r} has {{}} elements in {self.where[label]}, {{}} in {where}"
            self.agreements.append((known, n, text))

    def of_labels(self, rows: list[list[Index]]) -> _Extents:
        """What is known of the labels in some axes."""
        labels = {label for row in rows for a in row for label, _ in a.terms}
        out = _Extents(self.spec, {})
        out.of = {label: n for label, n in self.of.items() if label in labels}
        out.where, out.agreements = self.where, self.agreements
        return out


def _expanded(tensors: list[list[Axis]], ranks: list[int], spec: str) -> list[list[Index | Joined]]:
    """Axes with labels for those that ``..`` stands for, the last ones alike."""
    named: list[list[Dots]] = [[a for a in axes if isinstance(a, Dots)] for axes in tensors]
    counts: dict[str, int] = {}
    # A tensor with one `..` says how many axes it stands for; others follow.
    for axes, dots, rank in sorted(zip(tensors, named, ranks), key=lambda t: len(t[1])):
        spare = rank - (len(axes) - len(dots))
        unknown = [d.name for d in dots if d.name not in counts] if len(dots) > 1 else [d.name for d in dots]
        known = sum(counts[d.name] for d in dots if d.name not in unknown)
        if spare < 0 or not dots and spare:
            raise ValueError(f"`accum`: a tensor with {rank} axes for {len(axes) - len(dots)} indices of {spec!r}")
        if len(unknown) > 1:
            # Rows without axes elsewhere: all are the output's, if it is among them.
            last = "output" if "output" in unknown else unknown[-1]
            for name in unknown:
                counts[name] = max(counts.get(name, 0), spare - known if name == last else 0)
        elif unknown:
            counts[unknown[0]] = max(counts.get(unknown[0], 0), spare - known)
    out = []
    for axes, dots, rank in zip(tensors, named, ranks):
        spare = rank - (len(axes) - len(dots))
        row: list[Index | Joined] = []
        for a in axes:
            if not isinstance(a, Dots):
                row.append(a)
                continue
            n = counts[a.name] if len(dots) > 1 else spare
            row += [Index(((f"..{a.name}{n - 1 - k}", 1),), 0) for k in range(n)]
        if len(row) != rank:
            raise ValueError(f"`accum`: a tensor with {rank} axes for {len(row)} indices of {spec!r}")
        out.append(row)
    return out


def _of_result(axes: list[Axis], rows: list[list[Index | Joined]]) -> list[Index | Joined]:
    """The result's axes: of ``..`` as many as the tensor with the most of them has."""
    labels = {label for row in rows for a in row if isinstance(a, Index) for label, _ in a.terms}
    out: list[Index | Joined] = []
    for a in axes:
        if isinstance(a, Dots):
            n = len(a.name) + 2
            mine = [label for label in labels if re.fullmatch(rf"\.\.{a.name}\d+", label)]
            out += [Index(((label, 1),), 0) for label in sorted(mine, key=lambda m, n=n: -int(m[n:]))]
        else:
            out.append(a)
    return out


def _is_around(a: Index, around: bool) -> bool:
    """Whether windows along an axis reach over its ends."""
    return a.padding == "same" or around and a.padding != "exact"


def _windows(rows: list[list[Any]], shapes: list[tuple[Any, ...]], known: _Extents, around: bool) -> dict[tuple, int]:
    """The extents of labels that stand in sums alone, and how far each sum begins before its axis."""
    begins: dict[tuple, int] = {}
    for number, (row, shape) in enumerate(zip(rows, shapes)):
        for axis, a in enumerate(row):
            if a.label is not None or not a.terms:
                continue
            n = shape[axis]
            same = _is_around(a, around)
            where = f"tensor {number}"
            unknown = [(label, f) for label, f in a.terms if label not in known.of]
            is_known = all(isinstance(known.of[t], int) for t, _ in a.terms if t in known.of)
            if not is_known or not isinstance(n, int) and (len(unknown) != 1 or same and unknown[0][1] != 1):
                raise ValueError(f"`accum`: the extents of an index that is a sum are not known, in {known.spec!r}")
            if len(unknown) > 1:
                labels = " and ".join(repr(label) for label, _ in unknown)
                raise ValueError(f"`accum`: the extents of {labels} follow from nothing: name them in `extents`")
            reach = a.offset + sum(f * (known.of[label] - 1) for label, f in a.terms if label in known.of)
            if not isinstance(n, int):
                label, factor = unknown[0]
                if a.padding == "exact":
                    raise ValueError(f"`accum`: the extents of an index that is a sum are not known, in {known.spec!r}")
                if not same:
                    few = (
                        f"`accum`: {{}} elements along axis {axis} of {where} are fewer than the window of {reach + 1}"
                    )
                    _unknown.at_least(tracing.program.numbers((n,))[0], reach + 1, few)
                known.put(label, n if same else _turns(n, reach, factor), where)
                if same:
                    begins[(number, axis)] = reach // 2
                continue
            if unknown:
                label, factor = unknown[0]
                count = -(-n // factor) if same else (n - 1 - reach) // factor + 1
                if count < 1:
                    raise ValueError(
                        f"`accum`: {n} elements along axis {axis} of {where} are fewer than the window of {reach + 1}"
                    )
                if a.padding == "exact" and (n - 1 - reach) % factor:
                    raise ValueError(
                        f"`accum`: the windows of {reach + 1} with a stride of {factor} do not end where axis {axis} "
                        f"of {where} does, with {n} elements: {known.spec!r}"
                    )
                known.put(label, count, where)
                reach += factor * (count - 1)
            if same:
                begins[(number, axis)] = max(reach + 1 - n, 0) // 2
            elif reach >= n:
                raise ValueError(
                    f"`accum`: indices along axis {axis} of {where} reach {reach}, it has {n} elements: {known.spec!r}"
                )
    return begins


def _turns(n: Any, reach: int, factor: int) -> Any:
    """How many windows there are along an axis whose extent is known when the program runs."""
    (size,) = tracing.program.numbers((n,))
    return tracing.program.extents([(size - (1 + reach)) // factor + 1])[0]


def accum(
    spec: str,
    /,
    *tensors: Any,
    op: str = "mul",
    how: str = "add",
    into: Any = None,
    extents: dict[str, Any] | None = None,
    padding: str = "valid",
) -> Tensor:
    """What ``how`` makes of ``op`` of the tensors' elements, over all axes that the result does not have.

    Args:
        spec: The axes of each tensor, between semicolons, and behind ``=>`` those of the result, each in three rows:
            ``batch|input->output``, of which the first two may be left out. An axis is a label, a number (one
            element), or a sum (``2*o+k``: a window; ``2*o=+k`` has zeros around, ``2*o<+k`` ends where the axis does);
            ``i^j`` is an axis of two, one after the other, in which a number is an extent; ``..`` is all other axes of
            a row, stretched as in NumPy; ``_`` is an axis without a name. Labels are letters, or words between commas.
            Axes lie in the order batch, output, input, so that ``i->o`` is a matrix with a row for each output. A label
            that stands twice in a tensor is its diagonal.
        tensors: The tensors.
        op: What is made of elements of several: ``mul``, ``add``, ``sub``, ``div``, ``minimum``, ``maximum`` ...
        how: ``add``, ``mul``, ``min``, ``max``, ``and``, ``or`` or ``xor``.
        into: A tensor of the result's shape to which the result is put by ``how``.
        extents: Extents of labels that follow from no tensor.
        padding: ``valid``: windows lie inside; ``same``: there are as many as every ``stride``-th element, with zeros
            on both sides of the axis, of an odd number one more behind it.
    """
    if not isinstance(spec, str):
        raise TypeError(f'`accum` takes a text such as "ij => i" first, not {type(spec).__name__}')
    inputs, arrow, result = spec.partition("=>")
    if not arrow:
        raise ValueError(f"`accum`: {spec!r} names no result: write `... => ...`")
    if padding not in ("valid", "same"):
        raise ValueError(f"`accum`: the padding is 'valid' or 'same', not {padding!r}")
    texts = inputs.split(";")
    if len(texts) != len(tensors):
        raise ValueError(f"`accum`: {spec!r} names {len(texts)} tensors, {len(tensors)} are given")
    made = _numbers("accum", operands(*tensors)) if how in ("add", "mul") else operands(*tensors)
    rows = _expanded([_axes(t, spec) for t in texts], [t.ndim for t in made], spec)
    target = _of_result(_axes(result, spec), rows)
    call = _Call(spec, op, how, padding)
    known = _Extents(spec, extents or {})
    if any(isinstance(a, Joined) for row in [*rows, target] for a in row):
        shape = None if into is None else tuple(operands(into)[0]._native.shape)
        out = _in_parts(call, made, rows, target, known, shape)
    else:
        out = _whole(call, made, rows, target, known)
    return out if into is None else _put(out, into, how)


class _Call(NamedTuple):
    """What was asked for."""

    spec: str
    op: str
    how: str
    padding: str


def _whole(call: _Call, made: list[Tensor], rows: list[list[Any]], target: list[Any], known: _Extents) -> Tensor:
    """One statement, of axes each of which is an index."""
    shapes = [tuple(t._native.shape) for t in made]
    _put_labels(rows, shapes, known)
    begins = _windows(rows, shapes, known, call.padding == "same")
    _no_label_is_missing(target, known)
    shape = [_extent(a, known) for a in target]
    numbers = {label: k for k, label in enumerate(known.of)}

    def native(a: Index, before: int = 0) -> tuple[list[tuple[int, int]], int]:
        return [(numbers[label], f) for label, f in a.terms], a.offset - before

    maps = [[native(a, begins.get((k, axis), 0)) for axis, a in enumerate(row)] for k, row in enumerate(rows)]
    around = any(_is_around(a, call.padding == "same") for row in rows for a in row)
    first, *others = made
    return Tensor(
        first._native.accumulate(
            [t._native for t in others],
            maps,
            list(known.of.values()),
            [native(a) for a in target],
            shape,
            call.op,
            call.how,
            "zero" if around else "never",
            known.agreements,
        )
    )


def _put_labels(rows: list[list[Any]], shapes: list[tuple[Any, ...]], known: _Extents) -> None:
    """The extents of the axes that are labels."""
    for number, (row, shape) in enumerate(zip(rows, shapes)):
        for axis, a in enumerate(row):
            if a.label is not None:
                known.put(a.label, shape[axis], f"tensor {number}")
            elif isinstance(a, Index) and not a.terms and isinstance(shape[axis], int):
                if not 0 <= a.offset < shape[axis]:
                    raise IndexError(f"`accum`: index {a.offset} is outside axis {axis} with {shape[axis]} elements")


def _no_label_is_missing(target: list[Any], known: _Extents) -> None:
    labels = [t for k, a in enumerate(target) for t in (a.labels(-1 - k) if isinstance(a, Joined) else dict(a.terms))]
    for label in labels:
        if label not in known.of:
            raise ValueError(f"`accum`: no tensor of {known.spec!r} has {label!r}: name its extent in `extents`")


def _extent(a: Index, known: _Extents) -> Any:
    if a.label is not None:
        return known.of[a.label]
    if any(not isinstance(known.of[label], int) for label, _ in a.terms):
        raise ValueError(f"`accum`: a sum in the result is of labels of known extent, in {known.spec!r}")
    return a.offset + sum(f * (known.of[label] - 1) for label, f in a.terms) + 1


def _put(out: Tensor, into: Any, how: str) -> Tensor:
    from aerogel.tensor import _elementwise as e

    functions = {
        "add": e.add, "mul": e.multiply, "min": e.minimum, "max": e.maximum, "and": e.bitwise_and, "or": e.bitwise_or,
        "xor": e.bitwise_xor,
    }  # fmt: skip
    (target,) = operands(into)
    if tracing.program is None and target.shape != out.shape:
        raise ValueError(f"`accum`: the result has the shape {out.shape}, `into` {target.shape}")
    return functions[how](target, out)


def _in_parts(
    call: _Call, made: list[Tensor], rows: list[list[Any]], target: list[Any], known: _Extents, into: Any
) -> Tensor:
    """Axes of several, one after the other (``i^j``), are gone over part by part.

    Labels that stand in one axis are alternatives: of those that hang together one at a time is there. A tensor takes
    part where the labels of its axes are, and another one stands in for it where they are not; the result has a part
    where its labels are.
    """
    from aerogel.tensor._shapes import concat

    shapes = [tuple(t._native.shape) for t in made]
    _put_labels(rows, shapes, known)
    all_axes = [(k, row, shape) for k, (row, shape) in enumerate(zip(rows, shapes))]
    _put_parts([*all_axes, (-1, target, into or (None,) * len(target))], known)
    _no_label_is_missing(target, known)
    choices = _Choices([*rows, target])
    parts = {}
    for picked in choices.all():
        chosen = choices.chosen(picked, [*rows, target])
        of_result = chosen.pop()
        present = [k for k, row in enumerate(chosen) if row is not None]
        if of_result is None or not choices.stand_in(rows, chosen, picked):
            continue
        cut = [_part(made[k], rows[k], chosen[k], known, k) for k in present]
        there = [chosen[k] for k in present]
        value = _whole(call, cut, there, of_result, known.of_labels([*there, of_result]))
        at = tuple(a.label for a, whole in zip(of_result, target) if isinstance(whole, Joined))
        parts[at] = value if at not in parts else _put(value, parts[at], call.how)
    if not parts:
        raise ValueError(f"`accum`: no part of the result of {call.spec!r} is made of anything")
    axes = [k for k, a in enumerate(target) if isinstance(a, Joined)]
    dtype = next(iter(parts.values())).dtype

    def joined(at: tuple[str, ...]) -> Tensor:
        if len(at) < len(axes):
            axis = axes[len(at)]
            return concat([joined((*at, label)) for label in target[axis].labels(-1 - axis)], axis)
        if at in parts:
            return parts[at]
        # Nothing comes here: what changes nothing.
        from aerogel.tensor import zeros

        names = iter(at)
        row = [Index(((next(names), 1),), 0) if isinstance(a, Joined) else a for a in target]
        given = known.of_labels([row])
        given.of["nothing"] = 0
        return _whole(call, [zeros((0,), dtype)], [[Index((("nothing", 1),), 0)]], row, given)

    return joined(())


def _put_parts(tensors: list[tuple[int, list[Any], tuple[Any, ...]]], known: _Extents) -> None:
    """The extents of labels that stand in axes of several: what is left of the axis."""
    axes = []
    for number, row, shape in tensors:
        for axis, (a, n) in enumerate(zip(row, shape)):
            if isinstance(a, Joined):
                labels = a.labels(-1 - axis if number < 0 else (number << 8) + axis)
                for label, part in zip(labels, a.parts):
                    if isinstance(part, int):
                        known.put(label, part, "the axis")
                if n is not None:
                    axes.append((number, axis, labels, n))
            elif number < 0 and n is not None and a.label is not None and a.label not in known.of:
                known.put(a.label, n, "`into`")
    while axes:
        left = []
        for number, axis, labels, n in axes:
            unknown = [label for label in labels if label not in known.of]
            sizes = [known.of[label] for label in labels if label in known.of]
            where = "`into`" if number < 0 else f"tensor {number}"
            if not isinstance(n, int) or not all(isinstance(size, int) for size in sizes):
                if number < 0:
                    continue
                raise ValueError(f"`accum`: the extents of {' ^ '.join(labels)} in {known.spec!r} are not known")
            if len(unknown) > len(set(unknown)) or len(unknown) > 1:
                left.append((number, axis, labels, n))
                continue
            rest = n - sum(sizes)
            if rest < 0 or rest and not unknown:
                text = " ^ ".join(labels)
                raise ValueError(
                    f"`accum`: {text} has {sum(sizes)} elements, axis {axis} of {where} has {n}: {known.spec!r}"
                )
            for label in unknown:
                known.put(label, rest, where)
        if len(left) == len(axes):
            labels = [label for label in left[0][2] if label not in known.of]
            names = " and ".join(repr(label) for label in labels)
            raise ValueError(f"`accum`: the extents of {names} follow from nothing: name them in `extents`")
        axes = left


class _Choices:
    """Labels of which one at a time is there: those that stand in one axis, and what hangs together with them."""

    def __init__(self, rows: list[list[Any]]) -> None:
        groups: list[list[str]] = []
        self.labels: dict[tuple[int, int], tuple[str, ...]] = {}
        for number, row in enumerate(rows):
            is_result = number == len(rows) - 1
            for axis, a in enumerate(row):
                if not isinstance(a, Joined):
                    continue
                labels = a.labels(-1 - axis if is_result else (number << 8) + axis)
                self.labels[(number, axis)] = labels
                meets = [g for g in groups if set(g) & set(labels)]
                groups = [g for g in groups if g not in meets]
                groups.append(list(dict.fromkeys([*(label for g in meets for label in g), *labels])))
        self.groups = groups
        self.of = {label: k for k, group in enumerate(groups) for label in group}

    def all(self) -> Any:
        """Each choice of one label of every group."""
        return itertools.product(*self.groups)

    def reach(self, row: list[Any], number: int, group: int) -> set[str] | None:
        """With which labels of a group a tensor is there; nothing if it has none of them."""
        out: set[str] | None = None
        for axis, a in enumerate(row):
            named = self.labels.get((number, axis)) or [label for label, _ in a.terms]
            own = {label for label in named if self.of.get(label) == group}
            if own:
                out = own if out is None else out & own
        return out

    def chosen(self, picked: tuple[str, ...], rows: list[list[Any]]) -> list[Any]:
        """The axes of each tensor with the label that is there, or nothing where it is not."""
        out: list[Any] = []
        for number, row in enumerate(rows):
            reaches = [self.reach(row, number, g) for g in range(len(self.groups))]
            if any(reach is not None and p not in reach for reach, p in zip(reaches, picked)):
                out.append(None)
                continue
            own: list[Any] = []
            for axis, a in enumerate(row):
                labels = self.labels.get((number, axis))
                own.append(Index(((picked[self.of[labels[0]]], 1),), 0) if labels else a)
            out.append(own)
        return out

    def stand_in(self, rows: list[list[Any]], chosen: list[Any], picked: tuple[str, ...]) -> bool:
        """Whether another tensor is there for each that is not: one that is never there together with it."""
        for k, row in enumerate(rows):
            if chosen[k] is not None:
                continue
            for g, p in enumerate(picked):
                mine = self.reach(row, k, g)
                if mine is None or p in mine:
                    continue
                others = [self.reach(r, j, g) for j, r in enumerate(rows) if chosen[j] is not None]
                if not any(other is not None and not other & mine for other in others):
                    return False
        return any(row is not None for row in chosen)


def _part(x: Tensor, row: list[Any], chosen: list[Any], known: _Extents, number: int) -> Tensor:
    """The part of a tensor that labels name."""
    at: list[slice] = []
    for axis, (a, index) in enumerate(zip(row, chosen)):
        if not isinstance(a, Joined):
            at.append(slice(None))
            continue
        labels = a.labels((number << 8) + axis)
        place = labels.index(index.label)
        begin = sum(known.of[label] for label in labels[:place])
        at.append(slice(begin, begin + known.of[labels[place]]))
    return x[tuple(at)] if any(part != slice(None) for part in at) else x
