# A job that would wait for a hold of its own: for a job that it runs under, or for what its shell has acquired.

load ../lib/server

setup_file() { redis_start srv --unixsocketperm 777; }
teardown() {
  end_mine_wholly "${job:-}"
  assert_clean srv
}

# Like sudo, which removes the variables of rlock. The server is known otherwise, as by a configuration file.
clean() { env -i PATH="$PATH" RLOCK_URL="$RLOCK_URL" "$@"; }
export -f clean

@test "below a job that has the lock, without RLOCK_HELD: it ends with 75, and says what to pass on" {
  for form in 'clean "$RLOCK"' 'bash -c '\''"$@"; exit'\'' - env -u RLOCK_HELD "$RLOCK"'; do
    run -75 --separate-stderr rlock run deploy -- bash -c "$form"' run -q deploy --status-fd 5 -- touch ran 5>events'
    [[ $stderr =~ 'rlock: deploy: not acquired: this runs under pid '[0-9]+', which holds it; '.*'sudo --preserve-env=RLOCK_HELD' && ! -e ran ]]
    grep -q '"result":"not-acquired","status":75,"why":"this runs under pid ' events
  done
  owner=$(rlock acquire --lease 1m deploy)
  run -75 --separate-stderr rlock run --owner "$owner" --release deploy -- bash -c 'clean "$RLOCK" run deploy -- touch ran'
  [[ $stderr == *'deploy: not acquired: this runs under '* && ! -e ran ]]
  tells 75 'deploy: not acquired: this runs under ' rlock run -s deploy -- bash -c 'clean "$RLOCK" acquire -E 0 --lease 1m -x deploy'
}

@test "below a job that has the lock, as another user" {
  chmod 711 "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR"/{test,file} "$BATS_TEST_TMPDIR" "$BATS_FILE_TMPDIR" "$srv_dir" 2>/dev/null || true
  needs_nobody
  run -75 --separate-stderr rlock run deploy -- bash -c 'clean "${@:2}" "$RLOCK" run deploy -- touch "$1"' - "$PWD/ran" \
    setpriv --reuid=65534 --regid=65534 --clear-groups env
  [[ $stderr == *'deploy: not acquired: this runs under '* ]]
}

@test "not if the outer job may end first, if it has another lock, or if it has one of several slots" {
  "$RLOCK" run --leftovers ignore deploy -- bash -c 'clean "$RLOCK" run deploy -- touch ran 2>err & read -r <go' 3>&- &
  job=$!
  mkfifo go
  wait_until queued deploy 1
  echo >go
  wait_until test -e ran
  rlock run other -- bash -c 'clean "$RLOCK" run deploy -- true'
  owner=$(rlock acquire --slots 2 --lease 10m pool)
  "$RLOCK" run --slots 2 pool -- bash -c 'clean "$RLOCK" run --slots 2 pool -- touch ran-pool' 3>&- &
  job=$!
  wait_until queued pool 1
  rlock release --owner "$owner" pool
  wait "$job"
  [[ -e ran-pool ]]
}

@test "RLOCK_OWNER holds it: the command belongs under that hold" {
  RLOCK_OWNER=$(rlock acquire --lease 10m deploy)
  export RLOCK_OWNER
  run -75 --separate-stderr rlock run -E 0 deploy -- touch ran
  [[ ! -e ran && $stderr == 'rlock: deploy: not acquired: RLOCK_OWNER holds it: run the command under that hold with rlock run --owner "$RLOCK_OWNER" deploy'* ]]
  run -75 --separate-stderr rlock run -w 2m deploy -- touch ran
  [[ ! -e ran && $stderr == *'RLOCK_OWNER holds it'* ]]
  run -0 rlock run --owner "$RLOCK_OWNER" deploy -- true
  # If nobody renews it, it ends within this time.
  redis srv pexpire deploy 1000 >/dev/null
  rlock run -w 2m deploy -- touch ran
  [[ -e ran ]]
}

@test "RLOCK_OWNER holds it as long as this shell lives" {
  RLOCK_OWNER=$(rlock acquire --lease 30s --for-pid $$ deploy)
  export RLOCK_OWNER
  run -75 --separate-stderr rlock run -w 2m deploy -- touch ran
  [[ ! -e ran && $stderr == *"not acquired: RLOCK_OWNER holds it until pid $$ ends, and this runs under it: run the command without rlock"* ]]
  rlock release deploy
}

@test "RLOCK_OWNER holds another lock" {
  RLOCK_OWNER=$(rlock acquire --lease 10m other)
  export RLOCK_OWNER
  owner=$(rlock acquire --lease 10m deploy)
  "$RLOCK" run deploy -- touch ran 3>&- &
  job=$!
  wait_until queued deploy 1
  rlock release --owner "$owner" deploy
  wait "$job"
  rlock release other
}
