#!/usr/bin/env bats
# lua/06_semaphore.lua: which of a semaphore's slots each owner has, and owners of several slots.

load ../lib/common
load ../lib/fault_scripts

setup_file() { start_script_server; }
setup() {
  fresh_lock
  use_lock "lock-$BATS_TEST_NUMBER" semaphore 3
  permits="{$lock}:timeout"
  pool="rlock:pool:{$lock}"
}
teardown() {
  assert_mortal
  end_listeners
}
teardown_file() { redis_stop srv; }

# id NUMBER [TAKEN]: the UUID of an owner of several slots says how many.
id() { if ((${2:-1} == 1)); then printf '0000000%s-0000-4000-8000-000000000000:1' "$1"; else printf '0000000%s-0000-8000-8000-00000000%04x:1' "$1" "$2"; fi; }
hex() { id "$@" | tr -d - | sed 's/:.*//'; }
# rest NUMBER TAKEN I: another permit of an owner of several slots, its I-th from 1.
rest() { printf '%.28s%04x' "$(hex "$1" "$2")" "$3"; }
# lose HEX: another program releases this permit.
lose() {
  # shellcheck disable=SC2016 # the script of the server
  redis srv eval 'local raw = string.gsub(ARGV[1], "..", function(byte) return string.char(tonumber(byte, 16)) end)
    return redis.call("incrby", KEYS[2], redis.call("zrem", KEYS[1], raw))' 2 "$permits" "$lock" "$1"
}
# take NUMBER [TAKEN [LEASE]], queue_up NUMBER [TAKEN]: with the mode of a request for that many.
in_mode() { if ((${1:-1} == 1)); then echo 3; else echo "3 $1"; fi; }
take() { mode=$(in_mode "${2:-1}") acquire "$(id "$1" "${2:-1}")" "${3:-30000}" "h$1" ''; }
queue_up() { mode=$(in_mode "${2:-1}") enqueue "$(id "$1" "${2:-1}")" 30000 "h$1"; }
give() { release "$(id "$1" "${2:-1}")" "h$1"; }
# The numbers of the slots in the last reply, which granted something.
assert_slots() { [[ ${lines[0]} == granted && ${lines[3]} == "$1" ]] || { echo "not slots $1: $output" && return 1; }; }
free_slots() { redis srv get "$lock"; }
named() { mode="3 ${3:-1} from $2" acquire "$(id "$1" "${3:-1}")" 30000 "h$1" ''; }

@test "each owner gets the lowest free number, and keeps it" {
  run -0 take 1
  assert_slots 0
  run -0 take 2
  assert_slots 1
  run -0 take 3
  assert_slots 2
  give 2
  give 1
  run -0 renew "$(id 3)" 30000
  run -0 take 4
  assert_slots 0
  run -0 take 5
  assert_slots 1
  [[ $(redis srv hget "$pool" 2) == "$(hex 3)" && $(redis srv hget "$hold_keys$(hex 3)" slots) == 2 ]]
}

@test "a request that is sent again gets the same numbers" {
  run -0 take 1
  run -0 take 2 2
  assert_slots '1 2'
  run -0 take 2 2
  assert_slots '1 2'
  [[ $(free_slots) == 0 && $(redis srv zcard "$permits") == 3 ]]
}

@test "an owner of several slots has a permit for each, all or none, and loses and gives back all of them" {
  run -0 take 1 2
  assert_slots '0 1'
  [[ $(free_slots) == 1 && $(redis srv zcard "$permits") == 2 ]]
  run -0 take 2 2
  [[ ${lines[0]} == held && $(free_slots) == 1 ]]
  run -0 take 3
  assert_slots 2
  run -0 give 1 2
  [[ ${lines[0]} == released && $(free_slots) == 2 && $(redis srv zcard "$permits") == 1 ]]
  run -0 take 2 2
  assert_slots '0 1'
  run -0 force_unlock "$(id 2 2)"
  [[ ${lines[0]} == released && $(free_slots) == 2 && $(redis srv zcard "$permits") == 1 ]]
}

@test "all permits of an owner are renewed, and end, together" {
  take 1 2 5000
  run -0 renew "$(id 1 2)" 60000
  [[ ${lines[0]} == renewed ]]
  local ends
  ends=$(redis srv zrange "$permits" 0 -1 withscores | grep -aoE '^[0-9]{13}$' | sort -u)
  [[ $(wc -l <<<"$ends") == 1 ]]
}

@test "if one of several permits is gone, the owner has lost all" {
  take 1 3
  redis srv zremrangebyrank "$permits" 0 0
  run -0 renew "$(id 1 3)" 30000
  [[ ${lines[0]} == other-owner ]]
}

@test "the number of a permit that another program has released is free, those of the others are not" {
  mode='4 3' acquire "$(id 1 3)" 30000 h1 '' >/dev/null
  lose "$(rest 1 3 1)"
  mode='4 2' run -0 acquire "$(id 2 2)" 30000 h2 ''
  assert_slots '1 3'
}

@test "an owner that has lost one of its permits gives back the others, once; so does force_unlock" {
  listen "$(id 4 2)"
  take 1 3
  lose "$(rest 1 3 2)"
  queue_up 4 2
  run -0 renew "$(id 1 3)" 30000
  [[ ${lines[0]} == other-owner && $(free_slots) == 1 ]]
  run -0 give 1 3
  [[ ${lines[0]} == other-owner && $(free_slots) == 1 && $(redis srv exists "$hold_keys$(hex 1 3)") == 0 ]]
  hears "$(id 4 2)" granted
  run -0 give 1 3
  [[ ${lines[0]} == other-owner && $(free_slots) == 1 ]]
  run -0 queue_up 4 2
  assert_slots '0 1'
  lose "$(rest 4 2 1)"
  run -0 force_unlock "$(id 4 2)"
  [[ ${lines[0]} == released && $(free_slots) == 3 && $(redis srv zcard "$permits") == 0 ]]
  run -0 force_unlock "$(id 4 2)"
  [[ ${lines[0]} == other-owner ]]
}

@test "slots of a crashed owner come back, with their numbers" {
  take 1 2 1000
  take 2
  over() { run -0 take 3 2 && [[ ${lines[0]} == granted ]]; }
  wait_until over
  assert_slots '0 1'
  run -0 renew "$(id 1 2)" 30000
  [[ ${lines[0]} == other-owner ]]
}

@test "permits without a number, as a Java program takes them, leave a correct rest" {
  take 1
  local ends=9999999999999
  # shellcheck disable=SC2016 # the script of the server
  redis srv eval 'redis.call("zadd", KEYS[1], ARGV[1], string.rep("j", 16)) return redis.call("incrby", KEYS[2], -1)' \
    2 "$permits" "$lock" "$ends"
  run -0 take 2 2
  [[ ${lines[0]} == held ]]
  run -0 take 3
  assert_slots 1
  run -0 take 4
  [[ ${lines[0]} == held ]]
  # Another program releases one of rlock's permits: its number is free again.
  # shellcheck disable=SC2016
  redis srv eval 'for _, id in ipairs(redis.call("zrange", KEYS[1], 0, 0)) do redis.call("zrem", KEYS[1], id) end
    return redis.call("incrby", KEYS[2], 1)' 2 "$permits" "$lock"
  run -0 take 4
  assert_slots 0
}

@test "waiters get their slots and numbers in the order of their arrival: small ones wait behind a big one" {
  take 1
  take 2
  take 3
  listen "$(id 4 2)" "$(id 5)"
  queue_up 4 2
  queue_up 5
  give 1
  [[ $(in_queue) == "$(id 4 2) $(id 5)" && $(free_slots) == 1 ]]
  # Nobody passes them.
  run -0 take 6
  [[ ${lines[0]} == held ]]
  run -0 queue_up 5
  [[ ${lines[0]} == held ]]
  give 2
  hears "$(id 4 2)" granted
  [[ $(in_queue) == "$(id 5)" && $(free_slots) == 0 ]]
  run -0 queue_up 4 2
  assert_slots '0 1'
  give 4 2
  hears "$(id 5)" granted
  run -0 queue_up 5
  assert_slots 0
}

@test "a waiter for several slots is told when so many leases end" {
  take 1 1 20000
  take 2 1 40000
  take 3 1 60000
  run -0 --keep-empty-lines queue_up 4 2
  [[ ${lines[0]} == held ]]
  ((lines[1] > 20000 && lines[1] <= 40000))
}

@test "a release by an earlier version grants a slot without a number; its waiter gets one when it takes it" {
  take 1
  take 2
  take 3
  listen "$(id 4)"
  queue_up 4
  give 2
  hears "$(id 4)" granted
  redis srv hdel "$hold_keys$(hex 4)" slots
  redis srv hdel "$pool" 1
  run -0 queue_up 4
  assert_slots 1
}

@test "names of slots: others are refused while somebody holds or waits, and may come afterwards" {
  run -0 named 1 a,b,c 2
  assert_slots '0 1'
  run -0 named 2 a,c,b
  [[ $output == $'other-names\na,b,c' ]]
  run -0 named 3 a,b,c
  assert_slots 2
  give 1 2
  give 3
  [[ $(redis srv exists "$pool") == 0 ]]
  run -0 named 2 a,c,b
  assert_slots 0
}

@test "a request that is refused, or only waits, gives the slots no names" {
  take 1 3
  mode='2 1 from a,b' run -0 acquire "$(id 2)" 30000 h2 ''
  [[ $output == $'other-slots\n3' ]]
  run -0 named 2 x,y,z
  [[ ${lines[0]} == held ]]
  listen "$(id 3)" "$(id 4)" "$(id 5)"
  queue_up 3
  mode='3 1 from x,y,z' run -0 enqueue "$(id 4)" 30000 h4
  mode='3 1 from a,b,c' run -0 enqueue "$(id 5)" 30000 h5
  [[ ${lines[0]} == held && $(redis srv hexists "$pool" names) == 0 ]]
  # Only one of two lists can become the names, that of the first one that gets a slot.
  give 1 3
  hears "$(id 3)" granted
  hears "$(id 4)" granted
  [[ $(redis srv hget "$pool" names) == x,y,z && $(in_queue) == "$(id 5)" ]]
  mode='3 1 from a,b,c' run -0 enqueue "$(id 5)" 30000 h5
  [[ $output == $'other-names\nx,y,z' ]]
}

@test "names come with a request with names under an owner without" {
  take 1
  mode='3 1 from x,y,z' run -0 acquire "$(id 5)" 30000 h5 "$(id 1)"
  assert_slots 0
  run -0 named 2 y,x,z
  [[ $output == $'other-names\nx,y,z' ]]
}

@test "a renewal restores names that were deleted, unless the slots have got others" {
  named 1 x,y,z >/dev/null
  named 2 x,y,z >/dev/null
  redis srv del "$pool"
  run -0 renew "$(id 1)" 30000
  [[ ${lines[0]} == renewed && $(redis srv hmget "$pool" 0 1 names | xargs) == "$(hex 1) x,y,z" ]]
  assert_bounded "$pool"
  run -0 named 3 y,x,z
  [[ $output == $'other-names\nx,y,z' ]]
  redis srv del "$pool"
  run -0 named 3 y,x,z
  assert_slots 0
  run -0 renew "$(id 2)" 30000
  [[ ${lines[0]} == other-owner ]]
}

@test "an owner that is let in again has the same numbers, and cannot get more" {
  take 1
  run -0 take 2 2
  mode=3 run -0 acquire "$(id 5)" 30000 h5 "$(id 2 2)"
  [[ ${lines[1]} == "$(id 2 2)" ]]
  assert_slots '1 2'
  mode='3 2' run -0 acquire "$(id 5 2)" 30000 h6 "$(id 1)"
  [[ $output == no-upgrade ]]
}

@test "inspect: an owner of several slots is one holder, and says which it has" {
  take 1 2
  take 2
  run -0 --keep-empty-lines inspect
  [[ ${lines[4]} == 3 && ${lines[5]} == 2 ]]
  [[ $output == *$'\nslots\n0 1\n'* && $output == *$'\nslots\n2\n'*$'\n0\n3\n'* ]]
}

@test "a waiter of a pool with more than a thousand slots taken is told about how many have them; inspect counts them" {
  local owner
  for owner in {10..29}; do
    mode='1280 64' acquire "000000$owner-0000-8000-8000-000000000040:1" 30000 "h$owner" '' >/dev/null
  done
  mode=1280 run -0 --keep-empty-lines acquire "$(id 1)" 30000 h1 ''
  [[ ${lines[0]} == held && ${lines[5]} == 21 ]]
  run -0 --keep-empty-lines inspect
  [[ ${lines[4]} == 1280 && ${lines[5]} == 20 ]]
}

@test "a user with the rights of an earlier version gets a slot without a number, but no named resource" {
  redis srv acl setuser weak reset on '>pw' '~lock*' '~{lock*' '~redisson*' '~rlock:hold*' '~rlock:queue*' '~rlock:waiters*' '&*' +@all
  script_user=(--user weak --pass pw --no-auth-warning)
  run -0 --keep-empty-lines take 1
  [[ ${lines[0]} == granted && ${lines[3]} == '' && $(free_slots) == 2 ]]
  run -0 renew "$(id 1)" 30000
  run named 2 a,b,c
  [[ $status == 1 && $(free_slots) == 2 ]]
  lacks_a_right "$output"
  run -0 give 1
  [[ ${lines[0]} == released && $(free_slots) == 3 ]]
}

@test "a value of another type in place of the numbers is an error, and takes no slot" {
  take 1
  redis srv set "$pool" x px 60000
  run take 2
  [[ $status == 1 && $output == *WRONGTYPE* && $(free_slots) == 2 && $(redis srv zcard "$permits") == 1 ]]
  run -0 give 1
  [[ ${lines[0]} == released && $(free_slots) == 3 ]]
}

@test "a hash in which a living permit has thousands of numbers is not searched" {
  take 1
  redis srv eval "for i = 0, 20000 do redis.call('hset', KEYS[1], i, ARGV[1]) end" 1 "$pool" "$(hex 1)"
  redis srv config resetstat
  run -0 --keep-empty-lines take 2
  assert_slots ''
  (($(count_calls hmget) < 100))
  run named 3 x,y,z
  [[ $status == 1 && $output == *'has more than 10000 fields'* && $(free_slots) == 1 ]]
}

@test "an owner that has lost one of its permits and asks again gets back what it lacks" {
  take 1 2
  redis srv zremrangebyrank "$permits" 0 0
  redis srv incrby "$lock" 1
  run -0 take 1 2
  assert_slots '0 1'
  [[ $(free_slots) == 1 && $(redis srv zcard "$permits") == 2 ]]
}

@test "a waiter for more slots than there are is told so" {
  take 1
  listen "$(id 4 3)"
  queue_up 4 3
  mode=2 resize=1 run -0 acquire "$(id 5)" 30000 h5 ''
  [[ ${lines[0]} == held ]]
  run -0 queue_up 4 3
  [[ $output == $'other-slots\n2' ]]
}

@test "a renewal restores numbers that were deleted, unless a living owner has got one of them" {
  take 1 2
  take 2
  redis srv del "$pool"
  run -0 renew "$(id 1 2)" 30000
  [[ ${lines[0]} == renewed && $(redis srv hmget "$pool" 0 1 2 | xargs) == "$(hex 1 2) $(rest 1 2 1)" ]]
  assert_bounded "$pool"
  run -0 renew "$(id 2)" 30000
  [[ ${lines[0]} == renewed && $(redis srv hget "$pool" 2) == "$(hex 2)" ]]
  redis srv del "$pool"
  give 2
  run -0 take 3
  assert_slots 0
  run -0 renew "$(id 1 2)" 30000
  [[ ${lines[0]} == other-owner ]]
}

@test "the history has the slots of a job that has died" {
  mode='3 3' acquire "$(id 1 3)" 1000 h1 '' host h history semaphore
  recorded() { take 2 >/dev/null && [[ $(redis srv exists "rlock:history:{$lock}") == 1 ]]; }
  wait_until recorded
  run -0 redis srv xrange "rlock:history:{$lock}" - +
  [[ $output == *$'\nslots\n0 1 2'* ]]
}

@test "a full server refuses a new owner, and lets others renew, release and wait" {
  take 1 2
  fill_memory
  run take 2
  [[ $status == 1 && $(free_slots) == 1 ]]
  run -0 renew "$(id 1 2)" 30000
  [[ ${lines[0]} == renewed ]]
  run -0 give 1 2
  [[ ${lines[0]} == released && $(free_slots) == 3 ]]
}

@test "a thousand random requests get what a model of the queue says" {
  not_over acl 'it empties the server'
  local seed=${SEED:-$RANDOM}
  echo "# SEED=$seed" >&3
  run python3 -B "$TESTS_DIR/lib/pools_simulation.py" "$srv_sock" "$BATS_FILE_TMPDIR/words.lua" "$seed" "${REQUESTS:-1000}"
  printf '# %s\n' "${lines[@]}" >&3
  [[ $status == 0 ]]
}
