#!/bin/sh
# Benchmarks on an NVIDIA GPU, on a machine that has its driver, Python and a wheel of `make wheel` in dist/ (or, where one
# develops, what `make build` has made). Taichi and Warp are measured beside it where they can be installed.
# Arguments go to benches/gpu.py; AEROGEL_CUDA=machine and --quick try it without a card (a wheel of
# `make wheel MACHINE=1`).
set -eu
cd "$(dirname "$0")/.."
packages="taichi==1.7.4 warp-lang"
. scripts/gpu_env.sh
exec $python benches/gpu.py "$@"
