#!/usr/bin/env bats
# rlock release: whose request it accepts, and whom it wakes.

load ../lib/common

setup_file() { redis_start srv; }
setup() {
  RLOCK_URL=$(redis_url srv)
  export RLOCK_URL
  cd "$BATS_TEST_TMPDIR" || return
}
teardown() { assert_clean srv; }
teardown_file() { redis_stop srv; }

FOREIGN=11111111-2222-3333-4444-555555555555:1

take() { rlock acquire --lease 30s "$1"; }
holder() { redis srv hgetall "$1"; }
waiters() { [[ $(listeners_on srv "redisson_lock__channel:{$1}") == "$2" ]]; }

@test "the lock is free afterwards, and only the token is left" {
  run -0 rlock release a --owner "$(take a)"
  [[ $(redis srv exists a 'rlock:holder:{a}') == 0 && $(redis srv exists 'redisson_lock_token:{a}') == 1 ]]
}

@test "RLOCK_OWNER is used, and --owner takes precedence" {
  RLOCK_OWNER=$(take a) run -0 rlock release a
  RLOCK_OWNER=$FOREIGN run -0 rlock release a --owner "$(take a)"
  run -0 rlock status --names a
  [[ -z $output ]]
}

@test "no owner is a usage error" {
  local owner
  owner=$(take a)
  run -64 --separate-stderr rlock release a
  assert_says owner
  [[ $(holder a) == "$owner"$'\n1' ]]
  rlock release a --owner "$owner"
}

@test "a free lock: 76" {
  run -76 --separate-stderr rlock release a --owner "$FOREIGN"
  assert_says 'not held'
}

@test "a second release: 76" {
  local owner
  owner=$(take a)
  rlock release a --owner "$owner"
  run -76 --separate-stderr rlock release a --owner "$owner"
  assert_says 'not held'
}

@test "another owner: 76, and nothing is changed" {
  local owner description
  owner=$(take a)
  description=$(holder 'rlock:holder:{a}')
  run -76 --separate-stderr rlock release a --owner "$FOREIGN"
  assert_says 'another owner'
  [[ $(holder a) == "$owner"$'\n1' && $(holder 'rlock:holder:{a}') == "$description" ]]
  rlock release a --owner "$owner"
}

@test "the owner id of another lock is another owner" {
  local a b
  a=$(take a)
  b=$(take b)
  run -76 rlock release a --owner "$b"
  rlock release a --owner "$a"
  rlock release b --owner "$b"
}

@test "a lock that Redisson granted is released by its owner id" {
  redis srv hset a "$FOREIGN" 1
  run -0 rlock release a --owner "$FOREIGN"
  [[ $(redis srv exists a) == 0 ]]
}

@test "a waiter is woken long before the lease ends" {
  local owner pid
  owner=$(rlock acquire --lease 10m a)
  "$RLOCK" run a -- touch started 3>&- &
  pid=$!
  wait_until waiters a 1
  rlock release a --owner "$owner"
  wait_until test -e started
  wait "$pid"
}

@test "a release publishes a single 0, a refused one nothing" {
  local owner pid
  redis-cli -s "$srv_sock" subscribe 'redisson_lock__channel:{a}' >heard 3>&- &
  pid=$!
  wait_until waiters a 1
  owner=$(take a)
  run -76 rlock release a --owner "$FOREIGN"
  rlock release a --owner "$owner"
  run -76 rlock release a --owner "$owner"
  redis srv publish 'redisson_lock__channel:{a}' end
  wait_until grep -qx end heard
  kill "$pid"
  [[ $(grep -A2 -x message heard | grep -cx 0) == 1 ]]
}

@test "a string, and somebody else's read-write lock, are refused with 76 and kept" {
  redis srv set s text px 60000
  redis srv hset rw mode write "$FOREIGN:write" 1
  redis srv pexpire rw 60000
  run -76 rlock release s --owner "$FOREIGN"
  run -76 rlock release rw --owner other:1
  [[ $(redis srv get s) == text && $(redis srv hlen rw) == 2 ]]
  redis srv del s rw
}
