#!/usr/bin/env bats
# Several names in one run or acquire: all of them or none.
# shellcheck disable=SC2016 # what stands in single quotes is for the sh of a command

load ../lib/common
load ../lib/jobs

held() { rlock status --is-held "$@"; }
free() { [[ $(redis srv exists "$1") == 0 ]]; }
waiting_for() { [[ $(redis srv zcard "rlock:queue:{$1}") == 1 ]]; }
# job OPTION...: a job in the background, until the file end exists.
job() {
  "$RLOCK" run "$@" -- sh -c 'echo >started; until [ -e end ]; do sleep 0.02; done' 2>err 3>&- &
  jobs+=($!)
  job=$!
}
ends() {
  local status=0
  wait_until gone "$job"
  wait "$job" || status=$?
  [[ $status == "$1" ]]
}

@test "the command runs under all of them, and they are free afterwards" {
  run -0 rlock run c a b -- "$RLOCK" status --names
  [[ $output == $'a\nb\nc' ]]
  free a && free b && free c
}

@test "names, owner and tokens are given to the command in order" {
  run -0 rlock run b a -- sh -c 'echo "$RLOCK_NAME"; echo "$RLOCK_OWNER"; echo "$RLOCK_TOKEN"; echo "$RLOCK_HELD"'
  [[ ${lines[0]} == a && ${lines[1]} == b && ${#lines[@]} == 7 ]]
  [[ ${lines[3]} =~ ^[0-9]+$ && ${lines[4]} =~ ^[0-9]+$ ]]
  [[ ${lines[5]} == "${lines[2]} a" && ${lines[6]} == "${lines[2]} b" ]]
}

@test "one is held: none is taken, and the message says which" {
  local owner
  owner=$(rlock acquire b --lease 10m)
  run -75 --separate-stderr rlock run -n a b c -- touch ran
  [[ $stderr == 'rlock: b: not acquired: held by '* && ! -e ran ]]
  free a && free c
  run -75 --separate-stderr rlock run -w 300ms a b c -- touch ran
  [[ ! -e ran ]]
  free a && free c
  run -75 rlock acquire -n --lease 10s a b
  free a
  rlock release b --owner "$owner"
}

@test "one time limit for all of them" {
  local owner other
  owner=$(rlock acquire a --lease 10m)
  other=$(rlock acquire b --lease 10m)
  began=$(now_ms)
  "$RLOCK" run -w 20s a b -- touch ran 2>err 3>&- &
  jobs+=($!)
  wait_until waiting_for a
  wait_until past 15000
  rlock release a --owner "$owner"
  wait_until waiting_for b
  wait_until gone "${jobs[0]}"
  past 19900
  not past 32000 # 35 s if the limit started again
  rlock release b --owner "$other"
  free a
}

@test "locks that are already held are kept while another is waited for" {
  local owner
  owner=$(rlock acquire b --lease 10m)
  job --lease 6s a b
  wait_until waiting_for b
  began=$(now_ms)
  wait_until past 7000
  held a
  not test -e started
  rlock release b --owner "$owner"
  wait_until test -e started
  held a b
}

@test "if one is taken away meanwhile, the acquisition starts again" {
  local owner
  owner=$(rlock acquire b --lease 10m)
  job --lease 6s a b
  wait_until waiting_for b
  rlock force-unlock --now --yes a
  wait_until grep -q 'a: lost while waiting for others; starting again' err
  wait_until held a
  rlock release b --owner "$owner"
  wait_until test -e started
}

@test "if somebody asks for one meanwhile, it is given up, and the job is not started: 75" {
  local owner
  owner=$(rlock acquire b --lease 10m)
  job a b
  wait_until waiting_for b
  run -0 rlock run --supersede -w 1m a -- echo instead
  [[ $output == *instead* ]]
  ends 75
  grep -q 'a: not acquired: asked by .* (--supersede) to give it up while waiting for other locks' err
  job a b
  wait_until waiting_for b
  run -0 rlock force-unlock --yes -w 1m a
  assert_says 'a: released'
  ends 75
  free a
  rlock release b --owner "$owner"
  not test -e started
}

@test "what the server has lost during the wait is taken again before the command starts" {
  local owner
  owner=$(rlock acquire b --lease 10m)
  job a b
  wait_until waiting_for b
  redis srv del a 'rlock:holder:{a}'
  rlock release b --owner "$owner"
  wait_until test -e started
  held a b
  grep -q 'a: lost while waiting for others; starting again' err
}

@test "--min-hold, longer than the lease: locks that are held during a wait are still renewed in time" {
  local owner
  owner=$(rlock acquire b --lease 10m)
  job --lease 6s --min-hold 12s a b
  wait_until waiting_for b
  began=$(now_ms)
  wait_until past 7500
  rlock release b --owner "$owner"
  wait_until test -e started
  began=$(now_ms)
  wait_until past 1500
  touch end
  ends 0
  redis srv del a b 'rlock:holder:{a}' 'rlock:holder:{b}'
}

@test "jobs that name the same locks in opposite orders never wait for each other" {
  local i
  for i in 1 2 3 4 5 6 7 8; do
    "$RLOCK" run a b -- sh -c 'echo in >>log; sleep 0.01; echo out >>log' 3>&- &
    jobs+=($!)
    "$RLOCK" run b a -- sh -c 'echo in >>log; sleep 0.01; echo out >>log' 3>&- &
    jobs+=($!)
  done
  local job
  for job in "${jobs[@]}"; do wait "$job"; done
  [[ $(grep -c . log) == 32 && $(uniq log | wc -l) == 32 ]]
}

@test "all of them are kept far longer than their lease" {
  job --lease 6s a b c
  wait_until test -e started
  began=$(now_ms)
  wait_until past 7000
  held a b c
}

@test "losing one of them stops the command, and the others are released" {
  job --lease 6s a b c
  wait_until test -e started
  rlock force-unlock --now --yes b
  ends 74
  grep -qE 'a, b, c: the lock is lost: b: .*\(rlock force-unlock\) has taken it away' err
  free a && free b && free c
}

@test "requests to give up any of them are received" {
  job a b
  wait_until test -e started
  run -0 rlock force-unlock --yes b
  ends 74
  free a
}

@test "a signal while waiting for the second lock releases the first" {
  local owner
  owner=$(rlock acquire b --lease 10m)
  job a b
  wait_until waiting_for b
  kill -TERM "$job"
  ends 143
  free a
  rlock release b --owner "$owner"
}

@test "acquire, renew and release several for one owner" {
  local owner
  owner=$(rlock acquire b a --lease 20s)
  [[ $owner != *$'\n'* ]]
  held a b
  rlock renew a b --owner "$owner" --lease 1m
  (($(redis srv pttl a) > 25000 && $(redis srv pttl b) > 25000))
  rlock release a --owner "$owner"
  # The rest is still released.
  run -76 --separate-stderr rlock release a b --owner "$owner"
  [[ $stderr == 'rlock: a: not held'* ]]
  free b
}

@test "acquire --export and --json for several" {
  eval "$(rlock acquire a b --lease 1m --export)"
  [[ $RLOCK_NAME == $'a\nb' && $RLOCK_TOKEN == *$'\n'* ]]
  rlock release a b
  unset RLOCK_NAME RLOCK_OWNER RLOCK_TOKEN
  rlock acquire a b --lease 1m --json >json
  rlock release a b --owner "$(python3 -c '
import json
a, b = json.load(open("json"))
assert (a["name"], b["name"]) == ("a", "b") and a["owner"] == b["owner"]
print(a["owner"])')"
}

@test "a keeper releases all of its locks, regardless of how soon it is asked" {
  sleep 60 3>&- &
  local process=$! owner i
  for i in 1 2 3 4 5; do
    owner=$(rlock acquire a b c d --for-pid $process)
    rlock release a b c d --owner "$owner"
  done
  kill "$process"
}

@test "a keeper keeps all of them" {
  sleep 60 3>&- &
  local process=$! owner
  owner=$(rlock acquire a b --lease 6s --for-pid $process)
  began=$(now_ms)
  wait_until past 7000
  held a b
  kill "$process"
  wait_until free a
  wait_until free b
  [[ -n $owner ]]
}

@test "the lines of --status-fd say which lock was lost" {
  "$RLOCK" run --lease 6s --status-fd 5 a b c -- sleep 30 5>lines 2>err 3>&- &
  jobs+=($!)
  job=$!
  wait_until held a b c
  redis srv del a 'rlock:holder:{a}' c 'rlock:holder:{c}'
  ends 74
  [[ $(sed -n 's/.*"event":"\(lost\|released\)".*"name":"\(.\)".*/\1 \2/p' lines | sort | xargs) == 'lost a lost c released b' ]]
  "$RLOCK" run --status-fd 5 a b -- sleep 30 5>lines 2>err 3>&- &
  jobs+=($!)
  job=$!
  wait_until held a b
  rlock force-unlock --yes b
  ends 74
  grep -q '"event":"lost".*"name":"b"' lines
}

@test "the lines of --status-fd say that all locks were lost, if none could be renewed" {
  "$RLOCK" run --lease 3s --status-fd 5 a b -- sleep 30 5>lines 2>err 3>&- &
  jobs+=($!)
  job=$!
  wait_until held a b
  redis_freeze srv
  ends 74
  redis_thaw srv
  [[ $(sed -n 's/.*"event":"\(lost\|released\)".*"name":"\(.\)".*/\1 \2/p' lines | sort | xargs) == 'lost a lost b' ]]
  wait_until is_clean srv # the server may execute a renewal that was sent while it was frozen
}

@test "the lines of --status-fd name each lock" {
  rlock run --status-fd 5 a b -- true 5>lines
  python3 - <<'EOF'
import json
lines = [json.loads(line) for line in open("lines")]
events = [(line["event"], line["name"]) for line in lines]
assert events == [("acquired", "a"), ("acquired", "b"), ("released", "a"), ("released", "b"), ("exit", "a")], events
assert lines[-1]["names"] == ["a", "b"], lines[-1]
EOF
}

@test "nested: an ancestor's locks are shared, the others are taken" {
  run -0 rlock run b -- "$RLOCK" run -n a b -- "$RLOCK" status --names
  [[ $output == $'a\nb' ]]
  free a && free b
}

@test "readers and slots of several names" {
  run -0 rlock run -s a b -- sh -c 'RLOCK_HELD= "$0" run -n -s b c -- echo beside' "$RLOCK"
  [[ $output == beside ]]
  run -75 rlock run --slots 1 a b -- sh -c 'RLOCK_HELD= "$0" run -n --slots 1 b c -- echo beside' "$RLOCK"
}
