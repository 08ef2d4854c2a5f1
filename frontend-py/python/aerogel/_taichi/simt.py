"""``ti.simt``: what the threads of a GPU do together. On the CPU each of these is an error."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from aerogel import _dtypes as types
from aerogel.kernel import func
from aerogel.ops import _kernel_only, cast, select, static

_FULL = 0xFFFFFFFF


def _primitive(name: str, doc: str) -> Any:
    return _kernel_only(f"simt.{name}", doc)


_thread_idx = _primitive("block.thread_idx", "The index of the thread in its block.")
_active_mask = _primitive("warp.active_mask", "The active lanes, as bits of a ``ti.u32``.")
_ballot = _primitive("warp.ballot", "The lanes of a mask in which a condition is true.")
_all = _primitive("warp.all_nonzero", "Whether a condition is true in all lanes of a mask.")
_any = _primitive("warp.any_nonzero", "Whether a condition is true in any lane of a mask.")
_unique = _primitive("warp.unique", "Whether a condition is the same in all lanes of a mask.")
_match_any = _primitive("warp.match_any", "The lanes of a mask whose value equals this lane's.")
_match_all = _primitive("warp.match_all", "The mask if all of its lanes have the same value, else 0.")
_shuffle = _primitive("warp.shuffle", "The value of another lane.")
_shuffle_up = _primitive("warp.shuffle_up", "The value of the lane ``offset`` before this one.")
_shuffle_down = _primitive("warp.shuffle_down", "The value of the lane ``offset`` after this one.")
_shuffle_xor = _primitive("warp.shuffle_xor", "The value of the lane whose index differs from this one's in some bits.")
_warp_sync = _primitive("warp.sync", "Waits for the lanes of a mask.")
_fence = _primitive("grid.memfence", "A memory fence: all threads see earlier writes before later ones.")


@func
def _warp_ballot(predicate):
    """The lanes that are here in which ``predicate`` is not zero, as bits of a ``ti.u32``."""
    return _ballot(_active_mask(), predicate)


@func
def _lane():
    return _thread_idx() & 31


@func
def _from(mask, value, lane):
    """The number of a lane; its own if that one is not here."""
    here = (mask >> cast(lane & 31, types.u32)) & types.u32(1)
    return _shuffle(mask, value, select((here != 0) & (lane >= 0) & (lane < 32), lane, _lane()))


@func
def _elect():
    """Whether this is the first lane that is here."""
    before = (types.u32(1) << cast(_lane(), types.u32)) - types.u32(1)
    return (_active_mask() & before) == 0


@func
def _all_true(cond):
    """Whether ``cond`` is true in all lanes that are here."""
    return _all(_active_mask(), cond)


@func
def _any_true(cond):
    """Whether ``cond`` is true in any lane that is here."""
    return _any(_active_mask(), cond)


@func
def _all_equal(value):
    """Whether all lanes that are here have one number."""
    return _match_all(_active_mask(), value) != 0


@func
def _first_lane(mask):
    lane = 0
    for k in static(range(32)):
        if (mask >> types.u32(31 - k)) & types.u32(1):
            lane = 31 - k
    return lane


@func
def _broadcast_first(value):
    """The number of the first lane that is here."""
    mask = _active_mask()
    return _shuffle(mask, value, _first_lane(mask))


@func
def _broadcast(value, index):
    """The number of the lane ``index``."""
    return _from(_active_mask(), value, index)


@func
def _subgroup_shuffle_xor(value, mask):
    """The number of the lane whose number is this one's ``^ mask``; its own if that is not here."""
    return _from(_active_mask(), value, _lane() ^ cast(mask, types.i32))


@func
def _subgroup_shuffle_up(value, offset):
    """The number of the lane that is ``offset`` before this one; its own if there is none."""
    return _from(_active_mask(), value, _lane() - cast(offset, types.i32))


@func
def _subgroup_shuffle_down(value, offset):
    """The number of the lane that is ``offset`` behind this one; its own if there is none."""
    return _from(_active_mask(), value, _lane() + cast(offset, types.i32))


@func
def _subgroup_barrier():
    """Waits for the lanes that are here."""
    _warp_sync(_active_mask())


@func
def _add(a, b):
    return a + b


@func
def _mul(a, b):
    return a * b


@func
def _min(a, b):
    return min(a, b)


@func
def _max(a, b):
    return max(a, b)


@func
def _and(a, b):
    return a & b


@func
def _or(a, b):
    return a | b


@func
def _xor(a, b):
    return a ^ b


def _combining(op: Any) -> tuple[Any, Any]:
    """What all lanes that are here have together, and what those up to this one have."""

    @func
    def reduce(value):
        mask = _active_mask()
        result = value
        if mask == types.u32(_FULL):
            for k in static(range(5)):
                result = op(result, _shuffle_xor(types.u32(_FULL), result, 1 << k))
        else:
            # Lanes of which some are not here, in their order.
            first = _first_lane(mask)
            result = _shuffle(mask, value, first)
            for lane in range(32):
                other = _from(mask, value, lane)
                if lane > first and (mask >> cast(lane, types.u32)) & types.u32(1):
                    result = op(result, other)
        return result

    @func
    def inclusive(value):
        mask = _active_mask()
        own = _lane()
        first = _first_lane(mask)
        result = _shuffle(mask, value, first)
        for lane in range(32):
            other = _from(mask, value, lane)
            if first < lane and lane <= own and (mask >> cast(lane, types.u32)) & types.u32(1):
                result = op(result, other)
        return result

    return reduce, inclusive


def _exclusive(op: Any, identity: int) -> Any:
    """What those lanes that are here have together which are before this one."""

    @func
    def exclusive(value):
        mask = _active_mask()
        own = _lane()
        result = value
        result = identity
        for lane in range(32):
            other = _from(mask, value, lane)
            if lane < own and (mask >> cast(lane, types.u32)) & types.u32(1):
                result = op(result, other)
        return result

    return exclusive


block = SimpleNamespace(
    SharedArray=_primitive(
        "block.SharedArray", "An array that the threads of a block share; its initial values are undefined."
    ),
    sync=_primitive("block.sync", "Waits for all threads of the block."),
    sync_all_nonzero=_primitive("block.sync_all_nonzero", "As ``sync``; whether a condition is true in all threads."),
    sync_any_nonzero=_primitive("block.sync_any_nonzero", "As ``sync``; whether a condition is true in any thread."),
    sync_count_nonzero=_primitive("block.sync_count_nonzero", "As ``sync``; in how many threads a condition is true."),
    mem_sync=_primitive("block.mem_sync", "A memory fence: the block sees earlier writes before later ones."),
    thread_idx=_thread_idx,
    global_thread_idx=_primitive("block.global_thread_idx", "The index of the thread in the loop."),
)

grid = SimpleNamespace(memfence=_fence)

_SHUFFLES = {
    "shfl_sync": ("The value of the lane ``offset``.", ["i32", "f32"]),
    "shfl_up": ("The value of the lane ``offset`` before this one; its own if there is none.", ["i32", "f32"]),
    "shfl_down": ("The value of the lane ``offset`` after this one; its own if there is none.", ["i32", "f32"]),
    "shfl_xor": ("The value of the lane whose index is this one's ``^ offset``.", ["i32"]),
}

warp = SimpleNamespace(
    all_nonzero=_all,
    any_nonzero=_any,
    unique=_unique,
    ballot=_warp_ballot,
    shuffle=_shuffle,
    shuffle_up=_shuffle_up,
    shuffle_down=_shuffle_down,
    shuffle_xor=_shuffle_xor,
    match_any=_match_any,
    match_all=_match_all,
    active_mask=_active_mask,
    sync=_warp_sync,
)

for _name, (_doc, _types) in _SHUFFLES.items():
    for _type in _types:
        setattr(warp, f"{_name}_{_type}", _primitive(f"warp.{_name}_{_type}", _doc))

subgroup = SimpleNamespace(
    barrier=_subgroup_barrier,
    memory_barrier=_fence,
    elect=_elect,
    all_true=_all_true,
    any_true=_any_true,
    all_equal=_all_equal,
    broadcast=_broadcast,
    broadcast_first=_broadcast_first,
    shuffle=_broadcast,
    shuffle_xor=_subgroup_shuffle_xor,
    shuffle_up=_subgroup_shuffle_up,
    shuffle_down=_subgroup_shuffle_down,
)
for _name, _op in [
    ("add", _add),
    ("mul", _mul),
    ("min", _min),
    ("max", _max),
    ("and", _and),
    ("or", _or),
    ("xor", _xor),
]:
    _reduce, _inclusive = _combining(_op)
    setattr(subgroup, f"reduce_{_name}", _reduce)
    setattr(subgroup, f"inclusive_{_name}", _inclusive)
# The least and the greatest of no lanes are numbers that only their type knows.
for _name, _op, _identity in [("add", _add, 0), ("mul", _mul, 1), ("and", _and, -1), ("or", _or, 0), ("xor", _xor, 0)]:
    setattr(subgroup, f"exclusive_{_name}", _exclusive(_op, _identity))

__all__ = ["block", "grid", "subgroup", "warp"]
