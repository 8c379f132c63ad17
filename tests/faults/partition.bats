# The network is cut between the master, with jobs beside it, and its replicas, with others. Two network namespaces with
# a cable between them. PARTITIONS=N sets how often (once in a run of all tests), LOCKS=N the number of locks.

load ../lib/common

setup() {
  [[ $(id -u) == 0 ]] && unshare -n true 2>/dev/null || skip 'only root can cut a network'
  source "$TESTS_DIR/lib/sentinel.bash"
  cd "$BATS_TEST_TMPDIR" || return
  sides
}

teardown() {
  sentinels_stop
  [[ -z ${here:-} ]] || kill "$here" "$there"
}

# Two networks, $here and $there: the pid of a process that is in it. here.sh and there.sh run a command in it.
sides() {
  local side
  for side in here there; do
    unshare -n sleep 10000 3>&- &
    printf -v $side '%s' "$!"
    is_apart() { [[ $(readlink "/proc/${!side}/ns/net") != $(readlink /proc/self/ns/net) ]]; }
    wait_until is_apart
    printf '#!/bin/sh\nexec nsenter -t %s -n -- "$@"\n' "${!side}" >$side.sh
    printf '#!/bin/sh\nexec nsenter -t %s -n -- "%s" "$@"\n' "${!side}" "$REDIS_SERVER" >$side-redis.sh
    chmod +x $side.sh $side-redis.sh
  done
  ./here.sh ip link add cable type veth peer name cable netns "$there"
  ./here.sh ip addr add 192.0.2.1/24 dev cable
  ./there.sh ip addr add 192.0.2.2/24 dev cable
  for side in here there; do ./$side.sh ip link set lo up && ./$side.sh ip link set cable up; done
  for side in m s1; do printf -v "${side}_host" 192.0.2.1 && printf -v "${side}_server" '%s' "$PWD/here-redis.sh"; done
  for side in r1 r2 s2 s3; do printf -v "${side}_host" 192.0.2.2 && printf -v "${side}_server" '%s' "$PWD/there-redis.sh"; done
}
cut_network() { ./here.sh ip link set cable down; }
mend_network() { ./here.sh ip link set cable up; }

lines_are() { [[ $(cat log 2>/dev/null | grep -c "^$1") -ge $2 ]]; }
other_master() { [[ $(master_now s2) != m ]]; }
old_one_is_replica() { [[ $(redis m role) == slave* ]]; }
lost() { grep -c '^74$' statuses || true; }

# job SIDE OPTION ... LOCK LETTER: records that it has started; with LETTER a it runs
# until `go` is there, with b for a moment.
job() {
  local side=$1 letter=${*: -1} lock=${*: -2:1} what=:
  [[ $letter != a ]] || what='until [[ -e go ]]; do sleep 0.5; done'
  "./$side.sh" "$RLOCK" run -q --lease 5s "${@:2:$#-3}" "$lock" -- bash -c "exec 9>>place-$lock; flock -n 9 || echo overlap $lock >>log; echo \$RLOCK_TOKEN >token-$lock.$letter; echo begun-$letter >>log; $what" 3>&- &
  jobs+=($!)
}

# partition LOCKS OPTION ...: each lock is held here, with these options, and waited for there; the cable is cut.
partition() {
  local locks=$1 i
  shift
  jobs=()
  rm -f log place* token* go statuses
  RLOCK_URL=$(sentinels_url)
  export RLOCK_URL
  for ((i = 1; i <= locks; i++)); do job here "$@" "job$i" a; done
  wait_until lines_are begun-a "$locks"
  for ((i = 1; i <= locks; i++)); do job there -w 5m "job$i" b; done
  wait_until queued_all r1 "$locks"
  wait_until queued_all r2 "$locks"
  cut_network
  wait_until other_master
}

ends() {
  local pid status
  for pid in "${jobs[@]}"; do
    status=0
    wait "$pid" || status=$?
    echo "$status" >>statuses
  done
}

# Servers with a safe failover: the delay is longer than the lag, a second and the lease together (docs/servers.md).
safe_servers() {
  local name
  SENTINELS=() SENTINEL_REPLICAS=() SENTINEL_DOWN_AFTER=8000
  sentinels_start 2 3
  for name in m r1 r2; do redis $name config set min-replicas-to-write 1 min-replicas-max-lag 1 >/dev/null; done
}

@test "a master that is cut off grants nothing: with replicas that acknowledge, never two at once" {
  local round locks=${LOCKS:-5} i
  for ((round = 1; round <= ${PARTITIONS:-1}; round++)); do
    safe_servers
    partition "$locks" --wait-replicas 2
    # The old master does not grant the lock to a newcomer here, with the Sentinel that is cut off, either.
    RLOCK_URL=$(sentinels_url s1) run -69 ./here.sh "$RLOCK" run -n free -- touch ran
    [[ ! -e ran ]]
    wait_until lines_are begun-b "$locks"
    touch go
    ends
    echo "# $locks locks: overlaps $(grep -c ^overlap log || true), lost $(lost)" >&3
    run ! grep overlap log
    [[ $(sort statuses | uniq -c | xargs) == "$locks 0 $locks 74" ]]
    for ((i = 1; i <= locks; i++)); do (($(cat "token-job$i.a") < $(cat "token-job$i.b"))); done
    mend_network
    wait_until old_one_is_replica
    wait_until ./here.sh "$RLOCK" run -q -n free -- true
    sentinels_stop
  done
}

@test "without them, two may run at once: each that was overtaken exits with 74, and its token is lower" {
  local round locks=${LOCKS:-5} i
  for ((round = 1; round <= ${PARTITIONS:-1}; round++)); do
    SENTINELS=() SENTINEL_REPLICAS=()
    sentinels_start 2 3
    partition "$locks"
    wait_until lines_are begun-b "$locks"
    mend_network
    ends
    echo "# $locks locks: overlaps $(grep -c ^overlap log || true), lost $(lost)" >&3
    [[ $(sort statuses | uniq -c | xargs) == "$locks 0 $locks 74" ]]
    for ((i = 1; i <= locks; i++)); do (($(cat "token-job$i.a") < $(cat "token-job$i.b"))); done
    sentinels_stop
  done
}
