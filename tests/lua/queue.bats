#!/usr/bin/env bats
# lua/08_queue.lua: the waiters, their order, and which of them gets the lock next.

load ../lib/common
load ../lib/fault_scripts

setup_file() { start_script_server; }
setup() { fresh_lock; }
teardown() {
  assert_mortal
  end_listeners
}
teardown_file() { redis_stop srv; }

owner_of() { redis srv hkeys "$lock" | sed 's/:0$//'; }

@test "waiters queue in the order of their arrival, and are told how many are ahead" {
  listen b c d
  acquire a 30000 ha ''
  run -0 enqueue b 30000 hb
  [[ ${lines[0]} == held && ${lines[1]} -gt 10000 && ${lines[2]} == 0 && -n ${lines[3]} ]]
  run -0 enqueue c 30000 hc
  [[ ${lines[2]} == 1 ]]
  run -0 enqueue d 30000 hd
  [[ ${lines[2]} == 2 ]]
  [[ $(in_queue) == 'b c d' ]]
  assert_bounded "$queue"
  assert_bounded "$waiters"
}

@test "a waiter that asks again keeps its place" {
  listen b c
  acquire a 30000 ha ''
  enqueue b 30000 hb
  enqueue c 30000 hc
  run -0 enqueue b 30000 hb
  [[ ${lines[2]} == 0 && $(in_queue) == 'b c' ]]
  [[ $(redis srv hlen "$waiters") == 2 ]]
}

@test "a release gives the lock to the first waiter, for a short time until it takes it" {
  listen b c
  acquire a 30000 ha ''
  enqueue b 30000 hb
  enqueue c 30000 hc
  run -0 release a ha
  [[ ${lines[0]} == released && ${lines[1]} == 0 ]]
  hears b granted
  [[ $(owner_of) == b && $(in_queue) == c ]]
  (($(redis srv pttl "$lock") <= 5000 && $(redis srv pttl "$holder") <= 5000))
  [[ $(redis srv hmget "$holder" owner lease host user) == $'b:0\n30000\nh\nu' ]]
  run -0 enqueue b 30000 hb
  [[ ${lines[0]} == granted && ${lines[1]} == b && ${lines[2]} == $(field token) ]]
  (($(redis srv pttl "$lock") > 10000))
  [[ $(in_queue) == c ]]
  # The next one is told that it is the first now, and how long it can wait.
  wait_until grep -q '^first [0-9]*$' heard-c
}

@test "a shorter lease limits that time, too" {
  listen b
  acquire a 30000 ha ''
  enqueue b 4000 hb
  release a ha
  (($(redis srv pttl "$lock") <= 4000))
}

@test "the token grows with each grant" {
  local last=0 token id
  listen b c
  acquire a 30000 ha ''
  enqueue b 30000 hb
  enqueue c 30000 hc
  for id in a b c; do
    token=$(field token)
    ((token > last))
    last=$token
    release "$id" "h$id"
  done
}

@test "a waiter whose connection is gone is skipped" {
  listen b c d
  acquire a 30000 ha ''
  enqueue b 30000 hb
  enqueue c 30000 hc
  enqueue d 30000 hd
  leaves_the_line b
  leaves_the_line c
  release a ha
  hears d granted
  [[ $(owner_of) == d && -z $(in_queue) ]]
  [[ $(redis srv exists "$waiters") == 0 ]]
}

@test "a waiter that has not looked for too long is skipped" {
  listen b c
  acquire a 30000 ha ''
  enqueue b 30000 hb
  enqueue c 30000 hc
  redis srv eval "redis.call('hset', KEYS[1], 'b:0', cmsgpack.pack({version = 2, alive = 1, since = 1, lease = '30000', hold = 'hb', about = {}}))" 1 "$waiters"
  release a ha
  hears c granted
  [[ $(owner_of) == c ]]
  heard_nothing b
}

@test "the waiters' records are not trusted" {
  local junk
  listen b c
  for junk in "'junk'" "''" 'cmsgpack.pack(7)' 'cmsgpack.pack({})' "$(packed "lease = 'x'")" "$(packed 'lease = 1000')" \
    "$(packed 'hold = {}')" "$(packed 'about = 7')" "$(packed "about = {'host'}")" "$(packed 'version = 1')" "$(packed 'want = 1')"; do
    acquire a 30000 ha ''
    enqueue b 30000 hb
    enqueue c 30000 hc
    redis srv eval "redis.call('hset', KEYS[1], 'b:0', $junk)" 1 "$waiters"
    run -0 inspect
    run -0 release a ha
    [[ $(owner_of) == c ]]
    release c hc
  done
}

@test "without waiters, the release is published" {
  listen b
  acquire a 30000 ha ''
  enqueue b 30000 hb
  leaves_the_line b
  hear_releases public
  release a ha
  wait_until grep -qx 0 public
  [[ -z $(redis srv keys "rlock:*") && $(redis srv exists "$lock") == 0 ]]
}

@test "a newcomer does not overtake the waiters: the first one gets the lock" {
  listen b c
  acquire a 30000 ha ''
  enqueue b 30000 hb
  redis srv del "$lock" # as if the lease had run out
  run -0 acquire x 30000 hx ''
  [[ ${lines[0]} == held && $(owner_of) == b ]]
  hears b granted
}

@test "the first waiter that looks after the lease has ended gets the lock, for its whole lease" {
  listen b c
  acquire a 30000 ha ''
  enqueue b 20000 hb
  enqueue c 20000 hc
  redis srv del "$lock"
  run -0 enqueue b 20000 hb
  [[ ${lines[0]} == granted ]]
  (($(redis srv pttl "$lock") > 10000))
  wait_until grep -q '^first ' heard-c
}

@test "a look of another waiter hands it to the first" {
  listen b c
  acquire a 30000 ha ''
  enqueue b 20000 hb
  enqueue c 20000 hc
  redis srv del "$lock"
  run -0 enqueue c 20000 hc
  [[ ${lines[0]} == held && ${lines[2]} == 0 && $(owner_of) == b ]]
  hears b granted
}

@test "a waiter that gives up leaves the queue, and the next one is told that it is the first" {
  listen b c d
  acquire a 30000 ha ''
  enqueue b 30000 hb
  enqueue c 30000 hc
  enqueue d 30000 hd
  run -0 release c hc
  [[ ${lines[0]} == other-owner && $(in_queue) == 'b d' ]]
  heard_nothing d
  release b hb
  hears d front
  release d hd
  [[ $(redis srv exists "$queue" "$waiters") == 0 && $(owner_of) == a ]]
}

@test "a waiter that gives up after it was given the lock passes it to the next one" {
  listen b c
  acquire a 30000 ha ''
  enqueue b 30000 hb
  enqueue c 30000 hc
  release a ha
  run -0 release b hb
  [[ ${lines[0]} == released && $(owner_of) == c ]]
}

@test "a renewal notices dead waiters ahead, and a look, or a release for no owner, removes them" {
  listen b c d
  acquire a 30000 ha ''
  enqueue b 30000 hb
  enqueue c 30000 hc
  enqueue d 30000 hd
  leaves_the_line b
  run -0 renew a 30000 granted
  [[ ${lines[2]} == 1 ]]
  release nobody nothing
  [[ $(in_queue) == 'c d' ]]
  run -0 renew a 30000
  [[ ${lines[2]} == 0 ]]
  hears c front
  leaves_the_line c
  run -0 enqueue d 30000 hd
  [[ ${lines[2]} == 0 && $(in_queue) == d ]]
}

@test "a lost place is taken again" {
  listen b c
  acquire a 30000 ha ''
  run -0 enqueue b 30000 hb
  local place=${lines[3]}
  enqueue c 30000 hc
  redis srv zrem "$queue" b
  run -0 enqueue b 30000 hb "$place"
  [[ ${lines[2]} == 0 && $(in_queue) == 'b c' ]]
}

@test "no waiter gets ahead because the clock was set back" {
  listen b c
  acquire a 30000 ha ''
  enqueue b 30000 hb
  # b's place is an hour ahead of the clock.
  redis srv zincrby "$queue" 3600000 b
  enqueue c 30000 hc
  [[ $(in_queue) == 'b c' ]]
}

@test "higher priorities come first, equal ones in the order of arrival" {
  listen b c d e f
  acquire a 30000 ha ''
  enqueue b 30000 hb '' 0
  enqueue c 30000 hc '' 5
  enqueue d 30000 hd '' -1000
  enqueue e 30000 he '' 5
  enqueue f 30000 hf '' 1000
  [[ $(in_queue) == 'f c e b d' ]]
}

@test "a full queue takes no newcomer; dead waiters do not count" {
  listen b c d
  acquire a 30000 ha ''
  enqueue b 30000 hb '' 0 1
  run -0 enqueue c 30000 hc '' 0 1
  [[ $output == $'queue-full\n1' && $(in_queue) == b ]]
  # A waiter that is already in the queue may stay.
  run -0 enqueue b 30000 hb '' 0 1
  [[ ${lines[0]} == held ]]
  leaves_the_line b
  run -0 enqueue c 30000 hc '' 0 1
  [[ ${lines[0]} == held && $(in_queue) == c ]]
  # A free lock needs no queue.
  release c hc
  release a ha
  run -0 enqueue d 30000 hd '' 0 0
  [[ ${lines[0]} == granted ]]
}

@test "a waiter that replaces takes the place of the last one that did, which is told by whom" {
  listen b c d e
  acquire a 30000 ha ''
  enqueue b 30000 hb '' 0 '' 1
  enqueue c 30000 hc
  run -0 enqueue d 30000 hd '' 0 '' 1
  [[ ${lines[2]} == 0 && $(in_queue) == 'd c' ]]
  hears b 'replaced u@h pid d'
  # Sent again if the reply is lost, which must not replace the one that came later.
  for _ in 1 2; do
    run -0 enqueue b 30000 hb '' 0 '' 1
    [[ $output == $'replaced\nu@h pid d' && $(in_queue) == 'd c' ]]
  done
  enqueue e 30000 he '' 0 '' 1
  [[ $(in_queue) == 'e c' ]]
}

@test "while other programs listen for releases, every second one is open to all" {
  listen b c d
  hear_releases java
  hear_releases first
  two() { [[ $(listeners_on srv "$channel") == 2 ]]; }
  wait_until two
  acquire a 30000 ha ''
  enqueue b 30000 hb
  enqueue c 30000 hc
  enqueue d 30000 hd
  release a ha
  [[ $(redis srv exists "$lock") == 0 && $(in_queue) == 'b c d' ]]
  wait_until grep -qx 0 java
  hears b free
  # For a moment it is only for others; then this waiter competes, and gets it.
  run -0 in_others_turn enqueue b 30000 hb
  [[ ${lines[0]} == held ]] && ((lines[1] <= 90))
  redis srv hset "$waiters" open 1
  competes() { run -0 enqueue b 30000 hb && [[ ${lines[0]} == granted ]]; }
  wait_until competes
  release b hb
  [[ $(owner_of) == c ]] # this one was not open
  release c hc
  [[ $(redis srv exists "$lock") == 0 ]] # and this one was
}

@test "an open release tells the first living waiter" {
  listen b c
  hear_releases java
  hear_releases first
  two() { [[ $(listeners_on srv "$channel") == 2 ]]; }
  wait_until two
  acquire a 30000 ha ''
  enqueue b 30000 hb
  enqueue c 30000 hc
  leaves_the_line b
  redis srv del "$waiters" # nothing that is created again may stay forever
  enqueue c 30000 hc
  release a ha
  hears c free
  [[ $(redis srv exists "$lock") == 0 ]]
}

@test "force_unlock gives the lock to the first waiter, too" {
  listen b
  acquire a 30000 ha ''
  enqueue b 30000 hb
  force_unlock a
  [[ $(owner_of) == b ]]
  hears b granted
}

@test "a release that keeps the lock tells the first waiter for how long" {
  listen b
  acquire a 30000 ha ''
  enqueue b 30000 hb
  run -0 release a ha 700
  [[ ${lines[0]} == kept ]]
  hears b 'first \(700\|69[0-9]\)' # a millisecond may have passed
}

@test "it tells the first living waiter" {
  listen b c
  acquire a 30000 ha ''
  enqueue b 30000 hb
  enqueue c 30000 hc
  leaves_the_line b
  release a ha 700
  hears c 'first \(700\|69[0-9]\)'
  [[ $(in_queue) == c ]]
}

@test "a replaced waiter is told even if the queue is empty by then, and leaves nothing else behind" {
  listen b c
  acquire a 30000 ha ''
  enqueue b 30000 hb '' 0 '' 1
  local place
  place=$(redis srv zscore "$queue" b)
  enqueue c 30000 hc '' 0 '' 1
  release a ha
  enqueue c 30000 hc '' 0 '' 1
  run -0 enqueue b 30000 hb "$place" 0 '' 1
  [[ ${lines[0]} == replaced ]]
  release c hc
  [[ $(redis srv keys 'rlock:*') == "$waiters:b:0" ]]
  assert_bounded "$waiters:b:0"
}

@test "a waiter that replaces another one can join a full queue, because that does not get longer" {
  listen b c d
  acquire a 30000 ha ''
  enqueue b 30000 hb '' 0 '' 1
  enqueue c 30000 hc
  run -0 enqueue d 30000 hd '' 0 2 1
  [[ ${lines[0]} == held && $(in_queue) == 'd c' ]]
}

@test "a lock can be renewed and released despite a queue key of another type" {
  acquire a 30000 ha ''
  redis srv set "$queue" text px 60000
  run -0 renew a 30000
  [[ ${lines[0]} == renewed ]]
  run -0 release a ha
  [[ ${lines[0]} == released && $(redis srv exists "$lock") == 0 ]]
}

@test "a user without the right to delete is told when it is its turn, as others are" {
  listen b
  acquire a 30000 ha ''
  enqueue b 30000 hb
  as_weak_user del
  run -0 release a ha
  [[ ${lines[0]} == released && -z ${lines[2]:-} ]]
  as_full_user
  [[ $(redis srv hget "$lock" b:0) == 1 ]]
}

@test "a user without the right to publish: the lock becomes free, and the queue stays" {
  listen b
  acquire a 30000 ha ''
  enqueue b 30000 hb
  as_weak_user publish
  run -0 release a ha
  as_full_user
  [[ ${lines[0]} == released ]]
  # It is unknown whether it listens: if not, the grant expires.
  [[ $(owner_of) == b ]]
}

@test "on a server that is out of memory, a waiter gets the lock" {
  listen b
  acquire a 30000 ha ''
  enqueue b 30000 hb
  fill_memory
  run -0 enqueue b 30000 hb
  [[ ${lines[0]} == held ]]
  run -0 release a ha
  free_memory
  [[ $(owner_of) == b && -z $(in_queue) ]]
}

@test "inspect shows the queue in order" {
  listen b c
  acquire a 30000 ha ''
  enqueue b 30000 hb
  enqueue c 30000 hc
  run -0 --keep-empty-lines inspect
  [[ $output == *$'\n2\n'*$'\nhost\nh\npid\nb\nuser\nu\n'*$'\nhost\nh\npid\nc\nuser\nu'* ]]
}

# heard_elsewhere ID ...: as if the queue had come from another server since their last look.
heard_elsewhere() {
  local id
  for id; do
    redis srv eval "local waiter = cmsgpack.unpack(redis.call('hget', KEYS[1], ARGV[1]))
      assert(#waiter.server == 40)
      waiter.server = string.rep('0', 40)
      redis.call('hset', KEYS[1], ARGV[1], cmsgpack.pack(waiter))" 1 "$waiters" "$(id_of "$id")"
  done
}

@test "the queue has come from another server: a waiter that does not listen here yet keeps its place" {
  listen b c
  acquire a 30000 ha ''
  enqueue b 20000 hb
  enqueue c 20000 hc
  leaves_the_line b
  leaves_the_line c
  heard_elsewhere b c
  run -0 renew a 30000
  [[ ${lines[2]} == 0 ]]
  release nobody nothing
  [[ $(in_queue) == 'b c' ]]
  release a ha
  [[ $(owner_of) == b && $(in_queue) == c ]] && (($(redis srv pttl "$lock") <= 5000))
  listen b c
  run -0 enqueue c 20000 hc
  [[ ${lines[0]} == held && ${lines[2]} == 0 ]]
  run -0 enqueue b 20000 hb
  [[ ${lines[0]} == granted ]]
  release b hb
  [[ $(owner_of) == c ]]
}

@test "the queue has come from another server: a waiter that has looked here, or was here before, is dead if it does not listen" {
  listen b c d
  acquire a 30000 ha ''
  enqueue b 20000 hb
  enqueue c 20000 hc
  enqueue d 20000 hd
  heard_elsewhere b d
  enqueue b 20000 hb
  leaves_the_line b
  leaves_the_line c
  redis srv eval "local waiter = cmsgpack.unpack(redis.call('hget', KEYS[1], ARGV[1]))
    waiter.server = nil
    redis.call('hset', KEYS[1], ARGV[1], cmsgpack.pack(waiter))" 1 "$waiters" "$(id_of c)"
  run -0 renew a 30000
  [[ ${lines[2]} == 1 ]]
  release a ha
  [[ $(owner_of) == d && -z $(in_queue) ]]
}

@test "the queue has come from another server: no waiter keeps its place once the first one has not come in time" {
  listen b c d
  acquire a 30000 ha ''
  enqueue b 20000 hb
  enqueue c 20000 hc
  enqueue d 20000 hd
  leaves_the_line b
  leaves_the_line c
  heard_elsewhere b c
  release a ha
  [[ $(owner_of) == b ]]
  # As if five seconds had passed.
  redis srv hset "$waiters" came "$(redis srv info server | sed -n 's/^run_id:\([0-9a-f]*\).*/\1/p') $(($(date +%s%3N) - 6000))"
  redis srv del "$lock" "$holder"
  run -0 acquire x 30000 hx ''
  [[ $(owner_of) == d && -z $(in_queue) ]]
}

@test "a waiter that the epoch guard holds back is not handed the lock" {
  not_over cluster 'a cluster has no epoch guard'
  listen b
  acquire a 30000 ha ''
  run -0 script acquire owner=b:0 lease=30000 hold=hb about=host about=h wait.priority=0 guard.lag=0
  [[ ${lines[0]} == held ]]
  run -0 release a ha
  [[ ${lines[0]} == released && $(redis srv exists "$lock") == 0 && $(in_queue) == b ]]
  heard_nothing b
}

@test "a queue has a time even if the waiter's record cannot be written" {
  acquire a 30000 ha ''
  redis srv set "$waiters" text
  run ! enqueue b 30000 hb
  assert_bounded "$queue"
  redis srv del "$waiters" "$queue"
  as_weak_user hset
  run ! enqueue b 30000 hb
  lacks_a_right "$output"
  assert_bounded "$queue"
  redis srv del "$queue"
  as_weak_user zrank
  run ! enqueue b 30000 hb '' 0 '' 1
  assert_mortal
}

@test "a dead waiter for another kind of lock does not prevent this one" {
  redis srv zadd "$queue" 1 w:0
  redis srv eval "redis.call('hset', KEYS[1], 'w:0', $(packed "want = {mode = 'read'}"))" 1 "$waiters"
  listen w
  run -0 acquire b 30000 hb ''
  [[ ${lines[0]} == other-kind && ${lines[1]} == 'lock that others wait for' ]]
  leaves_the_line w
  run -0 acquire b 30000 hb ''
  [[ ${lines[0]} == granted ]]
}
