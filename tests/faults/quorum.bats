# A lock on five servers, of which any two fail at a time.

load ../lib/common
load ../lib/chaos

@test "two of five servers are killed, stopped and wiped; then three are down" {
  chaos quorum "${SECONDS_UNDER_FIRE:-12}" "${WORKERS:-10}"
}

@test "how long a hold is on a bare majority if eight jobs start at once" {
  run python3 -B "$TESTS_DIR/faults/bare_majority.py" "$RLOCK" "${STARTS:-5}" 3>&-
  echo "# $output" >&3
  [[ $status == 0 && $output == *'starts of 8 jobs; p50 '* ]]
}
