# run --once with a lock on a majority of servers: a success counts if a majority remembers it.

load ../lib/common
load ../lib/job
load ../lib/quorum

setup() {
  cd "$BATS_TEST_TMPDIR" || return
  quorum_start 3
}
teardown() {
  end_mine_wholly "${jobs[@]}"
  quorum_stop
}

runs() { wc -l <ran 2>/dev/null || echo 0; }
once() { rlock run "$@" --once 1.4 job -- sh -c 'echo ran >>ran'; }
remember() { on_servers hlen 'rlock:once:{job}' 2>/dev/null | grep -c '^1$' || true; }
record=$'0 9999999999999 1700000000000 7\nalice\nci-7\nmigrate'

@test "all servers remember it, and nobody runs it again, also if one is down" {
  once
  [[ $(remember) == 3 && $(runs) == 1 ]]
  run -0 --separate-stderr once -v
  assert_says 'not run: 1.4 has already succeeded'
  redis_stop s3
  once
  [[ $(runs) == 1 ]]
}

@test "periods are counted by the servers' clocks" {
  rlock run --once-per day job -- sh -c 'echo ran >>ran'
  rlock run --once-per day job -- sh -c 'echo ran >>ran'
  [[ $(runs) == 1 ]]
}

@test "what only a minority remembers is run again, and then all servers remember it" {
  redis s1 hset 'rlock:once:{job}' 1.4 "$record" >/dev/null
  redis s1 pexpire 'rlock:once:{job}' 600000 >/dev/null
  once
  [[ $(runs) == 1 && $(remember) == 3 ]]
  once
  [[ $(runs) == 1 ]]
}

@test "if a server that may remember it is missing, nothing is run until it is back" {
  local name
  for name in s1 s2; do
    redis $name hset 'rlock:once:{job}' 1.4 "$record" >/dev/null
    redis $name pexpire 'rlock:once:{job}' 600000 >/dev/null
  done
  redis_freeze s2
  run -75 --separate-stderr once -n
  show
  assert_says '1 of 3 servers remember that it has succeeded, and too few others can tell'
  [[ ! -e ran ]]
  redis_thaw s2
  run -0 once -n
  [[ ! -e ran ]]
}

@test "the release reaches only a minority: a warning, and the next job runs again" {
  job_start --once 1.4 job -- bash -c 'echo ran >>ran; until [[ -e go ]]; do sleep 0.02; done'
  jobs+=("$frontend")
  wait_until test -e ran
  local name
  for name in s1 s2; do redis $name set 'rlock:once:{job}' x px 600000 >/dev/null; done
  touch go
  job_status
  show
  [[ $status == 0 ]]
  assert_says 'the command has succeeded, but that is not remembered'
  for name in s1 s2; do redis $name del 'rlock:once:{job}' >/dev/null; done
  once
  [[ $(runs) == 2 ]]
}

@test "waiters are told at the release, and do not run" {
  local i
  job_start --once 1.4 job -- bash -c 'echo ran >>ran; until [[ -e go ]]; do sleep 0.02; done'
  wait_until test -e ran
  listening() { (($(listeners_on s1 'redisson_lock__channel:{job}') >= $1)); }
  for i in 1 2 3; do
    "$RLOCK" run --once 1.4 job -- sh -c 'echo ran >>ran' 3>&- &
    jobs+=($!)
    wait_until listening "$i"
  done
  touch go
  job_status
  for i in "${jobs[@]}"; do wait "$i"; done
  [[ $(runs) == 1 ]]
}

@test "--forget takes it back on a majority; status and --succeeded-within know what a majority remembers" {
  once
  run -0 rlock status job
  assert_says '1.4 succeeded '
  run -0 rlock status --succeeded-within 1h job
  redis_stop s3
  run -0 rlock release job --forget 1.4
  redis_start s3
  run -1 rlock status --succeeded-within 1h job
  redis s1 hset 'rlock:once:{job}' 1.4 "$record" >/dev/null
  redis s1 pexpire 'rlock:once:{job}' 600000 >/dev/null
  run -0 rlock status job
  [[ $output != *alice* ]]
}
