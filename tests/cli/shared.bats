# run and acquire with -s, -x and --slots: who runs at the same time, renewal, loss, force, status, nesting.

load ../lib/jobs

# job ID OPTION...: as job_on_x; it writes started-ID.
job() { job_on_x "$1" 'echo $$ >started-'"$1" "${@:2}"; }
started() { [[ -s started-$1 ]]; }
# runs ID OPTION...: the same, and it has the lock. waits NUMBER ID OPTION...: it is the NUMBER-th in the queue.
runs() { job "$@" && wait_until started "$1"; }
waits() { job "${@:2}" && wait_until queued x "$1"; }
# end ID [STATUS]: it ends. end_for ID OTHER: and the other one gets the lock.
end() { touch "end-$1" && ends "$1" "${2:-0}"; }
end_for() { touch "end-$1" && wait_until started "$2"; }
number_of_holders() { rlock status --json x | sed -n 's/.*"number_of_holders": \([0-9]*\).*/\1/p'; }

@test "readers run at the same time, and a writer waits for all of them" {
  runs a -s
  runs b -s
  run -75 --separate-stderr rlock run -n -x x -- true
  [[ $stderr == *'held for reading by '*' and 1 other' ]]
  waits 1 w -x
  end a
  not started w
  end_for b w
  tells 75 'not acquired: held by ' rlock run -n -s x -- true
}

@test "a reader, a writer, a slot and a string are kept far longer than their lease, by a job and by a keeper" {
  local name=0 process option
  sleep 60 3>&- &
  process=$!
  for option in -s -x '--slots 2' '--protocol set'; do
    name=$((name + 1))
    rlock acquire --lease 6s --for-pid "$process" $option "k$name"
    "$RLOCK" run --lease 6s $option "x$name" -- sh -c 'until [ -e end ]; do sleep 0.1; done' 3>&- &
    jobs+=($!)
    wait_until rlock status --is-held "x$name"
  done
  let_pass 7000
  rlock status --is-held {x,k}{1,2,3,4}
  kill "$process"
  touch end
  wait_until is_clean srv
}

@test "a loss is noticed, and the command stopped, of a slot, too; force-unlock asks all holders to stop" {
  runs a --lease 6s -s
  runs b --lease 6s -s
  owner=$(rlock status --json x | sed -n 's/.*"owner": "\(.*\)".*/\1/p' | head -n1)
  tells 0 "taken away from $owner" rlock force-unlock --now --yes --owner "$owner" x
  one_left() { gone "$job_a" || gone "$job_b"; }
  wait_until one_left
  [[ $(number_of_holders) == 1 ]]
  tells 0 'the lock is lost: ' cat err-a err-b
  assert_says ' (rlock force-unlock) has taken it away'
  touch end
  wait_until gone "$job_b"
  wait "$job_a" || [[ $? == 74 ]]
  rm end
  runs c --lease 6s --slots 2
  run -0 rlock force-unlock --now --yes x
  ends c 74
  runs d -s
  runs e -s
  tells 0 'x: released' rlock force-unlock --yes x
  ends d 74
  ends e 74
}

@test "kill -9 of one reader's processes: its time runs out, the other one continues, then a writer gets the lock" {
  needs_pid_namespaces
  runs a --lease 6s --isolate -s 2>/dev/null
  runs b --lease 6s -s
  kill -KILL "$(monitor_of "$job_a")" "$job_a"
  job w -x
  only_b() { [[ $(number_of_holders) == 1 ]]; }
  wait_until only_b
  not started w
  end_for b w
}

@test "at most N run at a time, and a slot goes to the one that has waited longest" {
  runs a --slots 2
  runs b --slots 2
  waits 1 c --slots 2
  waits 2 d --slots 2
  run -75 --separate-stderr rlock run -n --slots 2 x -- true
  [[ $stderr == *'held by '*' and 1 other' ]]
  end_for b c
  not started d
  end_for a d
}

@test "a waiter is not asked again how many slots there are" {
  runs a --slots 1
  waits 1 b --slots 1
  job c --slots 2 --resize
  wait_until started b # there is room, and it came first
  end_for a c
}

@test "status shows all of them, in full and as JSON, and how many slots are taken" {
  runs a -s --reason 'night "shift"'
  runs b -s
  waits 1 w -x --reason import
  tells 0 'kind      read-write lock' rlock status x
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
  rlock status --is-held x
  end a
  end b
  wait_until started w
  end w
  runs c --slots 3
  tells 0 'kind      semaphore' rlock status x
  assert_says 'state     1 of 3 slots taken'
  rlock status --json x | python3 -c '
import json, sys
(x,) = json.load(sys.stdin)
assert x["slots"] == 3 and x["holders"][0]["owner"].endswith(":%d" % x["holders"][0]["pid"]), x'
}

@test "--supersede: a reader does not ask other readers, and for a slot one holder that can be asked is asked" {
  runs a -s
  waits 1 w -x
  run -75 rlock run -s --supersede -w 2s x -- true
  not gone "$job_a"
  touch end-a end-w
  ends a 0
  ends w 0
  owner=$(rlock acquire --slots 2 --lease 1m x)
  rm started-a end-a
  runs a --slots 2
  run -0 rlock run --slots 2 --supersede -w 1m x -- true
  ends a 74
  rlock release x --owner "$owner"
}

@test "--supersede: a writer asks all readers, and a slot asks the one that has it longest" {
  runs a -s
  runs b -s
  run -0 rlock run -x --supersede x -- true
  ends a 74
  ends b 74
  rm -f started-*
  runs a --slots 2
  runs b --slots 2
  run -0 rlock run --slots 2 --supersede x -- true
  ends a 74
  not gone "$job_b"
}

@test "--supersede: a reader that does not listen yet is asked again, even if another one was reached" {
  runs a -s
  runs b -s
  # The guard of b is gone, and so is its connection; a is back on the channel.
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
