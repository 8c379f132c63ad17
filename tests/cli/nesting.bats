#!/usr/bin/env bats
# RLOCK_HELD: only processes under the lock share it.

load ../lib/common

FOREIGN=11111111-2222-3333-4444-555555555555:1

setup_file() { redis_start srv; }
setup() {
  RLOCK_URL=$(redis_url srv)
  export RLOCK_URL
  cd "$BATS_TEST_TMPDIR" || return
}
teardown() {
  redis srv del x >/dev/null
  assert_clean srv
}
teardown_file() { redis_stop srv; }

held_by_another() {
  redis srv hset x "$FOREIGN" 1
  redis srv pexpire x 60000
} >/dev/null

@test "a wait inside another lock says which locks are held meanwhile" {
  held_by_another
  # Two jobs that nest in the opposite order wait for each other forever.
  rlock run a -- "$RLOCK" run b -- "$RLOCK" run -w 10m x -- touch started 2>err 3>&- &
  local job=$!
  wait_until grep -qF 'meanwhile you hold a, b' err
  [[ $(grep 'waiting for x' err) == *"$FOREIGN"*'; meanwhile you hold a, b' ]]
  redis srv del x
  wait "$job"
  [[ -e started ]]
}

@test "a wait outside of other locks does not mention any" {
  held_by_another
  RLOCK_HELD='22222222-2222-3333-4444-555555555555:1 x' rlock run -v -w 1s x -- true 2>err || true
  grep -q 'waiting for x' err
  run -1 grep meanwhile err
}

@test "RLOCK_HELD of an owner that has lost the lock shares nothing" {
  held_by_another
  RLOCK_HELD='22222222-2222-3333-4444-555555555555:1 x' run -75 --separate-stderr rlock run -n x -- touch started
  [[ ! -e started && $(redis srv hgetall x) == "$FOREIGN"$'\n1' ]]
}

@test "RLOCK_HELD of an owner that has lost the lock, and the lock is free: a new owner takes it" {
  local stale='22222222-2222-3333-4444-555555555555:1'
  RLOCK_HELD="$stale x" run -0 --separate-stderr rlock run -n x -- sh -c 'redis-cli -s "$srv_sock" hgetall x; echo "$RLOCK_OWNER"; echo "$RLOCK_HELD"'
  [[ ${lines[0]} != "$stale" && ${lines[1]} == 1 && ${lines[2]} == "${lines[0]}" && ${lines[-1]} == "${lines[0]} x" ]]
}

@test "inside a stale RLOCK_HELD, the job's own nested runs share its lock" {
  RLOCK_HELD='22222222-2222-3333-4444-555555555555:1 x' run -0 --separate-stderr rlock run -n x -- \
    "$RLOCK" run -n x -- redis-cli -s "$srv_sock" hvals x
  [[ $output == 2 ]]
}

@test "RLOCK_HELD for another name shares nothing" {
  held_by_another
  local held
  for held in "$FOREIGN y" "$FOREIGN xx" "$FOREIGN" x "$FOREIGN  x"; do
    RLOCK_HELD=$held run -75 --separate-stderr rlock run -n x -- touch started
    [[ ! -e started && $(redis srv hget x "$FOREIGN") == 1 ]]
  done
}

@test "garbage in RLOCK_HELD shares nothing and does no harm" {
  held_by_another
  local held
  for held in ' ' $'\n\n' $'a\nb' "$FOREIGN {" $'\xff\xfe x' "$(printf "$FOREIGN %*s" 100000 y)"; do
    RLOCK_HELD=$held run -75 --separate-stderr rlock run -n x -- touch started
    [[ ! -e started ]]
    RLOCK_HELD=$held run -0 --separate-stderr rlock run -n y -- true
  done
}

@test "names with spaces nest, too" {
  run -0 --separate-stderr rlock run 'a  b' -- "$RLOCK" run ' c ' -- "$RLOCK" run -n 'a  b' -- "$RLOCK" run -n ' c ' -- \
    sh -c 'redis-cli -s "$srv_sock" hvals "a  b"; redis-cli -s "$srv_sock" hvals " c "'
  [[ $output == $'2\n2' ]]
}

@test "the inner run's end neither wakes waiters nor ends the outer hold" {
  run -0 --separate-stderr rlock run x -- sh -c '"$RLOCK" run x -- true; env -u RLOCK_HELD "$RLOCK" run -n x -- touch started; echo $?'
  [[ $output == 75 && ! -e started ]]
}

@test "the inner status passes through both runs, also death by a signal" {
  run -41 rlock run x -- "$RLOCK" run x -- sh -c 'exit 41'
  run -143 rlock run x -- "$RLOCK" run x -- sh -c 'kill -s TERM $$'
  run -127 rlock run x -- "$RLOCK" run x -- ./none
}

@test "simultaneous inner jobs share the lock, and the last one leaves the outer hold" {
  run -0 --separate-stderr rlock run x -- bash -c '
    for i in 1 2 3 4 5; do "$RLOCK" run -n x -- sh -c "touch in.$i; until [ -e go ]; do sleep 0.02; done" & pids+=($!); done
    until [ "$(ls in.* 2>/dev/null | wc -l)" = 5 ]; do sleep 0.02; done
    redis-cli -s "$srv_sock" hvals x
    touch go
    for pid in "${pids[@]}"; do wait "$pid" || exit; done
    redis-cli -s "$srv_sock" hvals x'
  [[ $output == $'6\n1' ]]
}

@test "a longer lease of the inner job is granted, a shorter one changes nothing" {
  run -0 --separate-stderr rlock run --lease 20s x -- "$RLOCK" run --lease 10m x -- redis-cli -s "$srv_sock" pttl x
  ((output > 500000))
  run -0 --separate-stderr rlock run --lease 10m x -- "$RLOCK" run --lease 20s x -- redis-cli -s "$srv_sock" pttl x
  ((output > 500000))
}
