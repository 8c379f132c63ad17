# The rights that the README grants are enough, and each of them is needed.

load ../lib/common

setup_file() { redis_start srv; }
teardown_file() { redis_stop srv; }
teardown() { assert_clean srv; }

# The command of the README, in one line.
acl_of_readme() {
  sed -n '/^ACL SETUSER rlock/,/^```/p' "$TESTS_DIR/../README.md" | grep -v '```' | tr '\n' ' ' | sed 's/>PASSWORD/>pw/'
}

grant() { # shellcheck disable=SC2046 # words of a command
  redis srv $(acl_of_readme) "$@"
}

# everything: what a user of rlock does. Quietly; fails with the first thing that fails.
everything() {
  local owner
  rlock run job -- "$RLOCK" run -n job -- true &&
    owner=$(rlock acquire job --lease 30s) && rlock renew job --owner "$owner" && rlock status job &&
    rlock status && ! rlock run --wait 100ms job -- true && handed_over "$owner" &&
    released_before "$owner" && rlock acquire job --lease 30s && rlock force-unlock job --yes &&
    rlock run -s job -- "$RLOCK" run -n -s job -- true && rlock run -x job -- true && slots
}

slots() {
  local owner
  owner=$(rlock acquire --slots 2 job --lease 30s) && rlock status job &&
    redis srv -n 1 zadd '{job}:timeout' 1 one-that-crashed && rlock run --slots 3 --resize job -- true &&
    rlock release job --owner "$owner"
}

# A second job waits, and is given the lock by the release of the first.
handed_over() {
  rlock run --wait 1m --reason handed job -- true 3>&- &
  local waiter=$!
  waiting() { [[ $(redis srv -n 1 zcard 'rlock:queue:{job}') == 1 ]]; }
  wait_until waiting && rlock release job --owner "$1" && wait "$waiter"
}

released_before() {
  local status=0
  rlock release job --owner "$1" || status=$?
  ((status == 76))
}

# silent: nothing was written but what belongs there.
silent() { ! grep -vE 'not acquired|not held|waiting for' "$BATS_TEST_TMPDIR/err"; }

@test "with the rights of the README everything works, without a warning" {
  set -f
  grant
  export RLOCK_URL="unix://rlock@$srv_sock?db=1" RLOCK_PASSWORD=pw
  run --separate-stderr -0 rlock run job -- true
  [[ -z $stderr ]]
  unset RLOCK_PASSWORD
  printf pw >"$BATS_TEST_TMPDIR/password"
  chmod 600 "$BATS_TEST_TMPDIR/password"
  export RLOCK_PASSWORD_FILE=$BATS_TEST_TMPDIR/password
  everything 2>"$BATS_TEST_TMPDIR/err"
  cat "$BATS_TEST_TMPDIR/err"
  silent
}

@test "each right is needed: without it something fails or is warned of" {
  set -f
  printf pw >"$BATS_TEST_TMPDIR/password"
  chmod 600 "$BATS_TEST_TMPDIR/password"
  export RLOCK_PASSWORD_FILE=$BATS_TEST_TMPDIR/password RLOCK_URL="unix://rlock@$srv_sock?db=1"
  local right
  for right in $(acl_of_readme | tr ' ' '\n' | grep '^+'); do
    grant "-${right#+}"
    if everything 2>"$BATS_TEST_TMPDIR/err" && silent; then
      echo "$right is not needed"
      return 1
    fi
    redis srv -n 1 flushdb
  done
}
