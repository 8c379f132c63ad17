#!/usr/bin/env bats
# Where messages go and in which form: standard error, systemd's journal, syslog.
# shellcheck disable=SC2154 # stderr and output: set by run

load ../lib/common

setup_file() { redis_start srv; }
setup() {
  RLOCK_URL=$(redis_url srv)
  export RLOCK_URL
  cd "$BATS_TEST_TMPDIR" || return
}
teardown() {
  kill ${syslog:+"$syslog"} 2>/dev/null || true
  assert_clean srv
}
teardown_file() { redis_stop srv; }

# to_journal OPTION...: rlock with the file err as standard error, which JOURNAL_STREAM names as systemd does.
to_journal() {
  : >err
  JOURNAL_STREAM=$(stat -c '%d:%i' err) rlock "$@" 2>err
}

@test "in the journal each line has its priority" {
  local status=0
  to_journal run -v x -- true
  [[ $(grep -vc '^<7>rlock: [^0-9]' err) == 0 && $(wc -l <err) -ge 4 ]]
  to_journal run --lease 4s x -- true
  [[ $(<err) == '<4>rlock: warning: '* ]]
  to_journal run x -- ./none || status=$?
  [[ $status == 127 && $(<err) == '<3>rlock: '* ]]
  local owner
  owner=$(rlock acquire --lease 1m x)
  to_journal run -w 3s x -- true || status=$?
  [[ $status == 75 && $(<err) == $'<6>rlock: waiting for x'*$'\n<3>rlock: x: not acquired'* ]]
  # The journal removes the priority from a line of JSON, too.
  to_journal run -n --log-format json x -- true || true
  run -0 python3 -c 'import json; assert json.loads(open("err").read().removeprefix("<3>"))["level"] == "error"'
  rlock release --owner "$owner" x
}

@test "in a file that is not the journal no line has a priority" {
  local stream
  : >other
  : >err
  for stream in "$(stat -c '%d:%i' other)" '' 1 : "$(stat -c '%d:' err)" "$(stat -c '0%d:%i' err)"; do
    JOURNAL_STREAM=$stream rlock run --lease 4s x -- true 2>err
    [[ $(<err) == 'rlock: warning: '* ]]
  done
}

@test "a job without problems writes nothing" {
  local command
  for command in 'run x -- true' 'run -n --min-hold 10ms x -- true' 'run -s shared -- true' 'run --slots 2 s -- true' 'status x' 'config'; do
    # shellcheck disable=SC2086 # words
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

@test "--log-format json: time, level, program and message" {
  local owner
  owner=$(rlock acquire --lease 1m x)
  run -75 --separate-stderr rlock run -v -w 3s --lease 4s --log-format json x -- true
  rlock release --owner "$owner" x
  run -0 python3 - "$stderr" <<'PYTHON'
import datetime, json, re, sys
lines = [json.loads(line) for line in sys.argv[1].splitlines()]
assert all(list(line) == ["time", "level", "program", "message"] for line in lines)
assert all(line["program"] == "rlock" and line["message"] for line in lines)
assert {line["level"] for line in lines} == {"debug", "info", "warning", "error"}, lines
assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"]) for line in lines)
times = [datetime.datetime.fromisoformat(line["time"][:-1]) for line in lines]
assert times == sorted(times)
assert any(line["message"].startswith("waiting for x: held by") for line in lines)
PYTHON
}

# with_syslog ARG...: rlock with its own /dev, whose log we read into the file syslog.
with_syslog() {
  local own=(unshare -m)
  "${own[@]}" true 2>/dev/null || own=(unshare -U -r -m)
  "${own[@]}" true 2>/dev/null || skip 'nobody lets us give a job a /dev of its own'
  if [[ ! -e dev ]]; then
    mkdir dev
    touch dev/null dev/urandom
    python3 "$TESTS_DIR/lib/syslog_server.py" "$PWD/dev/log" "$PWD/syslog" 3>&- &
    syslog=$!
    wait_until test -S dev/log
  fi
  rm -f syslog
  "${own[@]}" sh -c 'mount --bind /dev/null dev/null && mount --bind /dev/urandom dev/urandom && mount --rbind dev /dev &&
    exec "$@"' sh timeout 60 "$RLOCK" "$@" 2>err
}
syslog_says() { [[ -e syslog ]] && grep -qE -- "$1" syslog; }

@test "--syslog: messages go to syslog, and errors to standard error as well" {
  local owner status=0
  with_syslog run --syslog x -- true
  [[ ! -s err && ! -e syslog ]]
  # 14, 12 and 11: facility user, with info, warning and error (syslog(3)).
  with_syslog run --syslog --lease 4s x -- true
  wait_until syslog_says '^<12>.* rlock\[[0-9]+\]: --lease|^<12>.* rlock\[[0-9]+\]: '
  [[ ! -s err ]]
  owner=$(rlock acquire --lease 1m x)
  with_syslog run --syslog --log-format json -w 3s x -- true || status=$?
  [[ $status == 75 ]]
  wait_until syslog_says '^<14>.* rlock\[[0-9]+\]: waiting for x: held by'
  wait_until syslog_says '^<11>.* rlock\[[0-9]+\]: x: not acquired'
  [[ $(wc -l <err) == 1 && $(<err) == '{"time":'*'x: not acquired'* ]]
  rlock release --owner "$owner" x
  RLOCK_SYSLOG=true with_syslog run -v x -- true
  wait_until syslog_says '^<15>.*x: the command runs, pid'
  wait_until syslog_says '^<15>.*x: released'
  [[ ! -s err ]]
  # From the start on.
  with_syslog run --syslog --lease 0 x -- true || status=$?
  [[ $status == 64 && -s err ]]
}

@test "--syslog without a syslog daemon loses no error, and does not prevent a job" {
  local own=(unshare -m)
  "${own[@]}" true 2>/dev/null || own=(unshare -U -r -m)
  "${own[@]}" true 2>/dev/null || skip 'nobody lets us give a job a /dev of its own'
  mkdir dev
  touch dev/null dev/urandom
  without_log() {
    "${own[@]}" sh -c 'mount --bind /dev/null dev/null && mount --bind /dev/urandom dev/urandom && mount --rbind dev /dev &&
      exec "$@"' sh timeout 60 "$RLOCK" "$@"
  }
  run -0 --separate-stderr without_log run -v --syslog --lease 4s x -- echo ran
  [[ $output == ran && -z $stderr ]]
  run -127 --separate-stderr without_log run --syslog x -- ./none
  [[ $stderr == 'rlock: '* ]]
}
