# Slots under fire.
#
# Longer, and with more: SECONDS_UNDER_FIRE=120 WORKERS=24 BATS_TEST_TIMEOUT=300 bats tests/faults/slots.bats

load ../lib/common
load ../lib/chaos

@test "three slots, one of twelve jobs killed each second: never more than three at once, and no slot stays empty" {
  chaos slots "${SECONDS_UNDER_FIRE:-15}" "${WORKERS:-12}"
}
