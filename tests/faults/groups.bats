# Without a shell's job control, as in cron, in CI and with ssh(1), the process group of a job is orphaned, and the
# script that calls rlock is in it. It has to be treated as it would be without rlock.
#
# When the end of a process makes a group orphaned that has a stopped member, the kernel sends SIGHUP to all of it
# (POSIX, _Exit()). So an orphaned group must never look as if it were not.

load ../lib/common
load ../lib/job
load ../lib/server

# in_script TEXT: runs it as a script in an orphaned group, with a stopped process in it. Prints "hangup" for a SIGHUP.
in_script() {
  run -0 --separate-stderr setsid -w timeout --foreground -k 1 30 bash -c '
    trap "echo hangup" HUP
    bash -c "kill -STOP \$\$" >/dev/null 2>&1 &
    stopped=$!
    trap "kill -9 $stopped" EXIT
    until grep -q "^State:.T" "/proc/$stopped/status"; do sleep 0.02; done
    eval "$1"' script "$1"
}

@test "a job ends while another process in its group is stopped: the script continues" {
  in_script '"$RLOCK" run x -- sh -c "exit 3"; echo "status $?"'
  [[ $output == 'status 3' ]]
}

@test "a job with hooks ends so" {
  in_script '"$RLOCK" run --on-acquire "echo one" --on-release "echo three" x -- echo two 2>&1; echo "status $?"'
  [[ $output == $'one\ntwo\nthree\nstatus 0' ]]
}

@test "a job with its own namespace ends so" {
  needs_pid_namespaces
  in_script '"$RLOCK" run --isolate x -- echo inside; echo "status $?"'
  [[ $output == $'inside\nstatus 0' ]]
}

@test "a job with its own namespace and orphans in it ends so" {
  needs_pid_namespaces
  in_script '"$RLOCK" run --isolate x -- sh -c "
      (true & echo \$! >orphan)
      while kill -0 \$(cat orphan) 2>/dev/null; do sleep 0.02; done
      exit 3"
    echo "status $?"'
  [[ $output == 'status 3' ]]
}

@test "a job leaves a stopped process behind: that is ended, and the status is the command's" {
  in_script '"$RLOCK" run x -- sh -c "sleep 1000 & kill -STOP \$!; exit 3"; echo "status $?"'
  [[ $output == 'status 3' ]]
}

@test "a command is stopped together with rlock, and then killed" {
  in_script '"$RLOCK" run x -- sh -c "kill -STOP \$\$" &
    while kill -0 "$!"; do
      command=$(pgrep -P "$(pgrep -o -P "$!")") && grep -q "^State:.T" "/proc/$!/status" && break
      sleep 0.02
    done 2>/dev/null
    kill -9 "$command"
    wait "$!"
    echo "status $?"'
  [[ $output == 'status 137' ]]
}

@test "a waiter with guards gives up" {
  local owner
  owner=$(rlock acquire x --lease 1m)
  in_script '"$RLOCK" run -q -w 300ms x -- true; echo "status $?"'
  [[ $output == 'status 75' ]]
  rlock release x --owner "$owner"
}

@test "a guard is killed" {
  in_script '"$RLOCK" run -q x -- sh -c "kill -9 \$PPID; sleep 1000"; echo "status $?"'
  [[ $output == 'status 74' ]]
  redis srv del x 'rlock:holder:{x}'
}

@test "a monitor that is stopped ends the tree when the frontend is killed" {
  job() { exec setsid "$RLOCK" run x -- bash -c "$(tree "$BATS_TEST_TMPDIR/pids")"; }
  job 2>job.err 3>&- &
  frontend=$!
  wait_until lines_in pids 3
  job_parts
  kill -STOP "$monitor"
  wait_until in_state "$monitor" T
  kill -9 "$frontend"
  wait_until all_gone pids
  wait_until eval '[[ $(redis srv exists x) == 0 ]]'
}
