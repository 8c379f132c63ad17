# A quorum whose servers are reached in different ways: over TLS, by a Unix socket, with passwords.

load ../lib/job
load ../lib/quorum

setup_file() {
  source "$TESTS_DIR/lib/tls.bash"
  export TLS_DIR=$BATS_FILE_TMPDIR/tls
  tls_authority ca
  tls_authority stranger
  tls_certificate server ca IP:127.0.0.1
}

# s1 has a Unix socket, s2 only TLS, s3 a plain port; s1 and s3 have a password each.
setup() {
  source "$TESTS_DIR/lib/tls.bash"
  local aged
  make_aged
  unset TEST_OVER
  QUORUM=3
  aged_start s1 --requirepass one
  REDIS_SERVER=$aged tls_start s2
  s3_port=$(redis_free_port)
  aged_start s3 --port "$s3_port" --requirepass three
  S1=unix://$s1_sock S2=rediss://127.0.0.1:$s2_tls S3=redis://127.0.0.1:$s3_port
  cd "$BATS_TEST_TMPDIR" || return
  export RLOCK_TLS_CA=$TLS_DIR/ca.crt RLOCK_CONFIG=$PWD/rlock.toml
  unset RLOCK_URL
  config one three
  rlock doctor --accept-epoch --yes >/dev/null 2>&1
}

teardown() {
  touch end
  [[ -z ${frontend:-} ]] || wait_until gone "$frontend" || kill -KILL "$frontend"
  quorum_stop
}

# config PASSWORD-OF-S1 PASSWORD-OF-S3
config() {
  (umask 077 && printf 'url = ["unix://:%s@%s", "%s", "redis://:%s@127.0.0.1:%s"]\n' "$1" "$s1_sock" "$S2" "$2" "$s3_port" >rlock.toml)
}
redis_1() { redis-cli -s "$s1_sock" -a one --no-auth-warning "$@"; }
redis_3() { redis-cli -s "$s3_sock" -a three --no-auth-warning "$@"; }
on_each() { redis_1 "$@" && redis s2 "$@" && redis_3 "$@"; }
held_on_all() { [[ $(on_each exists job | paste -sd' ') == '1 1 1' ]]; }

@test "each server in its own way: taken, nested, shown, renewed, put back, released" {
  job_start -v --lease 5s job -- bash -c '"$RLOCK" run -n job -- touch begun; env >seen; until [[ -e end ]]; do sleep 0.1; done'
  wait_until test -e seen
  [[ -e begun ]]
  held_on_all
  grep -qxF "RLOCK_URL=$S1 $S2 $S3" seen
  run rlock status job
  [[ $output == *"$S1  held"* && $output == *"$S2  held"* && $output == *"$S3  held"* ]]
  redis s2 flushall >/dev/null
  wait_until held_on_all
  redis_1 flushall >/dev/null
  wait_until held_on_all
  redis_stop s3
  wait_until said "$S3"
  job_finish end 0
  [[ $(redis_1 exists job) == 0 && $(redis s2 exists job) == 0 ]]
  not grep -E ':(one|three)@' seen job.err
}

@test "a waiter is notified of a release" {
  owner=$(rlock acquire job --lease 10m)
  job_start job -- echo ran
  listens() { (($(redis_3 pubsub numsub 'redisson_lock__channel:{job}' | tail -n 1) > 0)); }
  wait_until listens
  rlock release job --owner "$owner"
  job_status 0
  [[ $output == ran ]]
}

@test "a wrong password or certificate costs one vote; two votes are a majority" {
  config wrong-one three
  run -0 --separate-stderr rlock run job -- true
  [[ $stderr == *"$S1: "*WRONGPASS* && $stderr != *wrong-one* ]]
  config one three
  RLOCK_TLS_CA=$TLS_DIR/stranger.crt run -0 --separate-stderr rlock run job -- true
  [[ $stderr == *"$S2: "*'not trusted'* ]]
  config wrong-one wrong-three
  run -77 --separate-stderr rlock run -n job -- touch ran
  [[ ! -e ran && $(redis s2 exists job) == 0 ]]
}

@test "--tls-ca applies to the servers that use TLS, and needs one" {
  unset RLOCK_TLS_CA
  local url1=unix://:one@$s1_sock url3=redis://:three@127.0.0.1:$s3_port
  tells 0 ran rlock run --tls-ca "$TLS_DIR/ca.crt" --url "$url1" --url "$S2" --url "$url3" job -- echo ran
  run -64 --separate-stderr rlock run --tls-ca "$TLS_DIR/ca.crt" --url redis://127.0.0.1:1 --url redis://127.0.0.1:2 \
    --url redis://127.0.0.1:3 job -- touch ran
  assert_says 'does not use TLS'
  tells 64 'does not use TLS' rlock run --tls-ca "$TLS_DIR/ca.crt" --url "$url1" job -- touch ran
  [[ ! -e ran ]]
}

@test "one password for all, which changes while the job runs" {
  redis_1 config set requirepass common >/dev/null
  redis_3 config set requirepass common >/dev/null
  redis s2 config set requirepass common >/dev/null
  (umask 077 && echo common >pass)
  printf 'url = ["%s", "%s", "%s"]\npassword-file = "%s/pass"\n' "$S1" "$S2" "$S3" "$PWD" >rlock.toml
  run -0 rlock --url "$S1 $S2 $S3" --password-file <(cat pass) status x
  job_start -v --lease 5s job -- bash -c 'touch begun; until [[ -e end ]]; do sleep 0.1; done'
  wait_until test -e begun
  for i in 1 2 3; do
    redis-cli -s "$(eval echo "\$s${i}_sock")" -a common --no-auth-warning config set requirepass later >/dev/null
  done
  echo later >pass
  for i in 1 2 3; do
    redis-cli -s "$(eval echo "\$s${i}_sock")" -a later --no-auth-warning client kill type normal >/dev/null
  done
  again() { (($(grep -c 'renewed for' job.err) >= 2)); }
  wait_until again
  job_finish end 0
}
