# Every test file loads this, or server.bash, job.bash or jobs.bash, which load it.
#
# $RLOCK is the program under test (build/rlock unless set): an installed one works too.

bats_require_minimum_version 1.5.0

TESTS_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export TESTS_DIR
export RLOCK=${RLOCK:-$TESTS_DIR/../build/rlock}

# Bats records the stack before each command, which takes a third of the tests' processor time: here only if a command
# fails, and then the last run is shown, too. With BATS_OWN_TRACE=1 it does so always, and the trace is also exact where
# a test returns or exits.
if [[ -z ${BATS_OWN_TRACE:-} ]]; then
  TEST_SHELL=$BASHPID # what a subshell prints may be what it was asked for
  bats_debug_trap() { trap - DEBUG; }
  bats_error_trap() {
    bats_check_status_from_trap
    [[ -n ${BATS_DEBUG_LAST_STACK_TRACE_IS_VALID:-} ]] || {
      bats_capture_stack_trace
      [[ ! -v status || $BASHPID != "$TEST_SHELL" ]] || show
    }
    BATS_DEBUG_LAST_STACK_TRACE_IS_VALID=1
  }
fi

source "$TESTS_DIR/lib/redis.bash"

# Variables that a user has set must not reach the tests. Only once, because those that setup_file exports must.
if [[ -z ${TESTS_ENVIRONMENT_IS_CLEAN:-} ]]; then
  for variable in $(compgen -e RLOCK_) REDISCLI_AUTH; do
    unset "$variable"
  done
  export TESTS_ENVIRONMENT_IS_CLEAN=1
  # Without a locale, as on a fresh machine, $'\u2800' is not one character.
  export LANG=${LANG:-C.UTF-8}
  # A script, such as that of a version manager, takes ten times as long to start as the distribution's.
  if [[ $(command -v python3) != /usr/bin/python3 && -x /usr/bin/python3 ]]; then
    mkdir -p "$BATS_RUN_TMPDIR/python"
    ln -sf /usr/bin/python3 "$BATS_RUN_TMPDIR/python/python3"
    export PATH=$BATS_RUN_TMPDIR/python:$PATH
  fi
  [[ -p $BATS_RUN_TMPDIR/never ]] || mkfifo "$BATS_RUN_TMPDIR/never"
fi
# Below what is no folder, because other programs, such as a browser, make what is missing.
export XDG_CONFIG_HOME=/dev/null/none

rlock() { "$RLOCK" "$@"; }

# page_data FILE EXPRESSION: of what a page of --html has to show; see lib/page.py.
page_data() { python3 "$TESTS_DIR/lib/page.py" "$@"; }

# stuck FD PROGRAM [ARG...]: becomes it, with a full pipe at FD, which nobody reads. For `run` and &.
stuck() {
  local pipe=$BATS_TEST_TMPDIR/stuck.$1 kept
  mkfifo "$pipe"
  exec {kept}<>"$pipe"
  dd if=/dev/zero of="$pipe" bs=4096 oflag=nonblock 2>/dev/null || true # until it is full
  eval "exec \"\${@:2}\" $1>\"\$pipe\""
}

# nap SECONDS: like sleep(1), without a process.
nap() { read -rt "$1" <>"$BATS_RUN_TMPDIR/never" || true; }

# wait_until COMMAND...: tries again and again until the command succeeds, for at most a minute ($WAIT_SECONDS): every 5
# ms at first, then after a twelfth of the time that has passed, and at least every 100 ms. The limit does not measure
# time: it fails a test whose state never comes.
wait_until() {
  local waits_since=${EPOCHREALTIME/[.,]/} waits_for waits_pause
  until "$@" >/dev/null 2>&1; do
    waits_for=$((${EPOCHREALTIME/[.,]/} - waits_since))
    ((waits_for < ${WAIT_SECONDS:-60} * 1000000)) || {
      echo "waited without success for: $*" >&2
      tail -n 5 -- "${BATS_TEST_TMPDIR:-.}"/*err* >&2 2>/dev/null || true # what the programs have said meanwhile
      return 1
    }
    waits_pause=$((waits_for / 12))
    printf -v waits_pause '0.%06d' $((waits_pause < 5000 ? 5000 : waits_pause > 100000 ? 100000 : waits_pause))
    nap "$waits_pause"
  done
}

# not COMMAND...: for wait_until.
not() { ! "$@"; }

# read_state PID: $state is its letter in /proc, such as T for a stopped one; empty if there is no such process.
read_state() {
  state=
  { read -r state <"/proc/$1/stat"; } 2>/dev/null || return 0
  state=${state##*) }
  state=${state%% *}
}
# state_of PID: prints it.
state_of() {
  local state
  read_state "$1"
  echo "$state"
}
in_state() {
  local state
  read_state "$1"
  [[ $state == "$2" ]]
}

# children_of PID: prints its children, those of each thread from the oldest to the youngest.
children_of() { cat "/proc/$1/task/"*/children 2>/dev/null || pgrep -P "$1"; }
# child_of PID: its oldest child; fails while it has none.
child_of() {
  local child
  for child in $(children_of "$1"); do echo "$child" && return; done
  return 1
}
# monitor_of FRONTEND: the process that is the parent of a job's command; fails while there is none. Others of its
# children write messages.
monitor_of() {
  local child
  for child in $(children_of "$1"); do
    [[ $(cat "/proc/$child/comm" 2>/dev/null) != rlock || -z $(children_of "$child") ]] || { echo "$child" && return; }
  done
  return 1
}

# gone PID: the process has ended (also if it is a zombie).
gone() {
  local state
  read_state "$1"
  [[ -z $state || $state == Z ]]
}

# freeze PID: stops it, and waits for that. kill_off [-SIGNAL] PID: ends it, and waits for that.
freeze() { kill -STOP "$1" && wait_until in_state "$1" T; }
kill_off() { kill "$@" && wait_until gone "${!#}"; }

# end_mine [-SIGNAL] PID...: signals those that are still children of this shell. The others have ended, and within a
# minute their pids may belong to another test's processes: there are 32,768 of them, and the tests start 600 processes a
# second.
end_mine() {
  local signal=-TERM pid stat
  if [[ $1 == -* ]]; then signal=$1 && shift; fi
  for pid; do
    { read -r stat <"/proc/${pid:-none}/stat"; } 2>/dev/null || continue
    [[ ! ${stat##*) } =~ ^.\ $BASHPID\  ]] || kill "$signal" "$pid" 2>/dev/null || gone "$pid" # it ends meanwhile
  done
}

# end_mine_wholly PID...: and waits for them, so that what they hold has been released before a teardown looks.
end_mine_wholly() {
  local pid
  end_mine "$@"
  for pid; do [[ -z $pid ]] || wait "$pid" 2>/dev/null || true; done
}

# exits PID STATUS: waits for this child of ours, which has to end so.
exits() {
  local status=0
  wait "$1" || status=$?
  [[ $status == "$2" ]] || { echo "$1 ended with $status, not $2" >&2 && return 1; }
}

# let_end FILE PID [STATUS]: creates the FILE for which this child of ours waits; then it has to end, with 0 or STATUS.
let_end() { touch "$1" && exits "$2" "${3:-0}"; }

# now_ms: milliseconds, in steps of ten, on the clock that rlock uses for its deadlines.
now_ms() {
  local up
  read -r up _ </proc/uptime
  echo "${up/./}0"
}

# past MS: that much time has passed since $began, a value of now_ms.
past() { (($(now_ms) > began + $1)); }
# let_pass MS: returns when that much time has passed.
let_pass() {
  local began
  began=$(now_ms)
  wait_until past "$1"
}

# assert_says TEXT...: the last run wrote each of these, on standard output or standard error.
assert_says() {
  local text
  for text; do
    [[ $output$'\n'${stderr:-} == *"$text"* ]] || {
      echo "not said: $text" >&2
      echo "stdout: $output" >&2
      echo "stderr: ${stderr:-}" >&2
      return 1
    }
  done
}

# tells STATUS TEXT COMMAND...: it ends with the status, and says TEXT. prints TEXT COMMAND...: it succeeds, and TEXT is
# all that it says.
tells() { run "-$1" --separate-stderr "${@:3}" && assert_says "$2"; }
prints() { run -0 "${@:2}" && [[ $output == "$1" ]]; }

# show: status and both outputs of the last run, which is what a test shows when it fails.
show() {
  echo "status=$status"
  echo "output=${output:0:4000}"
  echo "stderr=${stderr:0:4000}"
}

# as_nobody COMMAND...: as an ordinary user, without root's rights.
as_nobody() {
  local as=()
  [[ $(id -u) != 0 ]] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
  HOME=/dev/null/none "${as[@]}" "$@"
}

# needs_nobody: $RLOCK is a program that another user can run, a copy if the program's folder is closed to others. Skips
# the test if that user cannot reach the tests' folder, either. With env, because setpriv itself still has root's
# capabilities.
needs_nobody() {
  as_nobody env "$RLOCK" --version >/dev/null 2>&1 || {
    install -m 755 "$RLOCK" "$BATS_FILE_TMPDIR/rlock"
    export RLOCK=$BATS_FILE_TMPDIR/rlock
  }
  as_nobody env redis-cli -s "$srv_sock" ping >/dev/null 2>&1 && as_nobody env "$RLOCK" --version >/dev/null 2>&1 ||
    skip 'the folders of the tests are closed to other users'
}

# own_namespace OPTION WHY [COMMAND...]: $namespace begins a command in a namespace of its own, in which the COMMAND has to
# succeed: as root, or as a user who is root there. Otherwise it skips the test.
own_namespace() {
  local check=("${@:3}")
  namespace=(unshare "$1")
  "${namespace[@]}" "${check[@]:-true}" 2>/dev/null || namespace=(unshare -r "$1")
  "${namespace[@]}" "${check[@]:-true}" 2>/dev/null || skip "$2"
}
can_trace() { strace -qq -o /dev/null true 2>/dev/null || skip 'PROCESSES CANNOT BE TRACED HERE: strace(1) is missing or not allowed'; }

# needs_pid_namespaces: skips the test if we may not create one.
pid_namespaces() { unshare -p -f true 2>/dev/null || unshare -U -r -p -f true 2>/dev/null; }
needs_pid_namespaces() { pid_namespaces || skip 'PID NAMESPACES ARE NOT ALLOWED HERE: --isolate is not tested'; }
