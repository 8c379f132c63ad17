#!/usr/bin/env bats
# One call of a script does a limited amount of work, because a script blocks all other clients of the server.

load ../lib/common
load ../lib/fault_scripts

setup_file() { start_script_server; }
setup() { fresh_lock; }
teardown() {
  # As assert_mortal, of thousands of keys.
  [[ $(redis srv eval "
    local immortal = 0
    for _, key in ipairs(redis.call('keys', '*')) do
      immortal = immortal + (redis.call('pttl', key) == -1 and 1 or 0)
    end
    return immortal" 0) == 0 ]]
  end_listeners
}
teardown_file() { redis_stop srv; }

owner_of() { redis srv hkeys "$lock" | sed 's/:0$//'; }

# The number of commands that the server has executed, in scripts as well.
commands() { redis srv info commandstats | awk -F'[=,]' '/^cmdstat_/ { sum += $2 } END { print sum }'; }

# little COMMAND ...: runs it, and checks that the server executes no more than a thousand or two commands.
little() {
  local before
  before=$(commands)
  run -0 --keep-empty-lines "$@"
  before=$(($(commands) - before))
  ((before < 2000)) || {
    echo "$* took $before commands" >&2
    return 1
  }
}

# dead_waiters N: puts these ahead in the queue, with the record of a living waiter, or with none.
dead_waiters() {
  redis srv eval "
    local now = redis.call('time')[1] * 1000
    for i = 1, ARGV[1] do
      redis.call('zadd', KEYS[1], i, 'dead-' .. i .. ':0')
      if i % 2 == 0 then
        redis.call('hset', KEYS[2], 'dead-' .. i .. ':0', cmsgpack.pack({version = 2, alive = now + 60000, since = now, lease = '30000', hold = 'h', about = {},
          want = {mode = string.match(ARGV[2], '%a+'), slots = tonumber(ARGV[2])}}))
      end
    end
    redis.call('pexpire', KEYS[1], 600000)
    redis.call('pexpire', KEYS[2], 600000)" 2 "$queue" "$waiters" "$1" "$mode"
}

# fair_queue N: puts dead waiters into RFairLock's queue, the first of them at its end, too.
fair_queue() {
  redis srv eval "
    local now = redis.call('time')[1] * 1000
    for i = 1, ARGV[1] do
      redis.call('rpush', KEYS[1], 'F:' .. i)
      redis.call('zadd', KEYS[2], now - 600000, 'F:' .. i)
    end
    redis.call('rpush', KEYS[1], 'F:1')" 2 "redisson_lock_queue:{$lock}" "redisson_lock_timeout:{$lock}" "$1"
}

# readers N MS: as Redisson stores them; those with MS 0 are dead.
readers() {
  redis srv eval "
    redis.call('hset', KEYS[1], 'mode', 'read')
    for i = 1, ARGV[1] do
      redis.call('hset', KEYS[1], 'reader-' .. i .. ':1', 1)
      if ARGV[2] ~= '0' then
        redis.call('set', '{' .. KEYS[1] .. '}:reader-' .. i .. ':1:rwlock_timeout:1', 1, 'px', ARGV[2])
      end
    end
    redis.call('pexpire', KEYS[1], 600000)" 1 "$lock" "$1" "$2"
}

# until_done MOST COMMAND ...: repeats it until its reply is not `again`; $calls is how often.
until_done() {
  local most=$1
  shift
  for ((calls = 1; ; calls++)); do
    ((calls <= most))
    little "$@"
    [[ ${lines[0]} == again ]] || return 0
  done
}

@test "a newcomer gets a free lock despite many dead waiters" {
  dead_waiters 2500
  until_done 30 acquire x 30000 hx ''
  [[ ${lines[0]} == granted && ${lines[1]} == x ]]
  ((calls > 5))
  [[ $(redis srv exists "$queue" "$waiters") == 0 ]]
}

@test "the first living waiter gets the lock, despite many dead ones ahead of it" {
  listen b c
  acquire a 30000 ha ''
  enqueue b 30000 hb
  enqueue c 30000 hc
  dead_waiters 1000
  little release a ha
  [[ ${lines[0]} == released && ${lines[3]} == 1 && -z $(owner_of) ]]
  # A release for no owner goes on.
  while [[ ${lines[3]} == 1 ]]; do little release nobody nothing; done
  [[ $(owner_of) == b && $(in_queue) == c ]]
  hears b granted
}

@test "renewing, leaving the queue and looking do a limited amount of work, too" {
  listen b
  acquire a 30000 ha ''
  enqueue b 30000 hb
  dead_waiters 3000
  little renew a 30000
  [[ ${lines[0]} == renewed ]]
  little enqueue b 30000 hb
  [[ ${lines[0]} == held || ${lines[0]} == again ]]
  little release b hb
  little inspect
  [[ $(owner_of) == a ]]
}

@test "dead waiters do not make a queue full" {
  listen b c d
  acquire a 30000 ha ''
  enqueue b 30000 hb
  enqueue c 30000 hc
  dead_waiters 1000
  until_done 30 enqueue d 30000 hd '' 0 3
  [[ ${lines[0]} == held && $(in_queue) == 'b c d' ]]
  until_done 1 enqueue x 30000 hx '' 0 3
  [[ ${lines[0]} == queue-full && ${lines[1]} == 3 ]]
}

@test "readers acquire and release beside many others" {
  use_lock "$lock" read_write read
  readers 3000 500000
  little acquire x 30000 hx ''
  [[ ${lines[0]} == granted ]]
  little renew x 30000
  little release x hx
  [[ ${lines[0]} == released && $(redis srv hlen "$lock") == 3001 ]]
  (($(redis srv pttl "$lock") > 400000))
  little inspect
  [[ ${lines[5]} == 3000 ]]
}

@test "the reader with the longest lease leaves: no other reader is taken for dead" {
  use_lock "$lock" read_write read
  readers 3000 300000
  acquire x 900000 hx ''
  little release x hx
  [[ ${lines[0]} == released ]]
  (($(redis srv pttl "$lock") > 200000))
  # With fewer of them, the lock lasts as long as the longest of them.
  redis srv flushall
  readers 100 300000
  acquire x 900000 hx ''
  release x hx
  (($(redis srv pttl "$lock") <= 300000))
}

@test "a writer waits for one living reader among many dead ones, and not for the dead ones" {
  use_lock "$lock" read_write read
  readers 2000 0
  acquire x 30000 hx ''
  mode=write until_done 30 acquire w 30000 hw ''
  [[ ${lines[0]} == held ]]
  release x hx
  readers 2000 0
  mode=write until_done 30 acquire w 30000 hw ''
  [[ ${lines[0]} == granted && $(redis srv hget "$lock" mode) == write ]]
}

@test "the last living reader leaves among many dead ones: the waiting writer gets the lock" {
  use_lock "$lock" read_write read
  listen w
  acquire x 30000 hx ''
  mode=write enqueue w 30000 hw
  readers 2000 0
  little release x hx
  [[ ${lines[0]} == released ]]
  while [[ ${lines[3]} == 1 ]]; do little release nobody nothing; done
  [[ $(owner_of) == *w:0:write* ]]
  hears w granted
}

@test "many waiting readers get the lock, some in each call" {
  use_lock "$lock" read_write read
  mode=write acquire w 30000 hw ''
  dead_waiters 400
  # They listen, all of them on one connection.
  seq -f "${grant_channels}dead-%.0f:0" 400 | xargs redis-cli -s "$srv_sock" "${sharded:+s}subscribe" >heard 3>&- &
  local listener=$!
  all_listen() { [[ $(listeners_on srv "${grant_channels}dead-400:0") == 1 ]]; }
  wait_until all_listen
  little release w hw
  local calls=1
  while [[ ${lines[3]} == 1 ]]; do
    little release nobody nothing
    calls=$((calls + 1))
  done
  kill "$listener"
  ((calls > 2))
  [[ $(redis srv zcard "$queue") == 0 && $(redis srv hlen "$lock") == 201 ]]
}

@test "the last living reader leaves among many dead ones, and nobody waits: the lock becomes free" {
  use_lock "$lock" read_write read
  acquire x 30000 hx ''
  readers 2000 0
  hear_releases free
  little release x hx
  [[ ${lines[0]} == released && ${lines[3]} == 1 ]]
  while [[ ${lines[3]} == 1 ]]; do little release nobody nothing; done
  [[ $(redis srv exists "$lock") == 0 ]]
  wait_until grep -qx 0 free
}

@test "fields that are no readers, however many, do not make a writer ask again and again" {
  use_lock "$lock" read_write write
  redis srv eval "
    redis.call('hset', KEYS[1], 'mode', 'read')
    for i = 1, 1000 do redis.call('hset', KEYS[1], 'a:' .. i .. ':write', 1) end
    redis.call('pexpire', KEYS[1], 60000)" 1 "$lock"
  little acquire w 30000 hw ''
  [[ ${lines[0]} == held ]]
}

@test "no call looks at all of a long queue of RFairLock" {
  local list="redisson_lock_queue:{$lock}" times="redisson_lock_timeout:{$lock}"
  listen b c
  fair_queue 3000
  acquire a 30000 ha ''
  little enqueue b 30000 hb
  # Only at the head were the dead removed.
  [[ $(redis srv lindex "$list" 0) == F:101 && $(redis srv lindex "$list" 2900) == F:1 && $(redis srv lindex "$list" -1) == b:0 ]]
  # One that leaves counts as dead, wherever it stands.
  little release b hb
  [[ $(redis srv lindex "$list" -1) == b:0 && $(redis srv zscore "$times" b:0) == 0 ]]
  redis srv del "$list" "$times"
}
