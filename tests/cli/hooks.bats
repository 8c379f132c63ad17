#!/usr/bin/env bats
# rlock run --on-acquire, --on-release, --on-lost and --hook-timeout.

load ../lib/common
load ../lib/server
load ../lib/job

teardown() {
  # The leftovers of a failed test must not affect the others.
  end_mine_wholly "${frontend:-}"
  assert_clean srv
}

held() { [[ $(redis srv exists a) == 1 ]]; }
free() { [[ $(redis srv exists a 'rlock:holder:{a}') == 0 ]]; }
lines_are() { [[ $(tr '\n' ' ' <"$1") == "$2 " ]]; }
# hang FILE [KEEP_ON]: a hook that writes its pid to the file and does not end.
hang() { echo "${2:-} echo \$\$ >$PWD/$1; while :; do sleep 0.05; done"; }
# wait_for_hook FILE: waits until the hook of hang runs; sets $hook.
wait_for_hook() {
  wait_until test -s "$1"
  hook=$(<"$1")
}
# lose: deletes the lock a on the server.
lose() { redis srv del a 'rlock:holder:{a}'; }

@test "the standard input of hooks is empty, and all of ours is left for the command" {
  seq 100000 >in
  rlock run --on-acquire 'wc -c >acquire' --on-release 'wc -c >release' a -- cat <in >out
  cmp in out
  [[ $(<acquire) == 0 && $(<release) == 0 ]]
}

@test "hooks and the command run in the caller's folder" {
  mkdir 'a folder'
  cd 'a folder'
  rlock run --on-acquire 'pwd -P >acquire' --on-release 'pwd -P >release' a -- sh -c 'pwd -P >command'
  [[ $(<acquire) == "$(pwd -P)" && $(<release) == "$(pwd -P)" && $(<command) == "$(pwd -P)" ]]
}

@test "hooks get the same variables as the command" {
  local look='printf "%s\n" "$RLOCK_NAME" "$RLOCK_OWNER" "$RLOCK_TOKEN" "$RLOCK_HELD" "$RLOCK_URL"'
  rlock run --on-acquire "($look) >acquire" --on-release "($look) >release" a -- sh -c "($look) >command"
  [[ $(sed -n 1p command) == a && $(wc -l <command) == 5 ]]
  cmp acquire command
  cmp release command
}

@test "RLOCK_EXIT_STATUS is the command's status, and only on-release has it" {
  local status=0
  rlock run --on-acquire 'echo "${RLOCK_EXIT_STATUS-none}" >acquire' --on-release 'echo "$RLOCK_EXIT_STATUS" >release' a \
    -- sh -c 'echo "${RLOCK_EXIT_STATUS-none}" >command; exit 7' || status=$?
  [[ $status == 7 && $(<acquire) == none && $(<command) == none && $(<release) == 7 ]]
}

@test "on-release fails: a warning, and the command's status" {
  local code
  for code in 0 4; do
    run "-$code" --separate-stderr rlock run --on-release 'exit 5' a -- sh -c "exit $code"
    assert_says 'warning'
    assert_says 'on-release hook '
    free
  done
}

@test "the lock is kept until a hook that hangs is dead" {
  job_start -k 1s --hook-timeout 300ms --on-release "$(hang pid "trap '' TERM;")" a -- true
  wait_for_hook pid
  until gone "$hook"; do
    held || gone "$hook"
  done
  job_status 0
}

@test "on-release runs after a signal to rlock, too" {
  job_start --on-release 'echo "$RLOCK_EXIT_STATUS" >release' a -- sleep 100
  job_parts
  kill -TERM "$frontend"
  job_status 143
  [[ $(<release) == 143 ]]
}

@test "on-lost runs after the lock was lost and the command was stopped; on-release does not" {
  job_start --lease 6s -k 300ms --on-release 'touch release' \
    --on-lost 'kill -0 "$(cat pid)" 2>/dev/null && touch alive; echo "$RLOCK_NAME $RLOCK_OWNER" >lost; echo "$RLOCK_WHY" >why; echo said' \
    a -- sh -c "trap '' TERM; $(hang pid)"
  wait_for_hook pid
  local owner
  owner=$(redis srv hkeys a)
  lose
  job_status 74
  [[ $(<lost) == "a $owner" && ! -e alive && ! -e release && -z $output ]]
  assert_says said
  # The reason in rlock's message.
  [[ -s why ]]
  assert_says "$(<why)"
}

@test "an on-lost hook that fails causes a warning and changes nothing" {
  job_start --lease 6s --on-lost 'touch lost; exit 3' a -- sh -c "$(hang pid)"
  wait_for_hook pid
  lose
  job_status 74
  [[ -e lost ]]
  assert_says 'warning: a: --on-lost hook exited with 3'
}

@test "on-lost runs without the lock: another may hold it" {
  job_start --lease 6s --on-lost 'redis-cli -s "$srv_sock" hkeys a >holder' a -- sleep 100
  job_parts
  redis srv eval "redis.call('del', KEYS[1]); redis.call('hset', KEYS[1], 'other:1', 1); redis.call('pexpire', KEYS[1], 60000)" 1 a
  job_status 74
  [[ $(<holder) == other:1 ]]
  [[ $(redis srv hgetall a) == $'other:1\n1' ]]
  redis srv del a 'rlock:holder:{a}'
}

@test "on-lost gets the reason only once, regardless of RLOCK_WHY in our environment" {
  RLOCK_WHY=nonsense job_start --lease 6s --on-lost 'echo "$RLOCK_WHY" >why' a -- sleep 100
  job_parts
  lose
  job_status 74
  [[ -s why && $(<why) != *nonsense* ]]
}

@test "on-lost fails or hangs: still 74" {
  local text
  for text in 'exit 5' "$(hang pid "trap '' TERM;")"; do
    job_start --lease 6s -k 300ms --hook-timeout 300ms --on-lost "touch lost; $text" a -- sleep 100
    job_parts
    lose
    job_status 74
    [[ -e lost ]]
    assert_says 'on-lost hook '
    rm lost
  done
  gone "$(<pid)"
}

@test "on-lost runs when the server is gone" {
  redis_start other
  job_start --url "$(redis_url other)" --lease 6s --on-lost 'echo "$RLOCK_WHY" >why' a -- sleep 100
  job_parts
  redis_kill9 other
  job_status 74
  [[ -s why ]]
}

@test "the lock is lost during on-acquire: the hook is stopped, the command is not started, 74" {
  job_start --lease 6s -k 300ms --on-acquire "$(hang pid "trap '' TERM;")" --on-release 'touch release' --on-lost 'touch lost' a -- touch started
  wait_for_hook pid
  lose
  job_status 74
  [[ ! -e started && ! -e release && -e lost ]]
  gone "$hook"
}

@test "the lock is lost during on-release: the hook is stopped before its time is up" {
  job_start --lease 6s -k 300ms --hook-timeout 10m --on-release "$(hang pid "trap '' TERM;")" a -- sh -c 'exit 4'
  wait_for_hook pid
  lose
  job_status
  gone "$hook"
  # The command itself has ended in time, but not the work under the lock.
  [[ $status == 4 || $status == 74 ]]
  assert_says 'the lock is lost'
}

@test "TERM during on-acquire: the hook is ended, the command is not started, the lock is free" {
  job_start --hook-timeout 10m --on-acquire "$(hang pid)" --on-lost 'touch lost' a -- touch started
  wait_for_hook pid
  held
  kill -TERM "$frontend"
  job_status 143
  [[ ! -e started && ! -e lost ]]
  gone "$hook"
  free
}

@test "TERM during on-acquire that ignores it: killed after --kill-after" {
  job_start -k 500ms --hook-timeout 10m --on-acquire "$(hang pid "trap '' TERM;")" a -- touch started
  wait_for_hook pid
  kill -TERM "$frontend"
  job_status 143
  [[ ! -e started ]]
  gone "$hook"
  free
}

@test "INT during on-acquire: rlock dies of INT" {
  run -0 python3 - <<'EOF'
import os, signal, subprocess, time
job = subprocess.Popen([os.environ["RLOCK"], "run", "--on-acquire", "touch up; while :; do sleep 0.05; done", "a", "--", "touch", "started"],
                       preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
end = time.monotonic() + 20
while not os.path.exists("up"):
    assert time.monotonic() < end and job.poll() is None
    time.sleep(0.02)
job.send_signal(signal.SIGINT)
assert job.wait(20) == -signal.SIGINT, job.returncode
EOF
  [[ ! -e started ]]
  free
}

@test "TERM during on-release: it ends soon, nothing is left, the lock is free" {
  job_start -k 500ms --hook-timeout 10m --on-release "$(hang pid)" a -- true
  wait_for_hook pid
  held
  kill -TERM "$frontend"
  job_status
  [[ $status == 0 || $status == 143 ]]
  gone "$hook"
  free
}

@test "TERM during on-lost: it ends soon, and nothing is left" {
  job_start --lease 6s -k 300ms --hook-timeout 10m --on-lost "$(hang pid)" a -- sleep 1000
  job_parts
  lose
  wait_for_hook pid
  kill -TERM "$frontend"
  job_status
  [[ $status == 74 || $status == 143 ]]
  gone "$hook"
}

@test "kill -9 of the frontend during on-acquire: the hook is dead and the lock free, the command is not started" {
  job_start -k 300ms --on-acquire "$(hang pid "trap '' TERM;")" a -- touch started
  wait_for_hook pid
  kill -9 "$frontend"
  wait_until gone "$hook"
  wait_until free
  [[ ! -e started ]]
}

@test "kill -9 of the frontend during on-release: the hook is dead and the lock free" {
  job_start -k 300ms --on-release "$(hang pid "trap '' TERM;")" a -- true
  wait_for_hook pid
  kill -9 "$frontend"
  wait_until gone "$hook"
  wait_until free
}

@test "what on-release leaves in the background has ended when the lock is free" {
  job_start -k 1s --on-release "setsid sh -c \"$(hang pid "trap '' TERM;")\" & until [ -s pid ]; do sleep 0.02; done" a -- true
  wait_for_hook pid
  until gone "$hook"; do
    held || gone "$hook"
  done
  job_status 0
  free
}

@test "what on-lost leaves in the background has ended, too" {
  job_start --lease 6s -k 300ms --on-lost "($(hang pid "trap '' TERM;")) & until [ -s pid ]; do sleep 0.02; done" a -- sleep 100
  job_parts
  lose
  job_status 74
  gone "$(<pid)"
}

@test "on-lost from its variable" {
  RLOCK_ON_LOST='echo "$RLOCK_WHY" >why' job_start --lease 6s a -- sleep 100
  job_parts
  lose
  job_status 74
  [[ -s why ]]
}

@test "hooks from the configuration file; variables take precedence over it, options over both" {
  cat >conf <<'CONF'
on-acquire = "echo file >>log"
on-release = "echo \"file $RLOCK_EXIT_STATUS\" >>log"
hook-timeout = "300ms"
CONF
  chmod 600 conf
  run -0 rlock --config conf run a -- true
  lines_are log 'file file 0'
  rm log
  RLOCK_ON_ACQUIRE='echo variable >>log' run -0 rlock --config conf run a -- true
  lines_are log 'variable file 0'
  rm log
  RLOCK_ON_ACQUIRE='echo variable >>log' run -0 rlock --config conf run --on-acquire 'echo option >>log' a -- true
  lines_are log 'option file 0'
  run -78 --separate-stderr rlock --config conf run --on-acquire 'sleep 100' a -- true
  assert_says 300ms
}

@test "an empty hook variable, an empty hook and a bad --hook-timeout are refused, and nothing runs" {
  local variable bad
  for variable in RLOCK_ON_ACQUIRE RLOCK_ON_RELEASE RLOCK_ON_LOST RLOCK_HOOK_TIMEOUT; do
    run -78 --separate-stderr env "$variable=" timeout 20 "$RLOCK" run a -- touch started
    assert_says "$variable"
  done
  for bad in 0 -1s x '' '5 apples' 1e400; do
    run -64 --separate-stderr rlock run "--hook-timeout=$bad" --on-acquire 'touch hook' a -- touch started
    assert_says --hook-timeout
  done
  [[ ! -e started && ! -e hook ]]
  free
}

@test "--on-lost that stops itself ends when its time is up" {
  job_start --hook-timeout 500ms --on-lost 'touch up; kill -STOP $$' --lease 6s a -- sleep 1000
  wait_until held
  lose
  lose_noticed() { [[ -e up ]]; }
  wait_until lose_noticed
  job_status 74
}
