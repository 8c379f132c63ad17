# Guards and commands are killed and stopped: the command never outlives its lock.

load ../lib/processes

# killed PART: one process of a job with a tree that is hard to end, N times. kill9.py says what must hold.
killed() {
  # The limit of 50 ms is for a quiet machine. Here it only matters that all die.
  run -0 python3 "$TESTS_DIR/faults/kill9.py" --victim "$1" --count "${KILL9_COUNT:-10}" --p99 10000
  echo "# $output" >&3
}

@test "kill -9 of the frontend: the tree is dead and the lock free at once, long before the lease ends" { killed frontend; }
@test "kill -9 of the monitor: the tree is dead, the status is 74, and the lock is kept until its lease ends" { killed monitor; }
@test "kill -9 of the command: its tree is ended, the lock is free, and the shell sees the signal" { killed command; }

@test "kill -9 of both guards at once: the command dies with them, and the lock is kept until its lease ends" {
  job_start job -- sleep 1000
  job_parts
  local inner=$command
  kill_guards
  wait_until gone "$inner"
  run -75 rlock run -n job -- true
  redis srv pexpire job 1000
  run -0 rlock run --wait 1m job -- true
}

@test "SIGSTOP of the monitor past the deadline: the frontend ends the tree before the lease does" {
  job_start --lease 6s job -- python3 -c "$(heartbeat "$PWD/beats")"
  wait_until lines_in beats 3
  job_parts
  kill -STOP "$monitor"
  stopped=$(now_ms)
  job_status 74
  echo "last sign of life $(($(tail -n 1 beats) - stopped)) ms after the stop"
  (($(tail -n 1 beats) < stopped + 6000))
}

@test "SIGSTOP of the frontend: the lock is kept, and the job ends normally" {
  job_until go --lease 12s job
  job_parts
  kill -STOP "$frontend"
  token=$(redis srv hget 'rlock:holder:{job}' token)
  # Renewed for longer than its first lease.
  began=$(now_ms)
  wait_until past 13000
  [[ $(redis srv hget 'rlock:holder:{job}' token) == "$token" ]]
  touch go
  kill -CONT "$frontend" || gone "$frontend" # the monitor has let it go on
  job_status 3
}

# paused ORDER: a job of its own, whose processes are stopped past the lease and continued in this order.
paused() {
  local job=pause-${1// /-} frontend monitor command begun who status=0
  "$RLOCK" run -q --lease 3s "$job" -- python3 -S -c "$(heartbeat "$PWD/$job")" 2>>err 3>&- &
  frontend=$!
  wait_until test -s "$job"
  job_parts
  kill -STOP "$monitor" "$frontend" "$command"
  began=$(now_ms)
  wait_until past 3100
  begun=$(now_ms)
  for who in $1; do kill -CONT "${!who}" || true; done # a guard that was continued before has killed it
  wait "$frontend" || status=$?
  echo "$job: the command ran on for $(($(tail -n 1 "$job") - begun)) ms, status $status"
  ((status == 74 && $(tail -n 1 "$job") < begun + 1000)) && gone "$monitor" && gone "$command"
}

@test "all of a job stopped past the lease, as on a suspended machine, and continued in each order: dead at once, with 74" {
  local order orders=()
  for order in 'frontend monitor command' 'frontend command monitor' 'monitor frontend command' 'monitor command frontend' \
    'command frontend monitor' 'command monitor frontend'; do
    paused "$order" &
    orders+=($!)
  done
  for order in "${orders[@]}"; do wait "$order"; done
}
