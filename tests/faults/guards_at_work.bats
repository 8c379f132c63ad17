# The guards do their work under difficult conditions: a stuck reader, a stopped frontend, an odd process.

load ../lib/processes

# A command whose child, in its own session, only dies of SIGKILL.
with_daemon() { echo "setsid bash -c 'trap \"\" TERM; echo \$\$ >>$pids; while :; do sleep 0.1; done' </dev/null >/dev/null 2>&1 & ${1:-sleep 1000}"; }

@test "a process whose first thread has ended is part of the tree" {
  cc -pthread -o headless -xc - <<'PROGRAM'
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static const char *told;
static void term(int number) { _exit(creat(told, 0600) < 0 ? number : 0); }
static void *work(void *path) {
  FILE *file = fopen(path, "a");
  fprintf(file, "%d\n", getpid());
  fclose(file);
  for (;;) pause();
}
int main(int count, char **arguments) {
  pthread_t thread;
  told = arguments[1];
  signal(SIGTERM, term);
  pthread_create(&thread, 0, work, arguments[count - 1]);
  pthread_exit(0);
}
PROGRAM
  job_start --lease 10s -k 3s job -- ./headless told "$pids"
  wait_until lines_in "$pids" 1
  lose
  job_status 74
  [[ -e told ]] # by SIGTERM
  # all_gone would take it for a zombie.
  [[ ! -d /proc/$(cat "$pids") ]]
}

@test "standard error is not read: the tree is still stopped in time" {
  stuck 2 "$RLOCK" run --lease 6s -k 200ms job -- bash -c "$(with_daemon)" 3>&- &
  frontend=$!
  wait_until lines_in "$pids" 1
  lose
  wait_until all_gone "$pids"
  exits "$frontend" 74
}

@test "standard error is not read: a short outage does no harm" {
  stuck 2 "$RLOCK" run --lease 24s job -- sh -c 'while [ ! -e go ]; do sleep 0.1; done; exit 6' 3>&- &
  frontend=$!
  wait_until held
  began=$(now_ms)
  redis_freeze srv
  wait_until past 11000 # the renewal after 8 s has failed
  redis_thaw srv
  wait_until past 20000 # without another one the job would be stopped after 18.3 s
  let_end go "$frontend" 6
}

@test "the monitor is killed or stopped while command and frontend are stopped: the tree is dead at once, or before the lease ends" {
  for signal in KILL STOP; do
    : >"$pids"
    job_start --lease "$([[ $signal == KILL ]] && echo 10m || echo 6s)" job -- bash -c "$(with_daemon)"
    job_parts
    wait_until lines_in "$pids" 1
    kill -STOP "$command"
    wait_until in_state "$frontend" T
    kill "-$signal" "$monitor"
    [[ $signal == STOP ]] || wait_until all_gone "$pids"
    until all_gone "$pids"; do held; done
    job_status 74
    lose
  done
}

@test "a command that is stopped and continued, but not by a terminal: rlock follows it" {
  job_start job -- bash -c 'trap "exit 3" TERM; touch ready; while :; do sleep 0.05; done'
  job_parts
  wait_until test -e ready
  for round in {1..20}; do
    kill -STOP "$command"
    ((round % 2)) || wait_until in_state "$frontend" T
    kill -CONT "$command"
  done
  goes_on() { [[ $(state_of "$frontend") == S && $(state_of "$command") != T ]]; }
  wait_until goes_on
  kill -TERM "$frontend"
  job_status 3
}

@test "processes from before the job are left alone in all cases" {
  for how in lose 'kill -9 $monitor'; do
    bash -c "exec -a before-the-job sleep 1000 & echo \$! >before; exec \"$RLOCK\" run --lease 6s --on-lost true job -- sleep 1000" 3>&- &
    frontend=$!
    wait_until test -s before
    before=$(cat before)
    newest() { monitor=$(monitor_of "$frontend") && command=$(child_of "$monitor"); }
    wait_until newest
    eval "$how"
    exits "$frontend" 74
    gone "$command"
    not gone "$before"
    kill "$before"
    lose
    rm before
  done
}

@test "the monitor is killed while it releases: the status is the command's, and nothing was lost" {
  job_start --on-lost 'touch lost' job -- sh -c 'while [ ! -e go ]; do sleep 0.1; done; exit 6'
  job_parts
  redis_freeze srv
  touch go
  wait_until gone "$command"
  in_release() { ! pgrep -P "$monitor"; }
  wait_until in_release
  kill -9 "$monitor"
  job_status
  show
  redis_thaw srv
  [[ $status == 6 && ! -e lost ]]
  assert_says 'killed before the lock was released'
}

# monitor_rests: $monitor uses little processor time until it ends.
monitor_rests() {
  local used=0 ticks
  until gone "$monitor"; do
    ticks=$(sed 's/.*) //' "/proc/$monitor/stat" 2>/dev/null | cut -d' ' -f12,13 | tr ' ' +) || break
    [[ -z $ticks ]] || used=$((ticks))
    nap 0.05
  done
  echo "$used ticks"
  ((used < 40))
}

@test "a hook whose time is up uses no processor time" {
  job_start --hook-timeout 100ms -k 6s --lease 60s --on-acquire 'trap "" TERM; touch hangs; while :; do sleep 0.1; done' job -- true
  wait_until monitor_of "$frontend"
  monitor=$(monitor_of "$frontend")
  wait_until test -e hangs
  monitor_rests
  job_status 78
}

@test "while the command is being stopped, a hook that would be due uses no processor time" {
  job_start --max-hold 500ms -k 6s --lease 60s --status-fd 7 --on-wanted 'touch called' job -- \
    bash -c 'trap "touch asked" TERM; touch begun; while :; do sleep 0.1; done' 7>lines
  wait_until test -e asked
  monitor=$(monitor_of "$frontend")
  join_line job a
  wait_until grep -q '"event":"wanted"' lines
  monitor_rests
  job_status 124
  [[ ! -e called ]]
  all_done
}

listening() { [[ $(listeners_on srv 'rlock:control:{job}') == 1 ]]; }

@test "a job three times as long as its lease keeps its lock, with renewals about every third of it; the next one starts after it" {
  redis srv monitor >monitor 3>&- &
  local watcher=$!
  wait_until grep -q OK monitor
  job_start --lease 6s count -- bash -c 'echo begin a >>log; sleep 18; echo end a >>log'
  wait_until test -s log
  run -0 rlock run count -- sh -c 'echo begin b >>log; echo end b >>log'
  job_status 0
  kill_off "$watcher"
  [[ $(tr '\n' ' ' <log) == 'begin a end a begin b end b ' ]]
  renewals=$(grep -c 'EVALSHA.*"rlock renew"' monitor)
  echo "renewals of a lease of 6s in 18s: $renewals"
  ((renewals >= 6 && renewals <= 10))
}

@test "a running job only wakes up for its renewals" {
  job_start --lease 30s job -- sleep 1000
  job_parts
  wait_until listening
  began=$(now_ms)
  # The thread that renews starts after 10 s, and renews again after 20 s.
  wait_until past 9600
  before=$(naps "$frontend" "$monitor")
  wait_until past 17600
  after=$(naps "$frontend" "$monitor")
  kill -TERM "$frontend"
  job_status
  echo "$((after - before)) times"
  ((before > 0 && after - before <= 3))
}

@test "the frontend sleeps as long as the lock is renewed" {
  job_start --lease 5s job -- sleep 1000
  job_parts
  wait_until listening
  wait_until pgrep -P "$frontend" -x rlock-witness # on a busy machine, the frontend may get to that late
  began=$(now_ms)
  before=$(naps "$frontend")
  wait_until past 6000 # its first deadline is before that
  after=$(naps "$frontend")
  redis srv exists job | grep -qx 1
  kill -TERM "$frontend"
  job_status
  echo "$((after - before)) times"
  ((before > 0 && after - before <= 1))
}

# What only the frontend receives waits until it is known that the command has not received it, too.
@test "a stopped monitor and more signals than it has room for: the frontend sleeps, and the signals arrive later" {
  job_start --lease 60s job -- sleep 1000
  job_parts
  wait_until pgrep -P "$frontend" -x rlock-witness
  freeze "$monitor"
  python3 -c 'import os, sys
for _ in range(3000): os.kill(int(sys.argv[1]), 45)' "$frontend"
  asleep() {
    local i
    kill -46 "$frontend"
    for i in {1..30}; do
      # Nothing is read any longer, and it neither runs nor looks again.
      in_state "$frontend" S && pending 46 "$frontend" || return 1
    done
  }
  wait_until asleep
  kill -CONT "$monitor"
  job_status
  [[ $status == $((128 + 45)) ]]
}
