# A waiter whose turn is next has its guards and its command ready. Regardless of what happens to them, the lock is
# taken once, the command runs once, and nothing is left behind.

load ../lib/job
load ../lib/server

setup() {
  use_server srv
  redis srv flushall >/dev/null # of a test that failed
  owner=$(rlock acquire x --lease 10m)
}
teardown() {
  end_mine -CONT "$frontend"
  end_mine_wholly "$frontend"
  assert_clean srv
}

it_is_ours() { queued x 0 && (($(redis srv pttl x) > 5000)); }
let_go() { rlock release x --owner "$owner"; }
both_gone() { wait_until gone "$monitor" && wait_until gone "$command"; }
# The first waiter: $frontend, $monitor and $command, which has executed nothing.
wait_first() {
  job_start "$@"
  job_parts
  [[ $(readlink "/proc/$command/exe") == $(readlink -f "$RLOCK") ]]
}
sockets_of() { find "/proc/$1/fd" -lname 'socket:*' 2>/dev/null | wc -l; }

@test "the first waiter has guards, the second is a single process" {
  wait_first x -- true
  "$RLOCK" run -w 1m x -- true 2>/dev/null 3>&- &
  local second=$!
  wait_until queued x 2
  not pgrep -P "$second"
  kill "$frontend"
  job_status 143
  wait_until child_of "$second" # it is the first one now
  let_go
  wait "$second"
}

@test "guards have no connection, so a dead waiter is not taken for a listener" {
  wait_first x -- true
  [[ $(sockets_of "$frontend") -ge 3 ]]
  wait_until eval '[[ $(sockets_of "$monitor") == 1 && $(sockets_of "$command") == 1 ]]' # to the frontend
  let_go
  job_status 0
}

@test "the command gets what is known only with the lock; so do the hooks" {
  wait_first --on-acquire 'echo "hook $RLOCK_TOKEN $RLOCK_OWNER" >>log' x -- \
    sh -c 'echo "command $RLOCK_TOKEN $RLOCK_OWNER" >>log; redis-cli -s "$1" get "redisson_lock_token:{x}" >token
           redis-cli -s "$1" hkeys x >owner' sh "$srv_sock"
  let_go
  job_status 0
  printf '%s %s %s\n' hook "$(<token)" "$(<owner)" command "$(<token)" "$(<owner)" | diff - log
}

@test "the waiter is killed: its guards are gone, and have executed nothing" {
  for signal in KILL{,}{,}{,}{,} TERM HUP; do # a race, when a killed one's monitor learns of it
    wait_first x -- touch ran
    began=$(now_ms)
    kill -s "$signal" "$frontend"
    job_status
    [[ $status == $((128 + $(kill -l "$signal"))) ]]
    both_gone
    # Nobody has to find out that it is dead, unless the server took longer than a leaving waiter may wait for it.
    [[ $(redis srv exists 'rlock:queue:{x}') == 0 ]] || past 500
    redis srv del 'rlock:queue:{x}' 'rlock:waiters:{x}'
  done
  let_go
  [[ ! -e ran ]]
}

@test "the wait is over: the guards are gone" {
  wait_first -w 10s x -- touch ran
  job_status
  [[ $status == 75 && ! -e ran ]]
  gone "$monitor"
  gone "$command"
  let_go
}

@test "the guards are killed: the command still runs, once" {
  for part in monitor command; do
    wait_first x -- sh -c 'echo "$RLOCK_TOKEN" >>log; exit 7'
    kill -KILL "${!part}"
    wait_until gone "$monitor"
    let_go
    job_status
    [[ $status == 7 && -z $(grep -v 'waiting for' <<<"$stderr") ]]
    owner=$(rlock acquire x --lease 10m)
  done
  [[ $(wc -l <log) == 2 ]]
  let_go
}

@test "the guards are killed unnoticed just before the lock comes: refused, and the lock is free" {
  wait_first x -- touch ran
  kill -STOP "$monitor"
  kill -KILL "$command"
  let_go
  wait_until it_is_ours
  kill -CONT "$monitor"
  job_status
  [[ $status == 71 && ! -e ran && $(redis srv exists x) == 0 ]]
  assert_says 'x: the process for the command was killed; the command was not started'
}

@test "a signal that comes with the lock ends the job before its hook is started" {
  wait_first --on-acquire 'touch hook' x -- touch ran
  kill -STOP "$monitor"
  let_go
  wait_until it_is_ours
  # A signal is passed on before the next one is taken.
  for signal in 15 10; do
    kill -"$signal" "$frontend"
    wait_until not pending "$signal" "$frontend"
  done
  kill -CONT "$monitor"
  job_status
  [[ $status == 143 && ! -e hook && ! -e ran && $(redis srv exists x) == 0 ]]
}

@test "a waiter that was stopped stays stopped when its guards are killed" {
  wait_first x -- sh -c 'exit 7'
  freeze "$frontend"
  kill -KILL "$command"
  wait_until eval '[[ -z $(child_of "$monitor") ]] || gone "$monitor"'
  wait_until in_state "$monitor" Z
  in_state "$frontend" T
  kill -CONT "$frontend"
  let_go
  job_status 7
}

@test "the server cuts connections and forgets the waiters: the command still runs" {
  wait_first x -- sh -c 'exit 7'
  redis srv client kill type normal skipme yes
  redis srv client kill type pubsub
  redis srv del 'rlock:queue:{x}' 'rlock:waiters:{x}'
  wait_until queued x 1
  let_go
  job_status 7
}

@test "a command that was stopped before its start is continued; a Ctrl-Z while waiting stops the waiter, not the command later" {
  wait_first x -- sh -c 'exit 7'
  freeze "$command"
  let_go
  job_status 7
  owner=$(rlock acquire x --lease 10m)
  wait_first x -- sh -c 'exit 7'
  # As a terminal sends it to the group; only the continued process gets SIGCONT.
  kill -TSTP "$frontend" "$command"
  wait_until in_state "$frontend" T
  kill -CONT "$frontend"
  let_go
  job_status 7
}

@test "--isolate for a waiter: its namespace is ready, too, and ends with it" {
  pid_namespaces || let_go
  needs_pid_namespaces
  wait_first --isolate x -- touch ran
  kill -KILL "$frontend"
  both_gone
  wait "$frontend" || true
  wait_first --isolate x -- sh -c 'echo $$ >pid; exit 7'
  let_go
  job_status
  [[ $status == 7 && $(<pid) -lt 10 && ! -e ran ]]
}
