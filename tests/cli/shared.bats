#!/usr/bin/env bats
# run and acquire with -s, -x and --slots: who runs at the same time, renewal, loss, force, status, nesting.
# shellcheck disable=SC2016 # what stands in single quotes is for the sh of a command

load ../lib/common
load ../lib/jobs

# job ID OPTION...: as job_on_x; it writes started-ID.
job() { job_on_x "$1" 'echo $$ >started-'"$1" "${@:2}"; }
started() { [[ -s started-$1 ]]; }
waiting() { [[ $(redis srv zcard 'rlock:queue:{x}') == "$1" ]]; }
number_of_holders() { rlock status --json x | sed -n 's/.*"number_of_holders": \([0-9]*\).*/\1/p'; }

@test "readers run at the same time, and a writer waits for all of them" {
  job a -s
  job b -s
  wait_until started a
  wait_until started b
  run -75 --separate-stderr rlock run -n -x x -- true
  [[ $stderr == *'held for reading by '*' and 1 other' ]]
  job w -x
  wait_until waiting 1
  touch end-a
  ends a 0
  not started w
  touch end-b
  wait_until started w
  run -75 --separate-stderr rlock run -n -s x -- true
  [[ $stderr == *'not acquired: held by '* ]]
}

@test "readers do not overtake a waiting writer, and start together after it" {
  job a -s
  wait_until started a
  job w -x
  wait_until waiting 1
  job b -s
  job c -s
  wait_until waiting 3
  run -75 rlock run -n -s x -- true
  touch end-a
  wait_until started w
  not started b
  touch end-w
  wait_until started b
  wait_until started c
}

@test "a reader, a writer and a slot are kept far longer than their lease" {
  local option
  for option in -s -x '--slots 2'; do
    rm -f started-a end-a
    # shellcheck disable=SC2086 # one or two words
    job a --lease 6s $option
    wait_until started a
    began=$(now_ms)
    wait_until past 7000
    rlock status --is-held x
    touch end-a
    ends a 0
  done
}

@test "a loss is noticed, and the command stopped" {
  job a --lease 6s -s
  job b --lease 6s -s
  wait_until started a
  wait_until started b
  local owner
  owner=$(rlock status --json x | sed -n 's/.*"owner": "\(.*\)".*/\1/p' | head -n1)
  run -0 rlock force-unlock --now --yes --owner "$owner" x
  assert_says "taken away from $owner"
  one_left() { gone "$job_a" || gone "$job_b"; }
  wait_until one_left
  [[ $(number_of_holders) == 1 ]]
  run -0 cat err-a err-b
  assert_says 'the lock is lost: '
  assert_says ' (rlock force-unlock) has taken it away'
  touch end
  wait "$job_a" || [[ $? == 74 ]]
}

@test "a slot that is taken away is noticed, too" {
  job a --lease 6s --slots 2
  wait_until started a
  run -0 rlock force-unlock --now --yes x
  ends a 74
}

@test "kill -9 of one reader's processes: its time runs out, the other one continues, then a writer gets the lock" {
  needs_pid_namespaces
  job a --lease 6s --isolate -s 2>/dev/null
  job b --lease 6s -s
  wait_until started b
  wait_until started a
  kill -KILL "$(monitor_of "$job_a")" "$job_a"
  job w -x
  only_b() { [[ $(number_of_holders) == 1 ]]; }
  wait_until only_b
  not started w
  touch end-b
  wait_until started w
}

@test "at most N run at a time, and a slot goes to the one that has waited longest" {
  job a --slots 2
  job b --slots 2
  wait_until started a
  wait_until started b
  job c --slots 2
  wait_until waiting 1
  job d --slots 2
  wait_until waiting 2
  run -75 --separate-stderr rlock run -n --slots 2 x -- true
  [[ $stderr == *'held by '*' and 1 other' ]]
  touch end-b
  wait_until started c
  not started d
  touch end-a
  wait_until started d
}

@test "a nested run with another number of slots is refused" {
  run -76 --separate-stderr rlock run --slots 2 x -- "$RLOCK" run --slots 5 x -- true
  [[ $stderr == *'it has 2 slots, not 5; --resize changes that' ]]
}

@test "a writer that was killed while it waited does not delay readers" {
  job a -s
  wait_until started a
  "$RLOCK" run -x x -- true 2>/dev/null 3>&- &
  jobs+=($!)
  wait_until waiting 1
  local waiter
  waiter=$(redis srv zrange 'rlock:queue:{x}' 0 0)
  kill -KILL "${jobs[-1]}"
  nobody_listens() { [[ $(listeners_on srv "rlock:grant:{x}:$waiter") == 0 ]]; }
  wait_until nobody_listens
  run -0 rlock run -n -s x -- true
}

@test "force-unlock of more readers than are shown says so; a reader that has left is no error" {
  local i
  for i in {1..130}; do
    redis srv hset x mode read "java:$i" 1
    redis srv set "{x}:java:$i:rwlock_timeout:1" 1 px 60000
  done >/dev/null
  redis srv pexpire x 60000
  run -75 --separate-stderr rlock force-unlock --yes x
  [[ $stderr == *'only the first 100 of 130 holders; run it again for the others' ]]
  run -0 rlock force-unlock --yes x
  run -0 rlock status x
  assert_says 'state     free'
}

@test "--resize to more slots lets more jobs run" {
  job a --slots 1
  wait_until started a
  run -76 --separate-stderr rlock run --slots 2 x -- true
  [[ $stderr == *'it has 1 slots, not 2; --resize changes that' ]]
  run -0 rlock run -n --slots 2 --resize x -- true
  job b --slots 2
  wait_until started b
}

@test "a waiter is not asked again how many slots there are" {
  job a --slots 1
  wait_until started a
  job b --slots 1
  wait_until waiting 1
  job c --slots 2 --resize
  wait_until started b # there is room, and it came first
  touch end-a
  wait_until started c
}

@test "status shows all of them, in full and as JSON" {
  job a -s --reason 'night "shift"'
  wait_until started a
  job b -s
  wait_until started b
  job w -x --reason import
  wait_until waiting 1
  run -0 --separate-stderr rlock status x
  assert_says 'kind      read-write lock'
  assert_says 'state     held for reading'
  [[ $(grep -c 'after its host dies' <<<"$output") == 2 && $output == *'night "shift"'* && $output == *'to write: import'* ]]
  run -0 --separate-stderr rlock status
  [[ ${lines[1]} == *'held for reading'*' +1 '* ]]
  rlock status --json x | python3 -c '
import json, sys
(x,) = json.load(sys.stdin)
assert x["kind"] == "read-write lock" and x["number_of_holders"] == 2 and x["waiting"] == 1, x
assert [h["mode"] for h in x["holders"]] == ["read"] * 2 and all(h["taken_by_rlock"] for h in x["holders"]), x
assert x["queue"][0]["mode"] == "write" and "owner" not in x, x'
  [[ $(rlock status --names) == x ]]
  run -0 rlock status --is-held x
}

@test "status of a semaphore says how many slots are taken" {
  job a --slots 3
  wait_until started a
  run -0 --separate-stderr rlock status x
  assert_says 'kind      semaphore'
  assert_says 'state     1 of 3 slots taken'
  rlock status --json x | python3 -c '
import json, sys
(x,) = json.load(sys.stdin)
assert x["slots"] == 3 and x["holders"][0]["owner"].endswith(":%d" % x["holders"][0]["pid"]), x'
}

@test "force-unlock asks all holders to stop" {
  job a -s
  job b -s
  wait_until started a
  wait_until started b
  run -0 rlock force-unlock --yes x
  assert_says 'x: released'
  ends a 74
  ends b 74
}

@test "by hand: acquire, renew and release each kind, without naming it" {
  local option owner
  for option in -s -x '--slots 2'; do
    # shellcheck disable=SC2086 # one or two words
    owner=$(rlock acquire --lease 10s $option x)
    rlock renew --lease 1m --owner "$owner" x
    run -0 rlock status --json x
    [[ $output == *'"lease_ms": 60000'* ]]
    rlock release --owner "$owner" x
    run -76 rlock release --owner "$owner" x
  done
}

@test "a keeper renews each kind" {
  local option owner
  sleep 60 3>&- &
  local process=$!
  for option in -s -x '--slots 2'; do
    # shellcheck disable=SC2086 # one or two words
    owner=$(rlock acquire --lease 6s --for-pid $process $option x)
    began=$(now_ms)
    wait_until past 7000
    rlock status --is-held x
    rlock release --owner "$owner" x
  done
  kill "$process"
}

@test "nested runs share: reader in reader, reader in writer, slot in slot" {
  run -0 rlock run -s x -- "$RLOCK" run -n -s x -- echo in
  [[ $output == in ]]
  run -0 rlock run -x x -- "$RLOCK" run -n -x x -- "$RLOCK" run -n -s x -- echo in
  [[ $output == in ]]
  run -0 rlock run --slots 1 x -- "$RLOCK" run -n --slots 1 x -- echo in
  [[ $output == in ]]
}

@test "a writer inside its own reader is told that it would wait forever" {
  run -64 --separate-stderr rlock run -s x -- "$RLOCK" run -x x -- touch ran
  [[ $stderr == *'holds the lock for reading'*'forever'* && ! -e ran ]]
}

@test "another kind inside itself is refused, too" {
  run -76 --separate-stderr rlock run x -- "$RLOCK" run -s x -- touch ran
  [[ $stderr == *'plain lock, held by '* && ! -e ran ]]
}

@test "--min-hold keeps a slot and a reader's hold" {
  rlock run --slots 1 --min-hold 8s x -- true
  run -75 --separate-stderr rlock run -n --slots 1 x -- true
  [[ $stderr == *'has ended'* ]]
  free_again() { rlock run -n --slots 1 x -- true; }
  wait_until free_again
  rlock run -s --min-hold 8s x -- true
  run -75 rlock run -n -x x -- true
  free_again() { rlock run -n -x x -- true; }
  wait_until free_again
}

@test "--supersede: a reader does not ask other readers, and for a slot one holder that can be asked is asked" {
  job a -s
  wait_until started a
  job w -x
  wait_until waiting 1
  run -75 rlock run -s --supersede -w 2s x -- true
  not gone "$job_a"
  touch end-a end-w
  ends a 0
  ends w 0
  local owner
  owner=$(rlock acquire --slots 2 --lease 1m x)
  rm started-a end-a
  job a --slots 2
  wait_until started a
  run -0 rlock run --slots 2 --supersede -w 1m x -- true
  ends a 74
  rlock release x --owner "$owner"
}

@test "--supersede: a writer asks all readers, and a slot asks the one that has it longest" {
  job a -s
  wait_until started a
  job b -s
  wait_until started b
  run -0 rlock run -x --supersede x -- true
  ends a 74
  ends b 74
  rm -f started-*
  job a --slots 2
  wait_until started a
  job b --slots 2
  wait_until started b
  run -0 rlock run --slots 2 --supersede x -- true
  ends a 74
  not gone "$job_b"
}

@test "--supersede: a reader that does not listen yet is asked again, even if another one was reached" {
  job a -s
  job b -s
  wait_until started a
  wait_until started b
  # The guard of b is gone, and so is its connection; a is back on the channel.
  local guard
  guard=$(monitor_of "$job_b")
  kill -STOP "$guard"
  listeners() { [[ $(listeners_on srv 'rlock:control:{x}') == "$1" ]]; }
  redis srv client kill type pubsub
  wait_until listeners 1
  "$RLOCK" run -x --supersede -w 1m x -- touch ran 2>err-w 3>&- &
  jobs+=($!)
  # For each of them, unless a has left before b is asked: then nobody has received that.
  asked() { grep -q 'the holder has been asked to stop' err-w; }
  wait_until asked
  kill -CONT "$guard"
  ends a 74
  ends b 74
  wait "${jobs[-1]}"
  [[ -e ran ]]
}
