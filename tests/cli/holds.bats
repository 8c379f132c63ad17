# rlock run --max-hold, --min-hold, --no-renew and --leftovers.

load ../lib/server
load ../lib/job

setup() {
  use_server srv
  pids=$BATS_TEST_TMPDIR/pids
  touch "$pids"
}
teardown() {
  # The leftovers of a failed test must not affect the others.
  end_mine_wholly "${frontend:-}"
  all_gone "$pids"
  assert_clean srv
}

held() { [[ $(redis srv exists a) == 1 ]]; }
free() { [[ $(redis srv exists a 'rlock:holder:{a}') == 0 ]]; }
# drop: does not wait for the lock a.
drop() { redis srv del a 'rlock:holder:{a}'; }
# held_until_gone: the lock is held as long as a process of $pids lives.
held_until_gone() {
  until all_gone "$pids"; do
    held || all_gone "$pids"
    nap 0.02
  done
}
# leave HOW TRAP: a command that leaves a process behind, which writes its pid to $pids; it runs for 0.6 s.
leave() {
  echo "$1 bash -c '$2 echo \$\$ >>$pids; sleep 0.6; touch finished' </dev/null >/dev/null 2>&1 &
    until [[ -s $pids ]]; do sleep 0.1; done"
}
# leave_deaf: a command that leaves a daemon which ignores TERM, and writes its own pid to the file command.
leave_deaf() {
  echo "echo \$\$ >command
    setsid bash -c \"trap '' TERM; echo \\\$\\\$ >>$pids; while :; do sleep 0.1; done\" </dev/null >/dev/null 2>&1 &
    until [[ -s $pids ]]; do sleep 0.1; done"
}

# --- --max-hold, --min-hold, --no-renew

@test "--max-hold: a command that ignores TERM is killed after --kill-after, with its tree, until which the lock is held; so are leftovers; a signal takes precedence" {
  for leftovers in kill ignore; do
    : >"$pids"
    began=$(now_ms)
    job_start --max-hold 500ms -k 500ms --leftovers "$leftovers" a -- bash -c "$(tree "$pids")"
    wait_until lines_in "$pids" 3
    held_until_gone
    past 999
    job_status 124
    free
  done
  : >"$pids"
  run rlock run --max-hold 700ms -k 300ms --leftovers wait a -- bash -c "$(leave_deaf)"
  [[ $status == 124 || $status == 0 ]]
  all_gone "$pids"
  free
  job_start --max-hold 20s a -- sleep 100
  job_parts
  kill -TERM "$frontend"
  job_status 143
}

@test "--min-hold: if all processes are killed shortly after the start, the lock is kept for the whole time; later, the lease counts" {
  job_start --min-hold 10m a -- sleep 1000
  job_parts
  kill_guards
  wait_until gone "$command"
  ttl=$(redis srv pttl a)
  ((ttl > 400000 && ttl <= 600000)) # far longer than the lease
  run -75 rlock run -n a -- true
  drop
  began=$(now_ms)
  job_start --lease 5s --min-hold 6s a -- sleep 1000
  job_parts
  wait_until past 8000
  held # renewed
  kill_guards
  wait_until gone "$command"
  (($(redis srv pttl a) <= 5000))
  run -0 rlock run -w 1m a -- true
}

@test "--no-renew: the tree is dead before the lease ends, the status is 74, and the server sees no renewal" {
  job_start --no-renew --lease 6s -k 300ms a -- bash -c "$(tree "$pids")"
  wait_until lines_in "$pids" 3
  held_until_gone
  job_status 74 'prevents its renewal'
  extensions() { redis srv info commandstats | sed -n 's/^cmdstat_pexpire:calls=\([0-9]*\),.*/\1/p'; }
  redis srv config resetstat
  rlock run --no-renew --lease 4s a -- true
  without=$(extensions)
  redis srv config resetstat
  run -74 rlock run --no-renew --lease 4s a -- sleep 1000
  [[ $(extensions) == "$without" ]]
}

# --- --leftovers

@test "--leftovers kill: a leftover that ignores TERM is killed after --kill-after, and the lock is held until then" {
  job_start --leftovers kill -k 800ms a -- bash -c "$(leave_deaf)"
  wait_until lines_in "$pids" 1
  held_until_gone
  job_status 0
  free
}

# leave_named NAME...: a command that leaves a process of each of these names behind, the first one in
# the background and the others as daemons, and writes their pids to $pids.
leave_named() {
  local name how=
  : >"$pids"
  for name; do
    cp "$(command -v sleep)" "$name"
    echo "$how ./$name 1000 </dev/null >/dev/null 2>&1 & echo \$! >>$pids"
    how=setsid
  done
  # Waits until each has its name.
  echo "while read -r pid; do until [[ \$(readlink /proc/\$pid/exe) == $PWD/* ]]; do sleep 0.1; done; done <$pids;"
}

@test "--leftovers kill, and the default: a background process and a daemon are ended, and named in one line, regardless of the status" {
  for how in '' --leftovers=kill; do
    for code in 0 3; do
      run -$code --separate-stderr rlock run $how a -- bash -c "$(leave_named app builder) exit $code"
      mapfile -t ids <"$pids"
      [[ $stderr == "rlock: warning: a: ended 2 processes that the command left: app (pid ${ids[0]}), builder (pid ${ids[1]}); --leftovers wait or ignore keeps them" ]]
      all_gone "$pids"
      free
    done
  done
  # Also for a command that dies because of an error.
  tells 139 'ended 1 process that the command left: app (pid ' rlock run a -- bash -c "$(leave_named app) kill -SEGV \$\$"
  run -0 --separate-stderr rlock run -q a -- bash -c "$(leave_named app)"
  [[ -z $stderr ]]
}

@test "--leftovers kill: of many that were ended, three are named, with escaped names" {
  tells 0 'ended 4 processes that the command left: app (pid ' rlock run a -- bash -c "$(leave_named app one two three) exit 0"
  all_gone "$pids"
  [[ $stderr == *'), one (pid '*'), two (pid '*') and 1 more; '* ]]
  run -0 --separate-stderr rlock run a -- bash -c "
    bash -c 'printf \"\\033[31mx\" >/proc/self/comm; echo \$\$ >>named; read -r _ <hold' &
    until [[ -s named ]]; do sleep 0.1; done" < <(mkfifo hold)
  [[ $stderr == "rlock: warning: a: ended 1 process that the command left: \\x1b[31mx (pid $(<named)); --leftovers wait or ignore keeps it" ]]
}

@test "processes that end by themselves, are kept, or end with a stopped job are not named" {
  # A zombie.
  run -0 --separate-stderr rlock run a -- python3 -c 'import os
pid = os.fork()
pid or os._exit(0)
os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)'
  [[ -z $stderr ]]
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

@test "--leftovers kill: at once if the command itself was killed by KILL" {
  run -137 rlock run --lease 2h -k 10m --leftovers kill a -- bash -c "$(leave_deaf); kill -9 \$\$"
  all_gone "$pids"
}

@test "--leftovers wait: the lock is held until the last leftover has ended, without any signal, and renewed meanwhile" {
  for how in '' setsid; do
    : >"$pids"
    rm -f finished
    job_start --leftovers wait a -- bash -c "$(leave "$how" 'trap "touch got" TERM;'); exit 3"
    wait_until lines_in "$pids" 1
    held_until_gone
    job_status 3
    [[ -e finished && ! -e got ]]
    free
  done
  : >"$pids"
  job_start --lease 5s --leftovers wait a -- bash -c "
    bash -c 'echo \$\$ >>$pids; exec sleep 7' </dev/null >/dev/null 2>&1 &
    until [[ -s $pids ]]; do sleep 0.1; done"
  wait_until lines_in "$pids" 1
  held_until_gone
  job_status 0
}

@test "--leftovers wait: TERM to rlock ends what is left, and so does a loss of the lock" {
  for what in 'kill -TERM' drop; do
    : >"$pids"
    job_start --lease 6s --leftovers wait -k 300ms a -- bash -c "$(leave_deaf)"
    wait_until lines_in "$pids" 1
    wait_until test -s command
    wait_until gone "$(<command)"
    $what "$frontend"
    job_status
    [[ $what == drop && $status == 74 || $what != drop && $status == @(143|0) ]]
    all_gone "$pids"
    free
  done
}

@test "--leftovers wait and ignore: if the lock is lost while the command runs, all of it is stopped" {
  for how in wait ignore; do
    : >"$pids"
    job_start --lease 6s --leftovers "$how" -k 300ms a -- bash -c "$(tree "$pids")"
    wait_until lines_in "$pids" 3
    drop
    job_status 74
    all_gone "$pids"
  done
}

@test "--leftovers ignore: rlock ends with the command, and the lock is free while they run on" {
  for how in '' setsid; do
    : >"$pids"
    job_start --leftovers ignore a -- bash -c "
      $how bash -c 'trap \"touch got\" TERM; echo \$\$ >>$pids; while :; do sleep 0.1; done' </dev/null >/dev/null 2>&1 &
      until [[ -s $pids ]]; do sleep 0.1; done; exit 3"
    job_status 3
    [[ ! -e got ]]
    free
    not gone "$(<"$pids")"
    kill -KILL "$(<"$pids")"
    wait_until all_gone "$pids"
  done
}
