#!/usr/bin/env bats
# rlock run --on-acquire, --on-release, --on-lost and --hook-timeout.

load ../lib/common
load ../lib/job

setup_file() { redis_start srv; }
setup() {
  RLOCK_URL=$(redis_url srv)
  export RLOCK_URL
  cd "$BATS_TEST_TMPDIR" || return
}
teardown() {
  # The leftovers of a failed test must not affect the others.
  end_mine_wholly "${frontend:-}"
  assert_clean srv
}
teardown_file() { redis_stop srv; }

# For the texts of hooks: who holds the lock a.
OWNER_OF_A='redis-cli -s "$srv_sock" hkeys a'

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

@test "the order is on-acquire, the command, on-release" {
  run -0 rlock run --on-acquire 'echo acquire >>log' --on-release 'echo release >>log' --on-lost 'echo lost >>log' a \
    -- sh -c 'echo command >>log'
  lines_are log 'acquire command release'
}

@test "the output of hooks goes to standard error, that of the command to standard output" {
  run -0 --separate-stderr rlock run --on-acquire 'echo one; echo two >&2' --on-release 'echo three; echo four >&2' a \
    -- echo command
  [[ $output == command && $stderr == $'one\ntwo\nthree\nfour' ]]
}

@test "-q does not silence the output of hooks" {
  run -0 --separate-stderr rlock -q run --on-acquire 'echo one' a -- true
  [[ $stderr == one ]]
}

@test "the standard input of hooks is empty, and all of ours is left for the command" {
  seq 100000 >in
  rlock run --on-acquire 'wc -c >acquire' --on-release 'wc -c >release' a -- cat <in >out
  cmp in out
  [[ $(<acquire) == 0 && $(<release) == 0 ]]
}

@test "a hook's standard input is empty if ours is closed" {
  run -0 bash -c '"$@" <&-' -- "$RLOCK" run --on-acquire 'wc -c >acquire' --on-release 'wc -c >release' a -- true
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

@test "hooks get no password" {
  redis srv acl setuser bob on '>sesame-7' '~*' '&*' +@all
  RLOCK_PASSWORD=sesame-7 REDISCLI_AUTH=sesame-7 run -0 --separate-stderr \
    rlock --url "unix://bob:sesame-7@$srv_sock" run --on-acquire env --on-release env a -- true
  [[ $stderr == *RLOCK_URL=unix://*RLOCK_URL=unix://* ]]
  # The address on our own command line causes a different warning.
  [[ $output$stderr != *sesame-7* ]]
}

@test "hooks are run by /bin/sh, regardless of SHELL" {
  SHELL=/bin/false run -0 --separate-stderr rlock run --on-acquire 'echo "$0"' a -- true
  [[ $stderr == *sh ]]
}

@test "a hook's text may start with a dash and have several lines" {
  run -0 rlock run --on-acquire=$'-x 2>/dev/null\necho "a  b" >acquire\ntrue' a -- true
  [[ $(<acquire) == 'a  b' ]]
}

@test "RLOCK_EXIT_STATUS is the command's status, and only on-release has it" {
  local status=0
  rlock run --on-acquire 'echo "${RLOCK_EXIT_STATUS-none}" >acquire' --on-release 'echo "$RLOCK_EXIT_STATUS" >release' a \
    -- sh -c 'echo "${RLOCK_EXIT_STATUS-none}" >command; exit 7' || status=$?
  [[ $status == 7 && $(<acquire) == none && $(<command) == none && $(<release) == 7 ]]
}

@test "RLOCK_EXIT_STATUS of a command killed by a signal is what a shell shows" {
  run -137 rlock run --on-release 'echo "$RLOCK_EXIT_STATUS" >release' a -- sh -c 'kill -9 $$'
  [[ $(<release) == 137 ]]
}

@test "on-release gets the command's status only once, regardless of RLOCK_EXIT_STATUS in our environment" {
  RLOCK_EXIT_STATUS=99 run -0 rlock run --on-release 'env | grep ^RLOCK_EXIT_STATUS= >release' a -- true
  [[ $(<release) == RLOCK_EXIT_STATUS=0 ]]
}

@test "the lock is held in on-acquire, the command and on-release, by the same owner" {
  run -0 --separate-stderr rlock run --on-acquire "$OWNER_OF_A" --on-release "$OWNER_OF_A" a -- sh -c "$OWNER_OF_A"
  [[ -n $output && $stderr == "$output"$'\n'"$output" ]]
  free
}

@test "the lock is renewed during on-acquire and on-release" {
  local wait='i=0; while [ $i -lt 65 ]; do sleep 0.1; i=$((i+1)); done; '
  run -0 --separate-stderr rlock -q run --lease 5s --on-acquire "$wait$OWNER_OF_A" --on-release "$wait$OWNER_OF_A" a -- sh -c "$OWNER_OF_A"
  [[ -n $output && $stderr == "$output"$'\n'"$output" ]]
}

@test "on-acquire fails: 78 and a message, the command is not started, and the lock is released" {
  run -78 --separate-stderr rlock run --on-acquire 'exit 5' --on-release 'touch release' --on-lost 'touch lost' a -- touch started
  assert_says 'on-acquire hook '
  assert_says 5
  [[ ! -e started && ! -e release && ! -e lost ]]
  free
}

@test "on-acquire is killed: 78, and the command is not started" {
  run -78 --separate-stderr rlock run --on-acquire 'kill -9 $$' a -- touch started
  assert_says 'on-acquire hook '
  [[ ! -e started ]]
  free
}

@test "on-acquire cannot be found or executed: 78" {
  touch plain
  run -78 --separate-stderr rlock run --on-acquire ./nothing a -- touch started
  assert_says 'on-acquire hook '
  run -78 --separate-stderr rlock run --on-acquire ./plain a -- touch started
  assert_says 'on-acquire hook '
  run -78 --separate-stderr rlock run --on-acquire 'if (' a -- touch started
  assert_says 'on-acquire hook '
  [[ ! -e started ]]
  free
}

@test "on-acquire hangs: stopped after --hook-timeout, 78" {
  began=$(now_ms)
  run -78 --separate-stderr rlock run --hook-timeout 300ms --on-acquire "$(hang pid)" a -- touch started
  past 299
  assert_says 'on-acquire hook '
  assert_says 300ms
  gone "$(<pid)"
  [[ ! -e started ]]
  free
}

@test "on-acquire hangs and ignores TERM: killed, 78" {
  run -78 rlock run -k 300ms --hook-timeout 300ms --on-acquire "$(hang pid "trap '' TERM;")" a -- touch started
  gone "$(<pid)"
  [[ ! -e started ]]
  free
}

@test "a hook that hangs is sent TERM first" {
  run -78 rlock run --hook-timeout 300ms --on-acquire "trap 'touch term; exit 0' TERM; while :; do sleep 0.05; done" a -- touch started
  [[ -e term && ! -e started ]]
}

@test "a hook that starts more processes and hangs: all of them are ended" {
  run -78 rlock run -k 300ms --hook-timeout 500ms \
    --on-acquire "(trap '' TERM; $(hang one)) & setsid sh -c '$(hang two)' & $(hang three)" a -- touch started
  gone "$(<one)"
  gone "$(<two)"
  gone "$(<three)"
  free
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

@test "on-release hangs: stopped after --hook-timeout, and the status is the command's" {
  run -4 --separate-stderr rlock run -k 300ms --hook-timeout 300ms --on-release "$(hang pid "trap '' TERM;")" a -- sh -c 'exit 4'
  assert_says 'on-release hook '
  assert_says 300ms
  gone "$(<pid)"
  free
}

@test "the lock is kept until a hook that hangs is dead" {
  job_start -k 1s --hook-timeout 300ms --on-release "$(hang pid "trap '' TERM;")" a -- true
  wait_for_hook pid
  until gone "$hook"; do
    held || gone "$hook"
  done
  job_status
  [[ $status == 0 ]]
}

@test "on-release runs when the command and everything that it has started have ended" {
  run -0 rlock run -k 300ms --on-release 'kill -0 "$(cat pid)" 2>/dev/null && touch alive; touch release' a \
    -- sh -c "(trap '' TERM; $(hang pid)) & until [ -s pid ]; do sleep 0.02; done"
  [[ -e release && ! -e alive ]]
  gone "$(<pid)"
}

@test "on-release runs after a signal to rlock, too" {
  job_start --on-release 'echo "$RLOCK_EXIT_STATUS" >release' a -- sleep 100
  job_parts
  kill -TERM "$frontend"
  job_status
  [[ $status == 143 && $(<release) == 143 ]]
}

@test "on-release runs after --max-hold, with the lock held" {
  run -124 --separate-stderr rlock run --max-hold 500ms --on-release "$OWNER_OF_A" --on-lost 'touch lost' a -- sh -c "$OWNER_OF_A; sleep 100"
  [[ -n $output && $stderr == *"$output" && ! -e lost ]]
}

@test "a command that is not found: on-release runs if on-acquire has run" {
  run -127 rlock run --on-acquire 'echo acquire >>log' --on-release 'echo "$RLOCK_EXIT_STATUS" >>log' a -- ./nothing
  [[ ! -e log ]] || lines_are log 'acquire 127'
  free
}

@test "the lock is not acquired: no hook runs" {
  local owner
  owner=$(rlock acquire --lease 30s a)
  run -75 rlock run -n --on-acquire 'touch hook' --on-release 'touch hook' --on-lost 'touch hook' a -- touch started
  [[ ! -e hook && ! -e started ]]
  rlock release a --owner "$owner"
}

@test "no server: no hook runs" {
  run -69 rlock --url "unix://$PWD/nobody" run --on-acquire 'touch hook' --on-release 'touch hook' --on-lost 'touch hook' a -- true
  [[ ! -e hook ]]
}

@test "on-lost runs after the lock was lost and the command was stopped; on-release does not" {
  job_start --lease 6s -k 300ms --on-release 'touch release' \
    --on-lost 'kill -0 "$(cat pid)" 2>/dev/null && touch alive; echo "$RLOCK_NAME $RLOCK_OWNER" >lost; echo "$RLOCK_WHY" >why; echo said' \
    a -- sh -c "trap '' TERM; $(hang pid)"
  wait_for_hook pid
  local owner
  owner=$(redis srv hkeys a)
  lose
  job_status
  show
  [[ $status == 74 && $(<lost) == "a $owner" && ! -e alive && ! -e release && -z $output ]]
  assert_says said
  # The reason in rlock's message.
  [[ -s why ]]
  assert_says "$(<why)"
}

@test "an on-lost hook that fails causes a warning and changes nothing" {
  job_start --lease 6s --on-lost 'touch lost; exit 3' a -- sh -c "$(hang pid)"
  wait_for_hook pid
  lose
  job_status
  show
  [[ $status == 74 && -e lost ]]
  assert_says 'warning: a: --on-lost hook exited with 3'
}

@test "on-lost runs without the lock: another may hold it" {
  job_start --lease 6s --on-lost 'redis-cli -s "$srv_sock" hkeys a >holder' a -- sleep 100
  job_parts
  redis srv eval "redis.call('del', KEYS[1]); redis.call('hset', KEYS[1], 'other:1', 1); redis.call('pexpire', KEYS[1], 60000)" 1 a
  job_status
  [[ $status == 74 && $(<holder) == other:1 ]]
  [[ $(redis srv hgetall a) == $'other:1\n1' ]]
  redis srv del a 'rlock:holder:{a}'
}

@test "on-lost gets the reason only once, regardless of RLOCK_WHY in our environment" {
  RLOCK_WHY=nonsense job_start --lease 6s --on-lost 'echo "$RLOCK_WHY" >why' a -- sleep 100
  job_parts
  lose
  job_status
  [[ $status == 74 && -s why && $(<why) != *nonsense* ]]
}

@test "the lease ends with --no-renew: on-lost says so, and on-release does not run" {
  run -74 --separate-stderr rlock run --no-renew --lease 3s --on-lost 'echo "$RLOCK_WHY" >why' --on-release 'touch release' a -- sleep 100
  [[ $(<why) == *"prevents its renewal"* && ! -e release ]]
}

@test "on-lost fails or hangs: still 74" {
  local text
  for text in 'exit 5' "$(hang pid "trap '' TERM;")"; do
    job_start --lease 6s -k 300ms --hook-timeout 300ms --on-lost "touch lost; $text" a -- sleep 100
    job_parts
    lose
    job_status
    [[ $status == 74 && -e lost ]]
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
  job_status
  [[ $status == 74 && -s why ]]
}

@test "on-lost does not run if all goes well, nor if the command fails" {
  run -3 rlock run --on-lost 'touch lost' a -- sh -c 'exit 3'
  [[ ! -e lost ]]
}

@test "the lock is lost during on-acquire: the hook is stopped, the command is not started, 74" {
  job_start --lease 6s -k 300ms --on-acquire "$(hang pid "trap '' TERM;")" --on-release 'touch release' --on-lost 'touch lost' a -- touch started
  wait_for_hook pid
  lose
  job_status
  show
  [[ $status == 74 && ! -e started && ! -e release && -e lost ]]
  gone "$hook"
}

@test "the lock is lost during on-release: the hook is stopped before its time is up" {
  job_start --lease 6s -k 300ms --hook-timeout 10m --on-release "$(hang pid "trap '' TERM;")" a -- sh -c 'exit 4'
  wait_for_hook pid
  lose
  job_status
  show
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
  job_status
  show
  [[ $status == 143 && ! -e started && ! -e lost ]]
  gone "$hook"
  free
}

@test "TERM during on-acquire that ignores it: killed after --kill-after" {
  job_start -k 500ms --hook-timeout 10m --on-acquire "$(hang pid "trap '' TERM;")" a -- touch started
  wait_for_hook pid
  kill -TERM "$frontend"
  job_status
  show
  [[ $status == 143 && ! -e started ]]
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
  show
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
  show
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

@test "what on-acquire leaves in the background does not delay the command, and has ended when the lock is free" {
  run -0 rlock run -k 300ms --hook-timeout 10m --on-acquire "($(hang pid "trap '' TERM;")) & until [ -s pid ]; do sleep 0.02; done" a -- sh -c "$OWNER_OF_A"
  gone "$(<pid)"
  free
}

@test "what on-release leaves in the background has ended when the lock is free" {
  job_start -k 1s --on-release "setsid sh -c \"$(hang pid "trap '' TERM;")\" & until [ -s pid ]; do sleep 0.02; done" a -- true
  wait_for_hook pid
  until gone "$hook"; do
    held || gone "$hook"
  done
  job_status
  [[ $status == 0 ]]
  free
}

@test "what on-lost leaves in the background has ended, too" {
  job_start --lease 6s -k 300ms --on-lost "($(hang pid "trap '' TERM;")) & until [ -s pid ]; do sleep 0.02; done" a -- sleep 100
  job_parts
  lose
  job_status
  [[ $status == 74 ]]
  gone "$(<pid)"
}

@test "only --hook-timeout stops hooks, not the command's --max-hold" {
  run -0 rlock run --max-hold 1s --on-release 'sleep 1.5; touch release' a -- true
  [[ -e release ]]
}

@test "hooks from the variables" {
  RLOCK_ON_ACQUIRE='echo acquire >>log' RLOCK_ON_RELEASE='echo release >>log' RLOCK_ON_LOST='echo lost >>log' \
    run -0 rlock run a -- sh -c 'echo command >>log'
  lines_are log 'acquire command release'
  RLOCK_ON_ACQUIRE=false run -78 rlock run a -- touch started
  RLOCK_HOOK_TIMEOUT=300ms RLOCK_ON_ACQUIRE='sleep 100' run -78 --separate-stderr rlock run a -- touch started
  assert_says 300ms
  [[ ! -e started ]]
}

@test "on-lost from its variable" {
  RLOCK_ON_LOST='echo "$RLOCK_WHY" >why' job_start --lease 6s a -- sleep 100
  job_parts
  lose
  job_status
  [[ $status == 74 && -s why ]]
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

@test "only run has hooks" {
  run -64 rlock acquire --lease 5s --on-acquire true a
  run -64 rlock release --on-release true --owner x a
  free
}

@test "a nested run in a hook shares the lock" {
  run -0 --separate-stderr rlock run --on-acquire '"$RLOCK" run -n a -- echo inside' --on-release '"$RLOCK" run -n a -- echo inside' a -- true
  [[ $stderr == $'inside\ninside' ]]
}

@test "a hook does not get the descriptor of --status-fd" {
  run -0 --separate-stderr bash -c '"$RLOCK" run --status-fd 7 --on-acquire "ls /proc/self/fd | tr \"\\n\" \" \"" a -- true 7>lines'
  [[ -s lines && " $stderr " != *' 7 '* ]]
}

@test "--on-lost that stops itself ends when its time is up" {
  job_start --hook-timeout 500ms --on-lost 'touch up; kill -STOP $$' --lease 6s a -- sleep 1000
  wait_until held
  lose
  lose_noticed() { [[ -e up ]]; }
  wait_until lose_noticed
  job_status
  [[ $status == 74 ]]
}
