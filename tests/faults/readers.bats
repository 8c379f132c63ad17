# Readers and writers of a lock under fire.
#
# Longer, and with more: SECONDS_UNDER_FIRE=120 WORKERS=40 BATS_TEST_TIMEOUT=300 bats tests/faults/readers.bats

load ../lib/common
load ../lib/chaos

@test "readers and writers killed, stopped and cut off: writers alone, readers together, and no writer starves" {
  chaos readers "${SECONDS_UNDER_FIRE:-15}" "${WORKERS:-20}"
}
