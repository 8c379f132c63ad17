# rlock force-unlock: it shows the holder, asks, and takes the lock away.

load ../lib/server

free() { [[ $(redis srv exists "$1" "rlock:holder:{$1}") == 0 ]]; }
on_terminal() { python3 "$TESTS_DIR/lib/terminal.py" '[y/N]' "$@"; }

# job_under ID: a shell starts a job under $owner that runs until there is a file end-ID, and waits until it has begun.
job_under() {
  echo "$RLOCK run --owner $owner a -- sh -c 'trap \"touch asked-$1\" TERM; touch begun-$1
    until [ -e end-$1 ]; do sleep 0.1; done' 2>/dev/null 3>&- & until [ -e begun-$1 ]; do sleep 0.1; done;"
}
unused() { [[ -z $(redis srv hget 'rlock:holder:{a}' control) ]]; }

@test "a command that begins under the hold while the operator is asked keeps its lock, and the operator is asked again" {
  owner=$(take a)
  MEANWHILE=$(job_under 1) run -75 on_terminal $'y\nn' "$RLOCK" force-unlock a
  assert_says 'a: unchanged, because another command has begun to use this lock meanwhile'
  assert_says 'Take this lock away on' 'Stop this command and free the lock on' 'unchanged'
  [[ $(redis srv hget a "$owner") == 2 ]]
  # Another one takes its place meanwhile.
  MEANWHILE="touch end-1; until ! redis-cli -s $srv_sock hget 'rlock:holder:{a}' control | grep -q .; do sleep 0.02; done; $(job_under 2)" \
    run -75 on_terminal $'y\nn' "$RLOCK" force-unlock a
  assert_says 'unchanged, because another command has begun'
  [[ ! -e asked-2 ]]
  touch end-2
  wait_until unused
  rlock release a --owner "$owner"
}

# nested ID: a command under the inherited hold of $owner; a shell does as in job_under.
nested() {
  echo "RLOCK_HELD='$owner a' $RLOCK run a -- sh -c 'touch begun-$1; until [ -e end-$1 ]; do sleep 0.1; done' 2>/dev/null 3>&- &
    until [ -e begun-$1 ]; do sleep 0.1; done;"
}
held_once() { [[ $(redis srv hget a "$owner") == 1 ]]; }
# ends ID: the shell ends that nested command, and waits for the release of its hold.
ends() { echo "touch end-$1; until [ \"\$(redis-cli -s $srv_sock hget a $owner)\" = 1 ]; do sleep 0.1; done;"; }

@test "a nested command that takes the place of another keeps its lock, and the operator is asked again" {
  owner=$(take a)
  eval "$(nested 1)"
  MEANWHILE=$(ends 1 && nested 2) run -75 on_terminal $'y\nn' "$RLOCK" force-unlock a
  assert_says 'a: unchanged, because another command has begun to use this lock meanwhile'
  [[ $(redis srv hget a "$owner") == 2 ]]
  # One that has ended takes nothing from what was shown.
  MEANWHILE=$(ends 2) run -0 on_terminal y "$RLOCK" force-unlock a
  free a
  # Under a job that could be asked to stop, and under one that is not asked (--now).
  "$RLOCK" run a -- sh -c 'touch begun-job; until [ -e end-job ]; do sleep 0.1; done' 2>/dev/null 3>&- &
  wait_until test -e begun-job
  owner=$(redis srv hget 'rlock:holder:{a}' owner)
  eval "$(nested 3)"
  MEANWHILE=$(ends 3 && nested 4) run -75 on_terminal $'y\nn' "$RLOCK" force-unlock a
  assert_says 'a: unchanged, because another command has begun to use this lock meanwhile'
  MEANWHILE=$(ends 4 && nested 5) run -75 on_terminal $'y\nn' "$RLOCK" force-unlock --now a
  assert_says 'a: unchanged, because another command has begun to use this lock meanwhile'
  touch end-5
  wait_until held_once
  touch end-job
  wait_until free a
}

@test "what a job that nobody could ask has left to its owner is taken away" {
  owner=$(rlock acquire --lease 10m a)
  redis srv acl setuser deaf on '>pw' '~*' +@all resetchannels
  RLOCK_URL=unix://deaf:pw@$srv_sock eval "$(job_under 1)"
  "$RLOCK" force-unlock -y a >told 3>&- &
  unlocking=$!
  wait_until grep -q 'the holder does not answer' told
  let_end end-1 "$unlocking"
  [[ $(tail -n 1 told) == 'a: the holder no longer has it' ]]
  free a
  redis srv acl deluser deaf
}

@test "a single 0 is published, and a waiter is woken long before the lease ends" {
  local pid waiter
  rlock acquire --lease 10m a
  redis-cli -s "$srv_sock" subscribe 'redisson_lock__channel:{a}' >heard 3>&- &
  pid=$!
  wait_until waiters a 1
  "$RLOCK" run a -- touch started 3>&- &
  waiter=$!
  wait_until waiters a 2
  rlock force-unlock --yes a
  wait "$waiter"
  [[ -e started ]]
  redis srv publish 'redisson_lock__channel:{a}' end
  wait_until grep -qx end heard
  kill "$pid"
  [[ $(grep -A2 -x message heard | grep -cx 0) == 2 ]] # the other one is the job's
}

@test "-w 0 asks the holder once, and does not wait: 75, and the command ends" {
  # It ends slowly.
  "$RLOCK" run --lease 3m -k 60s x -- sh -c 'trap "" TERM; until [ -e go ]; do sleep 0.1; done' >/dev/null 2>&1 3>&- &
  local job=$! asked
  # It can be asked as soon as it listens.
  listens() { [[ $(listeners_on srv 'rlock:control:{x}') == 1 ]]; }
  wait_until listens
  tells 75 'x: the holder has been asked to stop' rlock force-unlock --yes -w 0 x
  [[ $output != *'waiting for it'* ]]
  touch go
  asked=0
  wait "$job" || asked=$?
  ((asked == 74))
}

@test "the question says how many commands it is about, and how to choose one" {
  for name in a b; do
    "$RLOCK" run --slots 2 s -- sh -c "touch $name; exec sleep 1000" 2>/dev/null 3>&- &
    wait_until test -e $name
  done
  run -75 on_terminal n "$RLOCK" force-unlock s
  [[ $output == *'Stop all 2 commands and free the lock on'*'? --owner or --slot chooses one. [y/N]'* ]]
  run -75 on_terminal n "$RLOCK" force-unlock --now s
  [[ $output == *'Take this lock away from all 2 commands on'*'may still run.'* ]]
  tells 75 'Stop this command and free the lock on' on_terminal n "$RLOCK" force-unlock --slot 1 s
  rlock force-unlock --yes s
}
