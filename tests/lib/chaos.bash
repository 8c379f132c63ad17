# chaos KIND AMOUNT WORKERS: runs tests/lib/chaos.py on the program under test, in the test's folder, with these and a seed
# ($SEED, or a new one). Prints the seed first and the figures at the end; fails if it does.
chaos() {
  cd "$BATS_TEST_TMPDIR" || return
  local seed=${SEED:-$RANDOM}
  echo "# SEED=$seed" >&3
  run python3 -B "$TESTS_DIR/lib/chaos.py" "$1" "$RLOCK" "${@:2}" "$seed" 3>&-
  printf '# %s\n' "${lines[@]}" >&3
  [[ $status == 0 ]]
}
