#!/usr/bin/env bats
# lua/04_kinds.lua: one holder, in the layout of SET key value NX PX.

load ../lib/common
load ../lib/fault_scripts

setup_file() { start_script_server; }
setup() {
  fresh_lock
  use_lock "$lock" string
}
teardown() {
  end_listeners
  assert_mortal
}
teardown_file() { redis_stop srv; }

value() { redis srv get "$lock"; }
# foreign [VALUE [MS]]: another program has taken it.
foreign() { redis srv set "$lock" "${1:-random}" nx px "${2:-60000}" >/dev/null; }
# ttl_within LEAST MOST: checks the lock's TTL.
ttl_within() {
  local ttl
  ttl=$(redis srv pttl "$lock")
  ((ttl > $1 && ttl <= $2)) || {
    echo "pttl $ttl" >&2
    return 1
  }
}
waits() { run -0 enqueue "$1" 30000 "h$1" && [[ ${lines[0]} == held ]]; }

@test "acquire: the owner id is the value, with a lease, a token and a description; sent twice, it counts once" {
  local token
  run -0 acquire a 5000 ha '' host h pid 7
  [[ ${lines[0]} == granted && ${lines[1]} == a && ${lines[2]} =~ ^[0-9]{16}$ ]]
  token=${lines[2]}
  [[ $(redis srv type "$lock") == string && $(value) == a:0 && $(field host) == h && $(field token) == "$token" ]]
  ttl_within 0 5000
  assert_bounded "$holder"
  redis srv pexpire "$lock" 1000
  run -0 acquire a 5000 ha '' host h pid 7
  [[ $output == "granted"$'\n'"a"$'\n'"$token" && $(value) == a:0 ]]
  ttl_within 1000 5000
  # SET NX of another program is refused.
  [[ -z $(redis srv set "$lock" random nx px 60000) && $(value) == a:0 ]]
}

@test "acquire: another program's string is held by its value for its TTL, and is not touched" {
  foreign '1f0a-random' 60000
  run -0 acquire a 5000 ha ''
  [[ ${lines[0]} == held && ${lines[*]} == *' 1 1f0a-random '* && $(value) == 1f0a-random ]]
  ((lines[1] > 50000 && lines[1] <= 60000))
  [[ $(redis srv dbsize) == 1 ]]
}

@test "acquire: a string without a TTL is held forever" {
  redis srv set "$lock" ''
  run -0 acquire a 5000 ha ''
  [[ ${lines[0]} == held && ${lines[1]} == -1 ]]
  redis srv del "$lock"
}

@test "acquire: a value of a megabyte is cut" {
  head -c 1000000 /dev/zero | tr '\0' x | redis srv -x set "$lock"
  redis srv pexpire "$lock" 60000
  acquire a 5000 ha '' >reply
  [[ $(head -n 1 reply) == held && $(grep -o 'x*' reply | head -n 1 | tr -d '\n' | wc -c) == 512 ]]
  (($(wc -c <reply) < 2000))
  inspect >reply
  (($(wc -c <reply) < 2000))
}

@test "acquire: locks of other kinds are named, and not changed" {
  local kind
  for kind in 'plain,,plain lock' 'read_write,read,read-write lock' 'semaphore,2,semaphore'; do
    redis srv flushall
    IFS=, read -r layout mode what <<<"$kind"
    layout=$layout mode=$mode acquire 00000001-0000-4000-8000-000000000000:1 30000 h ''
    use_lock "$lock" string
    run -0 acquire a 5000 ha ''
    [[ $output == $'other-kind\n'"$what" ]]
  done
  redis srv del "$lock"
  redis srv rpush "$lock" 1
  run -0 acquire a 5000 ha ''
  [[ "${lines[*]}" == 'other-kind list -1 data' && $(redis srv lrange "$lock" 0 -1) == 1 ]]
  redis srv del "$lock"
}

@test "acquire: an unused semaphore of rlock does not prevent it, nor does a released string" {
  local permit=00000001-0000-4000-8000-000000000000:1
  layout=semaphore mode=2 acquire "$permit" 30000 h ''
  layout=semaphore mode=2 release "$permit" h
  run -0 acquire a 5000 ha ''
  [[ ${lines[0]} == granted && $(value) == a:0 && $(redis srv exists "{$lock}:timeout") == 0 ]]
  release a ha
  layout=plain mode='' run -0 acquire b 5000 hb ''
  [[ ${lines[0]} == granted && $(redis srv type "$lock") == hash ]]
}

@test "other layouts report it as a string with its TTL" {
  local one
  acquire a 30000 ha ''
  for one in 'plain ' 'read_write read' 'semaphore 2'; do
    # shellcheck disable=SC2086 # layout and mode
    use_lock "$lock" $one
    run -0 acquire b 5000 hb ''
    [[ ${lines[0]} == other-kind && ${lines[1]} == string && ${lines[3]} == text ]]
  done
  [[ $(value) == a:0 ]]
}

@test "other layouts do not take the key from its waiters, nor the other way round" {
  listen w
  foreign
  waits w
  redis srv del "$lock"
  layout=plain mode='' run -0 acquire b 5000 hb ''
  [[ $output == $'other-kind\nlock that others wait for' && $(redis srv exists "$lock") == 0 ]]
  redis srv flushall
  layout=plain mode='' acquire a 5000 ha ''
  layout=plain mode='' enqueue w 5000 hw
  redis srv del "$lock"
  run -0 acquire b 5000 hb ''
  [[ $output == $'other-kind\nlock that others wait for' && $(redis srv exists "$lock") == 0 ]]
}

@test "acquire: an heir of the holder gets a hold; the string stays, and the holds are counted beside it" {
  acquire a 30000 ha ''
  run -0 acquire b 30000 hb a
  [[ ${lines[0]} == granted && ${lines[1]} == a && $(value) == a:0 ]]
  run -0 acquire b 30000 hb a
  [[ ${lines[0]} == granted && $(field holds:a:0) == 2 ]]
  run -0 release a hb
  [[ ${lines[0]} == released && ${lines[1]} == 1 && $(value) == a:0 ]]
  run -0 release a hb
  [[ ${lines[1]} == 1 && $(value) == a:0 ]]
  run -0 release a ha
  [[ ${lines[0]} == released && ${lines[1]} == 0 && $(redis srv exists "$lock" "$holder") == 0 ]]
}

@test "acquire: the outer hold can be released first; an earlier holder's count means nothing" {
  acquire a 30000 ha ''
  acquire b 30000 hb a
  run -0 release a ha
  [[ ${lines[1]} == 1 && $(value) == a:0 ]]
  redis srv del "$lock" # and the description stays
  acquire a2 30000 ha2 ''
  [[ -z $(field holds:a:0) ]]
  run -0 release a2 ha2
  [[ ${lines[1]} == 0 && $(redis srv exists "$lock") == 0 ]]
}

@test "acquire: without the description, inner and outer holds can still be released, and no other id gets a hold" {
  acquire a:0 30000 a ''
  acquire b 30000 hb a:0
  redis srv del "$holder"
  run -0 release a:0 hb
  [[ ${lines[0]} == released && $(value) == a:0 ]]
  run -0 acquire c 30000 hc other
  [[ ${lines[0]} == held ]]
  run -0 acquire c 30000 hc "${lock}:9"
  [[ ${lines[0]} == held ]]
  run -0 release a:0 a
  [[ ${lines[1]} == 0 && $(redis srv exists "$lock") == 0 ]]
}

@test "renew: only for the value's owner, compared as a whole; sent twice, it does no harm, and nothing is shortened" {
  acquire a 30000 ha ''
  redis srv pexpire "$lock" 5000
  run -0 renew a 20000
  [[ ${lines[0]} == renewed ]]
  ttl_within 5000 20000
  run -0 renew a 20000
  [[ ${lines[0]} == renewed ]]
  run -0 renew b 90000
  [[ $output == other-owner ]]
  run -0 renew a:00 90000
  [[ $output == other-owner ]]
  ttl_within 0 20000
  redis srv set "$lock" a:0-and-more px 9000
  run -0 renew a 90000
  [[ $output == other-owner ]]
  ttl_within 0 9000
  redis srv del "$lock"
  run -0 renew a 90000
  [[ $output == free && $(redis srv exists "$lock") == 0 ]]
  redis srv rpush "$lock" a:0
  run -0 renew a 90000
  [[ $output == other-owner ]]
  redis srv del "$lock"
}

@test "renew: a lock without a TTL gets one" {
  acquire a 30000 ha ''
  redis srv persist "$lock"
  run -0 renew a 20000
  [[ ${lines[0]} == renewed ]]
  ttl_within 0 30000
}

@test "renew: another program's string only for a given time" {
  foreign
  run -0 renew random:0 0
  [[ $output == other-owner ]]
  redis srv set "$lock" random:0 px 9000
  run -0 renew random:0 0
  [[ $output == lease-unknown ]]
}

@test "release: only for the value's owner; sent twice, it counts once, and its outcome is remembered" {
  acquire a 30000 ha ''
  run -0 release b ha
  [[ ${lines[0]} == other-owner && $(value) == a:0 ]]
  run -0 release a ha 0 once 5000
  [[ ${lines[0]} == released && ${lines[1]} == 0 && $(redis srv exists "$lock") == 0 ]]
  foreign
  run -0 release a ha 0 once 5000
  [[ ${lines[0]} == released && $(value) == random ]]
  run -0 release a ha 0 again 5000
  [[ ${lines[0]} == other-owner && $(value) == random ]]
  redis srv del "$lock"
  run -0 release a ha 0 later 5000
  [[ ${lines[0]} == free ]]
  redis srv rpush "$lock" a:0
  run -0 release a ha
  [[ ${lines[0]} == other-kind && ${lines[1]} == list ]]
  redis srv del "$lock"
}

@test "release: the last hold can let the lock expire" {
  acquire a 30000 ha ''
  run -0 release a ha 4000
  [[ ${lines[0]} == kept && $(value) == a:0 && $(field kept) == 1 ]]
  ttl_within 0 4000
}

@test "release: every second one is open to programs that do not listen, and rlock's waiters are served in order" {
  cd "$BATS_TEST_TMPDIR" || return
  listen w1 w2 w3
  acquire a 30000 ha ''
  waits w1
  waits w2
  waits w3
  # The first one is open: nobody has the lock, the first waiter is told, and others may take it.
  run -0 release a ha
  [[ ${lines[0]} == released && $(redis srv exists "$lock") == 0 ]]
  hears w1 free
  run -0 in_others_turn enqueue w1 30000 hw1
  [[ ${lines[0]} == held && ${lines[1]} -le 90 ]]
  [[ $(redis srv set "$lock" random nx px 60000) == OK && $(in_queue) == 'w1 w2 w3' ]]
  redis srv del "$lock"
  w1_has_it() { enqueue w1 30000 hw1 && [[ $(value) == w1:0 ]]; }
  wait_until w1_has_it # when their turn is over
  # The second is not.
  run -0 release w1 hw1
  [[ $(value) == w2:0 ]]
  hears w2 granted
  run -0 enqueue w2 30000 hw2
  [[ ${lines[0]} == granted && $(in_queue) == w3 ]]
  run -0 release w2 hw2
  [[ $(redis srv exists "$lock") == 0 ]]
  hears w3 free
}

@test "force_unlock: only the given owner; of a long value, its beginning" {
  local long
  foreign
  run -0 force_unlock other:0
  [[ $output == other-owner && $(value) == random ]]
  run -0 script force-unlock owner=random begun= count=1000 by=me
  [[ ${lines[0]} == released && $(redis srv exists "$lock") == 0 ]]
  run -0 script force-unlock owner=random begun= count=1000 by=me
  [[ $output == free ]]
  long=$(head -c 512 /dev/zero | tr '\0' x)
  redis srv set "$lock" "$long-and-more" px 60000
  run -0 script force-unlock owner="${long%x}" begun= count=1000 by=me
  [[ $output == other-owner ]]
  run -0 script force-unlock owner="$long" begun= count=1000 by=me
  [[ ${lines[0]} == released && $(redis srv exists "$lock") == 0 ]]
  acquire a 30000 ha ''
  acquire b 30000 hb a
  # A hold that was not shown.
  run -0 force_unlock a
  [[ ${lines[0]} == changed && $(redis srv exists "$lock" "$holder") == 2 ]]
  run -0 force_unlock a '1 hb'
  [[ ${lines[0]} == released && $(redis srv exists "$lock" "$holder") == 0 ]]
}

@test "inspect: the value, its TTL, and its description if it is rlock's" {
  run -0 --keep-empty-lines inspect
  [[ ${lines[0]} == lock && ${lines[1]} == -2 && ${lines[5]} == 0 ]]
  acquire a 30000 ha '' host h
  run -0 --keep-empty-lines inspect
  [[ ${lines[0]} == lock && ${lines[5]} == 1 && ${lines[6]} == a && ${lines[*]} == *' owner a '*' host h '* ]]
  redis srv set "$lock" random px 60000
  run -0 --keep-empty-lines inspect
  [[ ${lines[6]} == random && ${lines[7]} == '' && ${lines[8]} == 1 ]]
}

@test "a server that is out of memory refuses only grants" {
  acquire a 30000 ha ''
  acquire b 30000 hb a
  fill_memory
  run -0 renew a 30000
  [[ ${lines[0]} == renewed ]]
  run -0 release a hb
  [[ ${lines[0]} == released ]]
  run -0 release a ha
  [[ ${lines[0]} == released && $(redis srv exists "$lock") == 0 ]]
  run acquire c 30000 hc ''
  [[ $status != 0 || $output == *OOM* ]]
  [[ $(redis srv exists "$lock" "$holder") == 0 ]]
  free_memory
}

@test "no half-made lock: a user without any one of the rights leaves nothing" {
  local right
  for right in set pexpire hset; do
    as_weak_user "$right"
    run acquire a 30000 ha ''
    lacks_a_right "$output"
    as_full_user
    [[ $(redis srv exists "$lock") == 0 ]]
    redis srv flushall
  done
}
