# rlock run --on-acquire, --on-release, --on-lost and --hook-timeout.

load ../lib/server
load ../lib/job

teardown() {
  # The leftovers of a failed test must not affect the others.
  end_mine_wholly "${frontend:-}"
  assert_clean srv
}

held() { [[ $(redis srv exists a) == 1 ]]; }
free() { [[ $(redis srv exists a 'rlock:holder:{a}') == 0 ]]; }
# hang FILE [KEEP_ON]: a hook that writes its pid to the file and does not end.
hang() { echo "${2:-} echo \$\$ >$PWD/$1; while :; do sleep 0.05; done"; }
# wait_for_hook FILE: waits until the hook of hang runs; sets $hook.
wait_for_hook() {
  wait_until test -s "$1"
  hook=$(<"$1")
}
# lose: deletes the lock a on the server.
lose() { redis srv del a 'rlock:holder:{a}'; }

@test "the lock is kept until a hook that hangs is dead, and what on-release has left in the background" {
  for text in "$(hang pid "trap '' TERM;")" "setsid sh -c \"$(hang pid "trap '' TERM;")\" & until [ -s pid ]; do sleep 0.1; done"; do
    rm -f pid
    job_start -k 1s --hook-timeout 300ms --on-release "$text" a -- true
    wait_for_hook pid
    until gone "$hook"; do
      held || gone "$hook"
      nap 0.02
    done
    job_status 0
    free
  done
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
  owner=$(redis srv hkeys a)
  lose
  job_status 74
  [[ $(<lost) == "a $owner" && ! -e alive && ! -e release && -z $output ]]
  assert_says said
  # The reason in rlock's message.
  [[ -s why ]]
  assert_says "$(<why)"
}

@test "on-lost, from its variable, runs without the lock, and gets the reason once, regardless of RLOCK_WHY around it" {
  RLOCK_WHY=nonsense RLOCK_ON_LOST='echo "$RLOCK_WHY" >why; redis-cli -s "$srv_sock" hkeys a >holder' job_start --lease 6s a -- sleep 100
  job_parts
  redis srv eval "redis.call('del', KEYS[1]); redis.call('hset', KEYS[1], 'other:1', 1); redis.call('pexpire', KEYS[1], 60000)" 1 a
  job_status 74
  [[ $(<holder) == other:1 && $(redis srv hgetall a) == $'other:1\n1' ]]
  [[ -s why && $(<why) != *nonsense* ]]
  redis srv del a 'rlock:holder:{a}'
}

@test "on-lost fails, hangs or stops itself: a warning, and still 74" {
  for text in 'exit 5' "$(hang pid "trap '' TERM;")" 'kill -STOP $$'; do
    job_start --lease 6s -k 300ms --hook-timeout 300ms --on-lost "touch lost; $text" a -- sleep 100
    job_parts
    lose
    job_status 74
    [[ -e lost && $stderr == *'warning: a: --on-lost hook '* ]]
    [[ $text != exit* || $stderr == *'--on-lost hook exited with 5'* ]]
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

@test "the lock is lost during on-acquire: the hook is stopped, the command is not started, 74; during on-release: it is stopped before its time is up" {
  job_start --lease 6s -k 300ms --on-acquire "$(hang pid "trap '' TERM;")" --on-release 'touch release' --on-lost 'touch lost' a -- touch started
  wait_for_hook pid
  lose
  job_status 74
  [[ ! -e started && ! -e release && -e lost ]]
  gone "$hook"
  rm pid
  job_start --lease 6s -k 300ms --hook-timeout 10m --on-release "$(hang pid "trap '' TERM;")" a -- sh -c 'exit 4'
  wait_for_hook pid
  lose
  job_status
  gone "$hook"
  # The command itself has ended in time, but not the work under the lock.
  [[ $status == 4 || $status == 74 ]]
  assert_says 'the lock is lost'
}

@test "TERM during on-acquire: the hook is ended, also if it ignores TERM, the command is not started, the lock is free" {
  for deaf in '' "trap '' TERM;"; do
    rm -f pid
    job_start -k 500ms --hook-timeout 10m --on-acquire "$(hang pid "$deaf")" --on-lost 'touch lost' a -- touch started
    wait_for_hook pid
    held
    kill -TERM "$frontend"
    job_status 143
    [[ ! -e started && ! -e lost ]]
    gone "$hook"
    free
  done
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

@test "kill -9 of the frontend during on-acquire or on-release: the hook is dead and the lock free, the command is not started" {
  for when in on-acquire on-release; do
    rm -f pid started
    job_start -k 300ms "--$when" "$(hang pid "trap '' TERM;")" a -- touch started
    wait_for_hook pid
    kill -9 "$frontend"
    wait_until gone "$hook"
    wait_until free
    [[ $when == on-release || ! -e started ]]
  done
}

@test "what on-lost leaves in the background has ended, too" {
  job_start --lease 6s -k 300ms --on-lost "($(hang pid "trap '' TERM;")) & until [ -s pid ]; do sleep 0.1; done" a -- sleep 100
  job_parts
  lose
  job_status 74
  gone "$(<pid)"
}
