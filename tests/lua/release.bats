#!/usr/bin/env bats
# lua/11_release.lua: each outcome that its head names, and what holds for all of them.

load ../lib/common
load ../lib/fault_scripts

setup_file() { start_script_server; }
setup() { fresh_lock; }
teardown() { assert_mortal; }
teardown_file() { redis_stop srv; }

@test "the last hold frees the lock and tells the waiters" {
  redis srv subscribe "$channel" >"$BATS_TEST_TMPDIR/heard" 3>&- &
  local listener=$!
  wait_until grep -q subscribe "$BATS_TEST_TMPDIR/heard"
  acquire owner-1 30000 hold-1 ''
  run -0 --keep-empty-lines release owner-1 hold-1
  [[ ${lines[0]} == released && ${lines[1]} == 0 && -z ${lines[2]} ]]
  [[ $(redis srv --scan) == "$token_key" ]]
  wait_until grep -q message "$BATS_TEST_TMPDIR/heard"
  kill "$listener"
  [[ $(tail -n 3 "$BATS_TEST_TMPDIR/heard") == *$'message\n'"$channel"$'\n0' ]]
}

@test "the release of an inner hold leaves the outer one with its TTL, and tells nobody" {
  acquire owner-1 30000 hold-1 ''
  acquire owner-2 30000 hold-2 owner-1
  run -0 release owner-1 hold-2
  [[ ${lines[0]} == released && ${lines[1]} == 1 ]]
  [[ $(redis srv hgetall "$lock") == $'owner-1:0\n1' ]]
  assert_bounded "$lock"
  [[ $(count_calls publish) == 0 ]]
  run -0 release owner-1 hold-1
  [[ ${lines[1]} == 0 && $(count_calls publish) == 1 ]]
}

@test "the outer hold can be released before the inner one" {
  acquire owner-1 30000 hold-1 ''
  acquire owner-2 30000 hold-2 owner-1
  run -0 release owner-1 hold-1
  [[ ${lines[1]} == 1 ]]
  run -0 release owner-1 hold-2
  [[ ${lines[1]} == 0 && $(redis srv exists "$lock") == 0 ]]
}

@test "a lock that nobody holds is reported free" {
  run -0 release owner-1 hold-1
  [[ ${lines[0]} == free && $(count_calls publish) == 0 ]]
}

@test "another owner's lock is reported and left alone" {
  acquire owner-1 30000 hold-1 ''
  run -0 release owner-2 hold-1
  [[ ${lines[0]} == other-owner && $(count_calls publish) == 0 ]]
  [[ $(redis srv hgetall "$lock") == $'owner-1:0\n1' && $(field owner) == owner-1:0 ]]
}

@test "a read-write lock with another owner is left alone" {
  redis srv hset "$lock" mode read java:1 1
  redis srv pexpire "$lock" 30000
  run -0 release owner-1 hold-1
  [[ $output == $'other-kind\nread-write lock' && $(redis srv hlen "$lock") == 2 ]]
}

@test "a key of another type is another kind, and nothing is changed" {
  redis srv set "$lock" text px 60000
  run -0 release owner-1 hold-1
  [[ ${lines[0]} == other-kind && ${lines[1]} == string ]]
  [[ $(redis srv get "$lock") == text ]]
}

@test "sent twice, a release gives back one hold" {
  acquire owner-1 30000 hold-1 ''
  acquire owner-2 30000 hold-2 owner-1
  release owner-1 hold-2
  run -0 release owner-1 hold-2
  [[ ${lines[0]} == released && ${lines[1]} == 1 ]]
  [[ $(redis srv hget "$lock" owner-1:0) == 1 ]]
}

@test "sent twice, the last release is published once and does not touch the next owner" {
  acquire owner-1 30000 hold-1 ''
  release owner-1 hold-1
  run -0 release owner-1 hold-1
  [[ ${lines[0]} == free ]]
  acquire owner-2 30000 hold-2 ''
  run -0 release owner-1 hold-1
  [[ ${lines[0]} == other-owner && $(redis srv hget "$lock" owner-2:0) == 1 ]]
  [[ $(count_calls publish) == 1 ]]
}

@test "sent twice as one call, the release has the same outcome twice, no matter who has the lock by then" {
  acquire owner-1 30000 hold-1 ''
  release owner-1 hold-1 0 call-1 60000
  run -0 --keep-empty-lines release owner-1 hold-1 0 call-1 60000
  [[ ${lines[0]} == released && ${lines[1]} == 0 && -z ${lines[2]} ]]
  acquire owner-2 30000 hold-2 ''
  run -0 release owner-1 hold-1 0 call-1 60000
  [[ ${lines[0]} == released && $(redis srv hget "$lock" owner-2:0) == 1 ]]
  [[ $(count_calls publish) == 1 ]]
  # Another call is a different request.
  run -0 release owner-1 hold-1 0 call-2 60000
  [[ ${lines[0]} == other-owner ]]
  local ttl
  ttl=$(redis srv pttl "${hold_keys}call-1:released")
  ((ttl > 30000 && ttl <= 60000))
}

@test "sent twice as one call, a kept lock is reported as kept twice, even after it has expired" {
  acquire owner-1 30000 hold-1 ''
  release owner-1 hold-1 20000 call-1 60000
  run -0 release owner-1 hold-1 20000 call-1 60000
  [[ ${lines[0]} == kept ]]
  redis srv del "$lock" "$holder"
  run -0 release owner-1 hold-1 20000 call-1 60000
  [[ ${lines[0]} == kept ]]
}

@test "a lock that was lost before is not released, no matter how often the release is sent" {
  acquire owner-1 30000 hold-1 ''
  local token
  token=$(redis srv get "$token_key")
  redis srv del "$lock"
  local i
  for i in 1 2; do
    run -0 release owner-1 hold-1 0 call-1 60000
    [[ ${lines[0]} == free && ${lines[1]} == "$token" ]]
  done
  redis srv set "$token_key" not-a-token
  redis srv lpush "$token_key-list" x
  run -0 release owner-1 hold-1 0 call-1 60000
  [[ ${lines[0]} == free && ${lines[1]} == not-a-token ]]
  redis srv rename "$token_key-list" "$token_key"
  redis srv pexpire "$token_key" 1000
  run -0 --keep-empty-lines release owner-1 hold-1 0 call-1 60000
  [[ ${lines[0]} == free && -z ${lines[1]} ]]
}

@test "a release counts even if it cannot be remembered" {
  acquire owner-1 30000 hold-1 ''
  as_weak_user set
  run -0 release owner-1 hold-1 0 call-1 60000
  [[ ${lines[0]} == released && $(redis srv exists "$lock") == 0 ]]
  as_full_user
  acquire owner-2 30000 hold-2 ''
  fill_memory
  run -0 release owner-2 hold-2 0 call-2 60000
  [[ ${lines[0]} == released && $(redis srv exists "$lock") == 0 ]]
  free_memory
}

@test "without the description, only the hold that came with the owner id frees the lock" {
  acquire owner-1 30000 owner-1 ''
  redis srv del "$holder"
  run -0 release owner-1 another-hold
  [[ ${lines[0]} == released && ${lines[1]} == 1 && $(redis srv hget "$lock" owner-1:0) == 1 ]]
  run -0 release owner-1 owner-1
  [[ ${lines[0]} == released && ${lines[1]} == 0 && $(redis srv exists "$lock") == 0 ]]
}

@test "sent twice as one call, an inner hold is given back once, with and without the description" {
  acquire owner-1 30000 owner-1 ''
  redis srv del "$holder"
  acquire owner-2 30000 hold-2 owner-1
  redis srv del "$holder"
  local i
  for i in 1 2; do
    run -0 release owner-1 hold-2 0 call-1 60000
    [[ ${lines[0]} == released && ${lines[1]} == 1 && $(redis srv hget "$lock" owner-1:0) == 1 ]]
  done
  release owner-1 owner-1
  run -0 release owner-1 hold-2 0 call-1 60000
  [[ ${lines[0]} == released && ${lines[1]} == 0 ]]
}

@test "a lock granted by Redisson is released, and another owner's description stays" {
  redis srv hset "$lock" java:1 2
  redis srv pexpire "$lock" 30000
  redis srv hset "$holder" owner owner-1:0
  redis srv pexpire "$holder" 30000
  run -0 release java:1 java
  [[ ${lines[1]} == 1 ]]
  assert_bounded "$lock"
  run -0 release java:1 java
  [[ ${lines[1]} == 0 && $(redis srv exists "$lock") == 0 ]]
  [[ $(field owner) == owner-1:0 ]]
}

@test "release works on a server that is out of memory, for inner holds, too" {
  acquire owner-1 30000 hold-1 ''
  acquire owner-2 30000 hold-2 owner-1
  fill_memory
  run -0 release owner-1 hold-2
  [[ ${lines[0]} == released && ${lines[1]} == 1 ]]
  run -0 release owner-1 hold-1
  [[ ${lines[0]} == released && ${lines[1]} == 0 && $(redis srv exists "$lock") == 0 ]]
}

@test "an inner hold of a lock granted by Redisson is released on a server that is out of memory" {
  redis srv hset "$lock" java:1 2
  redis srv pexpire "$lock" 30000
  fill_memory
  run -0 release java:1 java
  [[ ${lines[0]} == released && ${lines[1]} == 1 ]]
}

@test "a user without the right to publish releases anyway, and the reply says why nobody was told" {
  acquire owner-1 30000 hold-1 ''
  as_weak_user publish
  run -0 release owner-1 hold-1
  [[ ${lines[0]} == released && ${lines[1]} == 0 ]] && lacks_a_right "${lines[2]}"
  [[ $(redis srv --scan) == "$token_key" ]]
}

@test "a user without the right to the channel releases anyway, and the reply says why nobody was told" {
  acquire owner-1 30000 hold-1 ''
  as_weak_user @dangerous
  redis srv acl setuser weak resetchannels
  run -0 release owner-1 hold-1
  [[ ${lines[0]} == released && ${lines[2]} == *channel* ]]
  [[ $(redis srv exists "$lock") == 0 ]]
}

@test "a user without the right to TIME releases what nobody waits for, but slots; otherwise everything stays" {
  local kind
  for kind in plain 'read_write write' 'string set'; do
    # shellcheck disable=SC2086 # two words
    use_lock "$lock" $kind
    acquire owner-1 30000 hold-1 ''
    as_weak_user time
    run -0 release owner-1 hold-1
    as_full_user
    [[ ${lines[0]} == released && $(redis srv exists "$lock") == 0 ]]
    acquire owner-1 30000 hold-1 ''
    enqueue waiter 30000 hold-2
    as_weak_user time
    run -1 release owner-1 hold-1
    as_full_user
    run -0 renew owner-1 30000
    [[ ${lines[0]} == renewed ]]
    redis srv flushall
  done
}

@test "a user without any one of the rights releases or gets an error, and the lock keeps a TTL" {
  local right
  for right in $SCRIPT_COMMANDS eval; do
    acquire owner-1 30000 hold-1 ''
    as_weak_user "$right"
    run release owner-1 hold-1
    as_full_user
    if ((status == 0)); then
      [[ ${lines[0]} == released && $(redis srv exists "$lock") == 0 ]]
    else
      [[ $status == 1 && -n $output && $(redis srv hget "$lock" owner-1:0) == 1 ]]
      assert_mortal
      redis srv del "$lock" "$holder"
    fi
  done
}

@test "a number of holds that is not a number counts as one" {
  local count
  for count in nan -nan text -1 0 0.5; do
    acquire owner-1 30000 hold-1 ''
    redis srv hset "$lock" owner-1:0 "$count"
    run -0 release owner-1 hold-1
    [[ ${lines[0]} == released && ${lines[1]} == 0 && $(redis srv exists "$lock" "$holder") == 0 ]]
  done
}

@test "keep: the last hold lets the lock expire, and tells nobody" {
  acquire owner-1 30000 hold-1 ''
  run -0 release owner-1 hold-1 20000
  [[ $output == $'kept\n20000' ]]
  local ttl
  ttl=$(redis srv pttl "$lock")
  ((ttl > 5000 && ttl <= 20000))
  [[ $(field owner) == owner-1:0 ]]
  assert_bounded "$holder"
  run -0 acquire owner-2 30000 hold-2 ''
  [[ ${lines[0]} == held ]]
}

@test "keep, sent twice: the time does not start again" {
  acquire owner-1 30000 hold-1 ''
  release owner-1 hold-1 20000
  run -0 release owner-1 hold-1 29000
  [[ ${lines[0]} == released ]]
  (($(redis srv pttl "$lock") <= 20000))
}

@test "keep: releasing an inner hold does not change the outer one" {
  acquire owner-1 30000 hold-1 ''
  acquire owner-9 30000 hold-2 owner-1
  run -0 release owner-1 hold-2 1000
  [[ ${lines[0]} == released && ${lines[1]} == 1 ]]
  (($(redis srv pttl "$lock") > 10000))
}

@test "without the right to see who listens, a lock with a waiter is released" {
  listen b
  acquire owner-1 30000 hold-1 ''
  enqueue b 30000 hb
  as_weak_user pubsub
  run -0 release owner-1 hold-1
  [[ ${lines[0]} == released && $(redis srv exists "$lock") == 0 ]]
  as_full_user
  end_listeners
}

@test "a lock that contains more than its owner is not handed over" {
  listen b
  acquire owner-1 30000 hold-1 ''
  enqueue b 30000 hb
  redis srv hset "$lock" java:1 1
  run -0 release owner-1 hold-1
  [[ ${lines[0]} == released && $(redis srv hkeys "$lock") == java:1 ]]
  heard_nothing b
  redis srv del "$lock"
  end_listeners
}
