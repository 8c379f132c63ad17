# Every test file loads this: `load ../lib/common`.
#
# $RLOCK is the program under test (build/rlock unless set): an installed one works too.

bats_require_minimum_version 1.5.0

TESTS_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export TESTS_DIR
export RLOCK=${RLOCK:-$TESTS_DIR/../build/rlock}

source "$TESTS_DIR/lib/redis.bash"

# Variables that a user has set must not reach the tests. Once only: those that setup_file exports must.
if [[ -z ${TESTS_ENVIRONMENT_IS_CLEAN:-} ]]; then
  for variable in $(compgen -e RLOCK_) REDISCLI_AUTH; do
    unset "$variable"
  done
  export TESTS_ENVIRONMENT_IS_CLEAN=1
fi
export XDG_CONFIG_HOME=/nonexistent

# rlock ARG...: the program, ended by force after two minutes so that a hang fails the test: with 143, as
# timeout's own 124 is one of rlock's, too.
rlock() {
  timeout --preserve-status -k 1 120 "$RLOCK" "$@"
}

# wait_until COMMAND...: asks every 20 ms, for a minute at most ($WAIT_SECONDS), until the command succeeds. That is
# no measure of time: it is there so that what never comes fails the test.
wait_until() {
  local tries=$((${WAIT_SECONDS:-60} * 50))
  until "$@" >/dev/null 2>&1; do
    ((tries-- > 0)) || {
      echo "waited in vain for: $*" >&2
      return 1
    }
    sleep 0.02
  done
}

# not COMMAND...: for wait_until.
not() { ! "$@"; }

# state_of PID: its letter in /proc, as T for one that is stopped; nothing if there is no such process.
state_of() { sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null || true; }
in_state() { [[ $(state_of "$1") == "$2" ]]; }

# gone PID: the process has ended (a zombie has).
gone() {
  local state
  state=$(state_of "$1")
  [[ -z $state || $state == Z ]]
}

# now_ms: milliseconds on the clock that rlock uses for its deadlines.
now_ms() {
  python3 -c 'import time; print(time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000000)'
}

# past MS: so much time has gone by since $began, a value of now_ms.
past() { (($(now_ms) > began + $1)); }

# assert_says TEXT: the last run wrote TEXT, on standard output or standard error.
assert_says() {
  [[ $output$'\n'${stderr:-} == *"$1"* ]] || {
    echo "not said: $1" >&2
    echo "stdout: $output" >&2
    echo "stderr: ${stderr:-}" >&2
    return 1
  }
}

# show: status and both outputs of the last run, seen only when the test fails.
show() {
  echo "status=$status"
  echo "output=$output"
  echo "stderr=${stderr:-}"
}

# as_nobody COMMAND...: as an ordinary user, with nothing of root's.
as_nobody() {
  local as=()
  [[ $(id -u) != 0 ]] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
  HOME=/nonexistent "${as[@]}" "$@"
}

# needs_nobody: $RLOCK is one that another user can run, a copy where the program's folder is closed to others. Skips the
# test where that user cannot reach the folder of the tests either. By env: setpriv itself still has root's capabilities.
needs_nobody() {
  as_nobody env "$RLOCK" --version >/dev/null 2>&1 || {
    install -m 755 "$RLOCK" "$BATS_FILE_TMPDIR/rlock"
    export RLOCK=$BATS_FILE_TMPDIR/rlock
  }
  as_nobody env redis-cli -s "$srv_sock" ping >/dev/null 2>&1 && as_nobody env "$RLOCK" --version >/dev/null 2>&1 ||
    skip 'the folders of the tests are closed to other users'
}

# needs_pid_namespaces: skips the test where nobody lets us make one.
pid_namespaces() { unshare -p -f true 2>/dev/null || unshare -U -r -p -f true 2>/dev/null; }
needs_pid_namespaces() { pid_namespaces || skip 'PID NAMESPACES ARE NOT ALLOWED HERE: --isolate is not tested'; }
