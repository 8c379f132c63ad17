# Slots of rlock and permits of Redisson's RPermitExpirableSemaphore, counted together.

load ../lib/common
load interop

setup_file() { interop_setup_file; }
teardown_file() { interop_teardown_file; }
setup() {
  interop_setup
  needs_redisson 3.17.0 'it keeps permits in another form'
  use_name "seats-$BATS_TEST_NUMBER."
}
teardown() { interop_teardown; }

# use_name NAME: this test's semaphore. Redisson adds braces to its channel unless the name has some.
use_name() {
  name=$1
  channel="redisson_sc:{$name}" permits="{$name}:timeout"
  [[ $name != *'{'* ]] || channel=redisson_sc:$name permits=$name:timeout
}

# seats FREE ALL: as Redisson sees them.
seats() {
  [[ $(value count available-permits "$name") == "$1" && $(value count all-permits "$name") == "$2" ]]
}

# full: neither of the two gets one more.
full() {
  run -75 rlock run -n --slots "$1" --java-semaphore "$name" -- true
  [[ $(value count try-acquire-permit "$name" 0 1000) == null ]]
}

# hex OWNER: the permit's id for one of our owners.
hex() { tr -d - <<<"${1%:*}"; }

# permit_ids: Redisson's ids of those that are taken, sorted.
permit_ids() {
  # shellcheck disable=SC2016 # Lua
  redis r eval 'local ids = redis.call("zrange", KEYS[1], 0, -1)
    for i, id in ipairs(ids) do
      ids[i] = id:gsub(".", function(byte) return string.format("%02x", byte:byte()) end)
    end
    return ids' 1 "$permits" | sort
}

# has_one THREAD START: it has a permit, and what happened at START woke it.
has_one() {
  redisson_wakes "$@"
  [[ $(reply value) =~ ^[0-9a-f]{32}$ ]]
}

counted_together() {
  local first second
  [[ $(value j try-set-permits "$name" 3) == true ]]
  first=$(value j acquire-permit "$name")
  start_job a --slots 3 --java-semaphore
  wait_until job_runs a
  second=$(value j acquire-permit "$name" 30000)
  seats 0 3
  full 3
  held_by 3

  end_job a
  seats 1 3
  start_job b --slots 3 --java-semaphore
  wait_until job_runs b
  full 3
  redisson j release-permit "$name" "$first"
  seats 1 3
  redisson j release-permit "$name" "$second"
  end_job b
  # A semaphore that a Java program has created stays.
  seats 3 3
  redis r del "$name" >&2
}

# Only a number is left of a semaphore if nobody holds a permit.
@test "a Redisson semaphore exists while a permit is held, and with --java-semaphore at any time" {
  local id before
  [[ $(value j try-set-permits "$name" 2) == true ]]
  before=$(redis r --no-raw dump "$name")
  run -76 rlock run --slots 2 "$name" -- true
  run -76 rlock run --slots 3 --resize "$name" -- true
  run -76 rlock status --is-held "$name"
  [[ $(redis r --no-raw dump "$name") == "$before" ]]
  rlock run --slots 2 --java-semaphore "$name" -- true
  id=$(value j acquire-permit "$name")
  start_job a --slots 2
  wait_until job_runs a
  start_job b --slots 2
  wait_until jobs_wait 1
  # The waiting one continues although no Java client is in it any longer.
  redisson j release-permit "$name" "$id"
  wait_until job_runs b
  end_job a
  end_job b
  seats 2 2
  run -76 rlock run --slots 2 "$name" -- true
}

@test "permits of both are counted together" {
  counted_together
}

@test "a name with a hash tag, and one in UTF-8, mean the same keys to both" {
  use_name "{seats}-$BATS_TEST_NUMBER."
  counted_together
  use_name "früh-作业-$BATS_TEST_NUMBER."
  counted_together
}

@test "an rlock release wakes a waiting Redisson thread, and the other way round" {
  local freed id
  redisson j try-set-permits "$name" 1
  start_job a --slots 1 --java-semaphore
  wait_until job_runs a
  redisson_send j acquire-permit "$name"
  wait_until waiters 1
  not redisson_replies j
  freed=$(now_ms)
  end_job a
  has_one j "$freed"
  id=$(reply value)

  start_job a --slots 1 --java-semaphore
  wait_until waiters 1
  not job_runs a
  redisson k release-permit "$name" "$id"
  job_wakes a "$(now_ms)"
  end_job a
  seats 1 1
}

@test "Redisson takes back the slot of a crashed rlock when its lease is over" {
  local crashed
  redisson j try-set-permits "$name" 2
  start_job dead --slots 2 --java-semaphore --lease 2s
  wait_until job_runs dead
  redisson j acquire-permit "$name"
  redisson_send k acquire-permit "$name"
  wait_until waiters 1
  crashed=$(now_ms)
  crash_job dead
  wait_until redisson_replies k
  echo "# after $(($(now_ms) - crashed)) ms, with a lease of 2000" >&3
  [[ $(reply value) =~ ^[0-9a-f]{32}$ ]]
  full 2
  seats 0 2
}

@test "rlock takes back a Redisson permit whose lease is over" {
  local id
  redisson j try-set-permits "$name" 1
  id=$(value j acquire-permit "$name" 1500)
  start_job a --slots 1 --java-semaphore
  wait_until jobs_wait 1
  not job_runs a
  wait_until job_runs a
  [[ $(redis r zcard "$permits") == 1 ]]
  not redisson j release-permit "$name" "$id"
  [[ $(reply error) == IllegalArgumentException ]]
  seats 0 1
  end_job a
  seats 1 1
}

@test "our renewals keep a slot from a Redisson thread that waits for the first lease to end" {
  redisson j try-set-permits "$name" 1
  start_job a --slots 1 --java-semaphore --lease 2s
  wait_until job_runs a
  [[ $(value j try-acquire-permit "$name" 3500 1000) == null ]]
  seats 0 1
  held_by 1
  end_job a
  seats 1 1
}

@test "a number of slots other than Redisson's is refused; --resize changes it for both" {
  redisson j try-set-permits "$name" 2
  run -76 rlock run -n --slots 3 --java-semaphore "$name" -- true
  assert_says 2
  run -76 rlock run --slots 1 --java-semaphore "$name" -- true
  seats 2 2
  rlock run --slots 2 --java-semaphore "$name" -- true

  rlock run --slots 3 --java-semaphore --resize "$name" -- true
  seats 3 3
  redisson j acquire-permit "$name"
  redisson j acquire-permit "$name"
  # Fewer than are taken: those that have one keep it.
  run -75 rlock run -n --slots 1 --java-semaphore --resize "$name" -- true
  seats -1 1
  held_by 2
  full 1

  redisson j set-permits "$name" 5
  run -76 rlock run -n --slots 1 --java-semaphore "$name" -- true
  rlock run --slots 5 --java-semaphore "$name" -- true
  seats 3 5
}

@test "Redisson's trySetPermits does not change the number of an rlock semaphore, but setPermits does" {
  start_job a --slots 2 --java-semaphore
  wait_until job_runs a
  [[ $(value j try-set-permits "$name" 7) == false ]]
  seats 1 2
  redisson j set-permits "$name" 3
  seats 2 3
  run -76 rlock run -n --slots 2 --java-semaphore "$name" -- true
  end_job a
}

@test "--resize to more slots wakes a waiting Redisson thread" {
  redisson j try-set-permits "$name" 1
  redisson j acquire-permit "$name"
  redisson_send k acquire-permit "$name"
  wait_until waiters 1
  start_job a --slots 4 --java-semaphore --resize
  wait_until job_runs a
  has_one k "$(now_ms)"
  end_job a
}

@test "a semaphore created by rlock wakes a Redisson thread that waits for one" {
  redisson_send j acquire-permit "$name"
  wait_until waiters 1
  start_job a --slots 3 --java-semaphore
  wait_until job_runs a
  has_one j "$(now_ms)"
  end_job a
}

# A Java service sets the number when it starts, and is told that there is one.
@test "a semaphore that Redisson tried to create outlives rlock's jobs" {
  start_job a --slots 3 --java-semaphore
  wait_until job_runs a
  redisson j try-set-permits "$name" 3
  end_job a
  [[ $(value j try-acquire-permit "$name" 0 1000) != null ]]
}

@test "a semaphore created by Redisson is kept, even if rlock had created one of that name before" {
  rlock acquire --slots 3 --java-semaphore "$name" --lease 1m
  redis r del "$name" "$permits"
  [[ $(value j try-set-permits "$name" 3) == true ]]
  rlock run --slots 3 --java-semaphore "$name" -- true
  seats 3 3
}

@test "a semaphore created by rlock lasts as long as Redisson's permits" {
  local owner
  owner=$(rlock acquire --slots 3 --java-semaphore "$name" --lease 1m)
  redisson j acquire-permit "$name" $((3 * 24 * 3600 * 1000))
  rlock release "$name" --owner "$owner"
  (($(redis r pttl "$name") > 2 * 24 * 3600 * 1000))
}

@test "Redisson uses a semaphore created by rlock, also after rlock's jobs have ended" {
  local id
  start_job a --slots 2 --java-semaphore
  wait_until job_runs a
  seats 1 2
  id=$(value j acquire-permit "$name")
  full 2
  end_job a
  seats 1 2
  start_job b --slots 2 --java-semaphore
  wait_until job_runs b
  full 2
  end_job b
  redisson j release-permit "$name" "$id"
  seats 2 2
  # While nobody uses it, rlock may set another number; for Redisson it exists.
  rlock run --slots 5 --java-semaphore "$name" -- true
  seats 5 5
  [[ $(value j try-set-permits "$name" 4) == false ]]
}

@test "Redisson cannot give back a slot of ours twice" {
  local owner
  redisson j try-set-permits "$name" 2
  not redisson j release-permit "$name" 00112233445566778899aabbccddeeff
  [[ $(reply error) == IllegalArgumentException ]]
  seats 2 2

  # Its lease is over.
  owner=$(rlock acquire --slots 2 --java-semaphore "$name" --lease 1s)
  wait_until held_by 0
  not redisson j release-permit "$name" "$(hex "$owner")"
  [[ $(reply error) == IllegalArgumentException ]]
  seats 2 2
  run -76 rlock release "$name" --owner "$owner"
  run -76 rlock renew "$name" --owner "$owner"
  seats 2 2

  # Already released.
  owner=$(rlock acquire --slots 2 --java-semaphore "$name" --lease 1m)
  rlock release "$name" --owner "$owner"
  not redisson j release-permit "$name" "$(hex "$owner")"
  seats 2 2
}

@test "rlock run stops its command with status 74 after Redisson has given back its slot" {
  local ids
  redisson j try-set-permits "$name" 1
  start_job a --slots 1 --java-semaphore --lease 3s
  wait_until job_runs a
  ids=$(permit_ids)
  start_job b --slots 1 --java-semaphore
  wait_until jobs_wait 1
  [[ $(value j try-release-permit "$name" "$ids") == true ]]
  job_wakes b "$(now_ms)"
  job_ends a 74
  seats 0 1
  end_job b
  seats 1 1
}

@test "status shows permits by the ids that Redisson uses" {
  local theirs ours
  redisson j try-set-permits "$name" 4
  theirs=$(value j acquire-permit "$name" 20000)
  ours=$(rlock acquire --slots 4 --java-semaphore "$name" --lease 1m)
  run -0 rlock status --json "$name"
  python3 -c '
import json, re, sys
lock, = json.loads(sys.argv[1])
assert (lock["kind"], lock["slots"], lock["number_of_holders"]) == ("semaphore", 4, 2)
theirs, = (h for h in lock["holders"] if h["owner"] == sys.argv[2])
ours, = (h for h in lock["holders"] if h["owner"] == sys.argv[3])
assert re.fullmatch("[0-9a-f]{32}", theirs["owner"])
assert not theirs["taken_by_rlock"] and ours["taken_by_rlock"]
assert 0 < theirs["expires_in_ms"] <= 20000 < ours["expires_in_ms"] <= 60000' "$output" "$theirs" "$ours"
  [[ $(permit_ids) == "$(printf '%s\n' "$theirs" "$(hex "$ours")" | sort)" ]]
  # One without a lease.
  theirs=$(value j acquire-permit "$name")
  run -0 rlock status "$name"
  assert_says "3 of 4 slots taken"
  assert_says "$theirs"
  # The id that status shows releases it.
  redisson j release-permit "$name" "$(hex "$ours")"
  seats 2 4
}

@test "Redisson counts all slots of an owner, and its permits, which have no numbers, leave rlock a correct rest" {
  local theirs ours
  # shellcheck disable=SC2016 # for the sh of a command
  local show='echo "$RLOCK_SLOT"'
  redisson j try-set-permits "$name" 4
  theirs=$(value j acquire-permit "$name")
  run -0 rlock run --slots 4 --take 3 --java-semaphore "$name" -- sh -c "$show"
  [[ $output == '0 1 2' ]]
  ours=$(rlock acquire --slots 4 --take 2 --java-semaphore "$name" --lease 1m)
  seats 1 4
  run -75 rlock run -n --slots 4 --take 2 --java-semaphore "$name" -- true
  run -0 rlock run -n --slots 4 --java-semaphore "$name" -- sh -c "$show"
  [[ $output == 2 ]]
  redisson j release-permit "$name" "$theirs"
  run -0 rlock run -n --slots 4 --take 2 --java-semaphore "$name" -- sh -c "$show"
  [[ $output == '2 3' ]]
  # A waiter for two gets them when Redisson has released one and another job the other.
  theirs=$(value j acquire-permit "$name")
  start_job a --slots 4 --java-semaphore
  wait_until job_runs a
  start_job b --slots 4 --take 2 --java-semaphore
  wait_until jobs_wait 1
  end_job a
  redisson j release-permit "$name" "$theirs"
  wait_until job_runs b
  end_job b
  rlock release "$name" --owner "$ours"
  seats 4 4
}

@test "force-unlock by rlock takes the slots from Redisson, and wakes a waiting thread" {
  local first second forced
  redisson j try-set-permits "$name" 2
  first=$(value j acquire-permit "$name")
  second=$(value j acquire-permit "$name" 60000)
  rlock force-unlock --yes --owner "$first" "$name"
  [[ $(permit_ids) == "$second" ]]
  not redisson j release-permit "$name" "$first"
  seats 1 2

  rlock acquire --slots 2 --java-semaphore "$name" --lease 1m
  redisson_send k acquire-permit "$name"
  wait_until waiters 1
  forced=$(now_ms)
  rlock force-unlock --yes "$name"
  has_one k "$forced"
  not redisson j release-permit "$name" "$second"
  [[ $(reply error) == IllegalArgumentException ]]
  seats 1 2
}

@test "a client for another kind of lock does not share the name" {
  redisson j lock "$name"
  run -76 rlock run -n --slots 2 --java-semaphore "$name" -- true
  redisson j unlock "$name"
  redisson j try-set-permits "$name" 2
  redisson j acquire-permit "$name"
  run -76 rlock run -n "$name" -- true
  run -76 rlock run -n -s "$name" -- true
}

# turns SLOTS: a Redisson thread among ten jobs.
turns() {
  local owners=() owner option=--slots=$1
  give_back() { redisson turns release-permit "$name" "$(reply value)"; }
  while ((${#owners[@]} < $1)); do owners+=("$(rlock acquire "$option" --java-semaphore "$name" --lease 1m)"); done
  queue_jobs "$option" "$option" "$option" "$option" "$option" "$option" "$option" "$option" "$option" "$option"
  redisson_send turns acquire-permit "$name"
  wait_until waiters 2
  for owner in "${owners[@]}"; do rlock release "$name" --owner "$owner"; done
  redisson_gets_turns acquire-permit give_back 5
}

@test "Redisson does not starve behind rlock's queue" {
  redisson j try-set-permits "$name" 1
  turns 1
}

# Jobs that started together end together. Everybody except the two that release is frozen, so that it does not matter
# which one is faster.
@test "a slot released for whichever client comes first is not given to the queue by the next release" {
  local first second ids=(a b c) id pids starved=''
  redisson j try-set-permits "$name" 2
  first=$(rlock acquire --slots 2 --java-semaphore "$name" --lease 1m)
  second=$(rlock acquire --slots 2 --java-semaphore "$name" --lease 1m)
  for id in "${ids[@]}"; do start_job "$id" --slots 2 --java-semaphore; done
  wait_until jobs_wait 3
  redisson_send j acquire-permit "$name"
  wait_until waiters 2
  pids=("$(<"$BATS_FILE_TMPDIR/jvm1/pid")" "${job_pids[@]}")
  kill -STOP "${pids[@]}"
  rlock release "$name" --owner "$first"
  rlock release "$name" --owner "$second"
  kill -CONT "${pids[0]}"
  WAIT_SECONDS=20 wait_until redisson_replies j || starved=yes
  kill -CONT "${pids[@]}"
  [[ -z $starved ]]
  redisson j release-permit "$name" "$(reply value)"
  for id in "${ids[@]}"; do end_job "$id"; done
}

@test "both compete for two slots, and never three have one" {
  local inside=$BATS_TEST_TMPDIR/inside jobs=() rounds=8 round id
  redisson j try-set-permits "$name" 2
  mkdir "$inside"
  cat >"$BATS_TEST_TMPDIR/work" <<'WORK'
if mkdir "$1/a" 2>/dev/null; then mine=a; else mkdir "$1/b" && mine=b || exit; fi
sleep 0.03
rmdir "$1/$mine"
WORK
  for _ in 1 2; do
    for ((round = 0; round < rounds; round++)); do
      "$RLOCK" run -q --slots 2 --java-semaphore "$name" -- sh "$BATS_TEST_TMPDIR/work" "$inside" || exit
    done </dev/null >"$BATS_TEST_TMPDIR/jobs.log" 2>&1 3>&- &
    jobs+=($!)
  done
  for ((round = 0; round < rounds; round++)); do
    id=$(value j acquire-permit "$name")
    sh "$BATS_TEST_TMPDIR/work" "$inside"
    redisson j release-permit "$name" "$id"
  done
  for id in "${jobs[@]}"; do wait "$id"; done
  seats 2 2
}
