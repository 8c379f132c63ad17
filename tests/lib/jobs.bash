# For files whose tests run many jobs at the same time on one server, srv: $jobs has their pids, and they end when the
# file end exists in the test's folder, or with the test. Source it after common.

setup_file() { redis_start srv; }
setup() {
  RLOCK_URL=$(redis_url srv)
  export RLOCK_URL
  cd "$BATS_TEST_TMPDIR" || return
  jobs=()
}
teardown() {
  local job
  touch end
  for job in "${jobs[@]}"; do wait_until gone "$job" || kill -KILL "$job"; done
  assert_clean srv
}
teardown_file() { redis_stop srv; }
