#!/usr/bin/env bats
# rlock release: whose request it accepts, and whom it wakes.

load ../lib/common
load ../lib/server

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
