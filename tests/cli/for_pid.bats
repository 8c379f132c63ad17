# acquire --for-pid: a keeper in the background.

load ../lib/common

setup_file() { redis_start srv; }
setup() {
  RLOCK_URL=$(redis_url srv)
  export RLOCK_URL
  cd "$BATS_TEST_TMPDIR" || return
  mkdir bin
  ln -s "$(realpath "$RLOCK")" bin/rlock
  RLOCK=$PWD/bin/rlock # so that we find only our own processes
  sleep 1000 3>&- &
  process=$!
}
teardown() {
  end_mine_wholly "$process"
  [[ -z ${syslog:-} ]] || kill -KILL "$syslog"
  wait_until no_keeper
  assert_clean srv
}
teardown_file() { redis_stop srv; }

keeper() { pgrep -f -- "^($BATS_TEST_TMPDIR/bin/rlock|./rlock --url redis://127.0.0.1:${port:-}) .*--for-pid"; }
no_keeper() { ! keeper; }
free() { [[ $(redis srv exists job) == 0 ]]; }

@test "renewed as long as the process lives, then released at once; status shows the process" {
  local owner
  owner=$(rlock acquire --for-pid "$process" --lease 6s job --reason because)
  [[ $(redis srv hgetall job) == "$owner"$'\n1' ]]
  run -0 rlock status job
  [[ $output == *"pid $process"* && $output == *'rlock acquire --for-pid'* && $output == *because* ]]
  let_pass 7000
  [[ $(redis srv hgetall job) == "$owner"$'\n1' ]]
  redis srv pexpire job 600000 # its own end is far away now
  kill "$process"
  wait_until free
  wait_until no_keeper
}

@test "if the process ends while rlock waits for the lock, rlock ends with 64 and has left the queue" {
  local owner
  owner=$(rlock acquire --lease 10m job)
  "$RLOCK" acquire -v --for-pid "$process" job >out 2>err 3>&- &
  local waiter=$!
  wait_until grep -q 'waiting for job' err
  kill "$process"
  status=0
  wait "$waiter" || status=$?
  [[ $status == 64 && ! -s out ]]
  grep -q "process $process has ended, so no lock was acquired for it" err
  [[ $(redis srv exists 'rlock:queue:{job}') == 0 ]]
  rlock release job --owner "$owner"
}

@test "release, force-unlock and TERM end the keeper promptly, and the lock is free" {
  local end owner
  for end in 'rlock release job --owner' 'rlock force-unlock --yes job --owner' 'kill_keeper'; do
    owner=$(rlock acquire --for-pid "$process" --lease 10m job)
    wait_until keeper
    $end "$owner"
    wait_until free
    wait_until no_keeper
    not gone "$process"
  done
}
kill_keeper() { kill -TERM "$(keeper)"; }

@test "kill -9 of the keeper: the lock is free when its lease has run out" {
  rlock acquire --for-pid "$process" --lease 6s job
  kill -9 "$(keeper)"
  run -0 rlock run -w 1m job -- true
}

@test "the lock is taken away: the keeper ends, and leaves the new holder's lock alone" {
  rlock acquire --for-pid "$process" --lease 6s job
  redis srv eval "redis.call('del', KEYS[1]); redis.call('hset', KEYS[1], 'other:1', 1); redis.call('pexpire', KEYS[1], 60000)" 1 job
  wait_until no_keeper
  [[ $(redis srv hgetall job) == $'other:1\n1' ]]
  redis srv del job 'rlock:holder:{job}'
}

@test "it survives the end of its terminal, its session and its group" {
  run -0 timeout 20 python3 "$TESTS_DIR/lib/terminal.py" never never bash -c "exec \"$RLOCK\" acquire --for-pid $process job"
  not free
  wait_until keeper
  local pid
  pid=$(keeper)
  [[ $(ps -o tty= -p "$pid") == *'?'* && $(readlink "/proc/$pid/cwd") == / ]]
  [[ $(readlink "/proc/$pid/fd/0" "/proc/$pid/fd/1" "/proc/$pid/fd/2" | sort -u) == /dev/null ]]
}

# CI systems kill what a job has left behind: they look for the job's variables in /proc/PID/environ.
@test "the keeper shows none of its caller's variables" {
  rlock --version >/dev/null
  RUNNER_TRACKING_ID=github_1 JENKINS_NODE_COOKIE=a1 JENKINS_SERVER_COOKIE=b2 BUILD_ID=7 CI=true \
    rlock acquire --for-pid "$process" job
  wait_until keeper
  # Reads it like a program of the same user that looks for them.
  [[ -r /proc/$(keeper)/environ ]]
  [[ -z $(tr -d '\0' <"/proc/$(keeper)/environ") ]]
}

# With a host name in the address, which is looked up again with the resolver's own variables.
@test "the keeper reconnects without these variables" {
  local owner began port
  redis_listen srv
  owner=$(RES_OPTIONS='attempts:1 timeout:1' rlock acquire --url "redis://localhost:$port" --for-pid "$process" --lease 3s job)
  redis srv client kill type normal >/dev/null
  let_pass 3200
  [[ $(redis srv hgetall job) == "$owner"$'\n1' ]]
  rlock release job --owner "$owner"
  redis_listen_no_more srv
}

@test "a script whose steps are separate shells" {
  cat >step1 <<'STEP'
rlock acquire job --for-pid $PPID >owner
STEP
  echo 'test "$(rlock status --names)" = job' >step2
  echo 'rlock release job --owner "$(cat owner)"' >step3
  PATH=$PWD/bin:$PATH
  run -0 bash -c 'for step in 1 2 3; do bash -eu "step$step" || exit; done'
  free
}

@test "the runner dies between the steps: the lock is free" {
  bash -c '"$RLOCK" acquire job --lease 10m --for-pid $$ >owner; touch up; exec sleep 1000' 3>&- &
  local runner=$!
  wait_until test -e up
  not free
  kill -9 "$runner"
  wait_until free
}

refused() {
  run -64 --separate-stderr rlock acquire "--for-pid=$1" job
  assert_says "$2"
  free
}

@test "impossible processes: none, ended, not a number" {
  local dead
  sleep 0 &
  dead=$!
  wait "$dead"
  refused "$dead" 'there is no such process'
  # A zombie.
  python3 -c 'import os, time
pid = os.fork()
if pid == 0: os._exit(0)
open("zombie", "w").write(str(pid)); time.sleep(20)' 3>&- &
  local parent=$!
  wait_until test -s zombie
  wait_until gone "$(cat zombie)"
  refused "$(cat zombie)" 'has ended'
  kill "$parent"
  local bad
  for bad in 0 -1 x '' 1.5 99999999999 '1 2'; do
    refused "$bad" for-pid
  done
}

@test "impossible processes: rlock itself, its child, another user's" {
  run -64 --separate-stderr bash -c 'exec "$RLOCK" acquire --for-pid $$ job'
  assert_says 'this rlock itself'
  run -64 --separate-stderr bash -c 'sleep 5 >/dev/null 2>&1 & exec "$RLOCK" acquire --for-pid $! job'
  assert_says 'a child of this rlock'
  free
  [[ $(id -u) == 0 ]] || skip 'root becomes another user'
  mkdir place
  chmod 777 place
  cp "$RLOCK" place/rlock
  cd place
  run -64 --separate-stderr setpriv --reuid=61234 --regid=61234 --clear-groups ./rlock acquire --for-pid "$process" job
  assert_says 'belongs to another user'
}

@test "busy: 75, and no keeper; the owner id cannot be written: no lock, and no keeper" {
  local owner
  owner=$(rlock acquire job --lease 1m)
  run -75 rlock acquire -n --for-pid "$process" job
  no_keeper
  rlock release job --owner "$owner"
  run -71 --separate-stderr bash -c '"$RLOCK" acquire --for-pid '"$process"' job >/dev/full'
  free
  wait_until no_keeper
}

@test "few descriptors left: refused, or kept; never a lock without a keeper" {
  local limit refused=0 fine=0
  for limit in {4..60}; do
    prlimit --nofile="$limit" "$RLOCK" --version >/dev/null 2>&1 || continue
    status=0
    owner=$(prlimit --nofile="$limit" "$RLOCK" acquire --for-pid "$process" job --lease 1s 2>err) || status=$?
    if ((status == 0)); then
      [[ $(redis srv hkeys job) == "$owner" ]] && keeper
      rlock release job --owner "$owner"
      wait_until no_keeper
      ((++fine))
    else
      cat err
      ((status == 69 || status == 71)) && [[ -z $owner && -s err ]]
      ((++refused))
    fi
    free
    ((fine < 3)) || break
  done
  echo "# descriptors: $refused refused, $fine fine" >&3
  ((refused > 0 && fine > 0))
}

# with_syslog ARG...: rlock, whose keeper writes to the file syslog, with a /dev of its own whose log we read.
with_syslog() {
  local own=(unshare -m)
  "${own[@]}" true 2>/dev/null || own=(unshare -U -r -m)
  "${own[@]}" true 2>/dev/null || skip 'nobody lets us give a job a /dev of its own'
  mkdir -p dev
  touch dev/null dev/urandom
  python3 "$TESTS_DIR/lib/syslog_server.py" "$PWD/dev/log" "$PWD/syslog" 3>&- &
  syslog=$!
  wait_until test -S dev/log
  "${own[@]}" sh -c 'mount --bind /dev/null dev/null && mount --bind /dev/urandom dev/urandom && mount --rbind dev /dev &&
    exec "$@"' sh timeout 60 "$RLOCK" "$@"
}
syslog_says() { grep -q -- "$1" syslog; }

@test "a lost lock is reported even if the process ends before the next renewal" {
  with_syslog acquire --for-pid "$process" job
  redis srv flushall
  kill "$process"
  wait_until no_keeper
  wait_until syslog_says 'job: the lock was lost'
}

@test "a lock that is released just as the process ends causes no message" {
  with_syslog acquire --for-pid "$process" job
  kill "$process"
  wait_until no_keeper
  free
  [[ ! -e syslog ]]
}

@test "an outage beyond the deadline: the keeper renews when the server is back, and ends if the lock is lost" {
  local began
  rlock acquire --for-pid "$process" --lease 21s job
  began=$(now_ms)
  redis_freeze srv
  wait_until past 16000 # of a lease of 21 s a command would be asked to end after 15.8
  redis_thaw srv
  renewed() { (($(redis srv pttl job) > 6000)); }
  wait_until renewed
  redis srv del job 'rlock:holder:{job}' >/dev/null
  wait_until no_keeper
}

@test "a log daemon that hangs does not keep the keeper from renewing when the server is back" {
  local began
  with_syslog acquire --for-pid "$process" --lease 10s job
  kill -STOP "$syslog"
  wait_until in_state "$syslog" T
  python3 "$TESTS_DIR/lib/syslog_server.py" dev/log fill
  began=$(now_ms)
  redis_freeze srv
  wait_until past 8000
  redis_thaw srv
  renewed() { (($(redis srv pttl job) > 6000)); }
  wait_until renewed
  kill "$process"
  wait_until no_keeper
  free
}
