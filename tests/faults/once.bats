# Jobs that are to succeed once, under fire.
#
# Longer, and with more: SECONDS_UNDER_FIRE=600 WORKERS=30 BATS_TEST_TIMEOUT=900 bats tests/faults/once.bats

load ../lib/common
load ../lib/job
load ../lib/chaos

@test "jobs killed, stopped and cut off, replies lost, the server restarted: no success is repeated, no failure is remembered" {
  chaos once "${SECONDS_UNDER_FIRE:-10}" "${WORKERS:-12}"
}

# lose WORD COUNT: from now on, the replies to the first COUNT commands with WORD are lost.
lose() {
  redis_start srv
  know_scripts srv
  python3 "$TESTS_DIR/lib/proxy.py" "$BATS_TEST_TMPDIR/p" "$srv_sock" "$BATS_TEST_TMPDIR/passed" "$@" 3>&- &
  proxy=$!
  wait_until test -S "$BATS_TEST_TMPDIR/p"
  export RLOCK_URL="unix://$BATS_TEST_TMPDIR/p"
}
over() {
  kill "$proxy"
  redis_stop srv
}

@test "a reply lost after the release: the success is remembered once, and known to be" {
  cd "$BATS_TEST_TMPDIR"
  lose 'rlock release' 2
  run -0 --separate-stderr rlock run --once 1.4 --status-fd 5 job -- true 5>lines
  [[ -z $stderr && $(grep -c '"remembered":true' lines) == 1 ]]
  run -0 rlock run --once 1.4 job -- touch ran
  [[ ! -e ran ]]
  over
}

@test "every reply to the release lost: a warning says that it is unknown, and the job keeps its status" {
  cd "$BATS_TEST_TMPDIR"
  lose 'rlock release' 1000
  run -0 --separate-stderr rlock run --once 1.4 --server-timeout 1s job -- true
  assert_says 'it is unknown whether the success is remembered'
  over
}

@test "a reply lost after the acquire: the command runs once" {
  cd "$BATS_TEST_TMPDIR"
  lose 'rlock acquire' 2
  rlock run --once 1.4 job -- sh -c 'echo ran >>ran'
  rlock run --once 1.4 job -- sh -c 'echo ran >>ran'
  [[ $(<ran) == ran ]]
  over
}
