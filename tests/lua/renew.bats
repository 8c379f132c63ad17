#!/usr/bin/env bats
# lua/08_renew.lua: each outcome that its head names, and what holds for all of them.

load ../lib/common
load ../lib/fault_scripts

setup_file() { start_script_server; }
setup() { fresh_lock; }
teardown() { assert_mortal; }
teardown_file() { redis_stop srv; }

@test "the owner's lease is extended, and the reply has the time that was left" {
  acquire owner-1 30000 hold-1 ''
  redis srv pexpire "$lock" 9000
  run -0 renew owner-1 30000
  [[ ${lines[0]} == renewed ]]
  ((lines[1] > 0 && lines[1] <= 9000))
  (($(redis srv pttl "$lock") > 10000))
  (($(redis srv pttl "$holder") > 10000))
}

@test "a lease of 0 means the length of the granted one" {
  acquire owner-1 30000 hold-1 ''
  redis srv pexpire "$lock" 9000
  run -0 renew owner-1 0
  [[ ${lines[0]} == renewed ]]
  local ttl
  ttl=$(redis srv pttl "$lock")
  ((ttl > 10000 && ttl <= 30000))
}

@test "a lock that nobody holds is reported free, and not created" {
  run -0 renew owner-1 30000
  [[ $output == free && $(redis srv dbsize) == 0 ]]
}

@test "another owner's lock is reported and keeps its TTL" {
  acquire owner-1 5000 hold-1 ''
  run -0 renew owner-2 60000
  [[ $output == other-owner ]]
  (($(redis srv pttl "$lock") <= 5000))
  (($(redis srv pttl "$holder") <= 5000))
}

@test "a lease of 0 is refused for a lock granted by Redisson" {
  redis srv hset "$lock" java:1 1
  redis srv pexpire "$lock" 9000
  run -0 renew java:1 0
  [[ $output == lease-unknown ]]
  (($(redis srv pttl "$lock") <= 9000))
}

@test "a lock granted by Redisson is renewed for a given time, and no other holder's key is touched" {
  redis srv hset "$lock" java:1 1
  redis srv pexpire "$lock" 9000
  redis srv hset "$holder" owner owner-1:0 lease 5000
  redis srv pexpire "$holder" 5000
  run -0 renew java:1 30000
  [[ ${lines[0]} == renewed ]]
  (($(redis srv pttl "$lock") > 10000))
  (($(redis srv pttl "$holder") <= 5000))
  [[ $(field lease) == 5000 ]]
  redis srv persist "$holder"
  renew java:1 30000
  [[ $(field lease) == 5000 ]]
  redis srv del "$holder"
}

@test "a key of another type is nobody's lock" {
  redis srv set "$lock" text px 60000
  run -0 renew owner-1 30000
  [[ $output == other-owner ]] # inspect says the rest
}

@test "sent twice, the lease starts twice" {
  acquire owner-1 30000 hold-1 ''
  renew owner-1 30000
  run -0 renew owner-1 30000
  [[ ${lines[0]} == renewed && $(redis srv hget "$lock" owner-1:0) == 1 ]]
}

@test "a lease is never shortened" {
  acquire owner-1 60000 hold-1 ''
  run -0 renew owner-1 1000
  (($(redis srv pttl "$lock") > 30000))
  (($(redis srv pttl "$holder") > 30000))
}

@test "a longer lease is remembered" {
  acquire owner-1 1000 hold-1 ''
  renew owner-1 60000
  [[ $(field lease) == 60000 ]]
  redis srv pexpire "$lock" 9000
  renew owner-1 0
  (($(redis srv pttl "$lock") > 30000))
}

@test "a job that renews what it was granted extends both keys, and shortens nothing" {
  acquire owner-1 30000 hold-1 ''
  redis srv pexpire "$lock" 9000
  redis srv pexpire "$holder" 9000
  run -0 renew owner-1 30000 granted
  [[ ${lines[0]} == renewed && ${lines[2]} == 0 ]]
  ((lines[1] > 0 && lines[1] <= 9000))
  (($(redis srv pttl "$lock") > 10000))
  (($(redis srv pttl "$holder") > 10000))
  renew owner-1 60000
  run -0 renew owner-1 30000 granted
  (($(redis srv pttl "$lock") > 40000))
  (($(redis srv pttl "$holder") > 40000))
  run -0 renew owner-2 30000 granted
  [[ $output == other-owner ]]
}

@test "a job that renews what it was granted finds a dead waiter, and updates the time in the history" {
  acquire owner-1 9000 hold-1 '' history 'plain lock'
  local due
  due=$(redis srv zscore "${hold_keys}due" owner-1:0)
  run -0 renew owner-1 30000 granted
  [[ ${lines[2]} == 0 ]]
  (($(redis srv zscore "${hold_keys}due" owner-1:0) > due))
  redis srv zadd "$queue" 1 owner-2:0 && redis srv pexpire "$queue" 60000
  run -0 renew owner-1 30000 granted
  [[ ${lines[0]} == renewed && ${lines[2]} == 1 ]]
}

@test "a lease of 0 never ends a lock, no matter what is known of its lease" {
  acquire owner-1 30000 hold-1 ''
  redis srv persist "$lock"
  run -0 renew owner-1 0 granted
  [[ ${lines[0]} == renewed && ${lines[1]} == -1 ]]
  (($(redis srv pttl "$lock") > 10000 && $(redis srv pttl "$holder") > 10000))
}

@test "a lock that never expired gets a lease" {
  redis srv hset "$lock" owner-1:0 1
  run -0 renew owner-1 30000
  [[ $output == $'renewed\n-1\n0' ]]
  assert_bounded "$lock"
}

@test "renewal works on a server that is out of memory, for a longer lease, too" {
  acquire owner-1 9000 hold-1 ''
  fill_memory
  run -0 renew owner-1 9000
  [[ ${lines[0]} == renewed ]]
  run -0 renew owner-1 60000
  [[ ${lines[0]} == renewed && $(field lease) == 60000 ]]
}

@test "a user without any one of the rights renews or gets an error, and the lock keeps a TTL" {
  local right
  acquire owner-1 30000 hold-1 ''
  for right in $SCRIPT_COMMANDS eval; do
    as_weak_user "$right"
    run renew owner-1 60000
    [[ ${lines[0]} == renewed || $status == 1 && -n $output ]]
    as_full_user
    assert_mortal
    [[ $(redis srv hgetall "$lock") == $'owner-1:0\n1' ]]
  done
}
