# The master dies while jobs hold and others wait. FAILOVERS=N sets how often (once in a run of all tests), LOCKS=N the
# number of holders and of waiters, REPLICAS=N how many acknowledge a lock (both).

load ../lib/common

setup() {
  source "$TESTS_DIR/lib/sentinel.bash"
  cd "$BATS_TEST_TMPDIR" || return
  export RLOCK_EPOCH_GUARD=false # these tests count what is lost without it; epoch.bats has it
}

teardown() {
  sentinels_stop
}

other_master() { [[ $(master_now) != m ]]; }
lines_are() { [[ $(cat log 2>/dev/null | grep -c "^$1") -ge $2 ]]; }

# hold OPTION ... I: job I holds its lock until the file go exists, or until it is stopped.
hold() {
  local i=${*: -1}
  "$RLOCK" run -q --lease 10s "${@:1:$#-1}" "job$i" -- bash -c "exec 9>>place$i; flock -n 9 || echo overlap a$i >>log; echo \$RLOCK_TOKEN >token$i.1; echo begun >>log; until [[ -e go ]]; do sleep 0.5; done" 3>&- &
  holders+=($!)
}

# The replicas are cut off from the master until it is dead.
cut_off_replicas() {
  redis_freeze r1 && redis_freeze r2
  redis m client kill type replica >/dev/null
}

# failover LOCKS REPLICAS [LATE]: one job holds each lock, acknowledged by REPLICAS replicas, and another waits for it,
# with one fewer, because there is one fewer then. The master is killed, and then the holders end. LATE more locks are
# granted after the replicas are cut off, and each of these is granted twice. Prints how many ran at the same time as
# another, and how many were lost.
failover() {
  local locks=$1 replicas=$2 late=${3:-0} i holders=() waiters=() overlaps
  rm -rf log place* token* go ends
  sentinels_start 2 3
  RLOCK_URL=$(sentinels_url)
  export RLOCK_URL
  for ((i = 1; i <= locks; i++)); do hold --wait-replicas "$replicas" "$i"; done
  wait_until lines_are begun "$locks"
  for ((i = 1; i <= locks; i++)); do wait_for "$i"; done
  wait_until queued_all m "$locks"
  wait_until queued_all r1 "$locks"
  wait_until queued_all r2 "$locks"
  if ((late > 0)); then
    cut_off_replicas
    for ((i = locks + 1; i <= locks + late; i++)); do hold "$i"; done
    wait_until lines_are begun "$((locks + late))"
    for ((i = locks + 1; i <= locks + late; i++)); do wait_for "$i"; done
  fi
  redis_kill9 m
  if ((late > 0)); then redis_thaw r1 && redis_thaw r2; fi
  wait_until other_master
  # A holder of a lock that the replicas do not know is overtaken before the others end.
  wait_until lines_are second "$late"
  ((late == 0)) || wait_until ended "$late"
  touch go
  for ((i = 1; i <= locks + late; i++)); do
    status_of a "$i" "${holders[i - 1]}"
    status_of b "$i" "${waiters[i - 1]}"
  done
  overlaps=$(grep -c ^overlap log || true)
  echo "# $((locks + late)) locks, $replicas replicas: granted twice $overlaps, lost $(grep -c ' 74$' ends || true), other statuses:$(grep -vE ' (0|74)$' ends | cut -d' ' -f2 | sort | uniq -c | paste -sd,)" >&3
  # Each was granted after the one before, and each lost one says so, even one that was granted a second time.
  for ((i = 1; i <= locks + late; i++)); do
    [[ ! -e token$i.2 ]] || (($(cat "token$i.1") < $(cat "token$i.2")))
    ! grep -qx "overlap b$i" log || grep -qx "a$i 74" ends
  done
  run ! grep -vE ' (0|74)$' ends
  [[ $(grep -c " 74$" ends || true) == "$late" ]]
  sentinels_stop
  SENTINELS=() SENTINEL_REPLICAS=()
}

# wait_for I: waiting job I runs for a moment, and records whether it ran at the same time as the holder.
wait_for() {
  "$RLOCK" run -q --lease 10s -w 2m --wait-replicas "$((replicas > 0 ? replicas - 1 : 0))" "job$1" -- bash -c "exec 9>>place$1; flock -n 9 || echo overlap b$1 >>log; echo \$RLOCK_TOKEN >token$1.2; echo second >>log" 3>&- &
  waiters+=($!)
}
status_of() {
  local status=0
  wait "$3" || status=$?
  echo "$1$2 $status" >>ends
}
# ended NUMBER: of the holders, the last ones.
ended() {
  local pid
  for pid in "${holders[@]: -$1}"; do gone "$pid" || return 1; done
}

@test "with --wait-replicas, a killed master loses no lock: never two at once" {
  local round
  for ((round = 1; round <= ${FAILOVERS:-1}; round++)); do
    failover "${LOCKS:-10}" "${REPLICAS:-2}"
    run ! grep overlap log
  done
}

@test "without it locks are granted twice, never silently, and the tokens grow" {
  local round
  for ((round = 1; round <= ${FAILOVERS:-1}; round++)); do
    failover "$((${LOCKS:-10} / 2))" 0 "$((${LOCKS:-10} - ${LOCKS:-10} / 2))"
  done
}
