# Pools: which slots and resources a command has, several at once, and who waits for whom.

load ../lib/jobs

# job ID OPTION...: as job_on_x; it writes its slots and resources to has-ID.
job() { job_on_x "$1" 'echo "$RLOCK_SLOT|$RLOCK_RESOURCE" >has-'"$1" "${@:2}"; }
started() { [[ -s has-$1 ]]; }
has() { wait_until started "$1" && [[ $(<"has-$1") == "$2" ]]; }
# gets ID SLOTS|RESOURCES OPTION...: a job that has these. waits NUMBER ID OPTION...: it is the NUMBER-th in the queue.
gets() { job "$1" "${@:3}" && has "$1" "$2"; }
waits() { job "${@:2}" && wait_until queued x "$1"; }
end() { touch "end-$1" && ends "$1" 0; }

@test "the command finds which numbers it has, the lowest free ones, and with --from which resources, in the order of the list" {
  gets a '0|' --slots 3
  gets b '1|' --slots 3
  end a
  gets c '0|' --slots 3
  has b '1|'
  end b
  end c
  rm has-a end-a
  gets a '0|gpu0' --from gpu0,gpu1,gpu2
  prints '1 2|gpu1 gpu2' rlock run --from gpu0,gpu1,gpu2 --take 2 x -- sh -c 'echo "$RLOCK_SLOT|$RLOCK_RESOURCE"'
  run -75 rlock run -n --from gpu0,gpu1,gpu2 --take 3 x -- true
  long=build-node-[01-64].eu-west-1.example.internal
  prints "64 ${long/\[01-64]/64}" rlock run --from "$long" --take 64 y -- sh -c 'set -- $RLOCK_RESOURCE; echo $# ${64}'
}

@test "a waiter finds its own slots, although its command was forked before it had any; so do its hooks" {
  gets a '0|a' --from a,b
  waits 1 b --from a,b --take 2 --on-acquire 'echo "$RLOCK_SLOT|$RLOCK_RESOURCE" >hook'
  end a
  has b '0 1|a b'
  [[ $(<hook) == '0 1|a b' ]]
}

@test "a big request is not starved by small ones: they wait behind it" {
  gets a '0 1 2|' --slots 4 --take 3
  waits 1 big --slots 4 --take 4
  waits 2 small --slots 4
  run -75 rlock run -n --slots 4 x -- true
  [[ $output != *'never expires'* ]]
  run -0 rlock status x
  assert_says '1. '
  [[ $output == *', for 4 slots'* ]]
  end a
  has big '0 1 2 3|'
  not started small
  end big
  has small '0|'
}

@test "a job that has lost one of its slots gives back the others when its command has ended" {
  gets a '0 1 2|' --slots 3 --take 3 --lease 6s
  lose_one() {
    redis srv eval 'return redis.call("incrby", KEYS[2], redis.call("zremrangebyrank", KEYS[1], 0, 0))' 2 '{x}:timeout' x
  }
  lose_one
  gets b '1|' --slots 3
  ends a 74
  tells 0 '1 of 3 slots taken' rlock status x
  end b
  # The keeper of acquire --for-pid, too: nothing else removes them.
  sleep 600 3>&- &
  jobs+=("$!")
  rlock acquire --slots 3 --take 3 --for-pid $! --lease 6s x
  run -75 rlock run -n --slots 3 x -- true
  redis srv pexpire '{x}:timeout' 600000
  lose_one
  given_back() { [[ $(redis srv zcard '{x}:timeout') == 0 ]]; }
  wait_until given_back
  kill "${jobs[-1]}"
}

@test "status says who has which slots; --json, --prometheus, --status-fd and the history know them, too" {
  gets a '0 1|a b' --from a,b,c --take 2 --history
  tells 0 'state     2 of 3 slots taken' rlock status x
  assert_says 'resource  a, b'
  gets b '2|c' --from a,b,c
  run -0 rlock status x
  [[ $output == *'a, b: '* && $output == *'c: '* ]]
  run -0 rlock status --json x
  python3 - "$output" <<'PYTHON'
import json, sys
one = json.loads(sys.argv[1])[0]
assert (one["slots"], one["slots_taken"], one["resources"], one["number_of_holders"]) == (3, 3, ["a", "b", "c"], 2), one
assert sorted((h["slot_numbers"], h["resources"]) for h in one["holders"]) == [([0, 1], ["a", "b"]), ([2], ["c"])], one
PYTHON
  tells 0 'rlock_slots{name="x"} 3' rlock status --prometheus x
  assert_says 'rlock_slots_taken{name="x"} 3'
  end a
  run -0 rlock run --status-fd 1 --from a,b,c --take 2 x -- true
  [[ ${lines[0]} == *'"slot_numbers":[0,1],"resources":["a","b"]'* ]]
  tells 0 '"slot_numbers":[0,1],"resources":["a","b"]' rlock history --json x
  tells 0 'x (a, b)' rlock history x
  redis srv del 'rlock:history:{x}' 'rlock:totals:{x}'
}

@test "more than a hundred slots: status knows who has them, and force-unlock asks the holder of the one that is meant" {
  gets a "$(seq -s ' ' 0 63)|" --slots 200 --take 64
  gets b "$(seq -s ' ' 64 123)|" --slots 200 --take 60
  gets c "$(seq -s ' ' 124 173)|" --slots 200 --take 50
  run -0 rlock status x
  [[ $output == *'174 of 200 slots taken'* && $output != *'not taken by rlock'* && $output != *' more'* ]]
  tells 0 '"number_of_holders": 3,' rlock status --json x
  tells 0 'the holder no longer has it' rlock force-unlock --yes --slot 100 x
  ends b 74
  run -0 rlock force-unlock --yes x
  ends a 74
  ends c 74
}

@test "another list of resources, or another number, is refused while the pool is in use, and changes nothing" {
  gets a '0|a' --from a,b
  run -76 --separate-stderr rlock run --from b,a x -- true
  [[ $stderr == *'its resources are a,b, which --from must write in the same way while it is in use' ]]
  tells 76 'its resources are a,b, which' rlock run --from a,b,c x -- true
  run -76 rlock run -n --from x --resize x -- true
  prints b rlock run -n --from a,b x -- sh -c 'echo $RLOCK_RESOURCE'
  end a
  prints b rlock run --from b,a x -- sh -c 'echo $RLOCK_RESOURCE'
  # Nor does it get names.
  rm has-a end-a
  gets a '0|' --slots 3
  tells 76 'it has 3 slots, not 2' rlock run -n --from a,b x -- true
  run -0 rlock status x
  [[ $output != *resource* ]]
  prints y rlock run -n --from x,y,z x -- sh -c 'echo $RLOCK_RESOURCE'
}

@test "a waiter whose list of resources has become another one is told so" {
  gets a '0 1|' --slots 2 --take 2
  waits 1 b --slots 2
  waits 2 c --from x,y
  waits 3 d --from y,x
  end a
  has b '0|'
  has c '1|y'
  ends d 76
  [[ $(<err-d) == *'its resources are x,y, which'* ]]
}
