# status --succeeded-within: did a job of that name succeed, who did it, and what is in the way if not.

load ../lib/server
load ../lib/job

teardown() {
  end_mine_wholly "${frontend:-}"
  redis srv del 'rlock:once:{job}' 'rlock:once:{other}' 'rlock:totals:{job}' 'rlock:history:{job}' >/dev/null
  assert_clean srv
}

succeeded() { run --separate-stderr rlock status --succeeded-within "$@"; }

# history ID ENDED COMMAND: a job that succeeded then, for its history.
history() { redis srv xadd 'rlock:history:{job}' "$1" outcome released owner "$3" ended "$2" command "$3" end exited value 0 >/dev/null; }

@test "a success of the distant future does not count, as after a large step of the server's clock" {
  history 1995652280990-0 1995652280990 future
  succeeded 1m job
  [[ $status == 1 && $output == 'job: no success is known from the history or --once' ]]
  # Its id is later than its time.
  history '*' "$(date +%s000)" later
  history '*' 1995652280990 future
  succeeded 1h job
  [[ $status == 0 && $output == 'job: succeeded '*' (later)' ]]
}

@test "the newest of many keys counts" {
  redis srv eval 'local now = redis.call("time")[1] - 864000
    for i = 1, 12000 do redis.call("hset", KEYS[1], "k" .. i, "0 9999999999999 " .. now .. "000 7") end' 1 'rlock:once:{job}' >/dev/null
  redis srv pexpire 'rlock:once:{job}' 60000 >/dev/null
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
  [[ $status == 1 && $output == *"; held by "*"(sleep), reason 'stuck'; not acquired by 2 jobs" ]]
  end_mine_wholly "$frontend"
}
redis_has() { [[ $(redis srv exists "$1") == 1 ]]; }

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
  for ((i = 0; i < 1200; i++)); do
    echo "xadd rlock:history:{job} * outcome released owner o-$i end exited value 1"
  done | redis srv >/dev/null
  succeeded 1h job
  [[ $status == 0 ]]
}
