# For files whose tests share a cluster of three servers, and for their jobs (job.bash). TEST_OVER has to be unset before.
# $CLUSTER_WITH: more options of the servers.

source "${BASH_SOURCE[0]%/*}/job.bash"
source "$TESTS_DIR/lib/cluster.bash"

setup_file() {
  cluster_use 3 0 "${CLUSTER_WITH[@]}"
  export c1_port c2_port c3_port
}
setup() {
  CLUSTER_MASTERS=(c1 c2 c3) CLUSTER_NODES=(c1 c2 c3)
  cd "$BATS_TEST_TMPDIR" || return
}
teardown() { touch go; }
teardown_file() {
  CLUSTER_NODES=(c1 c2 c3)
  cluster_stop
}
