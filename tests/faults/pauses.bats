# All of a job is stopped for longer than its lease, as when a machine is suspended.

load ../lib/common

@test "stopped past the lease and continued in each order: the command is dead at once, with 74" {
  run python3 "$TESTS_DIR/faults/pauses.py" --rlock "$RLOCK" --count "${PAUSE_COUNT:-3}"
  echo "$output" | sed 's/^/# /' >&3
  [[ $status == 0 ]]
}
