#!/usr/bin/env bats
# lua/12_inspect.lua: what its reply says, and that it changes nothing.

load ../lib/common
load ../lib/fault_scripts

setup_file() { start_script_server; }
setup() { fresh_lock; }
teardown_file() { redis_stop srv; }

# The reply is a flat list here: lock, ttl, now, token, slots, number, owner, mode, holds, left, description ….
inspected() {
  changes_before=$(changes)
  run -0 --keep-empty-lines inspect
  [[ $(changes) == "$changes_before" ]]
}
changes() { redis srv info persistence | grep '^rdb_changes_since_last_save'; }

# description FIELD: the line after it.
description() { printf '%s\n' "${lines[@]:6}" | grep -x -A 1 -- "$1" | tail -n 1; }

@test "a free lock has no holder, and a TTL of -2" {
  inspected
  [[ ${lines[0]} == lock && ${lines[1]} == -2 && -z ${lines[3]} && ${lines[5]} == 0 ]]
}

@test "the reply has the server's clock in milliseconds" {
  inspected
  local now
  now=$(redis srv time | head -n 1)
  [[ ${lines[2]} =~ ^[0-9]{13}$ ]]
  ((lines[2] / 1000 <= now && lines[2] / 1000 >= now - 5))
}

@test "a held lock is shown with its owner, TTL, token and description" {
  local token
  token=$(acquire owner-1 30000 hold-1 '' host h pid 7 user u command 'make all' reason r | tail -n 1)
  inspected
  [[ ${lines[0]} == lock && ${lines[3]} == "$token" && ${lines[5]} == 1 ]]
  ((lines[1] > 0 && lines[1] <= 30000))
  [[ ${lines[6]} == owner-1 && ${lines[8]} == 1 ]]
  [[ $(description owner) == owner-1 && $(description command) == 'make all' && $(description pid) == 7 ]]
  [[ $(description token) == "$token" && $(description lease) == 30000 && $(description reason) == r ]]
}

@test "a key that lacks only the TTL of a lock is not a lock" {
  redis srv hset "$lock" java:1 1
  inspected
  [[ "${lines[*]:0:4}" == 'other-kind hash -1 timeless' ]]
}

@test "absent values of the description are empty" {
  redis srv hset "$lock" java:1 1
  redis srv pexpire "$lock" 60000
  inspected
  [[ -z $(description host) && -z $(description owner) ]]
}

@test "a hash with many fields is not a lock, and its fields are not listed" {
  local i
  for i in 1 2 3 4 5 6 7 8 9; do redis srv hset "$lock" "f:$i" 1; done
  redis srv pexpire "$lock" 60000
  inspected
  [[ ${lines[0]} == other-kind && ${lines[1]} == hash && ${lines[3]} == data && $output != *f:1* ]]
}

@test "a read-write lock is named as such" {
  redis srv hset "$lock" mode read a:1 1 b:2 1
  redis srv pexpire "$lock" 60000
  inspected
  [[ ${lines[0]} == other-kind && ${lines[1]} == 'read-write lock' ]]
}

@test "a string at the lock's key is named as such" {
  redis srv set "$lock" text
  for layout in plain read_write semaphore; do
    inspected
    [[ "${lines[*]:0:4}" == 'other-kind string -1 text' ]]
  done
}

@test "a token key or holder key of another type counts as absent" {
  redis srv rpush "$token_key" 1
  redis srv set "$holder" text
  inspected
  [[ -z ${lines[3]} && -z $(description owner) ]]
}

@test "the description of an earlier owner is shown as that owner's" {
  acquire owner-1 30000 hold-1 ''
  redis srv del "$lock"
  redis srv hset "$lock" java:1 1
  redis srv pexpire "$lock" 60000
  inspected
  [[ ${lines[6]} == java:1 && $(description owner) == owner-1 ]]
}

@test "a user without one of the necessary rights gets an error" {
  local right
  acquire owner-1 30000 hold-1 ''
  for right in type hlen hgetall hmget time pttl get eval; do
    as_weak_user "$right"
    run -1 inspect
    lacks_a_right "$output"
  done
}

@test "a user who may only read can inspect" {
  acquire owner-1 30000 hold-1 ''
  as_weak_user @write
  inspected
  [[ ${lines[0]} == lock ]]
}
