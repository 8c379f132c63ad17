#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs the benchmarks one after the other, and writes figures, tables and plots.
#
#   sh bench/run.sh              into bench/results/; a quarter of an hour, or three quarters on a busy host
#   sh bench/run.sh --quick      into build/bench/ with few rounds; less than four minutes
#
# RLOCK=PATH measures another program than build/rlock, and BENCH_OUT=FOLDER puts the results elsewhere. BENCH_ROUNDS=N
# measures hardly anything, in N rounds, to check that the programs work.
#
# Nothing else should run on the machine. All servers are private, on Unix sockets and the loopback, and end with their
# program. Exits with 1 if a program failed; the results say which.
set -u
top=$(realpath "$(dirname "$0")/..") || exit

mode=full out=${BENCH_OUT:-$top/bench/results}
usage() { sed -n '3,13s/^# \{0,1\}//p' "$0"; }
case ${1:-} in
  '') ;;
  --quick) mode=quick out=${BENCH_OUT:-$top/build/bench} ;;
  --help) usage && exit ;;
  *) usage >&2 && exit 64 ;;
esac
[ -z "${BENCH_ROUNDS:-}" ] || mode=rounds

# Relative paths are relative to the caller's folder.
rlock=$(realpath -m "${RLOCK:-$top/build/rlock}")
mkdir -p "$out" && out=$(realpath "$out") && cd "$top" || exit
for program in python3 cc redis-server flock "$rlock"; do
  command -v "$program" >/dev/null || { echo "bench/run.sh: $program not found" >&2 && exit 69; }
done
figures=$(mktemp -d) || exit
trap 'rm -rf "$figures"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# Measure a copy, like an installed program, because the file that the linker has written starts more slowly.
cp "$rlock" "$figures/rlock" && rlock=$figures/rlock || exit
bench/report machine --rlock "$rlock" >"$figures/machine.json" || exit
failed=

# measure PROGRAM [OPTION...]: prints its tables, and writes its figures to a file.
measure() {
  program=$1
  shift
  printf '\n== bench/%s %s\n\n' "$program" "$*"
  "bench/$program" --rlock "$rlock" --json "$figures/$program.json" "$@" || {
    echo "bench/$program failed" >&2
    failed="$failed $program"
  }
}

case $mode in
  full)
    measure start
    measure handoff --peers --tries 3
    measure idle
    measure renewals
    measure scale
    measure server --redisson offline
    ;;
  quick)
    measure start --rounds 30
    measure handoff --peers --waiters 1,10,100 --rounds 1 --samples 5 --peer-rounds 1
    measure idle --waiters 200 --holders 40 --settle 3 --seconds 10
    measure renewals --seconds 5
    measure scale --locks 10000 --every 2 --seconds 4 --full-seconds 0.5 --rounds 1
    measure server --rounds 3 --pairs 1000 --redisson offline
    ;;
  rounds)
    measure start --rounds "$BENCH_ROUNDS"
    measure handoff --waiters 1,2 --rounds "$BENCH_ROUNDS" --samples 1
    measure idle --waiters 3 --holders 2 --settle 0.5 --seconds 1
    measure renewals --locks 100 --every 1 --seconds 1
    measure scale --locks 200 --every 0.5 --seconds 1 --full-seconds 0.05 --rounds 1
    measure server --rounds "$BENCH_ROUNDS" --pairs 50 --redisson no
    ;;
esac

# shellcheck disable=SC2086 # a list of words
bench/report write "$figures" "$out" --mode "$mode" --failed $failed || exit
[ -z "$failed" ]
