#!/bin/sh
# Fuzzes everything that reads untrusted bytes.
#
#   sh tests/fuzz/run.sh [SECONDS [TARGET...]]   for so long each, 60 unless given; all targets unless named
#
# Each target is a file of this folder, whose head says what must hold. They are built with clang 19, AddressSanitizer and
# UBSan, and run two at a time (JOBS), from the inputs in corpus/. Prints how often each has run, and what it found; ends
# with 1 if one found something. Such an input stays in build-fuzz/found/: make it small with
# `build-fuzz/fuzz_TARGET -minimize_crash=1 FILE`, and add it to corpus/TARGET, where every run begins.
set -eu
cd "$(dirname "$0")/../.."
. packaging/install.sh
need_packages $BUILD_PACKAGES clang-19 libclang-rt-19-dev
seconds=${1:-60}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || for source in tests/fuzz/*.cc; do set -- "$@" "$(basename "$source" .cc)"; done

own build-fuzz
build fuzz build-fuzz fuzz
mkdir -p build-fuzz/found
export seconds
printf '%s\n' "$@" | xargs -P "${JOBS:-2}" -n 1 sh -c '
  mkdir -p "build-fuzz/corpus/$1"
  status=0
  "build-fuzz/fuzz_$1" -max_total_time="$seconds" -max_len=4096 -timeout=10 -dict=tests/fuzz/words.dict -print_final_stats=1 \
    -artifact_prefix="build-fuzz/found/$1-" "build-fuzz/corpus/$1" "tests/fuzz/corpus/$1" \
    >"build-fuzz/found/$1.log" 2>&1 || status=$?
  runs=$(sed -n "s/^stat::number_of_executed_units: *//p" "build-fuzz/found/$1.log")
  if [ "$status" = 0 ]; then
    echo "$1: $runs runs, nothing found"
  else
    echo "$1: $runs runs, FOUND something:"
    grep -E "ERROR|SUMMARY|runtime error|Test unit written|deadly signal| in (fuzz|rlock)" "build-fuzz/found/$1.log" | head -n 12
    exit 1
  fi' sh
