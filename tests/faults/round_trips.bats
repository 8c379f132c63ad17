# The cost of an uncontended lock.

load ../lib/common

@test "an uncontended run takes one connection and two exchanges: acquire with what comes along, and release" {
  redis_start srv
  know_scripts srv
  export RLOCK_URL="unix://$BATS_TEST_TMPDIR/p"
  python3 "$TESTS_DIR/lib/proxy.py" "$BATS_TEST_TMPDIR/p" "$srv_sock" "$BATS_TEST_TMPDIR/passed" 3>&- &
  local proxy=$!
  wait_until test -S "$BATS_TEST_TMPDIR/p"
  rlock run job -- true
  kill "$proxy"
  wait_until gone "$proxy"
  cat "$BATS_TEST_TMPDIR/passed"
  [[ $(cut -d' ' -f1 "$BATS_TEST_TMPDIR/passed" | sort -u | wc -l) == 1 ]]
  # The first two go out in one write with the third.
  [[ $(sed 's/^[0-9]* //' "$BATS_TEST_TMPDIR/passed") == "CLIENT b'SETNAME'
INFO b'memory'
EVALSHA b'rlock acquire'
EVALSHA b'rlock release'" ]]
  assert_clean srv
  redis_stop srv
}
