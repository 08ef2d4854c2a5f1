#!/bin/sh
# Installs the newest wheel of a folder in an empty environment on every Python from 3.10 to 3.13, with NumPy and
# nothing else beside it, and runs a kernel.
set -eu
wheel=$(ls -t "$1"/*.whl | head -n 1)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/hello.py" <<'EOF'
import sys
import numpy as np
import aerogel as ti

ti.init(arch=ti.cpu, log_level="error")
x = ti.field(ti.f32, 1000)


@ti.kernel
def total(scale: ti.f32, a: ti.types.ndarray()) -> ti.f32:
    for i in x:
        x[i] = scale * ti.sqrt(float(i)) + a[i]
    s = 0.0
    for i in x:
        s += x[i]
    return s


a = np.arange(1000, dtype=np.float32)
want = float((2 * np.sqrt(np.arange(1000.0)) + a).sum())
assert abs(total(2.0, a) - want) < 1e-4 * want
print("  python", sys.version.split()[0], "ok")
EOF
tried=0
echo "$wheel"
for python in python3.10 python3.11 python3.12 python3.13 "$HOME"/.pyenv/versions/3.1[0-3].*/bin/python; do
    command -v "$python" >/dev/null 2>&1 || continue
    "$python" -c 'import sys, venv, ensurepip; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null || continue
    rm -rf "$work/env"
    "$python" -m venv "$work/env"
    "$work/env/bin/python" -m pip install --quiet --disable-pip-version-check "$wheel"
    (cd "$work" && ./env/bin/python hello.py && ./env/bin/python -m aerogel example --show mpm >/dev/null)
    tried=$((tried + 1))
done
[ "$tried" -gt 0 ] || { echo "no Python from 3.10 to 3.13 found to try the wheel on" >&2; exit 1; }
