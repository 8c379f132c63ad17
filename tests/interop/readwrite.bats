# Readers and writers of rlock and of Redisson's RReadWriteLock on one lock.

load ../lib/common
load interop

# How long Redisson's locks last here without a renewal, so that tests see more than one.
WATCHDOG_MS=3000

setup_file() { interop_setup_file "$WATCHDOG_MS"; }
teardown_file() { interop_teardown_file; }
setup() {
  interop_setup
  use_name "files-$BATS_TEST_NUMBER."
}
teardown() { interop_teardown; }

# use_name NAME: this test's lock. Redisson adds braces to its channel unless the name has some.
use_name() {
  name=$1
  channel="redisson_rwlock:{$name}"
  [[ $name != *'{'* ]] || channel=redisson_rwlock:$name
}

lock_field() { redis r hget "$name" "$1"; }

# gone_by_redisson: its last unlock leaves our notes, with a TTL.
gone_by_redisson() { [[ $(redis r exists "$name") == 0 ]]; }

readers_share() {
  start_job a -s
  wait_until job_runs a
  redisson j read-lock "$name"
  start_job b -s
  wait_until job_runs b
  redisson k read-lock "$name"
  held_by 4
  [[ $(value j read-is-locked "$name") == true ]]
  [[ $(value j write-is-locked "$name") == false ]]

  end_job a
  redisson k read-unlock "$name"
  held_by 2
  end_job b
  redisson j read-unlock "$name"
  gone_by_redisson
  [[ $(value j read-is-locked "$name") == false ]]
}

@test "readers of both share the lock" {
  readers_share
}

@test "a name with a hash tag, and one in UTF-8, mean the same keys to both" {
  use_name "{files}-$BATS_TEST_NUMBER."
  readers_share
  use_name "früh-作业-$BATS_TEST_NUMBER."
  readers_share
}

@test "a writer of Redisson keeps our readers and writers away, and its release wakes them in turn" {
  redisson j write-lock "$name"
  run -75 rlock run -n -s "$name" -- true
  run -75 rlock run -n -x "$name" -- true
  start_job reader -s
  wait_until jobs_wait 1
  start_job other_reader -s
  wait_until jobs_wait 2
  start_job writer -x
  wait_until jobs_wait 3
  not job_runs reader

  redisson j write-unlock "$name"
  local unlocked
  unlocked=$(now_ms)
  wait_until job_runs reader
  job_wakes other_reader "$unlocked"
  not job_runs writer
  held_by 2

  end_job reader
  unlocked=$(now_ms)
  end_job other_reader
  job_wakes writer "$unlocked"
  end_job writer
  wait_until lock_free
}

@test "our writer keeps Redisson's readers and writers away, and its release wakes them" {
  local ended
  start_job writer -x
  wait_until job_runs writer
  [[ $(value j read-trylock "$name" 0 30000) == false ]]
  [[ $(value j write-trylock "$name" 0 30000) == false ]]
  [[ $(value j write-is-locked "$name") == true ]]
  [[ $(value j read-is-locked "$name") == false ]]
  redisson_send j read-lock "$name"
  redisson_send k read-lock "$name"
  wait_until waiters 1
  not redisson_replies j

  ended=$(now_ms)
  end_job writer
  wait_until redisson_replies j
  redisson_wakes k "$ended"
  redisson j read-unlock "$name"
  redisson k read-unlock "$name"

  start_job writer -x
  wait_until job_runs writer
  redisson_send j write-lock "$name"
  wait_until waiters 1
  not redisson_replies j
  ended=$(now_ms)
  end_job writer
  redisson_wakes j "$ended"
  redisson j write-unlock "$name"
  gone_by_redisson
}

@test "our readers keep Redisson's writer away, and the last one's release wakes it" {
  start_job a -s
  start_job b -s
  wait_until job_runs a
  wait_until job_runs b
  [[ $(value j write-trylock "$name" 0 30000) == false ]]
  redisson_send j write-lock "$name"
  wait_until waiters 1
  end_job a
  held_by 1
  not redisson_replies j
  local ended
  ended=$(now_ms)
  end_job b
  redisson_wakes j "$ended"
  [[ $(lock_field "$(reply owner):write") == 1 ]]
  redisson j write-unlock "$name"
}

@test "Redisson's reader keeps our writer away until it has released every hold, which wakes it" {
  redisson j read-lock "$name"
  redisson j read-lock "$name"
  start_job writer -x
  wait_until waiters 1
  run -75 rlock run -n -x "$name" -- true
  redisson j read-unlock "$name"
  [[ $(lock_field "$(reply owner)") == 1 ]]
  not job_runs writer
  redisson j read-unlock "$name"
  job_wakes writer "$(now_ms)"
  end_job writer
}

@test "neither releases the other's holds" {
  local ours theirs
  ours=$(rlock acquire -s "$name" --lease 1m)
  redisson j read-lock "$name"
  theirs=$(reply owner)
  not redisson k read-unlock "$name"
  [[ $(reply error) == IllegalMonitorStateException ]]
  not redisson k write-unlock "$name"
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

  redisson j write-lock "$name"
  run -76 rlock release "$name" --owner "$ours"
  run -76 rlock renew "$name" --owner "$ours"
  redisson j write-unlock "$name"
  ours=$(rlock acquire -x "$name" --lease 1m)
  not redisson j write-unlock "$name"
  [[ $(reply error) == IllegalMonitorStateException ]]
  not redisson j read-unlock "$name"
  [[ $(lock_field "$ours:write") == 1 ]]
  rlock release "$name" --owner "$ours"
  wait_until lock_free
}

@test "what Redisson holds twice, as a reader or writer, it still holds twice after we were there" {
  redisson j read-lock "$name"
  redisson j read-lock "$name"
  rlock run -s "$name" -- true
  local ours
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

@test "one of our readers crashes: its time runs out, while Redisson's reader continues" {
  needs_redisson 3.45.1 'its renewals keep every reader alive'
  local crashed
  start_job dead -s --lease 2s
  wait_until job_runs dead
  redisson j read-lock "$name"
  redisson_send k write-lock "$name"
  wait_until waiters 1
  held_by 2
  crashed=$(now_ms)
  crash_job dead
  wait_until held_by 1
  echo "# gone after $(($(now_ms) - crashed)) ms, with a lease of 2000" >&3
  not redisson_replies k
  redisson j read-unlock "$name"
  redisson_wakes k "$(now_ms)"
  redisson k write-unlock "$name"

  # Alone, because Redisson asks again when the lease is over.
  start_job dead -s --lease 2s
  wait_until job_runs dead
  redisson_send k write-lock "$name"
  wait_until waiters 1
  crashed=$(now_ms)
  crash_job dead
  wait_until redisson_replies k
  echo "# a writer of Redisson has it after $(($(now_ms) - crashed)) ms" >&3
  redisson k write-unlock "$name"
}

@test "a Redisson reader's time runs out, while ours continues" {
  start_job reader -s
  wait_until job_runs reader
  redisson j read-lock-lease "$name" 1500
  start_job writer -x
  wait_until jobs_wait 1
  held_by 2
  wait_until held_by 1
  [[ $(redis r hget "$name" mode) == read ]]
  not job_runs writer
  local ended
  ended=$(now_ms)
  end_job reader
  job_wakes writer "$ended"
  not redisson j read-unlock "$name"
  [[ $(value k write-is-locked "$name") == true ]]
  end_job writer
  wait_until lock_free
}

@test "both renew beside each other" {
  start_job reader -s --lease 2s
  wait_until job_runs reader
  redisson j read-lock "$name"
  local began
  began=$(now_ms)
  # One and a half times either lease.
  until past $((WATCHDOG_MS * 3 / 2)); do
    held_by 2
    run -75 rlock run -n -x "$name" -- true
    [[ $(value k write-trylock "$name" 0 1000) == false ]]
  done
  end_job reader
  redisson j read-unlock "$name"
  gone_by_redisson
}

@test "a writer crashes, on either side: the other one gets the lock when the lease is over" {
  local began
  redisson j write-lock-lease "$name" 1500
  began=$(now_ms)
  start_job reader -s
  wait_until job_runs reader
  echo "# our reader has it after $(($(now_ms) - began)) of 1500 ms" >&3
  woken_since $((began + 1500))
  end_job reader

  start_job dead -x --lease 2s
  wait_until job_runs dead
  redisson_send j read-lock "$name"
  wait_until waiters 1
  began=$(now_ms)
  crash_job dead
  redisson_wakes j $((began + 2000))
  redisson j read-unlock "$name"
}

@test "a Redisson writer that continues as a reader lets our readers in, but no writer" {
  redisson j write-lock "$name"
  redisson j read-lock "$name"
  run -75 rlock run -n -s "$name" -- true
  run -0 rlock status "$name"
  assert_says "held for writing"
  start_job reader -s
  wait_until jobs_wait 1
  redisson j write-unlock "$name"
  local unlocked
  unlocked=$(now_ms)
  # Redisson notifies nobody.
  wait_until job_runs reader
  echo "# our reader is in $(($(now_ms) - unlocked)) ms later" >&3
  held_by 2
  start_job writer -x
  wait_until jobs_wait 1
  end_job reader
  not job_runs writer
  redisson j read-unlock "$name"
  job_wakes writer "$(now_ms)"
  end_job writer
}

# Redisson's renewal of a reader sets the TTL of the whole lock, 30 s by default. If that reader crashes then, the lock
# expires under our readers, so they rely on no more.
@test "a renewal by Redisson sets the lock's TTL, and our reader relies on no more than 30 s" {
  needs_redisson 4.4.0 'its renewals set the time of every reader'
  start_job reader -s --lease 2m
  wait_until job_runs reader
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
  local reader owner
  reader=$(reply owner)
  owner=$(rlock acquire -s "$name" --lease 1m)
  run -0 rlock status --json "$name"
  python3 -c '
import json, sys
lock, = json.loads(sys.argv[1])
assert lock["kind"] == "read-write lock" and lock["number_of_holders"] == 2
theirs, = (h for h in lock["holders"] if h["owner"] == sys.argv[2])
ours, = (h for h in lock["holders"] if h["owner"] == sys.argv[3])
assert (theirs["holds"], theirs["mode"], theirs["taken_by_rlock"]) == (2, "read", False)
assert (ours["holds"], ours["mode"], ours["taken_by_rlock"]) == (1, "read", True)
assert 0 < theirs["expires_in_ms"] <= int(sys.argv[4]) < ours["expires_in_ms"] <= 60000' \
    "$output" "$reader" "$owner" "$WATCHDOG_MS"
  run -0 rlock status "$name"
  assert_says "$reader"
  redisson j read-unlock "$name"
  redisson j read-unlock "$name"
  rlock release "$name" --owner "$owner"

  redisson j write-lock "$name"
  run -0 rlock status --json "$name"
  assert_says '"mode": "write"'
  # Redisson's name for a writer is its reader's with a suffix.
  assert_says "\"owner\": \"$(reply owner)\""
  run -0 rlock status "$name"
  assert_says "$(reply owner)  (not taken by rlock)"
  redisson j write-unlock "$name"
  run -1 rlock status --is-held "$name"
}

@test "force-unlock by rlock takes the lock from Redisson, and wakes a waiting Redisson thread" {
  local ours forced
  redisson j read-lock "$name"
  redisson j read-lock "$name"
  redisson k read-lock "$name"
  ours=$(rlock acquire -s "$name" --lease 1m)
  redisson_send w write-lock "$name"
  wait_until waiters 1
  forced=$(now_ms)
  rlock force-unlock --yes "$name"
  redisson_wakes w "$forced"
  run -76 rlock release "$name" --owner "$ours"
  not redisson j read-unlock "$name"
  not redisson k read-unlock "$name"
  [[ $(redis r hlen "$name") == 2 ]]

  redisson_send j read-lock "$name"
  redisson_send k read-lock "$name"
  wait_until waiters 1
  forced=$(now_ms)
  rlock force-unlock --yes "$name"
  wait_until redisson_replies j
  redisson_wakes k "$forced"
  not redisson w write-unlock "$name"
  [[ $(reply error) == IllegalMonitorStateException ]]
  redisson j read-unlock "$name"
  redisson k read-unlock "$name"
}

@test "force-unlock --owner takes it from one Redisson reader, and from no other" {
  redisson j read-lock "$name"
  local first
  first=$(reply owner)
  redisson k read-lock "$name"
  rlock force-unlock --yes --owner "$first" "$name"
  [[ $(redis r hgetall "$name") == $'mode\nread\n'"$(reply owner)"$'\n1' ]]
  redisson k read-unlock "$name"
}

@test "force-unlock takes the lock from a Redisson writer that also reads" {
  redisson j write-lock "$name"
  redisson j read-lock "$name"
  rlock force-unlock --yes "$name"
  run -1 rlock status --is-held "$name"
}

@test "forceUnlock by Redisson takes the lock from rlock, wakes waiters, and has the job stopped" {
  local forced
  start_job reader -s --lease 3s
  wait_until job_runs reader
  [[ $(value j write-force-unlock "$name") == false ]]
  held_by 1
  start_job writer -x --lease 3s
  wait_until jobs_wait 1
  [[ $(value j read-force-unlock "$name") == true ]]
  forced=$(now_ms)
  job_wakes writer "$forced"
  job_ends reader 74

  [[ $(value j read-force-unlock "$name") == false ]]
  held_by 1
  start_job reader -s
  wait_until jobs_wait 1
  [[ $(value j write-force-unlock "$name") == true ]]
  forced=$(now_ms)
  job_wakes reader "$forced"
  job_ends writer 74
  held_by 1
  end_job reader
  wait_until lock_free
}

@test "a client for a plain lock does not share the name" {
  redisson j lock "$name"
  run -76 rlock run -n -s "$name" -- true
  redisson j unlock "$name"
  redisson j read-lock "$name"
  run -76 rlock run -n "$name" -- true
  run -76 rlock run -n --slots 2 "$name" -- true
  redisson j read-unlock "$name"
}

# turns VERB MODE ...: Redisson's VERB among jobs, one in each MODE.
turns() {
  local verb=$1 owner
  shift
  give_back() { redisson turns "${verb/lock/unlock}" "$name"; }
  owner=$(rlock acquire -x "$name" --lease 1m)
  queue_jobs "$@"
  redisson_send turns "$verb" "$name"
  wait_until waiters 2
  rlock release "$name" --owner "$owner"
  redisson_gets_turns "$verb" give_back 5
}

@test "Redisson does not starve behind rlock's queue" {
  turns write-lock -x -x -x -x -x -x -x -x
  turns read-lock -x -x -x -x -x -x -x -x
  turns write-lock -x -s -x -s -s -x -s -x
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
