# The queue of a lock under fire.
#
# Longer, and with more: SECONDS_UNDER_FIRE=120 WORKERS=50 BATS_TEST_TIMEOUT=300 bats tests/faults/queue.bats

load ../lib/common
load ../lib/chaos

@test "waiters killed, stopped and cut off, scripts forgotten, the server restarted: never two at once, and all get the lock in the end" {
  chaos queue "${SECONDS_UNDER_FIRE:-12}" "${WORKERS:-12}"
}

# witness RULE FILE: a job until the end of the test; it runs when this returns.
witness() {
  local id=$((++witnesses))
  bash "$TESTS_DIR/lib/witness.sh" "$id" infinity "$@" 3>&- &
  there+=($!)
  wait_until grep -q "^begin $id " log
}

@test "the witness of these tests notices jobs that must not run, and no others" {
  cd "$BATS_TEST_TMPDIR"
  local job there=()
  witness beside a
  witness beside a
  witness one-of b c
  witness one-of b c
  not grep overlap log
  witness alone a
  witness beside d
  witness alone d
  witness alone e
  witness alone f e
  witness one-of b c
  for job in "${there[@]}"; do kill "$(child_of "$job")" && wait_until gone "$job"; done
  [[ $(grep overlap log | cut -d' ' -f2 | xargs) == '5 7 9 10' ]]
}

@test "the witness notices leftovers of a job" {
  cd "$BATS_TEST_TMPDIR"
  bash "$TESTS_DIR/lib/witness.sh" 1 infinity alone a 3>&- &
  local job=$!
  wait_until grep -q '^begin 1 ' log
  left=$(child_of "$job")
  kill_off -9 "$job"
  run -0 bash "$TESTS_DIR/lib/witness.sh" 2 0 alone a
  kill_off "$left"
  run -0 bash "$TESTS_DIR/lib/witness.sh" 3 0 alone a
  [[ $(grep overlap log | cut -d' ' -f2 | xargs) == 2 ]]
}
