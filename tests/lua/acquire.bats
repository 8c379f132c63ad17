#!/usr/bin/env bats
# lua/10_acquire.lua: each outcome that its head names, and what holds for all of them.

load ../lib/common
load ../lib/fault_scripts

setup_file() { start_script_server; }
setup() { fresh_lock; }
teardown() { assert_mortal; }
teardown_file() { redis_stop srv; }

@test "a free lock is granted to the new owner, with a lease" {
  run -0 acquire owner-1 5000 hold-1 ''
  [[ ${lines[0]} == granted && ${lines[1]} == owner-1 && ${lines[2]} =~ ^[0-9]{16}$ ]]
  [[ $(redis srv hgetall "$lock") == $'owner-1:0\n1' ]]
  local ttl
  ttl=$(redis srv pttl "$lock")
  ((ttl > 0 && ttl <= 5000))
}

@test "the holder is described, for as long as the lock is held" {
  run -0 acquire owner-1 5000 hold-1 '' host h pid 7
  [[ $(redis srv hmget "$holder" owner lease token host pid) == "owner-1:0"$'\n5000\n'"${lines[2]}"$'\nh\n7' ]]
  [[ $(redis srv hget "$holder" hold:hold-1) == 1 ]]
  [[ $(field since) =~ ^[0-9]{13}$ ]]
  (($(redis srv pttl "$holder") <= 5000))
}

@test "the description of an earlier holder does not stay" {
  redis srv hset "$holder" reason old hold:other 1
  redis srv pexpire "$holder" 5000
  run -0 acquire owner-1 5000 hold-1 ''
  [[ -z $(field reason) && -z $(field hold:other) ]]
}

@test "a lock held by another owner is refused, with the remaining time" {
  acquire owner-1 5000 hold-1 ''
  run -0 acquire owner-2 9000 hold-2 ''
  [[ ${lines[0]} == held ]]
  ((lines[1] > 0 && lines[1] <= 5000))
  [[ $(redis srv hkeys "$lock") == owner-1:0 ]]
  [[ $(field owner) == owner-1:0 ]]
}

@test "a lock whose lease has ended is granted again" {
  acquire owner-1 5000 hold-1 ''
  redis srv pexpire "$lock" 1
  wait_until not redis_has "$lock"
  run -0 acquire owner-2 5000 hold-2 ''
  [[ ${lines[0]} == granted && $(field owner) == owner-2:0 ]]
}

redis_has() { [[ $(redis srv exists "$1") == 1 ]]; }

@test "a read-write lock is refused as another kind" {
  redis srv hset "$lock" mode read owner-1:0 1
  redis srv pexpire "$lock" 5000
  run -0 acquire owner-1 5000 hold-1 owner-1
  [[ $output == $'other-kind\nread-write lock' ]]
  [[ $(redis srv hgetall "$lock") == $'mode\nread\nowner-1:0\n1' ]]
}

@test "a key of another type is refused as another kind, and nothing is changed" {
  redis srv set "$lock" text px 60000
  run -0 acquire owner-1 5000 hold-1 ''
  [[ ${lines[0]} == other-kind && ${lines[1]} == string && ${lines[2]} -gt 59000 && ${lines[3]} == text ]]
  [[ $(redis srv get "$lock") == text && $(redis srv dbsize) == 1 ]]
}

@test "a token key of another type is refused, and nothing is changed" {
  redis srv rpush "$token_key" 1
  redis srv pexpire "$token_key" 60000
  run -0 acquire owner-1 5000 hold-1 ''
  [[ $output == no-token ]]
  [[ $(redis srv dbsize) == 1 ]]
}

@test "sent twice, the second reply equals the first and the hold counts once" {
  local first
  first=$(acquire owner-1 60000 hold-1 '' host h)
  redis srv pexpire "$lock" 20000
  run -0 acquire owner-1 60000 hold-1 '' host h
  [[ $output == "$first" ]]
  [[ $(redis srv hgetall "$lock") == $'owner-1:0\n1' ]]
  [[ $(redis srv hkeys "$holder" | grep -c ^hold:) == 1 ]]
  (($(redis srv pttl "$lock") > 20000))
}

@test "sent again after the holder key was lost, it counts once" {
  acquire owner-1 5000 hold-1 ''
  redis srv del "$holder"
  run -0 acquire owner-1 5000 hold-1 ''
  [[ ${lines[0]} == granted && $(redis srv hget "$lock" owner-1:0) == 1 ]]
}

@test "the holder's heir gets a second hold" {
  local token
  token=$(acquire owner-1 5000 hold-1 '' | tail -n 1)
  run -0 acquire owner-2 5000 hold-2 owner-1
  [[ $output == $'granted\nowner-1\n'"$token" ]]
  [[ $(redis srv hgetall "$lock") == $'owner-1:0\n2' ]]
}

@test "an heir's request that is sent twice counts once" {
  acquire owner-1 5000 hold-1 ''
  acquire owner-2 5000 hold-2 owner-1
  run -0 acquire owner-2 5000 hold-2 owner-1
  [[ ${lines[0]} == granted && $(redis srv hget "$lock" owner-1:0) == 2 ]]
}

@test "an heir never shortens the granted lease" {
  acquire owner-1 60000 hold-1 ''
  acquire owner-2 1000 hold-2 owner-1
  (($(redis srv pttl "$lock") > 30000))
  (($(redis srv pttl "$holder") > 30000))
  [[ $(field lease) == 60000 ]]
}

@test "an heir can extend the lease" {
  acquire owner-1 20000 hold-1 ''
  acquire owner-2 60000 hold-2 owner-1
  (($(redis srv pttl "$lock") > 30000))
  [[ $(field lease) == 60000 ]]
}

@test "an heir whose ancestor lost the lock is an ordinary owner" {
  run -0 acquire owner-2 5000 hold-2 owner-1
  [[ ${lines[0]} == granted && ${lines[1]} == owner-2 ]]
  run -0 acquire owner-3 5000 hold-3 owner-1
  [[ ${lines[0]} == held ]]
}

@test "two heirs of a Redisson holder have three holds in all, and both release theirs" {
  redis srv hset "$lock" java:1 1
  redis srv pexpire "$lock" 30000
  acquire owner-2 5000 hold-2 java:1
  acquire owner-3 5000 hold-3 java:1
  [[ $(redis srv hget "$lock" java:1) == 3 ]]
  release java:1 hold-2
  release java:1 hold-3
  [[ $(redis srv hget "$lock" java:1) == 1 ]]
  assert_bounded "$lock"
}

# under HOLD: uses what owner-1 has, as `rlock run --owner` does.
under() { script acquire owner=owner-9:0 lease=9000 hold="$1" heir=owner-1:0 sole=true; }

@test "under an owner that does not hold it, nothing is granted; with one hold, one more; with two: not-held, in-use" {
  run -0 under hold-9
  [[ ${lines[0]} == not-held && $(redis srv exists "$lock") == 0 ]]
  run -0 acquire owner-1 5000 hold-1 ''
  local token=${lines[2]}
  run -0 under hold-9
  [[ ${lines[0]} == granted && ${lines[1]} == owner-1 && ${lines[2]} == "$token" ]]
  [[ $(redis srv hvals "$lock") == 2 ]]
  run -0 under hold-9 # sent again
  [[ ${lines[0]} == granted && $(redis srv hvals "$lock") == 2 ]]
  run -0 under hold-10
  [[ ${lines[0]} == in-use && $(redis srv hvals "$lock") == 2 ]]
  release owner-1 hold-9
  run -0 under hold-10
  [[ ${lines[0]} == granted && $(redis srv hvals "$lock") == 2 ]]
}
