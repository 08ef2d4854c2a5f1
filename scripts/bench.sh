#!/bin/sh
# Runs the benchmarks: Aerogel and, where it can be installed, Taichi on the same programs, interleaved.
# Arguments go to benches/bench.py; `make bench ARGS="-b stencil -r 5"`.
set -eu
cd "$(dirname "$0")/.."
env=.venv-bench
# Taichi has no wheels for every Python, so its environment is apart from the one for development.
if [ ! -x $env/bin/python ]; then
    for python in ${PYTHON:-} python3.12 python3.11 python3.10 python3; do
        command -v "$python" >/dev/null 2>&1 && "$python" -m venv $env && break
    done
    $env/bin/python -m pip install --quiet --disable-pip-version-check numpy
    $env/bin/python -m pip install --quiet --disable-pip-version-check taichi==1.7.4 ||
        echo "bench: taichi is not available for this Python; measuring Aerogel alone" >&2
fi
modules=aerogel
$env/bin/python -c 'import taichi' >/dev/null 2>&1 && modules=taichi,aerogel
PYTHONPATH="$PWD/frontend-py/python" exec $env/bin/python benches/bench.py -m "$modules" "$@"
