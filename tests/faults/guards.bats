# Guards and commands are killed and stopped: the command never outlives its lock.

load ../lib/common
load ../lib/job

setup() {
  redis_start srv
  export RLOCK_URL
  RLOCK_URL=$(redis_url srv)
  pids=$BATS_TEST_TMPDIR/pids
  touch "$pids"
}

teardown() {
  all_gone "$pids"
  redis srv del job 'rlock:holder:{job}'
  assert_clean srv
  redis_stop srv
}

start_tree() {
  job_start "$@" -k 300ms job -- bash -c "$(tree "$pids")"
  wait_until lines_in "$pids" 3
  job_parts
}

@test "kill -9 of the frontend: the tree is dead and the lock free at once" {
  start_tree --lease 10m
  kill -9 "$frontend"
  wait_until all_gone "$pids"
  wait_until gone "$monitor"
  run -0 rlock run -n job -- true # long before the lease ends
}

@test "kill -9 of the monitor: the tree is dead, the status is 74, and the lock is kept until its lease ends" {
  start_tree
  kill -9 "$monitor"
  job_status
  show
  [[ $status == 74 ]]
  all_gone "$pids"
  run -75 rlock run -n job -- true
  (($(redis srv pttl job) > 0))
}

@test "kill -9 of the command: its tree is ended, the lock is free, and the shell sees the signal" {
  start_tree
  kill -9 "$command"
  job_status
  show
  [[ $status == 137 ]]
  all_gone "$pids"
  run -0 rlock run -n job -- true
}

@test "kill -9 of both guards at once: the command dies with them, and the lock is kept until its lease ends" {
  job_start job -- sleep 1000
  job_parts
  local inner=$command
  kill_guards
  wait_until gone "$inner"
  run -75 rlock run -n job -- true
  redis srv pexpire job 1000
  run -0 rlock run --wait 1m job -- true
}

@test "SIGSTOP of the monitor past the deadline: the frontend ends the tree before the lease does" {
  job_start --lease 6s job -- python3 -c "$(heartbeat "$BATS_TEST_TMPDIR/beats")"
  wait_until lines_in "$BATS_TEST_TMPDIR/beats" 3
  job_parts
  kill -STOP "$monitor"
  local stopped
  stopped=$(now_ms)
  job_status
  show
  [[ $status == 74 ]]
  echo "last sign of life $(($(tail -n 1 "$BATS_TEST_TMPDIR/beats") - stopped)) ms after the stop"
  (($(tail -n 1 "$BATS_TEST_TMPDIR/beats") < stopped + 6000))
}

@test "SIGSTOP of the frontend: the lock is kept, and the job ends normally" {
  job_start --lease 12s job -- bash -c "until [[ -e $BATS_TEST_TMPDIR/go ]]; do sleep 0.05; done; exit 3"
  job_parts
  kill -STOP "$frontend"
  local token
  token=$(redis srv hget 'rlock:holder:{job}' token)
  # Renewed for longer than its first lease.
  sleep_until_past_first_lease() { (($(now_ms) > started + 13000)); }
  started=$(now_ms)
  wait_until sleep_until_past_first_lease
  [[ $(redis srv hget 'rlock:holder:{job}' token) == "$token" ]]
  touch "$BATS_TEST_TMPDIR/go"
  kill -CONT "$frontend" || gone "$frontend" # the monitor has let it go on
  job_status
  [[ $status == 3 ]]
}

@test "leftovers are ended before the lock is released" {
  run -0 rlock run -k 300ms job -- bash -c "
    setsid bash -c \"trap '' TERM; echo \\\$\\\$ >>$pids; while :; do sleep 0.1; done\" </dev/null >/dev/null 2>&1 &
    until [[ -s $pids ]]; do sleep 0.02; done"
  all_gone "$pids"
  run -0 rlock run -n job -- true
}

@test "the lock is not released while any process of the tree lives" {
  job_start -k 2s job -- bash -c "(trap '' TERM; echo \$BASHPID >>$pids; while :; do sleep 0.1; done) & 
    until [[ -s $pids ]]; do sleep 0.02; done; exit 0"
  wait_until lines_in "$pids" 1
  local daemon
  daemon=$(cat "$pids")
  wait_until not gone "$daemon"
  until gone "$daemon"; do
    [[ $(redis srv exists job) == 1 ]] || gone "$daemon"
  done
  job_status
  [[ $status == 0 ]]
}

@test "the command receives each signal exactly once" {
  local signal
  for signal in HUP INT QUIT TERM USR1 USR2 ALRM WINCH RTMIN; do
    : >"$BATS_TEST_TMPDIR/seen"
    # Signals that an & or the tests' runner has ignored would stay ignored.
    env --default-signal "$RLOCK" run job -- bash -c "
      trap 'echo $signal >>$BATS_TEST_TMPDIR/seen' $signal
      trap 'exit 0' SYS
      touch $BATS_TEST_TMPDIR/ready; while :; do sleep 0.02; done" 3>&- &
    frontend=$!
    wait_until test -e "$BATS_TEST_TMPDIR/ready"
    kill "-$signal" "$frontend"
    wait_until test -s "$BATS_TEST_TMPDIR/seen"
    kill -SYS "$frontend"
    wait "$frontend"
    [[ $(cat "$BATS_TEST_TMPDIR/seen") == "$signal" ]] || {
      echo "$signal: $(cat "$BATS_TEST_TMPDIR/seen")"
      return 1
    }
    rm "$BATS_TEST_TMPDIR/ready"
  done
}

@test "a signal that the kernel queues is passed on exactly once" {
  job_start job -- python3 -c "
import signal, sys
both = [signal.SIGRTMIN, signal.SIGRTMIN + 1]  # of several, the lowest number is read first
signal.pthread_sigmask(signal.SIG_BLOCK, both)
open('$BATS_TEST_TMPDIR/ready', 'w').close()
seen = 0
while signal.sigwait(both) == signal.SIGRTMIN:
    seen += 1
sys.exit(seen)"
  wait_until test -e "$BATS_TEST_TMPDIR/ready"
  kill -RTMIN "$frontend"
  kill -RTMIN "$frontend"
  kill -RTMIN+1 "$frontend"
  job_status
  [[ $status == 2 ]]
}

@test "TERM while the command runs ends both, and the shell sees TERM" {
  job_start job -- sleep 100
  job_parts
  kill -TERM "$frontend"
  job_status
  [[ $status == 143 ]]
}

@test "a stopped job keeps its lock and continues" {
  job_start --lease 12s job -- bash -c "touch $BATS_TEST_TMPDIR/up; until [[ -e $BATS_TEST_TMPDIR/go ]]; do sleep 0.05; done; exit 4"
  wait_until test -e "$BATS_TEST_TMPDIR/up"
  job_parts
  kill -TSTP "$command"
  wait_until in_state "$frontend" T
  started=$(now_ms)
  past_first_lease() { (($(now_ms) > started + 13000)); }
  wait_until past_first_lease
  run -75 rlock run -n job -- true
  touch "$BATS_TEST_TMPDIR/go"
  kill -CONT "$command" "$frontend"
  job_status
  show
  [[ $status == 4 ]]
}
