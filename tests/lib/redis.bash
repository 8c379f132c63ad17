# Real redis-servers for tests: each in its own folder, on a Unix socket, stopped by its own pid.
#
#   redis_start NAME [OPTION VALUE ...]   starts or restarts one; sets $NAME_dir, $NAME_sock, $NAME_pid
#   redis NAME COMMAND ...                redis-cli on it
#   redis_freeze / redis_thaw / redis_kill9 / redis_stop NAME
#   redis_start_with_clock NAME [...]     one whose clock is off by the last clock_step MS
#   use_server NAME                       RLOCK_URL is its address, and the test is in its own folder
#   redis_url NAME                        its address for rlock: its socket, or according to TEST_OVER
#   accept_epoch NAME                     lets it grant locks at once, although it is new
#   server_us NAME                        its clock in microseconds, as in fencing tokens
#   redis_listen / redis_listen_no_more NAME   starts and stops listening at 127.0.0.1:$port, too, in plain text
#   redis_free_port                       a free TCP port, whose number + 10000 is free as well, because a cluster uses it
#   listeners_on NAME CHANNEL             how many listen on it, also if it is a sharded one
#   queued LOCK NUMBER [NAME]             so many wait for it there, or on srv
#   proxy_start SOCKET [WORD COUNT]       a proxy to that socket, in this folder: RLOCK_URL, $proxy; see proxy.py
#   assert_clean NAME                     nothing is left behind: see below

# The server to test with, a name in PATH or a path: any Redis from 6.2 on, or Valkey. From here on PATH has it as
# redis-server, also for the tests' own scripts and for `local:`.
REDIS_SERVER=${REDIS_SERVER:-redis-server}
if [[ $REDIS_SERVER != redis-server ]]; then
  mkdir -p "$BATS_RUN_TMPDIR/chosen"
  ln -s "$(realpath -s "$(command -v "$REDIS_SERVER")")" "$BATS_RUN_TMPDIR/chosen/$BASHPID"
  mv -T "$BATS_RUN_TMPDIR/chosen/$BASHPID" "$BATS_RUN_TMPDIR/chosen/redis-server"
  PATH=$BATS_RUN_TMPDIR/chosen:$PATH
  export PATH REDIS_SERVER=redis-server
fi

# redis_folder: where this test's (or this file's) servers are. Socket paths are short, because sun_path has 108 bytes.
redis_folder() { printf '%s' "${BATS_TEST_TMPDIR:-$BATS_FILE_TMPDIR}"; }

# With TEST_OVER=tls, sentinel, cluster or acl, every test reaches its server in another way, or with the least rights:
# redis_url returns such an address, and the scripts of tests/lua go the same way. With cluster, each server is a
# cluster of one; tests/cli/cluster.bats has those with several. With acl, the default user, which rlock is without a
# password, has exactly the rights that rlock prints, and redis-cli is another user.
# The functions over_... set $OVER, more options for the server, which then listens at port $NAME_over.
#
#   not_over WAY... REASON      skips a test that would mean nothing in these ways
#   also_allow NAME RIGHT...    what a test needs beyond the least rights
#   way_to NAME                 sets $way, the options of redis-cli for the way to this server
not_over() {
  local way
  for way in "${@:1:$#-1}"; do [[ ${TEST_OVER:-} != "$way" ]] || skip "over $way: ${*: -1}"; done
}
over_port() {
  local port=${1}_over
  [[ -n ${!port:-} ]] || printf -v "$port" '%s' "$(redis_free_port)"
  export "${port?}"
  over=${!port}
}
over_tls() {
  local over tls=$BATS_RUN_TMPDIR/tls
  over_port "$1"
  export SSL_CERT_FILE=$tls/ca.crt
  (
    flock 9
    [[ -s $tls/server.pem ]] || TLS_DIR=$tls bash -c 'source "$TESTS_DIR/lib/tls.bash" && tls_authority ca 100 && tls_certificate server ca IP:127.0.0.1 100'
  ) 9>>"$BATS_RUN_TMPDIR/tls.lock"
  OVER=(--tls-port "$over" --tls-cert-file "$tls/server.crt" --tls-key-file "$tls/server.key"
    --tls-ca-cert-file "$tls/ca.crt" --tls-auth-clients no)
}
over_sentinel() {
  local over
  over_port "$1"
  OVER=(--port "$over")
  export RLOCK_EPOCH_GUARD=false # tests restart and empty their servers; tests/faults/epoch.bats is about that
}
over_cluster() {
  local port=${1}_over
  [[ -n ${!port:-} ]] || printf -v "$port" '%s' "$(redis_free_port)"
  export "${port?}"
  OVER=(--port "${!port}" --cluster-enabled yes --cluster-config-file nodes.conf)
}
# A server that is started again still has its slots.
cluster_for() {
  local password auth=()
  password=$(value_of --requirepass "$@")
  [[ -z $password ]] || auth=(-a "$password" --no-auth-warning)
  redis "$1" "${auth[@]}" cluster addslots $(seq 0 16383) >/dev/null 2>&1 || true
  cluster_serves() { [[ $(redis "$1" "${auth[@]}" cluster info) == *cluster_state:ok* ]]; }
  wait_until cluster_serves "$1"
}
# value_of OPTION [OPTION VALUE ...]: its value among the options of redis_start.
value_of() {
  local wanted=$1
  shift
  while (($# > 1)); do
    [[ $1 != "$wanted" ]] || { echo "$2" && return; }
    shift
  done
}
over_acl() { OVER=(--user admin on nopass '~*' '&*' +@all --masteruser admin --masterauth any); }
# Only now, because a Redis that loads its append-only file drops what the default user may not do.
# shellcheck disable=SC2046 # words of a command
acl_for() {
  local password where=()
  password=$(value_of --requirepass "$@")
  [[ -z $(value_of --cluster-enabled "$@") ]] || where=(--url redis+cluster://any)
  (set -f && redis "$1" $("$RLOCK" "${where[@]}" doctor --acl |
    sed "s/SETUSER rlock/SETUSER default/; s/>PASSWORD/${password:+>}${password:-nopass}/")) >/dev/null
}
also_allow() { [[ ${TEST_OVER:-} != acl ]] || redis "$1" acl setuser default "${@:2}" >/dev/null; }
if [[ ${TEST_OVER:-} == acl && $(command -v redis-cli) != */admin/redis-cli ]]; then
  mkdir -p "$BATS_RUN_TMPDIR/admin"
  new=$BATS_RUN_TMPDIR/admin/$BASHPID
  cat >"$new" <<SCRIPT
#!/bin/sh
# redis-cli as the user admin, if the server has one.
for word; do
  case \$word in
    */s) [ ! -e "\${word%s}admin" ] || exec $(command -v redis-cli) --user admin --pass any --no-auth-warning "\$@" ;;
  esac
done
exec $(command -v redis-cli) "\$@"
SCRIPT
  chmod 755 "$new"
  mv -T "$new" "$BATS_RUN_TMPDIR/admin/redis-cli"
  export PATH=$BATS_RUN_TMPDIR/admin:$PATH
fi
way_to() {
  local sock=${1}_sock port=${1}_over
  way=(-s "${!sock}")
  case ${TEST_OVER:-} in
    tls) way=(--tls --cacert "$SSL_CERT_FILE" -p "${!port}") ;;
    sentinel) way=(-p "${sentinel_says:-$(redis "${1}_watch" sentinel get-master-addr-by-name mymaster | sed -n 2p)}") ;;
    acl) way+=(--user default --pass any --no-auth-warning) ;;
  esac
}
# The Sentinel of a server that answers, until redis_stop.
sentinel_for() {
  local name=$1 sentinel=${1}_watch m_port=${1}_over SENTINELS=()
  [[ -z $(eval "echo \${${sentinel}_pid:-}") ]] || return 0
  source "$TESTS_DIR/lib/sentinel.bash"
  m_port=${!m_port}
  sentinel_start "$sentinel"
  export "${sentinel}_port" "${sentinel}_pid" "${sentinel}_sock"
}

redis_start() {
  local name=$1 dir log OVER=()
  shift
  [[ -z ${TEST_OVER:-} ]] || "over_$TEST_OVER" "$name" "$@"
  local dir_var=${name}_dir
  dir=${!dir_var:-$(redis_folder)/$name}
  mkdir -p "$dir"
  [[ ${TEST_OVER:-} != acl ]] || touch "$dir/admin"
  log=$dir/log
  "$REDIS_SERVER" --port 0 --unixsocket "$dir/s" --unixsocketperm 700 --dir "$dir" --save '' --appendonly no \
    --logfile "$log" --daemonize no "${OVER[@]}" "$@" </dev/null >/dev/null 2>&1 3>&- &
  printf -v "${name}_pid" '%s' "$!"
  printf -v "${name}_dir" '%s' "$dir"
  printf -v "${name}_sock" '%s' "$dir/s"
  export "${name}_pid" "${name}_dir" "${name}_sock"
  wait_until redis_answers "$name" || {
    cat "$log" >&2
    return 1
  }
  [[ ${TEST_OVER:-} != sentinel ]] || sentinel_for "$name"
  [[ ${TEST_OVER:-} != cluster ]] || cluster_for "$name" "$@"
  [[ ${TEST_OVER:-} != acl ]] || acl_for "$name" "$@"
}

# Any answer shows that it is alive, even NOAUTH from a server with a password.
redis_answers() { [[ $(redis "$1" ping 2>&1) =~ ^(PONG|NOAUTH) ]]; }

redis() {
  local sock=${1}_sock
  shift
  if [[ ${TEST_OVER:-} == cluster && $1 =~ ^(del|exists)$ ]]; then # each key has a slot of its own
    local key number=0
    for key in "${@:2}"; do number=$((number + $(redis-cli -s "${!sock}" "$1" "$key"))); done
    echo "$number"
  else
    redis-cli -s "${!sock}" "$@"
  fi
}

server_us() { redis "$1" time | { read -r s && read -r us && echo $((s * 1000000 + us)); }; }

redis_url() {
  local sock=${1}_sock port=${1}_over sentinel=${1}_watch_port
  case ${TEST_OVER:-} in
    tls) printf 'rediss://127.0.0.1:%s' "${!port}" && return ;;
    cluster) printf 'redis+cluster://127.0.0.1:%s' "${!port}" && return ;;
    sentinel) printf 'redis+sentinel://127.0.0.1:%s/mymaster' "${!sentinel}" && return ;;
  esac
  printf 'unix://%s' "${!sock}"
}

use_server() {
  RLOCK_URL=$(redis_url "$1")
  export RLOCK_URL
  cd "$BATS_TEST_TMPDIR" || return
}

# The server has forgotten nothing, so the epoch guard lets it grant locks at once.
accept_epoch() {
  redis "$1" hset rlock:epoch life "$(redis "$1" info replication | sed -n 's/^master_replid:\([0-9a-f]*\).*/\1/p')" \
    since 0 cause accepted longest 0 before 0 >/dev/null
}

redis_signal() {
  local pid=${2}_pid
  kill "-$1" "${!pid}"
}
redis_freeze() { redis_signal STOP "$1"; }
redis_thaw() { redis_signal CONT "$1"; }
redis_kill9() {
  local pid=${1}_pid
  redis_signal KILL "$1"
  wait_until gone "${!pid}"
}

redis_stop() {
  local pid=${1}_pid dir=${1}_dir watch=${1}_watch_pid
  if [[ -n ${!watch:-} ]]; then redis_stop "${1}_watch" && unset "${1}_watch_pid"; fi
  # If it has been killed before, its pid may be another process's by now.
  [[ -n ${!pid:-} && /proc/${!pid}/cwd -ef ${!dir} ]] || return 0
  kill -CONT "${!pid}"
  kill_off -TERM "${!pid}"
}

clock_step() { echo "$1" >"$BATS_TEST_TMPDIR/clock"; }

redis_start_with_clock() {
  cc -shared -fPIC -o "$BATS_TEST_TMPDIR/shim.so" "$TESTS_DIR/lib/clock_shim.c" || return
  cat >"$BATS_TEST_TMPDIR/redis-with-clock" <<SCRIPT
#!/bin/sh
LD_PRELOAD=$BATS_TEST_TMPDIR/shim.so CLOCK_SHIM_FILE=$BATS_TEST_TMPDIR/clock exec $REDIS_SERVER "\$@"
SCRIPT
  chmod +x "$BATS_TEST_TMPDIR/redis-with-clock"
  REDIS_SERVER=$BATS_TEST_TMPDIR/redis-with-clock redis_start "$@"
}

# In a cluster, or behind a Sentinel, a server already has one, by which others know it.
redis_listen() {
  local over=${1}_over
  port=${!over:-}
  [[ ${TEST_OVER:-} =~ ^(cluster|sentinel)$ ]] || {
    port=$(redis_free_port)
    redis "$1" config set port "$port" >/dev/null
  }
}
redis_listen_no_more() { [[ ${TEST_OVER:-} =~ ^(cluster|sentinel)$ ]] || redis "$1" config set port 0 >/dev/null; }

listeners_on() {
  local of_slot=0
  [[ ${TEST_OVER:-} != cluster ]] || of_slot=$(redis "$1" pubsub shardnumsub "$2" | tail -n1)
  [[ $of_slot =~ ^[0-9]+$ ]] || of_slot=0 # Redis 6.2 has none
  echo $(($(redis "$1" pubsub numsub "$2" | tail -n1) + of_slot))
}

# publish_on NAME CHANNEL [MESSAGE]: publishes like rlock; the message is standard input if it is not given.
publish_on() {
  local how=publish from=()
  [[ ${TEST_OVER:-} != cluster || $(redis "$1" command info spublish) != *spublish* ]] || how=spublish
  (($# > 2)) || from=(-x)
  redis "$1" "${from[@]}" "$how" "${@:2}"
}

# renewed_past MS NAME [SERVER]: the lock is held for longer than that.
renewed_past() { (($(redis "${3:-srv}" pttl "$2") > $1)); }
queued() { [[ $(redis "${3:-srv}" zcard "rlock:queue:{$1}") == "$2" ]]; }

proxy_start() {
  local folder=$BATS_TEST_TMPDIR
  rm -f "$folder"/{p,passed}
  python3 "$TESTS_DIR/lib/proxy.py" "$folder/p" "$1" "$folder/passed" "${@:2}" 3>&- &
  proxy=$!
  wait_until test -S "$folder/p"
  export RLOCK_URL=unix://$folder/p
}

# know_scripts NAME: from now on the server knows the scripts of plain locks, and is sent only their names.
know_scripts() {
  local sock=${1}_sock owner
  owner=$("$RLOCK" --url "unix://${!sock}" acquire known --lease 30s)
  RLOCK_URL=unix://${!sock} "$RLOCK" renew known --owner "$owner"
  RLOCK_URL=unix://${!sock} "$RLOCK" release known --owner "$owner"
  redis "$1" del 'redisson_lock_token:{known}' >/dev/null
}

redis_free_port() {
  local used port hex
  used=$(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null)
  until
    port=$((RANDOM % 12000 + 10000)) # not one that the kernel gives to clients, who could have it before the server does
    printf -v hex ':%04X |:%04X ' "$port" $((port + 10000))
    [[ ! $used =~ $hex ]]
  do :; done
  echo "$port"
}

# An unused semaphore stays for a month: its slots, and that we created it.
idle_semaphore() {
  local semaphore=${2#rlock:holder:\{}
  [[ $2 == "$semaphore" ]] || semaphore=${semaphore%\}}
  [[ $(redis "$1" hget "rlock:holder:{$semaphore}" made) == 1 && $(redis "$1" exists "{$semaphore}:timeout") == 0 ]]
}

# assert_clean NAME: no key without a TTL, no held lock, and no process that mentions the server's folder except the
# server. Allowed are fencing tokens and the epoch, which stay forever, and what is kept in case a request is sent again: the
# outcomes of releases, and who has replaced a waiter. Keys that a failed test has left do not affect the next.
assert_clean() {
  is_clean "$1" || {
    redis "$1" flushall >/dev/null 2>&1 || true
    return 1
  }
}
KEYS_WITH_TTL="local found = {}
  for _, key in ipairs(redis.call('keys', '*')) do
    local stays = string.sub(key, 1, 20) == 'redisson_lock_token:' or key == 'rlock:epoch'
    if not stays then found[#found + 1] = redis.call('pttl', key) .. ' ' .. key end
  end
  return found"
is_clean() {
  local name=$1 ttl key dir_var=${1}_dir pid_var=${1}_pid left
  while IFS= read -r key; do
    [[ -n $key ]] || continue
    ttl=${key%% *} key=${key#* }
    [[ $ttl != -1 ]] || {
      echo "key without TTL: $key" >&2
      return 1
    }
    [[ $key == rlock:hold:*:@(released|taken) || $key == rlock:waiters:*:*-*:* ]] || idle_semaphore "$name" "$key" || {
      echo "key left: $key" >&2
      return 1
    }
  done < <(redis "$name" eval "$KEYS_WITH_TTL" 0)
  left=$(grep -lsaF -- "${!dir_var}" /proc/[0-9]*/cmdline || true)
  local pid survivors=
  for pid in $left; do
    pid=${pid#/proc/} pid=${pid%/*}
    [[ $pid == "${!pid_var}" || $pid == "$$" ]] || gone "$pid" ||
      [[ $(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null) =~ bats|redis-cli ]] || survivors+=" $pid"
  done
  [[ -z $survivors ]] || {
    ps -o pid,ppid,args -p ${survivors} >&2
    return 1
  }
}
