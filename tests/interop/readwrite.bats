# Readers and writers of rlock and of Redisson's RReadWriteLock on one lock.

load interop

# How long Redisson's locks last here without a renewal, so that tests see more than one.
WATCHDOG_MS=3000
KIND=readwrite

lock_field() { redis r hget "$name" "$1"; }

# gone_by_redisson: its last unlock leaves our notes, with a TTL.
gone_by_redisson() { [[ $(redis r exists "$name") == 0 ]]; }

@test "readers of both share the lock, also with a hash tag and UTF-8 in the name" {
  for one in "$name" "früh-{作业}-$BATS_TEST_NUMBER."; do
    use_kind readwrite "$one"
    running_job a -s
    redisson j read-lock "$name"
    running_job b -s
    redisson k read-lock "$name"
    held_by 4
    [[ $(value j read-is-locked "$name") == true && $(value j write-is-locked "$name") == false ]]

    end_job a
    redisson k read-unlock "$name"
    held_by 2
    end_job b
    redisson j read-unlock "$name"
    gone_by_redisson
    [[ $(value j read-is-locked "$name") == false ]]
  done
}

@test "a writer of either side keeps the other's readers and writers away, and its release wakes them in turn" {
  redisson j write-lock "$name"
  run -75 rlock run -n -s "$name" -- true
  run -75 rlock run -n -x "$name" -- true
  waiting_job reader -s
  waiting_job other_reader -s
  waiting_job writer -x
  redisson j write-unlock "$name"
  job_wakes reader
  job_wakes other_reader
  not job_runs writer
  held_by 2

  end_job reader
  end_job other_reader
  job_wakes writer
  [[ $(value j read-trylock "$name" 0 30000) == false && $(value j write-trylock "$name" 0 30000) == false ]]
  [[ $(value j write-is-locked "$name") == true && $(value j read-is-locked "$name") == false ]]
  redisson_throws j read-unlock "$name"
  redisson_waits k read-lock "$name"
  redisson_waits j read-lock "$name"
  end_job writer
  redisson_wakes j
  redisson_wakes k
  redisson j read-unlock "$name"
  redisson k read-unlock "$name"
  gone_by_redisson
}

@test "readers of either side keep the other's writer away, until the last hold is released, which wakes it" {
  running_job a -s
  running_job b -s
  [[ $(value j write-trylock "$name" 0 30000) == false ]]
  redisson_waits j write-lock "$name"
  end_job a
  held_by 1
  not redisson_replies j
  end_job b
  redisson_wakes j
  [[ $(lock_field "$(reply owner):write") == 1 ]]
  redisson j write-unlock "$name"

  redisson j read-lock "$name"
  redisson j read-lock "$name"
  waiting_job writer -x
  run -75 rlock run -n -x "$name" -- true
  redisson j read-unlock "$name"
  [[ $(lock_field "$(reply owner)") == 1 ]]
  not job_runs writer
  redisson j read-unlock "$name"
  job_wakes writer
  end_job writer
}

@test "neither releases the other's holds" {
  ours=$(rlock acquire -s "$name" --lease 1m)
  redisson j read-lock "$name"
  theirs=$(reply owner)
  redisson_throws k read-unlock "$name"
  redisson_throws k write-unlock "$name"
  run -76 rlock release "$name" --owner "$theirs.1"
  held_by 2

  rlock release "$name" --owner "$ours"
  [[ $(redis r hgetall "$name") == $'mode\nread\n'"$theirs"$'\n1' ]]
  run -76 rlock release "$name" --owner "$ours"
  run -76 rlock renew "$name" --owner "$ours"

  ours=$(rlock acquire -s "$name" --lease 1m)
  redisson j read-unlock "$name"
  [[ $(redis r hgetall "$name") == $'mode\nread\n'"$ours"$'\n1' ]]
  # If Redisson has released, the lock lasts as long as we were promised.
  (($(redis r pttl "$name") > 50000))
  rlock release "$name" --owner "$ours"
  wait_until lock_free
}

@test "what Redisson holds twice, as a reader or writer, it still holds twice after we were there" {
  redisson j read-lock "$name"
  redisson j read-lock "$name"
  rlock run -s "$name" -- true
  ours=$(rlock acquire -s "$name" --lease 2s)
  rlock renew "$name" --owner "$ours"
  rlock release "$name" --owner "$ours"
  run -75 rlock run -n -x "$name" -- true
  run -75 rlock run -w 100ms -x "$name" -- true
  [[ $(value j read-holds "$name") == 2 ]]
  redisson j read-unlock "$name"
  redisson j read-unlock "$name"
  gone_by_redisson

  redisson j write-lock "$name"
  redisson j write-lock "$name"
  run -75 rlock run -n -s "$name" -- true
  run -75 rlock run -w 100ms -x "$name" -- true
  [[ $(value j write-holds "$name") == 2 ]]
  redisson j write-unlock "$name"
  run -75 rlock run -n -s "$name" -- true
  redisson j write-unlock "$name"
  gone_by_redisson
}

@test "a reader's time runs out, on either side, while the other's reader continues" {
  needs_redisson 3.45.1 'its renewals keep every reader alive'
  running_job dead -s --lease 5s
  redisson j read-lock "$name"
  redisson_waits k write-lock "$name"
  held_by 2
  crash_job dead
  wait_until held_by 1
  not redisson_replies k
  redisson j read-unlock "$name"
  redisson_wakes k
  redisson k write-unlock "$name"

  # Alone, because Redisson asks again when the lease is over.
  running_job dead -s --lease 5s
  redisson_waits k write-lock "$name"
  crash_job dead
  wait_until redisson_replies k
  redisson k write-unlock "$name"

  running_job reader -s
  redisson j read-lock-lease "$name" 600000
  waiting_job writer -x
  held_by 2
  redis r pexpire "{$name}:$(reply owner):rwlock_timeout:1" 1
  wait_until held_by 1
  [[ $(lock_field mode) == read ]]
  not job_runs writer
  end_job reader
  job_wakes writer
  redisson_throws j read-unlock "$name"
  [[ $(value k write-is-locked "$name") == true ]]
  end_job writer
  wait_until lock_free
}

@test "both renew beside each other" {
  running_job reader -s --lease 5s # which a busy machine can keep
  redisson j read-lock "$name"
  began=$(now_ms)
  # One and a half times the longer lease.
  until past 7500; do
    held_by 2
    run -75 rlock run -n -x "$name" -- true
    [[ $(value k write-trylock "$name" 0 1000) == false ]]
  done
  end_job reader
  redisson j read-unlock "$name"
  gone_by_redisson
}

@test "a Redisson writer that continues as a reader lets our readers in, but no writer, and force-unlock takes both" {
  redisson j write-lock "$name"
  redisson j read-lock "$name"
  run -75 rlock run -n -s "$name" -- true
  tells 0 "held for writing" rlock status "$name"
  waiting_job reader -s
  redisson j write-unlock "$name"
  # Redisson notifies nobody.
  wait_until job_runs reader
  held_by 2
  waiting_job writer -x
  end_job reader
  not job_runs writer
  redisson j read-unlock "$name"
  job_wakes writer
  end_job writer

  redisson j write-lock "$name"
  redisson j read-lock "$name"
  rlock force-unlock --yes "$name"
  run -1 rlock status --is-held "$name"
}

# Redisson's renewal of a reader sets the TTL of the whole lock, 30 s by default. If that reader crashes then, the lock
# expires under our readers, so they rely on no more.
@test "a renewal by Redisson sets the lock's TTL, and our reader relies on no more than 30 s" {
  needs_redisson 4.4.0 'its renewals set the time of every reader'
  running_job reader -s --lease 2m
  (($(redis r pttl "$name") <= 30000))
  redisson j read-lock "$name"
  wait_until lasts_less
  redisson j read-unlock "$name"
  wait_until not lasts_less
  end_job reader
  not grep 'ran ahead' "$BATS_TEST_TMPDIR/reader.log"
}
lasts_less() { (($(redis r pttl "$name") <= WATCHDOG_MS)); }

@test "status shows holders that are not rlock" {
  redisson j read-lock "$name"
  redisson j read-lock "$name"
  reader=$(reply owner)
  owner=$(rlock acquire -s "$name" --lease 1m)
  held_by 2
  tells 0 '"kind": "read-write lock"' rlock status --json "$name"
  holder_shows "$reader" 2 read no 0 "$WATCHDOG_MS"
  holder_shows "$owner" 1 read yes "$WATCHDOG_MS" 60000
  tells 0 "$reader" rlock status "$name"
  redisson j read-unlock "$name"
  redisson j read-unlock "$name"
  rlock release "$name" --owner "$owner"

  redisson j write-lock "$name"
  # Redisson's name for a writer is its reader's with a suffix.
  holder_shows "$(reply owner)" 1 write no 0 "$WATCHDOG_MS"
  tells 0 "$(reply owner)  (not taken by rlock)" rlock status "$name"
  redisson j write-unlock "$name"
  run -1 rlock status --is-held "$name"
}

@test "force-unlock by rlock takes the lock from all readers, or from one with --owner, and wakes all readers that wait" {
  redisson j read-lock "$name"
  first=$(reply owner)
  redisson k read-lock "$name"
  rlock force-unlock --yes --owner "$first" "$name"
  [[ $(redis r hgetall "$name") == $'mode\nread\n'"$(reply owner)"$'\n1' ]]
  redisson k read-unlock "$name"

  redisson j read-lock "$name"
  redisson j read-lock "$name"
  redisson k read-lock "$name"
  ours=$(rlock acquire -s "$name" --lease 1m)
  redisson_waits w write-lock "$name"
  rlock force-unlock --yes "$name"
  redisson_wakes w
  run -76 rlock release "$name" --owner "$ours"
  redisson_throws j read-unlock "$name"
  redisson_throws k read-unlock "$name"
  [[ $(redis r hlen "$name") == 2 ]]

  redisson_waits j read-lock "$name"
  redisson_waits k read-lock "$name"
  rlock force-unlock --yes "$name"
  redisson_wakes j
  redisson_wakes k
  redisson_throws w write-unlock "$name"
  redisson j read-unlock "$name"
  redisson k read-unlock "$name"
}

@test "forceUnlock by Redisson takes the lock only from holders of its own mode, wakes waiters, and has the job stopped" {
  running_job reader -s --lease 3s
  [[ $(value j write-force-unlock "$name") == false ]]
  held_by 1
  waiting_job writer -x --lease 3s
  [[ $(value j read-force-unlock "$name") == true ]]
  job_wakes writer
  job_ends reader 74
  [[ $(value j read-force-unlock "$name") == false ]]
  held_by 1
  end_job writer
  wait_until lock_free
}

@test "both compete for one lock: no writer beside a reader, never two writers" {
  local inside=$BATS_TEST_TMPDIR/inside jobs=() rounds=8 round mode pid
  mkdir "$inside"
  # A writer finds the folder empty; a reader finds no writer there.
  cat >"$BATS_TEST_TMPDIR/work" <<'WORK'
set -e
if [ "$1" = -x ]; then
  [ -z "$(ls "$3")" ]
else
  [ ! -e "$3/writer" ]
fi
[ "$1" = -s ] && mine=$3/reader-$2 || mine=$3/writer
mkdir "$mine"
sleep 0.02
rmdir "$mine"
WORK
  for mode in -s -x; do
    for ((round = 0; round < rounds; round++)); do
      "$RLOCK" run -q "$mode" "$name" -- sh "$BATS_TEST_TMPDIR/work" "$mode" "$mode" "$inside" || exit
    done </dev/null >"$BATS_TEST_TMPDIR/job$mode.log" 2>&1 3>&- &
    jobs+=($!)
  done
  for ((round = 0; round < rounds; round++)); do
    redisson j read-lock "$name"
    sh "$BATS_TEST_TMPDIR/work" -s java "$inside"
    redisson j read-unlock "$name"
    redisson j write-lock "$name"
    sh "$BATS_TEST_TMPDIR/work" -x java "$inside"
    redisson j write-unlock "$name"
  done
  for pid in "${jobs[@]}"; do wait "$pid"; done
  wait_until lock_free
}
