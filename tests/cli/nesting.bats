# RLOCK_HELD: only processes under the lock share it.

load ../lib/server

teardown() {
  redis srv del x >/dev/null
  assert_clean srv
}

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

@test "RLOCK_HELD for another name, and garbage in it, share nothing and do no harm" {
  held_by_another
  for held in "$FOREIGN y" "$FOREIGN xx" "$FOREIGN" x "$FOREIGN  x" ' ' $'\n\n' $'a\nb' "$FOREIGN {" $'\xff\xfe x' "$(printf "$FOREIGN %*s" 100000 y)"; do
    RLOCK_HELD=$held run -75 --separate-stderr rlock run -n x -- touch started
    [[ ! -e started && $(redis srv hget x "$FOREIGN") == 1 ]]
    RLOCK_HELD=$held run -0 --separate-stderr rlock run -n y -- true
  done
}

@test "simultaneous inner jobs share the lock, and the last one leaves the outer hold" {
  run -0 --separate-stderr rlock run x -- bash -c '
    for i in 1 2 3 4 5; do "$RLOCK" run -n x -- sh -c "touch in.$i; until [ -e go ]; do sleep 0.1; done" & pids+=($!); done
    until [ "$(ls in.* 2>/dev/null | wc -l)" = 5 ]; do sleep 0.1; done
    redis-cli -s "$srv_sock" hvals x
    touch go
    for pid in "${pids[@]}"; do wait "$pid" || exit; done
    redis-cli -s "$srv_sock" hvals x'
  [[ $output == $'6\n1' ]]
}
