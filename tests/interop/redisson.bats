# rlock and Redisson on one lock: a real Redisson client against the real program.
# shellcheck disable=SC2016 # Text in single quotes is for the sh of the command.

load ../lib/common
load interop

setup_file() { interop_setup_file; }
teardown_file() { interop_teardown_file; }

setup() {
  interop_setup
  use_name "job-$BATS_TEST_NUMBER."
  started=$BATS_TEST_TMPDIR/rlock.started
  end=$BATS_TEST_TMPDIR/rlock.end
}

teardown() { interop_teardown; }

# use_name NAME: this test's lock. Redisson adds braces to its channel unless the name has some.
use_name() {
  name=$1
  channel="redisson_lock__channel:{$name}"
  [[ $name != *'{'* ]] || channel=redisson_lock__channel:$name
}

lock_hash() { redis r hgetall "$name"; }

# rlock_waits_for_redisson: Redisson holds the lock, rlock waits, and Redisson's release starts its command.
rlock_waits_for_redisson() {
  redisson a lock "$name"
  start_job rlock
  wait_until waiters 1
  not job_runs rlock

  redisson a unlock "$name"
  local unlocked
  unlocked=$(now_ms)
  job_wakes rlock "$unlocked"

  end_job rlock
  wait_until lock_free
}

# redisson_waits_for_rlock: and the other way round.
redisson_waits_for_rlock() {
  start_job rlock
  wait_until job_runs rlock
  redisson_send a lock "$name"
  wait_until waiters 1
  not redisson_replies a

  local ended
  ended=$(now_ms)
  touch "$end"
  redisson_wakes a "$ended"

  job_ends rlock 0
  [[ $(lock_hash) == "$(reply owner)"$'\n1' ]]
  redisson a unlock "$name"
  wait_until lock_free
}

@test "a release by either side wakes the other; a name with a hash tag, or in UTF-8, means the same keys and channel to both" {
  local one
  for one in "$name" "{job}-$BATS_TEST_NUMBER." "früh-作业-$BATS_TEST_NUMBER."; do
    use_name "$one"
    rlock_waits_for_redisson
    redisson_waits_for_rlock
  done
}

@test "rlock gets a lock after Redisson's lease has expired" {
  redisson a lock-lease "$name" 3000
  start_job rlock
  wait_until job_runs rlock
  not redisson a unlock "$name"
  [[ $(reply error) == IllegalMonitorStateException ]]
  end_job rlock
}

@test "Redisson gets a lock after rlock's lease has expired" {
  local owner
  owner=$(rlock acquire "$name" --lease 3s)
  redisson a lock "$name"
  run -76 rlock release "$name" --owner "$owner"
  run -76 rlock renew "$name" --owner "$owner"
  redisson a unlock "$name"
}

@test "rlock waits until Redisson has released every hold of a re-entered lock" {
  redisson a lock "$name"
  redisson a lock "$name"
  start_job rlock
  wait_until waiters 1
  redisson a unlock "$name"
  not job_runs rlock
  redisson a unlock "$name"
  wait_until job_runs rlock
  end_job rlock
}

@test "rlock does not release or renew what Redisson holds" {
  local stranger before
  stranger=$(rlock acquire "$name-other" --lease 1m)
  redisson a lock "$name"
  before=$(lock_hash)

  run -76 rlock release "$name" --owner "$stranger"
  run -76 rlock renew "$name" --owner "$stranger"
  run -75 rlock run -n "$name" -- touch "$started"
  not job_runs rlock

  [[ $(lock_hash) == "$before" ]]
  redisson a unlock "$name"
  rlock release "$name-other" --owner "$stranger"
}

@test "Redisson does not take or release what rlock holds" {
  start_job rlock
  wait_until job_runs rlock
  local before
  before=$(lock_hash)

  not redisson a unlock "$name"
  [[ $(reply error) == IllegalMonitorStateException ]]
  redisson a trylock "$name" 0 30000
  [[ $(reply value) == false ]]
  redisson b trylock "$name" 500 30000
  [[ $(reply value) == false ]]

  [[ $(lock_hash) == "$before" ]]
  end_job rlock
}

@test "Redisson sees that rlock holds the lock, and how long" {
  local owner
  owner=$(rlock acquire "$name" --lease 30s)
  [[ $(lock_hash) == "$owner"$'\n1' ]]
  redisson a is-locked "$name"
  [[ $(reply value) == true ]]
  redisson a ttl "$name"
  (($(reply value) > 0 && $(reply value) <= 30000))

  rlock release "$name" --owner "$owner"
  redisson a is-locked "$name"
  [[ $(reply value) == false ]]
  redisson a ttl "$name"
  [[ $(reply value) == -2 ]]
}

@test "status shows a holder that is not rlock" {
  redisson a lock "$name"
  redisson a lock "$name"
  local owner
  owner=$(reply owner)

  run -0 rlock status "$name"
  assert_says "$owner  (not taken by rlock)"
  run -0 rlock status --json "$name"
  python3 -c '
import json, sys
lock, = json.loads(sys.argv[1])
assert lock["owner"] == sys.argv[2]
assert lock["holds"] == 2
assert lock["taken_by_rlock"] is False
assert 0 < lock["expires_in_ms"] <= 30000' "$output" "$owner"
  rlock status --is-held "$name"
  # Without a name, only the locks that rlock took are listed.
  run -0 rlock status --names
  [[ $output != *"$name"* ]]

  redisson a unlock "$name"
  redisson a unlock "$name"
  run -1 rlock status --is-held "$name"
}

@test "status shows that Redisson waits, but does not count rlock's own waiter" {
  redisson a lock "$name"
  run -0 rlock status "$name"
  [[ $output != *listens* ]]
  redisson_send b lock "$name"
  wait_until waiters 1
  start_job rlock
  wait_until waiters 2
  run -0 rlock status "$name"
  assert_says 'clients of other programs that listen for the release: 1'
  run -0 rlock status --json "$name"
  assert_says '"listening": 1'
  rlock force-unlock --yes "$name"
  wait_until redisson_replies b
  redisson b unlock "$name"
  wait_until job_runs rlock
  run -0 rlock status --json "$name"
  [[ $output != *listening* ]]
  end_job rlock
}

@test "status does not show an earlier rlock hold's description for Redisson's hold" {
  rlock acquire "$name" --lease 1m --reason "nightly backup"
  redisson a force-unlock "$name"
  redisson a lock "$name"

  run -0 rlock status "$name"
  assert_says "$(reply owner)  (not taken by rlock)"
  [[ $output != *"nightly backup"* ]]

  redisson a unlock "$name"
}

@test "fencing tokens grow over grants by either side" {
  needs_redisson 3.19.0
  redisson a fenced-lock "$name"
  local first second third
  first=$(reply value)
  redisson a unlock "$name"

  start_job rlock
  wait_until job_runs rlock
  second=$(<"$started")
  redisson a token "$name"
  [[ $(reply value) == "$second" ]]
  # RFencedLock counts in the key, and would start again at 1 without it.
  [[ $(redis r pttl "redisson_lock_token:{$name}") == -1 ]]
  end_job rlock

  redisson a fenced-lock "$name"
  third=$(reply value)
  redisson a unlock "$name"
  ((first < second && second < third))

  rlock run "$name" -- sh -c '[ "$RLOCK_TOKEN" -gt "$1" ]' sh "$third"
}

@test "a name mapper that adds a prefix: rlock takes the whole key as the name, and either side's release wakes the other" {
  local bare=$name name=app:$name
  channel="redisson_lock__channel:{$name}"
  redisson a mapped-lock "$bare"
  start_job rlock
  wait_until waiters 1
  not job_runs rlock
  local released
  released=$(now_ms)
  redisson a mapped-unlock "$bare"
  job_wakes rlock "$released"

  redisson_send a mapped-lock "$bare"
  wait_until waiters 1
  not redisson_replies a
  released=$(now_ms)
  touch "$end"
  redisson_wakes a "$released"
  job_ends rlock 0

  # Without the prefix, it is another lock.
  run -0 rlock status "$name"
  assert_says '(not taken by rlock)'
  run -1 rlock status --is-held "$bare"
  rlock force-unlock --yes "$name"
  not redisson a mapped-unlock "$bare"
  local owner
  owner=$(rlock acquire "$name" --lease 1m)
  redisson b mapped-trylock "$bare" 0 30000
  [[ $(reply value) == false ]]
  redisson b mapped-force-unlock "$bare"
  run -76 rlock release "$name" --owner "$owner"
}

@test "a name mapper that adds a prefix: rlock knows the queue of the fair lock" {
  needs_redisson 3.52.0 'the queue has the name without the prefix'
  local bare=$name name=app:$name
  start_job rlock
  wait_until job_runs rlock
  redisson_send a mapped-fair-lock "$bare"
  queued() { [[ $(redis r llen "redisson_lock_queue:{$name}") == 1 ]]; }
  wait_until queued
  run -0 rlock status "$name"
  assert_says "$(redis r lindex "redisson_lock_queue:{$name}" 0)  (Redisson's fair queue)"
  touch "$end"
  wait_until redisson_replies a
  job_ends rlock 0
  redisson a mapped-fair-unlock "$bare"
}

@test "a name mapper that adds a prefix: fencing tokens and the history are those of the key" {
  needs_redisson 3.19.0
  local bare=$name name=app:$name
  redisson a mapped-fenced-lock "$bare"
  local first
  first=$(reply value)
  redisson a mapped-unlock "$bare"
  rlock run --history "$name" -- sh -c '[ "$RLOCK_TOKEN" -gt "$1" ] && echo "$RLOCK_TOKEN" >"$2"' sh "$first" "$started"
  [[ $(redis r get "redisson_lock_token:{$name}") == "$(<"$started")" ]]
  [[ $(redis r xlen "rlock:history:{$name}") == 1 ]]
}

@test "force-unlock by rlock takes the lock from Redisson and wakes a waiting Redisson thread" {
  redisson a lock "$name"
  redisson_send b lock "$name"
  wait_until waiters 1
  not redisson_replies b

  local forced
  forced=$(now_ms)
  rlock force-unlock --yes "$name"
  redisson_wakes b "$forced"

  [[ $(lock_hash) == "$(reply owner)"$'\n1' ]]
  not redisson a unlock "$name"
  [[ $(reply error) == IllegalMonitorStateException ]]
  redisson b unlock "$name"
}

@test "forceUnlock by Redisson takes the lock from rlock and wakes a waiting rlock" {
  local owner
  owner=$(rlock acquire "$name" --lease 1m)
  start_job rlock
  wait_until waiters 1
  not job_runs rlock

  redisson a force-unlock "$name"
  [[ $(reply value) == true ]]
  local forced
  forced=$(now_ms)
  job_wakes rlock "$forced"

  run -76 rlock release "$name" --owner "$owner"
  end_job rlock
}

@test "rlock run stops its command, with status 74, after Redisson's forceUnlock" {
  start_job rlock --lease 6s
  wait_until job_runs rlock
  redisson a force-unlock "$name"
  redisson b lock "$name"
  job_ends rlock 74
  [[ $(lock_hash) == "$(reply owner)"$'\n1' ]]
  redisson b unlock "$name"
}

@test "both compete for one lock, and never two hold it" {
  local inside=$BATS_TEST_TMPDIR/inside rounds=15 round
  for ((round = 0; round < rounds; round++)); do
    "$RLOCK" run "$name" -- sh -c 'mkdir "$0" && sleep 0.02 && rmdir "$0"' "$inside" || exit
  done </dev/null >"$BATS_TEST_TMPDIR/rlock.log" 2>&1 3>&- &
  job_pids[rlock]=$!

  for ((round = 0; round < rounds; round++)); do
    redisson a lock "$name"
    mkdir "$inside"
    sleep 0.02
    rmdir "$inside"
    redisson a unlock "$name"
  done
  WAIT_SECONDS=60 job_ends rlock 0
}

@test "Redisson does not starve behind rlock's queue" {
  local owner id waiter pids=()
  touch "$BATS_TEST_TMPDIR/log"
  owner=$(rlock acquire "$name" --lease 1m)
  for id in {1..8}; do
    "$RLOCK" run -q "$name" -- sh -c 'echo "$0" >>"$1"; sleep 0.1' "$id" "$BATS_TEST_TMPDIR/log" 3>&- &
    pids+=($!)
  done
  in_queue() { [[ $(redis r zcard "rlock:queue:{$name}") == 8 ]]; }
  wait_until in_queue
  redisson_send a lock "$name"
  wait_until waiters 2
  rlock release "$name" --owner "$owner"
  wait_until redisson_replies a
  echo "# after $(wc -l <"$BATS_TEST_TMPDIR/log") of 8 jobs" >&3
  (($(wc -l <"$BATS_TEST_TMPDIR/log") < 8))
  redisson a unlock "$name"
  for waiter in "${pids[@]}"; do wait "$waiter"; done
  wait_until lock_free
}
