#!/usr/bin/env bats
# lua/12_inspect.lua: each outcome that its head names, and what holds for all of them.

load ../lib/common
load ../lib/fault_scripts

setup_file() { start_script_server; }
setup() { fresh_lock; }
teardown() { assert_mortal; }
teardown_file() { redis_stop srv; }

@test "the lock is taken from the given owner, and the waiters are told" {
  acquire owner-1 30000 hold-1 ''
  run -0 force_unlock owner-1
  [[ ${lines[0]} == released && ${lines[1]} == 0 ]]
  [[ $(redis srv --scan | grep -v ':owner-1:0:taken$') == "$token_key" && $(count_calls publish) == 1 ]]
  [[ $(redis srv --scan) == *:owner-1:0:taken* ]] # for the owner
}

@test "all holds of the owner are taken, if the newest one was shown" {
  acquire owner-1 30000 hold-1 ''
  acquire owner-2 30000 hold-2 owner-1
  run -0 force_unlock owner-1 '1 hold-1'
  [[ $output == changed && $(redis srv hget "$lock" owner-1:0) == 2 ]]
  run -0 force_unlock owner-1 '1 hold-2'
  [[ ${lines[0]} == released && $(redis srv exists "$lock") == 0 ]]
}

@test "a lock that nobody holds is reported free" {
  run -0 force_unlock owner-1
  [[ $output == free && $(count_calls publish) == 0 ]]
}

@test "a lock that another owner holds by now is left alone" {
  acquire owner-2 30000 hold-2 ''
  run -0 force_unlock owner-1
  [[ $output == other-owner && $(redis srv hget "$lock" owner-2:0) == 1 && $(field owner) == owner-2:0 ]]
}

@test "sent twice, the second call leaves the next owner alone" {
  acquire owner-1 30000 hold-1 ''
  force_unlock owner-1
  run -0 force_unlock owner-1
  [[ $output == free ]]
  acquire owner-2 30000 hold-2 ''
  run -0 force_unlock owner-1
  [[ $output == other-owner && $(count_calls publish) == 1 ]]
}

@test "a read-write lock is refused as another kind" {
  redis srv hset "$lock" mode read owner-1:0 1
  redis srv pexpire "$lock" 30000
  run -0 force_unlock owner-1
  [[ $output == $'other-kind\nread-write lock' && $(redis srv hlen "$lock") == 2 ]]
}

@test "a key of another type is another kind, and nothing is changed" {
  redis srv set "$lock" text px 60000
  run -0 force_unlock owner-1
  [[ ${lines[0]} == other-kind && ${lines[1]} == string ]]
  [[ $(redis srv get "$lock") == text ]]
}

@test "force_unlock works on a server that is out of memory" {
  acquire owner-1 30000 hold-1 ''
  fill_memory
  run -0 force_unlock owner-1
  [[ ${lines[0]} == released && $(redis srv exists "$lock") == 0 ]]
}

@test "a user without the right to publish takes the lock anyway, and the reply says why nobody was told" {
  acquire owner-1 30000 hold-1 ''
  as_weak_user publish
  run -0 force_unlock owner-1
  [[ ${lines[0]} == released ]] && lacks_a_right "${lines[2]}"
  [[ $(redis srv exists "$lock") == 0 ]]
}

@test "a user without any one of the rights takes the lock or gets an error, and changes nothing then" {
  local right
  for right in $SCRIPT_COMMANDS eval; do
    acquire owner-1 30000 hold-1 ''
    as_weak_user "$right"
    run force_unlock owner-1
    as_full_user
    if ((status == 0)); then
      [[ ${lines[0]} == released && $(redis srv exists "$lock") == 0 ]]
    else
      [[ $status == 1 && -n $output && $(redis srv hget "$lock" owner-1:0) == 1 && $(field owner) == owner-1:0 ]]
      redis srv del "$lock" "$holder"
    fi
  done
}
