# Slots with a queue move in a cluster. MOVES=N sets how often (2 in a run of all tests). In histories.bats they move under
# jobs of all kinds.

unset TEST_OVER # these have clusters of their own

load ../lib/job

setup() {
  source "$TESTS_DIR/lib/cluster.bash"
  cd "$BATS_TEST_TMPDIR" || return
}
teardown() {
  end_mine -CONT "${waiters[@]}"
  cluster_stop
}

@test "a slot moves, and the lock is released, at once or before one of its waiters is back: they keep their order" {
  cluster_use 2
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
  cluster_use 2
  name=$(cluster_name c1)
  owner=$(rlock acquire "$name" --lease 10m)
  line_up "$name" c1 3
  freeze "${waiters[0]}"
  cluster_move "$(cluster_slot "$name")" c1 c2
  kill -KILL "${waiters[0]}"
  rlock release "$name" --owner "$owner"
  # Unless the next one already has its turn.
  [[ $(redis c2 hkeys "$name") != *":${waiters[0]}" ]] || (($(redis c2 pttl "$name") <= 5000))
  wait "${waiters[1]}" "${waiters[2]}"
  [[ $(<order) == $'2\n3' ]]
}
