# For files about the processes of jobs: load it instead of server.bash and job.bash. $pids is a file for the pids of
# a tree, of which none may be left.
#
#   start_tree [OPTION ...]   a job whose tree of three processes is hard to end; sets $monitor and $command
#   begin                     what setup does: for a file whose tests have servers of their own
#   lose                      the lock of the job is lost

source "${BASH_SOURCE[0]%/*}/job.bash"
source "$TESTS_DIR/lib/server.bash"

setup() { begin; }
begin() {
  use_server srv
  pids=$BATS_TEST_TMPDIR/pids
  : >"$pids"
}
teardown() {
  all_gone "$pids"
  lose
  assert_clean srv
}

lose() { redis srv del job 'rlock:holder:{job}' >/dev/null; }
held() { [[ $(redis srv exists job) == 1 ]]; }
free() { ! held; }

start_tree() {
  job_start "$@" -k 300ms job -- bash -c "$(tree "$pids")"
  wait_until lines_in "$pids" 3
  job_parts
}
