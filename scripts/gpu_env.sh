# Sourced by what runs on a machine that has NVIDIA's driver and Python, and perhaps no compiler: sets `python` to the one of an
# environment with the newest wheel of `make wheel` in dist/, made where it is missing, or to what `make build` has made.
#   . scripts/gpu_env.sh [what else pip shall install, one by one, said where it cannot be had]
wheel=$(ls -t dist/*.whl 2>/dev/null | grep -v aerogel_viz | head -n 1 || true)
if [ -z "$wheel" ]; then
    python=.venv/bin/python
    [ -x $python ] || { echo "no wheel in dist/, and nothing built: \`make wheel\` or \`make build\`" >&2; exit 1; }
else
    python=.venv-gpu/bin/python
    if [ ! -x $python ]; then
        # Taichi has no wheels for every Python.
        for candidate in ${PYTHON:-} python3.12 python3.11 python3.10 python3; do
            command -v "$candidate" >/dev/null 2>&1 && "$candidate" -m venv .venv-gpu 2>/dev/null && break
        done
    fi
    pip="$python -m pip install --quiet --disable-pip-version-check"
    for package in numpy "$@"; do
        $pip "$package" </dev/null || echo "$package is not available for this Python" >&2
    done
    $pip --force-reinstall --no-deps "$wheel" </dev/null
fi
