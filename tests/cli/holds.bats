#!/usr/bin/env bats
# rlock run --max-hold, --min-hold, --no-renew and --leftovers.

load ../lib/common
load ../lib/job

setup_file() { redis_start srv; }
setup() {
  RLOCK_URL=$(redis_url srv)
  export RLOCK_URL
  cd "$BATS_TEST_TMPDIR" || return
  pids=$BATS_TEST_TMPDIR/pids
  touch "$pids"
}
teardown() {
  # The leftovers of a failed test must not affect the others.
  end_mine_wholly "${frontend:-}"
  all_gone "$pids"
  assert_clean srv
}
teardown_file() { redis_stop srv; }

held() { [[ $(redis srv exists a) == 1 ]]; }
free() { [[ $(redis srv exists a 'rlock:holder:{a}') == 0 ]]; }
# past MS: that much time has passed since $began.
# drop: does not wait for the lock a.
drop() { redis srv del a 'rlock:holder:{a}'; }
# leave HOW TRAP: a command that leaves a process behind, which writes its pid to $pids; it runs for 0.6 s.
leave() {
  echo "$1 bash -c '$2 echo \$\$ >>$pids; sleep 0.6; touch finished' </dev/null >/dev/null 2>&1 &
    until [[ -s $pids ]]; do sleep 0.02; done"
}

# --- --max-hold

@test "--max-hold: a command that ignores TERM is killed after --kill-after, with all of its tree" {
  began=$(now_ms)
  run -124 rlock run --max-hold 500ms -k 500ms a -- bash -c "$(tree "$pids")"
  past 999
  [[ $(wc -l <"$pids") == 3 ]]
  all_gone "$pids"
  free
}

@test "--max-hold: the lock is held until the tree is dead" {
  job_start --max-hold 500ms -k 1s a -- bash -c "$(tree "$pids")"
  wait_until lines_in "$pids" 3
  until all_gone "$pids"; do
    held || all_gone "$pids"
  done
  job_status
  [[ $status == 124 ]]
  free
}

@test "--max-hold passes while leftovers are waited for: they are ended, and the lock is free" {
  run rlock run --max-hold 700ms -k 300ms --leftovers wait a -- bash -c "(trap '' TERM; echo \$BASHPID >>$pids; while :; do sleep 0.1; done) &
    until [[ -s $pids ]]; do sleep 0.02; done"
  show
  [[ $status == 124 || $status == 0 ]]
  all_gone "$pids"
  free
}

@test "--max-hold and a signal: the signal takes precedence" {
  job_start --max-hold 20s a -- sleep 100
  job_parts
  kill -TERM "$frontend"
  job_status
  [[ $status == 143 ]]
}

# --- --min-hold

@test "--min-hold counts from the start" {
  local ttl
  rlock run --min-hold 10m a -- sleep 2
  ttl=$(redis srv pttl a)
  ((ttl > 400000 && ttl <= 598100))
  drop
}

@test "--min-hold longer than the lease: the lock is kept for the whole time" {
  local ttl
  rlock run --min-hold 10m a -- true
  ttl=$(redis srv pttl a)
  ((ttl > 400000 && ttl <= 600000))
  drop
}

@test "--min-hold shorter than the lease: the lock is free after it, not after the lease" {
  local ttl
  rlock run --lease 10m --min-hold 1m a -- true
  ttl=$(redis srv pttl a)
  ((ttl > 0 && ttl <= 60000))
  drop
}

@test "--min-hold: all processes are killed shortly after the start, and the lock is kept for the whole time" {
  local ttl inner
  job_start --min-hold 10m a -- sleep 1000
  job_parts
  inner=$command
  kill_guards
  kill -9 "$inner" 2>/dev/null || true
  wait_until gone "$inner"
  ttl=$(redis srv pttl a)
  ((ttl > 400000 && ttl <= 600000)) # far longer than the lease
  run -75 rlock run -n a -- true
  drop
}

@test "--min-hold: if they are killed later than that, the lease counts" {
  local inner
  began=$(now_ms)
  job_start --lease 5s --min-hold 6s a -- sleep 1000
  job_parts
  inner=$command
  wait_until past 8000
  held # renewed
  kill_guards
  wait_until gone "$inner"
  (($(redis srv pttl a) <= 5000))
  run -0 rlock run -w 1m a -- true
}

@test "--min-hold and --max-hold together: stopped at the latter, then free at once" {
  run -124 rlock run --min-hold 300ms --max-hold 600ms a -- sleep 100
  free
  run -124 rlock run --min-hold 600ms --max-hold 600ms a -- sleep 100
  wait_until free
}

# --- --no-renew

@test "--no-renew: the command is stopped before the lease ends, 74" {
  run -74 --separate-stderr rlock run --no-renew --lease 15s a -- python3 -c "$(heartbeat "$PWD/beats")"
  assert_says 'prevents its renewal'
  (($(tail -n 1 beats) - $(head -n 1 beats) < 15000))
  (($(tail -n 1 beats) - $(head -n 1 beats) > 200))
}

@test "--no-renew: the tree is dead before the lease ends" {
  job_start --no-renew --lease 6s -k 300ms a -- bash -c "$(tree "$pids")"
  wait_until lines_in "$pids" 3
  until all_gone "$pids"; do
    held || all_gone "$pids"
  done
  job_status
  [[ $status == 74 ]]
}

@test "--no-renew: the server sees no renewal" {
  redis srv config resetstat
  rlock run --no-renew --lease 4s a -- sleep 0.1
  local without
  without=$(redis srv info commandstats | sed -n 's/^cmdstat_pexpire:calls=\([0-9]*\),.*/\1/p')
  redis srv config resetstat
  run rlock run --no-renew --lease 4s a -- sleep 1000
  [[ $(redis srv info commandstats | sed -n 's/^cmdstat_pexpire:calls=\([0-9]*\),.*/\1/p') == "$without" ]]
}

# --- --leftovers

@test "--leftovers kill, and the default: a background process and a daemon are ended, and the status is the command's" {
  local how
  for how in '' --leftovers=kill; do
    : >"$pids"
    run -3 rlock run $how a -- bash -c "
      sleep 1000 & echo \$! >>$pids
      setsid bash -c 'echo \$\$ >>$pids; exec sleep 1000' </dev/null >/dev/null 2>&1 &
      until [[ \$(wc -l <$pids) == 2 ]]; do sleep 0.02; done
      exit 3"
    [[ $(wc -l <"$pids") == 2 ]]
    all_gone "$pids"
    free
  done
}

@test "--leftovers kill: a leftover gets TERM first, and time to end" {
  run -0 rlock run --leftovers kill -k 3s a -- bash -c "
    bash -c 'trap \"sleep 0.2; echo TERM >>got; exit\" TERM; echo \$\$ >>$pids; while :; do sleep 0.05; done' &
    until [[ -s $pids ]]; do sleep 0.02; done"
  [[ $(<got) == TERM ]]
  all_gone "$pids"
}

@test "--leftovers kill: a leftover that ignores TERM is killed after --kill-after, and the lock is held until then" {
  job_start --leftovers kill -k 800ms a -- bash -c "
    setsid bash -c \"trap '' TERM; echo \\\$\\\$ >>$pids; while :; do sleep 0.1; done\" </dev/null >/dev/null 2>&1 &
    until [[ -s $pids ]]; do sleep 0.02; done"
  wait_until lines_in "$pids" 1
  until all_gone "$pids"; do
    held || all_gone "$pids"
  done
  job_status
  [[ $status == 0 ]]
  free
}

# leave_named NAME...: a command that leaves a daemon of each of these names behind, and writes their pids to $pids.
leave_named() {
  local name
  : >"$pids"
  for name; do
    cp "$(command -v sleep)" "$name"
    echo "setsid ./$name 1000 </dev/null >/dev/null 2>&1 & echo \$! >>$pids"
  done
  # Waits until each has its name.
  echo "while read -r pid; do until [[ \$(readlink /proc/\$pid/exe) == $PWD/* ]]; do sleep 0.02; done; done <$pids;"
}

@test "--leftovers kill, and the default: one line names the processes that were ended, regardless of the status" {
  local status_of how ids
  for how in '' --leftovers=kill; do
    for status_of in 0 3; do
      run -$status_of --separate-stderr rlock run $how a -- bash -c "$(leave_named app builder) exit $status_of"
      show
      mapfile -t ids <"$pids"
      [[ $stderr == "rlock: warning: a: ended 2 processes that the command left: app (pid ${ids[0]}), builder (pid ${ids[1]}); --leftovers wait or ignore keeps them" ]]
      all_gone "$pids"
      free
    done
  done
  # Also for a command that dies because of an error.
  run -139 --separate-stderr rlock run a -- bash -c "$(leave_named app) kill -SEGV \$\$"
  assert_says 'ended 1 process that the command left: app (pid '
  run -0 --separate-stderr rlock run -q a -- bash -c "$(leave_named app)"
  [[ -z $stderr ]]
}

@test "--leftovers kill: of many that were ended, three are named, with escaped names" {
  run -0 --separate-stderr rlock run a -- bash -c "$(leave_named app one two three) exit 0"
  assert_says 'ended 4 processes that the command left: app (pid '
  all_gone "$pids"
  [[ $stderr == *'), one (pid '*'), two (pid '*') and 1 more; '* ]]
  run -0 --separate-stderr rlock run a -- bash -c "
    bash -c 'printf \"\\033[31mx\" >/proc/self/comm; echo \$\$ >>named; read -r _ <hold' &
    until [[ -s named ]]; do sleep 0.02; done" < <(mkfifo hold)
  show
  [[ $stderr == "rlock: warning: a: ended 1 process that the command left: \\x1b[31mx (pid $(<named)); --leftovers wait or ignore keeps it" ]]
}

@test "processes that end by themselves, are kept, or end with a stopped job are not named" {
  # A zombie.
  run -0 --separate-stderr rlock run a -- python3 -c 'import os
pid = os.fork()
pid or os._exit(0)
os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)'
  [[ -z $stderr ]]
  local how
  for how in wait ignore; do
    : >"$pids"
    run -0 --separate-stderr rlock run --leftovers "$how" a -- bash -c "$(leave 'setsid' '')"
    [[ -z $stderr ]]
  done
  wait_until all_gone "$pids"
  run -137 --separate-stderr rlock run a -- bash -c "$(leave_named app) kill -9 \$\$"
  [[ -z $stderr ]]
  run -124 --separate-stderr rlock run --max-hold 2s a -- bash -c "$(leave_named app) sleep 1000"
  [[ $stderr != *'ended'* ]]
}

@test "a leftover may end by itself for a moment before SIGTERM" {
  run -0 rlock run a -- bash -c "
    bash -c 'trap \"date +%s%3N >term; exit\" TERM; echo \$\$ >>$pids; while :; do sleep 0.01; done' &
    until [[ -s $pids ]]; do sleep 0.02; done; date +%s%3N >ended"
  (($(<term) >= $(<ended) + 50))
}

@test "--leftovers kill: at once if the command itself was killed by KILL" {
  run -137 rlock run --lease 2h -k 10m --leftovers kill a -- bash -c "
    (trap '' TERM; echo \$BASHPID >>$pids; while :; do sleep 0.1; done) &
    until [[ -s $pids ]]; do sleep 0.02; done
    kill -9 \$\$"
  all_gone "$pids"
}

@test "--leftovers wait: the lock is held until the last leftover has ended, without any signal" {
  local how
  for how in '' setsid; do
    : >"$pids"
    rm -f finished
    job_start --leftovers wait a -- bash -c "$(leave "$how" 'trap "touch got" TERM;'); exit 3"
    wait_until lines_in "$pids" 1
    until all_gone "$pids"; do
      held || all_gone "$pids"
    done
    job_status
    [[ $status == 3 && -e finished && ! -e got ]]
    free
  done
}

@test "--leftovers wait: the lease is renewed meanwhile" {
  job_start --lease 5s --leftovers wait a -- bash -c "
    bash -c 'echo \$\$ >>$pids; exec sleep 7' </dev/null >/dev/null 2>&1 &
    until [[ -s $pids ]]; do sleep 0.02; done"
  wait_until lines_in "$pids" 1
  until all_gone "$pids"; do
    held || all_gone "$pids"
  done
  job_status
  [[ $status == 0 ]]
}

@test "--leftovers wait: TERM to rlock ends what is left" {
  job_start --leftovers wait -k 500ms a -- bash -c "
    echo \$\$ >command
    setsid bash -c \"trap '' TERM; echo \\\$\\\$ >>$pids; while :; do sleep 0.1; done\" </dev/null >/dev/null 2>&1 &
    until [[ -s $pids ]]; do sleep 0.02; done"
  wait_until lines_in "$pids" 1
  wait_until test -s command
  wait_until gone "$(<command)"
  kill -TERM "$frontend"
  job_status
  show
  [[ $status == 143 || $status == 0 ]]
  all_gone "$pids"
  free
}

@test "--leftovers wait: if the lock is lost meanwhile, the leftovers are stopped" {
  job_start --lease 6s --leftovers wait -k 300ms a -- bash -c "
    echo \$\$ >command
    setsid bash -c \"trap '' TERM; echo \\\$\\\$ >>$pids; while :; do sleep 0.1; done\" </dev/null >/dev/null 2>&1 &
    until [[ -s $pids ]]; do sleep 0.02; done"
  wait_until lines_in "$pids" 1
  wait_until test -s command
  wait_until gone "$(<command)"
  drop
  job_status
  show
  [[ $status == 74 ]]
  all_gone "$pids"
}

@test "--leftovers wait: if the lock is lost while the command runs, all of it is stopped" {
  job_start --lease 6s --leftovers wait -k 300ms a -- bash -c "$(tree "$pids")"
  wait_until lines_in "$pids" 3
  drop
  job_status
  [[ $status == 74 ]]
  all_gone "$pids"
}

@test "--leftovers ignore: rlock ends with the command, and the lock is free while they run on" {
  local how
  for how in '' setsid; do
    : >"$pids"
    job_start --leftovers ignore a -- bash -c "
      $how bash -c 'trap \"touch got\" TERM; echo \$\$ >>$pids; while :; do sleep 0.1; done' </dev/null >/dev/null 2>&1 &
      until [[ -s $pids ]]; do sleep 0.02; done; exit 3"
    job_status
    show
    [[ $status == 3 && ! -e got ]]
    free
    not gone "$(<"$pids")"
    kill -KILL "$(<"$pids")"
    wait_until all_gone "$pids"
  done
}

@test "--leftovers ignore: if the lock is lost while the command runs, all of it is stopped" {
  job_start --lease 6s --leftovers ignore -k 300ms a -- bash -c "$(tree "$pids")"
  wait_until lines_in "$pids" 3
  drop
  job_status
  [[ $status == 74 ]]
  all_gone "$pids"
}

@test "--leftovers ignore: if --max-hold stops a command, it stops its tree" {
  run -124 rlock run --max-hold 1s --leftovers ignore -k 300ms a -- bash -c "$(tree "$pids")"
  [[ $(wc -l <"$pids") == 3 ]]
  all_gone "$pids"
  free
}

@test "holds and leftovers from the variables and the configuration file" {
  RLOCK_MAX_HOLD=500ms run -124 rlock run a -- sleep 100
  RLOCK_MIN_HOLD=20s run -0 rlock run a -- true
  held
  drop
  RLOCK_NO_RENEW=1 RLOCK_LEASE=1s run -74 rlock run a -- sleep 100
  printf 'max-hold = "2s"\nleftovers = "wait"\n' >conf
  chmod 600 conf
  run -124 rlock --config conf run a -- sleep 100
  run -0 rlock --config conf run a -- bash -c "$(leave setsid '')"
  [[ -e finished ]]
  free
}
