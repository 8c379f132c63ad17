#!/usr/bin/env bats
# The companion keys of a lock may contain anything, because others can write them: it is cut or ignored.

load ../lib/common
load ../lib/fault_scripts

setup_file() { start_script_server; }
setup() { fresh_lock; }
teardown() {
  end_listeners
}
teardown_file() { redis_stop srv; }

owner=0b3ad7a2-5ee2-4a6e-9b0a-6a1f1d7f0c01:1
each_layout() {
  local one
  for one in 'plain ' 'read_write read' 'semaphore 2' 'string set'; do
    redis srv flushall
    # shellcheck disable=SC2086 # layout and mode
    use_lock "$lock" $one
    "$@" || {
      echo "layout: $one" >&2
      return 1
    }
  done
}

other_types() {
  local key
  for key in "$holder" "$queue" "$waiters" "$hold_keys$owner" "$hold_keys${owner//-/}"; do
    redis srv del "$key"
    redis srv rpush "$key" text
  done
  redis srv del "$hold_keys$(tr -d - <<<"${owner%:*}")" "$token_key"
  redis srv rpush "$hold_keys$(tr -d - <<<"${owner%:*}")" text
  redis srv rpush "$token_key" text
} >/dev/null

renewed_and_released() {
  acquire "$owner" 30000 "${owner%:*}" ''
  other_types
  run -0 renew "$owner" 20000
  [[ ${lines[0]} == renewed ]] || return
  run -0 --keep-empty-lines inspect
  [[ ${lines[0]} == lock && ${lines[5]} == 1 ]] || return
  run -0 release "$owner" "${owner%:*}"
  [[ ${lines[0]} == released && ${lines[1]} == 0 ]]
}

forced() {
  acquire "$owner" 30000 h ''
  other_types
  run -0 force_unlock "$owner"
  [[ ${lines[0]} == released ]] || return
  # A semaphore without its mark could belong to another program, so it is left alone.
  if [[ $layout == semaphore ]]; then
    [[ $(redis srv exists "{$lock}:timeout") == 0 && $(redis srv get "$lock") == 2 ]]
  else
    [[ $(redis srv exists "$lock") == 0 ]]
  fi
}

@test "a lock can be renewed, shown and released despite companion keys of another type" { each_layout renewed_and_released; }
@test "a lock can be taken away despite companion keys of another type" { each_layout forced; }

@test "a long owner in the lock's hash is cut" {
  redis srv eval "redis.call('hset', KEYS[1], string.rep('x', 5000000) .. ':1', 1) redis.call('pexpire', KEYS[1], 60000)" 1 "$lock"
  inspect >reply
  acquire "$owner" 30000 h '' >>reply
  (($(wc -c <reply) < 3000)) && [[ $(grep -cx 'x\{512\}' reply) == 2 ]]
}

# long_description OWNER KEY
long_description() {
  redis srv eval "
    for _, field in ipairs({'owner', 'lease', 'since', 'token', 'host', 'pid', 'user', 'command', 'reason', 'control', 'kept'}) do
      redis.call('hset', KEYS[1], field, string.rep('x', 1200000))
    end
    redis.call('hset', KEYS[1], 'owner', ARGV[1])" 1 "$2" "$1" >/dev/null
}

@test "a long description is cut" {
  acquire "$owner" 30000 h ''
  long_description "$owner" "$holder"
  inspect >reply
  (($(wc -c <reply) < 20000))
  grep -qx 'x\{512\}' reply
  run -0 renew "$owner" 0
  [[ $output == lease-unknown ]]
  run -0 renew "$owner" 20000
  [[ ${lines[0]} == renewed ]]
  # Sent again: the token is known from its own key.
  run -0 acquire "$owner" 30000 h ''
  [[ ${lines[0]} == granted && ${lines[2]} == $(redis srv get "$token_key") ]]
  run -0 release "$owner" h
  [[ ${lines[0]} == released ]]
}

@test "a lease that is not a time does not reach PEXPIRE" {
  local lease
  for lease in 1e300 nan -5 inf 0 99999999999999999999 '' 40000.5; do
    acquire "$owner" 30000 h ''
    redis srv hset "$holder" lease "$lease"
    redis srv pexpire "$lock" 60000
    run -0 renew "$owner" 20000
    [[ ${lines[0]} == renewed ]] && (($(redis srv pttl "$lock") > 10000))
    run -0 acquire new 30000 h2 "$owner"
    [[ ${lines[0]} == granted ]] && (($(redis srv pttl "$lock") > 10000))
    redis srv flushall
  done
}

longest_time() {
  redis srv config set maxmemory 0
  acquire "$owner" 30000 "${owner%:*}" ''
  local key
  for key in "$lock" "{$lock}:timeout" "{$lock}:$owner:rwlock_timeout:1"; do redis srv pexpire "$key" 200000000000000000; done
  run -0 inspect
  [[ ${lines[0]} == lock ]] || return
  case $layout in read_write | semaphore)
    run -0 acquire "1$owner" 30000 h1 ''
    [[ ${lines[0]} == granted ]] || return
    run -0 release "1$owner" h1
    [[ ${lines[0]} == released ]] || return
    ;;
  esac
  run -0 acquire "2$owner" 30000 h2 "$owner"
  [[ ${lines[0]} == granted ]] || return
  redis srv del "$holder" "$hold_keys$owner"
  run -0 renew "$owner" 20000
  [[ ${lines[0]} == renewed ]]
} >/dev/null

@test "another program's time of thousands of years does not reach PEXPIRE" { each_layout longest_time; }

@test "the longest lease of a forgotten life is a lease, or the default one" {
  not_over cluster 'a cluster has no epoch guard'
  local before
  for before in x -1 1e300 ''; do
    redis srv hset rlock:epoch life data since 0 before "$before"
    run -0 script acquire owner="$owner:0" lease=30000 hold=h guard.data=true
    [[ ${lines[0]} == granted && $(redis srv hget rlock:epoch before) == 0 ]]
    redis srv flushall
  done
}

@test "waiters with records that are long, deep or of other types count as dead, and are not shown" {
  local record
  listen b c
  for record in "$(packed "about = {'host', string.rep('x', 1200000)}")" \
    "string.rep('\\145', 1000) .. '\\1'" "string.rep('\\145', 1000000) .. '\\1'" \
    "$(packed "about = {'host', {{{{{{{{{{1}}}}}}}}}}}")" "$(packed 'about = {{{{{{{{{{{{1}}}}}}}}}}}}')" \
    "(string.gsub($(packed "about = 'list'"), '\\164list', '\\148\\161a\\161b\\192\\145\\1'))" \
    "$(packed "lease = '-5'")" "$(packed "lease = '1e300'")" "$(packed 'alive = 0/0')" "$(packed 'since = {}')" \
    "$(packed "want = {slots = 'x'}")" "$(packed 'want = {mode = {}}')" "$(packed 'once = {key = 1}')" "$(packed 'guard = 1')" \
    "$(packed "server = string.rep('x', 41)")" "$(packed "alive = '9000000000000000'")" "$(packed 'want = {slots = 1.5}')" \
    "$(packed 'want = {slots = 2, taken = 0}')"; do
    acquire a 30000 ha ''
    enqueue b 30000 hb
    enqueue c 30000 hc
    redis srv eval "redis.call('hset', KEYS[1], 'b:0', $record)" 1 "$waiters"
    inspect >reply
    (($(wc -c <reply) < 3000))
    [[ $(grep -cx 'host' reply) == 2 ]] # of the holder and of c
    run -0 release a ha
    [[ ${lines[0]} == released && $(redis srv hkeys "$lock") == c:0 ]]
    release c hc
  done
}

@test "a hundred holders and waiters with the longest descriptions fit into a reply" {
  use_lock "$lock" semaphore 200
  local text i
  printf -v text '%0512d' 0
  redis srv eval "
    for i = 1, 100 do
      local hex = string.format('%032x', i)
      local bytes = string.gsub(hex, '..', function(byte) return string.char(tonumber(byte, 16)) end)
      redis.call('zadd', KEYS[2], 9e15, bytes)
      for _, field in ipairs({'owner', 'lease', 'since', 'token', 'host', 'pid', 'user', 'command', 'reason', 'control', 'kept'}) do
        redis.call('hset', ARGV[1] .. hex, field, string.rep('x', 2000))
      end
      redis.call('zadd', KEYS[3], i, 'w' .. i)
      redis.call('hset', KEYS[4], 'w' .. i, cmsgpack.pack({version = 2, alive = 9e15, since = 1, lease = '1000', hold = 'h',
        about = {'a', string.rep('x', 16000)}}))
    end
    redis.call('set', KEYS[1], 100, 'px', 60000)
    redis.call('pexpire', KEYS[2], 60000)" 4 "$lock" "{$lock}:timeout" "$queue" "$waiters" "$hold_keys"
  inspect >reply
  [[ $(grep -c '^x\{16000\}$' reply) == 100 && $(grep -c '^x\{512\}$' reply) -ge 100 ]]
  (($(wc -c <reply) < 4 << 20)) # kLongestReply of src/redis/reply.cc
}

@test "the lock is not granted if the token is not a number, which stays as it is" {
  local token
  for token in text -1 nan 9007199254740991 "$(printf '%030d' 0)"; do
    redis srv set "$token_key" "$token"
    run -0 acquire a 30000 ha ''
    [[ $output == no-token && $(redis srv get "$token_key") == "$token" && $(redis srv exists "$lock") == 0 ]]
  done
}

@test "the time of the last open release is a time, or ignored" {
  listen b
  acquire a 30000 ha ''
  enqueue b 30000 hb
  local junk
  for junk in nan inf -inf text 1e400 -7 9000000000000000; do
    redis srv hset "$waiters" open "$junk"
    redis srv del "$lock"
    run -0 acquire x 30000 hx ''
    [[ ${lines[0]} == held && $(redis srv hkeys "$lock") == b:0 ]]
    run -0 release b hb
    acquire a 30000 ha ''
    enqueue b 30000 hb
  done
}

@test "a hold that cannot be counted is not granted, because its release would free the outer hold's lock" {
  acquire a 30000 ha ''
  redis srv set "$holder" junk px 60000
  run ! acquire b 30000 hb a
  [[ $output == *WRONGTYPE* && $(redis srv hget "$lock" a:0) == 1 ]]
}
