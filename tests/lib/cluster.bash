# A Redis Cluster on loopback ports. Source it after common.
#
#   cluster_start [MASTERS [REPLICAS [OPTION VALUE ...]]]   masters c1 ... with equal shares of the slots, 3 by default;
#                               each with REPLICAS replicas, 0 by default: those of c1 are c1r1 ...; as redis_start makes
#                               them, with their ports in $c1_port, $c1r1_port. $CLUSTER_MASTERS, $CLUSTER_NODES
#   cluster_use [...]           the same, and rlock uses it from now on
#   cluster_node NAME [OPTION VALUE ...]   one more server, which knows no other and has no slot
#   cluster_join NAME           c1 meets it, and all know it
#   cluster_url [NAME ...]      the address for rlock: of all masters, or of these servers
#   cluster_name NAME [NTH]     the name of a lock that this server keeps, by the order of cluster_start
#   cluster_move SLOT FROM TO   the slot, with its keys, as redis-cli moves them; with ATOMIC_MOVES=1 as Valkey 9 does by itself
#   cluster_cut_off NAME        cuts it off from the cluster, so its list of slots does not change. It is at another port,
#                               and has no slot
#   cluster_stop
#
# A server that does not answer for a second is down. With CLUSTER_SCHEME=rediss+cluster all of them, and the address, use
# TLS, with the certificate "server" of the CA "ca" in tls.bash.

CLUSTER_MASTERS=() CLUSTER_NODES=() CLUSTER_SCHEME=redis+cluster

cluster_node() {
  local name=$1 port=${1}_port
  shift
  [[ -n ${!port:-} ]] || printf -v "$port" '%s' "$(redis_free_port)"
  CLUSTER_NODES+=("$name")
  local listen=(--port "${!port}")
  if [[ $CLUSTER_SCHEME == rediss* ]]; then
    listen=(--tls-port "${!port}" --tls-cluster yes --tls-replication yes --tls-auth-clients no --tls-ca-cert-file
      "$TLS_DIR/ca.crt" --tls-cert-file "$TLS_DIR/server.crt" --tls-key-file "$TLS_DIR/server.key")
  fi
  redis_start "$name" "${listen[@]}" --cluster-enabled yes --cluster-config-file nodes.conf \
    --cluster-node-timeout 1000 --cluster-allow-replica-migration no "${CLUSTER_OPTIONS[@]}" "$@"
}

cluster_id() { redis "$1" cluster myid; }
cluster_knows() { [[ $(redis "$1" cluster nodes | grep -cE ' (myself,)?(master|slave) .* connected') -ge $2 ]]; }
cluster_ok() { [[ $(redis "$1" cluster info) == *cluster_state:ok* ]]; }
# All of them agree on which server keeps what.
cluster_view() { redis "$1" cluster slots | grep -vE '^(|hostname|127\..*)$' | paste -sd' '; }
cluster_agrees() {
  local name view
  view=$(cluster_view c1)
  for name in "${CLUSTER_MASTERS[@]}"; do [[ $(cluster_view "$name") == "$view" ]] || return 1; done
}

cluster_join() {
  local port=${1}_port name
  redis c1 cluster meet 127.0.0.1 "${!port}" >/dev/null
  for name in "${CLUSTER_NODES[@]}"; do wait_until cluster_knows "$name" "${#CLUSTER_NODES[@]}"; done
}

cluster_start() {
  local masters=${1:-3} replicas=${2:-0} CLUSTER_OPTIONS=("${@:3}") i j port
  for ((i = 1; i <= masters; i++)); do
    CLUSTER_MASTERS+=("c$i")
    cluster_node "c$i"
    redis "c$i" cluster addslots $(seq $((16384 * (i - 1) / masters)) $((16384 * i / masters - 1))) >/dev/null
    redis "c$i" cluster set-config-epoch "$i" >/dev/null
  done
  for ((i = 1; i <= masters; i++)); do
    for ((j = 1; j <= replicas; j++)); do cluster_node "c${i}r$j"; done
  done
  for i in "${CLUSTER_NODES[@]:1}"; do
    port=${i}_port
    redis c1 cluster meet 127.0.0.1 "${!port}" >/dev/null
  done
  for i in "${CLUSTER_NODES[@]}"; do wait_until cluster_knows "$i" "${#CLUSTER_NODES[@]}"; done
  for ((i = 1; i <= masters; i++)); do
    for ((j = 1; j <= replicas; j++)); do
      redis "c${i}r$j" cluster replicate "$(cluster_id "c$i")" >/dev/null
      wait_until cluster_in_step "c${i}r$j"
    done
  done
  for i in "${CLUSTER_NODES[@]}"; do wait_until cluster_ok "$i"; done
  wait_until cluster_agrees
}
cluster_use() {
  cluster_start "$@"
  RLOCK_URL=$(cluster_url "${CLUSTER_MASTERS[@]}")
  export RLOCK_URL
}

cluster_in_step() { [[ $(redis "$1" role) == *connected* ]]; }

cluster_url() {
  local name port urls=
  for name in "${@:-${CLUSTER_MASTERS[@]}}"; do
    port=${name}_port
    urls+=,127.0.0.1:${!port}
  done
  printf '%s://%s' "$CLUSTER_SCHEME" "${urls#,}"
}

cluster_slot() { redis c1 cluster keyslot "$1"; }

cluster_name() {
  local nth=${2:-1} masters=${#CLUSTER_MASTERS[@]} i slot which=${1#c}
  for ((i = 1; ; i++)); do
    slot=$(cluster_slot "job$i")
    ((slot >= 16384 * (which - 1) / masters && slot < 16384 * which / masters)) || continue
    ((--nth > 0)) || break
  done
  printf 'job%s' "$i"
}

cluster_begin_move() {
  redis "$3" cluster setslot "$1" importing "$(cluster_id "$2")" >/dev/null
  redis "$2" cluster setslot "$1" migrating "$(cluster_id "$3")" >/dev/null
}
cluster_move_keys() {
  local key port=${3}_port
  while IFS= read -r key; do
    [[ -z $key ]] || redis "$2" migrate 127.0.0.1 "${!port}" "$key" 0 5000 ${REDISCLI_AUTH:+auth "$REDISCLI_AUTH"} >/dev/null
  done < <(redis "$2" cluster getkeysinslot "$1" 100)
}
# Once each, as redis-cli does: a server that is told again drops all who listen to channels of the slot.
cluster_end_move() {
  local id name
  id=$(cluster_id "$3")
  for name in $(printf '%s\n' "$3" "$2" "${CLUSTER_MASTERS[@]}" | awk '!seen[$0]++'); do
    redis "$name" cluster setslot "$1" node "$id" >/dev/null
  done
}
cluster_keeps() {
  redis "$1" cluster nodes | awk -v slot="$2" '/myself/ { for (i = 9; i <= NF; i++) {
    split($i "-" $i, ends, "-"); if (slot >= ends[1] && slot <= ends[2]) found = 1 } } END { exit !found }'
}
cluster_move() {
  if [[ -n ${ATOMIC_MOVES:-} ]]; then
    [[ $(redis "$2" cluster migrateslots slotsrange "$1" "$1" node "$(cluster_id "$3")") == OK ]]
    wait_until cluster_keeps "$3" "$1"
    wait_until cluster_agrees
    return
  fi
  cluster_begin_move "$@"
  cluster_move_keys "$@"
  cluster_end_move "$@"
}

# It starts with the configuration that it has written, except for the ports at which the others communicate, which do
# not know its own.
cluster_cut_off() {
  local dir=${1}_dir
  redis_stop "$1"
  sed -i -E '/myself/!s/@[0-9]+/@1/' "${!dir}/nodes.conf"
  unset "${1}_port"
  cluster_node "$1"
}

cluster_stop() {
  local name
  for name in "${CLUSTER_NODES[@]}"; do redis_stop "$name"; done
}

# all_clean: each master; held_on NODE NAME; scripts_run NODE: how many scripts its clients have run.
all_clean() {
  local name
  for name in "${CLUSTER_MASTERS[@]}"; do assert_clean "$name"; done
}
held_on() { [[ $(redis "$1" exists "$2") == 1 ]]; }
scripts_run() { redis "$1" info commandstats | awk -F'[=,]' '/^cmdstat_eval(sha)?:/ { sum += $2 } END { print sum + 0 }'; }
