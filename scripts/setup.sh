#!/bin/sh
# Everything that building and testing need: system packages (Debian and Ubuntu), a virtual environment.
# Does nothing when all is there. Says in one line what is missing when it cannot help.
set -eu
cd "$(dirname "$0")/.."

fail() { echo "setup: $*" >&2; exit 1; }

LLVM="${LLVM_SYS_221_PREFIX:-/usr/lib/llvm-22}"
command -v cargo >/dev/null || fail "Rust is missing: install it from https://rustup.rs (1.90 or later)"
command -v "$PYTHON" >/dev/null || fail "Python is missing: install Python 3.10 or later, or name it by PYTHON=..."
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || fail "$PYTHON is too old: 3.10 or later is needed"

packages=""
[ -x "$LLVM/bin/llvm-config" ] || packages="$packages llvm-22-dev libpolly-22-dev"
have() { [ "$(cc -print-file-name="$1")" != "$1" ]; }
if command -v cc >/dev/null; then
    have libz.a || packages="$packages zlib1g-dev"
    have libzstd.a || packages="$packages libzstd-dev"
    have libffi.a || packages="$packages libffi-dev"
    have libxml2.so || packages="$packages libxml2-dev"
else
    packages="$packages build-essential zlib1g-dev libzstd-dev libffi-dev libxml2-dev"
fi
"$PYTHON" -c 'import ensurepip, venv' 2>/dev/null || packages="$packages python3-venv"
"$PYTHON" - <<'EOF' || packages="$packages python3-dev"
# Rust's tests of the bindings link with libpython.
import os, sys, sysconfig
get = sysconfig.get_config_var
names = [os.path.join(get(d) or "", get("LDLIBRARY") or "") for d in ("LIBDIR", "LIBPL")]
names.append(f"/usr/lib/{get('MULTIARCH')}/{get('LDLIBRARY')}")
sys.exit(not any(os.path.exists(n) for n in names))
EOF

if [ -n "$packages" ]; then
    command -v apt-get >/dev/null || fail "missing:$packages (names of Debian's packages); install them and run make again"
    sudo=""
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || fail "missing:$packages; run as root: apt-get install$packages"
        sudo="sudo"
    fi
    echo "setup: installing$packages"
    export DEBIAN_FRONTEND=noninteractive
    $sudo apt-get update -qq </dev/null
    case "$packages" in *llvm-22-dev*)
        if ! apt-cache show llvm-22-dev >/dev/null 2>&1; then
            # The distribution does not carry LLVM 22; LLVM's own archive does.
            . /etc/os-release
            $sudo apt-get install -y -qq ca-certificates curl </dev/null
            curl -fsSL https://apt.llvm.org/llvm-snapshot.gpg.key | $sudo tee /etc/apt/trusted.gpg.d/apt.llvm.org.asc >/dev/null ||
                fail "LLVM 22 is in neither this system's archive nor reach of apt.llvm.org; install llvm-22-dev"
            echo "deb http://apt.llvm.org/$VERSION_CODENAME/ llvm-toolchain-$VERSION_CODENAME-22 main" |
                $sudo tee /etc/apt/sources.list.d/llvm-22.list >/dev/null
            $sudo apt-get update -qq </dev/null
        fi ;;
    esac
    # shellcheck disable=SC2086
    $sudo apt-get install -y -qq --no-install-recommends $packages </dev/null >/dev/null || fail "apt-get could not install$packages"
fi
[ -x "$LLVM/bin/llvm-config" ] || fail "LLVM 22 is missing in $LLVM; set LLVM_SYS_221_PREFIX to where it is"

stamp="$VENV/.requirements"
if ! cmp -s requirements-dev.txt "$stamp" 2>/dev/null; then
    [ -x "$VENV/bin/python" ] || "$PYTHON" -m venv "$VENV"
    "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt </dev/null
    # The package is used from where it lies.
    "$VENV/bin/python" -c 'import site; open(site.getsitepackages()[0] + "/aerogel-dev.pth", "w").write(__import__("os").path.abspath("frontend-py/python") + "\n")'
    cp requirements-dev.txt "$stamp"
fi
