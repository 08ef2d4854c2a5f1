#!/bin/sh
# The Python tests on an NVIDIA GPU, on a machine that has its driver, Python and a wheel of `make wheel` in dist/ (or, where one
# develops, what `make build` has made): the suite, generated programs against the interpreter, Taichi's examples against the
# CPU, long runs. Arguments go to pytest; AEROGEL_CUDA=machine tries it without a card (a wheel of
# `make wheel MACHINE=1`).
set -eu
cd "$(dirname "$0")/.."
# What builds, checks and assembles is not needed there.
packages=$(grep -vE '^(maturin|ruff|pyright|mypy|nvidia)' requirements-dev.txt)
. scripts/gpu_env.sh
scripts/fetch_programs.sh $python
[ $# -gt 0 ] || set -- tests/python
AEROGEL_TEST_ARCH=cuda exec $python -m pytest -q "$@"
