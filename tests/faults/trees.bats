# Killing costs what the tree costs, regardless of other processes on the host; a tree that keeps forking is ended, too.

load ../lib/processes

setup_file() {
  redis_start srv
  cc -O2 -o "$BATS_FILE_TMPDIR/hopper" "$TESTS_DIR/lib/hopper.c"
}
setup() {
  use_server srv
  pids=$BATS_TEST_TMPDIR/pids hopper=$BATS_FILE_TMPDIR/hopper
  : >"$pids"
  mkfifo fifo
  # Neither in the job nor above it, so a guard that looks for its tree must not read it.
  sleep 1000 3>&- &
  stranger=$!
}
teardown() {
  kill "$stranger"
  [[ ! -e page ]] || "$hopper" page end
  all_gone "$pids"
  lose
  assert_clean srv
}

# A program under strace(1) is slow, but does the same.
traced=(env "ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0" strace -f -qq --seccomp-bpf -o trace)
can_trace() { "${traced[@]}" true 2>/dev/null || skip 'PROCESSES CANNOT BE TRACED HERE: strace(1) is missing or not allowed'; }
lists_children() { [[ -r /proc/thread-self/children ]] || skip 'THIS KERNEL DOES NOT LIST CHILDREN (CONFIG_PROC_CHILDREN)'; }
# watched [OPTION ...] NAME -- COMMAND ...: a job as with job_start; `trace` records what its processes open.
watched() {
  "${traced[@]}" -e trace=open,openat "$RLOCK" run "$@" >job.out 2>job.err 3>&- &
  frontend=$!
}
nothing_of_strangers() {
  [[ -s trace ]]
  ! grep -F "/proc/$stranger/" trace
}
# daemons N: N processes in their own sessions, which only die of SIGKILL; their pids are in the file.
daemons() {
  echo "trap '' TERM; for i in {1..$1}; do setsid bash -c 'trap \"\" TERM; echo \$\$ >>$pids; while :; do read -t 1000 <>fifo; done' </dev/null >/dev/null 2>&1 & done; while :; do read -t 1000 <>fifo; done"
}
@test "a lost lock: only processes of the tree are read; and so if the monitor is killed" {
  can_trace && lists_children
  # strace(1) is the parent of the frontend.
  for how in lose 'kill -9 "$(child_of "$(child_of "$frontend")")"'; do
    watched --lease 3s -k 200ms job -- bash -c "$(daemons 3)"
    wait_until lines_in "$pids" 3
    eval "$how"
    job_status 74
    all_gone "$pids"
    nothing_of_strangers
    : >"$pids"
    redis srv del job 'rlock:holder:{job}'
  done
}

@test "the end of a job and its leftovers: only processes of the tree are read" {
  can_trace && lists_children
  for isolate in '' --isolate; do
    [[ -z $isolate ]] || pid_namespaces || continue
    watched $isolate -k 200ms job -- bash -c '(trap "" TERM; touch ready; exec sleep 1000) & until [[ -e ready ]]; do sleep 0.1; done; exit 3'
    job_status
    show
    [[ $status == 3 ]]
    nothing_of_strangers
    rm ready
  done
}

@test "the tree is found even if the kernel does not list children" {
  can_trace
  "${traced[@]}" -P /proc/thread-self/children -e trace='?access,?faccessat,?faccessat2' \
    -e inject='?access,?faccessat,?faccessat2:error=ENOENT' \
    "$RLOCK" run --lease 3s -k 200ms job -- bash -c "$(daemons 3)" >job.out 2>job.err 3>&- &
  frontend=$!
  wait_until lines_in "$pids" 3
  lose
  job_status 74
  all_gone "$pids"
  grep -q INJECTED trace
}

@test "the monitor takes long to kill many processes: the frontend sees that it is still killing" {
  can_trace
  # 80 signals at the start of the end, which come in time; then each SIGKILL takes 50 ms.
  "${traced[@]}" -e trace=kill -e inject=kill:delay_enter=50000:when=82+ \
    "$RLOCK" run --no-renew --lease 10s -k 3s job -- bash -c "$(daemons 40)" >job.out 2>job.err 3>&- &
  frontend=$!
  WAIT_SECONDS=60 job_status
  show
  [[ $status == 74 ]]
  all_gone "$pids"
  delayed=$(grep -c DELAYED trace) || skip 'THE MACHINE WAS TOO SLOW: the monitor had no turn before the frontend'
  echo "$delayed signals were delayed"
  [[ $stderr != *'monitor of this job'* ]]
}

@test "the monitor of a tree that keeps forking is killed: the tree is dead before the next one has the lock" {
  job_start --lease 8s job -- "$hopper" page 100 30 100000
  forks() { (($("$hopper" page read | cut -d' ' -f2) > $1)); }
  wait_until test -s page
  wait_until forks 400
  job_parts
  kill -9 "$monitor"
  began=$(rlock run -q job -- python3 -c 'import time; print(time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000000)')
  job_status 74
  [[ $stderr != *'cannot be killed'* ]] || skip 'THE MACHINE WAS TOO SLOW: the tree forked faster than the frontend could kill it'
  last=$("$hopper" page read | cut -d' ' -f1)
  echo "the next one began $((began - last)) ms after the last sign of life"
  ((last < began))
  # No process of the tree that could write this is left.
  [[ $("$hopper" page read) == "$last "* ]]
}

@test "a tree that forks faster than it can be killed: the message says so, names some pids, and does not call it unkillable" {
  can_trace
  # A hopper lives for 10 ms, or a few times that on a busy machine, and no signal is sent in less than 300 ms.
  "${traced[@]}" -e trace=kill -e inject=kill:delay_enter=300000 \
    "$RLOCK" run --max-hold 300ms -k 100ms job -- "$hopper" page 7 10 5000 >job.out 2>job.err 3>&- &
  frontend=$!
  said_or_over() { said 'keeps forking' || gone "$frontend"; }
  WAIT_SECONDS=30 wait_until said_or_over
  "$hopper" page end
  job_status 124
  [[ $(grep -c 'keeps forking, faster than it can be killed' job.err) == 1 ]]
  [[ $(grep 'keeps forking' job.err | grep -o '(hopper)' | wc -l) -le 5 ]]
  not said 'cannot be killed;'
  not said 'that /proc does not show'
}

@test "the stop that is part of the killing only stops the tree" {
  job_start --max-hold 500ms -k 100ms job -- "$hopper" page 50 10 5000
  # The frontend would wait for somebody to continue it.
  job_status 124
  free
}

@test "/proc is that of another PID namespace: its processes are not taken for ours" {
  unshare -p -f --mount-proc true 2>/dev/null || skip 'PID NAMESPACES ARE NOT ALLOWED HERE'
  # Whatever number the monitor has: there, too, it belongs to a child of process 1, which has a child of its own. The
  # command's leftover does not end by SIGTERM, which it does not get, but by itself.
  unshare -p -f --mount-proc --kill-child bash -c 'for i in {1..30}; do
      (until [ -e all ]; do read -t 0.05 <>fifo; done; sleep 1000 & wait) &
    done
    touch all
    until (($(pgrep -cx sleep) == 30)); do read -t 0.05 <>fifo; done
    unshare -p -f --kill-child "$RLOCK" run -k 100ms job -- sh -c "until [ -e go ]; do sleep 0.1; done & exit 6"
    ' >job.out 2>job.err 3>&- &
  frontend=$!
  wait_until said 'a process that /proc does not show'
  [[ $(grep -c 'cannot be killed' job.err) == 1 ]]
  job_finish go 6
  tells 74 'hook did not end within 200ms' unshare -p -f --kill-child "$RLOCK" run --lease 1s --hook-timeout 200ms --on-lost 'exec sleep 100' job -- sh -c "redis-cli -s $srv_sock del job; exec sleep 100"
}
