#!/usr/bin/env bats
# Keys of other programs: 76, unchanged, and a message that says what they are and suggests nothing harmful.
# tests/lua/kind.table tests which keys are no lock, and that no script changes them.

load ../lib/common
load ../lib/server

teardown() {
  redis srv del k
  assert_clean srv
}

OWNER=11111111-2222-3333-4444-555555555555:7 # who asks has another one

# left_alone TEXT [held]: every use of rlock with the key k says TEXT, exits with 76, and leaves k unchanged. held:
# status takes it for a lock (tests/cli/protocol.bats).
left_alone() {
  local before after command
  before=$(redis srv --no-raw dump k)
  local commands=("run k -- touch started" "run -n -E 0 k -- touch started" "run -s k -- touch started"
    "run -x k -- touch started" "run --slots 2 k -- touch started" "run --slots 3 --resize k -- touch started"
    "run --slots 1 k -- touch started" "acquire --lease 5s k" "renew --owner ${OWNER}0 k" "release --owner ${OWNER}0 k"
    "force-unlock --yes k" "force-unlock --yes --now k")
  [[ ${2:-} == held ]] || commands+=("status --is-held k")
  for command in "${commands[@]}"; do
    # shellcheck disable=SC2086 # words
    run -76 --separate-stderr rlock $command
    [[ -z $output && $stderr == *"$1"* && $stderr != *--slots* && $stderr != *--resize* && $stderr != *--java* ]] || {
      echo "rlock $command"
      return 1
    }
  done
  if [[ ${2:-} != held ]]; then
    run -0 --separate-stderr rlock status k
    assert_says "not a lock, but $1"
  fi
  after=$(redis srv --no-raw dump k)
  [[ $after == "$before" && ! -e started ]]
}

@test "an application's settings" {
  redis srv hset k theme dark
  left_alone "a hash that never expires, perhaps an application's data"
}

@test "a hash with two owners is not waited for" {
  redis srv hset k "$OWNER" 1 "${OWNER}1" 1
  redis srv pexpire k 3600000
  left_alone "a hash that expires in "
}

@test "a lock without a TTL is not waited for" {
  redis srv hset k "$OWNER" 1
  left_alone 'a hash that never expires, perhaps another program'\''s lock (those of rlock and Redisson always expire)'
}

@test "a lock taken with SET NX, whose value is a text or a number" {
  redis srv set k 1f0a-random nx px 3600000
  left_alone 'a string that expires in ' held
  assert_says 'perhaps a lock that redis-py, Redlock or a script has taken with SET NX'
  redis srv set k 1 px 3600000
  left_alone 'a string that expires in ' held
  assert_says 'perhaps a lock that redis-py, Redlock or a script has taken with SET NX'
}

@test "an RSemaphore, an RCountDownLatch, a counter" {
  redis srv set k 2
  left_alone "a string that never expires, perhaps a counter, or Redisson's RSemaphore or RCountDownLatch"
  redis srv set k 1
  left_alone "a string that never expires, perhaps a counter, or Redisson's RSemaphore or RCountDownLatch"
}

@test "a group of Redisson's RMultiLock" {
  redis srv hset k c2E9 "$OWNER" "c2E9:$OWNER:expire_time" 1795303959 "c2E9:$OWNER:lock_count" 1
  redis srv pexpire k 3600000
  left_alone 'a hash that expires in '
  assert_says "perhaps Redisson's RMultiLock of one group"
}

@test "a list" {
  redis srv rpush k 1
  left_alone "a list that never expires, perhaps an application's data"
}

@test "a waiter learns at once that the key no longer is a lock" {
  local pid status=0
  redis srv hset k "$OWNER" 1
  redis srv pexpire k 3600000
  "$RLOCK" run k -- touch started 2>err 3>&- &
  pid=$!
  waits() { [[ $(redis srv zcard 'rlock:queue:{k}') == 1 ]]; }
  wait_until waits
  redis srv set k text
  WAIT_SECONDS=20 wait_until gone "$pid"
  wait "$pid" || status=$?
  [[ $status == 76 && $(redis srv get k) == text && ! -e started ]]
  grep -q 'in use, but not as a lock' err
  redis srv del 'rlock:queue:{k}' 'rlock:waiters:{k}'
}

@test "--java-semaphore: a number is a Java program's semaphore, even while nobody holds a permit" {
  redis srv set k 2
  run -64 --separate-stderr rlock run --java-semaphore k -- true
  assert_says '--java-semaphore needs --slots'
  run -0 rlock run --slots 2 --java-semaphore k -- redis-cli -s "$srv_sock" get k
  [[ $output == 1 && $(redis srv get k) == 2 && $(redis srv pttl k) == -1 ]]
  # One that expires is more likely a SET NX lock.
  redis srv set k 2 px 3600000
  run -76 rlock run --slots 2 --java-semaphore k -- true
  [[ $(redis srv get k) == 2 ]]
}

@test "status --json: the type, the TTL and what it may be" {
  redis srv hset k theme dark
  redis srv pexpire k 3600000
  run -0 --separate-stderr rlock status --json k
  python3 -c '
import json, sys
k, = json.loads(sys.argv[1])
assert k["state"] == "not a lock" and k["other_kind"] == "a hash" and "kind" not in k, k
assert 3500000 < k["expires_in_ms"] <= 3600000 and "application" in k["perhaps"], k' "$output"
  redis srv persist k
  run -0 --separate-stderr rlock status --json k
  [[ $output == *'"expires_in_ms": null'* ]]
  run -0 --separate-stderr rlock status k free
  [[ $output == *'not a lock'*'a hash that never expires'* ]]
}
