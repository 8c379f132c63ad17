#!/usr/bin/env bats
# rlock --like LIBRARY and the real libraries on one lock: each pair both ways (pairs.py), and all of them on one
# counter. README.md explains the variables INTEROP_ALL, SAMPLES, SECTIONS and INTEROP_TABLE.

load ../lib/common
load ../lib/quorum
load clients

LIBRARIES='redis-py redlock-py pottery python-redis-lock redlock4 redlock5 ioredis-lock redis-semaphore spring spring-pubsub shedlock redsync bsm-redislock rslock redlock-rb redlock-net laravel symfony'

# Go and Rust take minutes to build, and need compilers that no distribution has, so they are only built on request.
by_hand() { [[ $1 == @(go|rust) && -z ${INTEROP_ALL:-} ]]; }

setup_file() {
  local language library i=0
  redis_start load
  for language in python php node java go rust; do
    by_hand $language && continue
    clients_install $language >"$BATS_FILE_TMPDIR/missing.$language" && rm "$BATS_FILE_TMPDIR/missing.$language" && continue
    cat "$BATS_FILE_TMPDIR/missing.$language" >&2
    # A CI run that tested nothing would look like one that passed. Ubuntu does not have PHP's libraries.
    [[ -z ${CI:-} || $language == php && $(. /etc/os-release && echo "$ID") != debian ]] || return 1
  done
  # All at once, because they mostly wait. Each has its own server.
  for library in $LIBRARIES; do
    missing "$library" && continue
    local port
    port=$(redis_free_port)
    redis_start "pair$i" --port "$port" --bind 127.0.0.1
    run_pair "$library" "redis://127.0.0.1:$port" &
    i=$((i + 1))
  done
  export PAIRS=$i
}
teardown_file() {
  local i library
  redis_stop load
  for ((i = 0; i < PAIRS; i++)); do redis_stop "pair$i"; done
  if [[ -n ${INTEROP_TABLE:-} ]]; then
    for library in $LIBRARIES; do grep '^|' "$BATS_FILE_TMPDIR/pair.$library" || true; done |
      python3 "$TESTS_DIR/interop/write_table.py" "$TESTS_DIR/../docs/interop.md"
  fi
}
setup() { cd "$BATS_TEST_TMPDIR" || return; }

missing() {
  local language
  language=$(language_of "$1")
  by_hand "$language" || [[ -e $BATS_FILE_TMPDIR/missing.$language || -e $BATS_FILE_TMPDIR/missing.python ]]
}
run_pair() {
  local status=0 driver python
  exec 3>&-
  client "$1"
  python=$(clients_folder)/python/bin/python
  "$python" "$TESTS_DIR/interop/pairs.py" "$1" "$2" "${driver[@]}" >"$BATS_FILE_TMPDIR/pair.$1" 2>&1 || status=$?
  echo "$status" >"$BATS_FILE_TMPDIR/status.$1"
}

# pair LIBRARY: its checks have ended without finding anything.
pair() {
  local language
  language=$(language_of "$1")
  by_hand "$language" && skip "not tested: rlock and $1. To test it, with a current compiler: INTEROP_ALL=1"
  ! missing "$1" || skip "$(cat "$BATS_FILE_TMPDIR/missing.$language" "$BATS_FILE_TMPDIR/missing.python" 2>/dev/null | head -n 1)"
  WAIT_SECONDS=280 wait_until test -s "$BATS_FILE_TMPDIR/status.$1"
  cat "$BATS_FILE_TMPDIR/pair.$1"
  [[ $(cat "$BATS_FILE_TMPDIR/status.$1") == 0 ]]
  sed -n "s/^woken/# $1: woken/p" "$BATS_FILE_TMPDIR/pair.$1" >&3
}

# on_one_counter KEY ADDRESSES LIBRARY ...: each library, and two loops of rlock, add 1 to a number $SECTIONS times.
on_one_counter() {
  local key=$1 addresses=$2 library sections=${SECTIONS:-15} pids=() parts=() pid failed=
  shift 2
  echo -n 0 >counter
  for library; do
    missing "$library" && continue
    client "$library"
    # shellcheck disable=SC2086 # a list of addresses
    echo "sections $key $sections counter 60000" | "${driver[@]}" "$library" $addresses >"out.$library" 2>&1 3>&- &
    pids+=($!)
    parts+=("$library")
  done
  ((${#parts[@]} >= 2)) || skip 'not tested: none of the libraries is there'
  for library in rlock-1 rlock-2; do
    # shellcheck disable=SC2016 # for the shells of the command
    RLOCK_URL=$addresses bash -c 'for ((n = 0; n < $2; n++)); do
        "$RLOCK" run -q --like redlock "$1" -- sh -c "read -r number <counter; sleep 0.001; printf %s \$((number + 1)) >counter" ||
          exit
      done' bash "$key" "$sections" >"out.$library" 2>&1 3>&- &
    pids+=($!)
    parts+=("$library")
  done
  for pid in "${pids[@]}"; do wait "$pid" || failed=1; [[ -z $failed ]] || end_mine "${pids[@]}"; done
  echo "# ${parts[*]}: $(cat counter) of $((${#parts[@]} * sections)) sections" >&3
  cat out.*
  [[ -z $failed && $(cat counter) == $((${#parts[@]} * sections)) ]]
}

# First, because the pairs continue meanwhile.
@test "one at a time, and no section is lost: five libraries or more, and rlock" {
  on_one_counter counter "unix://$load_sock" redis-py redlock5 ioredis-lock redlock4 redlock-py redsync bsm-redislock rslock \
    redlock-rb redlock-net laravel
}

# Others compare the value before they know that it is theirs, and fail on a sorted set.
@test "the same with Symfony" {
  on_one_counter counter "unix://$load_sock" symfony laravel
}

@test "the same on three servers, with a majority" {
  quorum_start 3
  on_one_counter counter "$RLOCK_URL" redlock5 redlock4 redlock-py redsync rslock redlock-rb redlock-net
  quorum_stop
}

@test "redis-py" { pair redis-py; }
@test "redlock-py" { pair redlock-py; }
@test "pottery" { pair pottery; }
@test "python-redis-lock" { pair python-redis-lock; }
@test "node redlock 4" { pair redlock4; }
@test "node redlock 5" { pair redlock5; }
@test "ioredis-lock" { pair ioredis-lock; }
@test "redis-semaphore" { pair redis-semaphore; }
@test "Spring's RedisLockRegistry" { pair spring; }
@test "Spring's RedisLockRegistry in pub/sub mode" { pair spring-pubsub; }
@test "ShedLock" { pair shedlock; }
@test "redsync" { pair redsync; }
@test "bsm/redislock" { pair bsm-redislock; }
@test "rslock" { pair rslock; }
@test "redlock-rb, by its wire form" { pair redlock-rb; }
@test "RedLock.net, by its wire form" { pair redlock-net; }
@test "Laravel" { pair laravel; }
@test "Symfony" { pair symfony; }
