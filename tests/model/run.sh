#!/bin/sh
# Visits every state that rlock's script, the life of a job and its guards can reach, and breaks them on purpose to show
# that this would notice.
#
#   sh tests/model/run.sh          in build/, which is configured if it does not exist
#   sh tests/model/run.sh BUILD    in that build directory
#
# Installs what is missing. Prints a line for each search, and a shortest way to each violation; then a line for each
# seeded fault. The last line is "N states, V violations, n/n seeded faults". Exits with 0 if all searches are complete,
# there are no violations, and every fault was noticed. Takes some minutes on two processors. README.md says how to read
# what it prints.
set -eu
cd "$(dirname "$0")/../.."
build=${1:-build}
. packaging/install.sh
# shellcheck disable=SC2086 # a list of words
need_packages $BUILD_PACKAGES $MODEL_PACKAGES python3
out=$(mktemp)
trap 'rm -f "$out"' EXIT
trap 'exit 1' HUP INT TERM

[ -e "$build/build.ninja" ] || quietly cmake --preset release -B "$build" -G Ninja
quietly cmake -S . -B "$build" -DBUILD_TESTING=ON
quietly cmake --build "$build" --target rlock_base model_life model_guards

status=0 states=0 violations=0
# search NAME COMMAND...: runs it, and adds what its last line says.
search() {
  say "$1"
  shift
  "$@" >"$out" || status=1
  cat "$out"
  # shellcheck disable=SC2046 # two words
  set -- $(sed -n '$s/^\([0-9]*\) states, \([0-9]*\) violations$/\1 \2/p' "$out")
  [ $# = 2 ] || status=1
  states=$((states + ${1:-0})) violations=$((violations + ${2:-0}))
}
search scripts env BUILD="$build" sh tests/model/scripts/run.sh
search 'the life of a job' "$build/model_life"
search 'the guards' "$build/model_guards"

say 'seeded faults'
python3 tests/model/mutants/run.py "$build" >"$out" || status=1
cat "$out"
echo
echo "$states states, $violations violations, $(tail -n 1 "$out")"
exit "$status"
