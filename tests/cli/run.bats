# rlock run: what the command gets, waiting, nesting, and what is visible on the server.

load ../lib/server

# start_waiter NAME: a `run` whose command creates the file `started`; $waiter is its pid.
start_waiter() {
  "$RLOCK" run "$1" -- touch started 2>waiter.err 3>&- &
  waiter=$!
  wait_until waiters "$1" 1
}

@test "a closed standard input is closed for the command" {
  # Uses Python, because a shell may claim to duplicate a closed descriptor.
  local look='import os; os.fstat(0)'
  run -1 bash -c '"$@" <&-' -- python3 -c "$look"
  run -1 bash -c '"$@" <&-' -- "$RLOCK" run a -- python3 -c "$look"
  run -0 rlock run a -- python3 -c "$look" </dev/null
}

@test "a waiter does not start before the release, which wakes it, long before the lease ends" {
  owner=$(rlock acquire --lease 10m a)
  start_waiter a
  [[ ! -e started && $(redis srv hgetall a) == "$owner"$'\n1' ]]
  rlock release a --owner "$owner"
  wait "$waiter"
  [[ -e started ]]
}

@test "a release publishes a single 0, a refused one nothing" {
  redis-cli -s "$srv_sock" subscribe 'redisson_lock__channel:{a}' >heard 3>&- &
  pid=$!
  wait_until waiters a 1
  owner=$(take a)
  run -76 rlock release a --owner "$FOREIGN"
  rlock release a --owner "$owner"
  run -76 rlock release a --owner "$owner"
  redis srv publish 'redisson_lock__channel:{a}' end
  wait_until grep -qx end heard
  kill "$pid"
  [[ $(grep -A2 -x message heard | grep -cx 0) == 1 ]]
}

@test "the waiting line on a terminal says who holds the lock" {
  "$RLOCK" run a -- sleep 60 3>&- &
  pid=$!
  wait_until rlock status --is-held a
  run -143 python3 "$TESTS_DIR/lib/terminal.py" 'held by' SIGTERM "$RLOCK" run a -- true
  end_mine_wholly "$pid"
  assert_says "waiting for a: held by $(id -un)@$(uname -n) pid $pid" '(sleep'
}

@test "a signal while waiting: rlock dies of it, starts nothing and leaves nothing" {
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
  owner=$(take a)
  sh -c 'trap "" HUP; exec "$RLOCK" run a -- touch started' 3>&- &
  pid=$!
  wait_until waiters a 1
  kill -HUP "$pid"
  rlock release a --owner "$owner"
  wait "$pid"
  [[ -e started ]]
}
