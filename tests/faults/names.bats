# Several names at once, in any order.
#
# Longer, and with more: ROUNDS=2000 WORKERS=16 BATS_TEST_TIMEOUT=300 bats tests/faults/names.bats

load ../lib/common
load ../lib/chaos

@test "four names of six in any order: no deadlock, and each name has one holder" {
  chaos names "${ROUNDS:-100}" "${WORKERS:-16}"
}
