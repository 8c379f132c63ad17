# tests/try-server, which shows what works on any server.

load ../lib/common

setup() {
  redis_start srv --appendonly yes
  accept_epoch srv # otherwise the trial of the epoch guard waits for half a minute
}
teardown() { redis_stop srv; }

@test "everything works on a Redis" {
  run -0 "$TESTS_DIR/try-server" "$(redis_url srv)"
  [[ $(grep -c '^works ' <<<"$output") == 20 && $output == *'none beside another' ]]
}

@test "what does not work is named, with its status; a lock that is granted twice is noticed" {
  redis srv acl setuser weak on '>pw' '~*' '&*' +@all -zadd
  tells 1 'does not    run --slots: status 77 instead of 0; ' "$TESTS_DIR/try-server" "unix://weak:pw@$srv_sock"
  grep -q '^works  *run$' <<<"$output"
  run ! grep -q '^DANGER' <<<"$output"
  # An rlock that only runs the command.
  printf '#!/bin/sh\nwhile [ "$#" -gt 0 ] && [ "$1" != -- ]; do shift; done\n[ "$#" = 0 ] || shift\nexec "$@"\n' >"$BATS_TEST_TMPDIR/rlock"
  chmod +x "$BATS_TEST_TMPDIR/rlock"
  RLOCK=$BATS_TEST_TMPDIR/rlock tells 2 'DANGER      a lock was granted to two jobs at once' "$TESTS_DIR/try-server" "$(redis_url srv)"
}
