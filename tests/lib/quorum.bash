# Independent servers for locks on a majority of them. Source it after common.
#
#   quorum_start N [OPTION VALUE ...]   starts s1 to sN, which claim to have been up for an hour; sets RLOCK_URL
#   aged_start NAME [OPTION VALUE ...]  starts or restarts one that claims to have been up for an hour, and to have
#                                       forgotten nothing
#   quorum_stop                         stops them all
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
  # For lib/quorum_file.bash: the next test can use it, too.
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

on_servers() {
  local i
  for ((i = 1; i <= QUORUM; i++)); do redis "s$i" "$@"; done
}

held_on() { on_servers exists "$1" 2>/dev/null | grep -c '^1$' || true; }
