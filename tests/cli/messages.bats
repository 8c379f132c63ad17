# Where messages go and in which form: standard error, systemd's journal, syslog.

load ../lib/server
load ../lib/job
load ../lib/syslog

teardown() {
  end_syslog
  if [[ -d disk/lost+found ]]; then
    fsfreeze -u disk 2>/dev/null || true
    wait_until umount disk
  fi
  assert_clean srv
}

# to_journal OPTION...: rlock with the file err as standard error, which JOURNAL_STREAM names as systemd does.
to_journal() {
  : >err
  JOURNAL_STREAM=$(stat -c '%d:%i' err) rlock "$@" 2>err
}

@test "in the journal each line has its priority, and in no other file" {
  local status=0
  to_journal run -v x -- true
  [[ $(grep -vc '^<7>rlock: [^0-9]' err) == 0 && $(wc -l <err) -ge 4 ]]
  to_journal run --lease 4s x -- true
  [[ $(<err) == '<4>rlock: warning: '* ]]
  to_journal run x -- ./none || status=$?
  [[ $status == 127 && $(<err) == '<3>rlock: '* ]]
  owner=$(rlock acquire --lease 1m x)
  to_journal run -w 3s x -- true || status=$?
  [[ $status == 75 && $(<err) == $'<6>rlock: waiting for x'*$'\n<3>rlock: x: not acquired'* ]]
  # Not in a file that is not the journal.
  : >other
  for stream in "$(stat -c '%d:%i' other)" '' 1 : "$(stat -c '%d:' err)" "$(stat -c '0%d:%i' err)"; do
    JOURNAL_STREAM=$stream rlock run --lease 4s y -- true 2>err
    [[ $(<err) == 'rlock: warning: '* ]]
  done
  # The journal removes the priority from a line of JSON, too.
  to_journal run -n --log-format json x -- true || true
  run -0 python3 -c 'import json; assert json.loads(open("err").read().removeprefix("<3>"))["level"] == "error"'
  rlock release --owner "$owner" x
}

@test "a job without problems writes nothing" {
  for command in 'run x -- true' 'run -n --min-hold 10ms x -- true' 'run -s shared -- true' 'run --slots 2 s -- true' 'status x' 'config'; do
    run -0 --separate-stderr rlock $command
    [[ -z $stderr ]]
  done
  to_journal run x -- true
  [[ ! -s err ]]
}

@test "-v: each step with its time" {
  run -3 --separate-stderr rlock run -v --lease 20s x -- sh -c 'exit 3'
  local time='[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z' step
  run -1 grep -vE "^rlock: $time " <<<"$stderr"
  for step in 'option lease: 20s, from --lease' 'server [a-z+]+://.*, from RLOCK_URL' 'connected to [a-z+]+://.*' \
    'x: granted after .*, fencing token [0-9]+' 'x: the command runs, pid [0-9]+' 'x: the command exited with 3' 'x: released'; do
    grep -qE "^rlock: $time $step\$" <<<"$stderr" || {
      echo "$step"
      return 1
    }
  done
  # In this order; lines of one millisecond stay as they are.
  diff <(sort -s -k 2,2 <<<"$stderr") <(printf '%s\n' "$stderr")
  run -0 --separate-stderr rlock run -v --lease 4s x -- true
  grep -qE "^rlock: $time warning: " <<<"$stderr"
}

@test "--log-format json: time, level, program and message; of what happens to a lock, the event and its name" {
  owner=$(rlock acquire --lease 1m x)
  run -75 --separate-stderr rlock run -v -w 3s --lease 4s --log-format json x -- true
  rlock release --owner "$owner" x
  run -0 python3 - "$stderr" <<'PYTHON'
import datetime, json, re, sys
lines = [json.loads(line) for line in sys.argv[1].splitlines()]
assert all(list(line)[:4] == ["time", "level", "program", "message"] for line in lines)
events = {(line["event"], line["lock"]) for line in lines if len(line) > 4}
assert events == {("waiting", "x"), ("not-acquired", "x")}, events
assert all(line["program"] == "rlock" and line["message"] for line in lines)
assert {line["level"] for line in lines} == {"debug", "info", "warning", "error"}, lines
assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"]) for line in lines)
times = [datetime.datetime.fromisoformat(line["time"][:-1]) for line in lines]
assert times == sorted(times)
assert any(line["message"].startswith("waiting for x: held by") for line in lines)
PYTHON
  # events: of the messages in JSON on standard error.
  events() { python3 -c 'import json, sys; print(*(one["event"] + "=" + one["lock"] for one in map(json.loads, sys.stdin) if "event" in one))' <<<"$stderr"; }
  run -0 --separate-stderr rlock run -v --log-format json x -- true
  [[ $(events) == 'acquired=x released=x' ]]
  run -74 --separate-stderr rlock run --log-format json --lease 3s x -- sh -c "redis-cli -s '$srv_sock' del x >/dev/null; exec sleep 60"
  [[ $(events) == 'lost=x' ]]
  redis srv del 'rlock:holder:{x}' >/dev/null
}

@test "--syslog: messages go to syslog, and errors to standard error as well" {
  local owner status=0
  with_syslog run --syslog x -- true 2>err
  [[ ! -s err && ! -e syslog ]]
  # 14, 12 and 11: facility user, with info, warning and error (syslog(3)).
  with_syslog run --syslog --lease 4s x -- true 2>err
  wait_until syslog_says '^<12>.* rlock\[[0-9]+\]: --lease|^<12>.* rlock\[[0-9]+\]: '
  [[ ! -s err ]]
  owner=$(rlock acquire --lease 1m x)
  with_syslog run --syslog --log-format json -w 3s x -- true 2>err || status=$?
  [[ $status == 75 ]]
  wait_until syslog_says '^<14>.* rlock\[[0-9]+\]: waiting for x: held by'
  wait_until syslog_says '^<11>.* rlock\[[0-9]+\]: x: not acquired'
  [[ $(wc -l <err) == 1 && $(<err) == '{"time":'*'x: not acquired'* ]]
  rlock release --owner "$owner" x
  RLOCK_SYSLOG=true with_syslog run -v x -- true 2>err
  wait_until syslog_says '^<15>.*x: the command runs, pid'
  wait_until syslog_says '^<15>.*x: released'
  [[ ! -s err ]]
  # From the start on.
  with_syslog run --syslog --lease 0 x -- true 2>err || status=$?
  [[ $status == 64 && -s err ]]
}

@test "--syslog without a syslog daemon loses no error, and does not prevent a job" {
  run -0 --separate-stderr with_dev "$RLOCK" run -v --syslog --lease 4s x -- echo ran
  [[ $output == ran && -z $stderr ]]
  run -127 --separate-stderr with_dev "$RLOCK" run --syslog x -- ./none
  [[ $stderr == 'rlock: '* ]]
}

@test "a log daemon that hangs delays no command, no wait and no end, and is told later how much is missing" {
  local owner status=0
  with_syslog run --syslog x -- true 2>err
  hang_syslog
  with_syslog run -v --syslog x -- touch ran 2>err
  [[ -e ran ]]
  owner=$(rlock acquire --lease 1m x)
  with_syslog run --syslog -w 1s x -- true 2>err || status=$?
  [[ $status == 75 && $(<err) == *'x: not acquired'* ]]
  rlock release --owner "$owner" x
  status=0
  with_syslog run --syslog --lease 6s x -- sh -c "redis-cli -s '$srv_sock' flushall; exec sleep 1000" 2>err || status=$?
  [[ $status == 74 && $(<err) == *'no longer held'* ]]
  with_syslog run -v --syslog x -- sh -c "kill -CONT $syslog; until grep full syslog; do :; done" 2>err >log
  wait_until syslog_says '^<12>.* rlock\[[0-9]+\]: [0-9]+ messages? could not be written here'
  wait_until syslog_says 'x: released'
}

# own_disk: a file system in the folder disk that we may freeze.
own_disk() {
  truncate -s 16M disk.img
  mkdir disk
  mkfs.ext4 -q disk.img && mount -o loop disk.img disk 2>log || skip 'nobody lets us mount a file system'
}

@test "a frozen file system below standard error and --status-fd: the job keeps its lock, and its end is not delayed" {
  own_disk
  # In the background, because no signal ends a process that is in a write to such a file.
  "$RLOCK" run -v --lease 6s --status-fd 7 x -- sh -c \
    "fsfreeze -f disk; sleep 8; [ \$(redis-cli -s '$srv_sock' exists x) = 1 ]" 2>disk/err 7>disk/events 3>&- &
  wait_until gone $!
  [[ $(redis srv exists x) == 0 ]]
  run ! grep -q 'x: released' disk/err
  fsfreeze -u disk
  wait $!
  wait_until not pgrep -r D -f "$srv_sock"
}

@test "the monitor is killed while its message hangs: the frontend ends the job, and does not wait for the message" {
  own_disk
  exec 7>disk/err
  fsfreeze -f disk
  "$RLOCK" run --lease 9s x -- sleep 1000 2>&7 3>&- &
  frontend=$!
  exec 7>&-
  job_parts
  redis_freeze srv
  wait_until pgrep -r D -x rlock -P "$monitor"
  kill -KILL "$monitor"
  wait_until gone "$frontend"
  redis_thaw srv
  gone "$command"
  job_status || true
  [[ $status == 74 ]]
  redis srv del x 'rlock:holder:{x}'
}

@test "a file system is frozen and thawed: all messages are there, in order, and signals reach the command" {
  own_disk
  exec 7>disk/err
  fsfreeze -f disk
  "$RLOCK" run -v x -- sh -c 'trap "exit 5" USR1
    fsfreeze -u disk
    until grep -q "x: granted" disk/err; do sleep 0.1; done
    touch ready
    while :; do sleep 0.1; done' 2>&7 3>&- &
  exec 7>&-
  wait_until test -e ready
  kill -USR1 $!
  wait_until gone $!
  exits $! 5
  sed -E 's/^rlock: [^ ]*Z //' disk/err >said
  run -0 grep -nE '^(option url|x: granted|x: released)' said
  [[ $output == *'option url'*$'\n'*'x: granted'*$'\n'*'x: released'* ]]
  run -1 grep 'could not be written' said
}

@test "a file that may not grow costs no job its lock, and the command dies of SIGXFSZ as without rlock" {
  local status=0
  head -c 1024 /dev/zero | tee err events >page
  run -0 --separate-stderr bash -c 'ulimit -f 1; "$@" 2>>err 7>>events' sh "$RLOCK" run -v --status-fd 7 x -- true
  [[ $(wc -c <err) == 1024 && $(wc -c <events) == 1024 ]]
  bash -c 'ulimit -f 1; exec "$@"' sh "$RLOCK" run x -- sh -c 'exec head -c 4096 /dev/zero >big' || status=$?
  [[ $status == 153 ]]
}

@test "a file system is frozen while the last message is written: the program waits for it" {
  own_disk
  exec 7>disk/err
  fsfreeze -f disk
  "$RLOCK" run x -- ./none 2>&7 3>&- &
  exec 7>&-
  wait_until pgrep -r D -x rlock
  let_pass 300
  fsfreeze -u disk
  exits $! 127
  grep -q './none' disk/err
}
