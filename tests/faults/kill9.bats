# One process of a job is killed with -9, thirty times each. KILL9_COUNT=1000 for more.

load ../lib/common

killed() {
  run python3 "$TESTS_DIR/faults/kill9.py" --rlock "$RLOCK" --victim "$1" --count "${KILL9_COUNT:-30}" --p99 10000
  # The limit of 50 ms is for a quiet machine: see kill9.sh. Here it only matters that all die.
  echo "$output" | sed 's/^/# /' >&3
  [[ $status == 0 ]]
}

@test "kill -9 of the frontend" { killed frontend; }
@test "kill -9 of the monitor" { killed monitor; }
@test "kill -9 of the command" { killed command; }
