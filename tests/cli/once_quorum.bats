# run --once with a lock on a majority of servers: a success counts if a majority remembers it.

load ../lib/quorum_file

runs() { [[ $(wc -l <ran 2>/dev/null || echo 0) == "$1" ]]; }
once() { rlock run "$@" job -- sh -c 'echo ran >>ran'; }
remember() { [[ $(on_servers hlen 'rlock:once:{job}' 2>/dev/null | grep -c '^1$') == "$1" ]]; }
# recorded SERVER ...: these remember that it has succeeded.
recorded() {
  local name
  for name; do
    redis "$name" hset 'rlock:once:{job}' 1.4 $'0 9999999999999 1700000000000 7\nalice\nci-7\nmigrate' >/dev/null
    redis "$name" pexpire 'rlock:once:{job}' 600000 >/dev/null
  done
}
# in_background: a job that succeeds once the file go exists.
in_background() {
  job_start --once 1.4 job -- bash -c 'echo ran >>ran; until [[ -e go ]]; do sleep 0.1; done'
  jobs+=("$frontend")
  wait_until test -e ran
}

@test "all servers remember it, and nobody runs it again, also if one is down; periods are counted by their clocks" {
  once --once-per day
  once --once-per day
  runs 1
  redis_stop s3
  once --once-per day
  runs 1
  tells 0 'not run: it has already succeeded today' once -v --once-per day
}

@test "what only a minority remembers is run again, and then all servers remember it" {
  recorded s1
  once --once 1.4
  runs 1 && remember 3
  once --once 1.4
  runs 1
}

@test "if a server that may remember it is missing, nothing is run until it is back" {
  recorded s1 s2
  redis_freeze s2
  tells 75 '1 of 3 servers remember that it has succeeded, and too few others can tell' once -n --once 1.4
  redis_thaw s2
  once -n --once 1.4
  [[ ! -e ran ]]
}

@test "the release reaches only a minority: a warning, and the next job runs again" {
  in_background
  for name in s1 s2; do redis $name set 'rlock:once:{job}' x px 600000 >/dev/null; done
  job_finish go 0 'the command has succeeded, but that is not remembered'
  for name in s1 s2; do redis $name del 'rlock:once:{job}' >/dev/null; done
  once --once 1.4
  runs 2
}

@test "waiters are told at the release, and do not run" {
  in_background
  listening() { (($(listeners_on s1 'redisson_lock__channel:{job}') >= $1)); }
  for i in 1 2 3; do
    "$RLOCK" run --once 1.4 job -- sh -c 'echo ran >>ran' 3>&- &
    jobs+=($!)
    wait_until listening "$i"
  done
  touch go
  wait "${jobs[@]}"
  runs 1
}

@test "--forget takes it back on a majority; status and --succeeded-within know what a majority remembers" {
  once --once 1.4
  tells 0 '1.4 succeeded ' rlock status job
  run -0 rlock status --succeeded-within 1h job
  redis_stop s3
  run -0 rlock release job --forget 1.4
  redis_start s3
  run -1 rlock status --succeeded-within 1h job
  recorded s1
  run -0 rlock status job
  [[ $output != *alice* ]]
}
