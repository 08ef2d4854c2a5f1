"""Prints the levels of x86-64 that this processor executes, one a line."""

import aerogel as ti

for level in ("x86-64-v2", "x86-64-v3", "x86-64-v4"):
    try:
        ti.init(cpu=level, log_level="error")
    except ValueError:
        continue
    print(level)
