# run --once and --once-per: a job that has succeeded does not run again, and one that has failed does.

load ../lib/server
load ../lib/job

teardown() {
  end_mine_wholly "${frontend:-}" "${waiters[@]}"
  redis srv del 'rlock:once:{job}' 'rlock:totals:{job}' 'rlock:history:{job}' >/dev/null
  assert_clean srv
}

runs() { [[ $(wc -l <ran 2>/dev/null || echo 0) == "$1" ]]; }
remembered() { redis srv hget 'rlock:once:{job}' "$1"; }
# remember KEY RECORD: as if a job had succeeded so.
remember() { redis srv hset 'rlock:once:{job}' "$@" >/dev/null; }
# leaves OPTION ... NAME: a job that leaves a line in the file "ran"; once: for the key 1.4; daily: once a day.
leaves() { rlock run "$@" -- sh -c 'echo ran >>ran'; }
once() { leaves "$@" --once 1.4 job; }
daily() { leaves "$@" --once-per day job; }
# few_rights: makes a user with the rights of rlock 1.0, who logs in by the address $few.
few_rights() {
  redis srv acl setuser few on '>pw' '~*' '&*' +@all resetkeys '~job' '~{job}*' '~redisson*' '~rlock:holder:*' '~rlock:hold:*' '~rlock:queue:*' '~rlock:waiters:*' >/dev/null
  few=${RLOCK_URL/:\/\//://few:pw@}
}
# in_background STATUS [OPTION ...]: a job for the key 1.4 that ends with the status once the file go exists.
in_background() {
  job_start --once 1.4 "${@:2}" job -- bash -c 'echo ran >>ran; until [[ -e go ]]; do sleep 0.1; done; exit $0' "$1"
  wait_until test -e ran
}
# waiter OPTION ...: a job that waits, and writes its number to the file ran.
waiter() {
  local number=$((${#waiters[@]} + 1))
  "$RLOCK" run -v "$@" job -- sh -c 'echo $0 >>ran' "$number" 2>"err-$number" 3>&- &
  waiters+=($!)
  wait_until queued job "$number"
}

@test "what has succeeded is not run again, and -v says who did it and when; --once-status chooses another status" {
  for i in 1 2; do
    run -0 --separate-stderr once
    [[ -z $output$stderr ]] && runs 1
  done
  tells 0 'job: not run: 1.4 has already succeeded, ' once -v
  assert_says " ago by $(id -un)@$(uname -n) pid " ' (sh)'
  tells 42 'not run: 1.4 has already succeeded' once --once-status 42
  runs 1
  leaves --once 1.5 job
  leaves --once 1.4 other
  leaves job
  runs 4
  redis srv del 'rlock:once:{other}'
}

@test "a failure keeps nobody back: a status, a signal, --max-hold, a hook, a program that does not exist; status shows it" {
  # failed STATUS ARG...: a job for the key 1.4 fails with the status, and that is shown until there is a success.
  failed() {
    run "-$1" rlock run --once 1.4 "${@:2}"
    run -0 rlock status job
    [[ $output == *$'\nonce      1.4 failed with status '"$1 "*" ago by $(id -un)@$(uname -n) pid "* ]]
  }
  failed 3 job -- sh -c 'exit 3'
  failed 143 job -- sh -c 'kill -TERM $$'
  failed 124 --max-hold 1ms job -- sh -c 'trap "exit 0" TERM; sleep 600 & wait'
  failed 78 --on-acquire false job -- true
  failed 127 job -- ./no-such-program
  run -1 rlock status --succeeded-within 1h job
  [[ $output == 'job: no success is known from the history or --once; failed with status 127 '*' (./no-such-program)' ]]
  rlock status --json job >all
  python3 "$TESTS_DIR/lib/schema.py" "$TESTS_DIR/../docs/schema/status.json" <all
  [[ $(python3 -c 'import json; print(json.load(open("all"))[0]["failures"][0]["status"])') == 127 ]]
  [[ $(redis srv hexists 'rlock:once:{job}' 1.4) == 0 ]]
  (($(redis srv pttl 'rlock:once:{job}') > 0))
  once
  runs 1
  run -0 rlock status job
  [[ $output == *'1.4 succeeded '* && $output != *failed* ]]
}

@test "a failure does not take a success back" {
  once
  remember 1.4 "$(remembered 1.4 | sed '1s/^0 /7 /')" # as of a period
  run -3 rlock run --once 1.5 job -- sh -c 'exit 3'
  run -0 rlock status job
  [[ $output == *'1.4 succeeded '*'1.5 failed with status 3 '* ]]
}

@test "another command, or another user, of the same name: a warning, even if nobody watches" {
  rlock run --once-per day job -- true
  run -0 --separate-stderr rlock run --once-per day job -- true
  [[ -z $stderr ]]
  tells 0 'rlock: warning: job: not run: it has already succeeded today, ' rlock run -n -E 0 --once-per day job -- ./import.sh
  assert_says " (true); this is $(id -un)'s ./import.sh: if it is another job, give it a name of its own"
  remember 'per day' "$(remembered 'per day' | sed "2s/.*/alice/")"
  tells 0 'by alice@' rlock run --once-per day job -- true
}

@test "on a terminal, a line says why a job was not run" {
  watched() { run -0 python3 "$TESTS_DIR/lib/terminal.py" never never "$RLOCK" run "$@" job -- true; }
  rlock run --once 1.4 job -- true
  watched --once 1.4
  [[ $output == *'job: not run: 1.4 has already succeeded, '* ]]
  job_until go job
  watched -n -E 0
  [[ $output == *'job: not acquired: held by '* ]]
  job_finish go 3
}

@test "a command that was told to stop has not succeeded, even if it exits with 0; nor has one that was asked to" {
  local text='trap "exit 0" TERM; touch ready; while :; do sleep 0.02; done'
  job_start --once 1.4 job -- bash -c "$text"
  wait_until test -e ready
  kill "$frontend"
  job_status 0 'job: the command exited with 0 after it was told to stop, which does not count as a success; '
  [[ $(redis srv exists 'rlock:once:{job}') == 0 ]]
  rm ready
  job_start --once 1.4 job -- bash -c "$text"
  wait_until test -e ready
  rlock run --supersede job -- true
  job_status 74
  [[ $(redis srv hexists 'rlock:once:{job}' 1.4) == 0 ]]
  once
  runs 1
}

@test "a success under a lock that was lost is not remembered" {
  in_background 0
  redis srv del job
  job_finish go 74
  [[ $(redis srv exists 'rlock:once:{job}') == 0 ]]
  once
  runs 2
}

@test "waiters are told at the release, all at once, and end with 0 without running" {
  in_background 0
  for i in {1..5}; do waiter --once 1.4; done
  touch go
  all_done
  runs 1
  grep -q 'not run: 1.4 has already succeeded' err-5
  # None of them was given the lock, which another one would have had to wait for.
  run ! grep -q granted err-1 err-2 err-3 err-4 err-5
}

@test "if the job fails, the next waiter runs at once, and after its success no other one" {
  in_background 1
  for i in {1..4}; do waiter --once 1.4; done
  touch go
  all_done
  runs 2
  job_status 1
}

@test "while another one runs it, -n ends with 75, and -E 0 with 0; after a success, with 0" {
  in_background 0
  run -75 once -n
  run -0 once -n -E 0
  job_finish go 0
  run -0 once -n
  runs 1
}

@test "a success is remembered for 30 days, or as long as --remember says" {
  once
  (($(redis srv pttl 'rlock:once:{job}') > 29 * 86400000))
  rlock run --once short --remember 2h job -- true
  (($(redis srv pttl 'rlock:once:{job}') > 29 * 86400000))
  read -r _ until at _ < <(remembered short | head -n 1)
  ((until - at == 7200000))
  # Its own end counts, not that of the key.
  remember 1.4 $'0 1700000000000 1600000000000 7\na\nb\nc'
  once
  runs 2
}

@test "keys that were used once do not add up" {
  for ((i = 0; i < 200; i++)); do echo "hset rlock:once:{job} old-$i '0 1700000000000 1600000000000 7'"; done | redis srv >/dev/null
  for i in {1..30}; do rlock run --once "$i" job -- true; done
  (($(redis srv hlen 'rlock:once:{job}') < 170))
  [[ $(remembered 30) == 0* ]]
}

@test "without the right to remember a success, nothing is run; another job needs no such right" {
  not_over acl 'the user is another one'
  few_rights
  run -77 env RLOCK_URL="$few" "$RLOCK" run --once 1.4 job -- touch ran
  [[ ! -e ran ]]
  in_background 0
  RLOCK_URL=$few waiter
  touch go
  all_done
  [[ $(xargs <ran) == 'ran 1' ]]
  redis srv acl deluser few >/dev/null
}

@test "a user without that right asks for a lock that a waiter for what is to run once should get" {
  not_over acl 'the user is another one'
  rlock acquire --lease 1s job >owner
  waiter --once 1.4
  kill -STOP "${waiters[0]}"
  few_rights
  is_free() { [[ $(redis srv exists job) == 0 ]]; }
  wait_until is_free
  run -75 env RLOCK_URL="$few" "$RLOCK" run -n job -- touch none
  [[ ! -e none ]]
  kill -CONT "${waiters[0]}"
  all_done
  runs 1
  redis srv acl deluser few >/dev/null
}

@test "a key of another type is reported before anything is run; if it comes later, -q shows the error, too" {
  redis srv set 'rlock:once:{job}' x ex 60 >/dev/null
  run -76 --separate-stderr once
  [[ ! -e ran ]]
  assert_says 'rlock:once:{job}' 'delete it'
  redis srv del 'rlock:once:{job}'
  in_background 0 -q
  redis srv set 'rlock:once:{job}' x ex 60 >/dev/null
  job_finish go 0 'job: the command has succeeded, but that is not remembered: WRONGTYPE'
  assert_says 'the next job will run it again'
}

@test "under a lock that an ancestor holds, two could run at once, so neither does" {
  run -64 rlock run job -- bash -c '
    one() { "$RLOCK" run --once 1.4 job -- sh -c "echo ran >>ran"; }
    one & one; status=$?; wait $! || exit $status'
  assert_says 'job: this runs under an `rlock run` that holds the lock already' 'give --once a lock of its own'
  runs 0
  run -0 rlock run other -- "$RLOCK" run --once 1.4 job -- sh -c 'echo ran >>ran'
  # What has succeeded need not run.
  run -0 rlock run job -- "$RLOCK" run --once 1.4 job -- sh -c 'echo ran >>ran'
  runs 1
}

@test "string locks, and the writer of a read-write lock, remember it as well" {
  for kind in '--protocol set' -x '--history --protocol set'; do
    once $kind
    once $kind
    redis srv del 'rlock:once:{job}'
  done
  runs 3
}

@test "status lines and the history say what a job was to run once, whether it already has, and whether that is remembered" {
  rlock run --history --status-fd 5 --once 1.4 job -- true 5>lines
  grep -q '"event":"released".*"remembered":true' lines
  rlock run --status-fd 5 --once 1.4 --once-status 9 job -- true 5>lines || true
  [[ $(tail -n 1 lines) == *'"result":"already-succeeded","status":9'* ]]
  rlock run --history --status-fd 5 --once 1.5 job -- false 5>lines || true
  run ! grep -q remembered lines
  run -0 rlock history job --json
  [[ $(grep -o '"once":"[^"]*"' <<<"$output" | xargs) == 'once:1.5 once:1.4' ]]
}

@test "once a day: another job of the same day does not run it" {
  daily
  leaves --once-per 1d job
  runs 1
  tells 0 'not run: it has already succeeded today' daily -v
  # Each period is counted by itself.
  leaves --once-per hour job
  runs 2
  rlock release job --forget 'per day'
  daily
  runs 3
}

@test "a zone that this host does not know is an error, not UTC" {
  tells 78 'this host has no such time zone' rlock run --once-per day --timezone Europe/Atlantis job -- touch ran
  [[ ! -e ran ]]
  assert_says 'set TZDIR'
  mkdir -p zones/My
  cp /usr/share/zoneinfo/Europe/Berlin zones/My/Zone
  TZDIR=$PWD/zones run -0 --separate-stderr rlock run --once-per day --timezone My/Zone job -- true
  redis srv del 'rlock:once:{job}' >/dev/null
  rlock run --once-per day --timezone Europe/Berlin job -- sh -c '[ -z "$TZ" ]'
}

@test "a success from the future, before the server's clock was set back, does not count" {
  once
  at=$(($(server_us srv) / 1000))
  later=$((at + 365 * 86400000))
  remember 1.4 "0 $((later + 1000000)) $later 1"$'\nu\nh\nc'
  run -1 rlock status --succeeded-within 26h job
  once
  runs 2
  [[ $(remembered 1.4) == "0 "* ]]
  run -0 rlock status --succeeded-within 26h job
  # A small step must not let it run again.
  remember 1.4 "0 $((at + 9000000)) $((at + 60000)) 1"$'\nu\nh\nc'
  once
  runs 2
}

@test "a run that ends in the next hour does not make that one skip its own" {
  redis_start_with_clock own
  RLOCK_URL=$(redis_url own)
  # Three seconds before a full hour, and soon after it.
  local before=$(((3600 - 3 - $(date +%s) % 3600) * 1000))
  clock_step $before
  job_start --once-per hour job -- bash -c 'echo ran >>ran; until [[ -e go ]]; do sleep 0.1; done'
  wait_until test -e ran
  clock_step $((before + 8000))
  job_finish go 0
  leaves --once-per hour job
  runs 2
  # But a run by hand in this hour does.
  leaves --once-per hour job
  runs 2
  redis_stop own
}
