#!/bin/sh
# Makes the digests anew from Taichi itself: tests/oracle/make.sh PYTHON_WITH_TAICHI
set -eu
cd "$(dirname "$0")"
python=$1
examples=$("$python" -c 'import os, taichi; print(os.path.join(os.path.dirname(taichi.__file__), "examples"))' | tail -n 1)
mkdir -p digests
while read -r program frames; do
    name=$(basename "$program" .py)
    echo "$name"
    "$python" play.py taichi "$examples/$program" "$frames" "digests/$name.json" >/dev/null
done <programs.txt
"$python" draw.py taichi digests/drawn.npz >/dev/null
