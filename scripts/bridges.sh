#!/bin/sh
# Runs the tests and the table of arrays of other packages (scripts/bridges.py) in two environments, made where they are missing:
# `new` has today's NumPy, PyTorch and JAX, `old` has NumPy 1.26 and the last JAX and pyarrow that work with it. They use what `make build`
# has made here.
#   scripts/bridges.sh [FOLDER [FILE OF TESTS ...]]
# FOLDER is .cache/bridges by default; each environment takes some 6 GB. Without files, all tests that use PyTorch or JAX are run.
set -eu
cd "$(dirname "$0")/.."
folder=${1:-.cache/bridges}
[ $# -eq 0 ] || shift
others="pandas pillow ml_dtypes pytest"

environment() { # NAME PACKAGE...
    name=$1
    shift
    python=$folder/$name/bin/python
    "$python" -c 'import jax, ml_dtypes, numpy, pandas, PIL, pyarrow, pytest, torch' 2>/dev/null && return
    "${PYTHON:-.venv/bin/python}" -m venv "$folder/$name"
    "$python" -m pip install --quiet --disable-pip-version-check "$@"
}

environment new "numpy>=2" torch jax pyarrow $others
environment old "numpy==1.26.*" torch "jax<0.8" "pyarrow<20" $others
[ $# -gt 0 ] || set -- $(grep -lE 'importorskip\("(torch|jax)' tests/python/test_*.py)
export PYTHONPATH="$PWD/frontend-py/python"
status=0
for name in new old; do
    python=$folder/$name/bin/python
    echo "== $name: $("$python" -c 'import jax, numpy, torch; print("NumPy", numpy.__version__, "PyTorch", torch.__version__, "JAX", jax.__version__)')"
    "$python" -m pytest -q "$@" || status=1
    "$python" scripts/bridges.py || status=1
done
exit $status
