#!/bin/sh
# Benchmarks on an NVIDIA GPU, on a machine that has its driver, Python and a wheel of `make wheel` in dist/ (or, where one
# develops, what `make build` has made). Taichi and Warp are measured beside it where they can be installed.
# Arguments go to benches/gpu.py; AEROGEL_CUDA=machine and --quick try it without a card.
set -eu
cd "$(dirname "$0")/.."
wheel=$(ls -t dist/*.whl 2>/dev/null | grep -v aerogel_viz | head -n 1 || true)
if [ -z "$wheel" ]; then
    [ -x .venv/bin/python ] || { echo "no wheel in dist/, and nothing built: \`make wheel\` or \`make build\`" >&2; exit 1; }
    exec .venv/bin/python benches/gpu.py "$@"
fi
env=.venv-gpu
if [ ! -x $env/bin/python ]; then
    # Taichi has no wheels for every Python.
    for python in ${PYTHON:-} python3.12 python3.11 python3.10 python3; do
        command -v "$python" >/dev/null 2>&1 && "$python" -m venv $env && break
    done
    install="$env/bin/python -m pip install --quiet --disable-pip-version-check"
    $install numpy
    for package in taichi==1.7.4 warp-lang; do
        $install "$package" || echo "gpu-bench: $package is not available for this Python" >&2
    done
fi
$env/bin/python -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps "$wheel"
exec $env/bin/python benches/gpu.py "$@"
