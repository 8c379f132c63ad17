# rlock and Redisson's RFairLock, which has its own queue: turns for both sides.

load interop

KIND=fair

setup() {
  interop_setup
  fair_queue="redisson_lock_queue:{$name}"
}
teardown() {
  touch "$BATS_TEST_TMPDIR/stop"
  interop_teardown
}

# That number of Java threads wait in Redisson's queue, and listen for their turn.
fair_waiters() {
  [[ $(redis r pubsub channels "redisson_lock__channel:{$name}:*" | grep -c .) == "$1" ]]
}

# One job after the other, until the test ends.
jobs_keep_coming() {
  # shellcheck disable=SC2016 # for the sh of the command
  while [[ ! -e $BATS_TEST_TMPDIR/stop ]]; do
    "$RLOCK" run -q "$name" -- sh -c 'echo >>"$0"; sleep 0.05' "$BATS_TEST_TMPDIR/jobs" || exit
  done </dev/null >"$BATS_TEST_TMPDIR/$1.log" 2>&1 3>&- &
  job_pids[$1]=$!
}

jobs_so_far() { wc -l <"$BATS_TEST_TMPDIR/jobs"; }
jobs_done() { (($(jobs_so_far) >= $1)); }

# Turns of a fair lock beside LOOPS loops of rlock jobs: a limited number of jobs comes between.
fair_turns_beside() {
  local i before=0 most=0 between
  : >"$BATS_TEST_TMPDIR/jobs"
  for ((i = 0; i < $1; i++)); do jobs_keep_coming "loop$i"; done
  wait_until jobs_done 3
  for i in 1 2 3 4 5; do
    before=$(jobs_so_far)
    redisson f fair-lock "$name"
    between=$(($(jobs_so_far) - before))
    ((between <= most)) || most=$between
    redisson f fair-unlock "$name"
  done
  echo "# $1 loops: a fair waiter let at most $most jobs pass" >&3
  # A JVM that gets no processor time may miss its turn now and then.
  ((most <= 12))
  before=$(jobs_so_far)
  wait_until jobs_done $((before + 3))
  touch "$BATS_TEST_TMPDIR/stop"
  for ((i = 0; i < $1; i++)); do job_ends "loop$i" 0; done
}

@test "a fair waiter gets its turns while jobs run one after the other" { fair_turns_beside 1; }
@test "a fair waiter gets its turns while jobs wait in rlock's queue" { fair_turns_beside 4; }

@test "a job gets its turn while fair waiters keep coming" {
  redisson f fair-lock "$name"
  redisson_send g fair-lock "$name"
  wait_until fair_waiters 1
  waiting_job a
  wait_until fair_waiters 2
  redisson_send h fair-lock "$name"
  wait_until fair_waiters 3
  # f, g, then the job, then h.
  redisson f fair-unlock "$name"
  wait_until redisson_replies g
  redisson_send f fair-lock "$name"
  not job_runs a
  redisson g fair-unlock "$name"
  wait_until job_runs a
  not redisson_replies h
  end_job a
  wait_until redisson_replies h
  redisson h fair-unlock "$name"
  wait_until redisson_replies f
  redisson f fair-unlock "$name"
  wait_until lock_free
}

@test "a job that gives up leaves Redisson's queue, too" {
  redisson f fair-lock "$name"
  start_job a
  wait_until fair_waiters 1
  kill -TERM "${job_pids[a]}"
  job_ends a 143
  [[ $(redis r exists "$fair_queue" "redisson_lock_timeout:{$name}") == 0 ]]
  redisson f fair-unlock "$name"
  wait_until lock_free
}

@test "status shows the waiters in Redisson's queue" {
  running_job a
  redisson_waits f fair-lock "$name"
  id=$(redis r lindex "$fair_queue" 0)
  tells 0 "$id  (Redisson's fair queue)" rlock status "$name"
  run -0 rlock status --json "$name"
  assert_says "\"fair_queue\": [" "\"$id\""
  end_job a
  wait_until redisson_replies f
  redisson f fair-unlock "$name"
}
