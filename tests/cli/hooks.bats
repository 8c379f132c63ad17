# --on-acquire, --on-release, --on-lost, --hook-timeout.

load ../lib/common
load ../lib/job

setup_file() { redis_start srv; }
setup() {
  RLOCK_URL=$(redis_url srv)
  export RLOCK_URL
  cd "$BATS_TEST_TMPDIR" || return
}
teardown() { assert_clean srv; }
teardown_file() { redis_stop srv; }

@test "they run before and after the command, under the lock, in the caller's folder" {
  local look='redis-cli -s "$srv_sock" exists job; pwd'
  run -4 --separate-stderr rlock run --on-acquire "echo before; $look" --on-release "echo after \$RLOCK_EXIT_STATUS; $look" \
    job -- sh -c 'echo command; exit 4'
  [[ $output == command ]]
  [[ $stderr == $'before\n1\n'"$PWD"$'\nafter 4\n1\n'"$PWD" ]]
}

@test "they have the lock's variables, an empty standard input, and no password" {
  redis srv acl setuser worker on '>secret-one' '~*' '&*' +@all
  RLOCK_URL=unix://worker@$srv_sock RLOCK_PASSWORD=secret-one run -0 --separate-stderr rlock run \
    --on-acquire 'echo "$RLOCK_NAME $RLOCK_OWNER $RLOCK_TOKEN"; cat; env' job -- sh -c 'echo "$RLOCK_NAME $RLOCK_OWNER $RLOCK_TOKEN"' <<<given-to-rlock
  [[ ${stderr_lines[0]} == "$output" && $stderr != *given-to-rlock* && $stderr != *secret-one* ]]
}

@test "--on-release sees a death by signal as a shell does" {
  run -137 --separate-stderr rlock run --on-release 'echo "$RLOCK_EXIT_STATUS"' job -- sh -c 'kill -9 $$'
  [[ ${stderr_lines[0]} == 137 ]]
}

@test "an --on-acquire that fails: no command, no lock, 78" {
  run -78 --separate-stderr rlock run --on-acquire 'exit 3' --on-release 'touch released' --on-lost 'touch lost' job -- touch ran
  assert_says 'job: --on-acquire ended with 3; the command was not started'
  [[ ! -e ran && ! -e released && ! -e lost ]]
  run -78 --separate-stderr rlock run --on-acquire 'kill -9 $$' job -- touch ran
  assert_says 'was killed by signal 9'
  run -78 --separate-stderr rlock run --on-acquire /no/such/program job -- touch ran
  assert_says 'ended with 127'
  [[ ! -e ran ]]
}

@test "an --on-release that fails is warned of, and changes nothing" {
  run -5 --separate-stderr rlock run --on-release 'exit 3' job -- sh -c 'exit 5'
  assert_says 'warning: job: --on-release ended with 3'
}

@test "a hook that hangs is stopped when its time is over, with all that it has started" {
  run -78 --separate-stderr rlock run -k 200ms --hook-timeout 300ms --on-acquire 'trap "" TERM; sleep 1000 & sleep 1001' job -- touch ran
  assert_says 'did not end within 300ms'
  [[ ! -e ran ]]
  run -6 --separate-stderr rlock run -k 200ms --hook-timeout 300ms --on-release 'trap "" TERM; sleep 1000 & sleep 1001' job -- sh -c 'exit 6'
  assert_says 'warning: job: --on-release did not end within 300ms'
}

@test "what --on-acquire leaves in the background lives as long as the command" {
  run -0 --separate-stderr rlock run --on-acquire 'sleep 1000 & echo $! >pid' job -- sh -c 'kill -0 "$(cat pid)" && echo lives'
  [[ $output == lives ]]
  gone "$(cat pid)"
}

@test "what --on-release leaves in the background is ended before the release" {
  run -0 --separate-stderr rlock run --on-release 'sleep 1000 & echo $! >pid' job -- true
  gone "$(cat pid)"
}

@test "TERM during --on-acquire: the hook is stopped, nothing is started, rlock dies of it" {
  job_start --on-acquire 'touch up; exec sleep 1000' job -- touch ran
  wait_until test -e up
  kill -TERM "$frontend"
  job_status
  show
  [[ $status == 143 && ! -e ran ]]
}

@test "TERM during --on-release: the hook is stopped, the status is the command's" {
  job_start --on-release 'touch up; exec sleep 1000' job -- sh -c 'exit 7'
  wait_until test -e up
  kill -TERM "$frontend"
  job_status
  show
  [[ $status == 7 ]]
}

@test "--on-lost runs when the command has been stopped, and knows why; --on-release does not run" {
  run -74 --separate-stderr rlock run --lease 1s -k 100ms --on-release 'touch released' \
    --on-lost 'echo "$RLOCK_NAME: $RLOCK_WHY"; kill -0 "$(cat pid)" 2>/dev/null && echo lives; pwd' job -- \
    sh -c 'echo $$ >pid; redis-cli -s "$srv_sock" flushall >/dev/null; trap "" TERM; while :; do sleep 0.02; done'
  assert_says 'job: the lock is lost: nobody holds it any more'
  assert_says "$PWD"
  [[ $stderr != *lives* && ! -e released ]]
}

@test "--on-lost runs, too, when the monitor was killed" {
  job_start --lease 1s --on-lost 'echo "told: $RLOCK_WHY"' job -- sleep 1000
  job_parts
  kill -9 "$monitor"
  job_status
  show
  [[ $status == 74 ]]
  assert_says 'told: the monitor of this job was killed'
  run -0 rlock run -w 3s job -- true # when its lease is over
}

@test "an --on-lost that hangs or fails keeps nobody waiting longer than its time" {
  run -74 --separate-stderr rlock run --lease 1s --hook-timeout 300ms --on-lost 'sleep 1000' job -- \
    sh -c 'redis-cli -s "$srv_sock" flushall >/dev/null; exec sleep 1000'
  assert_says '--on-lost was stopped before its end'
  run -74 --separate-stderr rlock run --lease 1s --on-lost 'exit 3' job -- \
    sh -c 'redis-cli -s "$srv_sock" flushall >/dev/null; exec sleep 1000'
  assert_says '--on-lost ended with 3'
}

@test "a lock lost while --on-acquire runs: the command is not started, 74" {
  run -74 --separate-stderr rlock run --lease 1s --on-acquire 'redis-cli -s "$srv_sock" flushall >/dev/null; exec sleep 1000' job -- touch ran
  assert_says 'the command was not started'
  [[ ! -e ran ]]
}

@test "they may be settings, and an empty or endless time is refused" {
  RLOCK_ON_ACQUIRE='echo from the variable' run -0 --separate-stderr rlock run job -- true
  [[ $stderr == 'from the variable' ]]
  run -64 --separate-stderr rlock run --hook-timeout 0 job -- touch ran
  run -64 --separate-stderr rlock run --hook-timeout long job -- touch ran
  RLOCK_HOOK_TIMEOUT=long run -78 --separate-stderr rlock run job -- touch ran
  [[ ! -e ran ]]
}
