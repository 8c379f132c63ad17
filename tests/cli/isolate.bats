# rlock run --isolate: a PID namespace of its own.

load ../lib/job
load ../lib/server

setup_file() { open_server; }
setup() {
  use_server srv
  [[ $BATS_TEST_DESCRIPTION == refused:* ]] || needs_pid_namespaces
}
teardown() {
  # The leftovers of a failed test must not affect the others.
  end_mine_wholly "${frontend:-}"
  none_left
  assert_clean srv
}

free() { [[ $(redis srv exists a 'rlock:holder:{a}') == 0 ]]; }
drop() { redis srv del a 'rlock:holder:{a}'; }
# Pids inside differ from ours, so processes are found by the name of the test's folder in their arguments.
marked() {
  local pid
  for pid in $(pgrep -f -- "mark-of-$BATS_TEST_TMPDIR"); do
    gone "$pid" || [[ $(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null) != "sleep-"* ]] || echo "$pid"
  done
}
# sleeper: a command that marked finds, and that does not end.
sleeper() { echo "exec -a sleep-mark-of-$BATS_TEST_TMPDIR sleep 1000"; }
sleepers() { [[ $(marked | wc -l) == "$1" ]]; }
none_left() { wait_until sleepers 0; }
# stubborn: a command line that starts a sleeper in a session of its own, which ignores TERM.
stubborn() { echo "setsid bash -c \"trap '' TERM; $(sleeper)\" </dev/null >/dev/null 2>&1 &"; }
isolated() { rlock run --isolate "$@"; }
# A user namespace that an ordinary user makes.
user_namespaces() {
  as_nobody unshare -U -r -p -f true 2>/dev/null || skip 'USER NAMESPACES ARE NOT ALLOWED HERE: --isolate as an ordinary user is not tested'
  needs_nobody
}

@test "it is another PID namespace, with small pids, and nothing outside is visible; also from the variable" {
  ours=$(readlink /proc/self/ns/pid)
  run -0 --separate-stderr isolated a -- sh -c 'readlink /proc/self/ns/pid; echo $$; ls /proc | grep -c "^[0-9]"'
  [[ ${lines[0]} == pid:* && ${lines[0]} != "$ours" && ${#lines[@]} == 3 && -z $stderr ]]
  ((lines[1] > 0 && lines[1] < 10 && lines[2] < 10))
  prints "$ours" rlock run a -- readlink /proc/self/ns/pid
  RLOCK_ISOLATE=1 run -0 rlock run a -- readlink /proc/self/ns/pid
  [[ $output == pid:* && $output != "$ours" ]]
}

@test "the user, the folder, the arguments, the variables, input and output are the same as without it, and -c has a shell" {
  local look='id -u; id -g; pwd -P; umask; hostname; printf "[%s]" "$@"; printf "%s\n" "$RLOCK_NAME"'
  rlock run a -- sh -c "$look" - 'two words' '' '--' >without
  isolated a -- sh -c "$look" - 'two words' '' '--' >with
  cmp with without
  python3 -c 'import sys; sys.stdout.buffer.write(bytes(range(256)) * 4096)' >in
  isolated a -- cat <in >out
  cmp in out
  isolated a -- sh -c 'cat >&2' <in 2>err
  cmp in err
  SHELL=/bin/sh run -5 isolated a -c 'echo "$RLOCK_NAME"; exit 5'
  [[ $output == a ]]
}

@test "exit statuses pass through, and rlock dies of the signal that its command died of; 126 and 127" {
  for code in 1 74 255; do run "-$code" isolated a -- sh -c "exit $code"; done
  for name in TERM KILL; do
    NAME=SIG$name run -0 python3 - <<'PYTHON'
import os, signal, subprocess
number = getattr(signal, os.environ["NAME"])
code = "import os, resource, signal; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); s = signal.%s\nif s != signal.SIGKILL: signal.signal(s, signal.SIG_DFL)\nos.kill(os.getpid(), s)"
got = subprocess.call([os.environ["RLOCK"], "run", "--isolate", "a", "--", "/usr/bin/python3", "-c", code % number.name])
assert got == -number, (got, number)
PYTHON
  done
  touch plain
  tells 127 'not found' isolated a -- ./nothing
  run -127 isolated a -- no-such-program-at-all
  tells 126 'cannot be executed' isolated a -- ./plain
  run -126 isolated a -- "$PWD"
  free
}

@test "the lock is held inside, by the owner in the environment, renewed past its lease, shared by nested runs, and free afterwards; hooks have it, too" {
  run -0 --separate-stderr rlock -q run --lease 6s --isolate a -- sh -c 'echo "$RLOCK_OWNER"; redis-cli -s "$srv_sock" hkeys a; sleep 7
    redis-cli -s "$srv_sock" hkeys a
    "$RLOCK" run -n a -- echo one; "$RLOCK" run -n --isolate a -- echo two; "$RLOCK" run -n --isolate b -- echo three'
  [[ -n ${lines[0]} && $output == "${lines[0]}"$'\n'"${lines[0]}"$'\n'"${lines[0]}"$'\none\ntwo\nthree' ]]
  free
  run -0 --separate-stderr rlock run --isolate --on-acquire 'redis-cli -s "$srv_sock" hkeys a' --on-release 'redis-cli -s "$srv_sock" hkeys a' a -- sh -c 'redis-cli -s "$srv_sock" hkeys a'
  [[ -n $output && $stderr == "$output"$'\n'"$output" ]]
}

@test "the command receives each signal to rlock once" {
  for signal in TERM HUP USR1 USR2 WINCH; do
    rm -f ready seen
    job_start --isolate a -- bash -c "trap 'echo $signal >>seen' $signal; trap 'exit 9' SYS; touch ready; while :; do sleep 0.02; done"
    wait_until test -e ready
    kill "-$signal" "$frontend"
    wait_until test -s seen
    kill -SYS "$frontend"
    job_status 9
    [[ $(<seen) == "$signal" ]] || {
      echo "$signal: $(<seen), $status"
      return 1
    }
  done
}

@test "leftovers are ended and named, zombies are reaped, and the status is the command's; --max-hold ends the whole tree: 124" {
  run -3 isolated -k 300ms a -- bash -c "
    bash -c '$(sleeper)' &
    $(stubborn)
    until [[ \$(pgrep -fc '^sleep-mark') == 2 ]]; do sleep 0.1; done
    exit 3"
  sleepers 0
  free
  run -124 isolated --max-hold 600ms -k 300ms a -- bash -c "$(stubborn) trap '' TERM; while :; do sleep 0.1; done"
  sleepers 0
  free
  # The first process of the namespace is not named.
  run -0 --separate-stderr isolated a -- bash -c 'setsid bash -c "touch ready; exec sleep 1000" </dev/null >/dev/null 2>&1 &
    until [[ -e ready && $(readlink "/proc/$!/exe") == */sleep ]]; do sleep 0.1; done'
  assert_says 'ended 1 process that the command left: sleep (pid '
  # The end of an orphan does not end the job.
  run -4 --separate-stderr isolated a -- bash -c '
    (sleep 0.05 &) ; (sleep 0.1 & ) ; (false &)
    sleep 0.5
    ps -eo stat= | grep -q "^Z" && exit 5
    exit 4'
  [[ -z $stderr ]]
}

@test "kill -9 of both guards at once, or of one: nothing is left, with background processes and daemons" {
  job_start --isolate a -- bash -c "
    bash -c \"trap '' TERM; $(sleeper)\" &
    $(stubborn)
    $(sleeper)"
  job_parts
  wait_until sleepers 3
  kill_guards
  wait_until sleepers 0
  run -75 rlock run -n a -- true
  drop
  for which in frontend monitor; do
    job_start --isolate --lease 6s -k 300ms a -- bash -c "$(stubborn) $(sleeper)"
    job_parts
    wait_until sleepers 2
    kill -9 "${!which}"
    wait_until sleepers 0
    job_status
    [[ $which == frontend || $status == 74 ]]
    rlock run -w 1m a -- true
  done
  # The same if the lock is lost.
  job_start --isolate --lease 6s -k 300ms a -- bash -c "$(stubborn) trap '' TERM; while :; do sleep 0.1; done"
  wait_until sleepers 1
  drop
  job_status 74
  sleepers 0
}

@test "the command has the terminal, and Ctrl-C reaches it" {
  run -130 python3 "$TESTS_DIR/lib/terminal.py" ready $'\x03' "$RLOCK" run --isolate a -- sh -c 'test -t 0 && echo ready; exec sleep 100'
  free
}

@test "an ordinary user: pids, user, files, status, leftovers; both guards killed at once leave nothing" {
  user_namespaces
  mkdir -m 777 open
  cd open || return
  run -6 --separate-stderr as_nobody timeout 20 "$RLOCK" run --isolate -k 300ms a -- bash -c "
    $(stubborn)
    touch file; id -u; echo \$\$; until [[ \$(pgrep -fc '^sleep-mark') == 1 ]]; do sleep 0.1; done; exit 6"
  [[ ${lines[0]} == "$([[ $(id -u) == 0 ]] && echo 65534 || id -u)" && $(stat -c %u file) == "${lines[0]}" ]]
  ((lines[1] < 10))
  sleepers 0
  free
  local as=()
  [[ $(id -u) != 0 ]] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
  HOME=/nonexistent "${as[@]}" "$RLOCK" run --isolate --lease 6s a -- bash -c "$(stubborn) $(sleeper)" >job.out 2>job.err 3>&- &
  frontend=$!
  wait_until sleepers 2
  monitor=$(monitor_of "$frontend")
  kill_guards
  wait_until sleepers 0
  run -0 rlock run -w 1m a -- true
}

@test "refused: no PID namespaces left: 71 and a message, the command is not started, the lock is free" {
  unshare -U -r true 2>/dev/null || skip 'NO USER NAMESPACES HERE: the refusal is not tested'
  without() { unshare -U -r bash -c 'echo 0 >/proc/sys/user/max_pid_namespaces && exec timeout 20 "$RLOCK" run "$@"' - "$@"; }
  tells 71 'isolation: ' without --isolate --status-fd 1 --on-acquire 'touch hook' a -- touch started
  assert_says 'not started'
  [[ ${lines[-1]} == *'"event":"exit"'*'"status":71'* && ! -e started ]]
  free
  # Without --isolate it runs there.
  run -0 without a -- touch started
  rm started
  # Nor if there is no right, and there are no user namespaces left.
  tells 71 'isolation: ' unshare -U -r sh -c 'echo 0 >/proc/sys/user/max_user_namespaces && exec setpriv --bounding-set -all --inh-caps -all timeout 20 "$@"' - \
    "$RLOCK" run --isolate a -- touch started
  [[ ! -e started ]]
  free
}

@test "refused: a user namespace without the right to set ids, as with AppArmor: 71, and not the user nobody" {
  user_namespaces
  can_trace
  for file in uid_map gid_map; do
    run -71 --separate-stderr as_nobody timeout 20 strace -f -qq -o /dev/null -e trace=open,openat -P "/proc/self/$file" \
      -e inject=open,openat:error=EPERM "$RLOCK" run --isolate a -- touch started
    assert_says 'isolation: ' kernel.apparmor_restrict_unprivileged_userns
    [[ ! -e started ]]
    free
  done
}

@test "--leftovers wait: rlock is notified of the end, instead of looking for it, and the lock is held meanwhile" {
  job_start --isolate --leftovers wait --lease 10m a -- bash -c "($(sleeper)) & exit 7"
  listening() { [[ $(listeners_on srv 'rlock:control:{a}') == 1 ]]; }
  wait_until listening
  monitor=$(monitor_of "$frontend")
  # Below it, only the namespace's first process is left.
  alone() { [[ $(pgrep -c -P "$monitor") == 1 ]]; }
  wait_until alone
  before=$(naps "$monitor")
  let_pass 2000
  after=$(naps "$monitor")
  sleepers 1
  not free
  kill -9 "$(marked)"
  job_status 7
  echo "$((after - before)) times"
  ((before > 0 && after - before <= 3))
  free
}

@test "what the command mounts and unmounts stays inside; where / is not a mount point, it sees only its own processes, and others still see theirs" {
  [[ $(id -u) == 0 ]] || skip 'only root can mount'
  run -0 --separate-stderr unshare -m --propagation shared bash -ec '
    mkdir inside outside
    mount -t tmpfs none outside
    "$0" run --isolate a -- sh -ec "mount -t tmpfs none inside; umount outside; mountpoint -q inside && ! mountpoint -q outside"
    ! mountpoint -q inside && mountpoint -q outside' "$RLOCK"
  [[ -z $stderr ]]
  # In a chroot.
  run -0 --separate-stderr unshare -m --propagation shared bash -ec '
    mkdir root
    for folder in /*; do
      if [[ -L $folder ]]; then cp -P "$folder" root; else [[ ! -d $folder ]] || { mkdir "root$folder" && mount --rbind "$folder" "root$folder"; }; fi
    done
    chroot root "$0" --url "$1" run --isolate a -- sh -c "ls /proc | grep -c ^[0-9]"
    [[ -e root/proc/$$ ]]' "$RLOCK" "$RLOCK_URL"
  ((output < 10))
  [[ -z $stderr ]]
}

@test "a warning if the command sees all processes of the host in /proc" {
  [[ $(id -u) == 0 ]] || skip 'only root can prepare it'
  user_namespaces
  # Something is mounted below /proc, so a user namespace may not mount another one over it (mount_namespaces(7)).
  run -0 --separate-stderr unshare -m bash -c 'mount -t tmpfs none /proc/fs && cd / &&
    exec setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/ RLOCK_URL="$1" "$0" run --isolate a -- true' \
    "$RLOCK" "$RLOCK_URL"
  [[ $stderr == *'the command sees all processes of the host in /proc: '* ]]
}
