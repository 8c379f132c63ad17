# rlock and Redisson on one lock that is not on one server: Redis Cluster, Sentinel, and a majority of three servers.

load ../lib/common
load ../lib/cluster
load ../lib/sentinel
load ../lib/quorum
load interop

setup_file() { find_redisson; }
teardown_file() { redisson_stop; }

setup() {
  [[ -z $REDISSON_MISSING ]] || skip "$REDISSON_MISSING"
  use_kind plain
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

@test "Redis Cluster: they exclude and wake each other, by SPUBLISH" {
  [[ $(redis-server --version) != *v=6.* ]] || skip 'SPUBLISH is not there before Redis 7'
  needs_redisson 3.22.0
  cluster_start 3
  use_kind plain "$(cluster_name c1)"
  export RLOCK_URL
  RLOCK_URL=$(cluster_url)
  redisson_start "$RLOCK_URL"
  waiters() { [[ $(redis c1 pubsub shardnumsub "$channel" | tail -n 1) == "$1" ]]; }
  jobs_waiting() { redis c1 zcard "rlock:queue:$tagged"; }
  they_take_turns
}

@test "Sentinel: they exclude and wake each other" {
  export RLOCK_URL
  sentinels_start 1 2
  RLOCK_URL=$(sentinels_url)
  redisson_start "$RLOCK_URL"
  waiters() { [[ $(redis m pubsub numsub "$channel" | tail -n 1) == "$1" ]]; }
  jobs_waiting() { redis m zcard "rlock:queue:$tagged"; }
  they_take_turns
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
  # Redisson waits at one server after the other, rlock at all.
  waiting_at() { on_servers pubsub numsub "$channel" | grep -cx '[1-9]'; }
  waiters() { (($(waiting_at) > 0)); }
  # There is no queue.
  jobs_waiting() { echo 0; }
  jobs_wait() { (($(waiting_at) > 1)); }
  use_kind red
  they_take_turns

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
