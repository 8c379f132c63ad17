# A cluster used by jobs: slots move back and forth, and a master dies. RUNS=N sets how many jobs there are (60 in a run
# of all tests). Each runs alone or exits with a documented status, and nothing is left. MOVES=N sets how often a slot
# with a queue moves (2 in a run of all tests).

unset TEST_OVER # these have clusters of their own

load ../lib/common
load ../lib/job

setup() {
  source "$TESTS_DIR/lib/cluster.bash"
  cd "$BATS_TEST_TMPDIR" || return
}
teardown() {
  touch over
  end_mine -CONT "${waiters[@]}"
  [[ -z ${mover:-} ]] || wait "$mover" || true
  cluster_stop
}

# work NTH: many jobs, one after the other, for one of four names or two of them; records how each ended, and which ran
# at the same time as another.
work() {
  local nth=$1 i status names
  for ((i = nth; i <= ${RUNS:-60}; i += 4)); do
    names=("${NAMES[i % 4]}")
    ((i % 3)) || names+=("${NAMES[(i + 1) % 4]}")
    status=0
    "$RLOCK" run -q --lease 10s -w 3m "${names[@]}" -- bash -c '
      for name; do
        exec {place}>>"place-$name"
        flock -n "$place" || echo "$name" >>overlaps
      done
      while read -r name token; do echo "$token" >>"tokens-$name"; done < <(paste <(echo "$RLOCK_NAME") <(echo "$RLOCK_TOKEN"))
      sleep 0.0$((RANDOM % 10))
      echo ran >>ran' job "${names[@]}" 2>>"err$nth" || status=$?
    echo "$status" >>ends
  done
}

# done_working: waits until all have ended in a permitted way; prints how.
done_working() {
  local worker
  for worker in "${workers[@]}"; do wait "$worker"; done
  touch over
  echo "# ${RUNS:-60} jobs, $(wc -l <ran) ran, two at once: $(cat overlaps 2>/dev/null | wc -l), moves: $(cat moves 2>/dev/null | wc -l), ends: $(sort ends | uniq -c | paste -sd, | tr -s ' ')" >&3
  [[ $(wc -l <ends) == "${RUNS:-60}" ]]
  run ! grep -vxE '0|69|74' ends
}
# tokens_grow FILE ...: those of each lock, in the order in which they were written.
tokens_grow() {
  local file
  for file; do sort -nuc "$file"; done
}
begin_work() {
  local i
  workers=()
  for i in 1 2 3 4; do
    work "$i" 3>&- &
    workers+=($!)
  done
}
clean_in_time() { is_clean "$1"; }

move_to_and_fro() {
  local at=c1 to slots=() slot name moves=0
  for name in "${NAMES[@]}"; do slots+=("$(cluster_slot "$name")"); done
  declare -A where
  for slot in "${slots[@]}"; do where[$slot]=c1; done
  until [[ -e over ]]; do
    slot=${slots[RANDOM % 4]}
    at=${where[$slot]}
    to=c$((RANDOM % 3 + 1))
    [[ $to != "$at" ]] || continue
    cluster_begin_move "$slot" "$at" "$to"
    # Meanwhile the keys are on both sides; a key that a job creates in the meantime is moved in the next round.
    cluster_move_keys "$slot" "$at" "$to"
    while [[ $(redis "$at" cluster countkeysinslot "$slot") != 0 ]]; do cluster_move_keys "$slot" "$at" "$to"; done
    cluster_end_move "$slot" "$at" "$to"
    where[$slot]=$to
    echo moved >>moves
    sleep 0.1
  done
}

@test "slots move back and forth during jobs that hold and wait: never two at once, and nothing is left" {
  cluster_start
  NAMES=()
  local nth
  for nth in 1 2 3 4; do NAMES+=("$(cluster_name c1 "$nth")"); done
  RLOCK_URL=$(cluster_url)
  export RLOCK_URL
  move_to_and_fro 3>&- &
  mover=$!
  begin_work
  done_working
  [[ ! -e overlaps && -s moves ]]
  tokens_grow tokens-*
  wait "$mover"
  mover=
  local name
  for name in c1 c2 c3; do wait_until clean_in_time "$name"; done
}

@test "a master dies during jobs that hold and wait: each job comes to an end, and nothing is left" {
  cluster_start 3 1
  NAMES=("$(cluster_name c1)" "$(cluster_name c2)" "$(cluster_name c2 2)" "$(cluster_name c3)")
  RLOCK_URL=$(cluster_url)
  export RLOCK_URL
  begin_work
  begun() { [[ $(wc -l <ran) -ge 10 ]]; }
  wait_until begun
  redis_kill9 c2
  wait_until eval '[[ $(redis c2r1 role) == master* ]]'
  # A lock that the replica did not know may be granted again, which no lease can prevent.
  done_working
  # The clocks of both servers are the same.
  tokens_grow tokens-*
  local name
  for name in c1 c2r1 c3; do wait_until clean_in_time "$name"; done
}

two_masters() {
  cluster_start 2
  RLOCK_URL=$(cluster_url)
  export RLOCK_URL
}

@test "a slot moves, and the lock is released, at once or before one of its waiters is back: they keep their order" {
  two_masters
  local name owner at=c1 to=c2 round stopped
  name=$(cluster_name c1)
  for ((round = 1; round <= ${MOVES:-2}; round++)); do
    for stopped in true false; do
      owner=$(rlock acquire "$name" --lease 10m)
      line_up "$name" "$at" 5
      ! $stopped || stop_waiters
      cluster_move "$(cluster_slot "$name")" "$at" "$to"
      rlock release "$name" --owner "$owner"
      ! $stopped || kill -CONT "${waiters[@]}"
      had_their_turns 5
      read -r at to <<<"$to $at"
    done
  done
}

@test "a waiter that dies while its slot moves delays the next one for at most five seconds" {
  two_masters
  local name owner
  name=$(cluster_name c1)
  owner=$(rlock acquire "$name" --lease 10m)
  line_up "$name" c1 3
  kill -STOP "${waiters[0]}"
  wait_until in_state "${waiters[0]}" T
  cluster_move "$(cluster_slot "$name")" c1 c2
  kill -KILL "${waiters[0]}"
  rlock release "$name" --owner "$owner"
  # Unless the next one already has its turn.
  [[ $(redis c2 hkeys "$name") != *":${waiters[0]}" ]] || (($(redis c2 pttl "$name") <= 5000))
  wait "${waiters[1]}" "${waiters[2]}"
  [[ $(<order) == $'2\n3' ]]
}
