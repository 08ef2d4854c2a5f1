"""Prints the levels of x86-64 that this processor executes, but for the highest, one a line.

The highest one has what the processor itself has, for which all tests run anyway.
"""

import aerogel as ti

executed = []
for level in ("x86-64-v2", "x86-64-v3", "x86-64-v4"):
    try:
        ti.init(cpu=level, log_level="error")
    except ValueError:
        continue
    executed.append(level)
print("\n".join(executed[:-1]))
