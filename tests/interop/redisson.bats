# rlock and Redisson on one lock: a real Redisson client against the real program.
# shellcheck disable=SC2016 # Text in single quotes is for the sh of the command.

load interop

setup() {
  interop_setup
  started=$BATS_TEST_TMPDIR/rlock.started
}

lock_hash() { redis r hgetall "$name"; }

by_turns() {
  they_take_turns
  # This name means the same keys and channel to both.
  use_kind "$kind" "früh-{作业}-$kind"
  they_take_turns
}

@test "each excludes the other, and a release by either side wakes the other, also with a hash tag or UTF-8 in the name" {
  for_each_kind they_take_turns fair mapped
  for_each_kind by_turns plain write permit
  for_each_kind they_take_turns nonreentrant nonreentrant-fair
}

a_lease_ends() {
  local owner
  redisson a "${prefix}lock-lease" "$theirs" 1000
  running_job rlock
  redisson_throws a "${prefix}unlock" "$theirs"
  end_job rlock

  owner=$(rlock acquire "${options[@]}" "$name" --lease 1s)
  redisson a "${prefix}lock" "$theirs"
  run -76 rlock release "$name" --owner "$owner"
  run -76 rlock renew "$name" --owner "$owner"
  redisson a "${prefix}unlock" "$theirs"
}

@test "each gets the lock when the other's lease has ended, and a late release does not take it away" {
  for_each_kind a_lease_ends plain fair spin write permit nonreentrant
}

force_wakes() {
  local force=("${prefix}force-unlock" "$theirs")
  redisson a "${prefix}lock" "$theirs"
  redisson_waits b "${prefix}lock" "$theirs"
  rlock force-unlock --yes "$name"
  redisson_wakes b
  redisson_throws a "${prefix}unlock" "$theirs"
  redisson b "${prefix}unlock" "$theirs"
  # Its forceUnlock notifies nobody but its own queue.
  [[ $kind != fair ]] || return 0

  running_job rlock --lease 6s
  waiting_job next
  [[ $kind != permit ]] || force=(try-release-permit "$name" "$(permit_ids)")
  [[ $(value a "${force[@]}") == true ]]
  job_wakes next
  job_ends rlock 74
  rlock status --is-held "$name"
  end_job next
}

@test "force-unlock by either side takes the lock from the other, wakes whoever waits, and has rlock's job stopped with status 74" {
  for_each_kind force_wakes plain fair write permit
}

@test "neither changes what the other holds, and each sees it" {
  local stranger before owner
  stranger=$(rlock acquire "$name-other" --lease 1m)
  redisson a lock "$name"
  before=$(lock_hash)
  run -76 rlock release "$name" --owner "$stranger"
  run -76 rlock renew "$name" --owner "$stranger"
  run -75 rlock run -n "$name" -- true
  [[ $(lock_hash) == "$before" ]]
  redisson a unlock "$name"

  owner=$(rlock acquire "$name" --lease 30s)
  redisson_throws a unlock "$name"
  [[ $(value a trylock "$name" 0 30000) == false && $(value b trylock "$name" 500 30000) == false ]]
  [[ $(lock_hash) == "$owner"$'\n1' ]]
  [[ $(value a is-locked "$name") == true ]]
  redisson a ttl "$name"
  (($(reply value) > 0 && $(reply value) <= 30000))
  rlock release "$name" --owner "$owner"
  [[ $(value a is-locked "$name") == false && $(value a ttl "$name") == -2 ]]
}

@test "a re-entered lock: status shows its holder, but no earlier hold's description, and rlock waits until each hold is released" {
  redisson a lock "$name"
  redisson a lock "$name"
  owner=$(reply owner)
  tells 0 "$owner  (not taken by rlock)" rlock status "$name"
  holder_shows "$owner" 2 '' no 0 30000
  rlock status --is-held "$name"
  # Without a name, only the locks that rlock took are listed.
  run -0 rlock status --names
  [[ $output != *"$name"* ]]
  waiting_job rlock
  redisson a unlock "$name"
  not job_runs rlock
  redisson a unlock "$name"
  job_wakes rlock
  end_job rlock
  run -1 rlock status --is-held "$name"

  rlock acquire "$name" --lease 1m --reason "nightly backup"
  redisson a force-unlock "$name"
  redisson a lock "$name"
  run -0 rlock status "$name"
  assert_says "$(reply owner)  (not taken by rlock)"
  [[ $output != *"nightly backup"* ]]
}

@test "status shows that Redisson waits, but does not count rlock's own waiter" {
  redisson a lock "$name"
  run -0 rlock status "$name"
  [[ $output != *listens* ]]
  redisson_waits b lock "$name"
  start_job rlock
  wait_until waiters 2
  tells 0 'clients of other programs that listen for the release: 1' rlock status "$name"
  tells 0 '"listening": 1' rlock status --json "$name"
  # rlock leaves the lock to the others for 90 ms, but Redisson may be slower on a busy machine.
  kill -STOP "${job_pids[rlock]}"
  rlock force-unlock --yes "$name"
  wait_until redisson_replies b
  redisson b unlock "$name"
  kill -CONT "${job_pids[rlock]}"
  wait_until job_runs rlock
  run -0 rlock status --json "$name"
  [[ $output != *listening* ]]
  end_job rlock
}

@test "fencing tokens grow over grants by either side" {
  needs_redisson 3.19.0
  first=$(value a fenced-lock "$name")
  redisson a unlock "$name"
  running_job rlock
  second=$(<"$started")
  [[ $(value a token "$name") == "$second" ]]
  # RFencedLock counts in the key, and would start again at 1 without it.
  [[ $(redis r pttl "redisson_lock_token:{$name}") == -1 ]]
  end_job rlock
  third=$(value a fenced-lock "$name")
  redisson a unlock "$name"
  ((first < second && second < third))
  rlock run "$name" -- sh -c '[ "$RLOCK_TOKEN" -gt "$1" ]' sh "$third"
}

@test "a name mapper that adds a prefix: the whole key is rlock's name, also of fencing tokens, the history and the fair queue" {
  needs_redisson 3.52.0 'the queue has the name without the prefix'
  use_kind mapped
  redisson a mapped-lock "$theirs"
  run -1 rlock status --is-held "$theirs"
  rlock force-unlock --yes "$name"
  redisson_throws a mapped-unlock "$theirs"
  owner=$(rlock acquire "$name" --lease 1m)
  redisson b mapped-force-unlock "$theirs"
  run -76 rlock release "$name" --owner "$owner"

  first=$(value a mapped-fenced-lock "$theirs")
  redisson a mapped-unlock "$theirs"
  rlock run --history "$name" -- sh -c '[ "$RLOCK_TOKEN" -gt "$1" ] && echo "$RLOCK_TOKEN" >"$2"' sh "$first" "$started"
  [[ $(redis r get "redisson_lock_token:{$name}") == "$(<"$started")" ]]
  [[ $(redis r xlen "rlock:history:{$name}") == 1 ]]

  running_job rlock
  redisson_waits a mapped-fair-lock "$theirs"
  run -0 rlock status "$name"
  assert_says "$(redis r lindex "redisson_lock_queue:{$name}" 0)  (Redisson's fair queue)"
  end_job rlock
  wait_until redisson_replies a
  redisson a mapped-fair-unlock "$theirs"
}

@test "Redisson does not starve behind rlock's queue" {
  turns lock '' '' '' '' '' '' '' ''
  wait_until lock_free
  use_kind readwrite
  turns write-lock -x -x -x -x -x -x -x -x
  turns read-lock -x -x -x -x -x -x -x -x
  turns write-lock -x -s -x -s -s -x -s -x
  use_kind permit
  turns permit-lock '' '' '' '' '' '' '' '' '' ''
}

# A name has the kind of whoever holds it.
@test "a client for another kind of lock does not share the name" {
  for kind in plain write permit; do
    use_kind "$kind"
    redisson j "${prefix}lock" "$name"
    [[ $kind == plain ]] || run -76 rlock run -n "$name" -- true
    [[ $kind == write ]] || run -76 rlock run -n -s "$name" -- true
    [[ $kind == permit ]] || run -76 rlock run -n --slots 2 "$name" -- true
    [[ $kind == permit ]] || run -76 rlock run -n --slots 2 --java-semaphore "$name" -- true
    redisson j "${prefix}unlock" "$name"
  done
}
