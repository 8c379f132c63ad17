# Slots under fire.
#
# Longer, and with more: SECONDS_UNDER_FIRE=120 WORKERS=24 BATS_TEST_TIMEOUT=300 bats tests/faults/slots.bats

load ../lib/common
load ../lib/chaos

@test "three slots, one of twelve jobs killed each second: never more than three at once, and no slot stays empty" {
  chaos slots "${SECONDS_UNDER_FIRE:-10}" "${WORKERS:-12}"
}

@test "five resources, one to five at once, under fire: none is anybody's twice, and everyone gets them in the end" {
  chaos pools "${SECONDS_UNDER_FIRE:-10}" "${WORKERS:-12}"
}

@test "the witness of this test notices a resource that is another one's, and a wrong number of them" {
  cd "$BATS_TEST_TMPDIR"
  RLOCK_RESOURCE='a b' bash "$TESTS_DIR/lib/witness.sh" 1 infinity named 2 3>&- &
  local job=$!
  wait_until grep -q '^begin 1 ' log
  RLOCK_RESOURCE='c' bash "$TESTS_DIR/lib/witness.sh" 2 0 named 1
  not grep overlap log
  RLOCK_RESOURCE='b c' bash "$TESTS_DIR/lib/witness.sh" 3 0 named 2
  RLOCK_RESOURCE='d' bash "$TESTS_DIR/lib/witness.sh" 4 0 named 2
  kill "$(child_of "$job")" "$job"
  [[ $(grep overlap log | cut -d' ' -f2 | xargs) == '3 4' ]]
}
