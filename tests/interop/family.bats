# The rest of Redisson's family: locks that are not notified of a release, several names at a time, and objects that are
# no locks.

load ../lib/common
load interop

setup_file() { interop_setup_file; }
teardown_file() { interop_teardown_file; }

setup() {
  interop_setup
  name=kin-$BATS_TEST_NUMBER.
  channel="redisson_lock__channel:{$name}"
}
teardown() { interop_teardown; }

# Redisson has been refused the lock once more.
asks() { redis r info commandstats | sed -n 's/^cmdstat_pttl:calls=\([0-9]*\).*/\1/p'; }
has_asked() { (($(asks) > $1 + 3)); }

# they_exclude_each_other PREFIX: a Redisson lock that is a plain lock, each way.
they_exclude_each_other() {
  redisson a "$1lock" "$name"
  [[ $(redis r hgetall "$name") == "$(reply owner)"$'\n1' ]]
  run -75 rlock run -n "$name" -- true
  run -76 rlock release "$name" --owner 11111111-2222-3333-4444-555555555555:7
  run -0 rlock status "$name"
  assert_says "$(reply owner)  (not taken by rlock)"
  redisson a "$1unlock" "$name"

  start_job rlock
  wait_until job_runs rlock
  [[ $(value a "$1trylock" "$name" 0 30000) == false ]]
  not redisson a "$1unlock" "$name"
  [[ $(reply error) == IllegalMonitorStateException ]]
  rlock status --is-held "$name"
  end_job rlock
}

# who_dies_leaves_it PREFIX: a lease that ends, each way.
who_dies_leaves_it() {
  redisson a "$1lock-lease" "$name" 2000
  start_job rlock
  wait_until job_runs rlock
  not redisson a "$1unlock" "$name"
  redisson_send b "$1lock" "$name"
  crash_job rlock
  [[ $(redis r pttl "$name") -gt 0 ]]
  redis r pexpire "$name" 500
  # A waiter was told how long the lease was.
  [[ -n $1 && $1 != nonreentrant-* ]] || redis r publish "$channel" 0
  wait_until redisson_replies b
  redisson b "$1unlock" "$name"
  wait_until lock_free
}

@test "RSpinLock and rlock exclude each other, and the end of a lease frees the lock" {
  they_exclude_each_other spin-
  who_dies_leaves_it spin-
}

@test "RSpinLock finds a lock that rlock has released, and rlock looks without being notified" {
  local before
  start_job rlock
  wait_until job_runs rlock
  before=$(asks)
  redisson_send a spin-lock "$name"
  wait_until has_asked "$before"
  not redisson_replies a
  end_job rlock
  wait_until redisson_replies a

  start_job rlock
  wait_until waiters 1
  redisson a spin-unlock "$name"
  wait_until job_runs rlock
  redisson_send a spin-lock "$name"
  rlock force-unlock --yes --now "$name"
  wait_until redisson_replies a
  redisson a spin-force-unlock "$name"
  job_ends rlock 74
  wait_until lock_free
}

@test "RNonReentrantLock and rlock exclude each other, wake each other, and the end of a lease frees the lock" {
  needs_redisson 4.4.0
  they_exclude_each_other nonreentrant-
  who_dies_leaves_it nonreentrant-

  redisson a nonreentrant-lock "$name"
  not redisson a nonreentrant-lock "$name"
  [[ $(reply error) == IllegalMonitorStateException ]]
  [[ $(redis r hgetall "$name") == "$(reply owner)"$'\n1' ]]
  local at
  start_job rlock
  wait_until waiters 1
  at=$(now_ms)
  redisson a nonreentrant-unlock "$name"
  job_wakes rlock "$at"
  redisson_send a nonreentrant-lock "$name"
  wait_until waiters 1
  at=$(now_ms)
  end_job rlock
  redisson_wakes a "$at"
  redisson a nonreentrant-unlock "$name"
  wait_until lock_free
}

@test "RNonReentrantFairLock and rlock exclude and wake each other" {
  needs_redisson 4.4.0
  they_exclude_each_other nonreentrant-fair-
  local at
  start_job rlock
  wait_until job_runs rlock
  redisson_send a nonreentrant-fair-lock "$name"
  stands_there() { [[ $(redis r llen "redisson_lock_queue:{$name}") == 1 ]]; }
  wait_until stands_there
  at=$(now_ms)
  end_job rlock
  redisson_wakes a "$at"
  redisson a nonreentrant-fair-unlock "$name"
  wait_until lock_free
}

@test "RedissonMultiLock and a job with several names: all or none, and each wakes the other" {
  local other=other-$name at
  redisson a multi-lock "$other,$name"
  run -75 rlock run -n "$name" -- true
  run -75 rlock run -n "$other" a-third -- true
  start_job rlock "$other"
  channel="redisson_lock__channel:{$name}"
  wait_until waiters 1
  at=$(now_ms)
  redisson a multi-unlock "$other,$name"
  job_wakes rlock "$at"
  [[ $(redis r exists "$name" "$other") == 2 ]]

  # A free name of it is released while the other is not.
  [[ $(value a multi-trylock "free-$name,$name" 0 30000) == false ]]
  [[ $(redis r exists "free-$name") == 0 ]]
  redisson_send a multi-lock "$other,$name"
  channel="redisson_lock__channel:{$other}"
  wait_until waiters 1
  end_job rlock
  wait_until redisson_replies a
  redisson a multi-unlock "$other,$name"
  wait_until lock_free
}

@test "RedissonMultiLock of write locks, and a job with -x and the same names" {
  local other=other-$name
  redisson a multi-write-lock "$name,$other"
  run -75 rlock run -n -x "$name" -- true
  run -75 rlock run -n -s "$other" -- true
  start_job rlock -x "$other"
  wait_until jobs_wait 1
  not job_runs rlock
  redisson a multi-write-unlock "$name,$other"
  wait_until job_runs rlock
  [[ $(value a multi-write-trylock "$other,$name" 0 30000) == false ]]
  end_job rlock
  [[ $(value a multi-write-trylock "$other,$name" 0 30000) == true ]]
  redisson a multi-write-unlock "$other,$name"
  [[ $(redis r exists "$name" "$other") == 0 ]]
}

# A large hash has no order.
contents() {
  if [[ $(redis r type "$name") == hash ]]; then redis r hgetall "$name" | paste - - | sort; else redis r get "$name"; fi
}

# refused TEXT: every command that takes, frees or asks for the lock exits with 76 and TEXT, and the key stays
# unchanged.
refused() {
  local before command
  before=$(contents)
  for command in run 'run -n' 'run -s' 'run -x' 'run --slots 2' 'acquire --lease 5s' 'force-unlock --yes' \
    'run --protocol set' 'status --is-held'; do
    # `run --protocol set` needs a string that expires, and says so.
    [[ $command != *set || $(redis r type "$name") == hash ]] || continue
    # shellcheck disable=SC2046,SC2086 # words
    run -76 rlock $command "$name" $([[ $command != run* ]] || echo '-- touch ran')
    assert_says "$1"
  done
  run -0 rlock status "$name"
  assert_says "$1"
  [[ $(contents) == "$before" && ! -e ran ]]
}

@test "an RSemaphore is named, refused, and left as it is" {
  redisson a set-semaphore "$name" 2
  refused "Redisson's RSemaphore"
  [[ $(value a try-semaphore "$name") == true && $(redis r get "$name") == 1 ]]
  [[ $(value a try-semaphore "$name") == true && $(value a try-semaphore "$name") == false ]]
  refused "Redisson's RSemaphore"
  redis r del "$name"
}

@test "an RCountDownLatch is named, refused, and still counts" {
  redisson a set-latch "$name" 2
  refused "RCountDownLatch"
  [[ $(value a count-down "$name") == 1 && $(value a count-down "$name") == 0 ]]
  wait_until lock_free
}

@test "the lock of a group, getMultiLock(group, values), is named and refused" {
  needs_redisson 3.38.0
  redisson a group-lock "$name,one,two"
  refused "Redisson's RMultiLock of one group"
  redisson b group-lock "$name,three"
  refused "Redisson's RMultiLock of one group"
  redisson b group-unlock "$name,three"
  redisson a group-unlock "$name,one,two"
  wait_until lock_free
  rlock run "$name" -- true
}

# Redisson's script only looks for its own fields.
@test "the lock of a group may be taken beside a name that rlock holds; the release of each leaves the other's" {
  needs_redisson 3.38.0
  start_job rlock
  wait_until job_runs rlock
  redisson a group-lock "$name,one"
  end_job rlock
  refused "Redisson's RMultiLock of one group"
  redisson a group-unlock "$name,one"
  wait_until lock_free
}
