#!/usr/bin/env bats
# rlock run: what the command gets, waiting, nesting, and what is visible on the server.

load ../lib/common

setup_file() { redis_start srv; }
setup() {
  RLOCK_URL=$(redis_url srv)
  export RLOCK_URL
  cd "$BATS_TEST_TMPDIR" || return
}
teardown() { assert_clean srv; }
teardown_file() { redis_stop srv; }

FOREIGN=11111111-2222-3333-4444-555555555555:1
OWNER_PATTERN='^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:[0-9]+$'

# foreign NAME [TTL_MS]: a lock as another program takes it.
foreign() {
  redis srv hset "$1" "$FOREIGN" 1
  redis srv pexpire "$1" "${2:-60000}"
}
waiters() { [[ $(listeners_on srv "redisson_lock__channel:{$1}") == "$2" ]]; }
take() { rlock acquire --lease 30s "$1"; }

# start_waiter NAME: a `run` whose command creates the file `started`; $waiter is its pid.
start_waiter() {
  "$RLOCK" run "$1" -- touch started 2>waiter.err 3>&- &
  waiter=$!
  wait_until waiters "$1" 1
}

# token NAME: of a run.
token() { rlock run "$1" -- printenv RLOCK_TOKEN; }

@test "standard input and output pass through byte for byte" {
  python3 -c 'import sys; sys.stdout.buffer.write(bytes(range(256)) * 4096)' >in
  rlock run a -- cat <in >out
  cmp in out
}

@test "standard error passes through byte for byte, with nothing added" {
  python3 -c 'import sys; sys.stdout.buffer.write(bytes(range(256)) * 4096)' >in
  rlock run a -- sh -c 'cat >&2' <in 2>err
  cmp in err
}

@test "a closed standard input is closed for the command" {
  # Uses Python, because a shell may claim to duplicate a closed descriptor.
  local look='import os; os.fstat(0)'
  run -1 bash -c '"$@" <&-' -- python3 -c "$look"
  run -1 bash -c '"$@" <&-' -- "$RLOCK" run a -- python3 -c "$look"
  run -0 rlock run a -- python3 -c "$look" </dev/null
}

@test "the command gets the name, the owner, the token, the held locks and the address" {
  run -0 --separate-stderr rlock run 'a b' -- sh -c 'printf "%s\n" "$RLOCK_NAME" "$RLOCK_OWNER" "$RLOCK_TOKEN" "$RLOCK_HELD" "$RLOCK_URL"'
  [[ ${lines[0]} == 'a b' ]]
  [[ ${lines[1]} =~ $OWNER_PATTERN ]]
  [[ ${lines[2]} == "$(redis srv get 'redisson_lock_token:{a b}')" ]]
  [[ ${lines[3]} == "${lines[1]} a b" ]]
  [[ ${lines[4]} == "$RLOCK_URL" ]]
}

@test "what systemd says to the process that it has started is said to the command" {
  local show='for name in LISTEN_PID WATCHDOG_PID SYSTEMD_EXEC_PID; do [ "${!name}" = $$ ] || echo "$name=${!name}"; done; echo "$LISTEN_FDS$LISTEN_PIDFDID"'
  # exec: rlock has the pid that the shell had.
  local start='export LISTEN_PID=$$ LISTEN_FDS=2 LISTEN_PIDFDID=7 WATCHDOG_PID=$$ SYSTEMD_EXEC_PID=$$; exec "$@"'
  run -0 bash -c "$start" bash "$RLOCK" run x -- bash -c "$show"
  [[ $output == 2 ]]
  run -0 bash -c "$start" bash "$RLOCK" run x -- "$RLOCK" run y -- bash -c "$show"
  [[ $output == 2 ]]
  WATCHDOG_PID=1 LISTEN_PID=1 LISTEN_PIDFDID=7 run -0 "$RLOCK" run x -- sh -c 'echo "$LISTEN_PID $WATCHDOG_PID $LISTEN_PIDFDID"'
  [[ $output == "1 1 7" ]] # for others
  pid_namespaces || return 0
  run -0 bash -c "$start" bash "$RLOCK" run --isolate x -- bash -c "$show"
  [[ $output == 2 ]]
}

@test "the command gets neither the password in the address nor the variables with a password" {
  redis srv acl setuser bob on '>sesame-7' '~*' '&*' +@all
  unset RLOCK_PASSWORD_FILE # of TEST_OVER=acl
  RLOCK_PASSWORD=sesame-7 REDISCLI_AUTH=sesame-7 run -0 --separate-stderr \
    rlock --url "unix://bob:sesame-7@$srv_sock" run a -- sh -c 'env; tr "\0" " " </proc/self/cmdline'
  [[ $output == *RLOCK_URL=unix://* && $output != *sesame-7* ]]
}

@test "everything after the first -- belongs to the command" {
  run -0 rlock run a -- printf '[%s]' -- -x --wait '' 'two words' -- "a'b" ''
  [[ $output == '[--][-x][--wait][][two words][--]['"a'b"'][]' ]]
}

@test "a command that begins with a dash is not an option" {
  run -127 rlock run a -- --wait
  run -127 rlock run a -- -x
}

@test "an empty word is not a command" {
  run -64 rlock run a -- ''
}

@test "-c runs the text with SHELL" {
  printf '#!/bin/sh\nprintf "[%%s]" "$@"\n' >my-shell
  chmod +x my-shell
  SHELL=$PWD/my-shell run -0 rlock run a -c 'x  "$y"'
  [[ $output == '[-c][x  "$y"]' ]]
}

@test "-c runs the text with /bin/sh if SHELL is not set" {
  run -0 env -u SHELL timeout 60 "$RLOCK" run a -c 'echo "$RLOCK_NAME" | tr a b; exit 0'
  [[ $output == b ]]
}

@test "-n, -w 0 and an expired wait exit with 75, name the holder and start nothing" {
  local option
  foreign a
  for option in -n '-w 0' '-w 300ms' --wait=0 --nonblock; do
    run -75 --separate-stderr rlock run $option a -- touch started
    [[ -z $output && $stderr == *"not acquired: held by $FOREIGN"* && ! -e started ]]
  done
  redis srv del a
}

@test "-w waits as long as it says" {
  local begin
  take a
  begin=$(now_ms)
  run -75 rlock run -w 1s a -- touch started
  (($(now_ms) - begin >= 1000))
  [[ ! -e started ]]
  rlock force-unlock -y a
}

@test "-E sets the status for a lock that was not acquired" {
  foreign a
  run -3 rlock run -n -E 3 a -- true
  run -3 rlock run -w 100ms --conflict-exit-code 3 a -- true
  redis srv del a
}

@test "-E does not change the command's status" {
  run -75 rlock run -n -E 3 a -- sh -c 'exit 75'
  run -0 rlock run -n -E 3 a -- true
}

@test "-E 0 -n is silent on a busy lock" {
  foreign a
  redis srv pexpire a 60000
  run -0 --separate-stderr rlock run -n -E 0 a -- touch started
  [[ -z $output && -z $stderr && ! -e started ]]
  redis srv del a
}

@test "a waiter is woken by the release, long before the lease ends" {
  local owner
  owner=$(rlock acquire --lease 10m a)
  start_waiter a
  rlock release a --owner "$owner"
  wait_until test -e started
  wait "$waiter"
}

@test "a waiter does not start before the release" {
  local owner
  owner=$(take a)
  start_waiter a
  [[ ! -e started && $(redis srv hgetall a) == "$owner"$'\n1' ]]
  rlock release a --owner "$owner"
  wait "$waiter"
  [[ -e started ]]
}

@test "a waiter gets the lock when another program's lease ends without a message" {
  foreign a 2000
  run -0 --separate-stderr rlock -v run a -- redis-cli -s "$srv_sock" hkeys a
  assert_says "waiting for a: held by $FOREIGN"
  [[ $output =~ $OWNER_PATTERN && $output != "$FOREIGN" ]]
}

@test "a key that never expires is no lock and is not waited for" {
  foreign a
  redis srv persist a
  run -76 --separate-stderr rlock run a -- touch started
  assert_says 'never expires'
  [[ ! -e started && $(redis srv hgetall a) == "$FOREIGN"$'\n1' && $(redis srv pttl a) == -1 ]]
  redis srv del a
}

@test "while it is held, the key has one field with count 1 and a lease" {
  run -0 --separate-stderr rlock run --lease 20s a -- sh -c 'redis-cli -s "$1" hgetall a; redis-cli -s "$1" pttl a' - "$srv_sock"
  [[ ${#lines[@]} == 3 && ${lines[0]} =~ $OWNER_PATTERN && ${lines[1]} == 1 ]]
  ((lines[2] > 0 && lines[2] <= 20000))
}

@test "a release publishes a single 0" {
  redis-cli -s "$srv_sock" subscribe 'redisson_lock__channel:{a}' >heard 3>&- &
  local pid=$!
  wait_until waiters a 1
  rlock run a -- "$RLOCK" run a -- true
  redis srv publish 'redisson_lock__channel:{a}' end
  wait_until grep -qx end heard
  kill "$pid"
  [[ $(grep -A2 -x message heard | grep -cx 0) == 1 ]]
}

@test "release, renew and acquire do not change another owner's lock" {
  foreign a 60000
  run -76 rlock release a --owner "$(take other)"
  run -76 rlock renew a --lease 1h --owner 99999999-2222-3333-4444-555555555555:1
  run -75 rlock acquire -n --lease 1h a
  [[ $(redis srv hgetall a) == "$FOREIGN"$'\n1' ]]
  (($(redis srv pttl a) <= 60000))
  redis srv del a
  rlock force-unlock -y other
}

@test "a nested run of the same name shares the hold" {
  run -0 --separate-stderr rlock run a -- sh -c 'echo $RLOCK_TOKEN; "$RLOCK" run a -- sh -c "echo \$RLOCK_TOKEN; redis-cli -s $srv_sock hvals a"; redis-cli -s "$srv_sock" hvals a'
  [[ ${#lines[@]} == 4 && ${lines[0]} == "${lines[1]}" && ${lines[2]} == 2 && ${lines[3]} == 1 ]]
  [[ $(redis srv exists a 'rlock:holder:{a}') == 0 ]]
}

@test "a nested run with -n shares it, others do not" {
  run -0 --separate-stderr rlock run a -- sh -c '"$RLOCK" run -n a -- sh -c "exit 4"; echo $?; env -u RLOCK_HELD "$RLOCK" run -n a -- touch started; echo $?'
  [[ $output == $'4\n75' && ! -e started ]]
}

@test "runs of two names nest, also within each other twice" {
  run -0 --separate-stderr rlock run a -- "$RLOCK" run b -- "$RLOCK" run a -- "$RLOCK" run b -- sh -c 'redis-cli -s "$srv_sock" hvals a; redis-cli -s "$srv_sock" hvals b'
  [[ $output == $'2\n2' && $(redis srv exists a b) == 0 ]]
}

@test "the token grows over runs, over force-unlock and over a deleted key" {
  local first second third fourth
  first=$(token a)
  second=$(token a)
  take a
  rlock force-unlock -y a
  third=$(token a)
  take a
  redis srv del a
  fourth=$(token a)
  ((first < second && second < third && third < fourth))
}

@test "the waiting line on a terminal says who holds the lock" {
  local pid
  "$RLOCK" run a -- sleep 60 3>&- &
  pid=$!
  wait_until rlock status --is-held a
  run -143 python3 "$TESTS_DIR/lib/terminal.py" 'held by' SIGTERM "$RLOCK" run a -- true
  kill "$pid"
  wait "$pid" || true
  assert_says "waiting for a: held by $(id -un)@$(uname -n) pid $pid"
  assert_says '(sleep'
}

@test "there is one waiting line if standard error is a file, and none with -q" {
  take a
  run -75 --separate-stderr rlock run -w 3s a -- true
  [[ $(grep -c 'waiting for' <<<"$stderr") == 1 ]]
  run -75 --separate-stderr rlock run -q -w 3s a -- true
  [[ $stderr != *'waiting for'* ]]
  run -75 python3 "$TESTS_DIR/lib/terminal.py" 'never said' x "$RLOCK" -q run -w 500ms a -- true
  [[ $output != *'waiting for'* ]]
  rlock force-unlock -y a
}

@test "a signal while waiting: rlock dies of it, starts nothing and leaves nothing" {
  local name
  take a
  for name in TERM INT HUP QUIT; do
    NAME=SIG$name run -0 python3 - <<'EOF'
import os, signal, subprocess, time
number = getattr(signal, os.environ["NAME"])
job = subprocess.Popen([os.environ["RLOCK"], "run", "a", "--", "touch", "started"],
                       preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
def waits():
    kinds = ["numsub", "shardnumsub"] if os.environ.get("TEST_OVER") == "cluster" else ["numsub"]
    return "1" in [subprocess.run(["redis-cli", "-s", os.environ["srv_sock"], "pubsub", kind, "redisson_lock__channel:{a}"],
                                  capture_output=True, text=True).stdout.split()[-1] for kind in kinds]
end = time.monotonic() + 20
while not waits():
    assert time.monotonic() < end and job.poll() is None
job.send_signal(number)
assert job.wait(20) == -number, job.returncode
EOF
    [[ ! -e started ]]
    wait_until waiters a 0
  done
  rlock force-unlock -y a
}

@test "a SIGHUP that was ignored from the start stays ignored while waiting" {
  local owner pid
  owner=$(take a)
  sh -c 'trap "" HUP; exec "$RLOCK" run a -- touch started' 3>&- &
  pid=$!
  wait_until waiters a 1
  kill -HUP "$pid"
  rlock release a --owner "$owner"
  wait "$pid"
  [[ -e started ]]
}
