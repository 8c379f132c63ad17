#!/usr/bin/env bats
# --protocol set: one lock for rlock and for programs that use SET key value NX PX.

load ../lib/common
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
waiting() { [[ $(redis srv zcard 'rlock:queue:{k}') == "$1" ]]; }
# wait_in_line ID [OPTION ...]: a job that writes its id to the log when its turn has come; returns when it waits.
wait_in_line() {
  local id=$1 before
  before=$(redis srv zcard 'rlock:queue:{k}')
  "$RLOCK" run --protocol set "${@:2}" k -- sh -c "echo $id >>log" 2>"err-$id" 3>&- &
  waiters+=($!)
  wait_until waiting $((before + 1))
}
all_done() {
  local waiter
  for waiter in "${waiters[@]}"; do wait "$waiter" || return; done
  waiters=()
}
calls() { redis srv info commandstats | sed -n "s/^cmdstat_$1:calls=\([0-9]*\),.*/\1/p" | grep . || echo 0; }

@test "the command runs under a string with a TTL and a token, which another program's SET NX finds" {
  run -0 --keep-empty-lines run_set k -- sh -c '
    redis-cli -s "$srv_sock" set k other nx px 1000
    redis-cli -s "$srv_sock" get k
    redis-cli -s "$srv_sock" pttl k
    echo "$RLOCK_OWNER"
    echo "$RLOCK_TOKEN"'
  [[ -z ${lines[0]} && ${lines[1]} == "${lines[3]}" && ${lines[4]} =~ ^[0-9]{16}$ ]]
  ((lines[2] > 0 && lines[2] <= 30000))
  [[ $(redis srv get 'redisson_lock_token:{k}') == "${lines[4]}" && $(redis srv exists k) == 0 ]]
}

@test "held by another program: 75, and by which" {
  foreign
  tells 75 'k: not acquired: held by another program (1f0a-random)' run_set -n k -- touch started
  run -75 --separate-stderr run_set -w 100ms k -- touch started
  [[ ! -e started && $(redis srv get k) == 1f0a-random ]]
  run -0 run_set -n -E 0 k -- touch started
  [[ ! -e started && -z $output ]]
}

@test "a waiter notices by itself that the string is deleted" {
  foreign
  before=$(calls pttl)
  wait_in_line a
  let_go
  all_done
  [[ $(cat log) == a ]]
  (($(calls pttl) > before))
}

@test "a waiter notices the end of the TTL, also if that was shortened" {
  foreign 700
  wait_in_line a
  all_done
  foreign
  wait_in_line b
  redis srv pexpire k 300
  all_done
  [[ $(xargs <log) == 'a b' ]]
}

# asked_at FILE: the time in milliseconds of each PTTL that a client has sent.
asked_at() { sed -nE 's/^([0-9]+)\.([0-9]{3})[0-9]* \[0 [^l][^]]*\] "PTTL".*/\1\2/p' "$1"; }

@test "the first waiter asks less and less often, at least every 200 ms; the others do not ask" {
  foreign
  redis-cli -s "$srv_sock" monitor >monitor 3>&- &
  watcher=$!
  wait_until grep -q OK monitor
  wait_in_line a
  wait_in_line b
  wait_in_line c
  enough() { (($(asked_at monitor | wc -l) > 14)); }
  wait_until enough
  kill "$watcher"
  wait_until gone "$watcher"
  (($(redis srv client list | grep -c cmd=pttl) <= 1))
  # Before the seventh request of a client there are pauses of 5 to 160 ms.
  mapfile -t asked < <(asked_at monitor)
  for i in 7 8 9 10 11; do
    ((asked[i + 1] - asked[i] >= 195)) || {
      printf '%s\n' "${asked[@]}"
      return 1
    }
  done
  let_go
  all_done
  [[ $(xargs <log) == 'a b c' ]]
}

@test "first come, first served among rlock's waiters, with priorities" {
  foreign
  for id in a b c; do wait_in_line $id; done
  wait_in_line d --priority 5
  let_go
  all_done
  [[ $(xargs <log) == 'd a b c' ]]
}

@test "a program that asks often gets its turn between rlock's jobs" {
  owner=$(rlock acquire --protocol set k --lease 10m)
  for n in 1 2 3 4 5 6; do wait_in_line $n; done
  # It asks about every 20 ms, and records how many were served.
  poller() {
    until [[ $(redis srv set k 1f0a-random nx px 600000) == OK ]]; do sleep 0.01; done
    wc -l <log >turn
    let_go
  }
  : >log
  poller 3>&- &
  waiters+=($!)
  rlock release k --owner "$owner"
  all_done
  (($(cat turn) < 6))
  [[ $(xargs <log) == '1 2 3 4 5 6' ]]
}

@test "a killed job leaves the string until its lease ends, but no longer" {
  job_start --protocol set --lease 5s k -- sleep 60
  job_parts
  kill_guards
  (($(redis srv pttl k) > 0))
  run -0 --separate-stderr run_set -w 1m k -- redis-cli -s "$srv_sock" type k
  [[ $output == string ]]
}

@test "a string that is deleted, replaced, or changed to another type during a job is a loss: 74" {
  for how in 'del k' 'set k other px 600000' 'lpush k 1'; do
    run -74 --separate-stderr run_set --lease 5s k -- sh -c '
      [ "$*" != "lpush k 1" ] || redis-cli -s "$srv_sock" del k
      redis-cli -s "$srv_sock" "$@"
      exec sleep 60' sh $how
    redis srv del k 'rlock:holder:{k}'
  done
}

@test "another client's release does not delete it, because the value differs" {
  run -0 run_set k -- bash -c "$(declare -f redis let_go); ! let_go && redis srv get k"
  [[ $output =~ ^[0-9a-f-]{36}:[0-9]+$ ]]
}

@test "a nested run with the same protocol shares it, and leaves the string to the outer run" {
  run -0 run_set k -- "$RLOCK" run -n --protocol set k -- "$RLOCK" run -n --protocol set k -- redis-cli -s "$srv_sock" get k
  [[ $output =~ ^[0-9a-f-]{36}:[0-9]+$ ]]
  run -0 run_set k -- sh -c '"$RLOCK" run -n --protocol set k -- true; redis-cli -s "$srv_sock" get k'
  [[ $output =~ ^[0-9a-f-]{36}:[0-9]+$ ]]
  RLOCK_PROTOCOL=set run -0 rlock run k -- "$RLOCK" run -n k -- true
}

@test "--min-hold keeps the string with a TTL" {
  run -0 run_set --min-hold 10m k -- true
  (($(redis srv pttl k) > 500000))
  run -1 foreign
  tells 0 '--min-hold keeps the lock' rlock status k
  rlock force-unlock --yes k
}

@test "acquire, renew and release need no option if the owner is known" {
  owner=$(rlock acquire --protocol set k --lease 5s)
  [[ $(redis srv get k) == "$owner" ]]
  rlock renew k --owner "$owner" --lease 10m
  (($(redis srv pttl k) > 500000))
  run -76 --separate-stderr rlock release k --owner "${owner}0"
  [[ $(redis srv get k) == "$owner" ]]
  rlock release k --owner "$owner"
  [[ $(redis srv exists k) == 0 ]]
  run -76 rlock release k --owner "$owner"
  foreign
  run -76 --separate-stderr rlock renew k --owner "$owner"
  run -76 --separate-stderr rlock release k --owner "$owner"
  [[ $(redis srv get k) == 1f0a-random ]]
}

@test "a keeper renews it and releases it" {
  sleep 600 3>&- &
  local pid=$!
  waiters+=($pid)
  owner=$(rlock acquire --protocol set k --lease 5s --for-pid $pid)
  renewed() { [[ $(calls pexpire) -gt $before ]]; }
  before=$(calls pexpire)
  wait_until renewed
  [[ $(redis srv get k) == "$owner" ]]
  kill $pid
  released() { [[ $(redis srv exists k) == 0 ]]; }
  wait_until released
}

@test "several names: all or none" {
  not_over cluster 'redis-cli asks for keys of one slot at a time'
  foreign
  run -75 run_set -n a k z -- touch started
  [[ ! -e started && $(redis srv exists a z) == 0 ]]
  let_go
  prints 2 run_set a k -- redis-cli -s "$srv_sock" exists a k
}

@test "variable, configuration file, profile; the command line takes precedence" {
  RLOCK_PROTOCOL=set prints string rlock run k -- redis-cli -s "$srv_sock" type k
  echo 'protocol = "set"' >c.toml
  prints string rlock --config c.toml run k -- redis-cli -s "$srv_sock" type k
  prints hash rlock --config c.toml run --protocol redisson k -- redis-cli -s "$srv_sock" type k
  printf '[profile.py]\nprotocol = "set"\n' >c.toml
  prints string rlock --config c.toml --profile py run k -- redis-cli -s "$srv_sock" type k
  prints hash rlock --config c.toml run k -- redis-cli -s "$srv_sock" type k
}

@test "--shared, --exclusive and --slots contradict it: 64; an unknown protocol, too" {
  for option in -s -x '--slots 2'; do
    tells 64 '--protocol set: its locks have one holder at a time' run_set $option k -- touch started
    RLOCK_PROTOCOL=set run -64 --separate-stderr rlock acquire --lease 5s $option k
    RLOCK_PROTOCOL=set run -0 --separate-stderr rlock run --protocol redisson $option k -- true
    redis srv del k '{k}:timeout' 'rlock:holder:{k}'
  done
  tells 64 "'redlock' is neither redisson nor set" rlock run --protocol redlock k -- touch started
  RLOCK_PROTOCOL=redlock run -78 --separate-stderr rlock run k -- touch started
  [[ ! -e started ]]
}

@test "a Redisson lock is named: 76, with the option" {
  for kind in '' -s '--slots 2'; do
    rlock acquire --lease 10m $kind k >owner
    tells 76 ', held ' run_set k -- touch started
    assert_says "it is a Redisson lock: use --protocol redisson"
    rlock release k --owner "$(cat owner)"
    redis srv del k '{k}:timeout' 'rlock:holder:{k}'
  done
  redis srv hset k theme dark
  tells 76 "k: in use, but not as a lock: a hash that never expires, perhaps an application's data" run_set k -- touch started
  [[ ! -e started && $(redis srv hgetall k) == $'theme\ndark' ]]
}

@test "without the option, a string with a TTL is named: 76, with the option, which is not suggested without a TTL" {
  foreign
  tells 76 'a string that expires in ' rlock run k -- touch started
  assert_says 'use --protocol set if it is such a lock'
  redis srv persist k
  tells 76 'a string that never expires' rlock run k -- touch started
  [[ $stderr != *--protocol* ]]
  redis srv del k
  owner=$(rlock acquire --protocol set --reason 'release 1.4' --lease 10m k)
  for option in '' -s '--slots 2'; do
    tells 76 'a string lock, held by ' rlock run $option k -- touch started
    assert_says "reason 'release 1.4'; use --protocol set"
  done
  [[ ! -e started && $(redis srv get k) == "$owner" ]]
  rlock release k --owner "$owner"
}

@test "a string without a TTL: 76, unless -w limits the wait, with a warning" {
  redis srv set k 1f0a-random
  run -76 --separate-stderr run_set k -- touch started
  assert_says 'k: held by another program (1f0a-random), and never expires: its program may have died; wait for it with --wait DUR'
  tells 75 'never expires' run_set -n k -- touch started
  tells 75 'never expires' run_set -w 300ms k -- touch started
  [[ ! -e started ]]
  wait_in_line a -w 10m
  let_go
  all_done
  [[ $(cat log) == a && $(redis srv exists 'rlock:queue:{k}' 'rlock:waiters:{k}') == 0 ]]
}

@test "a string that loses its TTL during an unlimited wait: 76, and the place in the queue is free" {
  local pid status=0
  foreign 3000
  wait_in_line a
  pid=${waiters[0]}
  redis srv persist k
  wait_until gone "$pid"
  wait "$pid" || status=$?
  waiters=()
  [[ $status == 76 && ! -e log ]]
  waiting 0
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

@test "status: a foreign string by its name, ours with all details, and without names only ours" {
  foreign
  run -0 rlock status k
  [[ $output == *'kind      string lock'*'state     held'*'owner     1f0a-random  (not taken by rlock)'*'holder    another program'*'expires   in '* ]]
  run -0 rlock status --is-held k
  run -0 rlock status --json k
  python3 -c '
import json, sys
k, = json.loads(sys.argv[1])
assert k["kind"] == "string lock" and k["state"] == "held" and k["owner"] == "1f0a-random", k
assert k["taken_by_rlock"] is False and 500000 < k["expires_in_ms"] <= 600000, k' "$output"
  tells 0 'no locks are held through rlock' rlock status
  let_go
  run -0 run_set --reason why k -- "$RLOCK" status k
  [[ $output == *'kind      string lock'*'holder    '*' pid '*'reason    why'* && $output != *'another program'* ]]
  prints k run_set k -- "$RLOCK" status --names
  # Ours was lost, and another program has it, so it is not listed because of what we left behind.
  redis srv hset 'rlock:holder:{k}' owner gone:1
  redis srv pexpire 'rlock:holder:{k}' 600000
  foreign
  run -0 rlock status --names
  [[ -z $output ]]
  redis srv del 'rlock:holder:{k}'
}

@test "status shows waiters behind another program" {
  foreign
  wait_in_line a --reason behind
  run -0 rlock status k
  [[ $output == *'another program'*'waiting   1. '*behind* ]]
  let_go
  all_done
}

@test "force-unlock: a foreign string needs the option; ours does not, and the job is stopped" {
  foreign
  tells 76 'if it is a lock, give --protocol set' rlock force-unlock --yes k
  [[ $(redis srv get k) == 1f0a-random ]]
  run -0 rlock force-unlock --yes --protocol set k
  [[ $(redis srv exists k) == 0 ]]
  redis srv set k immortal
  run -76 --separate-stderr rlock force-unlock --yes k
  run -0 rlock force-unlock --yes --protocol set k
  [[ $(redis srv exists k) == 0 ]]
  job_start --protocol set k -- sleep 60
  held_by_job() { [[ $(redis srv exists k) == 1 ]]; }
  wait_until held_by_job
  heard() { [[ $(listeners_on srv 'rlock:control:{k}') == 1 ]]; }
  wait_until heard
  rlock force-unlock --yes k
  job_status 74
  [[ $(redis srv exists k) == 0 ]]
}

@test "--supersede asks an rlock holder to stop; another program cannot be asked" {
  foreign
  tells 75 'it cannot be asked to stop' run_set --supersede -w 600ms k -- touch started
  let_go
  job_start --protocol set k -- sleep 60
  heard() { [[ $(listeners_on srv 'rlock:control:{k}') == 1 ]]; }
  wait_until heard
  run -0 --separate-stderr run_set --supersede k -- true
  job_status 74
}

@test "-v and messages name the holder that is waited for" {
  foreign
  "$RLOCK" run -v --protocol set k -- touch started 2>err 3>&- &
  waiters+=($!)
  wait_until grep -q 'waiting for k: held by another program (1f0a-random), you are 1st' err
  let_go
  all_done
  [[ -e started ]]
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

@test "symfony: other sorted sets are data: 76, and they stay as they are" {
  x42=$(printf 'x%.0s' {1..42})
  for member in alice __write__ "${x42}xx" "$x42-=" "${x42}xx="; do
    symfony_takes "$member"
    run -76 run_set -n k -- true
    run -76 rlock force-unlock -y --protocol set k
    tells 0 'not a lock' rlock status k
    redis srv del k
  done
  # Symfony's always expire.
  symfony_takes "${x42}x="
  redis srv persist k
  run -76 --separate-stderr run_set -n k -- true
  [[ $stderr != *Symfony* ]]
  redis srv del k
}
