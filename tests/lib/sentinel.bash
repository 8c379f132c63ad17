# A master with replicas, watched by Sentinels. Source it after common.
#
#   sentinels_start [REPLICAS [SENTINELS]]  one master (m), replicas (r1 ...), Sentinels (s1 ...): 2 and 3 by default;
#                                           each as redis_start makes them, with their ports in $m_port, $r1_port, $s1_port
#   sentinels_url [SENTINEL ...]            the address for rlock: of all Sentinels, or of these
#   sentinel_run NAME                       one that was stopped, again
#   master_now                              the name of the server that Sentinel s1 calls the master: m, r1 ...
#   sentinels_stop
#
# The first job does not have to wait (accept_epoch); after a failover, all have to, except with RLOCK_EPOCH_GUARD=false.
# A server that does not answer for $SENTINEL_DOWN_AFTER (500) ms is down. A failover is over after $SENTINEL_FAILOVER (3000)
# ms, even if a replica does not follow.

SENTINEL_REPLICAS=() SENTINELS=()

sentinel_start() {
  local name=$1 dir
  dir=$(redis_folder)/$name
  mkdir -p "$dir"
  local port=${name}_port
  # One that starts again stays where it was.
  [[ -n ${!port:-} ]] || printf -v "$port" '%s' "$(redis_free_port)"
  cat >"$dir/sentinel.conf" <<CONF
port ${!port}
bind 127.0.0.1
dir $dir
logfile $dir/log
unixsocket $dir/s
protected-mode no
sentinel monitor mymaster 127.0.0.1 $m_port $((${#SENTINELS[@]} / 2 + 1))
sentinel down-after-milliseconds mymaster ${SENTINEL_DOWN_AFTER:-500}
sentinel failover-timeout mymaster ${SENTINEL_FAILOVER:-3000}
CONF
  [[ ${TEST_OVER:-} != acl ]] || printf 'sentinel auth-%s mymaster admin\n' user pass >>"$dir/sentinel.conf"
  printf -v "${name}_dir" '%s' "$dir"
  printf -v "${name}_sock" '%s' "$dir/s"
  sentinel_run "$name"
}
# With the state that it had when it was stopped.
sentinel_run() {
  local dir=${1}_dir
  "$REDIS_SERVER" "${!dir}/sentinel.conf" --sentinel </dev/null >/dev/null 2>&1 3>&- &
  printf -v "${1}_pid" '%s' "$!"
  wait_until redis_answers "$1"
}

sentinels_start() {
  local replicas=${1:-2} sentinels=${2:-3} i name
  m_port=$(redis_free_port)
  redis_start m --port "$m_port" --bind 127.0.0.1 --protected-mode no
  for ((i = 1; i <= replicas; i++)); do
    name=r$i
    SENTINEL_REPLICAS+=("$name")
    printf -v "${name}_port" '%s' "$(redis_free_port)"
    local port=${name}_port
    redis_start "$name" --port "${!port}" --bind 127.0.0.1 --protected-mode no --replicaof "127.0.0.1 $m_port"
    wait_until in_step "$name"
  done
  for ((i = 1; i <= sentinels; i++)); do SENTINELS+=("s$i"); done
  accept_epoch m
  for name in "${SENTINELS[@]}"; do sentinel_start "$name"; done
  for name in "${SENTINELS[@]}"; do wait_until knows_all "$name" "$replicas" "$((sentinels - 1))"; done
}

in_step() { [[ $(redis "$1" role) == *connected* ]]; }

# knows_all SENTINEL REPLICAS OTHERS
knows_all() {
  local known
  known=$(redis "$1" sentinel master mymaster | paste -sd' ')
  [[ $known == *"num-slaves $2 num-other-sentinels $3 "* ]]
}

sentinels_url() {
  local name port urls=
  for name in "${@:-${SENTINELS[@]}}"; do
    port=${name}_port
    urls+=,127.0.0.1:${!port}
  done
  printf 'redis+sentinel://%s/mymaster' "${urls#,}"
}

master_now() {
  local port name at
  port=$(redis "${1:-s1}" sentinel get-master-addr-by-name mymaster | sed -n 2p)
  for name in m "${SENTINEL_REPLICAS[@]}"; do
    at=${name}_port
    [[ ${!at} != "$port" ]] || echo "$name"
  done
}

sentinels_stop() {
  local name
  for name in "${SENTINELS[@]}" "${SENTINEL_REPLICAS[@]}" m; do redis_stop "$name"; done
}
