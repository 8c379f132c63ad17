#!/usr/bin/env bats
# lua/features/08_once.lua: a success is recorded with the release, and nothing is granted for it after that.

load ../lib/common
load ../lib/fault_scripts

setup_file() { start_script_server; }
setup() {
  fresh_lock
  successes="rlock:once:{$lock}"
}
teardown() { assert_mortal; }
teardown_file() { redis_stop srv; }

# acquire_once OWNER HOLD ONCE [WAIT]: ONCE is "<start> <key>".
acquire_once() {
  local wanted
  want
  script acquire owner="$(id_of "$1")" lease=30000 hold="$2" "${wanted[@]}" once.start="${3%% *}" once.key="${3#* }" \
    $([[ ${4:-0} == 0 ]] || echo wait.priority=0)
}
# release_success OWNER HOLD START KEY [LASTS [REQUEST [KEEP]]]
release_success() {
  local last_key="$hold_keys${6:-request}:released"
  script release owner="$(id_of "$1")" hold="$2" keep="${7:-0}" id="${6:-request}" remember=60000 note.total= \
    note.success.start="$3" note.success.key="$4" note.success.lasts="${5:-60000}" note.success.who=$'7\nalice\nci-7\nmigrate'
}
record() { redis srv hget "$successes" "$1"; }

@test "a success is recorded with the release, and the next acquire is told" {
  run -0 acquire_once a ha '0 1.4'
  [[ ${lines[0]} == granted ]]
  run -0 release_success a ha 0 1.4
  [[ $output == $'released\n0\n\n0\n\n1' ]]
  assert_bounded "$successes"
  [[ $(record 1.4 | tail -n 3) == $'alice\nci-7\nmigrate' ]]
  run -0 acquire_once b hb '0 1.4'
  [[ ${lines[0]} == succeeded && ${lines[1]} == "$(record 1.4 | head -n 1)" ]]
  [[ $(redis srv exists "$lock") == 0 ]]
  run -0 acquire_once c hc '0 1.5'
  [[ ${lines[0]} == granted ]]
  release c hc
}

@test "sent twice, a success counts once, and the second reply says so, too" {
  acquire_once a ha '0 1.4'
  release_success a ha 0 1.4
  run -0 release_success a ha 0 1.4
  [[ $output == $'released\n0\n\n0\n\n1' ]]
}

@test "without the hold, no success is recorded" {
  run -0 release_success a ha 0 1.4
  [[ ${lines[0]} == free && $(redis srv exists "$successes") == 0 ]]
  acquire b 30000 hb ''
  run -0 release_success a ha 0 1.4 60000 other
  [[ ${lines[0]} == other-owner && $(redis srv exists "$successes") == 0 ]]
  run -0 release_success b another 0 1.4 60000 third
  [[ $(redis srv exists "$successes") == 0 ]]
  release b hb
}

@test "it is recorded if the lock is kept, and with an inner hold" {
  acquire_once a ha '0 1.4'
  acquire b 30000 hb a
  run -0 release_success a hb 0 inner
  [[ $output == $'released\n1\n\n0\n\n1' && $(record inner) == 0* ]]
  run -0 release_success a ha 0 1.4 60000 second 1000
  [[ $output == $'kept\n1000\n\n0\n\n1' && $(record 1.4) == 0* ]]
  redis srv del "$lock" "$holder"
}

@test "a success of an earlier period does not count, and a later one is never replaced by it" {
  acquire_once a ha '1000 per day'
  release_success a ha 1000 'per day'
  run -0 acquire_once b hb '2000 per day'
  [[ ${lines[0]} == granted ]]
  release_success b hb 2000 'per day' 60000 b
  run -0 acquire_once c hc '1000 per day'
  [[ ${lines[0]} == succeeded ]]
  acquire d 30000 hd ''
  release_success d hd 1000 'per day' 60000 d
  [[ $(record 'per day') == '2000 '* ]]
}

@test "a period that is no number does not end up in the next success" {
  local junk
  for junk in "$(printf '9%.0s' {1..30})" "$(printf '9%.0s' {1..400})"; do
    acquire a 30000 ha ''
    redis srv hset "$successes" 'per day' "$junk 9000000000000 1 7"$'\n'
    release_success a ha 1000 'per day' 60000 "$junk"
    [[ $(record 'per day') == '1000 '* ]]
    redis srv del "$successes"
  done
}

@test "a waiter for it is told at the release, leaves the queue, and is not granted the lock" {
  listen b c
  acquire_once a ha '0 1.4'
  acquire_once b hb '0 1.4' 1
  acquire_once c hc '0 1.5' 1
  release_success a ha 0 1.4
  hears b succeeded
  hears c granted
  [[ -z $(in_queue) && $(redis srv hkeys "$lock") == c:0 ]]
  run -0 acquire_once b hb '0 1.4' 1
  [[ ${lines[0]} == succeeded && -z $(in_queue) ]]
  release c hc
}

@test "waiters for it are told, too, if they stand behind others, and if the lock is kept" {
  listen b c
  acquire_once a ha '0 1.4'
  acquire_once c hc '0 1.5' 1
  acquire_once b hb '0 1.4' 1
  release_success a ha 0 1.4 60000 request 1000
  hears b succeeded
  [[ $(in_queue) == c ]]
  redis srv del "$lock" "$holder"
}

@test "the last waiter that is told leaves no key behind" {
  listen b
  acquire_once a ha '0 1.4'
  acquire_once b hb '0 1.4' 1
  redis srv hset "rlock:waiters:{$lock}" latest b:0 >/dev/null # as with --replace-waiting
  release_success a ha 0 1.4
  hears b succeeded
  [[ $(redis srv exists "rlock:queue:{$lock}" "rlock:waiters:{$lock}") == 0 ]]
}

@test "at most a hundred waiters are told at once, and the others by the releases that follow" {
  local number channels=()
  for ((number = 100; number < 220; number++)); do channels+=("$grant_channels$number:0"); done
  redis-cli -s "$srv_sock" "${sharded:+s}subscribe" "${channels[@]}" >heard 3>&- &
  listeners+=($!)
  wait_until grep -q 219:0 heard
  acquire_once a ha '0 1.4'
  for ((number = 100; number < 220; number++)); do acquire_once "$number" "h$number" '0 1.4' 1; done >/dev/null
  run -0 release_success a ha 0 1.4 60000 request 1000
  # Fewer, if its time was over before.
  [[ $output == $'kept\n1000\n\n1\n\n1' && $(redis srv zcard "rlock:queue:{$lock}") =~ ^([2-9].|1[01].)$ ]]
  all_told() { release nobody hn && [[ $(redis srv exists "rlock:queue:{$lock}" "rlock:waiters:{$lock}") == 0 ]]; }
  wait_until all_told
  [[ $(grep -c succeeded heard) == 120 ]]
  redis srv del "$lock" "$holder"
}

@test "a heir does not hold it once more to run something once" {
  acquire a 30000 ha ''
  run -0 script acquire owner=b:0 lease=30000 hold=hb heir=a:0 once.start=0 once.key=1.4
  [[ $output == no-upgrade ]]
  release a ha
}

@test "a waiter that was granted it meanwhile is told, and its release gives the lock to the next one" {
  listen b c
  acquire a 30000 ha ''
  acquire_once b hb '0 1.4' 1
  acquire_once c hc '0 1.5' 1
  release a ha
  hears b granted
  redis srv hset "$successes" 1.4 '0 9999999999999 1 7'
  redis srv pexpire "$successes" 60000
  run -0 acquire_once b hb '0 1.4' 1
  [[ ${lines[0]} == succeeded ]]
  release b hb
  hears c granted
  release c hc
}

@test "a waiter for what has succeeded is not granted the lock by a release that records no success, either" {
  listen b c
  acquire a 30000 ha ''
  acquire_once b hb '0 1.4' 1
  acquire_once c hc '0 1.5' 1
  redis srv hset "$successes" 1.4 '0 9999999999999 1 7'
  redis srv pexpire "$successes" 60000
  release a ha
  hears b succeeded
  hears c granted
  [[ $(redis srv hkeys "$lock") == c:0 ]]
  release c hc
}

@test "records that another program has written, or whose time is over, count as none" {
  local record
  for record in '' x '0' '0 1 ' '-1 9999999999999 1 7' '0 1e999 1 7' $'0\n9999999999999\n'; do
    redis srv hset "$successes" 1.4 "$record"
    redis srv pexpire "$successes" 60000
    run -0 acquire_once a ha '0 1.4'
    [[ ${lines[0]} == granted ]]
    release a ha
  done
  redis srv del "$successes"
  redis srv set "$successes" x px 60000
  run -1 acquire_once a ha '0 1.4'
  [[ $output == *WRONGTYPE* && $(redis srv exists "$lock") == 0 ]]
}

@test "a full server records it, and a user without the right releases the lock and says why" {
  acquire_once a ha '0 1.4'
  fill_memory
  run -0 release_success a ha 0 1.4
  free_memory
  [[ $output == $'released\n0\n\n0\n\n1' && $(record 1.4) == 0* ]]
  acquire b 30000 hb ''
  as_weak_user pttl
  run -0 release_success b hb 0 1.5 60000 b
  [[ ${lines[0]} == released ]]
  as_full_user
}

@test "a string records it as well" {
  use_lock "$lock" string
  acquire_once a ha '0 1.4'
  run -0 release_success a ha 0 1.4
  [[ ${lines[0]} == released && $(record 1.4) == 0* ]]
}
