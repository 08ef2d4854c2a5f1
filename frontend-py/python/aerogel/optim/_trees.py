"""Optimizers as arguments of programs: parameters, state and settings are inputs, and changes are assigned."""

from __future__ import annotations

import copy
from typing import Any

from aerogel.nn._parameter import is_lazy, set_data
from aerogel.tensor._tensor import Tensor, is_number


def _is_input(value: Any) -> bool:
    """Whether a setting is a number that may change without another program."""
    return isinstance(value, float) or isinstance(value, Tensor)


def parts(optimizer: Any) -> tuple[Any, dict[str, Any]]:
    """What of an optimizer is part of a program, and its tensors and numbers by name.

    Settings that are zero turn something off, so that they are part of the program.
    """
    out: dict[str, Any] = {}
    static: list[Any] = []
    at = 0
    for j, group in enumerate(optimizer.param_groups):
        names = []
        for name, value in group.items():
            if name == "params":
                continue
            for k, one in enumerate(value) if isinstance(value, tuple) else [(-1, value)]:
                if _is_input(one) and not (isinstance(one, float) and one == 0.0):
                    out[f"{j}.{name}.{k}"] = one
                    names.append((name, k))
                else:
                    names.append((name, k, type(one), one))
        kept = []
        for p in group["params"]:
            if is_lazy(p):
                raise ValueError(
                    f"`{type(optimizer).__name__}`: a parameter of shape {p.shape} has no values yet: call its module "
                    "once outside of programs"
                )
            out[f"params.{at}"] = p
            state = optimizer.state.get(p, {})
            for name, value in state.items():
                out[f"state.{at}.{name}"] = value
            kept.append(tuple(state))
            at += 1
        static.append((tuple(names), tuple(kept)))
    return tuple(static), out


def rebuilt(optimizer: Any, values: list[Any]) -> Any:
    """A copy with other tensors and numbers."""
    made = dict(zip(parts(optimizer)[1], values))
    new = copy.copy(optimizer)
    new.param_groups, new.state = [], {}
    at = 0
    for j, group in enumerate(optimizer.param_groups):
        own = dict(group)
        for name, value in group.items():
            if isinstance(value, tuple):
                own[name] = tuple(made.get(f"{j}.{name}.{k}", one) for k, one in enumerate(value))
            else:
                own[name] = made.get(f"{j}.{name}.-1", value)
        own["params"] = []
        for p in group["params"]:
            own["params"].append(made[f"params.{at}"])
            if p in optimizer.state:
                new.state[own["params"][-1]] = {n: made[f"state.{at}.{n}"] for n in optimizer.state[p]}
            at += 1
        new.param_groups.append(own)
    return new


def assign(optimizer: Any, name: str, value: Any) -> None:
    """Assigns what a program made of a parameter, a state or a setting."""
    kind, at, *rest = name.split(".")
    if kind == "params":
        set_data(_parameter(optimizer, int(at)), value)
    elif kind == "state":
        state = optimizer.state.setdefault(_parameter(optimizer, int(at)), {})
        # Counts of steps are numbers of Python's.
        is_count = rest[0] == "step" or is_number(state.get(rest[0]))
        state[rest[0]] = int(value.item()) if is_count else value
    else:
        raise ValueError(f"a program changes the setting `{at}` of `{type(optimizer).__name__}`: change it outside")


def _parameter(optimizer: Any, at: int) -> Any:
    return [p for group in optimizer.param_groups for p in group["params"]][at]
