# --max-hold, --min-hold, --no-renew, --leftovers, and what contradicts itself.

load ../lib/common
load ../lib/job

setup_file() { redis_start srv; }
setup() {
  RLOCK_URL=$(redis_url srv)
  export RLOCK_URL
  cd "$BATS_TEST_TMPDIR" || return
}
teardown() { assert_clean srv; }
teardown_file() { redis_stop srv; }

ttl() { redis srv pttl job; }
took() {
  local ms=$(($(now_ms) - begun))
  echo "took $ms ms"
  ((ms >= $1 && ms < $2))
}

@test "--max-hold stops the command and ends with 124" {
  begun=$(now_ms)
  run -124 --separate-stderr rlock run --max-hold 500ms job -- sleep 1000
  assert_says 'job: --max-hold 500ms is over; stopping the command'
  took 500 2500
}

@test "--max-hold: what ignores SIGTERM is killed after the grace" {
  begun=$(now_ms)
  run -124 --separate-stderr rlock run --max-hold 300ms -k 400ms job -- bash -c "$(tree pids)"
  took 700 3000
  all_gone pids
}

@test "--max-hold: a command that ends in time keeps its status, and one that ends well on SIGTERM does not" {
  run -3 rlock run --max-hold 1m job -- sh -c 'exit 3'
  run -124 rlock run --max-hold 300ms job -- bash -c 'trap "exit 0" TERM; while :; do sleep 0.02; done'
}

@test "--min-hold keeps the lock by its TTL, while rlock ends with the command" {
  begun=$(now_ms)
  run -3 --separate-stderr rlock run --min-hold 2s job -- sh -c 'exit 3'
  took 0 1500
  [[ -z $stderr ]]
  (($(ttl) > 500 && $(ttl) <= 2000))
  run -75 rlock run -n job -- true
  run -0 rlock run -w 5s job -- true
  took 2000 4500
}

@test "--min-hold is over: the lock is free at once" {
  run -0 rlock run --min-hold 200ms job -- sleep 0.4
  [[ $(redis srv exists job) == 0 ]]
}

@test "--min-hold holds when everything is killed, with a lease that is shorter" {
  begun=$(now_ms)
  job_start --lease 1s --min-hold 3s job -- sleep 1000
  job_parts
  kill -9 "$frontend" "$monitor"
  wait_until gone "$command"
  run -0 rlock run -w 8s job -- true
  took 2900 6000
}

@test "--min-hold of a nested run leaves the outer hold alone" {
  run -0 rlock run job -- "$RLOCK" run --min-hold 1m job -- true
  [[ $(redis srv exists job) == 0 ]]
}

@test "--min-hold of a job whose lock is taken away keeps nothing" {
  job_start --min-hold 1m job -- sleep 1000
  held() { [[ $(redis srv exists job) == 1 ]]; }
  wait_until held
  run -0 rlock force-unlock --yes --wait 10s job
  job_status
  [[ $status == 74 ]]
}

@test "--no-renew: stopped before the lease ends, with 74" {
  begun=$(now_ms)
  job_start --lease 2s --no-renew job -- sh -c 'touch up; exec sleep 1000'
  wait_until test -e up
  job_status
  show
  [[ $status == 74 ]]
  took 900 2000
  assert_says '--no-renew keeps it from being renewed'
}

@test "--no-renew: a command that ends in time keeps its status, and nothing was renewed" {
  redis srv config resetstat >/dev/null
  run -3 --separate-stderr rlock run --lease 2s --no-renew job -- sh -c 'sleep 0.9; exit 3'
  [[ $(redis srv info commandstats | grep -c 'cmdstat_eval:calls=2,') == 1 ]]
}

leave='echo $$ >command; setsid sh -c "echo \$\$ >pid; exec sleep 2" </dev/null >/dev/null 2>&1 & until [ -s pid ]; do sleep 0.02; done; exit 5'

@test "--leftovers kill: they are ended, as without the option" {
  begun=$(now_ms)
  run -5 rlock run --leftovers kill job -- sh -c "$leave"
  gone "$(cat pid)"
  took 0 1800
}

@test "--leftovers wait: the lock is kept until the last one has ended" {
  begun=$(now_ms)
  job_start --leftovers wait job -- sh -c "$leave"
  wait_until test -s pid
  wait_until gone "$(cat command)"
  [[ $(redis srv exists job) == 1 ]]
  job_status
  show
  [[ $status == 5 ]]
  took 2000 4000
  gone "$(cat pid)"
}

@test "--leftovers wait: TERM ends them" {
  begun=$(now_ms)
  job_start --leftovers wait job -- sh -c "${leave//sleep 2/sleep 1000}"
  wait_until test -s pid
  wait_until gone "$(cat command)"
  kill -TERM "$frontend"
  job_status
  [[ $status == 5 ]]
  gone "$(cat pid)"
}

@test "--leftovers wait: --max-hold ends them, with 124" {
  run -124 --separate-stderr rlock run --leftovers wait --max-hold 500ms job -- sh -c "${leave//sleep 2/sleep 1000}"
  gone "$(cat pid)"
}

@test "--leftovers ignore: the lock is free, and they live on" {
  run -5 --separate-stderr rlock run --leftovers ignore job -- sh -c "${leave//sleep 2/sleep 1000}"
  [[ $(redis srv exists job) == 0 ]]
  not gone "$(cat pid)"
  kill "$(cat pid)"
  wait_until gone "$(cat pid)"
}

@test "--leftovers ignore: they are stopped all the same when the lock is lost" {
  run -74 rlock run --lease 1s --leftovers ignore job -- \
    sh -c "(exec sleep 1000) & echo \$! >pid; redis-cli -s $srv_sock flushall >/dev/null; exec sleep 1001"
  gone "$(cat pid)"
}

# refused WORD OPTION...: a usage error that says WORD, and nothing is started.
refused() {
  local word=$1
  shift
  run -64 --separate-stderr rlock run "$@" job -- touch ran
  assert_says "$word"
  [[ ! -e ran && $(redis srv exists job) == 0 ]]
}

@test "what contradicts itself is refused" {
  refused '--min-hold 5m is longer than --max-hold 1m' --min-hold 5m --max-hold 1m
  refused '--max-hold 0s leaves no time' --max-hold 0
  refused 'leaves no time to renew a lease of 10s; at most' --lease 10s --kill-after 9s
  refused 'leaves no time to use a lease of 10s; at most' --no-renew --lease 10s --kill-after 9s
  refused "'some' is none of kill, wait and ignore" --leftovers some
  refused 'contradict each other' --isolate --leftovers ignore
  refused "--max-hold: 'soon'" --max-hold soon
  refused '--min-hold' --min-hold=-1s
  refused '--max-hold is given twice' --max-hold 1s --max-hold 2s
}

@test "they may be settings" {
  RLOCK_MAX_HOLD=300ms run -124 rlock run job -- sleep 1000
  RLOCK_LEFTOVERS=some run -78 --separate-stderr rlock run job -- touch ran
  assert_says RLOCK_LEFTOVERS
  [[ ! -e ran ]]
}
