# Without a shell's job control, as in cron, in CI and with ssh(1), the process group of a job is orphaned, and the
# script that calls rlock is in it. It has to be treated as it would be without rlock.
#
# When the end of a process makes a group orphaned that has a stopped member, the kernel sends SIGHUP to all of it
# (POSIX, _Exit()). So an orphaned group must never look as if it were not.

load ../lib/job
load ../lib/server

# prints LINES TEXT: that is what TEXT prints as a script in an orphaned group, with a stopped process in it. SIGHUP would
# print "hangup".
prints() {
  run -0 --separate-stderr setsid -w timeout --foreground -k 1 30 bash -c '
    trap "echo hangup" HUP
    bash -c "kill -STOP \$\$" >/dev/null 2>&1 &
    stopped=$!
    trap "kill -9 $stopped" EXIT
    until grep -q "^State:.T" "/proc/$stopped/status"; do sleep 0.02; done
    eval "$1"' script "$2"
  [[ $output == "$1" ]]
}

@test "a job ends, also one with hooks or its own namespace, with orphans or a stopped process that it leaves: the script goes on" {
  prints 'status 3' '"$RLOCK" run x -- sh -c "exit 3"; echo "status $?"'
  prints $'one\ntwo\nthree\nstatus 0' \
    '"$RLOCK" run --on-acquire "echo one" --on-release "echo three" x -- echo two 2>&1; echo "status $?"'
  prints 'status 3' '"$RLOCK" run x -- sh -c "sleep 1000 & kill -STOP \$!; exit 3"; echo "status $?"'
  pid_namespaces || return 0
  prints $'inside\nstatus 0' '"$RLOCK" run --isolate x -- echo inside; echo "status $?"'
  prints 'status 3' '"$RLOCK" run --isolate x -- sh -c "
      (true & echo \$! >orphan)
      while kill -0 \$(cat orphan) 2>/dev/null; do sleep 0.02; done
      exit 3"
    echo "status $?"'
}

@test "a job whose command is stopped with it and killed, a waiter that gives up, a guard that is killed: the script goes on" {
  prints 'status 137' '"$RLOCK" run x -- sh -c "kill -STOP \$\$" &
    while kill -0 "$!"; do
      command=$(pgrep -P "$(pgrep -o -P "$!")") && grep -q "^State:.T" "/proc/$!/status" && break
      sleep 0.02
    done 2>/dev/null
    kill -9 "$command"
    wait "$!"
    echo "status $?"'
  prints 'status 74' '"$RLOCK" run -q x -- sh -c "kill -9 \$PPID; sleep 1000"; echo "status $?"'
  # The lock is still held.
  prints 'status 75' '"$RLOCK" run -q -w 300ms x -- true; echo "status $?"'
  redis srv del x 'rlock:holder:{x}'
}

@test "a monitor that is stopped ends the tree when the frontend is killed" {
  job() { exec setsid "$RLOCK" run x -- bash -c "$(tree "$BATS_TEST_TMPDIR/pids")"; }
  job 2>job.err 3>&- &
  frontend=$!
  wait_until lines_in pids 3
  job_parts
  freeze "$monitor"
  kill -9 "$frontend"
  wait_until all_gone pids
  wait_until eval '[[ $(redis srv exists x) == 0 ]]'
}
