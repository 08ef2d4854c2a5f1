#!/bin/sh
# Runs the public conformance suite of the Array API standard on `aerogel.xp`, where the suite is:
# https://github.com/data-apis/array-api-tests, with its submodule. It is no part of this repository.
#
#     scripts/array_api.sh [FOLDER] [arguments of pytest]
#
# FOLDER is where the suite lies, or AEROGEL_ARRAY_API_TESTS; without them it is looked for beside this repository
# (../array-api-tests, ../*/array-api-tests). N is the number of examples for each test, 20 without it; PYTHON is another interpreter than that of .venv. What may fail, and why, is in array_api_expected.txt.
set -eu
cd "$(dirname "$0")/.."
root=$(pwd)
folder=${AEROGEL_ARRAY_API_TESTS:-}
for beside in ../array-api-tests ../*/array-api-tests; do
    [ -n "$folder" ] || [ ! -d "$beside" ] || folder=$beside
done
if [ $# -gt 0 ] && [ -d "$1" ]; then
    folder=$1
    shift
fi
if [ ! -f "$folder/array_api_tests/__init__.py" ]; then
    echo "array_api: skipped, the conformance suite is not in ${folder:-a folder beside this one}"
    exit 0
fi
python=${PYTHON:-$root/.venv/bin/python}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$folder"
# The same examples each time; nothing is written to the suite's folder.
PYTHONPATH="$root/frontend-py/python${PYTHONPATH:+:$PYTHONPATH}" PYTHONDONTWRITEBYTECODE=1 \
    HYPOTHESIS_STORAGE_DIRECTORY="$scratch" ARRAY_API_TESTS_MODULE=aerogel.xp \
    "$python" -m pytest array_api_tests -q --disable-deadline --derandomize --max-examples "${N:-20}" -p no:cacheprovider \
    --xfails-file "$root/scripts/array_api_expected.txt" "$@"
