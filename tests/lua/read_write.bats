#!/usr/bin/env bats
# lua/05_read_write.lua: readers and a writer, in the layout of Redisson's RReadWriteLock.

load ../lib/common
load ../lib/fault_scripts

setup_file() { start_script_server; }
setup() {
  fresh_lock
  use_lock "lock-$BATS_TEST_NUMBER" read_write
}
teardown() {
  assert_mortal
  end_listeners
}
teardown_file() { redis_stop srv; }

read_by() { mode=read acquire "$1" "${2:-30000}" "h$1" ''; }
write_by() { mode=write acquire "$1" "${2:-30000}" "h$1" ''; }
wait_to_read() { mode=read enqueue "$1" 30000 "h$1"; }
wait_to_write() { mode=write enqueue "$1" 30000 "h$1"; }
timeout_of() { echo "{$lock}:$(id_of "$1"):rwlock_timeout:1"; }
# As labels: a:write is a writer.
holders_now() { redis srv hkeys "$lock" | grep -vx mode | sed 's/:0\(:write\)\{0,1\}$/\1/' | sort | xargs; }
mode_now() { redis srv hget "$lock" mode; }

@test "the fields and keys of a reader are Redisson's" {
  run -0 read_by a
  [[ ${lines[0]} == granted && ${lines[1]} == a ]]
  [[ $(redis srv hgetall "$lock" | xargs) == 'mode read a:0 1' ]]
  [[ $(redis srv get "$(timeout_of a)") == 1 ]]
  (($(redis srv pttl "$(timeout_of a)") > 10000 && $(redis srv pttl "$lock") > 10000))
  [[ $(redis srv hget "${hold_keys}a:0" owner) == a:0 && $(redis srv exists "$holder") == 1 ]]
}

@test "the fields of a writer are Redisson's" {
  write_by a
  [[ $(redis srv hgetall "$lock" | xargs) == 'mode write a:0:write 1' ]]
  (($(redis srv pttl "$lock") > 10000))
}

@test "a name with braces has the same keys as in Redisson" {
  use_lock '{x}y' read_write
  read_by a
  [[ $(redis srv exists '{x}y:a:0:rwlock_timeout:1') == 1 ]]
}

@test "readers share, a writer does not" {
  read_by a
  run -0 read_by b
  [[ ${lines[0]} == granted ]]
  run -0 --keep-empty-lines write_by c
  [[ ${lines[0]} == held && ${lines[1]} -gt 10000 && ${lines[5]} == 2 ]]
  [[ $(holders_now) == 'a b' ]]
}

@test "a writer excludes readers and writers" {
  write_by a
  run -0 --keep-empty-lines read_by b
  [[ ${lines[0]} == held && ${lines[5]} == 1 && ${lines[6]} == a && ${lines[7]} == write ]]
  run -0 --keep-empty-lines write_by c
  [[ ${lines[0]} == held ]]
}

@test "each reader has its own TTL, and nobody waits for a dead one" {
  read_by a 30000
  read_by b 1000
  (($(redis srv pttl "$(timeout_of b)") <= 1000 && $(redis srv pttl "$lock") > 10000))
  redis srv pexpire "$(timeout_of a)" 1
  dead() { [[ $(redis srv exists "$(timeout_of "$1")") == 0 ]]; }
  wait_until dead a
  wait_until dead b
  run -0 write_by c
  [[ ${lines[0]} == granted && $(holders_now) == c:write ]]
}

@test "a dead reader is removed while others go on, and cannot renew" {
  read_by a
  read_by b
  redis srv del "$(timeout_of a)"
  run -0 --keep-empty-lines write_by c
  [[ ${lines[0]} == held && ${lines[5]} == 1 && ${lines[6]} == b ]]
  run -0 renew a 30000
  [[ ${lines[0]} == other-owner ]]
}

@test "the last reader frees the lock, and publishes that as Redisson does" {
  hear_releases heard-all
  read_by a 60000
  read_by b 30000
  run -0 release a ha
  [[ ${lines[0]} == released && ${lines[1]} == 0 ]]
  (($(redis srv pttl "$lock") <= 30000)) # what a foreign writer counts on
  not grep -q message heard-all
  release b hb
  wait_until grep -qx 0 heard-all
  [[ -z $(redis srv --scan --pattern "*$lock*" | grep -v redisson_lock_token) ]]
  write_by c
  release c hc
  wait_until grep -q message heard-all
  [[ $(grep -A2 message heard-all | grep -cx 1) -ge 1 ]]
}

@test "a waiting writer is told when it no longer has to wait for the longest reader" {
  listen w
  read_by a 60000
  read_by b 20000
  wait_to_write w
  release a ha
  wait_until grep -q '^first' heard-w
  (($(sed -n 's/^first //p' heard-w) <= 20000))
}

@test "a renewal extends only the reader's own lease" {
  read_by a 20000
  read_by b 30000
  run -0 renew a 60000
  [[ ${lines[0]} == renewed ]] && ((lines[1] <= 20000))
  (($(redis srv pttl "$(timeout_of a)") > 35000 && $(redis srv pttl "$(timeout_of b)") <= 30000))
  (($(redis srv pttl "$lock") > 35000))
  run -0 renew a 0
  (($(redis srv pttl "$(timeout_of a)") > 35000))
}

@test "readers do not overtake a waiting writer" {
  listen w r
  read_by a
  wait_to_write w
  run -0 wait_to_read r
  [[ ${lines[0]} == held && ${lines[2]} == 1 ]]
  run -0 --keep-empty-lines read_by newcomer
  [[ ${lines[0]} == held ]]
  release a ha
  hears w granted
  [[ $(holders_now) == w:write && $(in_queue) == r ]]
  (($(redis srv pttl "$lock") <= 5000))
}

@test "consecutive readers in the queue get the lock together" {
  listen r1 r2 w r3
  write_by a
  wait_to_read r1
  wait_to_read r2
  wait_to_write w
  wait_to_read r3
  release a ha
  hears r1 granted
  hears r2 granted
  [[ $(holders_now) == 'r1 r2' && $(in_queue) == 'w r3' ]]
  wait_until grep -q '^first' heard-w
  not grep -q message heard-r3
  run -0 wait_to_read r1
  [[ ${lines[0]} == granted ]]
  (($(redis srv pttl "$(timeout_of r1)") > 10000 && $(redis srv pttl "$(timeout_of r2)") <= 5000))
}

@test "when a writer gives up, the readers behind it are told to look" {
  listen w r
  read_by a
  wait_to_write w
  wait_to_read r
  release w hw
  hears r front
  run -0 wait_to_read r
  [[ ${lines[0]} == granted && $(holders_now) == 'a r' && -z $(in_queue) ]]
}

@test "an heir gets one more hold, and a reader does not become a writer" {
  read_by a
  run -0 acquire x 30000 inner a # mode is that of use_lock
  mode=read run -0 acquire x 30000 inner a
  [[ ${lines[0]} == granted && ${lines[1]} == a && $(redis srv hget "$lock" a:0) == 2 ]]
  mode=read run -0 acquire x 30000 inner a
  [[ $(redis srv hget "$lock" a:0) == 2 ]]
  mode=write run -0 acquire x 30000 other a
  [[ $output == no-upgrade ]]
  run -0 release a inner
  [[ ${lines[1]} == 1 && $(redis srv hget "$lock" a:0) == 1 ]]
  run -0 release a inner
  [[ ${lines[1]} == 1 ]]
}

@test "a writer's heir may read: that is one more hold of the writer" {
  write_by a
  mode=read run -0 acquire x 30000 inner a
  [[ ${lines[0]} == granted && $(redis srv hgetall "$lock" | xargs) == 'mode write a:0:write 2' ]]
}

@test "sent again after a lost reply, the hold counts once" {
  read_by a
  run -0 read_by a
  [[ ${lines[0]} == granted && $(redis srv hget "$lock" a:0) == 1 ]]
  write_by b
  use_lock other read_write
  write_by c
  run -0 write_by c
  [[ ${lines[0]} == granted && $(redis srv hget "$lock" c:0:write) == 1 ]]
}

@test "force_unlock takes the hold of one reader, and leaves the others alone" {
  read_by a
  read_by b
  run -0 force_unlock a
  [[ ${lines[0]} == released && $(holders_now) == b ]]
  [[ $(redis srv exists "$(timeout_of a)" "${hold_keys}a:0") == 0 ]]
  run -0 force_unlock a
  [[ ${lines[0]} == other-owner ]]
}

@test "Redisson's readers, with a TTL for each hold, are recognized and left alone" {
  redis srv hset "$lock" mode read java:1 2
  redis srv pexpire "$lock" 30000
  redis srv set "{$lock}:java:1:rwlock_timeout:2" 1 px 30000
  run -0 --keep-empty-lines write_by a
  [[ ${lines[0]} == held && ${lines[6]} == java:1 && ${lines[8]} == 2 ]]
  run -0 read_by b
  [[ ${lines[0]} == granted ]]
  release b hb
  [[ $(holders_now) == java:1 ]] && (($(redis srv pttl "$lock") > 10000))
}

@test "an implausible number of holds is not looped over" {
  local number
  for number in 3000000 900000000000000; do
    redis srv hset "$lock" mode read java:1 "$number"
    redis srv pexpire "$lock" 30000
    redis srv config resetstat
    run -0 write_by a
    [[ ${lines[0]} == granted ]]
    (($(count_calls pttl) < 100))
    release a ha
    redis srv hset "$lock" mode read java:1 "$number"
    redis srv pexpire "$lock" 30000
    redis srv set "{$lock}:java:1:rwlock_timeout:1" 1 px 30000
    run -0 write_by a
    [[ ${lines[0]} == held ]]
    redis srv del "$lock" "{$lock}:java:1:rwlock_timeout:1"
  done
}

@test "a reader with many holds is alive as long as the latest of them" {
  redis srv hset "$lock" mode read java:1 40
  redis srv pexpire "$lock" 30000
  redis srv set "{$lock}:java:1:rwlock_timeout:40" 1 px 30000
  run -0 write_by a
  [[ ${lines[0]} == held ]]
}

@test "force_unlock takes all holds of a Java writer that is also a reader" {
  redis srv hset "$lock" mode write java:1:write 1 java:1 1
  redis srv pexpire "$lock" 30000
  redis srv set "{$lock}:java:1:rwlock_timeout:1" 1 px 30000
  run -0 force_unlock java:1
  [[ ${lines[0]} == released && $(redis srv exists "$lock" "{$lock}:java:1:rwlock_timeout:1") == 0 ]]
}

@test "one of several readers leaves: that is not a release, and does not change the turns" {
  listen w
  read_by a
  read_by b
  wait_to_write w
  redis srv hset "$waiters" open 1
  release a ha
  [[ $(redis srv hget "$waiters" open) == 1 ]]
}

@test "a plain lock is another kind, and nothing is changed" {
  redis srv hset "$lock" java:1 1
  redis srv pexpire "$lock" 30000
  mode=read run -0 acquire a 30000 ha ''
  [[ $output == $'other-kind\nplain lock' ]]
  run -0 renew java:1 30000
  [[ $output == other-owner ]]
  run -0 release java:1 h
  [[ $output == $'other-kind\nplain lock' ]]
  [[ $(redis srv hgetall "$lock" | xargs) == 'java:1 1' ]]
}

@test "keep: the last hold lets the lock expire" {
  write_by a
  run -0 release a ha 700
  [[ ${lines[0]} == kept && ${lines[1]} == 700 ]] && (($(redis srv pttl "$lock") <= 700))
  use_lock other read_write
  read_by b
  release b hb 700
  (($(redis srv pttl "$(timeout_of b)") <= 700))
}

@test "inspect names every reader, and changes nothing" {
  read_by a
  read_by b
  wait_to_write w
  changes() { redis srv info persistence | grep '^rdb_changes_since_last_save'; }
  local before
  before=$(changes)
  run -0 --keep-empty-lines inspect
  [[ $(changes) == "$before" && ${lines[5]} == 2 && $output == *$'\nread\n'*$'\nread\n'* && $output == *$'\nwrite\n'* ]]
}

@test "release and renewal work on a server that is out of memory, a grant does not" {
  read_by a
  read_by b
  fill_memory
  run -1 read_by c
  assert_says OOM
  run -0 renew a 60000
  [[ ${lines[0]} == renewed ]]
  run -0 release a ha
  [[ ${lines[0]} == released ]]
  release b hb
  [[ $(redis srv exists "$lock") == 0 ]]
}

@test "a user without any one of the rights gets a hold or leaves no lock" {
  local right
  for right in $SCRIPT_COMMANDS; do
    for mode in read write; do
      fresh_lock
      use_lock "lock-$right" read_write "$mode"
      as_weak_user "$right"
      if run acquire a 30000 ha ''; [[ $status != 0 ]]; then
        [[ $(redis srv exists "$lock") == 0 ]] || [[ $(redis srv pttl "$lock") -gt 0 ]]
      fi
      as_full_user
      assert_mortal
    done
  done
}

# whole: the lock is free or held, and not half-made.
whole() { [[ $(redis srv exists "$lock") == 0 ]] || [[ $(redis srv hget "$lock" "$1") == 1 ]]; }

@test "a user without the right to delete leaves no lock without an owner: at a grant, a release, a forced release" {
  local field way
  for way in read write; do
    fresh_lock
    use_lock "lock-$way" read_write "$way"
    field=a:0
    [[ $way == read ]] || field=a:0:write
    as_weak_user del
    run acquire a 30000 ha ''
    ((status != 0)) || run release a ha
    as_full_user
    whole "$field"
    acquire a 30000 ha ''
    as_weak_user del
    run force_unlock a
    as_full_user
    whole "$field"
    assert_mortal
  done
}

@test "a reader with more holds than rlock looks at is alive as long as the lock" {
  redis srv hset "$lock" mode read java:1 20
  redis srv pexpire "$lock" 3600000
  redis srv set "{$lock}:java:1:rwlock_timeout:2" 1 px 3600000
  mode=write run -0 acquire w 30000 hw ''
  [[ ${lines[0]} == held && $(redis srv hget "$lock" java:1) == 20 ]]
}

@test "PERSIST on a lock and on its readers ends no hold: they renew, and leave each other time" {
  read_by a
  read_by b
  redis srv persist "$lock"
  redis srv persist "$(timeout_of a)"
  redis srv persist "$(timeout_of b)"
  run -0 release b hb
  [[ ${lines[0]} == released && $(holders_now) == a ]]
  assert_bounded "$lock"
  redis srv persist "$lock"
  run -0 renew a 30000
  [[ ${lines[0]} == renewed ]]
}
