# Sourced by what runs on a machine that has NVIDIA's driver and Python, and perhaps no compiler: sets `python` to the one of an
# environment with the newest wheel of `make wheel` in dist/, made where it is missing, or to what `make build` has made.
# `packages` says what else the environment needs; what cannot be had for this Python is said and left out.
wheel=$(ls -t dist/*.whl 2>/dev/null | grep -v aerogel_viz | head -n 1 || true)
if [ -z "$wheel" ]; then
    python=.venv/bin/python
    [ -x $python ] || { echo "no wheel in dist/, and nothing built: \`make wheel\` or \`make build\`" >&2; exit 1; }
else
    echo "with $wheel" >&2
    python=.venv-gpu/bin/python
    if [ ! -x $python ]; then
        # Taichi has no wheels for every Python. Where venv fails it leaves a part of an environment.
        for candidate in ${PYTHON:-} python3.12 python3.11 python3.10 python3; do
            "$candidate" -m venv .venv-gpu 2>/dev/null && break
            rm -rf .venv-gpu
        done
        [ -x $python ] || { echo "Python 3.10 or later with its module venv is missing" >&2; exit 1; }
    fi
    pip="$python -m pip install --quiet --disable-pip-version-check"
    for package in numpy $packages; do
        $pip "$package" </dev/null || echo "$package is not available for this Python" >&2
    done
    $pip --force-reinstall --no-deps "$wheel" </dev/null
fi
