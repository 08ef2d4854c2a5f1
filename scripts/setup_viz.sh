#!/bin/sh
# What the tests of windows need: a Vulkan, for which a software one will do, and a display that nobody looks at
# (Debian and Ubuntu). Does nothing when all is there; where it cannot help, the tests of windows say what they skip.
set -eu
packages=""
ls /usr/share/vulkan/icd.d/*.json >/dev/null 2>&1 || packages="$packages mesa-vulkan-drivers"
ldconfig -p 2>/dev/null | grep -q libvulkan.so.1 || packages="$packages libvulkan1"
# What windows look up when they open.
for library in libxkbcommon-x11.so.0:libxkbcommon-x11-0 libX11-xcb.so.1:libx11-xcb1 libXcursor.so.1:libxcursor1 libXi.so.6:libxi6; do
    ldconfig -p 2>/dev/null | grep -q "${library%%:*}" || packages="$packages ${library##*:}"
done
command -v Xvfb >/dev/null || packages="$packages xvfb"
command -v xdotool >/dev/null || packages="$packages xdotool"
# A window manager: without one nothing is minimised.
command -v openbox >/dev/null || packages="$packages openbox"
[ -n "$packages" ] || exit 0
sudo=""
[ "$(id -u)" = 0 ] || sudo="sudo"
if ! command -v apt-get >/dev/null || { [ -n "$sudo" ] && ! command -v sudo >/dev/null; }; then
    echo "setup: windows are not tested without$packages" >&2
    exit 0
fi
echo "setup: installing$packages"
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086
$sudo apt-get install -y -qq --no-install-recommends $packages </dev/null >/dev/null 2>&1 ||
    { $sudo apt-get update -qq </dev/null && $sudo apt-get install -y -qq --no-install-recommends $packages </dev/null >/dev/null; } ||
    echo "setup: apt-get could not install$packages; windows are not tested" >&2
