# rlock and Redisson on one lock that is not on one server: Redis Cluster, Sentinel, and a majority of three servers.

load ../lib/common
load ../lib/cluster
load ../lib/sentinel
load ../lib/quorum
load interop

setup_file() {
  export REDISSON_MISSING
  REDISSON_MISSING=$(redisson_missing)
  [[ -z $REDISSON_MISSING ]] || {
    echo "$REDISSON_MISSING" >&2
    export BATS_TEST_TIMEOUT=
    [[ -z ${CI:-} ]]
  }
}
teardown_file() { redisson_stop; }

setup() {
  [[ -z $REDISSON_MISSING ]] || skip "$REDISSON_MISSING"
  name=place-$BATS_TEST_NUMBER.
  channel="redisson_lock__channel:{$name}"
  # Each test has its own servers, and so its own Redisson.
  export JVM=$BATS_TEST_NUMBER
}
teardown() {
  interop_teardown
  redisson_stop
  rm -rf "$BATS_FILE_TMPDIR/jvm$JVM"
  cluster_stop
  [[ ${#SENTINELS[@]} == 0 ]] || sentinels_stop
  [[ -z ${QUORUM:-} ]] || quorum_stop
}

# they_take_turns LISTENING [PREFIX]: exclusion, wake-ups, foreign releases and force, each way. LISTENING: how many
# clients wait for a message.
they_take_turns() {
  local listening=$1 prefix=${2:-} at
  redisson a "${prefix}lock" "$name"
  run -75 rlock run -n "$name" -- true
  run -76 rlock release "$name" --owner 11111111-2222-3333-4444-555555555555:7
  run -0 rlock status "$name"
  assert_says 'not taken by rlock'
  start_job rlock
  wait_until "$listening" 1
  not job_runs rlock
  at=$(now_ms)
  redisson a "${prefix}unlock" "$name"
  job_wakes rlock "$at"

  not redisson b "${prefix}trylock" "$name" 0 30000 || [[ $(reply value) == false ]]
  redisson_send a "${prefix}lock" "$name"
  wait_until "$listening" 1
  at=$(now_ms)
  end_job rlock
  redisson_wakes a "$at"
  start_job rlock
  wait_until "$listening" 1
  rlock force-unlock --yes --now "$name"
  wait_until job_runs rlock
  end_job rlock
}

on_shard() { [[ $(redis c1 pubsub shardnumsub "$channel" | tail -n 1) == "$1" ]]; }
@test "Redis Cluster: they exclude and wake each other, by SPUBLISH" {
  [[ $(redis-server --version) != *v=6.* ]] || skip 'SPUBLISH is not there before Redis 7'
  needs_redisson 3.22.0
  cluster_start 3
  name=$(cluster_name c1)
  channel="redisson_lock__channel:{$name}"
  export RLOCK_URL
  RLOCK_URL=$(cluster_url)
  redisson_start "$RLOCK_URL"
  they_take_turns on_shard
}

on_master() { [[ $(redis m pubsub numsub "$channel" | tail -n 1) == "$1" ]]; }
@test "Sentinel: they exclude and wake each other" {
  export RLOCK_URL
  sentinels_start 1 2
  RLOCK_URL=$(sentinels_url)
  redisson_start "$RLOCK_URL"
  they_take_turns on_master
}

# A majority has a listener.
on_majority() {
  local i number=0
  for ((i = 1; i <= QUORUM; i++)); do
    [[ $(redis "s$i" pubsub numsub "$channel" | tail -n 1) == 0 ]] || number=$((number + 1))
  done
  ((number >= $1))
}
@test "RedissonRedLock on three servers is the same lock as rlock's with these addresses" {
  local i addresses=''
  quorum_start 3
  for i in 1 2 3; do
    local port=''
    redis_listen "s$i"
    addresses+="${addresses:+ }redis://127.0.0.1:$port"
  done
  redisson_start "$addresses"
  they_take_turns on_majority red-

  # It has another owner id on each server, but is one holder.
  redisson a red-lock "$name"
  [[ $(on_servers hvals "$name" | paste -sd' ') == '1 1 1' && $(on_servers hkeys "$name" | sort -u | wc -l) == 3 ]]
  rlock status --is-held "$name"
  run -0 rlock status "$name"
  [[ $output != *contested* ]]
  rlock force-unlock --yes "$name"
  [[ $(held_on "$name") == 0 ]]

  # Neither has a majority beside the other's, even if that is two of three.
  redisson a red-lock "$name"
  redis s3 del "$name"
  run -75 rlock run -n "$name" -- true
  [[ $(held_on "$name") == 2 ]]
  redisson a red-unlock "$name"
  start_job rlock
  wait_until job_runs rlock
  redis s1 del "$name"
  [[ $(value a red-trylock "$name" 0 30000) == false ]]
  end_job rlock
}
