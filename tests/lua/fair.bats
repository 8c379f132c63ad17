#!/usr/bin/env bats
# The queue of Redisson's RFairLock beside rlock's, as lua/08_queue.lua sees it. Redisson itself: tests/interop.

load ../lib/common
load ../lib/fault_scripts

setup_file() { start_script_server; }
setup() {
  fresh_lock
  fair_queue="redisson_lock_queue:{$lock}"
  fair_times="redisson_lock_timeout:{$lock}"
}
teardown() {
  # Redisson's entries there never expire.
  redis srv del "$fair_queue" "$fair_times" >/dev/null
  assert_mortal
  end_listeners
}
teardown_file() { redis_stop srv; }

# fair_waiter ID [MS]: joins Redisson's queue, and counts as alive for this long.
fair_waiter() {
  redis srv rpush "$fair_queue" "$1"
  redis srv zadd "$fair_times" $(($(redis srv time | head -n 1) * 1000 + ${2:-300000})) "$1"
}
# hears_turns ID: listens for its turn.
hears_turns() {
  redis-cli -s "$srv_sock" "${sharded:+s}subscribe" "$channel:$1" >"turns-$1" 3>&- &
  listeners+=($!)
  wait_until grep -q subscribe "turns-$1"
}
is_called() { wait_until grep -qx 0 "turns-$1"; }
not_called() { ! grep -qE '^s?message' "turns-$1"; }
owner_of() { redis srv hkeys "$lock" | sed 's/:0$//'; }
fair_ids() { redis srv lrange "$fair_queue" 0 -1 | sed 's/:0$//' | xargs; }

@test "a release tells the first fair waiter, and no newcomer of rlock gets ahead of it" {
  acquire a 30000 ha ''
  fair_waiter F:1
  hears_turns F:1
  run -0 release a ha
  [[ ${lines[0]} == released && -z ${lines[2]} ]]
  is_called F:1
  run -0 in_others_turn acquire b 30000 hb ''
  redis srv pexpire "$waiters" 60000
  [[ ${lines[0]} == held && -z $(owner_of) ]] && ((lines[1] > 0 && lines[1] <= 90))
  # Its turn is over, and it has not taken the lock.
  redis srv hset "$waiters" open 1
  run -0 acquire b 30000 hb ''
  [[ ${lines[0]} == granted ]]
}

@test "the turn of other programs is over soon, and leaves nothing behind" {
  acquire a 30000 ha ''
  fair_waiter F:1
  hears_turns F:1
  release a ha
  over() { [[ $(redis srv exists "$waiters") == 0 ]]; }
  wait_until over
}

@test "the lease has ended: the fair waiter is told before a waiter of rlock gets the lock" {
  fair_waiter F:1
  hears_turns F:1
  run -0 acquire a 30000 ha ''
  [[ ${lines[0]} == held ]]
  is_called F:1
}

@test "a fair waiter that has timed out, or does not listen, is skipped" {
  fair_waiter F:1 -1
  fair_waiter F:2
  hears_turns F:1
  acquire a 30000 ha ''
  release a ha
  run -0 acquire b 30000 hb ''
  [[ ${lines[0]} == granted ]]
  not_called F:1
  # The first living one is told, if Redisson uses the same time as the server.
  hears_turns F:2
  release b hb
  is_called F:2
  not_called F:1
}

@test "rlock's waiters and a fair one take turns if rlock's are not in that queue" {
  listen b c
  acquire a 30000 ha ''
  enqueue b 30000 hb
  enqueue c 30000 hc
  fair_waiter F:1
  hears_turns F:1
  release a ha
  is_called F:1
  hears b free
  [[ -z $(owner_of) ]]
  redis srv hset "$lock" F:1 1
  redis srv pexpire "$lock" 30000
  redis srv del "$lock"
  redis srv hset "$waiters" open 1
  run -0 enqueue b 30000 hb
  [[ ${lines[0]} == granted ]]
  release b hb
  [[ $(owner_of) == c ]] # this one was ours
  release c hc
  [[ -z $(owner_of) ]]   # and this one is theirs
}

@test "rlock's first waiter joins that queue, and leaves it when it gets the lock" {
  listen b c
  acquire a 30000 ha ''
  run -0 enqueue b 30000 hb
  [[ ${lines[0]} == held && $(redis srv exists "$fair_queue") == 0 ]]
  fair_waiter F:1
  hears_turns F:1
  run -0 enqueue b 30000 hb
  [[ ${lines[-1]} == 1 && $(fair_ids) == 'F:1 b' ]]
  run -0 enqueue c 30000 hc
  [[ ${lines[0]} == held && $(fair_ids) == 'F:1 b' ]]
  # That queue decides, turn after turn.
  redis srv hset "$waiters" open 1
  release a ha
  is_called F:1
  [[ -z $(owner_of) && $(fair_ids) == 'F:1 b' ]]
  redis srv lpop "$fair_queue"
  redis srv zrem "$fair_times" F:1
  redis srv hset "$waiters" open 1
  run -0 enqueue b 30000 hb
  [[ ${lines[0]} == granted && -z $(fair_ids) ]]
}

@test "a fair newcomer finds rlock's first waiter ahead; alone in that queue, that waiter does not stay forever" {
  listen b
  redis srv hset "$lock" F:9 1 # a fair holder looks like any other of Redisson
  redis srv pexpire "$lock" 30000
  run -0 enqueue b 30000 hb
  [[ ${lines[-1]} == 1 && $(fair_ids) == b ]]
  assert_bounded "$fair_queue"
  assert_bounded "$fair_times"
  fair_waiter F:1
  enqueue b 30000 hb
  # F:1 must not be lost with rlock's waiter.
  [[ $(fair_ids) == 'b F:1' && $(redis srv pttl "$fair_queue") == -1 && $(redis srv pttl "$fair_times") == -1 ]]
  run -0 release b hb
  [[ $(fair_ids) == F:1 && $(redis srv zcard "$fair_times") == 1 ]]
}

@test "a waiter that nobody listens for leaves nothing there" {
  redis srv hset "$lock" J:1 1
  redis srv pexpire "$lock" 60000
  enqueue a 30000 ha
  # It finds a dead, and is itself found dead by the same call.
  run -0 enqueue b 30000 hb
  [[ ${lines[0]} == held && -z $(in_queue) ]]
  [[ $(redis srv exists "$fair_queue" "$fair_times") == 0 ]]
}

@test "when Redisson subtracts a time from all behind a grant, rlock's waiter still counts as alive" {
  listen b
  acquire a 30000 ha ''
  fair_waiter F:1 330000 # a lease of 30 s, and 300 s to wait
  enqueue b 30000 hb
  redis srv zincrby "$fair_times" -300000 b:0
  (($(redis srv zscore "$fair_times" b:0) > $(redis srv time | head -n 1) * 1000))
}

@test "keys of another type, or without a right to them, count as an empty queue" {
  listen b
  local what
  for what in "set $fair_queue text" "set $fair_times text" "rpush $fair_queue F:1"; do
    # shellcheck disable=SC2086 # words
    redis srv $what
    run -0 acquire a 30000 ha ''
    [[ ${lines[0]} == granted ]]
    run -0 enqueue b 30000 hb
    run -0 inspect
    run -0 release a ha
    [[ ${lines[0]} == released && $(owner_of) == b ]]
    redis srv del "$lock" "$queue" "$waiters" "$fair_queue" "$fair_times"
  done
  fair_waiter F:1
  hears_turns F:1
  for right in lrange rpush lrem persist; do
    as_weak_user "$right"
    run -0 enqueue b 30000 hb
    run -0 release b hb
    as_full_user
    redis srv del "$lock" "$queue" "$waiters"
    [[ $(fair_ids) != *b* ]] || [[ $right == lrem ]]
  done
  redis srv acl setuser weak reset on '>pw' "~$lock" "~$token_key" '~rlock:*' '&*' +@all
  script_user=(--user weak --pass pw --no-auth-warning)
  run -0 acquire a 30000 ha ''
  [[ ${lines[0]} == granted ]]
  run -0 release a ha
  [[ ${lines[0]} == released ]]
}

@test "inspect shows the fair waiters" {
  listen b
  acquire a 30000 ha ''
  fair_waiter F:1
  fair_waiter F:2
  fair_waiter F:3 -1
  enqueue b 30000 hb
  run -0 inspect
  [[ ${lines[-3]} == F:1 && ${lines[-2]} == F:2 && ${lines[-1]} == 0 ]] # and nobody listens for the release
}

@test "a fair waiter that joins rlock's waiter in that queue does not expire with the keys" {
  listen b
  redis srv hset "$lock" F:1 1
  redis srv pexpire "$lock" 30000
  run -0 enqueue b 30000 hb
  [[ $(fair_ids) == b ]]
  assert_bounded "$fair_queue"
  fair_waiter J:1
  redis srv del "$lock"
  run -0 enqueue b 30000 hb
  [[ ${lines[0]} == granted && $(fair_ids) == J:1 ]]
  [[ $(redis srv pttl "$fair_queue") == -1 && $(redis srv pttl "$fair_times") == -1 ]]
}

@test "a waiter that was overtaken in rlock's queue delays nobody in the fair queue" {
  listen b p
  redis srv hset "$lock" F:1 1
  redis srv pexpire "$lock" 30000
  enqueue b 30000 hb
  fair_waiter J:1
  hears_turns J:1
  enqueue p 30000 hp '' 5
  [[ $(in_queue | sed 's/:0//g') == 'p b' ]]
  redis srv del "$lock"
  run -0 enqueue p 30000 hp
  [[ ${lines[0]} == held ]]
  is_called J:1
}

@test "what only rlock's waiters have left in that queue expires, even if they were many" {
  listen a b
  redis srv hset "$lock" F:9 1
  redis srv pexpire "$lock" 60000
  enqueue a 30000 ha
  enqueue b 30000 hb '' 1
  [[ $(fair_ids) == 'a b' ]]
  assert_bounded "$fair_queue"
  assert_bounded "$fair_times"
  # With another waiter among them they stay.
  fair_waiter F:1
  enqueue b 30000 hb
  [[ $(redis srv pttl "$fair_queue") == -1 && $(redis srv pttl "$fair_times") == -1 ]]
  # A waiter whose time was over a minute ago is dead. Until then it may be alive by its own clock.
  redis srv zadd "$fair_times" $(($(redis srv time | head -n 1) * 1000 - 50000)) F:1
  enqueue b 30000 hb
  [[ $(fair_ids) == 'a b F:1' && $(redis srv pttl "$fair_queue") == -1 ]]
  redis srv zadd "$fair_times" $(($(redis srv time | head -n 1) * 1000 - 70000)) F:1
  enqueue b 30000 hb
  [[ $(fair_ids) == 'a b' ]]
  assert_bounded "$fair_queue"
  assert_bounded "$fair_times"
}

@test "no waiter joins that queue while a free lock is left to other programs" {
  listen a
  run -0 in_others_turn enqueue a 30000 ha
  [[ ${lines[0]} == held && $(redis srv exists "$fair_queue" "$fair_times") == 0 ]]
}

@test "there may be a living waiter behind a hundred dead ones, so the keys stay" {
  listen a
  redis srv hset "$lock" F:9 1
  redis srv pexpire "$lock" 60000
  redis srv eval "for i = 1, 100 do
    redis.call('rpush', KEYS[1], 'dead:' .. i)
    redis.call('zadd', KEYS[2], ARGV[1], 'dead:' .. i) end" 2 "$fair_queue" "$fair_times" \
    $(($(redis srv time | head -n 1) * 1000 - 100000))
  fair_waiter F:1
  enqueue a 30000 ha
  release a nothing
  [[ $(redis srv pttl "$fair_queue") == -1 && $(redis srv pttl "$fair_times") == -1 ]]
}
