# Jobs under a lock, and the processes they consist of.
#
#   job_start [OPTION ...] NAME -- COMMAND ...   rlock run in the background; sets $frontend
#   job_parts                                    sets $monitor and $command
#   job_until FILE [OPTION ...] NAME             the same with a command that creates the file begun, waits for FILE, and
#                                                exits with 3; returns when it runs
#   job_status [STATUS [TEXT]]                   waits for its end; sets $status like a shell; fails if it is another one, or
#                                                it has not said TEXT
#   job_finish FILE STATUS [TEXT]                the same when it has the FILE that it waits for
#   hands_over NAME SERVER                       a job that waits for the lock there has it after the release
#   kill_guards                                  SIGKILL for both guards, at the same instant as far as they can see
#   line_up NAME SERVER NUMBER                   NUMBER jobs wait for the lock there, one behind the other; sets $waiters.
#                                                Each writes its number to the file "order" when it runs
#   join_line NAME ID [OPTION ...]               a job that writes its id to the file "log" when its turn has come; returns
#                                                when it waits. Sets $waiter_ID, and adds it to $waiters
#   all_done                                     waits until these have succeeded, and empties $waiters
#   stop_waiters                                 SIGSTOP for all of these
#   had_their_turns NUMBER                       waits until they have run in the order of their arrival
#   tree FILE                                    a command: a tree of processes that is hard to end
#   heartbeat FILE                               a command: writes the time every 20 ms, forever
#   naps PID ...                                 how often the threads of these processes have gone to sleep so far

declare -F wait_until >/dev/null || source "${BASH_SOURCE[0]%/*}/common.bash"

job_start() {
  "$RLOCK" run "$@" >"$BATS_TEST_TMPDIR/job.out" 2>"$BATS_TEST_TMPDIR/job.err" 3>&- &
  frontend=$!
}

job_until() {
  job_start "${@:2}" -- bash -c 'touch begun; until [[ -e $0 ]]; do sleep 0.1; done; exit 3' "$1"
  wait_until test -e begun
}

job_parts() {
  wait_until monitor_of "$frontend"
  monitor=$(monitor_of "$frontend")
  command=$(child_of "$monitor")
}

job_status() {
  status=0
  wait "$frontend" || status=$?
  stderr=$(cat "$BATS_TEST_TMPDIR/job.err")
  output=$(cat "$BATS_TEST_TMPDIR/job.out")
  [[ $# == 0 || $status == "$1" ]] || { show && return 1; }
  [[ $# -lt 2 ]] || assert_says "$2"
}
job_finish() { touch "$1" && job_status "${@:2}"; }

hands_over() {
  local owner
  owner=$(rlock acquire "$1" --lease 60s)
  job_start "$1" -- echo mine
  wait_until queued "$1" 1 "$2"
  rlock release "$1" --owner "$owner"
  job_status 0
  [[ $output == mine ]]
}

# The frontend is stopped first, so it cannot act on the monitor's death. (The other way round, the kernel would
# continue the monitor, because its group is orphaned when the frontend dies.)
kill_guards() {
  freeze "$frontend"
  kill_off -KILL "$monitor"
  kill_off -KILL "$frontend"
}

line_up() {
  local i
  waiters=()
  waits() { [[ $(redis "$2" zcard "rlock:queue:{$1}") == "$3" ]]; }
  for ((i = 1; i <= $3; i++)); do
    "$RLOCK" run --lease 10s -w 10m "$1" -- bash -c "echo $i >>order" 2>>err 3>&- &
    waiters+=($!)
    wait_until waits "$1" "$2" "$i"
  done
}
join_line() {
  local name=$1 id=$2 before
  before=$(redis srv zcard "rlock:queue:{$name}")
  "$RLOCK" run "${@:3}" "$name" -- sh -c "echo $id >>log" 2>"err-$id" 3>&- &
  waiters+=($!)
  declare -g "waiter_$id=$!"
  wait_until queued "$name" $((before + 1))
}
all_done() {
  local waiter
  for waiter in "${waiters[@]}"; do wait "$waiter" || return; done
  waiters=()
}
stop_waiters() {
  local waiter
  kill -STOP "${waiters[@]}"
  for waiter in "${waiters[@]}"; do wait_until in_state "$waiter" T; done
}
had_their_turns() {
  local waiter
  for waiter in "${waiters[@]}"; do wait "$waiter"; done
  echo "order: $(paste -sd' ' order)"
  [[ $(<order) == "$(seq "$1")" ]]
  rm order
}

# The command, a grandchild that ignores TERM, and a daemon in its own session; each writes its pid to the file.
tree() {
  cat <<SCRIPT
    trap '' TERM
    (echo "\$BASHPID" >>$1; while :; do sleep 0.1; done) &
    setsid bash -c "trap '' TERM; echo \\\$\\\$ >>$1; while :; do sleep 0.1; done" </dev/null >/dev/null 2>&1 &
    echo "\$\$" >>$1
    while :; do sleep 0.1; done
SCRIPT
}

heartbeat() {
  printf '%s' "import os, time
f = open('$1', 'a', buffering=1)
while True:
    print(time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000000, file=f)
    time.sleep(0.02)"
}

# all_gone FILE: every process whose pid is in the file has ended.
all_gone() {
  local pid
  while read -r pid; do gone "$pid" || return 1; done <"$1"
}

lines_in() { [[ $(wc -l <"$1") -ge $2 ]]; }

# said TEXT: the job has written that to standard error.
said() { [[ -e $BATS_TEST_TMPDIR/job.err && $(<"$BATS_TEST_TMPDIR/job.err") == *"$1"* ]]; }

# pending NUMBER PID: the process has not taken that signal yet.
pending() { ((0x$(awk '/^ShdPnd/ { print $2 }' "/proc/$2/status") >> $1 - 1 & 1)); }

naps() { local pid; for pid; do cat "/proc/$pid/task/"*/status; done | awk '/^voluntary_ctxt_switches/ { sum += $2 } END { print sum + 0 }'; }
