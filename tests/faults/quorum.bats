# A lock on five servers, of which any two fail at a time.

load ../lib/common
load ../lib/chaos
load ../lib/quorum

@test "two of five servers are killed, stopped and wiped; then three are down" {
  local aged
  make_aged
  chaos quorum "${SECONDS_UNDER_FIRE:-20}" "$aged"
}
