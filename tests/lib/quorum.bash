# Independent servers for locks on a majority of them. Source it after common.
#
#   quorum_start N [OPTION VALUE ...]   starts s1 to sN, which claim to have been up for an hour; sets RLOCK_URL
#   aged_start NAME [OPTION VALUE ...]  starts or restarts one that claims to have been up for an hour, and to have
#                                       forgotten nothing
#   quorum_stop                         stops them all
#   quorum_file, quorum_ready, quorum_settle, quorum_end   for setup_file, setup, teardown and teardown_file: three servers
#                                       for the whole file, empty for each test; those that a test has stopped or started
#                                       are replaced. A test that changes their configuration ends with quorum_stop.
#   on_servers COMMAND ...              redis-cli on each, with one line of output
#   held_on LOCK                        on how many servers the lock is held

# Creates $aged, a program that starts such a server.
make_aged() {
  local shim=${BATS_FILE_TMPDIR:-$BATS_TEST_TMPDIR}/aged
  aged=$shim-server
  if [[ ! -x $shim-server ]]; then
    cc -shared -fPIC -o "$shim.so" "$TESTS_DIR/lib/aged_shim.c" || return
    printf '#!/bin/sh\nAGED_SECONDS=${AGED_SECONDS:-3600} LD_PRELOAD=%s exec %s "$@"\n' "$shim.so" "$(command -v "$REDIS_SERVER")" >"$shim-server"
    chmod +x "$shim-server"
  fi
}

aged_start() {
  local aged
  make_aged || return
  REDIS_SERVER=$aged redis_start "$@" && accept_epoch "$1" || return
  local dir=${1}_dir pid=${1}_pid
  [[ -n ${AGED_SECONDS:-} ]] || echo "${!pid}" >"${!dir}/lasting"
}

quorum_start() {
  local number=$1 i
  shift
  QUORUM=0
  not_over sentinel cluster 'it cannot be part of a quorum'
  QUORUM=$number RLOCK_URL=
  for ((i = 1; i <= number; i++)); do
    aged_start "s$i" "$@" || return
    RLOCK_URL+="${RLOCK_URL:+ }$(redis_url "s$i")"
  done
  export RLOCK_URL QUORUM
}

quorum_stop() {
  local i
  for ((i = 1; i <= QUORUM; i++)); do redis_stop "s$i"; done
}

quorum_file() {
  [[ ${TEST_OVER:-} != @(sentinel|cluster) ]] || return 0
  quorum_start 3
  disown -a # bash need not report those that a test kills
}
# The file's own shell does not know the servers that a test's shell has started.
quorum_pids() {
  local i
  for i in 1 2 3; do read -r "s${i}_pid" <"$BATS_FILE_TMPDIR/s$i/lasting"; done
}
quorum_end() { [[ -z ${QUORUM:-} ]] || { quorum_pids && quorum_stop; }; }
quorum_ready() {
  not_over sentinel cluster 'it cannot be part of a quorum'
  local i
  quorum_pids
  for i in 1 2 3; do
    redis "s$i" eval "local life = redis.call('info', 'replication'):match('master_replid:(%x+)')
      redis.call('flushall')
      redis.call('hset', 'rlock:epoch', 'life', life, 'since', 0, 'cause', 'accepted', 'longest', 0, 'before', 0)" 0 >/dev/null
  done
}
quorum_settle() {
  local i pid
  [[ -n ${QUORUM:-} ]] || return 0
  for i in 1 2 3; do
    pid=s${i}_pid
    if [[ -z ${BATS_TEST_COMPLETED:-} || ${!pid} != "$(<"$BATS_FILE_TMPDIR/s$i/lasting")" ]] || gone "${!pid}"; then
      redis_stop "s$i"
      aged_start "s$i"
    else
      kill -CONT "${!pid}"
    fi
  done
}

on_servers() {
  local i
  for ((i = 1; i <= QUORUM; i++)); do redis "s$i" "$@"; done
}

held_on() { on_servers exists "$1" 2>/dev/null | grep -c '^1$' || true; }
