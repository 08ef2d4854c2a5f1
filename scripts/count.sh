#!/bin/sh
# How large the project is: lines of each crate (tests at the end of files left out), instructions, passes, unsafe blocks.
set -eu
cd "$(dirname "$0")/.."
code() { for f in "$@"; do awk '/^#\[cfg\(test\)\]/ { exit } { print }' "$f"; done | wc -l; }
for crate in ir/base snode ir ir/interp passes compiler compiler/llvm runtime frontend-py; do
    # shellcheck disable=SC2046
    printf '%-14s %6d lines\n' "$crate" "$(code $(git ls-files "$crate/src/*.rs"))"
done
printf '%-14s %6d lines\n' package "$(git ls-files 'frontend-py/python/*.py' | xargs cat | wc -l)"
printf '%-14s %6d lines\n' device "$(git ls-files 'runtime/device/*.air' | xargs cat | wc -l)"
printf '%-14s %6d lines\n' tests "$(git ls-files 'tests/*.rs' 'tests/*.py' 'frontend-py/tests/*.rs' | xargs cat | wc -l)"
printf '%-14s %6d rows\n' instructions "$(sed '/^## Passes/,$d' docs/ir.md | grep -c '^| `')"
printf '%-14s %6d\n' passes "$(sed '1,/^## Passes/d' docs/ir.md | grep '^| `' | cut -d'`' -f2 | sort -u | wc -l)"
printf '%-14s %6d blocks\n' unsafe "$(git grep -hE 'unsafe \{' -- '*.rs' | wc -l)"
