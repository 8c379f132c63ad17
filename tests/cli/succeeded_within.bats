# status --succeeded-within: did a job of that name succeed, who did it, and what is in the way if not.

load ../lib/common
load ../lib/server
load ../lib/job

teardown() {
  end_mine_wholly "${frontend:-}"
  redis srv del 'rlock:once:{job}' 'rlock:once:{other}' 'rlock:totals:{job}' 'rlock:history:{job}' >/dev/null
  assert_clean srv
}

succeeded() { run --separate-stderr rlock status --succeeded-within "$@"; }

@test "a job that succeeded, by its history: 0, and who did it" {
  rlock run --history job -- true
  succeeded 1h job
  show
  [[ $status == 0 && -z $stderr ]]
  [[ $output == 'job: succeeded '*' ago by '$(id -un)@$(uname -n)' pid '*' (true)' ]]
}

@test "a job that succeeded, by what --once remembers, without a history" {
  rlock run --once 1.4 job -- true
  succeeded 1h job
  [[ $status == 0 && $output == 'job: succeeded '*' (true)' ]]
}

@test "none has succeeded: 1" {
  succeeded 1h job
  [[ $status == 1 && $output == 'job: no success is known, in the history or of --once' ]]
  rlock run --history job -- false || true
  succeeded 1h job
  [[ $status == 1 && $output == 'job: no success is known, in the history or of --once' ]]
}

@test "the last success is too old: 1, and the last one, behind failures" {
  redis srv hset 'rlock:once:{job}' 1.4 $'0 9999999999999 1700000000000 7\nalice\nci-7\nmigrate' >/dev/null
  redis srv expire 'rlock:once:{job}' 100 >/dev/null
  rlock run --history job -- false || true
  succeeded 26h job
  show
  [[ $status == 1 && $output == 'job: no success within 26h; the last was '*' ago by alice@ci-7 pid 7 (migrate)' ]]
  rlock run --history job -- true
  rlock run --history job -- false || true
  succeeded 26h job
  [[ $status == 0 && $output == *'(true)' ]]
}

# history ID ENDED COMMAND: a job that succeeded then, for its history.
history() { redis srv xadd 'rlock:history:{job}' "$1" outcome released owner "$3" ended "$2" command "$3" end exited value 0 >/dev/null; }

@test "a success of the distant future does not count, as after a large step of the server's clock" {
  history 1995652280990-0 1995652280990 future
  succeeded 1m job
  show
  [[ $status == 1 && $output == 'job: no success is known, in the history or of --once' ]]
  # Its id is later than its time.
  history '*' "$(date +%s000)" later
  history '*' 1995652280990 future
  succeeded 1h job
  show
  [[ $status == 0 && $output == 'job: succeeded '*' (later)' ]]
}

@test "the newest of many keys counts" {
  redis srv eval 'local now = redis.call("time")[1] - 864000
    for i = 1, 12000 do redis.call("hset", KEYS[1], "k" .. i, "0 9999999999999 " .. now .. "000 7") end' 1 'rlock:once:{job}' >/dev/null
  redis srv pexpire 'rlock:once:{job}' 60000 >/dev/null
  local key
  for key in a b c d e f g h; do
    rlock run --once "$key" job -- true
    succeeded 1h job
    [[ $status == 0 ]]
    rlock release --forget job "$key"
  done
}

@test "skips are counted and shown, and who has kept the lock busy" {
  job_start --reason stuck job -- sleep 600
  wait_until redis_has job
  rlock run -n -E 0 --history job -- true
  rlock run -n -E 0 --once-per day job -- true
  succeeded 1h job
  show
  [[ $status == 1 && $output == *"; held by "*"(sleep), reason 'stuck'; not acquired by 2 jobs" ]]
  kill "$frontend"
  wait "$frontend" || true
}
redis_has() { [[ $(redis srv exists "$1") == 1 ]]; }

@test "several names: each has a line, and all must have succeeded" {
  rlock run --once 1 job -- true
  succeeded 1h job other
  [[ $status == 1 && ${lines[0]} == 'job: succeeded'* && ${lines[1]} == 'other: no success'* ]]
  rlock run --once 1 other -- true
  succeeded 1h job other
  [[ $status == 0 ]]
}

@test "it needs a name, and no other output" {
  run -64 rlock status --succeeded-within 1h
  run -64 rlock status --succeeded-within 1h --json job
  run -64 rlock status --succeeded-within 1h --watch job
  run -64 rlock status --succeeded-within soon job
  run -69 env RLOCK_URL=unix:///nonexistent/s "$RLOCK" status --succeeded-within 1h job
}

@test "status shows what is remembered, for people and for programs" {
  rlock run --once 1.4 job -- true
  rlock run --once-per day job -- true
  run -0 rlock status job
  [[ $output == *$'\nonce      per day succeeded '* && $output == *$'\n          1.4 succeeded '*' (true)'* ]]
  rlock status --json job >all
  python3 "$TESTS_DIR/lib/schema.py" "$TESTS_DIR/../docs/schema/status.json" <all
  grep -q '"key": "per day"' all
  rlock status --prometheus | grep -q '^rlock_last_success_timestamp_seconds{name="job"} 1'
  run -0 rlock history job
  run -0 rlock release job --forget 1.4
  run -0 rlock status job
  [[ $output != *1.4* ]]
}

@test "a history of more failures than a page has does not hide the last success" {
  rlock run --history job -- true
  local i
  for ((i = 0; i < 1200; i++)); do
    echo "xadd rlock:history:{job} * outcome released owner o-$i end exited value 1"
  done | redis srv >/dev/null
  succeeded 1h job
  [[ $status == 0 ]]
}
