#!/bin/sh
# Searches every order of events of the clients of a lock over the script that rlock ships, and compares the small Redis of
# that search with a real one.
#
#   sh tests/model/scripts/run.sh                       as in CI
#   sh tests/model/scripts/run.sh --ticks 5 plain       arguments of model_scripts, see --help: deeper, by hand
#
# BUILD=folder: where to build, by default build. The last line is "N states, V violations". Exit status: 0 complete, without
# a violation or a difference; 1 a violation or a difference; 2 not complete.
set -eu
cd "$(dirname "$0")/../../.."
# shellcheck disable=SC1091
. packaging/install.sh
# shellcheck disable=SC2086 # a list of words
need_packages $BUILD_PACKAGES $MODEL_PACKAGES
build=${BUILD:-build}
[ -f "$build/build.ninja" ] || quietly cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release
quietly cmake -S . -B "$build" -DBUILD_TESTING=ON
quietly cmake --build "$build" --target model_scripts model_compare
if [ $# = 0 ]; then "$build/model_compare"; fi
exec "$build/model_scripts" "$@"
