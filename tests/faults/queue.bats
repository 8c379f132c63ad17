# The queue of a lock under fire.

load ../lib/common

# under_fire SECONDS WORKERS
under_fire() {
  cd "$BATS_TEST_TMPDIR" || return
  local seed=${SEED:-$RANDOM}
  echo "# seed $seed" >&3
  run timeout -k 1 150 python3 "$TESTS_DIR/lib/queue_chaos.py" "$RLOCK" "$1" "$2" "$seed" 3>&-
  echo "# ${lines[-1]}" >&3
  [[ $status == 0 ]]
  run -0 python3 "$TESTS_DIR/lib/overlap.py" log
  echo "# $output" >&3
}

@test "waiters killed, stopped and cut off, scripts forgotten, the server restarted: never two, and everyone has it in the end" {
  under_fire "${SECONDS_UNDER_FIRE:-20}" 12
}
