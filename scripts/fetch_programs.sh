#!/bin/sh
# Puts Taichi's example programs, which the tests run unchanged, under .cache/taichi/examples. They are taken from
# the wheel on PyPI; nothing of it is installed. Without a network the tests that need them are skipped.
set -u
cd "$(dirname "$0")/.."
[ -d .cache/taichi/examples ] && exit 0
[ -n "${AEROGEL_TAICHI_EXAMPLES:-}" ] && exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$1" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --python-version 3.11 \
    --platform manylinux_2_27_x86_64 --dest "$work" taichi==1.7.4 </dev/null || {
    echo "fetch_programs: cannot get taichi==1.7.4; the tests of its example programs will be skipped" >&2
    exit 0
}
mkdir -p .cache
"$1" - "$work" <<'EOF'
import glob, sys, zipfile

with zipfile.ZipFile(glob.glob(sys.argv[1] + "/*.whl")[0]) as wheel:
    wheel.extractall(".cache", [n for n in wheel.namelist() if n.startswith("taichi/examples/") and n.endswith(".py")])
EOF
