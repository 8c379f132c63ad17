# For files whose tests share three independent servers, s1 to s3, and for their jobs (job.bash). The servers are
# empty for each test, and those that a test has stopped or started are replaced. A test that changes their configuration
# ends with quorum_stop. $jobs are to end by themselves when the file end exists.

source "${BASH_SOURCE[0]%/*}/job.bash"
source "$TESTS_DIR/lib/quorum.bash"

setup_file() {
  [[ ${TEST_OVER:-} != @(sentinel|cluster) ]] || return 0
  quorum_start 3
  disown -a # bash need not report those that a test kills
}
setup() {
  not_over sentinel cluster 'it cannot be part of a quorum'
  cd "$BATS_TEST_TMPDIR" || return
  jobs=()
  quorum_pids
  local i
  for i in 1 2 3; do
    redis "s$i" eval "local life = redis.call('info', 'replication'):match('master_replid:(%x+)')
      redis.call('flushall')
      redis.call('hset', 'rlock:epoch', 'life', life, 'since', 0, 'cause', 'accepted', 'longest', 0, 'before', 0)" 0 >/dev/null
  done
}
teardown() {
  local i pid job
  [[ -n ${QUORUM:-} ]] || return 0
  end_mine "${proxy_pid:-}"
  touch end
  for job in "${jobs[@]}"; do wait_until gone "$job" || kill -KILL "$job"; done
  for i in 1 2 3; do
    pid=s${i}_pid
    if [[ -z ${BATS_TEST_COMPLETED:-} || ${!pid} != "$(<"$BATS_FILE_TMPDIR/s$i/lasting")" ]] || gone "${!pid}"; then
      redis_stop "s$i"
      aged_start "s$i"
    else
      kill -CONT "${!pid}"
    fi
  done
}
teardown_file() { [[ -z ${QUORUM:-} ]] || { quorum_pids && quorum_stop; }; }

# The file's own shell does not know the servers that a test's shell has started.
quorum_pids() {
  local i
  for i in 1 2 3; do read -r "s${i}_pid" <"$BATS_FILE_TMPDIR/s$i/lasting"; done
}
