# A job lacks resources, or runs in an odd place: it never runs without the lock, and never leaks.

load ../lib/job
load ../lib/quorum
load ../lib/server

teardown() {
  redis srv del x 'rlock:holder:{x}' >/dev/null
  assert_clean srv
}

root_only() { [[ $(id -u) == 0 ]] || skip 'only root can do this'; }
# as_user COMMAND ...: as a separate user, because limits count all processes of a user, and root has none. $over_tcp is
# the address for it, and ./rlock its program in a new folder.
as_user() { exec setpriv --reuid=61234 --regid=61234 --clear-groups "$@"; }
user_place() {
  root_only
  local port
  port=$(redis_free_port)
  redis srv config set port "$port" >/dev/null
  over_tcp=redis://127.0.0.1:$port
  mkdir "$BATS_TEST_TMPDIR/place"
  cd "$BATS_TEST_TMPDIR/place" || return
  chmod 777 .
  cp "$RLOCK" rlock
}
free() { [[ $(redis srv exists x) == 0 ]]; }
held() { ! free; }

# Either the command has run and all is well, or it has not, and the status says why. Counts them in $fine and $refused.
ran_or_refused() {
  show
  if ((status == 0)); then
    fine=$((fine + 1))
    [[ -e ran && -z $stderr ]]
  else
    refused=$((refused + 1))
    [[ ! -e ran ]]
    ((status == 69 || status == 71))
    [[ -n $stderr ]]
  fi
  rm -f ran
  free
}

@test "with few descriptors left: refused in time, or all is well" {
  local limit refused=0 fine=0
  for limit in {4..80}; do
    # Below some number, the dynamic linker fails.
    prlimit --nofile="$limit" "$RLOCK" --version >/dev/null 2>&1 || continue
    run --separate-stderr timeout 20 prlimit --nofile="$limit" "$RLOCK" run -n x -- touch ran
    ran_or_refused
  done
  echo "# $refused refused, $fine fine" >&3
  ((refused > 3 && fine > 3))
}

# few_enough: sets $limit to the lowest number of descriptors with which a job runs.
few_enough() {
  for limit in {4..80}; do
    prlimit --nofile="$limit" "$RLOCK" run -n x -- true 2>/dev/null && return
  done
  return 1
}

@test "a job that runs with few descriptors has enough for everything that may come, and those that are open already do not count as free" {
  local limit job
  few_enough
  echo "# $limit descriptors" >&3
  tells 71 'file descriptors: Too many open files; raise the limit with ulimit -n' prlimit --nofile=$((limit - 1)) "$RLOCK" run -n x -- true
  set -- --lease 3s -k 100ms --on-acquire 'true <hook' --on-release 'true <hook'
  touch hook
  prlimit --nofile="$limit" "$RLOCK" run "$@" x -- bash -c "exec 3>&-; $(tree pids)" 2>err 3>&- &
  job=$!
  wait_until eval '[[ -e pids ]] && lines_in pids 3'
  # Both connections, the one that renews and the one that listens; both come back.
  wait_until eval '[[ $(redis srv client list type pubsub) ]]'
  redis srv client kill type normal >/dev/null
  redis srv client kill type pubsub >/dev/null
  wait_until eval '[[ $(redis srv client list type pubsub) && $(redis srv client list type normal) == *cmd=eval* ]]'
  rlock force-unlock --yes x >/dev/null
  exits "$job" 74
  all_gone pids
  # However many servers there are.
  local one=$limit
  quorum_start 5
  few_enough
  quorum_stop
  RLOCK_URL=$(redis_url srv)
  echo "# $one descriptors with one server, $limit with five" >&3
  ((limit >= one + 4))
}

@test "with few processes left: refused in time, or all is well; a keeper is there, or the error says why not" {
  user_place
  local limit refused=0 fine=0 unstarted=0
  for limit in {1..8}; do
    run --separate-stderr as_user timeout 20 prlimit --nproc="$limit" ./rlock run -n --url "$over_tcp" x -- touch ran
    [[ $stderr != *'cannot start a process: '* ]] || unstarted=$((unstarted + 1))
    ran_or_refused
  done
  echo "# $refused refused, $fine fine" >&3
  ((refused > 1 && fine > 1 && unstarted > 0))

  # A waiter that cannot have its guards ready can try again when its turn comes.
  local owner waiter
  refused=0 fine=0
  for limit in {1..6}; do
    owner=$(rlock acquire x --lease 1m)
    as_user prlimit --nproc="$limit" ./rlock run --url "$over_tcp" x -- touch ran 2>err 3>&- &
    waiter=$!
    wait_until eval 'gone $waiter || [[ $(redis srv zcard "rlock:queue:{x}") == 1 ]]'
    rlock release x --owner "$owner"
    status=0
    wait "$waiter" || status=$?
    stderr=$(<err)
    ran_or_refused
  done
  echo "# of waiters $refused refused, $fine fine" >&3
  ((refused > 1 && fine > 1))

  refused=0 fine=0
  # The limit also counts those that have ended until process 1 reaps them, for which some take seconds.
  all_over() { free && [[ -z $(ps -o pid= -U 61234) ]]; }
  for limit in {1..12}; do
    # shellcheck disable=SC2016 # for that shell
    run --separate-stderr as_user timeout 20 sh -c '
      prlimit --nproc="$1" ./rlock acquire -n --lease 10m --url "$2" --for-pid $$ x || exit' sh "$limit" "$over_tcp"
    wait_until all_over
    if ((status == 0)); then
      fine=$((fine + 1))
    else
      refused=$((refused + 1))
      [[ $status == 71 && -z $output ]]
      [[ $stderr == *'raise the limit of processes (ulimit -u'* || $stderr == *thread* ]] || { echo "$limit: $stderr" && false; }
    fi
  done
  echo "# of keepers $refused refused, $fine fine" >&3
  ((refused > 1 && fine > 1))
}

hide_proc() { unshare -m sh -c 'mount -t tmpfs none /proc && exec "$@"' sh "$@"; }

@test "without /proc: the job runs, and the lock is kept until its leftovers have ended by themselves" {
  root_only
  hide_proc true || skip 'mount(8) is not allowed here'
  run -5 --separate-stderr hide_proc timeout 30 "$RLOCK" run x -- sh -c 'exit 5'
  [[ -z $stderr ]]
  hide_proc "$RLOCK" run -k 100ms x -- sh -c '(until [ -e go ]; do sleep 0.1; done) & exit 6' 2>err 3>&- &
  local job=$!
  wait_until grep -q 'that /proc does not show' err
  [[ $(redis srv exists x) == 1 ]]
  not gone "$job"
  let_end go "$job" 6
  free
  # A lost lock still stops the command.
  tells 74 'the lock is lost' hide_proc timeout 60 "$RLOCK" run --lease 6s x -- sh -c 'redis-cli -s "$srv_sock" del x; exec sleep 100'
}

# Like a kernel or container engine that is older than a system call.
@test "a refused system call: the job runs without it, or nothing runs and the message names it" {
  cc -O1 -o deny_call "$TESTS_DIR/lib/deny_call.c"
  for error in ENOSYS EPERM; do
    # Where descriptors are closed: in the first process of a namespace, with a password command, and in a daemon.
    tells 78 'on-acquire hook exited with 1' timeout 20 ./deny_call close_range "$error" "$RLOCK" run --isolate --on-acquire false x -- touch ran
    [[ ! -e ran ]]
    free
    run -77 --separate-stderr timeout 20 ./deny_call close_range "$error" "$RLOCK" --password-command 'echo secret' status --names
    prints ran timeout 20 ./deny_call close_range "$error" "$RLOCK" --url "local:$PWD/l" run x -- echo ran
    rlock --url "local:$PWD/l" local stop --yes
    rm -r l
    for call in pidfd_send_signal close_range clone3 memfd_create mlock statx; do
      run -7 --separate-stderr timeout 20 ./deny_call "$call" "$error" "$RLOCK" run x -- sh -c 'exit 7'
      [[ -z $stderr ]]
      free
    done
    tells 71 'pidfd_open: ' timeout 20 ./deny_call pidfd_open "$error" "$RLOCK" run x -- touch ran
    assert_says 'rlock needs Linux 5.4 or later'
    tells 78 'pidfd_open: ' timeout 20 ./deny_call pidfd_open "$error" "$RLOCK" --password-command 'echo p' status x
    [[ ! -e ran ]]
    free
    rlock run x -- sleep 2 3>&- &
    job_pid=$!
    wait_until held
    tells 71 'pidfd_open: ' timeout 20 ./deny_call pidfd_open "$error" "$RLOCK" run -w 1m x -- touch ran
    [[ ! -e ran ]]
    wait "$job_pid"
    free
  done
}

# On one processor, the process that writes into the file seldom comes before the end of the one that has a message.
@test "without pidfd_open, or without a descriptor for it, a message is in its file when the program ends" {
  cc -O1 -o deny_call "$TESTS_DIR/lib/deny_call.c"
  for i in {1..50}; do
    run -64 taskset -c 0 sh -c './deny_call pidfd_open ENOSYS "$RLOCK" --url nowhere status x 2>err; code=$?; [ -s err ] || exit 1; exit $code'
  done
}

@test "as process 1 of a container: orphans are reaped, statuses and signals pass through" {
  root_only
  unshare -pf --mount-proc true || skip 'unshare(1) is not allowed here'
  run -5 --separate-stderr unshare -pf --mount-proc "$RLOCK" run x -- sh -c '
    (sh -c "sleep 0.05 & exec true" &); sleep 0.2
    ps -A -o stat= | grep -c Z; exit 5'
  [[ $output == 0 ]]
  free
  unshare -pf --kill-child --mount-proc "$RLOCK" run x -- sleep 100 3>&- &
  local outside=$! inside
  wait_until child_of "$outside"
  inside=$(child_of "$outside")
  wait_until not free
  wait_until child_of "$inside"
  kill -TERM "$inside"
  exits "$outside" 143
  free
}

@test "as cron starts it: no terminal, no variables, no standard input" {
  run -4 --separate-stderr env -i PATH=/usr/bin:/bin HOME=/ LOGNAME=root SHELL=/bin/sh setsid -w \
    "$RLOCK" run --url "$RLOCK_URL" -n -E 0 x -- sh -c 'cat; echo done; exit 4' </dev/null
  [[ $output == done && -z $stderr ]]
  free
}

# unstoppable: a command in the user's folder that becomes root completely, like sudo, and waits for the file "go". Skips if
# this is not possible.
unstoppable() {
  user_place
  local probe
  cc -o become -xc - <<'PROGRAM'
#include <stdlib.h>
#include <unistd.h>
int main(void) {
  if (setgid(0) != 0 || setuid(0) != 0) return 1;
  while (access("go", F_OK) != 0) usleep(20000);
  return 0;
}
PROGRAM
  chmod 4755 become
  export RLOCK_URL=$over_tcp
  as_user ./become & # shows whether set-uid works here
  probe=$!
  is_root() { grep -q '^Uid:.0.0.0' "/proc/$1/status"; }
  WAIT_SECONDS=20 wait_until is_root "$probe" || skip 'set-uid programs do not work here'
  let_end go "$probe"
  rm go
}

@test "a command that has become root cannot be stopped: the lock is kept until it ends, or lost once without renewal; SIGCONT is no message" {
  unstoppable
  as_user ./rlock run --lease 6s --max-hold 500ms x -- ./become 2>err 3>&- &
  local job=$! began
  wait_until grep -q 'runs as another user, so rlock cannot stop it' err
  # Kept for longer than its first lease, and nobody kills the guard that renews it.
  began=$(now_ms)
  wait_until past 7000
  [[ $(redis srv exists x) == 1 ]]
  let_end go "$job" 124
  free
  rm go
  # In another session SIGCONT does not reach it.
  as_user setsid ./rlock run x -- ./become 2>err 3>&- &
  job=$!
  command_is_root() { is_root "$(pgrep -P "$(child_of "$job")")"; }
  wait_until command_is_root
  kill -CONT "$job"
  wait_until grep -q '^ShdPnd:.0*$' "/proc/$job/status"
  let_end go "$job"
  [[ ! -s err ]]
  rm go
  # Without renewal the guard that cannot kill is left alone, and the loss is reported once.
  as_user ./rlock run --lease 6s --no-renew --status-fd 5 x -- ./become 2>err 5>lines 3>&- &
  job=$!
  wait_until grep -q 'runs as another user, so rlock cannot stop it' err
  began=$(now_ms)
  wait_until past 3500
  free # nothing renews it
  let_end go "$job" 74
  cat err lines
  [[ $(grep -c '"event":"lost"' lines) == 1 && $(<lines) == *"prevents its renewal"* ]]
  [[ $(<err) != *'monitor of this job'* ]]
}

@test "no room for another thread: the lock is still renewed" {
  user_place
  run -0 --separate-stderr as_user prlimit --nproc=12 ./rlock run --lease 3s --url "$over_tcp" x -- python3 -c '
import os, time
try:
    while True:
        if os.fork() == 0:
            time.sleep(1000)
except BlockingIOError:
    time.sleep(5)
    print("done", flush=True)
    os._exit(0)'
  show
  [[ $output == done ]]
  free
}
