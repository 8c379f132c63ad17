#!/usr/bin/env bats
# rlock renew: for how long, and for whom.

load ../lib/common

setup_file() { redis_start srv; }
setup() {
  RLOCK_URL=$(redis_url srv)
  export RLOCK_URL
  cd "$BATS_TEST_TMPDIR" || return
}
teardown() { assert_clean srv; }
teardown_file() { redis_stop srv; }

FOREIGN=11111111-2222-3333-4444-555555555555:1

take() { rlock acquire --lease 30s "$1"; }
holder() { redis srv hgetall "$1"; }
ttl() { redis srv pttl "$1"; }
# age NAME: as if most of the lease had passed.
age() {
  redis srv pexpire "$1" 9000
  redis srv pexpire "rlock:holder:{$1}" 9000
}

@test "the lease starts again at its granted length, and standard error is empty" {
  local owner
  owner=$(rlock acquire --lease 40s a)
  age a
  run -0 --separate-stderr rlock renew a --owner "$owner"
  [[ -z $stderr ]]
  (($(ttl a) > 30000 && $(ttl a) <= 40000))
  (($(ttl 'rlock:holder:{a}') > 30000))
  rlock release a --owner "$owner"
}

@test "a lock that somebody has made permanent gets its lease again" {
  local owner
  owner=$(rlock acquire job --lease 1m)
  redis srv persist job
  run -0 rlock renew job --owner "$owner"
  (($(redis srv pttl job) > 30000))
  rlock release job --owner "$owner"
}

@test "--lease gives another lease" {
  local owner
  owner=$(take a)
  rlock renew a --owner "$owner" --lease 2m
  (($(ttl a) > 100000 && $(ttl a) <= 120000))
  rlock release a --owner "$owner"
}

@test "a lease is never shortened" {
  local owner
  owner=$(rlock acquire --lease 2m a)
  run -0 rlock renew a --owner "$owner" --lease 10s
  (($(ttl a) > 100000))
  rlock release a --owner "$owner"
}

@test "RLOCK_OWNER is used, and --owner takes precedence" {
  local owner
  owner=$(take a)
  age a
  RLOCK_OWNER=$owner run -0 rlock renew a
  (($(ttl a) > 20000))
  age a
  RLOCK_OWNER=$FOREIGN run -0 rlock renew a --owner "$owner"
  (($(ttl a) > 20000))
  RLOCK_OWNER=$owner run -76 rlock renew a --owner "$FOREIGN" --lease 1m
  rlock release a --owner "$owner"
}

@test "no owner, and an invalid one, are usage errors" {
  local owner
  owner=$(take a)
  run -64 --separate-stderr rlock renew a
  assert_says owner
  run -64 rlock renew a --owner ''
  rlock release a --owner "$owner"
}

@test "another owner: 76, and nothing is changed" {
  local owner
  owner=$(take a)
  age a
  run -76 --separate-stderr rlock renew a --owner "$FOREIGN" --lease 1h
  assert_says 'another owner'
  (($(ttl a) <= 9000 && $(ttl 'rlock:holder:{a}') <= 9000))
  [[ $(holder a) == "$owner"$'\n1' ]]
  rlock release a --owner "$owner"
}

@test "a lock that is not held: 76, and none is created" {
  run -76 --separate-stderr rlock renew a --owner "$FOREIGN" --lease 1h
  assert_says 'not held'
  [[ $(redis srv exists a) == 0 ]]
}

@test "after a release and after the end of the lease it is too late" {
  local owner
  owner=$(take a)
  rlock release a --owner "$owner"
  run -76 rlock renew a --owner "$owner"
  owner=$(take a)
  redis srv del a
  run -76 rlock renew a --owner "$owner"
  [[ $(redis srv exists a) == 0 ]]
  redis srv del 'rlock:holder:{a}'
}

@test "a lock that Redisson granted is renewed with --lease" {
  redis srv hset a "$FOREIGN" 1
  redis srv pexpire a 9000
  run -0 rlock renew a --owner "$FOREIGN" --lease 1m
  (($(ttl a) > 50000))
  [[ $(holder a) == "$FOREIGN"$'\n1' ]]
  redis srv del a
}

@test "without --lease it is not, because nobody knows the length of its lease" {
  redis srv hset a "$FOREIGN" 1
  redis srv pexpire a 9000
  run -64 --separate-stderr rlock renew a --owner "$FOREIGN"
  assert_says "it was not granted by rlock, so give --lease DUR"
  (($(ttl a) <= 9000))
  redis srv del a
}

@test "a string at the key is refused with 76 and kept" {
  redis srv set a text px 60000
  run -76 rlock renew a --owner "$FOREIGN" --lease 1h
  [[ $(redis srv get a) == text ]]
  (($(ttl a) <= 60000))
  redis srv del a
}
