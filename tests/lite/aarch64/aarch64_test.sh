#!/bin/sh
# Builds the library of light models for aarch64 and runs its tests under qemu-user.
#   aarch64_test.sh FOLDER [FILTER]
set -eu
command -v aarch64-linux-gnu-g++-12 >/dev/null && command -v qemu-aarch64 >/dev/null || exit 77
cmake -S tests/lite/aarch64 -B "$1" -G Ninja -DCMAKE_BUILD_TYPE=None >"$1.log" 2>&1 || { cat "$1.log"; exit 1; }
ninja -C "$1" -j2 >>"$1.log" 2>&1 || { tail -n 40 "$1.log"; exit 1; }
exec qemu-aarch64 -L /usr/aarch64-linux-gnu "$1/lite_tests" --gtest_brief=1 --gtest_filter="${2:-*}"
