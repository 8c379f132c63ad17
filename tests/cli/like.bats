#!/usr/bin/env bats
# --like and --key: the lock names of other libraries, and how to wake their waiters.

load ../lib/common
load ../lib/job
load ../lib/cluster

setup_file() {
  redis_start srv
  also_allow srv +lpush '&R-channel' '&REGISTRY-channel' # docs/interop.md
}
setup() {
  RLOCK_URL=$(redis_url srv)
  export RLOCK_URL
  cd "$BATS_TEST_TMPDIR" || return
  jobs=()
}
teardown() {
  local job
  touch end
  for job in "${jobs[@]}"; do
    wait_until gone "$job" || kill -KILL "$job"
  done
  redis srv del lock:k R:k lock-signal:k lock-signal:L1 >/dev/null
  assert_clean srv
}
teardown_file() { redis_stop srv; }

SIGNAL=lock-signal:k
waiting() { [[ $(redis srv zcard "rlock:queue:{$1}") == "$2" ]]; }
# in_background COMMAND ...: its output goes to the file out, its pid to $job.
in_background() {
  "$@" >out 2>err 3>&- &
  job=$!
  jobs+=($job)
}
holds() { in_background "$RLOCK" run "$@" -- sh -c 'echo >started; until [ -e end ]; do sleep 0.02; done'; }
listeners() { [[ $(redis srv pubsub numsub "$1" | tail -n 1) == "$2" ]]; }
blocked() { redis srv info clients | grep -q "^blocked_clients:$1"; }
calls() { redis srv info commandstats | sed -n "s/^cmdstat_$1:calls=\([0-9]*\),.*/\1/p" | grep . || echo 0; }

@test "each preset uses the key of its library, while the command gets the given name" {
  local preset key count=0
  while read -r preset key; do
    # shellcheck disable=SC2016 # for the sh of the command
    run -0 --separate-stderr rlock run --like "$preset" L1 -- sh -c 'echo "$RLOCK_NAME"
      redis-cli -s "$srv_sock" type "$0"; redis-cli -s "$srv_sock" pttl "$0"' "$key"
    [[ ${lines[0]} == L1 && ${lines[1]} == string ]]
    ((lines[2] > 0))
    [[ $(redis srv exists "$key") == 0 ]]
    count=$((count + 1))
  done <<'END'
redis-py L1
redsync L1
bsm-redislock L1
redlock L1
redlock-py L1
ioredis-lock L1
rslock L1
redis-semaphore mutex:L1
pottery redlock:L1
redlock-rb L1
redlock-net redlock:L1
symfony L1
python-redis-lock lock:L1
shedlock job-lock:default:L1
END
  ((count == 14))
  # Every preset in the help is here, except spring and laravel, which have no usual key.
  run -64 --separate-stderr rlock run --like nobody L1 -- true
  [[ $(grep -o 'is none of .*' <<<"$stderr" | tr -cd , | wc -c) == 16 ]]
}

@test "--key: another prefix, with a preset and without one" {
  run -0 rlock run --like shedlock --key job-lock:prod:% k -- redis-cli -s "$srv_sock" type job-lock:prod:k
  [[ $output == string ]]
  run -0 rlock run --like laravel --key app_database_app_cache_% k -- redis-cli -s "$srv_sock" type app_database_app_cache_k
  [[ $output == string ]]
  run -0 rlock run --protocol set --key 'a:%:z' k -- redis-cli -s "$srv_sock" type a:k:z
  [[ $output == string ]]
  run -0 rlock run --key 'a:%' k -- redis-cli -s "$srv_sock" type a:k
  [[ $output == hash ]]
  # In the order of the keys.
  # shellcheck disable=SC2016 # for the sh of the command
  run -0 rlock run --key '%z' b ba -- sh -c 'echo "$RLOCK_NAME"'
  [[ $output == $'ba\nb' ]]
}

@test "all subcommands find the lock by the given name" {
  export RLOCK_LIKE=redis-semaphore
  local owner
  eval "$(rlock acquire --lease 600s --export k)"
  owner=$RLOCK_OWNER
  [[ $RLOCK_NAME == k && $(redis srv get mutex:k) == "$owner" ]]
  unset RLOCK_NAME RLOCK_OWNER RLOCK_TOKEN
  run -0 rlock status k
  [[ $output == *'mutex:k'*'string lock'*"$owner"* ]]
  run -0 rlock status --is-held k
  run -0 rlock renew k --owner "$owner" --lease 700s
  (($(redis srv pttl mutex:k) > 600000))
  run -0 rlock release k --owner "$owner"
  redis srv set mutex:k foreign px 600000 >/dev/null
  run -75 --separate-stderr rlock run -n k -- true
  run -0 rlock force-unlock -y k
  [[ $(redis srv exists mutex:k) == 0 ]]
  # Also in a nested run.
  run -0 rlock run k -- "$RLOCK" run k -- true
}

@test "profiles and files can set it, too; the command line takes precedence" {
  printf 'like = "pottery"\n[profile.p]\nlike = "python-redis-lock"\nkey = "app:%%"\n' >rlock.toml
  chmod 600 rlock.toml
  export RLOCK_CONFIG=$PWD/rlock.toml
  run -0 rlock run k -- redis-cli -s "$srv_sock" type redlock:k
  [[ $output == string ]]
  run -0 rlock run --profile p k -- redis-cli -s "$srv_sock" type app:k
  [[ $output == string ]]
  redis srv del "$SIGNAL" >/dev/null
  run -0 rlock run --like none -s k -- redis-cli -s "$srv_sock" type k
  [[ $output == hash ]]
}

@test "what a library does not support is refused: 64" {
  local options
  for options in -s -x '--slots 2'; do
    # shellcheck disable=SC2086 # a list of words
    run -64 --separate-stderr rlock run --like redis-py $options k -- true
    assert_says 'redis-py: its locks have one holder at a time'
  done
  run -64 --separate-stderr rlock run --like redis-py --protocol redisson k -- true
  assert_says '--like redis-py and --protocol redisson cannot be used together'
  run -64 --separate-stderr rlock force-unlock -y --like redis-py --protocol redisson k
  run -64 --separate-stderr rlock run --like spring k -- true
  assert_says 'REGISTRY:%'
  run -64 --separate-stderr rlock run --like spring --key 'x%' k -- true
  assert_says 'REGISTRY:%'
  run -64 --separate-stderr rlock run --like laravel k -- true
  assert_says 'give one of the form PREFIX%'
  for options in x 'x%%' ''; do
    run -64 --separate-stderr rlock run --key "$options" k -- true
    assert_says 'write exactly one %'
  done
  run -64 --separate-stderr rlock run --like redis-semaphore --key "$(printf 'x%.0s' {1..600})%" k -- true
  RLOCK_LIKE=nobody run -78 --separate-stderr rlock run k -- true
  assert_says RLOCK_LIKE
}

@test "a Redisson lock at the key: 76, and the message says so" {
  redis srv hset lock:k 8a3c2c1e-0d3e-4bb5-8a8e-0a1b2c3d4e5f:1 1 >/dev/null
  redis srv pexpire lock:k 600000 >/dev/null
  run -76 --separate-stderr rlock run --like python-redis-lock k -- true
  assert_says "it is a Redisson lock: use --protocol redisson"
}

@test "python-redis-lock: its waiters wait for a list element, which a release leaves for a limited time" {
  not_over cluster 'the list is in another slot'
  holds --like python-redis-lock k
  wait_until test -e started
  [[ $(redis srv exists "$SIGNAL") == 0 ]]
  redis-cli -s "$srv_sock" blpop "$SIGNAL" 0 >popped 3>&- &
  jobs+=($!)
  wait_until blocked 1
  touch end
  wait_until grep -qx 1 popped
  run -0 rlock run --like python-redis-lock k -- true
  run -0 rlock run --like python-redis-lock k -- true
  [[ $(redis srv llen "$SIGNAL") -le 1 ]]
  (($(redis srv pttl "$SIGNAL") <= 1000))
  wait_until not redis_has "$SIGNAL"
}
redis_has() { [[ $(redis srv exists "$1") == 1 ]]; }

@test "python-redis-lock: a forced release, and one by the owner id, wake them, too" {
  not_over cluster 'the list is in another slot'
  redis srv set lock:k foreign px 600000 >/dev/null
  redis-cli -s "$srv_sock" blpop "$SIGNAL" 0 >popped 3>&- &
  jobs+=($!)
  wait_until blocked 1
  run -0 rlock force-unlock -y --like python-redis-lock k
  wait_until grep -qx 1 popped
  local owner
  owner=$(rlock acquire --like python-redis-lock --lease 600s k)
  redis-cli -s "$srv_sock" blpop "$SIGNAL" 0 >popped-2 3>&- &
  jobs+=($!)
  wait_until blocked 1
  run -0 rlock release --like python-redis-lock k --owner "$owner"
  wait_until grep -qx 1 popped-2
}

@test "a release that gives the lock to an rlock waiter does not wake the library's waiters" {
  not_over cluster 'the list is in another slot'
  local before
  holds --like python-redis-lock k
  wait_until test -e started
  # Every second release is open to all: the first of two that wait.
  for before in 1 2; do
    "$RLOCK" run --like python-redis-lock k -- true 2>"err-$before" 3>&- &
    jobs+=($!)
    wait_until waiting lock:k "$before"
  done
  before=$(calls lpush)
  touch end
  for job in "${jobs[@]}"; do wait "$job"; done
  # Open, handed over, and the last one without a waiter behind it.
  (($(calls lpush) == before + 2))
}

@test "python-redis-lock: a lock at the key of that list is not deleted" {
  local owner
  owner=$(rlock acquire --lease 600s lock-signal:k)
  run -0 rlock run --like python-redis-lock k -- true
  assert_says 'waiters could not be told'
  rlock release --owner "$owner" lock-signal:k
}

@test "a release that cannot wake them still counts, with a warning that says why" {
  not_over tls sentinel cluster 'the user is one of the test, with a password'
  [[ $(redis srv info server | sed -n 's/^redis_version:\([0-9]*\).*/\1/p') -ge 6 ]]
  redis srv acl setuser few on '>pw' '~lock:*' '~rlock:*' '~redisson_lock_*' '~{*' '&*' +@all >/dev/null
  echo pw >pw
  chmod 600 pw
  RLOCK_URL=${RLOCK_URL/#unix:\/\//unix://few@} run -0 --separate-stderr rlock run --password-file pw \
    --like python-redis-lock k -- true
  redis srv acl deluser few >/dev/null
  assert_says 'waiters could not be told'
  [[ $(redis srv exists lock:k) == 0 ]]
}

@test "spring: a release is published on the registry's channel, as its waiters expect" {
  redis-cli -s "$srv_sock" subscribe R-channel >heard 3>&- &
  local subscriber=$!
  wait_until listeners R-channel 1
  run -0 rlock run --like spring --key R:% k -- true
  wait_until grep -qx R:k heard
  kill "$subscriber"
  wait_until gone "$subscriber"
}

@test "spring: the first waiter listens there, and looks only when its own lock is published" {
  not_over cluster 'no waiter of rlock listens there'
  local before
  redis srv set R:k foreign px 600000 >/dev/null
  in_background "$RLOCK" run --like spring --key R:% k -- echo done
  wait_until waiting R:k 1
  wait_until listeners R-channel 1
  looks() { (($(calls evalsha) > before)); }
  # Unprompted looks: it has just looked if nothing more comes within a second.
  before=$(calls evalsha)
  for _ in {1..20}; do redis srv publish R-channel R:other >/dev/null; done
  (($(calls evalsha) <= before + 1))
  before=$(calls evalsha)
  redis srv publish R-channel R:k >/dev/null
  wait_until looks
  redis srv del R:k >/dev/null
  redis srv publish R-channel R:k >/dev/null
  wait "$job"
  grep -qx 'done' out
}

@test "shedlock: the value names time and host, and is unique" {
  run -0 rlock run --like shedlock k -- redis-cli -s "$srv_sock" get job-lock:default:k
  [[ $output =~ ^ADDED:20[0-9-]+T[0-9:]+Z@[^:\ ]+:[0-9a-f-]{36}:[0-9]+$ ]]
  local first=$output
  run -0 rlock run --like shedlock k -- redis-cli -s "$srv_sock" get job-lock:default:k
  [[ $output != "$first" ]]
  # It is an owner id like any other.
  local owner
  owner=$(rlock acquire --like shedlock --lease 600s k)
  run -0 rlock renew --like shedlock k --owner "$owner"
  run -0 rlock release --like shedlock k --owner "$owner"
  run -0 rlock run --like shedlock --min-hold 600s k -- true
  (($(redis srv pttl job-lock:default:k) > 500000))
  redis srv del job-lock:default:k 'rlock:holder:{job-lock:default:k}' >/dev/null
  run -0 rlock run --like shedlock k -- "$RLOCK" run --like shedlock k -- true
}

@test "a string without a TTL counts as held if --like names its library" {
  redis srv set lock:k foreign >/dev/null
  run -0 rlock status --like python-redis-lock k
  [[ $output == *'state     held'*'another program'* ]]
  run -76 --separate-stderr rlock run --like python-redis-lock k -- true
  assert_says 'and never expires'
}

# symfony_takes MEMBER ...: as its RedisStore does.
symfony_takes() {
  local end=$(($(date +%s) * 1000 + 600000)) member
  for member; do redis srv zadd k "$end" "$member" >/dev/null; done
  redis srv pexpireat k "$end" >/dev/null
}

@test "symfony: the sorted set of a writer or of readers is a lock that another program holds" {
  local members token=Wq3nZ0xkV5yTtM8J1cLr7aBfEoHsGdUu+iPp/9KyXl4=
  for members in "$token __write__" "$token ${token/W/V}"; do
    # shellcheck disable=SC2086 # a list of words
    symfony_takes $members
    local before
    before=$(redis srv zrange k 0 -1 withscores)
    run -75 --separate-stderr rlock run -n --like symfony k -- true
    assert_says 'held by another program'
    run -0 rlock status k
    assert_says 'string lock'
    [[ $output == *'another program'* ]]
    run -76 rlock release --like symfony k --owner 1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed:1
    # A release of one of several readers would take the lock from the others.
    run -76 rlock release --like symfony k --owner "$(redis srv zrange k 0 0)"
    run -76 --separate-stderr rlock run -n k -- true
    assert_says 'perhaps a lock of Symfony'
    assert_says 'use --protocol set'
    run -76 rlock force-unlock -y k
    [[ $(redis srv zrange k 0 -1 withscores) == "$before" ]]
    in_background "$RLOCK" run --like symfony k -- echo done
    wait_until waiting k 1
    run -0 rlock force-unlock -y --like symfony k
    wait "$job"
    grep -qx 'done' out
  done
}

@test "symfony: other sorted sets are data: 76, and they stay as they are" {
  local member x42
  x42=$(printf 'x%.0s' {1..42})
  for member in alice __write__ "${x42}xx" "$x42-=" "${x42}xx="; do
    symfony_takes "$member"
    run -76 rlock run -n --like symfony k -- true
    run -76 rlock force-unlock -y --like symfony k
    run -0 rlock status --like symfony k
    assert_says 'not a lock'
    redis srv del k
  done
  # Symfony's always expire.
  symfony_takes "${x42}x="
  redis srv persist k
  run -76 --separate-stderr rlock run -n --like symfony k -- true
  [[ $stderr != *Symfony* ]]
  redis srv del k
}

@test "cluster: the list of the library's waiters is omitted if it is in another slot, without a warning" {
  cluster_start 1
  also_allow c1 +lpush '&R-channel'
  RLOCK_URL=$(cluster_url)
  run -0 --separate-stderr rlock run --like python-redis-lock k -- true
  [[ -z $stderr && $(redis c1 exists lock-signal:k) == 0 ]]
  run -0 --separate-stderr rlock run --like python-redis-lock '{k}:1' -- true
  [[ -z $stderr && $(redis c1 llen 'lock-signal:{k}:1') == 1 ]]
  # A publication reaches everybody; a waiter of the registry works without it.
  redis-cli -s "$c1_sock" subscribe R-channel >heard 3>&- &
  local subscriber=$!
  c1_hears() { [[ $(redis c1 pubsub numsub R-channel | tail -n 1) == 1 ]]; }
  wait_until c1_hears
  redis c1 set R:k foreign px 500 >/dev/null
  run -0 --separate-stderr rlock run --like spring --key R:% k -- true
  wait_until grep -qx R:k heard
  kill "$subscriber"
  wait_until gone "$subscriber"
  cluster_stop
}
