# Jobs that are to succeed once, under fire.
#
# Longer, and with more: SECONDS_UNDER_FIRE=600 WORKERS=30 BATS_TEST_TIMEOUT=900 bats tests/faults/once.bats

load ../lib/server
load ../lib/chaos

@test "jobs killed, stopped and cut off, replies lost, the server restarted: no success is repeated, no failure is remembered" {
  chaos once "${SECONDS_UNDER_FIRE:-10}" "${WORKERS:-12}"
}

setup_file() {
  redis_start srv
  know_scripts srv
}
teardown() {
  end_mine_wholly "${proxy:-}"
  redis srv del 'rlock:once:{job}' job 'rlock:holder:{job}' >/dev/null
  assert_clean srv
}
# lose WORD COUNT: from now on, the replies to the first COUNT commands with WORD are lost.
lose() { proxy_start "$srv_sock" "$@"; }

@test "a reply lost after the release: the success is remembered once, and known to be" {
  lose 'rlock release' 2
  run -0 --separate-stderr rlock run --once 1.4 --status-fd 5 job -- true 5>lines
  [[ -z $stderr && $(grep -c '"remembered":true' lines) == 1 ]]
  run -0 rlock run --once 1.4 job -- touch ran
  [[ ! -e ran ]]
}

@test "every reply to the release lost: a warning says that it is unknown, and the job keeps its status" {
  lose 'rlock release' 1000
  tells 0 'it is unknown whether the success is remembered' rlock run --once 1.4 --server-timeout 1s job -- true
}

@test "a reply lost after the acquire: the command runs once" {
  lose 'rlock acquire' 2
  rlock run --once 1.4 job -- sh -c 'echo ran >>ran'
  rlock run --once 1.4 job -- sh -c 'echo ran >>ran'
  [[ $(<ran) == ran ]]
}
