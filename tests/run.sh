#!/bin/sh
# Installs what the tests need, builds, and runs all of them on real servers.
#
#   sh tests/run.sh              as root, or as a user who may use sudo
#   sh tests/run.sh --sanitize   the same, built with AddressSanitizer and UBSan
#   sh tests/run.sh FILE...      only these bats files or folders (the unit tests run always)
#   sh tests/run.sh WAY:FILE...  these over another way to the servers: tls, sentinel, cluster, or acl, as a user with the
#                                least rights. The same as TEST_OVER=WAY
#
# Prints a line for each file that is done; at the end the slowest files, what was skipped and why, then what failed with
# its output.
# If few files fail, they run again alone, because on a busy machine a test may lose a race of its own: once, in CI three
# times. Each must pass each time. The first failure is shown and counted in the last line, because it has a cause, too.
# May be repeated. JOBS=12 sets how many test files run at a time, REDIS_SERVER=PATH which server they use: any Redis
# from 6.2 on, or Valkey. RLOCK=PATH tests that program instead of the one that is built, as one of packaging/release.
set -eu
# shellcheck disable=SC1091,SC2015,SC2016,SC2086 # lists of words, && || as if, text for another shell
cd "$(dirname "$0")/.."

. packaging/install.sh
preset=release build=build
if [ "${1:-}" = --sanitize ]; then
  preset=sanitize build=build-sanitize
  # Memory that a process leaves to the kernel at its end is no leak, and guards end with _exit(2).
  export ASAN_OPTIONS=detect_leaks=0
  shift
fi

PACKAGES="$BUILD_PACKAGES libgtest-dev bats procps strace python3 python3-msgpack python3-pexpect python3-redis python3-yaml less mandoc openssl util-linux hostname iproute2 zsh fish bash-completion openssh-server openssh-client tmux minisign"
# The tests with the real Redisson and the libraries of Python, the wheel, Prometheus, pages in a browser, and
# the linters: always in CI, else if their tools are installed.
if [ -n "${CI:-}" ]; then
  PACKAGES="$PACKAGES maven default-jdk-headless groovy python3-venv python3-wheel rpm xz-utils dpkg-dev ca-certificates clang-format-19 clang-tidy-19 shellcheck lua-check prometheus busybox-static logrotate"
  command -v npm >/dev/null || PACKAGES="$PACKAGES nodejs npm"
  # Ubuntu's Chromium is a snap.
  ! grep -qx ID=debian /etc/os-release ||
    PACKAGES="$PACKAGES chromium chromium-driver python3-selenium"
fi
need_packages $PACKAGES
own "$build"

say "Building (preset $preset) ..."
build "$preset" "$build" all -DBUILD_TESTING=ON

say 'Unit tests'
"$build/unit_tests" --gtest_brief=1

say 'Tests on real servers'
# Slow files and folders come first, so that the last to end are short.
[ $# -gt 0 ] || set -- tests/cli/tables.bats tests/cli/job_tables.bats tests/cli/sentinel.bats tests/faults tests/docs tests/interop tests/cli tests/lua tests/lint
RLOCK=$(realpath "${RLOCK:-$build/rlock}")
export RLOCK
# A test that hangs fails, and shows what it has printed.
export BATS_TEST_TIMEOUT=300
# Temporary folders with short names: the path of a Unix socket has 107 bytes at most.
TMPDIR=$(mktemp -d /tmp/rt.XXXX)
export TMPDIR
chmod 711 "$TMPDIR" # one test runs a server as another user
trap 'rm -rf "$TMPDIR"' EXIT
trap 'exit 1' HUP INT TERM
mkdir "$TMPDIR/bin" # for a redis-cli that starts faster, if hiredis is there as a static library
! cc -O2 -static -DREDIS_CLI="\"$(command -v redis-cli)\"" -o "$TMPDIR/bin/redis-cli" tests/lib/redis-cli.c -lhiredis 2>/dev/null || PATH=$TMPDIR/bin:$PATH

for path; do
  case $path in
    *:*) way=${path%%:*}: path=${path#*:} ;;
    *) way= ;;
  esac
  if [ -d "$path" ]; then printf "$way%s\n" "$path"/*.bats; else printf "$way%s\n" "$path"; fi
done | awk '!named[$0]++' >"$TMPDIR/files"
count_of=$(wc -l <"$TMPDIR/files")
export count_of
mkdir "$TMPDIR/results"
# run_files JOBS: runs the files whose names come from stdin. Each file's results become a file of the same name, with -
# for /. Each runs in its own process group, as in a shell with job control, because in an orphaned group, which ours
# may be, Ctrl-Z stops nothing. Signals that our caller ignores, as with nohup(1) and a shell's &, have their default
# effect.
run_files() {
  env --default-signal=HUP,INT,QUIT xargs -P "$1" -n 1 bash -c '
    trap "kill -TERM -- -\$! 2>/dev/null; exit 1" HUP INT TERM
    result=$TMPDIR/results/$(echo "$1" | tr / -) began=$(date +%s)
    case $1 in *:*) export TEST_OVER=${1%%:*} ;; esac
    status=0
    set -m
    bats --print-output-on-failure --formatter tap "${1#*:}" >"$result.running" 2>&1 &
    set +m
    wait "$!" || status=$?
    if [ "$status" = 0 ]; then told="^ok "; else told="^not ok "; fi
    grep -q "$told" "$result.running" || echo "not ok 0 the file as a whole" >>"$result.running"
    mv "$result.running" "$result"
    number() { grep -cE "$1" "$result"; }
    took=$(($(date +%s) - began))
    echo "$took $1" >>"$TMPDIR/times"
    done_now=$(find "$TMPDIR/results" ! -name "*.running" -type f | wc -l)
    skipped=$(number "^ok .* # skip") failed=$(number "^not ok ")
    echo "[$done_now/$count_of] $1: $(($(number "^ok ") - skipped)) passed$(
      [ "$failed" = 0 ] || echo ", $failed FAILED")$([ "$skipped" = 0 ] || echo ", $skipped skipped") in $took s"
  ' bash
}

result_of() { echo "$TMPDIR/results/$(echo "$1" | tr / -)"; }

# show FILE: its failures. For a file that did not run completely, everything, because there may be no failed test in
# it.
show() {
  echo "$1:"
  awk '/^1\.\./ { next } /^not ok 0 / { whole = 1 } { line[NR] = $0 } /^(ok|not ok) / { bad = /^not/ } bad { show[NR] = 1 }
       END { for (i = 1; i <= NR; i++) if (line[i] != "" && (whole || show[i])) print "  " line[i] }' "$(result_of "$1")"
}

# Any process that still runs and names the tests' folder was forgotten by a test.
still_running() { pgrep -af -- "$TMPDIR" | grep -v ' pgrep '; }

list_failed() {
  while read -r file; do
    result=$(result_of "$file")
    [ -e "$result" ] || { cat "$result.running" && echo 'not ok 0 the file: a signal ended it'; } >"$result"
    ! grep -q '^not ok ' "$result" || echo "$file"
  done <"$TMPDIR/files" >"$TMPDIR/failed"
}

: >"$TMPDIR/left"
again=0
run_files "${JOBS:-12}" <"$TMPDIR/files" || true # of those that fail, the results tell
list_failed
number_failed=$(wc -l <"$TMPDIR/failed")
if [ "$number_failed" -gt 0 ] && [ "$number_failed" -le 4 ]; then
  say 'Failed; run again, alone'
  still_running >"$TMPDIR/left" || true # a test that fails may leave something
  while read -r file; do show "$file"; done <"$TMPDIR/failed"
  cp "$TMPDIR/failed" "$TMPDIR/again"
  for _ in ${CI:+second third} last; do
    BATS_OWN_TRACE=1 run_files 1 <"$TMPDIR/again" || true
    list_failed
    [ ! -s "$TMPDIR/failed" ] || break
  done
  again=$((number_failed - $(wc -l <"$TMPDIR/failed")))
fi

cat "$TMPDIR"/results/* >"$TMPDIR/all"
passed=$(grep -c '^ok ' "$TMPDIR/all") || true
skipped=$(grep -c '^ok .* # skip' "$TMPDIR/all") || true
failed=$(grep -c '^not ok ' "$TMPDIR/all") || true
say "The slowest files, seconds beside ${JOBS:-12} at a time"
sort -rn "$TMPDIR/times" | head -n 10
if [ "$skipped" != 0 ]; then
  say 'Skipped, and why'
  sed -n 's/^ok [0-9]* \(.*\) # skip *\(.*\)/\2: \1/p' "$TMPDIR/all" | sort
fi
if [ "$failed" != 0 ]; then
  say 'Failed'
  while read -r file; do show "$file"; done <"$TMPDIR/failed"
fi
still_running >"$TMPDIR/left now" || true
if grep -vxFf "$TMPDIR/left" "$TMPDIR/left now"; then
  say 'The processes above were left running by the tests'
  failed=$((failed + 1))
fi
echo
echo "$((passed - skipped)) passed, $failed failed, $skipped skipped"
[ "$again" = 0 ] || echo "files that passed only when they ran again, alone: $again; find out why"
[ "$failed" = 0 ]
