# Signals that come when no process seems to read them.

load ../lib/job
load ../lib/server

# waits_through SIGNAL COMMAND ...: a job that waits, listens for releases, and gets the signal then; it runs nevertheless.
waits_through() {
  local owner
  owner=$(rlock acquire job --lease 1m)
  "${@:2}" 3>&- &
  frontend=$!
  wait_until listened
  kill "$1" "$frontend"
  rlock release job --owner "$owner"
  exits "$frontend" 0
  [[ -e ran ]]
}
listened() { [[ $(listeners_on srv 'redisson_lock__channel:{job}') == 1 ]]; }
free() { [[ $(redis srv exists job) == 0 ]]; }

@test "a signal during an endless --on-acquire: the command gets it" {
  env --default-signal "$RLOCK" run --on-acquire 'touch hook; while [ ! -e go ]; do sleep 0.1; done' job -- \
    python3 -c 'import signal, sys
signal.signal(signal.SIGUSR1, lambda *_: sys.exit(5))
signal.pause()' 3>&- &
  frontend=$!
  wait_until test -e hook
  # Blocked until the program has set its handler, because the signal would end it before.
  kill -USR1 "$frontend"
  touch go
  status=0
  wait "$frontend" || status=$?
  [[ $status == 5 || $status == 138 ]]
  free
}

@test "no signal is lost while the monitor does not read" {
  # Real-time signals are queued, so each can be counted.
  job_start job -- python3 -c 'import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [40, 41])
open("ready", "w")
seen = 0
while signal.sigwait([40, 41]) == 40: seen += 1
print(seen)'
  job_parts
  wait_until test -e ready
  kill -STOP "$monitor"
  python3 -c "import os
for i in range(1000): os.kill($frontend, 40)"
  wait_until in_state "$frontend" S # it has passed on what there is room for
  kill -CONT "$monitor"
  kill -41 "$frontend" # of several, the lowest number is read first
  job_status
  [[ $status == 0 && $output == 1000 ]]
}

@test "a signal that was ignored at the start reaches a command that wants it, and does nothing to rlock" {
  # No pause(2), because a signal just before it would not be noticed until the next one.
  local wants='import signal, sys, time
signal.signal(signal.SIGHUP, lambda *_: sys.exit(9))
open("ready", "w")
while True: time.sleep(0.1)'
  nohup "$RLOCK" run job -- python3 -c "$wants" 3>&- &
  frontend=$!
  wait_until test -e ready
  kill -HUP "$frontend"
  exits "$frontend" 9

  waits_through -HUP nohup "$RLOCK" run job -- touch ran
}

@test "a signal that was blocked at the start does not end a waiting rlock" {
  waits_through -TERM python3 -c 'import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
os.execv(sys.argv[1], sys.argv[1:])' "$RLOCK" run job -- touch ran
}

@test "a TERM that comes to rlock and to its group, as timeout(1) sends it, leaves the grace" {
  # A leftover has time to clean up.
  run -124 timeout --kill-after=20 0.5 "$RLOCK" run -k 5s job -- bash -c \
    '(trap "sleep 0.5; touch cleaned; exit" TERM; touch ready; while :; do sleep 0.05; done) & sleep 1000'
  [[ -e ready ]]
  wait_until free
  [[ -e cleaned ]]
}

@test "TERM after the command has ended but left processes, or during --on-release, whose hook is stopped: rlock dies of it" {
  job_start --leftovers wait job -- bash -c 'sleep 1000 & while [ ! -e go ]; do sleep 0.1; done; exit 3'
  job_parts
  touch go
  wait_until gone "$command"
  nap 0.1
  kill -TERM "$frontend"
  job_status 143
  free
  job_start --on-release 'touch hook; sleep 1000' job -- true
  wait_until test -e hook
  nap 0.1
  kill -TERM "$frontend"
  job_status 143
  free
}

@test "the reader of --status-fd is gone: the job still waits and runs" {
  owner=$(rlock acquire job --lease 1m)
  python3 -c 'import os, signal, sys
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
reader, writer = os.pipe()
os.close(reader)
os.dup2(writer, 5)
os.set_inheritable(5, True)
os.execv(sys.argv[1], sys.argv[1:])' "$RLOCK" run --status-fd 5 job -- touch ran 2>err 3>&- &
  frontend=$!
  wait_until grep -q 'a line could not be written' err
  rlock release job --owner "$owner"
  wait "$frontend"
  [[ -e ran ]]
}
