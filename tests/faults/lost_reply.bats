# A reply is lost after the server has executed the request: nothing may count twice.

load ../lib/server

setup_file() {
  redis_start srv
  know_scripts srv
}
setup() {
  cd "$BATS_TEST_TMPDIR" || return
  redis srv subscribe 'redisson_lock__channel:{job}' >heard 3>&- &
  listener=$!
  wait_until grep -q subscribe heard
}
teardown() {
  end_mine_wholly "$listener" "${proxy:-}"
  redis srv del 'rlock:holder:{job}' >/dev/null
  assert_clean srv
}

# lose WORD COUNT: from now on, the replies to the first COUNT commands with WORD are lost.
lose() {
  end_mine_wholly "${proxy:-}"
  proxy_start "$srv_sock" "$@"
}

commands_of() { grep -c -- "rlock $1" passed; }
# releases: how many the server has published so far. Later messages come after them.
releases() {
  local mark=mark-$RANDOM$RANDOM
  redis srv publish 'redisson_lock__channel:{job}' "$mark" >/dev/null
  wait_until grep -q "$mark" heard
  grep -c '^0$' heard
}

@test "a reply lost after acquire: one hold, count 1, one release" {
  lose 'rlock acquire' 2
  run --separate-stderr -7 rlock run job -- sh -c 'redis-cli -s "$0" hvals job; exit 7' "$srv_sock"
  [[ $output == 1 ]]
  [[ $(commands_of acquire) == 3 && $(commands_of release) == 1 && $(releases) == 1 ]]
}

@test "every reply lost after acquire: it gives up in time, and releases what it may have got" {
  lose 'rlock acquire' 1000
  run -69 --separate-stderr rlock run -n --server-timeout 1s job -- touch ran
  [[ ! -e ran && $(redis srv exists job) == 0 ]]
}

@test "a reply lost after renew: the job continues" {
  lose 'rlock renew' 2
  run --separate-stderr -7 rlock run --lease 18s job -- bash -c '
    until (($(grep -cF -- "rlock renew" "$0") >= 4)); do sleep 0.05; done; redis-cli -s "$1" hvals job; exit 7' \
    passed "$srv_sock"
  [[ $output == 1 ]]
  assert_says 'cannot renew' 'renewed again'
  [[ $(releases) == 1 ]]
}

@test "a reply lost after release: released once, and the job's own status, also if another owner follows" {
  lose 'rlock release' 1
  run --separate-stderr -7 rlock run job -- sh -c 'exit 7'
  show
  [[ $(commands_of release) == 2 && $(releases) == 1 ]]
  [[ -z $stderr ]]
  lose 'rlock release' 1
  "$RLOCK" --url "$(redis_url srv)" run job -- sleep 0.2 3>&- &
  local other=$!
  run --separate-stderr -7 rlock run job -- sh -c 'exit 7'
  wait "$other"
  [[ $(releases) == 3 ]]
}

@test "the reply to a release is lost, and the lock was lost before it: 74, or 76 for a release by hand" {
  lose 'rlock release' 1
  run --separate-stderr -74 rlock run job -- redis-cli -s "$srv_sock" del job
  [[ $(commands_of release) == 2 ]]
  assert_says 'lost while the command ran'
  lose 'rlock release' 1
  owner=$(rlock acquire job --lease 30s)
  redis srv del job
  run --separate-stderr -76 rlock release job --owner "$owner"
  [[ $(commands_of release) == 2 ]]
}

@test "replies lost after every verb of acquire, renew and release by hand" {
  lose 'rlock acquire' 1
  owner=$(rlock acquire job --lease 30s)
  lose 'rlock re' 2
  rlock renew job --owner "$owner"
  [[ $(redis srv hget job "$owner") == 1 ]]
  rlock release job --owner "$owner"
  [[ $(releases) == 1 ]]
}

@test "a reply lost after an inner acquire and release: the outer hold is unchanged" {
  lose 'rlock acquire' 2
  run --separate-stderr -0 rlock run job -- "$RLOCK" run job -- redis-cli -s "$srv_sock" hvals job
  [[ $output == 2 ]]
  [[ $(releases) == 1 ]]
}
