#!/usr/bin/env bats
# lua/06_semaphore.lua: a limited number of holders at a time, in the layout of Redisson's RPermitExpirableSemaphore.

load ../lib/common
load ../lib/fault_scripts

setup_file() { start_script_server; }
setup() {
  fresh_lock
  use_lock "lock-$BATS_TEST_NUMBER" semaphore 2
  permits="{$lock}:timeout"
}
teardown() {
  [[ -n ${immortal:-} ]] || assert_mortal
  end_listeners
}
teardown_file() { redis_stop srv; }

# Owner ids begin with a UUID, whose bytes are the permit.
id() { printf '0000000%s-0000-4000-8000-000000000000:1' "$1"; }
hex() { printf '0000000%s000040008000000000000000' "$1"; }
take() { acquire "$(id "$1")" "${2:-30000}" "h$1" ''; }
queue_up() { enqueue "$(id "$1")" 30000 "h$1"; }
give() { release "$(id "$1")" "h$1" "${2:-0}"; }
free_slots() { redis srv get "$lock"; }
ends_of() { redis srv zscore "$permits" "$(printf '%b' "$(hex "$1" | sed 's/../\\x&/g')")"; }
server_ms() { redis srv time | { read -r s && read -r us && echo $((s * 1000 + us / 1000)); }; }

@test "the keys are Redisson's" {
  run -0 take 1
  [[ ${lines[0]} == granted && ${lines[1]} == "$(id 1)" ]]
  [[ $(redis srv type "$lock") == string && $(free_slots) == 1 ]]
  [[ $(redis srv zcard "$permits") == 1 ]]
  # The permit id is sixteen raw bytes, including NUL; the end is in ms.
  [[ $(redis srv --no-raw zrange "$permits" 0 0) == *'\x00\x00\x00\x01\x00\x00@\x00\x80'* ]]
  [[ $(redis srv hget "$hold_keys$(hex 1)" owner) == "$(id 1)" ]]
}

@test "no more holders than slots" {
  take 1
  run -0 take 2
  [[ ${lines[0]} == granted && $(free_slots) == 0 ]]
  run -0 --keep-empty-lines take 3
  [[ ${lines[0]} == held && ${lines[1]} -gt 10000 && ${lines[5]} == 2 ]]
  give 1
  run -0 take 3
  [[ ${lines[0]} == granted ]]
}

@test "a semaphore without holders stays for a while, for Java, and does not prevent another kind" {
  take 1
  take 2
  give 1
  give 2
  [[ $(free_slots) == 2 && $(redis srv exists "$permits" "$hold_keys$(hex 1)" "$hold_keys$(hex 2)") == 0 ]]
  layout=plain mode='' run -0 acquire a 30000 ha ''
  [[ ${lines[0]} == granted && $(redis srv hkeys "$lock") == a:0 ]]
}

@test "a semaphore in use prevents another kind, as does one whose last holder has crashed, until its lease ends" {
  take 1 4000
  layout=plain mode='' run -0 acquire a 30000 ha ''
  [[ $output == $'other-kind\nsemaphore' ]]
  over() { layout=read_write mode=read run -0 acquire a 30000 ha '' && [[ ${lines[0]} == granted ]]; }
  wait_until over
}

@test "a crashed holder's slot comes back when its lease ends" {
  take 1 4000
  take 2 30000
  run -0 --keep-empty-lines take 3
  [[ ${lines[0]} == held ]] && ((lines[1] <= 4000))
  over() { run -0 take 3 && [[ ${lines[0]} == granted ]]; }
  wait_until over
  [[ $(redis srv zcard "$permits") == 2 && $(free_slots) == 0 ]]
  run -0 renew "$(id 1)" 30000
  [[ ${lines[0]} == other-owner ]]
  run -0 give 1
  [[ ${lines[0]} == other-owner && $(free_slots) == 0 ]]
}

@test "all holders have crashed: the next one takes it, with any number of slots" {
  take 1 1000
  take 2 1000
  over() { mode=5 run -0 take 3 && [[ ${lines[0]} == granted ]]; }
  wait_until over
  [[ $(free_slots) == 4 ]]
}

@test "another number of slots is refused while one is held, unless resized" {
  take 1
  mode=3 run -0 take 2
  [[ $output == $'other-slots\n2' && $(free_slots) == 1 ]]
  mode=3 resize=1 run -0 take 2
  [[ ${lines[0]} == granted && $(free_slots) == 1 ]]
  mode=3 run -0 take 3
  [[ ${lines[0]} == granted && $(free_slots) == 0 ]]
  # Fewer than the holders: these stay, and nobody gets a slot until enough have left.
  mode=1 resize=1 run -0 --keep-empty-lines take 4
  [[ ${lines[0]} == held && $(free_slots) == -2 ]]
  give 1
  give 2
  mode=1 run -0 --keep-empty-lines take 4
  [[ ${lines[0]} == held && $(free_slots) == 0 ]]
  give 3
  mode=1 run -0 take 4
  [[ ${lines[0]} == granted ]]
}

@test "a semaphore that Redisson made keeps its slots, and stays" {
  immortal=1
  redis srv set "$lock" 2
  resize=2 take 1
  [[ $(redis srv pttl "$lock") == -1 && $(free_slots) == 1 ]]
  mode=3 run -0 take 2
  [[ $output == $'other-slots\n2' ]]
  give 1
  [[ $(free_slots) == 2 && $(redis srv pttl "$lock") == -1 && $(redis srv exists "$permits") == 0 ]]
  mode=3 resize=2 run -0 take 2
  [[ $output == $'other-slots\n2' ]]
}

@test "Redisson's permits count, also those without an end" {
  immortal=1
  redis srv set "$lock" 1
  redis srv zadd "$permits" 922337203685477 foreign-permit-1
  take 1
  run -0 --keep-empty-lines take 2
  [[ ${lines[0]} == held && ${lines[5]} == 2 ]]
  redis srv zrem "$permits" foreign-permit-1
  redis srv incr "$lock"
  run -0 take 2
  [[ ${lines[0]} == granted ]]
}

@test "a renewal moves only the owner's own end" {
  take 1 20000
  take 2 30000
  run -0 renew "$(id 1)" 60000
  [[ ${lines[0]} == renewed ]] && ((lines[1] <= 20000))
  (($(redis srv zcount "$permits" "$(($(server_ms) + 35000))" +inf) == 1))
  (($(redis srv pttl "$hold_keys$(hex 1)") > 35000))
}

@test "a release gives the slot to the first waiter, and then publishes nothing for Redisson" {
  listen "$(id 3)" "$(id 4)"
  take 1
  take 2
  queue_up 3
  queue_up 4
  local before
  before=$(count_calls publish)
  give 1
  hears "$(id 3)" granted
  [[ $(free_slots) == 0 && $(in_queue) == "$(id 4)" ]]
  wait_until grep -q '^first' "heard-$(id 4)"
  run -0 queue_up 3
  [[ ${lines[0]} == granted ]]
  (($(count_calls publish) == before + 2)) # those two
}

@test "the number of free slots is published" {
  hear_releases heard-all
  take 1
  take 2
  give 1
  wait_until grep -qx 1 heard-all
  # A listener may be Redisson: it finds the slots where it looks for them.
  give 2
  wait_until grep -qx 2 heard-all
  [[ $(free_slots) == 2 ]]
}

@test "newcomers do not overtake waiters" {
  listen "$(id 3)"
  take 1
  take 2
  queue_up 3
  redis srv zrem "$permits" "$(redis srv zrange "$permits" 0 0)" >/dev/null
  give 2
  hears "$(id 3)" granted
  run -0 --keep-empty-lines take 4
  [[ ${lines[0]} == held ]]
}

@test "an heir's hold takes no further slot" {
  take 1
  run -0 acquire "$(id 9)" 30000 inner "$(id 1)"
  [[ ${lines[0]} == granted && ${lines[1]} == "$(id 1)" && $(free_slots) == 1 ]]
  run -0 acquire "$(id 9)" 30000 inner "$(id 1)"
  run -0 release "$(id 1)" inner
  [[ ${lines[1]} == 1 && $(free_slots) == 1 ]]
  run -0 give 1
  [[ ${lines[1]} == 0 && $(free_slots) == 2 ]]
}

@test "sent again after a lost reply, it takes one slot" {
  take 1
  run -0 take 1
  [[ ${lines[0]} == granted && $(free_slots) == 1 ]]
}

@test "an owner id that is not a permit holds nothing" {
  take 1
  run -0 renew somebody 30000
  [[ ${lines[0]} == other-owner ]]
  run -0 release somebody h
  [[ ${lines[0]} == other-owner ]]
  run -0 force_unlock '00000001-0000-4000-8000-00000000000g:1'
  [[ ${lines[0]} == other-owner && $(free_slots) == 1 ]]
}

@test "force_unlock takes the slot of one holder, by its id or by the permit as Redisson prints it" {
  take 1
  take 2
  run -0 force_unlock "$(id 1)"
  [[ ${lines[0]} == released && $(free_slots) == 1 ]]
  run -0 force_unlock "$(hex 2)"
  [[ ${lines[0]} == released && $(redis srv exists "$permits" "$hold_keys$(hex 2)") == 0 && $(free_slots) == 2 ]]
}

@test "a text is another kind, as is a plain lock, and nothing is changed" {
  redis srv set "$lock" text px 30000
  run -0 take 1
  [[ ${lines[0]} == other-kind && ${lines[1]} == string && $(redis srv get "$lock") == text ]]
  redis srv del "$lock"
  redis srv hset "$lock" java:1 1
  redis srv pexpire "$lock" 30000
  run -0 take 1
  [[ $output == $'other-kind\nplain lock' ]]
  run -0 give 1
  [[ $output == $'other-kind\nplain lock' ]]
}

@test "a permits key with something else is refused before anything is written" {
  redis srv hset "$permits" java:1 1
  redis srv pexpire "$permits" 30000
  run -0 take 1
  [[ ${lines[0]} == other-kind && ${lines[1]} == "hash at $permits" && $(redis srv exists "$lock") == 0 ]]
}

@test "keep: the slot stays taken for that time" {
  take 1
  run -0 give 1 700
  [[ ${lines[0]} == kept ]]
  [[ $(free_slots) == 1 ]]
  (($(redis srv zcount "$permits" "$(($(server_ms) + 700))" +inf) == 0))
}

@test "release and renewal work on a server that is out of memory, a grant does not" {
  mode=3
  take 1
  take 2
  fill_memory
  run -1 take 3
  assert_says OOM
  [[ $(free_slots) == 1 ]]
  run -0 renew "$(id 1)" 60000
  [[ ${lines[0]} == renewed ]]
  run -0 give 1 700
  [[ ${lines[0]} == kept ]]
  run -0 force_unlock "$(id 2)"
  [[ ${lines[0]} == released && $(free_slots) == 2 ]]
}

@test "a server that is out of memory does not refuse a waiter that finds the slot of a dead holder" {
  listen "$(id 3)"
  take 1
  take 2 100
  expired() { (($(redis srv zcount "$permits" -inf "$(server_ms)") == 1)); }
  wait_until expired
  fill_memory
  run -0 queue_up 3
  free_memory
  [[ ${lines[0]} == granted || ${lines[0]} == held ]]
}

# whole_without RIGHT COMMAND...: a user without that right succeeds or gets an error; no slot is lost or gained.
whole_without() {
  as_weak_user "$1"
  run "${@:2}"
  as_full_user
  [[ $(redis srv exists "$lock") == 0 ]] || (($(free_slots) + $(redis srv zcard "$permits") == 2)) || {
    echo "${*:2} without $1: $(free_slots) free, $(redis srv zcard "$permits") taken"
    return 1
  }
  [[ ${immortal:-} ]] || assert_mortal
}
another_lock() {
  fresh_lock
  use_lock "lock-$1" semaphore 2
  permits="{$lock}:timeout"
}

@test "a user without any one of the rights succeeds or does not change the slots" {
  local right
  for right in $SCRIPT_COMMANDS; do
    another_lock "$right"
    whole_without "$right" take 1
    [[ $(redis srv exists "$permits") == 1 || $(redis srv exists "$lock") == 0 ]] || {
      echo "half made without $right"
      return 1
    }
    as_full_user
    take 2
    whole_without "$right" give 2
  done
}

@test "the same for a semaphore made by Java, and for slots that come back" {
  immortal=1
  local right
  for right in $SCRIPT_COMMANDS; do
    another_lock "$right"
    redis srv set "$lock" 1
    redis srv zadd "$permits" 1 crashed-permit-1
    whole_without "$right" take 1
  done
}

@test "a user without the right to delete takes no slot of a Java semaphore that could not be given back" {
  immortal=1
  another_lock java
  redis srv set "$lock" 2
  redis srv zadd "$permits" 9000000000000 another-permit-1
  redis srv decr "$lock"
  as_weak_user del
  run take 1
  as_full_user
  [[ $status == 1 && $(free_slots) == 1 ]]
}

@test "additional and new slots are published" {
  hear_releases heard-all
  mode=3 take 1
  wait_until grep -qx 2 heard-all
  mode=5 resize=1 take 2
  wait_until grep -qx 4 heard-all
}

@test "a semaphore lives as long as its longest permit" {
  local days=$((60 * 24 * 3600 * 1000))
  take 1 $days
  (($(redis srv pttl "$lock") > days - 60000 && $(redis srv pttl "$permits") > days - 60000))
}

@test "a semaphore that Java has deleted and made again is not rlock's" {
  immortal=1
  take 1
  give 1
  redis srv del "$lock"
  redis srv set "$lock" 2
  run -0 take 2
  [[ ${lines[0]} == other-kind ]]
  resize=2 take 2
  give 2
  [[ $(free_slots) == 2 && $(redis srv pttl "$lock") == -1 ]]
  mode=3 resize=2 run -0 take 3
  [[ $output == $'other-slots\n2' ]]
}

@test "if a semaphore is deleted while slots are held, they are lost, and no key without a TTL is made" {
  take 1
  redis srv del "$lock"
  run -0 renew "$(id 1)" 30000
  [[ ${lines[0]} == free ]]
  run -0 give 1
  [[ ${lines[0]} == free && $(redis srv exists "$lock") == 0 ]]
  run -0 take 2
  [[ ${lines[0]} == granted && $(free_slots) == 1 && $(redis srv zcard "$permits") == 1 ]]
}

@test "the number of slots does not change while others wait" {
  listen "$(id 3)"
  take 1
  take 2
  queue_up 3
  redis srv zremrangebyscore "$permits" -inf +inf
  redis srv set "$lock" 2 keepttl
  mode=5 run -0 take 4
  [[ $output == $'other-slots\n2' ]]
}

@test "a renewal shortens no Java permit" {
  immortal=1
  redis srv set "$lock" 1
  redis srv zadd "$permits" 922337203685477 "$(printf '0123456789abcde\x7f')"
  local id
  id=$(printf '0123456789abcde\x7f' | od -An -tx1 | tr -d ' ')
  run -0 renew "$id" 5000
  [[ ${lines[0]} == renewed ]]
  (($(redis srv zcount "$permits" 900000000000000 +inf) == 1))
}

@test "if two slots become free at once, one is left to other programs that listen" {
  hear_releases heard-all
  hear_releases heard-too
  listen "$(id 3)" "$(id 4)"
  take 1
  take 2
  queue_up 3
  queue_up 4
  give 1
  hears "$(id 3)" free
  run -0 in_others_turn take 5
  [[ ${lines[0]} == held ]]
  in_others_turn give 2
  hears "$(id 3)" granted
  hears "$(id 4)" free
  [[ $(free_slots) == 1 && $(in_queue) == "$(id 4)" ]]
  redis srv hset "$waiters" open 1
  turn() { run -0 queue_up 4 && [[ ${lines[0]} == granted ]]; }
  wait_until turn
}

@test "inspect names the holders, and changes nothing, even if one has crashed" {
  mode=3
  take 1
  take 2
  redis srv incrby "$lock" -1
  redis srv zadd "$permits" 1 crashed-permit-1
  changes() { redis srv info persistence | grep '^rdb_changes_since_last_save'; }
  local before
  before=$(changes)
  run -0 --keep-empty-lines inspect
  [[ $(changes) == "$before" && ${lines[1]} == -2 && ${lines[4]} == 3 && ${lines[5]} == 2 && $output == *"$(hex 1)"*"$(hex 2)"* ]]
}

@test "a number beside permits of a deleted semaphore is not taken for a Java semaphore: no slot is lost" {
  take 1
  redis srv set "$lock" 5
  resize=2 run -0 take 2
  [[ ${lines[0]} == other-kind && $(free_slots) == 5 && $(redis srv zcard "$permits") == 1 ]]
  redis srv del "$lock" "$permits"
}

@test "a permit of another program may end with a fraction of a millisecond, in a few months" {
  take 1
  redis srv zadd "$permits" "$(($(server_ms) + 100 * 24 * 3600 * 1000)).5" 0123456789abcdef
  redis srv decr "$lock"
  run -0 renew "$(id 1)" 30000
  [[ ${lines[0]} == renewed ]]
  run -0 give 1
  [[ ${lines[0]} == released && $(free_slots) == 1 ]]
  run -0 take 2
  [[ ${lines[0]} == granted ]]
  redis srv eval "redis.call('zadd', KEYS[1], ARGV[1] .. '.5', redis.call('zrange', KEYS[1], 0, 0)[1])" 1 "$permits" \
    "$(($(server_ms) + 40000))"
  redis srv hset "$hold_keys$(hex 2)" lease 60000
  run -0 acquire "$(id 3)" 30000 h3 "$(id 2)"
  [[ ${lines[0]} == granted ]]
}

@test "an idle semaphore gives way to another kind only if the key beside it has no other data" {
  take 1
  give 1
  redis srv zadd "$permits" 5 application 6 data
  redis srv pexpire "$permits" 60000
  layout=plain mode='' run -0 acquire a 30000 ha ''
  [[ ${lines[0]} == other-kind && $(redis srv zcard "$permits") == 2 ]]
}

@test "a number with zeros in front is not a semaphore's" {
  take 1
  local number
  for number in 000000000000000000002text 00; do
    redis srv set "$lock" "$number" keepttl
    run -0 inspect
    [[ ${lines[0]} == other-kind ]]
    run -0 give 1
    [[ ${lines[0]} == other-kind && $(redis srv get "$lock") == "$number" ]]
  done
}

@test "a holder whose description was deleted asks again: that leaves nothing without a time" {
  take 1
  redis srv del "$hold_keys$(hex 1)"
  run -0 take 1
  [[ ${lines[0]} == granted ]]
  assert_mortal
}

@test "a deleted semaphore is not made again by the release of an owner of several slots, or by force" {
  local several=00000009-0000-8000-8000-000000000002:1
  mode='3 2'
  acquire "$several" 30000 h9 ''
  redis srv del "$lock"
  run -0 release "$several" h9
  [[ ${lines[0]} == free && $(redis srv exists "$lock") == 0 ]]
  run -0 force_unlock "$several"
  [[ ${lines[0]} == free && $(redis srv exists "$lock") == 0 ]]
  run -0 take 1
  [[ ${lines[0]} == granted && $(free_slots) == 2 ]]
}
