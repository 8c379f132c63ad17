#!/usr/bin/env bats
# lua/04_kinds.lua: every verb refuses a key that does not look like a lock, and leaves it as it is, byte for byte.

load ../lib/common
load ../lib/fault_scripts

setup_file() { start_script_server; }
setup() { fresh_lock; }
teardown_file() { redis_stop srv; }

UUID=11111111-2222-3333-4444-555555555555
OWNER=$UUID:7

# make WHAT: writes another program's data at $lock. Sets $guess.
make() {
  guess=data
  redis srv del "$lock" "{$lock}:timeout"
  case $1 in
    'a hash of settings') redis srv hset "$lock" theme dark ;;
    'a hash of settings with a TTL') redis srv hset "$lock" theme 5 && expires ;;
    'a hash of numbers with a TTL') redis srv hset "$lock" user:1 5 user:2 7 && expires ;;
    'two owners') redis srv hset "$lock" "$OWNER" 1 "$UUID:8" 1 && expires ;;
    'a lock without a TTL') redis srv hset "$lock" "$OWNER" 1 && guess=timeless ;;
    'an owner with no count') redis srv hset "$lock" "$OWNER" x && expires ;;
    'an owner with -1 holds') redis srv hset "$lock" "$OWNER" -1 && expires ;;
    'an owner with 0 holds') redis srv hset "$lock" "$OWNER" 0 && expires ;;
    'a read-write lock without a TTL') redis srv hset "$lock" mode read "$OWNER" 1 && guess=timeless ;;
    'a hash with a mode') redis srv hset "$lock" mode dark && expires ;;
    'a hash with the mode read') redis srv hset "$lock" mode read && expires ;;
    'a hash with a mode and more') redis srv hset "$lock" mode read color red && expires ;;
    'a big hash with a mode')
      redis srv eval "for i = 1, 500 do redis.call('hset', KEYS[1], 'f' .. i, i) end
        redis.call('hset', KEYS[1], 'mode', 'read')" 1 "$lock" && expires
      ;;
    'a group of RMultiLock')
      guess=multilock
      redis srv hset "$lock" c2E9 "$OWNER" "c2E9:$OWNER:expire_time" 1795303959 "c2E9:$OWNER:lock_count" 1 && expires
      ;;
    'a lock by SET NX') redis srv set "$lock" token-of-redis-py nx px 60000 && guess=text ;;
    'a lock by SET NX with a number') redis srv set "$lock" 1 nx px 60000 && guess=number ;;
    'text') redis srv set "$lock" text && guess=text ;;
    'a counter') redis srv set "$lock" 42 && guess=number ;;
    'an RSemaphore') redis srv incrby "$lock" 2 && guess=number ;;
    'a number beside a zset of an application') redis srv set "$lock" 2 && redis srv zadd "{$lock}:timeout" 1 x && guess=number ;;
    'a list') redis srv rpush "$lock" 1 ;;
    'a sorted set') redis srv zadd "$lock" 1 a ;;
    'a stream') redis srv xadd "$lock" '*' f v ;;
  esac
}
expires() { redis srv pexpire "$lock" 60000; }
FOREIGN=('a hash of settings' 'a hash of settings with a TTL' 'a hash of numbers with a TTL' 'two owners'
  'a lock without a TTL' 'an owner with no count' 'an owner with -1 holds' 'an owner with 0 holds'
  'a read-write lock without a TTL' 'a hash with a mode' 'a hash with the mode read' 'a hash with a mode and more'
  'a big hash with a mode' 'a group of RMultiLock' 'a lock by SET NX' 'a lock by SET NX with a number' 'text'
  'a counter' 'an RSemaphore' 'a number beside a zset of an application' 'a list' 'a sorted set' 'a stream')

# picture: prints every key with its content, and when it expires, in milliseconds since 1970.
picture() {
  redis srv eval "
    local lines, time = {}, redis.call('time')
    for _, key in ipairs(redis.call('keys', '*')) do
      local ttl = redis.call('pttl', key)
      local ends = ttl == -1 and 0 or time[1] * 1000 + math.floor(time[2] / 1000) + ttl
      lines[#lines + 1] = string.format('%s %s %.0f', key, redis.sha1hex(redis.call('dump', key)), ends)
    end
    table.sort(lines)
    return lines" 0
}

# same_picture BEFORE: a TTL is known to the millisecond only.
same_picture() {
  local key sum ends after
  after=$(picture)
  [[ $(cut -d' ' -f1,2 <<<"$1") == "$(cut -d' ' -f1,2 <<<"$after")" ]] || return
  while read -r key sum ends <&3 && read -r _ _ now <&4; do
    ((now - ends < 50 && ends - now < 50)) || return
  done 3<<<"$1" 4<<<"$after"
}

# refused COMMAND...: each, a word list, is refused as another kind, with the right reply, and nothing was written. A
# renewal only says that nobody has such a lock; the program asks `inspect` for the rest.
refused() {
  local before type command
  before=$(picture)
  type=$(redis srv type "$lock")
  for command in "$@"; do
    # shellcheck disable=SC2086 # a word list
    run -0 $command
    [[ $command == renew* && $output == other-owner ]] || [[ ${lines[0]} == other-kind && ${lines[1]} == "$type" && ${lines[3]} == "$guess" ]] || {
      echo "$what as $layout ${mode:-}: $command: $output"
      return 1
    }
  done
  same_picture "$before" || {
    echo "$what as $layout ${mode:-} was touched: $before"
    return 1
  }
}

# refused_by_all LAYOUT [MODE]
refused_by_all() {
  use_lock "$lock" "$@"
  local what guess resize
  for what in "${FOREIGN[@]}"; do
    make "$what"
    resize=1
    refused "acquire $UUID:1 5000 h $UUID:2" "enqueue $UUID:1 5000 h" "renew $UUID:1 5000" "release $UUID:1 h" \
      "force_unlock $OWNER" inspect
  done
}

@test "other programs' keys are not plain locks" { refused_by_all plain; }
@test "other programs' keys are not read-write locks, for a reader" { refused_by_all read_write read; }
@test "other programs' keys are not read-write locks, for a writer" { refused_by_all read_write write; }
@test "other programs' keys are not semaphores" { refused_by_all semaphore 2; }

@test "the keys of Redisson and similar programs are locks" {
  local owner
  # RLock, a transaction, node-redisson, rlock.
  for owner in "$UUID:31" "$UUID:31:0123456789abcdef0123456789abcdef" "$UUID:$UUID" "$UUID:4711"; do
    redis srv del "$lock"
    redis srv hset "$lock" "$owner" 3
    redis srv pexpire "$lock" 60000
    use_lock "$lock" plain
    run -0 acquire "$UUID:1" 5000 h ''
    [[ ${lines[0]} == held ]]
    run -0 force_unlock "$owner"
    [[ ${lines[0]} == released && $(redis srv exists "$lock") == 0 ]]

    redis srv hset "$lock" mode write "$owner:write" 1 "$owner" 2
    redis srv pexpire "$lock" 60000
    use_lock "$lock" read_write write
    run -0 acquire "$UUID:1" 5000 h ''
    [[ ${lines[0]} == held ]]
  done
}

@test "a semaphore is proven by Redisson's permits, as bytes or as old versions wrote them, or by our mark" {
  local permit
  use_lock "$lock" semaphore 2
  for permit in 0123456789abcdef 0123456789abcdef0123456789abcdef; do
    redis srv set "$lock" 1
    redis srv zadd "{$lock}:timeout" 9000000000000 "$permit"
    run -0 acquire "$UUID:1" 5000 h ''
    [[ ${lines[0]} == granted ]]
    redis srv flushall
  done
  acquire "$UUID:1" 5000 h ''
  release "$UUID:1" h
  run -0 acquire "$UUID:1" 5000 h ''
  [[ ${lines[0]} == granted ]]
}

@test "rlock's mark proves nothing about a key that was written later" {
  use_lock "$lock" semaphore 2
  acquire "$UUID:1" 5000 h ''
  release "$UUID:1" h
  local what guess=number value
  for value in '1 px 20000' 2; do
    redis srv del "$lock"
    # shellcheck disable=SC2086 # words
    redis srv set "$lock" $value
    what=$value
    refused "acquire $UUID:1 5000 h $UUID:2"
    use_lock "$lock" plain
    refused "acquire $UUID:1 5000 h $UUID:2"
    use_lock "$lock" semaphore 2
  done
}

@test "a bare number is a semaphore for a request that says so, and for its waiters, unless it expires" {
  cd "$BATS_TEST_TMPDIR" || return
  local permit
  use_lock "$lock" semaphore 2
  redis srv set "$lock" 2
  resize=2 run -0 acquire "$UUID:1" 5000 h ''
  [[ ${lines[0]} == granted && $(redis srv get "$lock") == 1 ]]
  release "$UUID:1" h
  # A Java program holds all slots, and releases them.
  listeners=()
  listen "$UUID:2"
  redis srv set "$lock" 0
  redis srv zadd "{$lock}:timeout" 9000000000000 0123456789abcdef 9000000000000 1123456789abcdef
  run -0 enqueue "$UUID:2" 5000 h2
  [[ ${lines[0]} == held ]]
  redis srv del "{$lock}:timeout"
  redis srv set "$lock" 2
  run -0 acquire "$UUID:3" 5000 h ''
  [[ ${lines[0]} == other-kind ]]
  run -0 enqueue "$UUID:2" 5000 h2
  kill "${listeners[@]}"
  [[ ${lines[0]} == granted ]]
  release "$UUID:2" h2
  redis srv set "$lock" 1 px 20000
  resize=3 run -0 acquire "$UUID:1" 5000 h ''
  [[ ${lines[0]} == other-kind && $(redis srv get "$lock") == 1 ]]
}

@test "a lock of rlock stays one, even if another program changes its TTL or adds fields, and only rlock's field is deleted" {
  acquire "$UUID:1" 30000 h ''
  redis srv persist "$lock"
  run -0 renew "$UUID:1" 30000
  [[ ${lines[0]} == renewed ]]
  assert_bounded "$lock"
  redis srv hset "$lock" "c2E9" "$OWNER" "c2E9:$OWNER:lock_count" 1
  run -0 renew "$UUID:1" 30000
  [[ ${lines[0]} == renewed ]]
  run -0 acquire "$UUID:2" 30000 h ''
  [[ ${lines[0]} == other-kind ]]
  run -0 release "$UUID:1" h
  [[ ${lines[0]} == released && $(redis srv hkeys "$lock" | xargs) == "c2E9 c2E9:$OWNER:lock_count" ]]
}

@test "permits of a deleted semaphore prove nothing about a number in its place" {
  use_lock "$lock" semaphore 1
  acquire 00000001-0000-4000-8000-000000000000:1 30000 h ''
  redis srv set "$lock" 7
  resize=1 run -0 acquire 00000002-0000-4000-8000-000000000000:1 30000 h2 ''
  [[ ${lines[0]} == other-kind && ${lines[1]} == string && $(redis srv get "$lock") == 7 ]]
  redis srv del "$lock" # it never expires
}
