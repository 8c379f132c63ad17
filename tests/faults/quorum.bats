# A lock on five servers, of which any two fail at a time.

load ../lib/common
load ../lib/chaos

@test "two of five servers are killed, stopped and wiped; then three are down" {
  chaos quorum "${SECONDS_UNDER_FIRE:-12}" "${WORKERS:-10}"
}
