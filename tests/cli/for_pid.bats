# acquire --for-pid: a keeper in the background.

load ../lib/server
load ../lib/syslog

setup() {
  use_server srv
  mkdir bin
  ln -s "$(realpath "$RLOCK")" bin/rlock
  RLOCK=$PWD/bin/rlock # so that we find only our own processes
  sleep 1000 3>&- &
  process=$!
}
teardown() {
  end_mine_wholly "$process"
  end_syslog
  wait_until no_keeper
  assert_clean srv
}

keeper() { pgrep -f -- "^($BATS_TEST_TMPDIR/bin/rlock|./rlock --url redis://127.0.0.1:${port:-}) .*--for-pid"; }
no_keeper() { ! keeper; }
free() { [[ $(redis srv exists job) == 0 ]]; }

@test "renewed as long as the process lives, then released at once; status shows the process" {
  owner=$(rlock acquire --for-pid "$process" --lease 6s job --reason because)
  [[ $(redis srv hgetall job) == "$owner"$'\n1' ]]
  run -0 rlock status job
  [[ $output == *"pid $process"* && $output == *'rlock acquire --for-pid'* && $output == *because* ]]
  redis srv pexpire job 4000
  wait_until renewed_past 4000 job
  [[ $(redis srv hgetall job) == "$owner"$'\n1' ]]
  redis srv pexpire job 600000 # its own end is far away now
  kill "$process"
  wait_until free
  wait_until no_keeper
}

@test "if the process ends while rlock waits for the lock, rlock ends with 64 and has left the queue" {
  owner=$(rlock acquire --lease 10m job)
  "$RLOCK" acquire -v --for-pid "$process" job >out 2>err 3>&- &
  local waiter=$!
  wait_until grep -q 'waiting for job' err
  kill "$process"
  exits "$waiter" 64
  [[ ! -s out ]]
  grep -q "process $process has ended, so no lock was acquired for it" err
  [[ $(redis srv exists 'rlock:queue:{job}') == 0 ]]
  rlock release job --owner "$owner"
}

@test "release, force-unlock and TERM end the keeper promptly, and the lock is free" {
  for end in 'rlock release job --owner' 'tells 0 without rlock force-unlock --yes job --owner' 'kill_keeper'; do
    owner=$(rlock acquire --for-pid "$process" --lease 10m job)
    wait_until keeper
    $end "$owner"
    wait_until free
    wait_until no_keeper
    not gone "$process"
  done
}
kill_keeper() { kill -TERM "$(keeper)"; }

@test "kill -9 of the keeper: the lock is free when its lease has run out; a lock that is taken away: the keeper leaves the new one alone" {
  rlock acquire --for-pid "$process" --lease 6s job
  kill -9 "$(keeper)"
  run -0 rlock run -w 1m job -- true
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
  redis_listen srv
  owner=$(RES_OPTIONS='attempts:1 timeout:1' rlock acquire --url "redis://localhost:$port" --for-pid "$process" --lease 3s job)
  redis srv client kill type normal >/dev/null
  let_pass 3200
  [[ $(redis srv hgetall job) == "$owner"$'\n1' ]]
  rlock release job --owner "$owner"
  redis_listen_no_more srv
}

refused() {
  tells 64 "$2" rlock acquire "--for-pid=$1" job
  free
}

@test "impossible processes: none, ended, not a number, rlock itself, its child, another user's" {
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
  for bad in 0 -1 x '' 1.5 99999999999 '1 2'; do
    refused "$bad" for-pid
  done
  # rlock itself, its child, another user's.
  tells 64 'this rlock itself' bash -c 'exec "$RLOCK" acquire --for-pid $$ job'
  tells 64 'a child of this rlock' bash -c 'sleep 5 >/dev/null 2>&1 & exec "$RLOCK" acquire --for-pid $! job'
  free
  [[ $(id -u) == 0 ]] || skip 'root becomes another user'
  mkdir place
  chmod 777 place
  cp "$RLOCK" place/rlock
  cd place
  tells 64 'belongs to another user' setpriv --reuid=61234 --regid=61234 --clear-groups ./rlock acquire --for-pid "$process" job
}

@test "busy: 75, and no keeper; the owner id cannot be written: no lock, and no keeper" {
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

@test "after an outage beyond the deadline, the keeper renews when the server is back, even if the log daemon hangs" {
  with_syslog acquire --for-pid "$process" --lease 10s job
  hang_syslog
  began=$(now_ms)
  redis_freeze srv
  wait_until past 8000
  redis_thaw srv
  wait_until renewed_past 6000 job
  kill "$process"
  wait_until no_keeper
  free
}
