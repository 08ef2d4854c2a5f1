"""Names that a block of a program binds to other values: a trace does not see it, and Python does it once."""

from __future__ import annotations

import array
import collections
import functools
import operator
import types
from typing import TYPE_CHECKING, Any, NamedTuple

from aerogel.tensor import _written
from aerogel.tensor._complex import ComplexTensor
from aerogel.tensor._tensor import Tensor, is_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aerogel.tensor._blocks import Scope

#: Containers of more are not looked into, so deep at most, and so many places at most are watched of a block.
_MOST_IN_ONE, _MOST_DEEP, _MOST = 1_000, 5, 10_000
#: Larger arrays of NumPy are not compared with what they were.
_MOST_BYTES = 2**20

#: What holds nothing.
_PLAIN = frozenset([int, float, bool, str, type(None)])
#: What else holds values, and what of it does.
_OF_PARTIAL = ("func", "args", "keywords")
_BAGS, _BYTES = (set, collections.deque), (bytearray, array.array)

_NOTHING: Any = object()
_native: Any = vars(Tensor)["_native"]


class _Place(NamedTuple):
    """Where a value is found: a name, an element of a list or a dictionary, an attribute, a variable of a closure."""

    label: str
    #: The text of the block in the function to whose names it belongs, and the name by which it is reached there.
    block: _written.Written | None
    root: str
    #: Whether others than this function may read it.
    is_shared: bool
    old: Any
    get: Callable[[], Any]
    #: Nothing for names of a function, which nobody but it binds, and for what does not change.
    put: Callable[[Any], None] | None

    @property
    def is_written(self) -> bool:
        """Whether the text says how the block uses it."""
        return self.block is not None and self.label in self.block.bound

    @property
    def is_carried(self) -> bool:
        """Whether the block may read it before it binds it."""
        return not self.is_written or self.label in self.block.carried  # type: ignore[union-attr]

    @property
    def is_later(self) -> bool:
        """Whether it may be read behind the block, before it is bound again."""
        return self.is_shared or self.block is None or self.label in self.block.later

    def line(self) -> str:
        """Where it is bound in the block, or stands there first."""
        if self.block is None:
            return ""
        lines = self.block.bound.get(self.label), self.block.mentioned.get(self.root), self.block.first
        return f" ({self.block.file}:{next(line for line in lines if line is not None)})"


class Names:
    """What names stand for where a block begins.

    Of the function in which it begins these are the names in its text, and what functions in it share. A block may
    begin in a helper: so are those of the functions around it, up to the program's. What lists, dictionaries, objects
    and functions hold is watched with them.

    Raises:
        ValueError: For ``return``, ``break`` and ``continue`` out of the block.
    """

    def __init__(self, frames: list[Any], scopes: list[Scope]) -> None:
        *self._around, self._scope = scopes
        self._places: list[_Place] = []
        #: Lists and dictionaries, with what they held.
        self._holders: list[tuple[_Place, Any, Any]] = []
        #: What has no places of its own for its elements, with these.
        self._wholes: list[tuple[_Place, Any]] = []
        self._own: list[Tensor] = []
        #: How often tensors had been read.
        self._began: dict[int, int] = {}
        self._n = 0
        try:
            self._begin(frames)
        except BaseException:
            # The user's own objects may answer by an error.
            self.close()
            raise

    def _begin(self, frames: list[Any]) -> None:
        seen: set[int] = set()
        for frame in frames:
            block = _written.at(frame)
            if frame is frames[0] and block is not None:
                block.expect_no_exits()
            for place in _names_of(frame, block):
                self._note(place, _MOST_DEEP if frame is frames[0] or block is not None else 0, seen)

    def _note(self, place: _Place, depth: int, seen: set[int]) -> None:
        """Notes a place that may be given another value, and what this holds."""
        self._places.append(place)
        self._look_into(place, depth, seen)

    def _look_into(self, place: _Place, depth: int, seen: set[int]) -> None:
        value = place.old
        if type(value) in _PLAIN or id(value) in seen or self._n >= _MOST:
            return
        if isinstance(value, (Tensor, ComplexTensor)):
            for plane in _planes(value):
                self._watch(plane)
            return
        if not depth:
            return
        seen.add(id(value))
        whole = _whole(value)
        if whole is not None:
            self._n += 1
            self._wholes.append((place, whole))
        holder = _holder(value)
        if holder is not None and len(holder) <= _MOST_IN_ONE:
            self._n += len(holder)
            kept = dict(holder) if isinstance(holder, dict) else list(holder)
            self._holders.append((place, holder, kept))
            for key, part in kept.items() if isinstance(kept, dict) else enumerate(kept):
                if type(part) not in _PLAIN:
                    self._look_into(_part(place, holder, key, part), depth - 1, seen)
        for label, get, put in _held(place):
            part = place._replace(label=label, old=get(), get=get, put=put, is_shared=True)
            if put is None:
                self._look_into(part, depth - 1, seen)
            else:
                self._note(part, depth - 1, seen)

    def _watch(self, plane: Tensor) -> None:
        key = id(plane)
        if type(plane) is Tensor:
            plane.__class__ = _Watched
            _reads[key] = 0
            self._own.append(plane)
        if type(plane) is _Watched:
            self._began[key] = _reads[key]

    def end(self) -> None:
        """Refuses to read, behind the block, what a name has been bound to in it.

        Raises:
            ValueError: If a turn of a loop reads what the one before would have bound, or what stands behind the block
                reads a number or a tensor that was there before the block began.
        """
        read = {key for key, n in self._began.items() if _reads[key] > n}
        places, holders, wholes = self._places, self._holders, self._wholes
        self.close()
        for place, holder, old in holders:
            if isinstance(holder, list) and len(holder) != len(old):
                self._expect_length(place, len(old))
            keys = (
                ()
                if _are_same(_parts_of(holder), _parts_of(old))
                else old
                if isinstance(old, dict)
                else range(len(old))
            )
            places += [_part(place, holder, key, old[key]) for key in keys]
            if isinstance(holder, dict):
                self._expect_no_more(place, holder, old)
            if isinstance(holder, dict) and holder is not place.old:
                # What an object has not itself is that of its class.
                of_class = {key: getattr(type(place.old), key, None) for key in holder if key not in old}
                defaults = {key: value for key, value in of_class.items() if list(_leaves(value))}
                places += [_part(place, holder, key, value) for key, value in defaults.items()]
        changed = [(place, new) for place in places if not _is_same(new := place.get(), place.old)]
        # What has been moved from one place to another is read in the next turn.
        moved = {id(plane) for place, _ in changed for plane in _planes(place.old)}
        for place, new in changed:
            is_moved = any(id(plane) in moved for plane in _planes(new))
            self._look_at(place, new, self._scope.is_loop and (is_moved or self._was_read(place, read)))
        for place, old in wholes:
            if not _are_same(_whole(place.old), old):
                instead = f"`x = const({place.label})` before the block, and store to `x` or set `x.val = ...`"
                if isinstance(old, list):
                    instead = "`out = buffer([n])` before the block, and store to that, as in `out[k] = ...`"
                raise ValueError(
                    f"`{place.label}` is changed in a block{place.line()}, once, however often that runs: "
                    f"write {instead}"
                )

    def close(self) -> None:
        """Ends to watch."""
        for plane in self._own:
            plane.__class__ = Tensor
            del _reads[id(plane)]
        self._own, self._places, self._holders, self._wholes = [], [], [], []

    def _expect_length(self, place: _Place, length: int) -> None:
        """Refuses that a list of tensors or numbers is longer or shorter than it was."""
        if len(place.old) < length or any(True for _ in _leaves(place.old[length:])):
            raise ValueError(
                f"`{place.label}` changes its length in a block{place.line()}, once, however often that runs: store to "
                "memory that has a place for each, as `out = buffer([n])` before the block and `out[k] = ...`"
            )

    def _expect_no_more(self, place: _Place, holder: Any, old: Any) -> None:
        """Refuses what the block makes first, and asks for."""
        asked = () if place.block is None else place.block.asked
        made = (key for key in holder if asked and key not in old and any(True for _ in _leaves(holder[key])))
        for key in made:
            if (place.label, repr(key)) not in asked and (place.label, None) not in asked:
                continue
            label = _part(place, holder, key, None).label
            raise ValueError(
                f"`{label}` is made in a block that asks whether it is there{place.line()}, and what comes would find "
                f"it though the block has not run: write `{label} = const(...)` before, and `{label}.val = ...` in it"
            )

    def _look_at(self, place: _Place, new: Any, is_carried: bool) -> None:
        """What is found at a place has changed; whether the next turn would read it."""
        name = place.label
        if _planes(place.old):
            instead = f"write `{name}.val = ...`"
        elif any(True for value in (place.old, new) for _ in _leaves(value)):
            instead = f"write `{name} = const(...)` before the block, and `{name}.val = ...`"
        else:
            instead = (
                "let a number of the program say what holds, `k = const(0)` before the block and `k.val = ...` in it"
            )
        message = (
            f"`{name}` is bound to another value in a block{place.line()}, and what it was stays as it was: {instead}"
        )
        if is_carried:
            raise ValueError(message)
        # What every run binds is known behind the block.
        is_there = self._was_there(place.old) or place.is_written and isinstance(place.old, (str, type(None)))
        if self._scope.is_sure or not place.is_later or not is_there:
            return
        planes = self._made_here(new)
        if not planes:
            # Without the text nobody knows what becomes of the numbers of a function.
            if place.block is not None or place.is_shared:
                raise ValueError(message)
        elif place.put is not None and isinstance(new, Tensor):
            place.put(_rebound(new, message))
        else:
            for plane in planes:
                plane.__class__ = _refusing(message)

    def _was_read(self, place: _Place, read: set[int]) -> bool:
        """Whether the block has read what was at a place before it put something there, or may have."""
        if not place.is_carried:
            return False
        old = place.old
        planes = _planes(old) if isinstance(old, (Tensor, ComplexTensor)) else []
        if any(isinstance(plane, _Refused) for plane in planes):
            # Reading it had been an error.
            return False
        keys = set(map(id, planes))
        if keys and keys <= self._began.keys():
            return not read.isdisjoint(keys)
        if place.is_written:
            return True
        is_leaf = is_number(old) or isinstance(old, (Tensor, ComplexTensor)) or _is_array(old)
        return is_leaf and (place.block is not None or place.is_shared)

    def _was_there(self, value: Any) -> bool:
        """Whether it is made of numbers, and tensors whose values are known here: not of a block that has ended, but
        for those that took the place of others."""
        leaves = list(_leaves(value))
        planes = [leaf for leaf in leaves if isinstance(leaf, Tensor) and not isinstance(leaf, _Refused)]
        scopes = [scope for plane in planes for scope in _scopes(plane)]
        return bool(leaves) and all(scope.is_sure or scope in self._around for scope in scopes)

    def _made_here(self, value: Any) -> list[Tensor]:
        return [plane for plane in _planes(value) if self._scope in _scopes(plane)]


#: How often tensors that are watched have been read.
_reads: dict[int, int] = {}


class _Watched(Tensor):
    """A tensor while it is known whether it is read."""

    __slots__ = ()

    @property
    def _native(self) -> Any:  # type: ignore[override]
        _reads[id(self)] += 1
        return _native.__get__(self)

    @_native.setter
    def _native(self, native: Any) -> None:
        _native.__set__(self, native)


_Watched.__name__ = _Watched.__qualname__ = "Tensor"


class _Refused(Tensor):
    """A tensor that is not read."""

    __slots__ = ()


def _refusing(message: str) -> type[Tensor]:
    """The class of tensors whose reading is an error."""

    def refuse(_: Tensor) -> Any:
        raise ValueError(message)

    return type("Tensor", (_Refused,), {"__slots__": (), "_native": property(refuse)})


def _rebound(tensor: Tensor, message: str) -> Tensor:
    """In place of a tensor one that is not read."""
    out = Tensor.__new__(_refusing(message))
    _native.__set__(out, _native.__get__(tensor))
    out._made, out._outside = tensor._made, tensor._outside
    return out


def _names_of(frame: Any, block: _written.Written | None) -> Iterator[_Place]:
    """The names of a function that a block may bind, with what they stand for."""
    own, code, file = frame.f_locals, frame.f_code, frame.f_globals
    every = own if block is None else dict.fromkeys([*block.mentioned, *code.co_cellvars, *code.co_freevars])
    for name in list(every):
        if name in own and own is not file:
            yield _Place(name, block, name, name in code.co_freevars, own[name], _of_frame(frame, name), None)
        elif name in file and name not in code.co_varnames:
            yield _Place(name, block, name, own is not file, file[name], *_of_dict(file, name))
    for label in () if block is None else block.bound:
        name, _, attribute = label.partition(".")
        holder = own.get(name, file.get(name))
        if isinstance(holder, (type, types.ModuleType)) and attribute in vars(holder):
            yield _Place(label, block, name, True, vars(holder)[attribute], *_of_attribute(holder, attribute))


def _of_frame(frame: Any, name: str) -> Callable[[], Any]:
    return lambda: frame.f_locals.get(name, _NOTHING)


def _of_dict(holder: dict[Any, Any], key: Any) -> tuple[Callable[[], Any], Callable[[Any], None]]:
    return lambda: holder.get(key, _NOTHING), lambda new: holder.__setitem__(key, new)


def _of_list(holder: list[Any], k: int) -> tuple[Callable[[], Any], Callable[[Any], None]]:
    return lambda: holder[k] if k < len(holder) else _NOTHING, lambda new: holder.__setitem__(k, new)


def _of_attribute(holder: Any, name: str) -> tuple[Callable[[], Any], Callable[[Any], None]]:
    return lambda: vars(holder).get(name, _NOTHING), lambda new: setattr(holder, name, new)


def _of_slot(holder: Any, name: str) -> tuple[Callable[[], Any], Callable[[Any], None]]:
    def get() -> Any:
        try:
            return object.__getattribute__(holder, name)
        except AttributeError:
            return _NOTHING

    return get, lambda new: object.__setattr__(holder, name, new)


def _of_cell(cell: Any) -> tuple[Callable[[], Any], Callable[[Any], None]]:
    def get() -> Any:
        try:
            return cell.cell_contents
        except ValueError:
            return _NOTHING

    return get, lambda new: setattr(cell, "cell_contents", new)


def _holder(value: Any) -> Any:
    """The list or the dictionary by which a value holds others, if it does."""
    if isinstance(value, (list, dict)):
        return value
    if isinstance(value, types.FunctionType):
        return None if _is_ours(value.__globals__.get("__name__", "")) else value.__dict__
    if isinstance(value, (types.MethodType, tuple, type, types.ModuleType)):
        return None
    own = getattr(value, "__dict__", None)
    return own if isinstance(own, dict) and not _is_ours(type(value).__module__) else None


def _part(place: _Place, holder: Any, key: Any, old: Any) -> _Place:
    """An element of a list or a dictionary, or an attribute."""
    label = f"{place.label}[{key!r}]" if holder is place.old else f"{place.label}.{key}"
    ways = _of_list(holder, key) if isinstance(holder, list) else _of_dict(holder, key)
    return place._replace(label=label, old=old, get=ways[0], put=ways[1], is_shared=True)


def _values(holder: Any) -> Any:
    return holder.values() if isinstance(holder, dict) else holder


def _parts_of(holder: Any) -> list[Any]:
    return [*holder, *holder.values()] if isinstance(holder, dict) else holder


def _held(place: _Place) -> Iterator[tuple[str, Callable[[], Any], Callable[[Any], None] | None]]:
    """What a value holds otherwise: by slots, by variables of a function; without a way to replace it, what stays."""
    value, label = place.old, place.label
    if isinstance(value, tuple):
        if len(value) <= _MOST_IN_ONE:
            yield from ((f"{label}[{k}]", lambda part=part: part, None) for k, part in enumerate(value))
    elif isinstance(value, types.MethodType):
        yield "self", lambda: value.__self__, None
    elif isinstance(value, functools.partial):
        yield from ((f"{label}.{name}", functools.partial(getattr, value, name), None) for name in _OF_PARTIAL)
    elif isinstance(value, _BAGS):
        yield from ((f"an element of {label}", lambda part=part: part, None) for part in list(value))
    elif isinstance(value, types.FunctionType):
        if _is_ours(value.__globals__.get("__name__", "")):
            return
        for name in ("__defaults__", "__kwdefaults__"):
            yield (f"{value.__name__}.{name}", functools.partial(getattr, value, name), None)
        yield from ((name, *_of_cell(cell)) for name, cell in zip(value.__code__.co_freevars, value.__closure__ or ()))
        for name in value.__code__.co_names:
            if name in value.__globals__:
                yield (name, *_of_dict(value.__globals__, name))
    elif not isinstance(value, (list, dict, type, types.ModuleType)) and not _is_ours(type(value).__module__):
        for slots in (vars(cls).get("__slots__", ()) for cls in type(value).__mro__):
            for name in (slots,) if isinstance(slots, str) else slots:
                ways = _of_slot(value, name)
                if ways[0]() is not _NOTHING:
                    yield (f"{label}.{name}", *ways)


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == "aerogel"


def _whole(value: Any) -> Any:
    """The bytes of an array, and what sets and deques hold, if numbers or tensors."""
    if _is_array(value) and value.nbytes <= _MOST_BYTES:
        return value.tobytes()
    if isinstance(value, _BYTES) and memoryview(value).nbytes <= _MOST_BYTES:
        return bytes(value)
    if isinstance(value, _BAGS) and len(value) <= _MOST_IN_ONE:
        # A set that has not changed is in the order in which it was.
        return [part for part in value if any(True for _ in _leaves(part))]
    return None


def _are_same(new: Any, old: Any) -> bool:
    if isinstance(old, bytes) or new is None:
        return bool(new == old)
    return len(new) == len(old) and all(map(operator.is_, new, old))


def _is_array(value: Any) -> bool:
    kind = type(value)
    return hasattr(kind, "__array_interface__") and hasattr(kind, "nbytes") and not isinstance(value, Tensor)


def _leaves(value: Any, depth: int = _MOST_DEEP) -> Iterator[Any]:
    """The numbers, arrays and tensors that a value is made of: two of a complex tensor, those of all in a container."""
    if isinstance(value, ComplexTensor):
        yield from (value.real, value.imag)
    elif isinstance(value, Tensor) or is_number(value) or _is_array(value):
        yield value
    elif depth and type(value) not in _PLAIN:
        holder = value if isinstance(value, tuple) else _holder(value)
        if holder is not None and len(holder) <= _MOST_IN_ONE:
            for part in _values(holder):
                yield from _leaves(part, depth - 1)


def _planes(value: Any) -> list[Tensor]:
    """The tensors of a program that a value is made of."""
    return [leaf for leaf in _leaves(value) if isinstance(leaf, Tensor) and leaf._made is not None]


def _scopes(plane: Tensor) -> tuple[Scope, ...]:
    return () if plane._made is None else plane._made.scopes


def _is_same(new: Any, old: Any) -> bool:
    if new is old:
        return True
    if is_number(old) and is_number(new):
        return type(new) is type(old) and new == old
    if isinstance(old, (Tensor, ComplexTensor)) or type(new) is not type(old):
        return False
    ours, theirs = list(_leaves(new)), list(_leaves(old))
    return bool(ours) and len(ours) == len(theirs) and all(map(_is_same, ours, theirs))
