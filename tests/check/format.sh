#!/bin/sh
# Formats the C++ files that git knows, or with --check names those that differ and fails.
set -eu
cd "$(dirname "$0")/../.."
tool=clang-format
command -v clang-format-14 >/dev/null && tool=clang-format-14
case "${1:---check}" in
--write) mode=-i ;;
--check) mode="--dry-run -Werror" ;;
*) echo "usage: format.sh [--check|--write]" >&2; exit 2 ;;
esac
# shellcheck disable=SC2086  # two words in --check mode
git ls-files -z --cached --others --exclude-standard '*.cpp' '*.h' | xargs -0 -r "$tool" --style=file $mode
