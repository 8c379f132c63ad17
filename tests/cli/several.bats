# Several names in one run or acquire: all of them or none.

load ../lib/jobs

held() { rlock status --is-held "$@"; }
free() { [[ $(redis srv exists "$1") == 0 ]]; }
# job OPTION...: a job in the background, until the file end exists. runs: it has its locks.
job() {
  "$RLOCK" run --status-fd 5 "$@" -- sh -c 'echo >started; until [ -e end ]; do sleep 0.1; done' 2>err 5>lines 3>&- &
  jobs+=($!)
  job=$!
}
runs() { job "$@" && wait_until test -e started; }
# stuck_for_b: somebody else has b. job_waits OPTION...: a job that has a, and waits for b. let_go: it gets b, and runs.
stuck_for_b() { owner=$(rlock acquire b --lease 10m); }
job_waits() { job "$@" a b && wait_until queued b 1; }
let_go() { rlock release b --owner "$owner" && wait_until test -e started; }
ends() { exits "$job" "$1"; }
# events: what the status lines say of the locks' ends.
events() { sed -n 's/.*"event":"\(lost\|released\)".*"name":"\(.\)".*/\1 \2/p' lines | sort | xargs; }

@test "the command runs under all of them, is given names, owner and tokens in order, and they are free afterwards" {
  run -0 rlock run c a b -- sh -c '"$RLOCK" status --names; echo "$RLOCK_NAME"; echo "$RLOCK_OWNER"; echo "$RLOCK_TOKEN"; echo "$RLOCK_HELD"'
  [[ ${#lines[@]} == 13 && ${lines[*]:0:6} == 'a b c a b c' && "${lines[*]:7:3}" =~ ^[0-9]+\ [0-9]+\ [0-9]+$ ]]
  [[ ${lines[10]} == "${lines[6]} a" && ${lines[11]} == "${lines[6]} b" && ${lines[12]} == "${lines[6]} c" ]]
  free a && free b && free c
}

@test "one is held: none is taken, and the message says which" {
  stuck_for_b
  tells 75 'rlock: b: not acquired: held by ' rlock run -n a b c -- touch ran
  free a && free c
  run -75 rlock run -w 300ms a b c -- touch ran
  run -75 rlock acquire -n --lease 10s a b
  free a && free c
  [[ ! -e ran ]]
  rlock release b --owner "$owner"
}

@test "one time limit for all of them" {
  stuck_for_b
  other=$(rlock acquire a --lease 10m)
  began=$(now_ms)
  "$RLOCK" run -w 10s a b -- touch ran 2>err 3>&- &
  jobs+=($!)
  wait_until queued a 1
  wait_until past 7500
  rlock release a --owner "$other"
  wait_until queued b 1
  wait_until gone "${jobs[0]}"
  past 9900
  not past 16000 # 17.5 s if the limit started again
  rlock release b --owner "$owner"
  free a
}

@test "locks that are already held are kept while another is waited for" {
  stuck_for_b
  job_waits --lease 6s
  let_pass 7000
  held a
  not test -e started
  let_go
  held a b
}

@test "if one is taken away meanwhile, or lost by the server, the acquisition starts again" {
  stuck_for_b
  job_waits --lease 6s
  rlock force-unlock --now --yes a
  wait_until grep -q 'a: lost while waiting for others; starting again' err
  wait_until held a
  let_go
  touch end
  ends 0
  rm end started
  stuck_for_b
  job_waits
  redis srv del a 'rlock:holder:{a}'
  let_go
  held a b
  grep -q 'a: lost while waiting for others; starting again' err
}

@test "if somebody asks for one meanwhile, it is given up, and the job is not started: 75" {
  stuck_for_b
  job_waits
  prints instead rlock run -q --supersede -w 1m a -- echo instead
  ends 75
  grep -q 'a: not acquired: asked by .* (--supersede) to give it up while waiting for other locks' err
  job_waits
  tells 0 'a: released' rlock force-unlock --yes -w 1m a
  ends 75
  free a
  # A signal releases it, too.
  job_waits
  kill -TERM "$job"
  ends 143
  free a
  rlock release b --owner "$owner"
  not test -e started
}

@test "--min-hold, longer than the lease: locks that are held during a wait are still renewed in time" {
  stuck_for_b
  job_waits --lease 6s --min-hold 12s
  let_pass 7500
  let_go
  let_pass 1500
  touch end
  ends 0
  redis srv del a b 'rlock:holder:{a}' 'rlock:holder:{b}'
}

@test "jobs that name the same locks in opposite orders never wait for each other" {
  for i in 1 2 3 4 5 6 7 8; do
    "$RLOCK" run a b -- sh -c 'echo in >>log; sleep 0.01; echo out >>log' 3>&- &
    jobs+=($!)
    "$RLOCK" run b a -- sh -c 'echo in >>log; sleep 0.01; echo out >>log' 3>&- &
    jobs+=($!)
  done
  for job in "${jobs[@]}"; do wait "$job"; done
  [[ $(grep -c . log) == 32 && $(uniq log | wc -l) == 32 ]]
}

@test "all of them are kept far longer than their lease; losing one of them stops the command, and the others are released" {
  runs --lease 6s a b c
  let_pass 7000
  held a b c
  rlock force-unlock --now --yes b
  ends 74
  grep -qE 'a, b, c: the lock is lost: b: .*\(rlock force-unlock\) has taken it away' err
  free a && free b && free c
  rm started
  runs --lease 6s a b c
  redis srv del a 'rlock:holder:{a}' c 'rlock:holder:{c}'
  ends 74
  [[ $(events) == 'lost a lost c released b' ]]
}

@test "requests to give up any of them are received" {
  runs a b
  rlock force-unlock --yes b
  ends 74
  grep -q '"event":"lost".*"name":"b"' lines
  free a
}

@test "acquire, renew and release several for one owner" {
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

@test "a keeper keeps all of its locks, and releases them, regardless of how soon it is asked" {
  sleep 60 3>&- &
  local process=$! i
  for i in 1 2 3; do rlock release a b c d --owner "$(rlock acquire a b c d --for-pid $process)"; done
  rlock acquire a b --lease 6s --for-pid $process
  let_pass 7000
  held a b
  kill "$process"
  wait_until free a
  wait_until free b
}

@test "the lines of --status-fd say that all locks were lost, if none could be renewed, and name each lock" {
  runs --lease 3s a b
  redis_freeze srv
  ends 74
  redis_thaw srv
  [[ $(events) == 'lost a lost b' ]]
  wait_until is_clean srv # the server may execute a renewal that was sent while it was frozen
  rlock run --status-fd 5 a b -- true 5>lines
  python3 - <<'EOF'
import json
lines = [json.loads(line) for line in open("lines")]
events = [(line["event"], line["name"]) for line in lines]
assert events == [("acquired", "a"), ("acquired", "b"), ("released", "a"), ("released", "b"), ("exit", "a")], events
assert lines[-1]["names"] == ["a", "b"], lines[-1]
EOF
}

@test "nested: an ancestor's locks are shared, the others are taken; readers and slots of several names" {
  prints $'a\nb' rlock run b -- "$RLOCK" run -n a b -- "$RLOCK" status --names
  free a && free b
  prints beside rlock run -s a b -- sh -c 'RLOCK_HELD= "$0" run -n -s b c -- echo beside' "$RLOCK"
  run -75 rlock run --slots 1 a b -- sh -c 'RLOCK_HELD= "$0" run -n --slots 1 b c -- echo beside' "$RLOCK"
}
