#!/bin/sh
# Installs what the tests need, builds, and runs all of them on real servers.
#
#   sh tests/run.sh              as root, or as a user who may use sudo
#   sh tests/run.sh --sanitize   the same, built with AddressSanitizer and UBSan
#   sh tests/run.sh FILE...      only these bats files or folders (the unit tests run always)
#
# May be repeated. JOBS=8 sets how many test files run at a time.
set -eu
# shellcheck disable=SC1091,SC2015,SC2086 # lists of words, && || as if
cd "$(dirname "$0")/.."

. packaging/install.sh
# Warnings are errors in CI; elsewhere another compiler may know more of them.
preset=${CI:+ci} build=build
: "${preset:=release}"
if [ "${1:-}" = --sanitize ]; then
  preset=sanitize build=build-sanitize
  # What a process leaves to the kernel at its end is no leak, and guards end by _exit(2).
  export ASAN_OPTIONS=detect_leaks=0
  shift
fi

PACKAGES='cmake ninja-build g++ libhiredis-dev libcli11-dev libspdlog-dev libfmt-dev nlohmann-json3-dev redis-server
  libgtest-dev bats parallel procps strace python3 python3-pexpect less mandoc util-linux hostname'
# The meeting with the real Redisson: everywhere in CI, else where Maven is there already.
[ -z "${CI:-}" ] || PACKAGES="$PACKAGES maven default-jdk-headless"
need_packages $PACKAGES

say "Building (preset $preset) ..."
cmake --preset "$preset" -G Ninja -DBUILD_TESTING=ON >build.log 2>&1 && cmake --build "$build" >>build.log 2>&1 || {
  tail -n 40 build.log >&2
  fail 'the build failed; the whole output is in build.log'
}
rm -f build.log

say 'Unit tests'
"$build/unit_tests" --gtest_brief=1

say 'Tests on real servers'
[ $# -gt 0 ] || set -- tests/lint tests/lua tests/cli tests/faults tests/docs tests/interop
RLOCK=$PWD/$build/rlock
export RLOCK
# A test that hangs fails, with what it has printed.
export BATS_TEST_TIMEOUT=120
# GNU parallel asks to be cited, once for each user, and waits for an answer on a terminal.
mkdir -p "$HOME/.parallel" && touch "$HOME/.parallel/will-cite"
# Temporary folders with short names: the path of a Unix socket has 107 bytes at most.
BATS_TMPDIR=$(mktemp -d /tmp/rt.XXXX)
chmod 711 "$BATS_TMPDIR" # one test runs a server as another user
export TMPDIR="$BATS_TMPDIR"
status=0
bats --print-output-on-failure -j "${JOBS:-8}" --no-parallelize-within-files "$@" >"$BATS_TMPDIR/tap" 2>&1 || status=$?
cat "$BATS_TMPDIR/tap"
passed=$(grep -c '^ok ' "$BATS_TMPDIR/tap") || true
skipped=$(grep -c '^ok .* # skip' "$BATS_TMPDIR/tap") || true
failed=$(grep -c '^not ok ' "$BATS_TMPDIR/tap") || true
# Whatever names the tests' folder and still runs was forgotten by a test.
if pgrep -af -- "$BATS_TMPDIR"; then
  say 'the processes above were left running by the tests'
  status=1
fi
rm -rf "$BATS_TMPDIR"
[ "$skipped" = 0 ] || say "$skipped tests were skipped: see the lines with # skip above"
echo
echo "$((passed - skipped)) passed, $failed failed, $skipped skipped"
[ "$status" = 0 ] && [ "$failed" = 0 ]
