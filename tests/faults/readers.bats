# Readers and writers of a lock under fire.
#
# Longer, and with more: SECONDS_UNDER_FIRE=120 WORKERS=40 BATS_TEST_TIMEOUT=300 bats tests/faults/readers.bats

load ../lib/server
load ../lib/chaos

# reader NAME OPTION...: one that runs until it is stopped; its messages go to NAME.err.
reader() {
  "$RLOCK" -v run -s "${@:2}" "$1" -- sh -c 'touch "$0"; exec sleep 120' "$1.started" \
    2>"$1.err" 3>&- &
  readers+=($!)
  wait_until test -e "$1.started"
}

# renewed_by_java NAME MS: leaves the lock as a Java reader's watchdog does; renewed_by_old_java NAME MS: also other
# readers, as before Redisson 4.4.0.
renewed_by_java() { [[ $(redis srv pexpire "$1" "$2") == 1 ]]; }
renewed_by_old_java() {
  local owner
  owner=$(redis srv hkeys "$1" | grep -vx mode)
  [[ $(redis srv pexpire "{$1}:$owner:rwlock_timeout:1" "$2") == 1 ]] && renewed_by_java "$1" "$2"
}

# tries_for NAME: how many seconds it tries to renew before it stops the command.
tries_for() { sed -n 's/.*trying again for \(.*\)s, then the command.*/\1/p' "$1.err"; }

@test "a reader relies on no more time than a Java reader's renewal leaves it, and does not blame the clock" {
  local proxy readers=() name
  proxy_start "$srv_sock"
  reader long --lease 2m
  reader old --lease 2m
  reader short --lease 30s
  renewed_by_old_java old 30000
  renewed_by_java short 15000 # by a lockWatchdogTimeout that is shorter than the lease
  for name in long old short; do WAIT_SECONDS=30 wait_until grep -q 'renewed for' "$name.err"; done
  renewed_by_java long 30000
  kill_off "$proxy"
  for name in long old; do WAIT_SECONDS=30 wait_until grep -q 'trying again for' "$name.err"; done
  # The third one gives up first, because it was told that its time may be short.
  end_mine_wholly "${readers[@]}"
  redis srv flushall # of readers that could not release
  tail -n 4 ./*.err
  # SIGTERM comes 23.2 s after the last renewal was sent.
  [[ $(tries_for long) =~ ^[0-9]+$ ]]
  (($(tries_for long) <= 23))
  not grep 'ran ahead' old.err
  grep -q 'ran ahead.*Java readers shorten the lock' short.err
  grep -q -- 'with --shared, rlock uses a lease of 30s instead of 2m' long.err
}

@test "the lease that a reader has is the one shown and sent; without renewals it is what it asked for" {
  tells 0 '"lease_ms":30000' rlock run -s --lease 2m --status-fd 1 x -- redis-cli -s "$srv_sock" pttl x
  assert_says 'with --shared, rlock uses a lease of 30s instead of 2m'
  (($(grep -x '[0-9]*' <<<"$output") <= 30000))
  tells 0 '"lease_ms":30000' rlock acquire -s --lease 2m --for-pid $$ --json x
  rlock release x --owner "$(sed 's/.*"owner":"\([^"]*\)".*/\1/' <<<"$output")"
  tells 0 '"lease_ms":3600000' rlock acquire -s --lease 1h --json x
  [[ -z $stderr ]]
  rlock release x --owner "$(sed 's/.*"owner":"\([^"]*\)".*/\1/' <<<"$output")"
  tells 64 '--no-renew with --shared allows a lease of at most 30s' rlock run -s --no-renew --lease 2m x -- true
  run -0 --separate-stderr rlock run -s --no-renew --lease 30s x -- true
  tells 0 '"lease_ms":120000' rlock run -x --lease 2m --status-fd 1 x -- true
}

@test "readers and writers killed, stopped and cut off: writers run alone, readers together, and no writer starves" {
  chaos readers "${SECONDS_UNDER_FIRE:-10}" "${WORKERS:-20}"
}
