#!/bin/sh
# Runs a test with folders of its own for temporary files, settings, history and a home, which go with it: what another run
# has left, one that was killed too, or what runs beside it, is not seen. Kernels that were generated once serve all tests of
# a build. The processor time that the test took goes to BUILD/processor_times, a line each. Long tests run a part of their
# cases each day (tests/lua/support/today.lua): LUNARIA_TEST_DAY is the day; where it is empty they run all.
#
# usage: own_folder.sh BUILD NAME COMMAND...
build=$1 name=$2
shift 2
folder=$(mktemp -d /tmp/lunaria_test.XXXXXX) || exit 1
trap 'rm -rf "$folder"' EXIT
trap 'exit 143' HUP INT TERM
mkdir -p "$folder/tmp" "$folder/home" "$build/loaded/$(dirname "$name")"
unset XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME
export TMPDIR="$folder/tmp" HOME="$folder/home" XDG_CACHE_HOME="$build/cache" LUNARIA_TEST_LOADED="$build/loaded/$name"
export LUNARIA_TEST_DAY="${LUNARIA_TEST_DAY-$(($(date +%s) / 86400))}"
"$@"
status=$?
times >"$folder/times"
echo "$name $(sed -n 2p "$folder/times")" >>"$build/processor_times"
exit $status
