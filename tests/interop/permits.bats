# Slots of rlock and permits of Redisson's RPermitExpirableSemaphore, counted together.

load interop

KIND=permits

# seats FREE ALL: as Redisson sees them.
seats() {
  [[ $(value count available-permits "$name") == "$1" && $(value count all-permits "$name") == "$2" ]]
}

# full: neither of the two gets one more.
full() {
  run -75 rlock run -n --slots "$1" --java-semaphore "$name" -- true
  [[ $(value count permit-trylock "$name" 0 1000) == null ]]
}

# hex OWNER: the permit's id for one of our owners.
hex() { tr -d - <<<"${1%:*}"; }

# has_one THREAD: what has just happened woke it, and it has a permit.
has_one() {
  redisson_wakes "$1"
  [[ $(reply value) =~ ^[0-9a-f]{32}$ ]]
}

# Only a number is left of a semaphore if nobody holds a permit.
@test "a Redisson semaphore exists while a permit is held, and with --java-semaphore at any time" {
  local id before options=()
  [[ $(value j try-set-permits "$name" 2) == true ]]
  before=$(redis r --no-raw dump "$name")
  run -76 rlock run --slots 2 "$name" -- true
  run -76 rlock run --slots 3 --resize "$name" -- true
  run -76 rlock status --is-held "$name"
  [[ $(redis r --no-raw dump "$name") == "$before" ]]
  rlock run --slots 2 --java-semaphore "$name" -- true
  id=$(value j permit-lock "$name")
  running_job a --slots 2
  waiting_job b --slots 2
  # The waiting one continues although no Java client is in it any longer.
  redisson j permit-unlock "$name" "$id"
  wait_until job_runs b
  end_job a
  end_job b
  seats 2 2
  run -76 rlock run --slots 2 "$name" -- true
}

@test "permits of both are counted together, also with a hash tag and UTF-8 in the name" {
  for one in "$name" "früh-{作业}-$BATS_TEST_NUMBER."; do
    use_kind permits "$one"
    [[ $(value j try-set-permits "$name" 3) == true ]]
    first=$(value j permit-lock "$name")
    running_job a --slots 3
    second=$(value j permit-lock-lease "$name" 30000)
    seats 0 3
    full 3
    held_by 3

    end_job a
    seats 1 3
    running_job b --slots 3
    full 3
    redisson j permit-unlock "$name" "$first"
    seats 1 3
    redisson j permit-unlock "$name" "$second"
    end_job b
    # A semaphore that a Java program has created stays.
    seats 3 3
  done
}

@test "a slot is taken back when its lease is over, and not while it is renewed, even if Redisson was told when it ends" {
  redisson j try-set-permits "$name" 1
  redisson j permit-lock-lease "$name" 1500
  start_job a --slots 1 --lease 5s # which a busy machine can keep
  wait_until job_runs a
  [[ $(redis r zcard "$tagged:timeout") == 1 ]]
  seats 0 1
  [[ $(value j permit-trylock "$name" 6500 1000) == null ]]
  held_by 1
  crash_job a
  redisson k permit-lock "$name"
  full 1
  seats 0 1
}

@test "a number of slots other than Redisson's is refused; --resize changes it for both" {
  redisson j try-set-permits "$name" 2
  tells 76 'it has 2 slots' rlock run -n --slots 3 --java-semaphore "$name" -- true
  run -76 rlock run --slots 1 --java-semaphore "$name" -- true
  seats 2 2
  rlock run --slots 2 --java-semaphore "$name" -- true

  rlock run --slots 3 --java-semaphore --resize "$name" -- true
  seats 3 3
  redisson j permit-lock "$name"
  redisson j permit-lock "$name"
  # Fewer than are taken: those that have one keep it.
  run -75 rlock run -n --slots 1 --java-semaphore --resize "$name" -- true
  seats -1 1
  held_by 2
  full 1

  redisson j set-permits "$name" 5
  run -76 rlock run -n --slots 1 --java-semaphore "$name" -- true
  rlock run --slots 5 --java-semaphore "$name" -- true
  seats 3 5
  [[ $(value j permit-lock "$name") && $(value j permit-lock "$name") && $(value j permit-lock "$name") ]]
  redisson_waits k permit-lock "$name"
  running_job a --slots 7 --resize
  has_one k
  end_job a
}

# A Java service sets the number when it starts, and is told that there is one.
@test "a semaphore created by rlock wakes a Redisson thread that waits for one, and outlives the jobs if Redisson tried to create it" {
  redisson_waits j permit-lock "$name"
  running_job a --slots 3
  has_one j
  [[ $(value j try-set-permits "$name" 7) == false ]]
  seats 1 3
  end_job a
  [[ $(value j permit-trylock "$name" 0 1000) != null ]]
}

@test "a semaphore created by rlock lasts as long as Redisson's permits; one created by Redisson after it is kept" {
  owner=$(rlock acquire --slots 3 --java-semaphore "$name" --lease 1m)
  redisson j permit-lock-lease "$name" $((3 * 24 * 3600 * 1000))
  rlock release "$name" --owner "$owner"
  (($(redis r pttl "$name") > 2 * 24 * 3600 * 1000))

  rlock acquire --slots 3 --java-semaphore "$name" --lease 1m
  redis r del "$name" "$tagged:timeout"
  [[ $(value j try-set-permits "$name" 3) == true ]]
  rlock run --slots 3 --java-semaphore "$name" -- true
  seats 3 3
}

@test "Redisson uses a semaphore created by rlock, also after rlock's jobs have ended" {
  running_job a --slots 2
  seats 1 2
  id=$(value j permit-lock "$name")
  full 2
  end_job a
  seats 1 2
  running_job b --slots 2
  full 2
  end_job b
  redisson j permit-unlock "$name" "$id"
  seats 2 2
  # While nobody uses it, rlock may set another number; for Redisson it exists.
  rlock run --slots 5 --java-semaphore "$name" -- true
  seats 5 5
  [[ $(value j try-set-permits "$name" 4) == false ]]
}

@test "Redisson cannot give back a slot of ours twice" {
  redisson j try-set-permits "$name" 2
  redisson_throws j permit-unlock "$name" 00112233445566778899aabbccddeeff
  seats 2 2

  # Its lease is over.
  owner=$(rlock acquire --slots 2 --java-semaphore "$name" --lease 1s)
  wait_until held_by 0
  redisson_throws j permit-unlock "$name" "$(hex "$owner")"
  seats 2 2
  run -76 rlock release "$name" --owner "$owner"
  run -76 rlock renew "$name" --owner "$owner"
  seats 2 2

  # Already released.
  owner=$(rlock acquire --slots 2 --java-semaphore "$name" --lease 1m)
  rlock release "$name" --owner "$owner"
  not redisson j permit-unlock "$name" "$(hex "$owner")"
  seats 2 2
}

@test "status shows permits by the ids that Redisson uses" {
  redisson j try-set-permits "$name" 4
  theirs=$(value j permit-lock-lease "$name" 20000)
  ours=$(rlock acquire --slots 4 --java-semaphore "$name" --lease 1m)
  tells 0 '"kind": "semaphore"' rlock status --json "$name"
  assert_says '"slots": 4'
  held_by 2
  holder_shows "$theirs" 1 '' no 0 20000
  holder_shows "$ours" 1 '' yes 20000 60000
  [[ $(permit_ids) == "$(printf '%s\n' "$theirs" "$(hex "$ours")" | sort)" ]]
  # One without a lease.
  theirs=$(value j permit-lock "$name")
  tells 0 "3 of 4 slots taken" rlock status "$name"
  assert_says "$theirs"
  # The id that status shows releases it.
  redisson j permit-unlock "$name" "$(hex "$ours")"
  seats 2 4
}

@test "Redisson counts all slots of an owner, and its permits, which have no numbers, leave rlock a correct rest" {
  # shellcheck disable=SC2016 # for the sh of a command
  local show='echo "$RLOCK_SLOT"'
  redisson j try-set-permits "$name" 4
  theirs=$(value j permit-lock "$name")
  prints '0 1 2' rlock run --slots 4 --take 3 --java-semaphore "$name" -- sh -c "$show"
  ours=$(rlock acquire --slots 4 --take 2 --java-semaphore "$name" --lease 1m)
  seats 1 4
  run -75 rlock run -n --slots 4 --take 2 --java-semaphore "$name" -- true
  prints 2 rlock run -n --slots 4 --java-semaphore "$name" -- sh -c "$show"
  redisson j permit-unlock "$name" "$theirs"
  prints '2 3' rlock run -n --slots 4 --take 2 --java-semaphore "$name" -- sh -c "$show"
  # A waiter for two gets them when Redisson has released one and another job the other.
  theirs=$(value j permit-lock "$name")
  running_job a --slots 4
  waiting_job b --slots 4 --take 2
  end_job a
  redisson j permit-unlock "$name" "$theirs"
  wait_until job_runs b
  end_job b
  rlock release "$name" --owner "$ours"
  seats 4 4
}

@test "force-unlock --owner takes a slot from one Redisson thread, and from no other" {
  redisson j try-set-permits "$name" 2
  first=$(value j permit-lock "$name")
  second=$(value j permit-lock-lease "$name" 60000)
  rlock force-unlock --yes --owner "$first" "$name"
  [[ $(permit_ids) == "$second" ]]
  redisson_throws j permit-unlock "$name" "$first"
  seats 1 2
}

# Jobs that started together end together. Everybody except the two that release is frozen, so that it does not matter
# which one is faster.
@test "a slot released for whichever client comes first is not given to the queue by the next release" {
  local first second ids=(a b c) id pids starved=''
  redisson j try-set-permits "$name" 2
  first=$(rlock acquire --slots 2 --java-semaphore "$name" --lease 1m)
  second=$(rlock acquire --slots 2 --java-semaphore "$name" --lease 1m)
  for id in "${ids[@]}"; do start_job "$id" --slots 2; done
  wait_until jobs_wait 3
  redisson_send j permit-lock "$name"
  wait_until waiters 2
  pids=("$(<"$BATS_FILE_TMPDIR/jvm1/pid")" "${job_pids[@]}")
  kill -STOP "${pids[@]}"
  rlock release "$name" --owner "$first"
  rlock release "$name" --owner "$second"
  kill -CONT "${pids[0]}"
  WAIT_SECONDS=20 wait_until redisson_replies j || starved=yes
  kill -CONT "${pids[@]}"
  [[ -z $starved ]]
  redisson j permit-unlock "$name" "$(reply value)"
  # Two have the slots, not always the first two.
  for id in "${ids[@]}"; do touch "$BATS_TEST_TMPDIR/$id.end"; done
  for id in "${ids[@]}"; do job_ends "$id" 0; done
}

@test "both compete for two slots, and never three have one" {
  local inside=$BATS_TEST_TMPDIR/inside jobs=() rounds=8 round id
  redisson j try-set-permits "$name" 2
  mkdir "$inside"
  # shellcheck disable=SC2016 # for the sh of the command
  local work='if mkdir "$0/a" 2>&-; then mine=a; else mkdir "$0/b" && mine=b || exit; fi; sleep 0.03; rmdir "$0/$mine"'
  for _ in 1 2; do
    for ((round = 0; round < rounds; round++)); do
      "$RLOCK" run -q --slots 2 --java-semaphore "$name" -- sh -c "$work" "$inside" || exit
    done </dev/null >"$BATS_TEST_TMPDIR/jobs.log" 2>&1 3>&- &
    jobs+=($!)
  done
  for ((round = 0; round < rounds; round++)); do
    id=$(value j permit-lock "$name")
    sh -c "$work" "$inside"
    redisson j permit-unlock "$name" "$id"
  done
  for id in "${jobs[@]}"; do wait "$id"; done
  seats 2 2
}
