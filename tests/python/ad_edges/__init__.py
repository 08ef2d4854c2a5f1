"""Programs at the edge of what has a gradient: aliases, odd types, odd control flow, state that goes away."""

from ad_edges import host, language, layouts, memory, numbers, passed, without
from ad_edges.programs import PROGRAMS

__all__ = ["PROGRAMS", "host", "language", "layouts", "memory", "numbers", "passed", "without"]
