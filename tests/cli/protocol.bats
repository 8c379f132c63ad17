# --protocol set: one lock for rlock and for programs that use SET key value NX PX.

load ../lib/server
load ../lib/job

teardown() {
  end_mine_wholly "${waiters[@]}"
  redis srv del k >/dev/null
  assert_clean srv
}

run_set() { rlock run --protocol set "$@"; }
# foreign [MS]: another program takes it, like redis-py; fails if it is held.
foreign() { [[ $(redis srv set k 1f0a-random nx px "${1:-600000}") == OK ]]; }
# let_go: releases it, with the script from the Redis documentation.
let_go() {
  [[ $(redis srv eval "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end" \
    1 k 1f0a-random) == 1 ]]
}
wait_in_line() { join_line k "$1" --protocol set "${@:2}"; }
calls() { redis srv info commandstats | sed -n "s/^cmdstat_$1:calls=\([0-9]*\),.*/\1/p" | grep . || echo 0; }

@test "a waiter notices when the string is deleted or expires, even if its TTL was shortened; status shows who waits" {
  foreign
  before=$(calls pttl)
  wait_in_line a -v --reason behind
  wait_until grep -q 'waiting for k: held by another program (1f0a-random), you are 1st' err-a
  run -0 rlock status k
  [[ $output == *'another program'*'waiting   1. '*behind* ]]
  let_go
  all_done
  (($(calls pttl) > before))
  foreign 700
  wait_in_line b
  all_done
  foreign
  wait_in_line c
  redis srv pexpire k 300
  all_done
  redis srv set k 1f0a-random # without a TTL
  wait_in_line d -w 10m
  let_go
  all_done
  [[ $(xargs <log) == 'a b c d' && $(redis srv exists 'rlock:queue:{k}' 'rlock:waiters:{k}') == 0 ]]
}

@test "a value of a megabyte with control characters is neither shown nor sent whole" {
  python3 -c 'import sys; sys.stdout.write("\x1b[31mx" * 200000)' | redis srv -x set k
  redis srv pexpire k 600000
  before=$(redis srv info stats | sed -n 's/^total_net_output_bytes:\([0-9]*\).*/\1/p')
  for command in 'run --protocol set -n k -- touch started' 'run -n k -- touch started' 'status k' 'status --json k' 'status k free' \
    'release k --owner a:1'; do
    run --separate-stderr rlock $command
    [[ ${#output} -lt 5000 && ${#stderr} -lt 1000 && $output$stderr != *$'\x1b'* ]]
  done
  run -0 rlock status --json k
  [[ ! -e started ]]
  (($(redis srv info stats | sed -n 's/^total_net_output_bytes:\([0-9]*\).*/\1/p') - before < 200000))
  [[ $(redis srv strlen k) == 1200001 || $(redis srv strlen k) == 1200000 ]]
}

@test "--supersede and force-unlock ask an rlock holder to stop; another program cannot be asked" {
  foreign
  tells 75 'it cannot be asked to stop' run_set --supersede -w 600ms k -- touch started
  let_go
  job_start --protocol set k -- sleep 60
  heard() { [[ $(listeners_on srv 'rlock:control:{k}') == 1 ]]; }
  wait_until heard
  run_set --supersede k -- true
  job_status 74
  job_start --protocol set k -- sleep 60
  wait_until heard
  rlock force-unlock --yes k
  job_status 74
  [[ $(redis srv exists k) == 0 ]]
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
    symfony_takes $members
    local before
    before=$(redis srv zrange k 0 -1 withscores)
    tells 75 'held by another program' run_set -n k -- true
    run -0 rlock status k
    assert_says 'string lock'
    [[ $output == *'another program'* ]]
    run -76 rlock release k --owner 1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed:1
    # A release of one of several readers would take the lock from the others.
    run -76 rlock release k --owner "$(redis srv zrange k 0 0)"
    tells 76 'perhaps a lock of Symfony' rlock run -n k -- true
    assert_says 'use --protocol set'
    run -76 rlock force-unlock -y k
    [[ $(redis srv zrange k 0 -1 withscores) == "$before" && ! -e log ]]
    wait_in_line a
    run -0 rlock force-unlock -y --protocol set k
    all_done
    [[ $(cat log) == a ]]
    rm log
  done
}
