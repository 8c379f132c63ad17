# The master dies while jobs hold and others wait. FAILOVERS=N says how often (once in a run of all tests).

load ../lib/common

setup() {
  source "$TESTS_DIR/lib/sentinel.bash"
  cd "$BATS_TEST_TMPDIR" || return
}

teardown() {
  sentinels_stop
}

other_master() { [[ $(master_now) != m ]]; }
lines_are() { [[ $(cat log 2>/dev/null | grep -c "^$1") -ge $2 ]]; }
queued() {
  local number=0 i
  for ((i = 1; i <= $2; i++)); do number=$((number + $(redis "$1" zcard "rlock:queue:{job$i}"))); done
  ((number == $2))
}

# failover LOCKS REPLICAS: each lock is held by one job, which wants that many replicas, and waited for by another, which
# wants one less, because there is one less then; the master is killed; jobs that have the lock then end. Prints how many
# ran beside another, and how many were lost.
failover() {
  local locks=$1 replicas=$2 i job jobs=() status statuses=
  rm -rf log place*
  sentinels_start 2 3
  RLOCK_URL=$(sentinels_url)
  export RLOCK_URL
  for ((i = 1; i <= locks; i++)); do
    "$RLOCK" run -q --lease 10s --wait-replicas "$replicas" "job$i" -- bash -c "exec 9>>place$i; flock -n 9 || echo overlap a$i >>log; echo \$RLOCK_TOKEN >token$i.1; echo begun >>log; until [[ -e go ]]; do sleep 0.05; done" 3>&- &
    jobs+=($!)
  done
  wait_until lines_are begun "$locks"
  for ((i = 1; i <= locks; i++)); do
    "$RLOCK" run -q --lease 10s -w 1m --wait-replicas "$((replicas > 0 ? replicas - 1 : 0))" "job$i" -- bash -c "exec 9>>place$i; flock -n 9 || echo overlap b$i >>log; echo \$RLOCK_TOKEN >token$i.2" 3>&- &
    jobs+=($!)
  done
  wait_until queued m "$locks"
  wait_until queued r1 "$locks"
  wait_until queued r2 "$locks"
  redis_kill9 m
  wait_until other_master
  touch go
  for job in "${jobs[@]}"; do
    status=0
    wait "$job" || status=$?
    statuses+=" $status"
  done
  echo "# $locks locks, $replicas replicas: overlaps $(grep -c ^overlap log || true), lost $(tr ' ' '\n' <<<"$statuses" | grep -c '^74$' || true), other statuses:$(tr ' ' '\n' <<<"$statuses" | grep -vE '^(0|74|)$' | sort | uniq -c | paste -sd,)" >&3
  # Each was granted after the one before, and each that was lost says so.
  for ((i = 1; i <= locks; i++)); do
    [[ ! -e token$i.2 ]] || (($(cat "token$i.1") < $(cat "token$i.2")))
  done
  run ! grep -vE '^(0|74|)$' <(tr ' ' '\n' <<<"$statuses")
  sentinels_stop
  SENTINELS=() SENTINEL_REPLICAS=()
}

@test "with --wait-replicas 2 a master that is killed loses no lock: never two at once" {
  local round
  for ((round = 1; round <= ${FAILOVERS:-1}; round++)); do
    failover 10 2
    run ! grep overlap log
  done
}

@test "without it locks may be lost, and none in silence" {
  local round
  for ((round = 1; round <= ${FAILOVERS:-1}; round++)); do
    failover 10 0
  done
}
