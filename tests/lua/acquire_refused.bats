#!/usr/bin/env bats
# lua/10_acquire.lua on a server without memory, and by users who lack rights: nothing half-made stays.

load ../lib/common
load ../lib/fault_scripts

setup_file() { start_script_server; }
setup() { fresh_lock; }
teardown() { assert_mortal; }
teardown_file() { redis_stop srv; }

@test "a server that is out of memory refuses a grant, and no key is left" {
  fill_memory
  run -1 acquire owner-1 5000 hold-1 ''
  assert_says OOM
  [[ $(redis srv dbsize) == 0 ]]
}

@test "a server that is out of memory refuses an heir, and the outer hold does not change" {
  acquire owner-1 30000 hold-1 ''
  fill_memory
  run acquire owner-2 5000 hold-2 owner-1
  if ((status == 0)); then # it found room after all: then it must count
    [[ $(redis srv hget "$lock" owner-1:0) == 2 && $(field hold:hold-2) == 1 ]]
  else
    assert_says OOM
    [[ $(redis srv hget "$lock" owner-1:0) == 1 && -z $(field hold:hold-2) ]]
  fi
  assert_bounded "$lock"
}

@test "a server that is out of memory answers a request that was granted before" {
  local first
  first=$(acquire owner-1 30000 hold-1 '')
  fill_memory
  run -0 acquire owner-1 30000 hold-1 ''
  [[ $output == "$first" ]]
}

@test "a user without any one of the rights gets the lock or leaves no key" {
  local right
  for right in $SCRIPT_COMMANDS eval; do
    redis srv flushall
    as_weak_user "$right"
    run acquire owner-1 5000 hold-1 ''
    as_full_user
    if ((status == 0)); then
      [[ ${lines[0]} == granted ]]
      assert_bounded "$lock"
    else
      [[ $status == 1 ]] && lacks_a_right "$output"
      [[ $(redis srv exists "$lock") == 0 ]] || {
        echo "without $right a lock was left"
        return 1
      }
    fi
    assert_mortal
  done
}

@test "an heir without any one of the rights gets a hold or does not change the outer one" {
  local right
  for right in $SCRIPT_COMMANDS eval; do
    redis srv flushall
    acquire owner-1 30000 hold-1 ''
    as_weak_user "$right"
    run acquire owner-2 5000 hold-2 owner-1
    as_full_user
    if ((status == 0)); then
      [[ $(redis srv hget "$lock" owner-1:0) == 2 ]]
    else
      [[ $status == 1 && $(redis srv hget "$lock" owner-1:0) == 1 ]]
    fi
    assert_mortal
  done
}

@test "a user without the right to set a TTL leaves no key forever, even if other rights are missing, too" {
  local rights
  for rights in '-pexpire -del' '-pexpire -hdel' '-pexpire -del -hdel' \
    '-pexpire -hdel -del (+pexpire|~rlock:holder:*|~rlock:hold:*)'; do
    redis srv flushall
    # A selector (Redis 7) is one word.
    local words=() word
    for word in $rights; do words+=("${word//|/ }"); done
    redis srv acl setuser weak reset on '>pw' '~*' '&*' +@all "${words[@]}" || continue
    script_user=(--user weak --pass pw --no-auth-warning)
    run -1 acquire owner-1 5000 hold-1 ''
    as_full_user
    wait_until eval '[[ $(redis srv exists "$lock" "$holder") == 0 ]]'
  done
}

@test "a user without the right to a companion key leaves nothing" {
  redis srv acl setuser weak reset on '>pw' "~$lock" '&*' +@all
  script_user=(--user weak --pass pw --no-auth-warning)
  run -1 acquire owner-1 5000 hold-1 ''
  as_full_user
  [[ $(redis srv dbsize) == 0 ]]
}

@test "a replica refuses a grant" {
  not_over cluster 'a cluster has no REPLICAOF'
  redis srv replicaof 127.0.0.1 1
  run acquire owner-1 5000 hold-1 ''
  redis srv replicaof no one
  assert_says READONLY
  [[ $status == 1 && $(redis srv dbsize) == 0 ]]
}

@test "a replica that may be written refuses a grant with the epoch guard, in the server's words, which src/redis knows" {
  not_over cluster 'a cluster has no REPLICAOF'
  redis srv config set replica-read-only no
  redis srv replicaof 127.0.0.1 1
  run script acquire owner=owner:1 lease=5000 hold=owner guard.lag=0
  redis srv replicaof no one
  redis srv config set replica-read-only yes
  assert_says "READONLY You can't write"
  [[ $status == 1 && $(redis srv exists "$lock") == 0 ]]
}

@test "a server that does not tell one life of its data from another grants nothing with the epoch guard" {
  not_over cluster 'a cluster has no epoch guard'
  # As other servers answer: always zeros, or nothing.
  local says
  for says in master_replid:0000 ''; do
    first_line="local real = redis
      local redis = {call = real.call, pcall = function(...)
        local reply = real.pcall(...)
        return type(reply) == 'string' and string.gsub(reply, 'master_replid:%x+', '$says') or reply
      end}" run -1 script acquire owner=owner-1:0 lease=5000 hold=hold-1 guard.lag=0
    assert_says 'INFO does not say master_replid'
    [[ $(redis srv dbsize) == 0 ]]
  done
}
