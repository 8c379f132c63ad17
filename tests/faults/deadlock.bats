# Workers that nest locks in any order wait for each other: each time one of them gives up, and nobody else.
#
# Longer, and with more: SECONDS_UNDER_FIRE=600 WORKERS=12 BATS_TEST_TIMEOUT=900 bats tests/faults/deadlock.bats

load ../lib/common
load ../lib/chaos

@test "workers that nest locks of each kind in any order get on; nobody gives up without a deadlock" {
  chaos deadlock "${SECONDS_UNDER_FIRE:-8}" "${WORKERS:-6}"
}
