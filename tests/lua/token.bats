#!/usr/bin/env bats
# The fencing token that lua/10_acquire.lua gives with every grant: it only grows.

load ../lib/common
load ../lib/fault_scripts

setup_file() { start_script_server; }
setup() { fresh_lock; }
teardown() { assert_mortal; }
teardown_file() { redis_stop srv; }

# grant: a new owner takes the lock; its token is in $token, the one before in $before.
grants=0
grant() {
  before=${token:-0}
  ((++grants))
  token=$(acquire "owner-$grants" 5000 hold '' | sed -n 3p)
  [[ $token =~ ^[0-9]{16}$ ]]
}

@test "the first token is the server's clock in microseconds" {
  grant
  local now
  now=$(redis srv time | head -n 1)
  ((token / 1000000 <= now && token / 1000000 >= now - 5))
  [[ $(redis srv get "$token_key") == "$token" ]]
}

@test "tokens grow over grants" {
  for _ in 1 2 3 4 5; do
    grant
    ((token > before))
    release "owner-$grants" hold
  done
}

@test "tokens grow even if the lock was taken by force" {
  grant
  force_unlock "owner-$grants"
  grant
  ((token > before))
}

@test "tokens grow even if the lock's key was deleted" {
  grant
  redis srv del "$lock"
  grant
  ((token > before))
}

@test "tokens grow even if the token's key was deleted" {
  grant
  redis srv del "$lock" "$token_key"
  grant
  ((token > before))
}

@test "a token ahead of the clock, as after the clock stepped back, is followed by the next number" {
  redis srv set "$token_key" 2000000000000000 px 60000
  grant
  [[ $token == 2000000000000001 ]]
  release "owner-$grants" hold
  grant
  [[ $token == 2000000000000002 ]]
}

@test "a token from a clock that was wrong by decades is followed, too" {
  redis srv set "$token_key" 4000000000000000
  grant
  [[ $token == 4000000000000001 ]]
}

@test "tokens grow on a server whose clock was set back by an hour" {
  not_over tls sentinel 'the test has a server of its own'
  redis_start past --appendonly yes --appendfsync always
  srv_sock=$past_sock
  grant
  release "owner-$grants" hold
  redis_stop past
  clock_step -3600000
  redis_start_with_clock past --appendonly yes
  (($(redis srv time | head -n 1) * 1000000 + 3000000000 < token))
  grant
  redis_stop past
  ((token == before + 1))
  srv_sock=$srv_dir/s # for teardown
}

@test "a token that Redisson has incremented is followed by a larger one" {
  grant
  release "owner-$grants" hold
  redis srv incrby "$token_key" 100000000000
  grant
  ((token == before + 100000000001))
}

@test "the token's key never expires, because RFencedLock may count in it, and would start again at 1" {
  grant
  [[ $(redis srv pttl "$token_key") == -1 ]]
  redis srv incr "$token_key"
  release "owner-$grants" hold
  [[ $(redis srv pttl "$token_key") == -1 && $(redis srv incr "$token_key") == $((token + 2)) ]]
}

@test "a TTL of the token's key is removed, no matter who has set it" {
  redis srv set "$token_key" 41 px 60000
  grant
  [[ $(redis srv pttl "$token_key") == -1 ]]
  redis srv pexpire "$token_key" 60000
  release "owner-$grants" hold
  acquire waits 5000 hold-w ''
  [[ $(redis srv pttl "$token_key") == -1 ]]
}

@test "garbage in the token's key is refused, and nothing is changed" {
  local garbage
  for garbage in abc '' '12 34' 5200000000000000 9007199254740991 9007199254740993 1e300 inf nan -nan; do
    redis srv set "$token_key" "$garbage" px 60000
    run -0 acquire owner-1 5000 hold-1 ''
    [[ $output == no-token ]] || {
      echo "with $garbage: $output"
      return 1
    }
    [[ $(redis srv get "$token_key") == "$garbage" && $(redis srv dbsize) == 1 ]]
  done
}

@test "a holder without a known token is given the last one granted" {
  grant
  redis srv hdel "$holder" token
  run -0 acquire owner-x 5000 hold-x owner-1
  [[ ${lines[2]} == "$token" ]]
  redis srv hset "$holder" token 9007199254740000
  run -0 acquire owner-y 5000 hold-y owner-1
  [[ ${lines[2]} == "$token" ]]
}
