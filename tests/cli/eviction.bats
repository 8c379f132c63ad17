# A server that may evict locks: run and acquire refuse it.

load ../lib/common
load ../lib/job
load ../lib/jobs

teardown() {
  redis srv config set maxmemory 0 maxmemory-policy noeviction >/dev/null
  redis srv acl deluser limited >/dev/null
  assert_clean srv
}

evicting() { redis srv config set maxmemory 100mb maxmemory-policy "$1" >/dev/null; }

@test "a server that may evict locks is refused with 78: nothing is started, and nothing is left" {
  local policy
  for policy in allkeys-lru volatile-ttl allkeys-random; do
    evicting "$policy"
    run --separate-stderr -78 rlock run job -- touch "$BATS_TEST_TMPDIR/ran"
    assert_says "maxmemory-policy $policy: the server may evict a lock that is held"
    [[ ! -e $BATS_TEST_TMPDIR/ran && -z $output ]]
    assert_clean srv
    run --separate-stderr -78 rlock acquire job --lease 30s
    [[ -z $output ]]
    assert_clean srv
  done
}

@test "it is refused before a wait, too" {
  local owner
  owner=$(rlock acquire job --lease 1m)
  evicting volatile-lru
  run --separate-stderr -78 rlock run job -- touch "$BATS_TEST_TMPDIR/ran"
  [[ $(redis srv exists 'rlock:queue:{job}') == 0 ]]
  rlock release job --owner "$owner"
}

@test "noeviction is fine, and so is any policy without a memory limit" {
  evicting noeviction
  run --separate-stderr -0 rlock run job -- echo mine
  [[ $output == mine && -z $stderr ]]
  redis srv config set maxmemory 0 maxmemory-policy allkeys-lru >/dev/null
  run --separate-stderr -0 rlock run job -- echo mine
  [[ $output == mine && -z $stderr ]]
}

@test "--allow-unsafe-eviction accepts the risk: as an option, a variable and a setting" {
  evicting allkeys-lru
  run --separate-stderr -0 rlock run --allow-unsafe-eviction job -- echo mine
  [[ $output == mine && -z $stderr ]]
  RLOCK_ALLOW_UNSAFE_EVICTION=1 run --separate-stderr -0 rlock run job -- echo mine
  [[ $output == mine ]]
  echo 'allow-unsafe-eviction = true' >"$BATS_TEST_TMPDIR/rlock.toml"
  run --separate-stderr -0 rlock run --config "$BATS_TEST_TMPDIR/rlock.toml" job -- echo mine
  [[ $output == mine ]]
}

@test "looking, renewing and releasing are not refused" {
  local owner
  owner=$(rlock acquire job --lease 1m)
  evicting allkeys-lru
  rlock renew job --owner "$owner"
  rlock status job
  rlock release job --owner "$owner"
}

@test "a user without the right to INFO is not refused" {
  evicting allkeys-lru
  redis srv acl setuser limited on nopass '~*' '&*' +@all -info
  RLOCK_PASSWORD=x run --separate-stderr -0 rlock run --url "unix://limited@$srv_sock" job -- echo mine
  [[ $output == mine && -z $stderr ]]
}
