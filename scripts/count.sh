#!/bin/sh
# How large the project is: lines of each crate (tests left out) and of the package, beside the most that
# scripts/budget.txt allows, and instructions, passes, unsafe blocks. Fails where there are more lines: a commit that needs
# them raises the number there, and says why.
set -eu
cd "$(dirname "$0")/.."
over=0
row() { # name, lines
    most=$(awk -v name="$1" '$1 == name { print $2 }' scripts/budget.txt)
    printf '%-14s %6d lines of %s\n' "$1" "$2" "${most:-none: no row in scripts/budget.txt}"
    [ "$2" -le "${most:-0}" ] || over=1
}
for manifest in $(git ls-files '*/Cargo.toml' | grep -v '^tests/'); do
    crate=$(dirname "$manifest")
    # shellcheck disable=SC2046
    row "$crate" "$(awk 'FNR == 1 { skip = 0 } /^#\[cfg\(test\)\]/ { skip = 1 } !skip { n++ } END { print n + 0 }' $(git ls-files "$crate/src/*.rs" | grep -v '/tests'))"
done
row package "$(git ls-files 'frontend-py/python/*.py' | xargs cat | wc -l)"
row device "$(git ls-files 'runtime/device/*.air' | xargs cat | wc -l)"
row tests "$(git ls-files 'tests/*.rs' 'tests/*.py' '*/tests/*.rs' | xargs cat | wc -l)"
printf '%-14s %6d rows\n' instructions "$(sed '/^## Passes/,$d' docs/ir.md | grep -c '^| `')"
printf '%-14s %6d\n' passes "$(sed '1,/^## Passes/d' docs/ir.md | grep '^| `' | cut -d'`' -f2 | sort -u | wc -l)"
printf '%-14s %6d blocks\n' unsafe "$(git grep -hE 'unsafe \{' -- '*.rs' | wc -l)"
[ "$over" = 0 ] || { echo "more lines than scripts/budget.txt allows" >&2; exit 1; }
