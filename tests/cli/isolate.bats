# --isolate: the command in a PID namespace of its own.

load ../lib/common
load ../lib/job

setup_file() {
  "$RLOCK" run --url "local:$BATS_FILE_TMPDIR/l" --isolate probe -- true 2>/dev/null || export NO_NAMESPACES=1
  "$RLOCK" --url "local:$BATS_FILE_TMPDIR/l" local stop --yes >/dev/null
  redis_start srv
}
setup() {
  RLOCK_URL=$(redis_url srv)
  export RLOCK_URL
  cd "$BATS_TEST_TMPDIR" || return
  [[ -z ${NO_NAMESPACES:-} || $BATS_TEST_DESCRIPTION == *'not allowed'* ]] || skip 'PID namespaces are not allowed here'
}
teardown() { assert_clean srv; }
teardown_file() { redis_stop srv; }

@test "the command sees itself and what it has started, and nothing of us" {
  run -0 --separate-stderr rlock run --isolate job -- sh -c 'echo $$; ls -d /proc/[0-9]* | wc -l'
  [[ ${lines[0]} == 2 && ${lines[1]} -le 5 && -z $stderr ]]
}

@test "streams, statuses, deaths and failures to execute are as without it" {
  run -0 --separate-stderr bash -c 'echo text | "$RLOCK" run --isolate job -- cat'
  [[ $output == text ]]
  run -7 rlock run --isolate job -- sh -c 'exit 7'
  run -143 rlock run --isolate job -- sh -c 'kill $$'
  run -127 rlock run --isolate job -- /no/such/program
  run -126 rlock run --isolate job -- /etc/passwd
  run -0 rlock run --isolate job -- "$RLOCK" run job -- true
}

@test "signals reach the command, also those that process 1 of a namespace would not get" {
  job_start --isolate job -- bash -c 'trap "echo TERM; exit 5" TERM; echo up; while :; do sleep 0.02; done'
  wait_until grep -q up job.out
  kill -TERM "$frontend"
  job_status
  [[ $status == 5 && $output == $'up\nTERM' ]]
}

@test "what the command leaves behind is ended, daemons too" {
  run -5 rlock run --isolate -k 300ms job -- bash -c 'setsid sleep 4323 </dev/null >/dev/null 2>&1 &
    (trap "" TERM; echo up >up; exec sleep 4324) & until [[ -s up ]]; do sleep 0.02; done; exit 5'
  run ! pgrep -x -f 'sleep 432[34]'
}

@test "--leftovers wait: the lock is kept until the last one has ended" {
  local begun
  begun=$(now_ms)
  run -5 rlock run --isolate --leftovers wait job -- sh -c 'setsid sleep 1.5 </dev/null >/dev/null 2>&1 & exit 5'
  (($(now_ms) - begun >= 1500))
}

@test "both guards are killed at once: nothing is left" {
  job_start --isolate --lease 2s job -- bash -c 'setsid sleep 4321 </dev/null >/dev/null 2>&1 & (trap "" TERM; exec sleep 4322) & touch up; wait'
  wait_until test -e up
  job_parts
  wait_until pgrep -f 'sleep 4321'
  wait_until pgrep -f 'sleep 4322'
  kill -9 "$frontend" "$monitor"
  none_left() { ! pgrep -x -f 'sleep 432[12]' >/dev/null; }
  WAIT_SECONDS=3 wait_until none_left
  run -0 rlock run -w 5s job -- true
}

@test "as an ordinary user" {
  [[ $(id -u) == 0 ]] || skip 'root becomes one'
  mkdir place
  chmod 777 place
  cp "$RLOCK" place/rlock
  local port as=(setpriv --reuid=61234 --regid=61234 --clear-groups)
  port=$(redis_free_port)
  redis srv config set port "$port" >/dev/null
  cd place
  "${as[@]}" unshare -Ur true || skip 'user namespaces are not allowed here'
  run -6 --separate-stderr "${as[@]}" ./rlock run --isolate --url "redis://127.0.0.1:$port" job -- sh -c 'echo $$; id -u; exit 6'
  [[ ${lines[0]} == 2 && ${lines[1]} == 61234 ]]
}

@test "where it is not allowed: status 71, a reason, and nothing is run" {
  [[ $(id -u) == 0 ]] || skip 'only root can take the right away'
  run -71 --separate-stderr timeout 20 setpriv --bounding-set -sys_admin --inh-caps -sys_admin \
    unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_pid_namespaces && exec "$@"' sh "$RLOCK" run --isolate job -- touch ran
  assert_says 'does not allow a PID namespace'
  [[ ! -e ran && $(redis srv exists job) == 0 ]]
}
