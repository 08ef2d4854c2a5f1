#!/bin/sh
# Runs tests on the machine that stands in for a GPU, and lets NVIDIA's assembler take the code of every kernel in them:
#   scripts/assemble.sh [pytest's arguments; all tests, in several processes, if there are none]
set -eu
cd "$(dirname "$0")/.."
ptxas=$(echo .venv/lib/python3*/site-packages/nvidia/cuda_nvcc/bin/ptxas)
[ -x "$ptxas" ] || { echo "no ptxas in .venv; \`make setup\` installs it"; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export ptxas AEROGEL_KEEP_PTX="$folder" AEROGEL_KEEP_PTX_FOR=90 AEROGEL_CUDA=machine AEROGEL_TEST_ARCH=cuda
tests=0
[ $# -gt 0 ] || set -- tests/python
.venv/bin/python -m pytest -q -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder "$@" || tests=$?
n=$(find "$folder" -maxdepth 1 -name '*.ptx' | wc -l)
m=$(find "$folder/sm_90" -name '*.ptx' | wc -l)
[ "$n" -gt 0 ] || { echo "no kernels"; exit 1; }
echo "assembling $n kernels that were made for sm_80, and $m for sm_90"
find "$folder" -name '*.ptx' -print0 | xargs -0 -P "$(nproc)" -I{} sh -c '
    case "$1" in */sm_90/*) sm=90 ;; *) sm=80 ;; esac
    "$ptxas" -arch=sm_$sm -o /dev/null "$1" 2>"$1.said" || { echo "$1 for sm_$sm:"; cat "$1.said"; exit 255; }' - {}
echo "all are accepted"
exit "$tests"
