#!/bin/sh
# Generated programs compiled for AArch64 and run in an emulator, compared with the interpreter: as many as
# AEROGEL_N_PROGRAMS says, from AEROGEL_FIRST_SEED on. Says what is missing where the tools are not there.
# As many programs of decisions are compared with NumPy, where the package has been built (`make build`).
set -eu
cd "$(dirname "$0")/.."

TRIPLE=aarch64-unknown-linux-gnu
missing=""
command -v aarch64-linux-gnu-gcc >/dev/null || missing="$missing gcc-aarch64-linux-gnu libc6-dev-arm64-cross"
command -v qemu-aarch64 >/dev/null || missing="$missing qemu-user"
[ -d "$(rustc --print sysroot)/lib/rustlib/$TRIPLE" ] || missing="$missing (rustup target add $TRIPLE)"
if [ -n "$missing" ]; then
    echo "aarch64: skipped, install$missing to run it"
    exit 0
fi
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
cargo build --quiet --release --target "$TRIPLE" -p aerogel-tests --no-default-features --bin elsewhere
AEROGEL_ELSEWHERE="${CARGO_TARGET_DIR:-target}/$TRIPLE/release/elsewhere"
case "$AEROGEL_ELSEWHERE" in /*) ;; *) AEROGEL_ELSEWHERE="$PWD/$AEROGEL_ELSEWHERE" ;; esac
export AEROGEL_ELSEWHERE
if .venv/bin/python -c 'import aerogel' 2>/dev/null; then
    AEROGEL_DECISIONS=$(mktemp -d)
    export AEROGEL_DECISIONS
    trap 'rm -rf "$AEROGEL_DECISIONS"' EXIT
    .venv/bin/python scripts/decisions.py --what modules --folder "$AEROGEL_DECISIONS" \
        --n "${AEROGEL_N_PROGRAMS:-100}" --seed "${AEROGEL_FIRST_SEED:-0}"
else
    echo "aarch64: no decisions, for the package is not built"
fi
cargo test --quiet --release -p aerogel-tests --test elsewhere
