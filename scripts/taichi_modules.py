"""Lists the modules of an installed Taichi and the public names that each defines.

    python3.11 -m venv taichi && taichi/bin/pip install taichi==1.7.4
    taichi/bin/python scripts/taichi_modules.py > frontend-py/python/aerogel/_taichi/modules.json

Programs import from these modules; `aerogel._taichi.old_modules` says what each name stands for here.
"""

import contextlib
import importlib
import json
import pkgutil
import sys

# Taichi writes its version when it is imported.
with contextlib.redirect_stdout(sys.stderr):
    import taichi

    found = {}
    for info in pkgutil.walk_packages(taichi.__path__, "taichi."):
        if info.name.startswith(("taichi.examples", "taichi.__main__", "taichi.assets")):
            continue
        try:
            module = importlib.import_module(info.name)
        except Exception as error:
            print(f"{info.name}: {error}", file=sys.stderr)
            continue
        own = {
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and str(getattr(value, "__module__", "taichi")).startswith("taichi")
        }
        modules = {name for name in own if type(getattr(module, name)).__name__ == "module"}
        found[info.name.removeprefix("taichi.")] = sorted(own - modules)
lines = [f"{json.dumps(name)}: {json.dumps(found[name])}" for name in sorted(found)]
print("{\n" + ",\n".join(lines) + "\n}")
