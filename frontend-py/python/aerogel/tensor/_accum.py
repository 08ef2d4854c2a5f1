"""``accum``: sums over named axes, in rows of batch, input and output axes.

>>> import aerogel as ti
>>> ti.init(arch=ti.cpu, log_level="error")
>>> x, w = ti.tensor.arange(6).reshape(2, 3), ti.tensor.ones((4, 3), ti.i32)
>>> ti.tensor.accum("b|i; i->o => b|o", x, w).tolist()
[[3, 3, 3, 3], [12, 12, 12, 12]]
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from aerogel.tensor._products import _numbers
from aerogel.tensor._tensor import Tensor, operands, tracing

_ROWS = ("batch", "output", "input")


class Index(NamedTuple):
    """An index along an axis: the factor of each label, and what is added."""

    terms: tuple[tuple[str, int], ...]
    offset: int

    @property
    def label(self) -> str | None:
        """The label that it is, if it is one."""
        return self.terms[0][0] if len(self.terms) == 1 and self.terms[0][1] == 1 and self.offset == 0 else None


class Dots(NamedTuple):
    """All axes of a row that are not named, by a name."""

    name: str


def _split_labels(row: str, spec: str) -> list[str]:
    """The items of a row: between commas, or letter by letter where there are none."""
    row = row.strip()
    if not row:
        return []
    if "," in row or re.search(r"[*+^\s]", row) or re.fullmatch(r"\.\.\.?|\.\.\w+\.\.", row) or "," in spec:
        return [item.strip() for item in row.split(",") if item.strip()]
    items = re.findall(r"\.\.\w+\.\.|\.\.\.?|\w", row)
    if "".join(items) != row:
        raise ValueError(f"`accum`: {row!r} of {spec!r} is no row: letters and `..`, or items between commas")
    return items


def _index(item: str, spec: str) -> Index:
    terms: dict[str, int] = {}
    offset = 0
    for part in item.replace(" ", "").split("+"):
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
    return Index(tuple(terms.items()), offset)


def _axes(text: str, spec: str) -> list[Index | Dots]:
    """The axes of a tensor in the order in which they lie: batch, output, input."""
    batch, bar, rest = text.rpartition("|")
    source, arrow, target = rest.rpartition("->")
    rows = {"batch": batch if bar else "", "input": source if arrow else "", "output": target}
    if "|" in rows["batch"] or "->" in rows["input"] or "->" in rows["batch"]:
        raise ValueError(f"`accum`: {text.strip()!r} of {spec!r} is no tensor: write `batch|input->output`")
    out: list[Index | Dots] = []
    for row in _ROWS:
        for item in _split_labels(rows[row], spec):
            dots = re.fullmatch(r"\.\.(\w*)(?:\.\.)?|\.\.\.", item)
            out.append(Dots(dots[1] or row) if dots else _index(item, spec))
    if sum(isinstance(a, Dots) for a in out) != len({a for a in out if isinstance(a, Dots)}):
        raise ValueError(f"`accum`: `..` stands twice in a row of {text.strip()!r}")
    return out


class _Extents:
    """What is known of the labels' extents."""

    def __init__(self, spec: str, given: dict[str, int]) -> None:
        self.spec = spec
        self.of: dict[str, Any] = {}
        self.where: dict[str, str] = {}
        self.agreements: list[tuple[Any, Any, str]] = []
        for label, n in given.items():
            self.put(label, n, "`extents`")

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


def _expanded(tensors: list[list[Index | Dots]], ranks: list[int], spec: str) -> list[list[Index]]:
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
        row: list[Index] = []
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


def _of_result(axes: list[Index | Dots], rows: list[list[Index]]) -> list[Index]:
    """The result's axes: of ``..`` as many as the tensor with the most of them has."""
    labels = {label for row in rows for a in row for label, _ in a.terms}
    out: list[Index] = []
    for a in axes:
        if isinstance(a, Dots):
            n = len(a.name) + 2
            mine = [label for label in labels if re.fullmatch(rf"\.\.{a.name}\d+", label)]
            out += [Index(((label, 1),), 0) for label in sorted(mine, key=lambda m, n=n: -int(m[n:]))]
        else:
            out.append(a)
    return out


def _windows(rows: list[list[Index]], shapes: list[tuple[Any, ...]], known: _Extents, same: bool) -> dict[tuple, int]:
    """The extents of labels that stand in sums alone, and how far each sum begins before its axis."""
    begins: dict[tuple, int] = {}
    for number, (row, shape) in enumerate(zip(rows, shapes)):
        for axis, a in enumerate(row):
            if a.label is not None or not a.terms:
                continue
            n = shape[axis]
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
                if not same:
                    few = (
                        f"`accum`: {{}} elements along axis {axis} of {where} are fewer than the window of {reach + 1}"
                    )
                    tracing.trace.ask_at_least(n, reach + 1, few)
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
    (size,) = tracing.program.shape((n,))
    return tracing.program.extents([(size - (1 + reach)) // factor + 1])[0]


def accum(
    spec: str,
    /,
    *tensors: Any,
    op: str = "mul",
    how: str = "add",
    into: Any = None,
    extents: dict[str, int] | None = None,
    padding: str = "valid",
) -> Tensor:
    """What ``how`` makes of ``op`` of the tensors' elements, over all axes that the result does not have.

    Args:
        spec: The axes of each tensor, between semicolons, and behind ``=>`` those of the result, each in three rows:
            ``batch|input->output``, of which the first two may be left out. An axis is a label, a number (one
            element), or a sum (``2*o+k``: a window); ``..`` is all other axes of a row, stretched as in NumPy. Labels
            are letters, or words between commas. Axes lie in the order batch, output, input, so that ``i->o`` is a
            matrix with a row for each output. A label that stands twice in a tensor is its diagonal.
        tensors: The tensors.
        op: What is made of elements of several: ``mul``, ``add``, ``sub``, ``div``, ``minimum``, ``maximum`` ...
        how: ``add``, ``mul``, ``min``, ``max``, ``and``, ``or`` or ``xor``.
        into: A tensor of the result's shape to which the result is put by ``how``.
        extents: Extents of labels that follow from no tensor.
        padding: ``valid``: windows lie inside; ``same``: they are around each ``stride``-th element, zeros outside.
    """
    inputs, arrow, result = spec.partition("=>")
    if not arrow:
        raise ValueError(f"`accum`: {spec!r} names no result: write `... => ...`")
    if padding not in ("valid", "same"):
        raise ValueError(f"`accum`: the padding is 'valid' or 'same', not {padding!r}")
    texts = inputs.split(";")
    if len(texts) != len(tensors):
        raise ValueError(f"`accum`: {spec!r} names {len(texts)} tensors, {len(tensors)} are given")
    if "^" in spec:
        return _joined(spec, texts, result, list(tensors), op, how, extents)
    made = _numbers("accum", operands(*tensors)) if how in ("add", "mul") else operands(*tensors)
    rows = _expanded([_axes(t, spec) for t in texts], [t.ndim for t in made], spec)
    target = _of_result(_axes(result, spec), rows)
    shapes = [tuple(t._native.shape) for t in made]
    known = _Extents(spec, extents or {})
    for number, (row, shape) in enumerate(zip(rows, shapes)):
        for axis, a in enumerate(row):
            if a.label is not None:
                known.put(a.label, shape[axis], f"tensor {number}")
            elif not a.terms and isinstance(shape[axis], int) and not 0 <= a.offset < shape[axis]:
                raise IndexError(f"`accum`: index {a.offset} is outside axis {axis} with {shape[axis]} elements")
    begins = _windows(rows, shapes, known, padding == "same")
    missing = [label for a in target for label, _ in a.terms if label not in known.of]
    if missing:
        raise ValueError(f"`accum`: no tensor of {spec!r} has {missing[0]!r}: name its extent in `extents`")
    shape = [_extent(a, known) for a in target]
    numbers = {label: k for k, label in enumerate(known.of)}

    def native(a: Index, before: int = 0) -> tuple[list[tuple[int, int]], int]:
        return [(numbers[label], f) for label, f in a.terms], a.offset - before

    maps = [[native(a, begins.get((k, axis), 0)) for axis, a in enumerate(row)] for k, row in enumerate(rows)]
    first, *others = made
    out = Tensor(
        first._native.accumulate(
            [t._native for t in others],
            maps,
            list(known.of.values()),
            [native(a) for a in target],
            shape,
            op,
            how,
            "zero" if padding == "same" else "never",
            known.agreements,
        )
    )
    return out if into is None else _put(out, into, how)


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


def _joined(
    spec: str, texts: list[str], result: str, tensors: list[Any], op: str, how: str, extents: dict[str, int] | None
) -> Tensor:
    """``i; j => i^j``: the tensors one after the other along an axis, each with its own label there."""
    from aerogel.tensor._shapes import concat

    if "^" in "".join(texts) or result.count("^") != len(tensors) - 1:
        raise ValueError(
            f"`accum`: `^` joins one label of each tensor along one axis of the result, not as in {spec!r}"
        )
    found = re.search(r"\w+(?:\s*\^\s*\w+)+", result)
    assert found is not None
    labels = [label.strip() for label in found[0].split("^")]
    parts, axis = [], 0
    for text, label, tensor in zip(texts, labels, tensors):
        own = result[: found.start()] + label + result[found.end() :]
        parts.append(accum(f"{text}=>{own}", tensor, op=op, how=how, extents=extents))
        axes = _axes(own, spec)
        at = next(k for k, a in enumerate(axes) if isinstance(a, Index) and a.label == label)
        # Axes that `..` stands for may lie before.
        axis = at - len(axes) if any(isinstance(a, Dots) for a in axes[:at]) else at
    return concat(parts, axis)
