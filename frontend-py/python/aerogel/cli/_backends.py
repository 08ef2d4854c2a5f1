"""``python -m aerogel backends``: the list of back ends, the conformance suite, and times of whole networks."""

from __future__ import annotations

import importlib
import sys


def run(action: str, name: str | None, imports: list[str]) -> bool:
    """Runs the command; returns whether all went well."""
    import aerogel as ti

    sys.path.insert(0, "")
    for module in imports:
        importlib.import_module(module)
    ti.init(log_level="error")
    if action == "list":
        print(_listed())
        return True
    if action == "bench":
        return _timed(name)
    if name is None:
        print("`test` needs the name of a back end, as in `python -m aerogel backends test numpy`", file=sys.stderr)
        return False
    return _tested(name)


def _listed() -> str:
    from aerogel.backends import DEFAULTS, Backend, _registry

    lines = []
    for name, what in _registry.described():
        lines.append(f"  {name:<10} {what}")
        backend = _registry._entries[name].backend if name in _registry._entries else None
        if backend is not None:
            kept = [m for m in DEFAULTS if getattr(type(backend), m) is getattr(Backend, m)]
            lines.append(f"  {'':<10} by default: {', '.join(kept) or 'nothing'}")
    return "\n".join(lines)


def _tested(name: str) -> bool:
    from aerogel.backends import _conformance

    try:
        outcomes = _conformance.run(name)
    except (RuntimeError, ValueError) as e:
        print(e, file=sys.stderr)
        return False
    failed = [o for o in outcomes if o.failure]
    for outcome in failed:
        print(f"FAILED {outcome.name}\n    {outcome.failure.strip()}")
    print(f"{name}: {len(outcomes) - len(failed)} of {len(outcomes)} checks passed")
    return not failed


def _timed(name: str | None) -> bool:
    from aerogel.backends import _bench, _registry

    names = [name] if name is not None else ["native", "blas", "numpy"]
    try:
        rows = _bench.run([n for n in names if _registry.entry(n)])
    except (RuntimeError, ValueError) as e:
        print(e, file=sys.stderr)
        return False
    print(_bench.table(rows))
    return True
